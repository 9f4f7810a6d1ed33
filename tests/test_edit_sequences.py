"""No sequence of edits loses a byte outside its matches: random texts of repeated lines, breaks and encodings."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.properties import examples
from toolcrib.context import Context
from toolcrib.errors import ToolError
from toolcrib.tools import EditFile, EditFileParams, MultiEdit, MultiEditParams
from toolcrib.tools.backends import MemoryBackend
from toolcrib.tools.line_address import address_of

CTX: Context[None] = Context()
# Lines that repeat, differ in their indentation or typography only, or hold marks of other formats.
LINES = [
    "a",
    "b",
    "  a",
    "\ta",
    "a  ",
    "x = “a”",
    'x = "a"',
    "",
    "}",
    "ab",
    "é",
    "e\u0301",
    "a-b",
    "a–b",
    "+a",
    "字",
]
PLAIN = [line for line in LINES if line.isascii()] + ["é"]
ENCODINGS = ["utf-8", "utf-8-sig", "utf-16", "latin-1"]

edits = st.tuples(
    st.lists(st.sampled_from(LINES), min_size=1, max_size=3).map("\n".join),
    st.lists(st.sampled_from([*LINES, "NEW", "  NEW"]), max_size=3).map("\n".join),
    st.none() | st.integers(1, 8),
    st.booleans(),
)


def bare(text: str) -> str:
    """A text without what a match may differ in: white space and typography."""
    plain = text.translate(str.maketrans("“”–", '""-')).replace("e\u0301", "é")
    return "".join(plain.split())


def is_edit(before: str, after: str, old: str, new: str, all_of_them: bool) -> bool:
    """Whether one text comes from the other by replacing one place of `old`, or each, and by nothing else."""
    if before.count(old) and after == (before.replace(old, new) if all_of_them else None):
        return True
    wanted, put = bare(old), bare(new)
    ends = range(len(before) + 1)
    return any(
        bare(before[start:end]) == wanted and bare(after[start : len(after) - len(before) + end]) == put
        for start in ends
        if after.startswith(before[:start])
        for end in ends[start:]
        if start + len(before) - end <= len(after) and after.endswith(before[end:])
    )


def decoded(data: bytes, encoding: str) -> str:
    """The text of a file; bytes of no encoding that the tools know are kept one by one."""
    return data.decode("utf-8" if encoding == "latin-1" else encoding, "surrogateescape")


def logical(text: str) -> str:
    return text.replace("\r\n", "\n")


@st.composite
def files(draw: st.DrawFn) -> tuple[str, str]:
    """A text and its encoding."""
    encoding = draw(st.sampled_from(ENCODINGS))
    lines = draw(st.lists(st.sampled_from(PLAIN if encoding == "latin-1" else LINES), min_size=1, max_size=8))
    breaks = draw(st.lists(st.sampled_from(["\n", "\r\n"]), min_size=len(lines), max_size=len(lines)))
    if draw(st.booleans()):
        breaks = [breaks[0]] * len(lines)
    if draw(st.booleans()):
        breaks[-1] = ""
    return "".join(line + end for line, end in zip(lines, breaks, strict=True)), encoding


@examples(200)
@given(files(), st.lists(edits, min_size=1, max_size=4))
def test_no_sequence_of_edits_changes_what_lies_outside_its_matches(
    file: tuple[str, str], wanted: list[tuple[str, str, int | None, bool]]
) -> None:
    text, encoding = file
    backend = MemoryBackend({"f": text.encode(encoding)})
    for old, new, line, all_of_them in wanted:
        before = backend.read("f", 10_000)
        was = decoded(before, encoding)
        at = None
        if line is not None and not all_of_them and line <= len(logical(was).split("\n")):
            at = address_of(line, logical(was).split("\n")[line - 1])
        try:
            params = EditFileParams(path="f", old_string=old, new_string=new, at=at, replace_all=all_of_them)
            EditFile(backend).execute(params, CTX)
        except (ToolError, ValueError):
            assert backend.read("f", 10_000) == before
            continue
        data = backend.read("f", 10_000)
        if data == before:
            continue
        now = decoded(data, encoding)
        if encoding != "latin-1":
            assert now.encode(encoding) == data, "byte order mark and encoding stay"
        assert is_edit(logical(was), logical(now), old, new, all_of_them)
        # The breaks outside the match stay: at the start and at the end they are the same.
        added = logical(now).count("\n") - logical(was).count("\n")
        assert now.count("\r\n") - was.count("\r\n") in range(min(added, 0) - 3, max(added, 0) + 4)
        if "\r\n" not in was or was.count("\r\n") == was.count("\n") > 0:
            assert ("\r\n" in now) <= ("\r\n" in was) and now.count("\r\n") in (0, now.count("\n"))


@examples(200)
@given(files(), st.lists(edits, min_size=2, max_size=4))
def test_several_edits_are_the_same_as_one_after_the_other_or_none(
    file: tuple[str, str], wanted: list[tuple[str, str, int | None, bool]]
) -> None:
    text, encoding = file
    together = MemoryBackend({"f": text.encode(encoding)})
    apart = MemoryBackend({"f": text.encode(encoding)})
    refused = False
    for old, new, _, _ in wanted:
        try:
            EditFile(apart).execute(EditFileParams(path="f", old_string=old, new_string=new), CTX)
        except (ToolError, ValueError):
            refused = True
            break
    listed = [{"path": "f", "old_string": old, "new_string": new} for old, new, _, _ in wanted]
    try:
        MultiEdit(together).execute(MultiEditParams.model_validate({"edits": listed}), CTX)
    except (ToolError, ValueError):
        assert together.read("f", 10_000) == text.encode(encoding)
        assert refused
    else:
        assert together.read("f", 10_000) == apart.read("f", 10_000) or refused


def test_places_that_overlap_are_two() -> None:
    backend = MemoryBackend({"f": "a\na\na\n"})
    with pytest.raises(ToolError, match="occurs 2 times"):
        EditFile(backend).execute(EditFileParams(path="f", old_string="a\na", new_string="b"), CTX)
    assert backend.read("f", 99) == b"a\na\na\n"
