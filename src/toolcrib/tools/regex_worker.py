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
from collections.abc import Iterator

CPU_SECONDS = 120  # should our parent be gone, we go too

Line = tuple[int, str, bool]


def search(
    text: str, pattern: re.Pattern[str], context: int, room: int, width: int
) -> tuple[int, list[Line]]:
    """The number of matching lines and, up to `room` of those, the lines to show."""
    lines = text.split("\n")
    if lines and not lines[-1]:
        lines.pop()
    count = 0
    shown: list[Line] = []
    last = -1  # the last line shown
    after = -1  # context reaches to here
    for index, line in enumerate(lines):
        found = pattern.search(line.removesuffix("\r"))
        if found:
            count += 1
            if count > room:
                continue
            first = max(last + 1, index - context)
            shown += [(number + 1, clip(lines[number], 0, width), False) for number in range(first, index)]
            shown.append((index + 1, clip(line, found.start(), width), True))
            last, after = index, index + context
        elif index <= after:
            shown.append((index + 1, clip(line, 0, width), False))
            last = index
    return count, shown


def clip(line: str, at: int, width: int) -> str:
    """At most `width` characters of a line, around the position `at`."""
    line = line.removesuffix("\r")
    if len(line) <= width:
        return line
    start = max(0, min(at - width // 4, len(line) - width))
    end = start + width
    left = f"[{start} characters ...] " if start else ""
    right = f" [... {len(line) - end} more characters]" if end < len(line) else ""
    return left + line[start:end] + right


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
    asked = json.loads(sys.stdin.buffer.readline())
    try:
        pattern = re.compile(asked["pattern"], re.IGNORECASE if asked["ignore_case"] else 0)
    except (re.error, RecursionError, OverflowError) as wrong:
        for _ in batches():
            sys.stdout.write(json.dumps(str(wrong)) + "\n")
            sys.stdout.flush()
        return
    room = asked["room"]
    for texts in batches():
        answers: list[tuple[int, list[Line]]] = []
        for text in texts:
            count, shown = search(text, pattern, asked["context"], room, asked["width"])
            if not asked["all"]:
                room = max(0, room - count)
            answers.append((count, shown))
        sys.stdout.write(json.dumps(answers) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
