"""Reading and listing as other systems recorded them.

Left out as features that we do not have: blocks by indentation (codex), rules for .env files, approvals
for outside paths and instructions found on the way (opencode; policy is not a tool's work), end_line
(gemini-cli; ours are offset and limit), and pictures of other kinds than the four that models take.
"""

from __future__ import annotations

import base64
import re
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from tests.conformance.conftest import load_cases
from toolcrib.context import Context
from toolcrib.errors import ToolError
from toolcrib.result import ToolResult
from toolcrib.tools import ListDir, ListDirParams, ReadFile, ReadFileParams, Workspace

FILES = [
    "cases/codex/read_file.json",
    "cases/opencode/read.json",
    "cases/gemini-cli/read_file.json",
    "cases/goose/shell_read.json",
]
OTHER_FEATURES = {
    "indentation", "rules", "project", "files", "permission", "asks", "start_line", "end_line", "line_limit",
    "long_line_index", "api_render", "writes", "command", "jobs", "is_dir", "size",
}  # fmt: skip

DIFFERENT = {
    "binary_extension": "what a file is, its content says; a .wasm that holds text is text",
    "long_line": "a cut line says how much is missing and how to read on",
    "svg_over_1mb": "an SVG is text and paged like any other",
}


def content_of(given: dict[str, Any]) -> bytes | None:
    if "hex" in given:
        return bytes.fromhex(given["hex"])
    if "base64" in given:
        return base64.b64decode(given["base64"])
    text = given.get("content")
    if text is None:
        return None
    if text.startswith("hex:"):
        return bytes.fromhex(text[4:])
    # Described: "line0..line99 (100 lines)"
    span = re.fullmatch(r"(\w*?)(\d+)\.\.\1(\d+)(?: \(\d+ lines\))?", text)
    if span:
        text = "\n".join(f"{span[1]}{number}" for number in range(int(span[2]), int(span[3]) + 1))
    return str(text).encode()


def cases() -> list[Any]:
    return [
        pytest.param(path, case, id=f"{path.split('/')[1]}-{case['name']}")
        for path in FILES
        for case in load_cases(path)
        if case["name"] not in DIFFERENT
        and not OTHER_FEATURES & set(case["input"])
        and case["input"].get("api", "read") == "read"
        and content_of(case["input"]) is not None
    ]


@pytest.mark.parametrize(("path", "case"), cases())
def test_recorded_read(path: str, case: dict[str, Any], tmp_path: Path) -> None:
    given, expected = case["input"], case["expected"]
    name = given.get("name") or "file.txt"
    data = content_of(given)
    assert data is not None
    (tmp_path / name).write_bytes(data)
    named = {"offset": given.get("offset") or given.get("line"), "limit": given.get("limit")}
    params = {key: value for key, value in named.items() if value is not None}
    tool = ReadFile(Workspace(tmp_path))
    numbered = path.startswith(("cases/codex", "cases/opencode"))

    def read() -> str | ToolResult:
        asked = ReadFileParams(path=name, line_numbers=numbered, **params)
        return tool.execute(asked, Context())

    facts = expected if isinstance(expected, dict) else {}
    if any(key.startswith(("error", "param_error")) for key in facts) or facts.get("binary") is True:
        with pytest.raises((ToolError, ValidationError)):
            read()
        return
    got = read()
    if facts.get("attachments") or facts.get("inline_mime"):
        assert isinstance(got, ToolResult) and len(got.parts) == 2
        return
    assert isinstance(got, str)
    check_text(got, expected, data)


def check_text(got: str, expected: Any, data: bytes) -> None:
    body = "" if got.startswith("[") else got.split("\n\n[")[0]
    if isinstance(expected, list):
        assert body.splitlines() == [line.removeprefix("L") for line in expected]
    elif isinstance(expected, str):
        assert body == expected.rstrip("\n")
    else:
        if "text" in expected:
            assert body == expected["text"]
        for text in expected.get("output_contains", ()):
            # Ours says nothing at the end of a file that was read whole.
            words = text.replace("Showing lines", "Lines")
            assert words in got or words == "End of file"
        for text in expected.get("output_not_contains", ()):
            assert text not in body
        if "truncated" in expected:
            assert ("to read on" in got) == expected["truncated"]


def listing_cases() -> list[Any]:
    return [pytest.param(case, id=case["name"]) for case in load_cases("cases/codex/list_dir.json")]


@pytest.mark.parametrize("case", listing_cases())
def test_recorded_listing(case: dict[str, Any], tmp_path: Path) -> None:
    given, expected = case["input"], case["expected"]
    for entry in given["tree"]:
        name = entry if isinstance(entry, str) else entry["path"]
        target = tmp_path / name.split(" -> ")[0]
        target.parent.mkdir(parents=True, exist_ok=True)
        if name.endswith("/"):
            target.mkdir(exist_ok=True)
        elif " -> " in name:
            target.symlink_to(name.split(" -> ")[1])
        else:
            target.write_text("")
    tool = ListDir(Workspace(tmp_path))
    named = {key: given[key] for key in ("offset", "limit", "depth") if given.get(key) is not None}
    if isinstance(expected, dict) and "error" in expected:
        with pytest.raises((ToolError, ValidationError)):
            tool.execute(ListDirParams(**named), Context())
        return
    got = tool.execute(ListDirParams(**named), Context())
    body, _, note = got.partition("\n\n[")
    more = [line for line in expected if line.startswith("More than")]
    names = [
        line.split(" -> ")[0].removesuffix("  0 B") for line in body.splitlines()
    ]  # others show no sizes
    assert names == [entry for entry in expected if entry not in more]
    assert ("to read on" in note) == bool(more)


def test_recorded_listings_of_nothing_and_of_files(tmp_path: Path) -> None:
    known = {case["name"]: case for case in load_cases("cases/gemini-cli/ls.json")}
    tool = ListDir(Workspace(tmp_path))
    if "empty" in known:
        assert "is empty" in tool.execute(ListDirParams(), Context())
    (tmp_path / "file1.txt").write_text("")
    with pytest.raises(ToolError, match="is a file, not a folder"):
        tool.execute(ListDirParams(path="file1.txt"), Context())
    with pytest.raises(ToolError, match="There is no folder"):
        tool.execute(ListDirParams(path="does-not-exist"), Context())


def pi_cases() -> list[Any]:
    return [
        pytest.param(case, id=case["name"])
        for case in load_cases("cases/pi/tools.json")
        if case["input"].get("tool") == "read"
    ]


@pytest.mark.parametrize("case", pi_cases())
def test_recorded_pages(case: dict[str, Any], tmp_path: Path) -> None:
    given, expected = case["input"], case["expected"]
    described = re.match(r"(\d+) lines of \"(.*?)N: \" \+ (\d+) x", given.get("content", ""))
    joined = re.fullmatch(r"(.*?)(\d+)\.\.\1(\d+) joined by newline", given.get("lines", ""))
    name = given.get("name", "file.txt")
    if described:
        count, prefix, width = int(described[1]), described[2], int(described[3])
        data = "\n".join(f"{prefix}{n}: {'x' * width}" for n in range(1, count + 1)).encode()
    elif joined:
        data = "\n".join(f"{joined[1]}{n}" for n in range(int(joined[2]), int(joined[3]) + 1)).encode()
    else:
        data = content_of(given) or b""
    if "content" in given or "lines" in given or "base64" in given:
        (tmp_path / name).write_bytes(data)
    named = {key: given[key] for key in ("offset", "limit") if key in given}
    tool = ReadFile(Workspace(tmp_path))
    if any(key.startswith("error") for key in expected):
        with pytest.raises(ToolError):
            tool.execute(ReadFileParams(path=name, **named), Context())
        return
    got = tool.execute(ReadFileParams(path=name, **named), Context())
    if "image_mime" in expected:
        assert isinstance(got, ToolResult)
        assert got.parts[1].media_type == expected["image_mime"]  # type: ignore[union-attr]
        return
    assert isinstance(got, str)
    for text in (expected.get("text_contains"), *expected.get("contains", ())):
        # Notes are in our words; the number to go on with is the same.
        number = re.search(r"offset=\d+", text or "")
        assert (number[0] if number else text or "") in got
    for text in expected.get("not_contains", ()):
        assert text not in got.splitlines() and (not text.startswith("Use ") or text not in got)
    if "matches" in expected:
        assert re.search(r"Lines 1-\d+ of 500; \d+ more\. Use offset=\d+", got)
