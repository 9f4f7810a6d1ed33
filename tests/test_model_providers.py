"""What a model's name means, and which key goes where."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from tests.cases import each
from tests.test_model_transports import HELLO, MESSAGE, REQUEST, serving
from toolcrib.codecs.openai_chat_servers import SERVERS
from toolcrib.messages import Message, Request
from toolcrib.models import AnthropicMessages, Fallback, Gemini, ModelError, OpenAIChat, resolve_model
from toolcrib.models.prices import Prices
from toolcrib.models.providers import ALIASES, CLASSES, PROVIDERS, host_of, key_for, provider_at

VARIABLES = {name for row in PROVIDERS.values() for name in (*row.keys, row.address) if name}
SECRET = "sk-do-not-tell"


@pytest.fixture(autouse=True)
def _nothing_set(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in (*VARIABLES, "GOOGLE_CLOUD_LOCATION", "TOOLCRIB_PRICES"):
        monkeypatch.delenv(name, raising=False)


@pytest.mark.parametrize(
    ("name", "cls", "shown", "address"),
    [
        ("openai:gpt-5", "OpenAIResponses", "openai:gpt-5", "https://api.openai.com/v1"),
        ("openai-chat:gpt-5", "OpenAIChat", "openai:gpt-5", "https://api.openai.com/v1"),
        ("openai-responses:gpt-5", "OpenAIResponses", "openai:gpt-5", "https://api.openai.com/v1"),
        ("anthropic:claude-x", "AnthropicMessages", "anthropic:claude-x", "https://api.anthropic.com"),
        ("claude:claude-x", "AnthropicMessages", "anthropic:claude-x", "https://api.anthropic.com"),
        ("gemini:g", "Gemini", "gemini:g", "https://generativelanguage.googleapis.com"),
        (
            "gemini-interactions:g",
            "GeminiInteractions",
            "gemini_interactions:g",
            "https://generativelanguage.googleapis.com",
        ),
        ("vertex:g", "Gemini", "vertex:g", None),
        ("bedrock:b", "BedrockConverse", "bedrock:b", None),
        ("bedrock-messages:b", "BedrockMessages", "bedrock:b", None),
        ("cohere:c", "Cohere", "cohere:c", "https://api.cohere.com"),
        ("ollama:qwen3:8b", "Ollama", "ollama:qwen3:8b", "http://localhost:11434"),
        ("mistral:large", "OpenAIChat", "mistral:large", "https://api.mistral.ai/v1"),
        ("grok:grok-4", "OpenAIChat", "xai:grok-4", "https://api.x.ai/v1"),
        ("openrouter:a/b:free", "OpenAIChat", "openrouter:a/b:free", "https://openrouter.ai/api/v1"),
        ("vllm:org/m", "OpenAIChat", "vllm:org/m", "http://localhost:8000/v1"),
        ("http://h:1/v1#m", "OpenAIChat", "h:1:m", "http://h:1/v1"),
        ("https://api.deepseek.com#m", "OpenAIChat", "deepseek:m", "https://api.deepseek.com"),
    ],
)
def test_names(name: str, cls: str, shown: str, address: str | None) -> None:
    model: Any = resolve_model(name)
    assert (type(model).__name__, model.name) == (cls, shown)
    assert address is None or model.base_url == address


@each("name", PROVIDERS)
def test_every_provider_makes_a_model(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AZURE_OPENAI_ENDPOINT", "https://mine.openai.azure.com")
    model: Any = resolve_model(f"{name}:some-model")
    assert type(model).__name__ == PROVIDERS[name].cls
    assert PROVIDERS[name].cls in CLASSES
    assert model.model == "some-model"


def test_where_openai_is_another_server_it_speaks_chat_completions(monkeypatch: pytest.MonkeyPatch) -> None:
    assert isinstance(resolve_model("openai:m", base_url="http://localhost:1234/v1"), OpenAIChat)
    monkeypatch.setenv("OPENAI_BASE_URL", "https://proxy.example.org/v1")
    model: Any = resolve_model("openai:m")
    assert (type(model), model.base_url) == (OpenAIChat, "https://proxy.example.org/v1")
    assert type(resolve_model("openai-responses:m")).__name__ == "OpenAIResponses"


@pytest.mark.parametrize(
    ("endpoint", "url"),
    [
        ("https://mine.openai.azure.com", "https://mine.openai.azure.com/openai/v1/"),
        ("https://mine.openai.azure.com/", "https://mine.openai.azure.com/openai/v1/"),
        ("https://mine.openai.azure.com/openai/v1", "https://mine.openai.azure.com/openai/v1"),
    ],
)
def test_azure_is_asked_at_the_resource(endpoint: str, url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ValueError, match="set AZURE_OPENAI_ENDPOINT"):
        resolve_model("azure:deployment")
    monkeypatch.setenv("AZURE_OPENAI_ENDPOINT", endpoint)
    monkeypatch.setenv("AZURE_OPENAI_API_KEY", SECRET)
    model: Any = resolve_model("azure:deployment")
    assert (model.base_url, model.name, key_for(model.base_url)) == (url, "openai:deployment", SECRET)


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("gpt-5", "Did you mean openai:gpt-5"),
        ("grok-4", "Did you mean xai:grok-4"),
        ("opnai:gpt-5", "Did you mean openai:gpt-5?"),
        ("deepseek:", "unknown model 'deepseek:'"),
        ("http://h/v1", "http://h/v1#NAME"),
        ("openai:a,,openai:b", "a name is missing between the commas"),
        ("", "unknown model '': use PROVIDER:NAME"),
        ("openai:a,b", "unknown model 'b'"),
        ("text:", "unknown model 'text:'"),
        ("text/nothing:vllm:m", "nothing"),
    ],
)
def test_names_that_mean_nothing_say_what_would(name: str, words: str) -> None:
    with pytest.raises(ValueError, match=re.escape(words)):
        resolve_model(name)


def test_a_list_asks_the_next(tmp_path: Path) -> None:
    script = tmp_path / "one,two.yaml"
    script.write_text("- Hello.\n")
    model = resolve_model(f"scripted:{script}, openai-chat:gpt-5,http://h/v1#m")
    assert isinstance(model, Fallback)
    assert [one.name for one in model.models] == ["scripted:one,two.yaml", "openai:gpt-5", "h:m"]
    with pytest.raises(ValueError, match="api_key cannot be given for a list"):
        resolve_model("openai:a,anthropic:b", api_key=SECRET)


def test_a_model_that_writes_its_calls_as_text(tmp_path: Path) -> None:
    chosen: Any = resolve_model("text:vllm:Qwen/Qwen2.5-72B-Instruct")
    named: Any = resolve_model("text/hermes:http://h/v1#m")
    assert [model.codec.format.name for model in (chosen, named)] == ["hermes", "hermes"]
    assert (chosen.name, named.name) == ("vllm:Qwen/Qwen2.5-72B-Instruct", "h:m")
    script = tmp_path / "a.yaml"
    script.write_text("- Hello.\n")
    with pytest.raises(ValueError, match="is no model that can be made to write its calls as text"):
        resolve_model(f"text:scripted:{script}")


def test_prices_of_your_own_precede(tmp_path: Path) -> None:
    file = tmp_path / "mine.toml"
    file.write_text('[vllm]\nprices = [{ model = "m", input = 1, output = 2 }]\n')
    model: Any = resolve_model("vllm:m,openai-chat:gpt-5", prices=file)
    assert [type(one.prices) for one in model.models] == [Prices, Prices]
    assert model.models[0].prices.of("vllm", "m").rates.output == 2


def test_a_key_has_one_host() -> None:
    homes: dict[str, set[str]] = {}
    for row in PROVIDERS.values():
        for name in row.keys:
            homes.setdefault(name, set()).add(host_of(row.base_url))
    assert {name: hosts for name, hosts in homes.items() if len(hosts) != 1} == {}
    assert len(ALIASES.keys() & PROVIDERS.keys()) == 0
    assert SERVERS.keys() - PROVIDERS.keys() == set()


@pytest.mark.parametrize(
    ("url", "found"),
    [
        ("https://api.groq.com/openai/v1", True),
        ("https://user:word@api.groq.com/v1", True),
        ("https://API.GROQ.COM/v1", True),
        ("http://api.groq.com/openai/v1", False),
        ("https://api.groq.com.example.org/v1", False),
        ("https://api.groq.com@example.org/v1", False),
        ("https://api.groq.com:8443/v1", False),
        ("https://api.openai.com/v1", False),
        ("http://localhost:8000/v1", False),
    ],
)
def test_a_key_goes_to_its_own_host_alone(url: str, found: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GROQ_API_KEY", SECRET)
    assert (key_for(url) == SECRET) is found


def test_an_address_that_a_variable_names_gets_that_rows_key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MOONSHOT_API_KEY", SECRET)
    monkeypatch.setenv("OPENAI_API_KEY", "sk-of-another")
    assert key_for("https://api.moonshot.cn/v1") is None
    monkeypatch.setenv("MOONSHOT_BASE_URL", "https://api.moonshot.cn/v1")
    assert key_for("https://api.moonshot.cn/v1") == SECRET
    model: Any = resolve_model("kimi:k3")
    assert (model.base_url, model.name) == ("https://api.moonshot.cn/v1", "moonshot:k3")


async def test_keys_on_the_wire(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in VARIABLES:
        if "KEY" in name or "TOKEN" in name:
            monkeypatch.setenv(name, SECRET)
    async with serving(b"{}") as peer:
        for kind in ("http", "groq", "openai", "anthropic", "deepseek", "vllm"):
            url = f"{peer.address}/v1"
            model = (
                resolve_model(f"{url}#m", max_retries=0)
                if kind == "http"
                else resolve_model(f"{kind}:m", base_url=url, max_retries=0)
            )
            with pytest.raises(ModelError):
                await model.respond(REQUEST)
    assert len(peer.heads) == 6
    assert [head for head in peer.heads if SECRET in head] == []


@pytest.mark.parametrize(
    ("name", "variable"),
    [("groq:m", "GROQ_API_KEY"), ("https://api.mistral.ai/v1#m", "MISTRAL_API_KEY"), ("hf:a/b", "HF_TOKEN")],
)
async def test_a_missing_key_is_named(name: str, variable: str) -> None:
    with pytest.raises(ModelError, match=f"set {variable}"):
        await resolve_model(name).respond(REQUEST)


async def test_headers_that_a_request_asks_for() -> None:
    extras = {"betas": ["a-1", "b-2"], "extra_headers": {"X-Title": "toolcrib", "anthropic-beta": "c-3"}}
    request = Request(
        [Message.user("Hi")], extras={"anthropic": extras, "vllm": {"extra_headers": {"X-Title": "t"}}}
    )
    async with serving(json.dumps(MESSAGE).encode()) as peer:
        await resolve_model("anthropic:m", base_url=peer.address, provider="anthropic").respond(request)
    assert "anthropic-beta: c-3,a-1,b-2" in peer.heads[0]
    assert "X-Title: toolcrib" in peer.heads[0]
    assert peer.bodies[0].keys().isdisjoint({"betas", "extra_headers"})
    async with serving(json.dumps(HELLO).encode()) as peer:
        await resolve_model("vllm:m", base_url=peer.address).respond(request)
    assert "x-title: t" in peer.heads[0].lower()
    assert "extra_headers" not in peer.bodies[0]


@pytest.mark.parametrize(
    ("url", "name"),
    [
        ("https://api.x.ai/v1", "xai"),
        ("http://localhost:11434/v1", "ollama"),
        ("http://localhost:8000/v1", "localhost:8000"),
        ("https://mine.openai.azure.com/openai/v1/", "openai"),
        ("https://x.example.org/v1", "x.example.org"),
    ],
)
def test_who_answers_at_an_address(url: str, name: str) -> None:
    assert provider_at(url) == name


FORMATS = {
    "a foreign Messages server": (
        lambda: AnthropicMessages("m", base_url="http://localhost:9/"),
        "anthropic@localhost:9",
    ),
    "a foreign Chat server": (lambda: OpenAIChat("m", base_url="http://localhost:9/v1"), "localhost:9"),
    "a foreign Gemini server": (
        lambda: Gemini("m", base_url="http://localhost:9", api_key="k"),
        "gemini@localhost:9",
    ),
    "Chat at Gemini": (
        lambda: OpenAIChat("m", base_url="https://generativelanguage.googleapis.com/v1beta/openai"),
        "gemini-chat",
    ),
    "Gemini": (lambda: Gemini("m", api_key="k"), "gemini"),
    "Messages": (lambda: AnthropicMessages("m", api_key="k"), "anthropic"),
}


@pytest.mark.parametrize(("make", "provider"), FORMATS.values(), ids=FORMATS)
def test_two_formats_at_one_host_do_not_share_their_extras(make: Any, provider: str) -> None:
    assert make().codec.provider == provider


def test_a_proxy_that_the_environment_names_is_the_provider(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ANTHROPIC_BASE_URL", "http://localhost:9")
    assert AnthropicMessages("m", api_key="k").codec.provider == "anthropic"
