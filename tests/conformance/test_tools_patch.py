"""Patches as Codex's own tests record them: the files afterwards are the same, or it is said here why not."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.cases import each
from tests.conformance.conftest import load_cases
from toolcrib import Toolbox
from toolcrib.call import ToolCall
from toolcrib.codecs.openai_responses import OpenAIResponsesCodec
from toolcrib.context import Context
from toolcrib.errors import ToolError
from toolcrib.messages import Message, Request, ResultPart
from toolcrib.tools import ApplyPatch, ApplyPatchParams, FreeformApplyPatch, NativeApplyPatch
from toolcrib.tools.backends import MemoryBackend

DIFFERENT = {
    "cli_partial_failure": "nothing is changed if one file cannot be: created.txt does not stay",
    "lib_failed_move_source_dir_readonly": "rights of folders are tested with a workspace, not here",
    "lib_write_error_readonly_dir": "rights of folders are tested with a workspace, not here",
    "014_update_file_appends_trailing_newline": "whether a file ends in a line break stays as it was",
    "cli_no_trailing_newline": "whether a file ends in a line break stays as it was",
}


def content(text: str) -> bytes:
    return bytes.fromhex(text[4:]) if text.startswith("hex:") else text.encode()


@each("case", lambda: load_cases("cases/codex/apply_patch_scenarios.json"), ids=lambda case: case["name"])
def test_a_recorded_patch_gives_the_recorded_files(case: dict[str, Any]) -> None:
    if case["name"] in DIFFERENT:
        return
    given, expected = case["input"], case["expected"]
    files = MemoryBackend({path: content(text) for path, text in given["files"].items()})
    try:
        ApplyPatch(files).execute(ApplyPatchParams(patch=given["patch"]), Context())
        made = True
    except ToolError:
        made = False
    assert made == expected["ok"]
    after = {path: files.read(path, 10_000) for path, _ in files.below(".")}
    assert after == {path: content(text) for path, text in expected["files"].items()}


@pytest.mark.parametrize(
    ("before", "patch", "after"),
    [
        ("a\nb", "@@\n b\n+c", "a\nb\nc"),
        ("a\nb", "@@\n-b\n+c", "a\nc"),
        ("a\r\nb\r\nc\r\n", "@@\n a\n-b\n+x\n+y\n c", "a\r\nx\r\ny\r\nc\r\n"),
        ("def f():\n    a\n    b\n", "@@ def f():\n-  a\n+  c\n   b", "def f():\n    c\n    b\n"),
        ("x “q”  \nold\n", '@@\n x "q"\n-old\n+new', "x “q”  \nnew\n"),
        ("f:\n a\ng:\n a\n", "@@ g:\n- a\n+ b", "f:\n a\ng:\n b\n"),
        ("\ufeffa\n", "@@\n-a\n+b", "\ufeffb\n"),
        ("", "@@\n+a", "a\n"),
    ],
)
def test_what_stands_around_the_changed_lines_is_not_touched(before: str, patch: str, after: str) -> None:
    files = MemoryBackend({"f": before})
    text = f"*** Begin Patch\n*** Update File: f\n{patch}\n*** End Patch"
    ApplyPatch(files).execute(ApplyPatchParams(patch=text), Context())
    assert files.read("f", 1_000).decode() == after


@pytest.mark.parametrize(
    ("patch", "words"),
    [
        ("bad", "first line of the patch must be"),
        ("*** Begin Patch\n*** Update File: f\n@@\n-a\n+b", "last line of the patch must be"),
        (
            "*** Begin Patch\n*** Update File: f\n@@\n-a\n+b\n*** End Patch",
            r"2 places of f:\n  1:\w\w\| a\n  3:",
        ),
        ("*** Begin Patch\n*** Update File: f\n@@ q\n-a\n+b\n*** End Patch", "'q' after @@ was not found"),
        ("*** Begin Patch\n*** Update File: f\n@@\n-A\n+b\n*** End Patch", "Nearest, from line"),
        ("*** Begin Patch\n*** Update File: f\n*** End Patch", "changes nothing in it"),
        ("*** Begin Patch\n*** Add File: g\nx\n*** End Patch", r"Line 3 .*must begin with \+"),
        (
            "*** Begin Patch\n*** Add File: new\n+x\n*** Delete File: gone\n*** End Patch",
            "There is no file gone",
        ),
    ],
)
def test_a_patch_that_is_wrong_changes_nothing_and_says_where(patch: str, words: str) -> None:
    files = MemoryBackend({"f": "a\nb\na\n"})
    with pytest.raises(ToolError, match=words):
        ApplyPatch(files).execute(ApplyPatchParams(patch=patch), Context())
    assert [path for path, _ in files.below(".")] == ["f"]


@pytest.mark.parametrize(
    ("before", "patch", "words"),
    [
        # The line after @@ stands in two places, each with the lines below it.
        ("f:\n a\nf:\n a\n", "@@ f:\n- a\n+ b", r"2 places of f:\n  2:\w\w\|  a\n  4:"),
        (
            "f:\n a\nf:\n b\n",
            "@@ f:\n+ c",
            r"The line after @@ stands in 2 places of f:\n  1:\w\w\| f:\n  3:",
        ),
        # Nearly the lines after the chunk above, and just so before it.
        ("  a\nb\n    a\n", "@@\n b\n@@\n-  a\n+  x", r"Chunk 2 of 2: .* 2 places of f:\n  1:"),
        # Without blank lines in two places.
        ("a\n\nb\na\n\nb\n", "@@\n a\n-b\n+x", "were not found"),
    ],
)
def test_a_patch_with_several_places_changes_nothing_and_names_them(
    before: str, patch: str, words: str
) -> None:
    files = MemoryBackend({"f": before})
    text = f"*** Begin Patch\n*** Update File: f\n{patch}\n*** End Patch"
    with pytest.raises(ToolError, match=words):
        ApplyPatch(files).execute(ApplyPatchParams(patch=text), Context())
    assert files.read("f", 1_000).decode() == before


def test_rights_and_links_hold_for_each_file_of_a_patch(tmp_path: Path) -> None:
    files = MemoryBackend({"f": "a\n", "secret": "s\n"})
    context: Context[None] = Context()
    context._permits = lambda access: access.target != "secret"
    patch = "*** Begin Patch\n*** Update File: f\n@@\n-a\n+b\n*** Delete File: secret\n*** End Patch"
    tool = ApplyPatch(files)
    with pytest.raises(ToolError):
        tool.execute(ApplyPatchParams(patch=patch), context)
    assert files.read("f", 10) == b"a\n"
    assert [str(access) for access in tool.accesses(ApplyPatchParams(patch=patch))] == [
        "write f",
        "read f",
        "delete secret",
    ]


async def test_a_patch_is_taken_as_free_text_by_openais_grammar() -> None:
    """From the request's declaration through the answer's item to the changed file, and back as the item's output."""
    files = MemoryBackend({"f": "a\n"})
    box, codec = Toolbox([FreeformApplyPatch(files)], autonomy="full"), OpenAIResponsesCodec()
    request = Request([Message.user("Change it")], [FreeformApplyPatch.definition().spec])
    (declared,) = codec.request(request, model="gpt-5", stream=False)["tools"]
    assert (declared["type"], declared["format"]["syntax"]) == ("custom", "lark")
    assert "parameters" not in declared and "begin_patch" in declared["format"]["definition"]
    text = "*** Begin Patch\n*** Update File: f\n@@\n-a\n+b\n*** End Patch\n"
    item = {"type": "custom_tool_call", "call_id": "call_1", "name": "apply_patch", "input": text}
    answer = codec.response({"output": [item], "status": "completed"}, request)
    (call,) = answer.message.calls
    result = await box.call(call)
    assert not result.is_error and files.read("f", 9) == b"b\n"
    both = await box.call(ToolCall("apply_patch", {"patch": text.replace("-a\n+b", "-b\n+c")}))
    assert not both.is_error and files.read("f", 9) == b"c\n"
    wrong = await box.call(ToolCall("apply_patch", "no patch"))
    assert wrong.is_error and "first line of the patch" in wrong.text


async def test_a_patch_is_taken_from_openais_own_tool() -> None:
    """From the declaration through each operation's item to the files, and back as items with their status."""
    files = MemoryBackend({"f": "a\n", "gone": "x\n"})
    box, codec = Toolbox([NativeApplyPatch(files)], autonomy="full"), OpenAIResponsesCodec()
    request = Request([Message.user("Change it")], [NativeApplyPatch.definition().spec])
    assert codec.request(request, model="gpt-5.1", stream=False)["tools"] == [{"type": "apply_patch"}]
    operations = [
        {"type": "update_file", "path": "f", "diff": "@@\n-a\n+b\n"},
        {"type": "create_file", "path": "new", "diff": "+one\n+two"},
        {"type": "delete_file", "path": "gone"},
        {"type": "update_file", "path": "f", "diff": "@@\n-nowhere\n+b\n"},
    ]
    items = [
        {
            "type": "apply_patch_call",
            "id": f"apc_{n}",
            "call_id": f"call_{n}",
            "status": "completed",
            "operation": one,
        }
        for n, one in enumerate(operations)
    ]
    answer = codec.response({"output": items, "status": "completed"}, request)
    results = [await box.call(call) for call in answer.message.calls]
    assert [result.is_error for result in results] == [False, False, False, True]
    assert {path: files.read(path, 99) for path, _ in files.below(".")} == {"f": b"b\n", "new": b"one\ntwo\n"}
    answered = Message(
        "tool", [ResultPart(*pair) for pair in zip(answer.message.calls, results, strict=True)]
    )
    back = Request([*request.messages, answer.message, answered], request.tools)
    sent = codec.request(back, model="gpt-5.1", stream=False)["input"]
    assert [item for item in sent if item.get("type") == "apply_patch_call"] == items
    outputs = [item for item in sent if item.get("type") == "apply_patch_call_output"]
    assert [item["status"] for item in outputs] == ["completed"] * 3 + ["failed"]
    assert "not found" in outputs[3]["output"]


@pytest.mark.parametrize(
    ("before", "patch", "after"),
    [
        # The space before lines that only locate was forgotten: what is added is indented as it was written.
        ("f(\n  a,\n) {\n  b\n}\n", "@@ f(\n  a,\n) {\n+  x\n  b\n}", "f(\n  a,\n) {\n  x\n  b\n}\n"),
        # Blank lines between the lines were left out, or put in.
        ("a\n\nb\n\n\nc\n", "@@\n a\n+x\n b\n-c", "a\nx\n\nb\n\n\n"),
        ("a\nb\nc\n", "@@\n a\n \n-b\n+x\n\n c", "a\nx\nc\n"),
        # Tabs were written for spaces.
        (
            "if a:\n  if b:\n    c()\n",
            "@@\n-\tif b:\n+\tif c:\n+\t\td()\n \t\tc()",
            "if a:\n  if c:\n    d()\n    c()\n",
        ),
        # The same lines stand before the chunk above: those after it are meant.
        ("a\nb\na\nc\n", "@@\n b\n@@\n-a\n+x", "a\nb\nx\nc\n"),
        ("f:\n a\nf:\n b\n", "@@ f:\n- b\n+ c", "f:\n a\nf:\n c\n"),
        # Indentation of distant lines is wrong: the lines beside the added ones count.
        ("a:\n      b\n  c\n  d\n", "@@\n a:\n     b\n c\n+x\n d", "a:\n      b\n  c\n  x\n  d\n"),
        # Chunks out of order, a chunk that only locates, and one that is said twice.
        ("a\nb\nc\n", "@@\n-c\n+C\n@@\n-a\n+A", "A\nb\nC\n"),
        ("a\nb\nc\n", "@@ a\n b\n@@\n-b\n+B", "a\nB\nc\n"),
        ("a\nb\nc\n", "@@\n a\n-b\n+B\n@@\n a\n-b\n+B", "a\nB\nc\n"),
        # Only deleted: its indentation does not matter.
        ("a\n  b\nc\n", "@@\n a\n-    b\n c", "a\nc\n"),
    ],
)
def test_lines_with_one_place_are_taken_there(before: str, patch: str, after: str) -> None:
    files = MemoryBackend({"f": before})
    text = f"*** Begin Patch\n*** Update File: f\n{patch}\n*** End Patch"
    ApplyPatch(files).execute(ApplyPatchParams(patch=text), Context())
    assert files.read("f", 1_000).decode() == after


@pytest.mark.parametrize(
    ("before", "patch"),
    [
        ("foo\nbar x = “a” + more\n", '@@\n-x = "a"\n+x = "b"'),  # a part of a line: the rest would be lost
        ("a:\n  b\n    c\n", "@@\n a:\n b\n+x\n c"),  # the lines beside differ in their indentation
        ("a\nb\nc\n", "@@\n a\n-b\n+x\n@@\n-b\n-c\n+y"),  # two chunks change one line
        ("a\nb\na\n", "@@\n-b\n+B\n@@\n-A\n+x"),
    ],
)
def test_lines_without_one_place_change_nothing(before: str, patch: str) -> None:
    files = MemoryBackend({"f": before})
    text = f"*** Begin Patch\n*** Update File: f\n{patch}\n*** End Patch"
    with pytest.raises(ToolError):
        ApplyPatch(files).execute(ApplyPatchParams(patch=text), Context())
    assert files.read("f", 1_000).decode() == before
