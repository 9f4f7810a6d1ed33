"""The forms of xargs that are known, and the words that it reads from its input as GNU xargs does.

The names that it reads are looked at before it starts a command with them, so it is not run itself.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from toolcrib.command.plan import Substitution, Word
from toolcrib.command.programs.listing import listing
from toolcrib.dataclass import dataclass

COUNT = re.compile(r"[1-9][0-9]{0,3}")
MARK = re.compile(r"\{\}|%|@|[A-Z]+")  # texts that -I may replace
ENDS = {"\\n": "\n", "\n": "\n", "\\0": "\0"}  # values of -d, and the sign that then ends a word
# Options with which a NUL ends a word, and the same in the form that `xargs_form` reads.
NUL_ENDS = {
    "-0": ("-d", "\\0"), "--null": ("-d", "\\0"), "-0r": ("-r", "-d", "\\0"), "-r0": ("-r", "-d", "\\0"),
}  # fmt: skip
WITH_VALUE = {"-n", "-I", "-d"}
ECHO = "echo"  # what xargs runs if it is given no command
MAX_BYTES = 100_000  # of the words of one command, as far as it may be cut


@dataclass(frozen=True, slots=True)
class XargsForm:
    """A command line of xargs that is read here.

    Attributes:
        at: The index of the argument where the command begins.
        most: How many words of the input one run of the command gets (`-n`); None: as many as fit.
        mark: The text in the command that each line of the input replaces (`-I`); "" without it.
        ends: The one sign that ends a word of the input (`-d '\\n'`, `-d '\\0'`); "" where blanks and newlines do.
        needed: The command does not run if the input has no words (`-r`).
    """

    at: int
    most: int | None = None
    mark: str = ""
    ends: str = ""
    needed: bool = False

    def judged(self, words: Sequence[Word]) -> list[Word]:
        """The command as it is judged: a listing stands where it gets names."""
        command = words[self.at :] or [Word((ECHO,))]
        if not self.mark:
            return [*command, Word((listing(quoted=self.most == 1),))]
        return [_with_listing(word.literal or "", self.mark) for word in command]

    def commands(self, argv: Sequence[str], given: Sequence[str]) -> Iterator[tuple[list[str], list[str]]]:
        """The commands that xargs starts for the words `given`, each with its arguments that come from the input."""
        command = list(argv[self.at :]) or [ECHO]
        if self.mark:
            for name in given:
                became = [word.replace(self.mark, name) for word in command]
                yield became, [new for new, old in zip(became, command, strict=True) if self.mark in old]
            return
        if not given and not self.needed:
            yield command, []
        at = 0
        while at < len(given):
            size, after = 0, at
            while after < len(given) and after - at != self.most and (after == at or size < MAX_BYTES):
                size += len(given[after].encode("utf-8", "surrogateescape")) + 1
                after += 1
            yield [*command, *given[at:after]], list(given[at:after])
            at = after


def xargs_form(argv: Sequence[str | None]) -> XargsForm | None:
    """The form of a command line of xargs whose input is read here; None for any other.

    `-0` is not read: `unwrapped` writes it as `-d '\\0'` where the input is to be read here.

    >>> xargs_form(["xargs", "-n", "2", "wc", "-l"]).at, xargs_form(["xargs", "-0", "wc"])
    (3, None)
    """
    if argv[0] != "xargs":  # as it is written: what is judged and what is run must be the same
        return None
    texts = [text if text is not None else "" for text in argv]
    at, most, mark, ends, needed = 1, None, "", "", False
    while at < len(texts) and texts[at].startswith("-"):
        option, value, at = texts[at][:2], texts[at][2:], at + 1
        if texts[at - 1] in ("-r", "--no-run-if-empty"):
            needed = True
            continue
        if option not in WITH_VALUE or (not value and at == len(texts)):
            return None
        if not value:
            value, at = texts[at], at + 1
        if option == "-n" and COUNT.fullmatch(value):
            most = int(value)
        elif option == "-I" and MARK.fullmatch(value):
            mark = value
        elif option == "-d" and value in ENDS:
            ends = ENDS[value]
        else:
            return None
    known = all(isinstance(text, str) for text in argv) and not (mark and (most or at == len(texts)))
    # A name is not the program, and not an option or a part of one.
    named = bool(mark) and any(mark in text for text in texts[at:] if text is texts[at] or text[:1] == "-")
    return XargsForm(at, most, mark, ends, needed) if known and not named else None


def words_of_input(text: str, form: XargsForm) -> list[str]:
    """The words of an input. Raises ValueError for a quote or backslash without its end, and for an empty word."""
    if form.ends:
        return text.removesuffix(form.ends).split(form.ends) if text else []
    words: list[str] = []
    signs = iter(text)
    word: str | None = None
    for sign in signs:
        if word is None and sign.isspace():
            continue
        if sign == "\n" or (sign in " \t" and not form.mark):
            words.append(word or "")
            word = None
            continue
        word = word or ""
        if sign == "\\":
            word += _next(signs)
        elif sign in "'\"":
            while (inner := _next(signs)) != sign:
                if inner == "\n":
                    raise ValueError("its input has a quote without an end")
                word += inner
        else:
            word += sign
    words += [word] if word is not None else []
    if not all(words):
        raise ValueError("its input has an empty word")
    return words


def _next(signs: Iterator[str]) -> str:
    try:
        return next(signs)
    except StopIteration:
        raise ValueError("its input has a quote without an end") from None


def _with_listing(text: str, mark: str) -> Word:
    pieces = text.split(mark)
    parts: list[str | Substitution] = []
    for at, piece in enumerate(pieces):
        parts += [listing(quoted=True)] if at else []
        parts += [piece] if piece else []
    return Word(tuple(parts))
