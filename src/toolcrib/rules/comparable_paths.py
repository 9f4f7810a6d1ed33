"""Paths in the form in which rules compare them.

Some file systems ignore case, how a letter is composed, and some invisible characters. So does the comparison, whatever
the file system: `.GIT` must not get around a rule about `.git`.

Without case, `ß` is `ss`: one character became two, which `?` does not stand for. So a path has a second form, in which
each character is still one.
"""

from __future__ import annotations

import functools
import posixpath
import unicodedata
from collections.abc import Callable
from itertools import product
from operator import ne

from toolcrib.visible import IGNORED_IN_FILE_NAMES

__all__ = ["FORMS", "comparable_forms", "comparable_name", "comparable_path", "forms_of_name", "path_pieces"]

MAX_MIXED = 4  # pieces with two forms up to which a path is compared in all mixtures of them
MAX_CACHED = 500  # characters of a path up to which its comparable form is cached


def comparable_name(name: str) -> str:
    """A name composed (NFC), without case, and without characters that file systems ignore."""
    if name.isascii():
        return name.lower()
    composed = unicodedata.normalize("NFC", name).casefold().translate(IGNORED_IN_FILE_NAMES)
    return unicodedata.normalize("NFC", composed)


def name_of_single_characters(name: str) -> str:
    """A name composed, and without case where that leaves one character of one.

    >>> name_of_single_characters("STRAßE"), comparable_name("STRAßE")
    ('straße', 'strasse')
    """
    if name.isascii():
        return name.lower()
    composed = unicodedata.normalize("NFC", name)
    return "".join([folded if len(folded := one.casefold()) == 1 else one for one in composed])


NameForm = Callable[[str], str]
FORMS: tuple[NameForm, NameForm] = (comparable_name, name_of_single_characters)


def forms_of_name(name: str) -> tuple[str, ...]:
    """The forms in which rules compare a name: a single one where both are the same."""
    first, second = (form(name) for form in FORMS)
    return (first,) if first == second else (first, second)


def path_pieces(path: str, form: NameForm = comparable_name) -> tuple[str, ...]:
    """The comparable names in a path, after "/" if it is absolute. `~` and `..` are resolved as far as they can be.

    >>> path_pieces("/srv/./A/../B"), path_pieces("a//b"), path_pieces("../x")
    (('/', 'srv', 'b'), ('a', 'b'), ('..', 'x'))
    """
    expanded = posixpath.expanduser(path) if path[:2] in ("~", "~/") else path
    cleaned = posixpath.normpath(expanded or ".")
    pieces = [piece for piece in form(cleaned).split("/") if piece not in ("", ".")]
    return ("/", *pieces) if cleaned.startswith("/") else tuple(pieces)


def comparable_path(path: str) -> str:
    """The pieces of a path, each followed by a slash; path patterns are matched against this text.

    >>> comparable_path("src/A.py"), comparable_path("/etc"), comparable_path(".")
    ('src/a.py/', '/etc/', '')
    """
    return comparable_forms(path)[0]


def comparable_forms(path: str) -> tuple[str, ...]:
    """The same in all forms: a single one where both are the same, else the first, those in between and the second.

    In those in between, some pieces have the one form and some the other.
    """
    return _comparable_forms(path) if len(path) <= MAX_CACHED else _comparable_forms.__wrapped__(path)


@functools.lru_cache(4096)
def _comparable_forms(path: str) -> tuple[str, ...]:
    first = path_pieces(path)
    if path.isascii():
        return (_joined(first),)
    second = path_pieces(path, name_of_single_characters)
    if len(first) != len(second) or sum(map(ne, first, second)) > MAX_MIXED:
        return _joined(first), _joined(second)
    pieces = (dict.fromkeys(both) for both in zip(first, second, strict=True))
    return tuple(map(_joined, product(*pieces)))


def _joined(pieces: tuple[str, ...]) -> str:
    return "".join([piece if piece == "/" else f"{piece}/" for piece in pieces])
