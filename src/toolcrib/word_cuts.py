"""Where a long text is cut: between words, so that a secret in it is shown to nobody in part.

A secret is masked where it stands as a whole. A word of more than `LONGEST` characters is cut where the caller says.
"""

from __future__ import annotations

import re

__all__ = ["LONGEST", "begun_word"]

LONGEST = 200
LAST_WORD = re.compile(r"[^\s\"'`,;<>(){}\[\]|&]*\Z")


def begun_word(text: str) -> int:
    """The length of the word that a text ends with; 0 if it ends with no word, or with one longer than `LONGEST`.

    >>> [begun_word(text) for text in ("one two", "one ", '{"key":"abc', "", "x" * 500)]
    [3, 0, 3, 0, 0]
    """
    near = text[-LONGEST - 1 :]
    found = LAST_WORD.search(near)
    size = len(found[0]) if found else 0
    return size if size <= LONGEST else 0
