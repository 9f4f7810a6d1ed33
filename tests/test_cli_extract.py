"""`toolcrib extract` as a person runs it."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from tests.command_line import toolcrib

SCHEMA = {"type": "object", "properties": {"total": {"type": "number"}}, "required": ["total"]}
TYPES = """
from pydantic import BaseModel

class Invoice(BaseModel):
    total: float
"""


def turn(total: object) -> str:
    arguments = json.dumps({"total": total})
    return f"- calls: [{{name: attempt_completion, arguments: {arguments}}}]\n"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "invoice.json").write_text(json.dumps(SCHEMA))
    (tmp_path / "wrong.json").write_text('{"type": "objct"}')
    (tmp_path / "shapes.py").write_text(TYPES)
    (tmp_path / "a.txt").write_text("total: 1")
    (tmp_path / "b.txt").write_text("total: 2")
    (tmp_path / "good.yaml").write_text(turn(1) + turn(2))
    (tmp_path / "bad.yaml").write_text(turn("x") + turn("x") + turn(3))
    return tmp_path


def lines(text: str) -> list[dict[str, object]]:
    return [json.loads(line) for line in text.splitlines()]


def test_each_file_gives_a_line(folder: Path) -> None:
    done = toolcrib(folder, "extract", "-s", "invoice.json", "-m", "scripted:good.yaml", "a.txt", "b.txt")
    assert done.returncode == 0, done.stderr
    found = {line["source"]: line for line in lines(done.stdout)}
    assert [found[name]["output"] for name in ("a.txt", "b.txt")] in (
        [{"total": 1}, {"total": 2}],
        [{"total": 2}, {"total": 1}],
    )
    assert found["a.txt"]["attempts"] == 1
    assert "2 of 2 sources have a value" in done.stderr


def test_a_failure_is_one_line_and_an_exit_code(folder: Path) -> None:
    (folder / "c.bin").write_bytes(b"\xff\xfe")
    done = toolcrib(
        folder, "extract", "--schema", "shapes:Invoice", "-m", "scripted:bad.yaml", "--retries", "1",
        "--concurrency", "1", "a.txt", "c.bin", "nothing.txt", "b.txt",
    )  # fmt: skip
    assert done.returncode == 1
    found = lines(done.stdout)
    assert [(line["source"], line.get("reason"), line.get("output")) for line in found] == [
        ("a.txt", "invalid_output", None), ("c.bin", "unreadable", None), ("nothing.txt", "unreadable", None),
        ("b.txt", None, {"total": 3}),
    ]  # fmt: skip
    assert "c.bin: c.bin is no text" in done.stderr
    assert "1 of 4 sources have a value" in done.stderr


def test_a_text_comes_from_stdin_whole_or_line_by_line(folder: Path) -> None:
    whole = toolcrib(folder, "extract", "-s", "invoice.json", "-m", "scripted:good.yaml", stdin="one\ntwo\n")
    assert [line["source"] for line in lines(whole.stdout)] == ["stdin"]
    each = toolcrib(
        folder,
        "extract",
        "-s",
        "invoice.json",
        "-m",
        "scripted:good.yaml",
        "--lines",
        "-",
        stdin="one\n\ntwo\n",
    )
    assert {line["source"] for line in lines(each.stdout)} == {"stdin:1", "stdin:3"}


def test_it_goes_on_where_it_was_broken_off(folder: Path) -> None:
    command = ("extract", "-s", "invoice.json", "--resume", "found.jsonl", "a.txt", "-m")
    first = toolcrib(folder, *command, "scripted:good.yaml")
    (folder / "none.yaml").write_text("turns: []\n")
    again = toolcrib(folder, *command, "scripted:none.yaml")
    assert lines(first.stdout)[0]["output"] == lines(again.stdout)[0]["output"] == {"total": 1}
    assert "0 tokens" in again.stderr


@pytest.mark.parametrize("name", ["a.txt", "a folder", "a pipe"])
def test_what_holds_something_else_is_no_file_to_go_on_with(folder: Path, name: str) -> None:
    (folder / "a folder").mkdir()
    os.mkfifo(folder / "a pipe")
    done = toolcrib(
        folder, "extract", "-s", "invoice.json", "-m", "scripted:good.yaml", "--resume", name, "b.txt"
    )
    assert done.returncode == 2
    assert (
        done.stderr
        == f"toolcrib: --resume {name}: it holds something else than values that were kept: name a new file\n"
    )
    assert (folder / "a.txt").read_text() == "total: 1"


def test_a_name_cannot_paint_on_the_terminal(folder: Path) -> None:
    done = toolcrib(folder, "extract", "-s", "invoice.json", "-m", "scripted:good.yaml", "no\x1b[2Jfile")
    assert "no\\x1b[2Jfile: it cannot be read" in done.stderr
    missing = toolcrib(folder, "extract", "-s", "no\x1b[2Jfile", "-m", "scripted:good.yaml", "a.txt")
    assert "\x1b" not in done.stderr + missing.stderr


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("-s", "nothing.json", "a.txt"), "nothing.json: No such file"),
        (("-s", "a.txt", "a.txt"), "this is no JSON"),
        (("-s", ".", "a.txt"), "expected a file, got a folder"),
        (("-s", "wrong.json", "a.txt"), 'type: "objct" is not valid'),
        (("-s", "shapes:Invoic", "a.txt"), "did you mean Invoice?"),
        (("-s", "shapes", "a.txt"), "cannot be the output"),
        (("-s", "nothing", "a.txt"), "there is no such file; a Python type is written as MODULE:TYPE"),
        (("-s", "invoice.json"), "there is nothing to read"),
        (("-s", "invoice.json", "a.txt", "-m", "nonsense:x"), "model"),
        (("a.txt",), "--schema"),
    ],
)  # fmt: skip
def test_a_wrong_command_line_says_what_to_do(folder: Path, arguments: tuple[str, ...], words: str) -> None:
    done = toolcrib(folder, "extract", "-m", "scripted:good.yaml", *arguments)
    assert (done.returncode, done.stdout) == (2, "")
    assert words in done.stderr
