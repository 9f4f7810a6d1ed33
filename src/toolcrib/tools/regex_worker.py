"""Runs in a process of its own, so that a search with a never-ending regular expression can be stopped.

It receives text and opens no file. It imports only the standard library, because it starts in isolated mode.

One line of JSON says what to look for. Then batches: a line of JSON with the byte lengths of the texts, and the
texts. Answered by a line of JSON a batch: for each text, the number of matching lines, the lines to show as
[number, text, whether it matched]. For an invalid pattern it answers with a line that gives the reason.
"""

from __future__ import annotations

import json
import re
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    Line = tuple[int, str, bool]
    Found = tuple[int, int, int, int]  # a line's number, where it begins and ends, where the match begins

LONGEST = 200  # characters of a word that is not cut
LAST_WORD = re.compile(r"[^\s\"'`,;<>(){}\[\]|&]*\Z")
CPU_SECONDS = 120  # should our parent be gone, we go too


class Search:
    """What to look for, and how many matching lines are still to be passed over, shown, or counted."""

    def __init__(self, asked: dict[str, Any]) -> None:
        flags = re.IGNORECASE if asked["ignore_case"] else 0
        self.multiline: bool = asked["multiline"]
        if self.multiline:
            flags |= re.MULTILINE | re.DOTALL
        self.pattern = re.compile(asked["pattern"], flags)
        self.filter = re.compile(asked["filter"], re.MULTILINE) if asked["filter"] else None
        self.before: int = asked["before"]
        self.after: int = asked["after"]
        self.skip: int = asked["skip"]
        self.room: int = asked["room"]
        self.width: int = asked["width"]
        self.most: int | None = asked["most"]  # matching lines of one text, after which it is left

    def search(self, text: str) -> tuple[int, list[Line]]:
        """The number of matching lines, as far as they were looked for, and the lines to show."""
        if "\r" in text:
            text = text.replace("\r\n", "\n").removesuffix("\r")
        count = 0
        shown: list[Found] = []
        most = self.skip + self.room + 1 if self.most is None else self.most
        for found in self._spanning(text) if self.multiline else self._lines(text):
            count += 1
            if self.skip < count <= self.skip + self.room:
                shown.append(found)
            if count >= most:
                break
        lines = self._with_context(text, shown)
        if self.most is None:
            self.room -= len(shown)
            self.skip = max(0, self.skip - count)
        return count, lines

    def _lines(self, text: str) -> Iterator[Found]:
        """The lines in which the pattern is found."""
        if self.filter is None:
            start = 0
            for number, line in enumerate(text.split("\n"), 1):
                if start < len(text) and (found := self.pattern.search(line)):
                    yield number, start, start + len(line), found.start()
                start += len(line) + 1
            return
        number, counted, at = 1, 0, 0
        while at < len(text) and (hint := self.filter.search(text, at)):
            start = text.rfind("\n", 0, hint.start()) + 1
            end = text.find("\n", start)
            end = len(text) if end < 0 else end
            if found := self.pattern.search(text[start:end]):
                number += text.count("\n", counted, start)
                counted = start
                yield number, start, end, found.start()
            at = end + 1

    def _spanning(self, text: str) -> Iterator[Found]:
        """The lines that matches touch, in the whole text."""
        number, counted, done = 1, 0, -1
        for found in self.pattern.finditer(text):
            last = max(found.start(), found.end() - 1)
            start = max(text.rfind("\n", 0, found.start()) + 1, done + 1)
            at = max(0, found.start() - start)
            while start <= last and (start < len(text) or not text):
                end = text.find("\n", start)
                end = len(text) if end < 0 else end
                number += text.count("\n", counted, start)
                counted = start
                yield number, start, end, at
                done, start, at = end, end + 1, 0

    def _with_context(self, text: str, shown: list[Found]) -> list[Line]:
        lines: list[Line] = []
        for index, (number, start, end, at) in enumerate(shown):
            before: list[Line] = []
            last = lines[-1][0] if lines else 0
            while len(before) < self.before and number - len(before) - 1 > last:
                begin = text.rfind("\n", 0, start - 1) + 1
                before.append((number - len(before) - 1, self._clip(text, begin, start - 1, 0), False))
                start = begin
            start = shown[index][1]
            lines += [*reversed(before), (number, self._clip(text, start, end, at), True)]
            following = shown[index + 1][0] if index + 1 < len(shown) else None
            for _ in range(self.after):
                number += 1
                if end + 1 >= len(text) or number == following:
                    break
                start, end = end + 1, text.find("\n", end + 1)
                end = len(text) if end < 0 else end
                lines.append((number, self._clip(text, start, end, 0), False))
        return lines

    def _clip(self, text: str, start: int, end: int, at: int) -> str:
        """At most `width` characters of a line, around the position `at`."""
        length = end - start
        if length <= self.width:
            return text[start:end]
        first = max(0, min(at - self.width // 4, length - self.width))
        last = first + self.width
        # Between words, where there are blanks: a secret is masked where it stands as a whole.
        first -= _begun_word(text[max(start, start + first - LONGEST) : start + first])
        if last < length:
            last -= _begun_word(text[start + max(first, at, last - LONGEST) : start + last])
        left = f"[{first} characters ...] " if first else ""
        right = f" [... {length - last} more characters]" if last < length else ""
        return left + text[start + first : start + last] + right


def _begun_word(text: str) -> int:
    """As `word_cuts.begun_word`, which cannot be imported here; 0 where no sign stands before the word."""
    found = LAST_WORD.search(text)
    return len(found[0]) if found and found.start() else 0


def batches() -> Iterator[list[str]]:
    stream = sys.stdin.buffer
    while header := stream.readline():
        yield [stream.read(size).decode("utf-8", "replace") for size in json.loads(header)]


def main() -> None:
    if sys.platform != "win32":
        import resource

        try:
            resource.setrlimit(resource.RLIMIT_CPU, (CPU_SECONDS, CPU_SECONDS))
        except (ValueError, OSError):
            pass
    try:
        search = Search(json.loads(sys.stdin.buffer.readline()))
    except (re.error, RecursionError, OverflowError) as wrong:
        for _ in batches():
            sys.stdout.write(json.dumps(str(wrong)) + "\n")
            sys.stdout.flush()
        return
    for texts in batches():
        sys.stdout.write(json.dumps([search.search(text) for text in texts]) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
