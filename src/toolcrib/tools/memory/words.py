"""The words of a text and of a query, as SQLite's full-text index takes them.

The index splits at spaces. Chinese and Japanese are written without spaces, so a run of their characters is indexed as
its overlapping pairs, and its last character: every part of the run, also a single character, is then found.
"""

from __future__ import annotations

import re
import unicodedata

# Han, Hiragana, Katakana, Hangul, Thai, Lao, Khmer and Myanmar: written without spaces, or with endings joined on
UNSPACED = (
    "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3005-\u3007\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af"
    "\uf900-\ufaff\U00020000-\U0003ffff"
)
RUN = f"[{UNSPACED}]+"
WORD = f"{RUN}|[^\\W_{UNSPACED}]+"
# Words that fit nearly every text; a query of nothing else is taken as it is
COMMON = frozenset(
    re.split(
        " ",
        "a an and are as at be by did do does for from had has have how i in is it its me my of on or our that the "
        "their they this to was we were what when where which who why will with you your",
    )
)


def indexed(text: str) -> str:
    """A text as it is put into the index.

    >>> indexed("Kai likes 東京都")
    'Kai likes  東京 京都 都 '
    """
    return re.sub(RUN, lambda found: f" {' '.join(_pairs(found[0]))} {found[0][-1]} ", _normal(text))


def query(text: str) -> str:
    """A query for the index that finds texts with any word of `text`; "" if it has none.

    >>> query("what is the 東京都 office?"), query("都")
    ('"東京 京都" OR "office"*', '"都"*')
    """
    words: list[str] = re.findall(WORD, _normal(text))
    telling = [word for word in words if word.casefold() not in COMMON] or words
    return " OR ".join(dict.fromkeys(_phrase(word) for word in telling))


def _normal(text: str) -> str:
    """One spelling for characters that differ only in form, such as full-width letters."""
    return unicodedata.normalize("NFKC", text)


def _phrase(word: str) -> str:
    if not re.match(RUN, word) or len(word) == 1:
        return f'"{word}"*'
    return f'"{" ".join(_pairs(word))}"'


def _pairs(run: str) -> list[str]:
    return [run[at : at + 2] for at in range(len(run) - 1)]
