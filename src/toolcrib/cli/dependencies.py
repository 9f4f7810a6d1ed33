"""The dependencies that a person names for their own tools (`--deps`), and which tools need some."""

from __future__ import annotations

import inspect
import typing
from collections.abc import AsyncGenerator, Callable, Iterable
from contextlib import asynccontextmanager, contextmanager
from typing import Any

from toolcrib.cli.console import Problem
from toolcrib.compiling.annotations import signature_of
from toolcrib.context import Context
from toolcrib.plugins import PluginError, load_object
from toolcrib.toolset import name_of, unwrapped

Factory = Callable[[], Any]


def load_factory(reference: str | None) -> Factory | None:
    """The function behind "module:function" that makes the dependencies. Raises Problem for anything else."""
    if reference is None:
        return None
    try:
        made: Factory = load_object(reference, example="store:open_store")
    except PluginError as problem:
        raise Problem(f"--deps {problem}") from problem
    if not callable(made):
        raise Problem(
            f"--deps {reference}: expected a function that makes the dependencies, got {made!r:.80}"
        )
    try:
        signature_of(made).bind()
    except TypeError as problem:
        raise Problem(f"--deps {reference}: the function is called without arguments: {problem}") from problem
    except ValueError:  # a built-in that tells nothing of its parameters
        pass
    return made


@asynccontextmanager
async def dependencies(factory: Factory | None) -> AsyncGenerator[Any]:
    """What the factory returns, or yields once and closes afterwards; None without a factory.

    Raises Problem if the factory fails.
    """
    if factory is None:
        yield None
    elif inspect.isasyncgenfunction(factory):
        async with _naming_failures(asynccontextmanager(factory)()) as made:
            yield made
    elif inspect.isgeneratorfunction(factory):
        async with _naming_failures(_as_async(contextmanager(factory)())) as made:
            yield made
    else:
        async with _naming_failures(_returned(factory)) as made:
            yield made


@asynccontextmanager
async def _naming_failures(opened: Any) -> AsyncGenerator[Any]:
    """Enter and leave; a failure to enter or to leave is a Problem that says so."""
    try:
        made = await opened.__aenter__()
    except Exception as problem:
        raise _failed("making", problem) from problem
    try:
        yield made
    except BaseException as problem:
        if not await opened.__aexit__(type(problem), problem, problem.__traceback__):
            raise
    else:
        try:
            await opened.__aexit__(None, None, None)
        except Exception as problem:
            raise _failed("closing", problem) from problem


def _failed(doing: str, problem: Exception) -> Problem:
    return Problem(f"--deps: {doing} the dependencies failed: {type(problem).__name__}: {problem}")


@asynccontextmanager
async def _as_async(opened: Any) -> AsyncGenerator[Any]:
    with opened as made:
        yield made


@asynccontextmanager
async def _returned(factory: Factory) -> AsyncGenerator[Any]:
    made = factory()
    yield await made if inspect.isawaitable(made) else made


def require_dependencies(tools: Iterable[Any]) -> None:
    """Raise Problem if a tool's context declares dependencies, which nobody has named."""
    for supplied in tools:
        needed = _declared(supplied)
        if needed:
            raise Problem(
                f"tool {name_of(supplied)} needs dependencies (its context is Context[{needed}]): name a function "
                "that makes them, as --deps MODULE:FUNCTION"
            )


def _declared(supplied: Any) -> str:
    """The type of the dependencies that a tool's context declares; "" for none, or for one that may be None."""
    tool = unwrapped(supplied)[0]
    function = next((getattr(tool, name) for name in ("fn", "execute", "build") if hasattr(tool, name)), None)
    try:
        hints = typing.get_type_hints(function)
    except Exception:  # compiling the tool says what is wrong with it
        return ""
    for hint in hints.values():
        if typing.get_origin(hint) is Context:
            (deps,) = typing.get_args(hint)
            optional = deps in (Any, None, object) or type(None) in typing.get_args(deps)
            if not optional and not isinstance(deps, typing.TypeVar):
                return getattr(deps, "__name__", str(deps))
    return ""
