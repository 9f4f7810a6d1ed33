"""Text that streams to a terminal, wrapped between words."""

from __future__ import annotations

import re

from rich.cells import cell_len
from rich.console import Console
from rich.text import Text

MAX_WORD = 40  # characters that are held back until a word is complete


class WrappedText:
    """Writes text that streams in, wrapped between words. What was written is never changed."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._column = 0
        self._held = ""
        self._style = ""

    def write(self, text: str, style: str) -> None:
        """Write a piece of text; its last word is held back until it is complete."""
        if style != self._style:
            self.end()
            self._style = style
        *whole, self._held = _split(self._held + text)
        if len(self._held) > MAX_WORD:
            whole, self._held = [*whole, self._held], ""
        self._put(whole)

    def end(self) -> None:
        """Write what is held back, and end the current line."""
        if self._held:
            self._put([self._held])
            self._held = ""
        if self._column:
            self._console.print()
            self._column = 0

    def _put(self, words: list[str]) -> None:
        width = self._console.width - 1 if self._console.is_terminal else 0
        pieces: list[str] = []
        for word in words:
            size = cell_len(word)
            if width and self._column and self._column + size > width and not word.startswith("\n"):
                pieces.append("\n")
                self._column = 0
                if word.isspace():
                    continue
            pieces.append(word)
            self._column = 0 if word.endswith("\n") else self._column + size
        if pieces:
            self._console.print(Text("".join(pieces), self._style), end="", soft_wrap=True, highlight=False)


def _split(text: str) -> list[str]:
    """The words, blanks and line breaks of a text; the last item may be incomplete."""
    return re.findall(r"\n|[^\S\n]+|\S+", text) + ([""] if text[-1:].isspace() or not text else [])
