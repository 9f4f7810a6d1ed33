"""The configuration of one MCP server, as a value. `config_files` reads it from files, `expansion` fills it in.

What is written in a configuration may refer to variables and secrets. The value keeps the references: they are put in
when the server is started, and never in what is shown, compared or stored.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import KW_ONLY, MISSING, fields
from functools import lru_cache
from hashlib import sha256
from types import MappingProxyType
from typing import Any, Literal

from toolcrib.credentials import names_credential
from toolcrib.dataclass import dataclass, field
from toolcrib.effect import Effect
from toolcrib.errors import as_tuple
from toolcrib.rules.name_patterns import name_matches, selected
from toolcrib.visible import on_one_line

__all__ = [
    "McpServer",
    "credentials_in",
    "hides_value",
    "is_reference",
    "url_without_credentials",
    "written_credentials",
]

NOTHING: Mapping[str, Any] = MappingProxyType({})
TRANSPORTS = ("stdio", "http", "sse")
AUTHS = ("oauth", "none")
REFERENCE_SIGNS = ("${", "<secret_ref:")
HEADER_NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
HEADER_VALUE = re.compile(r"[\t -~]*")
# Headers by which a request is taken apart: with one of them, its rest could pass for another request.
FRAMING = frozenset(("connection", "content-length", "te", "trailer", "transfer-encoding", "upgrade"))


@dataclass(frozen=True, slots=True, eq=False)
class McpServer:
    """How one server is reached, and how far its word counts.

    Attributes:
        name: The name under which its tools are shown, as `name__tool`.
        command: The command line of a local server, as a list; empty for a remote one.
        env: Variables of a local server's environment, besides a few harmless ones of ours such as PATH and HOME.
        cwd: The folder in which a local server runs; without it ours.
        url: The address of a remote server.
        transport: "stdio", "http" (streamable HTTP, what a `url` means) or "sse" (the older one).
        headers: HTTP headers that are sent with every request to a remote server.
        enabled: Whether it is used at all.
        timeout: Seconds that a call may take without reporting progress.
        max_timeout: Seconds that a call may take, however much progress it reports.
        start_timeout: Seconds until a starting server must be ready.
        effects: The effect of tools, by their name at the server or a pattern of names, whatever the server says.
        tools: Patterns of the tools that are used, by their names at the server; all if empty. A pattern that begins
            with "!" leaves out what it matches.
        auth: "oauth" sends the token of `toolcrib mcp login`, if there is one; "none" never does.
        oauth: What `OAuthSettings` takes, such as `client_id` and `scopes`, for servers that need to be told.
        trusted: Whether the server's word counts where it calls a tool harmless.
        inputs: The inputs of a VS Code file, by their ids.
        source: The file that it is configured in, for people.

    Raises TypeError or ValueError for values that cannot be right.

    >>> McpServer("git", command=["uvx", "mcp-server-git"], tools=["git_*", "!git_reset"]).uses("git_log")
    True
    """

    name: str
    _: KW_ONLY
    command: Sequence[str] = ()
    env: Mapping[str, str] = field(default_factory=lambda: NOTHING, repr=False)
    cwd: str | None = None
    url: str = ""
    transport: Literal["stdio", "http", "sse"] = "stdio"
    headers: Mapping[str, str] = field(default_factory=lambda: NOTHING, repr=False)
    enabled: bool = True
    timeout: float = 60.0
    max_timeout: float = 600.0
    start_timeout: float = 60.0
    effects: Mapping[str, Effect] = field(default_factory=lambda: NOTHING)
    tools: Sequence[str] = ()
    auth: Literal["oauth", "none"] = "oauth"
    oauth: Mapping[str, Any] = field(default_factory=lambda: NOTHING, repr=False)
    trusted: bool = False
    inputs: Mapping[str, Mapping[str, Any]] = field(default_factory=lambda: NOTHING, repr=False)
    source: str = ""

    def __post_init__(self) -> None:
        if isinstance(self.command, str):
            words = self.command.split()
            raise TypeError(f"command is a list of names, got the string {self.command!r}: write {words!r}")
        object.__setattr__(self, "command", tuple(self.command))
        object.__setattr__(self, "tools", as_tuple("tools", self.tools))
        if self.url and self.transport == "stdio":
            object.__setattr__(self, "transport", "http")
        for problem in _problems(self):
            raise ValueError(f"MCP server {self.name!r}: {problem}")

    def uses(self, tool: str) -> bool:
        """Whether a tool of the server is used, by its name at the server."""
        return selected(self.tools, tool)

    def effect_of(self, tool: str) -> Effect | None:
        """The configured effect of a tool; None if nothing is said of it. An exact name counts before a pattern."""
        said = self.effects.get(tool)
        if said is None:
            matching = [effect for pattern, effect in self.effects.items() if name_matches(pattern, tool)]
            said = max(matching, default=None)
        return said

    def config_hash(self) -> str:
        """A hash of what decides which server this is.

        References stand for variables and secrets in it, and a value whose name says that it is a credential is left
        out.
        """
        given = [
            self.transport,
            list(self.command),
            _without_values(self.env),
            self.cwd,
            self.url,
            _without_values(self.headers),
        ]
        return sha256(json.dumps(given).encode("utf-8", "surrogatepass")).hexdigest()

    def address(self) -> str:
        """How the server is reached, on one line: its command line or URL, without credentials. For people."""
        import shlex

        if self.command:
            return shlex.join(_without_arguments(self.command))
        return url_without_credentials(self.url)

    def to_dict(self) -> dict[str, Any]:
        """What differs from the defaults, as plain data for people and programs: without credentials."""
        shown: dict[str, Any] = {"name": self.name}
        for one in fields(self)[1:]:
            value = getattr(self, one.name)
            default = one.default_factory() if one.default_factory is not MISSING else one.default
            if one.name != "inputs" and value != default:
                shown[one.name] = value
        if self.command:
            shown["command"] = _without_arguments(self.command)
        if self.url:
            shown["url"], shown["transport"] = url_without_credentials(self.url), self.transport
        for name in ("env", "headers", "oauth"):
            if name in shown:
                shown[name] = {key: _shown(key, value) for key, value in shown[name].items()}
        if self.effects:
            shown["effects"] = {name: effect.label for name, effect in self.effects.items()}
        if self.tools:
            shown["tools"] = list(self.tools)
        return shown


def is_reference(text: str) -> bool:
    """Whether a text has a reference to a variable, an input or a secret in it."""
    return any(sign in text for sign in REFERENCE_SIGNS)


def hides_value(name: str, value: Any) -> bool:
    """Whether a value is to be hidden: its name says that it is a credential, and it is no mere reference."""
    return isinstance(value, str) and bool(value) and names_credential(name) and not is_reference(value)


def written_credentials(server: McpServer) -> Iterator[tuple[str, str]]:
    """The credentials that are written out in a configuration, each after the name that says what it is."""
    from urllib.parse import parse_qsl, unquote, urlsplit

    for given in (server.env, server.oauth):
        yield from ((name, value) for name, value in given.items() if hides_value(name, value))
    yield from (
        (name, value) for name, value in credentials_in(server.headers.items()) if not is_reference(value)
    )
    yield from ((name, value) for _, name, value in _words_of(server.command) if value)
    with suppress(ValueError):
        parts = urlsplit(server.url)
        yield from ((name, value) for name, value in parse_qsl(parts.query) if hides_value(name, value))
        if parts.password and not is_reference(parts.password):
            yield "password", unquote(parts.password)


def credentials_in(headers: Iterable[tuple[str, str]]) -> Iterator[tuple[str, str]]:
    """The credentials in HTTP headers, each after the name of its header, without a scheme such as `Bearer`."""
    for name, value in headers:
        if _names_credential(name) and (credential := value.rpartition(" ")[2]):
            yield name, credential


_names_credential = lru_cache(256)(names_credential)


def url_without_credentials(url: str) -> str:
    """A URL without a user's name and password, and without the values of its query."""
    from urllib.parse import parse_qsl, urlencode, urlsplit

    try:
        parts = urlsplit(url)
        host = parts.netloc.rpartition("@")[2]
        query = [
            (name, value if is_reference(value) else "…") for name, value in parse_qsl(parts.query, True)
        ]
    except ValueError:
        return url.partition("?")[0]
    shown = urlencode(query, safe="…${}<>:", encoding="utf-8")
    return parts._replace(netloc=host, query=shown, fragment="").geturl()


def _problems(server: McpServer) -> list[str]:
    found: list[str] = []
    if not isinstance(server.name, str) or not server.name.strip() or len(server.name) > 200:
        found.append("its name must be a text of 1 to 200 characters")
    if server.command and server.url:
        found.append("it has both a command and a url; give one of them")
    if not all(isinstance(word, str) for word in server.command) or (
        server.command and not server.command[0]
    ):
        found.append(f"command must be a list of texts that begins with a program; got {server.command!r}")
    if server.transport not in TRANSPORTS:
        found.append(f"transport must be stdio, http or sse; got {server.transport!r}")
    elif server.command and server.transport != "stdio":
        found.append(f"transport {server.transport} needs a url, and it has a command")
    scheme = server.url.partition("://")[0].lower()
    if server.url and not is_reference(scheme) and scheme not in ("http", "https"):
        found.append(f"url must begin with http:// or https://; got {url_without_credentials(server.url)!r}")
    found += _unsendable(server)
    for name in ("timeout", "max_timeout", "start_timeout"):
        value = getattr(server, name)
        if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < 1e9:
            found.append(f"{name} must be a number of seconds above 0; got {value!r}")
    for name in ("env", "headers"):
        given = getattr(server, name)
        texts = isinstance(given, Mapping) and all(
            isinstance(text, str) for pair in given.items() for text in pair
        )
        if not texts:
            found.append(f"{name} must be a table of texts")
    if not isinstance(server.effects, Mapping) or not all(
        isinstance(effect, Effect) for effect in server.effects.values()
    ):
        found.append("effects must be a table of Effect.READ, WRITE or DESTRUCTIVE by names of tools")
    if server.auth not in AUTHS:
        found.append(f"auth must be oauth or none; got {server.auth!r}")
    return found


def _unsendable(server: McpServer) -> Iterator[str]:
    """The problems of values that no process or request can be given. Values may be credentials: none is shown."""
    for name, words in (("command", server.command), ("cwd", (server.cwd or "",))):
        if not all(map(_is_text_for_a_process, words)):
            yield f"{name} has a character that no process can be given"
    if isinstance(server.env, Mapping):
        for name, value in server.env.items():
            if not name or "=" in str(name) or not all(map(_is_text_for_a_process, (name, value))):
                yield f"env has a name or value that no variable can have: {on_one_line(str(name), 80)}"
    if isinstance(server.headers, Mapping):
        for name, value in server.headers.items():
            if not isinstance(name, str) or HEADER_NAME.fullmatch(name) is None or name.lower() in FRAMING:
                yield f"headers has a name that a request cannot be given: {on_one_line(str(name), 80)}"
            elif not isinstance(value, str) or HEADER_VALUE.fullmatch(value) is None:
                yield f"the header {name} has a value with a line break or another character that no header can have"
    if server.url and not (server.url.isprintable() and " " not in server.url and _is_address(server.url)):
        yield f"url is no address; got {on_one_line(url_without_credentials(server.url), 300)!r}"


def _is_text_for_a_process(text: Any) -> bool:
    try:
        return not isinstance(text, str) or b"\0" not in os.fsencode(text)
    except UnicodeError:
        return False


def _is_address(url: str) -> bool:
    from urllib.parse import urlsplit

    if is_reference(url):  # what it becomes is looked at when it is filled in
        return True
    try:
        parts = urlsplit(url)
        return bool(parts.hostname) and parts.port != 0 and url.encode() != b""
    except ValueError:
        return False


def _without_values(given: Mapping[str, str]) -> list[tuple[str, str]]:
    return sorted((name, "" if hides_value(name, value) else value) for name, value in given.items())


def _shown(name: str, value: Any) -> Any:
    hidden = hides_value(name, value) or (isinstance(value, str) and name.lower() == "authorization")
    return "(hidden)" if hidden and not is_reference(str(value)) else value


def _without_arguments(command: Sequence[str]) -> list[str]:
    """A command line in which the values of options whose names say that they are credentials are hidden."""
    return [word.removesuffix(hidden) + "(hidden)" * bool(hidden) for word, _, hidden in _words_of(command)]


def _words_of(command: Sequence[str]) -> Iterator[tuple[str, str, str]]:
    """The words of a command line, each with the name and the value of a credential in it, "" where there is none."""
    before = ""
    for word in command:
        name, equals, value = word.partition("=")
        option = name.startswith("-")
        if before and not option and not is_reference(word):
            yield word, before, word
        elif equals and hides_value(name, value):
            yield word, name, value
        else:
            yield word, "", ""
        before = name if option and not equals and names_credential(name) else ""
