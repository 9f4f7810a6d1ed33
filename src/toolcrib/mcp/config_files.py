"""Reads the configurations of MCP servers as Claude, Cursor and VS Code write them, and as `toolcrib.toml` has them.

An entry that is wrong is named and left out; the others are read. So is a key that means nothing here.

| file | key | what is special |
| --- | --- | --- |
| `.mcp.json`, Claude's `claude_desktop_config.json`, `.cursor/mcp.json` | `mcpServers` | |
| `.vscode/mcp.json` | `servers`, `inputs` | comments, trailing commas, `${input:id}` |
| VS Code's `settings.json` | `mcp.servers` | the same |
| `toolcrib.toml` | `mcp.servers` | times in seconds |
"""

from __future__ import annotations

import json
import os
import shlex
import tomllib
import warnings
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from toolcrib.effect import Effect
from toolcrib.errors import ToolcribError
from toolcrib.mcp.config import NOTHING, McpServer
from toolcrib.text_file import text_of
from toolcrib.visible import on_one_line

__all__ = [
    "EFFECTS",
    "PROJECT_FILES",
    "McpConfigError",
    "mcp_server",
    "read_mcp_servers",
    "servers_of_data",
    "servers_of_text",
]

PROJECT_FILES = (".mcp.json", ".cursor/mcp.json", ".vscode/mcp.json")
MAX_BYTES = 1_000_000
MAX_TIME = 1e12
SHOWN = 80  # characters of a foreign text in a message
EFFECTS = {effect.label: effect for effect in Effect}
ALLOWED_FIXES = {"comment", "trailing_comma", "byte_order_mark"}
TRANSPORTS = {
    "stdio": "stdio", "local": "stdio", "http": "http", "streamable-http": "http", "streamableHttp": "http",
    "streamable_http": "http", "remote": "http", "sse": "sse",
}  # fmt: skip
# What other programs write that has no meaning here, and nobody misses.
FOREIGN_KEYS = frozenset(
    {
        "alwaysAllow", "alwaysLoad", "autoApprove", "autoStart", "description", "dev", "fromGalleryId", "gallery",
        "icon", "id", "metadata", "name", "note", "scope", "title", "trust", "version",
    }
)  # fmt: skip
# What other programs call our keys.
OTHER_NAMES = {
    "startupTimeout": "start_timeout", "startup_timeout": "start_timeout", "connectTimeout": "start_timeout",
    "maxTimeout": "max_timeout", "httpUrl": "url", "serverUrl": "url", "workingDirectory": "cwd",
}  # fmt: skip
NOT_SUPPORTED = {
    "envFile": 'name the variables in env, such as "TOKEN": "${TOKEN}"',
    "headersHelper": "write headers with ${VARIABLE} or <secret_ref:NAME>",
    "sandbox": "the server runs as you do",
    "sandboxEnabled": "the server runs as you do",
}
KEYS = (
    "command", "args", "env", "cwd", "url", "type", "transport", "headers", "enabled", "disabled", "timeout",
    "max_timeout", "start_timeout", "effects", "tools", "includeTools", "excludeTools", "disabledTools", "auth",
    "oauth", "trusted",
)  # fmt: skip
OAUTH_NAMES = {
    "clientId": "client_id", "clientSecret": "client_secret", "CLIENT_ID": "client_id",
    "CLIENT_SECRET": "client_secret", "clientMetadataUrl": "client_metadata_url", "redirectUri": "redirect_uri",
    "scope": "scopes",
}  # fmt: skip

Complain = Callable[[str], None]


class McpConfigError(ToolcribError):
    """A file of MCP servers that cannot be read at all."""


def read_mcp_servers(
    source: str | os.PathLike[str] | Mapping[str, Any], *, complain: Complain | None = None
) -> list[McpServer]:
    """The servers in a file, or in the data of one.

    `complain` is told of each entry that is left out and of each key that means nothing, in a sentence; without it
    that is a warning. Raises McpConfigError for a file that cannot be read.

    >>> read_mcp_servers({"mcpServers": {"time": {"command": "uvx", "args": ["mcp-server-time"]}}})[0].command
    ('uvx', 'mcp-server-time')
    """
    tell = complain or _warn
    if isinstance(source, Mapping):
        return servers_of_data(source, "the data", tell)
    path = Path(source)
    try:
        with path.open("rb") as file:
            data = file.read(MAX_BYTES + 1)
    except OSError as problem:
        raise McpConfigError(f"{path} cannot be read: {problem.strerror or problem}") from None
    if len(data) > MAX_BYTES:
        raise McpConfigError(f"{path}: a file of MCP servers has at most {MAX_BYTES:,} bytes")
    try:
        text = text_of(data)
    except ValueError as problem:
        raise McpConfigError(f"{path}: {problem}") from None
    return servers_of_text(text, str(path), tell)


def servers_of_text(text: str, path: str, complain: Complain) -> list[McpServer]:
    """The servers in the text of a file; `path` is how a person is told of it. Raises McpConfigError."""
    if path.endswith(".toml"):
        try:
            data: Any = tomllib.loads(text.removeprefix("\ufeff"))
        except (tomllib.TOMLDecodeError, RecursionError) as problem:
            raise McpConfigError(f"{path}: not TOML: {problem}") from None
    else:
        data = _json(text, path, complain)
    if not isinstance(data, dict):
        raise McpConfigError(f"{path}: expected an object with mcpServers, got {_kind(data)}")
    return servers_of_data(data, path, complain, seconds=path.endswith(".toml"))


def servers_of_data(
    data: Mapping[str, Any], path: str, complain: Complain, *, seconds: bool = False
) -> list[McpServer]:
    """The servers in the data of a file. `seconds` says that times are in seconds, and not in milliseconds."""
    inner = data.get("mcp")
    table: Mapping[str, Any] = inner if isinstance(inner, Mapping) and "mcpServers" not in data else data
    key = next((name for name in ("mcpServers", "servers") if name in table), None)
    if key is None:
        near = get_close_matches("mcpServers", list(map(str, table)), n=1)
        hint = f"; it has {near[0]}, do you mean mcpServers?" if near else ""
        raise McpConfigError(f'{path}: expected "mcpServers" (or "servers", as VS Code writes it){hint}')
    listed = table[key]
    if not isinstance(listed, Mapping):
        raise McpConfigError(f"{path}: {key} must be an object of servers by name, got {_kind(listed)}")
    inputs = _inputs(table.get("inputs"), path, complain)
    servers: list[McpServer] = []
    for name, entry in listed.items():
        where = f"{path}: MCP server {on_one_line(str(name), SHOWN)}"
        notes: list[str] = []
        try:
            found = mcp_server(
                str(name), entry, source=path, seconds=seconds, inputs=inputs, complain=notes.append
            )
        except (ValueError, TypeError) as problem:
            words = str(problem).removeprefix(f"MCP server {str(name)!r}: ")
            complain(f"{where} was left out: {on_one_line(words, 300)}")
        else:
            servers.append(found)
        for words in notes:
            complain(f"{where}: {words}")
    return servers


def mcp_server(
    name: str,
    entry: Any,
    *,
    source: str = "",
    seconds: bool = False,
    inputs: Mapping[str, Mapping[str, Any]] = NOTHING,
    complain: Complain = lambda words: None,
) -> McpServer:
    """The server of one entry. Raises ValueError with words for a person; `complain` is told of what has no effect."""
    if not isinstance(entry, Mapping):
        raise ValueError(f"expected an object, got {_kind(entry)}")
    given = {OTHER_NAMES.get(str(key), str(key)): value for key, value in entry.items()}
    for key in given:
        if key in NOT_SUPPORTED:
            complain(f"{key} has no effect here: {NOT_SUPPORTED[key]}")
        elif key not in KEYS and key not in FOREIGN_KEYS:
            near = get_close_matches(str(key), KEYS, n=1)
            hint = f"; did you mean {near[0]}?" if near else ""
            complain(f"unknown key {on_one_line(repr(key), SHOWN)} has no effect{hint}")
    made: dict[str, Any] = {"name": name, "source": source, "inputs": inputs}
    made |= _reached(given)
    made |= {key: _table(given, key) for key in ("env", "headers") if given.get(key) is not None}
    if given.get("cwd") is not None:
        made["cwd"] = _text(given, "cwd")
    for key in ("timeout", "max_timeout", "start_timeout"):
        if given.get(key) is not None:
            made[key] = _time(given, key, seconds=seconds)
    if "timeout" in made:
        made.setdefault("max_timeout", max(made["timeout"], 600.0))
    made["enabled"] = _flag(given, "enabled", True) and not _flag(given, "disabled", False)
    made["trusted"] = _flag(given, "trusted", False)
    made["tools"] = tuple(_patterns(given))
    made["effects"] = _effects(given.get("effects"))
    made |= _authentication(given)
    return McpServer(**made)


def _reached(given: Mapping[str, Any]) -> dict[str, Any]:
    """The command line or the URL, and the transport."""
    command, args, url = given.get("command"), given.get("args", []), given.get("url")
    kind = given.get("type", given.get("transport"))
    if kind is not None and (not isinstance(kind, str) or kind not in TRANSPORTS):
        raise ValueError(f"type must be stdio, http or sse, got {on_one_line(repr(kind), SHOWN)}")
    transport = TRANSPORTS.get(kind or "", "http" if url else "stdio")
    if url is not None and command is None:
        if transport == "stdio":
            raise ValueError("type stdio needs a command, and it has a url")
        return {"url": _text(given, "url"), "transport": transport}
    if command is None:
        raise ValueError("it has neither a command nor a url")
    if url is not None:
        raise ValueError("it has both a command and a url; give one of them")
    if transport != "stdio":
        raise ValueError(f"type {kind} needs a url, and it has a command")
    if not isinstance(args, list) or not all(isinstance(word, str) for word in args):
        raise ValueError(f"args must be a list of texts, got {_kind(args)}")
    if isinstance(command, list) and command and all(isinstance(word, str) for word in command):
        words = command
    elif isinstance(command, str) and command.strip():
        # A program's path may have blanks in it: only a command line that has no args of its own is split.
        words = [command] if args or Path(command).exists() else _split(command)
    else:
        raise ValueError(f"command must be a text, or a list of texts, got {_kind(command)}")
    return {"command": (*words, *args)}


def _split(command: str) -> list[str]:
    try:
        return shlex.split(command, posix=os.name != "nt") or [command]
    except ValueError as problem:
        raise ValueError(f"command cannot be split into words: {problem}") from None


def _patterns(given: Mapping[str, Any]) -> Iterator[str]:
    """Patterns of the tools that are used, as our `tools`, or as others write it."""
    for key, sign in (("tools", ""), ("includeTools", ""), ("excludeTools", "!"), ("disabledTools", "!")):
        listed = given.get(key)
        if listed is None:
            continue
        if not isinstance(listed, list) or not all(isinstance(item, str) for item in listed):
            raise ValueError(f"{key} must be a list of names or patterns, got {_kind(listed)}")
        yield from (f"{sign}{item}" for item in listed)


def _effects(given: Any) -> dict[str, Effect]:
    if given is None:
        return {}
    if not isinstance(given, Mapping):
        raise ValueError(f'effects must be a table such as {{search = "read"}}, got {_kind(given)}')
    for tool, effect in given.items():
        if not isinstance(effect, str) or effect not in EFFECTS:
            shown = on_one_line(repr(effect), SHOWN)
            raise ValueError(
                f"effects.{on_one_line(str(tool), SHOWN)} must be read, write or destructive, got {shown}"
            )
    return {str(tool): EFFECTS[effect] for tool, effect in given.items()}


def _authentication(given: Mapping[str, Any]) -> dict[str, Any]:
    """`auth` and `oauth`. Cursor has a table `auth`, others a table `oauth`, and we a word and a table."""
    auth, oauth = given.get("auth"), given.get("oauth")
    if isinstance(auth, Mapping):
        auth, oauth = "oauth", auth
    if oauth is False:
        auth, oauth = "none", None
    if oauth is not None and not isinstance(oauth, Mapping):
        raise ValueError(f"oauth must be a table, got {_kind(oauth)}")
    settings = {OAUTH_NAMES.get(key, key): value for key, value in (oauth or {}).items()}
    if (port := settings.pop("callbackPort", None)) is not None:
        settings["redirect_uri"] = f"http://127.0.0.1:{port}/callback"
    if isinstance(settings.get("scopes"), str):
        settings["scopes"] = settings["scopes"].split()
    if auth is None:
        headers = given.get("headers")
        named = {str(name).lower() for name in headers} if isinstance(headers, Mapping) else set()
        auth = "none" if "authorization" in named else "oauth"
    if auth not in ("oauth", "none"):
        raise ValueError(f"auth must be oauth or none, got {on_one_line(repr(auth), SHOWN)}")
    return {"auth": auth, "oauth": settings}


def _inputs(given: Any, path: str, complain: Complain) -> dict[str, Mapping[str, Any]]:
    """The inputs of a VS Code file, by their ids."""
    if given is None:
        return {}
    found: dict[str, Mapping[str, Any]] = {}
    for item in given if isinstance(given, list) else [given]:
        if isinstance(item, Mapping) and isinstance(item.get("id"), str):
            found[item["id"]] = item
        else:
            complain(f"{path}: an input was left out: expected an object with an id, got {_kind(item)}")
    return found


def _json(text: str, path: str, complain: Complain) -> Any:
    """The data of a JSON text, which may have comments and trailing commas; of a name that stands twice, the last."""

    def object_of(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        made = dict(pairs)
        if len(made) < len(pairs):
            twice = next(name for name, times in Counter(name for name, _ in pairs).items() if times > 1)
            complain(f"{path}: {on_one_line(twice, SHOWN)} stands twice in one object; the last one counts")
        return made

    from toolcrib.json_text.lenient_grammar import Unreadable
    from toolcrib.json_text.lenient_reader import read_json

    try:
        return json.loads(text, object_pairs_hook=object_of)
    except RecursionError:
        raise McpConfigError(f"{path}: not JSON: it is nested too deeply") from None
    except ValueError as problem:
        try:
            reading = read_json(text)
        except Unreadable:
            raise McpConfigError(f"{path}: not JSON: {problem}") from None
        if reading.around.strip("\ufeff \t\r\n") or {fix.kind for fix in reading.fixes} - ALLOWED_FIXES:
            raise McpConfigError(f"{path}: not JSON: {problem}") from None
        return reading.value


def _text(given: Mapping[str, Any], key: str) -> str:
    value = given[key]
    if not isinstance(value, str) or not value.strip():
        raise ValueError(f"{key} must be a text, got {_kind(value)}")
    return value


def _table(given: Mapping[str, Any], key: str) -> dict[str, str]:
    """A table of texts; numbers and booleans, which are often written there, become texts."""
    value = given[key]
    if not isinstance(value, Mapping):
        raise ValueError(f"{key} must be an object of texts, got {_kind(value)}")
    table: dict[str, str] = {}
    for name, item in value.items():
        if isinstance(item, bool):
            table[str(name)] = "true" if item else "false"
        elif isinstance(item, str | int | float):
            table[str(name)] = str(item)
        else:
            raise ValueError(f"{key}.{on_one_line(str(name), SHOWN)} must be a text, got {_kind(item)}")
    return table


def _time(given: Mapping[str, Any], key: str, *, seconds: bool) -> float:
    """A time in seconds. JSON files have milliseconds; what is below 1,000 there can only mean seconds."""
    value = given[key]
    if isinstance(value, bool) or not isinstance(value, int | float) or not value > 0:
        raise ValueError(f"{key} must be a number above 0, got {on_one_line(repr(value), SHOWN)}")
    if value > MAX_TIME:
        raise ValueError(f"{key} is too long a time")
    return float(value) if seconds or value < 1000 else value / 1000


def _flag(given: Mapping[str, Any], key: str, default: bool) -> bool:
    value = given.get(key, default)
    if not isinstance(value, bool):
        raise ValueError(f"{key} must be true or false, got {on_one_line(repr(value), SHOWN)}")
    return value


def _kind(value: Any) -> str:
    kinds = {dict: "an object", list: "a list", str: "a text", bool: "true or false", type(None): "null"}
    return kinds.get(type(value), "a number" if isinstance(value, int | float) else type(value).__name__)


def _warn(words: str) -> None:
    warnings.warn(words, stacklevel=3)
