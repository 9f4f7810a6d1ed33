"""Several questions to a person on a terminal: those of one kind are one prompt, and each has its own answer."""

from __future__ import annotations

import posixpath
import sys
from collections.abc import Sequence
from typing import Any, NamedTuple

from rich.console import Console
from rich.text import Text

from toolcrib.cli.prompt import ASKED_AGAIN, ask_on, forget_typed_ahead, print_lines, read_line, show
from toolcrib.cli.question_text import MARGIN
from toolcrib.question import Answer, Question, Verdict
from toolcrib.visible import counted, on_one_line

SHOWN_ROWS = 8  # lines of a call that a prompt for several shows at once
SHOWN_PATH = 200  # characters
SHOWN_BY_DIFF = {"path", "content", "old_string", "new_string", "replace_all", "at"}  # arguments of an edit
HELP = """\
  a           run all of these, this once, exactly as they are
  e           ask about each by itself
  n           run none of them; n WORDS tells the model why"""


class Kind(NamedTuple):
    """What the questions of a group have in common. `alone` is the number of a question asked by itself, else -1."""

    what: str
    effect: str
    reason: str
    alone: int


async def ask_together(console: Console, questions: Sequence[Question]) -> list[Answer]:
    """Ask several questions, those of one kind as one; an answer for each, in their order."""
    kinds: dict[Kind, list[int]] = {}
    for number, question in enumerate(questions):
        kinds.setdefault(_kind_of(question, number), []).append(number)
    answers: dict[int, Answer] = {}
    for kind, numbers in kinds.items():
        group = [questions[number] for number in numbers]
        given = await _ask_group(console, kind, group) if len(group) > 1 else None
        if given is None:
            given = [await ask_on(console, question) for question in group]
        answers.update(zip(numbers, given, strict=True))
    return [answers[number] for number in range(len(questions))]


async def _ask_group(console: Console, kind: Kind, group: Sequence[Question]) -> list[Answer] | None:
    """Ask about all of a group at once; None where the person wants to be asked about each."""
    edits = kind.what == "edit"
    where = f" in {folder}" if edits and (folder := _folder_of(group)) else ""
    heading = f"? {counted(len(group), kind.what)}{where}  ({kind.effect}: {on_one_line(kind.reason)})"
    print_lines(console, [("bold yellow", heading)])
    cut = False
    for question in group:
        if edits:
            print_lines(console, [("", f"{MARGIN}{_edit_on_one_line(question)}")])
        else:
            cut = show(console, question, SHOWN_ROWS) or cut
    again = ASKED_AGAIN
    more = "  [d]iffs" if edits else "  [s]how all" if cut else ""
    while True:
        forget_typed_ahead()
        prompt = f"Run them? [a]ll  [e]ach  [n]one{more}  [?] more  [n WORDS] none, and tell the model: "
        console.print(Text(prompt), end="", soft_wrap=True)
        console.file.flush()
        given = await read_line()
        if given is None:
            console.print()
        first, _, words = (given or "").strip().partition(" ")
        word = first.lower()
        if word in ("a", "all") and not words:
            return [Answer(Verdict.YES, by="terminal") for _ in group]
        if word in ("e", "each") and not words:
            return None
        if more and word in ("d", "diffs", "s", "show") and not words:
            for question in group:
                show(console, question, sys.maxsize)
            continue
        if word not in ("", "n", "no", "none") and (again or word == "?"):
            again -= word != "?"
            console.print(Text(HELP, "dim"))
            continue
        message = words.strip() if word in ("n", "no", "none") else ""
        if word not in ("n", "no", "none"):
            console.print(Text("Taken as a no to all.", "dim"))
        return [Answer(Verdict.NO, message, by="terminal") for _ in group]


def _kind_of(question: Question, number: int) -> Kind:
    """The kind of a question. One that a person has to look at by itself has a kind of its own."""
    arguments = question.arguments if isinstance(question.arguments, dict) else {}
    leads_elsewhere = question.preview.startswith("it leads to ")
    by_itself = question.strict or question.edits or leads_elsewhere or question.patterns
    # A path that does not fit on its line would be approved unseen, and its end says most.
    too_long = len(on_one_line(str(arguments.get("path", "")))) > SHOWN_PATH
    alone = number if by_itself or too_long else -1
    if question.effect == "write" and question.preview and _is_edit(arguments):
        what = "edit"
    elif isinstance(arguments.get("command"), str):
        what = "command"
    else:
        what = f"call of {on_one_line(question.tool)}"
    return Kind(what, question.effect, question.reason, alone)


def _is_edit(arguments: dict[str, Any]) -> bool:
    """Whether a path and a diff say all that the arguments do. Any other argument has to be shown."""
    return isinstance(arguments.get("path"), str) and arguments.keys() <= SHOWN_BY_DIFF


def _folder_of(group: Sequence[Question]) -> str:
    """The folder that all edits of a group lie below; "" where that is the whole workspace."""
    folders = [posixpath.dirname(posixpath.normpath(question.arguments["path"])) for question in group]
    absolute = {folder.startswith("/") for folder in folders}
    common = posixpath.commonpath(folders) if len(absolute) == 1 else ""
    return f"{on_one_line(common)}/" if common.strip("/.") else ""


def _edit_on_one_line(question: Question) -> str:
    """The file that a call edits, its tool, and how many lines it adds and removes."""
    lines = question.preview.split("\n")
    if lines[0].startswith("--- "):  # the two lines that name the file; "++ x" may stand in it, too
        del lines[:2]
    added, removed = (sum(line.startswith(mark) for line in lines) for mark in "+-")
    return f"{on_one_line(question.arguments['path'])}  +{added} -{removed}  ({on_one_line(question.tool)})"
