"""What a schema expects, in a few words for a model."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final

from toolcrib.json_text.values import DECIMAL_TEXT, DURATION_TEXT
from toolcrib.schema.steps import resolve, variants
from toolcrib.schema.variants import inferred
from toolcrib.schema.words import sentence

__all__ = ["MAX_ALLOWED", "MAX_FIELDS", "allowed_values", "expectation", "fields_of", "literal"]

MAX_ALLOWED = 20  # allowed values that are listed
MAX_FIELDS = 8  # fields of an object, or forms of a union, that are listed

LIMITS = {
    *("minimum", "exclusiveMinimum", "maximum", "exclusiveMaximum", "multipleOf"),
    *("minLength", "maxLength", "pattern", "minItems", "maxItems", "uniqueItems"),
    *("minProperties", "maxProperties", "not", "dependentRequired"),
}
SPELLINGS: Final = (DECIMAL_TEXT, DURATION_TEXT)  # patterns for which there are plain words
FORMATS: Final[Mapping[str, str]] = {
    "date": 'a date such as "2024-12-31"',
    "date-time": 'a date and time such as "2024-12-31T23:59:59Z"',
    "time": 'a time such as "23:59:59"',
    "duration": 'a duration such as "P1DT2H30M"',
    "uuid": 'a UUID such as "123e4567-e89b-42d3-a456-426614174000"',
    "uri": 'an absolute URL such as "https://example.com/page"',
    "multi-host-uri": 'a URL such as "scheme://user@host:1234/name"',
    "email": 'an email address such as "ann@example.com"',
    "ipv4": 'an IPv4 address such as "192.0.2.1"',
    "ipv6": 'an IPv6 address such as "2001:db8::1"',
    "ipv4network": 'an IPv4 network such as "192.0.2.0/24"',
    "ipv6network": 'an IPv6 network such as "2001:db8::/32"',
    "ipvanyaddress": 'an IP address such as "192.0.2.1"',
    "ipvanynetwork": 'an IP network such as "192.0.2.0/24"',
    "ipvanyinterface": 'an IP address with its network such as "192.0.2.1/24"',
    "file-path": "the path of a file that exists",
    "directory-path": "the path of a folder that exists",
    "path": "a path",
    "regex": "a regular expression",
    "base64": "text in Base64",
    "base64url": "text in Base64 for URLs",
    "json-string": "JSON text",
    **{f"uuid{version}": f"a UUID of version {version}" for version in range(1, 9)},
    **dict.fromkeys(("binary", "password"), ""),
}


def allowed_values(node: Any, root: Mapping[str, Any]) -> tuple[Any, ...]:
    """The values of an enum or const, of a union's members too."""
    found: list[Any] = []
    for place in variants(resolve(node, root), root):
        if isinstance(place.get("enum"), list):
            found.extend(place["enum"])
        elif "const" in place:
            found.append(place["const"])
    return tuple(found[:MAX_ALLOWED])


def expectation(node: Any, root: Mapping[str, Any], depth: int = 0) -> str:
    """What a schema expects, in a few words: "integer, at least 1, at most 14"."""
    node = resolve(node, root)
    if not isinstance(node, Mapping) or not node or depth > MAX_FIELDS:
        return "any value"
    if isinstance(node.get("enum"), list):
        return "one of " + ", ".join(literal(value) for value in node["enum"][:MAX_ALLOWED])
    if "const" in node:
        return literal(node["const"])
    for union in ("anyOf", "oneOf"):
        members = node.get(union)
        if isinstance(members, list) and members:
            told = (expectation(member, root, depth + 1) for member in members)
            forms = list(dict.fromkeys(told))
            forms = [_apart(form) for form in forms] if len(forms) > 1 else forms
            return " or ".join(forms[:MAX_FIELDS]) + (" or …" if len(forms) > MAX_FIELDS else "")
    kinds = node.get("type") or inferred(node) or "value"
    kinds = kinds if isinstance(kinds, list) else [kinds]
    words = [" or ".join(_kind(str(kind), node, root, depth) for kind in kinds)]
    limits = [
        sentence(keyword, value)
        for keyword, value in node.items()
        if keyword in LIMITS and value not in SPELLINGS
    ]
    words += (said[0].lower() + said[1:-1] for said in limits if said)
    if isinstance(node.get("contains"), Mapping):
        words.append(f"with an item that is {_apart(expectation(node['contains'], root, depth + 1))}")
    if isinstance(node.get("propertyNames"), Mapping):
        words.append(f"keys that are {expectation(node['propertyNames'], root, depth + 1)}")
    return ", ".join(words)


def _kind(kind: str, node: Mapping[str, Any], root: Mapping[str, Any], depth: int) -> str:
    """A type in a few words, with what the schema says of its parts."""
    if kind == "string" and node.get("pattern") == DECIMAL_TEXT:
        return 'a number as text such as "12.50"'
    if kind == "string" and isinstance(node.get("format"), str):
        words = FORMATS.get(node["format"], f"format: {node['format']}")
        return f"string, {words}" if words else kind
    if kind == "string" and isinstance(node.get("contentSchema"), Mapping):
        return f"string, the JSON text of {expectation(node['contentSchema'], root, depth + 1)}"
    if kind == "array" and isinstance(node.get("prefixItems"), list):
        items = ", ".join(
            _apart(expectation(item, root, depth + 1)) for item in node["prefixItems"][:MAX_FIELDS]
        )
        return f"array of {items}, in this order"
    if kind == "array" and isinstance(node.get("items"), Mapping):
        return f"array of {_apart(expectation(node['items'], root, depth + 1))}"
    if kind == "object":
        if node.get("properties") or node.get("required"):
            return f"object with {fields_of(node)}"
        if isinstance(node.get("additionalProperties"), Mapping):
            values = expectation(node["additionalProperties"], root, depth + 1)
            return f"object whose values are {_apart(values)}"
    return kind


def _apart(words: str) -> str:
    """Words as a part of others: in brackets where they would run into those."""
    return f"({words})" if ", " in words or " or " in words else words


def literal(value: Any) -> str:
    """A value as JSON."""
    return json.dumps(value, ensure_ascii=False, default=str)


def fields_of(form: Mapping[str, Any], without: str = "") -> str:
    """The fields of an object in a few words: `name, kind "dog" (optional: lives)`."""
    properties = form.get("properties", {})
    required = list(form.get("required", ()))
    # A constant is what tells one form from another, also where it may be left out.
    must, may = list[str](), list[str]()
    for name, node in properties.items():
        if name == without:
            continue
        constant = isinstance(node, Mapping) and "const" in node
        if name in required or constant:
            must.append(f"{name} {literal(node['const'])}" if constant else str(name))
        else:
            may.append(str(name))
    must += [str(name) for name in required if name not in properties]
    if must and may:
        return f"{_listed(must)} (optional: {_listed(may)})"
    return f"{_listed(may)} (optional)" if may else _listed(must) or "no further fields"


def _listed(names: list[str]) -> str:
    return ", ".join(names[:MAX_FIELDS]) + (", …" if len(names) > MAX_FIELDS else "")
