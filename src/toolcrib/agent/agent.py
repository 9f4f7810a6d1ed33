"""The agent: ask the model, run its calls, tell it the results, again.

Read it from `Run._loop` down: `query`, `execute`, and what ends a run. The transcript is valid at every
moment: a message with calls is followed at once by one with a result for each of them.
"""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Generator, Iterable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Generic, Literal, TypedDict, TypeVar, Unpack

from toolcrib.agent.answer import read_answer
from toolcrib.agent.completion import COMPLETION, attempt_completion
from toolcrib.agent.outcome import Budget, Outcome, Reason
from toolcrib.agent.streaming_turn import StreamingTurn
from toolcrib.call import CallKey, ToolCall
from toolcrib.errors import ErrorCode
from toolcrib.events import (
    AnswerRestarted,
    Event,
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
from toolcrib.models.model import Model, ModelError
from toolcrib.prepared import Refused
from toolcrib.result import ToolResult
from toolcrib.sink import Subscription
from toolcrib.toolbox import Toolbox, ToolList, model_messages
from toolcrib.toolset import ToolLike, Toolset

if TYPE_CHECKING:
    from typing_extensions import TypeVar as DefaultingTypeVar

    from toolcrib.agent.transcript import TranscriptFile
    from toolcrib.toolbox.early_start import EarlyStart
    from toolcrib.toolbox.options import ToolboxOptions

    Deps = DefaultingTypeVar("Deps", default=Any)
else:
    Deps = TypeVar("Deps")

__all__ = ["Agent", "Run", "RunOptions"]

MAX_TURNS = 50
MAX_FAILURES = 3  # failures of one tool in a row before the run pauses
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

Instructions = str | Callable[[], str | Awaitable[str]]


class RunOptions(TypedDict, Generic[Deps], total=False):
    """The options of a run: an earlier transcript to go on with, dependencies, a file to write the transcript to."""

    messages: Sequence[Message]
    deps: Deps | None
    transcript: TranscriptFile | None


class Agent(Generic[Deps]):
    """A model with tools. `run` gives the Outcome, `stream` the events on the way.

    `tools` make a toolbox of their own, with the options of a Toolbox, such as `autonomy`, `approver`, `deps` or
    `timeout`; or hand in a `toolbox`. `Agent[Deps]` gives the type of the dependencies. `model` is a Model or a string
    such as "openai:gpt-5". `instructions` are the system prompt: text, or a function that gives it anew each turn. With
    `early_start`, calls that only read may begin while the model still writes. A run never ends silently:
    `Outcome.reason` says why.

    >>> from toolcrib import Agent, Effect, tool
    >>> from toolcrib.models import Scripted
    >>> @tool(effect=Effect.READ, secrets=())
    ... def add(a: int, b: int) -> int:
    ...     "Add two numbers."
    ...     return a + b
    >>> model = Scripted([{"calls": [{"name": "add", "arguments": {"a": 1, "b": 2}}]}, {"text": "It is 3."}])
    >>> Agent(model, [add]).run_sync("What is 1 + 2?").text
    'It is 3.'
    """

    def __init__(
        self,
        model: Model | str,
        tools: Iterable[ToolLike | Toolset] = (),
        *,
        toolbox: Toolbox[Deps] | None = None,
        instructions: Instructions = "",
        max_turns: int = MAX_TURNS,
        max_failures: int = MAX_FAILURES,
        budget: Budget = Budget(),  # noqa: B008 - frozen
        max_tokens: int | None = None,
        temperature: float | None = None,
        tool_choice: ToolChoice | Literal["auto", "none", "required"] = "auto",
        parallel_calls: bool | None = None,
        stats_hint: bool = False,
        early_start: bool = False,
        **options: Unpack[ToolboxOptions[Deps]],
    ) -> None:
        if isinstance(model, str):
            from toolcrib.models import resolve_model

            model = resolve_model(model)
        if not hasattr(model, "stream"):
            raise TypeError(f"model must be a Model or a string such as 'openai:gpt-5', got {model!r}")
        if toolbox is not None and (options or tools):
            raise TypeError("give tools and options, or a toolbox that has them, not both")
        if not isinstance(budget, Budget):
            raise TypeError(f"budget must be a Budget, as in Budget(cost=0.50, seconds=600), got {budget!r}")
        self.model = model
        try:
            self.toolbox: Toolbox[Deps] = toolbox if toolbox is not None else Toolbox(tools, **options)
        except TypeError as problem:  # an option that neither of the two has
            raise TypeError(str(problem).replace("Toolbox.__init__()", "Agent()")) from None
        if not self.toolbox.registry.has(COMPLETION):
            self.toolbox.registry.add(attempt_completion, builtin=True)
        self.instructions = instructions
        self.max_turns = max_turns
        self.max_failures = max_failures
        self.budget = budget
        self.max_tokens = max_tokens
        self.temperature = temperature
        self.tool_choice = tool_choice if isinstance(tool_choice, ToolChoice) else ToolChoice(tool_choice)
        self.parallel_calls = parallel_calls
        self.stats_hint = stats_hint
        self.early_start = early_start

    def start(
        self,
        task: str | Message,
        *,
        messages: Sequence[Message] = (),
        deps: Deps | None = None,
        transcript: TranscriptFile | None = None,
    ) -> Run:
        """A run of the task: `await` it for its Outcome, iterate over it for its events, or `cancel` it."""
        if not isinstance(task, str | Message):
            raise TypeError(f"a task is text or a Message, got {task!r}")
        given: list[Any] = list(messages)
        if odd := [message for message in given if not isinstance(message, Message)]:
            raise TypeError(
                "messages are Message objects, as in outcome.messages or [Message.user('Hi')]; "
                f"saved ones come back by messages_from_json; got {odd[0]!r}"
            )
        return Run(self, task, given, deps, transcript)

    async def run(self, task: str | Message, **options: Unpack[RunOptions[Deps]]) -> Outcome:
        """Work on a task until it ends; `messages=` continues an earlier outcome's transcript."""
        return await self.start(task, **options)

    def run_sync(self, task: str | Message, **options: Unpack[RunOptions[Deps]]) -> Outcome:
        """`run`, for code without an event loop; RuntimeError where one is running."""
        return self.toolbox.run_sync(self.run(task, **options))

    async def stream(self, task: str | Message, **options: Unpack[RunOptions[Deps]]) -> AsyncIterator[Event]:
        """The events of a run as they happen, RunFinished last. Leaving the loop cancels the run."""
        run = self.start(task, **options)
        try:
            async for event in run:
                yield event
        finally:
            run.cancel()
            await run


class Run:
    """One run of an agent: its transcript, its usage, and the loop."""

    def __init__(
        self,
        agent: Agent[Any],
        task: str | Message,
        messages: Sequence[Message],
        deps: Any,
        transcript: TranscriptFile | None,
    ) -> None:
        self.id = os.urandom(16).hex()
        self.agent = agent
        self.box = agent.toolbox
        self.messages: list[Message] = list(messages)
        self.usage = Usage()
        self.turns = 0
        self.restarted = 0  # of the turns: answers that broke off and began again
        self.outcome: Outcome | None = None
        self._task_message = Message.user(task) if isinstance(task, str) else task
        self.deps = deps
        self._transcript = transcript
        if transcript is not None and self.box.masking is not None:
            transcript.mask = self.box.masking.mask_known_values
        self._failures: dict[str, int] = {}
        self._chosen = False
        self._task: asyncio.Task[Outcome] | None = None
        self._stopped = False

    # -- from outside

    def __await__(self) -> Generator[Any, Any, Outcome]:
        return self._outcome().__await__()

    def cancel(self) -> None:
        """Stop the run: its outcome says "cancelled", its transcript stays valid."""
        self._stopped = True
        if self._task is not None and not self._task.done():
            self._task.cancel()

    async def __aiter__(self) -> AsyncIterator[Event]:
        subscription: Subscription = self.box.events()
        work = self._ensure_task()
        work.add_done_callback(lambda _: subscription.close())
        try:
            async for event in subscription:
                if event.run == self.id or event.run.startswith(f"{self.id}/"):
                    yield event
        finally:
            self.box.unsubscribe(subscription)

    def _ensure_task(self) -> asyncio.Task[Outcome]:
        if self._task is None:
            self._task = asyncio.get_running_loop().create_task(
                self._guarded(), name=f"toolcrib run {self.id}"
            )
        return self._task

    async def _outcome(self) -> Outcome:
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
        return self._finished(Reason.CANCELLED, "", "the run was cancelled before it started")

    # -- the loop

    async def _guarded(self) -> Outcome:
        """Run the loop within its wall-time budget. Every way out goes through `_finished`."""
        deadline = asyncio.timeout(self.agent.budget.seconds)
        self._started = time.monotonic()
        try:
            async with deadline, self.box:
                return await self._loop()
        except asyncio.CancelledError:
            outcome = self._finished(Reason.CANCELLED, "", "the run was cancelled")
            if self._stopped:
                return outcome
            raise
        except ModelError as error:
            return self._finished(Reason.MODEL_ERROR, "", str(error))
        except Exception as error:  # of the caller's own: instructions, a policy, two tools of one name
            if isinstance(error, TimeoutError) and deadline.expired():
                return self._finished(Reason.BUDGET, "", f"{self.agent.budget.seconds:g} seconds have passed")
            self._finished(Reason.FAILED, "", f"{type(error).__name__}: {error}")
            raise
        finally:
            self.box.forget(self.id)

    async def _loop(self) -> Outcome:
        await self._open()
        while True:
            spent = self.agent.budget.spent(self.usage, time.monotonic() - self._started)
            if spent:
                return self._finished(Reason.BUDGET, "", spent)
            if self.turns - self.restarted >= self.agent.max_turns:
                return await self._summarised()
            tool_list = await self.box.tool_list(run=self.id, deps=self.deps)
            response, streaming = await self.query(tool_list)
            calls = response.message.calls
            if not calls:
                if (
                    response.stop_reason == "pause"
                ):  # the provider's own tools took long: it goes on when asked
                    continue
                return self._answered(response)
            results = await self.execute(calls, tool_list, streaming, cut_off=_cut_off(response))
            text = _completion(calls, results)
            if text is not None:
                return self._finished(Reason.COMPLETED, text)
            paused = self._failing(calls, results)
            if paused:
                return self._finished(Reason.PAUSED, response.message.text, paused)

    async def query(self, tool_list: ToolList | None) -> tuple[Response, StreamingTurn]:
        """Send one request; without a tool list, a request without tools. The answer joins the transcript."""
        agent, box = self.agent, self.box
        self.turns += 1
        if box.sink:
            box.emit(self.id, TurnStarted(turn=self.turns))
        if callable(agent.instructions) or agent.stats_hint:
            await self._instruct()
        request = Request(
            messages=self.messages,
            tools=tool_list.specs if tool_list is not None else (),
            tool_choice=self._choice(tool_list),
            parallel_calls=agent.parallel_calls,
            max_tokens=agent.max_tokens,
            temperature=agent.temperature,
        )
        early_start: Callable[[int], EarlyStart] | None = None
        if agent.early_start and tool_list is not None:
            early_start = partial(box.early_start, self.id, tool_list=tool_list, deps=self.deps)
        streaming = StreamingTurn(self.id, self.turns, box.open_call, self._restarted, early_start)
        try:
            response = await self._read(request, streaming)
        except BaseException:
            await streaming.discard()
            raise
        self.usage = self.usage + response.usage
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

    def _choice(self, tool_list: ToolList | None) -> ToolChoice:
        """The tools that this turn may call. A required tool is required once: else the model could never answer."""
        choice = self.agent.tool_choice
        if tool_list is None:
            return ToolChoice("none")
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
        # Not this run: a tool's context leads to what records its call, and a run leads to the model's key.
        places, transcript = self.messages[-1].parts, self._transcript

        def record(key: CallKey, result: ToolResult) -> None:
            part = places[key.index]
            assert isinstance(part, ResultPart)
            part.result = result
            if transcript is not None:
                transcript.result(key, result)

        whole = calls[:-1] if cut_off else calls
        last = streaming.streams.pop(len(whole), None)
        if last is not None:
            await last.discard()
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
        if cut_off:
            key, call = CallKey(self.id, self.turns, len(whole)), calls[-1]
            refused = Refused(call, key, model_messages.cut_off(call.name))
            results.append(await self.box.execute(refused, record=record))
        return results

    # -- its parts

    async def _open(self) -> None:
        agent = self.agent
        fresh: list[Message] = []
        if not self.messages or self.messages[0].role != "system":
            await self._instruct()
            fresh = self.messages[:1] if self.messages and self.messages[0].role == "system" else []
        for message in fresh:
            self._write(message)
        self._append(self._task_message)
        self.box.begin(self.id, self.messages)
        if self.box.sink:
            self.box.emit(self.id, RunStarted(self._task_message.text, agent.model.name))

    async def _instruct(self) -> None:
        """Put the instructions, as they are now, at the head of the transcript."""
        given = self.agent.instructions
        text = given() if callable(given) else given
        if not isinstance(text, str):
            text = await text
        if self.agent.stats_hint and (hint := self.box.stats_hint()):
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
        return await read_answer(self.agent.model, request, streaming, partial_calls, tell)

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
        """The limit of turns is reached: send one last request without tools, for a summary."""
        self._append(Message.user(SUMMARY))
        response, _ = await self.query(None)
        if response.message.calls:
            refused = "No tool can be called any more: the limit of turns is reached."
            for index, part in enumerate(self.messages[-1].parts):
                if isinstance(part, ResultPart):
                    part.result = ToolResult.of(refused, code=ErrorCode.DENIED)
                    if self._transcript is not None:
                        self._transcript.result(CallKey(self.id, self.turns, index), part.result)
        return self._finished(
            Reason.TURN_LIMIT, response.message.text, f"the limit of {self.agent.max_turns} turns is reached"
        )

    def _failing(self, calls: list[ToolCall], results: list[ToolResult]) -> str:
        """Count the failures in a row of each tool; returns why the run has to pause, or ""."""
        for call, result in zip(calls, results, strict=True):
            if not result.is_error:
                self._failures.pop(call.name, None)
            elif result.code in COUNTED or result.code is None:
                count = self._failures[call.name] = self._failures.get(call.name, 0) + 1
                if count >= self.agent.max_failures:
                    return (
                        f"tool {call.name} failed {count} times in a row; the last time: {result.text[:300]}"
                    )
        return ""

    def _append(self, message: Message) -> None:
        self.messages.append(message)
        self._write(message)

    def _write(self, message: Message) -> None:
        if self._transcript is not None:
            self._transcript.message(message)

    def _finished(self, reason: Reason, text: str, detail: str = "") -> Outcome:
        if self.outcome is None:
            self.outcome = Outcome(reason, text, self.messages, self.usage, self.turns, self.id, detail)
            if self.box.sink:
                self.box.emit(self.id, RunFinished(reason.value, text, detail))
        return self.outcome


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
