"""Recorded cases about references, masking and key formats. What we do otherwise stands in a table with its reason."""

from __future__ import annotations

import json
import random
import string
from typing import Any

import pytest

from tests.cases import each
from tests.conformance.conftest import load_cases
from toolcrib.secrets import Environment, Redactor, as_variables, check_references, reveal
from toolcrib.secrets.redact import why_unusable

REFERENCES = load_cases("cases/loopal/secret_ref.json")
SCRUBBED = load_cases("cases/zeroclaw/redaction_scrub.json")
LEAKS = load_cases("cases/zeroclaw/redaction_leak_detector.json")
COMMANDS = load_cases("cases/deepagents/secret_in_command.json")
PERSONAL = load_cases("cases/entelix/pii_redaction.json")
VARIABLES = load_cases("cases/gemini-cli/env_sanitization.json")

DIFFERENT_REFERENCES = {
    "malformed_placeholder": "refused with the known names: run as text, a shell would read files of these names",
}
# Entropy alone is no sign of a key: page tokens, hashes and encoded data have it too, and masking them breaks work.
ENTROPY = "a value of high entropy is masked where a name beside it says that it is one; there is no switch"
DIFFERENT_LEAKS = {"entropy_off": ENTROPY}


def by_name(cases: list[Any]) -> Any:
    return each("case", [pytest.param(case, id=case["name"]) for case in cases])


@by_name(REFERENCES)
def test_references(case: dict[str, Any]) -> None:
    asked, expected = case["input"], case["expected"]
    arguments, before = asked["arguments"], json.dumps(asked["arguments"])
    store = Environment(asked["secrets"], environ=asked["secrets"])
    problem = check_references(arguments, asked["eligible"], store.names())
    if (
        expected.get("ok") is False
        or case["name"] in DIFFERENT_REFERENCES
        or "secret_reaches_tool" in expected
    ):
        assert problem is not None
        assert expected.get("error_mentions", "") in problem
        return
    assert problem is None
    revealed = reveal(arguments, asked["eligible"], store)
    assert json.dumps(arguments) == before == json.dumps(expected.get("transcript_arguments", arguments))
    if "executed_with" in expected:
        assert revealed.arguments == expected["executed_with"]
    if "approval_prompt_not_contains" in expected:
        assert expected["approval_prompt_not_contains"] not in f"{arguments} {revealed}"
    if "must" in expected:  # a value is no part of a command's text
        made = as_variables(arguments["command"])
        assert not isinstance(made, str)
        assert all(value not in made[0] for value in asked["secrets"].values())
    if "tool_output" in asked:
        done = Redactor(asked["secrets"]).redact_text(asked["tool_output"])
        assert done.found == tuple(asked["secrets"])


@by_name(LEAKS)
def test_leaks(case: dict[str, Any]) -> None:
    text = "".join(case["input"]["text_parts"])
    done = Redactor({}).redact_text(text)
    clean = case["expected"]["clean"]
    if case["name"] in DIFFERENT_LEAKS:
        clean = not clean
    assert (done.value == text) == clean, done
    if "not_contains" in case["expected"]:
        assert case["expected"]["not_contains"] not in done.value


@by_name(SCRUBBED)
def test_scrubbed(case: dict[str, Any]) -> None:
    """Upstream leaves the first four characters standing; we leave none."""
    text = "".join(case["input"]["text_parts"])
    done = Redactor({}).redact_text(text)
    assert (done.value == text) == (case["expected"].get("equals", "") == text)


TOKENS = (
    "ghp_{36}",
    "sk-proj-{48}",
    "sk-ant-api03-{95}",
    "glpat-{20}",
    "xoxb-{24}",
    "npm_{36}",
    "hf_{34}",
    "AIza{35}",
)


@by_name(COMMANDS)
@pytest.mark.parametrize("shape", TOKENS)
def test_a_key_in_a_command_shows(case: dict[str, Any], shape: str) -> None:
    """Whether a command is refused for it is the policy's to say; that there is one, is told here."""
    prefix, size = shape.removesuffix("}").split("{")
    chance = random.Random(5)
    letters = string.ascii_letters if prefix == "hf_" else string.ascii_letters + string.digits
    token = prefix + "".join(chance.choice(letters) for _ in range(int(size)))
    command = case["input"]["command"].replace("{fake_token}", token)
    done = Redactor({}).redact_text(command)
    assert bool(done.found) == (case["expected"] == "reject")
    assert token not in done.value


@by_name(PERSONAL)
def test_personal_data_is_no_secret(case: dict[str, Any]) -> None:
    """Addresses, phone and card numbers are what tools work with; a pattern of one's own can mask them."""
    assert Redactor({}).redact_text(case["input"]["text"]).found == ()


@by_name([case for case in VARIABLES if case["input"]["fn"] == "sanitizeEnvironment"])
def test_variables(case: dict[str, Any]) -> None:
    """Which variables a command gets is the sandbox's list; here: a key in a value is known by its shape.

    What is removed for its name alone, or only begins a block, stays here: the list does not pass it either.
    """
    given, settings = case["input"]["args"]
    if not settings["enableEnvironmentVariableRedaction"]:
        return
    kept = case["expected"]
    for name, value in given.items():
        plain = value.replace("{+}", "")
        masked = Redactor({}).redact_text(plain).found
        if plain.startswith(("ghp_x", "eyJhbGci", "AKIA")) and len(plain) > 30:
            assert masked, name
        elif name in kept and why_unusable(plain) is None:
            assert not masked, name
