"""OpenAI Responses: reads streamed answers, from OpenAI and from every server that speaks the format.

Two items are distinguished by id and by output index: behind some proxies the ids change from event to event,
behind others every index is 0. Texts and arguments may come in pieces, only in the event that ends them, only
in the finished item, or only in the last event; each of these events hands out what the earlier ones did not.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

from toolcrib.codecs.codec import ModelError
from toolcrib.codecs.concatenated_calls import StreamedArguments
from toolcrib.codecs.openai_chat_answer import read_error
from toolcrib.codecs.openai_responses_answer import (
    CALLS,
    TEXTS,
    failure,
    kind_of,
    texts_of,
    to_response,
)
from toolcrib.codecs.openai_responses_native import NATIVE, call_name
from toolcrib.codecs.pairing import known_id
from toolcrib.codecs.sse import DONE
from toolcrib.codecs.wire_json import as_dict, as_index, as_list, as_str, compact, dicts, joined
from toolcrib.messages import CallChunk, Chunk, ReasoningChunk, Response, TextChunk

Place = tuple[str, int]  # which of an item's texts: its kind and its position, or a call's arguments

# Events that bring a piece of a text: the kind of text, of its item, and the field that counts its position.
DELTAS = {
    "response.output_text": ("output_text", "message", "content_index"),
    "response.refusal": ("refusal", "message", "content_index"),
    "response.reasoning_summary_text": ("summary_text", "reasoning", "summary_index"),
    "response.reasoning_text": ("reasoning_text", "reasoning", "content_index"),
    "response.function_call_arguments": ("arguments", "function_call", ""),
    "response.custom_tool_call_input": ("input", "custom_tool_call", ""),
}
# The field of the whole text in the event that ends it.
WHOLES = {"refusal": "refusal", "arguments": "arguments", "input": "input"}
# Fields of a call's first item that its finished item takes over, where a server leaves them out there.
IDENTITY = ("name", "call_id")
# Statuses that careless servers still give an answer in the event that ends it.
UNTOLD = ("queued", "in_progress")
SPOKEN = frozenset({"output_text", "refusal"})


class _Slot:
    """One output item that is still streaming."""

    __slots__ = (
        "arguments",
        "done",
        "ended",
        "glued",
        "index",
        "item",
        "kind",
        "lengths",
        "number",
        "pieces",
    )

    def __init__(self, item: dict[str, Any], kind: str, index: int) -> None:
        self.item = item
        self.kind = kind
        self.index = index
        self.number = -1  # the number of a call, once it is announced
        self.done = False
        self.glued = False  # to the call before it, and no item of the server's
        self.arguments = StreamedArguments()
        self.arguments.plain = kind != "function_call"
        self.pieces: dict[Place, list[str]] = {}
        self.lengths: dict[Place, int] = {}
        self.ended: set[Place] = set()  # places whose whole text came in an event of its own

    def grow(self, place: Place, piece: str) -> None:
        self.pieces.setdefault(place, []).append(piece)
        self.lengths[place] = self.lengths.get(place, 0) + len(piece)

    def rest(self, place: Place, text: str) -> str:
        """The rest of a whole text after the pieces that came; "" where the whole text differs from the pieces."""
        if len(text) <= self.lengths.get(place, 0):
            return ""
        came = "".join(self.pieces.get(place, ()))
        return text[len(came) :] if text.startswith(came) else ""

    def came_at(self, place: Place, text: str) -> Place:
        """The place whose streamed pieces are the beginning of a whole text; servers may number the two differently."""
        if place in self.pieces:
            return place
        return next((other for other in self._open(place[0]) if self._begins(other, text)), place)

    def recount(self) -> None:
        """Moves streamed pieces to the positions that their texts have in the finished item.

        gpt-oss on Bedrock counts its reasoning among the positions of a message's texts while they stream, and
        not in the finished message.
        """
        texts = dict(self.texts())
        free = [place for place in texts if place not in self.pieces]
        lost = [place for place in sorted(self.pieces) if not self._begins(place, texts.get(place, ""))]
        for certain in (True, False):
            for place in [*lost]:
                kin = (other for other in free if other[0] == place[0])
                fits = next((to for to in kin if not certain or self._begins(place, texts[to])), None)
                if fits is not None and (certain or place not in texts):
                    free.remove(fits)
                    lost.remove(place)
                    self.pieces[fits] = self.pieces.pop(place)
                    self.lengths[fits] = self.lengths.pop(place)

    def _open(self, kind: str) -> list[Place]:
        return [place for place in self.pieces if place[0] == kind and place not in self.ended]

    def _begins(self, place: Place, text: str) -> bool:
        return self.lengths[place] <= len(text) and text.startswith("".join(self.pieces[place]))

    def texts(self) -> list[tuple[Place, str]]:
        """The texts of the item so far."""
        if self.kind not in CALLS:
            return texts_of(self.item)
        field = CALLS[self.kind]
        if self.kind in NATIVE:  # what it asks for is read as a text once it is whole
            return [((field, 0), NATIVE[self.kind].text(self.item) if self.done else "")]
        value = self.item.get(field)
        text = value if isinstance(value, str) else compact(value) if value is not None else ""
        return [((field, 0), text)]

    def whole(self) -> dict[str, Any]:
        """The finished item; where it has no text of its own, the streamed pieces are filled in."""
        item, blocks = dict(self.item), dict[str, list[Any]]()
        for place in sorted(self.pieces):
            (kind, index), text = place, joined(self.pieces[place])
            if kind in CALLS.values():
                given = item.get(kind)
                item[kind] = given if given and isinstance(given, str | dict) else text
                continue
            holder, field = TEXTS[kind]
            if holder not in blocks:
                item[holder] = blocks[holder] = list(as_list(item.get(holder)))
            found = blocks[holder]
            if not 0 <= index < len(found):
                found.append({"type": kind, field: text})
            elif not as_str(as_dict(found[index]).get(field)):
                found[index] = {"type": kind, **as_dict(found[index]), field: text}
        return item


class ResponsesDecoder:
    """Events of a Responses stream in, neutral chunks out."""

    def __init__(self, provider: str = "openai", names: dict[str, str] | None = None) -> None:
        self._provider = provider
        self._names = names or {}
        self._body: dict[str, Any] = {}
        self._slots: list[_Slot] = []
        self._by_index: dict[int, _Slot] = {}
        self._by_id: dict[str, _Slot] = {}
        self._by_call: dict[str, _Slot] = {}
        self._calls: list[_Slot] = []
        self.complete = False

    def feed(self, event: dict[str, Any]) -> list[Chunk]:
        """Reads one event and returns its chunks; raises ModelError for an error event."""
        kind = as_str(event.get("type"))
        if event.get(DONE):
            return self._end_mark()
        if not kind and event.get("object") == "response":  # a whole answer, as one event
            return self._last({"response": event})
        if kind == "error" or (event.get("error") and not kind):
            raise self._broken(read_error(event))
        name, _, step = kind.rpartition(".")
        if name in DELTAS and step in ("delta", "done"):
            return self._text(event, name, step)
        handle = _EVENTS.get(kind)
        return handle(self, event) if handle is not None else []  # progress, and kinds yet to be invented

    def finish(self) -> Response:
        """The whole answer."""
        if not self.complete:
            early = ModelError("the stream ended before the answer was complete", retryable=True)
            raise self._broken(early)
        if not self._body and not self._slots:
            raise ModelError("the stream held no answer", retryable=True)
        return self._response()

    def _end_mark(self) -> list[Chunk]:
        """Handles the end mark `[DONE]`: servers that send it may omit the final event."""
        if not self.complete and self._slots and all(slot.done for slot in self._slots):
            self.complete = True
            self._body = {**self._body, "status": ""}
        return []

    def _begin(self, event: dict[str, Any]) -> list[Chunk]:
        body = as_dict(event.get("response"))
        before, id = as_str(self._body.get("id")), as_str(body.get("id"))
        if before and id and before != id and event.get("type") == "response.created":
            raise self._broken(ModelError("the stream holds the beginnings of two answers", retryable=True))
        self._body = {**self._body, **body}
        return []

    def _added(self, event: dict[str, Any]) -> list[Chunk]:
        item, index = as_dict(event.get("item")), as_index(event.get("output_index"))
        known = self._by_id.get(as_str(item.get("id")))
        if known is not None and not known.done and known.kind == kind_of(item) and known.index == index:
            return []
        return self._announce(self._open(item, kind_of(item), index))

    def _done(self, event: dict[str, Any]) -> list[Chunk]:
        item, index = as_dict(event.get("item")), as_index(event.get("output_index"))
        slot = self._match(item, index)
        if slot is not None and slot.done:
            if _repeats(slot, item):
                return []
            slot = None
        return self._settle(slot or self._open(item, kind_of(item), index), item)

    def _text(self, event: dict[str, Any], name: str, step: str) -> list[Chunk]:
        text, kind, counter = DELTAS[name]
        id, index = as_str(event.get("item_id")), as_index(event.get("output_index"))
        slot = self._find(kind, id, index) or self._open({"type": kind, "id": id}, kind, index)
        place = (text, (as_index(event.get(counter)) or 0) if counter else 0)
        if slot.done or place in slot.ended:
            return []
        if step == "done":
            whole = as_str(event.get(WHOLES.get(text, "text")))
            place = slot.came_at(place, whole)
            if whole:
                slot.ended.add(place)
            return self._piece(slot, place, slot.rest(place, whole))
        return self._piece(slot, place, as_str(event.get("delta")))

    def _piece(self, slot: _Slot, place: Place, piece: str) -> list[Chunk]:
        if not piece:
            return []
        slot.grow(place, piece)
        if slot.kind in CALLS:
            shown = slot.arguments.add(piece)
            # A call whose name is not known yet is told of once it is.
            return [CallChunk(slot.number, arguments=shown)] if shown and slot.number >= 0 else []
        return [TextChunk(piece) if place[0] in SPOKEN else ReasoningChunk(piece)]

    def _open(self, item: dict[str, Any], kind: str, index: int | None) -> _Slot:
        last = self._slots[-1].index if self._slots else -1
        slot = _Slot(item, kind, last + 1 if index is None else index)
        self._slots.append(slot)
        self._by_index[slot.index] = slot
        self._register(slot)
        return slot

    def _register(self, slot: _Slot) -> None:
        if id := as_str(slot.item.get("id")):
            self._by_id[id] = slot
        if slot.kind in CALLS and (id := known_id(slot.item.get("call_id"))):
            self._by_call[id] = slot

    def _announce(self, slot: _Slot) -> list[Chunk]:
        """The first chunk of a call, once its name is known."""
        name = call_name(slot.item)
        if slot.kind not in CALLS or slot.number >= 0 or not (name or slot.done):
            return []
        slot.number = len(self._calls)
        self._calls.append(slot)
        came = "".join(slot.arguments.pieces)
        return [CallChunk(slot.number, self._names.get(name, name), known_id(slot.item.get("call_id")), came)]

    def _settle(self, slot: _Slot, item: dict[str, Any]) -> list[Chunk]:
        """Takes a finished item and hands out the text that its pieces did not contain."""
        begun = {name: slot.item[name] for name in IDENTITY if as_str(slot.item.get(name))}
        known = {name: value for name, value in begun.items() if not as_str(item.get(name))}
        slot.item = {**item, **known} if slot.kind in CALLS else item
        slot.done = True
        slot.recount()
        self._register(slot)
        chunks = self._announce(slot)
        for place, text in slot.texts():
            chunks.extend(self._piece(slot, place, slot.rest(place, text)))
        return [*chunks, *self._apart(slot)] if slot.kind in CALLS else chunks

    def _apart(self, slot: _Slot) -> list[Chunk]:
        """Ends a call. Arguments that hold several objects become several calls."""
        rest, others = slot.arguments.settle(final=True)
        chunks: list[Chunk] = [CallChunk(slot.number, arguments=rest)] if rest else []
        chunks.append(CallChunk(slot.number, done=True))
        if others:
            slot.item = {**slot.item, CALLS[slot.kind]: slot.arguments.text}
        for arguments in others:
            item = {"type": slot.kind, "name": slot.item.get("name"), CALLS[slot.kind]: arguments}
            other = _Slot(item, slot.kind, slot.index)
            other.glued = other.done = True
            other.arguments.add(arguments)
            self._slots.append(other)
            chunks += [*self._announce(other), CallChunk(other.number, done=True)]
        return chunks

    def _settle_all(self) -> list[Chunk]:
        waiting = [slot for slot in self._slots if not slot.done]
        return [chunk for slot in waiting for chunk in self._settle(slot, slot.item)]

    def _last(self, event: dict[str, Any]) -> list[Chunk]:
        """Takes the final event, which repeats the whole answer, and hands out everything that earlier events
        did not contain.
        """
        body = as_dict(event.get("response"))
        if event.get("type") and body.get("status") in UNTOLD:
            body = {**body, "status": ""}
        self._body = {**self._body, **body}
        if (error := failure(body)) is not None:
            raise self._broken(error)
        self.complete = True
        items = dicts(body.get("output"))
        # If no id and no index tells items apart, their number decides, so that no streamed item is added again.
        missing = Counter(map(kind_of, items))
        missing.subtract(slot.kind for slot in self._slots if not slot.glued)
        chunks: list[Chunk] = []
        for index, item in enumerate(items):
            slot = self._match(item, index)
            if slot is None and missing[kind_of(item)] > 0:
                missing[kind_of(item)] -= 1
                slot = self._open(item, kind_of(item), index)
            if slot is not None and not slot.done:
                chunks.extend(self._settle(slot, item))
        return chunks + self._settle_all()

    def _failed(self, event: dict[str, Any]) -> list[Chunk]:
        body = as_dict(event.get("response"))
        self._body = {**self._body, **body}
        status = as_str(event.get("type")).rpartition(".")[2]
        raise self._broken(failure({"status": status, **body}) or ModelError(f"the response is {status}"))

    def _match(self, item: dict[str, Any], index: int | None) -> _Slot | None:
        """The slot of a finished item, whose ids may differ from those it started with."""
        kind = kind_of(item)
        if (
            kind in CALLS
            and (slot := self._by_call.get(known_id(item.get("call_id")))) is not None
            and slot.kind == kind
        ):
            return slot
        slot = self._find(kind, as_str(item.get("id")), index)
        return None if slot is not None and slot.done and not _repeats(slot, item) else slot

    def _find(self, kind: str, id: str, index: int | None) -> _Slot | None:
        by_id = self._by_id.get(id) if id else None
        by_index = self._by_index.get(index) if index is not None else None
        found = [slot for slot in (by_id, by_index) if slot is not None and slot.kind == kind]
        here = [slot for slot in found if slot.index == index]
        return next(iter([*here, *found]), None)

    def _broken(self, error: ModelError) -> ModelError:
        error.partial = self._response(broken=True)
        return error

    def _response(self, *, broken: bool = False) -> Response:
        response = to_response(
            [slot.whole() for slot in self._ordered()], self._body, self._provider, self._names
        )
        if broken:
            response.stop_reason = "other"
        return response

    def _ordered(self) -> list[_Slot]:
        """The items in output order, with calls in the order in which they were numbered."""
        ordered = sorted(self._slots, key=lambda slot: slot.index)
        calls = iter(sorted((slot for slot in ordered if slot.kind in CALLS), key=_count))
        return [next(calls) if slot.kind in CALLS else slot for slot in ordered]


def _count(slot: _Slot) -> tuple[bool, int]:
    return (slot.number < 0, slot.number)


def _repeats(slot: _Slot, item: dict[str, Any]) -> bool:
    """Whether an item may be the one in a slot, judging by their ids."""
    if slot.kind in CALLS and known_id(slot.item.get("call_id")) and known_id(item.get("call_id")):
        return known_id(slot.item.get("call_id")) == known_id(item.get("call_id"))
    ours, theirs = as_str(slot.item.get("id")), as_str(item.get("id"))
    return bool(ours) and ours == theirs


_EVENTS = {
    "response.created": ResponsesDecoder._begin,
    "response.queued": ResponsesDecoder._begin,
    "response.in_progress": ResponsesDecoder._begin,
    "response.output_item.added": ResponsesDecoder._added,
    "response.output_item.done": ResponsesDecoder._done,
    "response.completed": ResponsesDecoder._last,
    "response.incomplete": ResponsesDecoder._last,
    "response.done": ResponsesDecoder._last,
    "response.failed": ResponsesDecoder._failed,
    "response.cancelled": ResponsesDecoder._failed,
}
