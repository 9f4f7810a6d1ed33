"""Says why a command asks, in words for the person who is asked: what it does, rather than what was not proved."""

from __future__ import annotations

import re
from collections.abc import Sequence

from toolcrib.command.judge.judged_commands import JudgedCommand
from toolcrib.command.judge.judgement import Judgement

MAX_REASONS = 2  # reasons that are told
MAX_LENGTH = 300  # characters
ACCESSES = {"read": "reads", "write": "writes", "delete": "deletes"}
# How an objection to a path ends (see `paths.objection`), and the words that take its place.
TROUBLES = {
    " may hold secrets": "it {does} {path}, which may hold secrets",
    " is outside the workspace": "it {does} {path}, which is outside the workspace",
    " may lead outside the workspace": "it {does} {path}, which may lead outside the workspace",
    " is an address, not a file": "it reaches {path}",
}
OPTIONS = {
    ("sed", "-i"): "changes files", ("sed", "--in-place"): "changes files", ("perl", "-i"): "changes files",
    ("ruby", "-i"): "changes files", ("sort", "-o"): "writes a file", ("sort", "--output"): "writes a file",
    ("uniq", "-o"): "writes a file", ("curl", "-o"): "writes a file", ("tree", "-o"): "writes a file",
    ("yq", "-i"): "changes files", ("gofmt", "-w"): "changes files", ("black", "-q"): "changes files",
    ("find", "-delete"): "deletes files", ("find", "-fprint"): "writes a file",
    ("git branch", "-D"): "deletes a branch", ("git branch", "-d"): "deletes a branch",
    ("git tag", "-d"): "deletes a tag", ("ruff check", "--fix"): "changes files",
    ("prettier", "--write"): "changes files", ("eslint", "--fix"): "changes files", ("date", "-s"): "sets the clock",
}  # fmt: skip
COMMANDS = {
    "git push": "sends commits to another machine", "git pull": "fetches from another machine and changes files",
    "git fetch": "fetches from another machine", "git clone": "fetches from another machine",
    "git config": "changes git's settings", "git clean": "deletes files", "git reset": "throws changes away",
    "git rebase": "rewrites commits", "git remote": "changes git's settings", "docker run": "runs a container",
    "docker exec": "runs a command in a container", "kubectl exec": "runs a command in a container",
    "kubectl apply": "changes a cluster", "kubectl delete": "changes a cluster",
    "terraform apply": "changes what is deployed",
    "ssh": "runs commands on another machine", "scp": "copies to or from another machine",
    "rsync": "copies files", "sudo": "runs it as another user", "su": "runs it as another user",
    "dd": "writes to files or devices",
}  # fmt: skip
OPTION = re.compile(r"(?P<name>.+?): option (?P<option>\S+) is not on its list")
UNLISTED = re.compile(
    r"(?P<name>[^:]+): (?:an unknown program|not on its list)|(?P<of>\w+): (?P<word>-\S+) is not on its list"
)
UNKNOWN = "only known when it runs"
KEPT = ("it ", "contains ", "longer than", "padding ", "commands cannot be read", "too long")


def why(judgement: Judgement, secrets: Sequence[str] = ()) -> str:
    """The reasons in one line, or "". `secrets` are the names of the secrets that the command gets."""
    found = [f"it hands over the secret {name}" for name in dict.fromkeys(secrets)]
    own = [part for part in judgement.parts or judgement.read_as if part.reason]
    found += dict.fromkeys(why_of_command(part) for part in own)
    if not own and judgement.reason:
        found.append(_of_whole(judgement))
    elif judgement.reason.startswith(KEPT[:1]):  # about all of it, before what its parts are
        found.insert(len(secrets), judgement.reason.partition(" (and ")[0])
    different = list(dict.fromkeys(found))
    more = f" (and {len(different) - MAX_REASONS} more)" if len(different) > MAX_REASONS else ""
    return " ".join("; ".join(different[:MAX_REASONS]).split())[:MAX_LENGTH] + more


def _of_whole(judgement: Judgement) -> str:
    reason = judgement.reason
    if reason.startswith(KEPT):
        return reason if reason.startswith(("it ", "commands ")) else f"the command {_as_verb(reason)}"
    seen = f"; it runs {', '.join(judgement.programs[:4])}" if judgement.programs else ""
    if reason.startswith("sets "):
        return f"it {reason}{seen}"
    return f"it could not be read to the end ({reason}){seen}"


def _as_verb(reason: str) -> str:
    if reason.startswith("contains "):
        return reason
    return f"has {reason}" if reason.startswith("padding ") else f"is {reason}"


def why_of_command(part: JudgedCommand) -> str:
    """Why one command of a plan asks."""
    reason = part.reason
    for end, said in TROUBLES.items():
        if reason.endswith(end):
            path = reason.removesuffix(end)
            return said.format(path=path, does=_does(part, path))
    if (found := OPTION.fullmatch(reason)) is not None:
        return _of_option(found["name"], found["option"])
    if (found := UNLISTED.fullmatch(reason)) is not None:
        return _of_option(found["of"], found["word"]) if found["of"] else _of_command(part, found["name"])
    if reason.endswith(UNKNOWN):
        return f"what it does is {UNKNOWN} ({reason})"
    if reason.startswith(("writes ", "sets the variable ")):
        return f"it {reason}"
    name, colon, rest = reason.partition(": ")
    if name == "a program given by its path":
        return f"it runs {rest}, a program given by its path"
    if not colon:
        return reason
    if known := _known(part):
        return known
    return f"{name} {rest}" if rest.startswith("runs ") else reason


def _of_option(name: str, option: str) -> str:
    for known in (option, option[:2], option.partition("=")[0]):
        if (name, known) in OPTIONS:
            return f"{name} {known} {OPTIONS[name, known]}"
    return f"what {name} {option} does is not known"


def _of_command(part: JudgedCommand, name: str) -> str:
    return _known(part) or f"what {name} does is not known"


def _known(part: JudgedCommand) -> str:
    for words in (" ".join(part.argv[:2]), part.argv[0]):
        if words in COMMANDS:
            return f"{words} {COMMANDS[words]}"
    return ""


def _does(part: JudgedCommand, path: str) -> str:
    accesses = [operand.access for operand in part.operands if operand.path == path]
    return ACCESSES.get(accesses[0], "names") if accesses else "names"
