"""A call on a terminal: a card while it runs, and the lines that stay when it has finished."""

from __future__ import annotations

import time
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from rich.text import Text

from toolcrib.call import CallState
from toolcrib.cli.question_text import repair_lines
from toolcrib.cli.wording import DIFF_STYLES, arguments_as_pairs
from toolcrib.dataclass import dataclass, field
from toolcrib.visible import counted, escape_invisible, on_one_line, with_title

if TYPE_CHECKING:
    from toolcrib.events import ArgumentsDelta, CallFinished, ToolStatus

STYLES = {
    CallState.WAIT: "yellow",
    CallState.DOING: "cyan",
    CallState.SUCCESS: "green",
    CallState.ERROR: "red",
}
HEAD_LINES = 3  # lines of a result that stay on the screen
TAIL_LINES = 8  # lines of a command's output
DIFF_LINES = 40
LIVE_LINES = 5  # lines of output in the card of a running call
TITLE = 60  # characters of a tool's title
ARGUMENT = 40  # characters of one argument
BAR = 20
ECHO = 4  # columns left free for the ^C that a terminal echoes, so that it starts no new row
ONE_ROW: dict[str, Any] = {
    "no_wrap": True,
    "overflow": "ellipsis",
}  # for a terminal; a pipe gets the whole line
MAX_GROWING = 4_000  # characters kept of a text that is streaming in
MAX_PIECES = 2_000  # pieces of arguments that are kept of a call


@dataclass(slots=True)
class Card:
    """A call: its status, its arguments as they stream in, and its result."""

    status: ToolStatus
    within: str = ""  # the agent or tool whose call this is, if the model of the run did not make it itself
    growing: dict[str, Any] = field(default_factory=dict)
    finished: CallFinished | None = None
    since: float = field(default_factory=time.monotonic)
    _pieces: int = 0

    def grow(self, event: ArgumentsDelta) -> None:
        """Take in a piece of the arguments."""
        if not event.path or self._pieces >= MAX_PIECES:
            return
        self._pieces += 1
        place: Any = self.growing
        for step, following in pairwise(event.path):
            place = _put(place, step, [] if isinstance(following, int) else {}, keep=True)
        last = event.path[-1]
        before = _at(place, last)
        if isinstance(event.delta, str) and not event.finished and isinstance(before, str):
            _put(place, last, (before + event.delta)[:MAX_GROWING])
        elif before is None or not isinstance(event.delta, str):
            _put(place, last, event.delta)

    @property
    def exit_code(self) -> int:
        """The exit code of a command; 0 while it runs, and for tools that run no command."""
        code = _of(self.status.result, "exit_code")
        return code if isinstance(code, int) else 0

    def live_lines(self, width: int) -> list[Text]:
        """The card of a running call: a line with its state and arguments, then what its tool reports."""
        status = self.status
        lines = [self._head(f"{time.monotonic() - self.since:.1f} s", self.growing | status.params)]
        if status.progress is not None:
            filled = round(BAR * min(max(status.progress, 0.0), 1.0))
            lines.append(Text(f"  {'█' * filled}{'░' * (BAR - filled)} {status.progress:.0%}", "cyan"))
        if status.tip:
            lines.append(Text(f"  {on_one_line(status.tip)}", "dim"))
        output = _reported(status.result, "output")
        lines += [Text(f"  │ {on_one_line(line)}", "dim") for line in output.splitlines()[-LIVE_LINES:]]
        for line in lines:
            line.truncate(max(width - ECHO, 10), overflow="ellipsis")
        return lines

    def final_lines(self) -> list[Text]:
        """The lines of a finished call: state, arguments, duration, repairs, and the beginning of the result."""
        status, finished = self.status, self.finished
        seconds = f"{finished.duration:.2f} s" if finished is not None else ""
        lines = [self._head(seconds, status.params or self.growing)]
        result = finished.result if finished is not None else None
        lines += [
            Text(f"  ! repaired: {line}", "yellow") for line in repair_lines(result.edits if result else ())
        ]
        if status.tip and status.state is CallState.SUCCESS:
            lines.append(Text(f"  {on_one_line(status.tip)}", "dim"))
        text = result.text if result is not None else ""
        if status.state is CallState.ERROR:
            lines += _looked_at(text, TAIL_LINES, "red")
            if finished is not None and finished.problem:
                last = finished.problem.strip().splitlines()[-1]
                lines.append(Text(f"  {on_one_line(last, 200)}", "dim red"))
        elif diff := _reported(status.result, "diff"):
            lines += _diff_lines(diff)
        elif output := _reported(status.result, "output"):
            lines += _looked_at(output, TAIL_LINES, "dim", from_end=True)
        elif not status.tip:
            lines += _looked_at(text, HEAD_LINES, "dim")
        return lines

    def _head(self, seconds: str, arguments: dict[str, Any]) -> Text:
        state = self.status.state
        word, style = f"{state.value.upper():<7}", STYLES[state]
        if self.exit_code and state is CallState.SUCCESS:  # the tool succeeded, its command did not
            word, style = f"exit code {self.exit_code}", "yellow"
        line = Text(word, f"bold {style}", **ONE_ROW)
        if self.within:
            line.append(f" {on_one_line(self.within, TITLE)} ›", "cyan")
        tool = on_one_line(self.status.tool)
        line.append(f" {tool}", "bold")
        line.append(with_title("", tool, on_one_line(self.status.title, TITLE)))
        if seconds:
            line.append(f"  {seconds}", "dim")
        if arguments:
            line.append(f"  {arguments_as_pairs(arguments, ARGUMENT)}")
        return line


def _at(place: Any, step: str | int) -> Any:
    """What stands at a step of a path; None where nothing does."""
    if isinstance(place, dict):
        return place.get(step)
    return place[step] if isinstance(place, list) and isinstance(step, int) and step < len(place) else None


def _put(place: Any, step: str | int, value: Any, *, keep: bool = False) -> Any:
    """Put a value into an object or list, or keep the object or list that is there; gives what stands there now."""
    there = _at(place, step)
    if keep and isinstance(there, dict | list):
        return there
    if isinstance(place, dict):
        place[step] = value
    elif there is None:
        place.append(value)
    elif isinstance(step, int):
        place[step] = value
    return value


def _reported(result: Any, name: str) -> str:
    value = _of(result, name)
    return value if isinstance(value, str) else ""


def _of(result: Any, name: str) -> Any:
    """A field of what the tool reported, if it reported an object."""
    return result.get(name) if isinstance(result, dict) else None


def _looked_at(text: str, limit: int, style: str, *, from_end: bool = False) -> list[Text]:
    """The first or last lines of a text, with a line that counts the others."""
    lines = escape_invisible(text).rstrip().split("\n") if text.strip() else []
    left = len(lines) - limit
    if left <= 1:
        kept, note = lines, []
    else:
        kept = lines[-limit:] if from_end else lines[:limit]
        note = [Text(f"  │ … {counted(left, 'earlier line' if from_end else 'more line')}", "dim")]
    row = ONE_ROW if style == "dim" else {}
    body = [Text(f"  │ {on_one_line(line, 300)}", style, **row) for line in kept]
    return [*note, *body] if from_end else [*body, *note]


def _diff_lines(diff: str) -> list[Text]:
    lines = escape_invisible(diff).splitlines()
    if len(lines) > 1 and lines[0].startswith("--- ") and lines[1].startswith("+++ "):
        lines = lines[2:]  # the head line of the card names the file
    body = [
        Text(f"  {on_one_line(line, 300)}", DIFF_STYLES.get(line[:1], "dim"), **ONE_ROW)
        for line in lines[:DIFF_LINES]
    ]
    if len(lines) > DIFF_LINES:
        body.append(Text(f"  … {counted(len(lines) - DIFF_LINES, 'more line')} of the diff", "dim"))
    return body
