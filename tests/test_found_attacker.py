"""What hostile schemas, models and servers could make of arguments, and how it is prevented."""

from __future__ import annotations

import datetime
import http.server
import json
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from toolcrib import Agent, Effect, Toolbox, tool
from toolcrib.call import ToolCall
from toolcrib.models import Scripted


@pytest.fixture
def fetched() -> Iterator[tuple[str, list[str]]]:
    """A server on this machine: its address, and what was asked of it."""
    asked: list[str] = []

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            asked.append(self.path)
            self.send_response(200)
            self.send_header("content-length", "2")
            self.end_headers()
            self.wfile.write(b"{}")

        def log_message(self, format: str, *args: Any) -> None:
            return

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}", asked
    server.shutdown()


def one(schema: Any) -> dict[str, Any]:
    return {"type": "object", "properties": {"a": schema}}


def handled(schema: dict[str, Any], arguments: Any) -> Any:
    ran: list[Any] = []

    def handle(params: Any) -> str:
        ran.append(params)
        return "done"

    box = Toolbox([tool(handle, name="foreign", params=schema, effect=Effect.READ, secrets=())])
    return box.call_sync("foreign", arguments), ran


@pytest.mark.filterwarnings("ignore:tool 'foreign' was set aside")
def test_a_foreign_schema_fetches_nothing_from_the_network(fetched: tuple[str, list[str]]) -> None:
    address, asked = fetched
    for schema in (
        one({"$ref": f"{address}/schema"}),
        {"$schema": f"{address}/meta", **one({})},
        {"$id": f"{address}/id", **one({"$ref": "other"})},
        one({"$dynamicRef": f"{address}/dynamic"}),
    ):
        handled(schema, {"a": {}})
    assert asked == []


@pytest.mark.filterwarnings("ignore:tool 'foreign' was set aside")
def test_a_foreign_schema_reads_no_file_of_this_machine(tmp_path: Path) -> None:
    (tmp_path / "private.json").write_text('{"required": ["the_secret"]}')
    result, ran = handled(one({"$ref": f"file://{tmp_path}/private.json"}), {"a": {}})
    assert result.is_error
    assert "the_secret" not in result.text
    assert ran == []


def test_a_schema_of_an_unknown_kind_is_taken_as_the_newest() -> None:
    schema = {"$schema": "https://example.invalid/meta", **one({"type": "integer"})}
    assert not handled(schema, {"a": 1})[0].is_error
    assert handled(schema, {"a": "x"})[0].is_error


# --- types that read numbers into texts --------------------------------------------------------------


@pytest.mark.parametrize("kind", [datetime.datetime, datetime.date, datetime.datetime | None])
@pytest.mark.parametrize("text", ["2024", "20240101", "0", "+5", "-1", "1.5", " 7 ", "1700000000"])
def test_a_date_is_not_read_as_seconds_since_1970(kind: Any, text: str) -> None:
    ran: list[Any] = []

    def plan(when: Any) -> str:
        ran.append(when)
        return "done"

    plan.__annotations__["when"] = kind
    box = Toolbox([tool(plan, effect=Effect.WRITE, secrets=())], autonomy="full")
    result = box.call_sync("plan", {"when": text})
    assert result.code == "invalid_arguments"
    assert "when" in result.text
    assert ran == []
    good = "2024-01-01" if kind is datetime.date else "2024-01-01T10:00:00Z"
    assert not box.call_sync("plan", json.dumps({"when": good})).is_error


# --- answers that were cut off -----------------------------------------------------------------------


@pytest.mark.parametrize("stop", ["length", "filter", "refusal", "other", "pause"])
async def test_the_last_call_of_an_answer_that_was_broken_off_is_not_run(stop: Any) -> None:
    """A provider's filter may strike after the name and before the first argument: that is not "none"."""
    ran: list[str] = []

    def remove(path: str = ".") -> str:
        """Remove everything below a path."""
        ran.append(path)
        return "removed"

    turns: list[Any] = [
        {
            "calls": [ToolCall("remove", '{"path": "a"}', "1"), ToolCall("remove", "", "2")],
            "stop_reason": stop,
        },
        "Done.",
    ]
    agent = Agent(Scripted(turns), [tool(remove, effect=Effect.WRITE, secrets=())], autonomy="full")
    outcome = await agent.run("tidy up")
    assert ran == ["a"]
    assert [result.is_error for message in outcome.messages for result in message.results] == [False, True]
