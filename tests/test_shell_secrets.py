"""Secrets in shell commands: variables of the command's environment, masked in all that comes back."""

from __future__ import annotations

import base64
from pathlib import Path
from typing import Any

import pytest

from tests.sandbox_runs import BACKENDS, backend
from toolcrib import Toolbox
from toolcrib.audit import AuditLog
from toolcrib.call import ToolCall
from toolcrib.command.sandbox import NoSandbox, Sandbox
from toolcrib.context import Context
from toolcrib.errors import ErrorCode, ToolError
from toolcrib.question import Answer, Question, Verdict
from toolcrib.secrets import Environment
from toolcrib.sink import EventLog
from toolcrib.tools import Shell, ShellParams, Workspace
from toolcrib.visible import escape_invisible

VALUE = 'corr\'ect "horse" $42; touch injected'
STORE = Environment(["API_KEY"], environ={"API_KEY": VALUE})
USES = "printf %s <secret_ref:API_KEY>"


@pytest.fixture(params=[*BACKENDS, "none"])
def sandbox(request: pytest.FixtureRequest, tmp_path: Path) -> Sandbox:
    if request.param == "none":
        return NoSandbox()
    made: Sandbox = backend(request.param)(tmp_path)
    return made


def box_of(tmp_path: Path, sandbox: Sandbox, **options: Any) -> Toolbox:
    options.setdefault("autonomy", "full")
    return Toolbox([Shell(Workspace(tmp_path), sandbox=sandbox)], secrets=STORE, **options)


@pytest.mark.parametrize("quotes", ["{}", "'{}'", '"{}"'])
def test_the_value_reaches_the_command_and_changes_nothing_of_it(
    tmp_path: Path, sandbox: Sandbox, quotes: str
) -> None:
    command = f"printf %s {quotes.format('<secret_ref:API_KEY>')} > got"
    box_of(tmp_path, sandbox).call_sync("shell", {"command": command})
    assert (tmp_path / "got").read_text() == VALUE and not (tmp_path / "injected").exists()


def test_no_command_line_holds_the_value(tmp_path: Path, sandbox: Sandbox) -> None:
    """Of the command itself, of the shell that runs it, and of what a sandbox puts around it."""
    command = (
        f"{USES} >/dev/null; cat /proc/self/cmdline /proc/$$/cmdline > argv; cat /proc/*/cmdline >> argv"
    )
    box_of(tmp_path, sandbox).call_sync("shell", {"command": command})
    assert b"horse" not in (tmp_path / "argv").read_bytes()


def test_it_asks_although_its_program_is_harmless(tmp_path: Path) -> None:
    asked: list[Question] = []

    async def approver(question: Question) -> Answer:
        asked.append(question)
        return Answer(Verdict.NO)

    made = backend("bubblewrap")(tmp_path)
    box = box_of(tmp_path, made, autonomy="supervised", approver=approver)
    assert box.call_sync("shell", {"command": "printf %s x"}).text == "x"
    assert asked == []
    for command in (USES, "echo '<secret_ref:API_KEY>'", 'cat "<secret_ref:API_KEY>"'):
        assert box.call_sync("shell", {"command": command}).code is ErrorCode.REJECTED
    (first, *_) = asked
    assert len(asked) == 3 and "<secret_ref:API_KEY>" in first.arguments["command"]
    assert all("horse" not in escape_invisible(str(question.to_dict())) for question in asked)


def test_nobody_is_shown_the_value(tmp_path: Path, sandbox: Sandbox) -> None:
    log, audit = EventLog(), AuditLog(tmp_path / "audit" / "log.jsonl", key=b"k" * 32)
    box = box_of(tmp_path, sandbox, audit=audit)
    box.subscribe(log)
    result = box.call_sync("shell", {"command": f"{USES}; {USES} | base64 -w0; {USES} | xxd -p"})
    everything = f"{result.to_dict()} {log.events} {(tmp_path / 'audit' / 'log.jsonl').read_text()}"
    assert "horse" not in everything and base64.b64encode(VALUE.encode()).decode() not in everything
    assert "<secret_ref:API_KEY>" in everything and "[secret API_KEY]" in result.text


@pytest.mark.parametrize(
    ("command", "words"),
    [
        ("echo <secret_ref:OTHER>", "no secret named 'OTHER'. Known names: API_KEY"),
        ("echo <secret_ref:>", "is not a reference to a secret"),
        ("cat <<END\n<secret_ref:API_KEY>\nEND", "a secret cannot follow <<"),
    ],
)
def test_what_cannot_be_given_is_refused_before_anything_runs(
    tmp_path: Path, command: str, words: str
) -> None:
    result = box_of(tmp_path, NoSandbox()).call_sync("shell", {"command": f"touch ran; {command}"})
    assert result.is_error and words in result.text and not (tmp_path / "ran").exists()


def test_without_a_store_there_are_no_secrets(tmp_path: Path) -> None:
    box = Toolbox([Shell(Workspace(tmp_path), sandbox=NoSandbox())], autonomy="full")
    assert "Known names: none" in box.call_sync("shell", {"command": USES}).text


async def test_without_a_box_there_is_no_value(tmp_path: Path) -> None:
    with pytest.raises(ToolError, match="'API_KEY' has no value here"):
        await Shell(Workspace(tmp_path), sandbox=NoSandbox()).execute(
            ShellParams(command=USES, timeout=9, workdir="."), Context()
        )


async def test_what_will_run_holds_no_value_until_it_runs(tmp_path: Path) -> None:
    box = box_of(tmp_path, NoSandbox())
    prepared = await box.prepare(ToolCall("shell", {"command": USES}))
    await box.execute(prepared)
    assert "horse" not in f"{prepared.arguments!r} {prepared.params!r}"  # type: ignore[union-attr]
