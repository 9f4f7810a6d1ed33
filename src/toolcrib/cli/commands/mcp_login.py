"""`toolcrib mcp login`: a person logs in to a remote MCP server with OAuth, once."""

from __future__ import annotations

import asyncio
import webbrowser
from pathlib import Path
from typing import Annotated

import typer

from toolcrib.cli.console import DONE, NOT_DONE, Problem, out, person_can_be_asked, say
from toolcrib.cli.mcp_servers import configured_servers, oauth_settings
from toolcrib.cli.options import McpFiles, WorkspaceFolder
from toolcrib.cli.user_files import stored_secrets
from toolcrib.mcp.config import McpServer
from toolcrib.mcp.expansion import Expansion
from toolcrib.visible import on_one_line

Out = Annotated[bool, typer.Option("--logout", help="Revoke the login and forget it.")]
Paste = Annotated[bool, typer.Option("--paste", help="Paste the address that a browser elsewhere ended at.")]
Browser = Annotated[bool, typer.Option("--browser/--no-browser", help="Open a browser at the address.")]
Scope = Annotated[list[str] | None, typer.Option("--scope", help="Ask for this scope, too; may be repeated.")]


def command(
    name: str,
    logout: Out = False,
    paste: Paste = False,
    browser: Browser = True,
    scope: Scope = None,
    workspace: WorkspaceFolder = Path(),
    mcp: McpFiles = None,
) -> int:
    """The address to log in at is shown, and opened in a browser. The tokens lie in a file that only you may read, and
    are renewed by themselves. No model can name or see them.
    """
    server = configured_servers(workspace, mcp or ()).server(name)
    if not server.url:
        raise Problem(
            f"{name} is a local server: it has no login. Its credentials are variables: see --env of mcp add"
        )
    if server.auth == "none":
        raise Problem(f'{name} is configured without OAuth: it has a header Authorization, or auth = "none"')
    try:
        given = Expansion(secrets=stored_secrets(), workspace=workspace)(server)
        return asyncio.run(
            _logout(given) if logout else _login(given, scope or [], paste=paste, browser=browser)
        )
    except ValueError as problem:
        raise Problem(f"{name}: {problem}") from problem


async def _login(server: McpServer, scopes: list[str], *, paste: bool, browser: bool) -> int:
    from toolcrib.mcp.client.oauth import (
        LoginStore,
        LoopbackAuthorizer,
        OAuthError,
        PasteAuthorizer,
        login,
    )

    settings = oauth_settings(server)
    authorizer = None
    if settings.interactive:
        if paste and not person_can_be_asked():
            raise Problem("--paste needs a terminal")
        authorizer = (
            PasteAuthorizer(_show, lambda: input("Address that the browser ended at: "))
            if paste
            else LoopbackAuthorizer(_show, open_url=webbrowser.open if browser else None)
        )
    try:
        made = await login(server, LoginStore.of_user(), settings, authorizer=authorizer, scopes=scopes)
    except OAuthError as problem:
        raise Problem(f"{server.name}: {on_one_line(str(problem))}", code=NOT_DONE) from problem
    out(on_one_line(f"{server.name}: logged in at {made.issuer.issuer}"))
    return DONE


async def _logout(server: McpServer) -> int:
    from toolcrib.mcp.client.oauth import LoginStore, OAuthError, logout

    try:
        revoked = await logout(server, LoginStore.of_user(), oauth_settings(server))
    except OAuthError as problem:
        raise Problem(f"{server.name}: {on_one_line(str(problem))}", code=NOT_DONE) from problem
    if revoked is None:
        out(on_one_line(f"{server.name}: nobody was logged in"))
        return NOT_DONE
    out(on_one_line(f"{server.name}: logged out" + ("" if revoked else "; its issuer did not confirm it")))
    return DONE


def _show(url: str) -> None:
    say(f"Log in at this address:\n  {on_one_line(url)}")
