"""Checks whether a schema is too large for a provider, by the limits in its documentation."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from toolcrib.schema.dialects import ANTHROPIC_NAMES
from toolcrib.schema.keywords import children, types_of

__all__ = ["anthropic_limits", "anthropic_names", "nodes_of", "openai_limits"]

OPENAI_PROPERTIES: Final = 5_000
OPENAI_DEPTH: Final = 10
OPENAI_CHARACTERS: Final = 120_000  # of all names and values together
OPENAI_VALUES: Final = 1_000  # of all enumerations together
ANTHROPIC_OPTIONAL: Final = 24
ANTHROPIC_UNIONS: Final = 16


def nodes_of(schema: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """All nodes of a schema, definitions included."""
    waiting: list[Any] = [schema]
    while waiting:
        node = waiting.pop()
        if isinstance(node, Mapping):
            yield node
            waiting += children(node)


def openai_limits(schema: Mapping[str, Any]) -> str:
    """The limit of OpenAI's that a strict schema exceeds, in words (structured outputs guide, 2026); "" for none."""
    properties = values = characters = 0
    for node in nodes_of(schema):
        names = [*node.get("properties", ()), *node.get("$defs", ())]
        texts = [value for value in node.get("enum", ()) if isinstance(value, str)]
        properties += len(node.get("properties", ()))
        values += len(node.get("enum", ()))
        characters += sum(map(len, [*names, *texts]))
    if properties > OPENAI_PROPERTIES:
        return f"{properties} properties, at most {OPENAI_PROPERTIES} are taken"
    if values > OPENAI_VALUES:
        return f"{values} values of enumerations, at most {OPENAI_VALUES} are taken"
    if characters > OPENAI_CHARACTERS:
        return f"{characters} characters of names and values, at most {OPENAI_CHARACTERS} are taken"
    depth = _object_depth(schema)
    return f"{depth} levels of objects, at most {OPENAI_DEPTH} are taken" if depth > OPENAI_DEPTH else ""


def _object_depth(node: Any) -> int:
    if not isinstance(node, Mapping):
        return 0
    inner = max((_object_depth(child) for child in children(node)), default=0)
    return inner + ("properties" in node)


def anthropic_limits(schema: Mapping[str, Any]) -> str:
    """The limit of Anthropic's that a strict schema exceeds, in words (structured outputs page, 2026-09); "" for none.

    The limits hold for all strict schemas of a request together.
    """
    optional = unions = 0
    for node in nodes_of(schema):
        properties = node.get("properties", {})
        optional += len(properties.keys() - set(node.get("required", ())))
        unions += sum("anyOf" in inner or len(types_of(inner)) > 1 for inner in properties.values())
    if optional > ANTHROPIC_OPTIONAL:
        return f"{optional} optional properties, at most {ANTHROPIC_OPTIONAL} are taken"
    if unions > ANTHROPIC_UNIONS:
        return f"{unions} properties of several types, at most {ANTHROPIC_UNIONS} are taken"
    return ""


def anthropic_names(schema: Mapping[str, Any]) -> str:
    """The name of a field that Anthropic refuses in a tool's input, in words; "" for none."""
    refused = (name for name in schema.get("properties", ()) if not ANTHROPIC_NAMES.fullmatch(name))
    name = next(refused, None)
    return "" if name is None else f"{name!r} is no name that a tool's parameter may have"
