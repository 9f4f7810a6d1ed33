"""Nothing stays open: loops, sockets and threads that were opened for a model end with what opened them."""

from __future__ import annotations

import asyncio
import concurrent.futures
import gc
import json
import os
import subprocess
import sys
import threading
from collections.abc import Generator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from tests.test_model_classes import CLASSES, REQUEST, made
from toolcrib import Agent, Effect, Toolbox, tool
from toolcrib.models import Fallback, ModelError, Ollama, Scripted
from toolcrib.toolset import StaticToolset

ROOT = Path(__file__).parents[1]

# Each way to ask a model, in a process that turns every forgotten socket and loop into an error.
ASKING = """
import asyncio, gc, logging, sys
from tests.test_model_classes import CLASSES, made
from toolcrib import Agent, Effect, tool

logging.getLogger("asyncio").setLevel(logging.ERROR)  # on a slow machine it remarks on slow steps
leaked = []
sys.unraisablehook = lambda problem: leaked.append(f"{problem.exc_value}")

@tool(effect=Effect.READ, secrets=())
async def add(a: int, b: int) -> int:
    "Add two numbers."
    return a + b

def text(model):
    with_events = []
    outcome = Agent(model, [add], on_event=with_events.append).run_sync("Hi")
    assert outcome.text == "Hello.", outcome.detail

async def several(model):
    first, second = await asyncio.gather(Agent(model).run("Hi"), Agent(model).run("Hi"))
    assert first.text == second.text == "Hello."

async def closed(model):
    async with model, Agent(model) as agent:
        await agent.run("Hi")

WAYS = {
    "run_sync": text, "run": lambda m: asyncio.run(several(m)), "async with": lambda m: asyncio.run(closed(m)),
    "call_sync": lambda m: Agent(m, [add]).toolbox.call_sync("add", {"a": 1, "b": 2}),
}
for name in sorted(CLASSES):  # what asking imports is loaded: no collection of garbage looks through it again
    text(made(name, f"{sys.argv[1]}/{name}"))
gc.collect()
gc.freeze()
for name in sorted(CLASSES):
    for way, use in WAYS.items():
        use(made(name, f"{sys.argv[1]}/{name}"))
        gc.collect()
        if leaked:
            print(name, way, leaked)
            leaked.clear()
last = Agent(made("OpenAIChat", f"{sys.argv[1]}/OpenAIChat"))
last.run_sync("Hi")  # is still there when the process ends
sys.unraisablehook = sys.__unraisablehook__
"""


class KeepsConnections(BaseHTTPRequestHandler):
    """Answers with what the class of models that its path begins with understands, and never closes a connection."""

    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["content-length"]))
        data = json.dumps(CLASSES[self.path.split("/")[1]][1]).encode()
        self.send_response(200)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *_: Any) -> None:
        """Say nothing."""


@contextmanager
def serving() -> Generator[str]:
    with ThreadingHTTPServer(("127.0.0.1", 0), KeepsConnections) as server:
        server.daemon_threads = True
        threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


@pytest.mark.promise("faults.md", "No transport leaves a socket or a loop behind.")
@pytest.mark.slow
def test_no_transport_leaves_a_socket_or_a_loop() -> None:
    clean = {k: v for k, v in os.environ.items() if not k.startswith(("TOOLCRIB_", "AWS_"))}
    with serving() as address:
        done = subprocess.run(
            [sys.executable, "-W", "error::ResourceWarning", "-X", "dev", "-c", ASKING, address],
            cwd=ROOT,
            env={**clean, "AWS_ACCESS_KEY_ID": "k", "AWS_SECRET_ACCESS_KEY": "s"},
            capture_output=True,
            text=True,
            timeout=120,
        )
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


TOOLS = """
import logging, sys
from pathlib import Path
from toolcrib import Toolbox
from toolcrib.tools import Workspace
from toolcrib.tools.builtin import workspace_tools

logging.getLogger("asyncio").setLevel(logging.ERROR)  # on a slow machine it remarks on slow steps
folder = Path(sys.argv[1])
(folder / "a.txt").write_text("one")
box = Toolbox(workspace_tools(Workspace(folder)), autonomy="full")
for name, arguments in {
    "read_file": {"path": "a.txt"}, "list_dir": {"path": "."}, "glob": {"pattern": "*"}, "grep": {"pattern": "o"},
    "write_file": {"path": "b.txt", "content": "two"}, "shell": {"command": "echo three | cat"},
}.items():
    result = box.call_sync(name, arguments)
    assert not result.is_error, result.text
"""


@pytest.mark.slow
def test_no_built_in_tool_leaves_a_file_or_a_loop(tmp_path: Path) -> None:
    command = [sys.executable, "-W", "error::ResourceWarning", "-X", "dev", "-c", TOOLS, str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_a_portal_ends_with_its_box_and_can_be_ended_before() -> None:
    @tool(effect=Effect.READ, secrets=())
    async def where() -> str:
        return threading.current_thread().name

    others = {*threading.enumerate()}  # of earlier tests, which may end meanwhile

    def portals() -> list[threading.Thread]:
        found = [thread for thread in threading.enumerate() if thread.name == "toolcrib-portal"]
        return [thread for thread in found if thread not in others]

    box = Toolbox([where])
    for _ in range(2):
        assert box.call_sync("where", {}).text == "toolcrib-portal"
        assert len(portals()) == 1
        asyncio.run(box.aclose())
        assert portals() == []
    box.call_sync("where", {})
    del box
    gc.collect()
    assert portals() == []


def test_threads_that_begin_at_once_share_one_portal() -> None:
    async def loop() -> int:
        return id(asyncio.get_running_loop())

    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        for _ in range(50):
            box, loops, barrier = Toolbox(), set[int](), threading.Barrier(4)

            def work(box: Toolbox = box, loops: set[int] = loops, barrier: Any = barrier) -> None:
                barrier.wait()
                loops.add(box.run_sync(loop()))

            threads = [threading.Thread(target=work) for _ in range(4)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            assert len(loops) == 1
            asyncio.run(box.aclose())
    finally:
        sys.setswitchinterval(before)


def test_a_portal_that_is_closed_ends_the_calls_that_were_handed_to_it() -> None:
    """Each call gives its result or is cancelled; none waits for a loop that is gone."""
    box, ended = Toolbox(), list[str]()

    async def moment() -> str:
        await asyncio.sleep(0)
        return "done"

    def work() -> None:
        for _ in range(50):
            try:
                ended.append(box.run_sync(moment()))
            except concurrent.futures.CancelledError:
                ended.append("cancelled")

    threads = [threading.Thread(target=work, daemon=True) for _ in range(3)]
    for thread in threads:
        thread.start()
    while any(thread.is_alive() for thread in threads) and len(ended) < 150:
        asyncio.run(box.aclose())
    for thread in threads:
        thread.join(10)
    assert len(ended) == 150 and set(ended) <= {"done", "cancelled"}
    asyncio.run(box.aclose())


class Closing:
    """A model that counts how often it is closed."""

    name = "closing"

    def __init__(self) -> None:
        self.closed = 0

    def stream(self, request: Any) -> Any:
        return Scripted(["Hello."] * 9).stream(request)

    async def respond(self, request: Any) -> Any:
        return await Scripted(["Hello."]).respond(request)

    async def aclose(self) -> None:
        self.closed += 1


async def test_an_agent_closes_what_it_made_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    own = Closing()
    monkeypatch.setattr("toolcrib.models.resolve_model", lambda spec: own)
    async with Agent("some:model") as agent:
        await agent.run("Hi")
        assert own.closed == 0
    assert own.closed == 1
    assert (await agent.run("Hi")).text == "Hello.", "it can be used again"

    handed_in = Closing()
    async with Agent(handed_in) as agent:
        await agent.run("Hi")
    assert handed_in.closed == 0, "a model that was handed in belongs to the caller"
    async with Fallback([handed_in, Scripted([])]):
        pass
    assert handed_in.closed == 1


async def test_a_model_without_anything_to_close_works() -> None:
    async with Agent(Scripted(["Hello."])) as agent:
        assert (await agent.run("Hi")).text == "Hello."


async def test_an_agent_enters_its_toolsets_once_and_leaves_a_foreign_toolbox_alone() -> None:
    class Set(StaticToolset):
        def __init__(self) -> None:
            super().__init__([])
            self.entered = self.left = 0

        async def __aenter__(self) -> Set:
            self.entered += 1
            return self

        async def __aexit__(self, *exc: object) -> None:
            self.left += 1

    mine, foreign = Set(), Set()
    async with Agent(Scripted(["Hello."] * 2), [mine]) as agent:
        await agent.run("Hi")
        await agent.run("Hi")
        assert (mine.entered, mine.left) == (1, 0)
    assert mine.left == 1

    async with Agent(Scripted(["Hello."]), toolbox=Toolbox([foreign])):
        assert foreign.entered == 0


async def test_closing_reaches_the_connections_of_other_loops() -> None:
    with serving() as address:
        model = made("OpenAIChat", f"{address}/OpenAIChat")
        box = Toolbox([])
        await asyncio.to_thread(box.run_sync, model.respond(REQUEST))
        await model.respond(REQUEST)
        clients = model._clients.all()
        assert [client.is_closed() for client in clients] == [False, False]
        await model.aclose()
        assert [client.is_closed() for client in clients] == [True, True]
        assert (await model.respond(REQUEST)).message.text == "Hello.", "it can be used again"
        await model.aclose()


async def test_the_loop_goes_on_while_an_sdk_is_imported(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """An import that waits for the loop's own work would never end if it stopped the loop."""
    (tmp_path / "slow_sdk.py").write_text(
        "import threading\nlet_go = threading.Event()\n"
        "import sys; sys.slow_sdk_began()\nassert let_go.wait(20), 'the loop stood still'\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    loop = asyncio.get_running_loop()
    let_go = lambda: sys.modules["slow_sdk"].let_go.set()  # noqa: E731
    monkeypatch.setattr(sys, "slow_sdk_began", lambda: loop.call_soon_threadsafe(let_go), raising=False)

    class Slow(Ollama):
        modules = ("httpx2", "slow_sdk")

    with serving() as address:
        async with Slow("m", base_url=f"{address}/Ollama", deadline=60) as model:
            answers = await asyncio.gather(*(model.respond(REQUEST) for _ in range(3)))
            assert [answer.message.text for answer in answers] == ["Hello."] * 3
            assert len(model._clients.all()) == 1


async def test_what_is_missing_is_said_before_anything_is_imported() -> None:
    class Lacking(Ollama):
        modules = ("httpx2", "there_is_no_such_module")

    with pytest.raises(ModelError, match="set OLLAMA_API_KEY, or pass api_key="):
        await Lacking("m", base_url="https://ollama.com").respond(REQUEST)
