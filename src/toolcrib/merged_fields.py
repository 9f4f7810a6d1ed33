"""Fields that are added to the body of a request: what users write into extras, and what a constraint needs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

# A choice is one of several objects with fields of their own, so two choices cannot be joined.
REPLACED = frozenset({"tool_choice", "toolChoice"})


def added(ours: list[Any], theirs: list[Any]) -> list[Any]:
    return [*ours, *theirs]


def merged(
    ours: Mapping[str, Any],
    theirs: Mapping[str, Any],
    join_tools: Callable[[list[Any], list[Any]], list[Any]] = added,
) -> dict[str, Any]:
    """Two objects as one, at every depth: fields are added, and of two values of one field that of `theirs` counts.

    Lists of `tools` are joined. A choice of tools is replaced as a whole.
    """
    whole = dict(ours)
    for name, value in theirs.items():
        mine = ours.get(name)
        if name == "tools" and (isinstance(mine, list) or isinstance(value, list)):
            lists = [given if isinstance(given, list) else [] for given in (mine, value)]
            whole[name] = join_tools(*lists)
        elif isinstance(mine, Mapping) and isinstance(value, Mapping) and name not in REPLACED:
            whole[name] = merged(mine, value, join_tools)
        else:
            whole[name] = value
    return whole
