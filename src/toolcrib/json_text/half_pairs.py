"""Half surrogate pairs: what Python makes of bytes in a file name that are no text. UTF-8 cannot encode them."""

from __future__ import annotations

from typing import Any

__all__ = ["is_about_half_pairs", "without_half_pairs"]


def is_about_half_pairs(problem: Exception) -> bool:
    """Whether JSON could not be written for half a surrogate pair."""
    return "surrogates not allowed" in str(problem)


def without_half_pairs(value: Any) -> Any:
    """The same with `?` for each half pair in texts, keys, lists and dicts; other objects stay as they are."""
    if isinstance(value, str):
        return value.encode("utf-8", "replace").decode()
    if type(value) is dict:
        return {without_half_pairs(key): without_half_pairs(item) for key, item in value.items()}
    if type(value) in (list, tuple):
        return [without_half_pairs(item) for item in value]
    return value
