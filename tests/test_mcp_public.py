"""Servers and clients of others: public servers as toolsets, and other people's clients on a toolbox that is served."""

from __future__ import annotations

import asyncio
import json
import os
import re
import shlex
import signal
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("mcp")

from tests.mcp_servers import installs
from tests.mcp_servers.public import ALWAYS, BROKEN, PUBLIC, filled, servers
from tests.properties import is_nightly
from toolcrib import Toolbox
from toolcrib.mcp import McpToolset, ServerState

pytestmark = pytest.mark.slow
SECONDS = 180.0  # until all servers are started, on a busy machine


@pytest.fixture(scope="module")
def installed() -> None:
    """Everything is installed; in CI it has to be."""
    try:
        installs.install_all()
    except installs.NotInstalled as missing:
        if installs.required():
            raise
        pytest.skip(f"what MCP is tried with is not installed: {missing}")


async def test_public_servers_are_used_all_at_once(installed: None, tmp_path: Path) -> None:
    names = PUBLIC if is_nightly() else ALWAYS
    configs = await asyncio.to_thread(servers, tmp_path / "servers", names)
    tools = McpToolset(configs, cache=tmp_path / "cache")
    problems = []
    async with Toolbox([tools], autonomy="full") as box:
        for status in await tools.ready(SECONDS):
            good = status.state is ServerState.STARTED and (status.tools or 0) >= PUBLIC[status.name].tools
            if good is (status.name in BROKEN):
                problems.append(f"{status.name}: {status.state}, {status.tools} tools, {status.problem}")
        assert not problems, "\n".join(problems)
        for name in BROKEN:
            [status] = [status for status in tools.servers() if status.name == name]
            assert "exit code" in status.problem or "stderr" in status.problem, status.problem

        # Every tool of all of them compiles, and is named as every provider takes it.
        specs = (await box.tool_list()).specs
        assert len(specs) == sum(status.tools or 0 for status in tools.servers())
        assert all(re.fullmatch(r"[A-Za-z0-9_-]{1,64}", spec.name) for spec in specs)

        async def called(name: str) -> str:
            call = PUBLIC[name].call
            assert call is not None
            tool, arguments, words = call
            result = await box.call(f"{name}__{tool}", filled(arguments, tmp_path / "servers" / name))
            return "" if words in result.text and not result.is_error else f"{name}: {result.text[:300]}"

        callable_ = [config.name for config in configs if PUBLIC[config.name].call is not None]
        said = await asyncio.gather(*(called(name) for name in callable_))
        assert not any(said), "\n".join(filter(None, said))
        researched = await box.call("everything__simulate-research-query", {"topic": "tea"})  # only as a task
        assert "Research Report: tea" in researched.text, researched.text

        # One is killed in the middle of a call: that call's outcome is unknown, the next one starts it again.
        long = {"duration": 30, "steps": 30}
        reporting = asyncio.ensure_future(box.call("everything__trigger-long-running-operation", long))
        await asyncio.sleep(1)
        for name in ("everything", "memory", "time"):
            [status] = [status for status in tools.servers() if status.name == name]
            os.kill(status.pid, signal.SIGKILL)
        result = await reporting
        assert result.is_error and "unknown" in result.text, result.text
        assert await called("everything") == ""
        assert await called("time") == ""
        kept = await box.call("memory__read_graph", {})
        assert "has tools" in kept.text
        pids = [status.pid for status in tools.servers() if status.pid]
    assert len(pids) >= 10
    assert not [pid for pid in pids if Path(f"/proc/{pid}").exists()]  # noqa: ASYNC240

    # From what is kept of their lists, the same tools are listed without starting anything.
    later = McpToolset(configs, cache=tmp_path / "cache")
    async with Toolbox([later], autonomy="full") as box:
        names = {spec.name for spec in (await box.tool_list()).specs}
        assert names == {spec.name for spec in specs}
        known = [status for status in later.servers() if status.name not in BROKEN]
        assert {status.state for status in known} == {ServerState.KNOWN}


# -- their clients on ours

OURS = '''
from typing import Annotated, Literal
from toolcrib import Context, Effect, ToolError, tool

@tool(effect=Effect.READ, secrets=())
def add_numbers(a: int, b: int) -> int:
    """Add two numbers.

    Args:
        a: The first number.
        b: The second number.
    """
    return a + b

@tool(effect=Effect.READ, secrets=())
def boom(reason: str = "no reason") -> str:
    """Fail."""
    raise ToolError(f"It failed: {reason}")

@tool(effect=Effect.WRITE, secrets=())
def find(words: list[str], kind: Literal["file", "folder"] | None = None, most: int = 10) -> dict[str, list[str]]:
    """Find something."""
    print("what a tool prints harms nobody")
    return {"found": words[:most]}
'''


@pytest.fixture(scope="module")
def ours(tmp_path_factory: pytest.TempPathFactory) -> tuple[list[str], dict[str, str], Path]:
    """The command that serves a toolbox, its environment, and its folder."""
    folder = tmp_path_factory.mktemp("served")
    (folder / "our_tools.py").write_text(OURS, "utf-8")
    command = [sys.executable, "-m", "toolcrib", "mcp", "serve", "--from", "our_tools", "--autonomy", "full"]
    home = {"HOME": str(folder), "PYTHONPATH": str(folder)}
    return command, {"PATH": os.environ.get("PATH", os.defpath), **home}, folder


@asynccontextmanager
async def served(ours: tuple[list[str], dict[str, str], Path]) -> AsyncIterator[str]:
    """The address of the toolbox while it is served over HTTP."""
    command, env, folder = ours
    process = await asyncio.create_subprocess_exec(
        *command,
        "--http",
        "0",
        env=env,
        cwd=folder,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    assert process.stdout is not None
    try:
        async with asyncio.timeout(60):
            while not (found := re.search(rb"http://\S+/mcp", line := await process.stdout.readline())):
                assert line, "it ended"
        yield found[0].decode()
    finally:
        process.terminate()
        await process.wait()


async def ran(command: list[str], env: dict[str, str], cwd: Path) -> tuple[int, str, str]:
    process = await asyncio.create_subprocess_exec(
        *command, env=env, cwd=cwd, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE
    )
    async with asyncio.timeout(SECONDS):
        out, err = await process.communicate()
    return process.returncode or 0, out.decode(), err.decode()


async def test_the_official_inspector_lists_and_calls_a_served_toolbox(installed: None, ours: Any) -> None:
    command, env, folder = ours
    launcher = installs.node_modules() / "@modelcontextprotocol/inspector/clients/launcher/build/index.js"
    inspector = [str(installs.node()), str(launcher), "--cli"]
    node = {**installs.node_environment(), "HOME": str(folder), "PYTHONPATH": env["PYTHONPATH"]}

    script = folder / "serve"  # the inspector takes options for its own
    script.write_text(f"#!/bin/sh\nexec {shlex.join(command)}\n", "utf-8")
    script.chmod(0o700)
    async with served(ours) as url:
        http = ["--server-url", url, "--transport", "http", "--protocol-era"]
        ways = ([*http, "modern"], [*http, "legacy"], [str(script)])
        add = [
            "--method",
            "tools/call",
            "--tool-name",
            "add_numbers",
            "--tool-arg",
            "a=2",
            "--tool-arg",
            "b=40",
        ]
        boom = ["--method", "tools/call", "--tool-name", "boom"]
        listing = ["--method", "tools/list", "--strict"]
        for kind, what in {"list": listing, "add": add, "boom": boom}.items():
            tries = (ran([*inspector, *way, *what], node, folder) for way in ways)
            for code, out, err in await asyncio.gather(*tries):
                if kind == "list":
                    assert code == 0, err
                    listed = {tool["name"]: tool for tool in json.loads(out)["tools"]}
                    assert set(listed) == {"add_numbers", "boom", "find"}
                    assert listed["add_numbers"]["annotations"]["readOnlyHint"] is True
                elif kind == "add":
                    assert code == 0, err
                    # Before 2026-07-28, structured content had to be an object.
                    assert json.loads(out)["structuredContent"] in (42, {"result": 42})
                else:
                    assert code == 5, (code, out, err)  # its code for a tool that failed
                    assert "It failed: no reason" in out + err


CLIENTS = """
import asyncio, json, sys
from pathlib import Path

async def tried(client, call):
    tools = {tool.name for tool in await call("list")}
    assert tools == {"add_numbers", "boom", "find"}, tools
    assert (await call("add_numbers", {"a": 2, "b": 40})) in (42, {"result": 42})
    many = await asyncio.gather(*(call("add_numbers", {"a": n, "b": n}) for n in range(100)))
    assert [one["result"] if isinstance(one, dict) else one for one in many] == [2 * n for n in range(100)]

async def with_the_sdk(target):
    from mcp import Client
    async with Client(target) as client:
        async def call(name, arguments=None):
            if name == "list":
                return (await client.list_tools()).tools
            return (await client.call_tool(name, arguments)).structured_content
        await tried(client, call)
        failed = await client.call_tool("boom", {"reason": "x"})
        assert failed.is_error and "It failed: x" in failed.content[0].text
        found = await client.call_tool("find", {"words": ["a"], "kind": None})
        assert "a" in found.content[0].text, found

async def with_fastmcp(target):
    from fastmcp import Client
    async with Client(target) as client:
        async def call(name, arguments=None):
            if name == "list":
                return await client.list_tools()
            return (await client.call_tool(name, arguments)).structured_content
        await tried(client, call)

async def main():
    command, env, url = json.loads(sys.argv[1])
    from mcp import StdioServerParameters, stdio_client
    from fastmcp.client.transports import StdioTransport
    local = StdioServerParameters(command=command[0], args=command[1:], env=env)
    await asyncio.gather(
        with_the_sdk(url), with_fastmcp(url),
        with_the_sdk(local), with_fastmcp(StdioTransport(command[0], command[1:], env=env)),
    )
    print("done")

asyncio.run(main())
"""


async def test_other_peoples_clients_use_a_served_toolbox(installed: None, ours: Any) -> None:
    command, env, folder = ours
    python = str(installs.python_folder("python-mcp2") / "python")
    async with served(ours) as url:
        given = json.dumps([command, env, url])
        code, out, err = await ran([python, "-c", CLIENTS, given], env, folder)
    assert (code, out.strip()) == (0, "done"), err[-3000:]
