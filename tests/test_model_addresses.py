"""Where the models over plain HTTP send what, by what the environment and the caller say."""

from __future__ import annotations

import json
import sys

import pytest

from tests.test_model_http import COHERE_WHOLE, KEY, OLLAMA_WHOLE, REQUEST, serving
from toolcrib.messages import Message, Request
from toolcrib.models import ModelError
from toolcrib.models.cohere import Cohere
from toolcrib.models.ollama import Ollama


async def test_keys_and_addresses_of_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("CO_API_KEY", "OLLAMA_API_KEY"):
        monkeypatch.setenv(name, KEY)
    for name in ("CO_API_URL", "OLLAMA_HOST"):
        monkeypatch.delenv(name, raising=False)
    async with serving(COHERE_WHOLE, OLLAMA_WHOLE, COHERE_WHOLE, OLLAMA_WHOLE) as peer:
        for model in (Cohere("m", base_url=peer.address), Ollama("m", base_url=peer.address)):
            await model.respond(REQUEST)
            assert peer.header("authorization") == ""  # a host that nobody named for this key
        monkeypatch.setenv("CO_API_URL", f"{peer.address}/v2")
        monkeypatch.setenv("OLLAMA_HOST", f"127.0.0.1:{peer.port}")
        for model in (Cohere("m"), Ollama("m")):
            await model.respond(REQUEST)
            assert peer.header("authorization") == f"Bearer {KEY}"


async def test_no_key_at_all_is_said_plainly(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("CO_API_KEY", "COHERE_API_KEY", "CO_API_URL"):
        monkeypatch.delenv(name, raising=False)
    with pytest.raises(ModelError, match="set CO_API_KEY"):
        await Cohere("m").respond(REQUEST)


async def test_a_missing_extra_is_said_plainly(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "httpx2", None)
    with pytest.raises(ModelError, match=r"pip install 'toolcrib\[http\]'"):
        await Ollama("m").respond(REQUEST)


HOSTS = {
    "": "http://localhost:11434",
    "box": "http://box:11434",
    "box:80": "http://box:80",
    ":8080": "http://localhost:8080",
    "0.0.0.0": "http://localhost:11434",
    "[::1]:9": "http://[::1]:9",
    "http://box:1/ollama/": "http://box:1/ollama",
    "https://ollama.com": "https://ollama.com",
}


@pytest.mark.parametrize("host", HOSTS)
def test_where_ollama_listens(host: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OLLAMA_HOST", host)
    assert Ollama("m").base_url == HOSTS[host]


def test_an_address_that_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OLLAMA_HOST", "box:eleven")
    with pytest.raises(ValueError, match="box:eleven"):
        Ollama("m")


async def test_options_of_the_model_join_those_of_the_request() -> None:
    async with serving(OLLAMA_WHOLE) as peer:
        body = {"options": {"num_ctx": 9, "temperature": 1}, "keep_alive": "10m"}
        model = Ollama("m", base_url=peer.address, body=body)
        await model.respond(Request([Message.user("Hi")], max_tokens=5, temperature=0))
    sent = json.loads(peer.bodies[0])
    assert sent["options"] == {"num_ctx": 9, "temperature": 0, "num_predict": 5}
    assert sent["keep_alive"] == "10m"
