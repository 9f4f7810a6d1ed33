"""The shell tool in a sandbox: confined by construction, honest with the model and with the person."""

from __future__ import annotations

import asyncio
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.sandbox_runs import BACKENDS, backend
from toolcrib import Toolbox
from toolcrib.command.sandbox import NoSandbox, Sandbox, choose
from toolcrib.context import Context
from toolcrib.errors import ToolError
from toolcrib.tools import Shell, ShellParams, Workspace


class Listener:
    def __init__(self) -> None:
        self.told: list[dict[str, Any]] = []

    def report(self, ctx: Context[Any], named: dict[str, Any]) -> None:
        self.told.append(named)

    def remembered_approvals(self, ctx: Context[Any]) -> list[Any]:
        return []

    async def ask(self, ctx: Context[Any], action: str, patterns: tuple[str, ...], **more: Any) -> None:
        raise ToolError(f"Nobody could be asked: {action}.")


def as_tuple() -> str:
    """The command lines of all processes."""
    return subprocess.run(["ps", "-eo", "args"], capture_output=True, text=True, check=True).stdout


def descriptors() -> int:
    return sum(1 for _ in Path("/proc/self/fd").iterdir())


@pytest.fixture
def ws(tmp_path: Path) -> Workspace:
    (tmp_path / "ws").mkdir()
    return Workspace(tmp_path / "ws")


@pytest.fixture(params=list(BACKENDS))
def sandbox(request: pytest.FixtureRequest, ws: Workspace) -> Sandbox:
    made: Sandbox = backend(request.param)(ws.root.path)
    return made


async def sh(ws: Workspace, sandbox: Sandbox | None, command: str, ctx: Any = None, **named: Any) -> str:
    shell = Shell(ws, grace=0.3, sandbox=sandbox)
    return (await shell.execute(ShellParams(command=command, **named), ctx or Context())).text


async def test_it_is_confined_without_being_told_to(ws: Workspace, tmp_path: Path) -> None:
    backend("landlock")
    await sh(ws, None, f"echo x >inside; echo x >{tmp_path}/outside")
    assert (tmp_path / "ws" / "inside").exists() and not (tmp_path / "outside").exists()


async def test_a_refusal_is_told_to_the_model_and_offered_to_the_person(
    ws: Workspace, sandbox: Sandbox
) -> None:
    listener = Listener()
    ctx: Context[Any] = Context(host=listener)  # type: ignore[arg-type]
    got = await sh(
        ws, sandbox, "echo x >.envrc; echo 'curl: (6) Could not resolve host: a.example'; exit 6", ctx
    )
    assert "[sandbox: The sandbox allows no connection to a.example." in got and "exit code 6" in got
    assert "Nobody could be asked: let commands " in got
    last = listener.told[-1]
    assert last["result"]["refused"] == {
        "kind": "network",
        "target": "a.example",
        "wider": "allow the host a.example",
    }
    assert "a.example" in last["tip"]


async def test_an_ordinary_failure_stays_one(ws: Workspace, sandbox: Sandbox) -> None:
    got = await sh(ws, sandbox, "echo no; exit 3")
    assert "sandbox" not in got and "exit code 3" in got


async def test_no_path_of_the_machine_is_told(ws: Workspace, sandbox: Sandbox) -> None:
    got = await sh(ws, sandbox, "mkdir -p .vscode && echo x > .vscode/tasks.json")
    assert ".vscode" in got and ws.root.path not in got.partition("[sandbox")[2]


async def test_it_runs_where_it_is_told(ws: Workspace, sandbox: Sandbox) -> None:
    (Path(ws.root.path) / "sub").mkdir()
    assert await sh(ws, sandbox, "pwd", workdir="sub") == f"{ws.root.path}/sub"


async def test_what_detached_itself_ends_all_the_same(ws: Workspace, sandbox: Sandbox) -> None:
    assert await sh(ws, sandbox, "setsid sleep 314.15926 >/dev/null 2>&1 & echo up") == "up"
    assert "314.15926" not in as_tuple()


@pytest.mark.parametrize(
    "command",
    [
        "sleep 299.79",
        "trap '' TERM; while :; do sleep 299.79; done",
        "(env -i setsid setsid /bin/sleep 299.79 >/dev/null 2>&1 &); sleep 299.79",
        "sh -c \"trap '' TERM; setsid env -i /bin/sleep 299.79\" >/dev/null 2>&1 & wait",
    ],
)
@pytest.mark.parametrize("moment", [0.0, 0.02, 0.05, 0.3])
async def test_a_cancel_at_any_moment_leaves_nothing(
    ws: Workspace, sandbox: Sandbox, command: str, moment: float
) -> None:
    task = asyncio.create_task(sh(ws, sandbox, command))
    await asyncio.sleep(moment)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    for _ in range(200):
        if "299.79" not in as_tuple():
            return
        await asyncio.sleep(0.02)
    raise AssertionError(as_tuple())


async def test_a_timeout_says_what_the_sandbox_did(ws: Workspace, sandbox: Sandbox) -> None:
    with pytest.raises(ToolError, match=r"longer than 1 second\b"):
        await sh(ws, sandbox, "sleep 20", timeout=1)


async def test_a_level_that_cannot_be_kept_starts_nothing(ws: Workspace) -> None:
    class Refusing(NoSandbox):
        def launch(self, *given: Any, **named: Any) -> Any:
            from toolcrib.command.sandbox import SandboxError

            raise SandboxError("bwrap is not installed")

    with pytest.raises(ToolError, match="could not be confined: bwrap is not installed"):
        await sh(ws, Refusing(), "echo x >file")
    assert not (Path(ws.root.path) / "file").exists()


@pytest.mark.promise("sandbox.md", "each command of the shell tool asks")
async def test_where_no_sandbox_works_each_command_asks(ws: Workspace) -> None:
    unwanted = choose(ws.root.path, order=[])
    with pytest.raises(ToolError, match="needs a toolbox"):
        await sh(ws, unwanted, "echo x >file")
    box = Toolbox([Shell(ws, sandbox=unwanted)])
    refused = await box.call("shell", {"command": "echo x >file"})
    assert refused.is_error and not (Path(ws.root.path) / "file").exists()
    assert await sh(ws, NoSandbox(), "echo x") == "x"


@pytest.fixture
def hooked(ws: Workspace) -> Path:
    root = Path(ws.root.path)
    subprocess.run(["git", "init", "-q", str(root)], check=True)
    hook = root / ".git" / "hooks" / "pre-commit"
    hook.write_text("#!/bin/sh\ntouch ran\n")
    hook.chmod(0o755)
    return root


async def test_git_obeys_no_hook_of_the_repository(ws: Workspace, hooked: Path, sandbox: Sandbox) -> None:
    got = await sh(
        ws, sandbox, "git -c user.name=x -c user.email=x@x commit -q --allow-empty -m x; git log --oneline"
    )
    assert got.endswith(" x") and not (hooked / "ran").exists()


async def test_descriptors_are_given_back(ws: Workspace, sandbox: Sandbox) -> None:
    await sh(ws, sandbox, "ls")
    before = descriptors()
    for command in ("ls", "true", "exit 1", "sleep 5 & true"):
        await sh(ws, sandbox, command)
    assert descriptors() <= before


async def test_both_ends_of_a_process_substitution_are_confined_and_ended(
    ws: Workspace, sandbox: Sandbox
) -> None:
    Path(ws.root.path, "a.txt").write_text("b\na\n")  # noqa: ASYNC240
    assert await sh(ws, sandbox, "comm -12 <(sort a.txt) <(echo b; cat <(echo c))") == "b"
    before = descriptors()
    with pytest.raises(ToolError, match=r"longer than 1 second\b"):
        await sh(ws, sandbox, "cat <(sleep 71.5)", timeout=1)
    assert "sleep 71.5" not in as_tuple()
    assert descriptors() <= before
