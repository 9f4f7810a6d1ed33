"""A schema's constraints as short English sentences, for dialects that cannot express them."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any, Final

from toolcrib.schema.keywords import types_of

_SHOWN = 12  # values of an enumeration that are listed before "and N more"
_LONGEST = 160  # characters of JSON that are quoted before they are cut


def with_sentences(description: str, sentences: list[str]) -> str:
    """A description, with the sentences added that it does not already contain."""
    text = description.strip()
    for sentence in sentences:
        if not sentence or sentence in text:
            continue
        if text and text[-1] not in ".!?:;。！？":
            text += "."
        text = f"{text} {sentence}" if text else sentence
    return text


def sentence(keyword: str, value: Any) -> str:
    """A keyword's constraint as one short sentence; "" where it says nothing useful."""
    say = _SENTENCES.get(keyword)
    return f"{keyword}: {quote(value)}." if say is None else say(value)


def phrase(node: Any) -> str:
    """A node's type in a few words: "string", "list of integer", "string or null"."""
    if not isinstance(node, Mapping):
        return "any"
    types = types_of(node)
    named = [f"list of {phrase(node['items'])}" if t == "array" and node.get("items") else t for t in types]
    named = ["list" if name == "array" else name for name in named]
    if not named:
        named = _untyped(node)
    if node.get("nullable") is True and "null" not in named:
        named.append("null")
    return " or ".join(dict.fromkeys(named)) or "any"


def quote(value: Any) -> str:
    """A value as JSON, cut where it is long."""
    text = json.dumps(value, ensure_ascii=False, separators=(", ", ": "), default=str)
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…"


def _untyped(node: Mapping[str, Any]) -> list[str]:
    for keyword in ("anyOf", "oneOf"):
        if isinstance(node.get(keyword), list):
            return [phrase(variant) for variant in node[keyword]]
    if "$ref" in node:
        return [str(node["$ref"]).rsplit("/", 1)[-1] if node["$ref"] != "#" else "object"]
    if "properties" in node:
        return ["object"]
    values = node.get("enum", [node["const"]] if "const" in node else [])
    return ["string"] if values and all(isinstance(value, str) for value in values) else []


def _values(values: Any) -> str:
    if not isinstance(values, list):
        return quote(values)
    shown = ", ".join(quote(value) for value in values[:_SHOWN])
    return shown if len(values) <= _SHOWN else f"{shown} and {len(values) - _SHOWN} more"


def _plural(count: Any, noun: str) -> str:
    """A number of a schema, which may be of any type there, written as the schema has it."""
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


def _patterns(patterns: Mapping[str, Any]) -> str:
    return " ".join(f"Keys matching {pattern} hold: {phrase(node)}." for pattern, node in patterns.items())


def _dependent(lists: Mapping[str, Any]) -> str:
    return " ".join(f"{name} needs {', '.join(names)}." for name, names in lists.items())


def _extra(node: Any) -> str:
    if isinstance(node, bool):
        return "" if node else "No other keys."
    return f"Other keys hold: {phrase(node)}."


_SENTENCES: Final[Mapping[str, Callable[[Any], str]]] = {
    "minLength": lambda n: f"At least {_plural(n, 'character')}.",
    "maxLength": lambda n: f"At most {_plural(n, 'character')}.",
    "pattern": lambda text: f"Matches {text}.",
    "format": lambda text: f"Format: {text}.",
    "minimum": lambda n: f"At least {quote(n)}.",
    "maximum": lambda n: f"At most {quote(n)}.",
    "exclusiveMinimum": lambda n: f"Greater than {quote(n)}.",
    "exclusiveMaximum": lambda n: f"Less than {quote(n)}.",
    "multipleOf": lambda n: f"A multiple of {quote(n)}.",
    "minItems": lambda n: f"At least {_plural(n, 'item')}.",
    "maxItems": lambda n: f"At most {_plural(n, 'item')}.",
    "uniqueItems": lambda unique: "No item twice." if unique else "",
    "prefixItems": lambda nodes: f"In this order: {', '.join(phrase(node) for node in nodes)}.",
    "contains": lambda node: f"Contains: {phrase(node)}.",
    "minContains": lambda n: f"At least {n} of those.",
    "maxContains": lambda n: f"At most {n} of those.",
    "minProperties": lambda n: f"At least {_plural(n, 'key')}.",
    "maxProperties": lambda n: f"At most {_plural(n, 'key')}.",
    "additionalProperties": _extra,
    "patternProperties": _patterns,
    "propertyNames": lambda node: f"Keys: {quote(node)}." if node else "",
    "dependentRequired": _dependent,
    "enum": lambda values: f"One of {_values(values)}.",
    "const": lambda value: f"Always {quote(value)}.",
    "default": lambda value: "" if value is None else f"Default: {quote(value)}.",
    "examples": lambda values: f"For example {_values(values)}.",
    "not": lambda node: f"Not {quote(node)}." if node else "Never given.",
    "if": lambda node: f"If {quote(node)}:",
    "then": lambda node: f"then {quote(node)}.",
    "else": lambda node: f"Otherwise {quote(node)}.",
    "deprecated": lambda yes: "Deprecated." if yes else "",
    "readOnly": lambda yes: "",
    "writeOnly": lambda yes: "",
    "contentEncoding": lambda text: f"Encoded as {text}.",
    "contentMediaType": lambda text: f"Holds {text}.",
    "unevaluatedProperties": _extra,
    "unevaluatedItems": lambda node: "" if node else "No other items.",
}
