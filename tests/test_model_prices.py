"""What an answer costs: by the table, by a file of one's own, or unknown; never nothing."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from tests.test_model_transports import HELLO, REQUEST, serving
from toolcrib.codecs import codec_named
from toolcrib.messages import Message, Response, Usage
from toolcrib.models import Prices, cost_of, resolve_model
from toolcrib.models.prices import priced

NOON = datetime(2026, 11, 21, 12, tzinfo=UTC)
TABLE = {
    "known": "2026-11-01",
    "p": {
        "prices": [
            {"model": "m", "input": 1, "output": 2, "cache_read": 0.1, "cache_write": 1.5},
            {"model": "m-mini", "input": 0.5, "output": 1},
            {"model": "big", "input": 1, "output": 2, "above": {"tokens": 1000, "input": 10, "output": 20}},
            {"model": "night", "input": 1, "output": 1, "hours": [[0, 6], [22, 24]]},
            {"model": "night", "input": 2, "output": 2},
            {"model": "early", "input": 1, "output": 1, "until": "2026-11-20"},
            {"model": "free-*", "input": 0, "output": 0},
        ]
    },
}
PRICES = Prices(TABLE)
MILLION = 1_000_000


@pytest.fixture(autouse=True)
def _no_file(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TOOLCRIB_PRICES", raising=False)


@pytest.mark.parametrize(
    ("model", "usage", "cost"),
    [
        ("m", Usage(MILLION, MILLION), 3.0),
        ("m", Usage(MILLION, 0, MILLION), 0.1),
        ("m", Usage(MILLION, 0, 0, MILLION), 1.5),
        ("m", Usage(MILLION, 0, 500_000, 250_000), 0.25 + 0.05 + 0.375),
        ("m-mini", Usage(MILLION, 0, MILLION), 0.5),
        ("m-mini", Usage(MILLION, 0, 0, MILLION), 0.5),
        ("M-2026-01-31", Usage(MILLION), 1.0),
        ("m-20260131", Usage(MILLION), 1.0),
        ("m-latest", Usage(MILLION), 1.0),
        ("m-2603", Usage(MILLION), 1.0),
        ("m-max", Usage(MILLION), None),
        ("mm", Usage(MILLION), None),
        ("big", Usage(1000, 0), 0.001),
        ("big", Usage(1001, 1000), 0.01001 + 0.02),
        ("night", Usage(MILLION), 2.0),
        ("early", Usage(MILLION), None),
        ("free-m", Usage(MILLION), 0.0),
        ("m", Usage(), None),
    ],
)
def test_cost(model: str, usage: Usage, cost: float | None) -> None:
    found = cost_of(usage, "p", model, prices=PRICES, at=NOON)
    assert found == (None if cost is None else pytest.approx(cost))
    assert cost_of(usage, "another", model, prices=PRICES, at=NOON) is None


def test_prices_that_change_by_the_hour() -> None:
    at = {
        hour: cost_of(Usage(MILLION), "p", "night", prices=PRICES, at=NOON.replace(hour=hour))
        for hour in range(24)
    }
    assert [hour for hour, cost in at.items() if cost == 1.0] == [0, 1, 2, 3, 4, 5, 22, 23]


def test_the_table_that_comes_along() -> None:
    prices = Prices.load()
    assert datetime.fromisoformat(prices.known)
    for provider in ("openai", "anthropic", "gemini", "mistral", "deepseek", "xai"):
        assert provider in prices._rows
    for provider, rows in prices._rows.items():
        for row in rows:
            assert 0 < row.rates.input <= row.rates.output, (provider, row)
            assert (row.rates.cache_read or 0) <= row.rates.input, (provider, row)
            assert row.until is not None or cost_of(Usage(1), provider, row.model, prices=prices) is not None


def test_a_file_of_ones_own_precedes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "prices.toml"
    file.write_text(
        'known = "2026-12-24"\n[anthropic]\nprices = [{ model = "claude-opus-5", input = 7, output = 7 }]\n'
        '["localhost:8000"]\nprices = [{ model = "*", input = 1, output = 1 }]\n'
    )
    usual = cost_of(Usage(MILLION), "anthropic", "claude-opus-5")
    monkeypatch.setenv("TOOLCRIB_PRICES", str(file))
    assert usual != 7.0
    assert cost_of(Usage(MILLION), "anthropic", "claude-opus-5") == 7.0
    assert cost_of(Usage(MILLION), "localhost:8000", "org/anything") == 1.0
    assert cost_of(Usage(MILLION), "openai", "gpt-5") is not None
    price = Prices.load(file).of("anthropic", "claude-opus-5")
    assert price is not None and price.known == "2026-12-24"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("p = 1", "p: expected a table with prices, got 1"),
        ("[p]\nprices = 3", "p: prices must be a list of tables, got 3"),
        ("[p]\nprices = [1]", "p, row 1: expected a table with a model, got 1"),
        (
            '[p]\nprices = [{ model = "m", input = "1" }]',
            "p, row 1: input must be dollars per million tokens, got '1'",
        ),
        ('[p]\nprices = [{ model = "m", input = -1, output = 1 }]', "input must be dollars"),
        ('[p]\nprices = [{ model = "m", input = 1 }]', "output must be dollars per million tokens, got None"),
        ('[p]\nprices = [{ model = "m", in = 1 }]', "p, row 1: unknown in; a row has"),
        ('[p]\nprices = [{ model = "m", input = 1, output = 1, until = "soon" }]', "soon"),
        ('[p]\nprices = [{ model = "m", input = 1, output = 1, hours = 3 }]', "p, row 1"),
        (
            '[p]\nprices = [{ model = "m", input = 1, output = 1, above = { tokens = "x" } }]',
            "above must be a table",
        ),
        ("[p", "mine.toml"),
    ],
)
def test_a_file_that_is_wrong_is_named_with_its_row(
    text: str, words: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "mine.toml"
    file.write_text(text)
    with pytest.raises(ValueError, match=r"mine\.toml") as caught:
        Prices.load(file)
    assert words in str(caught.value)
    monkeypatch.setenv("TOOLCRIB_PRICES", str(file))
    answer = Response(Message("assistant"), usage=Usage(5, 5), model="gpt-5")
    with pytest.warns(RuntimeWarning, match="the cost is unknown"):
        assert priced(answer, "openai", "gpt-5").usage.cost is None


@pytest.mark.parametrize(
    ("usage", "answered", "cost"),
    [
        ({"prompt_tokens": MILLION, "completion_tokens": 0}, "m-20260131", 1.0),
        ({"prompt_tokens": MILLION, "completion_tokens": 0}, "nobody-knows", 1.0),
        ({"prompt_tokens": MILLION, "completion_tokens": 0, "cost": 0.25}, "m", 0.25),
        ({"prompt_tokens": MILLION, "completion_tokens": 0}, "m-mini", 0.5),
        (None, "m", None),
    ],
)
@pytest.mark.parametrize("streaming", [False, True])
async def test_an_answer_says_what_it_cost(
    usage: Any, answered: str, cost: float | None, streaming: bool
) -> None:
    async with serving(json.dumps({**HELLO, "usage": usage, "model": answered}).encode()) as peer:
        model = resolve_model("http://h/v1#m", base_url=f"{peer.address}/v1", provider="p", prices=PRICES)
        items = (
            [item async for item in model.stream(REQUEST)] if streaming else [await model.respond(REQUEST)]
        )
    assert isinstance(items[-1], Response)
    assert items[-1].usage.cost == cost


TEXT = {"content": [{"type": "text", "text": "Hi"}], "role": "assistant"}
CHAT = {"choices": [{"message": {"content": "Hi"}, "finish_reason": "stop"}]}
SAID = {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "Hi"}]}
# An answer with 1000 tokens of input, of which 600 were read from a cache and 300 written to it (where the provider
# says so), and 50 of output; as each provider says it.
CACHED: dict[str, tuple[str, dict[str, Any], int]] = {
    "OpenAI Chat": (
        "openai_chat",
        CHAT | {"usage": {"prompt_tokens": 1000, "completion_tokens": 50, "total_tokens": 1050,
                          "prompt_tokens_details": {"cached_tokens": 600}}}, 0,
    ),
    "OpenRouter": (
        "openai_chat",
        CHAT | {"usage": {"prompt_tokens": 1000, "completion_tokens": 50, "total_tokens": 1050,
                          "prompt_tokens_details": {"cached_tokens": 600, "cache_write_tokens": 300}}}, 300,
    ),
    "DeepSeek": (
        "openai_chat",
        CHAT | {"usage": {"prompt_tokens": 1000, "completion_tokens": 50, "total_tokens": 1050,
                          "prompt_cache_hit_tokens": 600, "prompt_cache_miss_tokens": 400,
                          "prompt_tokens_details": {"cached_tokens": 600}}}, 0,
    ),
    "Moonshot": (
        "openai_chat",
        CHAT | {"usage": {"prompt_tokens": 1000, "completion_tokens": 50, "total_tokens": 1050,
                          "cached_tokens": 600}}, 0,
    ),
    "Groq": (
        "openai_chat",
        CHAT | {"x_groq": {"usage": {"prompt_tokens": 1000, "completion_tokens": 50, "total_tokens": 1050,
                                     "prompt_tokens_details": {"cached_tokens": 600}}}}, 0,
    ),
    "Qwen at Alibaba": (
        "openai_chat",
        CHAT | {"usage": {"prompt_tokens": 1000, "completion_tokens": 50, "total_tokens": 1050,
                          "prompt_tokens_details": {"cached_tokens": 600, "cache_creation_input_tokens": 300}}}, 300,
    ),
    "OpenAI Responses": (
        "openai_responses",
        {"status": "completed", "output": [SAID],
         "usage": {"input_tokens": 1000, "output_tokens": 50, "total_tokens": 1050,
                   "input_tokens_details": {"cached_tokens": 600, "cache_write_tokens": 300}}}, 300,
    ),
    "Anthropic": (
        "anthropic_messages",
        TEXT | {"type": "message", "stop_reason": "end_turn",
                "usage": {"input_tokens": 100, "output_tokens": 50, "cache_read_input_tokens": 600,
                          "cache_creation_input_tokens": 300,
                          "cache_creation": {"ephemeral_5m_input_tokens": 300}}}, 300,
    ),
    "Bedrock": (
        "bedrock_converse",
        {"output": {"message": {"role": "assistant", "content": [{"text": "Hi"}]}}, "stopReason": "end_turn",
         "usage": {"inputTokens": 100, "outputTokens": 50, "totalTokens": 1050, "cacheReadInputTokens": 600,
                   "cacheWriteInputTokens": 300}}, 300,
    ),
    "Gemini": (
        "gemini",
        {"candidates": [{"content": {"parts": [{"text": "Hi"}]}, "finishReason": "STOP"}],
         "usageMetadata": {"promptTokenCount": 1000, "candidatesTokenCount": 20, "thoughtsTokenCount": 30,
                           "totalTokenCount": 1050, "cachedContentTokenCount": 600}}, 0,
    ),
    "Cohere": (
        "cohere",
        {"message": TEXT, "finish_reason": "COMPLETE",
         "usage": {"tokens": {"input_tokens": 1000.0, "output_tokens": 50.0}, "cached_tokens": 600}}, 0,
    ),
}  # fmt: skip


@pytest.mark.parametrize(("codec", "body", "written"), CACHED.values(), ids=CACHED)
def test_cached_tokens_are_counted_once_and_priced(codec: str, body: dict[str, Any], written: int) -> None:
    usage = codec_named(codec).response(body).usage
    assert (usage.input_tokens, usage.output_tokens, usage.total_tokens) == (1000, 50, 1050)
    assert (usage.cache_read_tokens, usage.cache_write_tokens) == (600, written)
    cost = (400 - written) * 1 + 600 * 0.1 + written * 1.5 + 50 * 2
    assert cost_of(usage, "p", "m", prices=PRICES) == pytest.approx(cost / MILLION)


def test_the_cost_that_a_server_of_responses_states() -> None:
    body = {
        "status": "completed",
        "output": [SAID],
        "usage": {"input_tokens": 5, "output_tokens": 3, "cost": 0.5},
    }
    assert codec_named("openai_responses").response(body).usage.cost == 0.5


def test_prices_of_ones_own_without_a_file() -> None:
    mine = {"openai": {"prices": [{"model": "gpt-5", "input": 7, "output": 7}]}}
    model: Any = resolve_model("openai:gpt-5", prices=mine)
    assert cost_of(Usage(MILLION), "openai", "gpt-5", prices=model.prices) == 7.0
    assert cost_of(Usage(MILLION), "openai", "gpt-5-mini", prices=model.prices) is not None
    with pytest.raises(ValueError, match="openai, row 1"):
        resolve_model("openai:gpt-5", prices={"openai": {"prices": [{"model": "gpt-5"}]}})
