"""Two tools in the place of many: one that finds tools, one that calls what was found.

A call through `call_tool` is a call of the inner tool: its own policy, validation and limits hold for it.
"""

from __future__ import annotations

import json
import math
import re
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from toolcrib.call import ToolCall
from toolcrib.errors import ErrorCode
from toolcrib.result import ToolResult
from toolcrib.spec import ToolSpec

if TYPE_CHECKING:
    from toolcrib.toolbox.tool_list import ToolList

__all__ = ["CALL", "SEARCH", "SEARCH_FACE", "found_tools", "inner_call"]

SEARCH, CALL = "search_tools", "call_tool"
USUAL, MOST = 5, 20  # tools that a search gives
MAX_QUERY = 1_000  # characters
WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+|[^\W\d_a-zA-Z]+")
COMMON = re.compile(
    r"(a|an|and|are|as|at|be|by|for|from|how|i|in|is|it|me|my|of|on|or|please|that|the|this|to|with)\Z"
)
NAME_WEIGHT, PARAMETER_WEIGHT = 3, 1
ENOUGH = 1.2  # how soon further mentions of a word stop counting
LENGTH = 0.5  # how much a long description counts against a tool

SEARCH_FACE: list[dict[str, Any]] = [
    {
        "name": CALL,
        "title": "Call a tool",
        "description": f"Call a tool that {SEARCH} found, by its name, with arguments as its inputSchema says.",
        "inputSchema": {
            "type": "object",
            "properties": {
                "name": {"type": "string", "description": "The tool's name."},
                "arguments": {"type": "object", "description": "Its arguments."},
            },
            "required": ["name"],
        },
        "annotations": {"readOnlyHint": False, "destructiveHint": True, "openWorldHint": True},
    },
    {
        "name": SEARCH,
        "title": "Find tools",
        "description": (
            "Find tools by what they do. Gives names, descriptions and input schemas of those that fit best. "
            f"Search for each step of a task by itself, then call what fits with {CALL}."
        ),
        "inputSchema": {
            "type": "object",
            "properties": {
                "query": {"type": "string", "description": "What the tool should do, in a few words."},
                "limit": {"type": "integer", "minimum": 1, "maximum": MOST, "default": USUAL},
            },
            "required": ["query"],
        },
        "annotations": {"readOnlyHint": True, "destructiveHint": False, "idempotentHint": True, "openWorldHint": False},
    },
]  # fmt: skip


def inner_call(arguments: Mapping[str, Any]) -> ToolCall | ToolResult:
    """The call that the arguments of `call_tool` stand for; a result for the model where they do not name a tool."""
    name, given = arguments.get("name"), arguments.get("arguments")
    if not isinstance(name, str) or not name:
        words = f'"{CALL}" needs a name: that of a tool which {SEARCH} found. Nothing was run.'
        return ToolResult.of(words, code=ErrorCode.INVALID_ARGUMENTS)
    if given is None:
        given = {}
    if not isinstance(given, dict | str):
        words = f'The arguments for tool "{name}" must be one JSON object. Nothing was run.'
        return ToolResult.of(words, code=ErrorCode.INVALID_ARGUMENTS)
    return ToolCall(name, given)


def found_tools(listed: ToolList, arguments: Mapping[str, Any]) -> ToolResult:
    """What `search_tools` answers: the tools that fit a query best, those first that fit better."""
    query, limit = arguments.get("query"), arguments.get("limit", USUAL)
    if not isinstance(query, str) or not query.strip():
        words = f'"{SEARCH}" needs a query: what the tool should do, in a few words.'
        return ToolResult.of(words, code=ErrorCode.INVALID_ARGUMENTS)
    most = min(max(limit, 1), MOST) if isinstance(limit, int) and not isinstance(limit, bool) else USUAL
    specs = {spec.name: spec for spec in listed.specs}
    for name, entry in listed.entries.items():  # deferred tools are not listed, and are found here
        if name not in specs and entry.compiled is not None:
            specs[name] = entry.compiled.spec.renamed(name)
    best = ranked(specs.values(), query[:MAX_QUERY])[:most]
    if not best:
        return ToolResult.of(f"No tool fits {query[:80]!r}. There are {len(specs):,}: try other words.")
    tools = [
        {"name": spec.name, "description": spec.description, "inputSchema": spec.input_schema}
        for spec in best
    ]
    return ToolResult.of(json.dumps(tools, ensure_ascii=False, separators=(",", ":")))


def ranked(specs: Iterable[ToolSpec], query: str) -> list[ToolSpec]:
    """The tools that share words with a query, the best first. The name of a tool in the query comes before all else.

    A word counts for more the fewer tools have it (BM25); words of a name count more than those of a description.
    """
    wanted = set(_words(query))
    documents = []
    for spec in sorted(specs, key=lambda spec: spec.name):
        counts = Counter(_words(spec.description))
        for word in _words(f"{spec.name} {spec.title}"):
            counts[word] += NAME_WEIGHT
        for parameter in spec.input_schema.get("properties", {}):
            for word in _words(parameter):
                counts[word] += PARAMETER_WEIGHT
        documents.append((spec, counts, sum(counts.values())))
    usual = sum(length for *_, length in documents) / (len(documents) or 1) or 1.0
    having = {word: sum(word in counts for _, counts, _ in documents) for word in wanted}
    scores = []
    for place, (spec, counts, length) in enumerate(documents):
        score = 0.0
        for word in wanted & counts.keys():
            rarity = math.log(1 + (len(documents) - having[word] + 0.5) / (having[word] + 0.5))
            times = counts[word]
            score += rarity * times / (times + ENOUGH * (1 - LENGTH + LENGTH * length / usual))
        if spec.name.lower() in query.lower().split():
            score += 1_000
        if score:
            scores.append((-score, place, spec))
    return [spec for *_, spec in sorted(scores, key=lambda row: row[:2])]


def _words(text: str) -> list[str]:
    return [_stem(word) for word in (found.lower() for found in WORD.findall(text)) if not COMMON.match(word)]


def _stem(word: str) -> str:
    """A word without the endings that only grammar wants: "files" and "file" are the same."""
    for ending in ("ations", "ation", "ings", "ing", "ies", "es", "ed", "s", "e"):
        if word.endswith(ending) and len(word) - len(ending) >= 3:
            return word[: -len(ending)]
    return word
