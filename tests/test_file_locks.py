"""A home on a file system that has no locks is told of in words, by whatever needs a lock."""

from __future__ import annotations

import asyncio
import errno
import os
from collections.abc import Callable
from pathlib import Path

import pytest

pytest.importorskip("fcntl")

import fcntl

from tests.cases import each
from toolcrib.errors import ToolcribError
from toolcrib.rules.locked_json import LockedJsonFile
from toolcrib.secrets import SecretError, SecretFile


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
