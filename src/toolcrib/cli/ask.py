"""Questions to a person: what exactly would run, and an answer that is a no unless it clearly is a yes."""

from __future__ import annotations

import asyncio
import json
import os
import re
import sys
import time
from collections.abc import Callable
from itertools import islice
from typing import TYPE_CHECKING, Any, TextIO

from toolcrib.cli.shown import on_one_line, shown, value_on_one_line
from toolcrib.question import Answer, Lasting, Question, Scope, Verdict

if TYPE_CHECKING:
    from rich.console import Console

SHOWN_LINES = 30  # lines of one argument that a question shows unasked
ROW = 76  # characters that are taken for a row of the terminal
ASKED_AGAIN = 2  # times that an answer which is none is asked for again
PROMPT = "Run it? [y]es  [n]o{always}  [?] more  [n WORDS] no, and tell the model"
NARROW_PROMPT = "[y]es [n]o{always} [?], or n WORDS"
MORE = """\
  y               run it, this once
  n, or nothing   do not; the model is told that you said no
  n use c.txt     do not; the model is told why"""
MORE_ALWAYS = """\
  a               always, with exactly these arguments, in this run
  a project       the same, in later runs in this folder too; a user: wherever you work
  a user 7d       and for that long: 30m, 8h, 7d"""
MORE_PREFIX = "  p, p project    always, for commands that begin with: {}"
WHERE = {Lasting.RUN: "in this run", Lasting.PROJECT: "in this project", Lasting.USER: "wherever you work"}
CHANGED = {"+": "green", "-": "red", "@": "cyan"}  # lines of a diff
MARGIN = "  │ "  # what comes from elsewhere stands behind it
MAX_LINE = 1 << 16

ANSWERS = {
    "y": (Verdict.YES, Scope.ARGUMENTS),
    "yes": (Verdict.YES, Scope.ARGUMENTS),
    "a": (Verdict.ALWAYS, Scope.ARGUMENTS),
    "always": (Verdict.ALWAYS, Scope.ARGUMENTS),
    "p": (Verdict.ALWAYS, Scope.PREFIX),
    "prefix": (Verdict.ALWAYS, Scope.PREFIX),
}
LASTING = {"": Lasting.RUN, "run": Lasting.RUN, "project": Lasting.PROJECT, "user": Lasting.USER}
SECONDS = {"m": 60.0, "h": 3600.0, "d": 86400.0}
FOR_HOW_LONG = re.compile(r"(?:(run|project|user)\b\s*)?(?:([1-9][0-9]{0,4})([mhd]))?", re.IGNORECASE)


def someone_is_there() -> bool:
    """Whether a person can be asked: there is a terminal to read from and one to show the question on."""
    return sys.stdin is not None and sys.stdin.isatty() and asking_stream() is not None


def asking_stream() -> TextIO | None:
    """Where a question is shown: stdout if that is a terminal, else stderr if that is one."""
    return next(
        (stream for stream in (sys.stdout, sys.stderr) if stream is not None and stream.isatty()), None
    )


def read_answer(line: str | None, clock: Callable[[], float] = time.time) -> Answer:
    """What a line means; end of input, silence and anything unknown are a no.

    "a" is said of these arguments, "p" of commands that begin alike; further words say for how long: "project"
    or "user", or else this run; and at most 30m, 8h or 7d.

    >>> answer = read_answer("n use pip instead")
    >>> answer.verdict.value, answer.message
    ('no', 'use pip instead')
    >>> answer = read_answer("p project")
    >>> answer.verdict.value, answer.scope.value, answer.lasting.value
    ('always', 'prefix', 'project')
    """
    said = (line or "").strip()
    first, _, rest = said.partition(" ")
    known, long = ANSWERS.get(first.lower()), FOR_HOW_LONG.fullmatch(rest.strip())
    if known is not None and long is not None and (known[0] is Verdict.ALWAYS or not rest.strip()):
        lasting, count, unit = LASTING[(long[1] or "").lower()], long[2], (long[3] or "").lower()
        expires = clock() + int(count) * SECONDS[unit] if count else None
        return Answer(known[0], by="terminal", scope=known[1], lasting=lasting, expires=expires)
    words = rest.strip() if first.lower().rstrip(",:") in ("n", "no") else ""
    return Answer(Verdict.NO, words, by="terminal")


def is_unclear(line: str | None) -> bool:
    """Whether somebody wrote something that is neither a yes nor a no: worth another question.

    >>> is_unclear("yes please"), is_unclear("no thanks"), is_unclear("")
    (True, False, False)
    """
    first = (line or "").strip().partition(" ")[0].lower().rstrip(",:")
    return first not in ("", "n", "no") and not read_answer(line).allows


def taken_as(question: Question, answer: Answer) -> str:
    """What of an "always" is remembered, in a line; "" for any other answer."""
    if answer.verdict is not Verdict.ALWAYS:
        return ""
    if question.strict:
        return "Taken as a yes, this once: a rule wants to be asked each time."
    by_prefix = answer.scope is Scope.PREFIX and question.prefixes
    what = f"commands that begin with {_prefixes(question)}" if by_prefix else "exactly this"
    until = ""
    if answer.expires is not None:
        until = time.strftime(", until %Y-%m-%d %H:%M", time.localtime(answer.expires))
    back = "" if answer.lasting is Lasting.RUN else " (toolcrib approvals takes it back)"
    return f"Always: {what}, {WHERE[answer.lasting]}{until}{back}."


def _prefixes(question: Question) -> str:
    return on_one_line(", ".join(" ".join(prefix) + " *" for prefix in question.prefixes))


def question_lines(question: Question, limit: int = SHOWN_LINES) -> tuple[list[tuple[str, str]], bool]:
    """A question as (style, line) pairs: what would run, with every argument, and what was repaired.

    The second value says whether something was left out for being longer than `limit` lines.
    """
    lines = [
        (
            "bold yellow",
            f"? {on_one_line(question.action)}  ({question.effect}: {on_one_line(question.reason)})",
        )
    ]
    cut = False
    arguments = (
        question.arguments if isinstance(question.arguments, dict) else {"arguments": question.arguments}
    )
    hidden = len(arguments) - limit
    if hidden > 0:
        cut = True
        lines.append(("yellow", f"{MARGIN}… {hidden:,} more arguments; s shows all of them"))
    for name, value in islice(arguments.items(), limit):
        whole = _lines_of(value)
        if question.preview and len(whole) > 1 and limit < sys.maxsize:
            lines.append(
                ("", f"{MARGIN}{on_one_line(str(name))}: {len(whole):,} lines; below is what changes")
            )
            cut = True
            continue
        if len(whole) == 1 and len(whole[0]) <= limit * ROW:
            lines.append(("", f"{MARGIN}{on_one_line(str(name))}: {whole[0]}"))
            continue
        lines.append(("", f"{MARGIN}{on_one_line(str(name))}:"))
        kept, left_out = _fitting(whole, limit)
        lines += [("", f"{MARGIN}  {line}") for line in kept]
        if left_out:
            cut = True
            lines.append(("yellow", f"{MARGIN}  … {left_out}; s shows all of them"))
    lines += [("", f"{MARGIN}{on_one_line(pattern)}") for pattern in question.patterns]
    if question.preview:
        kept, left_out = _fitting(shown(question.preview).rstrip("\n").split("\n"), limit)
        lines += [(CHANGED.get(line[:1], ""), f"{MARGIN}{line}") for line in kept]
        if left_out:
            cut = True
            lines.append(("yellow", f"{MARGIN}… {left_out}; s shows all of them"))
    lines += [("yellow", f"  ! repaired: {line}") for line in repairs(question.edits)]
    return lines, cut


def _fitting(lines: list[str], limit: int) -> tuple[list[str], str]:
    """What fits on `limit` rows, so that nothing is pushed off the screen, and in words what does not.

    Of a line that is too long its beginning and its end are kept: what matters must not hide behind padding.
    """
    kept: list[str] = []
    room = limit
    for line in lines:
        if room <= 0:
            break
        if len(line) > room * ROW:
            end = room * ROW // 3
            left = len(line) - 3 * end
            more = len(lines) - len(kept) - 1
            also = f" and {more:,} more lines" if more else ""
            return [*kept, line[: 2 * end], line[-end:]], f"{left:,} characters between these two{also}"
        kept.append(line)
        room -= 1 + len(line) // ROW
    return kept, f"{len(lines) - len(kept):,} more lines" if len(kept) < len(lines) else ""


def repairs(edits: Any) -> list[str]:
    """Each repair of the arguments in a line: where, what, and from what to what."""
    lines: list[str] = []
    for edit in edits:
        change = f"{value_on_one_line(edit.before, 60)} → {value_on_one_line(edit.after, 60)}"
        lines.append(f"{on_one_line(str(edit))}" + ("" if edit.is_syntax else f": {change}"))
    return lines


async def ask_on(console: Console, question: Question) -> Answer:
    """Show a question on a terminal and read its answer from stdin."""
    from rich.text import Text

    again = ASKED_AGAIN
    cut = _show(console, question, SHOWN_LINES)
    while True:
        forget_typed_ahead()
        prompt = _prompt(question, console.width)
        console.print(Text(prompt + ("  [s]how all" if cut else "") + ": "), end="", soft_wrap=True)
        console.file.flush()
        given = await read_line()
        if given is None:
            console.print()
        said = (given or "").strip().lower()
        if cut and said in ("s", "show"):
            cut = _show(console, question, sys.maxsize)
            continue
        if said == "?" or (again and is_unclear(given)):
            again -= said != "?"
            console.print(Text(_more(question), "dim"))
            continue
        answer = read_answer(given)
        if words := taken_as(question, answer):
            console.print(Text(words, "dim"))
        elif answer.verdict is Verdict.NO and not answer.message and said not in ("n", "no"):
            console.print(Text("Taken as a no.", "dim"))
        return answer


def _show(console: Console, question: Question, limit: int) -> bool:
    """Put a question on the screen; whether something of it was left out."""
    from rich.text import Text

    lines, cut = question_lines(question, limit)
    for style, line in lines:
        if not line.startswith(MARGIN):
            console.print(Text(line, style))
            continue
        for piece in _folded(line, console.width):
            console.print(Text(piece, style), soft_wrap=True)
    return cut


def _more(question: Question) -> str:
    """What can be answered, a line each."""
    lines = [MORE] if question.strict else [MORE, MORE_ALWAYS]
    if question.prefixes and not question.strict:
        lines.append(MORE_PREFIX.format(_prefixes(question)))
    return "\n".join(lines)


def _prompt(question: Question, width: int) -> str:
    """What can be answered; "always" only where it would be remembered."""
    always = "" if question.strict else "  [a]lways this (a project, a user 7d)"
    narrow = "" if question.strict else " [a]lways"
    if question.prefixes and not question.strict:
        always += f"  [p] always {_prefixes(question)}"
        narrow += " [p]refix"
    whole = PROMPT.format(always=on_one_line(always))
    return whole if width > len(whole) + 6 else NARROW_PROMPT.format(always=narrow)


async def read_line() -> str | None:
    """A line of stdin without blocking the loop, None at its end; cancelling it leaves nothing behind."""
    loop = asyncio.get_running_loop()
    ready: asyncio.Future[str | None] = loop.create_future()
    descriptor = sys.stdin.fileno()
    read = b""

    def on_readable() -> None:
        nonlocal read
        try:
            data = os.read(descriptor, MAX_LINE)
        except OSError:
            data = b""
        read += data
        if not ready.done() and (not data or b"\n" in read or len(read) > MAX_LINE):
            # What input ended in the middle of was not sent off: that is no answer.
            ready.set_result(read.decode("utf-8", "replace") if b"\n" in read else None)

    loop.add_reader(descriptor, on_readable)
    try:
        return await ready
    finally:
        loop.remove_reader(descriptor)


def forget_typed_ahead() -> None:
    """What was typed before a question was shown cannot be meant as its answer."""
    try:
        import termios

        termios.tcflush(sys.stdin.fileno(), termios.TCIFLUSH)
    except (ImportError, OSError, ValueError):
        pass
    except Exception:  # termios.error is no OSError: stdin is no terminal
        pass


class LineAnswers:
    """Answers that come as JSON lines on stdin, each bound to its question's fingerprint."""

    def __init__(self) -> None:
        self._waiting: dict[str, list[asyncio.Future[Answer | None]]] = {}
        self._ended = False
        self._loop: asyncio.AbstractEventLoop | None = None

    async def __call__(self, question: Question) -> Answer | None:
        """The approver: waits for the line that answers; None once stdin has ended."""
        if self._loop is None:
            self._start()
        if self._ended:
            return None
        future: asyncio.Future[Answer | None] = asyncio.get_running_loop().create_future()
        self._waiting.setdefault(question.fingerprint, []).append(future)
        return await future

    def _start(self) -> None:
        import threading

        self._loop = asyncio.get_running_loop()
        threading.Thread(target=self._read, name="toolcrib-answers", daemon=True).start()

    def _read(self) -> None:
        assert self._loop is not None
        try:
            for line in sys.stdin:
                self._loop.call_soon_threadsafe(self._take, line)
            self._loop.call_soon_threadsafe(self._end)
        except (RuntimeError, ValueError):  # the run is over, and its loop with it
            pass

    def _take(self, line: str) -> None:
        try:
            data = json.loads(line)
            answer = answer_from(data, by="stdin")
            fingerprint = str(data["fingerprint"])
        except (ValueError, KeyError, TypeError, AttributeError):
            print(  # noqa: T201
                f'toolcrib: not an answer, ignored: {on_one_line(line.strip(), 120)} (expected {{"fingerprint": '
                '"…", "verdict": "yes" | "no" | "always"})',
                file=sys.stderr,
            )
            return
        waiting = [future for future in self._waiting.get(fingerprint, ()) if not future.done()]
        if waiting:
            waiting[0].set_result(answer)

    def _end(self) -> None:
        self._ended = True
        for futures in self._waiting.values():
            for future in futures:
                if not future.done():
                    future.set_result(None)


def answer_from(data: dict[str, Any], *, by: str) -> Answer:
    """An answer as JSON data: `verdict`, and perhaps `message`, `scope`, `lasting`, `expires`, `arguments`.

    Raises ValueError, KeyError or TypeError for what is none.
    """
    arguments, expires = data.get("arguments"), data.get("expires")
    if arguments is not None and not isinstance(arguments, dict):
        raise TypeError("arguments must be an object")
    return Answer(
        Verdict(data["verdict"]),
        str(data.get("message", "")),
        by,
        data.get("scope") or Scope.ARGUMENTS,
        data.get("lasting") or Lasting.RUN,
        None if expires is None else float(expires),
        arguments,
    )


def _folded(line: str, width: int) -> list[str]:
    """A line as rows of the terminal; continued arguments keep their margin, so that they cannot pose as ours."""
    from rich.cells import cell_len, chop_cells

    if cell_len(line) < width:
        return [line]
    first, *_ = chop_cells(line, max(width - 1, 10))
    rest = chop_cells(line[len(first) :], max(width - 1 - len(MARGIN), 10))
    return [first, *(MARGIN + piece for piece in rest)]


def _lines_of(value: Any) -> list[str]:
    if isinstance(value, str):
        text = shown(value)
        if text != text.strip() or "\n" in text or not text:
            if "\n" not in text:
                return [value_on_one_line(value)]
            lines = text.split("\n")
            return lines[:-1] if lines[-1] == "" else [*lines, "(no line break at the end)"]
        return [text]
    text = json.dumps(value, ensure_ascii=False, default=str)
    if len(text) > 70 and isinstance(value, dict | list):
        text = json.dumps(value, ensure_ascii=False, indent=2, default=str)
    return shown(text).split("\n")
