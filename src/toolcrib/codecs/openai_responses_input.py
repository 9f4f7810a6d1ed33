"""OpenAI Responses: writes a conversation as input items."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from toolcrib.call import ToolCall
from toolcrib.codecs.openai_responses_answer import CALLS, kept_by
from toolcrib.codecs.openai_responses_native import NATIVE, output_of
from toolcrib.codecs.pairing import EMPTY_TURN, Answered, ConversationStep
from toolcrib.codecs.wire_json import (
    STANDARD,
    arguments_object,
    as_dict,
    as_list,
    as_str,
    compact,
    own_extras,
    own_item,
)
from toolcrib.content import File, Image, Json, Media, Text
from toolcrib.messages import Message, MessagePart, Opaque, Reasoning, ResultPart

OUTPUTS = {kind: f"{kind}_output" for kind in CALLS}
# What a result repeats of its call, so that it finds its way back to the code that made the call.
REPEATED = ("caller", "namespace")
EMPTY_ITEM: dict[str, Any] = {"role": "user", "content": EMPTY_TURN}
ENDINGS = {"application/pdf": ".pdf", "text/plain": ".txt", "text/markdown": ".md", "text/csv": ".csv"}


def leading_instructions(messages: list[Message], provider: str) -> tuple[str, list[Message]]:
    """Splits off the system texts at the start of a conversation, which go into the `instructions` field;
    returns them and the other messages.
    """
    texts: list[str] = []
    for message in messages:
        spoken = [part for part in message.parts if isinstance(part, Text | Json)]
        plain = len(spoken) == len(message.parts) and not any(part.extras.get(provider) for part in spoken)
        if message.role != "system" or not plain or own_extras(message, provider):
            break
        texts.append("\n".join(part.as_text() for part in spoken))
    return "\n\n".join(text for text in texts if text), messages[len(texts) :]


def with_results_of_before(messages: list[Message], provider: str) -> list[Message]:
    """Continues from an answer that the server stored: its calls are not in the conversation, so results are
    sent without them.
    """
    calls = [call for message in messages for call in message.calls]
    here, ids = {id(call) for call in calls}, {call.id for call in calls}

    def is_of_before(call: ToolCall) -> bool:
        return id(call) not in here and call.id != "" and call.id not in ids

    whole: list[Message] = []
    for message in messages:
        bare: list[MessagePart] = []
        rest: list[MessagePart] = []
        for part in message.parts:
            if isinstance(part, ResultPart) and is_of_before(part.call):
                answer = Answered(part.call, part.call.id, part.result)
                bare.append(Opaque(provider, InputWriter(provider, {}).result(answer)))
            else:
                rest.append(part)
        if bare:
            whole.append(Message("user", bare))
        if rest or not bare:
            whole.append(Message(message.role, rest, message.extras) if bare else message)
    return whole


class InputWriter:
    """Neutral messages to input items.

    `wire` lacks reasoning items that no other item of the model follows: the API refuses them. Without `stored`,
    nothing is sent that the server would have to look up: no ids of items, and no reasoning whose content only the
    server had.
    """

    def __init__(self, provider: str, names: dict[str, str], *, stored: bool = True) -> None:
        self._provider = provider
        self._key = kept_by(provider)
        self._names = names
        self._stored = stored
        self.wire: list[dict[str, Any]] = []
        self._thoughts: list[dict[str, Any]] = []  # reasoning items that nothing has followed yet
        self._used: set[str] = set()  # ids of items

    def add(self, step: ConversationStep) -> None:
        if step.message.role == "assistant":
            items = [*self._assistant(step), *(self.result(answer) for answer in step.answers)]
        else:
            items = self._given(step.message, step.parts)
        for item in items:
            self._append(item)

    def _append(self, item: dict[str, Any]) -> None:
        """Add an item. The API refuses an id that is used again, as in a conversation where an answer stands twice."""
        id = as_str(item.get("id"))
        if id in self._used:
            blocks = [as_dict(block) for block in as_list(item.get("content"))]
            says_nothing = item.get("type") == "message" and not any(
                block.get("text", True) for block in blocks
            )
            if says_nothing or item.get("type") not in ("message", *OUTPUTS):  # known by its id alone
                return
            item = {name: value for name, value in item.items() if name not in ("id", "status")}
        if id:
            self._used.add(id)
        if item.get("type") == "reasoning":
            self._thoughts.append(item)
            return
        is_models = item.get("role", "assistant") == "assistant" and item.get("type") not in OUTPUTS.values()
        self.wire += [*(self._thoughts if is_models else ()), item]
        self._thoughts = []

    def result(self, answer: Answered) -> dict[str, Any]:
        """The item that answers a call."""
        kept = own_extras(answer.call, self._key)
        repeated = {name: kept[name] for name in REPEATED if kept.get(name) is not None}
        parts = answer.result.parts
        blocks = self._blocks(parts)
        plain = all(block.keys() == {"type", "text"} for block in blocks)
        kind = self._kind(answer.call)
        return {
            "type": OUTPUTS[kind],
            "call_id": answer.id,
            **(
                output_of(answer.text, is_error=answer.is_error)
                if kind in NATIVE
                else {"output": answer.text if plain else blocks}
            ),
            **repeated,
            **own_extras(answer.result, self._provider),
        }

    def _given(self, message: Message, parts: Sequence[MessagePart]) -> list[dict[str, Any]]:
        """A user or system message; this provider's own items keep their place in it."""
        items: list[dict[str, Any]] = []
        waiting: list[MessagePart] = []

        def say() -> None:
            blocks = self._blocks(waiting)
            if blocks:
                plain = all(block.keys() == {"type", "text"} for block in blocks)
                content = "\n".join(block["text"] for block in blocks) if plain else blocks
                role = "system" if message.role == "system" else "user"
                items.append({"role": role, "content": content, **own_extras(message, self._provider)})
            waiting.clear()

        for part in parts:
            item = own_item(part, self._provider)
            if item is not None and not as_str(item.get("type")).startswith("input_"):
                say()
                items.append(item)
            else:
                waiting.append(part)
        say()
        return items

    def _blocks(self, parts: Iterable[Any]) -> list[dict[str, Any]]:
        blocks: list[dict[str, Any]] = []
        for part in parts:
            if (item := own_item(part, self._provider)) is not None:
                blocks.append(item)
            elif isinstance(part, Text | Json | Media):
                own = own_extras(part, self._provider)
                block = _media_block(part, own) if isinstance(part, Media) else None
                block = block or {"type": "input_text", "text": part.as_text()}
                if block["type"] != "input_text" or block["text"]:
                    blocks.append({**block, **own})
        return blocks

    def _assistant(self, step: ConversationStep) -> list[dict[str, Any]]:
        items: list[dict[str, Any]] = []
        answers = iter(step.answers)
        texts: list[Text] = []
        about: Any = None
        for part in step.parts:
            if isinstance(part, Text | Json | Media) and not self._made(part):
                text = part if isinstance(part, Text) else Text(part.as_text())
                message = own_extras(text, self._key).get("message")
                if texts and message != about:
                    items.extend(self._said(texts, about))
                    texts = []
                about = message
                texts.append(text)
                continue
            items.extend(self._said(texts, about))
            texts = []
            if isinstance(part, ToolCall):
                items.append(self._call(next(answers)))
            elif item := self._verbatim(part):
                items.append(item)
        items.extend(self._said(texts, about))
        return items

    def _said(self, texts: list[Text], about: Any) -> list[dict[str, Any]]:
        """One assistant message; verbatim when it came from this provider."""
        about = as_dict(about)
        # A message that came from here and says nothing may be what has to follow the thinking before it.
        if not any(text.text or own_extras(text, self._key) for text in texts):
            return []
        blocks = [self._said_block(text) for text in texts]
        if self._stored and about.get("id"):
            return [{"type": "message", "role": "assistant", **about, "content": blocks}]
        # Servers that check their input take a message without an id as plain text alone.
        bare = all(
            block == {"type": "output_text", "text": block.get("text"), "annotations": []} for block in blocks
        )
        content = "\n".join(text.text for text in texts) if bare else blocks
        phase = {"phase": about["phase"]} if about.get("phase") else {}
        return [{"role": "assistant", "content": content, **phase}]

    def _said_block(self, text: Text) -> dict[str, Any]:
        kept = own_extras(text, self._key)
        if isinstance(kept.get("block"), dict):
            return as_dict(kept["block"])
        rest = {name: value for name, value in kept.items() if name != "message"}
        return {"type": "output_text", "text": text.text, "annotations": [], **rest}

    def _call(self, answer: Answered) -> dict[str, Any]:
        call = answer.call
        kind = self._kind(call)
        kept = own_extras(call, self._key)
        own = {name: value for name, value in kept.items() if self._stored or name not in ("id", "status")}
        if kind in NATIVE:
            return {**own, "type": kind, "call_id": answer.id, "status": "completed"}
        return {
            **own,
            "type": kind,
            "call_id": answer.id,
            "name": self._names.get(call.name, call.name),
            CALLS[kind]: _sendable(call, kind),
        }

    def _kind(self, call: ToolCall) -> str:
        """The kind of a call. A call whose input is free text is recognised by the extras of this format or of
        Chat Completions.
        """
        kind = as_str(own_extras(call, self._key).get("type"))
        if kind in CALLS:
            return kind
        custom = own_extras(call, self._provider).get("type") == "custom"
        return "custom_tool_call" if custom else "function_call"

    def _verbatim(self, part: MessagePart) -> dict[str, Any] | None:
        if isinstance(part, Opaque):
            return own_item(part, self._provider)
        if isinstance(part, Reasoning):
            return self._thought(part)
        return self._made(part)

    def _thought(self, part: Reasoning) -> dict[str, Any] | None:
        """A reasoning item as it came; None where the server can no longer look it up."""
        item = own_extras(part, self._key)
        bare = not item.get("encrypted_content") and not as_list(item.get("content"))
        return None if not item or (bare and not self._stored) else item

    def _made(self, part: Any) -> dict[str, Any] | None:
        """The item of an image that this provider's model generated."""
        item = own_extras(part, self._key).get("item") if isinstance(part, Image) else None
        return {**item, "result": part.data or part.url} if isinstance(item, dict) else None


def _sendable(call: ToolCall, kind: str) -> str:
    """Arguments as text; several servers fail on arguments of a function that are not JSON."""
    if isinstance(call.arguments, str) and (kind != "function_call" or _is_json(call.arguments)):
        return call.arguments
    return compact(arguments_object(call.arguments))


def _is_json(text: str) -> bool:
    try:
        STANDARD.decode(text)
    except (ValueError, RecursionError):
        return False
    return True


def _media_block(part: Media, own: dict[str, Any]) -> dict[str, Any] | None:
    """The media block, or a reference to a stored file by `file_id`; None where the format can carry neither."""
    address = part.url or (f"data:{part.media_type};base64,{part.data}" if part.data else "")
    if isinstance(part, Image):
        if own.get("file_id"):
            return {"type": "input_image"}
        return {"type": "input_image", "image_url": address} if address else None
    if not isinstance(part, File):
        return None
    if own.get("file_id"):
        return {"type": "input_file"}
    if part.data:
        name = part.name or f"file{ENDINGS.get(part.media_type, '')}"
        return {
            "type": "input_file",
            "filename": name,
            "file_data": f"data:{part.media_type};base64,{part.data}",
        }
    return {"type": "input_file", "file_url": part.url} if part.url else None
