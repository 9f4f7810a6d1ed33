"""The MCP servers that count in a folder, and the toolset of them.

The files that a command names count before the user's own settings, and these before those of a project, which count
once a person trusted them. Of two servers with one name the first counts: a project replaces none of the user's.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from toolcrib.cli.console import Problem, say
from toolcrib.cli.tool_settings import (
    PLACE,
    misplaced_settings,
    projects_settings,
    users_settings,
    why_not_trusted,
)
from toolcrib.cli.user_files import stored_secrets
from toolcrib.dataclass import dataclass, field, replace
from toolcrib.errors import ToolcribError
from toolcrib.mcp.config import McpServer
from toolcrib.mcp.config_files import PROJECT_FILES, McpConfigError, read_mcp_servers, servers_of_text
from toolcrib.mcp.names import LONGEST_SERVER, may_belong, shown_server
from toolcrib.rules.project_files import read_project_file
from toolcrib.settings.file import SettingsFile, read_settings
from toolcrib.visible import on_one_line

if TYPE_CHECKING:
    from toolcrib.mcp.client.oauth import LoginStore, OAuthSettings
    from toolcrib.mcp.client.toolset import McpToolset
    from toolcrib.rules.trust import Trustable

START_SECONDS = 120.0  # seconds that a command waits for a server which it needs


@dataclass(frozen=True, slots=True)
class ServersWanted:
    """Which MCP servers a command uses, and how.

    `files` are those of `--mcp`. Without `start`, only tools that are known from an earlier time are used, and no
    server is started. With a `tool`, only servers that may have it are used. `asks` says whether somebody can be asked.
    Without `configured`, only the servers in `files` count.
    """

    files: tuple[Path, ...] = ()
    start: bool = False
    tool: str = ""
    asks: bool = True
    configured: bool = True


@dataclass(slots=True)
class ConfiguredServers:
    """The servers that count, those that do not with the reason, and what is wrong in their files."""

    servers: list[McpServer] = field(default_factory=list)
    unused: list[tuple[McpServer, str]] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    def add(self, servers: Iterable[McpServer]) -> None:
        """Add servers that count after those that are there.

        Names whose tools would begin alike are one name: a rule about `git__*` means one server.
        """
        taken = {_beginning(server): server for server in self.servers}
        for server in servers:
            first = taken.setdefault(_beginning(server), server)
            if first is server:
                self.servers.append(server)
            elif first.name == server.name:
                self.unused.append((server, f"{first.source} has a server of that name"))
            else:
                why = f"its tools would begin as those of {first.name} in {first.source}; rename it"
                self.unused.append((server, why))

    def enabled(self, *also: McpServer) -> list[McpServer]:
        """The servers that are switched on, and the ones that are named here, as they are."""
        return [server for server in self.servers if server.enabled or server in also]

    def server(self, name: str) -> McpServer:
        """The server of that name. Raises Problem, with near names."""
        found = next((server for server in self.servers if server.name == name), None)
        if found is None:
            from difflib import get_close_matches

            why = next((why for server, why in self.unused if server.name == name), "")
            known = [server.name for server in self.servers]
            near = get_close_matches(name, known, n=3, cutoff=0.5)
            hint = f"did you mean {' or '.join(near)}?" if near else "`toolcrib mcp list` shows all"
            raise Problem(
                f"MCP server {on_one_line(name)} is not used: {why}"
                if why
                else f"there is no MCP server {on_one_line(name)!r}; {hint}"
            )
        return found


def servers_in(files: Sequence[Path]) -> ConfiguredServers:
    """The MCP servers in files that a person named. Raises Problem for a file that cannot be used."""
    found = ConfiguredServers()
    for path in files:
        try:
            found.add(read_mcp_servers(path, complain=found.notes.append))
        except McpConfigError as problem:
            raise Problem(f"--mcp {problem}") from problem
    return found


def configured_servers(workspace: str | Path, files: Sequence[Path] = ()) -> ConfiguredServers:
    """The MCP servers that count in a folder. Raises Problem for a file of the user's that cannot be used."""
    found = servers_in(files)
    own = users_settings()
    if own is not None:
        found.add(servers_of_settings(own))
    uses_files = own is None or own.settings.mcp.project_files
    for place, item in _projects_files(workspace, found.notes):
        if place in PROJECT_FILES and not uses_files:
            continue
        servers, notes = servers_of_project_file(item)
        why = why_not_trusted(item)
        if why:
            found.unused += [(server, f"{why}; to read it: toolcrib trust") for server in servers]
            if not servers:  # else nothing would be said of the file
                found.notes += notes
            continue
        found.notes += notes
        found.add(servers)
        if (
            place == PLACE
            and not read_settings(item.data.decode("utf-8", "replace")).settings.mcp.project_files
        ):
            uses_files = False
    return found


def _projects_files(workspace: str | Path, notes: list[str]) -> Iterator[tuple[str, Trustable]]:
    """The files of a project that may have servers, in their order; what cannot be read is noted."""
    try:
        own = projects_settings(workspace)
        if own is not None:
            yield PLACE, own[0]
        elif misplaced := misplaced_settings(workspace):
            notes.append(misplaced)
    except ToolcribError:
        pass  # reported where the settings are read
    for place in PROJECT_FILES:
        try:
            file = read_project_file(workspace, place)
        except ToolcribError as problem:
            notes.append(f"{place} of this folder is not used: {problem}")
        else:
            if file is not None:
                yield place, file


def servers_of_settings(file: SettingsFile) -> list[McpServer]:
    """The servers in a `toolcrib.toml`."""
    return [entry.server(name, file.path) for name, entry in file.settings.mcp.servers.items()]


def servers_of_project_file(item: Trustable) -> tuple[list[McpServer], list[str]]:
    """The servers in a file of a project, trusted or not, and what is wrong in it.

    A project cannot say that its servers are harmless: `trusted` and `effects` do not count there.
    """
    notes: list[str] = []
    text = item.data.decode("utf-8", "replace")
    try:
        if item.path == PLACE:
            servers = servers_of_settings(read_settings(text, PLACE))
        else:
            servers = servers_of_text(text, item.path, notes.append)
    except ToolcribError as problem:
        return [], [f"{item.path} of this folder is not used: {problem}"]
    notes += [
        f"{item.path}: MCP server {server.name}: trusted and effects do not count in a project's file; "
        "what its tools may do is for your own toolcrib.toml or policy.toml to say"
        for server in servers
        if server.trusted or server.effects
    ]
    source = f"{item.project}/{item.path}"
    return [replace(server, source=source, trusted=False, effects={}) for server in servers], notes


def toolset_of_servers(
    workspace: str | Path, wanted: ServersWanted, *, notes: bool = True
) -> McpToolset | None:
    """The tools of the MCP servers that count in a folder; None without any. What is not used is said on stderr.

    Without `notes`, what is wrong in the files of servers is not said.
    """
    found = configured_servers(workspace, wanted.files) if wanted.configured else servers_in(wanted.files)
    servers = found.enabled()
    for note in found.notes if notes else ():
        say(f"note: {on_one_line(note)}")
    if wanted.tool:
        servers = [server for server in servers if may_belong(wanted.tool, server.name)]
    for line in _unused_lines(found):
        say(line)
    if servers and not wanted.start:
        known, unknown = _by_manifest(servers)
        if unknown:
            names = ", ".join(on_one_line(server.name) for server in unknown)
            say(f"note: the tools of {names} are not known yet; to start and list: toolcrib mcp test")
        servers = known
    if not servers:
        return None
    return make_toolset(servers, workspace, wait=START_SECONDS if wanted.tool else None, asks=wanted.asks)


def programs_of_servers(workspace: str | Path, files: Sequence[Path] = ()) -> list[Path]:
    """The files that MCP servers are told to run or to read, by their command lines.

    A server runs outside of the sandbox, so a run that could change such a file would leave the sandbox with it.
    """
    folder = Path(workspace).resolve()
    found: dict[Path, None] = {}
    for server in configured_servers(workspace, files).enabled():
        base = folder / (server.cwd or "").replace("${workspaceFolder}", str(folder))
        for word in server.command:
            path = base / word.rpartition("=")[2].replace("${workspaceFolder}", str(folder))
            try:
                if path.is_file():
                    found[path.resolve()] = None
            except (OSError, ValueError):
                continue  # it is no path
    return list(found)


def _unused_lines(found: ConfiguredServers) -> Iterator[str]:
    reasons: dict[tuple[str, str], list[str]] = {}
    for server, why in found.unused:
        reasons.setdefault((server.source, why), []).append(on_one_line(server.name))
    for (source, why), names in reasons.items():
        yield f"MCP server {', '.join(names)} of {on_one_line(source)} is not used: {on_one_line(why)}"


def _by_manifest(servers: Iterable[McpServer]) -> tuple[list[McpServer], list[McpServer]]:
    """The servers whose tools are known from an earlier time, and the others."""
    from toolcrib.mcp.client.manifest import ManifestCache, default_cache

    cache = ManifestCache(default_cache())
    known: list[McpServer] = []
    unknown: list[McpServer] = []
    for server in servers:
        manifest = cache.read(server.name, server.config_hash())
        (unknown if manifest is None else known).append(server)
    return known, unknown


def _beginning(server: McpServer) -> str:
    """The beginning of the shown names of a server's tools, also of those that are shortened."""
    return shown_server(server.name)[:LONGEST_SERVER]


def make_toolset(
    servers: Sequence[McpServer], workspace: str | Path, *, wait: float | None = None, asks: bool = True
) -> McpToolset:
    """The toolset of servers, with the user's secrets, logins and kept lists of tools. Local ones run in the folder."""
    from toolcrib.mcp.client.manifest import default_cache
    from toolcrib.mcp.client.oauth import stored_auth
    from toolcrib.mcp.client.pins import Pins
    from toolcrib.mcp.client.requests import ServerRequests
    from toolcrib.mcp.client.toolset import WAIT, McpToolset
    from toolcrib.mcp.expansion import Expansion

    def requests(server: McpServer) -> ServerRequests:
        return ServerRequests(server.name, elicitation=asks, roots=[folder])

    def resolved(server: McpServer) -> McpServer:
        given = expansion(server)
        return replace(given, cwd=given.cwd or str(folder)) if given.command else given

    folder = Path(workspace).resolve()
    expansion = Expansion(secrets=stored_secrets(), workspace=folder)
    return McpToolset(
        servers,
        cache=default_cache(),
        wait=WAIT if wait is None else wait,
        requests=requests,
        auth=stored_auth(login_store()),
        resolve=resolved,
        pins=Pins.of_user(),
    )


def login_store() -> LoginStore:
    """Where the user's logins at remote servers are, by the user's own settings."""
    from toolcrib.mcp.client.oauth import LoginStore

    own = users_settings()
    return LoginStore.of_user(keyring=own is not None and own.settings.mcp.logins == "keyring")


def server_to_log_in_to(
    name: str, workspace: str | Path, files: Sequence[Path] = ()
) -> tuple[McpServer, OAuthSettings]:
    """A configured remote server with its references filled in, and its OAuth. Raises Problem for any other."""
    from toolcrib.mcp.client.manifest import ManifestCache, default_cache
    from toolcrib.mcp.client.oauth import settings_of
    from toolcrib.mcp.expansion import Expansion

    server = configured_servers(workspace, files).server(name)
    if not server.url:
        raise Problem(
            f"{name} is a local server: it has no login. Its credentials are variables: see --env of mcp add"
        )
    try:
        given = Expansion(secrets=stored_secrets(), workspace=workspace)(server)
        settings = settings_of(given)
    except ValueError as problem:
        words = str(problem).removeprefix(f"MCP server {name!r}: ")
        raise Problem(f"{name}: {words}") from problem
    if settings is not None:
        # Which tools a server lists may depend on who is logged in.
        ManifestCache(default_cache()).forget(name, server.config_hash())
    else:
        raise Problem(f'{name} is configured without OAuth: it has a header Authorization, or auth = "none"')
    return given, settings
