"""Models on Amazon Bedrock: botocore gives credentials, addresses and signatures; httpx2 sends the bytes.

boto3 itself is not used: it is synchronous, and it drops or refuses fields that it does not know.
"""

from __future__ import annotations

import asyncio
import os
import re
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from importlib import import_module
from pathlib import Path
from typing import Any, Literal
from urllib.parse import quote, urlsplit

from toolcrib.codecs.anthropic_messages import AnthropicMessagesCodec
from toolcrib.codecs.bedrock_converse import BedrockConverseCodec
from toolcrib.codecs.cache_breakpoints import CACHE_SECONDS, CacheLifetime
from toolcrib.codecs.codec import Codec, ModelError
from toolcrib.dataclass import dataclass
from toolcrib.messages import Request
from toolcrib.models.answer_body import EventReader, RawResponse
from toolcrib.models.bedrock_frames import ConverseFrames, MessagesFrames
from toolcrib.models.error_answers import SHORTEST_KEY
from toolcrib.models.http import HttpTransport
from toolcrib.models.providers import Missing

SERVICE = "bedrock-runtime"
SIGNED_AS = "bedrock"
KEY_VARIABLE = "AWS_BEARER_TOKEN_BEDROCK"
OFFICIAL = (".amazonaws.com", ".amazonaws.com.cn", ".api.aws")
ANTHROPIC_VERSION = "bedrock-2023-05-31"
REGIONS = ("AWS_REGION", "AWS_DEFAULT_REGION")
# Claude models that take cache points: all but the first ones. Amazon's own models cache without being told.
CACHES = re.compile(r"anthropic\.claude-(?!instant|v2|2|3-opus|3-sonnet|3-haiku|3-5-sonnet)")
ERROR_HEADER = "x-amzn-errortype"


@dataclass(frozen=True, slots=True)
class _Account:
    """What authenticates requests: a bearer key, or credentials that sign for a region."""

    address: str
    region: str
    key: str = ""
    credentials: Any = None


class _Bedrock(HttpTransport):
    """The common part of both Bedrock classes. A subclass names its codec and its two actions."""

    extra = "bedrock"
    modules = ("httpx2", "botocore.session")
    whole = ""
    streamed = ""

    def __init__(
        self,
        model: str,
        *,
        region: str | None = None,
        profile: str | None = None,
        base_url: str | None = None,
        api_key: str | None = None,
        dialect: str | None = None,
        cache: CacheLifetime | Literal["auto"] | None = "auto",
        timeout: float | None = None,
        max_retries: int | None = None,
        deadline: float | None = None,
        body: Mapping[str, Any] | None = None,
    ) -> None:
        if cache == "auto":
            cache = "5m" if CACHES.search(model) else None
        self.cache_seconds = CACHE_SECONDS[cache]
        super().__init__(
            model,
            self._codec(dialect, cache),
            body,
            base_url=base_url or "",
            api_key=api_key,
            timeout=timeout,
            max_retries=max_retries,
            deadline=deadline,
        )
        self.region = region
        self.profile = profile
        self._account: _Account | None = None
        self._secrets: set[str] = set()

    def _codec(self, dialect: str | None, cache: CacheLifetime | None) -> Codec:
        raise NotImplementedError

    def missing(self) -> Missing | None:
        """The region, where nothing names it. Credentials are not looked for: they may come from the machine."""
        named = self.region or self.profile or any(map(os.environ.get, (*REGIONS, "AWS_PROFILE")))
        if named or (self.base_url and self._key()) or _aws_settings().exists():
            return None
        return Missing("region", REGIONS, "region")

    @property
    def name(self) -> str:
        return f"bedrock:{self.model}"

    def _url(self, *, stream: bool) -> str:
        assert self._account is not None
        action = self.streamed if stream else self.whole
        return f"{self._account.address}/model/{quote(self.model, safe='')}/{action}"

    @asynccontextmanager
    async def _send(self, client: Any, body: dict[str, Any]) -> AsyncGenerator[RawResponse, None]:
        if self._account is None:  # files are read and, in a cloud, other services asked
            self._account = await asyncio.to_thread(self._open)
        async with super()._send(client, body) as raw:
            yield raw

    def _headers(self) -> dict[str, str]:
        key = self._account.key if self._account is not None else ""
        return {"authorization": f"Bearer {key}"} if key else {}

    async def _signed(self, method: str, url: str, headers: dict[str, str], body: bytes) -> Mapping[str, str]:
        if "authorization" in headers:
            return headers
        return await asyncio.to_thread(self._sign, method, url, headers, body)

    def _sign(self, method: str, url: str, headers: dict[str, str], body: bytes) -> dict[str, str]:
        auth, request = import_module("botocore.auth"), import_module("botocore.awsrequest")
        assert self._account is not None
        try:
            frozen = self._account.credentials.get_frozen_credentials()
            self._secrets |= {secret for secret in (frozen.secret_key, frozen.token) if secret}
            unsigned = request.AWSRequest(method=method, url=url, data=body, headers=headers)
            auth.SigV4Auth(frozen, SIGNED_AS, self._account.region).add_auth(unsigned)
        except Exception as problem:
            raise self._unusable(problem) from None
        return {str(name): str(value) for name, value in unsigned.headers.items()}

    def _open(self) -> _Account:
        """Finds credentials, region and address."""
        try:
            botocore, config = import_module("botocore"), import_module("botocore.config")
            sessions = import_module("botocore.session")
        except ImportError as missing:
            raise ModelError(
                f"model {self.name} needs the botocore package: pip install 'toolcrib[{self.extra}]'"
            ) from missing
        try:
            session = sessions.Session(profile=self.profile)
            region = (
                self.region or os.environ.get("AWS_REGION") or session.get_config_variable("region") or ""
            )
            address, key = self.base_url, self._key()
            if not region and (not key or not address):
                raise ModelError(f"no region for {self.name}: set AWS_REGION, or pass region=")
            credentials = None if key else session.get_credentials()
            if not key and credentials is None:
                raise ModelError(
                    f"no credentials for {self.name}: set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, "
                    f"AWS_PROFILE or {KEY_VARIABLE}, or pass profile= or api_key="
                )
            if not address:
                unsigned = config.Config(signature_version=botocore.UNSIGNED)
                client = session.create_client(SERVICE, region_name=region, config=unsigned)
                address = client.meta.endpoint_url.rstrip("/")
                client.close()
        except ModelError:
            raise
        except Exception as problem:
            raise self._unusable(problem) from None
        return _Account(address, region, key, credentials)

    def _key(self) -> str:
        """The bearer key. The environment's key is sent only to Bedrock, and only when no profile is given."""
        host = urlsplit(self.base_url).hostname or ""
        usable = not self.profile and (not self.base_url or host.endswith(OFFICIAL))
        return self._api_key or (os.environ.get(KEY_VARIABLE, "").strip() if usable else "")

    def _unusable(self, problem: Exception) -> ModelError:
        """The error for a profile, credentials or an address that botocore cannot use."""
        if not type(problem).__module__.startswith(("botocore", "boto3")) and not isinstance(
            problem, OSError
        ):
            raise problem
        return ModelError(
            f"the AWS account for {self.name} cannot be used: {str(problem) or type(problem).__name__}"
        )

    def _problem(self, problem: Exception) -> tuple[ModelError, Exception | None]:
        headers = getattr(getattr(problem, "response", None), "headers", {})
        kind, said = headers.get(ERROR_HEADER, "").partition(":")[0], getattr(problem, "body", None)
        if kind and isinstance(said, dict):
            problem.body = {"__type": kind, **said}  # type: ignore[attr-defined] # set by `_send`
        return super()._problem(problem)

    def _keys(self) -> set[str]:
        bearer = {self._account.key} if self._account is not None else set()
        return super()._keys() | {key for key in bearer | self._secrets if len(key) >= SHORTEST_KEY}


def _aws_settings() -> Path:
    """The file of AWS settings, which may name a region."""
    return Path(os.path.expanduser(os.environ.get("AWS_CONFIG_FILE") or "~/.aws/config"))  # noqa: PTH111


class BedrockConverse(_Bedrock):
    """A model behind Bedrock's Converse, which is the same for every model there.

    `model` is a model's id, an inference profile's or an ARN. Credentials come as everywhere with AWS: the
    environment, `profile`, the instance; `api_key` (or AWS_BEARER_TOKEN_BEDROCK) is Bedrock's own key.
    `region` is read from AWS_REGION or the profile when it is not given; `base_url` replaces the region's
    address. `cache` marks where the prompt is cached, for five minutes ("5m") or an hour ("1h"), None for no
    marks; "auto" is "5m" for those of Claude's models that take marks. `body` is added to every request;
    `timeout` (seconds) holds for the silence between two pieces.

    >>> BedrockConverse("us.anthropic.claude-sonnet-4-5-20250929-v1:0", region="us-east-1")
    BedrockConverse('us.anthropic.claude-sonnet-4-5-20250929-v1:0', provider='bedrock')
    """

    whole = "converse"
    streamed = "converse-stream"

    def _codec(self, dialect: str | None, cache: CacheLifetime | None) -> Codec:
        return BedrockConverseCodec(dialect=dialect, cache=cache)

    def _events(self) -> EventReader:
        return ConverseFrames()


class BedrockMessages(_Bedrock):
    """Anthropic's own Messages format over Bedrock's `invoke`, for features that Converse lacks.

    Options are those of `BedrockConverse`. A conversation with its thinking signatures may move between Bedrock
    and Anthropic itself.
    """

    whole = "invoke"
    streamed = "invoke-with-response-stream"

    def _codec(self, dialect: str | None, cache: CacheLifetime | None) -> Codec:
        return AnthropicMessagesCodec(dialect=dialect or "anthropic", cache=cache)

    def _request(self, request: Request, *, stream: bool) -> dict[str, Any]:
        body = super()._request(request, stream=stream)
        for said_by_address in ("model", "stream"):
            body.pop(said_by_address, None)
        body.setdefault("anthropic_version", ANTHROPIC_VERSION)
        return body

    def _events(self) -> EventReader:
        return MessagesFrames()
