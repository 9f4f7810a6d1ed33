"""Programs that print names of files or of revisions. Their output may stand for arguments: `$(git ls-files)`."""

from __future__ import annotations

from toolcrib.command.plan import Command, Plan, Word

LISTERS = (
    ("git", "ls-files"), ("git", "rev-parse"), ("git", "merge-base"), ("git", "describe"), ("git", "rev-list"),
    ("git", "diff", "--name-only"), ("find",), ("rg", "-l"), ("rg", "--files"), ("fd",),
    ("grep", "-l"), ("grep", "-rl"), ("ls",),
)  # fmt: skip
# What may stand behind them in a pipe: each name that it prints was printed to it.
CHOOSERS = {"head", "tail", "sort", "uniq", "grep"}


NUMBERS = {"id -u", "id --user", "id -g", "id -ru", "nproc", "nproc --all", "printenv '?'"}


def is_number(word: Word) -> bool:
    """Whether a word is the output of a program that prints a number and nothing else."""
    inner = word.substitutions
    return len(inner) == len(word.parts) == 1 and str(inner[0].plan) in NUMBERS


def lists_names(word: Word) -> bool:
    """Whether the only unknown part of a word is the output of a program that prints names."""
    return (
        len(word.substitutions) == 1
        and not (word.is_glob or word.piped)
        and _lists(word.substitutions[0].plan)
    )


def _lists(plan: Plan) -> bool:
    if len(plan.steps) != 1:
        return False
    first, *others = plan.steps[0].pipeline.stages
    if not isinstance(first, Command):
        return False
    words = tuple(word.literal for word in first.words)
    return any(words[: len(lister)] == lister for lister in LISTERS) and all(
        isinstance(other, Command) and other.words[0].literal in CHOOSERS for other in others
    )
