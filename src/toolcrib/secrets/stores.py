"""Stores of secrets. A store lists its names, and gives one value at a time, when it is needed.

A secret's name is a letter or `_`, then up to 63 letters, digits, `_`, `.` or `-`.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Collection, Mapping
from typing import Protocol

from toolcrib.errors import as_tuple

__all__ = [
    "MAX_VALUE",
    "NAME",
    "Environment",
    "SecretError",
    "SecretStore",
    "Stores",
    "names_at_hand",
    "valid_name",
]

NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_.-]{0,63}")
MAX_VALUE = 1 << 20  # bytes


class SecretError(Exception):
    """A store cannot be used. The message is for a person and contains no value."""


class SecretStore(Protocol):
    """A source of secrets. It is read before a call, and may block.

    A store for which values cost no more than names may also have the method `at_hand()`: all names, each with its
    value, or with None where that costs more. A value that changes is masked at once, also before a tool uses it.
    """

    def get(self, name: str) -> str | None:
        """The value, or None if the name is not known. Raises SecretError if the store cannot be read."""
        ...

    def names(self) -> Collection[str]:
        """The names of its secrets; no value is read for that."""
        ...


class Environment:
    """Variables of our own environment: the given names, and those that begin with `prefix` (without the prefix)."""

    def __init__(
        self, names: Collection[str] = (), *, prefix: str = "", environ: Mapping[str, str] | None = None
    ) -> None:
        self._names = frozenset(map(valid_name, as_tuple("names", names)))
        self._prefix = prefix
        self._environ = os.environ if environ is None else environ

    def get(self, name: str) -> str | None:
        if name in self._names and name in self._environ:
            return self._environ[name]
        return self._environ.get(self._prefix + name) if self._prefix and NAME.fullmatch(name) else None

    def names(self) -> Collection[str]:
        own = {name for name in self._names if name in self._environ}
        if self._prefix:
            size = len(self._prefix)
            rest = {name[size:] for name in self._environ if name.startswith(self._prefix)}
            own |= {name for name in rest if NAME.fullmatch(name)}
        return sorted(own)

    def at_hand(self) -> Mapping[str, str | None]:
        return {name: self.get(name) for name in self.names()}


def names_at_hand(store: SecretStore) -> Mapping[str, str | None]:
    """The names of a store, each with its value where that costs no more than the name."""
    at_hand: Callable[[], Mapping[str, str | None]] | None = getattr(store, "at_hand", None)
    return dict.fromkeys(store.names()) if at_hand is None else at_hand()


class Stores:
    """Several stores as one. The first store that has a name gives its value."""

    def __init__(self, *stores: SecretStore) -> None:
        self._stores = stores

    def get(self, name: str) -> str | None:
        return next((value for store in self._stores if (value := store.get(name)) is not None), None)

    def names(self) -> Collection[str]:
        return sorted({name for store in self._stores for name in store.names()})

    def at_hand(self) -> Mapping[str, str | None]:
        return {
            name: value for store in reversed(self._stores) for name, value in names_at_hand(store).items()
        }


def valid_name(name: str) -> str:
    """The name itself. Raises ValueError if a secret cannot have that name."""
    if not NAME.fullmatch(name):
        raise ValueError(
            f"a secret's name is letters, digits, _ . - (64 at most), no digit first; got {name!r}"
        )
    return name
