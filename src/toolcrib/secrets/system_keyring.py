"""Secrets in the keyring of the system."""

from __future__ import annotations

import json
from collections.abc import Collection
from typing import Any

from toolcrib.secrets.stores import NAME, SecretError, valid_name

__all__ = ["Keyring"]


class Keyring:
    """The keyring of the system, through the library `keyring` (extra `secrets`), under one service name.

    A keyring cannot list its names, so these are kept in an entry of their own.
    """

    INDEX = "toolcrib: names"

    def __init__(self, service: str = "toolcrib") -> None:
        self.service = service

    def get(self, name: str) -> str | None:
        return self._ask("get_password", name) if NAME.fullmatch(name) else None

    def names(self) -> Collection[str]:
        try:
            names: Any = json.loads(self._ask("get_password", self.INDEX) or "[]")
        except ValueError:
            names = []
        return [name for name in names if isinstance(name, str)] if isinstance(names, list) else []

    def set(self, name: str, value: str) -> None:
        """Store a value in place of an earlier one."""
        self._ask("set_password", valid_name(name), value)
        self._ask("set_password", self.INDEX, json.dumps(sorted({*self.names(), name})))

    def remove(self, name: str) -> bool:
        """Remove a value. Returns whether there was one."""
        if self.get(name) is None:
            return False
        self._ask("delete_password", name)
        self._ask("set_password", self.INDEX, json.dumps(sorted({*self.names()} - {name})))
        return True

    def _ask(self, method: str, *arguments: str) -> Any:
        try:
            import keyring
            from keyring.errors import KeyringError
        except ImportError:
            raise SecretError(
                "the keyring needs the package keyring: pip install 'toolcrib[secrets]'"
            ) from None
        try:
            return getattr(keyring, method)(self.service, *arguments)
        except KeyringError as problem:
            raise SecretError(f"the system keyring cannot be used: {type(problem).__name__}") from None
