"""A question as lines of text: what exactly would run, and what can be answered."""

from __future__ import annotations

import json
import sys
from itertools import islice
from textwrap import fill
from typing import Any

from toolcrib.cli.wording import DIFF_STYLES, local_minute, value_on_one_line
from toolcrib.forms import FormField, expected
from toolcrib.question import Answer, Lasting, Question, Scope, Verdict
from toolcrib.visible import counted, escape_invisible, on_one_line

SHOWN_LINES = 30  # lines of an argument that a question shows at once
ROW = 76  # characters that count as a row of the terminal
MARGIN = "  │ "  # begins every line whose text is not toolcrib's own
PROMPT = "Run it? [y]es  [n]o{always}  [?] more  [n WORDS] no, and tell the model"
NARROW_PROMPT = "[y]es [n]o{always} [?], or n WORDS"
MORE = """\
  y               run it, this once
  n, or nothing   do not run it; the model is told that you said no
  n use c.txt     do not run it; the model is told why"""
MEANING = 18  # the column of what an answer means
MORE_ALWAYS = "  a               always run it with exactly these arguments, in this run"
MORE_LASTING = {
    Lasting.PROJECT: "  a project       the same, in later runs in this folder too",
    Lasting.USER: "  a user          the same, wherever you work",
}
MORE_TIME = "  {:<15} the same, but only for so long: 30m, 8h, 7d"
MORE_PREFIX = "  {:<15} always run commands that begin with: {}"
MORE_FOLDER = "  {:<15} always let this tool read and write files below: {}"
FORM_HELP = "  A field at a time. A single - instead of a value: you do not want to answer."
WHERE = {Lasting.RUN: "in this run", Lasting.PROJECT: "in this project", Lasting.USER: "wherever you work"}
StyledLine = tuple[str, str]  # a style of Rich, and the text


def question_lines(question: Question, limit: int = SHOWN_LINES) -> tuple[list[StyledLine], bool]:
    """A question as lines: what would run, with every argument, a preview of the change, and repairs.

    The second value says whether something longer than `limit` lines was cut.
    """
    action, reason = on_one_line(question.heading), on_one_line(question.reason)
    lines: list[StyledLine] = [("bold yellow", f"? {action}  ({question.effect}: {reason})")]
    arguments = question.arguments
    if not isinstance(arguments, dict):
        arguments = {"arguments": arguments}
    cut = len(arguments) > limit
    if cut:
        lines.append(
            ("yellow", f"{MARGIN}… {counted(len(arguments) - limit, 'more argument')}; s shows all of them")
        )
    for name, value in islice(arguments.items(), limit):
        added, was_cut = _argument_lines(
            on_one_line(str(name)), value, limit, previewed=bool(question.preview)
        )
        lines += added
        cut = cut or was_cut
    lines += [("", f"{MARGIN}{on_one_line(pattern)}") for pattern in question.patterns]
    if question.preview:
        kept, left_out = _fitting(escape_invisible(question.preview).rstrip("\n").split("\n"), limit)
        lines += [(DIFF_STYLES.get(line[:1], ""), f"{MARGIN}{line}") for line in kept]
        if left_out:
            cut = True
            lines.append(("yellow", f"{MARGIN}… {left_out}; s shows all of them"))
    lines += [("yellow", f"  ! repaired: {line}") for line in repair_lines(question.edits)]
    return lines, cut


def input_lines(question: Question) -> list[StyledLine]:
    """A question for input as lines: the words of the model or of a server, and the options with their numbers."""
    text = escape_invisible(question.action).strip().split("\n")
    lines: list[StyledLine] = [("bold yellow", f"? {on_one_line(question.tool)} asks you:")]
    if question.source:
        lines = [("bold yellow", f"? {on_one_line(question.reason)}  (tool {on_one_line(question.tool)})")]
    lines += [("bold", f"{MARGIN}{line}") for line in text[:SHOWN_LINES]]
    if len(text) > SHOWN_LINES:
        lines.append(("yellow", f"{MARGIN}… not shown: {counted(len(text) - SHOWN_LINES, 'more line')}"))
    if question.url:
        lines.append(("bold", f"{MARGIN}{on_one_line(question.url)}"))
    return [*lines, *(("", f"{MARGIN}{n}. {on_one_line(one)}") for n, one in enumerate(question.options, 1))]


def field_lines(field: FormField) -> list[StyledLine]:
    """A field of a form as lines: what it is called, what it is for, and what to choose from."""
    lines: list[StyledLine] = [("bold", f"{MARGIN}{on_one_line(field.label)}")]
    if field.description:
        lines.append(("", f"{MARGIN}  {on_one_line(field.description)}"))
    if field.kind in ("choice", "choices"):
        lines += [("", f"{MARGIN}  {on_one_line(label)}") for _, label in field.options[:SHOWN_LINES]]
    return lines


def field_prompt(field: FormField) -> str:
    """The prompt of a field of a form."""
    what = {"choice": "One of these", "choices": "Any of these, with commas between"}.get(field.kind)
    what = what or expected(field)[:1].upper() + expected(field)[1:]
    if field.default is not None:
        default = ", ".join(field.default) if isinstance(field.default, list) else field.default
        shown = {True: "yes", False: "no"}[default] if isinstance(default, bool) else str(default)
        return f"{what} (Enter alone: {on_one_line(shown, 60)})"
    return what if field.required else f"{what} (Enter alone: none)"


def input_prompt(question: Question) -> str:
    """The prompt of a question for input."""
    count = len(question.options)
    if not count:
        return f"Your answer{'s' if question.several else ''} (Enter alone: none)"
    which = f"Numbers 1-{count}, such as 1 2," if question.several else f"A number 1-{count},"
    return f"{which} or your own words (Enter alone: none)"


def _argument_lines(name: str, value: Any, limit: int, *, previewed: bool) -> tuple[list[StyledLine], bool]:
    """An argument as lines, and whether it was cut. Where a preview shows the change, a long value is only counted."""
    whole = _lines_of(value)
    if previewed and len(whole) > 1 and limit < sys.maxsize:
        return [("", f"{MARGIN}{name}: {counted(len(whole), 'line')}; below is what changes")], True
    if len(whole) == 1 and len(whole[0]) <= limit * ROW:
        return [("", f"{MARGIN}{name}: {whole[0]}")], False
    kept, left_out = _fitting(whole, limit)
    lines: list[StyledLine] = [("", f"{MARGIN}{name}:"), *(("", f"{MARGIN}  {line}") for line in kept)]
    if left_out:
        lines.append(("yellow", f"{MARGIN}  … {left_out}; s shows all of them"))
    return lines, bool(left_out)


def repair_lines(edits: Any) -> list[str]:
    """A line for each repair of the arguments: where, what was done, and the value before and after."""
    lines: list[str] = []
    for edit in edits:
        change = f"{value_on_one_line(edit.before, 60)} → {value_on_one_line(edit.after, 60)}"
        lines.append(f"{on_one_line(str(edit))}" + ("" if edit.is_syntax else f": {change}"))
    return lines


def remembered(question: Question, answer: Answer) -> str:
    """One line about what an answer "always" allows from now on; "" for any other answer."""
    if answer.verdict is not Verdict.ALWAYS:
        return ""
    if question.strict:
        return "Taken as a yes, this once: a rule asks each time."
    what = "exactly this"
    if answer.scope is Scope.PREFIX and question.prefixes:
        what = f"commands that begin with {_prefixes(question)}"
    elif answer.scope is Scope.FOLDER and question.folders:
        what = f"{on_one_line(question.tool)} of {_folders(question)}"
    until = ""
    if answer.expires is not None:
        until = f", until {local_minute(answer.expires)}"
    lasting = answer.lasting_among(question.lastings)
    back = "" if lasting is Lasting.RUN else " (toolcrib approvals takes it back)"
    return f"Always: {what}, {WHERE[lasting]}{until}{back}."


def prompt_line(question: Question, width: int) -> str:
    """The prompt: the possible answers, with "always" only where it would be remembered."""
    from rich.cells import cell_len

    longer = {Lasting.PROJECT: "a project", Lasting.USER: "a user 7d"}
    named = ", ".join(words for lasting, words in longer.items() if lasting in question.lastings)
    always = "" if question.strict else f"  [a]lways this ({named or 'a 8h'})"
    narrow = "" if question.strict else " [a]lways"
    if question.prefixes and not question.strict:
        always += f"  [p] always {_prefixes(question)}"
        narrow += " [p]refix"
    if question.folders and not question.strict:
        always += f"  [f] always {_folders(question)}"
        narrow += " [f]older"
    whole = PROMPT.format(always=on_one_line(always))
    return whole if width > cell_len(whole) + 6 else NARROW_PROMPT.format(always=narrow)


def answer_help(question: Question, width: int) -> str:
    """What each answer means, a line each, wrapped below its meaning."""
    indent = " " * MEANING if width > 2 * MEANING else "    "
    return "\n".join(
        fill(line, width, subsequent_indent=indent, replace_whitespace=False)
        for line in _answer_lines(question)
    )


def _answer_lines(question: Question) -> list[str]:
    lines: list[str] = [*MORE.splitlines()]
    if question.strict:
        return lines
    lastings = question.lastings
    lines += [MORE_ALWAYS, *(line for lasting, line in MORE_LASTING.items() if lasting in lastings)]
    lines.append(MORE_TIME.format("a user 7d" if Lasting.USER in lastings else "a 8h"))
    also = ", {} project" if Lasting.PROJECT in lastings else ""
    if question.prefixes:
        lines.append(MORE_PREFIX.format("p" + also.format("p"), _prefixes(question)))
    if question.folders:
        lines.append(MORE_FOLDER.format("f" + also.format("f"), _folders(question)))
    return lines


def _prefixes(question: Question) -> str:
    return on_one_line(", ".join(" ".join(prefix) + " *" for prefix in question.prefixes))


def _folders(question: Question) -> str:
    return on_one_line(", ".join(f"{folder}/**" for folder in question.folders))


def _fitting(lines: list[str], limit: int) -> tuple[list[str], str]:
    """The lines that fit on `limit` rows of the screen, and in words what was left out.

    Of a line that is too long the beginning and the end are kept, so that padding cannot hide what matters.
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
            also = f" and {counted(more, 'more line')}" if more else ""
            note = f"{counted(left, 'character')} between these two{also}"
            return [*kept, line[: 2 * end], line[-end:]], note
        kept.append(line)
        room -= 1 + len(line) // ROW
    return kept, f"{counted(len(lines) - len(kept), 'more line')}" if len(kept) < len(lines) else ""


def _lines_of(value: Any) -> list[str]:
    """A value as lines; text with blanks at its ends is quoted, so that they are seen."""
    if isinstance(value, str):
        text = escape_invisible(value)
        if text != text.strip() or "\n" in text or not text:
            if "\n" not in text:
                return [value_on_one_line(value)]
            lines = text.split("\n")
            return lines[:-1] if lines[-1] == "" else [*lines, "(no line break at the end)"]
        return [text]
    text = json.dumps(value, ensure_ascii=False, default=str)
    if len(text) > 70 and isinstance(value, dict | list):
        text = json.dumps(value, ensure_ascii=False, indent=2, default=str)
    return escape_invisible(text).split("\n")
