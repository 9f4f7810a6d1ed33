"""Fills in what the configuration of a server refers to, at the moment when the server is started.

| written | put in |
| --- | --- |
| `${NAME}`, `${env:NAME}` | the variable of our environment; without it the server is not started |
| `${NAME:-text}` | the variable, or the text if it is not set or empty |
| `${input:ID}` | the secret of that name, or else the input's default |
| `${workspaceFolder}`, `${workspaceFolderBasename}`, `${userHome}` | folders |
| `${/}`, `${pathSeparator}` | the character between the parts of a path |
| `<secret_ref:NAME>` | the stored secret |

What is put in is not read again. Names of variables are not expanded, nor is a server's name.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Generator, Iterable, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from toolcrib.credentials import names_credential
from toolcrib.dataclass import dataclass, replace
from toolcrib.mcp.concealment import Conceal, concealing_values
from toolcrib.mcp.config import McpServer, is_reference, written_credentials
from toolcrib.secrets.references import REFERENCE
from toolcrib.secrets.stores import NAME, SecretError, SecretStore

__all__ = ["Expansion", "MissingValue", "concealing", "references_of"]

# A reference of either kind, in one pattern: so nothing that is put in is looked at again.
_EXPRESSION = re.compile(rf"\$\{{([^}}$]*)\}}|{REFERENCE.pattern}")
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


class MissingValue(ValueError):
    """A configuration refers to something that is not there, or cannot be used. The message says what, and no value."""


@dataclass(frozen=True, slots=True)
class Expansion:
    """Where the values come from that configurations refer to. Calling it gives the server with them.

    Args:
        environ: The variables; None: those of our environment.
        secrets: The store of the secrets; None: there are none.
        workspace: The folder that `${workspaceFolder}` means; None: the current one.

    Raises MissingValue, when it is called, if a value is missing.

    >>> server = McpServer("x", url="https://example.com/${TEAM:-all}")
    >>> Expansion(environ={"TEAM": "red"})(server).url
    'https://example.com/red'
    """

    environ: Mapping[str, str] | None = None
    secrets: SecretStore | None = None
    workspace: str | os.PathLike[str] | None = None

    def __call__(self, server: McpServer) -> McpServer:
        """The server with all values put in; to be used, and not to be shown."""
        command = tuple(self._text(server, word) for word in server.command)
        url = self._text(server, server.url)
        with _unshown("command", "begin with a program that can be started", server.command):
            server = replace(server, command=command)
        with _unshown("url", "be an address that begins with http:// or https://", (server.url,)):
            server = replace(server, url=url)
        return replace(
            server,
            env={name: self._text(server, value) for name, value in server.env.items()},
            cwd=None if server.cwd is None else self._text(server, server.cwd),
            headers={name: self._text(server, value) for name, value in server.headers.items()},
            oauth=self._data(server, dict(server.oauth)),
        )

    def _data(self, server: McpServer, value: Any) -> Any:
        if isinstance(value, str):
            return self._text(server, value)
        if isinstance(value, dict):
            return {key: self._data(server, item) for key, item in value.items()}
        return [self._data(server, item) for item in value] if isinstance(value, list | tuple) else value

    def _text(self, server: McpServer, text: str) -> str:
        if not is_reference(text):
            return text

        def value(match: re.Match[str]) -> str:
            inner, secret = match[1], match[2]
            return self._secret(secret) if secret is not None else self._expression(server, inner, match[0])

        return _EXPRESSION.sub(value, text)

    def _expression(self, server: McpServer, inner: str, written: str) -> str:
        kind, colon, rest = inner.partition(":")
        if inner in ("workspaceFolder", "workspaceFolderBasename"):
            folder = Path(os.path.realpath(self.workspace or os.curdir))
            return str(folder) if inner == "workspaceFolder" else folder.name
        if inner == "userHome":
            return str(Path.home())
        if inner in ("/", "pathSeparator"):
            return os.sep
        if kind == "input" and colon:
            return self._input(server, rest)
        name, has_default, default = (rest if kind == "env" and colon else inner).partition(":-")
        if not _VARIABLE.fullmatch(name):
            raise MissingValue(f"{written} is no reference that is known here")
        environ = os.environ if self.environ is None else self.environ
        if found := environ.get(name):
            return found
        if has_default:
            return default
        if name in environ:
            return ""
        raise MissingValue(f"the variable {name} is not set; set it, or write ${{{name}:-default}}")

    def _input(self, server: McpServer, name: str) -> str:
        stored = self._stored(name) if NAME.fullmatch(name) else None
        if stored is not None:
            return stored
        default = server.inputs.get(name, {}).get("default")
        if isinstance(default, str):
            return default
        raise MissingValue(f"the input {name} has no value; to give it one: toolcrib secrets set {name}")

    def _secret(self, name: str) -> str:
        stored = self._stored(name)
        if stored is None:
            raise MissingValue(f"there is no secret {name}; to store it: toolcrib secrets set {name}")
        return stored

    def _stored(self, name: str) -> str | None:
        try:
            return None if self.secrets is None else self.secrets.get(name)
        except SecretError as problem:
            raise MissingValue(f"secret {name}: {problem}") from None


@contextmanager
def _unshown(name: str, rule: str, written: Iterable[str]) -> Generator[None]:
    """Raises MissingValue in the place of an error that would show what was put in."""
    try:
        yield
    except ValueError:
        references = " and ".join(_references(written))
        raise MissingValue(f"its {name} must {rule}; with the value of {references} it does not") from None


def concealing(written: McpServer, resolve: Callable[[McpServer], McpServer]) -> Conceal:
    """A function that puts the references back into a text, such as a server's last words, in place of credentials.

    `resolve` fills in what `written` refers to. Credentials are the values of secrets and inputs, of variables whose
    names say so, and what is written out under such names. A short value stays, because ordinary words could be taken
    for it.
    """
    own = {value: f"(hidden: {name})" for name, value in written_credentials(written)}
    return concealing_values(own | {value: name for name, value in _credentials(written, resolve)})


def _credentials(written: McpServer, resolve: Callable[[McpServer], McpServer]) -> list[tuple[str, str]]:
    """The references to credentials, each with its value: filled in by itself, as texts around it may be ambiguous."""
    references = [
        reference
        for reference in references_of(written)
        if reference.startswith(("<secret_ref:", "${input:")) or names_credential(reference)
    ]
    if not references:
        return []
    alone = McpServer(written.name, command=("true", *references), inputs=written.inputs)
    return [*zip(references, resolve(alone).command[1:], strict=False)]


def references_of(server: McpServer) -> list[str]:
    """What a configuration refers to, as it is written there; each once. For people."""
    texts = [*server.command, *server.env.values(), server.cwd or "", server.url, *server.headers.values()]
    texts += [value for value in server.oauth.values() if isinstance(value, str)]
    return _references(texts)


def _references(texts: Iterable[str]) -> list[str]:
    return list(dict.fromkeys(match[0] for text in texts for match in _EXPRESSION.finditer(text)))
