"""Tools for commands on another host: a plain `sh` in another folder stands for the container."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path
from typing import Any

from toolcrib.tools import Process, ProcessList, ProcessWrite, Shell
from toolcrib.tools.backends import CommandBackend


def backend_elsewhere(
    folder: Path, seen: list[str] | None = None, shell: tuple[str, ...] = ("sh",)
) -> CommandBackend:
    """A backend whose transport is a process of `shell`; `seen` gets every script."""

    async def run(command: str, stdin: bytes) -> tuple[int, bytes, bytes]:
        if seen is not None:
            seen.append(command)
        process = await asyncio.create_subprocess_exec(
            *shell, "-c", command, cwd=folder, stdin=-1, stdout=-1, stderr=-1, start_new_session=True
        )
        try:
            out, err = await process.communicate(stdin)
        except asyncio.CancelledError:
            os.killpg(process.pid, 9)
            await process.wait()
            raise
        return process.returncode or 0, out, err

    return CommandBackend(run)


def commands_elsewhere(folder: Path) -> list[Any]:
    files = backend_elsewhere(folder)
    return [Shell(files), Process(files), ProcessWrite(files), ProcessList(files)]


def commands_with(tag: str) -> list[str]:
    """The ids of the processes with a tag in their command line."""
    found = []
    for path in Path("/proc").iterdir():
        try:
            if path.name.isdigit() and tag.encode() in (path / "cmdline").read_bytes():
                found.append(path.name)
        except OSError:
            continue
    return found
