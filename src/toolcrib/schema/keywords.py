"""What each JSON Schema keyword contains: the one table on which every walk over a schema is built."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any, Final

Schema = dict[str, Any]

# Kinds of value. The walks below treat a keyword by its kind and never by its name.
NODE: Final = "node"  # one schema, or a boolean standing for one
NODES: Final = "nodes"  # a list of schemas
NAMED: Final = "named"  # names, each with a schema: keys are the author's, not keywords
DATA: Final = "data"  # anything; never looked into
TEXT: Final = "text"
NUMBER: Final = "number"
COUNT: Final = "count"
FLAG: Final = "flag"
NAMES: Final = "names"  # a list of strings
NAME_LISTS: Final = "name lists"  # names, each with a list of strings
VALUES: Final = "values"  # a list of data
TYPE: Final = "type"
DROP: Final = "drop"  # says nothing to a model, or was used up by resolving references

# The order of this table is also the order in which keywords are written: what a reader wants first, first.
KINDS: Final[Mapping[str, str]] = {
    "$ref": TEXT,
    "type": TYPE,
    "nullable": FLAG,
    "description": TEXT,
    "const": DATA,
    "enum": VALUES,
    "default": DATA,
    "format": TEXT,
    "pattern": TEXT,
    "minLength": COUNT,
    "maxLength": COUNT,
    "minimum": NUMBER,
    "exclusiveMinimum": NUMBER,
    "maximum": NUMBER,
    "exclusiveMaximum": NUMBER,
    "multipleOf": NUMBER,
    "prefixItems": NODES,
    "items": NODE,
    "minItems": COUNT,
    "maxItems": COUNT,
    "uniqueItems": FLAG,
    "contains": NODE,
    "minContains": COUNT,
    "maxContains": COUNT,
    "unevaluatedItems": NODE,
    "properties": NAMED,
    "required": NAMES,
    "additionalProperties": NODE,
    "patternProperties": NAMED,
    "propertyNames": NODE,
    "minProperties": COUNT,
    "maxProperties": COUNT,
    "dependentRequired": NAME_LISTS,
    "dependentSchemas": NAMED,
    "unevaluatedProperties": NODE,
    "anyOf": NODES,
    "oneOf": NODES,
    "allOf": NODES,
    "not": NODE,
    "if": NODE,
    "then": NODE,
    "else": NODE,
    "contentEncoding": TEXT,
    "contentMediaType": TEXT,
    "contentSchema": NODE,
    "deprecated": FLAG,
    "readOnly": FLAG,
    "writeOnly": FLAG,
    "examples": DATA,
    "$defs": DROP,
    "definitions": DROP,
    "title": DROP,
    "$schema": DROP,
    "$id": DROP,
    "id": DROP,
    "$anchor": DROP,
    "$dynamicAnchor": DROP,
    "$recursiveAnchor": DROP,
    "$vocabulary": DROP,
    "$comment": DROP,
    "discriminator": DROP,  # OpenAPI's hint beside a union; the variants' own constants say the same
}

NOISE: Final = frozenset(keyword for keyword, kind in KINDS.items() if kind == DROP)


def words(text: str) -> frozenset[str]:
    """A set of keywords from a text of words separated by spaces."""
    return frozenset(text.split())


ANNOTATIONS: Final = words(
    "description default examples deprecated readOnly writeOnly"
    " contentEncoding contentMediaType contentSchema"
)

# A keyword that speaks of one type only says nothing of values of another.
OF_TYPE: Final[Mapping[str, frozenset[str]]] = {
    "string": words("pattern minLength maxLength format contentEncoding contentMediaType"),
    "number": words("minimum maximum exclusiveMinimum exclusiveMaximum multipleOf"),
    "array": words(
        "items prefixItems minItems maxItems uniqueItems contains minContains maxContains unevaluatedItems"
    ),
    "object": words(
        "properties required additionalProperties patternProperties propertyNames minProperties"
        " maxProperties dependentRequired dependentSchemas unevaluatedProperties"
    ),
}
TYPED: Final[Mapping[str, str]] = {word: kind for kind, words in OF_TYPE.items() for word in words}

TYPES: Final = frozenset(("string", "number", "integer", "boolean", "object", "array", "null"))

_RANK: Final[Mapping[str, int]] = {keyword: rank for rank, keyword in enumerate(KINDS)}


def ordered(node: Mapping[str, Any]) -> Schema:
    """The same node, its keywords in the order of the table and unknown ones by name after them."""
    return {keyword: node[keyword] for keyword in _order(*node)}


@lru_cache(maxsize=4096)  # the same few sets of keywords come again and again
def _order(*keywords: str) -> list[str]:
    return sorted(keywords, key=lambda keyword: (_RANK.get(keyword, len(_RANK)), keyword))


def children(node: Mapping[str, Any]) -> list[Any]:
    """The direct subschemas of a node, definitions included."""
    found: list[Any] = []
    for keyword, value in node.items():
        kind = NAMED if keyword in ("$defs", "definitions") else KINDS.get(keyword)
        if kind == NODE:
            found.append(value)
        elif kind == NODES and isinstance(value, list):
            found.extend(value)
        elif kind == NAMED and isinstance(value, Mapping):
            found.extend(value.values())
    return found


def types_of(node: Mapping[str, Any]) -> list[str]:
    """The types that a canonical node names; empty where it names none."""
    declared = node.get("type")
    if declared is None:
        return []
    return [declared] if isinstance(declared, str) else list(declared)


def accepts_null(node: Mapping[str, Any]) -> bool:
    """Whether a canonical node lists null among its values."""
    if "enum" in node and ("null" in types_of(node) or "type" not in node):
        return None in node["enum"]
    if "null" in types_of(node) or node.get("nullable") is True:
        return True
    return any(isinstance(variant, Mapping) and accepts_null(variant) for variant in node.get("anyOf", ()))
