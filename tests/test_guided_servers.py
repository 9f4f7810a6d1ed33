"""What is lowered is compiled: servers on loopback enforce it as the real ones do, by llguidance, and answer at random."""

from __future__ import annotations

import json
import urllib.error
import urllib.request
from typing import Any

import pytest

from tests.enforcing_servers import SERVERS, EnforcingServer
from tests.guided_constraints import CONSTRAINTS
from toolcrib.guided import Choice, Lowered, lower

PATTERNED = {
    "type": "object",
    "properties": {
        "id": {"type": "string", "pattern": r"^[A-Z]{2}\d{3}$"},
        "when": {"type": "string", "format": "date"},
        "score": {"type": "number", "minimum": 0, "maximum": 1},
        "either": {"oneOf": [{"const": "a"}, {"type": "integer", "minimum": 0, "maximum": 9}]},
    },
    "required": ["id", "when", "either"],
    "additionalProperties": False,
}
LISTS = {"type": "array", "items": {"type": "boolean"}, "minItems": 1, "maxItems": 3}
HELD = {**CONSTRAINTS, "patterns": PATTERNED, "a list at the root": LISTS}


def asked(url: str, low: Lowered, **more: Any) -> tuple[int, dict[str, Any]]:
    body = low.into({"model": "m", "messages": [{"role": "user", "content": "Hi"}], **more})
    request = urllib.request.Request(
        f"{url}/chat/completions", json.dumps(body).encode(), {"Content-Type": "application/json"}
    )
    try:
        with urllib.request.urlopen(request, timeout=20) as response:
            return response.status, json.loads(response.read())
    except urllib.error.HTTPError as error:
        return error.code, json.loads(error.read())


def text_of(answer: dict[str, Any]) -> str:
    return str(answer["choices"][0]["message"]["content"])


@pytest.mark.parametrize("server", SERVERS)
def test_what_a_server_is_sent_it_compiles_and_holds_to(server: str) -> None:
    with EnforcingServer(server) as url:
        for name, constraint in HELD.items():
            low = lower(constraint, server)
            if low.rung != "native" or name == "tags":  # tags are held by xgrammar alone
                continue
            for _ in range(3):
                status, answer = asked(url, low)
                assert status == 200, (name, answer)
                value = low.parse(text_of(answer)).value
                wrong = low.validate(value)
                # A string may be too long where the server is not sent the bound: that is what validation is for.
                lost = {loss.keyword for loss in low.losses}
                assert not wrong or (low.guarantee == "enforced in part" and "maxLength" in lost), (
                    name,
                    wrong,
                )


def test_today_s_vllm_ignores_the_old_fields_and_validation_notices() -> None:
    choice = Choice("yes", "no")
    with EnforcingServer("vllm") as url:
        old = lower(choice, "vllm-old")
        status, answer = asked(url, old)
        assert status == 200 and old.validate(old.parse(text_of(answer)).value)
        new = lower(choice, "vllm")
        _, answer = asked(url, new)
        assert new.validate(new.parse(text_of(answer)).value) == ()


def test_a_refusal_leads_down_the_ladder() -> None:
    with EnforcingServer("llamacpp") as url:
        low: Lowered | None = lower(Choice("yes", "no"), "llamacpp")
        assert low is not None and low.not_with == ("tools",)
        status, answer = asked(url, low, tools=[{"type": "function", "function": {"name": "f"}}])
        assert status == 400
        low = low.next_rung(answer["error"]["message"])
        assert low is not None and low.rung == "text" and "with tools" in low.blockers[0]
