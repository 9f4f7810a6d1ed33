"""The input of a background process: a pipe that is never waited for longer than the caller wants to."""

from __future__ import annotations

import os


class ProcessInput:
    """A pipe to the input of a process. `for_process` is its reading end, until the process has it."""

    def __init__(self) -> None:
        self.for_process, self._ours = os.pipe()
        os.set_blocking(self._ours, False)

    @property
    def closed(self) -> bool:
        return self._ours < 0

    async def write(self, data: bytes, timeout: float) -> int:
        """Writes until all of it is taken or `timeout` seconds have passed; returns how many bytes were taken.

        Raises BrokenPipeError if the process reads no more.
        """
        import asyncio

        taken = 0
        try:
            async with asyncio.timeout(timeout):
                while taken < len(data):
                    try:
                        taken += os.write(self._ours, data[taken : taken + 4096])
                    except BlockingIOError:
                        await self._room()
        except TimeoutError:
            pass
        return taken

    async def _room(self) -> None:
        """Waits until the pipe has room."""
        import asyncio

        loop, room = asyncio.get_running_loop(), asyncio.Event()
        loop.add_writer(self._ours, room.set)
        try:
            await room.wait()
        finally:
            loop.remove_writer(self._ours)

    def close_reading_end(self) -> None:
        """Closes our copy of the reading end, once the process has its own."""
        if self.for_process >= 0:
            os.close(self.for_process)
            self.for_process = -1

    async def end(self) -> None:
        """Ends the input of the process."""
        self.close()

    def close(self) -> None:
        """Closes both ends."""
        self.close_reading_end()
        if self._ours >= 0:
            os.close(self._ours)
            self._ours = -1
