"""`toolcrib mcp serve`: tools as an MCP server, on standard input and output or over HTTP."""

from __future__ import annotations

import asyncio
import os
import socket
from collections.abc import Sequence
from difflib import get_close_matches
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from toolcrib.assembly import BUILT_IN
from toolcrib.cli.console import DONE, Problem, say, stdout_reserved
from toolcrib.cli.dependencies import Factory, dependencies, load_factory, require_dependencies
from toolcrib.cli.loaded_tools import load_assembly
from toolcrib.cli.mcp_servers import ServersWanted, servers_in
from toolcrib.cli.options import ToolsToUse
from toolcrib.cli.policy_options import PolicyOptions
from toolcrib.cli.sandbox_options import SandboxOptions
from toolcrib.cli.settings_in_effect import settings_in_effect
from toolcrib.cli.signals import STOPPING, at_signals
from toolcrib.cli.user_files import approval_store, stored_secrets, writable_audit_log
from toolcrib.command.sandbox.lease import ScratchFolder
from toolcrib.command.sandbox.process.kernel import hide_own_process
from toolcrib.dataclass import dataclass, replace
from toolcrib.rules.name_patterns import any_name_matches, name_matches
from toolcrib.toolset import filtered, is_toolset, name_of
from toolcrib.visible import on_one_line

if TYPE_CHECKING:
    from toolcrib.assembly import Assembly
    from toolcrib.command.sandbox import Sandbox
    from toolcrib.mcp.server import McpFace
    from toolcrib.toolbox import Toolbox

Names = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="TOOL",
        help="Names or patterns of the tools to serve; without any, your own, or the built-in ones if you name none.",
    ),
]

READER = "read_file"  # the tool with which a client reads on in a long output


class Face(StrEnum):
    """What clients see: all tools, or two that find and call them."""

    TOOLS = "tools"
    SEARCH = "search"


@dataclass(frozen=True, slots=True)
class ServeOptions:
    """How the tools are served, and to whom."""

    name: Annotated[str, typer.Option(metavar="NAME", help="The name of the server, for clients.")] = (
        "toolcrib"
    )
    face: Annotated[
        Face, typer.Option(help="Show all tools, or two tools that find the others and call them.")
    ] = Face.TOOLS
    http: Annotated[
        str | None,
        typer.Option(metavar="[HOST:]PORT", help="Serve over HTTP; the host is 127.0.0.1 if left out."),
    ] = None
    token_env: Annotated[
        str | None,
        typer.Option(metavar="VAR", help="The variable that holds the token which clients must send."),
    ] = None
    allow_origin: Annotated[
        list[str] | None,
        typer.Option(
            metavar="ORIGIN",
            help="A web page that may call, such as https://app.example.com; may be repeated.",
        ),
    ] = None
    public_name: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME", help="A host name by which clients reach this server; may be repeated."),
    ] = None
    oauth_issuer: Annotated[
        str | None,
        typer.Option(metavar="URL", help="Take access tokens of this authorization server."),
    ] = None
    oauth_resource: Annotated[
        str | None,
        typer.Option(metavar="URL", help="The address of this server, for which tokens must be issued."),
    ] = None
    oauth_scope: Annotated[
        list[str] | None, typer.Option(metavar="SCOPE", help="A scope that tokens must have.")
    ] = None
    pass_on: Annotated[
        bool,
        typer.Option(
            "--pass-on",
            help="With --mcp: pass on the servers' resources and prompts, too; rules decide about tools alone.",
        ),
    ] = False
    audit: Annotated[
        bool, typer.Option("--audit", help="Record every decision and call in your audit log.")
    ] = False


def command(
    serve: ServeOptions,
    tools: ToolsToUse,
    policy: PolicyOptions,
    sandbox: SandboxOptions,
    names: Names = None,
) -> int:
    """A client starts it itself, by a command such as: toolcrib mcp serve --from my_tools. With --http it goes on
    until Ctrl-C, at http://127.0.0.1:PORT/mcp.

    Your rules and the autonomy decide over every call. What has to be asked is asked at the client, if it can show
    questions (elicitation); if it cannot, the call is refused.

    With --mcp FILE, the tools of other MCP servers are served too, under your rules: a gateway.
    """
    hide_own_process()  # the keys of providers stand in our environment
    verifier = _verifier(serve)
    if serve.http is not None:
        _check_reach(serve, verifier)
    if not tools.workspace.is_dir():
        raise Problem(f"workspace: expected a folder that exists, got {tools.workspace}")
    scratch = ScratchFolder()  # for long outputs, which a client may read on; removed with this process
    try:
        loaded, assembly, place = _load(tools, sandbox, names or (), Path(scratch.path()))
        factory = load_factory(tools.deps)
        if factory is None:
            require_dependencies(tool for tool in assembly.named if not is_toolset(tool))
        settings = settings_in_effect(policy, tools.workspace, assembly.toolbox(autonomy="full"))
        if serve.http is not None:
            say(settings.line(place, tools.workspace))
        reads = any(
            assembly.sources.get(name_of(tool)) == BUILT_IN and name_of(tool) == READER
            for tool in assembly.builtin
        )
        box = assembly.toolbox(
            policy=settings.policy,
            limits=settings.limits or None,
            approvals=approval_store(),
            project=tools.workspace.resolve(),
            audit=writable_audit_log() if serve.audit else None,
            secrets=stored_secrets(),
            overflow=Path(scratch.path()) if reads else None,
        )
        return asyncio.run(_serve(_face(box, loaded, serve), box, serve, verifier, factory))
    finally:
        scratch.close()


def _load(
    tools: ToolsToUse, sandbox: SandboxOptions, names: Sequence[str], overflow: Path
) -> tuple[Assembly, Assembly, Sandbox]:
    """All tools, those that are served, and the sandbox that commands run in."""
    from toolcrib.tools import Workspace  # loads every built-in tool, which `--help` can do without

    wanted = ServersWanted(_without_ourselves(tools.mcp_files), start=True, configured=False)
    place = sandbox.choose(tools.workspace)
    workspace = Workspace(tools.workspace, readable=[overflow])
    loaded = load_assembly(tools.references, workspace, place, mcp=wanted)
    served = _chosen(loaded, names)
    if any(served.sources.get(name_of(tool)) == BUILT_IN for tool in served.builtin):
        _check_workspace(tools)
    return loaded, served, place


def _face(box: Toolbox, loaded: Assembly, serve: ServeOptions) -> McpFace:
    try:
        from toolcrib.mcp.server import McpFace
    except ImportError as missing:
        raise Problem(str(missing)) from missing
    behind: dict[str, Any] = {}
    if serve.pass_on:
        from toolcrib.mcp.client.toolset import McpToolset
        from toolcrib.mcp.server import PassedOnPrompts, PassedOnResources

        for toolset in (one for one in loaded.named if isinstance(one, McpToolset)):
            behind = {"resources": PassedOnResources(toolset), "prompts": PassedOnPrompts(toolset)}
    lasting = serve.http is None  # who started this is its only client
    return McpFace(box, name=serve.name, show=serve.face.value, lasting_approvals=lasting, **behind)


async def _serve(
    face: McpFace, box: Toolbox, serve: ServeOptions, verifier: Any, factory: Factory | None
) -> int:
    """Serve until the client has left, or a signal comes; the exit code."""
    stop = asyncio.Event()
    async with dependencies(factory) as deps:
        box.deps = deps
        with at_signals(STOPPING, lambda _: stop.set()):
            if serve.http is None:
                from toolcrib.mcp.server import serve_stdio

                await serve_stdio(face, stop=stop)
            else:
                await _serve_http(face, serve, verifier, stop)
    return DONE


async def _serve_http(face: McpFace, serve: ServeOptions, verifier: Any, stop: asyncio.Event) -> None:
    from toolcrib.mcp.server import OAuthResource, serve_http

    host, port = _address(serve.http or "")
    loopback = _is_loopback(host)
    names: Sequence[str] | None = serve.public_name or ()
    hosts = None if not loopback and not names else ["localhost", "127.0.0.1", "::1", host, *(names or ())]
    oauth = None
    if serve.oauth_issuer and serve.oauth_resource:
        scopes = tuple(serve.oauth_scope or ())
        oauth = OAuthResource(serve.oauth_resource, (serve.oauth_issuer,), scopes)
    with _listening(host, port) as sock:
        shown = f"[{host}]" if ":" in host else host
        say(f"serving at http://{shown}:{sock.getsockname()[1]}/mcp; Ctrl-C ends it")
        with stdout_reserved():
            await serve_http(
                face,
                sock,
                stop=stop,
                verifier=verifier,
                oauth=oauth,
                hosts=hosts,
                origins=serve.allow_origin or (),
            )


def _check_reach(serve: ServeOptions, verifier: Any) -> None:
    """Raise Problem for an address at which strangers could call."""
    host, _ = _address(serve.http or "")
    if verifier is None and not _is_loopback(host):
        raise Problem(
            f"--http {serve.http}: other machines can reach {host}, so clients must prove who they are: "
            "add --token-env VAR, or --oauth-issuer and --oauth-resource"
        )


def _listening(host: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        return socket.create_server((host, port), family=family, backlog=128)
    except OSError as problem:
        # `strerror` repeats the address, as a tuple of Python. A name that is not found has an errno below 0.
        words = os.strerror(problem.errno) if problem.errno and problem.errno > 0 else problem.strerror
        raise Problem(f"--http: {host}:{port} cannot be used: {words or problem}") from problem


def _address(text: str) -> tuple[str, int]:
    """The host and port of `--http`. Raises Problem for anything else."""
    host, _, port = text.rpartition(":")
    if not port.isascii() or not port.isdigit() or int(port) > 65_535:
        raise Problem(f"--http: expected a port, or HOST:PORT; got {text}")
    return host.strip("[]") or "127.0.0.1", int(port)


def _is_loopback(host: str) -> bool:
    if host == "127.0.0.1":
        return True
    from toolcrib.mcp.server.http import is_loopback

    return is_loopback(host)


def _verifier(serve: ServeOptions) -> Any:
    """Says who may call over HTTP; None where anybody may. Raises Problem for options that do not go together."""
    if serve.http is None:
        given = [
            f"--{name.replace('_', '-')}"
            for name in (
                "token_env",
                "allow_origin",
                "public_name",
                "oauth_issuer",
                "oauth_resource",
                "oauth_scope",
            )
            if getattr(serve, name)
        ]
        if given:
            raise Problem(
                f"{', '.join(given)}: only with --http; without it, one client starts this as its own"
            )
        return None
    if bool(serve.oauth_issuer) != bool(serve.oauth_resource):
        raise Problem(
            "--oauth-issuer and --oauth-resource go together: who issues tokens, and for which server"
        )
    try:
        from toolcrib.mcp.server import JwtVerifier, SharedToken
    except ImportError as missing:
        raise Problem(str(missing)) from missing
    try:
        if serve.oauth_issuer and serve.oauth_resource:
            if serve.token_env:
                raise Problem("--token-env and --oauth-issuer are two ways to say who may call: choose one")
            return JwtVerifier(serve.oauth_issuer, serve.oauth_resource)
        if serve.token_env:
            return SharedToken(os.environ.get(serve.token_env, ""))
    except ValueError as problem:
        option = f"--token-env {serve.token_env}" if serve.token_env else "--oauth-issuer"
        raise Problem(f"{option}: {problem}") from problem
    return None


def _check_workspace(tools: ToolsToUse) -> None:
    """Raise Problem where nobody chose the folder: clients start servers in their own, such as / or the home folder."""
    folder = tools.workspace.resolve()
    if tools.workspace == Path() and folder in (Path(folder.anchor), Path.home().resolve()):
        raise Problem(
            f"the tools would work in {folder}, where this was started; name a folder with --workspace FOLDER"
        )


def _chosen(assembly: Assembly, names: Sequence[str]) -> Assembly:
    """The tools that are served. Raises Problem for a name that none has."""
    if not names:
        own = [tool for tool in assembly.builtin if assembly.sources.get(name_of(tool)) != BUILT_IN]
        return replace(assembly, builtin=own) if assembly.named or own else assembly
    supplied = [name_of(tool) for tool in (*assembly.named, *assembly.builtin) if not is_toolset(tool)]
    if not any(map(is_toolset, assembly.named)):
        for name in names:
            if not any(name_matches(name, one) for one in supplied):
                near = get_close_matches(name, supplied, n=3, cutoff=0.5)
                hint = f"did you mean {' or '.join(near)}?" if near else "`toolcrib tools list` shows all"
                raise Problem(f"there is no tool {on_one_line(name)!r}; {hint}")

    def serves(tool: str) -> bool:
        return any_name_matches(names, tool)

    named = [
        filtered(tool, serves) if is_toolset(tool) else tool
        for tool in assembly.named
        if is_toolset(tool) or serves(name_of(tool))
    ]
    return replace(
        assembly, named=named, builtin=[tool for tool in assembly.builtin if serves(name_of(tool))]
    )


def _without_ourselves(files: Sequence[Path]) -> tuple[Path, ...]:
    """The files of `--mcp`. Raises Problem where one has a server that would be this one, started again and again."""
    for server in servers_in(files).servers:
        words = [Path(word).name for word in server.command]
        for place, word in enumerate(words[:-2]):
            if word.startswith("toolcrib") and words[place + 1 : place + 3] == ["mcp", "serve"]:
                raise Problem(
                    f"--mcp: {on_one_line(server.name)} of {on_one_line(server.source)} is a toolcrib server itself, "
                    "which would start without end; give a file without it"
                )
    return tuple(files)
