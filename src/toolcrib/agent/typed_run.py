"""The typed end of a run: how its answers are asked for and read, and how often a wrong one is sent back."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from toolcrib.agent.completion import COMPLETION, without_completion
from toolcrib.agent.completion_tool import CompletionTool, json_text
from toolcrib.agent.outcome import NO_OUTPUT
from toolcrib.agent.output_functions import WrongAnswer
from toolcrib.agent.output_ladder import Ladder, refuses_the_form
from toolcrib.call import CallKey
from toolcrib.dataclass import replace
from toolcrib.messages import Message, ToolChoice

if TYPE_CHECKING:
    from toolcrib.agent.outcome import Outcome
    from toolcrib.agent.output_ladder import LadderStep
    from toolcrib.agent.output_stream import WatchedModel
    from toolcrib.call import ToolCall
    from toolcrib.codecs.codec import ModelError
    from toolcrib.events import Event
    from toolcrib.messages import Request, Response
    from toolcrib.models.model import Model
    from toolcrib.result import ToolResult
    from toolcrib.toolbox import ToolList

__all__ = ["TypedRun"]

CALL_IT = (
    f"Nobody reads this text: the answer is what {COMPLETION} is called with. Go on with the task, "
    f"or call {COMPLETION}."
)
EMPTY = "The answer is empty. Give the whole answer."


class TypedRun:
    """What one run does for its typed answer. `output` is the value, once the run has it."""

    def __init__(
        self,
        run: str,
        tool: CompletionTool,
        model: Model,
        messages: list[Message],
        saved: Mapping[str, Any],
    ) -> None:
        self.run = run
        self._messages = messages
        tool.begin(run, self.source)
        self.tool, self.shape = tool, tool.shape
        self.wanted = tool.shape.output
        self.output: Any = NO_OUTPUT
        self.attempts = int(saved.get("attempts", 0))  # wrong answers so far
        self.tokens = int(saved.get("tokens", 0))  # of the answers that were asked for again
        self._asked_again = bool(saved.get("asked_again"))
        self._model = model
        self._ladder: Ladder | None = None
        self._stepped_down = False
        self._watched: WatchedModel | None = None
        self._at = int(saved.get("step", -1))
        self.problem = ""
        if items := saved.get("items"):
            tool.items_of(run).restore(items, self.shape.item_shape().read_item)

    def to_dict(self) -> dict[str, Any]:
        """What a run that waits has to remember, as plain JSON data."""
        items = self.tool.items_of(self.run)
        return {
            **({"items": items.to_dict()} if items.answers else {}),
            "attempts": self.attempts,
            "tokens": self.tokens,
            "asked_again": self._asked_again,
            "step": self._at,
        }

    # -- asking

    def _known_ladder(self, has_tools: bool) -> Ladder:
        if self._ladder is None:
            self._ladder = Ladder(self._model, self.shape, has_tools)
            if not 0 <= self._at < len(self._ladder.steps):
                self._at = self._ladder.first
        return self._ladder

    @property
    def step(self) -> LadderStep:
        """How the model is asked now."""
        return self._known_ladder(False).steps[self._at]

    def tools(self, tool_list: ToolList) -> ToolList:
        """The tools of a turn: attempt_completion is one of them where the answer is a call."""
        self._known_ladder(any(spec.name != COMPLETION for spec in tool_list.specs))
        if not self.step.by_call:
            return without_completion(tool_list, self.tool)
        if self.step.rung != "strict tool":
            return tool_list
        extras = {provider: {"strict": True} for provider in _providers(self._model)}
        specs = [
            replace(spec, extras={**extras, **spec.extras}) if spec.name == COMPLETION else spec
            for spec in tool_list.specs
        ]
        return replace(tool_list, specs=specs)

    def asked(self, request: Request) -> Request:
        """The request of a turn, with how the answer has to be given."""
        step = self.step
        if step.rung in ("strict tool", "forced tool") and request.tool_choice == ToolChoice():
            alone = all(spec.name == COMPLETION for spec in request.tools)
            forced = ToolChoice("required", (COMPLETION,) if alone else ())
            return replace(request, tool_choice=forced)
        if step.fields:
            extras = {provider: dict(step.fields) for provider in _providers(self._model)}
            return replace(request, extras={**request.extras, **extras})
        return request

    def instructions(self) -> str:
        """What the system prompt says of the answer's form; "" where the request itself says it."""
        return "" if self._ladder is None else self.step.prompt

    def refused(self, error: ModelError) -> str:
        """Words for the operator on the next way to ask, where the server refused this one; "" for any other error."""
        if self._ladder is None or not refuses_the_form(error):
            return ""
        before, following = self.step.rung, self._ladder.refused(self._at)
        if following is None:
            return ""
        self._at, self._stepped_down = following, True
        return f"{self._model.name} refused to be asked for a typed answer by {before!r}; asking by {self.step.rung!r}"

    def watched(self, model: Model, tell: Callable[[Event], None]) -> Model:
        """The model, wrapped so that it emits each piece of its answer as it comes."""
        from toolcrib.agent.output_stream import WatchedModel

        before = 0 if self._watched is None else self._watched.answers_begun
        self._watched = WatchedModel(model, self.shape, self.step, before + 1, tell)
        return self._watched

    def answered(self, response: Response) -> None:
        """Count the tokens of an answer that was asked for again, and remember the way that the server took."""
        if self._stepped_down and self._ladder is not None:
            self._stepped_down = False
            self._ladder.took(self._at)
        if self._asked_again:
            self.tokens += response.usage.total_tokens
            self._asked_again = False

    # -- reading

    async def read_text(self, text: str) -> str | None:
        """Read an answer without calls. None where it is the output, else what is wrong with it, for the model."""
        if self.shape.needs_call or (self.step.by_call and not text.strip()):
            return self._wrong(CALL_IT)
        if not text.strip():
            return self._wrong(EMPTY)
        try:
            self.output = await self.shape.validated(self._read(text), None)
        except WrongAnswer as wrong:
            unread = self.step.by_call and "{" not in text
            return self._wrong(CALL_IT if unread else wrong.message)
        return None

    @staticmethod
    def message(words: str) -> Message:
        """What the model is told of an answer that was text. It counts as no source of quotes."""
        return Message.of_toolcrib(words, "answer")

    def read_calls(self, turn: int, calls: Sequence[ToolCall], results: Sequence[ToolResult]) -> None:
        """Take the output from the calls of a turn, or note what was wrong with it."""
        for index, (call, result) in enumerate(zip(calls, results, strict=True)):
            if call.name != COMPLETION:
                continue
            key = CallKey(self.run, turn, index)
            if result.is_error:
                self._wrong(result.text)
            elif key in self.tool.outputs:
                self.output = self.tool.outputs.pop(key)
                return
            elif not self.shape.needs_call:  # it was given before the run waited, in another process
                self.output = self._read(
                    call.arguments if isinstance(call.arguments, str) else json_text(call.arguments)
                )
                return

    def _read(self, text: str) -> Any:
        return self.shape.read_text(text, self.tool.items_of(self.run), self.source)

    def source(self) -> str:
        """What the model was given to read so far."""
        from toolcrib.agent.quotes import source_text

        return source_text(self._messages)

    def _wrong(self, words: str) -> str:
        self.attempts += 1
        self._asked_again = True
        self.problem = words
        return words

    def ends(self, outcome: Outcome[Any]) -> None:
        """Fill in the fields of the outcome that are about the typed answer."""
        outcome._value = self.output
        outcome.item_problems = self.tool.forget(self.run).problems
        outcome.attempts = self.attempts + (self.output is not NO_OUTPUT)
        outcome.is_typed = True
        if self._ladder is not None:
            outcome.rung = self.step.rung
            outcome.guarantee, outcome.losses = self.step.guarantee, self.step.losses

    def gives_up(self) -> str:
        """Why no wrong answer is sent back any more; "" while one may be."""
        wanted = self.wanted
        if self.attempts > wanted.retries:
            times = "once" if self.attempts == 1 else f"{self.attempts} times"
            return f"the model answered {times} with what does not fit; the last time: {self.problem[:500]}"
        if wanted.retry_tokens is not None and self.attempts and self.tokens >= wanted.retry_tokens:
            return (
                f"answers that were asked for again used {self.tokens:,} of {wanted.retry_tokens:,} tokens; "
                f"the last one did not fit: {self.problem[:500]}"
            )
        return ""


def _providers(model: Any) -> list[str]:
    """The providers of a model, or of those that it falls back to."""
    several = getattr(model, "models", None)
    if several is not None:
        return [name for one in several for name in _providers(one)]
    provider = getattr(getattr(model, "codec", None), "provider", "")
    return [provider] if provider else []
