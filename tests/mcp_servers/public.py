"""Public MCP servers that people use, from npm and PyPI: how each is started, and a call that needs no network.

They run without any network where the system has bubblewrap, so that none of them can reach anybody; elsewhere only
those that have nothing to reach.
"""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Container, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.mcp_servers import installs
from toolcrib.mcp import McpServer


@dataclass(frozen=True, slots=True)
class Public:
    """A server: its package or command, arguments in which `{home}` is a folder of its own, and a call.

    `call` is the name of a tool, its arguments, and words that the result has; None where all its tools need a network
    or an account. `tools` is the least number of tools that it lists.
    """

    program: str
    arguments: tuple[str, ...] = ()
    env: Mapping[str, str] = field(default_factory=dict)
    tools: int = 1
    call: tuple[str, dict[str, Any], str] | None = None
    online: bool = False


NPM = {
    "everything": Public(
        "@modelcontextprotocol/server-everything",
        ("stdio",),
        tools=8,
        call=("echo", {"message": "hello there"}, "hello there"),
    ),
    "filesystem": Public(
        "@modelcontextprotocol/server-filesystem",
        ("{home}",),
        tools=11,
        call=("read_text_file", {"path": "{home}/note.txt"}, "a note"),
    ),
    "memory": Public(
        "@modelcontextprotocol/server-memory",
        env={"MEMORY_FILE_PATH": "{home}/memory.json"},
        tools=9,
        call=(
            "create_entities",
            {"entities": [{"name": "crib", "entityType": "room", "observations": ["has tools"]}]},
            "has tools",
        ),
    ),
    "sequential-thinking": Public(
        "@modelcontextprotocol/server-sequential-thinking",
        call=(
            "sequentialthinking",
            {"thought": "First.", "nextThoughtNeeded": False, "thoughtNumber": 1, "totalThoughts": 1},
            "thoughtNumber",
        ),
    ),
    "github": Public(
        "@modelcontextprotocol/server-github",
        env={"GITHUB_PERSONAL_ACCESS_TOKEN": "none"},
        tools=20,
        online=True,
    ),
    "gitlab": Public(
        "@modelcontextprotocol/server-gitlab",
        env={"GITLAB_PERSONAL_ACCESS_TOKEN": "none"},
        tools=9,
        online=True,
    ),
    "brave-search": Public(
        "@modelcontextprotocol/server-brave-search", env={"BRAVE_API_KEY": "none"}, tools=2, online=True
    ),
    "notion": Public("@notionhq/notion-mcp-server", env={"NOTION_TOKEN": "ntn_none"}, tools=15, online=True),
    "playwright": Public("@playwright/mcp", ("--headless",), tools=15, online=True),
    "context7": Public("@upstash/context7-mcp", tools=2, online=True),
    "tavily": Public("tavily-mcp", env={"TAVILY_API_KEY": "none"}, tools=3, online=True),
    "eslint": Public("@eslint/mcp", online=True),
}
PYTHON = {
    "git": Public(
        "python-mcp2/mcp-server-git",
        tools=10,
        call=("git_status", {"repo_path": "{home}"}, "note.txt"),
    ),
    "time": Public(
        "python-mcp2/mcp-server-time",
        ("--local-timezone", "UTC"),
        tools=2,
        call=(
            "convert_time",
            {"source_timezone": "UTC", "time": "12:00", "target_timezone": "Asia/Tokyo"},
            "21:00",
        ),
    ),
    "fetch": Public("python-mcp2/mcp-server-fetch", online=True),
    "excel": Public(
        "python-mcp2/excel-mcp-server",
        ("stdio",),
        tools=20,
        call=("create_workbook", {"path": "{home}/book.xlsx"}, "book.xlsx"),
    ),
    "word": Public(
        "python-mcp2/word_mcp_server",
        tools=20,
        call=("create_document", {"filename": "{home}/letter.docx"}, "letter.docx"),
    ),
    "aws-docs": Public("python-mcp2/awslabs.aws-documentation-mcp-server", tools=3, online=True),
    "duckduckgo": Public("python-mcp2/duckduckgo-mcp-server", tools=2, online=True),
    "calculator": Public(
        "python-mcp1/mcp-server-calculator", call=("calculate", {"expression": "6 * 7"}, "42")
    ),
    "shell": Public(
        "python-mcp1/mcp-shell-server",
        env={"ALLOW_COMMANDS": "ls"},
        call=("shell_execute", {"command": ["ls"], "directory": "{home}"}, "note.txt"),
    ),
    "redis": Public("python-mcp1/redis-mcp-server", tools=30, online=True),
}
# Written for the SDK's first release, and installed with its second, as its requirements allow: they do not start.
BROKEN = {
    "cli": Public("python-mcp2/cli-mcp-server", env={"ALLOWED_DIR": "{home}"}),
    "sqlite": Public("python-mcp2/mcp-server-sqlite", ("--db-path", "{home}/db.sqlite")),
}
PUBLIC = NPM | PYTHON | BROKEN
# Those that are tried with every change: all that can do something offline, and two that cannot.
ALWAYS = {name for name, public in PUBLIC.items() if not public.online} | {"github", "notion"}


def servers(folder: Path, names: Container[str] = PUBLIC) -> list[McpServer]:
    """The configurations of those public servers that can run here, each with a folder of its own below `folder`."""
    bubblewrap = shutil.which("bwrap")
    fenced = ["bwrap", "--dev-bind", "/", "/", "--unshare-net", "--die-with-parent", "--"]
    if not bubblewrap or subprocess.run([*fenced, "true"], capture_output=True, check=False).returncode:
        fenced = []
    found = []
    for name, public in PUBLIC.items():
        if name not in names or (public.online and not fenced):
            continue
        home = folder / name
        home.mkdir(parents=True)
        (home / "note.txt").write_text("a note", "utf-8")
        if name == "git":
            subprocess.run(["git", "init", "-q", str(home)], check=True)
        own = (*program(name, public), *filled(public.arguments, home))
        env = {"HOME": str(home), "DO_NOT_TRACK": "1", **filled(public.env, home)}
        found.append(
            McpServer(
                name=name,
                command=(*fenced, *own),
                env=env,
                cwd=str(home),
                start_timeout=120.0,
                timeout=60.0,
            )
        )
    return found


def filled(value: Any, home: Path) -> Any:
    """Arguments, at any depth, with the server's own folder in them."""
    if isinstance(value, str):
        return value.replace("{home}", str(home))
    if isinstance(value, Mapping):
        return {key: filled(item, home) for key, item in value.items()}
    return type(value)(filled(item, home) for item in value) if isinstance(value, list | tuple) else value


def program(name: str, public: Public) -> tuple[str, ...]:
    """The command of a server, without its arguments."""
    if name in NPM:
        package = installs.node_modules() / public.program
        entry = json.loads((package / "package.json").read_text("utf-8"))["bin"]
        script = entry if isinstance(entry, str) else next(iter(entry.values()))
        return str(installs.node()), str(package / script)
    folder, command = public.program.split("/")
    return (str(installs.python_folder(folder) / command),)
