"""The commands in which a rule may recognise a command: without its folder or its options, and those that it may run.

Nothing is allowed because of what is found here, so it may guess. Where a text may as well be data, what is found in it
is marked: a rule that denies it asks.
"""

from __future__ import annotations

import itertools
import re
import shlex
from collections.abc import Iterator, Sequence

from toolcrib.access import UNKNOWN_WORD
from toolcrib.command.judge.destructive import (
    GITS_RUNNERS,
    GO_TO_SHELL,
    commands_in_options,
    handed_to_shell,
    scripts_in,
)
from toolcrib.command.judge.find_commands import UNKNOWN, FoundCommand, find_commands, piped_texts
from toolcrib.command.judge.python_code import commands_in_code
from toolcrib.command.programs.launchers import SCRIPT, launches, launches_behind, starts_in, words_from
from toolcrib.command.programs.sed import read_words
from toolcrib.command.programs.table import FAMILIES, SYNOPSES
from toolcrib.command.programs.traits import SHELLS, known_name, script_of, traits_of
from toolcrib.command.programs.wrappers import ASSIGNMENT

MAX_DEPTH = 3  # scripts inside scripts
MAX_WORDS = 200  # of a command, that are looked at
MAX_SEARCHED = 300  # words of a launcher, among which commands are looked for
NEAR = 8  # words among which a command is looked for behind options
# Code that may run commands. Only the texts in such code are looked at as commands.
RUNS_COMMANDS = re.compile(
    r"system|popen|subprocess|exec|spawn|getline|\bqx\b|%x\W|\b(?:run|call|check_\w+|sh)\b",
    re.IGNORECASE,
)
BACKTICKS_RUN = re.compile(r"(?:bun|deno|perl|php|ruby)[\d.]*")  # elsewhere, backticks quote a text
PYTHON_REACHES_OUT = re.compile(r"import|exec|eval|__")  # without any of these, Python code starts no program
PYTHON = re.compile(r"(?:python|pypy|py)w?[\d.]*")
PERLS_WORDS = re.compile(  # and ruby's
    r"(?:\bq[qwx]?|%x)\s{0,9}(?:\(([^)]{0,500})\)|\{([^}]{0,500})\}|\[([^]]{0,500})\]|<([^>]{0,500})>|([/!|,~#])(.{0,500}?)\5)",
    re.DOTALL,
)
BLANK = re.compile(r"\s")
GITS_SHORT = re.compile(r"-(?:[a-z]?x|[Ou])(.*)", re.DOTALL)  # git grep -O, clone -u, difftool and rebase -x
# Settings of git whose value is a command.
GITS_COMMANDS = re.compile(
    r"pager\..*|.*\.(?:.*(?:cmd|command|editor|pager)|askpass|clean|difffilter|driver|external|fsmonitor|gitproxy|helper"
    r"|packobjectshook|path|process|program|receivepack|smtpserver|smudge|textconv|tunnel|update|uploadpack)",
    re.IGNORECASE | re.DOTALL,
)
SETTING = re.compile(r"-c|--config=")
GIVES_SCRIPT = re.compile(r"-[a-z]*c[a-z]*")  # to a shell
GIVES_CODE = re.compile(
    r"-[A-Za-z0-9]*[cerEp]|--(?:e(?:val|xec(?:ute)?|xpression)|print|code)|eval"
)  # to an interpreter
TAKE_CODE = {"timeit", "-mtimeit"}  # modules of Python, after -m
CODE_FIRST = {"awk", "gawk", "mawk", "nawk"}
# As builtins of a shell these evaluate the name of a variable, and so may run code in it.
EVALUATE = {"printf", "test", "[", "let"}
PRINT = {"echo", ":", "exit", "figlet", *EVALUATE}


class Perhaps(tuple[str, ...]):
    """The words of a command that was found in a text which may be only data, such as a message or a title."""

    __slots__ = ()


Forms = Iterator[tuple[str, ...]]


def found_in(text: str, depth: int = 0, *, guess: bool = True) -> Forms:
    """All commands that can be recognised in a text, each in every form by which a rule may name it.

    `guess` is that of `find_commands`.
    """
    for command in find_commands(text, guess=guess):
        if command.argv:
            words = [UNKNOWN_WORD if UNKNOWN in word else word for word in command.argv]
            yield from forms(words, depth)
            yield from in_texts(command.argv, depth)
            yield from in_input(command, depth)


def in_input(command: FoundCommand, depth: int = 0) -> Forms:
    """Commands in what a shell or an interpreter is given as its input, where that is written out."""
    if depth >= MAX_DEPTH or not (command.given or command.before):
        return
    for start in _starts(command.argv):
        name = known_name(command.argv[start])
        row = traits_of(name)
        if row.reads_script:
            for text in piped_texts(command.before, command.given):
                yield from found_in(text, depth + 1)
        elif name == "sed":
            if read_words(command.argv[start:]).is_in_input:
                for text in piped_texts(command.before, command.given):
                    yield from in_words([name, "-e", text], depth)
        elif row.runs == "code" or name in GO_TO_SHELL:
            for text in piped_texts(command.before, command.given):
                yield from in_words([name, "-c", text], depth)
        elif command.given and row.runs == "commands":
            yield from found_in(command.given, depth + 1)


def forms(argv: Sequence[str], depth: int = 0, *, proved: bool = False) -> Forms:
    """All forms of a command by which a rule may recognise it, and those of the commands that it launches.

    With `proved`, it is known that the command runs no text among its arguments, so these are not looked at.
    """
    for start, sure in sorted(_starts(argv).items()):
        words = words_from(argv, start)[:MAX_WORDS] if start else argv
        # Where it is not certain that a command begins, the texts behind its first word are not looked at.
        of_start = _of_start(words, depth, launched=start > 0, proved=proved or not sure)
        yield from of_start if sure else map(Perhaps, of_start)


def _starts(argv: Sequence[str]) -> dict[int, bool]:
    """Where a command or one that it launches, directly or through others, may begin; and whether that is certain."""
    argv, starts, waiting = argv[:MAX_SEARCHED], {0: True}, [0]
    while waiting:
        start = waiting.pop(0)
        name = known_name(argv[start])
        for at, sure in starts_in(argv[start:])[0].items() if launches(name) else ():
            found = sure and starts[start]
            if found > starts.get(start + at, -1):
                starts[start + at] = found
                waiting.append(start + at)
    return starts


def _of_start(argv: Sequence[str], depth: int, *, launched: bool, proved: bool) -> Forms:
    """The forms of one command, and the commands in its scripts, without those that it launches by its words."""
    if launched and SCRIPT.search(argv[0]):  # a launcher that hands its word to a shell
        if depth < MAX_DEPTH:
            yield from found_in(argv[0], depth + 1)
        return
    yield tuple(argv)
    name = known_name(argv[0])
    for other in dict.fromkeys((argv[0].rpartition("/")[2], name)):
        if other != argv[0]:
            yield (other, *argv[1:])
    if name.startswith("git-"):
        argv, name = ["git", name[4:], *argv[1:]], "git"
        yield tuple(argv)
    if len(argv) > 2 and argv[1].startswith("-"):
        words = argv[: NEAR if launches(name) else MAX_WORDS]
        yield from ((name, *argv[at:]) for at in _behind_options(words))
    if depth >= MAX_DEPTH:
        return
    yield from _in_options(argv, depth)
    if launched and not proved:
        yield from in_words(argv, depth)
    if (script := script_of(list(argv))) is not None:
        yield from found_in(script, depth + 1)
    elif name == "eval":
        yield from found_in(" ".join(argv[1:]), depth + 1)
    elif launches(name) and not proved:
        yield from _scripts_of_launcher(argv, depth)


def _behind_options(argv: Sequence[str]) -> Iterator[int]:
    """Each place where the first word may stand that is neither an option of the command nor the value of one."""
    alone = 0  # words that do not follow an option, and so are no values
    for at in range(2, len(argv)):
        if argv[at][:1] != "-":
            alone += argv[at - 1][:1] != "-"
            if alone >= NEAR:
                return
            yield at


def _scripts_of_launcher(argv: Sequence[str], depth: int) -> Forms:
    """Commands in arguments of a launcher that contain blanks: it may hand these to a shell."""
    name, (starts, certain) = known_name(argv[0]), starts_in(argv)
    if launches_behind(name):
        return
    first = min((at for at, sure in starts.items() if sure), default=len(argv))
    if name in SHELLS and not any(map(GIVES_SCRIPT.fullmatch, argv[1:])):
        first = 0  # they are arguments of a file
    for at, word in enumerate(argv[1 : first if certain else MAX_WORDS], start=1):
        assigned = ASSIGNMENT.fullmatch(word)
        if (BLANK.search(word) or assigned) and at not in starts:
            found = found_in(assigned[2] if assigned else _value(word), depth + 1)
            yield from found if at < first and not assigned else map(Perhaps, found)


def _handed_over(argv: Sequence[str], depth: int) -> Forms:
    """Commands in git's arguments: in aliases and settings, and behind sub-commands such as `bisect run`."""
    for at, word in enumerate(argv[1:MAX_WORDS], start=1):
        following = " ".join(argv[at + 1 : at + 2])
        begin = SETTING.match(word)
        setting, _, value = word[begin.end() if begin else 0 :].partition("=")
        if setting.lower().startswith("alias."):
            value = value or following
            given = shlex.join(argv[at + 2 : MAX_WORDS])  # behind the name of the alias
            yield from found_in(f"{value[1:]} {given}" if value[:1] == "!" else f"git {value}", depth + 1)
        elif "config" in argv[1:at] and GITS_COMMANDS.fullmatch(word):
            yield from found_in(following.lstrip("!"), depth + 1)
        elif (begin or argv[at - 1] in ("-c", "--config")) and (
            SCRIPT.search(value) or GITS_COMMANDS.fullmatch(setting)
        ):
            yield from found_in(value.lstrip("!"), depth + 1)
        elif (match := GITS_SHORT.fullmatch(word)) is not None and BLANK.search(
            value := match[1] or following
        ):
            yield from found_in(value, depth + 1)
        elif word[:2] == "-O" and "grep" in argv[1:at]:
            yield from found_in(word[2:], depth + 1)
    words = {word.partition("=")[0] for word in argv[1:NEAR]}
    if "for-each-repo" in words:
        yield from (("git", *argv[at:]) for at in range(2, min(len(argv), NEAR)))
    if any(needed <= words for needed in GITS_RUNNERS):
        for at in range(1, min(len(argv), 3 * NEAR)):
            if SCRIPT.search(argv[at]):
                yield from found_in(_value(argv[at]), depth + 1)
            elif argv[at][:1] not in ("-", ""):
                yield from forms(argv[at:], depth + 1)


def _in_options(argv: Sequence[str], depth: int) -> Forms:
    """Commands in the options of a program, and those that git is handed."""
    for value in commands_in_options(argv[:MAX_WORDS]):
        yield from found_in(value, depth + 1)
    if argv[0].rpartition("/")[2] == "git":
        yield from _handed_over(argv, depth)


def in_texts(argv: Sequence[str], depth: int = 0) -> Forms:
    """Commands in arguments that are texts, of which a part may be only known when the command runs (`UNKNOWN`)."""
    yield from in_words(argv, depth)
    if depth < MAX_DEPTH and any(UNKNOWN in word and word != UNKNOWN for word in argv[1:]):
        for start, sure in _starts(argv).items():
            words = words_from(argv, start) if start else argv
            found = (one for one in _in_options(words, depth) if one[0] != UNKNOWN_WORD)
            of_start = itertools.chain(found, in_words(words, depth) if start else ())
            yield from of_start if sure else map(Perhaps, of_start)


def in_words(argv: Sequence[str], depth: int = 0) -> Forms:
    """Commands in arguments that contain blanks, given to a program that may run them or evaluates them as code."""
    name = known_name(argv[0])
    code = traits_of(name).runs == "code"
    if depth >= MAX_DEPTH or name == "git" or (name in PRINT and name not in EVALUATE):
        return
    if launches(name) and all(starts_in(argv)):
        return  # what it launches is looked at by itself
    if name == "sed":
        of_sed = read_words(argv)
        for text in of_sed.runs[:MAX_WORDS]:
            yield from found_in(text, depth + 1)
        for text in of_sed.results[:MAX_WORDS]:
            yield from map(Perhaps, found_in(text, depth + 1))
        return
    takes_code = name in CODE_FIRST or not TAKE_CODE.isdisjoint(argv)
    for before, word in itertools.pairwise(argv[:MAX_WORDS]):
        text = _value(word)
        is_code = code and (takes_code or GIVES_CODE.fullmatch(before) or GIVES_CODE.match(word))
        for script, sure in dict.fromkeys(_texts_of_code(text, name) if is_code else _texts(text, name)):
            found = found_in(script, depth + 1)
            # A variable in a text says nothing of a command.
            yield from found if sure else (Perhaps(argv) for argv in found if argv[0] != UNKNOWN_WORD)


def _texts(text: str, name: str) -> Iterator[tuple[str, bool]]:
    """The parts of an argument that may be commands, and whether it is certain that they are."""
    substitutes = "$(" in text or "`" in text
    if name in EVALUATE:
        yield from [(text, True)] if substitutes else ()
    elif substitutes or (
        BLANK.search(text.strip()) and (_is_unknown(name) or traits_of(name).runs == "code")
    ):
        yield text, False
    if script := handed_to_shell(text):
        yield script, False


def _value(word: str) -> str:
    """A word, or the value that it gives to an option."""
    return (word.partition("=")[2] or word[2:]) if word[:1] == "-" else word


def _is_unknown(name: str) -> bool:
    return name not in SYNOPSES and name not in FAMILIES


def _texts_of_code(text: str, name: str) -> Iterator[tuple[str, bool]]:
    """The texts in code that may be commands, each with whether the code is certain to run it."""
    runs = RUNS_COMMANDS.search(text) is not None or (
        "`" in text and BACKTICKS_RUN.fullmatch(name) is not None
    )
    if PYTHON.fullmatch(name) and (commands := commands_in_code(text)) is not None:
        yield commands.run, True
        yield commands.perhaps if PYTHON_REACHES_OUT.search(text) else "", False
        yield from ((script, False) for script in (scripts_in(text, name) if runs else ()))
    elif runs or BLANK.search(text.strip()):
        yield from ((script, runs) for script in scripts_in(text, name))
        for words in itertools.islice(PERLS_WORDS.finditer(text), MAX_WORDS):
            yield "".join(filter(None, words.groups()[:4])) or words[6] or "", runs
        if runs or "$(" in text:
            yield text, False
