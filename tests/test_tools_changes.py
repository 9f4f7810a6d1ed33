"""Tools that change several files, or move and delete them: all that was asked for, or nothing."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tests.cases import each
from toolcrib.context import Context
from toolcrib.errors import ToolError
from toolcrib.tools import (
    ApplyPatch,
    ApplyPatchParams,
    DeleteFile,
    DeleteFileParams,
    FreeformApplyPatch,
    MoveFile,
    MoveFileParams,
    MultiEdit,
    MultiEditParams,
    NativeApplyPatch,
    Workspace,
    edit_tools,
    prefers_patches,
)
from toolcrib.tools.backends import MemoryBackend, Write
from toolcrib.tools.line_address import address_of

CTX: Context[None] = Context()


def edits(*rows: tuple[str, str, str] | tuple[str, str, str, str]) -> MultiEditParams:
    names = ("path", "old_string", "new_string", "at")
    return MultiEditParams.model_validate({"edits": [dict(zip(names, row, strict=False)) for row in rows]})


def test_edits_of_several_files_are_made_together() -> None:
    files = MemoryBackend({"a.py": "def old():\n    pass\n", "b.py": "old()\nold()\n"})
    at = address_of(2, "old()")
    said = MultiEdit(files).execute(
        edits(
            ("a.py", "def old", "def new"),
            ("b.py", "old()\nold()", "import x\nold()\nold()"),
            ("b.py", "old()", "new()", at),
            ("a.py", "def new():", "def new() -> None:"),
        ),
        CTX,
    )
    assert files.read("a.py", 100) == b"def new() -> None:\n    pass\n"
    assert files.read("b.py", 100) == b"import x\nold()\nnew()\n"
    assert said.count("Edited a.py at line 1") == 2


def test_no_edit_is_made_if_one_cannot_be() -> None:
    files = MemoryBackend({"a": "one\n", "b": "two\n"})
    tool, params = MultiEdit(files), edits(("a", "one", "1"), ("b", "two", "2"), ("b", "three", "3"))
    with pytest.raises(ToolError, match=r"No edit was made\. Edit 2 of 2: old_string was not found in b"):
        tool.execute(params, CTX)
    assert (files.read("a", 9), files.read("b", 9)) == (b"one\n", b"two\n")
    assert "It would fail" in tool.preview(params).text
    assert "-one\n+1" in tool.preview(edits(("a", "one", "1"))).text
    assert "Edit 1 of 1: old_string and new_string are identical" in str(
        tool.precheck(edits(("a", "x", "x")))
    )
    strict = MultiEdit(MemoryBackend({"a.py": "x = 1\n"}), refuse_broken_syntax=True)
    with pytest.raises(ToolError, match=r"syntax of a\.py, line 1"):
        strict.execute(edits(("a.py", "1", "(1")), CTX)


def test_what_is_not_there_says_that_nothing_was_changed() -> None:
    files = MemoryBackend({"a": "one\n"})
    edits = [{"path": path, "old_string": "one", "new_string": "two"} for path in ("a", "gone")]
    with pytest.raises(ToolError, match=r"No edit was made\. There is no file gone\."):
        MultiEdit(files).execute(MultiEditParams.model_validate({"edits": edits}), Context())
    patch = "*** Begin Patch\n*** Delete File: a\n*** Update File: gone\n@@\n-a\n+b\n*** End Patch"
    with pytest.raises(ToolError, match=r"There is no file gone\. Nothing was changed\."):
        ApplyPatch(files).execute(ApplyPatchParams(patch=patch), Context())
    assert files.read("a", 9) == b"one\n"


def test_files_are_moved_and_deleted() -> None:
    files = MemoryBackend({"a": "one\n", "b": "two\n"})
    move = MoveFile(files)
    assert move.execute(MoveFileParams(path="a", to="c/d"), CTX) == "Moved a to c/d."
    with pytest.raises(ToolError, match="exists already"):
        move.execute(MoveFileParams(path="c/d", to="b"), CTX)
    assert "names a folder" in str(move.precheck(MoveFileParams(path="b", to="c/")))
    assert [str(one) for one in move.accesses(MoveFileParams(path="b", to="e"))] == [
        "read b",
        "delete b",
        "write e",
    ]
    delete = DeleteFile(files)
    assert delete.preview(DeleteFileParams(path="b")).text == "delete b (4 bytes)"
    assert delete.execute(DeleteFileParams(path="b"), CTX) == "Deleted b."
    for path, words in {"b": "There is no file b", "c": "is a folder"}.items():
        with pytest.raises(ToolError, match=words):
            delete.execute(DeleteFileParams(path=path), CTX)
    assert files.below(".") and files.read("c/d", 9) == b"one\n"


@pytest.mark.parametrize(
    ("model", "patches"),
    [
        ("gpt-5.1-codex", True),
        ("gpt-5", True),
        ("openai/gpt-4.1", True),
        ("o4-mini", True),
        ("gpt-5-nano", False),
        ("gpt-oss-120b", False),
        ("gpt-4o", False),
        ("claude-opus-4-6", False),
        ("gemini-3-flash", False),
        ("deepseek-v3.2", False),
    ],
)
def test_patches_are_offered_to_models_that_were_trained_on_them(model: str, patches: bool) -> None:
    assert prefers_patches(model) is patches
    names = [type(tool).__name__ for tool in edit_tools(MemoryBackend(), model)]
    assert names == (["ApplyPatch"] if patches else ["EditFile", "MultiEdit"])


@pytest.mark.parametrize(
    ("model", "form"),
    [
        ("openai:gpt-5.1", NativeApplyPatch),
        ("openai:gpt-5.2-codex", NativeApplyPatch),
        ("openai:gpt-5-mini", FreeformApplyPatch),
        ("openai:gpt-5-codex", FreeformApplyPatch),
        ("openai:gpt-4.1", ApplyPatch),
        ("openrouter:openai/gpt-5.1", ApplyPatch),
        ("azure:gpt-5.1", ApplyPatch),
    ],
)
def test_openais_models_get_the_form_of_patches_that_they_have(model: str, form: type[ApplyPatch]) -> None:
    (tool,) = edit_tools(MemoryBackend(), model)
    assert type(tool) is form
    assert type(edit_tools(MemoryBackend(), model, patches=False)[0]) is not form


PATCHES = {  # a patch without its frame, and what a person sees of what it moves and replaces
    "moved": ("*** Update File: a\n*** Move to: c\n@@\n-one\n+1\n", ["M c (moved from a)", "-one\n+1\n"]),
    "moved onto a file": (
        "*** Update File: a\n*** Move to: b\n@@\n-one\n+1\n",
        ["M b (replaces the file there)", "-precious\n+1\n", "D a", "-one\n"],
    ),
    "added in the place of a file": (
        "*** Add File: b\n+new\n",
        ["A b (replaces the file there)", "-precious\n+new\n"],
    ),
    "added in the place of a binary file": (
        "*** Add File: bin\n+new\n",
        ["A bin (replaces the file there)", "It was a binary file of 256 bytes.", "+new\n"],
    ),
    "added in the place of a file of another encoding": (
        "*** Add File: wide\n+one\n",
        [
            "A wide (replaces the file there)",
            "It was encoded as UTF-16-LE with a byte order mark, and becomes UTF-8.",
        ],
    ),
    "moved onto a file of another encoding": (
        "*** Update File: wide\n*** Move to: b\n@@\n-one\n+1\n",
        [
            "M b (replaces the file there)",
            "It was encoded as UTF-8, and becomes UTF-16-LE with a byte order mark.",
        ],
    ),
    "added as it is there": (
        "*** Add File: b\n+precious\n",
        ["A b (replaces the file there)", "It stays as it is."],
    ),
    "of another encoding": ("*** Delete File: wide\n", ["D wide", "-one\n"]),
    "behind a link": ("*** Update File: link\n@@\n-precious\n+2\n", ["M link -> b", "-precious\n+2\n"]),
}


@pytest.mark.skipif(sys.platform == "win32", reason="links of POSIX")
@each("patch", PATCHES.values(), PATCHES.keys())
def test_a_person_sees_what_a_patch_moves_and_replaces(tmp_path: Path, patch: tuple[str, list[str]]) -> None:
    (tmp_path / "a").write_text("one\n")
    (tmp_path / "b").write_text("precious\n")
    (tmp_path / "bin").write_bytes(bytes(range(256)))
    (tmp_path / "wide").write_text("one\n", encoding="utf-16")
    (tmp_path / "link").symlink_to("b")
    text, shown = patch
    preview = ApplyPatch(Workspace(tmp_path)).preview(
        ApplyPatchParams(patch=f"*** Begin Patch\n{text}*** End Patch")
    )
    for part in shown:
        assert part in preview.text


def test_a_yes_to_a_move_onto_a_file_is_of_that_file() -> None:
    files = MemoryBackend({"a": "one\n", "b": "two\n"})
    params = ApplyPatchParams(
        patch="*** Begin Patch\n*** Update File: a\n*** Move to: b\n@@\n-one\n+1\n*** End Patch"
    )
    before = ApplyPatch(files).preview(params).digest
    files.apply([Write("b", b"precious\n")])
    assert ApplyPatch(files).preview(params).digest != before
