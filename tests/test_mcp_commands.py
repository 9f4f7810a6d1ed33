"""`toolcrib mcp`, and the MCP servers in the other commands: of the user, of `--mcp`, and of a trusted project."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.cases import each
from tests.command_line import toolcrib
from toolcrib.cli.console import Problem
from toolcrib.cli.mcp_servers import ConfiguredServers, configured_servers
from toolcrib.cli.mcp_settings_text import with_server, without_server
from toolcrib.mcp import McpServer

SERVER = """
from mcp.server import MCPServer
server = MCPServer("greeter")

@server.tool()
def greet(name: str) -> str:
    "Greet somebody."
    return "hello " + name

server.run()
"""


class Place:
    """A project, and the settings and state of a user."""

    def __init__(self, folder: Path) -> None:
        self.project = folder / "project"
        self.project.mkdir()
        self.variables = {
            name: str(folder / name.lower()) for name in ("HOME", "XDG_CONFIG_HOME", "XDG_STATE_HOME")
        }

    @property
    def settings(self) -> Path:
        return Path(self.variables["XDG_CONFIG_HOME"]) / "toolcrib" / "toolcrib.toml"

    def run(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        return toolcrib(self.project, *arguments, **self.variables)

    def data(self, *arguments: str) -> Any:
        done = self.run(*arguments, "--json")
        assert done.stdout, done.stderr
        return json.loads(done.stdout)


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Place]:
    yield Place(tmp_path)


@pytest.mark.slow
def test_a_server_is_added_tested_called_and_removed(place: Place) -> None:
    (place.project / "server.py").write_text(SERVER)
    place.settings.parent.mkdir(parents=True)
    place.settings.write_text("# mine\n[tools]\npython = false  # never\n")
    before = place.settings.read_text()

    added = place.run("mcp", "add", "greeter", "--", sys.executable, "server.py")
    assert added.returncode == 0, added.stderr
    assert place.settings.read_text().startswith(before)
    assert place.run("mcp", "add", "greeter", "--", "x").returncode == 2

    # Nothing is started by a list, and a list says so.
    assert "not started yet" in place.run("mcp", "list").stdout
    assert "tools of greeter are not known yet" in place.run("tools", "list").stderr
    assert place.run("mcp", "tools", "greeter").returncode == 1

    (tested,) = place.data("mcp", "test")
    assert (tested["problem"], tested["tools"]) == ("", ["greet"])
    (listed,) = place.data("mcp", "list")
    assert (listed["state"], listed["tools"], listed["problem"]) == ("known", 1, "")
    assert [row["name"] for row in place.data("tools", "list") if row["from"] == "MCP server greeter"] == [
        "greeter__greet"
    ]
    assert [(row["effect"], row["effect_from"]) for row in place.data("mcp", "tools")] == [
        ("destructive", "")
    ]
    assert "set effects or trusted = true below [mcp.servers.greeter]" in place.run("mcp", "tools").stderr
    written = place.settings.read_text()
    place.settings.write_text(f'{written}effects = {{ "greet" = "write" }}\n')
    assert [(row["effect"], row["effect_from"]) for row in place.data("mcp", "tools")] == [
        ("write", "effects")
    ]
    assert place.run("mcp", "tools").stderr == ""
    place.settings.write_text(written)

    # A call asks; nobody is there to be asked. With autonomy full it runs, by either name.
    assert "needs approval" in place.run("mcp", "call", "greeter", "greet", "--name", "Ann").stderr
    for names in (("mcp", "call", "greeter", "greet"), ("tools", "call", "greeter__greet")):
        called = place.run(*names, "--name", "Ann", "--autonomy", "full")
        assert "hello Ann" in called.stdout, called.stderr
    unknown = place.run("mcp", "call", "greter", "greet")
    assert "did you mean greeter?" in unknown.stderr

    assert place.run("mcp", "remove", "greeter").returncode == 0
    assert place.settings.read_text() == before
    assert place.data("mcp", "list") == []


@pytest.mark.slow
def test_a_run_uses_the_servers_that_are_named_and_asks_for_what_changed(place: Place) -> None:
    (place.project / "server.py").write_text(SERVER)
    entry = {"command": sys.executable, "args": ["${workspaceFolder}/server.py"]}
    (place.project / "mcp.json").write_text(json.dumps({"mcpServers": {"greeter": entry}}))
    (place.project / "work.yaml").write_text(
        "- calls:\n    - {name: greeter__greet, arguments: {name: Ann}}\n- text: All done.\n"
    )
    command = ("run", "greet", "--model", "scripted:work.yaml", "--mcp", "mcp.json", "--autonomy", "full")
    first = place.run(*command, "--no-checkpoints")
    assert first.returncode == 0 and "hello Ann" in first.stdout, first.stdout + first.stderr
    long = r"\n".join(["Greet nobody.", *(f"Line {number}." for number in range(300))])
    (place.project / "server.py").write_text(SERVER.replace("Greet somebody.", long))
    place.run("mcp", "test", "--mcp", "mcp.json")
    assert "to read and approve 1 tool" in place.run("mcp", "list", "--mcp", "mcp.json").stdout
    second = place.run(*command, "--no-checkpoints")
    assert "hello Ann" not in second.stdout
    read = place.run("mcp", "approve", "greeter", "--yes", "--mcp", "mcp.json")
    assert "-  Greet somebody." in read.stdout and "+  Greet nobody." in read.stdout
    assert "Line 299." in read.stdout, "all is shown that is approved"
    assert "hello Ann" in place.run(*command, "--no-checkpoints").stdout


@pytest.mark.slow
def test_a_server_that_fails_is_named_with_its_reason_also_later(place: Place) -> None:
    place.variables["LEAKED_TOKEN"] = "hunter22"
    code = "import os, sys; sys.exit('no database here for ' + os.environ['T'])"
    place.run("mcp", "add", "broken", "--env", "T=${LEAKED_TOKEN}", "--", sys.executable, "-c", code)
    (place.project / "more.json").write_text(
        '{"mcpServers": {"var": {"command": "x", "env": {"A": "${NOT_SET}"}}}}'
    )
    tested = place.run("mcp", "test", "--mcp", "more.json")
    assert tested.returncode == 1
    assert "broken: FAILED" in tested.stdout and "no database here" in tested.stdout
    assert "the variable NOT_SET is not set" in tested.stdout
    stored = "".join(path.read_text() for path in Path(place.variables["XDG_STATE_HOME"]).rglob("*.failed"))
    assert "no database here" in stored and "hunter22" not in stored + tested.stdout
    assert "${LEAKED_TOKEN}" in stored
    for names in ((), ("broken",)):
        said = place.run("mcp", "tools", *names).stderr
        assert "broken: failed: " in said and "no database here" in said
    doctor = place.run("doctor")
    assert doctor.returncode == 1
    assert "! MCP server 'broken'" in doctor.stdout and "no database here" in doctor.stdout


@pytest.mark.promise("mcp-servers.md", "A project's servers count only while exactly their file is trusted.")
def test_a_projects_servers_count_only_while_their_file_is_trusted(place: Place) -> None:
    file = place.project / ".mcp.json"
    file.write_text(json.dumps({"mcpServers": {"evil": {"command": "touch", "args": ["started"]}}}))
    assert "nobody trusted it" in place.run("mcp", "list").stdout
    assert "no MCP servers are configured; to add one" in place.run("mcp", "test").stdout
    assert "no MCP servers are configured; to add one" in place.run("mcp", "tools").stdout
    assert "/.mcp.json is not used: nobody trusted it" in place.run("tools", "list").stderr

    trusted = place.run("trust", "--yes")
    assert "MCP server evil starts: touch started" in trusted.stdout
    assert "not started yet" in place.run("mcp", "list").stdout

    file.write_text(file.read_text().replace("started", "replaced"))
    assert "it changed since you trusted it" in place.run("mcp", "list").stdout
    assert place.run("mcp", "test", "evil").returncode == 2
    assert sorted(path.name for path in place.project.iterdir()) == [".mcp.json"]  # nothing was ever started


@pytest.mark.promise(
    "mcp-servers.md", "A project replaces no server of yours, and cannot call its own tools harmless"
)
def test_a_project_replaces_no_server_of_the_users_and_cannot_call_its_tools_harmless(place: Place) -> None:
    place.run("mcp", "add", "git", "--", "mine")
    folder = place.project / ".toolcrib"
    folder.mkdir()
    (folder / "toolcrib.toml").write_text(
        '[mcp.servers.git]\ncommand = "theirs"\n'
        '[mcp.servers.other]\ncommand = "theirs"\ntrusted = true\neffects = { drop = "read" }\n'
    )
    (place.project / ".vscode").mkdir()
    (place.project / ".vscode" / "mcp.json").write_text(
        '{"servers": {"other": {"command": "third"}, "new": {"url": "http://x"}}}'
    )
    place.run("trust", "--yes")
    rows = {(row["name"], row["source"]): row for row in place.data("mcp", "list")}
    used = {name: row for (name, _), row in rows.items() if row["state"] != "unused"}
    assert {name: row.get("command", row.get("url")) for name, row in used.items()} == {
        "git": ["mine"],
        "other": ["theirs"],
        "new": "http://x",
    }
    assert "trusted" not in used["other"] and "effects" not in used["other"]
    assert "has a server of that name" in rows["git", f"{folder}/toolcrib.toml"]["why_unused"]
    shown = {row["key"]: row["value"] for row in place.data("config", "show")}
    assert (shown["mcp.servers.git"], shown["mcp.servers.other"]) == ("mine", "theirs")

    place.settings.write_text(place.settings.read_text() + "\n[mcp]\nproject_files = false\n")
    assert "new" not in [row["name"] for row in place.data("mcp", "list")]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("{", "note: .mcp.json of this folder is not used: .mcp.json: not JSON"),
        ("", "note: .mcp.json of this folder is not used: .mcp.json: not JSON"),
        ('{"mcpServers": {"a": {"comand": "x"}}}', "did you mean command?"),
    ],
)
def test_a_wrong_file_of_a_project_is_told_before_anybody_trusts_it(
    place: Place, text: str, words: str
) -> None:
    (place.project / ".mcp.json").write_text(text)
    assert words in place.run("mcp", "list").stderr


@pytest.mark.promise("mcp-servers.md", "A list starts nothing")
def test_a_list_of_tools_imports_no_sdk(place: Place) -> None:
    """The SDK takes most of a second to import."""
    code = (
        "import sys; from toolcrib.cli import main\n"
        "for words in ('mcp list', 'tools list', 'mcp tools'): main(words.split())\n"
        "sys.exit('mcp' in sys.modules)"
    )
    place.run("mcp", "add", "one", "--", "never-started")
    place.run("mcp", "add", "two", "https://example.com/mcp")
    environment = {**os.environ, **place.variables}
    command = [sys.executable, "-c", code]
    done = subprocess.run(
        command, cwd=place.project, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert "one  never-started" in done.stdout


@each(
    "arguments, words",
    [
        (["bad name\x1b", "--env", "TOKEN", "--", "x"], "--env: expected NAME=VALUE"),
        (["a", "https://x", "--env", "A=1"], "--env is for local servers"),
        (["a", "--header", "A: 1", "--", "x"], "--header is for remote servers"),
        (["a", "ftp://x"], "url must begin with http"),
        (["a", "https://x", "y"], "expected a URL, or -- and a command"),
    ],
)
def test_what_cannot_be_added_is_refused(tmp_path: Path, arguments: list[str], words: str) -> None:
    home = {name: str(tmp_path / name) for name in ("HOME", "XDG_CONFIG_HOME")}
    done = toolcrib(tmp_path, "mcp", "add", *arguments, **home)
    assert (done.returncode, words in done.stderr) == (2, True), done.stderr
    assert not (tmp_path / "XDG_CONFIG_HOME").exists()


@pytest.mark.promise("mcp-servers.md", "A credential that is written out is not shown.")
def test_a_credential_is_not_repeated_and_its_place_is_told(place: Place) -> None:
    done = place.run("mcp", "add", "api", "https://example.com/mcp", "-H", "Authorization: Bearer hunter2")
    assert "hunter2" not in done.stdout + done.stderr
    assert "<secret_ref:AUTHORIZATION>" in done.stderr
    for command in (("mcp", "list"), ("mcp", "list", "--json"), ("config", "show"), ("doctor",)):
        assert "hunter2" not in place.run(*command).stdout
    assert place.settings.stat().st_mode & 0o077 == 0


def test_a_link_in_a_project_is_not_written_through(place: Place) -> None:
    target = place.project.parent / "elsewhere"
    target.write_text("")
    (place.project / ".toolcrib").mkdir()
    (place.project / ".toolcrib" / "toolcrib.toml").symlink_to(target)
    assert place.run("mcp", "add", "x", "--project", "--", "x").returncode == 2
    assert target.read_text() == ""


@each(
    "text",
    [
        "",
        "# a\n[tools]\npython = false\n",
        '[mcp.servers."x y"]\ncommand = "a"\n',
        '[mcp.servers.a]\ncommand = "a"\n\n[mcp.servers.a.env]\nX = "1"\n\n[tools]\nshell = true\n',
    ],
)
@each("name", ["git", "a b", 'q"uote', "ünï"])
def test_a_server_is_written_and_removed_and_the_rest_stays(text: str, name: str) -> None:
    entry = {"command": ["run", 'a"b\\c', "\x7f\n"], "env": {"A B": "1"}}
    made = with_server(text, name, entry)
    assert made.startswith(text.rstrip("\n"))
    assert without_server(made, name) == text


@each("text", ['[mcp]\nservers = { git = { command = "x" } }\n', '[mcp.servers]\ngit = { command = "x" }\n'])
def test_a_server_that_has_no_table_of_its_own_is_not_removed(text: str) -> None:
    with pytest.raises(Problem, match="by hand"):
        without_server(text, "git")


@pytest.mark.slow
@pytest.mark.promise("mcp-servers.md", "A run does not change a file that a server's command line names")
def test_a_run_does_not_change_the_program_of_a_server(place: Place) -> None:
    """The program runs outside of the sandbox: who changes it, leaves the sandbox."""
    (place.project / "server.py").write_text(SERVER)
    (place.project / "other.py").write_text("")
    place.run(
        "mcp", "add", "greeter", "--", sys.executable, "server.py", "--config=${workspaceFolder}/other.py"
    )
    (place.project / "work.yaml").write_text(
        "- calls:\n"
        "    - {name: write_file, arguments: {path: server.py, content: bad}}\n"
        "    - {name: delete_file, arguments: {path: other.py}}\n"
        "    - {name: write_file, arguments: {path: free.py, content: good}}\n"
        "    - {name: shell, arguments: {command: 'echo bad > server.py; echo good > free.txt'}}\n"
        "- text: All done.\n"
    )
    done = place.run("run", "x", "--model", "scripted:work.yaml", "--autonomy", "full", "--no-checkpoints")
    assert done.returncode == 0, done.stderr
    if "bubblewrap" in done.stderr:  # without a sandbox, or in another one, a command can change it
        assert (place.project / "server.py").read_text() == SERVER
        assert (place.project / "free.txt").read_text() == "good\n"
    assert (place.project / "server.py").read_text() != "bad"
    assert (place.project / "other.py").exists()
    assert (place.project / "free.py").read_text() == "good"


@pytest.mark.promise("mcp-servers.md", "Names that begin alike are one name")
@each("name", ["git", "git_", "g.it", "git__", " git", "it-is-a-name-of-24-signs-and-more"])
def test_names_whose_tools_would_begin_alike_are_one_name(name: str) -> None:
    """A rule about `git__*` must not come to mean a project's server."""
    found = ConfiguredServers()
    found.add(McpServer(own, command=["own"]) for own in ("git", "g_it", "it-is-a-name-of-24-signs-"))
    found.add([McpServer(name, command=["theirs"], source="the project")])
    assert [server.command for server in found.servers] == [("own",)] * 3
    assert [server.name for server, _ in found.unused] == [name]


def test_the_file_that_is_named_counts_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    (tmp_path / "toolcrib").mkdir()
    (tmp_path / "toolcrib" / "toolcrib.toml").write_text('[mcp.servers.a]\ncommand = "own"\n')
    named = tmp_path / "named.json"
    named.write_text('{"mcpServers": {"a": {"command": "named"}, "bad": {}}}')
    found = configured_servers(tmp_path, [named])
    assert [server.command for server in found.servers] == [("named",)]
    assert len(found.unused) == len(found.notes) == 1
