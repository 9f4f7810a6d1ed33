"""The types and alternatives of one node: inferred, split, compared."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from toolcrib.json_text.values import kind_of, same_json
from toolcrib.schema.keywords import OF_TYPE, TYPED, Schema, types_of, words
from toolcrib.schema.shorten import nullable, shorten

# Formats of JSON Schema, OpenAPI and Pydantic whose values are strings.
_TEXTS: Final = words(
    "date-time date time duration email idn-email hostname idn-hostname ipv4 ipv6 ipvanynetwork ipvanyaddress"
    " ipvanyinterface uri uri-reference uri-template iri iri-reference multi-host-uri uuid uuid1 uuid3 uuid4"
    " uuid5 uuid6 uuid7 uuid8 json-pointer relative-json-pointer regex path file-path directory-path password"
    " binary byte base64url name-email json-string color"
)


def or_null(node: Schema) -> Schema:
    """The node with null allowed: as a type where possible, else as a variant."""
    if "anyOf" in node and not any(variant.get("type") == "null" for variant in node["anyOf"]):
        return {**node, "anyOf": [*node["anyOf"], {"type": "null"}]}
    return node if "anyOf" in node else nullable(node) or {"anyOf": [node, {"type": "null"}]}


def inferred(node: Mapping[str, Any]) -> str | None:
    """The type of an untyped node, inferred from its values or keywords."""
    values: list[Any] = node.get("enum", [])
    kinds = {kind_of(value) for value in values if value is not None}
    if values and len(kinds) == 1:
        return kinds.pop()
    if kinds == {"integer", "number"}:
        return "number"
    if values:
        return None
    # Nobody knows of which type the values of an unknown format are.
    return next(
        (TYPED[key] for key in node if key in TYPED and (key != "format" or node[key] in _TEXTS)), None
    )


def split(node: Schema) -> Schema:
    """A node of several types as a union of nodes of one type each."""
    types: list[str] = node["type"]
    if len(types) == 1:
        return {**node, "type": types[0]}
    rest = {key: value for key, value in node.items() if key != "type" and key not in TYPED and key != "enum"}
    variants = [shorten({"type": name, **_belonging(node, name)}) for name in types]
    values = node.get("enum")
    if values is not None:
        variants = [{**v, "enum": e} for v in variants if (e := [x for x in values if _is_of(x, v["type"])])]
    if "anyOf" in rest:
        return rest  # two unions at once have no plain form; the one that the author wrote says more
    return {**rest, "anyOf": variants} if variants else rest


def _belonging(node: Mapping[str, Any], name: str) -> Schema:
    own = OF_TYPE.get("number" if name == "integer" else name, frozenset())
    return {key: value for key, value in node.items() if key in own}


def _is_of(value: Any, name: str) -> bool:
    return kind_of(value) == name or (name == "number" and kind_of(value) == "integer")


def only(node: Mapping[str, Any], *keywords: str) -> Schema:
    """The given keywords of a node, as far as it has them."""
    return {keyword: node[keyword] for keyword in keywords if keyword in node}


def disjoint(variants: list[Schema]) -> bool:
    """Whether the variants are disjoint, judging by types and constants."""
    kinds = [types_of(variant) for variant in variants]
    if all(len(kind) == 1 for kind in kinds) and len({kind[0] for kind in kinds}) == len(kinds):
        return {"integer", "number"} - {kind[0] for kind in kinds} != set()
    shared = (
        set.intersection(*({*variant.get("required", ())} for variant in variants)) if variants else set()
    )
    return any(
        _distinct_tags([variant.get("properties", {}).get(name, {}) for variant in variants])
        for name in shared
    )


def _distinct_tags(nodes: list[Any]) -> bool:
    seen: list[Any] = []
    for node in nodes:
        values = node.get("enum", [node["const"]] if "const" in node else None)
        if values is None or any(same_json(value, known) for value in values for known in seen):
            return False
        seen.extend(values)
    return True
