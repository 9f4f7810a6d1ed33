"""A tool that leaks its secret on every channel, in every shape: nobody who listens, reads or stores has it."""

from __future__ import annotations

import asyncio
import base64
import html
import io
import json
import logging
import shlex
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel

from tests.cases import each
from tests.properties import examples
from toolcrib import (
    Agent,
    Answer,
    Context,
    Effect,
    Tool,
    Toolbox,
    ToolCall,
    ToolError,
    ToolResult,
    Verdict,
    tool,
)
from toolcrib.agent import Reason, TranscriptFile
from toolcrib.audit import AuditLog
from toolcrib.call import CallKey
from toolcrib.content import Audio, File, Image, Json, Text
from toolcrib.events import (
    ArgumentsDelta,
    Notice,
    ReasoningDelta,
    StatusBoard,
    StatusChanged,
    TextDelta,
    TurnStarted,
    event_to_dict,
)
from toolcrib.facts import MaxOutput
from toolcrib.messages import Request, Response
from toolcrib.models import Scripted
from toolcrib.models.model import last_of
from toolcrib.question import Lasting, Preview, Question
from toolcrib.repair import Edit
from toolcrib.rules import read_rules
from toolcrib.rules.approvals import ApprovalStore
from toolcrib.secrets import Redactor
from toolcrib.secrets.masking import Masking
from toolcrib.secrets.stream import SuccessiveTexts
from toolcrib.toolset import StaticToolset

VALUE = "Tr0ub4dor&3'x/+ \"zq"
PLAIN = "hunter2-hunter3-xyz"
PEM = "-----BEGIN KEY-----\nMIIEvQIBADANBgkqhkiG9w0BAQ\nEFAASCBKcwggSjAgEAAoIBAQC7\n-----END KEY-----"
VALUES = {"API_KEY": PLAIN, "ODD": VALUE, "PEM": PEM, "LONGER": PLAIN + "-and-more"}


class Held:
    def get(self, name: str) -> str | None:
        return VALUES.get(name)

    def names(self) -> list[str]:
        return sorted(VALUES)


def shapes(value: str) -> dict[str, str]:
    raw = value.encode()
    return {
        "plain": value,
        "in a text": f"<<{value}>>",
        "upper": value.upper(),
        "reversed": value[::-1],
        **{f"base64 at {n}": base64.b64encode(b"." * n + raw + b"..").decode() for n in range(3)},
        "base64 for URLs": base64.urlsafe_b64encode(raw).decode(),
        "hex": raw.hex(),
        "hex with colons": raw.hex(":"),
        "URL": quote(value, safe=""),
        "URL twice": quote(quote(value, safe=""), safe=""),
        "JSON": json.dumps(value),
        "JSON escapes": "".join(f"\\u{ord(c):04x}" for c in value),
        "HTML": html.escape(value),
        "HTML numbers": "".join(f"&#{ord(c)};" for c in value),
        "shell": shlex.quote(value),
        "python": repr(value),
        "spaced": " ".join(value),
    }


def found(text: str) -> str:
    """Which secret a text holds in a shape that a reader would see through."""
    flat = "".join(c for c in text.lower() if c.isalnum())
    for value in VALUES.values():
        for name, shape in shapes(value).items():
            bare = "".join(c for c in shape.lower() if c.isalnum())
            core = bare[4:-4] if name.startswith("base64") else bare
            if core in flat:
                return f"{name} of {value!r}"
    return ""


CASES = [(name, shape) for value in (PLAIN, VALUE) for name, shape in shapes(value).items()]


@tool(effect=Effect.WRITE, secrets=("token",))
async def use(token: str = "", note: str = "") -> str:
    "Use."
    return f"used {note}"


class Listening:
    """All that can be seen of a toolbox from outside."""

    def __init__(self, folder: Path, *tools: Any, **named: Any) -> None:
        self.events: list[Any] = []
        self.spans: list[Any] = []
        self.folder = folder
        self.log = AuditLog(folder / "audit.jsonl", key=b"k" * 32, sync=False)
        self.records: list[ToolResult] = []
        self.lines = io.StringIO()
        handler = logging.StreamHandler(self.lines)
        logging.getLogger("toolcrib").addHandler(handler)
        options: dict[str, Any] = {"autonomy": "full", "secrets": Held(), "record_content": True, **named}
        self.box = Toolbox(
            tools, audit=self.log, overflow=folder / "overflow", tracer=self._tracer(), **options
        )
        self.handler = handler
        self.subscription = self.box.subscribe(self.events.append)

    def _tracer(self) -> Any:
        from opentelemetry.sdk.trace import TracerProvider
        from opentelemetry.sdk.trace.export import SimpleSpanProcessor
        from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

        self.exporter = InMemorySpanExporter()
        provider = TracerProvider()
        provider.add_span_processor(SimpleSpanProcessor(self.exporter))
        return provider.get_tracer("test")

    def everything(self) -> dict[str, str]:
        self.subscription.flush(5)
        self.log.flush()
        logging.getLogger("toolcrib").removeHandler(self.handler)
        board = StatusBoard(self.events)
        return {
            "events": "\n".join(json.dumps(event_to_dict(event), default=str) for event in self.events),
            "unescaped events": "\n".join(str(event_to_dict(event)) for event in self.events),
            "statuses": "\n".join(map(str, board.statuses.values())),
            "spans": "\n".join(span.to_json() for span in self.exporter.get_finished_spans()),
            "log": self.lines.getvalue(),
            "files": "\n".join(
                path.read_text(errors="replace") + path.name
                for path in sorted(self.folder.rglob("*"))
                if path.is_file()
            ),
        }

    def check(self, *results: ToolResult) -> None:
        seen = self.everything()
        seen["results"] = "\n".join(json.dumps(result.to_dict(), default=str) for result in results)
        for channel, text in seen.items():
            assert found(text) == "", channel


@contextmanager
def listening(folder: Path, *tools: Any, **named: Any) -> Generator[Listening]:
    ear = Listening(folder, *tools, **named)
    yield ear
    ear.check()


@pytest.mark.promise("security.md", "A secret reaches the tool that declared it, and nobody else")
@each(("name", "shape"), CASES, ids=[f"{i}-{name}" for i, (name, _) in enumerate(CASES)])
async def test_no_channel_has_it_in_any_shape(name: str, shape: str, tmp_path: Path) -> None:
    @tool(effect=Effect.READ, secrets=())
    async def leak(how: str, ctx: Context) -> Any:
        "Leak."
        ctx.report(tip=shape, params={shape: shape, "deep": [{"x": shape}]}, result=shape)
        ctx.report(result={"data": [shape, shape.encode()], shape: 1})
        ctx.report(result=shape.encode())
        if how == "raise":
            raise RuntimeError(shape)
        if how == "tell":
            raise ToolError(shape)
        if how == "long":
            return (shape + "\n" + "x" * 50) * 200
        return {"how": shape, shape: [shape]}

    with listening(tmp_path, leak, max_output=MaxOutput(bytes=2000)) as ear:
        for how in ("raise", "tell", "long", "data"):
            result = await ear.box.call("leak", {"how": how})
            assert found(json.dumps(result.to_dict())) == "", how
            assert "Masked in this output, because it is secret" in result.text or how in ("raise", "data")


class Model(BaseModel):
    secret: str
    data: bytes = b""


OBJECTS: dict[str, Any] = {
    "a model": Model(secret=PLAIN),
    "a model with bytes": Model(secret="", data=PLAIN.encode()),
    "a set": {PLAIN},
    "a tuple": ("x", (PLAIN,)),
    "bytes": PLAIN.encode(),
    "a path": Path("/") / PLAIN,
    "a number among data": [1, None, True, PLAIN],
}


@pytest.mark.parametrize("value", OBJECTS.values(), ids=OBJECTS)
async def test_objects_that_are_reported_are_looked_into(value: Any, tmp_path: Path) -> None:
    @tool(effect=Effect.READ, secrets=())
    async def show(ctx: Context) -> str:
        "Show."
        ctx.report(result=value, params={"x": value})
        return "done"

    with listening(tmp_path, show) as ear:
        await ear.box.call("show", {})
        seen = ear.everything()
        assert PLAIN not in "".join(seen.values())
        assert base64.b64encode(PLAIN.encode()).decode() not in seen["events"]


@pytest.mark.parametrize("size", [1, 2, 3, 5, 8, 13])
@pytest.mark.parametrize("value", [PLAIN, PEM, PLAIN.encode().hex()])
async def test_pieces_that_are_reported_give_no_whole(value: str, size: int, tmp_path: Path) -> None:
    text = f"the key is {value} and that was it"
    pieces = [text[at : at + size] for at in range(0, len(text), size)]

    @tool(effect=Effect.READ, secrets=())
    async def show(ctx: Context) -> str:
        "Show."
        for piece in pieces:
            ctx.report(tip=piece)
        for piece in pieces:
            ctx.report(result=piece)
        for piece in pieces:
            ctx.report(result={"of": ["log", {"output": piece}]})
        return "done"

    @tool(effect=Effect.READ, secrets=())
    async def steps() -> AsyncIterator[str]:
        "Step."
        for piece in pieces:
            yield piece

    with listening(tmp_path, show, steps) as ear:
        for name in ("show", "steps"):
            await ear.box.call(name, {})
        ear.everything()
        for name in ("tip", "result"):
            shown = "".join(
                getattr(event, name) for event in ear.events if isinstance(getattr(event, name, None), str)
            )
            assert found(shown) == ""
            assert value.replace("\n", "")[8:24] not in shown
            assert shown.startswith("the key is ")
            assert "was it" in shown
        data = [event.result for event in ear.events if isinstance(getattr(event, "result", None), dict)]
        shown = "".join(one["of"][1]["output"] for one in data)
        assert found(shown) == "" and value.replace("\n", "")[8:24] not in shown
        assert shown.startswith("the key is ") and "was it" in shown


@dataclass
class Pair:
    one: str
    two: str


def cyclic() -> dict[str, Any]:
    made: dict[str, Any] = {"x": PLAIN}
    made["itself"] = made
    return made


def nested(value: Any, depth: int) -> Any:
    for _ in range(depth):
        value = [value]
    return value


class Unwritable:
    def __str__(self) -> str:
        raise RuntimeError(PLAIN)


HALVES = PLAIN[:12], PLAIN[12:]
ODD: dict[str, list[Any]] = {
    "parts in one object": [Pair(*HALVES)],
    "parts in objects": [[Model(secret=half)] for half in HALVES],
    "parts in sets": [{half} for half in HALVES],
    "data that holds itself": [cyclic()],
    "an object that holds itself": [Pair("x", cyclic())],  # type: ignore[arg-type]
    "deep data": [nested(PLAIN, 5_000)],
    "deep data in an object": [Pair("x", nested(PLAIN, 400))],
    "what cannot be written": [Unwritable()],
}


@pytest.mark.parametrize("values", ODD.values(), ids=ODD)
async def test_no_report_shows_it_or_breaks_its_call(values: list[Any], tmp_path: Path) -> None:
    @tool(effect=Effect.READ, secrets=())
    async def show(ctx: Context) -> str:
        "Show."
        for value in values:
            ctx.report(result=value)
            ctx.report(params={"x": value})
        return "done"

    with listening(tmp_path, show) as ear:
        assert (await ear.box.call("show", {})).text == "done"
        ear.everything()
        shown = [str(event.result) for event in ear.events if getattr(event, "result", None) is not None]
        assert len(shown) == len(values) + 1
        assert not any(PLAIN in text for text in shown)
        assert not all(any(half in text for text in shown) for half in HALVES)
        assert not any(PLAIN in str(getattr(event, "params", "")) for event in ear.events)


async def test_objects_without_secrets_are_reported_as_they_are(tmp_path: Path) -> None:
    values = [Model(secret="none"), Pair("a", "b"), {"a"}, ("a", 1, None), b"a", Path("a"), {1: "a"}]

    @tool(effect=Effect.READ, secrets=())
    async def show(ctx: Context) -> str:
        "Show."
        for value in values:
            ctx.report(result=value)
        return "done"

    with listening(tmp_path, show) as ear:
        await ear.box.call("show", {})
        ear.everything()
        shown = [event.result for event in ear.events if isinstance(event, StatusChanged) and event.result]
        assert [one is value for one, value in zip(shown, values, strict=True)] == [True] * len(values)


async def test_ordinary_reports_are_shown_as_they_are(tmp_path: Path) -> None:
    tips = ["looking for h", "hunting", "a - b", "done: 100 %", "ü…", "x" * 5000, "hun", "hello"]

    @tool(effect=Effect.READ, secrets=())
    async def show(ctx: Context) -> str:
        "Show."
        for tip in tips:
            ctx.report(tip=tip, result=tip)
        return "done"

    with listening(tmp_path, show) as ear:
        await ear.box.call("show", {})
        ear.everything()
        assert [event.tip for event in ear.events if getattr(event, "tip", None)] == tips


@pytest.mark.parametrize("size", [1, 3, 7, 50])
@pytest.mark.parametrize("kind", [TextDelta, ReasoningDelta])
async def test_what_the_model_says_is_masked_as_it_grows(kind: Any, size: int, tmp_path: Path) -> None:
    text = f"It is {PLAIN}, or {PLAIN.encode().hex()}; in parts hunter2-hun. The end: hunter2"
    with listening(tmp_path, use) as ear:
        for at in range(0, len(text), size):
            ear.box.emit("r", kind(text[at : at + size]))
        ear.box.emit("r", TurnStarted(2))
        ear.everything()
        said = "".join(event.text for event in ear.events if isinstance(event, kind))
        assert said == "It is [secret API_KEY], or [secret API_KEY]; in parts hunter2-hun. The end: hunter2"
        assert [event.seq for event in ear.events] == list(range(len(ear.events)))
        assert ear.events[-1].kind == "turn_started"


@pytest.mark.parametrize("size", [1, 4, 9])
async def test_arguments_that_stream_are_masked(size: int, tmp_path: Path) -> None:
    text = json.dumps({"note": f"a {PLAIN} b", "token": "hunter2", PLAIN: [PLAIN, 5]})
    with listening(tmp_path, use) as ear:
        stream = await ear.box.open_call("use", CallKey("r", 1, 0))
        for at in range(0, len(text), size):
            stream.feed(text[at : at + size])
        prepared = await ear.box.prepare(ToolCall("use", text), key=CallKey("r", 1, 0), stream=stream)
        await ear.box.execute(prepared)
        ear.everything()
        grown: dict[Any, str] = {}
        for event in ear.events:
            if isinstance(event, ArgumentsDelta) and isinstance(event.delta, str):
                grown[event.path] = grown.get(event.path, "") + event.delta
        assert grown[("note",)] == "a [secret API_KEY] b"
        assert grown[("token",)] == "hunter2"


async def test_what_a_model_writes_itself_is_shown_and_stored_without_it(tmp_path: Path) -> None:
    asked: list[Any] = []

    async def approver(question: Any) -> Answer:
        asked.append(question.to_dict())
        return Answer(Verdict.ALWAYS, lasting="user", message=PLAIN)  # type: ignore[arg-type]

    store = ApprovalStore(tmp_path / "approvals.json")
    named = {"autonomy": "supervised", "approver": approver, "approvals": store}
    with listening(tmp_path, use, **named) as ear:
        results = [
            await ear.box.call("use", {"note": PLAIN}),
            await ear.box.call("use", {"nte": PLAIN}),
            await ear.box.call("use", f'{{"note": "{PLAIN}"'),
            await ear.box.call(PLAIN, {}),
        ]
        ear.box.emit("r", Notice(f"see {PLAIN}", PLAIN))
        assert asked
        assert found(json.dumps(asked)) == ""
        ear.check(*results)


async def test_a_store_of_approvals_that_fails_is_logged_without_what_was_approved(tmp_path: Path) -> None:
    class Full:
        def all(self) -> list[Any]:
            return []

        def add(self, approval: Any) -> None:
            raise OSError(f"no room for {PLAIN}")

    def approver(question: Any) -> Answer:
        return Answer(Verdict.ALWAYS, lasting=Lasting.USER)

    with listening(tmp_path, use, autonomy="supervised", approver=approver, approvals=Full()) as ear:
        result = await ear.box.call("use", {"note": PLAIN})
        assert "an approval could not be kept" in ear.lines.getvalue()
        ear.check(result)


async def test_other_arguments_that_a_person_gave_are_told_without_it(tmp_path: Path) -> None:
    async def approver(question: Any) -> Answer:
        return Answer(Verdict.YES, arguments={"note": PLAIN})

    with listening(tmp_path, use, autonomy="supervised", approver=approver) as ear:
        result = await ear.box.call("use", {"note": "x"})
        assert "other arguments than yours" in result.text
        ear.check(result)


async def test_previews_questions_and_refusals(tmp_path: Path) -> None:
    async def approver(question: Any) -> Answer:
        assert found(json.dumps(question.to_dict())) == ""
        assert "[secret API_KEY]" in question.preview
        return Answer(Verdict.NO, message=f"use {PLAIN} elsewhere")

    made = tool(effect=Effect.WRITE, secrets=(), preview=lambda given: Preview(f"- {PLAIN}"))(_edit)
    with listening(tmp_path, made, autonomy="supervised", approver=approver) as ear:
        result = await ear.box.call("_edit", {"path": "x"})
        assert "[secret API_KEY] elsewhere" in result.text
        ear.check(result)


def test_no_text_of_a_question_shows_it() -> None:
    texts: dict[str, Any] = dict.fromkeys(("action", "reason", "title"), PLAIN)
    texts |= {"arguments": {PLAIN: [PLAIN]}, "edits": (Edit("x", "added", PLAIN, PLAIN),)}
    texts |= {"patterns": (PLAIN,), "folders": (PLAIN,), "prefixes": ((PLAIN, "run"),)}
    question = Question(CallKey("r", 1, 0), "edit", effect="write", fingerprint="f", **texts)
    shown = Masking(Held()).mask_question(question)
    assert found(json.dumps(shown.to_dict())) == ""
    assert shown.prefixes == (("[secret API_KEY]", "run"),)


def fails(*_: Any, **__: Any) -> Any:
    raise RuntimeError(PLAIN)


class Failing(Tool[Model, str], name="failing", effect=Effect.WRITE, secrets=()):
    """Fail in every hook."""

    effect_for = doubt = accesses = on_partial = fails

    async def aclose(self) -> None:
        fails()

    async def execute(self, params: Model, ctx: Context) -> str:
        return "done"


class FailsToEnd(StaticToolset):
    async def __aexit__(self, *exc: object) -> None:
        fails()


@pytest.mark.promise("security.md", "A secret reaches the tool that declared it, and nobody else")
async def test_no_hook_that_raises_logs_it(tmp_path: Path) -> None:
    async def approver(question: Any) -> Answer:
        return Answer(Verdict.YES)

    policy = read_rules('[[rule]]\nask = true\npath = "x"').policy("supervised")
    with listening(
        tmp_path, Failing, FailsToEnd([use]), autonomy="", policy=policy, approver=approver
    ) as ear:
        text = json.dumps({"secret": "x"})
        async with ear.box:
            stream = await ear.box.open_call("failing", CallKey("r", 1, 0))
            stream.feed(text)
            key = CallKey("r", 1, 0)
            prepared = await ear.box.prepare(ToolCall("failing", text), key=key, stream=stream)
            await ear.box.settle(prepared)
        said = ear.everything()["log"]
        logged = [
            hook for hook in ("effect_for", "doubt", "accesses", "on_partial", "aclose") if hook in said
        ]
        assert logged == ["effect_for", "doubt", "accesses", "on_partial", "aclose"]
        assert "leaving a toolset failed" in said and "RuntimeError: [secret API_KEY]" in said


async def test_no_folder_that_a_tool_cannot_name_logs_it(tmp_path: Path) -> None:
    async def approver(question: Any) -> Answer:
        return Answer(Verdict.ALWAYS, lasting=Lasting.PROJECT)

    @tool(effect=Effect.WRITE, secrets=(), base_folder=fails)
    async def works() -> str:
        "Work somewhere."
        return "done"

    approvals = ApprovalStore(tmp_path / "approvals.json")
    with listening(
        tmp_path, works, autonomy="supervised", approver=approver, approvals=approvals, project=tmp_path
    ) as ear:
        await ear.box.call("works", {})
        assert "base_folder of tool works" in ear.lines.getvalue()


def _edit(path: str) -> str:
    "Edit."
    return path


PARTS: dict[str, Callable[[], Any]] = {
    "a text file": lambda: File(base64.b64encode(f"a {PLAIN} b".encode()).decode(), "text/plain"),
    "a text file as bytes": lambda: File(f"a {PLAIN} b".encode(), "text/plain"),  # type: ignore[arg-type]
    "an image": lambda: Image(base64.b64encode(b"\x89PNG" + PLAIN.encode()).decode(), "image/png"),
    "a sound": lambda: Audio(base64.b64encode(b"RIFF" + PLAIN.encode()).decode(), "audio/wav"),
    "a url": lambda: Image(url=f"https://example.org/?key={PLAIN}", media_type="image/png"),
    "json": lambda: Json({PLAIN: [PLAIN]}),
    "structured alone": lambda: ToolResult((Text("fine"),), structured={"key": PLAIN}),
    "extras alone": lambda: ToolResult((Text("fine"),), extras={"mcp": {"key": PLAIN}}),
}


@pytest.mark.parametrize("make", PARTS.values(), ids=PARTS)
async def test_parts_of_every_kind(make: Callable[[], Any], tmp_path: Path) -> None:
    @tool(effect=Effect.READ, secrets=())
    def give() -> Any:
        "Give."
        made = make()
        return made if isinstance(made, ToolResult) else [made]

    with listening(tmp_path, give) as ear:
        result = await ear.box.call("give", {})
        for part in result.parts:
            data = getattr(part, "data", "")
            assert PLAIN.encode() not in base64.b64decode(data or "")
        assert found(json.dumps(result.extras)) == ""
        assert "Masked in this output" in result.text
        ear.check(result)


CUT: dict[str, Callable[[], Any]] = {
    "texts": lambda: [Text("key: hunter2-"), Text("hunter3-xyz."), Text("end")],
    "texts around an image": lambda: [Text("hunter2-"), Image("QUJD", "image/png"), Text("hunter3-xyz")],
    "a list": lambda: ["hunter2-", "hunter3-xyz"],
    "json": lambda: Json({"lines": ["hunter2-", "hunter3-xyz"]}),
    "structured": lambda: ToolResult((Text("fine"),), structured={"lines": ["hunter2-", "hunter3-xyz"]}),
}


@pytest.mark.parametrize("make", CUT.values(), ids=CUT)
async def test_what_is_cut_over_neighbouring_texts(make: Callable[[], Any], tmp_path: Path) -> None:
    @tool(effect=Effect.READ, secrets=())
    async def give(ctx: Context) -> Any:
        "Give."
        ctx.report(result=["hunter2-", "hunter3-xyz"])
        return make()

    with listening(tmp_path, give) as ear:
        result = await ear.box.call("give", {})
        assert "Masked in this output" in result.text
        assert "hunter3" not in result.text + json.dumps(result.structured)
        ear.check(result)


async def test_a_number_that_is_secret_leaves_data_readable(tmp_path: Path) -> None:
    class Numbers(Held):
        def get(self, name: str) -> str | None:
            return "48151623421" if name == "PIN" else None

        def names(self) -> list[str]:
            return ["PIN"]

    class Out(BaseModel):
        pin: int

    @tool(effect=Effect.READ, secrets=())
    def give() -> Out:
        "Give."
        return Out(pin=48151623421)

    box = Toolbox([give], secrets=Numbers())
    result = await box.call("give", {})
    assert result.structured == {"pin": "[secret PIN]"}
    assert "48151623421" not in json.dumps(result.to_dict())


class Fails:
    """A model whose client library says the key in its error."""

    name = "fails"

    async def stream(self, request: Request) -> AsyncGenerator[Any, None]:
        fails()
        yield

    async def respond(self, request: Request) -> Response:
        return await last_of(self.stream(request))


async def test_no_model_and_no_agent_that_fails_logs_it(tmp_path: Path) -> None:
    @tool(effect=Effect.READ, secrets=())
    async def opens(ctx: Context) -> str:
        "Open something for the run."

        class Owned:
            async def aclose(self) -> None:
                fails()

            def news(self) -> list[str]:
                return []

        ctx.of_run(lambda emit: Owned())
        return "opened"

    with listening(tmp_path, opens, use) as ear:
        outer = Agent(
            Scripted([{"calls": [{"name": "opens", "arguments": {}}]}, {"text": "x"}]), toolbox=ear.box
        )
        assert (await outer.run("open")).finished
        failed = await Agent(Fails(), toolbox=ear.box).run("hello")
        assert failed.reason is Reason.MODEL_ERROR
        assert failed.detail == "the model fails failed: [secret API_KEY]"
        said = ear.lines.getvalue()
    assert "what a run owned could not be closed" in said and "the model fails failed" in said
    assert said.count("RuntimeError: [secret API_KEY]") == 2


@pytest.mark.promise("security.md", "A secret reaches the tool that declared it, and nobody else")
async def test_whole_runs_store_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    @tool(effect=Effect.READ, secrets=())
    async def leak(ctx: Context) -> str:
        "Leak."
        ctx.report(tip=f"{PLAIN}")
        return f"it is {PLAIN}"

    turns: list[Any] = [
        {"text": f"I was told {PLAIN}.", "calls": [{"name": "leak", "arguments": {}, "id": PLAIN}]},
        {"calls": [{"name": PLAIN, "arguments": {}}]},
        {"calls": [{"name": "use", "arguments": {"note": f"x {VALUE}"}}]},
        {"text": f"Done with {PLAIN}."},
    ]
    with listening(tmp_path, leak, use) as ear:
        transcript = TranscriptFile(tmp_path / "transcript.jsonl")
        agent = Agent(Scripted(turns), toolbox=ear.box)
        run = agent.start(f"Use {PLAIN} please", transcript=transcript)
        outcome = await run
        transcript.close()
        assert outcome.finished
        await asyncio.sleep(0)
        text = (tmp_path / "transcript.jsonl").read_text()
        assert "[secret API_KEY]" in text
        assert "it is" in text


def test_a_store_that_fails_in_its_own_way_breaks_no_call(tmp_path: Path) -> None:
    class Broken(Held):
        def names(self) -> list[str]:
            raise OSError("the vault is on fire")

    box = Toolbox([use], autonomy="full", secrets=Broken())
    box.subscribe(lambda event: None)
    assert not box.call_sync("use", {}).is_error


@given(
    st.lists(
        st.sampled_from([PLAIN, VALUE, PEM, "hunter", "2-hun", " ", "x", "é", "\\u00", "%68", "the end"])
    ),
    st.lists(st.integers(1, 9), min_size=1, max_size=40),
)
@examples(150)
def test_whatever_the_pieces_no_secret_is_put_together(words: list[str], sizes: list[int]) -> None:
    text, at, number = "".join(words), 0, 0
    pieces, shown = SuccessiveTexts(), ""
    redactor = Redactor(VALUES, patterns=())
    while at < len(text):
        size = sizes[number % len(sizes)]
        shown += pieces.show(redactor.finder, text[at : at + size])
        at, number = at + size, number + 1
    assert found(shown) == ""
    assert PLAIN not in shown


def test_masking_shows_no_value() -> None:
    masking = Masking(Held())
    masking.mask("x")
    assert found(repr(masking)) == ""
