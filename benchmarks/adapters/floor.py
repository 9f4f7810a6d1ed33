"""The floor: what bare Pydantic needs for the same."""

import inspect
import json
from collections.abc import Callable
from typing import Any

from pydantic import BaseModel, TypeAdapter, create_model
from pydantic_core import to_json


def model_of(function: Callable[..., Any]) -> type[BaseModel]:
    """A model of a function's parameters."""
    fields: dict[str, Any] = {
        name: (item.annotation, ... if item.default is inspect.Parameter.empty else item.default)
        for name, item in inspect.signature(function).parameters.items()
    }
    return create_model(function.__name__, **fields)


def flat(function: Callable[..., Any]) -> Callable[[str], Any]:
    """validate_json, await, to_json, for `get_weather`."""
    validate = TypeAdapter(model_of(function)).validate_json

    async def call(raw: str) -> bytes:
        given: Any = validate(raw)
        return to_json(await function(given.city, given.days, given.tags))

    return call


def flat_sync(function: Callable[..., Any]) -> Callable[[str], Any]:
    validate = TypeAdapter(model_of(function)).validate_json

    def call(raw: str) -> bytes:
        given: Any = validate(raw)
        return to_json(function(given.city, given.days, given.tags))

    return call


def nested(function: Callable[..., Any]) -> Callable[[str], Any]:
    validate = TypeAdapter(model_of(function)).validate_json

    async def call(raw: str) -> bytes:
        given: Any = validate(raw)
        return to_json(await function(given.customer, given.items))

    return call


CALLS = {"async": flat, "slow": flat, "sync": flat_sync, "nested": nested}


def definition(function: Callable[..., Any]) -> dict[str, Any]:
    """What Pydantic alone would send."""
    return {
        "name": function.__name__,
        "description": inspect.getdoc(function) or "",
        "parameters": model_of(function).model_json_schema(),
    }


def define_and_use(function: Callable[..., Any], raw: str) -> None:
    """A validator, a schema and a first validation, without asking for the docstring."""
    adapter = TypeAdapter(model_of(function))
    adapter.json_schema()
    adapter.validate_json(raw)


async def bare_loop(function: Callable[..., Any], turns: int, raw: str, mark: Callable[[], None]) -> None:
    """A loop that only keeps a list of messages."""
    call = flat(function)
    messages: list[Any] = [{"role": "user", "content": "go"}]
    for turn in range(turns):
        mark()
        messages.append({"role": "assistant", "calls": [{"id": str(turn), "arguments": raw}]})
        messages.append({"role": "tool", "content": (await call(raw)).decode()})


def whole(text: str) -> Any:
    return json.loads(text)
