"""What `grep` found, and the text that a model is given of it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from toolcrib.dataclass import dataclass, field
from toolcrib.tools.file_walk import withheld_note
from toolcrib.visible import counted

if TYPE_CHECKING:
    from toolcrib.tools.grep_params import GrepParams
    from toolcrib.tools.regex_search import LineMatch

MAX_SHOWN = 45_000  # characters of the whole answer
NAMED = 3  # files that were too large
NARROW = "narrow the search with path, include or type"


@dataclass(slots=True)
class GrepResults:
    """The matches so far, and what was not searched. `stopped`: the seconds after which the search was ended."""

    params: GrepParams
    files: list[tuple[str, LineMatch]] = field(default_factory=list)
    matches: int = 0
    too_large: list[str] = field(default_factory=list)
    unshown: int = 0
    withheld: int = 0
    stopped: float = 0.0
    no_text: bool = False  # the file to search

    @property
    def shows_lines(self) -> bool:
        """Whether the matching lines are wanted."""
        return self.params.output not in ("files", "count")

    def add(self, path: str, found: LineMatch) -> None:
        """Adds what was found in one file."""
        if found.count:
            self.files.append((path, found))
            self.matches += found.count

    def full(self) -> bool:
        """Whether more is found than the call wants."""
        found = self.matches if self.shows_lines else len(self.files)
        return found > self.params.offset - 1 + self.params.limit

    def render(self, start: str) -> str:
        """The answer, with a note about each thing that is left out."""
        notes = list(self._left_out())
        if not self.files:
            notes.insert(0, self._nothing(start))
            return f"[{' '.join(notes)}]"
        offset, what = self.params.offset, "matching lines" if self.shows_lines else "files"
        found = self.matches if self.shows_lines else len(self.files)
        if offset > found:
            notes.insert(0, f"There are only {found} {what}; offset {offset} is past the end.")
            return f"[{' '.join(notes)}]"
        text, last = self._lines() if self.shows_lines else self._files()
        if last < found:
            shown = f"{what.capitalize()} {offset}-{last}; there are more."
            notes.insert(0, f"{shown} Use offset={last + 1} to read on, or {NARROW}.")
        return text if not notes else f"{text}\n\n[{' '.join(notes)}]"

    def _nothing(self, start: str) -> str:
        params = self.params
        where = "the workspace" if start == "." else start
        only = ", ".join(filter(None, [params.include, f"type {params.type}" if params.type else ""]))
        said = f"No matches for {params.pattern!r} in {where}{f' ({only})' if only else ''}."
        if r"\n" in params.pattern and not params.multiline:
            said += r" No line contains \n; set multiline to look across lines."
        if r"\|" in params.pattern:
            said += r" \| is the character | itself; for one text or the other write | alone."
        return said

    def _left_out(self) -> Iterator[str]:
        if self.stopped:
            yield (
                f"Stopped after {counted(round(self.stopped), 'second')}; what is above is not all. "
                "Narrow path or include, or simplify the pattern: nested repetitions such as (a+)+ can take forever."
            )
        if note := withheld_note(self.withheld):
            yield note
        if self.unshown:
            what = "1 file that may hold secrets was"
            what = what if self.unshown == 1 else f"{self.unshown} files that may hold secrets were"
            yield f"{what} not searched; to search one, give it as path."
        if self.no_text:
            yield "It is a binary file, so it was not searched."
        if self.too_large:
            named = ", ".join(self.too_large[:NAMED]) + (", ..." if len(self.too_large) > NAMED else "")
            yield f"Not searched because larger than 5 MB: {named}."

    def _files(self) -> tuple[str, int]:
        first = self.params.offset - 1
        shown = self.files[first : first + self.params.limit]
        counted = self.params.output == "count"
        lines = [f"{path}: {found.count}" if counted else path for path, found in shown]
        return "\n".join(lines), first + len(shown)

    def _lines(self) -> tuple[str, int]:
        """The matching lines below their files, and the number of the last one."""
        blocks: list[str] = []
        size = 0
        last = self.params.offset - 1
        for path, found in self.files:
            if not found.lines:
                continue
            shown = [path]
            for text, matched in _numbered(found.lines):
                size += len(text) + 1
                if size > MAX_SHOWN and last >= self.params.offset:
                    break
                shown.append(text)
                last += matched
            if len(shown) > 1:
                blocks.append("\n".join(shown))
            if size > MAX_SHOWN:
                break
        return "\n\n".join(blocks), last


def _numbered(lines: list[tuple[int, str, bool]]) -> Iterator[tuple[str, bool]]:
    """The lines as they are shown, each with whether it matched."""
    before = lines[0][0]
    for number, text, matched in lines:
        if number > before + 1:
            yield "  --", False
        before = number
        yield f"  {number}{':' if matched else '-'} {text}", matched
