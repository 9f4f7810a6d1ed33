"""The built-in tool with which a model ends its run and gives its final answer."""

from __future__ import annotations

from toolcrib.effect import Effect
from toolcrib.function import tool

__all__ = ["COMPLETION", "attempt_completion"]

COMPLETION = "attempt_completion"


@tool(effect=Effect.READ, secrets=(), open_world=False, idempotent=True, inline=True)
def attempt_completion(result: str) -> str:
    """Finish the task. Call it once, alone, when everything is done or nothing more can be done.

    Args:
        result: The final answer for the user: what was done, what was found, and what is left open.
    """
    return result
