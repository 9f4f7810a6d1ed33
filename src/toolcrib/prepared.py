"""What became of a call before it runs: Ready, Pending or Refused.

A Prepared is Ready (may run), Pending (a question stands in between) or Refused (already a result):

| prepared | execute with            | ends as                                      |
| -------- | ----------------------- | -------------------------------------------- |
| Ready    | no answer needed        | the tool's result                            |
| Pending  | yes, always             | rechecked, then the tool's result            |
| Pending  | no, or nobody to ask    | `rejected`, `nobody_to_ask`                  |
| Pending  | yes, but things changed | `tool_changed`, or Pending's question anew   |
| Refused  | anything                | the result that it already holds             |
"""

from __future__ import annotations

import functools
import threading
from typing import TYPE_CHECKING, Any

from toolcrib.call import FORMAT, CallKey, ToolCall
from toolcrib.fingerprint import fingerprint

if TYPE_CHECKING:
    from toolcrib.effect import Effect
    from toolcrib.question import Question
    from toolcrib.repair import Edit
    from toolcrib.result import ToolResult

__all__ = [
    "Pending",
    "Prepared",
    "Ready",
    "Refused",
    "ResolvedTool",
    "prepared_from_json",
    "prepared_to_json",
]

_CLAIMING = threading.Lock()


class ResolvedTool:
    """What a call will run: the registered entry, the tool object, its compiled definition."""

    __slots__ = ("definition", "entry", "tool")

    def __init__(self, entry: Any, tool: Any, definition: Any) -> None:
        self.entry = entry
        self.tool = tool
        self.definition = definition


@functools.cache
def _json_reader() -> Any:
    """Loaded when the first arguments are looked at: importing this module stays cheap."""
    from pydantic_core import from_json

    return from_json


class Ready:
    """A call that was resolved, validated and allowed.

    `arguments` are validated, in JSON form; `params` are what the tool is handed, `bound` what will run:
    the live side, which is not saved.
    """

    __slots__ = (
        "_arguments",
        "accesses",
        "approved",
        "bound",
        "call",
        "changed",
        "claimed",
        "done",
        "edits",
        "effect",
        "fingerprint",
        "key",
        "params",
        "why",
    )
    kind = "ready"

    def __init__(
        self,
        call: ToolCall,
        key: CallKey,
        arguments: Any,
        effect: Effect,
        edits: tuple[Edit, ...] = (),
        fingerprint: str = "",
        bound: ResolvedTool | None = None,
        params: Any = None,
    ) -> None:
        self.call = call
        self.key = key
        self._arguments = arguments
        self.effect = effect
        self.edits = edits
        self.fingerprint = fingerprint
        self.bound = bound
        self.params = params
        self.done: ToolResult | None = None
        self.claimed = False
        self.changed = False  # a person gave it other arguments
        self.approved = False  # a person said yes, to this call or before to such calls
        self.accesses: Any = ...  # what the tool said that it reaches, once it was asked
        self.why = ""  # the rule or the person that let it run

    def replace_arguments(self, arguments: Any) -> None:
        """Other arguments than the model's, as JSON data."""
        self._arguments = arguments

    def claim(self) -> bool:
        """Whether this is the first to execute it, in whatever thread."""
        with _CLAIMING:
            first, self.claimed = not self.claimed, True
        return first

    async def other_result(self) -> ToolResult:
        """The result of the execution that has claimed this call already."""
        import asyncio

        while self.done is None:  # noqa: ASYNC110 - the other may run in any thread or loop
            await asyncio.sleep(0.01)
        return self.done

    @property
    def arguments(self) -> Any:
        """The arguments as JSON data; read from the text only when somebody looks."""
        if isinstance(self._arguments, str | bytes):
            self._arguments = _json_reader()(self._arguments) if self._arguments else {}
        return self._arguments

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.call.name!r}, {self.key})"


class Pending(Ready):
    """A call that may run only after its `question` was answered with yes."""

    __slots__ = ("question",)
    kind = "pending"

    def __init__(self, *args: Any, question: Question, **named: Any) -> None:
        super().__init__(*args, **named)
        self.question = question


class Refused:
    """A call that will not run; `result` is what the model is told."""

    __slots__ = ("call", "done", "key", "problem", "result")
    kind = "refused"

    def __init__(self, call: ToolCall, key: CallKey, result: ToolResult, problem: str = "") -> None:
        self.call = call
        self.key = key
        self.result = result
        self.problem = problem
        self.done: ToolResult | None = None

    def __repr__(self) -> str:
        return f"Refused({self.call.name!r}, {self.result.code})"


Prepared = Ready | Pending | Refused


def prepared_to_json(prepared: Prepared) -> dict[str, Any]:
    """A prepared call as plain JSON data, with a format version; `Toolbox.restore` reads it back.

    The live tool is not part of it: another process resolves and validates the call again and
    refuses to run it if the fingerprint differs. A call that has its result already is saved with that, as
    Refused: what was denied, or has run, never runs because it was saved.
    """
    call, done = prepared.call, prepared.result if isinstance(prepared, Refused) else prepared.done
    data: dict[str, Any] = {
        "format": FORMAT,
        "kind": prepared.kind if done is None else Refused.kind,
        "key": list(prepared.key),
        "call": {"name": call.name, "arguments": call.arguments, "id": call.id, "extras": call.extras},
    }
    if call.problem:
        data["call"]["problem"] = call.problem
    if done is not None:
        return {**data, "result": done.to_dict()}
    assert not isinstance(prepared, Refused)
    if not prepared.fingerprint and prepared.bound is not None:
        prepared.fingerprint = fingerprint(prepared.bound.definition.identity, prepared.arguments)
    data |= {
        "arguments": prepared.arguments,
        "effect": prepared.effect.label,
        "fingerprint": prepared.fingerprint,
    }
    if isinstance(prepared, Pending):
        data |= {"reason": prepared.question.reason, "digest": prepared.question.digest}
    return data


def prepared_from_json(data: Any) -> tuple[ToolCall, CallKey, str, ToolResult | None]:
    """What `prepared_to_json` wrote: call, key, fingerprint, and the result of a refused one.

    ValueError, saying what was expected, for anything else.
    """
    from toolcrib.result import ToolResult

    found = data.get("format") if isinstance(data, dict) else type(data).__name__
    if found != FORMAT:
        raise ValueError(f"expected a prepared call of format {FORMAT}, got {found!r}")
    try:
        call = ToolCall(**data["call"])
        run, turn, index = data["key"]
        result = ToolResult.from_dict(data["result"]) if data["kind"] == "refused" else None
        return call, CallKey(str(run), int(turn), int(index)), str(data.get("fingerprint", "")), result
    except (KeyError, TypeError, ValueError) as problem:
        raise ValueError(f"the saved call is not whole: {problem}") from None
