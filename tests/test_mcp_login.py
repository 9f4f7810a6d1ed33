"""A person logs in: the browser comes back to a port of this machine, or an address is pasted. All on real sockets."""

from __future__ import annotations

import asyncio
import os
import socket
import subprocess
import sys
import threading
import time
from collections.abc import AsyncGenerator, Callable, Coroutine
from contextlib import AsyncExitStack, asynccontextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, urlencode, urlsplit

import httpx2
import pytest

pytest.importorskip("mcp")

from mcp.server import MCPServer

from tests.cases import each
from tests.local_server import listening
from tests.mcp_servers.authorisation_server import AuthorisationServer, ProtectedServer, serving
from toolcrib import Toolbox
from toolcrib.mcp import McpServer, McpToolset
from toolcrib.mcp.client.oauth import (
    LoginStore,
    LoopbackAuthorizer,
    OAuthError,
    OAuthSettings,
    PasteAuthorizer,
    login,
    login_state,
    settings_of,
    stored_auth,
)
from toolcrib.mcp.client.oauth.endpoints import Endpoints
from toolcrib.private_files import locked, unlock
from toolcrib.secrets import SecretFile


def calculator() -> MCPServer[Any]:
    server = MCPServer("calculator")

    @server.tool()
    def add(a: int, b: int) -> int:
        """Add two numbers."""
        return a + b

    return server


@dataclass
class Site:
    """An authorization server and a protected MCP server on loopback."""

    issuer: AuthorisationServer
    resource: ProtectedServer
    store: LoginStore

    @property
    def server(self) -> McpServer:
        return McpServer("crm", url=self.resource.url)


@asynccontextmanager
async def site(
    folder: Path, clock: Callable[[], float] | None = None, inner: MCPServer[Any] | None = None
) -> AsyncGenerator[Site]:
    issuer = AuthorisationServer()
    if clock is not None:
        issuer.clock = clock
    resource = ProtectedServer("", issuer)

    def issuer_app(url: str) -> Any:
        issuer.issuer = url
        return issuer.app()

    def resource_app(url: str) -> Any:
        resource.url = f"{url}/mcp"
        return resource.app() if inner is None else resource.protecting(inner.streamable_http_app())

    async with AsyncExitStack() as stack:
        await stack.enter_async_context(serving(issuer_app))
        await stack.enter_async_context(serving(resource_app))
        yield Site(issuer, resource, LoginStore(SecretFile(folder / "logins.json"), locks=folder / "locks"))


class Browser:
    """A browser: it goes where it is sent, and follows redirects. `before` are addresses that others call first."""

    def __init__(self, change: Callable[[str], list[str]] = lambda url: [url]) -> None:
        self.pages: list[tuple[int, str]] = []
        self.opened: list[str] = []
        self._change = change
        self._visits: list[asyncio.Task[None]] = []

    def open(self, url: str) -> None:
        self.opened.append(url)
        self._visits.append(asyncio.get_running_loop().create_task(self._visit(url)))

    async def _visit(self, url: str) -> None:
        async with httpx2.AsyncClient() as client:
            redirect = await client.get(url)
            for target in self._change(redirect.headers["location"]):
                page = await client.get(target)
                self.pages.append((page.status_code, page.text))


def with_parameters(url: str, **changes: str) -> str:
    parts = urlsplit(url)
    query = {**dict(parse_qsl(parts.query)), **changes}
    return parts._replace(query=urlencode(query)).geturl()


def of_others(url: str) -> list[str]:
    """What anybody may send to the port, and then the right answer."""
    twice = f"{url}&state={dict(parse_qsl(urlsplit(url).query))['state']}"
    return [
        url.replace("/callback", "/"),
        with_parameters(url, state="guessed", code="evil"),
        with_parameters(url, state=""),
        twice,
        url,
    ]


async def test_the_browser_comes_back_with_the_right_state_alone(tmp_path: Path) -> None:
    async with site(tmp_path) as world:
        browser = Browser(of_others)
        made = await login(world.server, world.store, authorizer=LoopbackAuthorizer(browser.open))
        assert made.token is not None and made.issuer.issuer == world.issuer.issuer
        async with asyncio.timeout(5):
            while len(browser.pages) < 5:  # noqa: ASYNC110 - of another task's own work
                await asyncio.sleep(0)
        assert [status for status, _ in browser.pages] == [404, 400, 400, 400, 200]
        assert "You can close this page" in browser.pages[-1][1]
        port = urlsplit(made.client.redirect_uri).port
        with pytest.raises(OSError):
            await asyncio.open_connection("127.0.0.1", port)
        # The next login is of the same client, so it comes back to the same port; to another one if that is taken.
        await login(world.server, world.store, authorizer=LoopbackAuthorizer(Browser().open))
        assert world.issuer.asked("register") == 1
        with socket.create_server(("127.0.0.1", port or 0)):
            again = await login(world.server, world.store, authorizer=LoopbackAuthorizer(Browser().open))
            assert (world.issuer.asked("register"), again.client.client_id) == (2, "client-2")
            fixed = OAuthSettings(redirect_uri=f"http://localhost:{port}/callback")
            with pytest.raises(OAuthError, match="cannot come back to localhost"):
                await login(world.server, world.store, fixed, authorizer=LoopbackAuthorizer(print))


async def test_nobody_logs_in_for_ever(tmp_path: Path) -> None:
    async with site(tmp_path) as world:
        shown: list[str] = []
        with pytest.raises(OAuthError, match=r"nobody logged in within 0\.01 s"):
            await login(world.server, world.store, authorizer=LoopbackAuthorizer(shown.append, timeout=0.01))
        assert len(shown) == 1 and (await login_state(world.server, world.store)).state == "none"


@each("visits", [True, False])
def test_nobody_waits_for_a_browser_that_stays_in_the_foreground(tmp_path: Path, visits: bool) -> None:
    closed = threading.Event()

    def open_url(url: str) -> None:
        if visits:
            httpx2.get(httpx2.get(url).headers["location"])
        closed.wait(20)

    async def work() -> None:
        async with site(tmp_path) as world:
            authorizer = LoopbackAuthorizer(print, open_url=open_url, timeout=20 if visits else 0.01)
            with nullcontext() if visits else pytest.raises(OAuthError, match="nobody logged in"):
                await login(world.server, world.store, authorizer=authorizer)

    _ends_at_once(work())
    closed.set()


def test_a_connection_that_a_browser_keeps_open_is_no_error(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Browsers open more connections than they use. Python told of each as an exception when the program ended."""
    kept: list[socket.socket] = []

    def open_url(url: str) -> None:
        answer = httpx2.get(url).headers["location"]
        kept.append(socket.create_connection(("127.0.0.1", urlsplit(answer).port or 0)))
        httpx2.get(answer)

    async def work() -> None:
        async with site(tmp_path) as world:
            await login(world.server, world.store, authorizer=LoopbackAuthorizer(print, open_url=open_url))

    asyncio.run(work())
    for connection in kept:
        connection.close()
    assert len(kept) == 1 and not caplog.records


def test_nobody_waits_for_what_is_pasted_to_a_login_that_was_given_up(tmp_path: Path) -> None:
    pasted = threading.Event()

    async def work() -> None:
        async with site(tmp_path) as world:
            authorizer = PasteAuthorizer(print, lambda: str(pasted.wait(20)))
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(0.2):
                    await login(world.server, world.store, authorizer=authorizer)

    _ends_at_once(work())
    pasted.set()


def _ends_at_once(work: Coroutine[Any, Any, None]) -> None:
    """A program of such work ends, as it would not if a thread of `asyncio.to_thread` were left."""
    begun = time.monotonic()
    asyncio.run(work)
    assert time.monotonic() - begun < 10


async def test_an_address_is_pasted_where_there_is_no_browser(tmp_path: Path) -> None:
    async with site(tmp_path) as world:
        shown: list[str] = []

        def ask() -> str:
            answer = httpx2.get(shown[-1]).headers["location"]
            return next(given).format(answer)

        given = iter(["https://[::1", "https://evil.test/?code=x&state=y", "  {}\n"])
        authorizer = PasteAuthorizer(shown.append, ask)
        made = await login(world.server, world.store, authorizer=authorizer)
        assert made.token is not None
        given = iter(["", "?" + "a&" * 60, "\udcff?state=\udcff", "x"])
        with pytest.raises(OAuthError, match="was not pasted"):
            await login(world.server, world.store, authorizer=authorizer)

        def end_of_input() -> str:
            raise EOFError  # as `input` does

        with pytest.raises(OAuthError, match="was not pasted"):
            await login(world.server, world.store, authorizer=PasteAuthorizer(shown.append, end_of_input))


async def test_the_calls_of_a_toolset_use_the_stored_login(tmp_path: Path) -> None:
    """Over the whole way: what a person and a model are told, and that one call's login harms no other."""
    now = [1_000_000.0]
    async with site(tmp_path, lambda: now[0], calculator()) as world:
        world.resource.needs = {"resources/list": "admin"}
        tools = McpToolset([world.server], auth=stored_auth(world.store, now=lambda: now[0]))
        async with Toolbox([tools], autonomy="full") as box:
            assert await box.names() == []
            (status,) = tools.servers()
            assert "the MCP server crm needs a login: run toolcrib mcp login crm" in status.problem
            authorizer = LoopbackAuthorizer(Browser().open)
            await login(world.server, world.store, authorizer=authorizer, now=lambda: now[0])
            await tools.ready(10)
            assert (await box.call("crm__add", {"a": 1, "b": 2})).structured == {"result": 3}
            connection = await tools.server("crm").connected()
            with pytest.raises(Exception, match="needs a login with the scopes admin"):
                await connection.request("resources/list")
            now[0] += 4000
            results = await asyncio.gather(*(box.call("crm__add", {"a": n, "b": 0}) for n in range(20)))
            assert [result.structured for result in results] == [{"result": n} for n in range(20)]
            assert world.issuer.asked("token", grant_type="refresh_token") == 1
            world.issuer.revoke_all()
            result = await box.call("crm__add", {"a": 1, "b": 2})
            assert result.is_error and "the MCP server crm needs a login" in result.text
            await connection._look()  # as after a call that took too long: "log in" is an answer, too
            assert await tools.server("crm").connected() is connection, "the connection is as it was"
    assert not any("access-" in text for text in (status.problem, result.text))


PROCESS = """
import asyncio, sys, httpx2
from pathlib import Path
from toolcrib.mcp import McpServer
from toolcrib.mcp.client.oauth import LoginStore, auth_for
from toolcrib.secrets import SecretFile

async def main(folder, url, now):
    store = LoginStore(SecretFile(folder / "logins.json"), locks=folder / "locks")
    auth = auth_for(McpServer("crm", url=url), store, now=lambda: now)
    async with httpx2.AsyncClient(auth=auth) as client:
        print("ready", flush=True)
        sys.stdin.readline()
        answers = await asyncio.gather(*(client.post(url, json={"id": 1}) for _ in range(5)))
    print(sorted({answer.status_code for answer in answers}))

asyncio.run(main(Path(sys.argv[1]), sys.argv[2], float(sys.argv[3])))
"""


@pytest.mark.slow
async def test_four_processes_spend_a_refresh_token_once(tmp_path: Path) -> None:
    now = [1_000_000.0]
    async with site(tmp_path, lambda: now[0]) as world:
        await login(
            world.server, world.store, authorizer=LoopbackAuthorizer(Browser().open), now=lambda: now[0]
        )
        now[0] += 4000
        given = [sys.executable, "-c", PROCESS, str(tmp_path), world.resource.url, str(now[0])]
        pipe = asyncio.subprocess.PIPE
        processes = [await asyncio.create_subprocess_exec(*given, stdin=pipe, stdout=pipe) for _ in range(4)]
        try:
            for process in processes:
                assert process.stdout is not None
                assert await process.stdout.readline() == b"ready\n"
            ended = await asyncio.gather(*(process.communicate(b"go\n") for process in processes))
        finally:
            for process in processes:
                if process.returncode is None:
                    process.kill()
        assert [output for output, _ in ended] == [b"[200]\n"] * 4
        assert world.issuer.asked("token", grant_type="refresh_token") == 1


class CommandLine:
    """The command `toolcrib`, as a user without settings would run it."""

    def __init__(self, folder: Path) -> None:
        self.environ = {"HOME": str(folder), "PATH": os.environ["PATH"], "TERM": "dumb"}
        self.folder = folder

    async def start(self, *words: str) -> asyncio.subprocess.Process:
        pipe = asyncio.subprocess.PIPE
        command = [sys.executable, "-m", "toolcrib", *words]
        return await asyncio.create_subprocess_exec(
            *command,
            cwd=self.folder,
            env=self.environ,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=pipe,
            stderr=pipe,
        )

    async def run(self, *words: str) -> tuple[int, str]:
        process = await self.start(*words)
        output, errors = await process.communicate()
        assert process.returncode is not None
        return process.returncode, (output + errors).decode()


@pytest.mark.slow
async def test_the_command_line_logs_in_and_out(tmp_path: Path) -> None:
    async with site(tmp_path, inner=calculator()) as world:
        world.issuer.clock = time.time
        line = CommandLine(tmp_path)
        assert (await line.run("mcp", "add", "crm", world.resource.url))[0] == 0
        code, said = await line.run("mcp", "call", "crm", "add", '{"a": 1, "b": 2}')
        assert code != 0 and "needs a login: run toolcrib mcp login crm" in said, said
        process = await line.start("mcp", "login", "crm")
        assert process.stderr is not None
        assert b"Log in at this address" in await process.stderr.readline()
        browser = Browser()
        browser.open((await process.stderr.readline()).decode().strip())
        output, errors = await process.communicate()
        assert (output.decode(), errors) == (f"crm: logged in at {world.issuer.issuer}\n", b"")
        for words, told in LINES:
            code, said = await line.run("mcp", *words)
            assert told in said, (words, said)
        assert world.issuer.asked("revoke") == 2
        stored = tmp_path / ".local/state/toolcrib/mcp-logins.json"
        assert stored.stat().st_mode & 0o777 == 0o600 and "access-" not in stored.read_text()


LINES = [
    (["test", "crm"], "1 tool"),
    (["list"], "logged in"),
    (["logout", "crm"], "crm: logged out"),
    (["logout", "crm"], "crm: nobody was logged in"),
    (["login", "nobody"], "there is no MCP server 'nobody'"),
]


async def test_a_proxy_of_the_environment_is_asked_and_told_no_address_of_our_network(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked: list[bytes] = []

    async def proxy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        asked.append((await reader.readuntil(b"\r\n\r\n")).partition(b"\r\n")[0])
        writer.write(b'HTTP/1.1 200 OK\r\nContent-Length: 11\r\nConnection: close\r\n\r\n{"a": true}')
        writer.close()

    async with listening(proxy) as port:
        monkeypatch.setenv("http_proxy", f"http://127.0.0.1:{port}")
        endpoints = Endpoints("http://mcp.test/mcp")
        assert (await endpoints.get("http://auth.test/x", "place")).data == {"a": True}
        for url in ("http://169.254.169.254/x", "http://10.0.0.1/x", "http://vault.internal/x"):
            with pytest.raises(OAuthError, match="cannot be reached"):
                await endpoints.get(url, "place")
    assert asked == [b"GET http://auth.test/x HTTP/1.1"]


WRONG: list[tuple[dict[str, Any], str]] = [
    ({"client": "x"}, "oauth has no setting 'client'; there are assertion"),
    ({"scopes": "read"}, "scopes"),
    ({"grant": "password"}, "oauth: grant: expected"),
]


@each("given, words", WRONG)
def test_what_is_wrong_in_a_configuration_is_named(given: dict[str, Any], words: str) -> None:
    with pytest.raises(ValueError, match="MCP server 'crm'") as caught:
        settings_of(McpServer("crm", url="https://mcp.test/mcp", oauth=given))
    assert words in str(caught.value)


def test_only_remote_servers_are_logged_in_to() -> None:
    assert settings_of(McpServer("git", command=["git-server"])) is None
    assert settings_of(McpServer("crm", url="https://mcp.test/mcp", auth="none")) is None


LEAVES_A_LOCK = """
import asyncio, os, sys
from pathlib import Path
from toolcrib.mcp.client.oauth import LoginStore
from toolcrib.private_files import lock
from toolcrib.secrets import SecretFile

folder = Path(sys.argv[1])
store = LoginStore(SecretFile(folder / "logins.json"), locks=folder)

async def wait_for_it():
    async with asyncio.timeout(0.1), store.locked("login"):
        raise AssertionError("another process has it")

try:
    asyncio.run(wait_for_it())
except TimeoutError:
    print("left", flush=True)
if sys.argv[2:]:
    sys.stdin.readline()  # the other has released it
    fd = os.open(folder / "login", os.O_RDWR)
    print("free" if lock(fd, wait=False) else "held", flush=True)
"""


@pytest.mark.skipif(sys.platform == "win32", reason="locks of another kind")
def test_a_program_that_waited_for_a_login_neither_hangs_nor_keeps_its_lock(tmp_path: Path) -> None:
    """A thread went on waiting: the program ended only with the lock, or held it for as long as it lived."""
    fd = os.open(tmp_path / "login", os.O_RDWR | os.O_CREAT)
    command = [sys.executable, "-c", LEAVES_A_LOCK, str(tmp_path)]
    with locked(fd):
        ended = subprocess.run(command, capture_output=True, text=True, timeout=20, check=False)
        assert (ended.returncode, ended.stdout) == (0, "left\n"), ended.stderr
        with subprocess.Popen([*command, "lives on"], stdin=-1, stdout=-1, text=True) as other:
            assert other.stdout is not None and other.stdin is not None
            assert other.stdout.readline() == "left\n"
            unlock(fd)
            time.sleep(0.2)  # in which whoever waits would be given the lock
            other.stdin.write("\n")
            other.stdin.flush()
            assert other.stdout.readline() == "free\n"
    os.close(fd)
