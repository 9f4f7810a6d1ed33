"""A text as it looks to a person: characters that are drawn like Latin letters count as these."""

from __future__ import annotations

import re
from unicodedata import category, normalize

from toolcrib.visible import INVISIBLE

__all__ = ["as_it_looks"]

# Letters of other alphabets, small capitals and signs, each with the Latin letter that it looks like.
_LETTERS = {
    "a": "аɑαΑᴀ@ꓮ", "b": "вʙΒьƅꓐ", "c": "сᴄϲꓚ", "d": "ԁᴅɗꓓ", "e": "еєᴇΕεꓰ",
    "f": "ꜰƒꓝ", "g": "ɡɢցꓖ", "h": "һнʜΗհꓧ", "i": "іıɪιΙӏꓲ", "j": "јᴊꓙ",
    "k": "кᴋκΚꓗ", "l": "ʟⅼꓡ", "m": "мᴍΜꓟ", "n": "пɴηΝոꓠ", "o": "оᴏοΟσօꓳ",
    "p": "рᴘρΡꓑ", "q": "ԛգ", "r": "гʀꓣ", "s": "ѕꜱ$ꓢ", "t": "тᴛτΤꓔ",
    "u": "υᴜսцꓴ", "v": "ѵνᴠꓦ", "w": "ԝᴡωѡꓪ", "x": "хχΧꓫ", "y": "уүʏγΥꓬ",
    "z": "ᴢΖꓜ",
}  # fmt: skip
_LOOK_ALIKES = {
    ord(form): letter.upper() if form.isupper() else letter
    for letter, alike in _LETTERS.items()
    for char in alike
    for form in (char, char.upper())
    if len(form) == 1 and form.lower() == char.lower()
}
_DIGITS = str.maketrans("013457", "oieast")
_WITH_LETTERS = re.compile(r"[a-z0-9]*[a-z][a-z0-9]*", re.IGNORECASE)
_SPACED_OUT = re.compile(r"(?<![^\W_])(?:[^\W_][\W_]{1,3}){3,}[^\W_](?![^\W_])")
_BETWEEN = re.compile(r"[\W_]+")


def as_it_looks(text: str) -> str:
    """A text in which look-alikes are Latin letters; nothing invisible, no accents, spaced letters joined.

    For comparing with words that a person would read; genuine words of other alphabets are lost in it.

    >>> as_it_looks("p" + chr(0x430) + "ssw0rd"), as_it_looks("P-A-S-S, p@ss" + chr(0x200B) + "word")
    ('password', 'PASS, password')
    """
    visible = INVISIBLE.sub("", text)
    plain = "".join(char for char in normalize("NFKD", visible) if category(char) != "Mn")
    letters = _WITH_LETTERS.sub(lambda word: word[0].translate(_DIGITS), plain.translate(_LOOK_ALIKES))
    return _SPACED_OUT.sub(lambda apart: _BETWEEN.sub("", apart[0]), letters)
