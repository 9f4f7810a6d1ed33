"""A home on a file system that has no locks is told of in words, by whatever needs a lock."""

from __future__ import annotations

import asyncio
import errno
import os
import signal
from collections.abc import AsyncGenerator, Callable, Generator
from contextlib import ExitStack, asynccontextmanager, contextmanager
from pathlib import Path

import pytest

pytest.importorskip("fcntl")

import fcntl

from tests.cases import each
from toolcrib.errors import ToolcribError
from toolcrib.private_files import lock
from toolcrib.rules.locked_json import LockedJsonFile
from toolcrib.secrets import SecretError, SecretFile
from toolcrib.tools.change_journal import ChangeJournal


def change_a_secret(folder: Path) -> None:
    SecretFile(folder / "secrets.json").set("KEY", "value")


def change_a_list(folder: Path) -> None:
    with LockedJsonFile(folder / "approvals.json", "approvals").changing():
        raise AssertionError("nobody holds a lock")


def use_a_login(folder: Path) -> None:
    from toolcrib.mcp.client.oauth import LoginStore

    async def use() -> None:
        async with LoginStore(SecretFile(folder / "logins.json"), locks=folder).locked("login"):
            raise AssertionError("nobody holds a lock")

    asyncio.run(use())


@each("use", [change_a_secret, change_a_list, use_a_login])
def test_without_locks_an_error_of_ours_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, use: Callable[[Path], None]
) -> None:
    def refuse(fd: int, operation: int) -> None:
        raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))

    with monkeypatch.context() as patched:
        patched.setattr(fcntl, "flock", refuse)
        with pytest.raises((ToolcribError, SecretError), match="No locks available"):
            use(tmp_path)


@contextmanager
def a_forked_process() -> Generator[None]:
    """Forks a process that has all open descriptors, and does nothing with them."""
    pid = os.fork()
    if not pid:
        try:
            signal.pause()
        finally:
            os._exit(0)
    try:
        yield
    finally:
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)


@asynccontextmanager
async def held(kind: str, folder: Path) -> AsyncGenerator[None]:
    """The lock of a file of ours; each waits for it with a new descriptor."""
    if kind == "login":
        from toolcrib.mcp.client.oauth import LoginStore

        async with LoginStore(SecretFile(folder / "logins.json"), locks=folder).locked("login"):
            yield
    elif kind == "list":
        with LockedJsonFile(folder / "approvals.json", "approvals").changing():
            yield
    else:
        with ChangeJournal(str(folder)).exclusively() as exclusive:
            assert exclusive
            yield


@each(
    "kind, name", [("login", "login"), ("list", ".approvals.json.lock"), ("journal", "toolcrib/changes/lock")]
)
async def test_a_lock_is_free_once_it_is_released_also_beside_a_process_forked_meanwhile(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str, name: str
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    with ExitStack() as forked:
        async with held(kind, tmp_path):
            forked.enter_context(a_forked_process())
        fd = os.open(tmp_path / name, os.O_RDWR)
        forked.callback(os.close, fd)
        assert lock(fd, wait=False)
