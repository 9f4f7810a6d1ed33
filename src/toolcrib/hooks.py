"""The hooks of a tool: methods of the class form, keywords of the function form."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any, TypedDict

if TYPE_CHECKING:
    from toolcrib.access import Access
    from toolcrib.context import Context
    from toolcrib.effect import Effect
    from toolcrib.question import Doubt, Preview

__all__ = ["HOOKS", "FunctionHooks"]


class FunctionHooks(TypedDict, total=False):
    """The hooks of a function tool; the method of `Tool` with the same name says what each is for.

    `params` is the dict of the validated arguments and defaults, or the params object where `params=` gave a
    type.
    """

    precheck: Callable[[Any], str | None]
    effect_for: Callable[[Any], Effect]
    resources: Callable[[Any], Iterable[str] | None]
    accesses: Callable[[Any], Iterable[Access] | None]
    preview: Callable[[Any], Preview | None]
    doubt: Callable[[Any], Doubt | None]
    with_secrets: Callable[[Any, Mapping[str, str]], Any]
    unavailable: Callable[[], str | None]
    on_partial: Callable[[Any, Context[Any]], None]
    dynamic_description: Callable[[Context[Any]], str | Awaitable[str | None] | None]
    dynamic_schema: Callable[[dict[str, Any], Context[Any]], dict[str, Any] | Awaitable[dict[str, Any]]]


HOOKS = tuple(FunctionHooks.__annotations__)
