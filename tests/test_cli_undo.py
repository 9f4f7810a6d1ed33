"""`toolcrib undo` after runs of a scripted model: what a person types and sees."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.command_line import toolcrib

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="commands need a sandbox, or none")

WORK = """
- calls:
    - {name: write_file, arguments: {path: a.txt, content: "two\\n"}}
- calls:
    - {name: shell, arguments: {command: "rm keep.txt; mkdir d; echo x > d/x"}}
- text: Done.
"""
BACKGROUND = """
- calls:
    - {name: shell, arguments: {command: "sleep 0.3; echo late > late.txt; sleep 60", run_in_background: true}}
- calls:
    - {name: shell, arguments: {command: "while ! test -s late.txt; do sleep 0.05; done"}}
- text: Done.
"""


class Home:
    """A folder of a person with files, and an environment of its own."""

    def __init__(self, place: Path) -> None:
        self.root = place / "work"
        self.root.mkdir()
        self.env = {"HOME": str(place), "PATH": os.environ["PATH"]}
        (self.root / "a.txt").write_text("one\n")
        (self.root / "keep.txt").write_text("keep\n")
        (place / "work.yaml").write_text(WORK)
        (place / "background.yaml").write_text(BACKGROUND)

    def __call__(self, *arguments: str, folder: Path | None = None) -> subprocess.CompletedProcess[str]:
        return toolcrib(folder or self.root, *arguments, env=self.env)

    def run(self, *arguments: str, script: str = "work") -> subprocess.CompletedProcess[str]:
        return self("run", "x", "-m", f"scripted:../{script}.yaml", "--autonomy", "full", *arguments)


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home(tmp_path)


def files(root: Path) -> dict[str, str]:
    return {str(path.relative_to(root)): path.read_text() for path in root.rglob("*") if path.is_file()}


@pytest.mark.promise("undo.md", "Whatever a run did to the files of its folder can be taken back")
@pytest.mark.promise("security.md", "What a run did to the files of its folder can be taken back")
def test_a_run_is_undone_and_redone(home: Home) -> None:
    before = files(home.root)
    said = home.run()
    assert said.stderr.splitlines()[-1] == "3 files and 1 folder changed; `toolcrib undo` puts them back"
    after = files(home.root)
    preview = home("undo", "--preview", "--diff")
    data = json.loads(home("undo", "--preview", "--diff", "--json").stdout)
    changes = {change["path"]: change for change in data["changes"]}
    assert (data["preview"], data["to"], data["checkpoint"], data["kept"]) == (True, 1, None, {})
    assert changes["keep.txt"] | {"diff": ""} == {
        "path": "keep.txt", "what": "made again", "from": None, "to": "file", "diff": ""
    }  # fmt: skip
    assert "+keep" in changes["keep.txt"]["diff"] and changes["d"]["from"] == "folder"
    assert files(home.root) == after
    for line in ("put back    a.txt  +1 -1", "-two", "+one", "made again  keep.txt  +1", "removed     d/"):
        assert line in preview.stdout
    undone = home("undo")
    assert undone.returncode == 0
    assert "went back to checkpoint 1 (turn 1: write_file, just now)" in undone.stdout
    assert files(home.root) == before
    assert not (home.root / "d").exists()
    assert home("undo", "--redo").returncode == 0
    assert files(home.root) == after
    listed = home("undo", "--list").stdout
    data = json.loads(home("undo", "--list", "--json").stdout)
    assert [(one["label"], one["changed_then"], one["changed_by"]) for one in data][-2:] == [
        ("turn 2: shell", 3, "run"), ("turn 1: write_file", 1, "run")
    ]  # fmt: skip
    assert "turn 2: shell: 3 paths changed then" in listed
    number = next(line.split()[0] for line in listed.splitlines() if "turn 2: shell" in line)
    home("undo", "--to", number)
    assert files(home.root) == {"a.txt": "two\n", "keep.txt": "keep\n"}


@pytest.mark.promise("undo.md", "what commands, their children and background processes did")
@pytest.mark.promise("security.md", "also what commands and background processes did")
def test_what_background_processes_did_is_undone(home: Home) -> None:
    before = files(home.root)
    said = home.run(script="background")
    assert said.returncode == 0, said
    assert files(home.root) != before
    assert home("undo").returncode == 0
    assert files(home.root) == before


@pytest.mark.promise("undo.md", "`--diff` does not show the content of files that may hold secrets")
def test_an_ignored_env_file_comes_back_and_is_not_shown(home: Home) -> None:
    (home.root / ".gitignore").write_text(".env\n")
    (home.root / ".env").write_text("API_KEY=zyxwvut\n")
    script = "- calls:\n    - {name: shell, arguments: {command: 'rm .env'}}\n- text: Done.\n"
    (home.root.parent / "env.yaml").write_text(script)
    assert home.run(script="env").returncode == 0
    for said in (home("undo", "--preview", "--diff"), home("undo", "--preview", "--diff", "--json")):
        assert "not shown: it may hold secrets" in said.stdout and "zyxwvut" not in said.stdout
    assert "made again  .env  +1" in home("undo").stdout
    assert files(home.root)[".env"] == "API_KEY=zyxwvut\n"


def test_what_a_person_changed_after_the_run_is_kept_and_named(home: Home) -> None:
    home.run()
    (home.root / "a.txt").write_text("mine\n")
    undone = home("undo")
    assert files(home.root) == {"a.txt": "mine\n", "keep.txt": "keep\n"}
    assert "stays as it is: a.txt: it was changed by someone else than the run since then" in undone.stdout


def test_the_conversation_goes_back_too(home: Home) -> None:
    home.run("--transcript", "../t.jsonl")
    assert home("undo", "--conversation", "../then.jsonl").returncode == 0
    lines = [json.loads(line) for line in (home.root.parent / "then.jsonl").read_text().splitlines()]
    assert [line["message"]["role"] for line in lines if "message" in line] == ["system", "user"]
    on = home(
        "run", "Go on.", "-m", "scripted:../work.yaml", "--continue", "../then.jsonl", "--autonomy", "full"
    )
    assert on.returncode == 0


def test_what_cannot_be_done_is_said(home: Home) -> None:
    nothing = home("undo")
    assert (nothing.returncode, nothing.stderr) == (
        1,
        "toolcrib: there is no checkpoint of this folder yet\n",
    )
    listed = home("undo", "--list")
    assert (listed.returncode, listed.stderr) == (
        0,
        "there is no checkpoint of this folder yet: toolcrib run takes them\n",
    )
    assert home("undo", "--list", "--json").stdout == "[]\n"
    quiet = home.run("--no-checkpoints")
    assert "undo" not in quiet.stderr
    assert home("undo").returncode == 1
    home.run()
    assert home("undo", "--redo").stderr.startswith("toolcrib: there is nothing to redo")
    assert "there is no checkpoint 99; there are 1 to" in home("undo", "--to", "99").stderr
    assert home("undo", "--to", "1", "--redo").returncode == 2
    assert home("undo", "--list", "--redo").returncode == 2
    assert home("undo", "--workspace", "/nowhere").returncode == 2
    assert "without --transcript" in home("undo", "--to", "1", "--conversation", "../then.jsonl").stderr
    whole = home("run", "x", "-m", "scripted:work.yaml", "--autonomy", "full", folder=home.root.parent)
    assert "note: without checkpoints, so that this run cannot be undone" in whole.stderr
    assert whole.returncode == 0
