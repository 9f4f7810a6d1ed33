"""The loop of a run: its transcript, its usage, and its turns.

Read it from `RunLoop._loop` down: `query`, `execute`, and what ends a run. The transcript is valid at every
moment: a message with calls is followed at once by one with a result for each of them.
"""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from typing import TYPE_CHECKING, Any

from toolcrib.agent.account import Account
from toolcrib.agent.answer import read_answer, turn_finished, was_cut_off
from toolcrib.agent.clear_results import CACHE_SECONDS, ClearedRequests
from toolcrib.agent.completion import COMPLETION, completion_text, without_completion
from toolcrib.agent.instructions import RunInstructions
from toolcrib.agent.outcome import Outcome, Reason
from toolcrib.agent.read_result import read_result_in
from toolcrib.agent.repeated_failures import failed_too_often
from toolcrib.agent.run_checkpoints import RunCheckpoints
from toolcrib.agent.run_conversation import RunConversation
from toolcrib.agent.saved_run import SavedRun, nested_before, nested_to_dict
from toolcrib.agent.settings import AgentSettings
from toolcrib.agent.streaming_turn import StreamingTurn
from toolcrib.agent.tool_choice import request_of
from toolcrib.agent.transcript import TranscriptFile
from toolcrib.call import CallKey, ToolCall
from toolcrib.conversation_cache import ConversationCache
from toolcrib.dataclass import replace
from toolcrib.errors import ErrorCode, Suspended, belongs_to_caller
from toolcrib.events import (
    AnswerRestarted,
    Event,
    Notice,
    RunFinished,
    RunStarted,
    TurnStarted,
)
from toolcrib.mending import mend, notes_on_one_line
from toolcrib.messages import (
    Message,
    Request,
    Response,
    ResultPart,
    TokenLogprob,
    Usage,
)
from toolcrib.models.model import ModelError
from toolcrib.prepared import Refused
from toolcrib.result import ToolResult
from toolcrib.toolbox import Toolbox, ToolList, model_messages
from toolcrib.toolbox.foreign import ForeignCall
from toolcrib.toolbox.operator_log import mask_of, unmasked
from toolcrib.toolbox.suspension import Suspension
from toolcrib.visible import counted

if TYPE_CHECKING:
    from toolcrib.agent.typed_run import TypedRun
    from toolcrib.context import Context
    from toolcrib.toolbox.early_start import EarlyStart

__all__ = ["RunLoop"]

log = logging.getLogger("toolcrib")

CUT_OFF = "the answer was cut off at the model's token limit"
SUMMARY = (
    "The limit of turns is reached and no more tools can be called. Summarise for the user what was done, "
    "what was found, and what is still open."
)


class RunLoop:
    """One run of an agent from its task to its outcome; `Run` is what its caller has of it."""

    def __init__(
        self,
        settings: AgentSettings,
        task: str | Message,
        messages: Sequence[Message] = (),
        deps: Any = None,
        transcript: TranscriptFile | None = None,
        within: Context[Any] | None = None,
        saved: SavedRun | None = None,
    ) -> None:
        self.settings = settings
        self.id: str
        self.box: Toolbox[Any]
        self.outcome: Outcome[Any] | None = None
        self._within = within
        self._task_message = Message.user(task) if isinstance(task, str) else replace(task, usage=None)
        outer: Account | None
        if within is None:
            self.id, self.box, outer = saved.run if saved else os.urandom(16).hex(), settings.toolbox, None
            self._suspension = None
            if settings.suspends:
                self._suspension = saved.suspension if saved is not None else Suspension()
        else:
            self.id, self.box, outer = within.nested_run(settings.toolbox)
            if deps is None and self.box.deps is None:
                deps = within.deps
            self._suspension = self.box.suspensions.of(self.id)
            if self._suspension is not None:
                saved, self.outcome = nested_before(self._suspension, self.id, self._task_message)
                if self.outcome is not None:
                    self.box.recall(self.id, self.outcome.messages)
        self._saved = saved
        mended, self._mend_notes = mend(messages)
        self.messages: list[Message] = list(mended) if saved is None else saved.messages
        earlier = self.messages if saved is None else ()
        self.account = Account(
            self._task_message, settings.budget, settings.conversation_budget, earlier, outer, settings.agent
        )
        if saved is not None:
            self.account.restore(saved.usage, saved.earlier, saved.nested, self.messages[-2])
        self._instructions = RunInstructions(settings, self.box, self.messages)
        self.turns = 0 if saved is None else saved.turns
        self.restarted = 0 if saved is None else saved.restarted  # answers that broke off and began again
        self.deps = deps
        self._conversation = RunConversation(self.messages, transcript, self.box.masking)
        self._checkpoints = RunCheckpoints(
            settings.checkpoints, self.id, nested=within is not None, transcript=transcript,
            tell=partial(self.box.emit, self.id),  # no cycle, which would outlive the run
            at_work=partial(self.box.at_work, self.id), covered_by=partial(self.box.covered_by, self.id),
        )  # fmt: skip
        self._cleared: ClearedRequests | None = None
        if (context := settings.context) is not None:
            lasts = context.cache_seconds or getattr(settings.model, "cache_seconds", None) or CACHE_SECONDS
            self._cleared = ClearedRequests(context, lasts)
        self._cache = ConversationCache()
        self._logprobs: tuple[TokenLogprob, ...] = ()
        self._failures: dict[str, int] = {} if saved is None else saved.failures
        self._typed: TypedRun | None = None
        if settings.completion is not None:
            from toolcrib.agent.typed_run import TypedRun

            output = {} if saved is None else saved.output
            self._typed = TypedRun(self.id, settings.completion, settings.model, self.messages, output)
            self._instructions.form = self._typed.instructions
        self._chosen = saved is not None and saved.chosen
        self.stopped = False  # its caller cancelled it, and is given an outcome

    @property
    def usage(self) -> Usage:
        """What the run used so far, with the runs within its calls."""
        return self.account.usage

    @property
    def seconds_before(self) -> float:
        """Seconds that the run had used when it was saved with open questions; 0 for a run that begins."""
        return 0.0 if self._saved is None else self._saved.seconds

    async def leave_if_waiting(self, outcome: Outcome[Any]) -> None:
        """Leave the tool whose run waits for answers; it runs again when they are there."""
        if outcome.reason is Reason.WAITING and self._within is not None and self._suspension is not None:
            await self._suspension.leave(self._within)

    def cancelled_before_start(self) -> Outcome[Any]:
        """The outcome of a run that was cancelled before its first step."""
        outcome = self._finished(Reason.CANCELLED, "", "the run was cancelled before it started")
        self.box.forget(self.id)
        return outcome

    async def run(self) -> Outcome[Any]:
        """The run, in a span if its toolbox traces."""
        if not self.box.telemetry.on:
            return await self._guarded()
        from toolcrib.agent.telemetry import run_span

        with run_span(self.box.telemetry, self.id, self.settings, lambda: self.outcome):
            return await self._guarded()

    async def _guarded(self) -> Outcome[Any]:
        """Run the loop within its wall-time budget. Every way out goes through `_finished`."""
        if self.outcome is not None:  # a run within a repeated call, which ended before
            return self.outcome
        before, seconds = self.seconds_before, self.settings.budget.seconds
        deadline = asyncio.timeout(None if seconds is None else max(0.0, seconds - before))
        self.account.begin(before)
        inside: AbstractContextManager[None] = nullcontext()
        if self._within is not None and self._suspension is not None:
            inside = self._suspension.inside(self._within)
        # Another agent may have added it to the toolbox. It opens no results of the run that this one belongs to.
        reads = read_result_in(self.box)
        try:
            if reads is not None:
                reads.conversations[self.id] = self.messages
            with inside:
                async with deadline, self.box:
                    return await self._loop()
        except Suspended:  # the tool that began the run has been left: it begins it again
            raise
        except ModelError as error:
            reason = Reason.TOO_LONG if error.too_long else Reason.MODEL_ERROR
            return self._finished(reason, "", str(error))
        except Exception as error:  # of the caller's code: instructions, a policy, two tools of one name
            seconds = self.settings.budget.seconds
            if isinstance(error, TimeoutError) and deadline.expired() and seconds is not None:
                spent = f"the budget of {counted(seconds, 'second')} has passed"
                return self._finished(Reason.BUDGET, "", spent)
            self._finished(Reason.FAILED, "", f"{type(error).__name__}: {error}")
            raise
        except BaseException as error:
            if not isinstance(error, asyncio.CancelledError) or not belongs_to_caller(error):
                self._finished(Reason.FAILED, "", f"{type(error).__name__}: {error}".rstrip(": "))
                raise
            outcome = self._finished(Reason.CANCELLED, "", "the run was cancelled")
            if self.stopped:
                return outcome
            raise
        finally:
            if reads is not None:
                reads.conversations.pop(self.id, None)
            try:
                await self.box.end(self.id)
            finally:
                self._count_what_ended()
                await self._checkpoints.close()

    async def _loop(self) -> Outcome[Any]:
        if self._suspension is not None and self._within is None:
            self.box.suspensions.begin(self.id, self._suspension)
        ended: Outcome[Any] | None = None
        if self._saved is None:
            await self._open()
        else:
            ended = await self._go_on(self._saved)
        while ended is None:
            if spent := self.account.spent():
                return self._finished(Reason.BUDGET, "", spent)
            if self.turns - self.restarted >= self.settings.max_turns:
                return await self._summarised()
            tool_list = await self._tool_list()
            self._tell_news(self.box.news(self.id))
            try:
                response, streaming = await self.query(tool_list)
            except ModelError as error:
                if self._typed is None or not (words := self._typed.refused(error)):
                    raise
                self._note(words)
                self.restarted += 1
                continue
            calls = response.message.calls
            if not calls:
                if (
                    response.stop_reason == "pause"
                ):  # the provider's own tools took long: it goes on when asked
                    continue
                if response.stop_reason == "end" and self._tell_news(await self.box.last_news(self.id)):
                    continue
                ended = await self._answered(response)
                continue
            if (spent := self.account.spent()) and any(call.name != COMPLETION for call in calls):
                await streaming.discard(told=True)
                await self._refuse(calls, f"Not run: {spent}.")
                return self._finished(Reason.BUDGET, response.message.text, spent)
            cut_off = was_cut_off(response)
            results = await self.execute(calls, tool_list, streaming, cut_off=cut_off)
            ended = self._after_calls(calls, results, cut_off=cut_off)
        return ended

    def _after_calls(
        self, calls: list[ToolCall], results: list[ToolResult], *, cut_off: bool = False
    ) -> Outcome[Any] | None:
        """The outcome, if the results of a turn end the run; None if the run goes on."""
        if self._suspension is not None and self._suspension.waits_in(self.id):
            return self._waiting(self._suspension, self.messages[-2].text)
        text = completion_text(calls, results)
        if self._typed is not None:
            if cut_off and text is None and calls[-1].name == COMPLETION:
                return self._finished(Reason.REFUSED, "", CUT_OFF)
            self._typed.read_calls(self.turns, calls, results)
            if text is None and (why := self._typed.gives_up()):
                return self._finished(Reason.INVALID_OUTPUT, self.messages[-2].text, why)
        if text is not None:
            return self._finished(Reason.COMPLETED, text)
        paused = failed_too_often(calls, results, self._failures, self.settings.max_failures)
        return self._finished(Reason.PAUSED, self.messages[-2].text, paused) if paused else None

    def _tell_news(self, words: list[str]) -> bool:
        """Tell the model news of what the run owns, such as a process that ended. Returns whether there were any."""
        if words:
            self._conversation.add(Message.of_toolcrib("\n".join(words), "news"))
        return bool(words)

    async def query(self, tool_list: ToolList, *, may_call: bool = True) -> tuple[Response, StreamingTurn]:
        """Send one request. The answer joins the transcript.

        The tools are sent also where none may be called: a request without them would miss the provider's cache.
        """
        settings, box = self.settings, self.box
        self.turns += 1
        if box.sink:
            box.emit(self.id, TurnStarted(turn=self.turns))
        if (self.turns > 1 and self._instructions.may_change) or self._instructions.lack_form:
            await self._instructions.place(self.messages)
        request = request_of(settings, self.messages, tool_list, chosen=self._chosen, may_call=may_call)
        if self._typed is not None and may_call:
            request = self._typed.asked(request)
        early_start: Callable[[int], EarlyStart] | None = None
        if settings.early_start and may_call and not self.account.limits_calls:
            early_start = partial(box.early_start, self.id, tool_list=tool_list, deps=self.deps)
        streaming = StreamingTurn(self.id, self.turns, box.open_call, self._restarted, early_start)
        try:
            if self._cleared is None:
                response = await self._read(request, streaming, tool_list)
            else:
                read = partial(self._read, streaming=streaming, tool_list=tool_list)
                response = await self._cleared.ask(request, read, self._note)
        except BaseException:
            if streaming.response is not None:  # cancelled when it had come
                self.account.add(streaming.response.usage)
            await streaming.discard()
            raise
        self.account.answered(response.message, response.usage)
        self._logprobs = response.logprobs
        if self._typed is not None:
            self._typed.answered(response)
        added, calls = [response.message], response.message.calls
        if request.tool_choice.names:
            self._chosen |= any(call.name in request.tool_choice.names for call in calls)
        if calls:
            # Each call has a result from the start, "cancelled", which its recorded result replaces.
            waiting = [ResultPart(call, model_messages.cancelled(call.name)) for call in calls]
            added.append(Message("tool", list(waiting)))
        self._conversation.add(*added)
        if box.sink:
            box.emit(self.id, turn_finished(self.turns, response))
        return response, streaming

    async def execute(
        self, calls: list[ToolCall], tool_list: ToolList, streaming: StreamingTurn, *, cut_off: bool = False
    ) -> list[ToolResult]:
        """Run the calls of a turn; each result takes its place in the transcript when it is recorded.

        The last call of an answer that was cut off is not run: it may lack arguments and still be valid.
        """
        record = self._conversation.recorder()
        whole = calls[:-1] if cut_off else calls
        last = streaming.streams.pop(len(whole), None)
        if last is not None:
            await last.discard(told=True)
        try:
            async with self._checkpoints.around(self.turns, whole, tool_list, len(self.messages) - 2):
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
            self._conversation.note_usage()  # of runs within the calls, calls of a batch, a reviewer
            self._note_unwritten()
        if cut_off:
            key, call = CallKey(self.id, self.turns, len(whole)), calls[-1]
            refused = Refused(call, key, model_messages.cut_off(call.name))
            results.append(await self.box.execute(refused, record=record))
        return results

    def _note_unwritten(self) -> None:
        """Say what the transcript file lacks, when that changes."""
        if words := self._conversation.news():
            self._note(words)

    async def _refuse(self, calls: list[ToolCall], words: str) -> None:
        """Answer the calls of a turn with words, and run none."""
        record = self._conversation.recorder()
        for index, call in enumerate(calls):
            result = ToolResult.of(words, code=ErrorCode.DENIED)
            await self.box.execute(Refused(call, CallKey(self.id, self.turns, index), result), record=record)

    # -- its parts

    async def _go_on(self, saved: SavedRun) -> Outcome[Any] | None:
        """Go on with a run that waited: the calls of its last turn that have no result yet."""
        assert self._suspension is not None
        self.box.begin(self.id, self.messages, self.account)
        if self._within is None:
            await self.box.suspensions.restore(self.id, saved.box)
        self._conversation.catch_up()
        if self.box.sink:
            users = (message for message in reversed(self.messages) if message.is_the_users)
            task = next(users, self._task_message)
            self.box.emit(self.id, RunStarted(task.text, self.settings.model.name, resumed=True))
        calls, done = self.messages[-2].calls, saved.done(self._suspension)
        async with self._checkpoints.around(self.turns, calls, None, len(self.messages) - 2):
            results = await self.box.call_turn(
                calls,
                run=self.id,
                turn=self.turns,
                done=done,
                deps=self.deps,
                record=self._conversation.recorder(),
            )
        return self._after_calls(calls, results)

    def _waiting(self, suspension: Suspension, text: str) -> Outcome[Any]:
        """The outcome of a run that ends at its questions, with the state that `Agent.resume` needs of this run."""
        saved = SavedRun(
            run=self.id, messages=self.messages, usage=self.usage, earlier=self.account.earlier, turns=self.turns,
            restarted=self.restarted, seconds=self.account.seconds, chosen=self._chosen, failures=self._failures,
            nested=self.account.nested, output={} if self._typed is None else self._typed.to_dict(),
            box=self.box.suspensions.saved(self.id), suspension=suspension,
        )  # fmt: skip
        if self._within is not None:
            suspension.runs[self.id] = nested_to_dict(self._task_message, saved, self._mask)
            return self._finished(Reason.WAITING, text)
        actions = ", ".join(question.action for question in suspension.questions)
        outcome = self._finished(Reason.WAITING, text, f"a person's answer is needed to: {actions}")
        outcome.questions, outcome.saved = suspension.questions, saved.to_json(self._mask)
        return outcome

    @property
    def _mask(self) -> Callable[[Any], Any]:
        masking = self.box.masking
        return masking.mask_known_values if masking is not None else unmasked

    async def _open(self) -> None:
        goes_on = bool(self.messages)
        head = await self._instructions.place(self.messages)
        is_new = self._instructions.are_new
        self._conversation.begin(head, self._task_message, goes_on=goes_on, head_is_new=is_new)
        self.box.begin(self.id, self.messages, self.account)
        if self.box.sink:
            self.box.emit(self.id, RunStarted(self._task_message.text, self.settings.model.name))
        if self._mend_notes:
            words = notes_on_one_line(self._mend_notes)
            log.warning("the conversation that run %s goes on with: %s", self.id, words)
            self._note(f"the conversation: {words}")

    async def _tool_list(self) -> ToolList:
        tool_list = await self.box.tool_list(run=self.id, deps=self.deps)
        if self._typed is not None:
            return self._typed.tools(tool_list)
        return tool_list if self.settings.completion_tool else without_completion(tool_list)

    async def _read(self, request: Request, streaming: StreamingTurn, tool_list: ToolList) -> Response:
        """Read the model's answer while it streams, with the partial arguments of its calls."""
        request.messages, request.cache = self._cache.follow(request.messages), self._cache
        request.lost = self.account.add
        partial_calls = streaming.early is not None or tool_list.takes_partials
        tell = self._tell if self.box.sink else None
        model = self.settings.model
        if self.box.telemetry.on:
            from toolcrib.agent.telemetry import traced_model

            model = traced_model(model, self.box)
        if self._typed is not None and tell is not None:
            model = self._typed.watched(model, tell)
        mask = mask_of(self.box.masking)
        answer = read_answer(model, request, streaming, partial_calls, tell, self.account.add, mask)
        return await ForeignCall(answer, None, self.box.registry.grace)

    def _note(self, words: str) -> None:
        self._tell(Notice(words))

    def _tell(self, event: Event) -> None:
        if self.box.sink:
            self.box.emit(self.id, event)

    def _restarted(self, why: str, calls_were_seen: bool) -> int:
        """The answer begins again. If calls were seen, this is a new turn, so that no key is used twice."""
        if self._suspension is not None:  # calls that were started early do not count any more
            self._suspension.drop_all(self.id)
        if self.box.sink:
            self.box.emit(self.id, AnswerRestarted(self.turns, why))
        if calls_were_seen:
            self.turns += 1
            self.restarted += 1
            if self.box.sink:
                self.box.emit(self.id, TurnStarted(turn=self.turns))
        return self.turns

    async def _answered(self, response: Response) -> Outcome[Any] | None:
        """The outcome, if an answer without calls ends the run; None if the model is asked again."""
        text = response.message.text
        if response.stop_reason in ("refusal", "filter"):
            return self._finished(Reason.REFUSED, text, f"the model stopped: {response.stop_reason}")
        if response.stop_reason == "length":
            return self._finished(Reason.REFUSED, text, CUT_OFF)
        if self._typed is not None:
            words = await self._typed.read_text(text)
            if words is None:
                return self._finished(Reason.ANSWERED, text)
            if why := self._typed.gives_up():
                return self._finished(Reason.INVALID_OUTPUT, text, why)
            self._conversation.add(self._typed.message(words))
            return None
        detail = "" if text else "the model answered with neither text nor calls"
        return self._finished(Reason.ANSWERED, text, detail)

    async def _summarised(self) -> Outcome[Any]:
        """The limit of turns is reached: send one last request, in which no tool may be called, for a summary."""
        self._conversation.add(Message.of_toolcrib(SUMMARY, "turns"))
        tool_list = await self._tool_list()
        response, _ = await self.query(tool_list, may_call=False)
        if response.message.calls:
            refused = "No tool can be called any more: the limit of turns is reached."
            await self._refuse(response.message.calls, refused)
        return self._finished(
            Reason.TURN_LIMIT,
            response.message.text,
            f"the limit of {counted(self.settings.max_turns, 'turn')} is reached",
        )

    def _count_what_ended(self) -> None:
        """Tasks in the background went on until the run closed them: count what they used meanwhile."""
        if self.outcome is not None:
            self.outcome.usage = self.usage
        self._conversation.note_usage()

    def _finished(self, reason: Reason, text: str, detail: str = "") -> Outcome[Any]:
        if self.outcome is None:
            account = self.account
            self._note_unwritten()
            if unwritten := self._conversation.unwritten:
                detail = f"{detail}; the transcript: {unwritten}".removeprefix("; ")
            self.outcome = Outcome(
                reason, text, self.messages, account.usage, self.turns, self.id, detail, account.nested
            )
            self.outcome.logprobs = self._logprobs
            if self._typed is not None:
                self._typed.ends(self.outcome)
            if reason is not Reason.WAITING and account.outer is not None:
                account.outer.nested.append(self.outcome)
                if self._suspension is not None:  # the call may wait yet, and be run again
                    ended = nested_to_dict(self._task_message, self.outcome, self._mask)
                    self._suspension.runs[self.id] = ended
            if self.box.sink:
                self.box.emit(self.id, RunFinished(reason.value, text, detail))
        return self.outcome
