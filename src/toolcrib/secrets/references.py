"""`<secret_ref:NAME>`: how a model names a secret that it never sees.

`check_references` is called before a call is decided on, `reveal` after that, at the last moment before the tool runs.
Only the tool gets revealed values; calls, questions, transcripts and logs keep the reference.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from typing import Any

from toolcrib.dataclass import dataclass
from toolcrib.secrets.json_strings import Path, find_strings, replace_strings
from toolcrib.secrets.stores import NAME, SecretStore

__all__ = [
    "REFERENCE",
    "Revealed",
    "SecretReference",
    "check_references",
    "find_references",
    "may_have_references",
    "reveal",
]

REFERENCE = re.compile(rf"<secret_ref:({NAME.pattern})>")
LOOKS_LIKE_ONE = re.compile(r"(?:<|&lt;)\s{0,8}secret[_-]?ref\b[^<>\n]{0,200}>?", re.IGNORECASE)


@dataclass(slots=True, frozen=True)
class SecretReference:
    """A reference in the arguments of a call, as it is written (`text`). `name` is empty if it is written wrongly."""

    name: str
    path: Path
    text: str
    in_key: bool = False

    @property
    def parameter(self) -> str:
        """The parameter that it stands in; "" if it stands in a parameter's name."""
        return str(self.path[0]) if self.path else ""


@dataclass(slots=True, frozen=True, repr=False)
class Revealed:
    """Arguments that contain plain values. Its `repr` shows names only, and it cannot be pickled."""

    arguments: Mapping[str, Any]
    values: Mapping[str, str]

    def __repr__(self) -> str:
        return f"Revealed({', '.join(self.values) or 'nothing'})"

    def __reduce__(self) -> Any:
        raise TypeError("revealed secrets are not stored or sent")


def find_references(arguments: Mapping[str, Any]) -> Iterator[SecretReference]:
    """Every reference at any depth, also those that are written wrongly.

    >>> [r.name for r in find_references({"command": "curl -u <secret_ref:USER>:<secret_ref:PASS> host"})]
    ['USER', 'PASS']
    """
    for path, text, in_key in find_strings(arguments):
        if "<" not in text and "&" not in text:
            continue
        for found in LOOKS_LIKE_ONE.finditer(text):
            whole = REFERENCE.fullmatch(found[0])
            yield SecretReference(whole[1] if whole else "", path, found[0], in_key)


def may_have_references(arguments: Any) -> bool:
    """Whether arguments, as data or as JSON text, contain a sign with which references begin; most contain none."""
    if isinstance(arguments, bytes):
        arguments = arguments.decode("utf-8", "replace")
    if isinstance(arguments, str):
        return "<" in arguments or "&" in arguments or "\\u" in arguments
    waiting: list[Any] = [arguments]
    while waiting:
        found = waiting.pop()
        if isinstance(found, str):
            if "<" in found or "&" in found:
                return True
        elif found is None or isinstance(found, int | float):
            continue
        elif isinstance(found, Mapping):
            waiting += found
            waiting += found.values()
        elif isinstance(found, list | tuple):
            waiting += found
    return False


def check_references(
    arguments: Mapping[str, Any], eligible: Collection[str], known: Collection[str]
) -> str | None:
    """Words for the model if a reference cannot be used as it is; None if all can be used, or there is none.

    In a parameter without secrets, a reference that is written wrongly is ordinary text, which nothing replaces.

    >>> check_references({"content": "<secret_ref:KEY>"}, ["command"], ["KEY"])
    'content: a secret may not be used here (<secret_ref:KEY>). This tool takes secrets only in: command.'
    """
    takes = f"only in: {', '.join(sorted(eligible))}" if eligible else "nowhere"
    names = ", ".join(sorted(known)) or "none"
    for reference in find_references(arguments):
        where = _words(reference.path) or "arguments"
        if reference.parameter not in eligible:
            if reference.name:
                return f"{where}: a secret may not be used here ({reference.text}). This tool takes secrets {takes}."
        elif not reference.name:
            return (
                f"{where}: {_short(reference.text)} is not a reference to a secret. Expected "
                f"<secret_ref:NAME> with one of the known names: {names}."
            )
        elif reference.in_key:
            return f"{where}: a secret may stand in a value, not in a key ({reference.text})."
        elif reference.name not in known:
            return f"{where}: there is no secret named {reference.name!r}. Known names: {names}."
    return None


def reveal(arguments: Mapping[str, Any], eligible: Collection[str], store: SecretStore) -> Revealed:
    """New arguments, in which values replace the references in eligible parameters.

    A value that looks like a reference is not replaced in turn. Raises KeyError for a name without a value, and
    whatever the store raises.
    """
    values: dict[str, str] = {}

    def plain(match: re.Match[str]) -> str:
        name = match[1]
        if name not in values:
            value = store.get(name)
            if value is None:
                raise KeyError(name)
            values[name] = value
        return values[name]

    made = {
        name: replace_strings(value, lambda text: REFERENCE.sub(plain, text)) if name in eligible else value
        for name, value in arguments.items()
    }
    return Revealed(made, values)


def _words(path: Path) -> str:
    return "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in path).lstrip(".")


def _short(text: str) -> str:
    return text if len(text) <= 60 else f"{text[:59]}…"
