"""What was recorded before each of the commands that run now, in the order in which they started.

A command that starts while another one runs may record what that one changed. When the change is put back, it is taken
out of the later records, too: the end of the later command would bring it back.
"""

from __future__ import annotations

import threading
from itertools import count
from typing import Generic, TypeVar
from weakref import WeakValueDictionary

Record = TypeVar("Record")


class RunningRecords(Generic[Record]):
    """The records of one kind. A record counts as long as somebody holds it, which is until its command has ended.

    `lock` is held while a record is made and added, and while one is used and later ones are corrected.
    """

    def __init__(self) -> None:
        self.lock = threading.RLock()
        self._records: WeakValueDictionary[int, Record] = WeakValueDictionary()
        self._numbers = count()

    def add(self, record: Record) -> None:
        self._records[next(self._numbers)] = record

    def later_than(self, record: Record) -> list[Record]:
        """The records that were added after one."""
        in_order = [found for _, found in sorted(self._records.items(), key=lambda item: item[0])]
        places = [place for place, found in enumerate(in_order) if found is record]
        return in_order[places[0] + 1 :] if places else []
