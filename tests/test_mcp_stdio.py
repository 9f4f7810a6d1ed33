"""Servers as child processes: what they are given, what they write, and that nothing of them is left."""

from __future__ import annotations

import asyncio
import base64
import json
import os
import sys
import time
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("mcp")

from tests.cases import each
from tests.mcp_servers import plain_stdio
from toolcrib import Answer, ErrorCode, Question, Toolbox, Verdict
from toolcrib.facts import MaxOutput
from toolcrib.mcp import McpServer, McpToolset, ServerState
from toolcrib.mcp.client import stdio as stdio_module
from toolcrib.mcp.client.pins import Pins
from toolcrib.mcp.expansion import Expansion
from toolcrib.mcp.server import PassedOnPrompts, PassedOnResources
from toolcrib.models import Scripted
from toolcrib.question import Lasting, Scope
from toolcrib.result import ToolResult
from toolcrib.rules import ApprovalStore
from toolcrib.secrets import Environment

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="processes of another kind")

COMMAND = (sys.executable, str(Path(plain_stdio.__file__)))


def plain(**named: Any) -> McpServer:
    return McpServer(name="plain", command=COMMAND, **named)


def runs(pid: int) -> bool:
    try:
        return (Path("/proc") / str(pid) / "stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False


async def test_a_server_is_given_the_variables_of_its_configuration_and_a_few_harmless_ones(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SOME_API_KEY", "secret")
    monkeypatch.setenv("LANG", "C.UTF-8")
    tools = McpToolset([plain(env={"GIVEN": "yes"}, cwd=str(tmp_path))])
    async with Toolbox([tools], autonomy="full") as box:
        given = json.loads((await box.call("plain__do", {"what": "env"})).text)
    assert given["GIVEN"] == "yes"
    assert given["LANG"] == "C.UTF-8"
    assert given["PATH"] == os.environ["PATH"]
    assert "SOME_API_KEY" not in given


@pytest.mark.promise(
    "mcp-servers.md", "Lists, files of known tools and messages have the reference, never the value."
)
def test_what_a_server_says_of_itself_has_no_credential_that_it_was_given(tmp_path: Path) -> None:
    key = "hunter2-hunter3-xyz"
    expansion = Expansion(secrets=Environment(["KEY"], environ={"KEY": key}))
    server = plain(env={"TELLS_API_KEY": "<secret_ref:KEY>"})
    tools = McpToolset([server], cache=tmp_path, resolve=expansion)

    async def listed() -> tuple[Any, Any]:
        async with Toolbox([tools], autonomy="full") as box:
            return (await box.tool_list()).specs, tools.servers()

    for shown in (*asyncio.run(listed()), *(path.read_text() for path in tmp_path.iterdir())):
        assert key not in str(shown) and "<secret_ref:KEY>" in str(shown)


@pytest.mark.promise(
    "mcp-servers.md", "Lists, files of known tools and messages have the reference, never the value."
)
@each(
    "fails_at, what, told",
    [
        ("initialize", "", "no initialize of <secret_ref:KEY>"),
        ("tools/list", "", "no tools/list of <secret_ref:KEY>"),
        ("tools/call", "", "no tools/call of <secret_ref:KEY>"),
        ("", "request", '"Basic bWU6<secret_ref:KEY>'),
        ("", "file", '"Basic bWU6<secret_ref:KEY>'),
    ],
)
async def test_no_error_and_no_other_form_of_a_credential_shows_it(
    fails_at: str, what: str, told: str, tmp_path: Path
) -> None:
    key = "hunter2-hunter3-xyz"
    expansion = Expansion(secrets=Environment(["KEY"], environ={"KEY": key}))
    server = plain(env={"TELLS_API_KEY": "<secret_ref:KEY>", "FAILS_AT": fails_at})
    tools = McpToolset([server], cache=tmp_path, resolve=expansion)
    seen: list[Any] = []
    async with Toolbox([tools], autonomy="full", on_event=seen.append) as box:
        seen += [await tools.ready(), await box.call("plain__do", {"what": what}), tools.servers()]
    seen += [path.read_text() for path in tmp_path.iterdir()]  # noqa: ASYNC240 - a few small files
    shown = "\n".join(one.text if isinstance(one, ToolResult) else str(one) for one in seen)
    assert told in shown
    for form in (key, key.replace("-", "%2D"), base64.b64encode(f"me:{key}".encode()).decode()):
        assert form not in shown


async def test_what_a_server_asks_and_what_is_passed_on_of_it_has_no_credential() -> None:
    key = "hunter2-hunter3-xyz"
    seen: list[Any] = []

    def respond(request: Any) -> str:
        seen.append([message.text for message in request.messages])
        return "hm"

    async def approver(question: Question) -> Any:
        seen.append(question)
        return Answer(Verdict.YES, values={"postgres": True} if question.form else None)

    server = plain(env={"TELLS_API_KEY": key, "PGPASSWORD": "postgres"})
    tools = McpToolset([server], sampling=Scripted(respond), resources=True)
    async with Toolbox([tools], autonomy="full", approver=approver) as box:
        await tools.ready()
        await box.call("plain__do", {"what": "sample"})
        result = await box.call("plain__do", {"what": "elicit"})
        assert result.text == "answered: True", "by the name that the server gave"
        listed = await box.call("mcp_list_resources", {"server": "plain"})
        assert "postgres://a" in listed.text
        resources, prompts = PassedOnResources(tools), PassedOnPrompts(tools)
        seen += [
            await resources.list(),
            await resources.read("postgres://a"),
            await prompts.get("plain__x", {}),
        ]
    assert key not in str(seen)
    assert len([one for one in seen if "(hidden: TELLS_API_KEY)" in str(one)]) == 4


async def test_a_password_that_is_a_word_takes_no_word_out_of_definitions() -> None:
    server = plain(env={"TOOL_NAME": "postgres_query", "PGPASSWORD": "postgres", "APP_PASSWORD": "object"})
    async with Toolbox([McpToolset([server])], autonomy="full") as box:
        result = await box.call("plain__postgres_query", {"what": "env"})
        [spec] = (await box.tool_list()).specs
    assert spec.name == "plain__postgres_query" and spec.input_schema["type"] == "object"
    assert '"PGPASSWORD": "(hidden: PGPASSWORD)"' in result.text  # what a call returns is masked all the same


@pytest.mark.promise("mcp-servers.md", "another server of the same name")
async def test_an_approval_is_of_no_other_server_of_the_same_name(tmp_path: Path) -> None:
    asked: list[Question] = []

    async def always(question: Question) -> Answer:
        asked.append(question)
        return Answer(Verdict.ALWAYS, scope=Scope.TOOL, lasting=Lasting.USER)

    approvals, counts = ApprovalStore(tmp_path / "approvals.json"), []
    for server in (
        plain(),
        plain(),
        plain(env={"OTHER": "yes"}),
        plain(cwd=str(tmp_path)),
        plain(timeout=5.0),
    ):
        async with Toolbox([McpToolset([server], pins=Pins())], approver=always, approvals=approvals) as box:
            await box.call("plain__do", {"what": "env"})
        counts.append(len(asked))
    assert counts == [1, 1, 2, 3, 3]


@pytest.mark.promise("mcp-servers.md", "Nothing that a local server started is left")
async def test_nothing_that_a_server_started_is_left_when_its_toolset_is() -> None:
    tools = McpToolset([plain()])
    async with Toolbox([tools], autonomy="full") as box:
        pids = json.loads((await box.call("plain__do", {"what": "children"})).text)
        assert [runs(pid) for pid in pids] == [True] * 3
        assert tools.servers()[0].pid == pids[0]
        started = time.monotonic()
    assert time.monotonic() - started < 5
    assert [runs(pid) for pid in pids] == [False] * 3


@pytest.mark.parametrize("waits", [0, 1, 3, 10])
async def test_nothing_is_left_of_a_server_whose_toolset_is_left_by_a_cancellation(waits: int) -> None:
    """It comes while the toolset is being left, which went on behind the back of whoever had left it."""
    tools, pids, leaving = McpToolset([plain()]), [], asyncio.Event()

    async def work() -> None:
        async with Toolbox([tools], autonomy="full") as box:
            pids.extend(json.loads((await box.call("plain__do", {"what": "children"})).text))
            leaving.set()

    working = asyncio.ensure_future(work())
    await leaving.wait()
    for _ in range(waits):
        await asyncio.sleep(0)
    working.cancel()
    with pytest.raises(asyncio.CancelledError):
        await working
    assert [runs(pid) for pid in pids] == [False] * 3


async def test_nothing_is_left_of_a_server_that_crashed() -> None:
    tools = McpToolset([plain()])
    async with Toolbox([tools], autonomy="full") as box:
        pids = json.loads((await box.call("plain__do", {"what": "children"})).text)
        lost = await box.call("plain__do", {"what": "exit"})
        assert lost.code is ErrorCode.OUTCOME_UNKNOWN
        [status] = tools.servers()
        assert status.state is ServerState.FAILED
        assert "exit code 7" in status.problem
        assert "its stderr ends with:\nready" in status.problem
        assert [runs(pid) for pid in pids] == [False] * 3
        again = json.loads((await box.call("plain__do", {"what": "children"})).text)
        assert again[0] != pids[0]
    assert [runs(pid) for pid in again] == [False] * 3


async def test_a_cancelled_program_leaves_no_server(tmp_path: Path) -> None:
    """The event loop ends while the toolset is entered, as with a person's Ctrl-C."""
    pids: list[int] = []
    tools = McpToolset([plain()])

    def main() -> None:
        async def work() -> None:
            box = Toolbox([tools], autonomy="full")
            await box.__aenter__()
            pids.extend(json.loads((await box.call("plain__do", {"what": "children"})).text))

        asyncio.run(work())

    await asyncio.to_thread(main)
    assert [runs(pid) for pid in pids] == [False] * 3


async def test_stray_lines_are_one_quiet_warning() -> None:
    tools = McpToolset([plain()])
    async with Toolbox([tools], autonomy="full") as box:
        for _ in range(3):
            assert (await box.call("plain__do", {"what": "chat"})).text == "chatted"
        [status] = tools.servers()
        assert status.state is ServerState.STARTED
        [warning] = status.warnings
        assert r"Listening on port 80\\x1b[2J" in warning


async def test_a_long_answer_is_read_and_one_that_is_too_long_costs_one_call(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    tools = McpToolset([plain()])
    async with Toolbox([tools], autonomy="full", max_output=MaxOutput(10_000_000)) as box:
        connection = await tools.server("plain").connected()
        answer = await connection.call_tool("do", {"what": "large", "size": 20_000_000})
        assert len(answer["content"][0]["text"]) == 20_000_000
        monkeypatch.setattr(stdio_module, "MAX_MESSAGE", 1_000_000)
        lost = await box.call("plain__do", {"what": "large", "size": 2_000_000})
        assert lost.code is ErrorCode.OUTCOME_UNKNOWN
        assert (await box.call("plain__do", {"what": "large", "size": 3})).text == "xxx"
        assert "more than" in tools.servers()[0].warnings[0]
