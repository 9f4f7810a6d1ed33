"""The resources that a call touches, and which calls must therefore keep their order."""

from __future__ import annotations

import os

from toolcrib.access import OWN
from toolcrib.effect import Effect
from toolcrib.errors import belongs_to_caller
from toolcrib.prepared import Ready, ResolvedTool

__all__ = ["Resources", "base_folder", "in_conflict", "only_own", "resources_of"]

Resources = frozenset[str] | None


def resources_of(ready: Ready) -> Resources:
    """The resources of a call, as its tool names them; None if it may touch any."""
    hook = ready.tool.definition.hooks.get("resources")
    if hook is None:
        return None
    try:
        named = hook(ready.tool.instance, ready.params)
        if named is None:
            return None
        one = isinstance(named, str | bytes | os.PathLike)
        return frozenset(map(os.fsdecode, (named,) if one else named))  # paths are names, too
    except BaseException as problem:  # whatever it raises, or names
        if belongs_to_caller(problem):
            raise
        return None


def base_folder(tool: ResolvedTool) -> str:
    """The absolute folder that the paths of a tool are relative to, as it names it; "" where it names none."""
    hook = tool.definition.hooks.get("base_folder")
    try:
        return "" if hook is None else os.fspath(hook(tool.instance))
    except Exception:
        tool.entry.log_failure("base_folder")
        return ""


def only_own(touched: Resources) -> bool:
    """Whether a call touches only what belongs to its run. It then conflicts with no call that may touch anything."""
    return bool(touched) and all(name.startswith(OWN) for name in touched or ())


def in_conflict(effect: Effect, touched: Resources, other_effect: Effect, other_touched: Resources) -> bool:
    """Whether two calls must keep their order."""
    if effect is Effect.READ and other_effect is Effect.READ:
        return False
    if touched is None or other_touched is None:
        return not (only_own(touched) or only_own(other_touched))
    return bool(touched & other_touched)
