"""What a model is told of a tool."""

from __future__ import annotations

from typing import Any

from toolcrib.dataclass import dataclass, field, replace
from toolcrib.facts import ListedFacts
from toolcrib.fingerprint import fingerprint

__all__ = ["ToolSpec"]


@dataclass(frozen=True, slots=True, eq=False)
class ToolSpec(ListedFacts):
    """What a model is told of a tool. `input_schema` and `output_schema` are canonical JSON Schemas.

    `tells_output` says that the author wrote an output schema, which is sent to providers that take one. What only
    follows from a return annotation is not: it would lengthen every request.
    """

    name: str
    description: str
    input_schema: dict[str, Any]
    output_schema: dict[str, Any] | None = None
    annotations: dict[str, Any] = field(default_factory=dict)
    tells_output: bool = False
    _dialects: dict[str, tuple[dict[str, Any], bool]] = field(default_factory=dict, repr=False)

    def in_dialect(self, name: str) -> dict[str, Any]:
        """The input schema in the subset of JSON Schema that a provider takes; worked out once."""
        return self._lowered(name)[0]

    def fits(self, name: str) -> bool:
        """Whether the dialect's schema allows every value that the input schema allows."""
        return self._lowered(name)[1]

    def _lowered(self, name: str) -> tuple[dict[str, Any], bool]:
        known = self._dialects.get(name)
        if known is None:
            from toolcrib.schema import to_dialect

            schema, losses = to_dialect(self.input_schema, name)
            known = self._dialects[name] = (schema, not any(loss.narrows for loss in losses))
        return known

    def fingerprint(self) -> str:
        """A sha256 over what identifies the tool to a model: name, version, description and schemas."""
        return fingerprint(
            self.name,
            [self.version, self.description, self.input_schema, self.output_schema, self.annotations],
        )

    def renamed(self, name: str) -> ToolSpec:
        return replace(self, name=name, _dialects=self._dialects)
