"""What a hostile file tree, or the output of a hostile program, could do to the built-in tools."""

from __future__ import annotations

import codecs
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import hypothesis
import pytest
from hypothesis import strategies as st
from pydantic import BaseModel

from tests.properties import examples
from toolcrib import Context, ToolError
from toolcrib.command.launch.output import plain
from toolcrib.tools import (
    EditFile,
    EditFileParams,
    GlobFiles,
    GlobParams,
    Grep,
    GrepParams,
    ListDir,
    ListDirParams,
    ReadFile,
    ReadFileParams,
    Workspace,
    WriteFile,
    WriteFileParams,
)
from toolcrib.tools.text_encoding import detect

CTX: Context[Any] = Context()
P = TypeVar("P", bound=BaseModel)


def given(kind: type[P], **values: Any) -> P:
    return kind.model_validate(values)


OVERWRITTEN = [
    ("10%\r50%\r100%\n", "100%\n"),
    ("abc\r\nd\n", "abc\nd\n"),
    ("abc\r", "abc"),
    ("a\rb\r\r\nc", "b\nc"),
    ("\r", ""),
    ("a\r\rb", "b"),
]


@pytest.mark.parametrize(("output", "shown"), OVERWRITTEN)
def test_of_a_line_that_was_written_over_the_last_state_is_shown(output: str, shown: str) -> None:
    assert plain(output.encode()) == shown


PIECES: dict[str, Callable[[int], bytes]] = {
    "a long line after a return": lambda n: b"\r" + b"a" * n,
    "many returns": lambda n: b"a\r" * n,
    "an escape without end": lambda n: b"\x1b[" + b"0" * n,
    "many escapes": lambda n: b"\x1b]" * n,
    "escapes and spaces": lambda n: (b"\x1b[0" + b" " * 50) * (n // 50),
}


@pytest.mark.parametrize("build", PIECES.values(), ids=PIECES)
def test_output_of_any_kind_is_cleaned_in_linear_time(build: Callable[[int], bytes]) -> None:
    def seconds(size: int) -> float:
        data = build(size)
        best = float("inf")
        for _ in range(3):
            start = time.perf_counter()
            plain(data)
            best = min(best, time.perf_counter() - start)
        return best

    # 16 times the output: quadratic would be 256 times the time.
    assert seconds(32_000) <= 64 * max(seconds(2_000), 0.0002)


NAMES = ["a\nfake.py", "\x1b[2Jscreen", "b\u202egnp.exe", "c\rd", "e\u2028f", "g\u200bh"]


@pytest.fixture
def odd(tmp_path: Path) -> Workspace:
    for name in NAMES:
        (tmp_path / name).write_text("needle\n")
    (tmp_path / "link").symlink_to(NAMES[0])
    return Workspace(tmp_path)


def test_names_of_files_cannot_pose_as_anything_else(odd: Workspace) -> None:
    texts = [
        GlobFiles(odd).execute(given(GlobParams, pattern="*"), CTX),
        ListDir(odd).execute(given(ListDirParams), CTX),
        *(
            Grep(odd).execute(given(GrepParams, pattern="needle", output=output), CTX)
            for output in ("content", "files", "count")
        ),
    ]
    for text in texts:
        lines = text.split("\n")
        assert all(line.isprintable() for line in lines)
        assert not any(line.startswith("fake.py") for line in lines)
    with pytest.raises(ToolError) as refused:
        ReadFile(odd).execute(given(ReadFileParams, path="screen"), CTX)
    assert refused.value.message.isprintable()


BROKEN_UTF32 = codecs.BOM_UTF32_LE + b"\xff\xff\xff\xff" + "needle\n".encode("utf-32-le")


def test_a_file_that_is_not_what_its_mark_says_stops_nothing(tmp_path: Path) -> None:
    workspace = Workspace(tmp_path)
    (tmp_path / "a.txt").write_bytes(BROKEN_UTF32)
    (tmp_path / "b.txt").write_text("needle\n")
    found = Grep(workspace).execute(given(GrepParams, pattern="needle", output="files"), CTX)
    assert found.split("\n") == ["a.txt", "b.txt"]
    with pytest.raises(ToolError, match="not the UTF-32-LE text"):
        EditFile(workspace).execute(
            given(EditFileParams, path="a.txt", old_string="needle", new_string="x"), CTX
        )
    assert (tmp_path / "a.txt").read_bytes() == BROKEN_UTF32
    WriteFile(workspace).execute(given(WriteFileParams, path="a.txt", content="x"), CTX)
    assert (tmp_path / "a.txt").read_text() == "x"


def test_a_pattern_is_not_compiled_before_the_call_where_that_could_take_minutes(tmp_path: Path) -> None:
    """Every tenth of a megabyte of ranges that ignore case takes a worker seconds, and the loop none."""
    (tmp_path / "a.txt").write_text("x\n")
    grep = Grep(Workspace(tmp_path))
    assert grep.precheck(given(GrepParams, pattern="(?i:" + "[\u0100-\uffff]" * 1_500 + ")")) is None
    assert "at most" in str(grep.precheck(given(GrepParams, pattern="[\u0100-\uffff]" * 10_000)))
    with pytest.raises(ToolError, match="not a valid regular expression"):
        grep.execute(given(GrepParams, pattern="(?i:"), CTX)


def test_lines_behind_a_page_are_not_counted_for_ever(tmp_path: Path) -> None:
    with (tmp_path / "huge").open("wb") as file:
        file.write(b"line\n" * 2_000)
        file.truncate(10**12)  # a hole: it takes no room, and an hour to read
    read = ReadFile(Workspace(tmp_path)).execute(given(ReadFileParams, path="huge", limit=2), CTX)
    assert isinstance(read, str)
    assert read.startswith("line\nline\n\n[Lines 1-2 of more than 2000. Use offset=3 to read on.")


# --- an edit changes what it was asked to change, byte for byte --------------------------------------

ENCODINGS = {
    "utf-8": b"",
    "utf-8 with a mark": codecs.BOM_UTF8,
    "utf-16-le": codecs.BOM_UTF16_LE,
    "utf-16-be": codecs.BOM_UTF16_BE,
    "utf-32-le": codecs.BOM_UTF32_LE,
}
words = st.text(st.sampled_from("ab \té€😀“”'\"-\u2013\u00a0{}\\\x0c\x1b"), max_size=6)
breaks = st.sampled_from(["\n", "\r\n", "\r", "\n\n", ""])
texts = st.lists(st.tuples(words, breaks), max_size=6).map(lambda parts: "".join(a + b for a, b in parts))


@examples(400)
@hypothesis.given(
    before=texts, after=texts, new=words, encoding=st.sampled_from(sorted(ENCODINGS)), wild=st.booleans()
)
def test_bytes_around_an_edit_stay(
    tmp_path_factory: pytest.TempPathFactory, before: str, after: str, new: str, encoding: str, wild: bool
) -> None:
    name, mark = encoding.split(" ")[0], ENCODINGS[encoding]
    head, tail = before.encode(name), after.encode(name)
    if wild and name == "utf-8":
        head, tail = b"x" + head + b"\xff\xfe\x80", b"\xc3" + tail  # no UTF-8 at all
    path = tmp_path_factory.getbasetemp() / f"edited-{os.getpid()}.txt"
    path.write_bytes(mark + head + "<<OLD>>".encode(name) + tail)
    edit = EditFile(Workspace(path.parent))
    asked = given(EditFileParams, path=path.name, old_string="<<OLD>>", new_string=new)
    was = path.read_bytes()
    found = detect(was)
    assert found is not None
    if name == "utf-8" and found.name != name:  # text that is not UTF-8 is in another encoding
        try:
            put = new.encode(found.name)
        except UnicodeEncodeError:
            with pytest.raises(ToolError, match="cannot be written"):
                edit.execute(asked, CTX)
            assert path.read_bytes() == was
            return
    else:
        put = new.encode(name)
    edit.execute(asked, CTX)
    assert path.read_bytes() == mark + head + put + tail
