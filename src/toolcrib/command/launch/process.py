"""Runs one process to its end, with everything that it starts: bounded in time and in memory.

The process runs in a session of its own, and writes output and errors into one pipe, in the order in which they come.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping, Sequence

from toolcrib.command.launch.output import BoundedOutput, OutputPipe
from toolcrib.command.launch.process_tree import (
    GRACE,
    MARK,
    ProcessTree,
    end_all,
    end_leftovers,
    shielded,
    start_process,
)
from toolcrib.dataclass import dataclass

LAST_SIGNAL = 32  # those after it are for applications


@dataclass(frozen=True, slots=True)
class ProcessOutcome:
    """How a process ended. `code` is None after a timeout and negative for a signal.

    `left` is the number of processes that it left running and that were ended after it.
    """

    code: int | None
    output: BoundedOutput
    seconds: float
    left: int = 0


def code_and_signal(status: int | None) -> tuple[int | None, int | None]:
    """The exit code and the number of the signal that a status stands for.

    A shell and a sandbox give 128 plus the number for a program that a signal ended.

    >>> code_and_signal(0), code_and_signal(-9), code_and_signal(137), code_and_signal(200)
    ((0, None), (None, 9), (137, 9), (200, None))
    """
    if status is None or status < 0:
        return None, None if status is None else -status
    return status, status - 128 if 128 < status < 128 + LAST_SIGNAL else None


async def run_process(
    argv: Sequence[str],
    *,
    cwd: str,
    env: Mapping[str, str],
    timeout: float | None,
    output: BoundedOutput,
    stdin: int | None = None,
    grace: float = GRACE,
    on_output: Callable[[BoundedOutput], None] | None = None,
    pass_fds: Sequence[int] = (),
    on_start: Callable[[], None] | None = None,
) -> ProcessOutcome:
    """Runs a process to its end, or ends it after `timeout` seconds or when the calling task is cancelled.

    What it prints goes to `output`. It reads from the descriptor `stdin`, or else finds its input at the end.
    `on_output` is called when output arrives, `on_start` when the process runs and has its `pass_fds`. Raises OSError
    if the program cannot be started.
    """
    import asyncio
    import secrets

    started = time.monotonic()
    mark = secrets.token_hex(16)
    read_end, write_end = os.pipe()
    pipe: OutputPipe | None = None
    try:
        pipe = OutputPipe(read_end, output, on_output)
        child, cancelled = await start_process(
            argv,
            cwd=cwd,
            env={**env, MARK: mark},
            streams=(asyncio.subprocess.DEVNULL if stdin is None else stdin, write_end, write_end),
            pass_fds=pass_fds,
        )
        if on_start is not None:
            on_start()
    except BaseException:
        if pipe is None:
            os.close(read_end)
        else:
            pipe.close()
        raise
    finally:
        os.close(write_end)
    tree = ProcessTree(child.pid, f"{MARK}={mark}".encode(), os.fstat(read_end).st_ino)
    code: int | None = None
    left = 0
    try:
        if cancelled is not None:
            raise cancelled
        try:
            async with asyncio.timeout(timeout):
                code = await child.wait()
            await pipe.drained()
            if pipe.open or tree.group_alive():
                left = len(tree.attached())
        except TimeoutError:
            pass
    finally:
        if code is None:
            await shielded(end_all(child, tree, grace), tree)
        elif left or tree.group_alive():
            await shielded(end_leftovers(tree, grace), tree)
        await pipe.drained()
        pipe.close()
    return ProcessOutcome(code, output, time.monotonic() - started, left)
