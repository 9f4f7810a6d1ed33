# ruff: noqa: PTH100, PTH120, PTH123 - paths are text and descriptors here
"""What stands between a start and a command that has to confine itself: `python -I -S launcher.py FD`.

FD holds a plan (see `plan`). Everything that needs a fork and more happens here, in a small process of its own,
and not in the threads of an application. Exit code 125 is the launcher's own: the command was not started.
"""

from __future__ import annotations

import marshal
import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, NoReturn

FAILED = 125
NOT_EXECUTABLE, NOT_FOUND = 126, 127
PORT = 3128  # of the egress proxy, in a network namespace where nobody else listens


def main(fd: int) -> NoReturn:
    with open(fd, "rb") as file:
        plan: dict[str, Any] = marshal.loads(file.read())
    try:
        for path in plan["groups"]:
            with open(path, "w") as file:
                file.write("0")
        if plan["hand_over"] is not None:
            hand_over_a_listener(plan["hand_over"])
        if plan["supervised"]:
            _end(_supervised(plan))
        become(plan)
    except OSError as problem:
        _fail(f"the sandbox could not be set up: {problem}")


def _supervised(plan: dict[str, Any]) -> int:
    from toolcrib.command.sandbox.supervise import supervise

    return supervise(lambda: become(plan), memory=plan["together"], processes=plan["processes"])


def become(plan: dict[str, Any]) -> NoReturn:
    """Confine this process, then be the command."""
    try:
        _confine(plan)
    except OSError as problem:
        _fail(f"the sandbox could not be set up: {problem}")
    argv: list[str] = plan["exec"]
    _as_signals_are_at_first()
    try:
        os.execvpe(argv[0], argv, {**os.environ, **plan["env"]})
    except FileNotFoundError:
        _fail(f"{argv[0]}: command not found", NOT_FOUND)
    except OSError as problem:
        _fail(f"{argv[0]}: {problem.strerror}", NOT_EXECUTABLE)


def _as_signals_are_at_first() -> None:
    """Python ignores these, and a command would inherit that: `yes | head` would complain."""
    import _signal as signal  # type: ignore[import-not-found] # pyright: ignore[reportMissingImports]

    for number in (signal.SIGPIPE, signal.SIGXFSZ):
        signal.signal(number, signal.SIG_DFL)


def _confine(plan: dict[str, Any]) -> None:
    from toolcrib.command.sandbox import kernel

    if plan["limits"]:
        import resource

        for kind, value in plan["limits"]:
            hard = resource.getrlimit(kind)[1]
            bound = value if hard == resource.RLIM_INFINITY else min(value, hard)
            resource.setrlimit(kind, (bound, bound))
    kernel.no_new_privileges()
    if os.geteuid() == 0 and plan["capabilities"]:
        kernel.drop_capabilities()
    if plan["landlock"] is not None:
        kernel.landlock(*plan["landlock"])
    if plan["filter"] is not None:
        kernel.apply_filter(plan["filter"])


def hand_over_a_listener(fd: int) -> None:
    """Listen here, where the command is, and let the other end of `fd` serve it."""
    import socket

    listener = socket.create_server(("127.0.0.1", PORT), backlog=64)
    with socket.socket(fileno=fd) as channel:
        socket.send_fds(channel, [b"l"], [listener.fileno()])
        channel.recv(1)  # until somebody serves
    listener.close()


def _end(code: int) -> NoReturn:
    if code < 0:
        import _signal as signal  # pyright: ignore[reportMissingImports]

        if -code not in (signal.SIGKILL, signal.SIGSTOP):
            signal.signal(-code, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_SETMASK, ())
        os.kill(os.getpid(), -code)
    os._exit(code if code >= 0 else 128 - code)


def _fail(words: str, code: int = FAILED) -> NoReturn:
    os.write(2, f"toolcrib: {words}\n".encode())
    os._exit(code)


def _find_siblings() -> None:
    """Make our own modules importable, without running what their packages load."""
    from types import ModuleType

    here = os.path.dirname(os.path.abspath(__file__))
    above = os.path.dirname(here)
    folders = {
        "toolcrib": os.path.dirname(above),
        "toolcrib.command": above,
        "toolcrib.command.sandbox": here,
    }
    for name, folder in folders.items():
        package = ModuleType(name)
        package.__path__ = [folder]
        sys.modules[name] = package


if __name__ == "__main__":
    _find_siblings()
    main(int(sys.argv[1]))
