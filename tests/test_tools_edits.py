"""Edits: addresses of lines, edits that were made already, syntax that an edit breaks, and no byte changed elsewhere."""

from __future__ import annotations

import random
from collections.abc import Callable

import pytest

from toolcrib.context import Context
from toolcrib.errors import ToolError
from toolcrib.tools import EditFile, EditFileParams
from toolcrib.tools.backends import MemoryBackend
from toolcrib.tools.line_address import address_of
from toolcrib.tools.text_match import Source

CTX: Context[None] = Context()


def edit(files: MemoryBackend, path: str, old: str, new: str, **more: object) -> str:
    return EditFile(files).execute(
        EditFileParams.model_validate({"path": path, "old_string": old, "new_string": new, **more}), CTX
    )


def text(files: MemoryBackend, path: str = "f") -> str:
    return files.read(path, 10**7).decode()


def test_an_address_picks_one_of_repeated_lines() -> None:
    files = MemoryBackend({"f": "a {\n  return 1;\n}\nb {\n  return 1;\n}\n"})
    with pytest.raises(ToolError) as refused:
        edit(files, "f", "return 1", "return 2")
    address = address_of(5, "  return 1;")
    assert f"(at {address})" in refused.value.message
    said = edit(files, "f", "return 1", "return 2", at=address)
    assert text(files) == "a {\n  return 1;\n}\nb {\n  return 2;\n}\n"
    assert f"Lines now: {address_of(5, 'return 2;')}." in said
    with pytest.raises(ToolError, match=f"it is {address_of(5, 'return 2;')} now"):
        edit(files, "f", "return 1", "return 3", at=address)
    with pytest.raises(ToolError, match="past the end"):
        edit(files, "f", "return 1", "return 3", at="99:aa")
    with pytest.raises(ToolError, match="does not begin in that line"):
        edit(files, "f", "return 1", "return 3", at=address_of(1, "a {"))
    with pytest.raises(ToolError, match="must be the address of a line"):
        edit(files, "f", "return 1", "return 3", at="5")


@pytest.mark.parametrize(
    ("before", "old", "new", "where"),
    [
        ("import os\nimport sys\n", "import os\n", "import os\nimport sys\n", "line 1"),
        ("x = compute(new)\n", "x = compute(old)", "x = compute(new)", "line 1"),
        ("a\ndef better():\n    pass\n", "def worse():\n    pass", "def better():\n    pass", "line 2"),
    ],
)
def test_an_edit_that_was_made_already_changes_nothing(before: str, old: str, new: str, where: str) -> None:
    files = MemoryBackend({"f": before})
    said = edit(files, "f", old, new)
    assert "already reads like that" in said and where in said
    assert text(files) == before


@pytest.mark.parametrize(
    ("path", "before", "old", "new", "problem"),
    [
        ("a.py", "def f():\n    return 1\n", "return 1", "return (1", "line 2"),
        ("a.json", '{"a": 1}\n', "1", "1,", "line 1"),
        ("a.toml", 'a = "b"\n', '"b"', '"b', "line 1"),
        ("a.sh", "if true; then\n  echo hi\nfi\n", "hi\nfi", "hi\nf", "line"),
    ],
)
def test_syntax_that_an_edit_breaks_is_said_or_refused(
    path: str, before: str, old: str, new: str, problem: str
) -> None:
    files = MemoryBackend({path: before})
    strict = EditFile(files, refuse_broken_syntax=True)
    params = EditFileParams(path=path, old_string=old, new_string=new)
    with pytest.raises(ToolError, match=problem):
        strict.execute(params, CTX)
    assert text(files, path) == before
    assert "broken now" in strict.preview(params).text
    said = edit(files, path, old, new)
    assert f"Warning: the syntax of {path} is broken now" in said and problem in said
    assert "Warning" not in edit(files, path, new, new + "  ")  # it was broken before


def test_right_syntax_and_unknown_kinds_of_files_need_no_word() -> None:
    files = MemoryBackend({"a.py": "a = 1\n", "a.txt": "a = 1\n", "b.py": ""})
    assert "Warning" not in edit(files, "a.py", "1", "[1]")
    assert "Warning" not in edit(files, "a.txt", "1", "[1")


@pytest.mark.parametrize(
    ("path", "content"),
    [
        ("a.toml", f"n = 1{'0' * 5_000}\n"),
        ("a.json", f'{{"n": 1{"0" * 5_000}}}\n'),
        ("a.json", "[" * 100_000 + "\n"),
        ("a.toml", f"n = {'[' * 100_000}\n"),
        ("a.py", f"n = {'-' * 100_000}1\n"),
        ("a.py", f"import a{'.a' * 140_000}\n"),  # a minute, in which no other thread runs
    ],
    ids=lambda one: one[:9],
)
def test_a_text_that_a_parser_cannot_take_is_edited_all_the_same(path: str, content: str) -> None:
    files = MemoryBackend({path: f"one\n{content}"})
    assert "Edited" in edit(files, path, "one\n", "two\n")


def random_text(rng: random.Random) -> str:
    words = [
        "a",
        "b",
        " ",
        "  ",
        "\t",
        "\n",
        "\n",
        "\r\n",
        "é",
        "“",
        '"',
        "x(",
        ")",
        "\ufeff",
        "\x0c",
        "\u2028",
    ]
    return "".join(rng.choice(words) for _ in range(rng.randrange(40)))


def is_one_span(before: str, after: str, inserted: set[str], form: Callable[[str], str]) -> bool:
    """Whether a text is another one with one span of it replaced by one of the inserted texts."""
    for start in range(len(before) + 1):
        if before[:start] != after[:start]:
            return False
        for end in range(start, len(before) + 1):
            stop = len(after) - len(before) + end
            if stop >= start and after[stop:] == before[end:] and form(after[start:stop]) in inserted:
                return True
    return False


def check_one_edit(rng: random.Random) -> None:
    """One edit of a text: it is made in one place, and all bytes outside of that place stay."""
    before = random_text(rng)
    start = rng.randrange(len(before) + 1)
    old = before[start : start + rng.randrange(1, 12)]
    if rng.random() < 0.5:
        old = rng.choice(
            [old.strip(), "  " + old, old.replace("“", '"'), old.replace("\r\n", "\n"), random_text(rng)]
        )
    files = MemoryBackend({"f": before})
    new = random_text(rng)
    try:
        said = edit(files, "f", old, new)
    except ToolError:
        assert text(files) == before
        return
    after = text(files)
    if "already reads like that" in said:
        assert after == before
        return
    plain = new.removeprefix("\ufeff").replace("\r\n", "\n")
    inserted = {plain.replace("\n", end) for end in ("\n", "\r\n")}
    if "indentation" in said:  # its lines may have been indented
        assert is_one_span(before, after, {"".join(plain.split())}, lambda put: "".join(put.split()))
        return
    if is_one_span(before, after, inserted, str):
        return
    raise AssertionError((before, old, new, after))


def test_no_edit_changes_anything_outside_of_its_match() -> None:
    for seed in range(300):
        check_one_edit(random.Random(seed))


def test_a_source_finds_each_place_again_in_the_original() -> None:
    for seed in range(500):
        original = random_text(random.Random(seed))
        source = Source(original)
        for offset in range(len(source.text) + 1):
            assert original[: source.original_offset(offset)].replace("\r\n", "\n") == source.text[:offset]
