# ruff: noqa: ASYNC240 - files of the test's own
"""Paths as other systems allow and refuse them, given to the tools that read, list and search.

Only reading tools are tried on what lies outside: a hole would show, and harm nothing.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from tests.cases import each
from tests.conformance.conftest import load_cases
from toolcrib import Toolbox, ToolError
from toolcrib.result import ToolResult
from toolcrib.tools import Workspace, workspace_tools

CONFINED = "there is no switch that lets file tools out of their workspace: workspace_only is always true"
EMPTY = "an empty path names nothing; '.' is the workspace"
NO_HOME = "a workspace has no home folder: '~' lies outside"


def cases(relative: str) -> Any:
    found = load_cases(f"cases/{relative}")
    return each("case", found, ids=[c["name"] for c in found])


READERS = {
    "read_file": lambda path: {"path": path},
    "list_dir": lambda path: {"path": path},
    "glob": lambda path: {"pattern": "*", "path": path},
    "grep": lambda path: {"pattern": "root", "path": path},
}


async def read_by_all(root: Path, path: str, readable: list[Path]) -> dict[str, ToolResult]:
    box = Toolbox(builtin=workspace_tools(Workspace(root, readable=readable)), autonomy="full")
    return {name: await box.call(name, given(path)) for name, given in READERS.items()}


def moved(path: str, policy: dict[str, Any], tmp_path: Path) -> str:
    """A path below one of their roots, below the same root of ours."""
    roots = [policy.get("workspace_dir", "/workspace"), *policy.get("allowed_roots", [])]
    roots += policy.get("allowed_roots_read_only", [])
    inside = any(path == root or path.startswith(f"{root}/") for root in roots)
    return f"{tmp_path}{path}" if inside else path


@cases("zeroclaw/path_allowed.json")
async def test_which_paths_may_be_reached(case: dict[str, Any], tmp_path: Path) -> None:
    given, expected = case["input"], case["expected"]
    policy = given["policy"]
    root = tmp_path / policy.get("workspace_dir", "/workspace").lstrip("/")
    further = [*policy.get("allowed_roots", []), *policy.get("allowed_roots_read_only", [])]
    readable = [tmp_path / path.lstrip("/") for path in further]
    for folder in (root, *readable):
        folder.mkdir(parents=True, exist_ok=True)
    path = moved(given["path"], policy, tmp_path)
    try:
        target = Workspace(root, readable=readable).place(path)
    except ToolError:
        target = None
    below = policy.get("workspace_only", True) and given["path"].strip() and not given["path"].startswith("~")
    if expected["allowed"] and below:  # else CONFINED, EMPTY, NO_HOME
        assert target is not None
        file = Path(target.root.path, target.path)
        if not file.is_dir():
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text("root of it\n")
            results = await read_by_all(root, path, readable)
            assert "root of it" in results["read_file"].text and not results["grep"].is_error
    else:
        for name, result in (await read_by_all(root, path, readable)).items():
            # What is refused there for how it is written may be a name like others with us, of nothing that is there.
            if (
                not result.is_error and given["path"].strip()
            ):  # EMPTY: without a path a listing is the workspace's
                assert target is not None and Path(target.root.path, target.path).is_relative_to(root), name


KEPT_OUT = "what is not protected there, and lies beside the workspace, is out of reach here all the same"


@pytest.mark.parametrize(
    "case", [c for c in load_cases("cases/zeroclaw/path_fs_cases.json") if c["input"].get("check") == "runtime_config_path"],
    ids=lambda case: case["name"],
)  # fmt: skip
async def test_files_of_the_runtime(case: dict[str, Any], tmp_path: Path) -> None:
    """They lie beside the workspace, and no tool reaches them: not by name, not upwards, not to write."""
    given = case["input"]
    root, target = tmp_path / given["policy"]["workspace_dir"], tmp_path / given["path"]
    root.mkdir(parents=True, exist_ok=True)
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_text("before")
    box = Toolbox(builtin=workspace_tools(Workspace(root)), autonomy="full")
    inside = target.is_relative_to(root)
    assert not (case["expected"]["protected"] and inside)
    for path in (str(target), os.path.relpath(target, root)):
        await box.call("write_file", {"path": path, "content": "after"})
    assert target.read_text() == ("after" if inside else "before"), KEPT_OUT


@pytest.mark.parametrize(
    "case", [c for c in load_cases("cases/zeroclaw/path_fs_cases.json") if "contains" in c["expected"]],
    ids=lambda case: case["name"],
)  # fmt: skip
async def test_a_refusal_says_what_to_do(case: dict[str, Any], tmp_path: Path) -> None:
    """Theirs names a setting, which is the operator's; ours tells the model which paths there are."""
    box = Toolbox(builtin=workspace_tools(Workspace(tmp_path)), autonomy="full")
    result = await box.call("read_file", {"path": "/nowhere/at/all.txt"})
    assert result.is_error
    assert "outside the workspace" in result.text and "Use a path relative to the workspace" in result.text


@cases("zeroclaw/resolve_tool_path.json")
def test_where_a_path_leads(case: dict[str, Any], tmp_path: Path) -> None:
    given, expected = case["input"], case["expected"]
    ws = Workspace(tmp_path)
    path = given["path"].replace(given["workspace_dir"], str(tmp_path))
    try:
        found: str | None = f"{tmp_path}/{ws.place(path).shown}".removesuffix("/.")
    except ToolError:
        found = None  # NO_HOME, another drive, or outside
    if "resolved" in expected:
        wanted = expected["resolved"].replace(given["workspace_dir"], str(tmp_path))
        assert found == (wanted if wanted.startswith(str(tmp_path)) else None)
    elif "not" in expected:
        assert found is None or found != expected["not"]
    else:
        assert found is None


@cases("pi/path_resolution.json")
async def test_names_that_are_written_otherwise(case: dict[str, Any], tmp_path: Path) -> None:
    """Theirs opens the file that was probably meant; ours names it, and the model says that it meant it."""
    given, expected = case["input"], case["expected"]
    root = tmp_path / given.get("cwd", "/some/cwd").lstrip("/")
    root.mkdir(parents=True)
    box = Toolbox(builtin=workspace_tools(Workspace(root)), autonomy="full")
    if isinstance(expected, dict) or given["path"].startswith("~"):
        result = await box.call("read_file", {"path": given["path"]})
        assert result.is_error and "outside the workspace" in result.text  # NO_HOME
        return
    wanted = str(expected).replace(given.get("cwd", "\0"), str(root))
    for name in given.get("existing", [wanted]):
        file = root / name
        if file.is_relative_to(root):
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text("it is this one\n")
    path = given["path"].replace(given.get("cwd", "\0"), str(root)).removeprefix("@")
    result = await box.call("read_file", {"path": path})
    assert "it is this one" in result.text or (result.is_error and Path(wanted).name in result.text)
