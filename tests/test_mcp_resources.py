"""Resources and prompts of servers as tools, and the pages of MCP Apps."""

from __future__ import annotations

from typing import Any

import pytest

pytest.importorskip("mcp")

from mcp.server import MCPServer
from mcp.server.apps import Apps

from tests.cases import each
from tests.test_mcp_calls import raw, said
from toolcrib import Effect, Toolbox
from toolcrib.content import Image
from toolcrib.errors import ErrorCode
from toolcrib.mcp import McpToolset
from toolcrib.mcp.client.resources import resource_tools

PNG = b"\x89PNG\r\n\x1a\n0000"


def library() -> MCPServer[Any]:
    server = MCPServer("library")

    @server.resource("memo://{name}", title="A memo", description="By its name.")
    def memo(name: str) -> str:
        return f"about {name}"

    @server.resource("memo://all", mime_type="text/plain")
    def every() -> str:
        """All memos."""
        return "a, b"

    @server.resource("pic://logo", mime_type="image/png")
    def logo() -> bytes:
        return PNG

    @server.prompt(title="A review")
    def review(code: str, style: str = "short") -> str:
        """Review code."""
        return f"Review {code}, {style}."

    return server


def over(server: Any) -> Toolbox:
    return Toolbox([McpToolset(in_process={"srv": server}, resources=True)], autonomy="full")


CALLS: list[tuple[str, dict[str, Any], str]] = [
    ("list_resources", {}, 'memo://all "every" (text/plain): All memos.\npic://logo "logo" (image/png)\nmemo://{name} "A memo" (template, text/plain): By its name.'),
    ("list_resources", {"match": "LOGO"}, 'pic://logo "logo" (image/png)'),
    ("list_resources", {"match": "none"}, "The server 'srv' lists no resource with 'none'."),
    ("read_resource", {"uri": "memo://all"}, "[resource memo://all]\na, b"),
    ("read_resource", {"uri": "memo://cats"}, "[resource memo://cats]\nabout cats"),
    ("list_prompts", {}, 'review "A review" (code, style?): Review code.'),
    ("get_prompt", {"name": "review", "arguments": {"code": "x=1"}}, "[user]\nReview x=1, short."),
]  # fmt: skip


@each("name, arguments, words", CALLS)
async def test_resources_and_prompts_are_read_by_tools(
    name: str, arguments: dict[str, Any], words: str
) -> None:
    async with over(library()) as box:
        result = await box.call(f"mcp_{name}", {"server": "srv", **arguments})
    assert result.text == words


async def test_a_resource_may_be_a_picture_and_comes_from_outside() -> None:
    async with over(library()) as box:
        result = await box.call("mcp_read_resource", {"server": "srv", "uri": "pic://logo"})
        assert [type(part) for part in result.parts] == [Image]
    assert all(tool.facts.effect is Effect.READ and tool.facts.open_world for tool in resource_tools({}))


async def test_the_tools_are_there_on_request_only() -> None:
    async with Toolbox([McpToolset(in_process={"srv": library()})], autonomy="full") as box:
        assert await box.names() == []


WRONG: list[tuple[str, dict[str, Any], str]] = [
    (
        "read_resource",
        {"server": "none", "uri": "memo://a"},
        "There is no MCP server 'none'. Known servers: 'srv'.",
    ),
    ("read_resource", {"server": "srv", "uri": "none://a"}, "refused the call"),
    ("get_prompt", {"server": "srv", "name": "none"}, "refused the call"),
]


@each("name, arguments, words", WRONG)
async def test_what_is_not_there_is_said(name: str, arguments: dict[str, Any], words: str) -> None:
    async with over(library()) as box:
        result = await box.call(f"mcp_{name}", arguments)
    assert result.code is ErrorCode.TOOL_ERROR and words in result.text


async def test_endless_lists_are_cut() -> None:
    pages = 0

    async def more(ctx: Any, params: Any) -> Any:
        nonlocal pages
        pages += 1
        found = [{"uri": f"memo://{pages}/{n}", "name": "x" * 500} for n in range(100)]
        return {
            "resources": found,
            "nextCursor": str(pages),
            "resultType": "complete",
            "ttlMs": 0,
            "cacheScope": "public",
        }

    server = raw(lambda ctx, params: said("-"), resources_list=more)
    async with over(server) as box:
        result = await box.call("mcp_list_resources", {"server": "srv"})
    assert pages == 6 and "memo://1/0" in result.text


async def test_the_page_of_an_app_is_read_and_its_own_tools_are_not_the_models() -> None:
    apps = Apps()
    apps.add_html_resource("ui://clock/app.html", "<h1>12:00</h1>", prefers_border=True)

    @apps.tool(resource_uri="ui://clock/app.html", visibility=["app"])
    def tick() -> str:
        """For the page alone."""
        return "tick"

    @apps.tool(resource_uri="ui://clock/app.html")
    def now() -> str:
        """The time."""
        return "12:00"

    tools = McpToolset(in_process={"srv": MCPServer("clock", extensions=[apps])}, apps=True)
    async with tools:
        assert await tools.names() == ["srv__now"]
        page = await tools.app("srv", "ui://clock/app.html")
        assert page.html == "<h1>12:00</h1>" and page.settings == {"prefersBorder": True}
        for uri in ("https://a.example", "file:///etc/passwd"):
            with pytest.raises(ValueError, match="ui://"):
                await tools.app("srv", uri)
