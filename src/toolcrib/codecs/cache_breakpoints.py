"""Where a prompt's cache is written, for the two formats in which the request has to say so.

A request marks the end of its tools and instructions, and the end of its last two user turns. The next request of the
same conversation finds the marks of this one: the provider reads from the cache up to there. A request that nothing
follows, without tools and without an answer, is not marked: writing costs a quarter more than reading anew.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import islice
from typing import Any, Literal

from toolcrib.codecs.wire_json import Encoded, as_dict, as_list, dicts

CacheLifetime = Literal["5m", "1h"]
CACHE_SECONDS: dict[CacheLifetime | None, float] = {None: 300.0, "5m": 300.0, "1h": 3600.0}
MARKED_TURNS = 2  # the marks of the last turn are the next to last ones of the next request
# Blocks of Anthropic's Messages that take a mark; thinking does not.
MARKABLE = frozenset({"text", "image", "document", "search_result", "tool_result"})


def mark_messages(
    body: dict[str, Any], lifetime: CacheLifetime | None, unmarked: list[Any] | None = None
) -> dict[str, Any]:
    """A body of Anthropic's Messages with `cache_control` marks; unchanged if it has marks of its own. `unmarked` are
    turns that are known to have none.
    """
    if lifetime is None or not _continues(body, body.get("tools")) or "cache_control" in body:
        return body
    system, tools = as_list(body.get("system")), dicts(body.get("tools"))
    if any("cache_control" in block for block in [*dicts(system), *tools, *_blocks(body, unmarked)]):
        return body
    mark = {"type": "ephemeral"} if lifetime == "5m" else {"type": "ephemeral", "ttl": lifetime}
    head: dict[str, Any] = {}
    if dicts(system):
        head["system"] = _marked(system, mark)
    elif tools:
        head["tools"] = _marked(tools, mark)
    return {**body, **head, "messages": _with_marks(body, lambda content: _marked(content, mark))}


def mark_converse(
    body: dict[str, Any], lifetime: CacheLifetime | None, unmarked: list[Any] | None = None
) -> dict[str, Any]:
    """A body of Bedrock's Converse with `cachePoint` blocks; unchanged if it has some of its own. `unmarked` are
    turns that are known to have none.
    """
    config = as_dict(body.get("toolConfig"))
    if lifetime is None or not _continues(body, config):
        return body
    system, tools = as_list(body.get("system")), as_list(config.get("tools"))
    if any("cachePoint" in block for block in [*dicts(system), *dicts(tools), *_blocks(body, unmarked)]):
        return body
    point = {"cachePoint": {"type": "default"} if lifetime == "5m" else {"type": "default", "ttl": lifetime}}
    head: dict[str, Any] = {}
    if system:
        head["system"] = [*system, point]
    elif tools:
        head["toolConfig"] = {**config, "tools": [*tools, point]}
    return {**body, **head, "messages": _with_marks(body, lambda content: [*content, point])}


def _continues(body: dict[str, Any], tools: Any) -> bool:
    """Whether another request is likely to begin with this one."""
    turns = as_list(body.get("messages"))
    return bool(tools) or any(as_dict(turn).get("role") == "assistant" for turn in turns)


def _blocks(body: dict[str, Any], unmarked: list[Any] | None) -> Iterator[dict[str, Any]]:
    """The blocks of a conversation that may have marks of its own."""
    turns = as_list(body.get("messages"))
    if turns is not unmarked:
        yield from (block for turn in dicts(turns) for block in dicts(turn.get("content")))


def _with_marks(body: dict[str, Any], marked: Callable[[list[Any]], list[Any]]) -> list[Any]:
    """The turns of a body; `marked` puts the mark into the content of the last ones of the user."""
    turns = body["messages"]
    whole = Encoded(turns) if isinstance(turns, Encoded) else dicts(turns)
    users = (
        index
        for index in range(len(whole) - 1, -1, -1)
        if whole[index].get("role") == "user" and dicts(whole[index].get("content"))
    )
    for index in islice(users, MARKED_TURNS):
        whole[index] = {**whole[index], "content": marked(whole[index]["content"])}
    return whole


def _marked(blocks: list[Any], mark: dict[str, Any]) -> list[Any]:
    """The blocks, the last one that takes a mark with the mark."""
    for index in range(len(blocks) - 1, -1, -1):
        block = as_dict(blocks[index])
        if not block.get("defer_loading") and ("input_schema" in block or block.get("type") in MARKABLE):
            return [*blocks[:index], {**block, "cache_control": mark}, *blocks[index + 1 :]]
    return blocks
