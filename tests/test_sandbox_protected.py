"""Files that a person's tools run later: what a command may not change, what is put back, and what is told."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.cases import each
from tests.sandbox_copy import copy_sandbox
from tests.sandbox_runs import BACKENDS, backend, ended, run
from toolcrib import Answer, Toolbox, ToolError, Verdict
from toolcrib.command.sandbox import environment
from toolcrib.command.sandbox.files import file_view, folder_walk
from toolcrib.command.sandbox.files.executed_files import EXECUTED
from toolcrib.command.sandbox.files.folder_walk import FolderWalk
from toolcrib.command.sandbox.files.other_names import with_another_name
from toolcrib.tools import Workspace, WriteFile
from toolcrib.tools.backends import Delete, Write


@pytest.fixture(params=list(BACKENDS))
def kind(request: pytest.FixtureRequest) -> type[Any]:
    return backend(request.param)


@pytest.fixture
def ws(tmp_path: Path) -> Path:
    made = tmp_path / "ws"
    for folder in (".git/objects", ".git/refs", "conf", "src"):
        (made / folder).mkdir(parents=True)
    (made / ".git/HEAD").write_text("ref: refs/heads/main\n")
    (made / ".git/config").write_text("[core]\n\tbare = false\n")
    return made


# -- through links: {protected path: what it leads to}, the file that a command writes to, and what it held

LINKS: list[tuple[dict[str, str], str]] = [
    ({".git/hooks": "../githooks"}, "githooks/pre-commit"),
    ({".git/hooks": "../conf/../githooks"}, "githooks/pre-commit"),
    ({".envrc": "conf/envrc"}, "conf/envrc"),
    ({".envrc": "conf/first", "conf/first": "second", "conf/second": "../src/third"}, "src/third"),
    ({".vscode": "conf/editor"}, "conf/editor/tasks.json"),
    ({".envrc": "../linked/conf/envrc"}, "conf/envrc"),
    ({".envrc": "{ws}//conf/./envrc"}, "conf/envrc"),
    ({"via": "conf", ".envrc": "via/envrc"}, "conf/envrc"),
    ({".git/hooks/pre-commit": "../../githooks/first"}, "githooks/first"),
    ({".vscode/tasks.json": "../conf/tasks.json"}, "conf/tasks.json"),
    ({"src/.envrc": "../conf/envrc"}, "conf/envrc"),
    ({"src/.vscode/tasks.json": "../../conf/tasks.json"}, "conf/tasks.json"),
]


def linked(ws: Path, links: dict[str, str], file: str) -> Path:
    target = ws / file
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_text("mine")
    for name, leads in links.items():
        (ws / name).parent.mkdir(parents=True, exist_ok=True)
        (ws / name).symlink_to(leads.replace("{ws}", str(ws)))
    return target


@pytest.mark.promise("sandbox.md", "Links are followed: where `.git/hooks` leads to `githooks`")
@each(("links", "file"), LINKS)
def test_what_a_protected_link_leads_to_is_protected(
    tmp_path_factory: pytest.TempPathFactory, links: dict[str, str], file: str
) -> None:
    attacks = (
        f"echo evil > {file}",
        f"rm -rf {file}; echo evil > {file}",
        f"mv $(dirname {file}) away && mkdir $(dirname {file}) && echo evil > {file}",
        f"echo evil > other && mv -f other {file}",
        *(f"ln -sfn /tmp {name}" for name in links),
        *(f"rm {name}; mkdir {name}; echo evil > {name}/pre-commit" for name in links),
    )
    for name in BACKENDS:
        for attack in attacks:
            ws = tmp_path_factory.mktemp("around") / "linked"
            for folder in (".git/objects", ".git/refs", "conf", "src"):
                (ws / folder).mkdir(parents=True)
            target = linked(ws, links, file)
            leads = {one: str((ws / one).readlink()) for one in links}
            run(backend(name)(ws), attack, ws)
            assert target.read_text() == "mine", (name, attack)
            assert {one: str((ws / one).readlink()) for one in links} == leads, (name, attack)


@pytest.mark.promise("sandbox.md", "Links are followed: where `.git/hooks` leads to `githooks`")
def test_a_protected_link_to_nothing_yet_protects_the_place(kind: type[Any], ws: Path) -> None:
    (ws / ".envrc").symlink_to("conf/envrc")
    run(kind(ws), "echo evil > conf/envrc", ws)
    assert not (ws / "conf/envrc").exists() and str((ws / ".envrc").readlink()) == "conf/envrc"


def test_a_protected_link_to_the_workspace_leaves_it_writable(kind: type[Any], ws: Path) -> None:
    (ws / ".vscode").symlink_to(".")
    (ws / ".idea").symlink_to(ws.parent)
    assert run(kind(ws), "echo x > src/file", ws).code == 0
    assert (ws / "src/file").read_text() == "x\n"


@pytest.mark.promise("sandbox.md", "A file that has a second name (a hard link) is put back as well.")
@pytest.mark.parametrize("path", [".envrc", ".vscode/tasks.json", ".git/hooks/pre-commit"])
def test_another_name_of_a_protected_file_does_not_change_it(kind: type[Any], ws: Path, path: str) -> None:
    (ws / path).parent.mkdir(exist_ok=True)
    (ws / path).write_text("mine")
    (ws / "conf/other").hardlink_to(ws / path)
    run(kind(ws), "echo evil > conf/other", ws)
    assert (ws / path).read_text() == "mine"


def test_many_folders_hide_no_repository_above_them(ws: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(file_view, "MAX_FOLDERS", 12)
    for name in "abcdefgh":
        (ws / name / ".git/hooks").mkdir(parents=True)
        for number in range(20):
            (ws / name / str(number)).mkdir()
    protected = file_view.file_view_of(str(ws)).protected
    assert {f"{ws}/{name}/.git/hooks" for name in "abcdefgh"} <= {*protected}


OTHER_NAMES = {
    "in a cache outside": ("../cache/x", []),
    "in a protected folder": (".vscode/x", []),
    "in the workspace": ("conf/x", [".idea/file"]),
    "among git's data": (".git/objects/x", [".idea/file"]),
    "in a folder that may be written to": ("../opened/x", [".idea/file"]),
    "as a file that may be written to": ("../file", [".idea/file"]),
}


@pytest.mark.parametrize(("other", "counting"), OTHER_NAMES.values(), ids=OTHER_NAMES)
def test_only_other_names_that_a_command_can_write_to_count(
    ws: Path, other: str, counting: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """All files of an environment that uv made have a second name, in its cache."""
    for folder in (".idea", ".vscode", ".git/objects", "../cache", "../opened"):
        (ws / folder).mkdir(parents=True, exist_ok=True)
    (ws / ".idea/file").touch()
    (ws / other).hardlink_to(ws / ".idea/file")
    protected = [f"{ws}/.idea", f"{ws}/.vscode"]
    roots = [str(ws), f"{ws.parent}/opened", f"{ws.parent}/file"]
    walk = FolderWalk()
    assert list(with_another_name(protected, roots, walk))[:1] == [f"{ws}/.idea/file"]  # not walked yet
    list(walk.walk(roots, set(), opening=False))
    assert list(with_another_name(protected, roots, walk)) == [f"{ws}/{path}" for path in counting]
    monkeypatch.setattr(folder_walk, "MAX_FOLDERS", 2)
    list(walk.walk(roots, set(), opening=False))
    assert f"{ws}/.idea/file" in with_another_name(protected, roots, walk)


def test_many_files_do_not_hide_one(kind: type[Any], ws: Path) -> None:
    """Each of 300 new files below the top would be removed, and so is the one that lies deepest."""
    (ws / "src/deep/deeper").mkdir(parents=True)
    folders = [f"conf/{number}" for number in range(60)]
    for folder in folders:
        (ws / folder).mkdir()
    names = (".zed", ".vim", ".husky", ".idea", ".roo")
    made = " ".join(f"{folder}/{name}" for folder in folders for name in names)
    done = run(kind(ws), f"touch {made}; echo evil > src/deep/deeper/.envrc", ws)
    assert not (ws / "src/deep/deeper/.envrc").exists() and len(done.restored) == 301


def test_however_much_a_command_adds_goes_again(kind: type[Any], ws: Path) -> None:
    (ws / ".husky").mkdir()
    (ws / ".husky/pre-commit").write_text("mine")
    many = 'python3 -c \'for number in range(5_000): open(f".husky/{number}", "w").close()\''
    done = run(kind(ws), f"{many}; echo evil > .husky/pre-commit; echo evil > .husky/zz", ws)
    assert [path.name for path in (ws / ".husky").iterdir()] == ["pre-commit"]
    assert (ws / ".husky/pre-commit").read_text() == "mine" and done.restored == [f"{ws}/.husky"]


@pytest.mark.parametrize(
    "attack",
    [
        "mkdir x; echo evil > x/config.toml; ln -s x mise",
        "mkdir x; echo evil > x/mise.toml; ln -s x .config",
        "mkdir x; ln -s ../../conf x/mise; ln -s x .config",
    ],
)
def test_a_new_link_above_a_protected_path_is_removed(kind: type[Any], ws: Path, attack: str) -> None:
    done = run(kind(ws), attack, ws)
    assert done.code == 0 and len(done.restored) == 1
    assert not any((ws / path).exists() for path in ("mise/config.toml", ".config/mise.toml", ".config/mise"))


def test_what_is_too_large_to_be_put_back_is_set_aside_and_never_called_put_back(
    kind: type[Any], ws: Path
) -> None:
    """Whatever times a command gives it."""
    large = ws / ".husky/large"
    large.parent.mkdir()
    large.write_bytes(bytes(5 << 20))
    with kind(ws).launch(["sh", "-c", ATTACK_ON_LARGE], cwd=str(ws), env={"PATH": "/usr/bin:/bin"}) as launch:
        subprocess.run(launch.argv, env=launch.env, cwd=ws, pass_fds=launch.pass_fds, check=True)
    assert launch.restored == [] and "CHECK" not in launch.not_restored[0] and not large.exists()
    assert len(launch.not_restored) == 1 and f"{large}.disabled-" in launch.not_restored[0]


ATTACK_ON_LARGE = (
    "cd .husky; touch -r large ../t; printf evil | dd of=large conv=notrunc status=none; touch -r ../t large"
)


HOOKS = "[core]\n\thooksPath = tools/hooks\n"
# Files with settings, below the folder around the workspace; the file of the workspace that git obeys because of them.
NAMED: list[tuple[dict[str, str], str]] = [
    ({"ws/.git/config": HOOKS}, "tools/hooks/pre-commit"),
    ({"ws/.git/config": '[core]\n\thooksPath = "tools/my hooks" # shared\n'}, "tools/my hooks/pre-commit"),
    ({"ws/.git/config": "[extensions]\n", "ws/.git/config.worktree": HOOKS}, "tools/hooks/pre-commit"),
    ({"ws/.git/config": "[include]\n\tpath = ../tools/git\n"}, "tools/git"),
    ({"ws/.git/config": "[include]\n\tpath = more\n", "ws/.git/more": HOOKS}, "tools/hooks/pre-commit"),
    ({"ws/.git/config": "[include]\n\tpath = more\n"}, ".git/more"),
    ({"ws/.git/config": '[includeIf "gitdir:/"]\n\tpath = ../tools/git\n'}, "tools/git"),
    ({"ws/.git/config": "[core] hooksPath = tools/hooks\n"}, "tools/hooks/pre-commit"),
    ({"ws/.git/config": "[user]\n[core]hooksPath = tools/\\\nhooks\n"}, "tools/hooks/pre-commit"),
    ({"ws/.git/config": "# a \\\n[core]\n\thooksPath = tools/hooks"}, "tools/hooks/pre-commit"),
    ({"ws/.git/config": "\ufeff[includeIf \"gitdir:a]b\\\"/\"] path = ../tools/git\n"}, "tools/git"),
    ({"home/.gitconfig": HOOKS}, "tools/hooks/pre-commit"),
    ({"home/.gitconfig": "[include]\n\tpath = ~/../ws/tools/git\n"}, "tools/git"),
    ({"ws/src/.git/config": HOOKS}, "src/tools/hooks/pre-commit"),
    ({"git/config": HOOKS, "git/worktrees/w/commondir": "../..", "ws/.git": "gitdir: ../git/worktrees/w\n"},
     "tools/hooks/pre-commit"),
    ({".git/config": "[core]\n\thooksPath = ws/tools/hooks\n"}, "tools/hooks/pre-commit"),
]  # fmt: skip


@pytest.mark.promise("sandbox.md", "So are folders and files of the workspace that git's settings name")
@each(("settings", "file"), NAMED)
def test_what_gits_settings_name_is_put_back(
    tmp_path_factory: pytest.TempPathFactory, settings: dict[str, str], file: str
) -> None:
    for name in BACKENDS:
        for there in (True, False):
            around = tmp_path_factory.mktemp("around")
            (around / "ws/tools").mkdir(parents=True)
            for path, text in settings.items():
                (around / path).parent.mkdir(parents=True, exist_ok=True)
                (around / path).write_text(text)
            target = around / "ws" / file
            target.parent.mkdir(parents=True, exist_ok=True)
            if there:
                target.write_text("mine")
            sandbox = backend(name)(around / "ws", home=str(around / "home"))
            done = run(
                sandbox, ["sh", "-c", 'mkdir -p "${1%/*}"; echo evil > "$1"', "sh", file], around / "ws"
            )
            assert (target.read_text() if target.exists() else "") == ("mine" if there else ""), (name, there)
            assert len(done.restored) == 1, (name, there)


@pytest.mark.parametrize("name", ["tools/hooks/pre-commit", "tools/git"])
def test_what_gits_settings_name_is_written_with_a_yes_only(ws: Path, name: str) -> None:
    (ws / ".git/config").write_text("[core]\n\thooksPath = tools/hooks\n[include]\n\tpath = ../tools/git\n")
    box = Toolbox([WriteFile(Workspace(ws))], autonomy="full")
    assert box.call_sync("write_file", {"path": name, "content": "evil"}).is_error
    assert not (ws / name).exists()


# -- the table


@pytest.mark.promise(
    "sandbox.md",
    "put back: restored after the command, or removed if the command created them, and you "
    "and the model are told.",
)
@pytest.mark.promise("sandbox.md", "refused: commands can neither change nor create them.")
def test_every_row_of_the_table_holds(kind: type[Any], tmp_path: Path) -> None:
    """Each path is written to where it does not exist, and where it does."""
    for there in (False, True):
        ws = tmp_path / f"ws-{there}"
        ws.mkdir()
        (ws / ".git/objects").mkdir(parents=True)
        (ws / ".git/refs").mkdir()
        paths = [path for row in EXECUTED for path in row.paths if path != "HEAD"]
        for path in paths if there else ():
            (ws / path).parent.mkdir(parents=True, exist_ok=True)
            if not (ws / path).exists():
                (ws / path).write_text("mine")
        script = "".join(f"mkdir -p $(dirname {p}); echo evil > {p}; " for p in paths)
        done = run(kind(ws), f"({script}) 2>/dev/null; true", ws)
        for row in EXECUTED:
            for path in row.paths:
                now = (ws / path).read_text() if (ws / path).is_file() else ""
                if row.holds in ("refused", "put back") and path != "HEAD":
                    assert now == ("mine" if there else ""), (row.ecosystem, path, there)
                elif row.holds == "told":
                    assert now == "evil\n", (row.ecosystem, path, there)
        assert len(done.told) == 1 and done.told[0].endswith("more."), done.told


# -- telling


@pytest.mark.promise("sandbox.md", "after a command that changed them, one line names them")
@pytest.mark.parametrize(
    ("command", "told"),
    [
        ("echo x > src/main.py; echo 'all:' > Makefile; echo x > conftest.py", ""),
        ("echo script-shell=./x > .npmrc", ".npmrc (npm)"),
        ("echo x > .github/workflows/ci.yml", ".github/workflows (continuous integration)"),
        ("touch .github/workflows/ci.yml", ""),
        ("cp package.json x; sed -i s/jest/vitest/ package.json", ""),
        ("sed -i s/jest/vitest/ package.json; echo x | tee .npmrc > lefthook.yml", "lefthook.yml (git hooks), .npmrc (npm)"),
        ("sed -i s/test/postinstall/ package.json", "package.json (npm)"),
    ],
)  # fmt: skip
def test_what_runs_unasked_is_told_in_one_line(kind: type[Any], ws: Path, command: str, told: str) -> None:
    (ws / "package.json").write_text(
        json.dumps({"name": "x", "scripts": {"test": "jest", "prepare": "husky"}})
    )
    (ws / ".github/workflows").mkdir(parents=True)
    (ws / ".github/workflows/ci.yml").write_text("on: push\n")
    done = run(kind(ws), command, ws)
    assert done.code == 0 and done.restored == []
    assert len(done.told) == bool(told)
    if told:
        assert f": {told}." in done.told[0]


# -- tools that write files


@pytest.mark.promise(
    "sandbox.md", "The tools that write files ask before they change what is refused or put back"
)
@pytest.mark.parametrize(
    ("path", "asks"),
    [
        ("conf/envrc", True),
        (".envrc", True),
        ("githooks/pre-commit", True),
        (".exrc", True),
        ("conf/other", False),
        ("Makefile", False),
    ],
)
async def test_a_file_that_a_protected_link_leads_to_is_written_with_a_yes_only(
    ws: Path, path: str, asks: bool
) -> None:
    linked(ws, {".envrc": "conf/envrc", ".git/hooks": "../githooks"}, "githooks/pre-commit")
    asked: list[str] = []

    async def approver(question: Any) -> Answer:
        asked.append(question.reason)
        return Answer(Verdict.NO)

    box = Toolbox([WriteFile(Workspace(ws))], autonomy="full", approver=approver)
    done = await box.call("write_file", {"path": path, "content": "x"})
    assert (bool(asked), done.is_error) == (asks, asks), done.text


# -- below the top of the workspace


@pytest.mark.promise("sandbox.md", "Below the top of the workspace")
def test_what_other_programs_execute_is_put_back_below_the_top_too(kind: type[Any], ws: Path) -> None:
    mine = {"src/.vscode/tasks.json": "mine", "src/.envrc": "mine", "src/deep/er/.claude/hooks.json": "mine"}
    for path, text in mine.items():
        (ws / path).parent.mkdir(parents=True, exist_ok=True)
        (ws / path).write_text(text)
    done = run(
        kind(ws),
        "echo evil > src/.vscode/tasks.json; echo evil > src/.vscode/new.json; rm src/.envrc; rm -r src/deep/er/.claude;"
        "mkdir conf/.idea; echo evil > conf/.idea/x; echo evil > conf/.mcp.json; ln -s .. src/.zed;"
        "mkdir -p node_modules/one/.vscode new/.vscode; echo x > new/.envrc; echo x > src/main.py",
        ws,
    )
    assert {path: (ws / path).read_text() for path in mine} == mine
    there = {str(path.relative_to(ws)) for path in ws.rglob("*")}
    assert not there & {"src/.vscode/new.json", "conf/.idea", "conf/.mcp.json", "src/.zed"}
    assert there >= {"src/main.py", "node_modules/one/.vscode", "new/.vscode"}
    assert sorted(Path(path).relative_to(ws).as_posix() for path in done.restored) == [
        "conf/.idea", "conf/.mcp.json", "src/.envrc", "src/.vscode", "src/.zed", "src/deep/er/.claude",
    ]  # fmt: skip
    assert done.told == ["In new folders, and run by other programs unasked: new/.envrc, new/.vscode."]
    again = run(kind(ws), "true", ws)
    assert not again.restored and not again.told


def test_a_folder_with_such_files_may_be_moved_and_removed(kind: type[Any], ws: Path) -> None:
    for path in ("src/.vscode/tasks.json", "conf/.envrc"):
        (ws / path).parent.mkdir(exist_ok=True)
        (ws / path).write_text("mine")
    done = run(kind(ws), "mv src away; rm -r conf", ws)
    assert sorted(path.name for path in ws.iterdir()) == [".git", "away"] and not done.restored
    assert (ws / "away/.vscode/tasks.json").read_text() == "mine"


def test_a_link_in_place_of_a_folder_leads_around_nothing(kind: type[Any], ws: Path) -> None:
    (ws / "src/.vscode").mkdir()
    run(kind(ws), "mv src away; ln -s conf src; mkdir src/.vscode; echo evil > src/.vscode/tasks.json", ws)
    assert not (ws / "conf/.vscode").exists()


# -- while other commands run


@pytest.mark.parametrize(
    "command",
    [
        "echo x > .husky/pre-commit",
        "echo x > .husky/new",
        "rm -r .husky; echo x > .husky",
        "echo x > sub/.exrc; echo x > sub/.husky/pre-commit",
        "mkdir .zed; echo x > .zed/tasks.json; echo x > .exrc",
    ],
)
@pytest.mark.parametrize("first", [0, 1])
def test_what_a_later_command_found_changed_is_not_brought_back(
    kind: type[Any], ws: Path, command: str, first: int
) -> None:
    for folder in (".husky", "sub/.husky"):
        (ws / folder).mkdir(parents=True)
        (ws / folder / "pre-commit").write_text("mine")
    before = {path: path.is_dir() or path.read_bytes() for path in ws.rglob("*")}
    launches = [ended(kind(ws), command, ws), ended(kind(ws), "true", ws), ended(kind(ws), "true", ws)]
    launches.insert(first, launches.pop(0))
    for launch in launches:
        launch.close()
    assert {path: path.is_dir() or path.read_bytes() for path in ws.rglob("*")} == before


def test_what_a_tool_writes_while_a_command_runs_stays(kind: type[Any], ws: Path) -> None:
    for folder in (".husky", "sub/.husky"):
        (ws / folder).mkdir(parents=True)
        (ws / folder / "pre-commit").write_text("old")
        (ws / folder / "gone").write_text("old")
    launch = ended(kind(ws), "echo x > .husky/new; echo x > sub/.husky/new", ws)
    for folder in (".husky", "sub/.husky"):
        Workspace(ws).apply(
            [
                Write(f"{folder}/pre-commit", b"mine"),
                Write(f"{folder}/in/mine", b"mine"),
                Write(f"{folder}/mine", b"mine"),
                Delete(f"{folder}/gone"),
            ]
        )
    Workspace(ws).apply([Write("sub/.exrc", b"mine"), Write(".exrc", b"mine")])
    for path in (ws / ".husky/mine", ws / "sub/.husky/in/mine"):
        path.write_text("of the command, which still runs")
    launch.close()
    found = {str(path.relative_to(ws)): path.read_text() for path in ws.rglob("*") if path.is_file()}
    names = ("pre-commit", "in/mine", "mine")
    assert {path: text for path, text in found.items() if not path.startswith(".git/")} == {
        ".exrc": "mine", "sub/.exrc": "mine",
        **{f"{folder}/{name}": "mine" for folder in (".husky", "sub/.husky") for name in names},
    }  # fmt: skip


# What is done outside while a command runs, what the command tries then, what is left of protected files, and what of
# them is set aside.
OUTSIDE: list[tuple[str, str, dict[str, str], set[str]]] = [
    ("mv mine .envrc", "echo evil > .envrc", {".vscode/s": "old"}, {".envrc"}),
    ("mv mine .envrc", "true", {".vscode/s": "old"}, {".envrc"}),
    ("rm .envrc; cp mine .envrc", "echo evil >> .envrc", {".vscode/s": "old"}, {".envrc"}),
    ("cp .envrc same; mv same .envrc", "true", {".envrc": "old", ".vscode/s": "old"}, set()),
    ("rm -r .vscode", "mkdir .vscode; echo evil > .vscode/tasks.json", {".envrc": "old"}, {".vscode"}),
    ("rm -r .vscode; mkdir .vscode", "echo evil > .vscode/tasks.json", {".envrc": "old"}, {".vscode"}),
    ("rmdir .claude", "mkdir .claude; echo evil > .claude/s", {".envrc": "old", ".vscode/s": "old"}, {".claude"}),
    ("rmdir .mcp.json", "echo evil > .mcp.json", {".envrc": "old", ".vscode/s": "old"}, {".mcp.json"}),
    # No command can change what is still covered.
    (
        "cp mine .envrc; cp mine .vscode/s; mv mine .vscode/t; echo mine > .claude/s",
        "echo evil > .envrc; rm -r .vscode; echo evil > .vscode/s; echo evil > .claude/s",
        {".envrc": "mine", ".vscode/s": "mine", ".vscode/t": "mine", ".claude/s": "mine"},
        set(),
    ),
    (
        "chmod +x mine; mv mine .git/hooks/pre-commit",
        "echo evil > .git/hooks/pre-commit; echo evil > .git/hooks/pre-push; chmod +x .git/hooks/pre-push",
        {".envrc": "old", ".vscode/s": "old", ".git/hooks/pre-commit": "mine"},
        set(),
    ),
]  # fmt: skip


@pytest.mark.promise(
    "sandbox.md", "if its content is then another one, it is renamed to `*.disabled-*`, and you are told."
)
@pytest.mark.parametrize(("outside", "command", "left", "aside"), OUTSIDE)
def test_what_lost_its_cover_while_a_command_ran_is_set_aside(
    ws: Path, outside: str, command: str, left: dict[str, str], aside: set[str]
) -> None:
    """A mount goes with the file that it lies on, when somebody replaces that file outside of the sandbox."""
    for folder in (".vscode", ".git/hooks"):
        (ws / folder).mkdir()
    for path, text in {".envrc": "old", ".vscode/s": "old", "mine": "mine"}.items():
        (ws / path).write_text(text)
    sandbox = backend("bubblewrap")(ws)
    argv = ["bash", "-c", f"touch started; until [ -e go ]; do sleep 0.01; done; {command}; true"]
    with (
        sandbox.launch(argv, cwd=str(ws), env=environment(os.environ)) as launch,
        subprocess.Popen(
            launch.argv, env=launch.env, cwd=launch.cwd, pass_fds=launch.pass_fds, stderr=subprocess.DEVNULL
        ) as process,
    ):
        launch.started()
        outside = f"until [ -e started ]; do sleep 0.01; done; {outside}; touch go"
        subprocess.run(["bash", "-c", outside], cwd=ws, check=True, timeout=30)
        process.wait(30)
    protected = [ws / name for name in (".envrc", ".vscode", ".claude", ".mcp.json", ".git/hooks")]
    files = [path for place in protected for path in (place, *place.rglob("*")) if path.is_file()]
    assert {str(path.relative_to(ws)): path.read_text().strip() for path in files} == left
    assert {path.name.partition(".disabled-")[0] for path in ws.glob("*.disabled-*")} == aside
    assert len(launch.not_restored) == len(aside)


def test_what_a_tool_writes_in_the_place_of_a_covered_file_stays(ws: Path) -> None:
    (ws / ".envrc").write_text("old")
    launch = ended(backend("bubblewrap")(ws), "true", ws)
    Workspace(ws).apply([Write(".envrc", b"mine")])
    launch.close()
    assert (ws / ".envrc").read_bytes() == b"mine" and not launch.not_restored


def test_a_tool_is_told_why_a_covered_name_cannot_be_made(ws: Path) -> None:
    launch = ended(backend("bubblewrap")(ws), "true", ws)
    with pytest.raises(ToolError, match="while a command runs in the sandbox"):
        Workspace(ws).apply([Write(".mcp.json", b"mine")])
    launch.close()
    Workspace(ws).apply([Write(".mcp.json", b"mine")])


def test_what_a_tool_writes_for_git_while_a_command_runs_stays(kind: type[Any], ws: Path) -> None:
    for folder in ("", "sub"):
        subprocess.run(["git", "init", "-q", str(ws / folder)], check=True)
    mine = b"[alias]\n\tmine = !true\n"
    launch = ended(kind(ws), "git init -q new; printf '[alias]\n\tx = !true\n' >> new/.git/config", ws)
    for folder in (".git", "sub/.git"):
        Workspace(ws).apply([Write(f"{folder}/config", (ws / folder / "config").read_bytes() + mine)])
    Workspace(ws).apply(
        [Write("sub/.git/hooks/pre-commit.sample", b"mine"), Write("sub/.git/remotes/x", b"URL: ext::mine")]
    )
    Workspace(ws).apply([Write("tree/.git", b"gitdir: /elsewhere/of/a/person")])
    with (ws / "sub/.git/config").open("ab") as file:
        file.write(b"[core]\n\tpager = of the command, which still runs\n")
    launch.close()
    for folder in (".git", "sub/.git"):
        text = (ws / folder / "config").read_bytes()
        assert mine in text and b"pager" not in text
    assert b"x = !true" not in (ws / "new/.git/config").read_bytes()
    assert (ws / "sub/.git/remotes/x").read_bytes() == b"URL: ext::mine"
    assert (ws / "sub/.git/hooks/pre-commit.sample").read_bytes() == b"mine"
    assert (ws / "tree/.git").is_file()


@pytest.mark.skipif(sys.platform != "linux", reason="only there are folders opened to be listed")
def test_no_folder_gets_rights_through_a_link(tmp_path: Path) -> None:
    (tmp_path / "outside/shut").mkdir(parents=True)
    (tmp_path / "outside/shut").chmod(0)
    (tmp_path / "ws").symlink_to("outside")
    assert not folder_walk.give_rights_to_list(f"{tmp_path}/ws/shut")
    assert (tmp_path / "outside/shut").stat().st_mode & 0o777 == 0
    assert folder_walk.give_rights_to_list(f"{tmp_path}/outside/shut")
    assert (tmp_path / "outside/shut").stat().st_mode & 0o777 == 0o500


# -- by a plain user, from whom a command can take the rights to its own folders

# {what a command does: the protected paths}.
SHUT = {
    "echo x > .husky/new; chmod 0 .husky": [".husky"],
    "echo x > .husky/new; chmod 500 .husky": [".husky"],
    "echo x > .husky/in/new; chmod 100 .husky/in; chmod 0 .husky": [".husky"],
    "echo x > .husky/pre-commit; chmod 0 .husky/pre-commit; chmod 500 .husky": [".husky"],
    "rm .husky/pre-commit; chmod 500 .husky .": [".husky"],
    "mkdir -p .zed/in; echo x > .zed/in/new; chmod 0 .zed/in .zed .": [".zed"],
    "echo x > conf/mise.toml; chmod 0 conf": ["conf/mise.toml"],
    "echo x > conf/mise.toml; chmod 500 conf": ["conf/mise.toml"],
    "echo x > .exrc; chmod 0 .": [".exrc"],
    "echo x > .exrc; chmod 500 .": [".exrc"],
    "echo x > sub/.vimrc; chmod 0 sub": ["sub/.vimrc"],
    "rm sub/.vimrc; chmod 0 sub; echo x > .husky/pre-commit": ["sub/.vimrc", ".husky"],
    "rm -r sub; ln -s conf sub; echo x > conf/.vimrc; chmod 500 .": ["sub/.vimrc"],
}
AS_USER = """
import os, subprocess, sys
os.setgroups([]), os.setgid(54322), os.setuid(54322)
from pathlib import Path
from toolcrib.command.sandbox import Launch
from toolcrib.command.sandbox.files.protected_files import ProtectedFiles
ws, command, *paths = Path(sys.argv[1]), *sys.argv[2:]
for folder in (".husky/in", "conf", "sub"):
    (ws / folder).mkdir(parents=True)
for file in (".husky/pre-commit", "sub/.vimrc"):
    (ws / file).write_text("mine")
(ws / ".husky").chmod(0o555)
seen = lambda: {str(path): (path.is_dir() or path.read_text(), path.stat().st_mode) for path in
                [found for name in paths for found in ((ws / name), *(ws / name).rglob("*"))] if path.exists()}
before, files = seen(), ProtectedFiles(str(ws), [f"{ws}/{name}" for name in paths])
subprocess.run(["bash", "-c", "chmod 755 .husky; " + command], cwd=ws, check=True)
launch = Launch([], {}, str(ws))
files.restore(launch)
ws.chmod(0o755), subprocess.run(["chmod", "-f", "u+rwx", ws / "conf", ws / "sub"])
assert seen() == before, (seen(), launch.restored, launch.not_restored)
assert {f"{ws}/{name}" for name in paths} - {*launch.restored} <= {f"{ws}/sub/.vimrc"}, launch.restored
assert not launch.not_restored, launch.not_restored
"""


def failed_as_user(code: str, cases: Iterable[Sequence[str]]) -> dict[str, str]:
    """What went wrong where a plain user runs code, by the first argument of each case; each has a folder of its own."""
    failed: dict[str, str] = {}
    with tempfile.TemporaryDirectory(dir="/var/lib") as place:
        Path(place).chmod(0o755)
        copy_sandbox(Path(place, "lib"))
        for number, arguments in enumerate(cases):
            ws = Path(place, str(number))
            ws.mkdir()
            os.chown(ws, 54_322, 54_322)
            done = subprocess.run(
                ["/usr/bin/python3", "-B", "-c", code, str(ws), *arguments],
                env={"PYTHONPATH": str(Path(place, "lib")), "PATH": os.defpath}, capture_output=True, text=True, cwd="/", check=False,
            )  # fmt: skip
            if done.returncode:
                failed[arguments[0]] = done.stderr
    return failed


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() != 0, reason="only root can be another user")
def test_no_rights_that_a_command_takes_away_keep_a_change() -> None:
    assert not failed_as_user(AS_USER, ((command, *paths) for command, paths in SHUT.items()))


# {what a command does where a person has shut folders: the paths that are put back}.
SHUT_BEFORE = {
    "true": [],
    "echo x > .husky/pre-commit": [".husky"],
    "echo x > .husky/new": [".husky"],
    "chmod 700 conf; chmod -R 700 .husky/in; echo x > conf/mise.toml; rm -r .husky/in": [
        "conf/mise.toml",
        ".husky",
    ],
    "chmod 700 .husky/in .husky/in/in; echo x > .husky/in/in/new; chmod 0 .husky/in/in .husky/in": [".husky"],
    "echo x > .git/new": [],
}
SHUT_AS_USER = """
import os, subprocess, sys
os.setgroups([]), os.setgid(54322), os.setuid(54322)
from pathlib import Path
from toolcrib.command.sandbox import Launch
from toolcrib.command.sandbox.files.git_repositories import GitRepositories
from toolcrib.command.sandbox.files.protected_files import ProtectedFiles
ws, command, *paths = Path(sys.argv[1]), *sys.argv[2:]
files = [ws / name for name in (
    "conf/mise.toml", ".husky/in/in/mine", ".husky/in/mine", ".husky/pre-commit", ".git/HEAD", ".git/hooks/pre-commit"
)]
for path in (*files, ws / ".git/objects/x", ws / ".git/refs/x"):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("mine")
    path.chmod(0o755)
shut = [ws / name for name in (".husky/in/in", ".husky/in", "conf", ".git/hooks")]
for mode in (0, 0o600):
    for folder in shut:
        folder.chmod(mode)
    launch = Launch([], {}, str(ws))
    at_end = GitRepositories().watch([str(ws)], str(ws))
    put_back = ProtectedFiles(str(ws), [f"{ws}/conf/mise.toml", f"{ws}/.husky"])
    assert [oct(ws.joinpath(name).stat().st_mode & 0o777) for name in ("conf", ".husky/in")] == [oct(mode)] * 2
    subprocess.run(["bash", "-c", command], cwd=ws, check=True)
    for step in at_end:
        step(launch)
    put_back.restore(launch)
    for folder in reversed(shut):
        assert folder == ws / "conf" or folder.stat().st_mode & 0o777 in (mode, 0), folder
        folder.chmod(0o700)
    assert [path.read_text() for path in files] == ["mine"] * len(files)
    assert [os.path.relpath(path, ws) for path in launch.restored] == paths, launch.restored
    assert not launch.not_restored and not launch.git_changes, (launch.not_restored, launch.git_changes)
"""


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() != 0, reason="only root can be another user")
def test_what_lies_in_folders_that_a_person_has_shut_stays() -> None:
    assert not failed_as_user(SHUT_AS_USER, ((command, *paths) for command, paths in SHUT_BEFORE.items()))


LAUNCH_AS_USER = """
import os, subprocess, sys
os.setgroups([]), os.setgid(54322), os.setuid(54322)
from pathlib import Path
from toolcrib.command import sandbox
ws, folder, name = Path(sys.argv[1]), *sys.argv[2].split("|")
(ws / folder).mkdir(parents=True)
(ws / folder / "mine").write_text("mine")
(ws / folder).chmod(0)
argv = ["bash", "-c", f"echo ok; chmod 700 {folder} && echo x > {folder}/mine"]
with getattr(sandbox, name)(ws).launch(argv, cwd=str(ws), env={"PATH": os.environ["PATH"]}) as launch:
    done = subprocess.run(
        launch.argv, env=launch.env, cwd=launch.cwd, pass_fds=launch.pass_fds, stdin=subprocess.DEVNULL, capture_output=True
    )
assert done.stdout == b"ok\\n", done
(ws / folder).chmod(0o700)
assert (ws / folder / "mine").read_text() == "mine"
"""


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() != 0, reason="only root can be another user")
@each("name", BACKENDS)
def test_commands_run_where_a_person_has_shut_a_protected_folder(name: str) -> None:
    backend(name)
    assert not failed_as_user(
        LAUNCH_AS_USER, [[f"{at}|{BACKENDS[name].__name__}"] for at in (".vscode", ".husky", ".git/hooks")]
    )
