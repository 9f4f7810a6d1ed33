"""Names of parameters on the wire: those that a provider would refuse are replaced, and put back in the answer.

One such name makes Anthropic, and Bedrock for its models, refuse the whole request, with all tools in it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

from toolcrib.codecs.tool_names import inverse, replaced
from toolcrib.messages import Request

__all__ = ["Parameters", "our_parameters", "renamed_keys", "wire_parameters", "with_wire_parameters"]

Parameters = dict[str, dict[str, str]]  # by tool: names of parameters, and what they stand for

LEGAL = re.compile(r"[A-Za-z0-9_.-]{1,64}")
# A string that a cut answer does not close goes to the end: its text is read once, and has no tokens.
TOKEN = re.compile(r'("[^"\\]*+(?:\\.[^"\\]*+)*+"?)(\s*:)?|[\[\]{}]', re.DOTALL)


def wire_parameters(request: Request | None, dialect: str) -> Parameters:
    """By tool: maps our names of its parameters to wire names, for names that cannot be sent; mostly empty."""
    found: Parameters = {}
    for spec in request.tools if request is not None else ():
        names = spec.in_dialect(dialect).get("properties", {})
        if not all(map(LEGAL.fullmatch, names)):
            illegal = sorted(name for name in names if not LEGAL.fullmatch(name))
            found[spec.name] = replaced(illegal, set(names).difference(illegal))
    return found


def our_parameters(request: Request | None, dialect: str) -> Parameters:
    """The inverse of `wire_parameters`: by tool, maps wire names to ours."""
    return {tool: inverse(names) for tool, names in wire_parameters(request, dialect).items()}


def with_wire_parameters(schema: dict[str, Any], names: Mapping[str, str]) -> dict[str, Any]:
    """The input schema of a tool with the wire names of its parameters; the description has the name itself."""
    if not names:
        return schema
    properties = {
        names.get(name, name): _called(name, node) if name in names else node
        for name, node in schema["properties"].items()
    }
    made = {**schema, "properties": properties}
    if "required" in schema:
        made["required"] = [names.get(name, name) for name in schema["required"]]
    return made


def renamed_keys(arguments: Any, names: Mapping[str, str]) -> Any:
    """Arguments, as an object or as text, with other names of parameters; nothing else of a text is changed.

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


def _called(name: str, node: Any) -> Any:
    """The schema of a parameter, whose description begins with its name."""
    if not isinstance(node, dict):
        return node
    return {
        **node,
        "description": f"{json.dumps(name, ensure_ascii=False)}. {node.get('description', '')}".rstrip(),
    }
