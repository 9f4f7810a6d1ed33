"""A toolbox with a built-in tool in another form, for the runs that need it; all else is shared."""

from __future__ import annotations

import copy
from collections import ChainMap
from typing import Any, TypeVar

from toolcrib.prepared import ResolvedTool
from toolcrib.toolbox.registry import Entry, Registry

__all__ = ["with_builtin"]

Box = TypeVar("Box", bound=Any)


class OverlaidRegistry(Registry):
    """A registry in which one built-in tool is another; what is added to the registry below is here too."""

    def __init__(self, below: Registry, name: str, tool: Any) -> None:
        self.__dict__.update(below.__dict__)
        self._below = below
        self._found = below.at_hand, dict[str, ResolvedTool]()
        own = {name: Entry(name, tool, below.grace, below.mask)}
        self._builtin: Any = ChainMap(own, below._builtin)

    @property
    def at_hand(self) -> dict[str, ResolvedTool]:  # type: ignore[override]
        """The tools that calls of this box resolved since the last change of the registry below."""
        if self._found[0] is not self._below.at_hand:
            self._found = self._below.at_hand, {}
        return self._found[1]

    def changed(self) -> None:
        self._below.changed()

    @property
    def version(self) -> tuple[int, ...]:
        return self._below.version


def with_builtin(box: Box, name: str, tool: Any) -> Box:
    """The box with this tool under the name of a built-in one."""
    made = copy.copy(box)
    made.registry = OverlaidRegistry(box.registry, name, tool)
    made._compose_path(policy := box.policy)
    box._decider.followers.add(made._decider, lambda policy: policy, policy)
    return made
