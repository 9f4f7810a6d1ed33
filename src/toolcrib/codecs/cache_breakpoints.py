"""Where a prompt's cache is written, for the two formats in which the request has to say so.

A request marks the end of its tools and instructions, and the end of its last two user turns. The next request of the
same conversation finds the marks of this one: the provider reads from the cache up to there. A request that nothing
follows, without tools and without an answer, is not marked: writing costs a quarter more than reading anew.
"""

from __future__ import annotations

from typing import Any, Literal

from toolcrib.codecs.wire_json import as_dict, as_list, dicts

CacheLifetime = Literal["5m", "1h"]
CACHE_SECONDS: dict[CacheLifetime | None, float] = {None: 300.0, "5m": 300.0, "1h": 3600.0}
MARKED_TURNS = 2  # the marks of the last turn are the next to last ones of the next request
# Blocks of Anthropic's Messages that take a mark; thinking does not.
MARKABLE = frozenset({"text", "image", "document", "search_result", "tool_result"})


def mark_messages(body: dict[str, Any], lifetime: CacheLifetime | None) -> dict[str, Any]:
    """A body of Anthropic's Messages with `cache_control` marks; unchanged if it has marks of its own."""
    if lifetime is None or not _continues(body, body.get("tools")) or "cache_control" in body:
        return body
    system, tools, turns = as_list(body.get("system")), dicts(body.get("tools")), dicts(body["messages"])
    blocks = [*dicts(system), *tools, *(block for turn in turns for block in dicts(turn.get("content")))]
    if any("cache_control" in block for block in blocks):
        return body
    mark = {"type": "ephemeral"} if lifetime == "5m" else {"type": "ephemeral", "ttl": lifetime}
    head: dict[str, Any] = {}
    if dicts(system):
        head["system"] = _marked(system, mark)
    elif tools:
        head["tools"] = _marked(tools, mark)
    marked = {
        index: {**turns[index], "content": _marked(turns[index]["content"], mark)}
        for index in _last_user_turns(turns)
    }
    return {**body, **head, "messages": [marked.get(index, turn) for index, turn in enumerate(turns)]}


def mark_converse(body: dict[str, Any], lifetime: CacheLifetime | None) -> dict[str, Any]:
    """A body of Bedrock's Converse with `cachePoint` blocks; unchanged if it has some of its own."""
    config = as_dict(body.get("toolConfig"))
    if lifetime is None or not _continues(body, config):
        return body
    system, tools, turns = as_list(body.get("system")), as_list(config.get("tools")), dicts(body["messages"])
    blocks = [
        *dicts(system),
        *dicts(tools),
        *(block for turn in turns for block in dicts(turn.get("content"))),
    ]
    if any("cachePoint" in block for block in blocks):
        return body
    point = {"cachePoint": {"type": "default"} if lifetime == "5m" else {"type": "default", "ttl": lifetime}}
    head: dict[str, Any] = {}
    if system:
        head["system"] = [*system, point]
    elif tools:
        head["toolConfig"] = {**config, "tools": [*tools, point]}
    marked = {
        index: {**turns[index], "content": [*turns[index]["content"], point]}
        for index in _last_user_turns(turns)
    }
    return {**body, **head, "messages": [marked.get(index, turn) for index, turn in enumerate(turns)]}


def _continues(body: dict[str, Any], tools: Any) -> bool:
    """Whether another request is likely to begin with this one."""
    return bool(tools) or any(turn.get("role") == "assistant" for turn in dicts(body.get("messages")))


def _last_user_turns(turns: list[dict[str, Any]]) -> list[int]:
    user = [
        index for index, turn in enumerate(turns) if turn.get("role") == "user" and dicts(turn.get("content"))
    ]
    return user[-MARKED_TURNS:]


def _marked(blocks: list[Any], mark: dict[str, Any]) -> list[Any]:
    """The blocks, the last one that takes a mark with the mark."""
    for index in range(len(blocks) - 1, -1, -1):
        block = as_dict(blocks[index])
        if not block.get("defer_loading") and ("input_schema" in block or block.get("type") in MARKABLE):
            return [*blocks[:index], {**block, "cache_control": mark}, *blocks[index + 1 :]]
    return blocks
