"""A call on its way: what the model asked for, and what became of it before it runs.

The life of one call, as states of its `ToolStatus` (who moves it is in brackets):

| from    | event                                             | to      |
| ------- | ------------------------------------------------- | ------- |
| (none)  | arguments begin to stream, or the call is prepared | WAIT    |
| WAIT    | more arguments, a question, `report` [tool, box]   | WAIT    |
| WAIT    | refused, denied, cancelled [box]                   | ERROR   |
| WAIT    | execution starts [box]                             | DOING   |
| DOING   | `report`, retry [tool, box]                        | DOING   |
| DOING   | result recorded, not an error [box]                | SUCCESS |
| DOING   | result recorded, an error [box]                    | ERROR   |
| SUCCESS, ERROR | anything                                    | refused |

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
import json
import threading
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from toolcrib.repair import Edit
    from toolcrib.result import ToolResult
    from toolcrib.tool import Effect

FORMAT = 1
_CLAIMING = threading.Lock()


class CallKey(NamedTuple):
    """Our own identity of a call; providers' ids are missing, repeated or shared."""

    run: str
    turn: int
    index: int  # type: ignore[assignment] # shadows tuple.index, which a key has no use for

    def __str__(self) -> str:
        return f"{self.run}/{self.turn}/{self.index}"


@dataclass(slots=True)
class ToolCall:
    """What a model asked for, as it wrote it.

    `arguments` is the text (or, from providers that send one, the object) of the arguments, unvalidated;
    `id` is the provider's and may be empty; `extras` are opaque provider data, by provider name. A
    `problem` says, in words for the model, why what it wrote can never be run (its text broke off, say):
    such a call is answered with it.
    """

    name: str
    arguments: str | dict[str, Any] = ""
    id: str = ""
    extras: dict[str, Any] = field(default_factory=dict)
    problem: str = ""


class CallState(StrEnum):
    """The four states that a person is shown."""

    WAIT = "wait"
    DOING = "doing"
    SUCCESS = "success"
    ERROR = "error"

    @property
    def terminal(self) -> bool:
        return self in (CallState.SUCCESS, CallState.ERROR)


@dataclass(slots=True)
class Question:
    """What a person is asked before a call may run; data, so that it can be stored and answered elsewhere.

    `fingerprint` binds the answer to exactly this tool and these arguments. `preview` shows what the call
    would do (a diff, say); `digest` stands for what that rests on: if it is another after the wait, the
    question is asked again. `prefixes` are what an answer of scope "prefix" would remember; empty: none is
    possible. When `strict`, no answer is remembered.
    """

    key: CallKey
    tool: str
    action: str
    reason: str
    arguments: Any
    effect: str
    fingerprint: str
    edits: tuple[Edit, ...] = ()
    patterns: tuple[str, ...] = ()
    preview: str = ""
    digest: str = ""
    prefixes: tuple[tuple[str, ...], ...] = ()
    strict: bool = False

    def to_dict(self) -> dict[str, Any]:
        """The question as plain JSON data, for a page, a queue or a file."""
        return {
            "key": list(self.key),
            "tool": self.tool,
            "action": self.action,
            "reason": self.reason,
            "arguments": self.arguments,
            "effect": self.effect,
            "fingerprint": self.fingerprint,
            "edits": [edit.to_dict() for edit in self.edits],
            "patterns": list(self.patterns),
            "preview": self.preview,
            "digest": self.digest,
            "prefixes": [list(prefix) for prefix in self.prefixes],
            "strict": self.strict,
        }


@dataclass(frozen=True, slots=True)
class Preview:
    """What a person is shown of a call before it runs, and a digest of what that rests on."""

    text: str
    digest: str = ""


@dataclass(frozen=True, slots=True)
class Doubt:
    """Why a call should be looked at, in one line for the person who is asked.

    With `must_ask` a person is asked whatever the policy allows.
    """

    reason: str
    must_ask: bool = False


class Scope(StrEnum):
    """What "always" is said of: these arguments, commands that begin with the same words, or the whole tool."""

    ARGUMENTS = "arguments"
    PREFIX = "prefix"
    TOOL = "tool"


class Lasting(StrEnum):
    """How long "always" holds: in this run, in this project, or wherever this user works."""

    RUN = "run"
    PROJECT = "project"
    USER = "user"


class Verdict(StrEnum):
    """How a question can be answered; ALWAYS means what the answer's scope says, as long as it says."""

    YES = "yes"
    NO = "no"
    ALWAYS = "always"


@dataclass(frozen=True, slots=True)
class Answer:
    """A person's answer; `message` is told to the model when the verdict is NO.

    The verdict may be given as its word ("yes", "no", "always"); whatever is no such word is NO. ALWAYS is
    remembered within `scope` and as long as `lasting` says, at most until `expires` (seconds since the
    epoch); an unknown scope, lasting or time counts as the narrowest. `arguments` replace the call's: they are
    validated and decided on anew, and the model is told.
    """

    verdict: Verdict
    message: str = ""
    by: str = ""
    scope: Scope = Scope.ARGUMENTS
    lasting: Lasting = Lasting.RUN
    expires: float | None = None
    arguments: dict[str, Any] | None = None

    def __post_init__(self) -> None:
        # from JSON, a form or a terminal they come as text, or as anything
        for name, kind, narrowest in (
            ("verdict", Verdict, Verdict.NO),
            ("scope", Scope, Scope.ARGUMENTS),
            ("lasting", Lasting, Lasting.RUN),
        ):
            given: Any = getattr(self, name)
            if not isinstance(given, kind):
                known = isinstance(given, str) and given in list(kind)
                object.__setattr__(self, name, kind(given) if known else narrowest)
        if self.expires is not None and not _is_time(self.expires):
            object.__setattr__(self, "expires", 0.0)  # what is no time has passed
        if self.message:
            from toolcrib.visible import spoken

            object.__setattr__(self, "message", spoken(self.message))

    @property
    def allows(self) -> bool:
        return self.verdict is not Verdict.NO


def _is_time(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and value == value  # not nan


class Bound:
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
        bound: Bound | None = None,
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


def fingerprint(tool_identity: str, arguments: Any) -> str:
    """The sha256 of a tool's identity and the canonical form of its validated arguments (JSON data)."""
    import hashlib

    canonical = json.dumps(arguments, sort_keys=True, separators=(",", ":"), ensure_ascii=False, default=str)
    return hashlib.sha256(f"{tool_identity}\n{canonical}".encode("utf-8", "surrogatepass")).hexdigest()


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
