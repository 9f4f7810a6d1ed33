"""Plans the edits of one file: what each edit means, the text after all of them, and what the model is told."""

from __future__ import annotations

from collections.abc import Sequence

from toolcrib.dataclass import dataclass, field
from toolcrib.errors import ToolError
from toolcrib.tools.file_kinds import describe
from toolcrib.tools.line_address import address_of, parse_address, region_addresses
from toolcrib.tools.nearest_text import SHOWN_CHARS, nearest
from toolcrib.tools.syntax_check import newly_broken
from toolcrib.tools.text_encoding import decode, detect, encode
from toolcrib.tools.text_match import UNSAFE, Match, Source, find_exact, find_tolerant
from toolcrib.visible import counted

LISTED_MATCHES = 10
SHOWN_LINES = 6
PREVIEW_LINES = 20  # of a file in which nothing like the wanted text stands
TELLING = 12  # characters, without spaces, of a text whose presence says that an edit was made already


@dataclass(frozen=True, slots=True)
class TextEdit:
    """One piece of text and what to put in its place. `at` is the address of the line where it begins."""

    old: str
    new: str
    replace_all: bool = False
    at: str | None = None


@dataclass(slots=True)
class PlannedFile:
    """A file with its edits made. `sentences` tell the model about them, `problem` what they break, if anything."""

    shown: str
    before: str
    after: str
    data: bytes
    sentences: list[str] = field(default_factory=list)
    problem: str = ""

    @property
    def changes(self) -> bool:
        return self.after != self.before


def check_edit(edit: TextEdit) -> str | None:
    """Why an edit can mean nothing, whatever is in the file."""
    if edit.old == edit.new:
        return "old_string and new_string are identical, so there is nothing to change."
    if not edit.old:
        return "old_string is empty. To create a file or replace all of it, use write_file."
    if edit.at is not None and parse_address(edit.at) is None:
        return f'at must be the address of a line, such as "42:k9", not {edit.at!r}.'
    return None


def plan_edits(shown: str, data: bytes, edits: Sequence[TextEdit]) -> PlannedFile:
    """Makes the edits one after the other on the text of a file; raises ToolError where one cannot be made.

    Addresses are those of the file as it was before the first edit.
    """
    encoding = detect(data)
    if encoding is None:
        raise ToolError(f"{shown} is {describe(data)}, which cannot be edited as text.")
    before = decode(shown, data, encoding)
    planned = PlannedFile(shown, before, before, data)
    moved: list[tuple[int, int]] = []  # where earlier edits were made, and how much longer the text became
    source = first = Source(before)
    for number, edit in enumerate(edits, 1):
        try:
            line = _line_at(edit, first, shown)
            if line is not None:
                for at, longer in moved:
                    line += longer if at < line else 0
            found = _matches(edit, source, shown, line)
        except ToolError as refused:
            if len(edits) == 1:
                raise
            raise ToolError(f"Edit {number} of {len(edits)}: {refused.message}") from None
        if isinstance(found, str):
            planned.sentences.append(found)
            continue
        after = source.replace(found)
        if after == source.original:
            planned.sentences.append(f"{shown} already reads like that; nothing was changed.")
            continue
        offset = 0
        for match in found:
            longer = len(match.new) - (match.end - match.start)
            moved.append((match.start + offset, longer))
            offset += longer
        changed = Source(after)
        planned.sentences.append(_summary(shown, source, changed, found))
        source, planned.after = changed, after
    planned.data = encode(shown, planned.after, encoding)
    planned.problem = newly_broken(shown, planned.before, planned.after) if planned.changes else ""
    return planned


def _plain(text: str) -> str:
    return text.removeprefix("\ufeff").replace("\r\n", "\n")


def _line_at(edit: TextEdit, source: Source, shown: str) -> int | None:
    """Where the line begins that an edit's address names."""
    if edit.at is None or (parsed := parse_address(edit.at)) is None:
        return None
    number, address = parsed
    start = 0
    for _ in range(number - 1):
        start = source.text.find("\n", start) + 1
        if start == 0:
            lines = source.text.removesuffix("\n").count("\n") + 1
            raise ToolError(f"{edit.at} is past the end of {shown}, which has {counted(lines, 'line')}.")
    end = source.text.find("\n", start)
    line = source.text[start : len(source.text) if end < 0 else end]
    if (now := address_of(number, line)) != address:
        raise ToolError(
            f"Line {number} of {shown} is not the one that {address} names: it is {now} now:\n"
            f"  {now}| {line[:SHOWN_CHARS]}\nNothing was changed. Read the place again."
        )
    return start


def _matches(edit: TextEdit, source: Source, shown: str, line: int | None) -> list[Match] | str:
    """The places that an edit means, or why there is nothing left to do."""
    old = _plain(edit.old)
    new = _plain(edit.new)
    if not old:
        raise ToolError("old_string holds nothing but a byte order mark.")
    matches = find_exact(source.text, old, new, overlapping=not edit.replace_all)
    if not matches and not edit.replace_all:
        matches = find_tolerant(source, old, new)
    if line is not None and matches:
        matches = _beginning_at(matches, line, source, shown)
    if done := _made_already(matches, source, old, new, shown):
        return done
    if not matches or (len(matches) == 1 and matches[0].differs == UNSAFE):
        raise ToolError(_not_found(shown, source, old))
    if len(matches) > 1 and not edit.replace_all:
        raise ToolError(_ambiguous(shown, source, matches))
    return matches


def _beginning_at(matches: list[Match], line: int, source: Source, shown: str) -> list[Match]:
    end = source.text.find("\n", line)
    end = len(source.text) if end < 0 else end
    found = [match for match in matches if line <= match.start <= end]
    if not found:
        listed = _listed(source, matches)
        raise ToolError(
            f"old_string does not begin in that line of {shown}, but here:\n{listed}\nNothing was changed."
        )
    return found


def _made_already(matches: list[Match], source: Source, old: str, new: str, shown: str) -> str:
    """The message that a file already reads as it would after the edit; "" if it does not, or that is not certain."""
    if len("".join(new.split())) < TELLING:
        return ""
    if not matches:
        if old in new or source.text.count(new) != 1:
            return ""
        where = source.line_of(source.text.find(new))
        return (
            f"{shown} already reads like that: new_string stands at line {where}, and old_string nowhere. "
            "Nothing was changed."
        )
    inside = new.find(old)
    if inside < 0 or not all(source.text.startswith(new, match.start - inside) for match in matches):
        return ""
    where = source.line_of(matches[0].start)
    return (
        f"{shown} already reads like that: what new_string adds to old_string stands there, at line {where}. "
        "Nothing was changed. If it shall stand there twice, give more lines around it."
    )


def _summary(shown: str, source: Source, changed: Source, matches: list[Match]) -> str:
    lines = [source.line_of(match.start) for match in matches[:LISTED_MATCHES]]
    if len(matches) == 1:
        match = matches[0]
        now = region_addresses(changed.text, match.start, match.start + len(match.new))
        text = f"Edited {shown} at line {lines[0]}. Lines now: {now}."
        return (
            text
            if not match.differs
            else f"{text} What stood there differed from old_string in {match.differs}."
        )
    listed = ", ".join(str(line) for line in lines) + (", ..." if len(matches) > len(lines) else "")
    return f"Edited {shown}: replaced {len(matches)} occurrences, at lines {listed}."


def _ambiguous(shown: str, source: Source, matches: list[Match]) -> str:
    if matches[0].differs:
        reason = f"old_string does not occur in {shown} as written, and {len(matches)} places differ only in "
        reason += "typography or indentation"
    else:
        reason = f"old_string occurs {len(matches)} times in {shown}"
    return (
        f"{reason}:\n{_listed(source, matches)}\nNothing was changed. Give the address of the line as at, "
        "or add lines around it to old_string until it fits one place"
        + (", or set replace_all to change every one." if not matches[0].differs else ".")
    )


def _listed(source: Source, matches: list[Match]) -> str:
    """The first of the places, each with the address of its line, and how many more there are."""
    found: list[str] = []
    for match in matches[:LISTED_MATCHES]:
        number = source.line_of(match.start)
        start = source.text.rfind("\n", 0, match.start) + 1
        line = _line_from(source.text, start)
        found.append(f"  line {number}: {line.strip()[:SHOWN_CHARS]} (at {address_of(number, line)})")
    if len(matches) > LISTED_MATCHES:
        found.append(f"  and {len(matches) - LISTED_MATCHES} more")
    return "\n".join(found)


def _line_from(text: str, start: int) -> str:
    end = text.find("\n", start)
    return text[start : len(text) if end < 0 else end]


def _not_found(shown: str, source: Source, old: str) -> str:
    """The error message with what the model needs to try again: the nearest places."""
    if not source.text:
        return f"old_string was not found: {shown} is empty. Use write_file."
    text = f"old_string was not found in {shown}. It must fit exactly, with all spaces and line breaks."
    places = nearest(source, old)
    for line, there, difference in places:
        text += f"\nNearest, from line {line} ({difference}):\n{_numbered(there[:SHOWN_LINES], line)}"
        if len(there) > SHOWN_LINES:
            text += f"\n... ({counted(len(there) - SHOWN_LINES, 'more line')})"
    if not places:
        lines = source.text.removesuffix("\n").split("\n")
        text += f"\nThe file begins:\n{_numbered(lines[:PREVIEW_LINES], 1)}"
        if len(lines) > PREVIEW_LINES:
            text += f"\n... ({counted(len(lines) - PREVIEW_LINES, 'more line')})"
    if "\\n" in old and "\n" not in old:
        text += "\nold_string holds \\n as two characters: was a line break meant?"
    return text + "\nNothing was changed. Read the place again if it is not what you expected."


def _numbered(lines: list[str], first: int) -> str:
    return "\n".join(f"{number:>4}: {line[:SHOWN_CHARS]}" for number, line in enumerate(lines, first))
