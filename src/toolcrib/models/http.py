"""Models over plain HTTP, where a provider has no SDK or its SDK loses fields.

A subclass gives the URL, the headers and, where needed, the signature of a request. Retries, deadlines and the
codec are `Transport`'s; `httpx2` is imported when the first request is sent.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from typing import Any
from urllib.parse import urlsplit

from toolcrib.codecs.codec import Codec, ModelError
from toolcrib.codecs.wire_json import compact
from toolcrib.messages import Request
from toolcrib.models.answer_body import RawResponse, refuse_errors
from toolcrib.models.error_answers import SHORTEST_KEY
from toolcrib.models.transport import Transport

# A model may think for minutes before its first byte; a host that answers at all is connected to in seconds.
TIMEOUT = 600.0
CONNECT_TIMEOUT = 10.0


class HttpTransport(Transport):
    """A model behind plain HTTP: `base_url` without a slash at its end, `api_key` kept out of every error.

    `timeout` (seconds) holds for the silence between two pieces of an answer, `deadline` for all of it.
    """

    sdk_name = "httpx2"
    extra = "http"
    modules: tuple[str, ...] = ("httpx2",)

    def __init__(
        self,
        model: str,
        codec: Codec,
        body: Mapping[str, Any] | None = None,
        *,
        base_url: str,
        api_key: str | None = None,
        timeout: float | None = None,
        max_retries: int | None = None,
        deadline: float | None = None,
    ) -> None:
        super().__init__(model, codec, body, max_retries=max_retries, deadline=deadline)
        self.base_url = base_url.rstrip("/")
        self.timeout = TIMEOUT if timeout is None else timeout
        self._api_key = api_key.strip() if api_key else ""

    def _url(self, *, stream: bool) -> str:
        """The URL of a request."""
        raise NotImplementedError

    def _headers(self) -> dict[str, str]:
        """Request headers beside the content type: the key as a bearer token, unless a subclass overrides it."""
        return {"authorization": f"Bearer {self._api_key}"} if self._api_key else {}

    async def _signed(self, method: str, url: str, headers: dict[str, str], body: bytes) -> Mapping[str, str]:
        """The headers for exactly these bytes; a subclass whose provider requires a signature adds it."""
        return headers

    @staticmethod
    async def _close(client: Any) -> None:
        await client.aclose()

    def _make_client(self) -> Any:
        import httpx2

        connect = min(CONNECT_TIMEOUT, self.timeout)
        return httpx2.AsyncClient(timeout=httpx2.Timeout(self.timeout, connect=connect))

    def _request(self, request: Request, *, stream: bool) -> dict[str, Any]:
        return _Body(super()._request(request, stream=stream), stream=stream)

    @asynccontextmanager
    async def _send(self, client: Any, body: dict[str, Any]) -> AsyncGenerator[RawResponse, None]:
        url = self._url(stream=isinstance(body, _Body) and body.stream)
        content = compact(body).encode()
        headers = {"content-type": "application/json", **self._headers()}
        signed = await self._signed("POST", url, headers, content)
        if not all(value.isascii() and value.isprintable() for value in signed.values()):
            # Said here, because the client's own complaint would show the value.
            raise ModelError(f"a header for {self.name} holds what headers cannot carry: look at its key")
        request = client.build_request("POST", url, content=content, headers=signed)
        response = await client.send(request, stream=True)
        try:
            await refuse_errors(response)
            yield _Answer(response)
        finally:
            await response.aclose()

    def _keys(self) -> set[str]:
        known = (self._api_key, urlsplit(self.base_url).password or "")
        return {key for key in known if len(key) >= SHORTEST_KEY}


class _Body(dict[str, Any]):
    """A request body that remembers whether its answer streams: some formats say so only in the URL."""

    def __init__(self, body: dict[str, Any], *, stream: bool) -> None:
        super().__init__(body)
        self.stream = stream


class _Answer:
    """An HTTP response as `Transport` reads it."""

    def __init__(self, response: Any) -> None:
        self.headers: Mapping[str, str] = response.headers
        self._response = response

    def iter_bytes(self) -> AsyncGenerator[bytes]:
        pieces: AsyncGenerator[bytes] = self._response.aiter_bytes()
        return pieces
