"""The params of a plain function: its signature, read as named fields."""

from __future__ import annotations

import inspect
import sys
from typing import Annotated, Any

from pydantic_core import to_jsonable_python

from toolcrib.compiling.core_schema import IS_NO_JSON
from toolcrib.compiling.params import Params, add_to_schema, is_described
from toolcrib.compiling.signature import VAR_KEYWORD, VAR_POSITIONAL, Parameter, Signature, is_nullable
from toolcrib.compiling.typed_dicts import modern
from toolcrib.compiling.typed_params import TypedParams
from toolcrib.errors import ToolDefinitionError

__all__ = ["signature_params"]

# Parameters without a type that nobody means a model to fill, and what to write instead.
NOT_FROM_A_MODEL = {
    "self": "it is a method of a class; hand in the method of an object, such as store.count",
    "ctx": "its parameter ctx has no type; write ctx: Context to be handed the context, or give its type",
}


def signature_params(signature: Signature, tool: str) -> Params:
    """The params of a signature, with the defaults and descriptions that it gives."""
    fields: dict[str, Any] = {}
    extras = ""
    for parameter in signature.parameters:
        if parameter.hint is Any and parameter.required and parameter.name in NOT_FROM_A_MODEL:
            raise ToolDefinitionError(f"tool {tool!r}: {NOT_FROM_A_MODEL[parameter.name]}")
        hint = modern(parameter.hint)
        if parameter.kind is VAR_KEYWORD:
            extras = parameter.name
        if parameter.kind is VAR_POSITIONAL:
            hint = list[hint]  # type: ignore[valid-type] # a type known only at run time
        # `TypedParams` fills a required nullable field with None.
        absent_is_none = parameter.default is None and is_nullable(hint)
        fields[parameter.name] = (_with_field(hint, parameter), parameter.required or absent_is_none)
    try:
        params = TypedParams.of_fields(fields, tool=tool, extras=extras, reserved=signature.contexts)
    except ToolDefinitionError as problem:
        if IS_NO_JSON in str(problem):
            problem.args = (f"{problem}; an object of yours is given as deps=, and read as ctx.deps",)
        raise
    add_to_schema(params, {parameter.name: _note(params, parameter) for parameter in signature.parameters})
    return params


def _with_field(hint: Any, parameter: Parameter) -> Any:
    """The type of a parameter. The constraints of `x: int = Field(1, ge=1)` join it; the default stays."""
    if not _is_field(parameter.default):
        return hint
    from pydantic.fields import FieldInfo

    info = parameter.default
    parameter.default = inspect.Parameter.empty if info.is_required() else info
    extra = FieldInfo(
        description=info.description, examples=info.examples, json_schema_extra=info.json_schema_extra
    )
    return Annotated[(hint, *info.metadata, extra)]


def _is_field(default: Any) -> bool:
    """Whether a default is a `Field`; there is none before Pydantic was loaded."""
    pydantic = sys.modules.get("pydantic.fields")
    return pydantic is not None and isinstance(default, pydantic.FieldInfo)


def _note(params: Params, parameter: Parameter) -> dict[str, Any]:
    """Keywords that a TypedDict's schema lacks: the default, and a plain text in Annotated as description."""
    node = params.schema["properties"].get(parameter.name)
    if not isinstance(node, dict):
        return {}
    note: dict[str, Any] = {}
    if not is_described(params, parameter.name):
        texts = [item for item in getattr(parameter.hint, "__metadata__", ()) if isinstance(item, str)]
        if texts:
            note["description"] = " ".join(texts)
    default = parameter.default
    if _is_field(default):
        default = default.get_default(call_default_factory=False)
    if default is not None and not parameter.required and default is not inspect.Parameter.empty:
        try:
            note["default"] = default if type(default) in (str, int, bool) else to_jsonable_python(default)
        except ValueError:  # a default that no JSON can show is left out of it
            pass
    return note
