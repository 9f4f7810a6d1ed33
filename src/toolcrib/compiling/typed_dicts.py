"""TypedDicts that Pydantic can read: before Python 3.12 it refuses those of `typing`."""

from __future__ import annotations

import sys
import typing
from typing import Any, get_args, get_origin

__all__ = ["modern"]


def modern(hint: Any) -> Any:
    """A type in which every `typing.TypedDict` is replaced by one of `typing_extensions`."""
    if sys.version_info >= (3, 12):
        return hint
    if typing.is_typeddict(hint) and type(hint).__module__ == "typing":
        return _modern_typed_dict(hint)
    arguments = get_args(hint)
    if not arguments:
        return hint
    new = tuple(modern(item) if not isinstance(item, list) else item for item in arguments)
    if new == arguments:
        return hint
    origin = get_origin(hint)
    if origin is typing.Annotated:
        return typing.Annotated[(new[0], *hint.__metadata__)]  # type: ignore[unused-ignore]
    if hasattr(hint, "copy_with"):
        return hint.copy_with(new)
    if origin is typing.Union or getattr(origin, "__name__", "") == "UnionType":
        return typing.Union[new]  # noqa: UP007 - built at run time from a tuple
    return origin[new] if origin is not None else hint


def _modern_typed_dict(hint: Any) -> Any:
    import typing_extensions

    hints = typing.get_type_hints(hint, include_extras=True)
    fields: dict[str, Any] = {}
    for name, inner in hints.items():
        kind: Any = typing.Required if name in hint.__required_keys__ else typing.NotRequired
        while get_origin(inner) in (typing.Required, typing.NotRequired):
            # Where annotations are strings, only the resolved hint knows that the key is not required.
            kind, inner = get_origin(inner), get_args(inner)[0]
        fields[name] = kind[modern(inner)]
    build: Any = typing_extensions.TypedDict
    made = build(hint.__name__, fields)
    made.__doc__ = hint.__doc__
    made.__module__ = hint.__module__
    if config := getattr(hint, "__pydantic_config__", None):
        made.__pydantic_config__ = config
    return made
