"""Resources and prompts of servers, as four tools: two that list and two that read. Offered on request only.

| tool                 | what it does                                                            |
| -------------------- | ----------------------------------------------------------------------- |
| `mcp_list_resources` | lists what can be read, with templates of addresses                     |
| `mcp_read_resource`  | reads one                                                               |
| `mcp_list_prompts`   | lists prompts with their arguments                                      |
| `mcp_get_prompt`     | gives the messages of one                                               |

They read, and what they give comes from outside.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import Field

from toolcrib.content import Part, Text
from toolcrib.context import Context
from toolcrib.dataclass import dataclass
from toolcrib.effect import Effect
from toolcrib.errors import ToolError
from toolcrib.function import FunctionTool, tool
from toolcrib.mcp.client.calling import ask_remote, with_remarks
from toolcrib.mcp.content import APP_MIME_TYPE, part_of
from toolcrib.result import ToolResult
from toolcrib.visible import on_one_line

if TYPE_CHECKING:
    from toolcrib.mcp.client.server import ServerHandle

__all__ = ["RESOURCE_TOOLS", "App", "app_of", "resource_tools"]

RESOURCE_TOOLS = ("mcp_list_resources", "mcp_read_resource", "mcp_list_prompts", "mcp_get_prompt")
MAX_PAGES = 20  # of one list
MAX_ITEMS = 500  # items that one list shows
MAX_WORDS = 300  # characters of a name or a description in a list
MAX_PARTS = 200  # contents of one resource, messages of one prompt
LONGEST = 700.0  # seconds that a call may take: the servers' own times are shorter
MAX_HTML = 5_000_000  # characters of a user interface

Server = Annotated[str, Field(min_length=1, description="The name of the MCP server.")]
Match = Annotated[str, Field(description="Only what has this text in its name, address or description.")]


def resource_tools(servers: Mapping[str, ServerHandle]) -> list[FunctionTool[..., Any]]:
    """The four tools over these servers, by their names."""
    facts: dict[str, Any] = {
        "effect": Effect.READ,
        "secrets": (),
        "open_world": True,
        "category": "mcp",
        "timeout": LONGEST,
    }

    async def mcp_list_resources(ctx: Context[Any], server: Server, match: Match = "") -> ToolResult:
        """List the resources of an MCP server: addresses that mcp_read_resource reads, and templates of addresses."""
        async with reached(servers, server, ctx) as remote:
            listed = await _listed(ctx, remote, "resources/list", "resources")
            if isinstance(listed, ToolResult):
                return listed
            templates = await _listed(ctx, remote, "resources/templates/list", "resourceTemplates")
        more = [] if isinstance(templates, ToolResult) else templates  # a server may have none
        lines = [*map(_resource_line, listed), *map(_template_line, more)]
        return _list("resource", server, lines, match)

    async def mcp_read_resource(
        ctx: Context[Any], server: Server, uri: Annotated[str, Field(min_length=1, max_length=4_000)]
    ) -> ToolResult:
        """Read a resource of an MCP server.

        Args:
            uri: Its address, as mcp_list_resources or a link says; a template with its variables filled in.
        """
        async with reached(servers, server, ctx) as remote:
            answer = await ask_remote(ctx, remote, "resources/read", {"uri": uri})
        if isinstance(answer, ToolResult):
            return answer
        data, remarks = answer
        contents = data.get("contents")
        given = contents if isinstance(contents, list) else []
        parts = [part_of({"type": "resource", "resource": one}) for one in given[:MAX_PARTS]]
        return with_remarks(_parts(parts, len(given), "The resource is empty."), remarks)

    async def mcp_list_prompts(ctx: Context[Any], server: Server, match: Match = "") -> ToolResult:
        """List the prompts of an MCP server: prepared instructions, with the arguments that they take."""
        async with reached(servers, server, ctx) as remote:
            listed = await _listed(ctx, remote, "prompts/list", "prompts")
        if isinstance(listed, ToolResult):
            return listed
        return _list("prompt", server, list(map(_prompt_line, listed)), match)

    async def mcp_get_prompt(
        ctx: Context[Any],
        server: Server,
        name: Annotated[str, Field(min_length=1, max_length=1_000)],
        arguments: dict[str, str] | None = None,
    ) -> ToolResult:
        """Get a prompt of an MCP server: its messages, as text to look at.

        Args:
            name: Its name, as mcp_list_prompts says.
            arguments: The values of its arguments, by their names.
        """
        async with reached(servers, server, ctx) as remote:
            answer = await ask_remote(
                ctx, remote, "prompts/get", {"name": name, "arguments": arguments or {}}
            )
        if isinstance(answer, ToolResult):
            return answer
        data, remarks = answer
        messages = data.get("messages")
        given = messages if isinstance(messages, list) else []
        parts: list[Part] = []
        for message in given[:MAX_PARTS]:
            role, content = (
                (message.get("role"), message.get("content")) if isinstance(message, Mapping) else ("", None)
            )
            parts += [Text(f"[{on_one_line(str(role), 20)}]"), part_of(content)]
        return with_remarks(_parts(parts, len(given), "The prompt is empty."), remarks)

    make: Any = tool
    made = (mcp_list_resources, mcp_read_resource, mcp_list_prompts, mcp_get_prompt)
    titles = ("Resources", "Resource", "Prompts", "Prompt")
    return [make(function, title=title, **facts) for function, title in zip(made, titles, strict=True)]


@asynccontextmanager
async def reached(servers: Mapping[str, ServerHandle], name: str, ctx: Context[Any]) -> AsyncGenerator[Any]:
    """A server as the caller of a call reaches it. Raises ToolError for an unknown one."""
    handle = servers.get(name)
    if handle is None:
        known = ", ".join(map(repr, servers)) or "none"
        raise ToolError(f"There is no MCP server {on_one_line(name, 60)!r}. Known servers: {known}.")
    if handle.identities is None:
        yield handle
        return
    async with handle.identities.caller_of(ctx) as caller:
        yield caller


async def _listed(
    ctx: Context[Any], remote: Any, method: str, key: str
) -> list[Mapping[str, Any]] | ToolResult:
    """The items of a list, at most as many as are shown and one more."""
    items: list[Mapping[str, Any]] = []
    cursor: Any = None
    for _ in range(MAX_PAGES):
        params = {} if cursor is None else {"cursor": cursor}
        answer = await ask_remote(ctx, remote, method, params, words=False)  # the server knows its names
        if isinstance(answer, ToolResult):
            return items or answer
        data, _remarks = answer
        page, before, cursor = data.get(key), cursor, data.get("nextCursor")
        items += [item for item in page if isinstance(item, Mapping)] if isinstance(page, list) else []
        if len(items) > MAX_ITEMS or not isinstance(cursor, str) or cursor == before:
            break
    return items[: MAX_ITEMS + 1]


def _list(what: str, server: str, lines: list[str], match: str) -> ToolResult:
    found = [line for line in lines if match.casefold() in line.casefold()]
    if not found:
        which = f" with {match!r}" if match and lines else ""
        return ToolResult(f"The server {server!r} lists no {what}{which}.")
    text = "\n".join(found[:MAX_ITEMS])
    return ToolResult(f"{text}\n[There are more: give a `match`.]" if len(found) > MAX_ITEMS else text)


def _words(item: Mapping[str, Any], key: str) -> str:
    given = item.get(key)
    return on_one_line(given, MAX_WORDS) if isinstance(given, str) else ""


def _line(head: str, name: str, kind: str, about: str) -> str:
    named = f' "{name}"' if name and name != head else ""
    return f"{head}{named}" + (f" ({kind})" if kind else "") + (f": {about}" if about else "")


def _resource_line(item: Mapping[str, Any]) -> str:
    name = _words(item, "title") or _words(item, "name")
    return _line(_words(item, "uri"), name, _words(item, "mimeType"), _words(item, "description"))


def _template_line(item: Mapping[str, Any]) -> str:
    name = _words(item, "title") or _words(item, "name")
    kind = ", ".join(word for word in ("template", _words(item, "mimeType")) if word)
    return _line(_words(item, "uriTemplate"), name, kind, _words(item, "description"))


def _prompt_line(item: Mapping[str, Any]) -> str:
    given = item.get("arguments")
    arguments = [one for one in given if isinstance(one, Mapping)] if isinstance(given, list) else []
    named = ", ".join(_words(one, "name") + ("" if one.get("required") else "?") for one in arguments[:20])
    return _line(_words(item, "name"), _words(item, "title"), named, _words(item, "description"))


def _parts(parts: list[Part], count: int, empty: str) -> ToolResult:
    if count > MAX_PARTS:
        parts.append(Text(f"[{count - MAX_PARTS:,} more are left out.]"))
    return ToolResult(tuple(parts)) if parts else ToolResult(empty)


# -- MCP Apps


@dataclass(frozen=True, slots=True)
class App:
    """The user interface of a tool's results (MCP Apps): a page that must be shown in a sandboxed frame of its own.

    Attributes:
        html: The page.
        settings: What the server says of it: `csp`, `permissions`, `domain`, `prefersBorder`.
    """

    html: str
    settings: Mapping[str, Any]


async def app_of(server: ServerHandle, uri: str, *, timeout: float = 30.0) -> App:
    """The user interface at a `ui://` address of a server.

    Raises ValueError for another address or answer, and what a connection raises.
    """
    if not uri.startswith("ui://"):
        raise ValueError(f"expected an address that begins with ui://, got {uri[:80]!r}")
    data = await (await server.connected()).request("resources/read", {"uri": uri}, timeout=timeout)
    contents = data.get("contents")
    page = contents[0] if isinstance(contents, list) and contents else None
    page = page if isinstance(page, Mapping) else {}
    html = page.get("text")
    if not isinstance(html, str) or page.get("mimeType") != APP_MIME_TYPE:
        raise ValueError(f"the server gave no page for {uri[:80]!r}: expected the type {APP_MIME_TYPE}")
    if len(html) > MAX_HTML:
        raise ValueError(
            f"the page at {uri[:80]!r} has {len(html):,} characters, at most {MAX_HTML:,} are read"
        )
    meta = page.get("_meta")
    ui = meta.get("ui") if isinstance(meta, Mapping) else None
    return App(html, dict(ui) if isinstance(ui, Mapping) else {})
