"""From a declaration to a `Definition`: the class form and the function form."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Any

from toolcrib.compiling.annotations import innermost
from toolcrib.compiling.definition import Definition, Hook
from toolcrib.compiling.docstring import parse_docstring
from toolcrib.compiling.output import yielded_type
from toolcrib.compiling.params import Params, add_to_schema, is_described, make_params
from toolcrib.compiling.params_argument import POSITIONAL, params_argument
from toolcrib.compiling.signature import Parameter, Signature, read_signature
from toolcrib.compiling.signature_params import signature_params
from toolcrib.compiling.typed_params import TypedParams
from toolcrib.dataclass import replace
from toolcrib.facts import Facts

__all__ = ["compile_class", "compile_function"]


def compile_class(
    facts: Facts, *, execute: Callable[..., Any], kind: Any, returns: Any, doc: str, hooks: Iterable[str]
) -> Definition:
    """Compile a tool class: `kind` is the type of its params, `hooks` are the names of those it overrides."""
    start: Callable[[Any, Any, Any], Any] = _execute
    if kind is None or kind is type(None):
        params: Params = TypedParams.of_fields({}, tool=facts.name)
        start = _execute_without
    else:
        params = make_params(kind, tool=facts.name)
    description = _describe(params, inspect.cleandoc(doc), facts)
    if not isinstance(kind, Mapping):
        _describe_parameters(params, parse_docstring(getattr(kind, "__doc__", None) or "")[1])
    made = {name: _method(name) for name in hooks}
    mode = _mode(execute, facts)
    return Definition(facts, description, params, start, mode, made, returns, True, _yields(execute))


def compile_function(
    facts: Facts,
    fn: Callable[..., Any],
    *,
    kind: Any,
    hooks: Mapping[str, Hook],
    params_hooks: Collection[str],
    local_names: Mapping[str, Any] | None,
) -> Definition:
    """Compile a function tool, from its signature or from the `params=` of its declaration (`kind`).

    Hooks whose names are in `params_hooks` take the params, and are given the defaults with them.
    `local_names` are the names where the function was defined, for annotations that are strings.
    """
    signature = read_signature(fn, facts.name, local_names)
    own_doc = not isinstance(fn, functools.partial) or fn.func.__doc__  # not the docstring of partial itself
    doc = inspect.cleandoc(inspect.getdoc(fn) or "") if own_doc else ""
    start: Callable[[Any, Any, Any], Any]
    defaults: dict[str, Any] = {}
    if kind is not None:
        params = make_params(kind, tool=facts.name)
        taken, context = params_argument(signature.order, kind, facts.name)
        wants_context = context is not None
        start = _start_with_params(fn, signature, taken, context)
    else:
        params = signature_params(signature, facts.name)
        wants_context = bool(signature.contexts)
        start = signature.caller(fn)
        defaults = signature.defaults()
    description = _describe(params, doc, facts)
    made = {
        name: _function_hook(hook, defaults if name in params_hooks else {}) for name, hook in hooks.items()
    }
    yields = _yields(fn)
    returns = yielded_type(signature.returns) if yields else signature.returns
    return Definition(
        facts, description, params, start, _mode(fn, facts), made, returns, wants_context, yields
    )


def _execute(tool: Any, params: Any, ctx: Any) -> Any:
    return tool.execute(params, ctx)


def _execute_without(tool: Any, params: Any, ctx: Any) -> Any:
    return tool.execute(None, ctx)


def _start_with_params(
    fn: Callable[..., Any], signature: Signature, taken: Parameter, context: Parameter | None
) -> Callable[[Any, Any, Any], Any]:
    """Begins a call of a function that takes the params as one argument, and perhaps the context."""
    placed = [p for p in signature.order if p.kind in POSITIONAL][:2]
    if context is None and placed[:1] == [taken]:
        return lambda _, params, ctx: fn(params)
    if placed == [taken, context]:
        return lambda _, params, ctx: fn(params, ctx)
    contexts = () if context is None else (context.name,)
    call = replace(signature, contexts=contexts).caller(fn)
    return lambda _, params, ctx: call(None, {taken.name: params}, ctx)


def _method(name: str) -> Hook:
    return lambda tool, *args: getattr(tool, name)(*args)


def _function_hook(hook: Hook, defaults: Mapping[str, Any]) -> Hook:
    """A hook that is called as a method is, its params filled up with the defaults."""
    if defaults:
        return lambda tool, params, *args: hook({**defaults, **params}, *args)
    return lambda tool, *args: hook(*args)


def _mode(fn: Callable[..., Any], facts: Facts) -> str:
    """The mode in which a function is run, for `Definition.mode`. A sync generator may take long for each value."""
    yields = _yields(fn)
    while isinstance(fn, functools.partial):
        fn = fn.func
    code = fn if inspect.isroutine(fn) else type(fn).__call__
    if inspect.isasyncgenfunction(code):
        return "inline"
    if inspect.iscoroutinefunction(code):
        return "inline" if yields else "async"  # "async" takes what it gives for the result
    return "inline" if facts.inline and not yields else "thread"


def _yields(fn: Callable[..., Any]) -> bool:
    """Whether a function is a generator function, also below decorators that say what they wrap."""
    inner, _ = innermost(fn)
    return inspect.isgeneratorfunction(inner) or inspect.isasyncgenfunction(inner)


def _describe(params: Params, doc: str, facts: Facts) -> str:
    """The tool's description. What the docstring says of parameters goes into the schema."""
    description, described = parse_docstring(doc)
    _describe_parameters(params, described)
    return facts.description or description


def _describe_parameters(params: Params, described: Mapping[str, str]) -> None:
    """Add descriptions to the parameters that have none."""
    notes: dict[str, dict[str, Any]] = {}
    for name, text in described.items():
        node = params.schema["properties"].get(name)
        if isinstance(node, dict) and text and not is_described(params, name):
            notes[name] = {"description": text}
    add_to_schema(params, notes)
