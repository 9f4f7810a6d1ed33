"""Paths in the form in which rules compare them.

Some file systems ignore case, how a letter is composed, and some invisible characters. So does the comparison, whatever
the file system: `.GIT` must not get around a rule about `.git`.
"""

from __future__ import annotations

import functools
import posixpath
import unicodedata

from toolcrib.visible import IGNORED_IN_FILE_NAMES

__all__ = ["comparable_name", "comparable_path", "path_pieces"]

MAX_CACHED = 500  # characters of a path up to which its comparable form is cached


def comparable_name(name: str) -> str:
    """A name composed (NFC), without case, and without characters that file systems ignore."""
    if name.isascii():
        return name.lower()
    composed = unicodedata.normalize("NFC", name).casefold().translate(IGNORED_IN_FILE_NAMES)
    return unicodedata.normalize("NFC", composed)


def path_pieces(path: str) -> tuple[str, ...]:
    """The comparable names in a path, after "/" if it is absolute. `~` and `..` are resolved as far as they can be.

    >>> path_pieces("/srv/./A/../B"), path_pieces("a//b"), path_pieces("../x")
    (('/', 'srv', 'b'), ('a', 'b'), ('..', 'x'))
    """
    expanded = posixpath.expanduser(path) if path[:2] in ("~", "~/") else path
    cleaned = posixpath.normpath(expanded or ".")
    pieces = [piece for piece in comparable_name(cleaned).split("/") if piece not in ("", ".")]
    return ("/", *pieces) if cleaned.startswith("/") else tuple(pieces)


def comparable_path(path: str) -> str:
    """The pieces of a path, each followed by a slash; path patterns are matched against this text.

    >>> comparable_path("src/A.py"), comparable_path("/etc"), comparable_path(".")
    ('src/a.py/', '/etc/', '')
    """
    return _comparable_path(path) if len(path) <= MAX_CACHED else _comparable_path.__wrapped__(path)


@functools.lru_cache(4096)
def _comparable_path(path: str) -> str:
    return "".join([piece if piece == "/" else f"{piece}/" for piece in path_pieces(path)])
