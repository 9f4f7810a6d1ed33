"""The command line in a copy of this process: as separate as a new process, without importing everything again.

`toolcrib(folder, "tools", "list")` is `python -m toolcrib tools list`: a folder, an environment, streams, signals and
an exit code of its own. What depends on how Python starts (import order, closed streams) starts a real one.
"""

from __future__ import annotations

import atexit
import gc
import importlib
import io
import logging
import os
import pkgutil
import select
import signal
import subprocess
import sys
import tempfile
import threading
import traceback
import warnings
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any, NoReturn

ROOT = str(Path(__file__).parents[1])
SECONDS = 60  # what a command may take


def toolcrib(
    folder: Path | str,
    *arguments: str,
    stdin: str = "",
    env: Mapping[str, str] | None = None,
    as_on_terminal: bool = False,
    **variables: str,
) -> subprocess.CompletedProcess[str]:
    """Runs a command to its end. Without `env` it has this environment, less keys and settings of a person.

    As on a terminal, both streams are one: `stdout`.
    """
    clean = {k: v for k, v in os.environ.items() if not k.startswith(("TOOLCRIB_", "OPENAI_", "ANTHROPIC_"))}
    given = stdin.encode()
    assert len(given) <= select.PIPE_BUF, "a pipe takes no more before somebody reads"
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        reading, writing = os.pipe()
        os.write(writing, given)
        os.close(writing)
        environment = {**(clean if env is None else env), **variables}
        try:
            stderr = out if as_on_terminal else err
            if as_on_terminal:
                environment["PYTHONUNBUFFERED"] = "1"
            child = Child(arguments, folder, environment, reading, out.fileno(), stderr.fileno())
        finally:
            os.close(reading)
        code = child.wait(SECONDS)
        texts = []
        for stream in (out, err):
            stream.seek(0)
            texts.append(io.TextIOWrapper(io.BytesIO(stream.read()), "utf-8").read())
    return subprocess.CompletedProcess(["toolcrib", *arguments], code, *texts)


class Child:
    """A command that runs, with these descriptors as its standard streams."""

    def __init__(
        self,
        arguments: tuple[str, ...],
        folder: Path | str,
        env: Mapping[str, str],
        stdin: int,
        stdout: int,
        stderr: int,
        *,
        new_session: bool = False,
    ) -> None:
        if sys.platform != "linux":  # elsewhere the libraries of the system do not outlive a fork
            command = [sys.executable, "-m", "toolcrib", *arguments]
            self._process: Any = subprocess.Popen(
                command, cwd=folder, env=env, stdin=stdin, stdout=stdout, stderr=stderr,
                start_new_session=new_session,
            )  # fmt: skip
            self.pid = self._process.pid
            return
        _preload()
        sys.stdout.flush()
        sys.stderr.flush()
        self._process = None
        self._code: int | None = None
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)  # Python 3.12 warns of threads of xdist's
            self.pid = os.fork()
        if not self.pid:
            try:
                _begin(arguments, folder, env, (stdin, stdout, stderr), new_session)
            finally:
                os._exit(70)

    def poll(self) -> int | None:
        if self._process:
            return self._process.poll()
        if self._code is None:
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            self._code = os.waitstatus_to_exitcode(status) if pid else None
        return self._code

    def wait(self, seconds: float) -> int:
        if self._process:
            return self._process.wait(seconds)
        if self.poll() is None:
            ended = os.pidfd_open(self.pid)
            try:
                if not select.select([ended], [], [], seconds)[0]:
                    self.kill()
                    raise subprocess.TimeoutExpired("toolcrib", seconds)
            finally:
                os.close(ended)
            self._code = os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])
        code = self._code
        assert code is not None
        return code

    def send_signal(self, number: int) -> None:
        if self.poll() is None:
            os.kill(self.pid, number)

    def terminate(self) -> None:
        self.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)


@cache
def _preload() -> None:
    """Imports here what every command would import again in its copy."""
    import toolcrib.cli
    import toolcrib.models
    import toolcrib.tools

    for found in pkgutil.walk_packages(toolcrib.cli.__path__, "toolcrib.cli."):
        importlib.import_module(found.name)
    for name in (
        "toolcrib.assembly",
        "toolcrib.audit",
        "toolcrib.secrets",
        "toolcrib.models.scripted",
        "rich.live",
    ):
        importlib.import_module(name)


def _begin(
    arguments: tuple[str, ...],
    folder: Path | str,
    env: Mapping[str, str],
    streams: tuple[int, int, int],
    new_session: bool,
) -> NoReturn:
    """In the copy: leave nothing of the tests about, and do what Python does with `-m toolcrib`."""
    gc.disable()
    gc.freeze()
    if new_session:
        os.setsid()
    signal.set_wakeup_fd(-1)
    for number, handler in ((signal.SIGINT, signal.default_int_handler), (signal.SIGTERM, signal.SIG_DFL)):
        signal.signal(number, handler)
    atexit._clear()
    own = [os.dup(stream) for stream in streams]  # above the standard ones, so that none overwrites another
    for number, stream in enumerate(own):
        os.dup2(stream, number)
    os.closerange(3, os.sysconf("SC_OPEN_MAX") if os.sysconf("SC_OPEN_MAX") < 65_536 else 65_536)
    sys.stdin = sys.__stdin__ = open(0, encoding="utf-8")  # noqa: SIM115 - all three, until the copy ends
    lines = 1 if env.get("PYTHONUNBUFFERED") else -1
    sys.stdout = sys.__stdout__ = open(1, "w", encoding="utf-8", buffering=lines)  # noqa: SIM115
    sys.stderr = sys.__stderr__ = open(2, "w", encoding="utf-8", errors="backslashreplace", buffering=1)  # noqa: SIM115
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(env)
    tempfile.tempdir = None
    importlib.reload(warnings)
    warnings.resetwarnings()
    for category in (DeprecationWarning, PendingDeprecationWarning, ImportWarning, ResourceWarning):
        warnings.simplefilter("ignore", category)
    logging.root.handlers.clear()
    logging.getLogger("toolcrib").handlers.clear()
    sys.excepthook, sys.unraisablehook = sys.__excepthook__, sys.__unraisablehook__
    threading.excepthook = threading.__excepthook__
    sys.meta_path[:] = [
        finder for finder in sys.meta_path if not type(finder).__module__.startswith("_pytest")
    ]
    added = [path for path in env.get("PYTHONPATH", "").split(os.pathsep) if path]
    sys.path[:] = [*added, *(path for path in sys.path if path not in ("", ROOT, *added))]
    sys.argv = ["toolcrib", *arguments]
    gc.enable()
    code = 1
    try:
        from toolcrib.cli import main

        code = main()
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else 0 if end.code is None else 1
    except BaseException:
        traceback.print_exc()
    try:
        threading._shutdown()  # type: ignore[attr-defined]
        atexit._run_exitfuncs()
        sys.stdout.flush()
        sys.stderr.flush()
    finally:
        os._exit(code)
