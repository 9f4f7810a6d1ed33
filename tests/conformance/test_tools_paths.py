"""Paths as other systems recorded them: what may be reached and what may not.

Left out as not a workspace's work: lists of forbidden paths and further roots to write to, files of a
runtime's own (zeroclaw's `runtime_config_path`), paths in command lines (`shell_paths`, a later shell
policy), the texts of their refusals.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.conformance.conftest import load_cases
from toolcrib.errors import ToolError
from toolcrib.tools import Workspace
from toolcrib.tools.backends import Write

DIFFERENT = {
    "posix_devices": "devices are not files; a shell command can read them",
    "workspace_only_false": "there is no switch that lets tools out of their workspace",
    "symlink_to_extra_with_root": "a link that leads out of the workspace is refused, wherever it leads to",
}


def is_different(name: str) -> bool:
    return name.startswith(tuple(DIFFERENT))


def build(root: Path, tree: dict[str, Any]) -> None:
    for name, content in tree.items():
        target = root / name
        target.parent.mkdir(parents=True, exist_ok=True)
        if name.endswith("/") or content == "dir":
            target.mkdir(exist_ok=True)
        elif content.startswith("-> "):
            if not target.is_symlink():
                target.symlink_to(content[3:])
        else:
            target.write_text(content)


def fs_cases() -> list[Any]:
    return [
        pytest.param(case, id=case["name"])
        for case in load_cases("cases/zeroclaw/path_fs_cases.json")
        if case["input"].get("check") in ("write", "read") and not is_different(case["name"])
    ]


@pytest.mark.parametrize("portable", [False, True])
@pytest.mark.parametrize("case", fs_cases())
def test_recorded_access(case: dict[str, Any], portable: bool, tmp_path: Path) -> None:
    given, expected = case["input"], case["expected"]
    policy = given["policy"]
    build(tmp_path, given.get("tree", {}))
    (tmp_path / policy["workspace_dir"]).mkdir(parents=True, exist_ok=True)
    roots = [tmp_path / root for key in policy if key.startswith("allowed_roots") for root in policy[key]]
    ws = Workspace(tmp_path / policy["workspace_dir"], readable=roots, portable=portable)
    path = given["path"] if given["path"].startswith(("/", "$", "~")) else str(tmp_path / given["path"])
    try:
        if given["check"] == "write":
            ws.apply([Write(path, b"written")])
        else:
            ws.read(path, 1_000)
        reached = True
    except ToolError:
        reached = False
    if reached:
        assert expected["allowed"]
    elif expected["allowed"]:
        # What they allow and we do not: writing to further roots, and opening a folder as a file.
        assert roots or (tmp_path / given["path"]).is_dir()


@pytest.mark.parametrize(
    "case", [pytest.param(c, id=c["name"]) for c in load_cases("cases/zeroclaw/path_resolved_allowed.json")]
)
def test_recorded_resolved_path(case: dict[str, Any], tmp_path: Path) -> None:
    root = tmp_path / "home" / "user" / "project"
    root.mkdir(parents=True)
    if case["input"]["policy"]["workspace_dir"] != "/home/user/project":
        pytest.skip("another root")
    path = case["input"]["resolved_path"]
    ws = Workspace(root)
    inside = path.startswith("/home/")
    try:
        ws.place(str(tmp_path) + path if inside else path)
        allowed = True
    except ToolError:
        allowed = False
    assert allowed == case["expected"]["allowed"]


VIRTUAL = {
    "absolute": "paths from / are the host's and lie outside, unless they begin with the workspace's root",
    "backslash": "a backslash is part of a name, as it is for the system",
    "..": "resolved in the text; refused where it leads out",
}


@pytest.mark.parametrize(
    "case", [pytest.param(c, id=c["name"]) for c in load_cases("cases/deepagents/virtual_path.json")]
)
def test_recorded_virtual_path(case: dict[str, Any], tmp_path: Path) -> None:
    given, expected = case["input"]["path"], case["expected"]
    if "allowed_prefixes" in case["input"]:
        pytest.skip("prefixes are a policy")
    ws = Workspace(tmp_path)
    try:
        shown = "/" + ws.place(given.lstrip("/") or ".").shown.removeprefix(".")
    except ToolError:
        shown = None
    if isinstance(expected, dict):
        assert shown is None or (".." in given and ".." not in shown.split("/")), shown
    elif "\\" in given:
        assert shown == "/" + given.lstrip("/")
    else:
        assert shown is not None and shown.rstrip("/") == expected.rstrip("/")


def test_recorded_tool_paths(tmp_path: Path) -> None:
    for case in load_cases("cases/zeroclaw/resolve_tool_path.json"):
        given = case["input"]
        if given.get("workspace_dir") != "/workspace":
            continue
        ws = Workspace(tmp_path)
        path = given["path"].replace("/workspace", str(tmp_path))
        if path.startswith("~"):
            with pytest.raises(ToolError):
                ws.place(path)  # there is no home in a workspace
        elif "resolved" in case["expected"]:
            try:
                got = f"/workspace/{ws.place(path).shown}"
            except ToolError:
                got = path  # outside
            assert got == case["expected"]["resolved"], case["name"]
