"""The agent: a model with tools. `run.py` has its loop."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from contextlib import AsyncExitStack
from typing import TYPE_CHECKING, Any, Generic, Literal, TypedDict, TypeVar, Unpack, overload

from toolcrib.agent.as_tool import AgentToolOptions, agent_tool
from toolcrib.agent.clear_results import ClearOldResults, add_read_result
from toolcrib.agent.completion import COMPLETION, attempt_completion
from toolcrib.agent.outcome import Budget, NotFinished, Outcome
from toolcrib.agent.output_type import TEXT, OutputSpec, OutputType, as_output_type
from toolcrib.agent.output_var import Out
from toolcrib.agent.run import Run
from toolcrib.agent.saved_run import Answers, SavedRun
from toolcrib.agent.settings import AgentSettings, Instructions
from toolcrib.dataclass import replace
from toolcrib.errors import as_tuple, is_object_with
from toolcrib.events import Event
from toolcrib.messages import Message, ToolChoice
from toolcrib.models.model import Model
from toolcrib.toolbox import Toolbox
from toolcrib.toolset import ToolLike, Toolset

if TYPE_CHECKING:
    from typing_extensions import TypeVar as DefaultingTypeVar

    from toolcrib.agent.transcript import TranscriptFile
    from toolcrib.checkpoints import Checkpoints
    from toolcrib.context import Context
    from toolcrib.function import FunctionTool
    from toolcrib.toolbox.options import ToolboxOptions

    Deps = DefaultingTypeVar("Deps", default=Any)
else:
    Deps = TypeVar("Deps")

__all__ = ["Agent", "RunOptions"]

MAX_TURNS = 50
MAX_FAILURES = 3  # failures of one tool in a row before the run pauses
MAX_KEPT = 64  # output types of runs that are kept compiled

Other = TypeVar("Other")


class RunOptions(TypedDict, Generic[Deps], total=False):
    """The options of a run.

    Attributes:
        messages: The conversation that the run goes on with, as `outcome.messages`.
        deps: What tools are handed as `ctx.deps`, in place of the toolbox's.
        transcript: A file to which the conversation is written as it grows.
        within: The context of the call that the run belongs to, in a tool that asks an agent.
    """

    messages: Sequence[Message]
    deps: Deps | None
    transcript: TranscriptFile | None
    within: Context[Any] | None


class Agent(Generic[Deps, Out]):
    """A model with tools. `run` gives the Outcome, `stream` the events on the way.

    A run never ends silently: `Outcome.reason` says why. `Agent[Deps, Out]` gives the types of the dependencies and of
    `outcome.output`, which is a text without `output`.

    Args:
        model: A Model, or its name, such as "openai:gpt-5".
        tools: What the model may call. The agent makes a Toolbox of them, and takes its options beside them, such as
            `autonomy`, `approver`, `deps` or `timeout`.
        toolbox: A toolbox of yours, in place of `tools` and options of a Toolbox.
        name: What the agent is called in telemetry.
        instructions: The system prompt: text, or a function, sync or async, that gives it anew each turn.
        max_turns: How often the model is asked in a run; then it is asked for a summary.
        max_failures: Failures of one tool in a row after which a run pauses.
        budget: Limits of each run: tokens, cost, seconds, calls.
        conversation_budget: Limits of a run together with the earlier runs whose messages it goes on with.
        output: What its runs answer with: a type, a list of types, or an OutputType with validators.
        max_tokens: The limit of tokens of one answer.
        temperature: The model's temperature.
        tool_choice: "auto", "none", "required", or a ToolChoice of certain tools.
        stop: Texts at which an answer ends, for servers that take them.
        logit_bias: What is added to the likelihood of tokens, by their ids, for models that take it.
        logprobs: The outcome has the log-probabilities of the last answer's text, where the server gives them.
        top_logprobs: How many other tokens are named for each, with theirs.
        parallel_calls: Whether one answer may ask for several calls; None leaves it to the provider.
        stats_hint: A section of the prompt names tools that fail often or are slow.
        early_start: Calls that only read may begin while the model still writes.
        completion_tool: The model has attempt_completion to end with; without it, it ends by an answer without calls.
        context: A ClearOldResults, which keeps long conversations small.
        checkpoints: The Checkpoints of a workspace: one is taken before each turn that may change something, so that
            `checkpoints.undo()` takes back what the run did.
        on_question: "suspend" ends a run at its questions, as "waiting", so that `resume` goes on when they are
            answered; "ask" puts them to the approver.

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
        name: str = "",
        instructions: Instructions = "",
        max_turns: int = MAX_TURNS,
        max_failures: int = MAX_FAILURES,
        budget: Budget = Budget(),  # noqa: B008 - frozen
        conversation_budget: Budget = Budget(),  # noqa: B008 - frozen
        output: OutputSpec[Out] = TEXT,  # type: ignore[assignment] # so that Out is str without it
        max_tokens: int | None = None,
        temperature: float | None = None,
        stop: Sequence[str] = (),
        logit_bias: Mapping[str, float] | None = None,
        logprobs: bool = False,
        top_logprobs: int | None = None,
        tool_choice: ToolChoice | Literal["auto", "none", "required"] = "auto",
        parallel_calls: bool | None = None,
        stats_hint: bool = False,
        early_start: bool = False,
        completion_tool: bool = True,
        context: ClearOldResults | None = None,
        checkpoints: Checkpoints | None = None,
        on_question: Literal["ask", "suspend"] = "ask",
        **options: Unpack[ToolboxOptions[Deps]],
    ) -> None:
        self._made: list[Any] = []  # what this agent opened, and therefore closes
        if isinstance(model, str):
            from toolcrib.models import resolve_model

            model = resolve_model(model)
            self._made.append(model)
        if not is_object_with(model, "stream"):
            raise TypeError(f"model must be a Model or a string such as 'openai:gpt-5', got {model!r}")
        if toolbox is not None and (options or tools):
            raise TypeError("give tools and options, or a toolbox that has them, not both")
        if toolbox is not None and not is_object_with(toolbox, "call_turn"):
            how = "tools are handed in as Agent(model, [...])"
            raise TypeError(f"toolbox must be a Toolbox, got {toolbox!r}; {how}")
        try:
            box: Toolbox[Deps] = toolbox if toolbox is not None else Toolbox(tools, **options)
        except TypeError as problem:
            _, unknown, option = str(problem).partition("__init__() got an unexpected keyword argument ")
            if not unknown:
                raise
            option = option.partition(".")[0]  # Python 3.13 adds: Did you mean …?
            raise TypeError(f"Agent() has no option {option}; {_right_option(option)}") from None
        if toolbox is None:
            self._made.append(box)
        if on_question not in ("ask", "suspend"):
            raise TypeError(f"on_question must be 'ask' or 'suspend', got {on_question!r}")
        if on_question == "suspend" and box.approver is not None:
            raise TypeError(
                "a run asks its approver, or it ends at a question (on_question='suspend'): not both"
            )
        self._settings = AgentSettings(
            name=name,
            model=model,
            toolbox=box,
            instructions=instructions,
            max_turns=max_turns,
            max_failures=max_failures,
            budget=budget,
            conversation_budget=conversation_budget,
            max_tokens=max_tokens,
            temperature=temperature,
            tool_choice=tool_choice if isinstance(tool_choice, ToolChoice) else ToolChoice(tool_choice),
            parallel_calls=parallel_calls,
            stats_hint=stats_hint,
            early_start=early_start,
            completion_tool=completion_tool,
            context=context,
            checkpoints=checkpoints,
            suspends=on_question == "suspend",
            stop=as_tuple("stop", stop),
            logit_bias=logit_bias,
            logprobs=logprobs or top_logprobs is not None,
            top_logprobs=top_logprobs,
        )
        if checkpoints is not None:
            box._approvals.check_stored_outside(checkpoints.root)  # what they cover may be changed unasked
        self._output = as_output_type(output)
        self._typed: dict[Any, AgentSettings] = {}
        if not self._output.is_text:
            self._settings_for(None)
        # An agent that is refused changes no toolbox: what it brings is added last, first what may be refused itself.
        if context is not None:
            add_read_result(box)
        if completion_tool and not box.registry.has(COMPLETION):
            box.registry.add(attempt_completion, builtin=True)

    def _settings_for(self, output: Any) -> AgentSettings:
        """The settings of a run that answers with this output; None for the agent's own.

        Its toolbox has attempt_completion in the shape of the answer.
        """
        given = self._output if output is None else output
        key = given if isinstance(given, OutputType | type) else None
        kept = None if key is None else self._typed.get(key)
        if kept is not None:
            return kept
        wanted = as_output_type(given)
        if wanted.is_text:
            return self._settings
        from toolcrib.agent.completion_tool import CompletionTool
        from toolcrib.toolbox.overlay import with_builtin

        own = self.toolbox.registry.known(COMPLETION)
        if own is not None and own.supplied is not attempt_completion:
            raise TypeError(
                f"a typed run answers by {COMPLETION}: a tool of the caller's own cannot have this name"
            )
        completion = CompletionTool(wanted.check())
        box = with_builtin(self.toolbox, COMPLETION, completion)
        settings = replace(self._settings, toolbox=box, completion=completion)
        if key is not None:
            if len(self._typed) >= MAX_KEPT:
                self._typed.clear()
            self._typed[key] = settings
        return settings

    async def __aenter__(self) -> Agent[Deps, Out]:
        """Enter the toolsets of the agent's own toolbox for all runs until the end, instead of for each run anew."""
        if self.toolbox in self._made:
            await self.toolbox.__aenter__()
        return self

    async def __aexit__(self, *exc: object) -> None:
        try:
            if self.toolbox in self._made:
                await self.toolbox.__aexit__(*exc)
        finally:
            await self.aclose()

    async def aclose(self) -> None:
        """Close the model that the agent made from a string, and the thread of `run_sync`.

        A model or a toolbox that was handed in belongs to the caller. The agent can be used again.
        """
        async with AsyncExitStack() as stack:  # closes the others, too, if one raises
            for made in self._made:
                if (closing := getattr(made, "aclose", None)) is not None:
                    stack.push_async_callback(closing)

    @property
    def model(self) -> Model:
        """The model that its runs ask."""
        return self._settings.model

    @property
    def toolbox(self) -> Toolbox[Deps]:
        """The toolbox that runs the calls of the model."""
        return self._settings.toolbox

    def as_tool(
        self, name: str, description: str, **options: Unpack[AgentToolOptions]
    ) -> FunctionTool[..., Any]:
        """A tool for another agent. Its one parameter is the task; its result is the text of a run of this agent.

        The run belongs to the call: what it uses counts in the outer run, whose budget ends it; its questions go to
        the outer approver; it may do at most what both agents may do. Its effect is the worst of the tools that this
        agent's policy shows now. Without a `timeout`, budgets alone limit its time.
        """
        return agent_tool(self._settings_for(None), name, description, options)

    @overload
    def start(
        self, task: str | Message, *, output: None = None, **options: Unpack[RunOptions[Deps]]
    ) -> Run[Out]: ...
    @overload
    def start(
        self, task: str | Message, *, output: OutputSpec[Other], **options: Unpack[RunOptions[Deps]]
    ) -> Run[Other]: ...
    def start(self, task: str | Message, *, output: Any = None, **options: Unpack[RunOptions[Deps]]) -> Any:
        """A run of the task, which begins at once: `await` it for its Outcome, iterate over its events, `cancel` it.

        Its events are kept for the first iteration over it. RuntimeError where no event loop is running.
        """
        run = self._run_of(task, output, **options)
        run.begin()
        return run

    def _run_of(
        self,
        task: str | Message,
        output: Any = None,
        *,
        messages: Sequence[Message] = (),
        deps: Deps | None = None,
        transcript: TranscriptFile | None = None,
        within: Context[Any] | None = None,
        **unknown: Any,
    ) -> Run[Any]:
        if unknown:
            raise TypeError(
                f"a run has no option {next(iter(unknown))!r}; it takes {', '.join(RunOptions.__annotations__)}, "
                "and Agent(...) takes what holds for all runs"
            )
        if not isinstance(task, str | Message):
            raise TypeError(f"a task is text or a Message, got {task!r}")
        listed = isinstance(messages, Iterable)
        given: list[Any] = list(messages) if listed else [messages]
        if odd := [message for message in given if not (listed and isinstance(message, Message))]:
            raise TypeError(
                "messages are Message objects, as in outcome.messages or [Message.user('Hi')]; "
                f"saved ones come back by messages_from_json; got {odd[0]!r:.80}"
            )
        return Run(self._settings_for(output), task, given, deps, transcript, within)

    @overload
    async def run(
        self, task: str | Message, *, output: None = None, **options: Unpack[RunOptions[Deps]]
    ) -> Outcome[Out]: ...
    @overload
    async def run(
        self, task: str | Message, *, output: OutputSpec[Other], **options: Unpack[RunOptions[Deps]]
    ) -> Outcome[Other]: ...
    async def run(
        self, task: str | Message, *, output: Any = None, **options: Unpack[RunOptions[Deps]]
    ) -> Any:
        """Work on a task until it ends; `messages=` continues an earlier outcome's transcript.

        `output` is what this run answers with, in place of the agent's own.
        """
        return await self._run_of(task, output, **options)

    @overload
    def run_sync(
        self, task: str | Message, *, output: None = None, **options: Unpack[RunOptions[Deps]]
    ) -> Outcome[Out]: ...
    @overload
    def run_sync(
        self, task: str | Message, *, output: OutputSpec[Other], **options: Unpack[RunOptions[Deps]]
    ) -> Outcome[Other]: ...
    def run_sync(
        self, task: str | Message, *, output: Any = None, **options: Unpack[RunOptions[Deps]]
    ) -> Any:
        """`run`, for code without an event loop; RuntimeError where one is running."""
        return self.toolbox.run_sync(self.run(task, output=output, **options))

    def resume(
        self,
        saved: Outcome[Any] | Mapping[str, Any],
        answers: Answers,
        *,
        output: OutputSpec[Any] | None = None,
        deps: Deps | None = None,
        transcript: TranscriptFile | None = None,
    ) -> Run[Out]:
        """Go on at once with a run that waits: `await` it for its Outcome, or iterate over it for its events.

        `saved` is what `outcome.to_json()` gave, perhaps in another process; `answers` are by `question.id`. The policy
        decides again on each call. Where answers are missing, the run waits again for the rest. ValueError for an
        answer to a question that does not wait (any more), and for what is no saved run; RuntimeError where the run
        goes on already in this process. A run that was begun with an `output` of its own is given it again.
        """
        if not self._settings.suspends:
            raise TypeError("only an agent with on_question='suspend' resumes runs")
        going = SavedRun.resumed(saved, answers)
        settings = self._settings_for(output)
        if settings.toolbox.suspensions.of(going.run) is not None:
            raise RuntimeError(f"the run {going.run} goes on already")
        run: Run[Out] = Run(settings, "", (), deps, transcript, saved=going)
        run.begin()
        settings.toolbox.suspensions.begin(run.id, going.suspension)
        return run

    def resume_sync(
        self,
        saved: Outcome[Any] | Mapping[str, Any],
        answers: Answers,
        *,
        output: OutputSpec[Any] | None = None,
        deps: Deps | None = None,
        transcript: TranscriptFile | None = None,
    ) -> Outcome[Out]:
        """`resume`, for code without an event loop; RuntimeError where one is running."""

        async def outcome() -> Outcome[Out]:
            return await self.resume(saved, answers, output=output, deps=deps, transcript=transcript)

        return self.toolbox.run_sync(outcome())

    async def stream(
        self,
        task: str | Message,
        *,
        output: OutputSpec[Any] | None = None,
        **options: Unpack[RunOptions[Deps]],
    ) -> AsyncIterator[Event]:
        """The events of a run as they happen, RunFinished last. Leaving the loop cancels the run."""
        run: Run[Any] = self.start(task, output=output, **options)
        try:
            events = run.events()
            while batch := await events.more():
                while batch:
                    yield batch.popleft()
        finally:
            run.cancel()
            await run

    async def stream_text(
        self, task: str | Message, **options: Unpack[RunOptions[Deps]]
    ) -> AsyncIterator[str]:
        """The text that the model writes for the user, in pieces. Leaving the loop cancels the run.

        NotFinished, with the outcome, where the run ends before its task is done. To have the outcome of every run,
        iterate over `start(...).stream_text()` and await that run.
        """
        run = self.start(task, **options)
        try:
            async for piece in run.stream_text():
                yield piece
            outcome = await run
            if not outcome.finished:
                raise NotFinished(outcome)
        finally:
            run.cancel()
            await run


def _right_option(wrong: str) -> str:
    """The option that is meant by a wrong one, or where the options are listed."""
    from difflib import get_close_matches

    known = [*(Agent.__init__.__kwdefaults__ or ()), *(Toolbox.__init__.__kwdefaults__ or ())]
    for near in get_close_matches(wrong.strip("'"), known, 1, 0.7):
        return f"do you mean {near!r}?"
    return (
        "the page Agents of the documentation lists the options, "
        "and the page Migrating says what the words of other libraries are here"
    )
