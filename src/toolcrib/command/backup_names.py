"""What editors, programs and people add to a file's name when they keep an earlier state or a copy of it.

A copy holds what the file holds, so that `id_rsa~` and `.netrc.bak` are treated like the file itself.
"""

from __future__ import annotations

import re

__all__ = ["ADDED_BEFORE", "ADDED_BEHIND", "without_additions"]

_WORDS = (
    "bak|bkp?|backup|old|orig|original|copy|save|saved|prev|previous|tmp|temp|sw[nop]|dpkg-old|dpkg-dist|dpkg-new"
    "|rpmsave|rpmorig|rpmnew|gz|bz2|xz|zst|zip|tar|tgz"
)
ADDED_BEFORE = r"(?:\.?#|\.)?"  # Emacs saves `#name#` and `.#name`, vim `.name.swp`
ADDED_BEHIND = (
    r"(?:[~#-]|\.~\d{1,4}~|[ ._-]?\(\d{1,3}\)"
    rf"|[ ._-](?:(?:{_WORDS})\d{{0,4}}|\d[\dTZ_.:-]{{0,24}})){{0,4}}"
)
_BEFORE = re.compile(ADDED_BEFORE)
_BEHIND = re.compile(rf"(?<=[^.]){ADDED_BEHIND}\Z", re.IGNORECASE)


def without_additions(name: str) -> tuple[str, str]:
    """A file's name without what was added behind it, and that without what was added before it.

    >>> without_additions(".netrc.bak"), without_additions("#id_rsa#")
    (('.netrc', 'netrc'), ('#id_rsa', 'id_rsa'))
    """
    bare = _BEHIND.sub("", name, count=1)
    return bare, _BEFORE.sub("", bare, count=1)
