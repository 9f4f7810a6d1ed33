"""The guard under a real client, against a server on loopback that plays the internet. Nothing leaves loopback."""

from __future__ import annotations

import gzip
import http.server
import shutil
import socket
import ssl
import subprocess
import threading
import time
import urllib.parse
import zlib
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from toolcrib.net import NetGuard, NetworkRefused, RequestLimits

httpx2 = pytest.importorskip("httpx2")

from tests.internet import PUBLIC, Names, Wire  # noqa: E402 - only with the client's library
from toolcrib.net.transport import async_transport, sync_transport  # noqa: E402

BIG = 3_000_000


class Internet(http.server.BaseHTTPRequestHandler):
    """Answers for every host, as its path says."""

    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        path, _, query = self.path.partition("?")
        if path == "/r":
            self.answer(302, b"", Location=urllib.parse.unquote(query))
        elif path == "/keep":
            self.answer(307, b"", Location=urllib.parse.unquote(query))
        elif path == "/loop":
            self.answer(302, b"", Location="/loop")
        elif path == "/headers":
            self.answer(200, "\n".join(f"{k}: {v}" for k, v in self.headers.items()).lower().encode())
        elif path == "/big":
            self.answer(200, b"x" * BIG)
        elif path == "/gzip":
            self.answer(
                200, gzip.compress(b"hello " * 100) + gzip.compress(b"world"), **{"Content-Encoding": "gzip"}
            )
        elif path == "/bomb":
            self.answer(200, gzip.compress(bytes(BIG)), **{"Content-Encoding": "gzip"})
        elif path == "/deflate":
            self.answer(200, zlib.compress(b"hello"), **{"Content-Encoding": "deflate"})
        elif path == "/raw-deflate":
            self.answer(200, zlib.compress(b"hello", wbits=-15), **{"Content-Encoding": "deflate"})
        elif path == "/br":
            self.answer(200, b"??", **{"Content-Encoding": "br"})
        elif path == "/broken":
            self.answer(200, b"no gzip at all", **{"Content-Encoding": "gzip"})
        elif path in ("/drip", "/drip-head"):
            self.drip(path)
        elif path == "/continue":
            self.go_on()
        else:
            self.answer(200, f"{self.headers['Host']} {self.path}".encode())

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers.get("Content-Length", 0)))
        self.do_GET()

    def answer(self, status: int, body: bytes, **headers: str) -> None:
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        try:
            self.wfile.write(body)
        except OSError:
            pass  # the client has read enough

    def drip(self, path: str) -> None:
        """A byte now and then, for much longer than anybody should wait."""
        try:
            self.wfile.write(
                b"HTTP/1.1 200 OK\r\n" + (b"Content-Length: 100\r\n\r\n" if path == "/drip" else b"")
            )
            for _ in range(100):
                self.wfile.write(b"x")
                time.sleep(0.1)
        except OSError:
            pass
        self.close_connection = True

    def go_on(self) -> None:
        """Interim answers without an end, faster than any deadline for one of them."""
        end = time.monotonic() + 5
        with suppress(OSError):
            while time.monotonic() < end:
                self.wfile.write(b"HTTP/1.1 100 Continue\r\n\r\n" * 100)
        self.close_connection = True

    def log_message(self, *_: Any) -> None:
        pass


@pytest.fixture(scope="module")
def server() -> Iterator[int]:
    made = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Internet)
    made.daemon_threads = True
    threading.Thread(target=made.serve_forever, args=(0.01,), daemon=True).start()
    yield made.server_port
    made.shutdown()
    made.server_close()


class Asker:
    """One way to ask: a sync or an async client with the guard's transport."""

    def __init__(self, kind: str, port: int) -> None:
        self.kind = kind
        self.port = port
        self.wire = Wire(port)
        self.names = Names()

    async def get(
        self, url: str, method: str = "GET", limits: RequestLimits | None = None, **more: Any
    ) -> Any:
        guard = NetGuard(resolver=self.names, ports=[80, 443, self.port], limits=limits or RequestLimits())
        asked = {"follow_redirects": True, "max_redirects": 50, "timeout": 30, **more.pop("client", {})}
        if self.kind == "sync":
            with httpx2.Client(
                transport=sync_transport(guard, backend=self.wire.backends[0]), **asked
            ) as client:
                return client.request(method, url, **more)
        transport = async_transport(guard, backend=self.wire.backends[1])
        async with httpx2.AsyncClient(transport=transport, **asked) as client:
            return await client.request(method, url, **more)

    def url(self, path: str = "/", host: str = "public.test") -> str:
        return f"http://{host}:{self.port}{path}"


@pytest.fixture(params=["sync", "async"])
def ask(request: pytest.FixtureRequest, server: int) -> Asker:
    return Asker(request.param, server)


async def test_the_connection_goes_to_the_checked_address_and_the_name_stays(ask: Asker) -> None:
    answer = await ask.get(ask.url("/page?q=1"))
    assert answer.text == f"public.test:{ask.port} /page?q=1"
    assert ask.wire.seen == [(PUBLIC, ask.port)]


@pytest.mark.parametrize("url", ["http://private.test/", "http://multi.test/", "http://localhost/", "http://2130706433/", "http://[::1]/", "http://169.254.169.254/latest", "http://public.test:22/", "http://nowhere.test/", "http://u:p@public.test/"])  # fmt: skip
async def test_what_is_refused_is_never_connected_to(ask: Asker, url: str) -> None:
    with pytest.raises(NetworkRefused):
        await ask.get(url)
    assert ask.wire.seen == []


async def test_a_name_that_changes_its_mind_is_asked_again_for_every_connection(ask: Asker) -> None:
    first = await ask.get(ask.url(host="rebind.test"))
    assert first.status_code == 200
    with pytest.raises(NetworkRefused, match=r"rebind\.test is refused: it resolves to a loopback address"):
        await ask.get(ask.url(host="rebind.test"))
    assert ask.wire.seen == [(PUBLIC, ask.port)]


@pytest.mark.parametrize("target", ["http://127.0.0.1/", "http://2852039166/latest", "http://private.test/", "//localhost/", "http://public.test:22/", "file:///etc/passwd", "http://a@public.test/"])  # fmt: skip
async def test_every_redirect_is_checked(ask: Asker, target: str) -> None:
    chain = ask.url("/r?" + urllib.parse.quote(ask.url("/r?" + urllib.parse.quote(target, safe="")), safe=""))
    with pytest.raises((NetworkRefused, httpx2.UnsupportedProtocol)):
        await ask.get(chain)
    assert {address for address, _ in ask.wire.seen} == {PUBLIC}


async def test_redirects_within_the_rules_are_followed(ask: Asker) -> None:
    answer = await ask.get(ask.url("/r?" + ask.url("/end", "other.test")))
    assert answer.text == f"other.test:{ask.port} /end"
    assert [address for address, _ in ask.wire.seen] == [PUBLIC, "1.1.1.1"]


async def test_redirects_end_at_their_limit_whatever_the_client_says(ask: Asker) -> None:
    with pytest.raises(NetworkRefused, match="more than 5 redirects"):
        await ask.get(ask.url("/loop"))
    with pytest.raises(NetworkRefused, match="more than 0 redirects"):
        await ask.get(ask.url("/loop"), limits=RequestLimits(redirects=0))


SENT = {
    "Authorization": "Bearer abc",
    "X-Api-Key": "abc",
    "Cookie": "a=abc",
    "Accept": "text/x",
    "Proxy-Authorization": "abc",
}


async def test_credentials_stay_with_the_host_they_were_meant_for(ask: Asker) -> None:
    same = await ask.get(ask.url("/r?/headers"), headers=SENT)
    assert "x-api-key: abc" in same.text and "authorization: bearer abc" in same.text
    other = await ask.get(ask.url("/r?" + ask.url("/headers", "other.test")), headers=SENT)
    assert "abc" not in other.text
    assert "accept: text/x" in other.text
    back = ask.url("/r?" + urllib.parse.quote(ask.url("/headers"), safe=""), "other.test")
    returned = await ask.get(ask.url("/r?" + urllib.parse.quote(back, safe="")), headers=SENT)
    assert "abc" not in returned.text


async def test_a_host_header_cannot_name_another_host(ask: Asker) -> None:
    with pytest.raises(NetworkRefused, match="the Host header names another host"):
        await ask.get(ask.url(), headers={"Host": "other.test"})
    assert (await ask.get(ask.url("/x"), headers={"Host": "Public.test"})).text == "Public.test /x"


async def test_a_clients_cookies_do_not_travel_either(ask: Asker) -> None:
    answer = await ask.get(
        ask.url("/r?" + ask.url("/headers", "other.test")), client={"cookies": {"s": "abc"}}
    )
    assert "abc" not in answer.text


async def test_a_body_is_not_sent_on_to_another_host(ask: Asker) -> None:
    with pytest.raises(NetworkRefused, match=r"public\.test redirects what was sent to it to other\.test"):
        await ask.get(ask.url("/keep?" + ask.url("/", "other.test")), "POST", content=b"secret")
    assert (await ask.get(ask.url("/keep?/end"), "POST", content=b"x")).status_code == 200


@pytest.mark.parametrize(
    ("path", "text"), [("/gzip", "hello " * 100 + "world"), ("/deflate", "hello"), ("/raw-deflate", "hello")]
)
async def test_answers_are_decoded_once(ask: Asker, path: str, text: str) -> None:
    assert (await ask.get(ask.url(path))).text == text


@pytest.mark.parametrize("path", ["/big", "/bomb"])
async def test_answers_end_at_their_limit_however_they_are_packed(ask: Asker, path: str) -> None:
    with pytest.raises(NetworkRefused, match=r"the answer is longer than 2000000 bytes"):
        await ask.get(ask.url(path), limits=RequestLimits(bytes=2_000_000))
    assert len((await ask.get(ask.url(path))).content) == BIG


@pytest.mark.parametrize(
    ("path", "words"), [("/br", "encoded as br, which was not asked for"), ("/broken", "encoding is broken")]
)
async def test_answers_that_cannot_be_decoded_are_refused(ask: Asker, path: str, words: str) -> None:
    with pytest.raises(NetworkRefused, match=words):
        await ask.get(ask.url(path))


@pytest.mark.parametrize("path", ["/drip", "/drip-head", "/continue"])
async def test_drips_end_with_the_deadline_of_the_whole(ask: Asker, path: str) -> None:
    with pytest.raises(NetworkRefused, match=r"public\.test took longer than 0\.5 s"):
        await ask.get(ask.url(path), limits=RequestLimits(seconds=0.5))


async def test_a_slow_resolver_ends_with_it_too(server: int) -> None:
    import asyncio

    async def never(host: str, port: int) -> Sequence[str]:
        await asyncio.sleep(60)
        return [PUBLIC]

    guard = NetGuard(resolver=never, limits=RequestLimits(seconds=0.3))
    async with httpx2.AsyncClient(
        transport=async_transport(guard, backend=Wire(server).backends[1])
    ) as client:
        with pytest.raises(NetworkRefused, match=r"public\.test took longer"):
            await client.get("http://public.test/")


async def test_proxies_of_the_environment_are_not_used(ask: Asker, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    assert (await ask.get(ask.url())).status_code == 200
    assert ask.wire.seen == [(PUBLIC, ask.port)]


async def test_the_next_address_is_tried_when_one_does_not_answer(ask: Asker) -> None:
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        dead = closed.getsockname()[1]
    ask.wire.port = dead
    with pytest.raises(httpx2.ConnectError):
        await ask.get(ask.url())
    assert ask.wire.seen == [(PUBLIC, ask.port)]


# -- TLS


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    openssl = shutil.which("openssl")
    if openssl is None:
        pytest.skip("needs openssl to make a certificate")
    folder = tmp_path_factory.mktemp("tls")
    subprocess.run(
        [openssl, "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=public.test",
         "-addext", "subjectAltName=DNS:public.test", "-keyout", "key.pem", "-out", "cert.pem"],
        cwd=folder, check=True, capture_output=True, timeout=60,
    )  # fmt: skip
    return folder


@pytest.fixture
def secure_server(certificate: Path) -> Iterator[tuple[int, list[str | None]]]:
    names: list[str | None] = []
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate / "cert.pem", certificate / "key.pem")
    context.sni_callback = lambda connection, name, inner: names.append(name)
    made = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Internet)
    made.daemon_threads = True
    made.socket = context.wrap_socket(made.socket, server_side=True)
    made.handle_error = lambda *_: None  # type: ignore[method-assign] - a client that does not trust us hangs up
    threading.Thread(target=made.serve_forever, args=(0.01,), daemon=True).start()
    yield made.server_port, names
    made.shutdown()
    made.server_close()


@pytest.mark.parametrize("kind", ["sync", "async"])
async def test_tls_goes_on_verifying_the_name(
    kind: str, secure_server: tuple[int, list[str | None]], certificate: Path
) -> None:
    port, names = secure_server
    wire, trusted = Wire(port), ssl.create_default_context(cafile=str(certificate / "cert.pem"))

    async def get(host: str, verify: Any) -> Any:
        guard = NetGuard(resolver=Names())
        if kind == "sync":
            with httpx2.Client(
                transport=sync_transport(guard, verify=verify, backend=wire.backends[0])
            ) as client:
                return client.get(f"https://{host}/x")
        transport = async_transport(guard, verify=verify, backend=wire.backends[1])
        async with httpx2.AsyncClient(transport=transport) as client:
            return await client.get(f"https://{host}/x")

    assert (await get("public.test", trusted)).text == "public.test /x"
    assert names == ["public.test"]
    assert wire.seen == [(PUBLIC, 443)]
    for host, verify in (("other.test", trusted), ("public.test", True)):
        with pytest.raises(httpx2.ConnectError, match="CERTIFICATE_VERIFY_FAILED"):
            await get(host, verify)


@pytest.mark.parametrize("kind", ["sync", "async"])
async def test_a_redirect_does_not_leave_tls(
    kind: str, secure_server: tuple[int, list[str | None]], certificate: Path
) -> None:
    port, _ = secure_server
    ask = Asker(kind, port)
    trusted = ssl.create_default_context(cafile=str(certificate / "cert.pem"))
    guard = NetGuard(resolver=ask.names)
    url = "https://public.test/r?http://public.test/"
    with pytest.raises(NetworkRefused, match=r"public\.test redirects from https to http"):
        if kind == "sync":
            transport: Any = sync_transport(guard, verify=trusted, backend=ask.wire.backends[0])
            with httpx2.Client(transport=transport, follow_redirects=True) as client:
                client.get(url)
        else:
            transport = async_transport(guard, verify=trusted, backend=ask.wire.backends[1])
            async with httpx2.AsyncClient(transport=transport, follow_redirects=True) as client:
                await client.get(url)
