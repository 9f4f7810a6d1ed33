"""Stores approvals that outlast a run in a file of the user."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

from toolcrib.errors import ToolcribError
from toolcrib.question import Lasting, Scope
from toolcrib.rules.locked_json import LockedJsonFile
from toolcrib.toolbox.approval import Approval
from toolcrib.toolbox.approvals import ExpiryClock

__all__ = ["ApprovalStore", "approval_from_dict"]

TEXTS = ("id", "tool", "identity", "where", "fingerprint", "by", "shown")


class ApprovalStore:
    """Approvals in a file of the user that nobody else may read or write.

    A project cannot approve anything by itself: the file is outside of projects, and names them by their paths. Several
    processes may use the same file. An approval that has expired stays expired when the clock is set back.
    """

    def __init__(self, path: str | Path, *, clock: Callable[[], float] = time.time) -> None:
        self.path = Path(path)
        self._file = LockedJsonFile(path, "approvals")
        self._clock = ExpiryClock(clock)
        self._read: tuple[tuple[int, ...], list[Approval]] = ((), [])

    def all(self) -> list[Approval]:
        """The approvals that have not expired. Raises ToolcribError for a file that cannot be trusted."""
        listed = self._listed()
        alive = self._alive(listed)
        if len(alive) < len(listed):
            try:
                with self._file.changing():
                    self._file.write([asdict(item) for item in self._alive(self._listed())])
            except ToolcribError:
                pass  # they have expired, even if they cannot be removed now
        return alive

    def add(self, approval: Approval) -> None:
        """Store an approval. Raises ToolcribError if that fails."""
        approval_from_dict(asdict(approval))
        with self._file.changing():
            others = [item for item in self._alive(self._listed()) if item.id != approval.id]
            self._file.write([asdict(item) for item in [*others, approval]])

    def revoke(self, id: str) -> bool:
        """Remove an approval by its id; returns whether there was one."""
        with self._file.changing():
            known = self._alive(self._listed())
            others = [item for item in known if item.id != id]
            if len(others) < len(known):
                self._file.write([asdict(item) for item in others])
        return len(others) < len(known)

    def _listed(self) -> list[Approval]:
        mark = self._file.stamp()
        if mark and mark == self._read[0]:
            return self._read[1]
        try:
            listed = [approval_from_dict(item) for item in self._file.read()]
            self._read = mark, listed
            return listed
        except (ValueError, KeyError, TypeError) as problem:
            raise ToolcribError(f"{self.path} cannot be read as approvals: {problem}") from None

    def _alive(self, listed: list[Approval]) -> list[Approval]:
        """The approvals that have not expired. If the clock was set back, the latest known time counts."""
        now = self._clock(max((item.at for item in listed), default=0.0))
        return [item for item in listed if item.expires is None or item.expires > now]


def approval_from_dict(item: dict[str, Any]) -> Approval:
    """An approval of JSON data. Raises ValueError, KeyError or TypeError for other data."""
    named: dict[str, Any] = {**item, "scope": Scope(item["scope"]), "lasting": Lasting(item["lasting"])}
    named["prefixes"] = tuple(tuple(prefix) for prefix in item["prefixes"])
    named["patterns"] = tuple(item.get("patterns", ()))
    named["folders"] = tuple(item.get("folders", ()))
    approval = Approval(**named)
    for name in TEXTS:
        if not isinstance(named[name], str):
            raise TypeError(f"{name} must be text, got {named[name]!r}")
    words = (
        *(word for prefix in approval.prefixes for word in prefix),
        *approval.patterns,
        *approval.folders,
    )
    if not all(isinstance(word, str) for word in words):
        raise TypeError("prefixes, patterns and folders must be words")
    for name in ("at", "expires"):
        value = named.get(name)
        if name == "expires" and value is None:
            continue
        if isinstance(value, bool) or not isinstance(value, int | float) or math.isnan(value):
            raise TypeError(f"{name} must be seconds since the epoch, got {value!r}")
    return approval
