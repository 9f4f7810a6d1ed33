"""Names of tools and of their parameters on the wire, for providers that refuse names of parameters, too.

Names that the provider would refuse are replaced, and mapped back in the answer.

A single such name makes Anthropic, and Bedrock for Anthropic's models, refuse the whole request.
"""

from __future__ import annotations

import functools
import json
import re
from collections.abc import Mapping
from typing import Any

from toolcrib.codecs.tool_names import inverse, legal_names, wire_names
from toolcrib.dataclass import dataclass, field
from toolcrib.json_text.lenient_grammar import MAX_DEPTH
from toolcrib.messages import Request
from toolcrib.schema.dialects import ANTHROPIC_NAMES
from toolcrib.spec import ToolSpec

__all__ = ["OtherNames", "names_in_answer", "names_in_request", "renamed_keys"]

# A string or a bare word, and the colon behind it if it is a key. A string that was cut off has no closing quote and
# reaches to the end of the text, which is scanned once.
TOKEN = re.compile(
    r"""("[^"\\]*+(?:\\.[^"\\]*+)*+"?|'[^'\\]*+(?:\\.[^'\\]*+)*+'?|[A-Za-z0-9_.-]++)(\s*+:)?""", re.DOTALL
)


@dataclass(frozen=True, slots=True)
class OtherNames:
    """Maps the names of tools to other names, and those of their parameters, by our name of the tool; mostly empty."""

    tools: dict[str, str] = field(default_factory=dict)
    parameters: dict[str, dict[str, str]] = field(default_factory=dict)

    def tool(self, name: str) -> str:
        """The other name of a tool; the same name if it has none."""
        return self.tools.get(name, name)

    def arguments(self, tool: str, arguments: Any) -> Any:
        """An object of arguments of a tool, by our name of it, with the other names of its parameters."""
        names = self.parameters.get(tool)
        if not names or not isinstance(arguments, dict):
            return arguments
        return {names.get(name, name): value for name, value in arguments.items()}

    def written_arguments(self, tool: str, arguments: Any) -> Any:
        """Arguments of a tool as a model wrote them, with the other names of its parameters."""
        return renamed_keys(arguments, self.parameters.get(tool, {}))

    def schema(self, tool: str, schema: dict[str, Any]) -> dict[str, Any]:
        """The input schema of a tool with the other names of its parameters, whose own stand in the descriptions."""
        names = self.parameters.get(tool)
        return _renamed_parameters(schema, names) if names else schema


def names_in_request(
    request: Request | None, dialect: str, declared: Mapping[str, str] | None = None
) -> OtherNames:
    """Maps our names to wire names. `declared` are names that tools must have on the wire."""
    return OtherNames(wire_names(request, declared), _wire_parameters(request, dialect))


def names_in_answer(
    request: Request | None, dialect: str, declared: Mapping[str, str] | None = None
) -> OtherNames:
    """Maps wire names to our names: the inverse of `names_in_request`."""
    names = names_in_request(request, dialect, declared)
    return OtherNames(
        inverse(names.tools), {tool: inverse(mapped) for tool, mapped in names.parameters.items()}
    )


def _wire_parameters(request: Request | None, dialect: str) -> dict[str, dict[str, str]]:
    """By tool: maps our names of its parameters to wire names, for names that cannot be sent."""
    specs = request.tools if request is not None else ()
    return {spec.name: names for spec in specs if (names := _wire_names_of(spec, dialect))}


@functools.lru_cache(1024)  # each turn asks for all tools twice
def _wire_names_of(spec: ToolSpec, dialect: str) -> dict[str, str]:
    names = spec.in_dialect(dialect).get("properties", {})
    illegal = sorted(name for name in names if not ANTHROPIC_NAMES.fullmatch(name))
    return legal_names(illegal, set(names).difference(illegal))


def _renamed_parameters(schema: dict[str, Any], names: Mapping[str, str]) -> dict[str, Any]:
    properties = {
        names.get(name, name): _described_by_name(name, node) if name in names else node
        for name, node in schema["properties"].items()
    }
    made = {**schema, "properties": properties}
    if "required" in schema:
        made["required"] = [names.get(name, name) for name in schema["required"]]
    return made


def renamed_keys(arguments: Any, names: Mapping[str, str]) -> Any:
    """What a model wrote, as an object or text, with the wire names of parameters replaced; the rest stays as it is.

    Wire names are replaced wherever they are keys, as no other key has such a name: models wrap arguments in a further
    object, and write nested objects with the names of outer ones.

    >>> renamed_keys('{"arguments": {"_top_81bf98e4": 1.50}}', {"_top_81bf98e4": "$top"})
    '{"arguments": {"$top": 1.50}}'
    """
    if not names:
        return arguments
    if not isinstance(arguments, str):
        return _renamed_inside(arguments, names, MAX_DEPTH)

    def renamed(token: re.Match[str]) -> str:
        name = names.get(token[1].strip("\"'")) if token[2] is not None else None
        return token[0] if name is None else json.dumps(name, ensure_ascii=False) + token[2]

    return TOKEN.sub(renamed, arguments)


def _renamed_inside(value: Any, names: Mapping[str, str], depth: int) -> Any:
    """The value with its keys replaced. What is nested too deeply for any tool stays as it is."""
    if depth < 0:
        return value
    if isinstance(value, dict):
        return {
            names.get(name, name): _renamed_inside(inner, names, depth - 1) for name, inner in value.items()
        }
    return [_renamed_inside(inner, names, depth - 1) for inner in value] if isinstance(value, list) else value


def _described_by_name(name: str, node: Any) -> Any:
    """The schema of a parameter with its name put before its description."""
    if not isinstance(node, dict):
        return node
    return {
        **node,
        "description": f"{json.dumps(name, ensure_ascii=False)}. {node.get('description', '')}".rstrip(),
    }
