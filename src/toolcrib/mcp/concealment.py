"""Texts and data of a server without the credentials that it was sent or started with.

A credential is found in the encodings in which secrets are (see `toolcrib.secrets`): a server that shows the header
of a request shows a token in base64.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Iterable, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from toolcrib.secrets.secret_finder import SecretFinder

__all__ = ["Conceal", "concealed", "concealing_values", "unchanged"]

# Passwords for programs are often 16 small letters.
MERE_WORD = re.compile(r"[A-Za-z]?[a-z]{1,12}|[A-Z]{1,13}")
BLOB = "blob"  # the name in the protocol of the bytes of a resource, in base64


class Conceal(Protocol):
    """Gives a text of a server without the credentials that it was sent or started with.

    Without `words`, a credential that is a mere word, such as `postgres`, stays. This is for names and descriptions:
    the server would not recognise a changed name, and a gap in a description would show that the word is a credential.
    """

    def __call__(self, text: str, /, *, words: bool = True) -> str: ...


def unchanged(text: str, /, *, words: bool = True) -> str:
    """The text of a server that was given no credentials."""
    return text


def concealing_values(values: Mapping[str, str]) -> Conceal:
    """A function that takes credentials out of texts. `values` has what is shown in the place of each.

    A value that cannot be told from ordinary text, because it is too short, stays.
    """
    from toolcrib.secrets.redact import why_unusable
    from toolcrib.secrets.secret_finder import SecretFinder

    found = [value for value in values if why_unusable(value) is None]
    if not found:
        return unchanged

    def finder(credentials: Iterable[str]) -> SecretFinder:
        return SecretFinder({value: value for value in credentials})

    of_all, of_others = finder(found), finder(value for value in found if not MERE_WORD.fullmatch(value))

    def conceal(text: str, /, *, words: bool = True) -> str:
        return _replaced(text, of_all if words else of_others, values)

    return conceal


def _replaced(text: str, finder: SecretFinder, values: Mapping[str, str]) -> str:
    """The text with what is shown in the place of each credential."""
    from toolcrib.secrets.secret_finder import merged

    data = text.encode("utf-8", "surrogatepass")
    if finder.finds_nothing(data):
        return text
    out: list[bytes] = []
    at = 0
    for start, end, value in merged(finder.spans(data)):
        out += (data[at:start], values[value].encode())
        at = end
    return b"".join((*out, data[at:])).decode("utf-8", "surrogatepass") if out else text


def concealed(value: Any, conceal: Conceal, *, words: bool = True) -> Any:
    """JSON data of a server without the credentials that it was sent or started with; `words` as in `Conceal`."""
    if isinstance(value, str):
        return conceal(value, words=words)
    if isinstance(value, Mapping):
        return {
            concealed(name, conceal, words=words): _concealed_blob(item, conceal)
            if name == BLOB and isinstance(item, str)
            else concealed(item, conceal, words=words)
            for name, item in value.items()
        }
    return [concealed(item, conceal, words=words) for item in value] if isinstance(value, list) else value


def _concealed_blob(blob: str, conceal: Conceal) -> str:
    """The base64 of a text without credentials. Other bytes that hold one cannot be read afterwards."""
    with suppress(ValueError):
        text = base64.b64decode(blob, validate=True).decode()
        shown = conceal(text)
        return blob if shown == text else base64.b64encode(shown.encode()).decode()
    return conceal(blob)
