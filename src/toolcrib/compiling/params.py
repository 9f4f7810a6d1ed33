"""Where a tool's arguments come from: a Python type or a raw JSON Schema, behind one small protocol."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from toolcrib.errors import FieldError

__all__ = ["Params", "add_to_schema", "is_described", "make_params"]


class Params(Protocol):
    """The source of a tool's arguments, as calls need it; `schema` is their canonical JSON Schema.

    `unsaid` has, by parameter, the sentences of its description that come from its type and not from its author.
    `written_digits` says that the schema takes a decimal number as text, so that 1.50 may mean more than 1.5.
    """

    schema: dict[str, Any]
    unsaid: Mapping[str, Sequence[str]]
    written_digits: bool

    def parse(self, text: str | bytes) -> Any:
        """The validated params of a JSON text. Strict: raises ValueError where the text does not fit.

        It also raises ValueError for a str of which reading may lose a part, such as a key that stands twice.
        Bytes are JSON that toolcrib wrote itself, in which there is no such part.
        """
        ...

    def explain(self, problem: ValueError, value: Any) -> tuple[FieldError, ...]:
        """The field errors of a problem that `parse` raised on the JSON text of `value`."""
        ...


def make_params(kind: Any, *, tool: str) -> Params:
    """The params of a declaration: a JSON Schema (a mapping), or a model, dataclass or TypedDict."""
    if isinstance(kind, Mapping):
        from toolcrib.compiling.schema_params import SchemaParams

        return SchemaParams(kind, tool=tool)
    from toolcrib.compiling.typed_params import TypedParams

    return TypedParams.of_type(kind, tool=tool)


def is_described(params: Params, name: str) -> bool:
    """Whether the author of a parameter has described it."""
    said = params.schema["properties"][name].get("description", "")
    return bool(said) and said != " ".join(params.unsaid.get(name, ()))


def add_to_schema(params: Params, notes: Mapping[str, Mapping[str, Any]]) -> None:
    """Add keywords to the schemas of parameters, by name. Shared parts of the schema are not changed."""
    from toolcrib.schema.words import with_sentences

    properties = params.schema["properties"]
    added = {name: {**properties[name], **note} for name, note in notes.items() if note}
    for name, node in added.items():
        if "description" in notes[name] and name in params.unsaid:
            node["description"] = with_sentences(node["description"], list(params.unsaid[name]))
    if added:
        params.schema = {**params.schema, "properties": {**properties, **added}}
