"""The demo's model: a script that reads the real results of its calls.

It finds the faulty file and line in the output of the tests, repairs the line that it read there, and runs the tests
again. It says so and ends when a result is not what it expects.
"""

from __future__ import annotations

import re
from collections.abc import Generator
from typing import Any

from toolcrib.messages import Request, ResultPart
from toolcrib.models import Scripted
from toolcrib.result import ToolResult

FRAME = re.compile(r'File "(?P<path>[^"]+)", line (?P<line>\d+), in (?P<function>\w+)')
QUOTIENT = re.compile(r"(?P<indent>\s*)return (?P<quotient>sum\((?P<items>\w+)\) / len\((?P=items)\))\s*\Z")
FAILURE = re.compile(r"^(\w+(?:Error|Exception)): (.*)$", re.MULTILINE)

Turn = dict[str, Any]
Results = list[ToolResult]


def demo_model(command: str) -> Scripted:
    """The model; `command` is how the project's tests are run."""
    story = _story(command)
    started = False

    def answer(request: Request) -> Turn:
        nonlocal started
        if not started:
            started = True
            return next(story)
        return story.send(_last_results(request))

    return Scripted(answer, name="scripted (the demo's)", delay=0.01, chunk_size=12)


def _story(command: str) -> Generator[Turn, Results, None]:
    results = yield _turn("I'll look around first.", ("list_dir", {"path": ".", "depth": 2}))
    names = results[0].text
    if "test" not in names:
        yield _end("I expected a project with tests, and see none:\n" + names)
    # The number comes as text, as models like to send it: the toolbox repairs that, and says so.
    results = yield _turn(
        "There is a package and a folder of tests. I'll read the README and the tests.",
        ("read_file", {"path": "README.md"}),
        ("read_file", {"path": "tests/test_weights.py", "limit": "200"}),
    )
    if any(result.is_error for result in results):
        yield _end("I could not read the project: " + _first_error(results))
    results = yield _turn("Now I run the tests to see where they stand.", ("shell", {"command": command}))
    before = results[0]
    if _refused(before):
        yield _end(f"I was not allowed to run the tests, so I changed nothing. {before.text}")
    if _passed(before):
        yield _end("All tests pass already; there is nothing to mend.")
    place = _failing_line(before.text)
    if place is None:
        yield _end("The tests fail, but their output names no line that I could look at:\n" + before.text)
        return
    path, line = place
    results = yield _turn(
        f"They fail with {_failure(before.text)}, raised in {path}, line {line}. I'll read that file.",
        ("read_file", {"path": path}),
    )
    lines = results[0].text.split("\n")
    found = QUOTIENT.match(lines[line - 1]) if not results[0].is_error and line <= len(lines) else None
    if found is None:
        yield _end(f"Line {line} of {path} is not something that I know how to mend.")
        return
    items = found["items"]
    mended = f"{found['indent']}return {found['quotient']} if {items} else 0.0"
    results = yield _turn(
        f"`{found['quotient']}` divides by zero when `{items}` is empty, and the docstring promises 0 then. "
        "I'll mend that one line.",
        ("edit_file", {"path": path, "old_string": lines[line - 1], "new_string": mended}),
    )
    if results[0].is_error:
        yield _end(f"The fault is in {path}, line {line}, but I could not mend it. {results[0].text}")
    results = yield _turn("I run the tests again.", ("shell", {"command": command}))
    after = results[0]
    if _refused(after):
        yield _end(f"I changed {path}, line {line}, but could not run the tests again. {after.text}")
    if not _passed(after):
        yield _end(f"I changed {path}, line {line}, but the tests still fail with {_failure(after.text)}.")
    yield _end(
        f"All tests pass now. They failed because `mean` in {path} divided by the number of parcels without "
        f"asking whether there are any; line {line} now gives 0.0 for an empty delivery. Nothing else changed."
    )


def _turn(text: str, *calls: tuple[str, dict[str, Any]]) -> Turn:
    return {"text": text, "calls": [{"name": name, "arguments": given} for name, given in calls]}


def _end(text: str) -> Turn:
    return _turn("", ("attempt_completion", {"result": text}))


def _last_results(request: Request) -> Results:
    return [part.result for part in request.messages[-1].parts if isinstance(part, ResultPart)]


def _failing_line(output: str) -> tuple[str, int] | None:
    """The innermost file and line of the package in a traceback; tests do not count."""
    for frame in reversed(list(FRAME.finditer(output))):
        path = re.search(r"(?:^|/)(parcels/[\w/]+\.py)\Z", frame["path"])
        if path is not None:
            return path[1], int(frame["line"])
    return None


def _failure(output: str) -> str:
    found = FAILURE.findall(output)
    return f"{found[-1][0]} ({found[-1][1]})" if found else "errors"


def _passed(result: ToolResult) -> bool:
    return not result.is_error and "\nOK" in result.text and "exit code" not in result.text


def _refused(result: ToolResult) -> bool:
    return result.code is not None and result.code.value in ("rejected", "nobody_to_ask", "denied")


def _first_error(results: Results) -> str:
    return next(result.text for result in results if result.is_error)
