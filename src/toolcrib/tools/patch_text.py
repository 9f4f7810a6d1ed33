"""Reads patches in the format of Codex's `apply_patch`, and finds the lines that a change of a file means.

```
*** Begin Patch
*** Add File: notes.md
+first line
*** Update File: src/main.py
*** Move to: src/app.py
@@ def main():
-    old()
+    new()
*** Delete File: unused.py
*** End Patch
```
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from itertools import pairwise

from toolcrib.errors import ToolError
from toolcrib.tools.line_address import address_of
from toolcrib.tools.nearest_text import SHOWN_CHARS, nearest
from toolcrib.tools.text_match import UNSAFE, Match, Source, find_exact, find_tolerant, shifted

BEGIN, END, END_OF_FILE = "*** Begin Patch", "*** End Patch", "*** End of File"
HEADER = re.compile(r"\*\*\* (Add|Delete|Update) File: (.+)")
MOVE = "*** Move to: "
NUMBERS = re.compile(r"(?<=^@@)\s*-\d+(?:,\d+)? \+\d+(?:,\d+)? @@")  # of a unified diff: they are often wrong
NO_FINAL_BREAK = "\\ No newline at end of file"
HEREDOC = re.compile(r"\s*(?:apply_patch\s+)?<<-?\s*(['\"]?)(\w+)\1\n(.*?)\n\2\s*", re.DOTALL)
LISTED = 10


@dataclass(slots=True)
class Chunk:
    """Lines of one place: each with " ", "-" or "+". `anchors` are lines above it, outermost first."""

    anchors: list[str] = field(default_factory=list)
    lines: list[tuple[str, str]] = field(default_factory=list)
    at_end: bool = False

    @property
    def old(self) -> list[str]:
        return [text for sign, text in self.lines if sign != "+"]


@dataclass(slots=True)
class FilePatch:
    """What a patch does to one file: "add" (with `content`), "delete" or "update" (with `chunks` and maybe `to`)."""

    kind: str
    path: str
    content: str = ""
    to: str = ""
    chunks: list[Chunk] = field(default_factory=list)


def read_patch(text: str) -> list[FilePatch]:
    """The files of a patch; ToolError for a text that is none, with the line that is wrong."""
    text = text.replace("\r\n", "\n")
    if heredoc := HEREDOC.fullmatch(text):
        text = heredoc[3]
    lines = text.strip().split("\n")
    if lines[0].strip() != BEGIN:
        raise ToolError(f"The first line of the patch must be '{BEGIN}', not {lines[0][:SHOWN_CHARS]!r}.")
    if lines[-1].strip() != END:
        raise ToolError(f"The last line of the patch must be '{END}', not {lines[-1][:SHOWN_CHARS]!r}.")
    found: list[FilePatch] = []
    for number, line in enumerate(lines[1:-1], 2):
        indented = line[:1] == " " and found and found[-1].chunks  # a line of the file
        if not indented and (header := HEADER.fullmatch(line.strip())):
            found.append(FilePatch(header[1].lower(), header[2].strip()))
        elif not found:
            raise _wrong(number, line, "a line such as '*** Update File: path' must come first")
        else:
            _add_line(found[-1], number, line)
    if not found:
        raise ToolError("The patch changes no file.")
    for patch in found:
        if patch.kind == "update" and not patch.to and not any(chunk.lines for chunk in patch.chunks):
            raise ToolError(f"The patch names {patch.path} and changes nothing in it.")
    return found


def _add_line(patch: FilePatch, number: int, line: str) -> None:
    if patch.kind == "add":
        if not line.startswith("+"):
            raise _wrong(number, line, "each line of an added file must begin with +")
        patch.content += line[1:] + "\n"
    elif patch.kind == "delete":
        if line.strip():
            raise _wrong(number, line, "nothing may follow the header of a deleted file")
    elif line.startswith(MOVE) and not patch.chunks:
        patch.to = line.removeprefix(MOVE).strip()
    elif line.strip() == END_OF_FILE and patch.chunks:
        patch.chunks[-1].at_end = True
    elif line.startswith("@@"):
        if not patch.chunks or patch.chunks[-1].lines:
            patch.chunks.append(Chunk())
        if anchor := NUMBERS.sub("", line)[2:].strip():
            patch.chunks[-1].anchors.append(anchor)
    elif line != NO_FINAL_BREAK:
        if not patch.chunks:
            patch.chunks.append(Chunk())
        if line and line[0] not in " +-":  # the space before it was forgotten: it has to stand in the file
            patch.chunks[-1].lines.append((" ", line))
        else:
            patch.chunks[-1].lines.append((line[:1] or " ", line[1:]))


def _wrong(number: int, line: str, why: str) -> ToolError:
    return ToolError(f"Line {number} of the patch, {line[:SHOWN_CHARS]!r}: {why}. Nothing was changed.")


def patched(shown: str, source: Source, chunks: list[Chunk]) -> list[Match]:
    """What the chunks replace in a text, in its order. Lines that only locate a chunk are not touched."""
    found: list[Match] = []
    position = 0
    for number, chunk in enumerate(chunks, 1):
        try:
            place = _place(shown, source, chunk, position)
        except ToolError as refused:
            which = f"Chunk {number} of {len(chunks)}: " if len(chunks) > 1 else ""
            raise ToolError(f"{which}{refused.message}") from None
        changes = _replacements(source.text, chunk, place)
        if chunk.old and chunk in chunks[: number - 1] and any(change in found for change in changes):
            continue  # the same chunk twice, for its one place
        found += changes
        position = max(position, place.end) if chunk.old else position
    found.sort(key=lambda match: (match.start, match.end))
    if any(match.end > after.start for match, after in pairwise(found)):
        raise ToolError(f"Two chunks of the patch change the same lines of {shown}. Nothing was changed.")
    return found


def _place(shown: str, source: Source, chunk: Chunk, position: int) -> Match:
    """The lines of a text that a chunk means. `new` of the match are the added lines, indented as they have to be."""
    added = "\n".join(text for sign, text in chunk.lines if sign == "+")
    while chunk.lines and chunk.lines[-1] == (" ", "") and not _whole_lines(source, chunk, added, position):
        chunk.lines.pop()  # an empty line before the next header belongs to nothing
    if not chunk.old:
        end = len(source.text) if not chunk.anchors else _after_anchors(shown, source, chunk, position)
        return Match(end, end, added)
    found = _whole_lines(source, chunk, added, position)
    if not found and position and len(anywhere := _whole_lines(source, chunk, added, 0)) == 1:
        found = anywhere  # chunks that are out of order, each with one place only
    if chunk.at_end:
        last = len(source.text.rstrip("\n"))
        found = [match for match in found if match.end >= last] or found
    if len(found) > 1 and chunk.anchors:
        anchored = _after_anchors(shown, source, chunk, position)
        found = [match for match in found if match.start >= anchored][:1] or found
    if len(found) == 1 and (place := _indented(source.text, chunk, found[0])).differs != UNSAFE:
        return place
    if len(found) > 1:
        listed = "\n".join(f"  {_address(source, match.start)}" for match in found[:LISTED])
        raise ToolError(
            f"The lines of the patch stand in {len(found)} places of {shown}:\n{listed}\nNothing was changed. Give "
            "more lines around the change, or after @@ a line above it that stands there only once."
        )
    text = f"The lines of the patch were not found in {shown}. They must stand there just so."
    for line, there, difference in nearest(source, "\n".join(chunk.old)):
        shown_lines = "\n".join(f"{n:>4}: {one[:SHOWN_CHARS]}" for n, one in enumerate(there[:6], line))
        text += f"\nNearest, from line {line} ({difference.replace('old_string', 'them')}):\n{shown_lines}"
    raise ToolError(f"{text}\nNothing was changed. Read the place again.")


def _indented(text: str, chunk: Chunk, found: Match) -> Match:
    """The place with its added lines indented as the removed ones are, or as the lines next to them if none are
    removed; other lines that only locate it do not count.
    """
    added = "\n".join(line for sign, line in chunk.lines if sign == "+")
    if not found.differs or not added:
        return replace(found, new=added, differs="")
    lines = iter(text[found.start : found.end].split("\n"))
    rows = [(sign, line if sign == "+" else next(lines, ""), line) for sign, line in chunk.lines]
    # Where the space of a line that only locates was forgotten, its indentation is as it stands in the file.
    rows = [(sign, there, there if sign == " " and there == f" {old}" else old) for sign, there, old in rows]
    decisive = [row for row in rows if row[0] == "-"] or _beside_added(rows)
    there, old = [row[1] for row in decisive], [row[2] for row in decisive]
    return shifted(there, old, added, found.start, found.end)


def _beside_added(rows: list[tuple[str, str, str]]) -> list[tuple[str, str, str]]:
    """The lines that stand directly before and after added ones, but for empty ones."""
    told = [row for row in rows if row[2].strip()]
    pairs = [*pairwise(told), *((after, before) for before, after in pairwise(told))]
    return [row for row, other in pairs if row[0] == " " and other[0] == "+"]


def _whole_lines(source: Source, chunk: Chunk, added: str, position: int) -> list[Match]:
    text, old = source.text, "\n".join(chunk.old)
    exact = [
        match
        for match in find_exact(text, old, added, overlapping=True)
        if match.start >= position and _is_whole(text, match)
    ]
    return exact or [
        match
        for match in find_tolerant(source, old, added)
        if match.start >= position and _is_whole(text, match)
    ]


def _is_whole(text: str, match: Match) -> bool:
    """Whether a match begins and ends where lines do: the rest of a line would be lost with its place."""
    begins = match.start == 0 or text[match.start - 1] == "\n"
    return begins and (match.end == len(text) or text[match.end] == "\n")


def _after_anchors(shown: str, source: Source, chunk: Chunk, position: int) -> int:
    """Where the line after the anchors begins. The first of several equal lines counts, as the format says."""
    text = source.text
    for anchor in chunk.anchors:
        at = position
        while True:
            at = text.find(anchor, at)
            if at < 0:
                raise ToolError(
                    f"The line {anchor!r} after @@ was not found in {shown}. Nothing was changed."
                )
            start, end = text.rfind("\n", 0, at) + 1, text.find("\n", at)
            end = len(text) if end < 0 else end
            if text[start:end].strip() == anchor:
                break
            at = end
        position = min(end + 1, len(text))
    return position


def _replacements(text: str, chunk: Chunk, place: Match) -> list[Match]:
    """The runs of removed and added lines, without the lines between them."""
    found: list[Match] = []
    added = iter(place.new.split("\n"))
    at, start, new = place.start, place.start, list[str]()
    no_break = (
        place.start == place.end and place.start == len(text) and not text.endswith("\n") and text != ""
    )

    def close() -> None:
        if new or at != start:
            joined = "".join(line + "\n" for line in new)
            end = min(at, len(text))
            if at > len(text) or no_break:  # the file does not end in a line break, and will not
                joined = joined.removesuffix("\n")
                if start > len(text) or no_break:
                    joined = "\n" + joined
            found.append(Match(min(start, len(text)), end, joined))

    for sign, _ in chunk.lines:
        if sign == "+":
            new.append(next(added))
            continue
        end = text.find("\n", at)
        after = len(text) + 1 if end < 0 else end + 1
        if sign == " ":
            close()
            at = start = after
            new = []
        else:
            at = after
    close()
    return found


def _address(source: Source, start: int) -> str:
    line = source.text[start : start + SHOWN_CHARS].partition("\n")[0]
    return f"{address_of(source.line_of(start), line)}| {line}"
