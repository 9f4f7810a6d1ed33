"""One run of an agent: its transcript, its usage, and the loop.

Read it from `Run._loop` down: `query`, `execute`, and what ends a run. The transcript is valid at every
moment: a message with calls is followed at once by one with a result for each of them.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Callable, Generator, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from toolcrib.agent.account import Account
from toolcrib.agent.answer import read_answer
from toolcrib.agent.clear_results import CACHE_SECONDS, ClearedRequests
from toolcrib.agent.completion import COMPLETION, without_completion
from toolcrib.agent.outcome import Outcome, Reason
from toolcrib.agent.settings import AgentSettings
from toolcrib.agent.streaming_turn import StreamingTurn
from toolcrib.agent.text_stream import text_of
from toolcrib.call import CallKey, ToolCall
from toolcrib.errors import ErrorCode
from toolcrib.events import (
    AnswerRestarted,
    Event,
    Notice,
    RunFinished,
    RunStarted,
    TurnFinished,
    TurnStarted,
)
from toolcrib.messages import (
    Message,
    Request,
    Response,
    ResultPart,
    ToolChoice,
    Usage,
)
from toolcrib.models.model import ModelError
from toolcrib.prepared import Refused
from toolcrib.result import ToolResult
from toolcrib.toolbox import Toolbox, ToolList, model_messages

if TYPE_CHECKING:
    from toolcrib.agent.transcript import TranscriptFile
    from toolcrib.context import Context
    from toolcrib.sink import Subscription
    from toolcrib.toolbox.early_start import EarlyStart
    from toolcrib.toolbox.report import Record

__all__ = ["Run"]

COUNTED = frozenset(
    {
        ErrorCode.INVALID_ARGUMENTS,
        ErrorCode.TIMED_OUT,
        ErrorCode.FAILED,
        ErrorCode.TOOL_ERROR,
        ErrorCode.OUTCOME_UNKNOWN,
        ErrorCode.OUTPUT_TOO_LARGE,
    }
)
BROKEN_OFF = ("length", "filter", "refusal")  # reasons to stop that may strike in the middle of a call
SUMMARY = (
    "The limit of turns is reached and no more tools can be called. Summarise for the user what was done, "
    "what was found, and what is still open."
)


class Run:
    """One run of an agent: its transcript, its usage, and the loop."""

    def __init__(
        self,
        settings: AgentSettings,
        task: str | Message,
        messages: Sequence[Message] = (),
        deps: Any = None,
        transcript: TranscriptFile | None = None,
        within: Context[Any] | None = None,
    ) -> None:
        self.settings = settings
        self.messages: list[Message] = list(messages)
        self.id: str
        self.box: Toolbox[Any]
        outer: Account | None
        if within is None:
            self.id, self.box, outer = os.urandom(16).hex(), settings.toolbox, None
        else:
            self.id, self.box, outer = within.nested_run(settings.toolbox)
            if deps is None and self.box.deps is None:
                deps = within.deps
        self.account = Account(settings.budget, settings.conversation_budget, self.messages, outer)
        self.turns = 0
        self.restarted = 0  # of the turns: answers that broke off and began again
        self.outcome: Outcome | None = None
        self._task_message = Message.user(task) if isinstance(task, str) else task
        self.deps = deps
        self._transcript = transcript
        if transcript is not None and self.box.masking is not None:
            transcript.mask = self.box.masking.mask_known_values
        self._cleared: ClearedRequests | None = None
        if (context := settings.context) is not None:
            lasts = context.cache_seconds or getattr(settings.model, "cache_seconds", None) or CACHE_SECONDS
            self._cleared = ClearedRequests(context, lasts)
        self._failures: dict[str, int] = {}
        self._chosen = False
        self._task: asyncio.Task[Outcome] | None = None
        self._stopped = False
        self._events: Subscription | None = None

    # -- from outside

    @property
    def usage(self) -> Usage:
        """What the run used so far, with the runs within its calls."""
        return self.account.usage

    def __await__(self) -> Generator[Any, Any, Outcome]:
        return self._outcome().__await__()

    def cancel(self) -> None:
        """Stop the run: its outcome says "cancelled", its transcript stays valid."""
        self._stopped = True
        if self._task is not None and not self._task.done():
            self._task.cancel()

    def begin(self) -> None:
        """Begin the run now. Its events are kept for the first iteration over it."""
        try:
            asyncio.get_running_loop()
        except RuntimeError:
            self.box.forget(self.id)
            raise RuntimeError(
                "agent.start(...) begins the run at once and needs a running event loop: "
                "call it in async code, or use agent.run_sync(...)"
            ) from None
        self._ensure_task().add_done_callback(self._ended)
        self._events = self._listen()

    def _ended(self, _: asyncio.Task[Outcome]) -> None:
        if self.outcome is None:
            self._cancelled_before_start()

    def _listen(self) -> Subscription:
        subscription = self.box.events(self.id)
        self._ensure_task().add_done_callback(lambda _: self.box.unsubscribe(subscription))
        return subscription

    def __aiter__(self) -> AsyncIterator[Event]:
        """The events of the run: all of them in the first iteration, those from then on in a further one."""
        subscription, self._events = self._events or self._listen(), None
        return aiter(subscription)

    def stream_text(self) -> AsyncIterator[str]:
        """The text that the model writes for the user, in pieces; `await` the run for its outcome.

        Each piece is given once. Texts of several answers are apart by an empty line, also where an answer broke off
        and began again.
        """
        return text_of(self, self.id)

    def _ensure_task(self) -> asyncio.Task[Outcome]:
        if self._task is None:
            self._task = asyncio.get_running_loop().create_task(
                self._traced(), name=f"toolcrib run {self.id}"
            )
        return self._task

    async def _outcome(self) -> Outcome:
        if self._task is not None and self._task.done() and not self._task.cancelled():
            return self._task.result()  # or what the caller's own code raised
        if self.outcome is not None:
            return self.outcome
        if self._task is None and self._stopped:
            return self._cancelled_before_start()
        work = self._ensure_task()
        try:
            return await asyncio.shield(work) if self._stopped else await work
        except asyncio.CancelledError:
            if not work.cancelled():
                raise
            outcome = self.outcome or self._cancelled_before_start()
            if self._stopped:
                return outcome
            raise

    def _cancelled_before_start(self) -> Outcome:
        outcome = self._finished(Reason.CANCELLED, "", "the run was cancelled before it started")
        self.box.forget(self.id)
        return outcome

    # -- the loop

    async def _traced(self) -> Outcome:
        """The run, in a span if its toolbox traces."""
        if not self.box.telemetry.on:
            return await self._guarded()
        from toolcrib.agent.telemetry import run_span

        with run_span(self.box.telemetry, self.id, self.settings.model, lambda: self.outcome):
            return await self._guarded()

    async def _guarded(self) -> Outcome:
        """Run the loop within its wall-time budget. Every way out goes through `_finished`."""
        deadline = asyncio.timeout(self.settings.budget.seconds)
        self.account.begin()
        try:
            async with deadline, self.box:
                return await self._loop()
        except asyncio.CancelledError:
            outcome = self._finished(Reason.CANCELLED, "", "the run was cancelled")
            if self._stopped:
                return outcome
            raise
        except ModelError as error:
            reason = Reason.TOO_LONG if error.too_long else Reason.MODEL_ERROR
            return self._finished(reason, "", str(error))
        except Exception as error:  # of the caller's own: instructions, a policy, two tools of one name
            if isinstance(error, TimeoutError) and deadline.expired():
                return self._finished(
                    Reason.BUDGET, "", f"{self.settings.budget.seconds:g} seconds have passed"
                )
            self._finished(Reason.FAILED, "", f"{type(error).__name__}: {error}")
            raise
        finally:
            self.box.forget(self.id)
            if self.settings.read_result is not None:
                self.settings.read_result.conversations.pop(self.id, None)

    async def _loop(self) -> Outcome:
        await self._open()
        while True:
            if spent := self.account.spent():
                return self._finished(Reason.BUDGET, "", spent)
            if self.turns - self.restarted >= self.settings.max_turns:
                return await self._summarised()
            tool_list = await self._tool_list()
            response, streaming = await self.query(tool_list)
            calls = response.message.calls
            if not calls:
                if (
                    response.stop_reason == "pause"
                ):  # the provider's own tools took long: it goes on when asked
                    continue
                return self._answered(response)
            working = any(call.name != COMPLETION for call in calls)
            if working and (spent := self.account.spent()):
                await streaming.discard()
                await self._refuse(calls, f"Not run: {spent}.")
                return self._finished(Reason.BUDGET, response.message.text, spent)
            results = await self.execute(calls, tool_list, streaming, cut_off=_cut_off(response))
            text = _completion(calls, results)
            if text is not None:
                return self._finished(Reason.COMPLETED, text)
            paused = self._failing(calls, results)
            if paused:
                return self._finished(Reason.PAUSED, response.message.text, paused)

    async def query(self, tool_list: ToolList, *, may_call: bool = True) -> tuple[Response, StreamingTurn]:
        """Send one request. The answer joins the transcript.

        The tools are sent also where none may be called: a request without them would miss the provider's cache.
        """
        settings, box = self.settings, self.box
        self.turns += 1
        if box.sink:
            box.emit(self.id, TurnStarted(turn=self.turns))
        if callable(settings.instructions) or settings.stats_hint:
            await self._instruct()
        request = Request(
            messages=self.messages,
            tools=tool_list.specs,
            tool_choice=self._choice(tool_list) if may_call else ToolChoice("none"),
            parallel_calls=settings.parallel_calls,
            max_tokens=settings.max_tokens,
            temperature=settings.temperature,
        )
        early_start: Callable[[int], EarlyStart] | None = None
        if settings.early_start and may_call:
            early_start = partial(box.early_start, self.id, tool_list=tool_list, deps=self.deps)
        streaming = StreamingTurn(self.id, self.turns, box.open_call, self._restarted, early_start)
        try:
            if self._cleared is None or settings.read_result is None:
                response = await self._read(request, streaming)
            else:
                settings.read_result.conversations[self.id] = self.messages
                read = partial(self._read, streaming=streaming)
                response = await self._cleared.ask(request, read, self._note)
        except BaseException:
            await streaming.discard()
            raise
        self.account.answered(response.message, response.usage)
        self._append(response.message)
        self._chosen |= any(call.name in request.tool_choice.names for call in response.message.calls)
        if response.message.calls:
            # Answered from the first moment: what is recorded replaces it, what is not was interrupted.
            waiting = [
                ResultPart(call, model_messages.cancelled(call.name)) for call in response.message.calls
            ]
            self._append(Message("tool", list(waiting)))
        if box.sink:
            tokens = {
                "input_tokens": response.usage.input_tokens,
                "output_tokens": response.usage.output_tokens,
            }
            done = TurnFinished(self.turns, len(response.message.calls), response.stop_reason, tokens)
            box.emit(self.id, done)
        return response, streaming

    def _choice(self, tool_list: ToolList) -> ToolChoice:
        """The tools that this turn may call. A required tool is required once: else the model could never answer."""
        choice = self.settings.tool_choice
        if choice.mode == "required" and choice.names and self._chosen:
            return ToolChoice()
        offered = [spec.name for spec in tool_list.specs]
        if choice.names and not any(name in offered for name in choice.names):
            names = " or ".join(map(repr, choice.names))
            raise ValueError(
                f"tool_choice asks for {names}, which is not offered; tools are {', '.join(offered)}"
            )
        return choice

    async def execute(
        self, calls: list[ToolCall], tool_list: ToolList, streaming: StreamingTurn, *, cut_off: bool = False
    ) -> list[ToolResult]:
        """Run the calls of a turn; each result takes its place in the transcript when it is recorded.

        The last call of an answer that was cut off is not run: it may lack arguments and still be valid.
        """
        record = _recorder(self.messages[-1], self._transcript)
        whole = calls[:-1] if cut_off else calls
        last = streaming.streams.pop(len(whole), None)
        if last is not None:
            await last.discard()
        try:
            results = await self.box.call_turn(
                whole,
                run=self.id,
                turn=self.turns,
                tool_list=tool_list,
                streams=streaming.streams,
                early=streaming.early,
                deps=self.deps,
                record=record,
            )
        finally:
            if self._transcript is not None and self.account.nested:
                self._transcript.usage(self.messages[-2])
        if cut_off:
            key, call = CallKey(self.id, self.turns, len(whole)), calls[-1]
            refused = Refused(call, key, model_messages.cut_off(call.name))
            results.append(await self.box.execute(refused, record=record))
        return results

    async def _refuse(self, calls: list[ToolCall], words: str) -> None:
        """Answer the calls of a turn with words, and run none."""
        record = _recorder(self.messages[-1], self._transcript)
        for index, call in enumerate(calls):
            result = ToolResult.of(words, code=ErrorCode.DENIED)
            await self.box.execute(Refused(call, CallKey(self.id, self.turns, index), result), record=record)

    # -- its parts

    async def _open(self) -> None:
        fresh: list[Message] = []
        if not self.messages or self.messages[0].role != "system":
            await self._instruct()
            fresh = self.messages[:1] if self.messages and self.messages[0].role == "system" else []
        for message in fresh:
            self._write(message)
        self._append(self._task_message)
        self.box.begin(self.id, self.messages, self.account)
        if self.box.sink:
            self.box.emit(self.id, RunStarted(self._task_message.text, self.settings.model.name))

    async def _tool_list(self) -> ToolList:
        tool_list = await self.box.tool_list(run=self.id, deps=self.deps)
        return tool_list if self.settings.completion_tool else without_completion(tool_list)

    async def _instruct(self) -> None:
        """Put the instructions, as they are now, at the head of the transcript."""
        given = self.settings.instructions
        text = given() if callable(given) else given
        if not isinstance(text, str):
            text = await text
        if self.settings.stats_hint and (hint := self.box.stats_hint()):
            text = f"{text}\n\n{hint}".strip()
        has_head = bool(self.messages) and self.messages[0].role == "system"
        if has_head:
            self.messages[0] = Message.system(text)
        elif text:
            self.messages.insert(0, Message.system(text))

    async def _read(self, request: Request, streaming: StreamingTurn) -> Response:
        """Read the model's answer while it streams, with the partial arguments of its calls."""
        partial_calls = streaming.early is not None or any(
            self._wants_partials(spec.name) for spec in request.tools
        )
        tell = self._tell if self.box.sink else None
        model = self.settings.model
        if self.box.telemetry.on:
            from toolcrib.agent.telemetry import traced_model

            model = traced_model(model, self.box)
        return await read_answer(model, request, streaming, partial_calls, tell)

    def _note(self, words: str) -> None:
        if self.box.sink:
            self.box.emit(self.id, Notice(words))

    def _tell(self, event: Event) -> None:
        self.box.emit(self.id, event)

    def _restarted(self, why: str, calls_were_seen: bool) -> int:
        """The answer begins again. If calls were seen, this is a new turn, so that no key is used twice."""
        if self.box.sink:
            self.box.emit(self.id, AnswerRestarted(self.turns, why))
        if calls_were_seen:
            self.turns += 1
            self.restarted += 1
            if self.box.sink:
                self.box.emit(self.id, TurnStarted(turn=self.turns))
        return self.turns

    def _wants_partials(self, name: str) -> bool:
        entry = self.box.registry.known(name)
        definition = entry.definition() if entry is not None else None
        return definition is not None and "on_partial" in definition.hooks

    def _answered(self, response: Response) -> Outcome:
        text = response.message.text
        if response.stop_reason in ("refusal", "filter"):
            return self._finished(Reason.REFUSED, text, f"the model stopped: {response.stop_reason}")
        if response.stop_reason == "length":
            return self._finished(Reason.REFUSED, text, "the answer was cut off at the model's token limit")
        detail = "" if text else "the model answered with neither text nor calls"
        return self._finished(Reason.ANSWERED, text, detail)

    async def _summarised(self) -> Outcome:
        """The limit of turns is reached: send one last request, in which no tool may be called, for a summary."""
        self._append(Message.user(SUMMARY))
        tool_list = await self._tool_list()
        response, _ = await self.query(tool_list, may_call=False)
        if response.message.calls:
            refused = "No tool can be called any more: the limit of turns is reached."
            await self._refuse(response.message.calls, refused)
        return self._finished(
            Reason.TURN_LIMIT,
            response.message.text,
            f"the limit of {self.settings.max_turns} turns is reached",
        )

    def _failing(self, calls: list[ToolCall], results: list[ToolResult]) -> str:
        """Count the failures in a row of each tool; returns why the run has to pause, or ""."""
        for call, result in zip(calls, results, strict=True):
            if not result.is_error:
                self._failures.pop(call.name, None)
            elif result.code in COUNTED or result.code is None:
                count = self._failures[call.name] = self._failures.get(call.name, 0) + 1
                if count >= self.settings.max_failures:
                    which = f"tool {call.name}" if call.name else "a call without a readable name"
                    return f"{which} failed {count} times in a row; the last time: {result.text[:300]}"
        return ""

    def _append(self, message: Message) -> None:
        self.messages.append(message)
        self._write(message)

    def _write(self, message: Message) -> None:
        if self._transcript is not None:
            self._transcript.message(message)

    def _finished(self, reason: Reason, text: str, detail: str = "") -> Outcome:
        if self.outcome is None:
            account = self.account
            self.outcome = Outcome(
                reason, text, self.messages, account.usage, self.turns, self.id, detail, account.nested
            )
            if account.outer is not None:
                account.outer.nested.append(self.outcome)
            if self.box.sink:
                self.box.emit(self.id, RunFinished(reason.value, text, detail))
        return self.outcome


def _recorder(message: Message, transcript: TranscriptFile | None) -> Record:
    """Puts results in their places in a message and in the transcript file.

    It does not lead to the run: a tool's context leads to what records its call, and a run leads to the model's key.
    """
    places = message.parts

    def record(key: CallKey, result: ToolResult) -> None:
        part = places[key.index]
        assert isinstance(part, ResultPart)
        part.result = result
        if transcript is not None:
            transcript.result(key, result)

    return record


def _cut_off(response: Response) -> bool:
    """Whether the last call may be incomplete: the answer was broken off in the middle of it."""
    if response.stop_reason in BROKEN_OFF:
        return True
    return response.stop_reason not in ("end", "tool_calls") and not response.message.calls[-1].arguments


def _completion(calls: list[ToolCall], results: list[ToolResult]) -> str | None:
    """The text of a successful attempt_completion, which may be the user's own tool; None if there was none."""
    for call, result in zip(calls, results, strict=True):
        if call.name == COMPLETION and not result.is_error:
            return result.text
    return None
