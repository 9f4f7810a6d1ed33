"""`fetch` against a server on loopback that plays the internet. Nothing leaves loopback."""

from __future__ import annotations

import base64
import http.server
import threading
import time
import urllib.parse
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.growth import growth
from tests.properties import examples
from toolcrib import Answer, Effect, Question, Toolbox, Verdict
from toolcrib.command.sandbox import Level
from toolcrib.content import Image
from toolcrib.net import NetGuard
from toolcrib.rules import read_rules

pytest.importorskip("httpx2")

from tests.internet import PUBLIC, Names, Wire
from toolcrib.net.transport import async_transport
from toolcrib.tools import Fetch, Workspace, workspace_tools
from toolcrib.tools.html_text import page_text

AT_MOST = 30  # times as much for eight times the input: a square would be 64
PIXEL = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)
# Of Python, and of no page: what they do with half a million letters ends in minutes, or in an error.
NO_CHARSETS = ("punycode", "idna", "undefined", "unicode_escape", "raw_unicode_escape")
PAGES: dict[str, tuple[int, str, bytes]] = {
    "/plain": (200, "text/plain; charset=utf-8", "grüße".encode()),
    "/latin": (200, "text/plain; charset=iso-8859-1", "grüße".encode("latin-1")),
    "/meta": (200, "text/html", "<meta charset='windows-1252'><p>grüße".encode("cp1252")),
    "/odd": (200, "text/plain; charset=rot13", b"abc"),
    **{f"/{name}": (200, f"text/plain; charset={name}", b"abc-\\u-" + b"d" * 500_000) for name in NO_CHARSETS},
    "/page": (200, "text/html; charset=utf-8", b"<h1>Tea</h1><p>From <a href='b?x=1&amp;y=2'>there</a>.<script>x()</script>"),
    "/json": (200, "application/json", b'{"a": [1, 2]}'),
    "/pixel": (200, "image/png", PIXEL),
    "/zip": (200, "application/zip", b"PK\x03\x04" + bytes(100)),
    "/empty": (200, "text/html", b""),
    "/blank": (200, "text/html", b"<script>render()</script>"),
    "/gone": (404, "text/html", b"<title>x</title><h1>No such page</h1>"),
    "/busy": (503, "text/plain", b"later"),
}  # fmt: skip


class Site(http.server.BaseHTTPRequestHandler):
    """Answers for every host, as its path says."""

    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        path, _, query = self.path.partition("?")
        if path == "/r":
            status, kind, body = 302, "", b""
        else:
            status, kind, body = PAGES.get(path, (200, "text/plain", self.path.encode()))
        self.send_response(status)
        if path == "/r":
            self.send_header("Location", urllib.parse.unquote(query))
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: Any) -> None:
        pass


@pytest.fixture(scope="module")
def port() -> Iterator[int]:
    made = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Site)
    made.daemon_threads = True
    threading.Thread(target=made.serve_forever, args=(0.01,), daemon=True).start()
    yield made.server_port
    made.shutdown()
    made.server_close()


class World:
    """A fetch tool, and where its connections would have gone."""

    def __init__(self, port: int, **guarding: Any) -> None:
        self.port = port
        self.wire = Wire(port)
        guard = NetGuard(resolver=Names(), ports=[80, 443, port], **guarding)
        self.tool = Fetch(guard, transport=async_transport(guard, backend=self.wire.backends[1]))

    def url(self, path: str, host: str = "public.test") -> str:
        return f"http://{host}:{self.port}{path}"

    async def get(self, path: str, **more: Any) -> Any:
        arguments = {"url": self.url(path) if path.startswith("/") else path, **more}
        return await Toolbox([self.tool], autonomy="full").call("fetch", arguments)


@pytest.mark.parametrize("name", NO_CHARSETS)
async def test_an_encoding_that_no_page_is_written_in_is_not_tried(port: int, name: str) -> None:
    """Half a million letters as Punycode would take minutes, in the event loop."""
    began = time.monotonic()
    result = await World(port).get(f"/{name}")
    assert (result.is_error, result.text[:10]) == (False, "abc-\\u-ddd") and time.monotonic() - began < 5


@pytest.mark.parametrize(
    ("path", "format", "text"),
    [
        ("/plain", "text", "grüße"),
        ("/latin", "markdown", "grüße"),
        ("/meta", "text", "grüße"),
        ("/odd", "text", "abc"),
        ("/json", "markdown", '{"a": [1, 2]}'),
        ("/page", "text", "Tea\n\nFrom there."),
        ("/page", "html", PAGES["/page"][2].decode()),
        ("/empty", "markdown", "[public.test answered 200 with an empty page.]"),
        ("/blank", "markdown", '[The page shows no text; format="html" gives its source.]'),
    ],
)
async def test_a_page_comes_as_text(port: int, path: str, format: str, text: str) -> None:
    result = await World(port).get(path, format=format)
    assert (result.is_error, result.text) == (False, text)


async def test_links_are_whole_in_markdown(port: int) -> None:
    world = World(port)
    result = await world.get("/page")
    assert result.text == f"# Tea\n\nFrom [there]({world.url('/b?x=1&y=2')})."


async def test_a_picture_is_shown(port: int) -> None:
    result = await World(port).get("/pixel")
    assert [part.media_type for part in result.parts if isinstance(part, Image)] == ["image/png"]


@pytest.mark.parametrize(
    ("path", "said"),
    [
        (
            "/zip",
            "a ZIP archive (also docx, xlsx, jar, whl) (application/zip, 104 bytes) and cannot be shown",
        ),
        ("/gone", "public.test answered 404 Not Found. It says: # No such page"),
        ("/busy", "public.test answered 503 Service Unavailable. It says: later"),
        (
            "http://private.test/",
            "It was not fetched: private.test is refused: it resolves to a private address",
        ),
        ("http://169.254.169.254/latest", "169.254.169.254 is refused"),
        ("ftp://public.test/", "only http and https are allowed, not ftp"),
        ("http://nowhere.test/", "nowhere.test cannot be resolved"),
    ],
)
async def test_what_is_no_page_is_said(port: int, path: str, said: str) -> None:
    result = await World(port).get(path)
    assert result.is_error
    assert said in result.text


async def test_redirects_stay_with_their_host(port: int) -> None:
    world = World(port)
    same = await world.get("/r?" + urllib.parse.quote("/r?/plain", safe=""))
    assert same.text == f"grüße\n\n[The page is at {world.url('/plain')}.]"
    other = world.url("/plain", "other.test")
    sent = await world.get("/r?" + other)
    assert sent.is_error
    assert sent.text == f"public.test sends on to {other}. Fetch that address if you want it."
    assert {address for address, _ in world.wire.seen} == {PUBLIC}


async def test_a_request_asks_unless_the_operator_listed_the_hosts(port: int) -> None:
    asked: list[Question] = []

    async def approver(question: Question) -> Answer:
        asked.append(question)
        return Answer(Verdict.NO)

    free, listed = World(port), World(port, allow_hosts=["public.test:" + str(port)])
    for world, code in ((free, "rejected"), (listed, None)):
        box = Toolbox([world.tool], approver=approver)
        assert (await box.call("fetch", {"url": world.url("/plain")})).code == code
    assert len(asked) == 1
    assert free.wire.seen == []
    refused = await listed.get(listed.url("/plain", "other.test"))
    assert "other.test is not on the list of allowed hosts" in refused.text


async def test_rules_about_hosts_hold(port: int) -> None:
    world = World(port)
    rules = read_rules(
        '[[rule]]\nallow = true\ntool = "fetch"\nhost = "public.test"\n[[rule]]\ndeny = true\nhost = "other.test"'
    )
    box = Toolbox([world.tool], policy=rules.policy("supervised"))
    codes = [
        (await box.call("fetch", {"url": world.url("/plain", host)})).code
        for host in ("public.test", "other.test", "multi.test")
    ]
    assert codes == [None, "denied", "nobody_to_ask"]


def test_it_comes_with_the_network_of_commands_and_goes_with_it(tmp_path: Path) -> None:
    workspace = Workspace(tmp_path)
    assert "fetch" not in [tool.facts.name for tool in workspace_tools(workspace)]
    level = Level.of("workspace_write", "allowlist", ["docs.example.org"])
    box = Toolbox(workspace_tools(workspace, level=level))
    assert "fetch" in box.run_sync(box.tool_list()).entries
    refused = box.call_sync("fetch", {"url": "https://example.org/"})
    assert "example.org is not on the list of allowed hosts" in refused.text
    workspace.level = Level.of("workspace_write")
    assert "fetch" not in box.run_sync(box.tool_list()).entries
    assert "no network here" in box.call_sync("fetch", {"url": "https://docs.example.org/"}).text
    workspace.level = Level.of("workspace_write", "on")
    assert box.call_sync("fetch", {"url": "https://docs.example.org/"}).code == "nobody_to_ask"


def test_what_it_declares() -> None:
    facts = Fetch(NetGuard()).facts
    assert (facts.effect, facts.open_world, facts.secrets) == (Effect.WRITE, True, frozenset())


@pytest.mark.parametrize(
    ("page", "text"),
    [
        ("<p>a<p>b", "a\n\nb"),
        ("a<br>b<br/>c", "a\nb\nc"),
        ("<ul><li>one<ul><li>two</ul><li>three</ul>", "- one\n  - two\n- three"),
        ("<ol><li>a<li>b</ol>", "1. a\n2. b"),
        ("<pre>  a\n   b</pre>", "```\n  a\n   b\n```"),
        ("<tr><th>a</th><th>b</th></tr><tr><td>1</td><td>2</td></tr>", "a | b\n1 | 2"),
        ("x <b> y </b> z", "x **y** z"),
        ("1 < 2 &amp;&amp; 3 &gt; 2", "1 < 2 && 3 > 2"),
        ("<!-- hidden <p>x</p> -->shown", "shown"),
        ("<img alt='a > b' src=q>", "[image: a > b]"),
        ("<a href='javascript:x()'>no</a> <a>none</a>", "no none"),
        ("<script>if (a < b) { '</p>' }</script>text", "text"),
        ("<style>p { }", ""),
        ("<h2>A <em>b</em></h2>c", "## A *b*\n\nc"),
    ],
)  # fmt: skip
def test_markdown_of_a_page(page: str, text: str) -> None:
    assert page_text(page, markdown=True, base="http://x/") == text


@given(st.lists(st.sampled_from(["<", ">", "/", "a", " ", '"', "'", "=", "!--", "-->", "<p>", "<li>", "<ul>", "</ul>", "<script>", "<pre>", "</pre>", "&amp", "x", "\n", "<a href='y'>", "</a>"]), max_size=40))  # fmt: skip
@examples(200)
def test_any_page_has_a_text(pieces: list[str]) -> None:
    page = "".join(pieces)
    for markdown in (True, False):
        assert isinstance(page_text(page, markdown=markdown, base="http://x/"), str)


@pytest.mark.slow
@pytest.mark.parametrize("piece", ["<div>", '<a href="', "<!--", "<a ", '<a ""', "<b><i>", "<ul><li>", "&#", "</a>", "<p>x</p>", "<title></titl"])  # fmt: skip
def test_hostile_pages_take_linear_time(piece: str) -> None:
    def work(size: int) -> Callable[[], object]:
        page = piece * size
        return lambda: page_text(page, markdown=True)

    assert growth(work, 4_000, 32_000, AT_MOST) < AT_MOST
