"""What a person would see in the terminal of a command, where a program draws on the whole screen.

Line by line programs need none of it. Drawing is done by pyte (`toolcrib[terminal]`); without it there is no screen.
"""

from __future__ import annotations

import re
import time
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING

from toolcrib.command.launch.terminal_relay import COLUMNS, ROWS

if TYPE_CHECKING:
    from typing import Any

    from toolcrib.command.launch.output import BoundedOutput

__all__ = ["MAX_DRAWN", "TerminalScreen", "draws", "text_of_terminal"]

MAX_DRAWN = (
    1 << 19
)  # bytes from the end of an output that are drawn: programs draw the screen anew now and then
MAX_SCROLLED = 1000  # lines that were scrolled out of the screen
# Some output takes minutes to draw: a thousand marks on one letter, or a scroll after each byte.
MAX_SECONDS = 1.0
PIECE = 1 << 10  # bytes that are drawn between two looks at the clock
LAST = 1 << 12  # bytes from the end of an output that are drawn when there was no time for the rest
DRAWING = re.compile(
    rb"\x1b\[(?:\d*+(?:;\d*+)?+[Hf]|\d++d|\d*+A|\?(?:1049|1047|47)h)"
)  # moves the cursor to another line
SWITCH = re.compile(rb"\x1b\[\?(?:1049|1047|47)([hl])")  # to the second screen of a terminal, and back
# Questions to the terminal and settings of keys, which draw nothing: pyte knows few of them. And the test pattern.
NO_DRAWING = re.compile(
    rb"\x1b\[[<=>][0-?]*[ -/]*[@-~]|\x1b\[\?[0-?]*(?:[ -/]+[@-~]|[a-gi-km-zA-Z@])|\x1b\[[0-9;:]*[ -/]+[@-~]"
    rb"|\x1b[PX^_][^\x07\x1b]*(?:\x07|\x1b\\)|\x1b#[0-9]"
)


@cache
def _installed() -> bool:
    return find_spec("pyte") is not None


def draws(data: bytes) -> bool:
    """Whether output draws on the screen, beyond lines one after the other."""
    return DRAWING.search(data) is not None and _installed()


class TerminalScreen:
    """A terminal of 24 lines and 100 columns that output is drawn in; whole sequences only."""

    def __init__(self) -> None:
        self._pyte: Any = import_module("pyte")
        self._main: Any = self._pyte.HistoryScreen(COLUMNS, ROWS, history=MAX_SCROLLED)
        self._second: Any = None
        self._shown: Any = self._main
        self._stream: Any = self._pyte.ByteStream(self._main)

    @property
    def second(self) -> bool:
        """Whether a program uses the alternate screen; when it leaves that, the main screen comes back unchanged."""
        return self._shown is not self._main

    def feed(self, data: bytes) -> bool:
        """Draws output. Returns False where that took too long: then only its end is drawn, on an empty screen."""
        if self._drawn_until(time.monotonic() + MAX_SECONDS, data):
            return True
        self._main, second = self._pyte.HistoryScreen(COLUMNS, ROWS, history=MAX_SCROLLED), self.second
        self._switch(second)
        self._drawn_until(time.monotonic() + MAX_SECONDS, data[-LAST:])
        return False

    def _drawn_until(self, deadline: float, data: bytes) -> bool:
        """Draws output until a time. Returns whether all of it was drawn."""
        at = 0
        for switch in SWITCH.finditer(data):
            if not self._draw(deadline, data[at : switch.start()]):
                return False
            self._switch(switch[1] == b"h")
            at = switch.end()
        return self._draw(deadline, data[at:])

    def _switch(self, second: bool) -> None:
        if second:
            self._second = self._pyte.Screen(COLUMNS, ROWS)
        self._shown = self._second if second else self._main
        self._stream = self._pyte.ByteStream(self._shown)

    def _draw(self, deadline: float, data: bytes) -> bool:
        data = NO_DRAWING.sub(b"", data)
        for at in range(0, len(data), PIECE):
            try:
                self._stream.feed(data[at : at + PIECE])
            except Exception:
                # A sequence that pyte reads and does not support: it draws nothing that is text.
                self._switch(self.second)
            if time.monotonic() > deadline:
                return False
        return time.monotonic() <= deadline

    def text(self) -> str:
        """The lines of the screen."""
        return _lines(self._shown.display)

    def place(self) -> tuple[int, int]:
        """The line and the column of the cursor, from 1."""
        return self._shown.cursor.y + 1, self._shown.cursor.x + 1

    def scrolled(self) -> str:
        """What a person sees after a program has ended, scrolled lines included; if that is empty, its last screen."""
        above = ["".join(line[x].data for x in range(COLUMNS)) for line in self._main.history.top]
        whole = _lines([*above, *self._main.display])
        return whole or (_lines(self._second.display) if self._second is not None else "")


def text_of_terminal(output: BoundedOutput) -> str:
    """The output of a command that ran in a terminal, as it is seen there after its end, if that is soon drawn."""
    data = (output.tail if output.omitted else output.head + output.tail)[-MAX_DRAWN:]
    if not draws(data):
        return output.text()
    screen = TerminalScreen()
    return screen.scrolled() if screen.feed(data) else output.text()


def _lines(lines: list[str]) -> str:
    return "\n".join(line.rstrip() for line in lines).rstrip("\n")
