"""Tool.__call__, a sync one."""

import json

from smolagents import tool


@tool
def add(a: int, b: int) -> int:
    """Add two numbers.

    Args:
        a: One.
        b: The other.
    """
    return a + b


assert add(**json.loads('{"a": 1, "b": 2}')) == 3
