"""Derives a fast filter from a regular expression: a simpler expression, and texts, one of which stands in each match.

The simpler expression tells quickly in which files a search must look closer. It means the same to Python's `re` and to
ripgrep: it has no assertions, no references, no classes that depend on a version of Unicode. So it may match more lines
than the original, and never fewer; what it finds is compared with the original.
"""

from __future__ import annotations

import importlib
import re
import warnings
from collections.abc import Iterable
from typing import Any

from toolcrib.dataclass import dataclass

MAX_LENGTH = 50_000  # of the simpler expression
MAX_LITERALS = 16  # each is looked for in all of a file
MAX_REPEATED = 50  # a repetition of more is taken for one without end
ANY = "[^\\n]"
NOT_ASCII = "\\x80-\\U0010ffff"
FOLDED = "iIsSkK"  # what \u0130, \u0131, \u017f and \u212a equal in ASCII when case is ignored
SPACES = "\\t\\r\\x0b\\x0c\\x1c-\\x20"
WORD = "0-9A-Za-z_"
CATEGORIES = {
    "CATEGORY_DIGIT": f"0-9{NOT_ASCII}",
    "CATEGORY_SPACE": f"{SPACES}\\x85{NOT_ASCII}",
    "CATEGORY_WORD": f"{WORD}{NOT_ASCII}",
    "CATEGORY_NOT_DIGIT": f"\\x00-\\x09\\x0b-\\x2f\\x3a-\\x7f{NOT_ASCII}",
    "CATEGORY_NOT_SPACE": f"\\x00-\\x08\\x0e-\\x1b\\x21-\\x7f{NOT_ASCII}",
    "CATEGORY_NOT_WORD": f"\\x00-\\x09\\x0b-\\x2f\\x3a-\\x40\\x5b-\\x5e\\x60\\x7b-\\x7f{NOT_ASCII}",
}
ANCHORS = {"AT_BEGINNING": "^", "AT_BEGINNING_STRING": "^", "AT_END": "$", "AT_END_STRING": "$"}


@dataclass(frozen=True, slots=True)
class LineFilter:
    """What every matching line contains: a match of `expression`, and one of `literals`; empty if that is not known.

    `folded`: `literals` are in small letters, to be looked for in lines of ASCII that were put into small letters.
    `for_linear`: the original has parts that keep it from backtracking, and `expression` has none, so that only an
    engine that never backtracks may use it.
    """

    expression: str = ""
    literals: tuple[str, ...] = ()
    for_linear: bool = False
    folded: bool = False


def line_filter(pattern: str, *, ignore_case: bool) -> LineFilter:
    """The filter for a valid pattern that is compared with each line."""
    try:
        parser: Any = importlib.import_module("re._parser")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            tree = parser.parse(pattern, re.IGNORECASE if ignore_case else 0)
        found = _Simpler()
        flags = tree.state.flags
        expression = found.sequence(tree, flags)
        folded = bool(flags & re.IGNORECASE)
        literals = _literals(tree, flags, folded)
        if len(expression) > MAX_LENGTH or re.compile(expression, re.MULTILINE).search(""):
            expression = ""  # it would filter nothing, since it matches every line
    except (_Unknown, ImportError, AttributeError, re.error, RecursionError, OverflowError, ValueError):
        return LineFilter()
    return LineFilter(expression, literals, found.for_linear, folded)


class _Unknown(Exception):
    """A part that this module does not know."""


class _Simpler:
    """Writes the parts of a parsed pattern anew."""

    def __init__(self) -> None:
        self.for_linear = False

    def sequence(self, items: Any, flags: int) -> str:
        """The expression of parts that follow one another."""
        return "".join(self._part(str(kind), value, flags) for kind, value in items)

    def _part(self, kind: str, value: Any, flags: int) -> str:
        match kind:
            case "LITERAL":
                return f"[{_char(value, flags)}]"
            case "ANY" | "NOT_LITERAL":
                return ANY
            case "IN":
                return _class(value, flags)
            case "BRANCH":
                return f"(?:{'|'.join(self.sequence(branch, flags) for branch in value[1])})"
            case "SUBPATTERN":
                _, added, removed, items = value
                return f"(?:{self.sequence(items, (flags | added) & ~removed)})"
            case "MAX_REPEAT" | "MIN_REPEAT" | "POSSESSIVE_REPEAT":
                return self._repeated(kind, value, flags)
            case "ATOMIC_GROUP":
                self.for_linear = True
                return f"(?:{self.sequence(value, flags)})"
            case "GROUPREF":
                self.for_linear = True
                return f"{ANY}*"
            case "GROUPREF_EXISTS":
                _, there, missing = value
                return f"(?:{self.sequence(there, flags)}|{self.sequence(missing or (), flags)})"
            case "AT":
                return ANCHORS.get(str(value), "")
            case "ASSERT" | "ASSERT_NOT":
                return ""
            case _:
                raise _Unknown

    def _repeated(self, kind: str, value: Any, flags: int) -> str:
        least, most, items = value
        self.for_linear |= kind == "POSSESSIVE_REPEAT"
        upper = "" if int(most) > MAX_REPEATED else int(most)
        inside = self.sequence(items, flags)
        return f"(?:{inside}){{{min(int(least), MAX_REPEATED)},{upper}}}" if inside else ""


def _class(items: Any, flags: int) -> str:
    members: list[str] = []
    for kind, value in items:
        match str(kind):
            case "NEGATE":
                return _negated(items[1:], flags)
            case "LITERAL":
                members.append(_char(value, flags))
            case "RANGE":
                members.append(_range(value[0], value[1], flags))
            case "CATEGORY":
                members.append(
                    CATEGORIES[str(value)] if str(value) in CATEGORIES else NOT_ASCII + "\\x00-\\x7f"
                )
            case _:
                raise _Unknown
    return f"[{''.join(members)}]"


def _negated(items: Any, flags: int) -> str:
    """A negated class, if what it excludes is plain; else a class of any character."""
    if flags & re.IGNORECASE or any(str(kind) not in ("LITERAL", "RANGE") for kind, _ in items):
        return ANY
    ends = [(value, value) if str(kind) == "LITERAL" else value for kind, value in items]
    return "[^\\n" + "".join(f"{_escaped(low)}-{_escaped(high)}" for low, high in ends) + "]"


def _range(low: int, high: int, flags: int) -> str:
    found = f"{_escaped(low)}-{_escaped(high)}"
    if not flags & re.IGNORECASE:
        return found
    if high > 0x7F:
        return f"{found}{NOT_ASCII}A-Za-z"
    return found + "".join(_char(code, flags) for code in range(low, high + 1) if chr(code).isalpha())


def _char(code: int, flags: int) -> str:
    """The members of a class for one character, with all that it equals when case is ignored."""
    if not flags & re.IGNORECASE:
        return _escaped(code)
    if code > 0x7F:
        return NOT_ASCII + FOLDED
    both = {chr(code).lower(), chr(code).upper()}
    return "".join(_escaped(ord(one)) for one in sorted(both)) + (NOT_ASCII if both & set(FOLDED) else "")


def _escaped(code: int) -> str:
    if 0xD800 <= code <= 0xDFFF:
        raise _Unknown  # no character of a text
    return f"\\x{code:02x}" if code < 0x80 else f"\\U{code:08x}"


def _stands_for_itself(code: int, folded: bool) -> bool:
    """Whether every matching line contains a literal character of the pattern, as it is written or in small letters."""
    return code not in (0xFFFD, 10, 13) and (code < 0x80 or not folded)


def _literals(items: Iterable[tuple[Any, Any]], flags: int, folded: bool) -> tuple[str, ...]:
    """The texts of which every match contains one, as selective as they can be had; empty if none are known."""
    if bool(flags & re.IGNORECASE) != folded:
        return ()
    found: list[tuple[str, ...]] = []
    run = ""
    for kind, value in items:
        name = str(kind)
        if name == "LITERAL" and _stands_for_itself(value, folded):
            run += chr(value).lower() if folded else chr(value)
            continue
        found.append((run,))
        run = ""
        if name == "SUBPATTERN":
            found.append(_literals(value[3], (flags | value[1]) & ~value[2], folded))
        elif name in ("MAX_REPEAT", "MIN_REPEAT", "POSSESSIVE_REPEAT") and int(value[0]) > 0:
            found.append(_literals(value[2], flags, folded))
        elif name == "BRANCH":
            branches = [_literals(branch, flags, folded) for branch in value[1]]
            if all(branches):
                found.append(tuple(dict.fromkeys(text for branch in branches for text in branch)))
    found.append((run,))
    return best if _selectivity(best := max(found, key=_selectivity))[0] else ()


def _selectivity(texts: tuple[str, ...]) -> tuple[int, int]:
    """How few lines the texts occur in, to compare: a long shortest text is best, then few texts; (0, 0) for none."""
    known = bool(texts) and len(texts) <= MAX_LITERALS
    return (min(map(len, texts)), -len(texts)) if known else (0, 0)
