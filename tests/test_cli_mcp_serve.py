"""`toolcrib mcp serve`: what is said of wrong options, and a client that starts it as its own."""

from __future__ import annotations

import errno
import json
import os
import socket
from pathlib import Path
from typing import Any

import pytest

from tests.cases import each
from tests.command_line import toolcrib

TOOLS = """
print("importing prints")
import os, subprocess, sys
from toolcrib import Effect, tool

@tool(effect=Effect.READ, secrets=())
def add(a: int, b: int) -> int:
    "Add two numbers."
    print("a tool prints")
    sys.__stdout__.write("past sys.stdout\\n")
    os.write(1, b"past everything\\n")
    subprocess.run(["echo", "a child prints"])
    return a + b

@tool(effect=Effect.WRITE, secrets=())
def save(text: str) -> str:
    "Save a text."
    return f"saved {text}"
"""
ITSELF = {"mcpServers": {"own": {"command": "/opt/bin/toolcrib", "args": ["mcp", "serve"]}}}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "my_tools.py").write_text(TOOLS)
    (tmp_path / "itself.json").write_text(json.dumps(ITSELF))
    return tmp_path


WRONG: list[tuple[list[str], str]] = [
    (["--http", "abc"], "expected a port, or HOST:PORT; got abc"),
    (["--http", "0.0.0.0:0"], "clients must prove who they are"),
    (["--http", "0", "--token-env", "SHORT"], "at least 16 characters, got 5"),
    (["--token-env", "SHORT"], "--token-env: only with --http"),
    (["--http", "0", "--oauth-issuer", "https://a.example"], "--oauth-resource go together"),
    (
        ["--http", "0", "--oauth-issuer", "http://a.example", "--oauth-resource", "https://b.example"],
        "expected an https address",
    ),
    (["sav"], "did you mean save?"),
    (["--mcp", "itself.json"], "would start without end"),
]


@pytest.mark.slow
def test_a_port_that_is_taken_is_named_once(folder: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        done = toolcrib(folder, "mcp", "serve", "--from", "my_tools", "--http", str(port))
    assert done.returncode == 2
    assert done.stderr.splitlines()[-1] == (
        f"toolcrib: --http: 127.0.0.1:{port} cannot be used: {os.strerror(errno.EADDRINUSE)}"
    )


@pytest.mark.slow
@each(("options", "words"), WRONG)
def test_wrong_options_are_named(options: list[str], words: str, folder: Path) -> None:
    done = toolcrib(folder, "mcp", "serve", "--from", "my_tools", *options, SHORT="short")
    assert (done.returncode, done.stdout) == (2, ""), done.stderr
    assert words in done.stderr


def test_built_in_tools_do_not_work_in_a_folder_that_nobody_chose(tmp_path: Path) -> None:
    done = toolcrib(tmp_path, "mcp", "serve", HOME=str(tmp_path))
    assert done.returncode == 2 and "name a folder with --workspace" in done.stderr


def session(folder: Path, *options: str, calls: dict[str, dict[str, Any]]) -> list[dict[str, Any]]:
    """What a client is answered that lists the tools and calls some, and leaves."""
    opening = {
        "protocolVersion": "2025-11-25",
        "capabilities": {},
        "clientInfo": {"name": "t", "version": "1"},
    }
    messages: list[dict[str, Any]] = [
        {"id": 0, "method": "initialize", "params": opening},
        {"method": "notifications/initialized"},
        {"id": 1, "method": "tools/list"},
    ]
    for number, (name, arguments) in enumerate(calls.items(), 2):
        params = {"name": name, "arguments": arguments}
        messages.append({"id": number, "method": "tools/call", "params": params})
    stdin = "".join(json.dumps({"jsonrpc": "2.0", **message}) + "\n" for message in messages)
    done = toolcrib(folder, "mcp", "serve", "--from", "my_tools", *options, stdin=stdin)
    assert done.returncode == 0, done.stderr
    answers = sorted(map(json.loads, done.stdout.splitlines()), key=lambda answer: answer["id"])
    if any(answer["result"].get("structuredContent") for answer in answers):  # the tool that prints has run
        printed = (
            "importing prints",
            "a tool prints",
            "past sys.stdout",
            "past everything",
            "a child prints",
        )
        assert [words for words in printed if words not in done.stderr] == []
    return [answer["result"] for answer in answers]


def test_a_client_starts_it_and_reads_nothing_but_the_protocol(folder: Path) -> None:
    calls = {"add": {"a": 1, "b": "2"}, "save": {"text": "x"}}
    opened, listed, added, saved = session(folder, calls=calls)
    assert opened["serverInfo"]["name"] == "toolcrib"
    assert [one["name"] for one in listed["tools"]] == ["add", "save"]
    assert added["content"][0]["text"] == "3"
    assert saved["isError"] and "it has no elicitation" in saved["content"][-1]["text"]


def test_what_is_named_is_served_under_the_persons_rules(folder: Path) -> None:
    (folder / "rules.toml").write_text('[[rule]]\nname = "ok"\nallow = true\ntool = "save"\n')
    calls = {"save": {"text": "x"}, "add": {"a": 1, "b": 2}}
    named = ["sav*", "--name", "mine", "--policy", "rules.toml"]
    opened, listed, saved, added = session(folder, *named, calls=calls)
    assert opened["serverInfo"]["name"] == "mine"
    assert [one["name"] for one in listed["tools"]] == ["save"]
    assert saved["content"][0]["text"] == "saved x" and added["isError"]
