"""Approvals as a person at a terminal gives, lists and takes them back; and what is looked at again after the wait."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.command_line import toolcrib
from tests.test_cli_terminal import PROMPT, Pty

ONE = '- calls:\n    - {name: write_file, arguments: {path: b.txt, content: "one"}}\n- text: Done.\n'
TWO = (
    "- calls:\n    - {name: shell, arguments: {command: mkdir one}}\n"
    "- calls:\n    - {name: shell, arguments: {command: mkdir two three}}\n"
    "- calls:\n    - {name: shell, arguments: {command: rmdir one}}\n- text: Done.\n"
)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    for name in ("here", "there"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "one.yaml").write_text(ONE)
        (tmp_path / name / "two.yaml").write_text(TWO)
    return tmp_path


def asked(folder: Path, answer: str | None) -> str:
    """A run that wants to write: what was shown up to its end, the question answered if there has to be one."""
    run = Pty(folder, "run", "x", "-m", "scripted:one.yaml", "--autonomy", "supervised")
    seen = ""
    if answer is not None:
        seen = run.until(PROMPT)
        run.send(f"{answer}\n")
    seen += run.until("Done.")
    run.end()
    return seen


def approvals(*arguments: str) -> str:
    done = toolcrib(".", "approvals", *arguments)
    return done.stdout + done.stderr


@pytest.mark.promise("policy.md", "For how long is `lasting`")
@pytest.mark.parametrize(
    ("answer", "here", "there"), [("a", False, False), ("a project", True, False), ("a user 7d", True, True)]
)
def test_always_lasts_as_long_and_as_far_as_it_says(
    folder: Path, answer: str, here: bool, there: bool
) -> None:
    assert "rejected" not in asked(folder / "here", answer)
    for place, covered in (("here", here), ("there", there)):
        shown = asked(folder / place, None if covered else "n")
        assert ("rejected" in shown) is not covered
        assert "Run it?" not in shown or not covered


def test_what_lasts_is_listed_and_taken_back(folder: Path) -> None:
    assert "nothing is approved" in approvals("list")
    asked(folder / "here", "a project 8h")
    listed = approvals("list")
    assert "write_file" in listed and str(folder / "here") in listed and "until" in listed
    assert "by terminal" in listed
    (item,) = json.loads(approvals("list", "--json"))
    assert "b.txt" in item["shown"] and item["expires"] - item["at"] == pytest.approx(8 * 3600, abs=5)
    assert "revoked 1" in approvals("revoke", item["id"])
    assert "nothing is approved" in approvals("list")
    assert "rejected" in asked(folder / "here", "no, leave it")


@pytest.mark.promise(
    "policy.md",
    "No file in the workspace is an approval, and no file there is a rule until you trust it.",
)
@pytest.mark.promise("security.md", "The model can neither approve nor see what a person was shown.")
def test_what_is_written_to_a_project_approves_nothing(folder: Path) -> None:
    """An approval that lies in the folder, wherever a tool could have put it, is none."""
    asked(folder / "here", "a user")
    kept = (folder / "state/toolcrib/approvals.json").read_text()
    approvals("revoke", "all")
    for place in (".", ".toolcrib", "state/toolcrib", ".local/state/toolcrib"):
        (folder / "here" / place).mkdir(parents=True, exist_ok=True)
        (folder / "here" / place / "approvals.json").write_text(kept)
    assert "rejected" in asked(folder / "here", "n")


def test_a_file_that_changed_while_a_person_thought_is_shown_again(folder: Path) -> None:
    target = folder / "here" / "b.txt"
    target.write_text("before\n")
    run = Pty(folder / "here", "run", "x", "-m", "scripted:one.yaml", "--autonomy", "supervised")
    assert "-before" in run.until(PROMPT)
    target.write_text("between\n")
    run.send("y\n")
    assert "-between" in run.until(PROMPT)
    run.send("y\n")
    run.until("Done.")
    assert run.end() == 0 and target.read_text() == "one"


def test_a_prefix_covers_commands_that_begin_alike(folder: Path) -> None:
    run = Pty(folder / "here", "run", "x", "-m", "scripted:two.yaml", "--autonomy", "supervised", columns=200)
    assert "[p] always mkdir *" in run.until(PROMPT)
    run.send("p\n")
    between = run.until(PROMPT)  # and the third command begins otherwise
    assert "rmdir one" in between
    run.send("n\n")
    run.until("Done.")
    run.end()
    assert (folder / "here" / "two").is_dir() and (folder / "here" / "one").is_dir()
