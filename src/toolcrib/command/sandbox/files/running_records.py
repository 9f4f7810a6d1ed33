"""What was recorded before each of the commands that run now in one workspace, in the order in which they started.

A command that starts while another one runs may record what that one changed. When the change is put back, it is taken
out of the later records, too: the end of the later command would bring it back.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping
from itertools import count
from typing import Protocol, TypeVar
from weakref import WeakValueDictionary

__all__ = ["RunningRecords", "accept_changes", "records_of"]


class RunningRecord(Protocol):
    """The state of files that was recorded before a command started."""

    def accept(self, path: str, data: bytes | None) -> None:
        """Records what a tool has just written to a file (None: it removed it) as the state before the command."""


Record = TypeVar("Record", bound=RunningRecord)


class RunningRecords:
    """The records of commands. A record counts as long as somebody holds it, which is until its command has ended.

    `lock` is held while a record is made and added, and while one is used and later ones are corrected.
    """

    def __init__(self) -> None:
        self.lock = threading.RLock()
        self._records: WeakValueDictionary[int, RunningRecord] = WeakValueDictionary()
        self._numbers = count()

    def add(self, record: RunningRecord) -> None:
        self._records[next(self._numbers)] = record

    def of_kind(self, kind: type[Record]) -> list[Record]:
        """The records of a kind, in their order."""
        known = sorted(self._records.items(), key=lambda item: item[0])
        return [found for _, found in known if isinstance(found, kind)]

    def accept(self, changed: Mapping[str, bytes | None]) -> None:
        """Notes in all records what a tool has just written, or removed (None), so that no command undoes it."""
        with self.lock:
            for record in list(self._records.values()):
                for path, data in changed.items():
                    record.accept(path, data)

    def later_than(self, record: Record) -> list[Record]:
        """The records of the same kind that were added after one."""
        in_order = self.of_kind(type(record))
        places = [place for place, found in enumerate(in_order) if found is record]
        return in_order[places[0] + 1 :] if places else []


# Several sandboxes of this process may run commands in one workspace.
_known: WeakValueDictionary[str, RunningRecords] = WeakValueDictionary()
_known_lock = threading.Lock()


def records_of(workspace: str) -> RunningRecords:
    """The records of the commands that this process runs in a workspace, given by its real path."""
    with _known_lock:
        found = _known.get(workspace)
        if found is None:
            found = _known[workspace] = RunningRecords()
        return found


def accept_changes(workspace: str, changed: Mapping[str, bytes | None]) -> None:
    """Notes files that a tool has just written, or removed (None). The end of a command that runs now keeps them."""
    if (running := _known.get(workspace)) is not None:
        running.accept(changed)
