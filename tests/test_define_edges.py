"""Declarations at the edges: names that do not exist, fields nobody knows, facts that cannot be right."""

from __future__ import annotations

import dataclasses
import typing
from typing import Any

import pytest
import typing_extensions
from pydantic import BaseModel

from toolcrib import Effect, Retry, Toolbox, ToolDefinitionError
from toolcrib.function import tool

# Names that do not exist, in each of the kinds.


class Model(BaseModel):
    fine: int
    culprit: NoSuchType  # type: ignore[name-defined]  # noqa: F821


@dataclasses.dataclass
class Data:
    fine: int
    culprit: NoSuchType  # type: ignore[name-defined]  # noqa: F821


class Typed(typing.TypedDict):
    fine: int
    culprit: NoSuchType  # type: ignore[name-defined]  # noqa: F821


class TypedExtension(typing_extensions.TypedDict):
    fine: int
    culprit: NoSuchType  # type: ignore[name-defined]  # noqa: F821


def handler(params: Any) -> None: ...


@pytest.mark.parametrize("kind", [Model, Data, Typed, TypedExtension])
def test_a_name_that_does_not_exist_is_named_in_all_kinds(kind: Any) -> None:
    with pytest.raises(ToolDefinitionError, match=r"culprit.*not defined$"):
        tool(handler, effect=Effect.READ, secrets=(), params=kind).check()


def test_a_nested_model_that_cannot_be_resolved_names_the_parameter() -> None:
    def outer(fine: int, person: Model) -> None: ...

    with pytest.raises(ToolDefinitionError, match="person"):
        tool(outer, effect=Effect.READ, secrets=()).check()


async def test_a_call_of_such_a_tool_says_that_its_definition_is_broken() -> None:
    box = Toolbox([tool(handler, effect=Effect.READ, secrets=(), params=Data)])
    with pytest.warns(UserWarning, match="handler"):
        result = await box.call("handler", {"fine": 1, "culprit": 2})
    assert "definition is broken" in result.text


# Unknown fields are an error in all four kinds, unless the type itself allows them.


class InnerTyped(typing.TypedDict):
    z: int | None


class OuterTyped(typing.TypedDict):
    x: typing.NotRequired[int]
    inner: typing.NotRequired[InnerTyped]


class InnerTypedExtension(typing_extensions.TypedDict):
    z: int | None


class OuterTypedExtension(typing_extensions.TypedDict):
    x: typing_extensions.NotRequired[int]
    inner: typing_extensions.NotRequired[InnerTypedExtension]


@pytest.mark.parametrize("kind", [OuterTyped, OuterTypedExtension])
@pytest.mark.parametrize(
    ("arguments", "field"),
    [({"x": 1, "y": 2}, "y"), ({"inner": {"z": 1, "q": 2}}, "inner.q"), ({"inner": {"zz": 1}}, "inner.zz")],
)
async def test_an_unknown_field_of_a_typed_dict_is_not_dropped_silently(
    kind: Any, arguments: Any, field: str
) -> None:
    box = Toolbox([tool(handler, effect=Effect.READ, secrets=(), params=kind)])
    result = await box.call("handler", arguments)
    assert result.code == "invalid_arguments", result.text
    assert f"- {field}: " in result.text


# Wrong declarations are a TypeError where they are written.

MISTAKES: dict[str, dict[str, Any]] = {
    "an empty name is not the function's": {"name": ""},
    "a negative timeout": {"timeout": -1},
    "a timeout that is text": {"timeout": "10"},
    "tags that are one string": {"tags": "abc"},
    "examples that are one example": {"examples": {"fine": 1}},
    "a cap that is a truth value": {"max_output": True},
    "a hook that cannot be called": {"precheck": 3},
    "a description that is no text": {"description": 3},
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_wrong_fact_is_a_type_error_at_definition(mistake: str) -> None:
    def plain(fine: int) -> None: ...

    with pytest.raises((TypeError, ValueError)):
        tool(plain, effect=Effect.READ, secrets=(), **MISTAKES[mistake])


def test_a_retry_tries_at_least_once() -> None:
    with pytest.raises((TypeError, ValueError)):
        Retry(attempts=0)
