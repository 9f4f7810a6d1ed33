"""Adds an MCP server to the text of a `toolcrib.toml`, and removes one; all else in the file stays as it is written."""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Mapping
from typing import Any

from toolcrib.cli.console import Problem

_BARE = re.compile(r"[A-Za-z0-9_-]+")
_TABLE = re.compile(r"\s*\[")


def with_server(text: str, name: str, entry: Mapping[str, Any]) -> str:
    """The text with a table for the server at its end. Raises Problem if the text already has one of that name."""
    if name in _servers(text):
        raise Problem(f"there is an MCP server {name!r} already; to replace it: toolcrib mcp remove {name}")
    lines = [f"[mcp.servers.{_key(name)}]", *(f"{_key(key)} = {_value(item)}" for key, item in entry.items())]
    made = text.rstrip("\n") + "\n\n" * bool(text.strip()) + "\n".join(lines) + "\n"
    if _servers(made).get(name) != dict(entry):
        raise Problem("the file cannot be extended as it is written; add the server by hand")
    return made


def without_server(text: str, name: str) -> str:
    """The text without the tables of the server. Raises Problem if it has none, or not in a table of its own."""
    before = _servers(text)
    if name not in before:
        raise Problem(f"there is no MCP server {name!r} in it")
    written = "|".join(re.escape(key) for key in {name, _value(name), f"'{name}'"})
    header = re.compile(rf"\s*\[\s*mcp\s*\.\s*servers\s*\.\s*(?:{written})\s*[.\]]")
    kept: list[str] = []
    inside = False
    for line in text.splitlines(keepends=True):
        if _TABLE.match(line):
            inside = header.match(line) is not None
        if not inside:
            kept.append(line)
    made = "".join(kept)
    if _parsed(made, "mcp", "servers") != {key: value for key, value in before.items() if key != name}:
        raise Problem("it is not written as a table of its own; remove it by hand")
    return made.rstrip("\n") + "\n" * bool(made.strip())


def _servers(text: str) -> dict[str, Any]:
    return _parsed(text, "mcp", "servers")


def _parsed(text: str, *path: str) -> dict[str, Any]:
    try:
        found: Any = tomllib.loads(text)
    except (ValueError, RecursionError) as problem:
        raise Problem(f"it is not TOML: {problem}") from None
    for key in path:
        found = found.get(key, {})
    return dict(found)


def _key(name: str) -> str:
    return name if _BARE.fullmatch(name) else _value(name)


def _value(value: Any) -> str:
    """A value in TOML. Strings are written as in JSON, except for the character DEL."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
    if isinstance(value, Mapping):
        return "{ " + ", ".join(f"{_key(key)} = {_value(item)}" for key, item in value.items()) + " }"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(map(_value, value)) + "]"
    return repr(value)
