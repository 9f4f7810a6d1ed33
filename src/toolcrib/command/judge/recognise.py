"""Recognises one command: finds its row in the tables, and the paths among its arguments with what happens to them.

`find` and `xargs` run others in their own way; wrappers that change nothing but time and priority are seen
through; whatever else runs another program stops here.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from toolcrib.command.judge import paths
from toolcrib.command.judge.git_operands import git_paths
from toolcrib.command.judge.paths import Reach
from toolcrib.command.judge.words import UNSPLIT
from toolcrib.command.not_proved import NotProved, UnknownProgram
from toolcrib.command.plan import Command, LoopName, Stage, Word
from toolcrib.command.programs.develop import RUNNERS, own_check, placed_before
from toolcrib.command.programs.listing import lists_names, prints_names
from toolcrib.command.programs.miller import files_of
from toolcrib.command.programs.options import Access, Arguments, Effect, Synopsis, open_end, read_arguments
from toolcrib.command.programs.searching import (
    FIND_PATHS,
    FIND_RUNS,
    FIND_WORDS,
    LISTS_ALONE,
    find_expression,
)
from toolcrib.command.programs.table import NAME, SYNOPSES, TELLS, find_synopsis, program_name
from toolcrib.command.programs.traits import FIRST_OPTIONS, SHELLS
from toolcrib.command.programs.wrappers import WRAPPERS, inner_at
from toolcrib.command.programs.xargs import NUL_ENDS, xargs_form
from toolcrib.dataclass import dataclass

NEGATED = re.compile(r"\[[!^][^]]*\]")
OF_A_SHELL = {"cd", "exit", ":", "type", "command"}  # no programs
SAYS = {"echo", "printf"}  # whatever they are given, they only print it
PRINTS_FILES = Synopsis()
# Names that find hands on begin with its folder, and some programs read `@NAME` or `+NAME` as more than a name.
PLAIN_START = re.compile(r"[\w./]")
RECURSIVE = {"-r", "-R", "-d", "--recursive", "--dereference-recursive", "--directories"}
MORE_THAN_NAMES = {"-printf", "-ls", *FIND_RUNS}  # prints or runs something for each file
CHOOSES_FILES = {"--include", "--glob", "--iglob", "-g"}  # with these, rg searches hidden files too
DOES: dict[Effect, str] = {
    "read": "is not run unasked",
    "write": "changes files",
    "network": "uses the network",
    "exec": "runs other code",
}


class TouchedPath(NamedTuple):
    """A path among the arguments, as it is written, and what the command does to it."""

    path: str
    access: Access
    reach: Reach
    contents: bool  # whether what is in the file is shown
    follows: bool = False  # whether links below it are followed
    opens: bool = True  # whether a link to it is followed at all
    listed: bool = False  # whether only names from a listing are opened, each of which is looked at
    guessed: bool = (
        False  # whether it is the value of an option, and a path only if the program reads that otherwise
    )
    in_tree: str = ""  # the same path as git looks for it from the top of the repository, if it may


@dataclass(slots=True)
class Recognised:
    """A recognised command: its row, its paths, and the folder that it goes to before it begins."""

    name: str
    usage: Synopsis
    operands: list[TouchedPath]
    open_end: str = ""  # what one more operand would be
    folder: str = "."


def recognise(words: list[Word], command: Command | None = None, before: Sequence[Stage] = ()) -> Recognised:
    """The row and paths of a command, or of one behind a wrapper. Raises NotProved if it is not understood.

    `before` are the stages of its pipeline whose output it gets.
    """
    argv = [word.literal for word in words]
    if (check := own_check(argv)) is not None:
        return _own_check(words, *check)
    argv[0] = program_name(argv[0] or "")
    if argv[0] not in SHELLS and _tells(argv):
        return Recognised(argv[0] or "", Synopsis(), [])
    if argv[0] == "find":
        return _find(words[1:])
    if argv[0] == "xargs":
        return _xargs(words, argv, command or Command(tuple(words)), before)
    if argv[0] == "mlr":
        return _miller(words[1:])
    if argv[0] == "command" and argv[1:2] == ["-v"] and len(argv) == 3 and NAME.fullmatch(argv[2] or ""):
        return Recognised("command -v", Synopsis(), [])
    if (wrapper := argv[0]) in WRAPPERS and not (wrapper in SYNOPSES and _fits(wrapper, words)):
        return _wrapped(words, argv)
    if argv[0] in SHELLS and len(argv) > 1 and argv[1] not in ("--version", "-n"):
        raise NotProved(f"{argv[0]}: runs a script")
    if (placed := placed_before(argv)) is not None:
        return _placed(words, argv, *placed)
    name, usage, at = find_synopsis(argv)
    found, usage = _read_by(name, usage, words[at:])
    return Recognised(name, usage, _operands(name, usage, found), open_end(usage, found))


def says_which_files(pattern: str) -> bool:
    """Whether a pattern has a letter or digit that must be in a name: `*.py` and `[ab]*` do, `*` and `[!a]*` do not."""
    return re.search(r"[A-Za-z0-9]", NEGATED.sub("", pattern)) is not None


def _own_check(words: Sequence[Word], name: str, at: int) -> Recognised:
    """A check that a runner starts, or that lies among the project's own packages: `uv run pytest`."""
    if name in RUNNERS or name in WRAPPERS:  # no option could be given to it
        raise NotProved(f"{words[0].literal}: runs {name}, which runs another program")
    known = recognise([Word((name,)), *words[at:]])
    if known.usage.effect != "exec" or not known.usage.runs_unasked:
        raise NotProved(f"{words[0].literal}: runs a program of the project that is no check")
    return known


def _tells(argv: Sequence[str | None]) -> bool:
    """Whether a command only prints its help or version. `git x -h` could be an alias, unless the tables have x."""
    if len(argv) == 3 and argv[0] == "git":
        return argv[2] == "-h" and f"git {argv[1]}" in SYNOPSES
    if len(argv) == 3 and argv[0] == "npm":
        return argv[2] in ("-h", "--help") and (argv[1] or "-").isalpha()
    return len(argv) == 2 and argv[1] in TELLS and argv[0] in TELLS[argv[1]]


def _fits(name: str, words: Sequence[Word]) -> bool:
    """Whether the arguments of a wrapper make it print something and run no command: `chrt -p PID`."""
    try:
        read_arguments(name, SYNOPSES[name], words[1:])
    except NotProved:
        return False
    return True


def _read_by(name: str, usage: Synopsis, words: Sequence[Word]) -> tuple[Arguments, Synopsis]:
    """The arguments, and the row that they fit. Rows of uses that only read are tried first."""
    row = usage.reading
    while row is not None:
        try:
            return read_arguments(name, row, words), row
        except NotProved:  # it does more than that
            row = row.reading
    return read_arguments(name, usage, words), usage


def _placed(
    words: Sequence[Word], argv: Sequence[str | None], place: str, is_folder: bool, at: int
) -> Recognised:
    """`git -C DIR …`: its paths begin there. `npm -w PACKAGE …`: they do not."""
    if is_folder and argv[0] != "git" and placed_before([argv[0], *argv[at:]]) is not None:
        raise NotProved(
            f"{argv[0]}: a folder or package in a folder"
        )  # others take the last for the only one
    known = recognise([words[0], *words[at:]])
    if is_folder:
        known.operands = [one._replace(path=paths.join(place, one.path)) for one in known.operands]
        known.folder = paths.join(place, known.folder)
    known.operands.insert(0, TouchedPath(place, "read", "file", False))
    return known


def _operands(name: str, usage: Synopsis, found: Arguments) -> list[TouchedPath]:
    """What a command touches, by its row of the tables."""
    for option, word in found.values:
        if option in CHOOSES_FILES and usage.below and paths.chooses_secrets(word.spelled):
            raise NotProved(f"{name}: searches files that may hold secrets ({word.spelled})")
    recursive = usage.below == "recursive" and bool(found.options & RECURSIVE)
    deep = usage.below == "always" or recursive
    follows = deep and bool(found.options & set(usage.follows.split()))
    touched: list[TouchedPath] = []
    for word, kind in found.operands:
        touched += _of_operand(name, usage, word, kind, deep=deep, follows=follows)
    here = (recursive or (deep and usage.here)) and found.placed <= _before_files(usage, found)
    if here or (usage.here and not touched):
        touched.append(TouchedPath(".", "read", "subtree" if deep else "file", usage.contents, follows))
    return [*touched, *_values_as_files(usage, found), *_listed_names(found)]


def _of_operand(
    name: str, usage: Synopsis, word: Word, kind: str, *, deep: bool, follows: bool
) -> Iterator[TouchedPath]:
    """What a command touches because of one operand: nothing if it is no path."""
    if kind == "cd" and word.literal is None:
        raise NotProved(f"{name}: a folder that is only known when it runs")
    if kind in ("data", "name", "cd"):
        return
    access: Access = "write" if kind == "write" else "delete" if kind == "delete" else "read"
    if word.substitutions:
        if access != "read" or not lists_names(word):
            raise NotProved(f"{name}: a path that is only known when it runs")
        # Each name is looked at before it is handed on.
        yield TouchedPath(".", "read", "subtree", usage.contents, listed=not deep)
        return
    if word.is_glob and usage.effect == "read" and usage.contents and not says_which_files(word.spelled):
        raise NotProved("a pattern that can match any name")
    reach: Reach = "subtree" if deep else "pattern" if word.is_glob else "file"
    path = word.literal if word.literal is not None else word.spelled
    one = TouchedPath(path, access, reach, usage.contents, follows, usage.opens)
    if name.startswith("git "):
        yield from _of_git(name, usage, word, one)
    else:
        yield one


def _values_as_files(usage: Synopsis, found: Arguments) -> Iterator[TouchedPath]:
    """Values of options that some programs take for files, as they stand apart from their options."""
    if found.options & set(usage.instead.split()):
        return
    for word in found.apart:
        if word.literal and word.literal.strip("./"):
            yield TouchedPath(word.literal, "read", "file", usage.contents, opens=usage.opens, guessed=True)


def _listed_names(found: Arguments) -> Iterator[TouchedPath]:
    """Patterns that stand for no files of the command: `echo src/*` opens none, but tells the names in a folder."""
    for word, kind in found.operands:
        if kind in ("data", "name") and word.is_glob:
            of_loops = [part.sign for part in word.parts if isinstance(part, LoopName)]
            for pattern in of_loops or [word.spelled]:
                yield TouchedPath(pattern, "read", "pattern", False, opens=False)


def _before_files(usage: Synopsis, found: Arguments) -> int:
    """How many operands stand before the files. With no more than these, `grep -r text` reads the folder itself."""
    kinds = usage.operands.split()
    taken = bool(usage.instead and found.options & set(usage.instead.split()))
    return len(kinds) - 1 - taken if kinds and kinds[-1].endswith("*") else -1


def _of_git(name: str, usage: Synopsis, word: Word, one: TouchedPath) -> Iterator[TouchedPath]:
    """The paths that git may read an operand as."""
    last = one.path.rpartition("/")[2].rpartition(":")[2]
    quoted = word.literal is not None and last.strip("*") and not {*"*?["}.isdisjoint(last)
    if quoted and usage.contents and paths.chooses_secrets(one.path):
        raise NotProved(f"{name}: a pattern that matches files that may hold secrets ({one.path})")
    for path, in_tree, is_pattern in git_paths(one.path):
        reach: Reach = "subtree" if is_pattern else one.reach
        yield one._replace(path=path, reach=reach, in_tree=path if in_tree else "")


def _direct(words: Sequence[Word], runner: str) -> Recognised:
    """The command that find or xargs gives names to. It must only read, and must not run another program."""
    argv = [word.literal for word in words]
    name = program_name(argv[0] or "")
    if name in WRAPPERS or name in SHELLS or name in ("find", "git", "tar"):
        raise NotProved(f"{runner}: runs {name}")
    if name in FIRST_OPTIONS and argv[1:2] != [FIRST_OPTIONS[name]]:
        raise NotProved(f"{runner}: {name} without {FIRST_OPTIONS[name]} does more than read")
    if any(word.is_glob for word in words):
        raise NotProved(f"{runner}: a pattern among the arguments of {name}")
    known = recognise(list(words))
    if known.usage.effect != "read" or not known.usage.runs_unasked:
        raise NotProved(f"{runner}: {known.name} {DOES[known.usage.effect]}")
    return known


def _wrapped(words: list[Word], argv: list[str | None]) -> Recognised:
    name = argv[0] or ""
    texts = [text if text is not None else "\0" for text in argv]
    at = inner_at(texts)
    if name == "watch" and not all(text and UNSPLIT.fullmatch(text) for text in argv[1:]):
        raise NotProved("watch: a shell would read what it runs")
    if name == "env" and inner_at([*texts, "program"]) == len(texts):  # no program stands behind its options
        raise NotProved("env: shows all variables, which may hold secrets")
    if not WRAPPERS[name].harmless or at is None or argv[at] is None:
        raise NotProved(f"{name}: runs another program")
    if not all(argv[:at]):
        raise NotProved(f"{name}: arguments that are only known when it runs")
    known = recognise(words[at:])
    if known.name in OF_A_SHELL:
        raise NotProved(f"{name}: {known.name} is no program")
    return known


def _miller(words: Sequence[Word]) -> Recognised:
    found = read_arguments("mlr", PRINTS_FILES, [Word(("--",)), *files_of(words)])
    return Recognised(
        "mlr", PRINTS_FILES, _operands("mlr", PRINTS_FILES, found), open_end(PRINTS_FILES, found)
    )


def _xargs(
    words: list[Word], argv: list[str | None], command: Command, before: Sequence[Stage]
) -> Recognised:
    """Reads `find … | xargs …`. Nothing but the pipe may be the input, and nothing but names may come through it."""
    if any(redirect.fd == 0 for redirect in command.redirects):
        raise NotProved("xargs: its input is not a list of names")
    if (form := xargs_form([word.literal for word in words])) is None:
        return _xargs_of_find(words, argv, before)
    printed = [word for stage in before if isinstance(stage, Command) for word in stage.words]
    outside = [word.spelled for word in printed if ".." in word.spelled.split("/")]
    if outside:
        raise NotProved(f"xargs: names of files outside of the folder that it runs in ({outside[0]})")
    judged = form.judged(words)
    says = bool(before) and judged[0].literal in SAYS
    if not says and (not prints_names(before) or MORE_THAN_NAMES & {word.literal for word in printed}):
        raise NotProved("xargs: its input is not a list of names (find, git ls-files, grep -l …)")
    try:
        known = recognise(judged)
    except UnknownProgram as unknown:  # of what it starts, not of itself: no yes to it is remembered
        raise NotProved(f"xargs: {unknown.reason}") from None
    if known.name in OF_A_SHELL or not known.usage.runs_unasked:
        raise NotProved(f"xargs: {known.name} {DOES[known.usage.effect]}")
    _names_no_secrets([word.spelled for word in printed], known, "xargs")
    return known


def _xargs_of_find(words: list[Word], argv: list[str | None], before: Sequence[Stage]) -> Recognised:
    """Reads `find … -print0 | xargs -0 …`: names begin with a folder that find was given, and -0 keeps them whole.

    So nothing but find may print into the pipe.
    """
    at = inner_at([text if text is not None else "\0" for text in argv])
    previous = before[-1] if before else None
    if at is None or not isinstance(previous, Command) or not is_xargs_of_find(argv, previous):
        raise NotProved(
            "xargs: runs a program with arguments that are only known when it runs (find -print0 | xargs -0)"
        )
    known = _direct(words[at:], "xargs")
    _names_no_secrets([word.spelled for word in previous.words], known, "xargs")
    if known.open_end != "read":
        raise NotProved(f"xargs: {known.name} with arguments that are only known when it runs")
    known.operands += _shown_among(_find(previous.words[1:]).operands, previous.words, known)
    return known


def is_xargs_of_find(argv: Sequence[str | None], before: Command) -> bool:
    """Whether a command is `xargs -0`, perhaps with -r, behind a `find … -print0` that prints nothing else."""
    at = inner_at([text if text is not None else "\0" for text in argv]) if argv[0] == "xargs" else None
    options = {*argv[1:at]} if at is not None else set()
    words = find_expression([word.literal for word in before.words])
    quiet = all(redirect.fd == 2 and redirect.kind == "null" for redirect in before.redirects)
    speaks = (LISTS_ALONE | FIND_RUNS) & {word for word in words[:-1] if word}
    finds = quiet and before.words[0].literal == "find" and words[-1:] == ["-print0"] and not speaks
    return finds and bool(options & NUL_ENDS.keys()) and options <= {*NUL_ENDS, "-r", "--no-run-if-empty"}


def _find_roots(waiting: deque[Word]) -> list[TouchedPath]:
    """Takes the folders that find begins at from its words."""
    roots: list[TouchedPath] = []
    while waiting and not (waiting[0].prefix.startswith("-") or waiting[0].literal in ("(", "!", ")", ",")):
        root = waiting.popleft()
        if root.substitutions:
            raise NotProved("find: a folder that is only known when it runs")
        if root.is_glob and (not root.prefix or root.prefix[0] in "(!),"):
            raise NotProved("find: a pattern that could become a part of its expression")
        if root.prefix and not PLAIN_START.match(root.prefix):
            raise NotProved(
                "find: a folder whose name a program could read as something else (write ./ before it)"
            )
        roots.append(TouchedPath(root.spelled, "read", "subtree", False))
    return roots or [TouchedPath(".", "read", "subtree", False)]


def _find(words: Sequence[Word]) -> Recognised:
    waiting = deque(words)
    roots = _find_roots(waiting)
    touched = [*roots]
    followed: list[TouchedPath] = []
    shows = deletes = False
    while waiting:
        text = waiting.popleft().literal
        if text in FIND_RUNS:
            known = _find_runs(text, waiting)
            if known.usage.contents and not shows:
                _names_no_secrets([word.spelled for word in words], known, f"find {text}")
                shows = True
            if not followed:
                followed = _shown_among(roots, words, known)
            touched += [one for one in known.operands if one.path != "{}"]
        elif text == "-delete":
            deletes = True
        elif text is None or text not in FIND_WORDS:
            raise NotProved(
                f"find: {text or 'an argument that is only known when it runs'} is not on its list"
            )
        elif FIND_WORDS[text]:
            if not waiting or waiting[0].substitutions:
                raise NotProved(f"find: the value of {text} is missing or only known when it runs")
            value = waiting.popleft()
            if value.is_glob:
                raise NotProved(
                    f"find: a pattern as the value of {text} (quote it: the shell may make several words of it)"
                )
            if text in FIND_PATHS:
                touched.append(TouchedPath(value.spelled, "read", "file", False))
    if deletes:  # reported as deletions, so that rules about paths hold for them
        gone = [one._replace(access="delete", contents=False) for one in touched if one.reach == "subtree"]
        return Recognised("find -delete", Synopsis(effect="write"), [*touched, *followed, *gone])
    return Recognised("find", Synopsis(), [*touched, *followed])


def _find_runs(option: str, waiting: deque[Word]) -> Recognised:
    """Reads `-exec cmd … {} ;`: `{}` is one argument and begins with a folder that find was given."""
    inner: list[Word] = []
    while waiting and waiting[0].literal not in (";", "+"):
        inner.append(waiting.popleft())
    if not waiting or not inner:
        raise NotProved(f"find: {option} without its end")
    many = waiting.popleft().literal == "+"
    if any(word.substitutions for word in inner):
        raise NotProved(f"find: {option} with arguments that are only known when it runs")
    if any("{}" in word.spelled and word.literal != "{}" for word in inner):
        raise NotProved(f"find: {option} with names inside an argument")
    if option != "-exec" or inner[0].literal == "{}":
        raise NotProved(f"find: {option} runs a program")
    known = _direct(inner, f"find {option}")
    named = sum(word.literal == "{}" for word in inner)
    if not known.usage.inert and named != sum(touched.path == "{}" for touched in known.operands):
        raise NotProved(f"find: {option} with names where {known.name} takes no file")
    if many and not known.usage.inert and known.open_end != "read":
        raise NotProved(f"find: {option} with many names where {known.name} takes one")
    return known


def _shown_among(found: Sequence[TouchedPath], words: Sequence[Word], known: Recognised) -> list[TouchedPath]:
    """The folders of a find whose files a program shows that gets the names; it follows links among these."""
    if not (known.usage.contents and known.usage.opens) or known.usage.inert:
        return []
    follows = not _finds_files_only(words)
    return [one._replace(contents=True, follows=follows) for one in found if one.reach == "subtree"]


def _finds_files_only(words: Sequence[Word]) -> bool:
    """Whether a find prints only names of ordinary files: its `-type f` is not negated, and holds for all of it."""
    texts = [word.literal for word in words]
    at = next((at for at, text in enumerate(texts[:-1]) if text == "-type" and texts[at + 1] == "f"), 0)
    return at > 0 and texts[at - 1] not in ("!", "-not") and not {"-o", "-or", ",", "("} & set(texts)


def _names_no_secrets(patterns: Sequence[str], known: Recognised, runner: str) -> None:
    for pattern in patterns:
        if known.usage.contents and paths.names_secrets(pattern.strip("/")):
            raise NotProved(f"{runner}: shows files that may hold secrets ({pattern})")
