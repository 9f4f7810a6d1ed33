"""`toolcrib mcp login`: a person logs in to a remote MCP server with OAuth, once."""

from __future__ import annotations

import asyncio
import webbrowser
from pathlib import Path
from typing import Annotated

import typer

from toolcrib.cli.console import DONE, NOT_DONE, Problem, out, person_can_be_asked, say
from toolcrib.cli.mcp_servers import login_store, server_to_log_in_to
from toolcrib.cli.options import McpFiles, ServerName, WorkspaceFolder
from toolcrib.visible import on_one_line

Paste = Annotated[bool, typer.Option("--paste", help="Paste the address that a browser elsewhere ended at.")]
Browser = Annotated[
    bool, typer.Option("--browser/--no-browser", help="Open a browser at the address, in a terminal.")
]
Scope = Annotated[
    list[str] | None,
    typer.Option("--scope", metavar="SCOPE", help="Ask for this scope, too; may be repeated."),
]
Timeout = Annotated[
    float, typer.Option("--timeout", metavar="SECONDS", min=1, help="Seconds to wait for the browser.")
]


def command(
    name: ServerName,
    paste: Paste = False,
    browser: Browser = True,
    scope: Scope = None,
    timeout: Timeout = 300,
    workspace: WorkspaceFolder = Path(),
    mcp: McpFiles = None,
) -> int:
    """The address to log in at is shown, and opened in a browser. The tokens lie in a file that only you may read, or
    in the system's keyring, and are renewed by themselves. No model can name or see them.
    """
    from toolcrib.mcp.client.oauth import LoopbackAuthorizer, OAuthError, PasteAuthorizer, login

    server, settings = server_to_log_in_to(name, workspace, mcp or ())
    authorizer: LoopbackAuthorizer | PasteAuthorizer | None = None
    if not settings.interactive:
        pass  # a program's own credentials need nobody
    elif paste:
        if not person_can_be_asked():
            raise Problem("--paste needs a terminal")
        authorizer = PasteAuthorizer(_show, lambda: input("Address that the browser ended at: "))
    else:
        open_url = webbrowser.open if browser and person_can_be_asked() else None
        authorizer = LoopbackAuthorizer(_show, open_url=open_url, timeout=timeout)
    work = login(server, login_store(), settings, authorizer=authorizer, scopes=scope or ())
    try:
        made = asyncio.run(work)
    except OAuthError as problem:
        raise Problem(f"{name}: {on_one_line(str(problem))}", code=NOT_DONE) from problem
    scopes = f", with the scopes {' '.join(made.token.scopes)}" if made.token and made.token.scopes else ""
    out(on_one_line(f"{name}: logged in at {made.issuer.issuer}{scopes}"))
    return DONE


def _show(url: str) -> None:
    say(f"Log in at this address:\n  {on_one_line(url)}")
