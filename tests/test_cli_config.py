"""`toolcrib.toml`: its switches and modes, its mistakes, and a project's file that counts once it is trusted."""

from __future__ import annotations

import json
import os
import re
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.cases import each
from tests.command_line import toolcrib
from toolcrib.assembly import all_tools
from toolcrib.settings import CATALOGUE, SettingsError, read_settings
from toolcrib.tool import Tool
from toolcrib.toolset import name_of


class Home:
    """A user with settings of their own, and a project."""

    def __init__(self, folder: Path) -> None:
        self.project = folder / "project"
        self.config, self.state = folder / "config", folder / "state"
        self.users = self.config / "toolcrib" / "toolcrib.toml"
        self.projects = self.project / ".toolcrib" / "toolcrib.toml"
        for path in (self.users, self.projects):
            path.parent.mkdir(parents=True)

    def run(self, *arguments: str, stdin: str = "") -> subprocess.CompletedProcess[str]:
        places = {"XDG_CONFIG_HOME": str(self.config), "XDG_STATE_HOME": str(self.state)}
        return toolcrib(self.project, *arguments, stdin=stdin, **places)

    def tools(self) -> set[str]:
        done = self.run("tools", "list", "--json")
        assert done.returncode == 0, done.stderr
        return {tool["name"] for tool in json.loads(done.stdout)}

    def shown(self, key: str) -> tuple[Any, str]:
        rows = json.loads(self.run("config", "show", "--json").stdout)
        return next((row["value"], row["from"]) for row in rows if row["key"] == key)


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home(tmp_path)


def test_switches_of_tools_and_groups(home: Home) -> None:
    assert {"shell", "python", "grep", "memory_store", "todo_write", "ask_user"} <= home.tools()
    home.users.write_text(
        "[groups]\ncommands = false\nmemory = false\n\n[tools]\npython = true\ngrep = false\n"
    )
    found = home.tools()
    assert found.isdisjoint({"shell", "process", "grep", "memory_store"})
    assert {"python", "glob", "read_file"} <= found
    assert home.shown("tools.shell") == (False, f"{home.users}, line 2")
    assert home.shown("tools.python") == (True, f"{home.users}, line 6")
    assert home.shown("tools.glob") == (True, "default")
    called = home.run("tools", "call", "shell", '{"command": "true"}')
    assert called.returncode == 2 and "there is no tool 'shell' here: shell = true" in called.stderr


MISTAKES = [
    ("[tools]\nshel = false", 2, "unknown key 'shel' in [tools]; did you mean shell?"),
    ("[shel]\nkind = 'sh'", 1, "unknown key 'shel'; did you mean shell?"),
    ("\n[groups]\n\nweb = 'no'", 4, "groups.web must be true or false; got 'no'"),
    ("tools.shell = 1", 1, "tools.shell must be true or false; got 1"),
    ("tools = false", 1, "tools must be a table of settings; got false"),
    ("[shell]\nkind = 'fish'", 2, "shell.kind must be 'bash', 'sh', 'zsh' or 'pwsh'; got 'fish'"),
    ("[plugins]\noff = 'x'", 2, "plugins.off must be a list of texts; got 'x'"),
    ("[edits]\nfuzzy = true", 2, "unknown key 'fuzzy' in [edits]; known are patches, broken_syntax"),
    ("# tools.shel\n'tools'.\"shell\" = 'a'", 2, "tools.shell must be true or false; got 'a'"),
    ("[shell]\nkind = 'bash'\n[tools]\nkind = true", 4, "unknown key 'kind' in [tools]"),
]


@each("text, line, words", MISTAKES)
def test_mistakes_are_named_with_their_line(text: str, line: int, words: str) -> None:
    with pytest.raises(SettingsError) as caught:
        read_settings(text)
    assert str(caught.value).startswith(f"toolcrib.toml, line {line}: {words}")


def test_variables_of_the_user_reach_commands_and_a_project_names_none(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MINE_NAME", "n")
    monkeypatch.setenv("MINE_KEY", "k")
    monkeypatch.setenv("THEIRS", "t")
    home.users.write_text("[shell]\npassthrough = ['MINE_*']\n")
    home.projects.write_text("[shell]\npassthrough = ['THEIRS']\n")
    assert home.run("trust", "--yes").returncode == 0
    assert home.shown("shell.passthrough") == (["MINE_*"], f"{home.users}, line 2")
    echo = json.dumps({"command": "echo [$MINE_NAME][$MINE_KEY][$THEIRS]"})
    assert home.run("tools", "call", "shell", echo, "--autonomy", "full").stdout == "[n][][]\n"
    code = json.dumps(
        {"code": "import os; [os.getenv(name) for name in ('MINE_NAME', 'MINE_KEY', 'THEIRS')]"}
    )
    done = home.run("tools", "call", "python", code, "--autonomy", "full")
    assert "['n', None, None]" in done.stdout


def test_all_mistakes_are_named_at_once_and_nothing_runs(home: Home) -> None:
    home.users.write_text("[tools]\nshel = false\ngrep = 'x'\n")
    (home.project / "answers.yaml").write_text("- text: Done.\n")
    for arguments in (
        ("config", "check"),
        ("tools", "list"),
        ("run", "x", "-m", "scripted:answers.yaml"),
        ("doctor",),
    ):
        done = home.run(*arguments)
        assert done.returncode in (1, 2), arguments
        said = done.stdout + done.stderr
        assert "line 2: unknown key 'shel'" in said and "line 3: tools.grep must be" in said, arguments
    assert "\nRules, approvals, secrets\n" in said and "\n2 problems.\n" in said  # of doctor, which looks on
    for unread in ("[tools\n", f"n = 1{'0' * 5_000}\n", f"n = {'[' * 20_000}\n"):
        home.users.write_text(unread)
        assert "not TOML" in home.run("config", "check").stdout
    assert home.run("config", "check", str(home.project / "none.toml")).returncode == 1
    home.users.write_text("#" * 1_100_000)
    assert "at most 1,000,000 bytes" in home.run("tools", "list").stderr
    home.users.unlink()
    os.mkfifo(home.users)
    assert "no ordinary file" in home.run("tools", "list").stderr


def test_a_projects_settings_count_once_they_are_trusted(home: Home) -> None:
    home.projects.write_text("[tools]\nshell = false\n")
    assert "shell" in home.tools()
    assert "not used: nobody trusted it" in home.run("tools", "list").stderr
    assert "but not used: nobody trusted it" in home.run("config", "check").stdout
    trusted = home.run("trust", "--yes")
    assert trusted.returncode == 0 and "    shell = false" in trusted.stdout
    assert "shell" not in home.tools()
    assert home.shown("tools.shell") == (False, ".toolcrib/toolcrib.toml, line 2")
    home.projects.write_text("[tools]\nshell = true\n")
    assert "shell" in home.tools()
    assert "changed since you trusted it" in home.run("tools", "list").stderr
    shown = home.run("trust").stdout
    assert "    -shell = false" in shown and "    +shell = true" in shown and "(changed)" in shown
    assert home.run("trust", "--revoke").returncode == 0
    assert home.run("trust", "--list").stdout == "no project's files are trusted\n"


def test_what_either_switches_off_is_off(home: Home) -> None:
    home.users.write_text("[groups]\ncommands = false\n[shell]\nkind = 'sh'\n[plugins]\noff = ['a']\n")
    home.projects.write_text(
        "[tools]\nshell = true\ngrep = false\n[shell]\nkind = 'bash'\n[plugins]\noff = ['b']\n"
    )
    assert home.run("trust", "--yes").returncode == 0
    assert home.tools().isdisjoint({"shell", "grep"})
    assert home.shown("tools.shell") == (False, f"{home.users}, line 2")
    assert home.shown("shell.kind") == ("bash", ".toolcrib/toolcrib.toml, line 5")
    assert home.shown("plugins.off")[0] == ["b", "a"]


ODD: dict[str, Callable[[Home], Any]] = {
    "a link": lambda home: home.projects.symlink_to(home.users),
    "a linked folder": lambda home: (
        home.projects.parent.rmdir(),
        home.projects.parent.symlink_to(home.users.parent),
    ),
    "a hard link": lambda home: home.projects.hardlink_to(home.users),
    "a pipe": lambda home: os.mkfifo(home.projects),
    "huge": lambda home: home.projects.write_text("[tools]\nshell = false\n" + "#" * 70_000),
    "no text": lambda home: home.projects.write_bytes(b"\xff\xfe"),
    "wrong": lambda home: home.projects.write_text("[tools]\nshel = false\n"),
}


@each("kind", ODD, ids=ODD)
def test_odd_files_of_a_project_are_never_used(kind: str, tmp_path: Path) -> None:
    home = Home(tmp_path / kind.replace(" ", "-"))
    home.users.write_text("[tools]\ngrep = false\n")
    ODD[kind](home)
    assert home.run("trust", "--yes").returncode == 2
    done = home.run("tools", "list")
    assert done.returncode == 0 and "toolcrib.toml of this folder is not used: " in done.stderr
    assert home.run("config", "check").returncode == 1


def test_the_schema_is_of_the_same_settings(home: Home) -> None:
    schema = json.loads(home.run("config", "schema").stdout)
    assert schema["additionalProperties"] is False
    tools = schema["$defs"]["ToolSwitches"]["properties"]
    assert list(tools) == [row.name for row in CATALOGUE]
    assert all(one["type"] == "boolean" and one["description"] for one in tools.values())


def every_built_in_tool() -> set[str]:
    """The names that the classes of tools in `toolcrib.tools` declare."""
    import pkgutil
    from importlib import import_module

    import toolcrib.agent.delegation
    import toolcrib.tools

    for package in (toolcrib.tools, toolcrib.agent.delegation):
        for found in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
            import_module(found.name)
    names: set[str] = set()
    todo: list[Any] = [Tool]
    while todo:
        cls = todo.pop()
        todo += cls.__subclasses__()
        if cls.__module__.startswith(("toolcrib.tools.", "toolcrib.agent.delegation.")):
            names.add(cls.facts.name)
    return names


def test_every_built_in_tool_is_in_the_catalogue_and_is_assembled(tmp_path: Path) -> None:
    names = {row.name for row in CATALOGUE}
    functions = {"new_task", "task_rows"}  # tools that are no classes
    assert every_built_in_tool() | functions == names
    from toolcrib.command.sandbox import Level
    from toolcrib.tools.memory import MemoryStore

    def assembled(patches: str) -> set[str]:
        switches = {row.name: True for row in CATALOGUE}
        settings = {"edits": {"patches": patches}, "tools": switches}
        level = Level.of("workspace_write", "on")
        memory = MemoryStore(tmp_path / "memory.db")
        made = all_tools(
            settings, tmp_path, level=level, memory=memory, skills=[tmp_path], asks=True, agents={}
        )
        return {name_of(tool) for tool in made}

    assert assembled("always") == names - {"edit_file", "multi_edit"}
    assert assembled("never") == names - {"apply_patch"}


def test_a_model_that_was_trained_on_patches_is_given_them(tmp_path: Path) -> None:
    def edits(model: str) -> set[str]:
        found = {name_of(tool) for tool in all_tools(None, tmp_path, model=model)}
        return found & {"edit_file", "multi_edit", "apply_patch"}

    assert edits("openai:gpt-5.1-codex") == {"apply_patch"}
    assert edits("anthropic:claude-opus-4-6") == edits("") == {"edit_file", "multi_edit"}


def test_a_run_does_not_change_what_was_trusted(home: Home) -> None:
    home.projects.write_text("[tools]\ngrep = false\n")
    write = ("tools", "call", "write_file", json.dumps({"path": ".toolcrib/tools/a.py", "content": "x"}))
    assert "nobody_to_ask" in home.run(*write, "--autonomy", "full").stderr
    assert home.run("trust", "--yes").returncode == 0
    done = home.run(*write, "--autonomy", "full")
    assert done.returncode == 1 and "the project's rules are changed by people" in done.stderr
    command = "echo x > .toolcrib/toolcrib.toml; python3 -c \"open('.toolcrib/x', 'w')\""
    home.run("tools", "call", "shell", json.dumps({"command": command}), "--autonomy", "full")
    assert home.projects.read_text() == "[tools]\ngrep = false\n"
    assert not (home.project / ".toolcrib/x").exists()


def test_delegation_and_batch_are_off_until_they_are_switched_on(home: Home) -> None:
    script = """
- calls: [{name: new_task, arguments: {agent: helper, task: Write a.txt}}]
- calls: [{name: write_file, arguments: {path: a.txt, content: by the helper}}]
- text: Written.
- text: The helper wrote it.
"""
    (home.project / "answers.yaml").write_text(script)
    run = ("run", "x", "-m", "scripted:answers.yaml", "--no-checkpoints")
    assert home.tools().isdisjoint({"new_task", "task_rows", "batch", "memory"})
    home.users.write_text("[groups]\ndelegation = true\nbatch = true\n")
    assert {"new_task", "task_check", "batch"} <= home.tools() and "task_rows" not in home.tools()
    home.run(*run, "--autonomy", "supervised")
    assert not (home.project / "a.txt").exists(), "the helper may do no more than the run"
    done = home.run(*run, "--autonomy", "full")
    assert done.returncode == 0 and "The helper wrote it." in done.stdout, done.stderr
    assert (home.project / "a.txt").read_text() == "by the helper"


def test_every_built_in_tool_has_one_page() -> None:
    pages = Path(__file__).parents[1] / "docs" / "tools"
    found: list[str] = []
    for page in pages.glob("*.md"):
        found += re.findall(r"^<!-- tool (\w+) -->$", page.read_text(encoding="utf-8"), re.MULTILINE)
    assert len(found) == len(set(found)), "a tool has two pages"
    assert set(found) == {row.name for row in CATALOGUE}
