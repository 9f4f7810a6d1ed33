"""Edits as other systems recorded them. Their words are not ours; what happens to the file is.

One difference of ours is a rule and not a list of names, `STRICTER`: where the text to replace does not
stand in the file, those systems try ever looser matches (similar lines, first and last line, other spacing
inside a line). We apply only what `toolcrib.tools.text_match` lists, refuse the rest, and leave the file as
it is: looser ones have replaced the wrong function.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from tests.conformance.conftest import load_cases
from toolcrib.context import Context
from toolcrib.errors import ToolError
from toolcrib.tools import EditFile, EditFileParams, Workspace
from toolcrib.tools.text_match import fold

STRICTER = "looser than a match of ours: refused, the file stays"

DIFFERENT = {
    "v2_external_absolute_path": "paths outside the workspace are refused, not asked for",
    "v2_changed_between_match_and_commit": "read and write are one step here; approval comes before both",
    "concurrent_edits_of_one_file": "tested with threads in test_tools_workspace",
}

FILES = ["cases/opencode/edit.json", "cases/pi/edit.json", "cases/goose/edit.json"]


def edit(root: Path, content: str, old: str, new: str, replace_all: bool) -> tuple[str, str, str]:
    """What the tool said, what it refused with, and the file afterwards."""
    (root / "f").write_bytes(content.encode())
    params = EditFileParams(path="f", old_string=old, new_string=new, replace_all=replace_all)
    said = refused = ""
    try:
        said = EditFile(Workspace(root)).execute(params, Context())
    except ToolError as problem:
        refused = problem.message
    return said, refused, (root / "f").read_bytes().decode()


def cases() -> list[Any]:
    return [
        pytest.param(case, id=f"{path.split('/')[1]}-{case['name']}")
        for path in FILES
        for case in load_cases(path)
        if case["name"] not in DIFFERENT and {"content", "old", "new"} <= set(case["input"])
    ]


@pytest.mark.parametrize("case", cases())
def test_recorded_edit(case: dict[str, Any], tmp_path: Path) -> None:
    given, expected = case["input"], case["expected"]
    said, refused, after = edit(
        tmp_path, given["content"], given["old"], given["new"], bool(given.get("replace_all"))
    )
    if any(key.startswith("error") for key in expected):
        assert refused, f"applied: {said}"
        assert after == given["content"]
        return
    if refused:
        assert is_looser(given["content"], given["old"]), refused
        assert after == given["content"]
        return
    assert after == expected["content"]


def is_looser(content: str, old: str) -> bool:
    plain = old.removeprefix("\ufeff").replace("\r\n", "\n")
    return fold(plain) not in fold(content.replace("\r\n", "\n"))


def replacement_cases() -> list[Any]:
    return [
        pytest.param(case, id=case["name"])
        for case in load_cases("cases/gemini-cli/edit_replacement.json")
        if case["input"].get("content") is not None
        and not case["input"].get("is_new_file")
        and "old" in case["input"]
    ]


@pytest.mark.parametrize("case", replacement_cases())
def test_recorded_replacement(case: dict[str, Any], tmp_path: Path) -> None:
    given, expected = case["input"], case["expected"]
    content, old = built(given["content"]), built(given["old"])
    # There, this function replaces every occurrence without being asked.
    every = given["api"] == "apply_replacement" or bool(given.get("allow_multiple"))
    _, refused, after = edit(tmp_path, content, old, given["new"], every)
    wanted = expected.get("content") if isinstance(expected, dict) else expected
    if isinstance(expected, dict) and expected.get("error_type"):
        assert refused and after == content
    elif refused:
        assert wanted in (content, "@unchanged", None) or is_looser(content, old), refused
        assert after == content
    elif wanted is not None:
        assert after == wanted


def built(text: str) -> str:
    """Some long texts are described: '@generate: 200 lines of 2000 x "a" joined by newline'."""
    if not text.startswith("@generate"):
        return text
    lines = re.search(r"(\d+) lines of (\d+) x \"(.)\"", text)
    if lines:
        return "\n".join([lines[3] * int(lines[2])] * int(lines[1]))
    piece = re.search(r"(\d+) x \"(.)\" followed by \"(.)\"", text)
    assert piece is not None, text
    return piece[2] * int(piece[1]) + piece[3]
