"""A compiled tool: everything that a call needs and that does not change from call to call."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from toolcrib.compiling.output import Output
from toolcrib.compiling.params import Params
from toolcrib.facts import Facts
from toolcrib.spec import ToolSpec

__all__ = ["Definition", "Hook"]

Hook = Callable[..., Any]


class Definition:
    """A compiled tool.

    `start(tool, params, ctx)` begins a call, and `mode` says how to run it: "async", "thread", "inline",
    "async_generator" or "generator". `hooks` has the hooks that the tool defines; each takes the tool first.
    `optional_text` names the parameters that may be left out and may be given as a string.
    """

    __slots__ = (
        "__weakref__",
        "_identity",
        "_output",
        "_returns",
        "_spec",
        "description",
        "dynamic",
        "effect_for",
        "facts",
        "hooks",
        "mode",
        "optional_text",
        "params",
        "precheck",
        "start",
        "unavailable",
        "wants_context",
    )

    def __init__(
        self,
        facts: Facts,
        description: str,
        params: Params,
        start: Callable[[Any, Any, Any], Any],
        mode: str,
        hooks: dict[str, Hook],
        returns: Any,
        wants_context: bool,
    ) -> None:
        self.facts = facts
        self.description = description
        self.params = params
        self.start = start
        self.mode = mode
        self.hooks = hooks
        self.precheck = hooks.get("precheck")
        self.unavailable = hooks.get("unavailable")
        self.dynamic = "dynamic_description" in hooks or "dynamic_schema" in hooks
        self.effect_for = hooks.get("effect_for")
        self.wants_context = wants_context or mode in ("generator", "async_generator")
        self.optional_text = _optional_text(params.schema)
        self._returns = returns
        self._output: Output | None = None
        self._spec: ToolSpec | None = None
        self._identity = ""

    @property
    def output(self) -> Output:
        """The declared result: its schema and its check. Worked out at the first result."""
        if self._output is None:
            self._output = Output(self._returns, self.facts.name)
        return self._output

    @property
    def identity(self) -> str:
        """The fingerprint of the spec, which an approval is bound to."""
        if not self._identity:
            self._identity = self.spec.fingerprint()
        return self._identity

    @property
    def spec(self) -> ToolSpec:
        """What a model is told of the tool."""
        if self._spec is None:
            facts = self.facts
            self._spec = ToolSpec(
                name=facts.name,
                description=self.description,
                input_schema=self.params.schema,
                output_schema=self.output.schema,
                annotations=facts.annotations(),
                **facts.listed(),
            )
        return self._spec


def _optional_text(schema: Mapping[str, Any]) -> tuple[str, ...]:
    """The parameters that may be left out, and may be given as a string other than ""."""
    required = schema.get("required", ())
    return tuple(
        name
        for name, node in schema["properties"].items()
        if name not in required
        and isinstance(node, Mapping)
        and ("type" not in node or "string" in node["type"])
        and "" not in node.get("enum", ())
    )
