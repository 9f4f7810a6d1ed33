"""Sampling: a server asks for an answer of a model. Off unless the toolset is given a model for it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from toolcrib.codecs.codec import ModelError
from toolcrib.content import Audio, File, Image, Media, Text
from toolcrib.dataclass import dataclass
from toolcrib.errors import ToolError
from toolcrib.mcp.client.elicit import CannotAsk
from toolcrib.mcp.client.running import RunningCall
from toolcrib.mcp.content import part_of
from toolcrib.messages import Message, Request
from toolcrib.visible import counted, escape_invisible, on_one_line

if TYPE_CHECKING:
    from toolcrib.models.model import Model

__all__ = ["Sampling", "sampled"]

MAX_MESSAGES = 100
MAX_SHOWN = 4_000  # characters of a server's messages that the person is shown
STOP_REASONS = {"end": "endTurn", "length": "maxTokens"}


@dataclass(frozen=True, slots=True)
class Sampling:
    """How servers may use a model.

    Attributes:
        model: The model that answers. The server does not choose it.
        max_tokens: Tokens of one answer at most, whatever the server asks for.
        max_calls: How often a server may ask within one call of a tool.
        ask: Whether the policy decides on each request, and a person where it says so. False allows all of them.
    """

    model: Model
    max_tokens: int = 1_000
    max_calls: int = 5
    ask: bool = True


async def sampled(call: RunningCall, params: Mapping[str, Any], sampling: Sampling) -> dict[str, Any]:
    """The result of a `sampling/createMessage` request, as JSON data. Raises CannotAsk where there is none.

    What it costs counts in the run's account, whose limits hold for it.
    """
    call.samples += 1
    if call.samples > sampling.max_calls:
        raise CannotAsk(
            f"the server {call.server!r} asked for more than {sampling.max_calls} answers of a model in one call"
        )
    if params.get("tools"):
        raise CannotAsk(
            f"the server {call.server!r} asked for an answer of a model with tools, which is not offered"
        )
    request = _request(params, sampling)
    if sampling.ask:
        with call.paused():
            try:
                await call.ctx.ask(
                    f"let the MCP server {call.server!r} ask the model {sampling.model.name}",
                    [f"mcp:{call.server}"],
                    details=_shown(request),
                )
            except ToolError as refusal:
                raise CannotAsk(
                    f"the server {call.server!r} may not ask a model: {refusal.message}"
                ) from None
    host = call.ctx._host
    account = None if host is None else host.account(call.ctx)
    if account is not None and (spent := account.spent()):
        raise CannotAsk(f"the server {call.server!r} may not ask a model any more: {spent}")
    with call.paused():  # the time of a model of ours is not the server's
        try:
            response = await sampling.model.respond(request)
        except ModelError as problem:
            call.ctx.note(f"MCP server {call.server!r}: the model that it asked gave no answer: {problem}")
            raise CannotAsk(f"the model that the server {call.server!r} asked gave no answer") from None
    if account is not None:
        account.add(response.usage)
    return {
        "role": "assistant",
        "content": {"type": "text", "text": response.message.text},
        "model": response.model or sampling.model.name,
        "stopReason": STOP_REASONS.get(response.stop_reason, "endTurn"),
    }


def _request(params: Mapping[str, Any], sampling: Sampling) -> Request:
    """The request of a server, with only what it may decide: messages, instructions, temperature, where to stop."""
    given = params.get("messages")
    if not isinstance(given, list) or not 0 < len(given) <= MAX_MESSAGES:
        raise CannotAsk(f"a server asked a model with other than 1 to {MAX_MESSAGES} messages")
    system = params.get("systemPrompt")
    messages = [Message.system(system)] if isinstance(system, str) and system else []
    messages += [_message(one) for one in given]
    wanted, temperature, stop = (params.get(key) for key in ("maxTokens", "temperature", "stopSequences"))
    most = wanted if type(wanted) is int and wanted > 0 else sampling.max_tokens
    return Request(
        messages,
        max_tokens=min(most, sampling.max_tokens),
        temperature=float(temperature)
        if isinstance(temperature, int | float) and 0 <= temperature <= 2
        else None,
        stop=tuple(word for word in stop if isinstance(word, str))[:4] if isinstance(stop, list) else (),
    )


def _message(given: Any) -> Message:
    role = given.get("role") if isinstance(given, Mapping) else None
    if role not in ("user", "assistant"):
        raise CannotAsk(
            "a server asked a model with a message that is neither the user's nor the assistant's"
        )
    content = given.get("content")
    parts = [part_of(block) for block in (content if isinstance(content, list) else [content])]
    if role == "assistant":
        parts = [part if isinstance(part, Text) else Text(part.as_text()) for part in parts]
    return Message(role, [part for part in parts if isinstance(part, Text | Image | Audio | File)])


def _shown(request: Request) -> str:
    """What a person is shown of a request: who says what."""
    lines = []
    for message in request.messages:
        text = "\n".join(part.as_text() for part in message.parts if isinstance(part, Text | Media))
        lines.append(f"{on_one_line(message.role)}: {text}")
    shown = escape_invisible("\n".join(lines))
    rest = len(shown) - MAX_SHOWN
    return f"{shown[:MAX_SHOWN]}\n… {counted(rest, 'more character')}" if rest > 0 else shown
