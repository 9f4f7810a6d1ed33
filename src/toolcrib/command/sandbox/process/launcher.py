"""The launcher: a small process that confines itself and then becomes the command. `python -I -S start.py FD`.

FD holds the `Instructions`. Whatever has to happen between fork and exec happens here, in a process of its own, and not
in an application that has threads. Exit code 125 is the launcher's own and means that the command was not started.
"""

from __future__ import annotations

import marshal
import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, NoReturn

FAILED = 125
NOT_EXECUTABLE, NOT_FOUND = 126, 127
PORT = 3128  # of the egress proxy, in a network namespace where nobody else listens


def main(fd: int) -> NoReturn:
    with open(fd, "rb") as file:
        given: dict[str, Any] = marshal.loads(file.read())
    try:
        for path in given["groups"]:
            with open(path, "w") as file:
                file.write("0")
        if given["hand_over"] is not None:
            hand_over_a_listener(given["hand_over"])
        if given["supervised"]:
            _end(_supervised(given))
        become(given)
    except OSError as problem:
        fail(f"the sandbox could not be set up: {problem}")


def _supervised(given: dict[str, Any]) -> int:
    from toolcrib.command.sandbox.process.supervise import supervise

    if given["application"] is not None:
        os.set_inheritable(given["application"], False)
    mounted: tuple[int, int] | None = None
    if given["mounts"]:
        from toolcrib.command.sandbox.process.mounted import PIPE, full_pipe

        mounted = full_pipe()
        given["exec"] = [str(mounted[0]) if word == PIPE else word for word in given["exec"]]
    return supervise(
        lambda: become(given),
        application=given["application"],
        memory=given["together"],
        processes=given["processes"],
        spare_detached=given["spare_detached"],
        mounted=mounted,
        mounts=given["mounts"],
    )


def become(given: dict[str, Any]) -> NoReturn:
    """Confines this process, then executes the command in it."""
    try:
        _confine(given)
    except OSError as problem:
        fail(f"the sandbox could not be set up: {problem}")
    argv: list[str] = given["exec"]
    _default_signals()
    try:
        os.execvpe(argv[0], argv, {**os.environ, **given["env"]})
    except FileNotFoundError:
        fail(f"{argv[0]}: command not found", NOT_FOUND)
    except OSError as problem:
        fail(f"{argv[0]}: {problem.strerror}", NOT_EXECUTABLE)


def _default_signals() -> None:
    """Restores signals that Python ignores, since a command would inherit that: `yes | head` would complain."""
    import _signal as signal  # type: ignore[import-not-found] # pyright: ignore[reportMissingImports]

    for number in (signal.SIGPIPE, signal.SIGXFSZ):
        signal.signal(number, signal.SIG_DFL)


def _confine(given: dict[str, Any]) -> None:
    from toolcrib.command.sandbox.process import kernel

    if given["limits"]:
        import resource

        for kind, value in given["limits"]:
            hard = resource.getrlimit(kind)[1]
            bound = value if hard == resource.RLIM_INFINITY else min(value, hard)
            resource.setrlimit(kind, (bound, bound))
    if given["landlock"] is None and given["filter"] is None:
        return  # the program confines itself, as a set-user-ID bwrap does, or runs unconfined
    kernel.no_new_privileges()
    if os.geteuid() == 0 and given["capabilities"]:
        kernel.drop_capabilities()
    if given["landlock"] is not None:
        kernel.landlock(*given["landlock"])
    if given["filter"] is not None:
        kernel.apply_filter(given["filter"])


def hand_over_a_listener(fd: int) -> None:
    """Listens in the command's network namespace, and sends the listener to the other end of `fd`, which serves it."""
    import socket

    listener = socket.create_server(("127.0.0.1", PORT), backlog=64)
    with socket.socket(fileno=fd) as channel:
        socket.send_fds(channel, [b"l"], [listener.fileno()])
        channel.recv(1)  # until the other end serves it
    listener.close()


def _end(code: int) -> NoReturn:
    if code < 0:
        import _signal as signal  # pyright: ignore[reportMissingImports]

        if -code not in (signal.SIGKILL, signal.SIGSTOP):
            signal.signal(-code, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_SETMASK, ())
        os.kill(os.getpid(), -code)
    os._exit(code if code >= 0 else 128 - code)


def fail(words: str, code: int = FAILED) -> NoReturn:
    os.write(2, f"toolcrib: {words}\n".encode())
    os._exit(code)
