"""The operator's hold on the sandbox: options, what is said at the start, a refusal at a terminal."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from tests.command_line import toolcrib
from tests.sandbox_runs import backend
from tests.test_cli_terminal import PROMPT, Pty
from toolcrib import Effect, Toolbox
from toolcrib.assembly import assemble, default_tools
from toolcrib.command.sandbox import ExternalSandbox, Landlock, Level, NoSandbox, choose, warnings
from toolcrib.errors import ErrorCode
from toolcrib.tools import Shell, Workspace, WriteFile, workspace_tools
from toolcrib.tools.backends import Write
from toolcrib.toolset import ToolFactory

READS = """
- text: I read it.
  calls:
    - {name: shell, arguments: {command: "cat %s/notes"}}
- text: And once more.
  calls:
    - {name: shell, arguments: {command: "wc -c %s/notes"}}
- text: Done.
"""
WRITERS = {"write_file", "edit_file"}


@pytest.fixture
def ws(tmp_path: Path) -> Path:
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "notes").write_text("what stands outside\n")
    made = tmp_path / "ws"
    made.mkdir()
    (made / "says.yaml").write_text("- Done.\n")
    (made / "reads.yaml").write_text(READS.replace("%s", str(tmp_path / "outside")))
    return made


# -- words of the command line


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--sandbox", "off"], "'off' is not one of"),
        (["--network", "some"], "'some' is not one of"),
        (["--allow-host", "http://a.example"], "expected a name such as example.org"),
        (["--allow-host", "a.example", "--network", "off"], "contradicts it"),
        (["--sandbox", "danger_no_sandbox", "--network", "off"], "give it alone"),
        (["--sandbox", "danger_no_sandbox", "--outer-sandbox", "a container"], "give it alone"),
    ],
)
def test_words_that_are_none_or_do_not_go_together(ws: Path, options: list[str], said: str) -> None:
    done = toolcrib(ws, "run", "x", "-m", "scripted:says.yaml", *options, COLUMNS="200")
    assert done.returncode == 2 and said in done.stderr


def test_after_the_tools_name_they_mean_the_same(ws: Path) -> None:
    done = toolcrib(ws, "tools", "call", "shell", "--sandbox", "off", "--command", "true")
    assert done.returncode == 2
    assert "--sandbox: expected read_only or workspace_write or danger_no_sandbox; got off" in done.stderr
    done = toolcrib(ws, "tools", "call", "shell", "--network", "some", "--command", "true")
    assert done.returncode == 2 and "--network: expected off or on; got some" in done.stderr


@pytest.mark.parametrize("where", ["before", "after"])
def test_a_read_only_command_changes_nothing(ws: Path, where: str) -> None:
    backend("landlock")
    options = ["--sandbox", "read_only", "--autonomy", "full"]
    call = ["shell", "--command", "touch made"]
    words = [*options, *call] if where == "before" else [*call, *options]
    done = toolcrib(ws, "tools", "call", *words)
    assert not (ws / "made").exists() and "The sandbox does not allow writing to" in done.stdout


def test_a_host_can_be_named_in_a_call(ws: Path) -> None:
    backend("bubblewrap")
    command = ["shell", "--command", 'echo "proxy: $https_proxy"', "--autonomy", "full"]
    done = toolcrib(ws, "tools", "call", *command, "--allow-host", "a.example")
    assert "proxy: http://127.0.0.1" in done.stdout
    assert "proxy: http" not in toolcrib(ws, "tools", "call", *command).stdout


# -- what is said at the start


@pytest.mark.promise("sandbox.md", "When a run begins, it says what is weak, missing or switched off")
@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--sandbox", "danger_no_sandbox"], "NOTHING limits commands, as was asked for"),
        (["--network", "on"], "the network is on: commands may speak to everybody"),
        (["--outer-sandbox", "a container"], "declared by the operator and not checked: a container"),
    ],
)
def test_what_is_off_or_only_declared_is_said_loudly(ws: Path, options: list[str], said: str) -> None:
    done = toolcrib(ws, "run", "x", "-m", "scripted:says.yaml", *options)
    assert done.returncode == 0 and said in done.stderr and said not in done.stdout
    lines = toolcrib(ws, "run", "x", "-m", "scripted:says.yaml", "--json", *options).stdout.splitlines()
    events = [json.loads(line) for line in lines]
    notices = [event["message"] for event in events if event["kind"] == "notice"]
    assert any(said in message for message in notices)
    (run,) = {event["run"] for event in events}
    assert run and [event["seq"] for event in events] == list(range(len(events)))


def test_where_all_holds_it_is_said_in_a_word(ws: Path) -> None:
    backend("bubblewrap")
    (line,) = toolcrib(ws, "run", "x", "-m", "scripted:says.yaml").stderr.splitlines()
    assert "; sandbox: bubblewrap, workspace_write, network off; " in line


@pytest.mark.promise("sandbox.md", "When a run begins, it says what is weak, missing or switched off")
@pytest.mark.promise(
    "security.md",
    "Commands are confined by the kernel where a sandbox works, and toolcrib says where none does.",
)
def test_a_sandbox_that_is_weak_or_missing_says_so(ws: Path) -> None:
    backend("landlock")
    (weak,) = warnings(Landlock(ws))
    assert weak.startswith("landlock keeps only in part: ") and "writes" in weak
    none = choose(ws, order=())
    assert "each of them is asked about" in warnings(none)[0]
    assert warnings(ExternalSandbox("a container")) == [ExternalSandbox("a container").report().gaps[0]]
    assert "as was asked for" in warnings(NoSandbox())[0]


# -- a refusal, at a terminal


@pytest.mark.promise("sandbox.md", "The message for a person names the option that allows it in every run")
def test_the_person_is_offered_what_the_sandbox_refused(ws: Path) -> None:
    backend("bubblewrap")
    run = Pty(ws, "run", "x", "-m", "scripted:reads.yaml", "--autonomy", "supervised", columns=200)
    assert "run shell" in run.until(PROMPT)
    run.send("y\n")
    question = run.until(PROMPT)
    assert f"? let commands read {ws.parent}/outside/notes" in question
    assert "only a person may allow it" in question and "would be run again from its start" in question
    run.send("a\n")
    between = run.until(PROMPT)  # the second command is asked about, and its permission is not
    assert "what stands outside" in between and "? run shell" in between
    run.send("y\n")
    end = run.until("Done.")
    assert "20 " in end and "let commands" not in end
    assert run.end() == 0


# -- the level in force, and the tools


@pytest.mark.promise(
    "sandbox.md", "commands change nothing, and the tools that write files are neither offered nor run"
)
def test_a_read_only_level_hides_the_tools_that_write_and_runs_none_of_them(ws: Path) -> None:
    box = Toolbox(builtin=default_tools(ws, level=Level.of("read_only")), autonomy="full")
    names = {spec.name for spec in box.run_sync(box.tool_list()).specs}
    assert names.isdisjoint(WRITERS) and {"shell", "read_file"} <= names
    result = box.call_sync("write_file", {"path": "made", "content": "x"})
    assert result.code is ErrorCode.DENIED and "may only be read now" in result.text
    assert not (ws / "made").exists()


@pytest.mark.promise(
    "sandbox.md", "Calls follow it from the next call on, and the list of tools from the next turn on"
)
def test_the_tools_follow_the_level_from_turn_to_turn(ws: Path) -> None:
    workspace = Workspace(ws)
    box = Toolbox(workspace_tools(workspace), autonomy="full")
    specs = []
    for files in ("workspace_write", "read_only", "workspace_write"):
        workspace.level = Level.of(files)
        tool_list = box.run_sync(box.tool_list())
        specs.append(list(tool_list.specs))
        assert WRITERS.issubset(tool_list.entries) is (files != "read_only")
        box.call_sync("shell", {"command": f"touch by-a-command-in-{len(specs)}"})
        box.call_sync("write_file", {"path": f"by-a-tool-in-{len(specs)}", "content": ""})
    assert specs[0] == specs[2]
    made = sorted(path.name for path in ws.iterdir() if path.name.startswith("by-"))
    assert made == [f"by-a-{who}-in-{turn}" for who in ("command", "tool") for turn in (1, 3)]


@pytest.mark.promise(
    "sandbox.md", "Calls follow it from the next call on, and the list of tools from the next turn on"
)
def test_a_call_that_was_prepared_before_the_level_fell_does_not_write(ws: Path) -> None:
    workspace = Workspace(ws)
    workspace.level = Level.of("read_only")
    with pytest.raises(Exception, match="can only be read"):
        workspace.apply([Write("made", b"x")])


def test_a_class_and_a_factory_are_hidden_alike(ws: Path) -> None:
    class Later(WriteFile, name="later", effect=Effect.WRITE, secrets=()):
        """Write later."""

        def __init__(self) -> None:
            super().__init__(Workspace(ws, level=Level.of("read_only")))

    read_only = Workspace(ws, level=Level.of("read_only"))
    factory = ToolFactory("made", lambda ctx: WriteFile(read_only))
    box = Toolbox([Later, factory], autonomy="full")
    assert box.run_sync(box.tool_list()).entries == {}
    for name in ("later", "made"):
        assert box.call_sync(name, {"path": "a", "content": ""}).code is ErrorCode.DENIED


def test_there_is_one_way_to_say_it(ws: Path) -> None:
    sandbox = choose(ws, Level.of("read_only"))
    with pytest.raises(ValueError, match="not both"):
        workspace_tools(Workspace(ws), sandbox=sandbox, level=Level())
    workspace = Workspace(ws)
    made = workspace_tools(workspace, sandbox=sandbox)
    (shell,) = (tool for tool in made if isinstance(tool, Shell))
    assert shell.sandbox is sandbox and workspace.level == sandbox.level
    assembly = assemble(default_tools(ws, level=Level.of("read_only")))
    box = assembly.toolbox(autonomy="full")
    assert WRITERS.isdisjoint(box.run_sync(box.tool_list()).entries)


def test_a_level_that_no_sandbox_can_keep_is_said(ws: Path) -> None:
    made = backend("landlock")(ws)
    workspace = Workspace(ws, level=Level.of("workspace_write", "allowlist", ["a.example"]))
    box = Toolbox([Shell(workspace, sandbox=made)], autonomy="full")
    assert "landlock cannot keep to an allowlist" in box.call_sync("shell", {"command": "echo x > y"}).text
    assert sys.platform == "linux" and not (ws / "y").exists()
