"""Secrets on the path of a call: a tool has them, and nobody else."""

from __future__ import annotations

import asyncio
import base64
import json
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest

from toolcrib import Answer, Context, Effect, Toolbox, ToolCall, ToolError, Verdict, tool
from toolcrib.audit import AuditLog
from toolcrib.errors import ErrorCode
from toolcrib.events import event_to_dict
from toolcrib.facts import MaxOutput
from toolcrib.saved_calls import prepared_to_json
from toolcrib.secrets import Environment, SecretError, SecretFile, Stores

VALUE = "hunter2-hunter3-xyz"
REF = "<secret_ref:API_KEY>"


class Held:
    """A store of two secrets; it can be told to fail."""

    def __init__(self, **more: str) -> None:
        self.values = {"API_KEY": VALUE, "OTHER": "correct horse battery", **more}
        self.fails = False

    def get(self, name: str) -> str | None:
        if self.fails:
            raise SecretError("the vault is closed")
        return self.values.get(name)

    def names(self) -> list[str]:
        return sorted(self.values)


had: list[Any] = []


@tool(effect=Effect.WRITE, secrets=("token", "headers"))
async def send(url: str, token: str = "", headers: dict[str, str] | None = None) -> str:
    "Send."
    had.append((url, token, headers))
    return f"sent to {url} with {token}"


def box_of(*tools: Any, **named: Any) -> Toolbox:
    return Toolbox(tools or [send], **{"autonomy": "full", "secrets": Held(), **named})


@pytest.mark.promise("security.md", "A secret reaches the tool that declared it, and nobody else")
async def test_the_tool_has_the_value_and_the_model_does_not() -> None:
    had.clear()
    result = await box_of().call("send", {"url": "u", "token": f"Bearer {REF}", "headers": {"x": REF}})
    assert had == [("u", f"Bearer {VALUE}", {"x": VALUE})]
    assert VALUE not in result.text
    assert result.text.startswith("sent to u with Bearer [secret API_KEY]")
    assert "Masked in this output, because it is secret: API_KEY" in result.text


REFUSED = {
    "not eligible": ({"url": REF}, "url: a secret may not be used here"),
    "unknown": (
        {"url": "u", "token": "<secret_ref:NOPE>"},
        "no secret named 'NOPE'. Known names: API_KEY, OTHER",
    ),
    "malformed": ({"url": "u", "token": "<secret_ref: API_KEY >"}, "is not a reference"),
    "in a key": ({"url": "u", "headers": {REF: "x"}}, "not in a key"),
}


@pytest.mark.parametrize(("arguments", "words"), REFUSED.values(), ids=REFUSED)
async def test_what_cannot_be_used_is_refused(arguments: dict[str, Any], words: str) -> None:
    had.clear()
    result = await box_of().call("send", arguments)
    assert result.code is ErrorCode.INVALID_ARGUMENTS
    assert words in result.text
    assert had == []


async def test_without_a_store_a_reference_is_refused_where_secrets_belong() -> None:
    had.clear()
    result = await Toolbox([send], autonomy="full").call("send", {"url": "u", "token": REF})
    assert result.is_error
    assert had == []


async def test_a_tool_without_secrets_takes_no_reference() -> None:
    @tool(effect=Effect.WRITE, secrets=())
    def write(content: str) -> str:
        "Write."
        return content

    assert (await box_of(write).call("write", {"content": REF})).is_error
    assert (await Toolbox([write], autonomy="full").call("write", {"content": REF})).text == REF


async def test_a_value_is_never_where_it_would_be_stored_or_shown(tmp_path: Path) -> None:
    events: list[str] = []
    asked: list[str] = []

    async def approver(question: Any) -> Answer:
        asked.append(json.dumps(question.to_dict()))
        return Answer(Verdict.YES)

    log = AuditLog(tmp_path / "audit.jsonl", key=b"k" * 32)
    box = box_of(autonomy="supervised", approver=approver, audit=log)
    box.subscribe(lambda event: events.append(json.dumps(event_to_dict(event), default=str)))
    prepared = await box.prepare(ToolCall("send", {"url": "u", "token": REF}))
    saved = json.dumps(prepared_to_json(prepared))
    result = await box.settle(prepared)
    await asyncio.sleep(0.05)
    assert not result.is_error
    everything = [saved, *events, *asked, log.path.read_text(), json.dumps(result.to_dict())]
    assert events
    assert all(VALUE not in text for text in everything)
    assert REF in asked[0]


async def test_whatever_a_tool_gives_is_masked(tmp_path: Path) -> None:
    @tool(effect=Effect.READ, secrets=())
    async def leak(how: str, ctx: Context) -> Any:
        "Leak."
        forms = {
            "plain": VALUE,
            "base64": base64.b64encode(f"x{VALUE}y".encode()).decode(),
            "hex": VALUE.encode().hex(),
            "long": "." * 3000 + VALUE + "." * 3000,
            "data": {"deep": [VALUE, {VALUE: 1}]},
        }
        ctx.report(tip=f"seen {VALUE}", result={"x": VALUE})
        if how == "error":
            raise ToolError(f"cannot use {VALUE}")
        if how == "crash":
            raise RuntimeError(f"cannot use {VALUE}")
        return forms[how]

    seen: list[str] = []
    box = box_of(leak, overflow=tmp_path, max_output=MaxOutput(bytes=2000))
    box.subscribe(lambda event: seen.append(json.dumps(event_to_dict(event), default=str)))
    encoded = base64.b64encode(f"x{VALUE}y".encode()).decode()[4:-4]
    for how in ("plain", "base64", "hex", "long", "data", "error", "crash"):
        result = await box.call("leak", {"how": how})
        shown = json.dumps(result.to_dict())
        for form in (VALUE, encoded, VALUE.encode().hex()):
            assert form not in shown, how
    await asyncio.sleep(0.05)
    kept = [path.read_text() for path in tmp_path.rglob("*") if path.is_file()]  # noqa: ASYNC240
    assert kept
    for text in (*seen, *kept):
        assert VALUE not in text
        assert encoded not in text


async def test_what_streams_is_masked() -> None:
    @tool(effect=Effect.READ, secrets=())
    async def steps() -> AsyncIterator[str]:
        "Step by step."
        yield f"one {VALUE}"
        yield "two"

    seen: list[str] = []
    box = box_of(steps)
    box.subscribe(lambda event: seen.append(json.dumps(event_to_dict(event), default=str)))
    result = await box.call("steps", {})
    await asyncio.sleep(0.05)
    assert VALUE not in result.text
    assert all(VALUE not in text for text in seen)


async def test_nothing_is_masked_where_there_is_nothing() -> None:
    @tool(effect=Effect.READ, secrets=())
    def plain() -> dict[str, int]:
        "Plain."
        return {"a": 1}

    result = await box_of(plain).call("plain", {})
    assert result.text == '{"a":1}'
    assert result.structured == {"a": 1}


async def test_a_store_that_fails_runs_nothing() -> None:
    had.clear()
    store = Held()
    box = box_of(secrets=store)
    prepared = await box.prepare(ToolCall("send", {"url": "u", "token": REF}))
    store.fails = True
    result = await box.execute(prepared)
    assert result.is_error
    assert "API_KEY" in result.text or "secret" in result.text
    assert "vault" not in result.text
    assert had == []


async def test_a_value_that_cannot_be_masked_is_not_used() -> None:
    had.clear()
    result = await box_of(secrets=Held(PIN="1234")).call("send", {"url": "u", "token": "<secret_ref:PIN>"})
    assert result.is_error
    assert "cannot be used" in result.text
    assert had == []


async def test_a_value_that_changed_is_masked_in_both_shapes() -> None:
    store = Held()

    @tool(effect=Effect.READ, secrets=("token",))
    def show(token: str, text: str) -> str:
        "Show."
        return f"{token} {text}"

    box = box_of(show, secrets=store)
    await box.call("show", {"token": REF, "text": ""})
    store.values["API_KEY"] = "another-value-altogether"
    result = await box.call("show", {"token": REF, "text": VALUE})
    assert VALUE not in result.text
    assert "another-value-altogether" not in result.text
    values = [VALUE, *(f"value-number-{number}-of-many" for number in range(5))]
    for value in [*values, *values]:
        store.values["API_KEY"] = value
        await box.call("show", {"token": REF, "text": ""})
    result = await box.call("show", {"token": "", "text": " ".join(values)})
    assert not [value for value in values if value in result.text]


STORES: dict[str, Callable[[SecretFile, dict[str, str]], Any]] = {
    "a file": lambda file, _: file,
    "variables": lambda _, environ: Environment(["API_KEY"], environ=environ),
    "a file behind another store": lambda file, environ: Stores(
        Environment(["OTHER"], environ=environ), file
    ),
}


@pytest.mark.parametrize("make", STORES.values(), ids=STORES)
async def test_a_value_that_another_program_changes_is_masked_at_once(make: Any, tmp_path: Path) -> None:
    @tool(effect=Effect.READ, secrets=("token",))
    def show(text: str, token: str = "") -> str:
        "Show."
        return text

    environ = {"API_KEY": VALUE}
    SecretFile(tmp_path / "secrets.json").set("API_KEY", VALUE)
    box = box_of(show, secrets=make(SecretFile(tmp_path / "secrets.json"), environ))
    assert VALUE not in (await box.call("show", {"text": VALUE})).text
    for value in ("another-value-altogether", "a-third-value-altogether"):
        SecretFile(tmp_path / "secrets.json").set("API_KEY", value)  # as another program does
        environ["API_KEY"] = value
        assert value not in (await box.call("show", {"text": f"{value} {VALUE}"})).text
    result = await box.call("show", {"text": f"another-value-altogether {VALUE}"})
    assert "altogether" not in result.text and VALUE not in result.text, "values of before are masked still"


async def test_an_approval_of_a_reference_is_bound_to_the_reference() -> None:
    asked: list[Any] = []

    async def approver(question: Any) -> Answer:
        asked.append(question.arguments)
        return Answer(Verdict.ALWAYS)

    box = box_of(autonomy="supervised", approver=approver)
    for name in ("API_KEY", "API_KEY", "OTHER"):
        assert not (await box.call("send", {"url": "u", "token": f"<secret_ref:{name}>"})).is_error
    assert len(asked) == 2
