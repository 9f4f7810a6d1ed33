"""Where our own tools cut a long text, no part of a secret is left over, wherever a model has it cut."""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import Any

import pytest

from toolcrib import Toolbox
from toolcrib.command.launch.output import BoundedOutput
from toolcrib.command.sandbox import NoSandbox
from toolcrib.secrets import Environment
from toolcrib.tools import Workspace, workspace_tools

VALUE = "Xk7pQz9mWv3tRb8sLd2f"
AROUND = {"words": ("one two ", " three four"), "json": ('{"a":"b","key":"', '","c":"d"}')}


def shown(text: str) -> int:
    """The length of the longest part of the secret in a text."""
    parts = (
        VALUE[at : at + size] for size in range(len(VALUE), 3, -1) for at in range(len(VALUE) - size + 1)
    )
    return len(next((part for part in parts if part in text), ""))


def box_of(folder: Path) -> Toolbox[Any]:
    store = Environment(["KEY"], environ={"KEY": VALUE})
    return Toolbox(workspace_tools(Workspace(folder), sandbox=NoSandbox()), autonomy="full", secrets=store)


@pytest.mark.parametrize("around", AROUND.values(), ids=AROUND)
def test_a_line_that_is_read_from_its_middle_on(around: tuple[str, str], tmp_path: Path) -> None:
    before, after = around[0] * 30, around[1] * 300
    (tmp_path / "a.txt").write_text(f"{before}{VALUE}{after}\n")
    box = box_of(tmp_path)
    for column in range(len(before) - 3, len(before) + len(VALUE) + 3):
        for start in (column, max(1, column - 50_000 // 25)):
            text = box.call_sync("read_file", {"path": "a.txt", "limit": 1, "column": start}).text
            assert not shown(text), (start, text[:80])


@pytest.mark.parametrize("around", AROUND.values(), ids=AROUND)
def test_a_line_that_a_search_shows_a_part_of(around: tuple[str, str], tmp_path: Path) -> None:
    before, after = around[0] * 100, around[1] * 100
    (tmp_path / "a.txt").write_text(f"{before}{VALUE}{after}\n")
    box = box_of(tmp_path)
    for ahead in (*range(60, 150, 9), *range(380, 400, 3)):
        for at in (len(before) + ahead, len(before) - ahead):
            found = box.call_sync("grep", {"pattern": f"(?<=^.{{{at}}})."}).text if at > 0 else ""
            assert not shown(found), (at, found)


@pytest.mark.skipif(sys.platform == "win32", reason="commands are not run on Windows")
async def test_output_that_is_read_from_its_middle_on(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text(f"one\ntwo {VALUE} three\n")
    async with box_of(tmp_path) as box:
        given = {"command": "cat a.txt; sleep 30", "run_in_background": True}
        started = await box.call("shell", given)
        for offset in range(len(VALUE) + 9):
            read = {"process_id": "cat-1", "offset": offset, "timeout": 5 if offset == 0 else 0}
            assert not shown((await box.call("process", read)).text), (offset, started.text)


def test_the_end_of_an_output_begins_with_a_line_or_a_word() -> None:
    for text in (f"one\n{VALUE}\nthree", f"one {VALUE} three", f"one\r{VALUE}\rthree"):
        output = BoundedOutput(1000)
        output.feed(text.encode())
        for size in range(1, len(text)):
            assert shown(output.ending(size)) in (0, len(VALUE)), (text, size)
    assert output.ending(1000).endswith("three")


def test_the_end_of_an_output_that_was_just_divided_is_whole() -> None:
    output = BoundedOutput(1000)
    output.feed(b"one\n" * 126)
    assert output.ending(100) == "one\n" * 24


def test_the_end_of_an_output_is_found_in_linear_time() -> None:
    output = BoundedOutput(100_000)
    for piece in (b"\n", b" \n", b" "):
        output.feed(piece * 60_000)
        begun = time.process_time()
        output.ending(30_000)
        assert time.process_time() - begun < 0.5


def test_the_end_of_one_long_line_is_shown() -> None:
    for text in (f"one\n{'x' * 500}\n", f"one\n{'x ' * 250}\r\n \n"):
        output = BoundedOutput(1000)
        output.feed(text.encode())
        assert output.ending(200).count("x") >= 95
