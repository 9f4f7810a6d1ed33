"""Whether a change of files would fail, found without showing a model more than it may read unasked."""

from __future__ import annotations

from collections.abc import Callable

from toolcrib.access import Access
from toolcrib.command.judge.paths import may_hold_secrets
from toolcrib.errors import ToolError
from toolcrib.tools.backends.protocol import Permits


def failure_of(plan: Callable[[Permits], object], permits: Permits) -> str | None:
    """The error that a change would end with, as the model is told it.

    None if it would succeed, or if a file that it needs may not be read unasked.
    """
    kept_back: list[Access] = []

    def readable(access: Access) -> bool:
        allowed = not may_hold_secrets(access.target) and permits(access)
        if not allowed:
            kept_back.append(access)
        return allowed

    try:
        plan(readable)
    except ToolError as problem:
        return None if kept_back else problem.message
    return None
