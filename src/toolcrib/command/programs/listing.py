"""Programs that print names of files or of revisions. Their output may stand for arguments: `$(git ls-files)`."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import pairwise

from toolcrib.command.plan import (
    Command,
    Pipeline,
    Plan,
    Stage,
    Step,
    Substitution,
    Word,
    is_last_status,
)

LISTERS = (
    ("git", "ls-files"), ("git", "rev-parse"), ("git", "merge-base"), ("git", "describe"), ("git", "rev-list"),
    ("git", "diff", "--name-only"), ("find",), ("rg", "--files"), ("fd",), ("ls",),
)  # fmt: skip
# Programs that search in files, and the options of one letter with which they print names alone. Behind an option that
# takes a value, the letters are that value: `-el` looks for "l".
SEARCHERS = {
    ("grep",): re.compile("-[^-ABCDdefm]*[lL]"),
    ("rg",): re.compile("-[^-ABCEMTdefgjmrt]*l"),
    ("git", "grep"): re.compile("-[^-ABCefmO]*[lL]"),
}
# Options with which a program ends each name with a NUL. CHOOSERS with theirs also read names that end so.
NUL_ENDED = {
    "find": re.compile("-print0"), "fd": re.compile("-[^-]*0|--print0"), "rg": re.compile("-[^-]*0|--null"),
    "git": re.compile("-[^-]*z|--null"), "grep": re.compile("-[^-]*[zZ]|--null|--null-data"),
    **dict.fromkeys(("head", "tail", "sort", "uniq"), re.compile("-[^-]*z|--zero-terminated")),
}  # fmt: skip
COUNTS = re.compile("--count|-[^-]*c")
# Options whose value may look like an option: `-e -l` looks for "-l".
PATTERN_NEXT = re.compile("-[^-]*[ef]|--regexp|--file")
NAMES_ONLY = {"--files-with-matches", "--files-without-match", "--name-only"}
# Programs that may follow in the pipe: they print only names that they were given.
CHOOSERS = {"head", "tail", "sort", "uniq", "grep"}


NUMBERS = {"id -u", "id --user", "id -g", "id -ru", "nproc", "nproc --all"}


def is_number(word: Word) -> bool:
    """Whether a word is the output of a program that prints a number and nothing else."""
    inner = word.substitutions
    return len(inner) == len(word.parts) == 1 and (is_last_status(inner[0]) or str(inner[0].plan) in NUMBERS)


def lists_names(word: Word) -> bool:
    """Whether the only unknown part of a word is the output of a program that prints names."""
    return (
        len(word.substitutions) == 1
        and not (word.is_glob or word.piped)
        and _lists(word.substitutions[0].plan)
    )


def listing(*, quoted: bool) -> Substitution:
    """A substitution that stands for the names that xargs reads, so that they are judged like `$(git ls-files)`."""
    return Substitution(_NAMES, quoted)


def _lists(plan: Plan) -> bool:
    return len(plan.steps) == 1 and prints_names(plan.steps[0].pipeline.stages)


def prints_names(stages: Sequence[Stage]) -> bool:
    """Whether the stages of a pipeline print names and nothing else."""
    if not stages or not isinstance(first := stages[0], Command):
        return False
    others = stages[1:]
    words = tuple(word.literal for word in first.words)
    lists = any(words[: len(lister)] == lister for lister in LISTERS) or _searches_for_names(words)
    return lists and all(
        isinstance(other, Command) and other.words[0].literal in CHOOSERS for other in others
    )


def end_names_with_nul(stages: Sequence[Stage]) -> bool:
    """Whether a NUL ends each name that the stages of a pipeline print."""
    return all(
        isinstance(stage, Command) and _says_nul([word.literal for word in stage.words]) for stage in stages
    )


def _says_nul(words: Sequence[str | None]) -> bool:
    option = NUL_ENDED.get(words[0] or "")
    return option is not None and any(option.match(word) for word in words[1:] if word is not None)


def _searches_for_names(words: Sequence[str | None]) -> bool:
    """Whether a search prints names of files and no lines (`grep -ril x`), whatever the order of its options."""
    searcher = next((one for one in SEARCHERS if tuple(words[: len(one)]) == one), None)
    if searcher is None:
        return False
    texts = [word or "" for word in words]
    before_dashes = texts[: texts.index("--")] if "--" in texts else texts
    options = [
        word
        for before, word in pairwise(before_dashes)
        if word.startswith("-") and not PATTERN_NEXT.fullmatch(before)
    ]
    names_only = any(option in NAMES_ONLY or SEARCHERS[searcher].match(option) for option in options)
    return names_only and not any(COUNTS.match(option) for option in options)


_NAMES = Plan((Step(";", Pipeline((Command((Word(("git",)), Word(("ls-files",)))),))),))
