"""How Codex's own tests read patches: the same here, or it is said why not."""

from __future__ import annotations

from typing import Any

from tests.cases import each
from tests.conformance.conftest import load_cases
from toolcrib.context import Context
from toolcrib.errors import ToolError
from toolcrib.tools import ApplyPatch, ApplyPatchParams
from toolcrib.tools.backends import MemoryBackend
from toolcrib.tools.patch_text import END, FilePatch, read_patch

DIFFERENT = {
    "heredoc_single_strict": "a patch in a here-document is taken in any case, as Codex's lenient mode takes it",
    "err_bad_after_lines": "a line whose first space was forgotten has to stand in the file, else nothing is changed",
    "err_empty_update_with_move": "a file may move without a change",
    "environment_id_twice": "there is one workspace, so a patch cannot name an environment: refused in other words",
}
# Commands such as `bash -lc "apply_patch <<EOF"` are judged and run as any other: patches come to the tool.
BY_COMMAND = "not intercepted in commands"


def told(patch: FilePatch) -> dict[str, Any]:
    """A file's patch as the cases write it."""
    if patch.kind != "update":
        return {"op": patch.kind, "path": patch.path} | (
            {"contents": patch.content} if patch.kind == "add" else {}
        )
    chunks = [
        {
            "context": " ".join(chunk.anchors) or None,
            "old": chunk.old,
            "new": [text for sign, text in chunk.lines if sign != "-"],
            "eof": chunk.at_end,
        }
        for chunk in patch.chunks
    ]
    return {"op": "update", "path": patch.path, "move_to": patch.to or None, "chunks": chunks}


def trimmed(hunks: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Without empty lines at the end of a chunk, which belong to nothing: here they fall away when it is placed."""
    for hunk in hunks:
        for chunk in hunk.get("chunks", ()):
            while chunk["old"] and chunk["new"] and not chunk["old"][-1] and not chunk["new"][-1]:
                chunk["old"], chunk["new"] = chunk["old"][:-1], chunk["new"][:-1]
            if chunk["eof"] and chunk["old"] == [""]:
                chunk["old"] = []
                chunk["new"] = [line for line in chunk["new"] if line]
    return hunks


def check(name: str, text: str, expected: dict[str, Any]) -> None:
    try:
        read = [told(patch) for patch in read_patch(text)]
    except ToolError:
        read = None
    if name in DIFFERENT:
        assert (read is None) == (name == "environment_id_twice"), name
    elif "error" in expected:
        assert read is None
    else:
        assert read is not None and trimmed(read) == trimmed(expected["hunks"])


@each("case", lambda: load_cases("cases/codex/apply_patch_parser.json"), ids=lambda case: case["name"])
def test_patches_are_read_as_recorded(case: dict[str, Any]) -> None:
    check(case["name"], case["input"]["patch"], case["expected"])


@each("case", lambda: load_cases("cases/codex/apply_patch_streaming.json"), ids=lambda case: case["name"])
def test_whole_patches_are_read_as_recorded_while_they_stream(case: dict[str, Any]) -> None:
    text = "".join(case["input"]["deltas"])
    expected = case["expected"].get("finish") or case["expected"]["after_each"][-1]
    if not case["input"]["finish"] and END not in text:
        text += END
    check(case["name"], text, expected)


@each("case", lambda: load_cases("cases/codex/apply_patch_seek.json"), ids=lambda case: case["name"])
def test_lines_are_found_as_recorded(case: dict[str, Any]) -> None:
    given = case["input"]
    files = MemoryBackend({"f": "\n".join(given["lines"]) + "\n"})
    removed = "\n".join(f"-{line}" for line in given["pattern"])
    patch = f"*** Begin Patch\n*** Update File: f\n@@\n{removed}\n*** End Patch"
    ApplyPatch(files).execute(ApplyPatchParams(patch=patch), Context())
    at, count = case["expected"], len(given["pattern"])
    left = [*given["lines"][:at], *given["lines"][at + count :]]
    assert files.read("f", 1_000).decode() == "".join(f"{line}\n" for line in left)


@each("case", lambda: load_cases("cases/codex/apply_patch_invocation.json"), ids=lambda case: case["name"])
def test_a_patch_is_the_argument_of_the_tool(case: dict[str, Any]) -> None:
    *words, last = case["input"]["argv"]
    if words in ([], ["apply_patch"]):  # without a verb it is the tool's argument all the same
        assert [told(patch) for patch in read_patch(last)] == [
            {"op": "add", "path": "foo", "contents": "hi\n"}
        ]
        return
    try:
        read = [told(patch) for patch in read_patch(last)]
    except ToolError:
        read = []
    # A whole command is no patch, except the bare here-document, which Codex takes too.
    assert read == (case["expected"].get("hunks", []) if last.startswith("apply_patch <<") else []), (
        BY_COMMAND
    )
