"""Harmony, the format of gpt-oss: messages in channels, a call being a message to `functions.NAME`.

https://cookbook.openai.com/articles/openai-harmony. It is a grammar of its own because a header before each
message says what the message is. A server may have removed the special tokens at either end of an answer. A
server that removed all of them leaves `analysis...assistantfinal...`, in which calls cannot be told from text:
all of it is thinking or text.
"""

from __future__ import annotations

import re
from typing import Final

from toolcrib.codecs.text.after_failures import report_unclear
from toolcrib.codecs.text.answer import CUT_OFF, AnswerBuilder
from toolcrib.codecs.text.call_objects import NO_JSON, NO_NAME
from toolcrib.codecs.text.form import Form, Tools
from toolcrib.codecs.text.scanner import Markers, Scanner, Steps
from toolcrib.dataclass import dataclass

__all__ = ["WORDS", "read"]

START, END, MESSAGE = "<|start|>", "<|end|>", "<|message|>"
CHANNEL, CONSTRAIN, CALL, RETURN = "<|channel|>", "<|constrain|>", "<|call|>", "<|return|>"
WORDS: Final = (START, END, MESSAGE, CHANNEL, CONSTRAIN, CALL, RETURN)
_TOKENS: Final = Markers(WORDS)
_CONTENT_ENDS: Final = (START, END, CHANNEL, CALL, RETURN)
_ENDS: Final = Markers(_CONTENT_ENDS)
_WORD = re.compile(r"[a-z]+")
_IN_HEADER = re.compile(r"[^<\n]+")
_RECIPIENT = re.compile(r"\bto=([^\s<]+)")
_SWALLOWED = re.compile(r"<\|channel\|>\w* to=functions\.([\w.-]+)")
_CHANNEL = re.compile(r"(?:<\|channel\|>\s*|^\s*)([a-z]+)")
_PEOPLE: Final = frozenset({"assistant", "user", "all"})
_HEADER_WORDS: Final = frozenset({"assistant", "analysis", "commentary", "final", "to"})
_STRIPPED: Final = "analysis"  # how an answer begins that lost its special tokens, and how it goes on:
_NEXT: Final = {"assistantfinal": False, "assistantcommentary": False, "assistantanalysis": True}


@dataclass(frozen=True, slots=True)
class _Header:
    """The header of a message: its channel, and whether it calls a tool, and which."""

    channel: str
    tool: str
    calls: bool


def _header(text: str) -> _Header:
    to = _RECIPIENT.search(text)
    channels = _CHANNEL.findall(text)
    name = to[1] if to and to[1] not in _PEOPLE else ""
    return _Header(channels[-1] if channels else "", name.removeprefix("functions."), bool(name))


def read(_form: Form, scan: Scanner, answer: AnswerBuilder, _tools: Tools) -> Steps[None]:
    """Reads an answer to its end."""
    if answer.in_thinking:
        answer.in_thinking = False
        header, marker = (
            list[str](),
            (yield from _content(scan, answer, _Header("analysis", "", calls=False))),
        )
    else:
        header, marker = yield from _beginning(scan, answer)
    while marker is not None:
        if marker == MESSAGE:
            marker = yield from _content(scan, answer, _header("".join(header)))
            header = []
        elif marker in (CHANNEL, CONSTRAIN):
            header.append(marker)
            marker = yield from scan.until(_TOKENS, header.append)
        else:  # between messages: a header begins
            header = []
            marker = yield from scan.until(_TOKENS, header.append)
    text = "".join(header)
    if tool := _header(text).tool:
        answer.fail_call(CUT_OFF, tool)
    elif CHANNEL not in text and text.strip() not in _HEADER_WORDS:
        answer.text(text)


def _content(scan: Scanner, answer: AnswerBuilder, header: _Header) -> Steps[str | None]:
    """Reads one message behind its header; gives the token that ends it."""
    if not header.calls:
        thinks = header.channel == "analysis"
        marker = yield from scan.until(_ENDS, answer.reasoning if thinks else answer.text)
        if thinks:
            answer.end_reasoning()
        return marker
    answer.open_call(header.tool)
    begun = scan.offset
    yield from scan.skip_space()
    is_json = (yield from scan.peek()) == "{"
    whole = is_json and (yield from scan.json_value(answer.arguments, _CONTENT_ENDS))
    yield from scan.skip_space()
    rest: list[str] = []
    marker = yield from scan.until(_ENDS, rest.append)
    answer.arguments("".join(rest))
    if marker is None and (rest or not whole):
        answer.fail_call(CUT_OFF)
    elif not header.tool:
        answer.fail_call(NO_NAME)
    elif not whole and (is_json or rest):
        answer.fail_call(NO_JSON)
    answer.close_call()
    report_unclear(answer, _SWALLOWED.findall(scan.since(begun)) if not whole else ())
    return marker


def _beginning(scan: Scanner, answer: AnswerBuilder) -> Steps[tuple[list[str], str | None]]:
    """Reads up to the first token: gives the header that it ends, if it is one, and the token."""
    pieces: list[str] = []
    yield from scan.skip_space(pieces.append)
    yield from scan.take_while(_WORD, pieces.append)
    first = "".join(pieces).strip()
    if first == _STRIPPED:
        found = yield from scan.until(Markers((*WORDS, *_NEXT)), pieces.append)
        if found in _NEXT:
            answer.reasoning("".join(pieces).strip().removeprefix(_STRIPPED))
            yield from _stripped(scan, answer, found)
            return [], None
        if found is not None:
            return pieces, found
    elif first in _HEADER_WORDS or not first:
        yield from scan.take_while(_IN_HEADER, pieces.append)
        if found := (yield from scan.accept(_TOKENS)):
            return pieces, found
    answer.text("".join(pieces))
    return [], (yield from scan.until(_TOKENS, answer.text))


def _stripped(scan: Scanner, answer: AnswerBuilder, found: str | None) -> Steps[None]:
    """Reads the rest of an answer without special tokens, behind the word that begins the next message."""
    known = Markers(_NEXT)
    while found is not None:
        answer.end_reasoning()
        found = yield from scan.until(known, answer.reasoning if _NEXT[found] else answer.text)
