"""Recognises commands that change or remove a repository's history, as far as their words show it."""

from __future__ import annotations

import re
from fnmatch import fnmatchcase

from toolcrib.command.judge.find_commands import UNKNOWN, find_commands
from toolcrib.command.judge.judgement import Judgement

# In a text that was not understood, whatever runs them: a shell, a wrapper, code in an argument.
REMOVES = re.compile(
    r"(?<![\w.-])(?:rm|rmdir|mv|unlink|shred)(?![\w-])|-delete\b"
    r"|(?<![\w-])(?:rmtree|rm_rf|rm_r|rmSync|rmdirSync|unlinkSync|removeSync|remove_tree|remove_dir_all|remove_file"
    r"|os\.(?:remove|unlink|rename|replace))\b"
)
OVERWRITES = re.compile(r"(?<![\w.-])(?:cp|dd|tee|truncate|install|rsync|ln)(?![\w-])|>|--delete\b")
REPLACERS = {"rsync", "cp", "install", "ln"}  # what they write to a folder takes the place of what is in it
HISTORY = ("objects", "refs", "HEAD", "packed-refs", "logs", "modules")
VERSION_CONTROL = {
    "git": ".git",
    "hg": ".hg",
    "svn": ".svn",
    "jj": ".jj",
}  # programs, and where each keeps history
MAX_PATTERN = 64
BETWEEN = re.compile(r"[\s'\"=;&|(){},<>`$:]+")
REMOVES_HISTORY = "it removes or overwrites the repository itself, and with it all that was not pushed"


def changes_history(judgement: Judgement) -> bool:
    """Whether a command of a version control is more than a look at its repository, as far as the words show it."""
    if not judgement.parts:
        return not VERSION_CONTROL.keys().isdisjoint(judgement.programs)
    return any(part.program in VERSION_CONTROL and part.effect != "read" for part in judgement.parts)


def removes_history(judgement: Judgement, command: str) -> bool:
    """Whether the words of a command say that it removes a repository's history. No level of autonomy allows that.

    Operands tell it of a command that was understood. Where any part was not, the words of all of it are looked at.
    """
    by_operands = any(
        _is_history(operand.path, operand.access, part.argv[0].rpartition("/")[2] if part.argv else "")
        for part in judgement.parts
        for operand in part.operands
    )
    understood = bool(judgement.parts) and all(part.proved for part in judgement.parts)
    return by_operands or (not understood and _says_so(command))


def _is_history(path: str, access: str, program: str) -> bool:
    reached = _reached(path)
    if access == "delete":
        return reached is not None or (path == "." and program == "rm")
    return access == "write" and (reached == "part" or (reached == "all" and program in REPLACERS))


def _says_so(command: str) -> bool:
    found = find_commands(command)
    words = [*(word for one in found for word in one.argv), *BETWEEN.split(command.replace("\\", ""))]
    reached = {_reached(word) for word in words}
    if any(one.argv[:1] == ["rm"] and {".", "./"} & {*one.argv} for one in found):
        reached.add("all")
    said = " ".join([command.replace("\\", ""), *words])
    if reached & {"all", "part"} and REMOVES.search(said):
        return True
    return "part" in reached and OVERWRITES.search(said) is not None


def _reached(path: str) -> str | None:
    """Whether a path, or what its pattern can become, is "all" of a repository's history, or "part" of it."""
    parts = [part for part in path.replace(UNKNOWN, "*").split("/") if part not in ("", ".")]
    for at, part in enumerate(parts):
        if part.startswith(".") and any(_matches(name, part.lower()) for name in VERSION_CONTROL.values()):
            inside = parts[at + 1 :]
            if not inside or (len(inside) == 1 and set(inside[0]) == {"*"}):
                return "all"
            if any(_matches(name, inside[0]) for name in HISTORY) and not inside[-1].endswith(".lock"):
                return "part"
    return None


def _matches(name: str, pattern: str) -> bool:
    return len(pattern) <= MAX_PATTERN and fnmatchcase(name, pattern.replace("[^", "[!"))
