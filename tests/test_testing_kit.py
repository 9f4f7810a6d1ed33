"""`toolcrib.testing`: our own tools pass its check, and tools that are wrong in one way do not."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import jsonschema_rs
import pytest
from pydantic import BaseModel, Field

from toolcrib import Context, Effect, Tool, ToolError, tool
from toolcrib.cli.demo_project import build
from toolcrib.testing import Replay, Scripted, check_tool
from toolcrib.testing import tools as checks_of_tools
from toolcrib.testing.samples import invalid_samples, samples
from toolcrib.tools import EditFile, GlobFiles, Grep, ListDir, ReadFile, Shell, Workspace, WriteFile

READ: dict[str, Any] = {"effect": Effect.READ, "secrets": ()}


@pytest.fixture
def project(tmp_path: Path) -> Path:
    build(tmp_path)
    (tmp_path / "notes.txt").write_text("alpha\n")
    return tmp_path


@pytest.mark.parametrize("kind", [ReadFile, WriteFile, EditFile, ListDir, GlobFiles, Grep])
def test_our_own_tools_hold_to_it(kind: Callable[[Workspace], Tool[Any, Any]], project: Path) -> None:
    before = {path: path.read_bytes() for path in project.rglob("*") if path.is_file()}
    report = check_tool(lambda root: kind(Workspace(root)), workspace=project, count=40)
    report.raise_for_findings(warnings=True)
    assert report.calls > 10
    assert {path: path.read_bytes() for path in project.rglob("*") if path.is_file()} == before


def test_our_shell_holds_to_it(project: Path) -> None:
    commands = [{"command": "ls"}, {"command": "sleep 1"}, {"command": "exit 3"}]
    report = check_tool(
        lambda root: Shell(Workspace(root)), workspace=project, arguments=commands, count=3, execute=True
    )
    report.raise_for_findings(warnings=True)


@tool(**READ)
def crashes(number: int) -> str:
    """Fail for every number that is greater than zero, to see what becomes of it."""
    return "fine" if number <= 0 else str(1 // 0)


@tool(**READ)
def babbles(name: str) -> str:
    """Tell a model what it should not be told, to see whether anybody minds."""
    raise ToolError(f"failed: {object()!r}")


@tool(**READ)
async def deaf(name: str) -> str:
    """Go on and on although it was told to stop, to see whether anybody minds."""
    left = 5
    while left:
        try:
            await asyncio.sleep(0.02)
        except asyncio.CancelledError:
            left = 80
        left -= 1
    return name


@tool(**READ)
def busy(name: str) -> str:
    """Work in a thread without ever looking whether it was told to stop."""
    time.sleep(0.5)
    return name


@tool(**READ)
def misfit(name: str) -> list[int]:
    """Promise a list of numbers and give something else, to see whether anybody minds."""
    return {"name": name}  # type: ignore[return-value]


class Picky(BaseModel):
    name: Annotated[str, Field(description="A name, of which only some are taken.", pattern="^a+$|^zzzz$")]


class Unmakeable(Tool[Picky, str], name="unmakeable", **READ):
    """Take only what matches a pattern, and precheck it by raising an exception."""

    def precheck(self, params: Picky) -> str | None:
        raise RuntimeError("in the precheck")

    async def execute(self, params: Picky, ctx: Context) -> str:
        return params.name


@tool(**READ)
def unknown_type(handle: NoSuchType) -> str:  # type: ignore[name-defined]  # noqa: F821
    """Take something that has no schema at all, so that it cannot compile."""
    return ""


BAD = [
    (crashes, "execution", "ZeroDivisionError"),
    (babbles, "words", "object at 0x"),
    (deaf, "cancellation", "does not stop"),
    (misfit, "result", "does not fit"),
    (Unmakeable, "precheck", "in the precheck"),
    (unknown_type, "compile", "handle"),
]


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checks_of_tools, "GRACE", 0.2)


@pytest.mark.usefixtures("impatient")
@pytest.mark.parametrize(("bad", "check", "said"), BAD)
def test_a_fault_is_found_and_named(bad: Any, check: str, said: str) -> None:
    report = check_tool(bad, count=4)
    assert not report.ok
    errors = [finding for finding in report.findings if finding.severity == "error"]
    assert any(finding.check == check and said in finding.message for finding in errors), report.findings
    with pytest.raises(AssertionError, match=said):
        report.raise_for_findings()


def test_one_fault_is_told_once_however_many_calls_meet_it() -> None:
    report = check_tool(crashes, arguments=[{"number": number} for number in range(1, 5)], count=0)
    (told,) = [f.message for f in report.findings if "ZeroDivisionError" in f.message]
    assert "{'number': 1}" in told and "3 other calls" in told


def test_what_fails_is_told_in_the_report_alone() -> None:
    program = "from tests.test_testing_kit import check_tool, crashes; print(check_tool(crashes).ok)"
    done = subprocess.run(
        [sys.executable, "-c", program],
        cwd=Path(__file__).parents[1],
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert (done.stdout, done.stderr) == ("False\n", "")


@pytest.mark.usefixtures("impatient")
def test_a_thread_that_does_not_look_is_advised_to() -> None:
    report = check_tool(busy, arguments=[{"name": "x"}], count=1)
    assert report.ok
    assert any(f.check == "cancellation" and f.severity == "warning" for f in report.findings)
    with pytest.raises(AssertionError):
        report.raise_for_findings(warnings=True)


def test_a_tool_that_says_read_must_not_write(tmp_path: Path) -> None:
    def liar(root: Path) -> Any:
        @tool(**READ)
        def peek(name: str) -> str:
            """Look at a name, and leave a trace of it although that was not said."""
            (root / "trace").write_text(name)
            return name

        return peek

    report = check_tool(liar, workspace=tmp_path, count=3)
    assert any(f.check == "effect" and "trace" in f.message for f in report.findings)
    assert list(tmp_path.iterdir()) == []


def test_what_may_change_something_is_not_run_unasked() -> None:
    ran: list[str] = []

    @tool(effect=Effect.WRITE, secrets=())
    def remember(name: str) -> str:
        """Keep a name in mind for later, in place of the one before."""
        ran.append(name)
        return name

    assert check_tool(remember, count=3).calls == 0 and ran == []
    assert check_tool(remember, count=3, execute=True).calls == 3 and ran


async def test_it_can_be_called_where_a_loop_is_running() -> None:
    assert check_tool(crashes, arguments=[{"number": 0}], count=0).ok


async def test_the_models_are_handed_out_here() -> None:
    from toolcrib import Agent

    assert (await Agent(Scripted(["Hello."]), []).run("hi")).text == "Hello."
    hello = {"choices": [{"message": {"content": "Hi."}, "finish_reason": "stop"}]}
    replay = Replay([{"api": "chat", "response": {"framing": "json", "body": hello}}])
    assert (await Agent(replay, []).run("hi")).text == "Hi."


SCHEMAS: list[dict[str, Any]] = [
    {
        "type": "object",
        "properties": {"n": {"type": "integer", "minimum": 3, "maximum": 4}},
        "required": ["n"],
    },
    {"type": "object", "properties": {"x": {"type": "number", "exclusiveMinimum": 0, "exclusiveMaximum": 1}}},
    {
        "type": "object",
        "properties": {"s": {"type": "string", "minLength": 5, "maxLength": 6}},
        "required": ["s"],
    },
    {"type": "object", "properties": {"d": {"type": "string", "format": "date"}}, "required": ["d"]},
    {"type": "object", "properties": {"e": {"enum": [1, "two", None]}}, "required": ["e"]},
    {
        "type": "object",
        "properties": {"u": {"anyOf": [{"type": "integer"}, {"type": "null"}]}},
        "required": ["u"],
    },
    {"type": "object", "properties": {"a": {"type": "array", "items": {"type": "boolean"}, "minItems": 2}}},
    {
        "type": "object",
        "properties": {"tree": {"$ref": "#/$defs/node"}},
        "required": ["tree"],
        "$defs": {
            "node": {
                "type": "object",
                "properties": {
                    "name": {"type": "string"},
                    "children": {"type": "array", "items": {"$ref": "#/$defs/node"}},
                },
                "required": ["name"],
            }
        },
    },
    {"type": "object", "properties": {}, "additionalProperties": False},
]


@pytest.mark.parametrize("schema", SCHEMAS)
def test_samples_fit_and_spoiled_ones_do_not(schema: dict[str, Any]) -> None:
    valid = jsonschema_rs.validator_for(schema)
    made = list(samples(schema, 8, seed=3))
    assert made and all(valid.is_valid(item) for item in made)
    assert made == list(samples(schema, 8, seed=3))
    wrong = list(invalid_samples(schema, made[0]))
    assert all(not valid.is_valid(item) for _, item in wrong)
    assert {name for name, _ in wrong} >= set(schema.get("required", ()))
