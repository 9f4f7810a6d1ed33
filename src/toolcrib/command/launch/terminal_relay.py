"""Runs its arguments as a command in a terminal of its own, and relays input and output.

It runs inside of a sandbox, in an interpreter without site packages, so it imports the standard library alone. When the
input ends it types Ctrl-D once. It ends as the command ended, by the same signal if it was one.
"""

from __future__ import annotations

import errno
import os
import select
import sys

ROWS, COLUMNS = 24, 100
CHUNK = 65_536
END_OF_INPUT = b"\x04"


def main() -> None:
    if sys.platform == "win32":
        return
    import fcntl
    import pty
    import signal
    import struct
    import termios

    pid, terminal = pty.fork()
    if pid == 0:
        # Here, and not by the parent: the command may ask for it at once.
        fcntl.ioctl(0, termios.TIOCSWINSZ, struct.pack("HHHH", ROWS, COLUMNS, 0, 0))
        for interrupt in (signal.SIGINT, signal.SIGQUIT):  # ignored by what a shell starts in the background
            signal.signal(interrupt, signal.SIG_DFL)
        try:
            os.execvp(sys.argv[1], sys.argv[1:])
        except OSError as problem:
            os.write(2, f"{sys.argv[1]}: {problem.strerror}\n".encode())
        os._exit(127)
    for ending in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(ending, lambda got, _: os.kill(pid, got))
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    relay(terminal)
    _, status = os.waitpid(pid, 0)
    if os.WIFSIGNALED(status):
        ended_by = os.WTERMSIG(status)
        if ended_by in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT):
            signal.signal(ended_by, signal.SIG_DFL)
        os.kill(os.getpid(), ended_by)
    os._exit(os.waitstatus_to_exitcode(status) if os.WIFEXITED(status) else 1)


def relay(terminal: int) -> None:
    """Relays until nothing holds the terminal any more."""
    typed = b""
    reading = True
    while True:
        sources = [terminal, 0] if reading and not typed else [terminal]
        readable, writable, _ = select.select(sources, [terminal] if typed else [], [])
        if terminal in readable:
            try:
                data = os.read(terminal, CHUNK)
            except OSError as problem:
                if problem.errno != errno.EIO:
                    raise
                return
            if not data:
                return
            written(1, data)
        if 0 in readable:
            typed = os.read(0, 1024)
            if not typed:
                reading, typed = False, END_OF_INPUT
        if terminal in writable:
            typed = typed[os.write(terminal, typed) :]


def written(fd: int, data: bytes) -> None:
    while data:
        try:
            data = data[os.write(fd, data) :]
        except BrokenPipeError:  # nobody reads any more
            return


if __name__ == "__main__":
    main()
