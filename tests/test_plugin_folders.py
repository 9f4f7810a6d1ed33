"""Tools in files of folders: the user's own, and a project's, which are loaded as a person trusted them or not at all."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from tests.cases import each
from tests.test_cli_config import Home
from toolcrib import Toolbox
from toolcrib.cli.folder_tools import skill_folders
from toolcrib.plugin_files import PluginFile, load_files
from toolcrib.tools.skills import SkillTool
from toolcrib.toolset import name_of

TOOL = '''
from toolcrib import Effect, tool

@tool(effect=Effect.READ, secrets=())
def {name}() -> str:
    """Say {says}."""
    return {value}
'''


def source(name: str, value: str = "'hello'", says: str = "hello") -> str:
    return TOOL.format(name=name, value=value, says=says)


@pytest.fixture
def home(tmp_path: Path) -> Home:
    made = Home(tmp_path)
    for folder in ("tools", "tool"):
        (made.projects.parent / folder).mkdir()
        (made.users.parent / folder).mkdir()
    return made


def test_the_users_own_files_supply_tools(home: Home) -> None:
    folder = home.users.parent
    (folder / "tools" / "greet.py").write_text(source("greet"))
    (folder / "tool" / "bye.py").write_text(source("bye"))
    assert {"greet", "bye"} <= home.tools()
    assert home.run("tools", "call", "greet", "{}").stdout == "hello\n"
    (folder / "tools" / "greet.py").chmod(0o666)
    listed = home.run("tools", "list")
    assert "greet" not in listed.stdout and "others may write it" in listed.stderr
    home.users.write_text("[plugins]\noff = ['bye']\n")
    assert "bye" not in home.tools()
    home.users.write_text("[plugins]\nfolders = false\n")
    assert "bye" not in home.tools()


def test_a_projects_files_are_loaded_only_as_they_were_trusted(home: Home) -> None:
    file, marks = home.projects.parent / "tools" / "greet.py", home.project / "ran"
    touch = f"open({str(marks)!r}, 'a').write('x')\n"
    file.write_text(touch + source("greet"))
    listed = home.run("tools", "list")
    assert (
        "greet" not in listed.stdout
        and ".toolcrib/tools/greet.py of this folder is not used" in listed.stderr
    )
    shown = home.run("trust").stdout
    assert "    def greet() -> str:" in shown and not marks.exists()
    assert home.run("trust", "--yes").returncode == 0 and not marks.exists()
    assert home.run("tools", "call", "greet", "{}").stdout == "hello\n"
    marks.unlink()
    file.write_text(touch + source("greet", "'changed'"))
    listed = home.run("tools", "list")
    assert "greet" not in listed.stdout and "changed since you trusted it" in listed.stderr
    assert not marks.exists(), "a file that changed is not executed"
    assert "    -    return 'hello'" in home.run("trust").stdout
    (home.projects.parent / "tools" / "new.py").write_text(source("new"))
    file.write_text(touch + source("greet"))
    listed = home.run("tools", "list")
    assert (
        "greet" in listed.stdout and "new.py of this folder is not used: nobody trusted it" in listed.stderr
    )


def test_tools_at_the_top_of_a_project_only_if_that_is_set(home: Home) -> None:
    (home.project / "tools").mkdir()
    (home.project / "tools" / "greet.py").write_text(source("greet"))
    assert home.run("trust", "--yes").returncode == 0
    assert "greet" not in home.tools()
    home.users.write_text("[plugins]\ntop_level = true\n")
    assert "greet" not in home.tools()
    assert home.run("trust", "--yes").returncode == 0
    assert "greet" in home.tools()


BROKEN = [
    ("raises", "1 / 0", "ZeroDivisionError: division by zero (", "line 1"),
    ("exits", "import sys; sys.exit(3)", "SystemExit: 3", "line 1"),
    ("no Python", "def", "SyntaxError", ""),
    ("no tools", "x = 1", "defines no tools", "@tool"),
    ("lacks a module", "import nowhere_at_all", "No module named 'nowhere_at_all'", ""),
    ("lacks a neighbour", "from .untrusted import x", "untrusted", ""),
    ("null bytes", "x = '\0'", "null bytes", ""),
]


@each("kind, text, said, more", BROKEN)
def test_a_broken_file_is_named_and_the_others_go_on(
    kind: str, text: str, said: str, more: str, tmp_path: Path
) -> None:
    home = Home(tmp_path / kind.replace(" ", "-"))
    folder = home.users.parent / "tools"
    folder.mkdir()
    (folder / "broken.py").write_text(text)
    (folder / "greet.py").write_text(source("greet"))
    listed = home.run("tools", "list")
    assert listed.returncode == 0 and "greet" in listed.stdout
    assert "broken.py was left out" in listed.stderr and said in listed.stderr and more in listed.stderr


def test_names_that_are_taken_are_told(home: Home) -> None:
    folder = home.users.parent / "tools"
    (folder / "a.py").write_text(source("shell") + source("greet"))
    (folder / "b.py").write_text(source("greet"))
    listed = home.run("tools", "list")
    assert "a.py was left out where it supplies shell: built-in has that name" in listed.stderr
    assert "b.py was left out where it supplies greet: " in listed.stderr


def file(path: str, text: str) -> PluginFile:
    return PluginFile(f"folder/{path}", path, f"/nowhere/{path}", text.encode())


def test_a_file_that_hangs_is_not_waited_for() -> None:
    began = time.monotonic()
    hung, fine = load_files(
        [file("a.py", "import threading; threading.Event().wait(20)"), file("b.py", source("b"))], seconds=0.3
    )
    assert time.monotonic() - began < 10
    assert hung.problem == "importing it took more than 0.3 seconds" and not hung.tools
    assert [name_of(tool) for tool in fine.tools if not hasattr(tool, "list")] == ["b"]


def test_files_import_each_other_from_memory_alone(tmp_path: Path) -> None:
    (tmp_path / "late.py").write_text("value = 'on disk'")
    files = [
        file("_words.py", "WORD = 'hi'"),
        file("deep/more.py", "from .._words import WORD\nMORE = WORD * 2"),
        file("a.py", "from .deep.more import MORE\n" + source("a", "MORE")),
        PluginFile("late", "b.py", str(tmp_path / "b.py"), b"from .late import value"),
    ]
    a, b = load_files(files)
    assert not a.problem and len(a.tools) == 1
    assert "No module named" in b.problem, "what was not given cannot be imported"


@pytest.mark.promise("policy.md", "The hash of the bytes that were shown is stored")
@each("encoding", ["utf-7", "raw_unicode_escape", "unicode_escape"])
def test_a_file_means_what_it_shows(encoding: str) -> None:
    """Read in another encoding, a comment is code."""
    hidden = {"utf-7": "+AAo-"}.get(encoding, "\\u000a")
    text = f"# -*- coding: {encoding} -*-\n# a comment {hidden}raise SystemExit('ran')\n" + source("a")
    (plugin,) = load_files([file("a.py", text)])
    assert (plugin.problem, len(plugin.tools)) == ("", 1)


def test_a_file_in_another_encoding_is_not_loaded() -> None:
    text = "# -*- coding: latin-1 -*-\n# caf\u00e9\n" + source("a")
    (plugin,) = load_files([PluginFile("a", "a.py", "/nowhere/a.py", text.encode("latin-1"))])
    assert not plugin.tools and "expected text in UTF-8" in plugin.problem


def test_skills_of_a_project_are_used_once_all_of_them_are_trusted(home: Home) -> None:
    folder = home.projects.parent / "skills" / "deploy"
    folder.mkdir(parents=True)
    text = "---\nname: deploy\ndescription: How to deploy.\n---\nPush the button.\n"
    (folder / "SKILL.md").write_text(text)
    call = ("tools", "call", "skill", '{"name": "deploy"}')
    assert home.run(*call).returncode != 0
    assert "Push the button." in home.run("trust", "--yes").stdout
    assert "Push the button." in home.run(*call).stdout
    (folder / "SKILL.md").write_text(text.replace("Push", "Pull"))
    done = home.run(*call)
    assert done.returncode != 0 and "changed since you trusted it" in done.stderr


def test_a_run_reads_a_projects_skills_as_they_were_trusted(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever is written to the folder while a run goes on was shown to nobody."""
    skills = home.projects.parent / "skills"
    for name in ("deploy", "later"):
        (skills / name).mkdir(parents=True)
    manifest = "---\nname: {}\ndescription: About it.\n---\n{}\n"
    (skills / "deploy" / "SKILL.md").write_text(manifest.format("deploy", "Push the button."))
    (skills / "deploy" / "more.md").write_text("shown\n")
    assert home.run("trust", "--yes").returncode == 0
    monkeypatch.setenv("XDG_CONFIG_HOME", str(home.config))
    box = Toolbox([SkillTool(skill_folders(home.project))])
    (skills / "deploy" / "SKILL.md").write_text(manifest.format("deploy", "Pull the plug."))
    (skills / "deploy" / "more.md").write_text("unseen\n")
    (skills / "deploy" / "new.md").write_text("unseen\n")
    (skills / "deploy" / "__pycache__").mkdir()
    (skills / "deploy" / "__pycache__" / "x").write_text("unseen\n")
    (skills / "later" / "SKILL.md").write_text(manifest.format("later", "Unseen."))
    text = box.call_sync("skill", {"name": "deploy"}).text
    assert text.startswith("Push the button.") and "new.md" not in text
    assert str(skills / "deploy") in text, "its scripts are run where they are"
    for file in ("more.md", "./more.md", str(skills / "deploy" / "more.md")):
        assert box.call_sync("skill", {"name": "deploy", "file": file}).text == "shown\n"
    for file in ("new.md", "__pycache__/x", "../later/SKILL.md", "", ".", "/etc/passwd"):
        assert box.call_sync("skill", {"name": "deploy", "file": file}).is_error, file
    assert box.call_sync("skill", {"name": "later"}).is_error
