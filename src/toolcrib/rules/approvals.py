"""Approvals that outlast a run, in a file of the user's."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

from toolcrib.call import FORMAT, Lasting, Scope
from toolcrib.errors import ToolcribError
from toolcrib.toolbox.grants import Approval


class ApprovalStore:
    """Approvals that outlast a run, in a file of the user's that nobody else may read or write.

    A project cannot grant itself anything: the file lies with the user, and names projects by their path.
    """

    def __init__(self, path: str | Path, *, clock: Callable[[], float] = time.time) -> None:
        self.path = Path(path)
        self._clock = clock

    def all(self) -> list[Approval]:
        """What is remembered and has not expired. Raises ToolcribError for a file that cannot be trusted."""
        try:
            status = self.path.stat()
        except FileNotFoundError:
            return []
        if hasattr(os, "getuid") and (status.st_uid != os.getuid() or status.st_mode & 0o022):
            raise ToolcribError(
                f"{self.path} could be written by others; make it yours alone: chmod 600 {self.path}"
            )
        try:
            data = json.loads(self.path.read_text(encoding="utf-8"))
            listed = [_approval(item) for item in data["approvals"]] if data["format"] == FORMAT else None
        except (ValueError, KeyError, TypeError) as problem:
            raise ToolcribError(f"{self.path} cannot be read as approvals: {problem}") from None
        if listed is None:
            raise ToolcribError(f"{self.path} was written by another version; remove it to begin anew")
        now = self._clock()
        return [item for item in listed if item.expires is None or item.expires > now]

    def add(self, approval: Approval) -> None:
        """Remember one more."""
        self._write([*(item for item in self.all() if item.id != approval.id), approval])

    def revoke(self, id: str) -> bool:
        """Forget one by its id; whether there was one."""
        known = self.all()
        kept = [item for item in known if item.id != id]
        if len(kept) < len(known):
            self._write(kept)
        return len(kept) < len(known)

    def _write(self, approvals: list[Approval]) -> None:
        self.path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        text = json.dumps({"format": FORMAT, "approvals": [asdict(item) for item in approvals]}, indent=1)
        temporary = self.path.with_name(f".{self.path.name}.{os.getpid()}.{os.urandom(4).hex()}")
        fd = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        try:
            with os.fdopen(fd, "w", encoding="utf-8") as file:
                file.write(text)
            temporary.replace(self.path)
        except BaseException:
            temporary.unlink(missing_ok=True)
            raise


def _approval(item: dict[str, Any]) -> Approval:
    named: dict[str, Any] = {**item, "scope": Scope(item["scope"]), "lasting": Lasting(item["lasting"])}
    named["prefixes"] = tuple(tuple(prefix) for prefix in item["prefixes"])
    return Approval(**named)
