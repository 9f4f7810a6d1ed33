"""Names of tools and of their parameters on the wire, for providers that refuse names of parameters, too.

Names that the provider would refuse are replaced, and mapped back in the answer.

A single such name makes Anthropic, and Bedrock for Anthropic's models, refuse the whole request.
"""

from __future__ import annotations

import functools
import json
from collections.abc import Mapping
from typing import Any

from toolcrib.codecs.renamed_keys import renamed_keys
from toolcrib.codecs.tool_names import inverse, legal_names, wire_names
from toolcrib.dataclass import dataclass, field, replace
from toolcrib.messages import Request
from toolcrib.schema.dialects import ANTHROPIC_NAMES, dialect_named
from toolcrib.schema.lower import lower_schema
from toolcrib.spec import ToolSpec

__all__ = ["OtherNames", "names_in_answer", "names_in_request"]


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

    def schema(self, spec: ToolSpec, dialect: str) -> dict[str, Any]:
        """The input schema of a tool with the other names of its parameters, whose own stand in the descriptions."""
        names = self.parameters.get(spec.name)
        if not names:
            return spec.in_dialect(dialect)
        return _renamed_parameters(_schema_to_rename(spec, dialect), names)


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


@functools.lru_cache(1024)
def _schema_to_rename(spec: ToolSpec, dialect: str) -> dict[str, Any]:
    """The schema of a tool in a dialect, with parameters named in the `properties` and `required` of its root alone.

    Dialects of other providers than Anthropic's leave `dependentRequired` and its like, which would keep the old names.
    """
    row = dialect_named(dialect)
    if row.parameter_names is not None:
        return spec.in_dialect(dialect)
    return lower_schema(spec.input_schema, replace(row, parameter_names=ANTHROPIC_NAMES))[0]


def _renamed_parameters(schema: dict[str, Any], names: Mapping[str, str]) -> dict[str, Any]:
    properties = {
        names.get(name, name): _described_by_name(name, node) if name in names else node
        for name, node in schema["properties"].items()
    }
    made = {**schema, "properties": properties}
    if "required" in schema:
        made["required"] = [names.get(name, name) for name in schema["required"]]
    return made


def _described_by_name(name: str, node: Any) -> Any:
    """The schema of a parameter with its name put before its description."""
    if not isinstance(node, dict):
        return node
    return {
        **node,
        "description": f"{json.dumps(name, ensure_ascii=False)}. {node.get('description', '')}".rstrip(),
    }
