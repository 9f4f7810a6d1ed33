"""Tries whether a back end does what it promises on this machine: runs a program that tries to get out of it.

The program tries only things that belong to the trial: its own folders, its own listeners on loopback. What counts is
what became of those outside, not what the program prints.
"""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path

from toolcrib.command.sandbox.environment import environment
from toolcrib.command.sandbox.interface import Sandbox
from toolcrib.command.sandbox.lease import ScratchFolder
from toolcrib.command.sandbox.level import SandboxError

MAX_SECONDS = 20.0  # for the trial: a loaded machine is slow, not broken
SECRET = "canary-of-the-sandbox"
PROGRAM = r"""
import os, socket, sys
ws, outside, secret, port = sys.argv[1:]
def attempt(step):
    try:
        step()
    except Exception:
        pass
def write(path, text):
    with open(path, "w") as file:
        file.write(text)
def connect(family, address):
    with socket.socket(family) as made:
        made.settimeout(2)
        made.connect(address)
attempt(lambda: write(ws + "/inside", "x"))
attempt(lambda: write(outside + "/written", "x"))
attempt(lambda: write(ws + "/leaked", open(secret).read()))
attempt(lambda: write(ws + "/.envrc", "x"))
attempt(lambda: connect(socket.AF_INET, ("127.0.0.1", int(port))))
attempt(lambda: connect(socket.AF_UNIX, ws + "/daemon"))
"""


def probe(make: Callable[[str, str], Sandbox]) -> list[str]:
    """The problems of a back end, in words: everything that it let through or broke; empty if it holds.

    `make` takes a workspace and a home folder, and gives a sandbox that may write to the workspace, without a network.
    """
    scratch = ScratchFolder()
    try:
        base = Path(scratch.path())
        workspace, outside, home = base / "ws", base / "outside", base / "home"
        for folder in (workspace, outside, home / ".ssh"):
            folder.mkdir(parents=True)
        secret = home / ".ssh" / "id_trial"
        secret.write_text(SECRET)
        with _listening(workspace / "daemon") as (port, connected):
            try:
                problem = _run(
                    make(str(workspace), str(home)), [str(workspace), str(outside), str(secret), str(port)]
                )
            except (OSError, SandboxError, subprocess.SubprocessError) as failed:
                problem = str(failed)
            met = connected()
        if problem:
            return [problem]
        leaked = workspace / "leaked"
        found = {
            "a command could not write in the workspace": not (workspace / "inside").exists(),
            "a command wrote outside the workspace": (outside / "written").exists(),
            "a command read a secret": leaked.exists() and SECRET in leaked.read_text(),
            "a command changed a protected file": (workspace / ".envrc").is_file(),
            "a command reached a service of this machine": "tcp" in met,
            "a command reached the socket of a daemon": "unix" in met,
        }
        return [words for words, happened in found.items() if happened]
    finally:
        scratch.close()


def _run(sandbox: Sandbox, arguments: list[str]) -> str:
    """Runs the program; returns what it printed if it could not be started."""
    with sandbox.launch(
        [sys.executable, "-I", "-S", "-c", PROGRAM, *arguments], cwd=arguments[0], env=environment(os.environ)
    ) as launch:
        with subprocess.Popen(
            launch.argv,
            env=launch.env,
            cwd=launch.cwd,
            pass_fds=launch.pass_fds,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        ) as process:
            launch.started()
            try:
                said = process.communicate(timeout=MAX_SECONDS)[0].decode("utf-8", "replace").strip()
            except subprocess.TimeoutExpired:
                process.kill()
                return "it did not end in time"
        return (said or f"exit code {process.returncode}") if process.returncode else ""


@contextmanager
def _listening(path: Path) -> Generator[tuple[int, Callable[[], set[str]]]]:
    """Listens on a TCP port and on a unix socket; gives the port, and a function that says which got a connection."""
    with socket.create_server(("127.0.0.1", 0)) as tcp, socket.socket(socket.AF_UNIX) as unix:
        unix.bind(str(path))
        unix.listen()

        def connected() -> set[str]:
            met: set[str] = set()
            for name, listener in (("tcp", tcp), ("unix", unix)):
                listener.setblocking(False)
                try:
                    listener.accept()[0].close()
                except OSError:
                    continue
                met.add(name)
            return met

        yield tcp.getsockname()[1], connected
