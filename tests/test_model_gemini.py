"""Gemini's transport against a small server of our own: addresses, keys, credentials, framings."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from tests.test_model_transports import serving
from toolcrib.messages import Message, Request, Response, TextChunk
from toolcrib.models import ModelError
from toolcrib.models.gemini import Gemini, GeminiInteractions, vertex_address

REQUEST = Request([Message.user("Hi")])
HELLO = {
    "candidates": [{"content": {"role": "model", "parts": [{"text": "Hello."}]}, "finishReason": "STOP"}],
    "modelVersion": "gemini-3-pro",
}
FIRST = {"candidates": [{"content": {"parts": [{"text": "Hel"}]}}]}
KEY = "AIza-never-to-be-shown"


def sse(*events: dict[str, Any]) -> bytes:
    return "".join(f"data: {json.dumps(event)}\r\n\r\n" for event in events).encode()


@pytest.fixture(autouse=True)
def _no_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("GEMINI_API_KEY", "GOOGLE_API_KEY", "GOOGLE_GEMINI_BASE_URL", "GOOGLE_CLOUD_PROJECT",
                 "GOOGLE_CLOUD_LOCATION"):  # fmt: skip
        monkeypatch.delenv(name, raising=False)


async def test_the_address_says_model_and_streaming() -> None:
    async with serving(json.dumps(HELLO).encode()) as peer:
        model = Gemini("gemini-3-pro", base_url=peer.address, api_key=KEY)
        response = await model.respond(REQUEST)
        await model.aclose()
    assert response.message.text == "Hello."
    assert peer.heads[0].startswith("POST /v1beta/models/gemini-3-pro:generateContent HTTP/1.1")
    assert f"x-goog-api-key: {KEY}" in peer.heads[0]
    assert peer.bodies == [{"contents": [{"role": "user", "parts": [{"text": "Hi"}]}]}]
    async with serving(sse(FIRST, HELLO), kind="text/event-stream") as peer:
        model = Gemini("tunedModels/mine", base_url=f"{peer.address}/v1")
        items = [item async for item in model.stream(REQUEST)]
        await model.aclose()
    assert items[:2] == [TextChunk("Hel"), TextChunk("Hello.")]
    assert isinstance(items[2], Response)
    assert peer.heads[0].startswith("POST /v1/tunedModels/mine:streamGenerateContent?alt=sse HTTP/1.1")
    assert "x-goog-api-key" not in peer.heads[0]


async def test_a_body_is_merged_into_every_request() -> None:
    more = {"generationConfig": {"thinkingConfig": {"thinkingLevel": "low"}}, "safetySettings": []}
    async with serving(json.dumps(HELLO).encode()) as peer:
        model = Gemini("m", base_url=peer.address, body=more)
        await model.respond(Request([Message.user("Hi")], max_tokens=5))
        await model.aclose()
    assert peer.bodies[0]["generationConfig"] == {
        "maxOutputTokens": 5,
        "thinkingConfig": {"thinkingLevel": "low"},
    }
    assert peer.bodies[0]["safetySettings"] == []


async def test_a_server_without_events_streams_an_array() -> None:
    async with serving(json.dumps([FIRST, HELLO]).encode()) as peer:
        model = Gemini("m", base_url=peer.address)
        items = [item async for item in model.stream(REQUEST)]
        await model.aclose()
    assert [item.text for item in items if isinstance(item, TextChunk)] == ["HelHello."]
    assert isinstance(items[-1], Response)


@pytest.mark.parametrize("wrapped", [False, True])
async def test_errors_say_what_the_server_said_but_no_key(wrapped: bool) -> None:
    error = {"error": {"code": 400, "message": f"Key {KEY} is not valid", "status": "INVALID_ARGUMENT"}}
    data = json.dumps([error] if wrapped else error).encode()
    async with serving(data, status="400 Bad Request") as peer:
        model = Gemini("m", base_url=peer.address, api_key=KEY)
        with pytest.raises(ModelError) as caught:
            await model.respond(REQUEST)
        await model.aclose()
    assert "is not valid" in caught.value.message
    assert KEY not in repr(caught.value) + str(caught.value.__cause__)
    assert (caught.value.status, caught.value.retryable) == (400, False)


async def test_closing_the_iterator_closes_the_connection() -> None:
    async with serving(sse(FIRST), kind="text/event-stream", hold=True) as peer:
        model = Gemini("m", base_url=peer.address)
        stream = model.stream(REQUEST)
        assert await anext(stream) == TextChunk("Hel")
        await stream.aclose()
        await asyncio.wait_for(peer.closed.wait(), 10)
        await model.aclose()


async def test_keys_of_the_environment_stay_with_google(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GOOGLE_API_KEY", KEY)
    async with serving(json.dumps(HELLO).encode()) as peer:
        for named in (False, True):
            if named:
                monkeypatch.setenv("GOOGLE_GEMINI_BASE_URL", peer.address)
            model = Gemini("m", base_url=peer.address)
            await model.respond(REQUEST)
            await model.aclose()
    assert [KEY in head for head in peer.heads] == [False, True]


async def test_without_a_key_or_a_project_nothing_is_sent(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ModelError, match="GEMINI_API_KEY"):
        await Gemini("gemini-3-pro").respond(REQUEST)
    with pytest.raises(ModelError, match="GOOGLE_CLOUD_PROJECT"):
        await Gemini("gemini-3-pro", location="eu").respond(REQUEST)


class Credentials:
    """What google-auth's credentials are to us."""

    token = ""

    def before_request(self, request: Any, method: str, url: str, headers: dict[str, str]) -> None:
        self.token = "ya29.token-of-now"
        headers["authorization"] = f"Bearer {self.token}"


async def test_vertex_is_asked_with_the_project_and_a_token() -> None:
    pytest.importorskip("google.auth")
    async with serving(json.dumps(HELLO).encode()) as peer:
        for name in ("gemini-3-pro", "publishers/other/models/m", "projects/p/locations/l/endpoints/1"):
            model = Gemini(
                name,
                base_url=peer.address,
                project="mine",
                location="europe-west1",
                credentials=Credentials(),
            )
            assert model.name == f"vertex:{name}"
            await model.respond(REQUEST)
            await model.aclose()
    assert [head.split()[1] for head in peer.heads] == [
        "/v1beta1/projects/mine/locations/europe-west1/publishers/google/models/gemini-3-pro:generateContent",
        "/v1beta1/projects/mine/locations/europe-west1/publishers/other/models/m:generateContent",
        "/v1beta1/projects/p/locations/l/endpoints/1:generateContent",
    ]
    assert all("Bearer ya29.token-of-now" in head for head in peer.heads)


async def test_tokens_are_shown_as_little_as_keys() -> None:
    pytest.importorskip("google.auth")
    said = json.dumps({"error": {"code": 401, "message": "bad token ya29.token-of-now"}}).encode()
    async with serving(said, status="401 Unauthorized") as peer:
        model = Gemini("m", base_url=peer.address, project="mine", credentials=Credentials())
        with pytest.raises(ModelError) as caught:
            await model.respond(REQUEST)
        await model.aclose()
    assert "token-of-now" not in repr(caught.value)


async def test_a_project_without_credentials_is_told(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    pytest.importorskip("google.auth")
    monkeypatch.setenv("GOOGLE_APPLICATION_CREDENTIALS", str(tmp_path / "missing.json"))
    async with serving(json.dumps(HELLO).encode()) as peer:
        model = Gemini("m", base_url=peer.address, project="mine")
        with pytest.raises(ModelError, match="no credentials for vertex:m"):
            await model.respond(REQUEST)
        await model.aclose()
    assert peer.heads == []


@pytest.mark.parametrize(
    ("location", "address"),
    [
        ("global", "https://aiplatform.googleapis.com"),
        ("eu", "https://aiplatform.eu.rep.googleapis.com"),
        ("us-central1", "https://us-central1-aiplatform.googleapis.com"),
    ],
)
def test_where_vertex_is(location: str, address: str) -> None:
    assert vertex_address(location) == address
    assert Gemini("m", project="p", location=location).base_url == address


async def test_interactions_have_one_address_and_the_price_of_gemini() -> None:
    answer = {
        "status": "completed",
        "steps": [{"type": "model_output", "content": [{"type": "text", "text": "Hello."}]}],
        "usage": {"total_input_tokens": 1_000_000, "total_output_tokens": 0, "total_tokens": 1_000_000},
    }
    async with serving(json.dumps(answer).encode()) as peer:
        model = GeminiInteractions(
            "gemini-2.5-flash", base_url=peer.address, api_key=KEY, provider="gemini_interactions"
        )
        response = await model.respond(REQUEST)
        await model.aclose()
    assert response.message.text == "Hello."
    assert response.usage.cost == pytest.approx(0.3)
    assert peer.heads[0].startswith("POST /v1beta/interactions HTTP/1.1")
    assert peer.bodies[0]["store"] is False


async def test_interactions_are_not_sent_to_a_google_cloud_project() -> None:
    with pytest.raises(ModelError, match="vertex:NAME"):
        await GeminiInteractions("gemini-3-pro", project="mine").respond(REQUEST)
