"""A fact and a hook of a tool are declared once; the second form that type checkers need says the same."""

import inspect
import typing
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import MISSING, fields
from typing import Any, get_args, get_origin, get_type_hints

import pytest

from toolcrib import Context, Effect, Tool
from toolcrib.access import Access
from toolcrib.compiling.docstring import parse_docstring
from toolcrib.facts import FactOptions, Facts, ListedFacts
from toolcrib.function import ToolOptions
from toolcrib.hooks import HOOKS, FunctionHooks
from toolcrib.question import Doubt, Preview
from toolcrib.spec import ToolSpec

NAMES: dict[str, Any] = {
    "Access": Access, "Awaitable": Awaitable, "Callable": Callable, "Context": Context, "Doubt": Doubt,
    "Effect": Effect, "Mapping": Mapping, "Preview": Preview,
}  # fmt: skip
NO_HOOKS = {"execute", "definition", "spec", "check", "aclose"}


def members(hint: Any) -> set[Any]:
    """The types of an annotation, without what stands in their brackets."""
    union = get_origin(hint) in (typing.Union, type(int | str))
    each = get_args(hint) if union else (hint,)
    return {type(None) if member is None else get_origin(member) or member for member in each}


def test_every_fact_with_a_default_is_an_option() -> None:
    optional = {
        fact.name
        for fact in fields(Facts)
        if fact.default is not MISSING or fact.default_factory is not MISSING
    }
    assert set(FactOptions.__annotations__) == optional
    assert set(ToolOptions.__annotations__) == optional | set(HOOKS) | {"name"}


@pytest.mark.parametrize("fact", FactOptions.__annotations__)
def test_an_option_takes_what_the_fact_holds(fact: str) -> None:
    held, taken = members(get_type_hints(Facts)[fact]), members(get_type_hints(FactOptions)[fact])
    assert all(any(issubclass(kind, wider) for wider in taken) for kind in held)


def test_every_fact_is_described() -> None:
    for kind, own in ((ListedFacts, fields(ListedFacts)), (Facts, fields(Facts))):
        described = parse_docstring(inspect.cleandoc(kind.__doc__ or ""))[1]
        names = {fact.name for fact in own} - (
            set() if kind is ListedFacts else {fact.name for fact in fields(ListedFacts)}
        )
        assert set(described) == names and all(described.values())


def test_a_spec_has_the_listed_facts_under_the_same_names() -> None:
    assert {fact.name for fact in fields(ListedFacts)} <= {item.name for item in fields(ToolSpec)}


def test_every_method_of_a_tool_that_may_be_overridden_is_a_hook() -> None:
    public = {name for name, item in vars(Tool).items() if callable(item) and not name.startswith("_")}
    assert set(HOOKS) == public - NO_HOOKS
    assert all(inspect.getdoc(getattr(Tool, hook)) for hook in HOOKS)


@pytest.mark.parametrize("hook", HOOKS)
def test_a_hook_is_the_same_as_a_method_and_as_a_function(hook: str) -> None:
    method: Any = getattr(Tool, hook)
    hints = get_type_hints(method, localns=NAMES)
    arguments, returned = get_args(get_type_hints(FunctionHooks, localns=NAMES)[hook])
    assert len(arguments) == len(inspect.signature(method).parameters) - 1
    own = members(hints["return"])
    if inspect.iscoroutinefunction(method):
        own |= {Awaitable}
    assert {str(kind) for kind in members(returned)} == {
        str(kind) for kind in own
    }  # each has a `P` of its own
