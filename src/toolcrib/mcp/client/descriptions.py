"""What is suspicious in the words that a server writes about its tools, which go to the model and could mislead it.

The table below is short and made by hand. It finds attacks that are published, and what is written like them; whoever
knows the table can write around it. So a finding only brings a person in, and no finding proves nothing: what holds
whatever the words say are the policy, the effects and the questions.

| kind | what it finds |
| --- | --- |
| `hidden` | characters that a person does not see: tags, changes of direction, runs of invisible ones |
| `tags` | markup such as `<IMPORTANT>` or `<|im_start|>`, which poses as a message of somebody else |
| `secrecy` | "do not tell the user" |
| `override` | "ignore previous instructions" |
| `files` | reading of keys, or of the configuration of other programs |
| `exfiltration` | putting the conversation, a system prompt or a file's content into an argument |
| `other tools` | what to do when other tools are used |
| `shadowing` | the name of another server's tool |
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from toolcrib.dataclass import dataclass, replace
from toolcrib.mcp.client.definitions import RemoteDefinition, visible_text
from toolcrib.visible import INVISIBLE, on_one_line

__all__ = ["Suspicion", "findings", "foreign_names", "without_invisible", "without_words"]

SHOWN = 120  # characters of an excerpt
LONGEST = 100_000  # characters of a definition that are looked at; what is longer is a finding itself
FEW = 3  # invisible characters in a row that may be an accident
ANNOTATIONS = frozenset({"title", "description", "$comment", "examples", "markdownDescription"})

_USER = r"(?:the |your |our |this |any )?(?:end.?)?(?:user|human|person|people|operator|developer)s?\b"
_NOT = (
    r"\b(?:do not|don['’]?t|never|must not|should not|shall not|without|avoid|not to)\s+(?:ever\s+|even\s+)?"
)
_TELL = (
    r"(?:tell|mention|inform|notif(?:y|ies)|reveal|disclose|show|report|say|explain|alert|warn)(?:ing|ed)?\b"
)
_SENSITIVE = (
    r"(?:id_(?:rsa|ed25519|ecdsa)\b|\.ssh\b|\.aws/|\.netrc|\.npmrc|\.pypirc|\.kube/|\.gnupg|\.cursor/|mcp\.json"
    r"|claude_desktop_config|/etc/(?:passwd|shadow)|\.env\b|private key|wallet\.dat)"
)
_SEND = r"\b(?:pass|include|put|send|provide|append|attach|add|insert|copy|fill|forward)\b[^.\n]{0,60}\b"
_WHEN = r"\b(?:before|after|when(?:ever)?|each time|every time|instead of|if)\b"
_USING = r"(?:using|calling|invoking|running|call|use|invoke)\b"
_OTHER = r"\b(?:any|all|every|each)\s+(?:of the\s+)?other\s+tools?\b"
_TABLE: dict[str, tuple[str, ...]] = {
    "tags": (
        r"<\s*/?\s*(?:important|system|instructions?|hidden|secret|critical|override|mandatory|assistant|admin)\b[^<>\n]{0,40}>",
        r"<\s*/?\s*(?:s?side.?note|note.to.(?:ai|assistant|model)|tool_(?:result|call|response))\b[^<>\n]{0,40}>",
        r"<\|[a-z_]{1,30}\|>",
        r"<<\s*/?SYS\s*>>",
        r"\[/?INST\]",
        r"(?:^|\n)\s*#{2,}\s*(?:system|assistant)\s*:",
    ),
    "secrecy": (
        rf"{_NOT}{_TELL}[^.\n]{{0,40}}?\b{_USER}",
        rf"\b(?:keep|hide|conceal)\b[^.\n]{{0,40}}\b(?:secret|hidden|from)\b[^.\n]{{0,10}}\b{_USER}",
        (
            rf"\b{_USER}\s+(?:must|should|may|shall|does|do|will)\s*(?:not|never)\s+"
            r"(?:know|see|notice|be (?:told|aware|informed))"
        ),
        r"\b(?:silently|secretly|covertly)\s+(?:call|send|read|use|run|forward|include|add|copy|upload|post)\b",
    ),
    "override": (
        (
            r"\b(?:ignore|disregard|forget|override|bypass)\b\s+(?:all\s+|any\s+|the\s+|your\s+|every\s+){0,4}"
            r"(?:previous|prior|earlier|above|preceding|other|system|safety|existing|original)\s+"
            r"(?:instruction|rule|prompt|guideline|direction|message|polic|constraint|command)"
        ),
    ),
    "files": (
        (
            r"\b(?:read|open|cat|load|access|fetch|get|send|pass|include|copy|provide|upload|look (?:at|into))\b"
            rf"[^\n]{{0,60}}{_SENSITIVE}"
        ),
    ),
    "exfiltration": (
        (
            rf"{_SEND}(?:entire|full|whole|complete|all)\s+(?:of\s+)?(?:the\s+|your\s+|our\s+|previous\s+){{0,3}}"
            r"(?:conversation|chat|context|messages|history)"
        ),
        rf"{_SEND}(?:conversation history|chat history|(?:the|your) system prompt)",
        rf"{_SEND}(?:its|their|file['’]?s?)\s+contents?\s+(?:as|in|into|to)\b",
        rf"{_SEND}names? of all (?:the )?(?:available )?tools",
    ),
    "other tools": (
        rf"{_WHEN}[^.\n]{{0,30}}\b{_USING}[^.\n]{{0,10}}{_OTHER}",
        (
            r"\b(?:changes?|affects?|modif(?:y|ies)|overrides?|replaces?|supersedes?)\b[^.\n]{0,30}\b"
            r"(?:behaviou?r|rules?|use|usage)\s+of\s+(?:the\s+)?(?:other|following)\s+tools?\b"
        ),
        (
            r"\b(?:other|previous|existing)\s+(?:\w+\s+)?tools?\s+(?:is|are|has been|have been)\s+"
            r"(?:deprecated|disabled|unsafe|broken|obsolete|no longer)"
        ),
        r"\ball\s+other\s+tools\s+(?:must|should|will|are)\b",
    ),
}
_PATTERNS = [(kind, re.compile("|".join(parts), re.IGNORECASE)) for kind, parts in _TABLE.items()]
_HIDDEN = re.compile(
    "[\U000e0000-\U000e007f\u202a-\u202e\u2066-\u2069]"  # tags, and what changes the order
    f"|(?:{INVISIBLE.pattern}){{{FEW},}}"
)
_DISTINCTIVE = re.compile(r"(?=.{6,})(?:\w+[_-]\w+|[a-z]+[A-Z]\w+)")
_WORD = re.compile(r"[\w-]+")
LONGEST_NAME = (
    128  # characters of a tool's name that are looked for in texts; the protocol allows no longer one
)
_CALLED_A_TOOL = re.compile(r"[`'\"]? tool(?![\w-])")


@dataclass(frozen=True, slots=True)
class Suspicion:
    """Something suspicious in a definition: its kind, where it stands, and the words. For a person."""

    kind: str
    place: str
    words: str

    def __str__(self) -> str:
        return (
            f"{self.kind} in its {self.place}: {self.words!r}"
            if self.words
            else f"{self.kind} in its {self.place}"
        )


def findings(
    definition: RemoteDefinition, foreign: Mapping[str, ForeignNames] | None = None
) -> list[Suspicion]:
    """What is suspicious in a tool's definition, at most one finding of each kind.

    `foreign` are the names of other servers' tools, from `foreign_names`. Linear in the definition's length.
    """
    found: dict[str, Suspicion] = {}
    length = 0
    for place, text in _texts(definition):
        length += len(text)
        if length > LONGEST:
            found.setdefault("length", Suspicion("length", place, f"more than {LONGEST:,} characters"))
            break
        for kind, words in _matches(text):
            found.setdefault(kind, Suspicion(kind, place, on_one_line(words, SHOWN)))
        if foreign and place != "name":
            for server, names in foreign.items():
                name = names.first_in(text) if server != definition.server else ""
                if name:
                    words = f"{name}, a tool of {server}"
                    found.setdefault("shadowing", Suspicion("shadowing", place, on_one_line(words, SHOWN)))
    return list(found.values())


class ForeignNames:
    """The names of one server's tools, to be found in the texts of another. Takes time for words, not for names.

    A plain word such as "search" says nothing by itself, so it counts only where the text calls it a tool.
    """

    __slots__ = ("_by_word",)

    def __init__(self) -> None:
        # By the first word in a name, then by where that word begins and how long the name is.
        self._by_word: dict[str, dict[tuple[int, int], set[str]]] = {}

    def add(self, name: str) -> None:
        word = _WORD.search(name)
        if word is not None and word.start() <= 1 and len(name) <= LONGEST_NAME:
            shapes = self._by_word.setdefault(word[0], {})
            shapes.setdefault((word.start(), len(name)), set()).add(name)

    def first_in(self, text: str) -> str:
        """The first name in a text, where no letter, digit or hyphen stands beside it; "" if there is none."""
        for word in _WORD.finditer(text):
            for (offset, length), names in self._by_word.get(word[0], {}).items():
                start, after = word.start() - offset, word.start() - offset + length
                name = text[max(start, 0) : after]
                if name not in names:
                    continue
                if _WORD.match(text, after) or (start > 0 and _WORD.match(text, start - 1)):
                    continue
                if _DISTINCTIVE.fullmatch(name) or _CALLED_A_TOOL.match(text, after):
                    return name
        return ""


def foreign_names(tools: Iterable[tuple[str, str]]) -> dict[str, ForeignNames]:
    """The names of each server's tools; `tools` are (server, tool). A name that several servers have is nobody's."""
    owners: dict[str, set[str]] = {}
    for server, tool in tools:
        owners.setdefault(tool, set()).add(server)
    names: dict[str, ForeignNames] = {}
    for tool, servers in owners.items():
        if len(servers) == 1 and len(tool) > 2:
            names.setdefault(next(iter(servers)), ForeignNames()).add(tool)
    return names


def without_invisible(definition: RemoteDefinition) -> RemoteDefinition:
    """The definition as a model may read it: without characters that a person does not see."""
    return replace(
        definition,
        title=visible_text(definition.title),
        description=visible_text(definition.description),
        input_schema=_changed(definition.input_schema, visible_text),
        output_schema=None
        if definition.output_schema is None
        else _changed(definition.output_schema, visible_text),
    )


def without_words(definition: RemoteDefinition, notice: str) -> RemoteDefinition:
    """The definition with a notice as its description. Of the server's own words only the names stay."""
    return replace(
        without_invisible(definition),
        title="",
        description=notice,
        input_schema=_bare(_changed(definition.input_schema, visible_text)),
        output_schema=None,
    )


def _texts(definition: RemoteDefinition) -> Iterator[tuple[str, str]]:
    yield "name", definition.name
    yield "title", definition.title
    yield "description", definition.description
    yield from _schema_texts(definition.input_schema, "input schema")
    yield from _schema_texts(definition.output_schema, "output schema")


def _schema_texts(value: Any, place: str) -> Iterator[tuple[str, str]]:
    """Every text in a schema, keys among them: a parameter's name is read by the model too."""
    waiting: list[Any] = [value]
    while waiting:
        item = waiting.pop()
        if isinstance(item, str):
            yield place, item
        elif isinstance(item, Mapping):
            yield from (
                (place, key.replace("_", " ")) for key in item if isinstance(key, str) and len(key) > 20
            )
            waiting += reversed(list(item.values()))
        elif isinstance(item, list | tuple):
            waiting += reversed(item)


def _matches(text: str) -> Iterator[tuple[str, str]]:
    """The kinds of what is found in a text, each with the words."""
    if not text.isascii():
        hidden = _HIDDEN.search(text)
        if hidden is not None:
            yield "hidden", hidden[0]
        text = visible_text(text)
    for kind, pattern in _PATTERNS:
        match = pattern.search(text)
        if match is not None:
            yield kind, match[0].strip()


def _changed(value: Any, change: Any) -> Any:
    if isinstance(value, str):
        return change(value)
    if isinstance(value, Mapping):
        return {key: _changed(item, change) for key, item in value.items()}
    return [_changed(item, change) for item in value] if isinstance(value, list | tuple) else value


def _bare(schema: Any, *, names: bool = False) -> Any:
    """A schema without the words that only explain it. `names`: the keys are names of parameters, which stay."""
    if isinstance(schema, list):
        return [_bare(item) for item in schema]
    if not isinstance(schema, Mapping):
        return schema
    kept = schema if names else {key: item for key, item in schema.items() if key not in ANNOTATIONS}
    below = ("properties", "$defs", "definitions", "patternProperties", "dependentSchemas")
    return {key: _bare(item, names=not names and key in below) for key, item in kept.items()}
