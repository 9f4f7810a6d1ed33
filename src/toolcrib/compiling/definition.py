"""A compiled tool: everything that a call needs and that does not change from call to call."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from toolcrib.compiling.care import needs_care
from toolcrib.compiling.output import Output
from toolcrib.compiling.params import Params
from toolcrib.facts import Facts
from toolcrib.spec import ToolSpec

__all__ = ["Definition", "Hook"]

Hook = Callable[..., Any]


class Definition:
    """A compiled tool.

    `start(tool, params, ctx)` begins a call, and `mode` says how to run it: "async", "thread" or
    "inline". `hooks` has the hooks that the tool defines; each takes the tool first.
    `needs_care` finds, in the text of arguments, what has to be looked at although the text fits the schema.
    """

    __slots__ = (
        "__weakref__",
        "_identity",
        "description",
        "dynamic",
        "effect_for",
        "facts",
        "hooks",
        "judged_closely",
        "known_spec",
        "mode",
        "needs_care",
        "on_partial",
        "output",
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
        yields: bool = False,
    ) -> None:
        self.facts = facts
        self.description = description
        self.params = params
        self.start = start
        self.mode = mode
        self.hooks = hooks
        self.precheck = hooks.get("precheck")
        self.on_partial = hooks.get("on_partial")
        self.unavailable = hooks.get("unavailable")
        self.judged_closely = facts.delegates or "accesses" in hooks  # its effect alone does not decide
        self.dynamic = "dynamic_description" in hooks or "dynamic_schema" in hooks
        self.effect_for = hooks.get("effect_for")
        self.wants_context = wants_context or yields
        self.needs_care = needs_care(params.schema, facts.name)
        self.output = Output(returns, facts.name, facts.output_schema, yields=yields)
        self.known_spec: ToolSpec | None = None  # set at the first list
        self._identity = ""

    @property
    def identity(self) -> str:
        """The fingerprint of the spec, which an approval is bound to."""
        if not self._identity:
            self._identity = self.spec.fingerprint()
        return self._identity

    @property
    def spec(self) -> ToolSpec:
        """What a model is told of the tool."""
        if self.known_spec is None:
            facts = self.facts
            self.known_spec = ToolSpec(
                name=facts.name,
                description=self.description,
                input_schema=self.params.schema,
                output_schema=self.output.schema,
                tells_output=facts.output_schema is not None,
                annotations=facts.annotations(),
                **facts.listed(),
            )
        return self.known_spec
