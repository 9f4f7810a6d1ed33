"""`toolcrib mcp add`: an MCP server becomes a table of the user's or the project's `toolcrib.toml`."""

from __future__ import annotations

import os
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer

from toolcrib.cli.console import DONE, Problem, out, say
from toolcrib.cli.mcp_settings_text import with_server
from toolcrib.cli.options import WorkspaceFolder
from toolcrib.cli.tool_settings import PLACE, projects_settings, settings_path
from toolcrib.errors import ToolcribError
from toolcrib.mcp.config import hides_value
from toolcrib.mcp.config_files import mcp_server
from toolcrib.private_files import replace_private_file
from toolcrib.settings.file import SettingsError, read_settings
from toolcrib.text_file import read_text_file
from toolcrib.visible import on_one_line

CONTEXT_SETTINGS = {"allow_interspersed_args": True, "ignore_unknown_options": False}


class RemoteTransport(StrEnum):
    """How a remote server is spoken to."""

    HTTP = "http"
    SSE = "sse"


Name = Annotated[str, typer.Argument(metavar="NAME", help="The name that its tools begin with.")]
Target = Annotated[
    list[str],
    typer.Argument(metavar="URL | -- COMMAND", help="A remote server, or a local one."),
]
Env = Annotated[
    list[str] | None, typer.Option("--env", "-e", metavar="NAME=VALUE", help="A variable; may be repeated.")
]
Header = Annotated[
    list[str] | None,
    typer.Option("--header", "-H", metavar="'NAME: VALUE'", help="A header; may be repeated."),
]
Transport = Annotated[RemoteTransport, typer.Option(help="How to speak to a remote server.")]
Project = Annotated[
    bool, typer.Option("--project", help="Add it to the project's settings, which must be trusted.")
]


def command(
    name: Name,
    target: Target,
    env: Env = None,
    header: Header = None,
    transport: Transport = RemoteTransport.HTTP,
    project: Project = False,
    workspace: WorkspaceFolder = Path(),
) -> int:
    """Values may refer to ${VARIABLE}, and to a stored secret as <secret_ref:NAME>. Nothing is started:
    toolcrib mcp test NAME does that.
    """
    entry = _entry(target, transport, _pairs(env, "=", "--env"), _pairs(header, ":", "--header"))
    try:
        server = mcp_server(name, entry, seconds=True)
    except ValueError as problem:
        raise Problem(str(problem)) from None
    path = file_to_change(workspace if project else None)
    _add_to_file(path, name, entry)
    out(on_one_line(f"{name} is added to {path}: {server.address()}"))
    for key, value in {**server.env, **server.headers}.items():
        if hides_value(key, value) or (
            key.lower() == "authorization" and "${" not in value and "<secret" not in value
        ):
            say(
                f"note: the value of {on_one_line(key)} is now in that file as plain text. To keep it out: toolcrib "
                f"secrets set {_secret_name(key)}, and write <secret_ref:{_secret_name(key)}> in its place"
            )
    if project:
        say(f"It counts once it is trusted: toolcrib trust {on_one_line(str(workspace))}")
    return DONE


def file_to_change(project: Path | None) -> Path:
    """The file of settings of a project, or the user's own; a link in a project is not followed. Raises Problem."""
    if project is None:
        return settings_path().resolve()
    try:
        projects_settings(project)
    except ToolcribError as problem:
        raise Problem(str(problem)) from None
    return project / PLACE


def _add_to_file(path: Path, name: str, entry: dict[str, Any]) -> None:
    """Write a server into a file of settings, which is made if there is none. Raises Problem."""
    try:
        text = read_text_file(path) if path.exists() else ""
        made = with_server(text, name, entry)
        read_settings(made, str(path))
        path.parent.mkdir(parents=True, exist_ok=True)
        replace_private_file(path, made.encode())
    except SettingsError as problem:
        raise Problem(str(problem)) from None
    except Problem as problem:
        raise Problem(f"{path}: {problem.message}") from None
    except (OSError, ValueError) as problem:
        raise Problem(f"{path} cannot be changed: {getattr(problem, 'strerror', None) or problem}") from None


def _entry(
    target: list[str], transport: RemoteTransport, env: dict[str, str], headers: dict[str, str]
) -> dict[str, Any]:
    """The table of the server: what is given, and no defaults."""
    if "://" in target[0]:
        if len(target) > 1:
            raise Problem(f"expected a URL, or -- and a command; got a URL and {on_one_line(target[1])!r}")
        if env:
            raise Problem("--env is for local servers; a remote one takes --header")
        remote = {"url": target[0], **({"transport": "sse"} if transport is RemoteTransport.SSE else {})}
        return {**remote, **({"headers": headers} if headers else {})}
    if headers:
        raise Problem("--header is for remote servers; a local one takes --env")
    return {"command": target, **({"env": env} if env else {})}


def _pairs(given: list[str] | None, sign: str, option: str) -> dict[str, str]:
    found: dict[str, str] = {}
    for item in given or ():
        name, has_sign, value = item.partition(sign)
        if not has_sign or not name.strip():  # the text may be a credential, so it is not repeated
            raise Problem(f"{option}: expected NAME{sign}VALUE")
        found[name.strip()] = value.strip() if sign == ":" else os.fspath(value)
    return found


def _secret_name(key: str) -> str:
    return "".join(char if char.isalnum() and char.isascii() else "_" for char in key).upper()
