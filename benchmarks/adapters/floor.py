"""The floor: what bare Pydantic needs for the same."""

import asyncio
import inspect
import json
import os
import threading
from collections.abc import Callable
from queue import SimpleQueue
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


def file(function: Callable[..., Any]) -> Callable[[str], Any]:
    validate = TypeAdapter(model_of(function)).validate_json

    async def call(raw: str) -> bytes:
        given: Any = validate(raw)
        return to_json(await function(given.path, given.content))

    return call


CALLS = {"async": flat, "slow": flat, "sync": flat_sync, "nested": nested, "file": file}


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


LINE = b"x" * 700 + b"\n"  # as long as a line of the audit log


def _append(file: int) -> None:
    os.write(file, LINE)
    os.fdatasync(file)


async def appended(file: int, times: int) -> None:
    """Lines appended to a file, each on the disk before the next; meanwhile, the event loop stands still."""
    for _ in range(times):
        _append(file)


async def appended_by_a_thread(file: int, times: int) -> None:
    """The same on a thread, so that the event loop goes on."""
    loop, lines = asyncio.get_running_loop(), SimpleQueue[asyncio.Future[None] | None]()

    def write() -> None:
        while (waiting := lines.get()) is not None:
            _append(file)
            loop.call_soon_threadsafe(waiting.set_result, None)

    thread = threading.Thread(target=write)
    thread.start()
    for _ in range(times):
        written = loop.create_future()
        lines.put(written)
        await written
    lines.put(None)
    thread.join()


LOGS = {"append, fdatasync": appended, "append, fdatasync, on a thread": appended_by_a_thread}


def whole(text: str) -> Any:
    return json.loads(text)
