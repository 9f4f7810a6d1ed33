"""What was recorded before each of the commands that run now in one workspace, in the order in which they started.

A command that starts while another one runs may record what that one changed. When the change is put back, it is taken
out of the later records, too: the end of the later command would bring it back.
"""

from __future__ import annotations

import threading
from itertools import count
from typing import TypeVar
from weakref import WeakValueDictionary

__all__ = ["RunningRecords", "may_run_in", "records_of"]

Record = TypeVar("Record")


class RunningRecords:
    """The records of commands. A record counts as long as somebody holds it, which is until its command has ended.

    `lock` is held while a record is made and added, and while one is used and later ones are corrected.
    """

    def __init__(self) -> None:
        self.lock = threading.RLock()
        self._records: WeakValueDictionary[int, object] = WeakValueDictionary()
        self._numbers = count()

    def add(self, record: object) -> None:
        self._records[next(self._numbers)] = record

    def of_kind(self, kind: type[Record]) -> list[Record]:
        """The records of a kind, in their order."""
        known = sorted(self._records.items(), key=lambda item: item[0])
        return [found for _, found in known if isinstance(found, kind)]

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


def may_run_in(workspace: str) -> bool:
    """Whether this process may run commands in a workspace now."""
    return workspace in _known
