"""An allowlist of hosts: a proxy born inside a namespace without a way out, served from outside."""

from __future__ import annotations

import asyncio
import errno
import gc
import os
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator, Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.sandbox_runs import backend, run
from toolcrib.command.sandbox import Level, Sandbox, environment
from toolcrib.command.sandbox.egress import Allowlist, guarded_resolver, target_of

# -- what a request asks for


@pytest.mark.parametrize(
    ("head", "target"),
    [
        (b"CONNECT a.example:443 HTTP/1.1\r\nHost: a.example\r\n\r\n", ("a.example", 443, b"")),
        (b"CONNECT A.Example:443 HTTP/1.0\r\n\r\n", ("a.example", 443, b"")),
        (b"CONNECT [::1]:443 HTTP/1.1\r\n\r\n", ("[::1]", 443, b"")),
        (b"CONNECT a.example HTTP/1.1\r\n\r\n", None),
        (b"CONNECT a.example:0 HTTP/1.1\r\n\r\n", None),
        (b"CONNECT a.example:99999 HTTP/1.1\r\n\r\n", None),
        (b"CONNECT a b:443 HTTP/1.1\r\n\r\n", None),
        (b"CONNECT user@a.example:443 HTTP/1.1\r\n\r\n", None),
        (b"CONNECT a.example:443\r\n\r\n", None),
        (b"GET /x HTTP/1.1\r\nHost: a.example\r\n\r\n", None),
        (b"GET http://user@a.example/ HTTP/1.1\r\n\r\n", None),
        (b"GET http://a.example@b.example/ HTTP/1.1\r\n\r\n", None),
        (b"GET http://a.example\\@b.example/ HTTP/1.1\r\n\r\n", None),
        (b"GET http://a.example?x HTTP/1.1\r\n\r\n", None),
        (b"GET http:///x HTTP/1.1\r\n\r\n", None),
        (b"GET https://a.example/ HTTP/1.1\r\n\r\n", None),
        (b"GET http://\xc3\xa4.example/ HTTP/1.1\r\n\r\n", None),
        (b"\x16\x03\x01\r\n\r\n", None),
        # What one server reads as one header, another reads as two.
        (b"GET http://a.example/ HTTP/1.1\r\nX: y\nHost: o.example\r\n\r\n", None),
        (b"GET http://a.example/ HTTP/1.1\nHost: o.example\r\n\r\n", None),
        (b"GET http://a.example/ HTTP/1.1\r\nX: y\rHost: o.example\r\n\r\n", None),
        (b"GET http://a.example/ HTTP/1.1\r\nHost : o.example\r\n\r\n", None),
        (b"GET http://a.example/ HTTP/1.1\r\nX: y\r\n Host: o.example\r\n\r\n", None),
        (b"GET http://a.example/ HTTP/1.1\r\nX: \0\r\n\r\n", None),
        (b"POST http://a.example/ HTTP/1.1\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n", None),
        (b"POST http://a.example/ HTTP/1.1\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n", None),
        (b"POST http://a.example/ HTTP/1.1\r\nTransfer-Encoding: xchunked\r\n\r\n", None),
        (b"POST http://a.example/ HTTP/1.1\r\nContent-Length: +1\r\n\r\n", None),
        (
            b"GET http://a.example/X?y#z HTTP/1.1\r\nHost: o.example\r\nAccept: */*\r\nProxy-Connection: k\r\n\r\n",
            (
                "a.example",
                80,
                b"GET /X?y#z HTTP/1.1\r\nHost: a.example\r\nAccept: */*\r\nConnection: close\r\n\r\n",
            ),
        ),
        (
            b"POST http://a.example:8080 HTTP/1.1\r\nConnection: keep-alive\r\n\r\n",
            ("a.example", 8080, b"POST / HTTP/1.1\r\nHost: a.example:8080\r\nConnection: close\r\n\r\n"),
        ),
    ],
)
def test_where_a_request_wants_to_go(head: bytes, target: tuple[str, int, bytes] | None) -> None:
    assert target_of(head) == target


@given(st.binary(max_size=200))
def test_any_bytes_are_a_request_or_none(head: bytes) -> None:
    for start in (b"", b"CONNECT ", b"GET http://"):
        target = target_of(start + head + b" HTTP/1.1\r\n\r\n")
        if target is not None:
            host, port, _ = target
            assert 0 < port < 65_536 and not set(host) & set(" /@?#\\\r\n\t")


@pytest.mark.parametrize(
    ("hosts", "host", "port", "allowed"),
    [
        (["a.example"], "a.example", 443, True),
        (["a.example"], "a.example", 80, True),
        (["a.example"], "a.example", 22, False),
        (["a.example:22"], "a.example", 22, True),
        (["a.example:22"], "a.example", 443, False),
        (["a.example"], "A.EXAMPLE.", 443, True),
        (["a.example"], "b.a.example", 443, False),
        (["a.example"], "a.example.evil.example", 443, False),
        (["*.a.example"], "b.a.example", 443, True),
        (["*.a.example"], "c.b.a.example", 443, True),
        (["*.a.example"], "a.example", 443, False),
        (["*.a.example"], "ba.example", 443, False),
        (["*.a.example"], "evila.example", 443, False),
        (["A.Example"], "a.example", 443, True),
    ],
)
def test_which_hosts_are_on_a_list(hosts: list[str], host: str, port: int, allowed: bool) -> None:
    assert Allowlist(hosts).allows(host, port) is allowed


@pytest.mark.parametrize(
    "entry", ["", "*", "http://a.example", "a.example/x", "a.example:0", "a b", "*.*.example", "a:99999"]
)
def test_an_entry_that_is_no_host_is_refused(entry: str) -> None:
    with pytest.raises(ValueError, match="hosts: expected a name"):
        Allowlist([entry])


# -- through the sandbox


class Page(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"  # serves several requests of one connection

    def handle_one_request(self) -> None:
        super().handle_one_request()
        if b"GET /second" in self.raw_requestline:
            ASKED_TWICE.append(self.raw_requestline)
        self.close_connection = not self.raw_requestline  # whatever `Connection: close` says

    def do_POST(self) -> None:
        if self.headers["Transfer-Encoding"]:
            given = b""
            while size := int(self.rfile.readline(), 16):
                given += self.rfile.read(size)
                self.rfile.readline()
            self.rfile.readline()
        else:
            given = self.rfile.read(int(self.headers["Content-Length"]))
        self.send_response(200)
        self.send_header("Content-Length", str(len(given)))
        self.end_headers()
        self.wfile.write(given)

    def do_GET(self) -> None:
        body = f"{self.headers['Host']} {self.path}".encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *given: object) -> None:
        pass


ASKED_TWICE: list[bytes] = []


@pytest.fixture
def server() -> Iterator[int]:
    with ThreadingHTTPServer(("127.0.0.1", 0), Page) as made:
        thread = threading.Thread(target=made.serve_forever, args=(0.01,))
        thread.start()
        yield made.server_address[1]
        made.shutdown()
        thread.join()


@pytest.fixture
def sandbox(tmp_path: Path, server: int) -> Sandbox:
    async def resolve(host: str, port: int) -> Sequence[str]:
        if host == "guarded.example":
            raise OSError("its address is private")
        return ["127.0.0.1"]

    hosts = [f"a.example:{server}", f"guarded.example:{server}"]
    made: Sandbox = backend("bubblewrap")(
        tmp_path, Level.of("workspace_write", "allowlist", hosts), resolve=resolve
    )
    return made


ASK = "import sys, urllib.request as u; print(u.urlopen(sys.argv[1], timeout=10).read().decode())"
TUNNEL = """
import http.client, os, sys
host, _, port = os.environ["https_proxy"].rpartition("/")[2].partition(":")
made = http.client.HTTPConnection(host, int(port), timeout=10)
made.set_tunnel(sys.argv[1], int(sys.argv[2]))
made.request("GET", "/tunnelled")
print(made.getresponse().read().decode())
"""


def test_a_host_on_the_list_is_reached(sandbox: Sandbox, tmp_path: Path, server: int) -> None:
    done = run(sandbox, [sys.executable, "-c", ASK, f"http://a.example:{server}/page"], tmp_path)
    assert done.said.strip() == f"a.example:{server} /page" and done.denial is None
    done = run(sandbox, [sys.executable, "-c", TUNNEL, "a.example", str(server)], tmp_path)
    assert done.said.strip() == f"a.example:{server} /tunnelled"


@pytest.mark.parametrize("kind", [ASK, TUNNEL])
def test_a_host_that_is_not_is_refused_and_named(
    sandbox: Sandbox, tmp_path: Path, server: int, kind: str
) -> None:
    where = [f"http://b.example:{server}/"] if kind == ASK else ["b.example", str(server)]
    done = run(sandbox, [sys.executable, "-c", kind, *where], tmp_path)
    assert done.code != 0 and "403" in done.said
    assert done.denial is not None and done.denial.target == f"b.example:{server}"
    assert done.denial.remedy == f"allow the host b.example:{server}"


MANY = """
import os, socket
host, _, port = os.environ["http_proxy"].rpartition("/")[2].partition(":")
for number in range(300):
    with socket.create_connection((host, int(port)), 10) as made:
        made.sendall(f"CONNECT {'a.' * 100}h{number % 150}:443 HTTP/1.1\\r\\n\\r\\n".encode())
        while made.recv(65536):
            pass
"""


def test_what_is_noted_of_refusals_does_not_grow_with_them(sandbox: Sandbox, tmp_path: Path) -> None:
    script = [sys.executable, "-c", MANY]
    with sandbox.launch(script, cwd=str(tmp_path), env=environment(os.environ)) as launch:
        subprocess.run(launch.argv, env=launch.env, cwd=tmp_path, pass_fds=launch.pass_fds, check=True)
    assert 1 <= len(launch.refused_hosts) <= 100
    assert sum(map(len, launch.refused_hosts)) < 30_000


@pytest.mark.promise("sandbox.md", "the proxy connects to the very address that was checked")
def test_the_resolver_has_the_last_word(sandbox: Sandbox, tmp_path: Path, server: int) -> None:
    done = run(sandbox, [sys.executable, "-c", ASK, f"http://guarded.example:{server}/"], tmp_path)
    assert done.code != 0 and "502" in done.said


RAW = """
import os, socket, sys
host, _, port = os.environ["http_proxy"].rpartition("/")[2].partition(":")
made = socket.create_connection((host, int(port)), 10)
made.sendall(sys.argv[1].encode().decode("unicode_escape").encode())
made.settimeout(0.5)
try:
    while piece := made.recv(65536):
        print(piece.decode())
except TimeoutError:
    pass
"""


def test_a_second_request_of_one_connection_is_not_passed_on(
    sandbox: Sandbox, tmp_path: Path, server: int
) -> None:
    ASKED_TWICE.clear()
    second = r"GET /second HTTP/1.1\r\nHost: other.example\r\n\r\n"
    to = f"http://a.example:{server}/x HTTP/1.1"
    for first, answer in (
        (rf"GET {to}\r\n\r\n", f"a.example:{server} /x"),
        (rf"POST {to}\r\nContent-Length: 5\r\n\r\nhello", "hello"),
        (rf"POST {to}\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nhel\r\n2;x\r\nlo\r\n0\r\n\r\n", "hello"),
    ):
        done = run(sandbox, [sys.executable, "-c", RAW, first + second], tmp_path)
        assert answer in done.said, done.said
    assert ASKED_TWICE == []


@pytest.mark.promise(
    "sandbox.md", "Programs that ignore `http_proxy` and `https_proxy` reach nothing at all."
)
def test_there_is_no_way_past_the_proxy(sandbox: Sandbox, tmp_path: Path, server: int) -> None:
    direct = f"import socket; socket.create_connection(('127.0.0.1', {server}), 3)"
    assert run(sandbox, [sys.executable, "-c", direct], tmp_path).code != 0
    datagram = "import socket; socket.socket(2, 2).sendto(b'x', ('192.0.2.1', 53))"
    assert run(sandbox, [sys.executable, "-c", datagram], tmp_path).code != 0


def proxies() -> set[threading.Thread]:
    """Threads that serve the network of a command; others of this process are none of its business."""
    return {thread for thread in threading.enumerate() if thread.name == "toolcrib-egress"}


def test_a_server_that_does_not_hang_up_does_not_hold_up_the_end_of_a_command(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    before = proxies()
    with socket.create_server(("127.0.0.1", 0)) as silent:
        port = silent.getsockname()[1]
        made = backend("bubblewrap")(
            tmp_path, Level.of("workspace_write", "allowlist", [f"127.0.0.1:{port}"])
        )
        opened = rf"CONNECT 127.0.0.1:{port} HTTP/1.1\r\n\r\n"
        done = run(made, [sys.executable, "-c", RAW, opened], tmp_path)
        assert "200 Connection established" in done.said
        assert not proxies() - before
    assert not caplog.records  # asyncio told of an exception, in the terminal


def open_descriptors() -> set[str]:
    return {path.name for path in Path("/proc/self/fd").iterdir()}


@pytest.mark.parametrize("lacks", ["a thread", "descriptors"])
def test_a_proxy_that_cannot_be_started_leaves_nothing_open(
    lacks: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = backend("bubblewrap")(tmp_path, Level.of("workspace_write", "allowlist", ["a.example:443"]))
    made.launch(["true"], cwd=str(tmp_path), env={}).close()
    begin, begin_loop = threading.Thread.start, asyncio.new_event_loop

    def start(thread: threading.Thread) -> None:
        if thread.name == "toolcrib-egress":
            raise RuntimeError("can't start new thread")
        begin(thread)

    def no_loop() -> asyncio.AbstractEventLoop:
        raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))

    if lacks == "a thread":
        monkeypatch.setattr(threading.Thread, "start", start)
    else:
        monkeypatch.setattr(asyncio, "new_event_loop", no_loop)
    gc.collect()
    gc.disable()  # it would close what was forgotten
    try:
        before = open_descriptors()
        with pytest.raises(OSError):
            made.launch(["true"], cwd=str(tmp_path), env={})
        assert open_descriptors() == before
    finally:
        gc.enable()
    monkeypatch.setattr(threading.Thread, "start", begin)
    monkeypatch.setattr(asyncio, "new_event_loop", begin_loop)
    made.launch(["true"], cwd=str(tmp_path), env={}).close()


def test_a_command_without_a_network_beside_costs_no_thread(sandbox: Sandbox, tmp_path: Path) -> None:
    before = proxies()
    for _ in range(3):
        run(sandbox, "true", tmp_path)
    assert not proxies() - before


def test_a_launch_that_is_never_started_ends_its_proxy(sandbox: Sandbox, tmp_path: Path) -> None:
    before = proxies()
    sandbox.launch(["true"], cwd=str(tmp_path), env={}).close()
    assert not proxies() - before


@pytest.mark.promise("sandbox.md", "is refused even if it is listed")
@pytest.mark.parametrize(
    ("listed", "asked", "reason"),
    [
        ("a.example", "a.example", "it resolves to a loopback address"),
        ("db.internal", "db.internal", "it is a local name"),
        ("169.254.169.254", "169.254.169.254", "it is a cloud metadata address"),
        ("127.0.0.1", "127.0.0.1", ""),
        ("localhost", "localhost", ""),
    ],
)
def test_the_network_guard_has_the_last_word(
    tmp_path: Path, server: int, listed: str, asked: str, reason: str
) -> None:
    hosts = [f"{listed}:{server}"]
    made = backend("bubblewrap")(
        tmp_path,
        Level.of("workspace_write", "allowlist", hosts),
        resolve=guarded_resolver(hosts, resolver=lambda host, port: ["127.0.0.1"]),
    )
    done = run(made, [sys.executable, "-c", ASK, f"http://{asked}:{server}/"], tmp_path)
    assert (done.code == 0) is not bool(reason)
    if reason:
        assert done.denial is not None and reason in done.denial.message
        assert done.denial.permission is None and not done.denial.remedy
    else:
        assert done.said.strip() == f"{asked}:{server} /"


async def test_a_name_may_lead_into_ones_own_network_where_that_was_said() -> None:
    resolve = guarded_resolver(
        ["db.internal:5432"], allow_private=["db.internal"], resolver=lambda *_: ["10.0.0.7"]
    )
    assert list(await resolve("db.internal", 5432)) == ["10.0.0.7"]
    with pytest.raises(OSError, match="not on the list"):
        await resolve("db.internal", 5433)


@pytest.mark.promise("sandbox.md", "is refused even if it is listed")
def test_an_allowlist_is_guarded_without_being_told_to(tmp_path: Path, server: int) -> None:
    made = backend("bubblewrap")(tmp_path, Level.of("workspace_write", "allowlist", [f"127.0.0.1:{server}"]))
    done = run(made, [sys.executable, "-c", ASK, f"http://127.0.0.1:{server}/"], tmp_path)
    assert done.said.strip() == f"127.0.0.1:{server} /"


def test_servers_of_a_command_can_be_reached_by_itself(tmp_path: Path) -> None:
    talk = (
        "import socket; s = socket.create_server(('127.0.0.1', 0));"
        "c = socket.create_connection(s.getsockname()); c.send(b'x'); print(s.accept()[0].recv(1))"
    )
    assert run(backend("bubblewrap")(tmp_path), [sys.executable, "-c", talk], tmp_path).said == "b'x'\n"
