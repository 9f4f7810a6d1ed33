"""No sequence of edits loses a byte outside its matches: random texts of repeated lines, breaks and encodings."""

from __future__ import annotations

import random
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.properties import examples
from toolcrib.context import Context
from toolcrib.errors import ToolError
from toolcrib.tools import EditFile, EditFileParams, MultiEdit, MultiEditParams
from toolcrib.tools.backends import MemoryBackend
from toolcrib.tools.line_address import address_of
from toolcrib.tools.text_encoding import detect

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
NEW = [*LINES, "NEW", "  NEW"]
ENCODINGS = ["utf-8", "utf-8-sig", "utf-16", "latin-1"]

Edit = tuple[str, str, int | None, bool]  # old, new, the line of an address, whether every place is meant

edits = st.tuples(
    st.lists(st.sampled_from(LINES), min_size=1, max_size=3).map("\n".join),
    st.lists(st.sampled_from(NEW), max_size=3).map("\n".join),
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
    return data.decode(encoding, "surrogateescape")


def codec_of(data: bytes, encoding: str) -> str:
    """The encoding of a file, as it was made, or as it is guessed where nothing in the file says it."""
    if encoding != "latin-1":
        return encoding
    found = detect(data)
    assert found is not None and decoded(data, found.name).encode(found.name, "surrogateescape") == data
    return found.name


def logical(text: str) -> str:
    return text.replace("\r\n", "\n")


@st.composite
def files(draw: st.DrawFn) -> tuple[str, str]:
    """A text and its encoding."""
    encoding = draw(st.sampled_from(ENCODINGS))
    lines = draw(st.lists(st.sampled_from(PLAIN if encoding == "latin-1" else LINES), min_size=1, max_size=8))
    breaks = draw(st.lists(st.sampled_from(["\n", "\r\n"]), min_size=len(lines), max_size=len(lines)))
    return joined(lines, breaks, alike=draw(st.booleans()), last=draw(st.booleans())), encoding


def joined(lines: list[str], breaks: list[str], *, alike: bool, last: bool) -> str:
    """Lines with their breaks, or all with the first one; with `last` also the last line has one."""
    ends = [breaks[0]] * len(lines) if alike else list(breaks)
    if not last:
        ends[-1] = ""
    return "".join(line + end for line, end in zip(lines, ends, strict=True))


@examples(200)
@given(files(), st.lists(edits, min_size=1, max_size=4))
def test_no_sequence_of_edits_changes_what_lies_outside_its_matches(
    file: tuple[str, str], wanted: list[Edit]
) -> None:
    check_one_by_one(*file, wanted)


@examples(200)
@given(files(), st.lists(edits, min_size=2, max_size=4))
def test_several_edits_are_the_same_as_one_after_the_other_or_none(
    file: tuple[str, str], wanted: list[Edit]
) -> None:
    check_together(*file, wanted)


def check_one_by_one(text: str, encoding: str, wanted: list[Edit]) -> None:
    backend = MemoryBackend({"f": text.encode(encoding)})
    for old, new, line, all_of_them in wanted:
        before = backend.read("f", 10_000)
        codec = codec_of(before, encoding)
        was = decoded(before, codec)
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
        now = decoded(data, codec)
        assert now.encode(codec, "surrogateescape") == data, "byte order mark and encoding stay"
        assert is_edit(logical(was), logical(now), old, new, all_of_them)
        # The breaks outside the match stay: at the start and at the end they are the same.
        added = logical(now).count("\n") - logical(was).count("\n")
        assert now.count("\r\n") - was.count("\r\n") in range(min(added, 0) - 3, max(added, 0) + 4)
        if "\r\n" not in was or was.count("\r\n") == was.count("\n") > 0:
            assert ("\r\n" in now) <= ("\r\n" in was) and now.count("\r\n") in (0, now.count("\n"))


def check_together(text: str, encoding: str, wanted: list[Edit]) -> None:
    together = MemoryBackend({"f": text.encode(encoding)})
    apart = MemoryBackend({"f": text.encode(encoding)})
    refused = False
    codec = codec_of(text.encode(encoding), encoding)
    for old, new, _, _ in wanted:
        try:
            EditFile(apart).execute(EditFileParams(path="f", old_string=old, new_string=new), CTX)
        except (ToolError, ValueError):
            refused = True
            break
        if codec_of(apart.read("f", 10_000), encoding) != codec:
            return  # an edit took away, or added, what its guess goes by
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


def many(count: int, seed: int) -> None:
    """Checks many more cases than Hypothesis could: it takes longer to make one than the tools take to edit it."""
    at_random = random.Random(seed)
    for number in range(1, count + 1):
        encoding = at_random.choice(ENCODINGS)
        lines = at_random.choices(PLAIN if encoding == "latin-1" else LINES, k=at_random.randint(1, 8))
        breaks = at_random.choices(["\n", "\r\n"], k=len(lines))
        text = joined(lines, breaks, alike=at_random.random() < 0.5, last=at_random.random() < 0.5)
        wanted: list[Edit] = []
        for _ in range(at_random.randint(1, 4)):
            old = "\n".join(at_random.choices(LINES, k=at_random.randint(1, 3)))
            if at_random.random() < 0.7:  # else an old text that stands in the file is rare
                start = at_random.randrange(len(lines))
                old = "\n".join(lines[start : start + at_random.randint(1, 3)])
            new = "\n".join(at_random.choices(NEW, k=at_random.randint(0, 3)))
            line = at_random.randint(1, 8) if at_random.random() < 0.5 else None
            wanted.append((old, new, line, at_random.random() < 0.3))
        try:
            check_one_by_one(text, encoding, wanted)
            check_together(text, encoding, wanted)
        except BaseException:
            print(f"case {number} of seed {seed}: {text!r} in {encoding}, edits {wanted!r}")  # noqa: T201
            raise
    print(f"{count:,} random cases of seed {seed} hold")  # noqa: T201


if __name__ == "__main__":  # python -m tests.test_edit_sequences 1000000 1
    many(int(sys.argv[1]), int(sys.argv[2]))
