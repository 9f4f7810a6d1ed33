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
from collections.abc import Iterator
from itertools import pairwise

from toolcrib.dataclass import dataclass, field, replace
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

    @property
    def new(self) -> list[str]:
        return [text for sign, text in self.lines if sign == "+"]


@dataclass(slots=True)
class FilePatch:
    """What a patch does to one file: "add" (with `content`), "delete" or "update" (with `chunks` and maybe `to`)."""

    kind: str
    path: str
    content: str = ""
    to: str = ""
    chunks: list[Chunk] = field(default_factory=list)


def read_patch(text: str) -> list[FilePatch]:
    """The files of a patch. Raises ToolError, which names the wrong line, for a text that is no patch."""
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
    """The replacements that chunks make in a text, in the text's order. Context lines are not touched."""
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
    while chunk.lines and chunk.lines[-1] == (" ", "") and not _whole_lines(source, chunk, position):
        chunk.lines.pop()  # an empty line before the next header belongs to nothing
    if not chunk.old:
        ends = _after_anchors(shown, source, chunk, position) if chunk.anchors else [len(source.text)]
        if len(ends) > 1:
            raise _ambiguous(
                shown, "line after @@ stands", source, [_line_before(source.text, end) for end in ends]
            )
        return Match(ends[0], ends[0], "\n".join(chunk.new))
    found = _whole_lines(source, chunk, position)
    if not found and (filled := _with_blank_lines(source.text, chunk)):
        chunk.lines = filled
        found = _whole_lines(source, chunk, position)
    if chunk.at_end:
        last = len(source.text.rstrip("\n"))
        found = [match for match in found if match.end >= last] or found
    if len(found) > 1 and chunk.anchors:
        found = _anchored(found, _after_anchors(shown, source, chunk, position)) or found
    if len(found) == 1 and (place := _indented(source.text, chunk, found[0])).differs != UNSAFE:
        return place
    if len(found) > 1:
        raise _ambiguous(shown, "lines of the patch stand", source, [match.start for match in found])
    text = f"The lines of the patch were not found in {shown}. They must stand there just so."
    for line, there, difference in nearest(source, "\n".join(chunk.old)):
        shown_lines = "\n".join(f"{n:>4}: {one[:SHOWN_CHARS]}" for n, one in enumerate(there[:6], line))
        text += f"\nNearest, from line {line} ({difference.replace('old_string', 'them')}):\n{shown_lines}"
    raise ToolError(f"{text}\nNothing was changed. Read the place again.")


def _ambiguous(shown: str, what: str, source: Source, starts: list[int]) -> ToolError:
    listed = "\n".join(f"  {_address(source, start)}" for start in starts[:LISTED])
    return ToolError(
        f"The {what} in {len(starts)} places of {shown}:\n{listed}\nNothing was changed. Give "
        "more lines around the change, or after @@ a line above it that stands there only once."
    )


def _anchored(found: list[Match], ends: list[int]) -> list[Match]:
    """For each place where the anchors end, the first match after it. Anchors that occur once so choose one match."""
    firsts = [next((match for match in found if match.start >= end), None) for end in ends]
    return list(dict.fromkeys(match for match in firsts if match is not None))


def _with_blank_lines(text: str, chunk: Chunk) -> list[tuple[str, str]]:
    """The lines of a chunk with the blank ones that stand between them in the file, and without those that do not.

    Empty if the others do not stand in the file, or in several places. What is added stays behind the line before it.
    """
    wanted = [line.strip() for sign, line in chunk.lines if sign != "+" and line.strip()]
    lines = text.split("\n")
    filled = [(number, line.strip()) for number, line in enumerate(lines) if line.strip()]
    starts = [
        at
        for at, (_, line) in enumerate(filled)
        if wanted and line == wanted[0] and [one for _, one in filled[at : at + len(wanted)]] == wanted
    ]
    if len(starts) != 1:
        return []
    numbers = iter([number for number, _ in filled[starts[0] : starts[0] + len(wanted)]])
    found: list[tuple[str, str]] = []
    before: int | None = None
    for sign, line in chunk.lines:
        if sign == "+":
            found.append((sign, line))
        elif line.strip():
            number = next(numbers)
            if before is not None:
                found += [(" ", lines[blank]) for blank in range(before + 1, number)]
            found.append((sign, line))
            before = number
    return found


def _indented(text: str, chunk: Chunk, found: Match) -> Match:
    """The place with its added lines indented as the removed ones are, or as the lines next to them if none are
    removed; other lines that only locate it do not count.
    """
    added = "\n".join(chunk.new)
    if not found.differs or not added:
        return replace(found, new=added, differs="")
    lines = iter(text[found.start : found.end].split("\n"))
    rows = [(sign, line if sign == "+" else next(lines, ""), line) for sign, line in chunk.lines]
    # A context line whose leading space was forgotten has the indentation of the file's line.
    rows = [(sign, there, there if sign == " " and there == f" {old}" else old) for sign, there, old in rows]
    decisive = [row for row in rows if row[0] == "-"] or _beside_added(rows)
    there, old = [row[1] for row in decisive], [row[2] for row in decisive]
    return shifted(there, old, added, found.start, found.end)


def _beside_added(rows: list[tuple[str, str, str]]) -> list[tuple[str, str, str]]:
    """The context lines directly before and after added lines, leaving out empty ones."""
    told = [row for row in rows if row[2].strip()]
    pairs = [*pairwise(told), *((after, before) for before, after in pairwise(told))]
    return [row for row, other in pairs if row[0] == " " and other[0] == "+"]


def _whole_lines(source: Source, chunk: Chunk, position: int) -> list[Match]:
    """The places of a chunk's lines: exact ones after `position`, or else exact or similar ones anywhere."""
    text, old, added = source.text, "\n".join(chunk.old), "\n".join(chunk.new)
    exact = [match for match in find_exact(text, old, added, overlapping=True) if _is_whole(text, match)]
    if later := [match for match in exact if match.start >= position]:
        return later
    near = [match for match in find_tolerant(source, old, added) if _is_whole(text, match)]
    return near if len(near) > len(exact) else exact


def _is_whole(text: str, match: Match) -> bool:
    """Whether a match begins and ends where lines do: the rest of a line would be lost with its place."""
    begins = match.start == 0 or text[match.start - 1] == "\n"
    return begins and (match.end == len(text) or text[match.end] == "\n")


def _after_anchors(shown: str, source: Source, chunk: Chunk, position: int) -> list[int]:
    """For each line that equals the last anchor, the start of the line after it.

    The anchors before it are looked for from the top: of several equal lines, the first counts.
    """
    text = source.text
    ends: list[int] = []
    for index, anchor in enumerate(chunk.anchors):
        ends = [end for _, end in _lines_equal_to(text, anchor, position)]
        if not ends:
            raise ToolError(f"The line {anchor!r} after @@ was not found in {shown}. Nothing was changed.")
        if index + 1 < len(chunk.anchors):
            position = ends[0]
    return ends


def _lines_equal_to(text: str, wanted: str, position: int) -> Iterator[tuple[int, int]]:
    """(start, start of the next line) of each line that equals a text, apart from spaces at its ends."""
    at = text.find(wanted, position)
    while at >= 0:
        start, end = text.rfind("\n", 0, at) + 1, text.find("\n", at)
        end = len(text) if end < 0 else end
        if text[start:end].strip() == wanted:
            yield start, min(end + 1, len(text))
        at = text.find(wanted, end)


def _line_before(text: str, end: int) -> int:
    """The start of the line that ends before a place."""
    return text.rfind("\n", 0, max(0, end - 1)) + 1


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
