"""The hooks of a tool: methods of the class form, keywords of the function form."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping
from functools import partial
from inspect import iscoroutinefunction
from types import FunctionType
from typing import TYPE_CHECKING, Any, Generic, TypedDict, TypeVar

if TYPE_CHECKING:
    from toolcrib.access import Access
    from toolcrib.context import Context
    from toolcrib.effect import Effect
    from toolcrib.question import Doubt, Preview

__all__ = ["HOOKS", "FunctionHooks", "check_not_async", "check_spelling", "is_async"]


P = TypeVar("P")


class FunctionHooks(TypedDict, Generic[P], total=False):
    """The hooks of a function tool; the method of `Tool` with the same name says what each is for.

    `P` is the type that `params=` gave, or else the dict of the validated arguments and defaults.
    """

    precheck: Callable[[P], str | None]
    would_fail: Callable[[P, Callable[[Access], bool]], str | None]
    effect_for: Callable[[P], Effect]
    resources: Callable[[P], Iterable[str] | None]
    accesses: Callable[[P], Iterable[Access] | None]
    base_folder: Callable[[], str]
    preview: Callable[[P], Preview | None]
    doubt: Callable[[P], Doubt | None]
    with_secrets: Callable[[P, Mapping[str, str]], P]
    unavailable: Callable[[], str | None]
    on_partial: Callable[[Any, Context[Any]], None]
    dynamic_description: Callable[[Context[Any]], str | Awaitable[str | None] | None]
    dynamic_schema: Callable[[dict[str, Any], Context[Any]], dict[str, Any] | Awaitable[dict[str, Any]]]


HOOKS = tuple(FunctionHooks.__annotations__)
AWAITED = ("dynamic_description", "dynamic_schema")  # the other hooks are asked where nothing can be awaited
_BY_LETTERS = {hook.replace("_", ""): hook for hook in HOOKS}


def is_async(fn: Any) -> bool:
    """Whether calling `fn` gives a coroutine: it is an async function, or an object whose `__call__` is one."""
    while isinstance(fn, partial):
        fn = fn.func
    return iscoroutinefunction(fn) or iscoroutinefunction(type(fn).__call__)


def check_not_async(tool: str, hooks: Mapping[str, Any]) -> None:
    """Raises TypeError for an async hook that nobody would await: what it gives would say nothing."""
    for name, hook in hooks.items():
        if name in HOOKS and name not in AWAITED and is_async(hook):
            raise TypeError(
                f"tool {tool!r}: {name} is not awaited: write it as a plain function, without async"
            )


def check_spelling(tool: str, methods: Mapping[str, Any]) -> None:
    """Raises TypeError for a method such as `pre_check` or `onPartial`, which would never be called."""
    for name, method in methods.items():
        hook = _BY_LETTERS.get(name.replace("_", "").lower(), name)
        if hook != name and isinstance(method, FunctionType) and not name.startswith("_"):
            raise TypeError(f"tool {tool!r}: {name} is no hook; do you mean {hook}?")
