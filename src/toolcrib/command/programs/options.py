"""Reads arguments as the program will read them: options by a positive list, operands by their meaning.

A row of the tables writes a program's options in one string:

    -abc          flags that may be clustered       --all         a long flag
    -n=           takes a value                     --sort=       takes a value
    --arg==       takes two values
    -f=<  -o=>    the value is a file that is read, written
    -U?           an optional value that touches    --color?      an optional value after =
    -#            a number is an option (-20)       -run=  -race! long options with one dash

and its operands in another: `data read*` is a pattern and then files, `read* write` files and where they go.
Long options must be written in full: what a program takes an abbreviation for depends on its version.

In a word of its own, a value must not look like an option: in versions where its option takes no value there, or only
one that touches it, the program would obey it (`ag --after --pager=x`).

A pattern may become several words, so it may stand only for operands of which there may be any number (`read*`), or
touch its option (`--include=*.py`), which it then repeats. The words that it becomes are read again when it runs.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from functools import cache
from typing import Literal

from toolcrib.command.not_proved import NotProved, UnknownProgram
from toolcrib.command.plan import Word, show_word
from toolcrib.command.programs.listing import is_number, lists_names
from toolcrib.dataclass import dataclass, field

Access = Literal["read", "write", "delete"]
Effect = Literal["read", "write", "exec", "network"]
EFFECTS: tuple[Effect, ...] = ("read", "write", "network", "exec")  # from the mildest
KIND = {"": "flag", "!": "flag", "=": "data", "==": "pair", "=<": "read", "=>": "write", "?": "optional"}
TOKEN = re.compile(r"(--?)([^=?!]*)(==|=[<>]?|\?|!)?")
NUMBER = re.compile(r"-\d+")
OPTION = re.compile(r"--?[A-Za-z]")


def worst(effects: Iterable[Effect]) -> Effect:
    """The strongest of several effects; `read` of none."""
    found: Effect = "read"
    for effect in effects:
        found = effect if EFFECTS.index(effect) > EFFECTS.index(found) else found
    return found


@dataclass(frozen=True, slots=True)
class Synopsis:
    """The row of a program, or of one of its sub-commands: the options and operands that are known.

    `plain` says whether it runs without asking; by default what only reads does. `instead`: options that
    take the place of the first operand (`grep -e`). `inert`: no argument can do harm, whatever it is.
    `contents`: False where it shows names and sizes but not what is in a file. `check` reads the arguments
    where options do not say it all, and raises NotProved. `otherwise`: why it asks, given anything else.
    `below`: whether a folder among the operands means all below it, always or with an option like -r. `here`:
    without operands it reads the folder that it runs in. `follows`: options with which it follows links below a folder.
    `opens`: False where it only tells what kind of thing a name is. `needs`: options of which one must be given.
    `clusters`: how options of one letter share a word with an option that takes a value: as getopt reads them; or
    its value touches only if it is the `first`; or the value is the `next` word, whatever touches it but a number.
    `reading`: a row for uses that only read (`gzip -l`), which holds if the arguments fit it; it may have a `reading`
    of its own.
    """

    options: str = ""
    operands: str = "read*"
    effect: Effect = "read"
    plain: bool | None = None
    instead: str = ""
    inert: bool = False
    contents: bool = True
    check: Callable[[Arguments], None] | None = None
    otherwise: str = ""
    below: Literal["", "recursive", "always"] = ""
    follows: str = ""
    opens: bool = True
    here: bool = False
    needs: str = ""
    clusters: Literal["getopt", "first", "next"] = "getopt"
    reading: Synopsis | None = None

    @property
    def runs_unasked(self) -> bool:
        return self.effect == "read" if self.plain is None else self.plain


@dataclass(slots=True)
class Arguments:
    """Arguments as they were read: operands and values of options, each with its meaning, and the options that are set."""

    operands: list[tuple[Word, str]] = field(default_factory=list)
    options: set[str] = field(default_factory=set)
    values: list[tuple[str, Word]] = field(default_factory=list)
    starts_with_option: bool = False
    placed: int = 0  # how many operands stood there, values of options left out
    apart: list[Word] = field(
        default_factory=list
    )  # values that are no paths, and stand in a word of their own

    def of(self, *kinds: str) -> list[str]:
        return [word.literal or show_word(word) for word, kind in self.operands if kind in kinds]


def read_arguments(name: str, usage: Synopsis, words: Sequence[Word]) -> Arguments:
    """Reads the arguments of a command by its row. Raises NotProved for an option or operand that the row does not list."""
    if usage.inert:
        found = Arguments([(word, "data") for word in words])
        if usage.check is not None:
            usage.check(found)
        return found
    try:
        return _read(name, usage, words)
    except NotProved:
        if usage.otherwise:
            raise UnknownProgram(f"{name}: {usage.otherwise}") from None
        raise


def _read(name: str, usage: Synopsis, words: Sequence[Word]) -> Arguments:
    found = Arguments(starts_with_option=bool(words) and words[0].prefix.startswith("-"))
    rest: list[tuple[Word, bool]] = []  # operands, and whether they came after --
    waiting = list(words)
    while waiting:
        word = waiting.pop(0)
        if word.literal == "--":
            if any(after.is_glob and after.prefix.startswith("-") for after in waiting):
                raise NotProved(f"{name}: a pattern that begins with -")
            rest += ((after, True) for after in waiting)
            break
        if _is_option(name, word):
            _option(name, usage, word, waiting, found)
        else:
            rest.append((word, False))
    _place(name, usage, rest, found)
    if usage.needs and not found.options & set(usage.needs.split()):
        raise NotProved(f"{name}: without {usage.needs.split()[0]} it does more than read")
    if usage.check is not None:
        usage.check(found)
    return found


def _is_option(name: str, word: Word) -> bool:
    begins = word.prefix
    if word.parts and not begins:
        if lists_names(word):
            return False  # what comes out of it is looked at before it is handed on
        if word.is_glob and not word.substitutions:
            return False  # a match that begins with - stops the command before it starts
        if not word.substitutions:
            raise NotProved(f"{name}: an argument that could become an option")
        raise NotProved(
            f"{name}: an argument that is only known when it runs could become an option (write -- before it)"
        )
    if begins == "-" and word.literal is None:
        raise NotProved(f"{name}: an option that is only known when it runs")
    return begins.startswith("-") and begins != "-"


def _option(name: str, usage: Synopsis, word: Word, waiting: list[Word], found: Arguments) -> None:
    text, listed = word.prefix, listed_options(usage.options)
    if "#" in listed and NUMBER.fullmatch(text) and word.literal:
        return
    stem, equals, value = text.partition("=")
    if stem in listed and (text.startswith("--") or len(stem) > 2):
        kind = listed[stem]
        if equals:
            if kind in ("flag", "pair"):
                raise NotProved(f"{name}: {stem} takes no value")
            _value(name, stem, kind, Word((value, *word.parts[1:]) if value else word.parts[1:]), found)
            return
        if word.literal is None:
            raise NotProved(f"{name}: an option that is only known when it runs")
        found.options.add(stem)
        if kind in ("data", "read", "write"):
            _value(name, stem, kind, _next(name, usage, stem, kind, waiting, found), found)
        elif kind == "pair":
            for _ in range(2):
                _value(name, stem, "data", _next(name, usage, stem, "data", waiting, found), found)
        return
    if text.startswith("--"):
        raise NotProved(f"{name}: option {stem} is not on its list")
    _cluster(name, usage, word, waiting, found)


def _cluster(name: str, usage: Synopsis, word: Word, waiting: list[Word], found: Arguments) -> None:
    text, listed = word.prefix, listed_options(usage.options)
    for at, sign in enumerate(text[1:], start=1):
        option = f"-{sign}"
        kind = listed.get(option)
        if kind is None and "#" in listed and sign.isdigit():
            continue
        if kind is None:
            raise NotProved(f"{name}: option {option} is not on its list")
        found.options.add(option)
        if kind == "flag":
            continue
        touching = Word((text[at + 1 :], *word.parts[1:]) if text[at + 1 :] else word.parts[1:])
        if usage.clusters == "first" and at > 1:
            raise NotProved(f"{name}: {option} behind another option in one word")
        if usage.clusters == "next" and touching.parts and not (touching.literal or "").isdecimal():
            raise NotProved(f"{name}: {option} and what touches it")
        if kind == "optional":
            if touching.parts:
                _value(name, option, "data", touching, found)
            return
        _value(
            name,
            option,
            kind,
            touching if touching.parts else _next(name, usage, option, kind, waiting, found),
            found,
        )
        return
    if word.literal is None:
        raise NotProved(f"{name}: an option that is only known when it runs")


def _next(name: str, usage: Synopsis, option: str, kind: str, waiting: list[Word], found: Arguments) -> Word:
    if not waiting:
        raise NotProved(f"{name}: {option} needs a value")
    word = waiting.pop(0)
    if word.is_glob:
        raise NotProved(f"{name}: a pattern as the value of {option} (it may become several words)")
    if OPTION.match(word.prefix) and option not in usage.instead.split():
        raise NotProved(f"{name}: a value of {option} that looks like an option (let it touch {option})")
    if kind == "data":
        found.apart.append(word)
    return word


def _value(name: str, option: str, kind: str, word: Word, found: Arguments) -> None:
    if (word.splits and not is_number(word)) or (word.is_glob and kind not in ("data", "optional")):
        raise NotProved(f"{name}: the value of {option} is only known when it runs")
    found.options.add(option)
    found.values.append((option, word))
    if kind in ("read", "write"):
        found.operands.append((word, kind))


def _place(name: str, usage: Synopsis, rest: list[tuple[Word, bool]], found: Arguments) -> None:
    """Gives each operand its meaning."""
    found.placed = len(rest)
    kinds = usage.operands.split()
    if usage.instead and kinds and found.options & set(usage.instead.split()):
        kinds = kinds[1:]
    star = next((at for at, kind in enumerate(kinds) if kind.endswith("*")), None)
    if star is None:
        if len(rest) > len(kinds):
            raise NotProved(f"{name}: more operands than it is known to take")
        meanings, many = kinds[: len(rest)], 0
    else:
        before, after = kinds[:star], kinds[star + 1 :]
        many = max(len(rest) - len(before) - len(after), 0)
        meanings = [*before, *([kinds[star][:-1]] * many), *after][: len(rest)]
    repeats = range(star, star + many) if star is not None else range(0)
    for at, ((word, safe), kind) in enumerate(zip(rest, meanings, strict=True)):
        if safe and kind not in ("data", "name") and word.prefix.startswith("-"):
            # Where the option before it takes -- for its value, as some versions do, what follows is an option.
            raise NotProved(f"{name}: a name that begins with - (write ./ before it)")
        if word.is_glob and at not in repeats and not (kind == "read" and word.names_of_loops):
            raise NotProved(f"{name}: a pattern where one word belongs (it may become several)")
        listed = kind in ("read", "ref") and star is not None and lists_names(word)
        if word.splits and not listed and not (safe and kind == "data" and star is not None):
            raise NotProved(f"{name}: arguments that are only known when it runs")
        found.operands.append((word, kind))


def open_end(usage: Synopsis, found: Arguments) -> str:
    """What one more operand would mean, if the row allows any number of them here; else ""."""
    kinds = usage.operands.split()
    if usage.instead and kinds and found.options & set(usage.instead.split()):
        kinds = kinds[1:]
    complete = found.placed >= len(kinds) - 1
    return kinds[-1][:-1] if kinds and kinds[-1].endswith("*") and complete else ""


@cache
def listed_options(options: str) -> dict[str, str]:
    listed: dict[str, str] = {}
    for token in options.split():
        if token == "-#":
            listed["#"] = "flag"
            continue
        match = TOKEN.fullmatch(token)
        if match is None:
            raise ValueError(f"not an option: {token}")
        dashes, name, mark = match.groups()
        kind = KIND[mark or ""]
        if dashes == "--" or (mark and len(name) > 1):
            listed[dashes + name] = kind
        else:
            listed.update((f"-{sign}", kind) for sign in name)
    return listed
