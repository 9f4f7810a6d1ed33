"""Objects that a run owns beyond one call, such as background processes or a Python session. They end with the run."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any, Protocol, TypeVar

from toolcrib.event_loops import to_its_end
from toolcrib.events import Event
from toolcrib.toolbox.operator_log import Mask, log_failure

__all__ = ["OwnedByRun", "OwnedObjects"]

T = TypeVar("T")


class OwnedByRun(Protocol):
    """An object that a tool keeps for a run."""

    async def aclose(self) -> None:
        """Ends it. The run waits for that."""
        ...

    def news(self) -> list[str]:
        """What the model is told before its next request, a sentence each; nothing is told twice."""
        ...


class OwnedObjects:
    """The objects that runs own, by run and by the function that made them."""

    def __init__(self, mask: Mask) -> None:
        self._mask = mask
        self._of_runs: dict[str, dict[Any, Any]] = {}
        self._lock = threading.Lock()

    def __len__(self) -> int:
        """The number of runs that own something."""
        return len(self._of_runs)

    def get(self, run: str, make: Callable[[Callable[[Event], None]], T], emit: Callable[[Event], None]) -> T:
        """The object of a run that `make` made, or makes now."""
        with self._lock:
            objects = self._of_runs.setdefault(run, {})
            if make not in objects:
                objects[make] = make(emit)
            made: T = objects[make]
            return made

    def has(self, run: str, make: Callable[..., Any]) -> bool:
        """Whether a run owns what `make` makes."""
        return make in self._of_runs.get(run, {})

    def news(self, run: str) -> list[str]:
        """What happened to the objects of a run since it was last asked."""
        if run not in self._of_runs:
            return []
        return [words for owned in list(self._of_runs[run].values()) for words in owned.news()]

    async def last_news(self, run: str) -> list[str]:
        """The news of the objects that have a `settle`, which waits for what the model should not miss."""
        if run not in self._of_runs:
            return []
        waited_for = [owned for owned in list(self._of_runs[run].values()) if hasattr(owned, "settle")]
        for owned in waited_for:
            await owned.settle()
        return [words for owned in waited_for for words in owned.news()]

    def at_work(self, run: str) -> bool:
        """Whether an object of a run may still change something between its calls: a background process."""
        return any(getattr(owned, "at_work", False) for owned in list(self._of_runs.get(run, {}).values()))

    async def close(self, run: str) -> None:
        """Closes the objects of a run. If the caller is cancelled meanwhile, that is raised when they are closed.

        A second cancellation is raised at once, and they are closed all the same.
        """
        objects = self._of_runs.pop(run, None)
        if objects:
            await to_its_end(_close(list(objects.values()), self._mask))


async def _close(objects: list[OwnedByRun], mask: Mask) -> None:
    import asyncio

    for ended in await asyncio.gather(*(owned.aclose() for owned in objects), return_exceptions=True):
        if isinstance(ended, Exception):
            log_failure("what a run owned could not be closed", mask, ended)
