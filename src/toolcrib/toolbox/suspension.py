"""Runs that end at a question and go on when it is answered, perhaps in another process.

A call that waits is saved as JSON data under its key, and is executed again when the run goes on. A top-level call, or
one that a tool makes, waits before it ran: it is prepared anew and asked about under the same question. A tool whose
inner call or `ctx.ask` met a question runs again from its beginning: what its finished inner calls gave, and what was
answered, is given to it again in the same order. That is only right where its own code may run twice, or where the
tool saved a state to go on from. The run of an agent within a call goes on from its own state.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Awaitable, Callable, Generator, Iterable, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, NoReturn

from toolcrib.call import CallKey, ToolCall
from toolcrib.dataclass import dataclass, field
from toolcrib.effect import Effect
from toolcrib.errors import ErrorCode, Suspended, ToolError
from toolcrib.fingerprint import fingerprint
from toolcrib.prepared import Pending, Ready
from toolcrib.question import Answer, Question
from toolcrib.result import ToolResult
from toolcrib.saved_calls import prepared_from_json, prepared_to_json

if TYPE_CHECKING:
    import asyncio

    from toolcrib.context import Context

__all__ = ["GivenAnswer", "Suspension", "WaitingCall", "key_of"]

STOPPED = (ErrorCode.TIMED_OUT, ErrorCode.OUTCOME_UNKNOWN)
OTHERWISE = (
    'The call of tool "{}" waited for a person\'s answer, and ran again with it, but did something else than the first '
    "time. Nothing more was run; call the tool again if it is still needed."
)

Walk = Callable[[ToolCall, CallKey, Any, Any], Awaitable[ToolResult]]
"""Walks a call that a tool makes along the path of the toolbox: the call, its key, dependencies, a recorder."""

Record = Callable[[CallKey, ToolResult], None]
WalkTurn = Callable[[dict[int, ToolResult], Record], Awaitable[list[ToolResult]]]
"""Walks calls that a tool makes at one time: the results that some have already, by their place; a recorder."""


@dataclass(frozen=True, slots=True)
class GivenAnswer:
    """A person's answer to a question that waited, and what the question rested on when it was shown."""

    answer: Answer
    digest: str

    def to_dict(self) -> dict[str, Any]:
        return {"answer": self.answer.to_dict(), "digest": self.digest}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> GivenAnswer:
        return cls(Answer(**data["answer"]), str(data["digest"]))


@dataclass(slots=True)
class WaitingCall:
    """A call that waits: its questions, and its data for the process that goes on."""

    key: CallKey
    questions: tuple[Question, ...]
    data: dict[str, Any]

    def to_dict(self) -> dict[str, Any]:
        questions = [question.to_dict() for question in self.questions]
        return {**self.data, "key": list(self.key), "questions": questions}


@dataclass(slots=True)
class Journal:
    """What the tool of one call did inside its call: the results of its inner calls, and the answers it was given."""

    tool: str
    repeatable: bool  # whether the tool's own code may run twice
    effect: Effect
    results: dict[int, dict[str, Any]] = field(default_factory=dict)
    answers: list[tuple[str, dict[str, Any]]] = field(default_factory=list)  # (mark of the question, answer)
    unused: list[tuple[str, dict[str, Any]]] = field(default_factory=list)  # of an earlier run, not used yet
    state: Any = None  # what the tool saved to go on from, instead of beginning again
    acted: bool = False  # whether a step was allowed, after which the tool may have changed something
    questions: list[Question] = field(default_factory=list)
    open: bool = False
    left: bool = False  # nothing further begins inside: it would not be known to who goes on
    running: int = 0
    idle: asyncio.Event | None = None

    @property
    def may_wait(self) -> bool:
        goes_on = self.repeatable or self.state is not None
        return goes_on or (self.effect is Effect.READ and not self.acted)

    async def others(self) -> None:
        """Wait for the other inner calls: each ends, or waits for an answer too, before the tool is left."""
        import asyncio

        await asyncio.sleep(0)  # for tasks of the tool that have not made their first step yet
        while self.running:
            self.idle = self.idle or asyncio.Event()
            await self.idle.wait()


class Suspension:
    """The calls of one run that wait for answers, the answers that were given, and what calls were saved before.

    `answers` are by the key and the fingerprint of their questions. `saved` are calls that waited when the run was
    saved, by their keys. `taken` counts the calls that ran, by tool: for limits; `taken_within` does so for each run
    within a call that has limits of its own. `runs` are the runs of agents within calls that wait, as data, by their
    names.
    """

    def __init__(
        self,
        saved: Iterable[Mapping[str, Any]] = (),
        answers: dict[tuple[CallKey, str], GivenAnswer] | None = None,
        taken: Mapping[str, int] | None = None,
        runs: Mapping[str, Any] | None = None,
        taken_within: Mapping[str, Mapping[str, int]] | None = None,
    ) -> None:
        self.answers = answers or {}
        self.saved = {key_of(data["key"]): data for data in saved}
        self.waiting: dict[CallKey, WaitingCall] = {}
        self.taken = Counter(taken or {})
        self.taken_within = {run: Counter(counts) for run, counts in (taken_within or {}).items()}
        self.runs = dict(runs or {})
        self._journals: dict[str, Journal] = {}

    def count(self, tool: str, within: Iterable[str]) -> None:
        """Count a call that runs, `within` these runs."""
        self.taken[tool] += 1
        for run in within:
            self.taken_within.setdefault(run, Counter())[tool] += 1

    # -- calls that wait

    def waits(self, prepared: Ready | Pending) -> tuple[Question, ...]:
        """Note that a call waits for an answer, or for a call before it: its questions that nobody has answered."""
        question = prepared.question if isinstance(prepared, Pending) else None
        ready = prepared.ready if isinstance(prepared, Pending) else prepared
        asked = () if question is None or self.given(question) is not None else (question,)
        data = _saved_call(prepared, ready)
        before = self.saved.get(ready.key, {})
        if "inside" in before:  # it ran before, and what it did inside stays done
            data["inside"] = before["inside"]
            for key, saved in self.saved.items():
                if _lies_inside(key, ready.key):
                    self.waiting[key] = WaitingCall(key, (), {**saved})
        self.waiting[ready.key] = WaitingCall(ready.key, asked, data)
        return asked

    def waits_inside(self, ready: Ready, result: ToolResult, *, cancelled: bool) -> bool:
        """Whether a call that ran has met a question inside, so that it waits; it is noted then.

        What the tool then returned is ignored. A call that was stopped has ended, and so has all that it did inside.
        """
        journal = self._journals.get(str(ready.key))
        if journal is None or not journal.open or cancelled or result.code in STOPPED:
            self._ended(ready.key)
            return False
        data = _saved_call(ready, ready)
        data["inside"] = {
            "results": list(journal.results.values()),
            "answers": journal.answers,
            "state": journal.state,
        }
        self.waiting[ready.key] = WaitingCall(ready.key, tuple(journal.questions), data)
        return True

    def _ended(self, key: CallKey) -> None:
        """A call has its result: what is kept of the calls inside of it is needed no more."""
        inside = str(key)
        self._journals.pop(inside, None)
        for run in [run for run in self._journals if run.startswith(f"{inside}/")]:
            del self._journals[run]
        for mine in (self.waiting, self.saved):
            for other in [other for other in mine if _lies_inside(other, key)]:
                del mine[other]
        for name in [name for name in self.runs if name.startswith(f"{inside}/")]:
            del self.runs[name]

    def waits_in(self, run: str) -> bool:
        """Whether calls of a run wait."""
        return any(key.run == run for key in self.waiting)

    def drop_all(self, run: str) -> None:
        """The calls of a run wait no more, because its turn begins again."""
        for key in [key for key in self.waiting if f"{key.run}/".startswith(f"{run}/")]:
            del self.waiting[key]

    def drop(self, key: CallKey) -> bool:
        """A call waits no more, because its turn was cut short; returns whether it did."""
        return self.waiting.pop(key, None) is not None

    @property
    def questions(self) -> tuple[Question, ...]:
        """The questions that are not answered, in the order of their calls."""
        return tuple(question for call in self._in_order() for question in call.questions)

    def to_dict(self) -> dict[str, Any]:
        """The calls that wait and the answers that are not used yet, as JSON data."""
        answers = [
            {"key": list(key), "fingerprint": mark, **given.to_dict()}
            for (key, mark), given in self.answers.items()
        ]
        return {
            "calls": [call.to_dict() for call in self._in_order()],
            "answers": answers,
            "taken": dict(self.taken),
            "taken_within": {run: dict(counts) for run, counts in self.taken_within.items()},
            "runs": self.runs,
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Suspension:
        """What `to_dict` gave. Raises KeyError, TypeError or ValueError for other data."""
        answers = {
            (key_of(item["key"]), str(item["fingerprint"])): GivenAnswer.from_dict(item)
            for item in data["answers"]
        }
        for call in data["calls"]:
            _check_saved(call)
        within = data.get("taken_within") or {}
        for counts in (data["taken"], *within.values()):
            if not all(isinstance(count, int) for count in counts.values()):
                raise TypeError("expected numbers of calls")
        return cls(data["calls"], answers, data["taken"], data["runs"], within)

    def _in_order(self) -> list[WaitingCall]:
        return [self.waiting[key] for key in sorted(self.waiting, key=_place)]

    # -- questions

    def answer(self, question: Question) -> Answer | None:
        """The answer that was given to a question, which is used up by that; None while there is none."""
        given = self.given(question)
        if given is not None:
            del self.answers[question.key, question.fingerprint]
        return given

    def given(self, question: Question) -> Answer | None:
        """The answer that was given to a question. A yes to what has changed since it was shown is no answer."""
        given = self.answers.get((question.key, question.fingerprint))
        if given is not None and given.answer.allows and given.digest != question.digest:
            return None
        return None if given is None else given.answer

    def cannot_wait(self, key: CallKey, parents: Mapping[str, str]) -> str:
        """The name of the tool that cannot wait for a question inside its call; "" if all of them can."""
        calls: list[str] = [str(key), key.run]
        while (outer := parents.get(calls[-1])) is not None:
            calls.append(outer)
        journals = (self._journals.get(call) for call in calls)
        return next((journal.tool for journal in journals if journal and not journal.may_wait), "")

    # -- what a running tool does inside its call

    def journal(self, ctx: Context[Any]) -> Journal:
        """The journal of a running call, with what was saved of an earlier run of its tool."""
        name = str(ctx.key)
        journal = self._journals.get(name)
        if journal is None:
            facts = ctx._definition.facts
            repeatable = facts.idempotent or facts.delegates
            journal = self._journals[name] = Journal(ctx.tool, repeatable, facts.effect)
            saved = (self.saved.pop(ctx.key, None) or {}).get("inside")
            if saved is not None:
                journal.results = {int(item["index"]): item for item in saved["results"]}
                journal.answers = [(str(mark), dict(answer)) for mark, answer in saved["answers"]]
                journal.unused = list(journal.answers)
                journal.state = saved.get("state")
        return journal

    def goes_on(self, key: CallKey) -> bool:
        """Whether a call ran before the run waited, and goes on now."""
        return "inside" in self.saved.get(key, {})

    def knows(self, ctx: Context[Any], key: CallKey) -> bool:
        """Whether a call within the call of `ctx` was made before the run waited."""
        return key.index in self.journal(ctx).results or key in self.saved

    async def inner_call(self, ctx: Context[Any], call: ToolCall, key: CallKey, walk: Walk) -> ToolResult:
        """Walk a call that a tool makes, or give it the result that the same call had in an earlier run of the tool.

        Raises Suspended where the call waits, once the calls beside it have ended or wait too.
        """

        async def alone(done: dict[int, ToolResult], record: Record) -> list[ToolResult]:
            return [done[0] if done else await walk(call, key, ctx.deps, record)]

        return (await self.inner_turn(ctx, [call], [key], alone))[0]

    async def inner_turn(
        self, ctx: Context[Any], calls: list[ToolCall], keys: list[CallKey], walk: WalkTurn
    ) -> list[ToolResult]:
        """The same for calls that a tool makes at one time."""
        journal = self.journal(ctx)
        marks = {key: fingerprint(call.name, call.arguments) for key, call in zip(keys, calls, strict=True)}
        done: dict[int, ToolResult] = {}
        for place, key in enumerate(keys):
            known = journal.results.get(key.index) or self.saved.get(key)
            if known is not None and known.get("mark") != marks[key]:
                raise ToolError(OTHERWISE.format(ctx.tool))
            if known is not None and "result" in known:
                done[place] = ToolResult.from_dict(known["result"])

        def record(key: CallKey, result: ToolResult) -> None:
            if key not in self.waiting:
                kept = {"index": key.index, "mark": marks[key], "result": result.to_dict()}
                journal.results[key.index] = kept

        with self.inside(ctx):
            results = await walk(done, record)
        waiting = [key for key in keys if key in self.waiting]
        for key in waiting:
            self.waiting[key].data["mark"] = marks[key]
        if waiting:
            await self.leave(ctx)
        return results

    @contextmanager
    def inside(self, ctx: Context[Any]) -> Generator[None]:
        """Counts, while it lasts, an inner call or a run of an agent as running inside the call of `ctx`.

        Raises Suspended if the tool has been left: its other tasks may go on, and begin nothing further.
        """
        journal = self.journal(ctx)
        if journal.left:
            raise Suspended
        journal.running += 1
        try:
            yield
        finally:
            journal.running -= 1
            if not journal.running and journal.idle is not None:
                journal.idle.set()
                journal.idle = None

    def answered(self, ctx: Context[Any], question: Question) -> Answer | None:
        """The answer to a question of a running tool: what was answered in an earlier run of the tool comes first."""
        journal = self.journal(ctx)
        asked = question.fingerprint if not question.digest else question.id
        for place, (mark, known) in enumerate(journal.unused):
            if mark == asked:
                del journal.unused[place]
                return Answer(**known)
        answer = self.answer(question)
        if answer is not None:
            journal.answers.append((asked, answer.to_dict()))
        return answer

    def save_state(self, ctx: Context[Any], state: Any) -> None:
        """Keep what a tool goes on from if its call waits: JSON data. Answers from before are part of that state."""
        journal = self.journal(ctx)
        if state != journal.state:
            journal.state = state
            journal.answers.clear()
            journal.unused.clear()

    async def leave(self, ctx: Context[Any], questions: Iterable[Question] = ()) -> NoReturn:
        """Leave a running tool that asks. Raises Suspended, once the calls beside it have ended or wait too."""
        journal = self.journal(ctx)
        journal.questions.extend(questions)
        journal.open = True
        await journal.others()
        journal.left = True
        raise Suspended


def _lies_inside(key: CallKey, outer: CallKey) -> bool:
    """Whether a call was made within another one, or within one that was."""
    return f"{key.run}/".startswith(f"{outer}/")


def _check_saved(data: Mapping[str, Any]) -> None:
    """Raises KeyError, TypeError or ValueError for what is no saved call, before anything of its run goes on."""
    if prepared_from_json(data["call"])[1] != key_of(data["key"]):
        raise ValueError("a saved call has two keys")
    if not isinstance(data.get("arguments"), dict | None) or not isinstance(data.get("approved"), str | None):
        raise TypeError("expected other arguments as an object, and why it was approved as a text")
    if (inside := data.get("inside")) is not None:
        for item in inside["results"]:
            ToolResult.from_dict(item["result"])
            if not (isinstance(item["index"], int) and isinstance(item["mark"], str)):
                raise TypeError("expected the index and the mark of a call within a call")
        for _, answer in inside["answers"]:
            Answer(**answer)


def key_of(data: Any) -> CallKey:
    """A key of saved data. Raises TypeError or ValueError for what is none."""
    run, turn, index = data
    return CallKey(str(run), int(turn), int(index))


def _place(key: CallKey) -> tuple[tuple[int, str], ...]:
    """A sort key: calls of a turn by their index, and calls within calls after the call that made them."""
    return tuple((int(part), "") if part.isdecimal() else (0, part) for part in str(key).split("/"))


def _saved_call(prepared: Ready | Pending, ready: Ready) -> dict[str, Any]:
    data: dict[str, Any] = {"call": prepared_to_json(prepared)}
    if ready.approved:
        data["approved"] = ready.why
    if ready.changed:
        data["arguments"] = ready.arguments
    return data
