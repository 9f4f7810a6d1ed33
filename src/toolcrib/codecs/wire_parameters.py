"""Names of parameters on the wire: names that a provider would refuse are replaced, and mapped back in the answer.

A single such name makes Anthropic, and Bedrock for Anthropic's models, refuse the whole request.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

from toolcrib.codecs.tool_names import inverse, legal_names
from toolcrib.messages import Request

__all__ = ["Parameters", "our_parameters", "renamed_keys", "wire_parameters", "with_wire_parameters"]

Parameters = dict[str, dict[str, str]]  # by tool: maps names of parameters to their other names

LEGAL = re.compile(r"[A-Za-z0-9_.-]{1,64}")
# The closing quote may be missing: a string that was cut off reaches to the end of the text, which is scanned once.
TOKEN = re.compile(r'("[^"\\]*+(?:\\.[^"\\]*+)*+"?)(\s*:)?|[\[\]{}]', re.DOTALL)


def wire_parameters(request: Request | None, dialect: str) -> Parameters:
    """By tool: maps our names of its parameters to wire names, for names that cannot be sent; mostly empty."""
    found: Parameters = {}
    for spec in request.tools if request is not None else ():
        names = spec.in_dialect(dialect).get("properties", {})
        if not all(map(LEGAL.fullmatch, names)):
            illegal = sorted(name for name in names if not LEGAL.fullmatch(name))
            found[spec.name] = legal_names(illegal, set(names).difference(illegal))
    return found


def our_parameters(request: Request | None, dialect: str) -> Parameters:
    """The inverse of `wire_parameters`: by tool, maps wire names to ours."""
    return {tool: inverse(names) for tool, names in wire_parameters(request, dialect).items()}


def with_wire_parameters(schema: dict[str, Any], names: Mapping[str, str]) -> dict[str, Any]:
    """A tool's input schema with wire names of parameters. A description begins with the name that was replaced."""
    if not names:
        return schema
    properties = {
        names.get(name, name): _described_by_name(name, node) if name in names else node
        for name, node in schema["properties"].items()
    }
    made = {**schema, "properties": properties}
    if "required" in schema:
        made["required"] = [names.get(name, name) for name in schema["required"]]
    return made


def renamed_keys(arguments: Any, names: Mapping[str, str]) -> Any:
    """Arguments, an object or JSON text, with the names of parameters replaced. The rest of a text stays as it is.

    >>> renamed_keys('{"_top": 1.50, "in": {"_top": "{"}}', {"_top": "$top"})
    '{"$top": 1.50, "in": {"_top": "{"}}'
    """
    if not names or not isinstance(arguments, str | dict):
        return arguments
    if isinstance(arguments, dict):
        return {names.get(name, name): value for name, value in arguments.items()}
    depth = 0

    def renamed(token: re.Match[str]) -> str:
        nonlocal depth
        if token[1] is None:
            depth += 1 if token[0] in "{[" else -1
        elif token[2] is not None and depth == 1:
            try:
                name = names.get(json.loads(token[1], strict=False))
            except ValueError:  # an escape that JSON does not have
                name = None
            if name is not None:
                return json.dumps(name, ensure_ascii=False) + token[2]
        return token[0]

    return TOKEN.sub(renamed, arguments)


def _described_by_name(name: str, node: Any) -> Any:
    """The schema of a parameter with its name put before its description."""
    if not isinstance(node, dict):
        return node
    return {
        **node,
        "description": f"{json.dumps(name, ensure_ascii=False)}. {node.get('description', '')}".rstrip(),
    }
