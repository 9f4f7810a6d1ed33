"""The way to Bedrock: frames, signatures, keys and errors."""

from __future__ import annotations

import asyncio
import base64
import json
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.bedrock_wire import FRAMES, STREAM, answer, delta, frame, framed, read
from tests.cases import each
from tests.growth import growth
from tests.local_server import listening
from tests.properties import examples
from toolcrib.codecs.bedrock_converse import BedrockConverseCodec
from toolcrib.codecs.codec import ModelError
from toolcrib.messages import Message, Request, Response, TextChunk
from toolcrib.models.bedrock import BedrockConverse, BedrockMessages

CODEC = BedrockConverseCodec()


@examples(50)
@given(st.lists(st.integers(0, len(FRAMES)), max_size=20))
def test_frames_may_be_cut_anywhere(cuts: list[int]) -> None:
    assert read(FRAMES, cuts) == STREAM


@each("at", range(0, len(FRAMES), 7))
def test_no_damage_goes_unnoticed(at: int) -> None:
    damaged = FRAMES[:at] + bytes([FRAMES[at] ^ 0x41]) + FRAMES[at + 1 :]
    decoder = CODEC.decoder()
    with pytest.raises(ModelError):
        for event in read(damaged, []):
            decoder.feed(event)
        decoder.finish()


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (
            frame({"message": "Slow"}, message_type="exception", exception_type="throttlingException"),
            "throttlingException: Slow",
        ),
        (
            frame(b"", message_type="error", error_code="InternalFailure", error_message="oh"),
            "InternalFailure: oh",
        ),
        (
            frame(b"oh", message_type="exception", exception_type="internalServerException"),
            "internalServerException: oh",
        ),
    ],
)
def test_frames_that_say_an_error(data: bytes, words: str) -> None:
    decoder = CODEC.decoder()
    with pytest.raises(ModelError, match=words) as caught:
        for event in read(data, []):
            decoder.feed(event)
    assert caught.value.retryable


@pytest.mark.slow
def test_reading_frames_is_linear() -> None:
    def reading(size: int) -> Any:
        data = framed(delta(0, text="x" * size))
        return lambda: read(data, list(range(0, len(data), 64)))

    assert growth(reading, 50_000, 400_000, 40) < 40


class Peer:
    """A server that answers every request with the same bytes, and keeps what it was sent."""

    def __init__(self, data: bytes, kind: str, status: str, headers: str, hold: bool) -> None:
        self._head = f"HTTP/1.1 {status}\r\ncontent-type: {kind}\r\n{headers}"
        self._data, self._hold = data, hold
        self.address = ""
        self.heads: list[str] = []
        self.bodies: list[Any] = []
        self.closed = asyncio.Event()

    async def answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = (await reader.readuntil(b"\r\n\r\n")).decode()
        size = int(re.findall(r"(?i)content-length: (\d+)", head)[0])
        self.heads.append(head)
        self.bodies.append(json.loads(await reader.readexactly(size)))
        length = len(self._data) + (1000 if self._hold else 0)
        writer.write(f"{self._head}content-length: {length}\r\n\r\n".encode() + self._data)
        await writer.drain()
        if self._hold:
            await reader.read()
            self.closed.set()
        writer.close()


@asynccontextmanager
async def serving(
    data: bytes, kind: str = "application/vnd.amazon.eventstream", status: str = "200 OK", headers: str = "",
    hold: bool = False,
) -> AsyncIterator[Peer]:  # fmt: skip
    peer = Peer(data, kind, status, headers, hold)
    async with listening(peer.answer) as port:
        peer.address = f"http://127.0.0.1:{port}"
        yield peer


REQUEST = Request([Message.user("Hi")])
SECRET = "wJalrXUtnFEMI-not-a-real-secret"
AWS = ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "AWS_BEARER_TOKEN_BEDROCK", "AWS_PROFILE",
       "AWS_REGION", "AWS_DEFAULT_REGION", "AWS_WEB_IDENTITY_TOKEN_FILE", "AWS_CONTAINER_CREDENTIALS_FULL_URI",
       "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI", "AWS_ENDPOINT_URL", "AWS_ENDPOINT_URL_BEDROCK_RUNTIME")  # fmt: skip


@pytest.fixture(autouse=True)
def no_account(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in AWS:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    for name in ("AWS_CONFIG_FILE", "AWS_SHARED_CREDENTIALS_FILE"):
        monkeypatch.setenv(name, "/nonexistent")


@pytest.fixture
def account(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "AKIDEXAMPLE")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", SECRET)
    monkeypatch.setenv("AWS_SESSION_TOKEN", "session-token-of-nobody")
    monkeypatch.setenv("AWS_REGION", "eu-west-1")


@pytest.mark.usefixtures("account")
async def test_requests_are_signed() -> None:
    async with serving(FRAMES) as peer:
        model = BedrockConverse("arn:aws:bedrock:x/y", base_url=peer.address)
        items = [item async for item in model.stream(REQUEST)]
        await model.aclose()
    assert isinstance(items[-1], Response)
    assert items[-1].message.text == "Hey"
    head = peer.heads[0]
    assert head.startswith("POST /model/arn%3Aaws%3Abedrock%3Ax%2Fy/converse-stream HTTP/1.1")
    signed = re.findall(
        r"(?i)authorization: AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE/\d{8}/eu-west-1/bedrock/aws4_request, "
        r"SignedHeaders=(\S+), Signature=[0-9a-f]{64}\r",
        head,
    )
    assert {"host", "x-amz-date", "x-amz-security-token"} <= set(signed[0].split(";"))
    assert SECRET not in head
    assert peer.bodies == [{"messages": [{"role": "user", "content": [{"text": "Hi"}]}]}]


async def test_a_bearer_key_instead_of_a_signature() -> None:
    async with serving(json.dumps(answer({"text": "Hi"})).encode(), "application/json") as peer:
        model = BedrockConverse("m", base_url=peer.address, api_key="bedrock-key-of-nobody")
        response = await model.respond(REQUEST)
        await model.aclose()
    assert response.message.text == "Hi"
    assert "authorization: Bearer bedrock-key-of-nobody" in peer.heads[0].replace(
        "Authorization", "authorization"
    )


async def test_the_key_of_the_environment_stays_with_bedrock(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_BEARER_TOKEN_BEDROCK", "bedrock-key-of-nobody")
    async with serving(b"{}", "application/json") as peer:
        model = BedrockConverse("m", base_url=peer.address, region="eu-west-1")
        with pytest.raises(ModelError, match="no credentials"):
            await model.respond(REQUEST)
        assert peer.heads == []


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({}, "set AWS_REGION, or pass region="),
        ({"region": "eu-west-1"}, "set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY"),
        ({"region": "eu-west-1", "profile": "nobody"}, "nobody"),
    ],
)
async def test_what_is_missing_is_named(options: dict[str, Any], words: str) -> None:
    with pytest.raises(ModelError, match=words) as caught:
        await BedrockConverse("m", **options).respond(REQUEST)
    assert not caught.value.retryable


@pytest.mark.usefixtures("account")
async def test_errors_say_their_kind_and_no_secret() -> None:
    said = {"message": f"do not echo {SECRET} or session-token-of-nobody"}
    kind = "x-amzn-errortype: AccessDeniedException:http://internal.amazon.com/\r\n"
    async with serving(json.dumps(said).encode(), "application/json", "403 Forbidden", kind) as peer:
        model = BedrockConverse("m", base_url=peer.address, max_retries=0)
        with pytest.raises(ModelError, match="403: AccessDeniedException: do not echo") as caught:
            await model.respond(REQUEST)
        await model.aclose()
    assert not caught.value.retryable
    assert SECRET not in str(caught.value)
    assert "session-token-of-nobody" not in str(caught.value)


@pytest.mark.usefixtures("account")
async def test_closing_the_iterator_closes_the_connection() -> None:
    async with serving(framed(delta(0, text="Hey")), hold=True) as peer:
        model = BedrockConverse("m", base_url=peer.address)
        stream = model.stream(REQUEST)
        assert await anext(stream) == TextChunk("Hey")
        await stream.aclose()
        await asyncio.wait_for(peer.closed.wait(), 10)
        await model.aclose()


@pytest.mark.usefixtures("account")
async def test_anthropics_own_format_over_invoke() -> None:
    inner = [
        {"type": "message_start", "message": {"id": "m", "content": []}},
        {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "Hey"}},
        {"type": "message_delta", "delta": {"stop_reason": "end_turn"}},
        {"type": "message_stop"},
    ]
    data = b"".join(
        framed({"chunk": {"bytes": base64.b64encode(json.dumps(event).encode()).decode()}}) for event in inner
    )
    async with serving(data) as peer:
        model = BedrockMessages("us.anthropic.claude-x", base_url=peer.address)
        items = [item async for item in model.stream(REQUEST)]
        await model.aclose()
    assert items[0] == TextChunk("Hey")
    assert peer.heads[0].startswith("POST /model/us.anthropic.claude-x/invoke-with-response-stream ")
    assert peer.bodies[0]["anthropic_version"] == "bedrock-2023-05-31"
    assert not {"model", "stream"} & peer.bodies[0].keys()


@pytest.mark.usefixtures("account")
async def test_an_exception_among_invoked_frames_is_told_as_one() -> None:
    data = frame({"message": "Slow"}, message_type="exception", exception_type="throttlingException")
    async with serving(data) as peer:
        model = BedrockMessages("m", base_url=peer.address, max_retries=0)
        with pytest.raises(ModelError, match="throttlingException: Slow") as caught:
            _ = [item async for item in model.stream(REQUEST)]
        await model.aclose()
    assert caught.value.retryable
