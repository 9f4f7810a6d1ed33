"""`toolcrib models` as a person runs it: what is configured, what a name means, and never a key."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.command_line import toolcrib
from toolcrib.models.providers import PROVIDERS

SECRET = "sk-very-secret"
VARIABLES = {name for row in PROVIDERS.values() for name in (*row.keys, row.address) if name}


def models(*arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
    kept = {name: value for name, value in os.environ.items() if name not in {*VARIABLES, "TOOLCRIB_PRICES"}}
    return toolcrib(".", "models", *arguments, env=kept | variables)


def facts(name: str, **variables: str) -> tuple[int, list[dict[str, Any]]]:
    done = models(name, "--json", **variables)
    return done.returncode, json.loads(done.stdout)


def test_the_list_says_who_is_configured() -> None:
    done = models(GROQ_API_KEY=SECRET, MOONSHOT_BASE_URL=f"https://u:{SECRET}@api.moonshot.cn/v1?k={SECRET}")
    assert done.returncode == 0
    head, _, rest = done.stdout.partition("\n\n")
    assert head.startswith("Configured\n  groq:NAME") and "GROQ_API_KEY is set" in head
    assert "anthropic:NAME" in rest and "set ANTHROPIC_API_KEY" in rest
    assert "text/FORMAT:MODEL" in rest and "Prices are as of 20" in rest
    assert "at https://api.moonshot.cn/v1" in rest
    assert SECRET not in done.stdout + done.stderr


def test_every_provider_is_in_the_list_for_programs() -> None:
    data = json.loads(models("--json", AZURE_OPENAI_API_KEY=SECRET, LITELLM_API_KEY=SECRET).stdout)
    states = {row["provider"]: row["state"] for row in data["providers"]}
    assert states.keys() == PROVIDERS.keys()
    wanted = {"azure": "no key", "openai": "no key", "ollama": "local", "vertex": "asks", "litellm": "ready"}
    assert {name: states[name] for name in wanted} == wanted
    assert data["prices"]["known"].startswith("20")
    assert SECRET not in json.dumps(data)


@pytest.mark.parametrize(
    ("name", "wire", "text", "dialect", "priced"),
    [
        ("openai:gpt-5", "openai_responses", None, "openai", True),
        ("openai-chat:gpt-5-2025-08-07", "openai_chat", None, "openai", True),
        ("anthropic:claude-opus-5", "anthropic_messages", None, "anthropic", True),
        ("mistral:nobody-knows", "openai_chat", None, "conservative", False),
        ("text/hermes:http://localhost:8000/v1#m", "openai_chat", "hermes", "conservative", False),
    ],
)
def test_what_a_name_means(name: str, wire: str, text: str | None, dialect: str, priced: bool) -> None:
    keys = dict.fromkeys(("OPENAI_API_KEY", "ANTHROPIC_API_KEY", "MISTRAL_API_KEY"), SECRET)
    code, (found,) = facts(name, **keys)
    assert (code, found["missing"]) == (0, [])
    assert (found["wire_format"], found["text_format"], found["dialect"]) == (wire, text, dialect)
    assert (found["price"] is not None) is priced
    assert found["features"]["tool_choice"]
    assert SECRET not in json.dumps(found)


def test_what_is_missing_is_said() -> None:
    done = models("groq:llama-3.3-70b-versatile")
    assert done.returncode == 1
    assert "GROQ_API_KEY: not set" in done.stdout
    assert "missing      a key: set GROQ_API_KEY" in done.stdout
    assert "$0.59 input, $0.79 output per million tokens (known on 20" in done.stdout
    assert "price        unknown" in models("vllm:m").stdout


def test_a_list_is_shown_one_by_one() -> None:
    done = models("vllm:m,openai-chat:gpt-5")
    assert done.returncode == 1
    assert done.stdout.startswith("vllm:m\n")
    assert "if the model above does not answer:\nopenai:gpt-5\n" in done.stdout


def test_a_script_has_no_wire_format(tmp_path: Path) -> None:
    script = tmp_path / "a.yaml"
    script.write_text("- Hello.\n")
    code, (found,) = facts(f"scripted:{script}")
    assert (code, found["class"], found["missing"]) == (0, "Scripted", [])


@pytest.mark.parametrize("name", ["nobody:x", "gpt-5", "scripted:/nowhere.yaml", "text/nothing:vllm:m"])
def test_a_name_that_means_nothing_is_wrong_usage(name: str) -> None:
    done = models(name)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("toolcrib: model") and "Errno" not in done.stderr


def test_prices_that_cannot_be_read_are_told(tmp_path: Path) -> None:
    file = tmp_path / "mine.toml"
    file.write_text("[p]\nprices = [1]\n")
    done = models(TOOLCRIB_PRICES=str(file))
    assert done.returncode == 0
    assert f"! TOOLCRIB_PRICES: prices in {file}: p, row 1" in done.stdout
    assert models("openai-chat:gpt-5", TOOLCRIB_PRICES=str(file), OPENAI_API_KEY=SECRET).returncode == 0
