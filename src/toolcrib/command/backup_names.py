"""What editors, programs and people add to a file's name when they keep an earlier state or a copy of it.

A copy holds what the file holds, so that `id_rsa~` and `.netrc.bak` are treated like the file itself.
"""

from __future__ import annotations

__all__ = ["ADDED_BEFORE", "ADDED_BEHIND"]

_WORDS = (
    "bak|bck|bkp?|backup|old|orig|original|copy|sav|saved?|new|prev|previous|tmp|temp|sw[nop]|un|disabled"
    "|dpkg-old|dpkg-dist|dpkg-new|rpmsave|rpmorig|rpmnew"
    "|gz|bz2?|xz|zst|lz4?|lzma|z|br|zip|rar|tar|tgz|tbz2?|txz|b64|base64|enc|age"
)
_PARTS = (
    rf"[ ._-]{{1,3}}(?:{_WORDS})\d{{0,4}}"
    r"|[ ._-]\d(?:[TZ_.:-]{0,2}\d){0,24}+Z?"  # a time or a number
    r"|[ ._-]?\((?:copy ?)?\d{0,3}\)"
    r"|\.~\d{1,4}~|[~#-]"
)
# Expressions without regard to case.
ADDED_BEFORE = r"(?:\.?#|\.|copy of )?"  # Emacs saves `#name#` and `.#name`, vim `.name.swp`
ADDED_BEHIND = rf"(?:{_PARTS}){{0,4}}"
