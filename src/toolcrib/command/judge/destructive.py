"""Finds destructive commands however they are written: in quotes, behind wrappers, in scripts, piped into a shell.

Such a command is denied at every level of autonomy. Nothing is allowed because no destructive command was found.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Sequence

from toolcrib.command.judge.find_commands import (
    MAX_LENGTH,
    FoundCommand,
    find_commands,
    piped_texts,
    unescaped,
)
from toolcrib.command.programs.destructive import (
    check_of,
    destroyed_by,
    is_vital,
    overwrites_device,
    program,
    searched,
)
from toolcrib.command.programs.launchers import values_of_options
from toolcrib.command.programs.sed import read_words
from toolcrib.command.programs.table import FAMILIES, SYNOPSES
from toolcrib.command.programs.traits import known_name, traits_of
from toolcrib.command.programs.wrappers import WRAPPERS

MAX_DEPTH = 4  # scripts inside scripts
MAX_TRIES = 60  # places in one command where another may begin
LITERAL = re.compile(r"\"((?:[^\"\\]|\\.)*)\"|'((?:[^'\\]|\\.)*)'|`((?:[^`\\]|\\.)*)`", re.DOTALL)
REMOVES = re.compile(
    r"(?:rmtree|rm_rf|rm_r|rmSync|rmdirSync|remove_dir_all|removeSync|remove_tree)\s*\(?\s*\(?\s*(?:[\w.]*expanduser\(|Path\()?"
    r"[rbu]?[\"'](/[^\"']*|~[^\"']*)[\"']"
)
FUNCTION = re.compile(r"(?:function\s+)?([\w:.@!-]+)\s*(?:\(\s*\))?\s*[{(]([^{}()]*)[})]")
ENDLESS = re.compile(
    r"\b(?:while|until)\s+(?:true|false|:|1|\[\s*1?\s*\])\s*[;\n](.*?)(?<![&\w])&(?![&>])\s*;?\s*done\b",
    re.DOTALL,
)
QUOTED = re.compile(r"'[^']*'|\"(?:[^\"\\]|\\.)*\"", re.DOTALL)
PAUSES = re.compile(r"\b(?:sleep|wait|read|break|exit)\b")
FORKS = re.compile(
    r"\bfork\s+while\b|\bwhile\b[\s(]*(?:1|True|true)?[\s):{]*(?:\w+\.)?fork\b|fork\(\)\s*for\b.*\biter\("
)
# What git itself hands to a shell: (words that must be there, where the command stands).
GITS_RUNNERS = (
    {"submodule", "foreach"},
    {"bisect", "run"},
    {"submodule--helper", "foreach"},
    {"rebase", "--exec"},
    {"rebase", "-x"},
    {"difftool", "-x"},
    {"clone", "-u"},
    {"instaweb", "-d"},
    {"web--browse"},
    {"filter-branch"},
    {"merge-index"},
    {"remote-ext"},
)
HOLDS_COMMAND = re.compile(
    r"(?:--(?:checkpoint-[a-z]*=exec|to-command|(?:use-)?compress-program|rsh|extcmd|exec|upload-pack|receive-pack|"
    r"open-files-in-pager|use-askpass)(?:=|\Z)|exec=|"
    r"[\w.-]+=!|(?:[^\s:]*=)?ext::|(?:-o ?)?(?:Proxy|Local|KnownHosts)Command[= ])(.*)",
    re.DOTALL,
)

# How the input of a program that is no shell tells it to run a shell command: `:!rm`, `\! rm`, `.shell rm`, `EXEC:rm`.
TO_SHELL = re.compile(
    r"(?:^[ \t\w%.,:+]*!|\\!|(?:^|;)[ \t]*[.:\\]?(?:platform )?(?:shell|system|spawn)\s"
    r"|^\.(?:sh[ \t]|(?:import|once|output)[ \t]+[\"']?\|)|\b(?:EXEC|SYSTEM|execute)[:(]"
    r"|^(?:[\d*/,-]+[ \t]+){5})[ \t]*([^\n]*)",
    re.MULTILINE,
)
GO_TO_SHELL = {
    "crontab", "dc", "ed", "ex", "ftp", "gdb", "less", "lldb", "man", "mariadb", "more", "mutt", "mysql", "nvim",
    "psql", "sftp", "socat", "sqlite3", "vi", "vim",
}  # fmt: skip


def destruction_in(text: str, depth: int = 0) -> str | None:
    """What a text would destroy, in a few words; None if no destructive command is found in it."""
    text = text[:MAX_LENGTH]
    if _is_bomb(text[:2000].replace("\\\n", "").replace("\n", " ; ")):
        return "a fork bomb"
    folder = ""
    for command in find_commands(text):
        if command.argv[:1] in (["cd"], ["pushd"]):
            folder = posixpath.join(folder, command.argv[-1] if command.argv[1:] else "~")
        found = _of_command(_from(folder, command), depth)
        if found is not None:
            return found
    return None


def _is_bomb(text: str) -> bool:
    """Whether a text is a fork bomb: a function that starts itself twice, or an endless loop that starts processes."""
    text = QUOTED.sub("''", text)
    for name, body in FUNCTION.findall(text):
        called = rf"(?:^|[;&|({{]|\b(?:do|then|else)\b)\s*{re.escape(name)}(?![\w:.@!-])"
        calls = len(re.findall(called, body))
        aside = re.search(r"(?<!&)&(?![&>\d])", body) is not None
        if (calls and aside) or (calls > 1 and re.search(r"(?<!\|)\|(?!\|)", body)):
            return True
    loop = ENDLESS.search(text) if "done" in text else None
    return loop is not None and not PAUSES.search(loop[1])


def _from(folder: str, command: FoundCommand) -> FoundCommand:
    """The command with its relative paths completed: after `cd /` they lie in `/`."""
    if (
        not folder.startswith(("/", "~"))
        or not command.argv
        or program(command.argv) not in ("rm", "chmod", "chown", "find")
    ):
        return command
    name, *words = command.argv
    placed = [word if word.startswith("-") else posixpath.join(folder, word) for word in words]
    return FoundCommand([name, *placed], command.before, command.given, command.writes)


def _of_command(command: FoundCommand, depth: int) -> str | None:
    for target in command.writes:
        if overwrites_device(target):
            return f"overwrites {target}"
    argv = command.argv
    if not argv:
        return None
    name = program(argv)
    if "xargs" in map(known_name, argv[:6]):
        argv = [*argv, *_listed(command.before)]
    if (found := destroyed_by(argv)) is not None:
        return found
    holds_commands = traits_of(name).runs or (name not in SYNOPSES and name not in FAMILIES)
    if holds_commands and (found := _inside(argv, name, depth)) is not None:
        return found
    if depth < MAX_DEPTH and (found := _handed_over(argv, name, depth)) is not None:
        return found
    if depth < MAX_DEPTH and name == "sed" and read_words(argv).is_in_input:
        for text in piped_texts(command.before, command.given):
            if (found := _handed_over([name, "-e", text], name, depth)) is not None:
                return found
    if depth < MAX_DEPTH and _reads_a_script(argv):
        for script in piped_texts(command.before, command.given):
            if (found := destruction_in(script, depth + 1)) is not None:
                return found
    return None


def _listed(before: Sequence[Sequence[str]]) -> list[str]:
    """The words that xargs reads from its pipe: words that were printed, or the folders of a find."""
    last = list(before[-1]) if before else []
    if last and program(last) == "find":
        return searched(last)
    return [word for text in piped_texts([list(argv) for argv in before]) for word in text.split()][:50]


def _handed_over(argv: Sequence[str], name: str, depth: int) -> str | None:
    """What is destroyed by a command that stands in an option of a program, or in an argument that it runs."""
    words = set(argv[1:5])
    scripts = commands_in_options(argv)
    if name in GO_TO_SHELL:
        scripts += filter(None, map(handed_to_shell, argv[1:MAX_TRIES]))
    if name == "git" and any(needed <= words for needed in GITS_RUNNERS):
        scripts += [" ".join(argv[3:]), *argv[3:]]
    if name == "sed":
        script = read_words(argv)
        scripts += [*script.runs, *script.results][:MAX_TRIES]
    return next(
        (found for script in scripts if (found := destruction_in(script, depth + 1)) is not None), None
    )


def commands_in_options(argv: Sequence[str]) -> list[str]:
    """The values of options that are commands, joined to their options or as the next word."""
    found = ((HOLDS_COMMAND.fullmatch(word), at) for at, word in enumerate(argv[1:], start=2))
    values = (match[1] or " ".join(argv[at : at + 1]) for match, at in found if match is not None)
    return [value for value in (*values, *values_of_options(argv)) if value]


def handed_to_shell(text: str) -> str:
    """The commands in a text that a program such as vim would hand to a shell (`:!rm`), one on each line."""
    return "\n".join(match[1] for match in TO_SHELL.finditer(text))


def _inside(argv: Sequence[str], name: str, depth: int) -> str | None:
    """What is destroyed by another command among the arguments, or by a script in one of them."""
    tries = 0
    runs = traits_of(name).runs
    for at in range(1, len(argv)):
        word = argv[at]
        bare = known_name(word.lower())
        if tries < MAX_TRIES and (check_of(bare) is not None):
            tries += 1
            if runs != "code" and (found := destroyed_by(argv[at:])) is not None:
                return found
        if runs and depth < MAX_DEPTH and tries < MAX_TRIES and re.search(r"[\s;|&(]", word):
            tries += 1
            for script in scripts_in(word, name):
                if (found := destruction_in(script, depth + 1)) is not None:
                    return found
            if runs == "code" and FORKS.search(word):
                return "a fork bomb"
            if (match := REMOVES.search(word)) and is_vital(match[1]):
                return f"deletes {match[1]}"
    if name == "eval" and depth < MAX_DEPTH:
        return destruction_in(" ".join(argv[1:]), depth + 1)
    return None


def scripts_in(word: str, name: str) -> list[str]:
    """The commands that an argument of a program may hold: the whole of it, or the texts in code."""
    kind = traits_of(name).runs
    if kind == "code":
        literals = [next(filter(None, match.groups()), "") for match in LITERAL.finditer(word)]
        # Some languages join a line that ends with a backslash and the next one.
        literals += [text.replace("\\\n", "") for text in literals if "\\\n" in text]
        listed = [" ".join(literals[at:]) for at in range(min(len(literals) - 1, 5))]
        return [unescaped(text) for text in literals[:20]] + listed
    if name == "alias":
        return [word.partition("=")[2]]
    return [word.lstrip(":+!")] if kind == "editor" else [word]


def _reads_a_script(argv: Sequence[str]) -> bool:
    """Whether a command is a shell that reads its script from its input."""
    for at, word in enumerate(argv[:8]):
        if traits_of(known_name(word.lower())).reads_script:
            return not any(not later.startswith("-") for later in argv[at + 1 :]) or "-s" in argv[at + 1 :]
        if at == 0 and program(argv) not in WRAPPERS:
            return False
    return False
