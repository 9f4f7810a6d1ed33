"""What became of a call before it runs: Ready, Pending or Refused. All three are immutable values.

| prepared | execute with            | ends as                                      |
| -------- | ----------------------- | -------------------------------------------- |
| Ready    | no answer needed        | the tool's result                            |
| Pending  | yes, always             | rechecked, then the tool's result            |
| Pending  | no, or nobody to ask    | `rejected`, `nobody_to_ask`                  |
| Pending  | yes, but things changed | `tool_changed`, or Pending's question anew   |
| Refused  | anything                | the result that it already holds             |

What changes while a call runs is not in these values: each of them names one `OneExecution`, in which the first who
executes the call leaves its result. A value that is made from another one (with a preview, with an answer) names
the same execution, so that a call runs at most once, whichever of its values is executed and from whatever thread.
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

from toolcrib.call import CallKey, ToolCall
from toolcrib.dataclass import dataclass, field
from toolcrib.frozen import from_tuple

if TYPE_CHECKING:
    from toolcrib.access import Access
    from toolcrib.effect import Effect
    from toolcrib.question import Question
    from toolcrib.repair import Edit
    from toolcrib.result import ToolResult

__all__ = ["OneExecution", "Pending", "Prepared", "Ready", "Refused", "ResolvedTool"]


class ResolvedTool:
    """What a call will run: the registered entry, the tool object (`instance`), its compiled definition."""

    __slots__ = ("definition", "entry", "instance")

    def __init__(self, entry: Any, instance: Any, definition: Any) -> None:
        self.entry = entry
        self.instance = instance
        self.definition = definition


_CLAIMING = threading.Lock()


class Lookups:
    """Values that are computed from a Ready when they are first read: JSON data, accesses.

    Its slots stay empty until then, since most calls are never looked at.
    """

    __slots__ = ("accesses", "data")

    accesses: tuple[Access, ...] | None
    data: Any


class OneExecution(Lookups):
    """The one execution of a prepared call. Whoever claims it first runs the call; everybody else gets its result.

    Its slots stay empty until then: one is made for every call, and most calls are executed where they are prepared.
    It holds the lookups too of the Ready that it was made with. `recorded` is the result, for whoever executes the call
    again.
    """

    __slots__ = ("_claimed", "recorded")

    recorded: ToolResult

    @property
    def result(self) -> ToolResult | None:
        """The recorded result; None until the call has ended."""
        return getattr(self, "recorded", None)

    def claim(self) -> bool:
        """Whether this is the first to execute the call, in whatever thread."""
        import asyncio

        with _CLAIMING:
            first = not hasattr(self, "_claimed")
            if first:
                self._claimed = asyncio.current_task()
        return first

    async def wait(self) -> ToolResult:
        """The result of the execution that has claimed this call. RuntimeError in the task that has claimed it."""
        import asyncio

        if self.result is None and self._claimed is asyncio.current_task():
            raise RuntimeError("this task executes the call already, and would wait for itself")
        while (result := self.result) is None:  # noqa: ASYNC110 - the other may run in any thread or loop
            await asyncio.sleep(0.01)
        return result


NOT_YET = object()


class Ready(NamedTuple):
    """A call that was resolved, validated and allowed.

    `params` are what the tool is handed, `given` their JSON form as text or data, `edits` the repairs that they needed.
    `approved` says that a person said yes, to this call or before to such calls; `why` names the rule or the person
    that let it run; `changed` says that a person gave it other arguments than the model's; `must_ask` that its tool
    wants a person to decide on it; `confined` that it runs unasked only as long as its accesses are confined. The
    `fingerprint` is empty where nobody has needed it yet.

    It is a named tuple and no frozen dataclass, because one is made for each call, in a quarter of the time.
    """

    call: ToolCall
    key: CallKey
    tool: ResolvedTool
    params: Any
    given: Any
    edits: tuple[Edit, ...]
    effect: Effect
    execution: OneExecution
    lookups: Lookups
    fingerprint: str = ""
    approved: bool = False
    why: str = ""
    changed: bool = False
    must_ask: bool = False
    confined: bool = False

    @property
    def kind(self) -> str:
        return "ready"

    @property
    def arguments(self) -> Any:
        """The validated arguments as JSON data; read from the text only when somebody looks."""
        given = self.given
        if not isinstance(given, str | bytes):
            return given
        data = getattr(self.lookups, "data", NOT_YET)
        if data is NOT_YET:
            from pydantic_core import from_json

            self.lookups.data = data = from_json(given) if given else {}
        return data

    @property
    def accesses(self) -> tuple[Access, ...] | None:
        """What the call reaches, as its tool says when it is first asked; None where the tool does not say."""
        found: Any = getattr(self.lookups, "accesses", NOT_YET)
        if found is NOT_YET:
            self.lookups.accesses = found = _accesses(self)
        accesses: tuple[Access, ...] | None = found
        return accesses

    @property
    def accesses_known(self) -> bool:
        """Whether the tool was asked what the call reaches, which it is where a policy looks."""
        return hasattr(self.lookups, "accesses")

    def __repr__(self) -> str:
        return f"Ready({self.call.name!r}, {self.key})"


new_ready = from_tuple(Ready)


def _accesses(ready: Ready) -> tuple[Access, ...] | None:
    hook = ready.tool.definition.hooks.get("accesses")
    if hook is None:
        return None
    try:
        found = hook(ready.tool.instance, ready.params)
        return None if found is None else tuple(found)
    except Exception:
        ready.tool.entry.log_failure("accesses")
        return None


@dataclass(frozen=True, slots=True, repr=False, eq=False)
class Pending:
    """A call that may run only after its `question` was answered with yes; `ready` is what runs then."""

    ready: Ready
    question: Question
    kind: ClassVar[str] = "pending"

    @property
    def call(self) -> ToolCall:
        return self.ready.call

    @property
    def key(self) -> CallKey:
        return self.ready.key

    @property
    def tool(self) -> ResolvedTool:
        return self.ready.tool

    @property
    def arguments(self) -> Any:
        """The validated arguments as JSON data."""
        return self.ready.arguments

    @property
    def params(self) -> Any:
        return self.ready.params

    @property
    def edits(self) -> tuple[Edit, ...]:
        return self.ready.edits

    @property
    def effect(self) -> Effect:
        return self.ready.effect

    @property
    def fingerprint(self) -> str:
        return self.ready.fingerprint

    @property
    def execution(self) -> OneExecution:
        return self.ready.execution

    def __repr__(self) -> str:
        return f"Pending({self.call.name!r}, {self.key})"


@dataclass(frozen=True, slots=True, repr=False, eq=False)
class Refused:
    """A call that will not run: `result` is what the model is told, `problem` what only the operator is told."""

    call: ToolCall
    key: CallKey
    result: ToolResult
    problem: str = ""
    execution: OneExecution = field(default_factory=OneExecution)
    kind: ClassVar[str] = "refused"

    def __repr__(self) -> str:
        return f"Refused({self.call.name!r}, {self.result.code})"


Prepared = Ready | Pending | Refused
"""What became of a call before it runs."""
