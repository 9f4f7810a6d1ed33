"""The warm launcher: what it starts is like a process of ours, and nothing of ours or of other commands is in its reach."""

from __future__ import annotations

import asyncio
import os
import resource
import secrets
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from toolcrib.command.launch.output import BoundedOutput
from toolcrib.command.launch.process import ProcessOutcome, run_process
from toolcrib.command.sandbox import NoSandbox
from toolcrib.command.sandbox.process.warm_launcher import start_warm

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="commands have a supervisor on Linux alone")

GROUP = 54_322
OF_LAUNCHER = 'read -r _ _ _ parent _ < "/proc/$PPID/stat"; echo "$parent"'


def run(script: str, cwd: str = "/", **env: str) -> ProcessOutcome:
    async def work() -> ProcessOutcome:
        given = {"PATH": os.environ["PATH"], **env}
        with NoSandbox().launch(["/bin/sh", "-c", script], cwd=cwd, env=given) as launch:
            return await run_process(
                launch.argv, cwd=cwd, env=launch.env, timeout=20, output=BoundedOutput(10_000),
                pass_fds=launch.pass_fds, on_start=launch.started,
            )  # fmt: skip

    return asyncio.run(work())


def said(script: str, cwd: str = "/", **env: str) -> str:
    return run(script, cwd, **env).output.text().strip()


def launcher() -> int:
    return int(said(OF_LAUNCHER))


def in_fork(work: Callable[[], str]) -> str:
    reading, writing = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            os.write(writing, work().encode())
        finally:
            os._exit(0)
    os.close(writing)
    with os.fdopen(reading) as file:
        text = file.read()
    os.waitpid(pid, 0)
    return text


def gone(pid: int) -> bool:
    deadline = time.monotonic() + 5
    while time.monotonic() < deadline:
        try:
            if Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z":
                return True
        except OSError:
            return True
        time.sleep(0.01)
    return False


@pytest.mark.promise("sandbox.md", "each later one is a fork of it")
def test_one_launcher_starts_all_commands_as_if_this_process_had(tmp_path: Path) -> None:
    first = launcher()
    assert launcher() == first != os.getpid()
    assert (
        said("pwd; echo $A; ls /proc/self/fd | tr '\\n' ' '", str(tmp_path), A="b")
        == f"{tmp_path}\nb\n0 1 2 3"
    )
    assert [run(script).code for script in ("exit 7", "kill -9 $$", "true")] == [7, -9, 0]
    assert "command not found" in said("nothing-of-this-name") or run("nothing-of-this-name").code == 127
    with pytest.raises(FileNotFoundError):
        run("true", str(tmp_path / "missing"))


@pytest.mark.promise("sandbox.md", "It holds nothing of your process's memory, environment or open files")
def test_it_has_nothing_of_this_process_or_of_an_earlier_command() -> None:
    token = secrets.token_hex(16)
    os.environ["OF_THE_APPLICATION"] = token
    try:
        assert said('echo "${#TOKEN} $OF_THE_APPLICATION"', TOKEN=token) == "32"
    finally:
        del os.environ["OF_THE_APPLICATION"]
    pid = launcher()
    if os.geteuid() != 0:
        with pytest.raises(PermissionError):
            Path(f"/proc/{pid}/mem").read_bytes()
        return
    with Path(f"/proc/{pid}/mem").open("rb", buffering=0) as memory:
        for line in Path(f"/proc/{pid}/maps").read_text().splitlines():
            span, rights, *_ = line.split()
            if rights.startswith("rw"):
                begin, end = (int(part, 16) for part in span.split("-"))
                memory.seek(begin)
                assert token.encode() not in memory.read(end - begin), line


@pytest.mark.promise("sandbox.md", "the next command gets a new launcher, which starts with the same")
def test_what_this_process_gives_up_its_later_commands_do_not_have() -> None:
    first = launcher()

    def changed(change: Callable[[], object], script: str) -> str:
        def work() -> str:
            before = launcher()
            change()
            return f"{said(script)} {launcher() != before} {before != first}"

        return in_fork(work)

    lower = lambda: resource.setrlimit(resource.RLIMIT_CPU, (777, 777))  # noqa: E731
    assert changed(lambda: os.umask(0o027), "umask") == "0027 True True"
    assert changed(lower, "ulimit -t") == "777 True True"
    assert changed(lambda: None, "true") == " False True"
    if os.geteuid() == 0:
        assert changed(lambda: os.setgid(GROUP), "id -g") == f"{GROUP} True True"


def test_a_command_gets_a_descriptor_whose_number_is_the_last_one() -> None:
    def work() -> str:
        resource.setrlimit(resource.RLIMIT_NOFILE, (256, resource.getrlimit(resource.RLIMIT_NOFILE)[1]))
        reading, writing = os.pipe()
        os.dup2(writing, 255)

        async def start() -> int:
            script = ["/bin/sh", "-c", "echo there > /proc/self/fd/255"]
            with NoSandbox().launch(script, cwd="/", env={"PATH": os.defpath}) as launch:
                process = await start_warm(
                    launch.argv, cwd="/", env=launch.env, streams=(subprocess.DEVNULL,) * 3,
                    pass_fds=(*launch.pass_fds, 255),
                )  # fmt: skip
                assert process is not None
                return await process.wait()

        code = asyncio.run(start())
        os.write(writing, b"end")
        return f"{code} {os.read(reading, 100).decode()}"

    assert in_fork(work) == "0 there\nend"


def test_threads_with_loops_of_their_own_share_it() -> None:
    outcomes: list[str] = []
    threads = [threading.Thread(target=lambda: outcomes.append(said(OF_LAUNCHER))) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert outcomes == [str(launcher())] * 8


def test_a_launcher_that_was_killed_is_replaced_and_takes_its_commands_with_it() -> None:
    first = launcher()
    os.kill(first, signal.SIGKILL)
    assert gone(first)
    second = launcher()
    assert second != first
    outcome = run(f"{OF_LAUNCHER} >/dev/null; kill -9 $parent; sleep 30")
    assert outcome.seconds < 10 and outcome.code != 0
    assert run("true").code == 0


@pytest.mark.promise("sandbox.md", "and ends with your process")
def test_it_ends_with_the_process_that_started_it(tmp_path: Path) -> None:
    assert gone(int(in_fork(lambda: str(launcher()))))
    here = str(Path(__file__).parents[1])
    script = f"import sys; sys.path.insert(0, {here!r})\nfrom tests.test_warm_launcher import launcher; print(launcher())"
    strict = [sys.executable, "-X", "dev", "-W", "error", "-c", script]
    done = subprocess.run(strict, capture_output=True, text=True, timeout=60, check=True)
    assert done.stderr == "" and gone(int(done.stdout))
