"""Questions to a person on a terminal: a question is shown, and a line of stdin is read as its answer."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Iterable
from typing import Any, TextIO

from rich.cells import cell_len, chop_cells
from rich.console import Console
from rich.text import Text

from toolcrib.cli.answers import is_unclear, read_answer, read_reply
from toolcrib.cli.console import as_printed
from toolcrib.cli.question_text import (
    FORM_HELP,
    MARGIN,
    SHOWN_LINES,
    StyledLine,
    answer_help,
    field_lines,
    field_prompt,
    input_lines,
    input_prompt,
    prompt_line,
    question_lines,
    remembered,
)
from toolcrib.event_loops import on_own_thread
from toolcrib.forms import field_value
from toolcrib.question import Answer, Question, Verdict
from toolcrib.visible import on_one_line

INDENT = "    "  # of the further rows of a line that has no margin
ASKED_AGAIN = 2  # how often an unclear answer is asked for again
MAX_LINE = 1 << 16


def console_on(stream: TextIO | None) -> Console:
    """A console on a stream that prints text as it is; it knows whether the stream is a terminal."""
    return Console(file=stream, highlight=False, markup=False, emoji=False)


async def ask_on(console: Console, question: Question) -> Answer:
    """Show a question on a terminal and read its answer from stdin."""
    if question.kind == "input":
        return await _ask_for_input(console, question)
    again = ASKED_AGAIN
    cut = show(console, question, SHOWN_LINES)
    while True:
        forget_typed_ahead()
        prompt = prompt_line(question, console.width)
        console.print(Text(prompt + ("  [s]how all" if cut else "") + ": "), end="", soft_wrap=True)
        console.file.flush()
        given = await read_line()
        if given is None:
            console.print()
        word = (given or "").strip().lower()
        if cut and word in ("s", "show"):
            cut = show(console, question, sys.maxsize)
            continue
        if word == "?" or (again and is_unclear(given)):
            again -= word != "?"
            console.print(Text(answer_help(question, console.width), "dim"))
            continue
        answer = read_answer(given)
        if line := remembered(question, answer):
            console.print(Text(line, "dim"))
        elif answer.verdict is Verdict.NO and not answer.message and word not in ("n", "no"):
            console.print(Text("Taken as a no.", "dim"))
        return answer


async def _ask_for_input(console: Console, question: Question) -> Answer:
    """Show a question for input with its options, and read a line as the reply."""
    print_lines(console, input_lines(question))
    if question.form:
        return await _ask_form(console, question)
    given = await _line(console, input_prompt(question))
    return read_reply(given, question.options, several=question.several)


async def _ask_form(console: Console, question: Question) -> Answer:
    """Ask for one field after the other, and at the end whether to send them. `-` at any field declines."""
    values: dict[str, Any] = {}
    console.print(Text(FORM_HELP, "dim"))
    for field in question.form:
        print_lines(console, field_lines(field))
        for again in reversed(range(ASKED_AGAIN + 1)):
            given = await _line(console, field_prompt(field))
            if given is None or given.strip() == "-":
                return Answer(Verdict.NO, by="terminal")
            if not given.strip() and (field.default is not None or not field.required):
                break
            try:
                values[field.name] = field_value(field, given.strip())
                break
            except ValueError as problem:
                print_lines(console, [("yellow", f"{MARGIN}{on_one_line(str(problem))}")])
                if not again:
                    return Answer(Verdict.NO, by="terminal")
    given = await _line(console, f"Send this to the server {on_one_line(question.source)}? [y]es  [n]o")
    sent = (given or "").strip().lower() in ("y", "yes")
    return Answer(Verdict.YES if sent else Verdict.NO, by="terminal", values=values if sent else None)


async def _line(console: Console, prompt: str) -> str | None:
    """Show a prompt and read a line; None at the end of input."""
    forget_typed_ahead()
    console.print(Text(prompt + ": "), end="", soft_wrap=True)
    console.file.flush()
    given = await read_line()
    if given is None:
        console.print()
    return given


def show(console: Console, question: Question, limit: int) -> bool:
    """Print a question, at most so many lines of each part; returns whether something of it was cut."""
    lines, cut = question_lines(question, limit)
    print_lines(console, lines)
    return cut


def print_lines(console: Console, lines: Iterable[StyledLine]) -> None:
    """Print lines, so that no text that is not toolcrib's own begins a row of the terminal."""
    for style, line in lines:
        for row in _rows(console, line):
            console.print(Text(row, style), soft_wrap=True)


def _rows(console: Console, line: str) -> list[str]:
    """A line as rows of the terminal. Each row keeps the margin of the line, or is indented: none looks like a line
    of toolcrib. A terminal would move on at a tab, and wrap where nobody counted on it."""
    margin, width = as_printed(MARGIN, console.file), console.width - 1
    line = as_printed(line.expandtabs(), console.file)
    if cell_len(line) <= width:
        return [line]
    if line.startswith(margin):
        first, *_ = chop_cells(line, max(width, 10))
        rest = chop_cells(line[len(first) :], max(width - len(margin), 10))
        return [first, *(margin + piece for piece in rest)]
    rows = [row.plain.strip() for row in Text(line).wrap(console, max(width - len(INDENT), 10))]
    return [rows[0], *(INDENT + row for row in rows[1:] if row)]


async def read_line() -> str | None:
    """Read a line of stdin without blocking the event loop; None at the end of input. May be cancelled."""
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
            # A line that the end of input cut short was not sent with Enter: it is no answer.
            ready.set_result(read.decode("utf-8", "replace") if b"\n" in read else None)

    try:
        loop.add_reader(descriptor, on_readable)
    except NotImplementedError:  # Windows
        line = await on_own_thread(sys.stdin.readline, "toolcrib line")
        return line if line.endswith("\n") else None
    try:
        return await ready
    finally:
        loop.remove_reader(descriptor)


def forget_typed_ahead() -> None:
    """Drop what was typed before the question was shown, because it cannot be meant as the answer."""
    if sys.platform == "win32":
        return
    import termios

    try:
        termios.tcflush(sys.stdin.fileno(), termios.TCIFLUSH)
    except (OSError, ValueError):
        pass
    except Exception:  # termios.error is no OSError: stdin is no terminal
        pass
