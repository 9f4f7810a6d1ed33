"""What may hold secrets by its name is read by no door unasked: the same answer for a command and for a tool."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.sandbox_runs import backend
from toolcrib import Answer, Question, Toolbox, Verdict
from toolcrib.errors import ErrorCode
from toolcrib.rules import read_rules
from toolcrib.tools import Shell, Workspace, workspace_tools

SECRET = [".env", ".env.local", "deep/.env", "prod.env", "id_rsa", "a.pem", ".npmrc", "secrets.yaml"]
FREE = [".env.example", ".env.sample", "environment.ts", "notes.txt", "keys.py"]
CODES = {"read_only": ErrorCode.DENIED, "supervised": ErrorCode.NOBODY_TO_ASK, "full": None}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "deep").mkdir()
    for name in (*SECRET, *FREE):
        (tmp_path / name).write_text(f"TOKEN of {name}\n")
    (tmp_path / "harmless.txt").symlink_to(".env")
    return tmp_path


def box_in(folder: Path, autonomy: str, **named: object) -> Toolbox:
    workspace = Workspace(folder)
    tools = [tool for tool in workspace_tools(workspace) if not isinstance(tool, Shell)]
    shell = Shell(workspace, sandbox=backend("bubblewrap")(folder))
    options = named if "policy" in named else {"autonomy": autonomy, **named}
    return Toolbox([*tools, shell], **options)  # type: ignore[arg-type]


@pytest.mark.promise("policy.md", "`cat`, `read_file` and `grep` of such a file are treated alike")
@pytest.mark.parametrize("autonomy", CODES)
def test_both_doors_give_the_same_answer(folder: Path, autonomy: str) -> None:
    box = box_in(folder, autonomy)
    for name in SECRET:
        doors = {"shell": {"command": f"cat {name}"}, "read_file": {"path": name}}
        doors["grep"] = {"pattern": "TOKEN", "path": name}
        for tool, arguments in doors.items():
            assert box.call_sync(tool, arguments).code is CODES[autonomy], (tool, name)
    for name in FREE:
        assert "TOKEN" in box.call_sync("read_file", {"path": name}).text
        assert "TOKEN" in box.call_sync("shell", {"command": f"cat {name}"}).text
    assert box.call_sync("read_file", {"path": "harmless.txt"}).code is CODES[autonomy], "a link leads there"


@pytest.mark.promise("policy.md", "A `grep` of a folder leaves such files out and says how many")
@pytest.mark.parametrize("autonomy", ["supervised", "full"])
def test_a_search_leaves_their_contents_out_and_says_so(folder: Path, autonomy: str) -> None:
    said = box_in(folder, autonomy).call_sync("grep", {"pattern": "TOKEN", "limit": 1_000}).text
    assert all(f"TOKEN of {name}" in said for name in FREE)
    shown = [name for name in SECRET if f"TOKEN of {name}\n" in f"{said}\n"]
    assert (len(shown) == len(SECRET)) is (autonomy == "full")
    if autonomy == "supervised":
        assert shown == [] and "9 files that may hold secrets were not searched" in said
    names = box_in(folder, autonomy).call_sync("glob", {"pattern": "**/.env*"}).text
    assert ".env.local" in names, "names are no contents"
    assert ".env" in box_in(folder, autonomy).call_sync("list_dir", {}).text


def test_a_person_or_a_rule_opens_one(folder: Path) -> None:
    asked: list[str] = []

    async def approver(question: Question) -> Answer:
        asked.append(question.reason)
        return Answer(Verdict.YES)

    box = box_in(folder, "supervised", approver=approver)
    assert "TOKEN of .env" in box.call_sync("read_file", {"path": ".env"}).text
    assert "TOKEN of .env" in box.call_sync("grep", {"pattern": "TOKEN", "path": ".env"}).text
    assert asked == ["it reads .env, which may hold secrets"] * 2
    rules = read_rules('[[rule]]\nallow = true\ntool = "read_file"\npath = ".env"').policy("supervised")
    box = box_in(folder, "", policy=rules)
    assert "TOKEN of .env" in box.call_sync("read_file", {"path": ".env"}).text
    assert box.call_sync("read_file", {"path": ".npmrc"}).code is ErrorCode.NOBODY_TO_ASK
