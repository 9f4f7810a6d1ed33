"""What is toolcrib's own stays out of reach of the model that it runs: its settings, its program, its records."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from tests.sandbox_runs import BACKENDS, backend, run
from toolcrib import Toolbox
from toolcrib.assembly import default_tools
from toolcrib.cli.own_files import protect_own_files
from toolcrib.errors import ErrorCode
from toolcrib.toolbox.policy import AutonomyPolicy
from toolcrib.tools import ApplyPatch, DeleteFile, MoveFile, MultiEdit, Workspace

linux = pytest.mark.skipif(sys.platform != "linux", reason="Linux only")
pytestmark = linux

FORGE = """
mv .config moved; mv .local moved
mkdir -p .config/toolcrib .local/state/toolcrib own/toolcrib
for place in .config .local/state own; do echo forged >$place/toolcrib/approvals.json; done
exit 0
"""


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home folder that is the workspace, with settings in a place of the user's own choice."""
    made = tmp_path / "home"
    made.mkdir()
    monkeypatch.setenv("HOME", str(made))
    monkeypatch.setenv("XDG_STATE_HOME", str(made / "own"))
    monkeypatch.delenv("XDG_CONFIG_HOME", raising=False)
    return made


@pytest.mark.promise(
    "security.md", "No command that a sandbox confines reaches the place where they are stored"
)
@pytest.mark.promise("undo.md", "sandboxed commands cannot reach it")
@pytest.mark.parametrize("there", [True, False])
def test_a_command_in_the_home_folder_makes_no_approvals(home: Path, there: bool) -> None:
    folders = [home / ".config/toolcrib", home / ".local/state/toolcrib", home / "own/toolcrib"]
    for folder in folders if there else ():
        folder.mkdir(parents=True)
        (folder / "secrets.json").write_text("hunter2")
    sandbox = backend("bubblewrap")(home)
    assert run(sandbox, FORGE, home).code == 0
    shown = run(sandbox, "cat .config/toolcrib/* .local/state/toolcrib/* own/toolcrib/*", home)
    assert shown.code != 0 and "hunter2" not in shown.said
    found = {path.name: path.read_text() for path in home.rglob("*") if path.is_file()}
    assert found == ({"secrets.json": "hunter2"} if there else {})


def test_a_hidden_file_cannot_be_moved_to_where_it_is_not_hidden(home: Path) -> None:
    (home / ".cargo").mkdir()
    (home / ".cargo/credentials.toml").write_text("hunter2")
    sandbox = backend("bubblewrap")(home)
    run(sandbox, "mv .cargo moved", home)
    assert "hunter2" not in run(sandbox, "cat .cargo/* moved/*", home).said
    assert (home / ".cargo/credentials.toml").read_text() == "hunter2"


@pytest.mark.promise(
    "sandbox.md", "home folders, but for what is shown of them, and the listed keys of the system"
)
@pytest.mark.parametrize("kind", list(BACKENDS))
def test_secrets_in_a_place_of_the_users_own_choice_are_hidden(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = Path("/opt") if os.access("/opt", os.W_OK) else None
    if place is None:
        pytest.skip("only root has a place that is neither a home folder nor a temporary one")
    folder = place / f"toolcrib-test-{os.getpid()}"
    (folder / "toolcrib").mkdir(parents=True)
    try:
        (folder / "toolcrib/secrets.json").write_text("hunter2")
        (tmp_path / "ws").mkdir()
        monkeypatch.setenv("XDG_CONFIG_HOME", str(folder))
        done = run(backend(kind)(tmp_path / "ws"), f"cat {folder}/toolcrib/secrets.json", tmp_path / "ws")
        assert done.code != 0 and "hunter2" not in done.said
        assert done.denial is not None and done.denial.permission is None
    finally:
        (folder / "toolcrib/secrets.json").unlink()
        (folder / "toolcrib").rmdir()
        folder.rmdir()


def test_settings_that_are_a_link_into_the_workspace_are_hidden_there(home: Path, tmp_path: Path) -> None:
    dotfiles = tmp_path / "dotfiles"
    dotfiles.mkdir()
    (dotfiles / "policy.toml").write_text("mine")
    (home / ".config/toolcrib").mkdir(parents=True)
    (home / ".config/toolcrib/policy.toml").symlink_to(dotfiles / "policy.toml")
    run(backend("bubblewrap")(dotfiles), "echo forged >policy.toml", dotfiles)
    assert (dotfiles / "policy.toml").read_text() == "mine"


IN_A_PROJECT = """
import sys
sys.prefix = {prefix!r}
from toolcrib.command.sandbox import Bubblewrap, Landlock, NoSandbox, choose
from tests.sandbox_runs import run
"""


def _installed_in(project: Path, program: str) -> subprocess.CompletedProcess[str]:
    """A program of ours whose Python's environment lies in a project."""
    text = IN_A_PROJECT.format(prefix=str(project / ".venv")) + textwrap.dedent(program)
    root = str(Path(__file__).parents[1])
    return subprocess.run(
        [sys.executable, "-c", text, str(project)],
        cwd=root, capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip


def test_a_command_cannot_change_the_program_that_confines_it(tmp_path: Path) -> None:
    (tmp_path / ".venv/bin").mkdir(parents=True)
    (tmp_path / ".venv/bin/python").write_text("ours")
    done = _installed_in(
        tmp_path,
        """
        ws = sys.argv[1]
        found = run(Bubblewrap(ws), "echo theirs >.venv/bin/python; mv .venv moved; echo x >.venv/evil.pth; exit 0", ws)
        """,
    )
    assert done.returncode == 0, done.stderr
    assert [path.name for path in (tmp_path / ".venv").rglob("*")] == ["bin", "python"]
    assert (tmp_path / ".venv/bin/python").read_text() == "ours"


def test_landlock_that_cannot_keep_our_own_program_is_not_taken(tmp_path: Path) -> None:
    (tmp_path / ".venv").mkdir()
    done = _installed_in(
        tmp_path,
        """
        from toolcrib.command.sandbox.choose import ORDER
        chosen = choose(sys.argv[1], order=[row for row in ORDER if row.name == "landlock"])
        print(isinstance(chosen, NoSandbox) and not chosen.wanted, chosen.report().why_not_better)
        """,
    )
    assert done.stdout.startswith("True") and ".venv, which runs toolcrib" in done.stdout, done.stderr


FORGES = """
- calls:
  - {name: shell, arguments: {command: "for f in t.jsonl rules.toml; do echo forged >$f; rm -f $f; mv $f x; done"}}
  - {name: write_file, arguments: {path: t.jsonl, content: forged}}
  - {name: write_file, arguments: {path: rules.toml, content: forged}}
  - {name: grep, arguments: {pattern: '"KEY": "h', path: .config/toolcrib}}
- Done.
"""


@pytest.mark.promise(
    "policy.md", "the file tools cannot change it during the run, and neither can commands under bubblewrap"
)
def test_a_run_changes_neither_its_rules_nor_what_is_written_down_of_it(home: Path) -> None:
    (home / "script.yaml").write_text(FORGES)
    (home / "rules.toml").write_text('[[rule]]\ndeny = true\nhost = "evil.example"\n')
    (home / ".config/toolcrib").mkdir(parents=True)
    (home / ".config/toolcrib/x.json").write_text('{"KEY": "hunter2hunter2"}')
    backend("bubblewrap")
    done = subprocess.run(
        [sys.executable, "-m", "toolcrib", "run", "x", "--model", "scripted:script.yaml", "--autonomy", "full",
         "--policy", "rules.toml", "--transcript", "t.jsonl"],
        cwd=home, capture_output=True, text=True, timeout=60, check=False, env=dict(os.environ),
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "evil.example" in (home / "rules.toml").read_text()
    kept = (home / "t.jsonl").read_text()
    assert "forged" not in [line.strip() for line in kept.splitlines()]
    # One call of four was run, and it changed nothing; the others say whose the files are.
    assert kept.count("this run goes by it") == 2 and kept.count("secrets are a person's") == 1
    assert json.loads(kept.splitlines()[-1])["message"]["parts"] == [{"kind": "text", "text": "Done."}]


@pytest.mark.parametrize("name", ["t.jsonl", "t{1,2}.jsonl", "a\\b", "[x]*?.jsonl", "d/~/t"])
def test_a_file_of_any_name_is_kept(tmp_path: Path, name: str) -> None:
    policy = protect_own_files(AutonomyPolicy("full"), tmp_path, [tmp_path / name])
    box = Toolbox(builtin=default_tools(tmp_path), policy=policy)
    for path, code in ((f"./{name}", "denied"), ("other", None)):
        assert box.call_sync("write_file", {"path": path, "content": "x"}).code == code


NAMED = {
    "multi_edit": {"edits": [{"path": "rules.toml", "old_string": "deny", "new_string": "allow"}]},
    "apply_patch": {"patch": "*** Begin Patch\n*** Update File: rules.toml\n-deny\n+allow\n*** End Patch"},
    "move_file": {"path": "rules.toml", "to": "other.toml"},
    "delete_file": {"path": "rules.toml"},
}


def test_no_file_tool_changes_what_a_run_goes_by(tmp_path: Path) -> None:
    rules = tmp_path / "rules.toml"
    rules.write_text("deny\n")
    policy = protect_own_files(AutonomyPolicy("full"), tmp_path, [rules])
    tools = [make(Workspace(tmp_path)) for make in (MultiEdit, ApplyPatch, MoveFile, DeleteFile)]
    box = Toolbox(tools, policy=policy)
    codes = {name: box.call_sync(name, given).code for name, given in NAMED.items()}
    assert codes == dict.fromkeys(NAMED, "denied") and rules.read_text() == "deny\n"


OBEYED = {
    ".git/hooks/pre-commit": True,
    ".git/config": True,
    "deep/er/.git/info/attributes": True,
    ".GIT/hooks/x": True,
    "link/pre-commit": True,
    ".envrc": True,
    "sub/.vscode/tasks.json": True,
    ".mcp.json": True,
    ".gitignore": False,
    ".github/workflows/a.yml": False,
    "docs/git/hooks": False,
}


@pytest.mark.promise(
    "sandbox.md", "The tools that write files ask before they change what is refused or put back"
)
@pytest.mark.parametrize(("path", "asks"), OBEYED.items())
def test_what_other_programs_obey_is_written_with_a_yes_only(tmp_path: Path, path: str, asks: bool) -> None:
    (tmp_path / ".git/hooks").mkdir(parents=True)
    (tmp_path / "link").symlink_to(".git/hooks")
    box = Toolbox(builtin=default_tools(tmp_path), autonomy="full")
    code = box.call_sync("write_file", {"path": path, "content": "x"}).code
    assert code == (ErrorCode.NOBODY_TO_ASK if asks else None)
    assert (tmp_path / path).exists() is not asks
    if (tmp_path / path).exists():
        return
    (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
    (tmp_path / path).write_text("ours")
    change = {"path": path, "old_string": "ours", "new_string": "theirs"}
    assert box.call_sync("edit_file", change).code == ErrorCode.NOBODY_TO_ASK
    assert (tmp_path / path).read_text() == "ours"
