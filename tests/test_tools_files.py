"""read_file, write_file, edit_file and list_dir: what a model is told, and what happens to the files."""

from __future__ import annotations

import base64
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.cases import each
from toolcrib import Answer, Question, Toolbox, Verdict
from toolcrib.content import Image
from toolcrib.context import Context
from toolcrib.errors import Cancelled, ToolError
from toolcrib.result import ToolResult
from toolcrib.rules import Rule, RulePolicy
from toolcrib.toolbox.policy import Verb
from toolcrib.tools import (
    ApplyPatch,
    ApplyPatchParams,
    EditFile,
    EditFileParams,
    ListDir,
    ListDirParams,
    ReadFile,
    ReadFileParams,
    Workspace,
    WriteFile,
    WriteFileParams,
    text_encoding,
    workspace_tools,
)
from toolcrib.tools.diffs import unified_diff
from toolcrib.tools.line_address import address_of
from toolcrib.tools.text_match import Source, find_exact, find_tolerant

PNG = b"\x89PNG\r\n\x1a\n" + bytes(20)


class Listener:
    """Stands where a toolbox would, and keeps what the person is told."""

    def __init__(self) -> None:
        self.told: list[dict[str, Any]] = []

    def report(self, ctx: Context[Any], named: dict[str, Any]) -> None:
        self.told.append(named)

    async def ask(self, ctx: Context[Any], action: str, patterns: tuple[str, ...]) -> None: ...
    async def call(self, ctx: Context[Any], name: str, arguments: dict[str, Any]) -> ToolResult: ...  # type: ignore[empty-body]
    def run(self, ctx: Context[Any], work: Any) -> Any: ...


@pytest.fixture
def ws(tmp_path: Path) -> Workspace:
    return Workspace(tmp_path)


def put(ws: Workspace, path: str, data: bytes | str) -> None:
    target = Path(ws.root.path) / path
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_bytes(data if isinstance(data, bytes) else data.encode())


def get(ws: Workspace, path: str) -> bytes:
    return (Path(ws.root.path) / path).read_bytes()


def read(ws: Workspace, path: str = "f", **named: Any) -> str:
    got = ReadFile(ws).execute(ReadFileParams(path=path, **named), Context())
    assert isinstance(got, str)
    return got


def edit(ws: Workspace, old: str, new: str, **named: Any) -> str:
    params = EditFileParams(path="f", old_string=old, new_string=new, **named)
    return EditFile(ws).execute(params, Context())


# Reading.

HUNDRED = "".join(f"line {number}\n" for number in range(1, 101))


def test_a_small_file_is_given_as_it_is(ws: Workspace) -> None:
    put(ws, "f", "  one\n\ttwo\n\nlast without a break")
    assert read(ws) == "  one\n\ttwo\n\nlast without a break"


def test_pages_say_where_to_read_on_and_fit_together(ws: Workspace) -> None:
    put(ws, "f", HUNDRED)
    first = read(ws, limit=40)
    assert first.endswith("line 40\n\n[Lines 1-40 of 100; 60 more. Use offset=41 to read on.]")
    last = read(ws, offset=81, limit=40)
    assert last.startswith("line 81\n") and last.endswith("line 100\n\n[Lines 81-100 of 100; end of file.]")
    with pytest.raises(ToolError, match="past the end of f, which has 100 lines"):
        read(ws, offset=101)


def test_line_numbers_are_there_on_request(ws: Workspace) -> None:
    put(ws, "f", HUNDRED)
    assert read(ws, offset=9, limit=2, line_numbers=True).startswith("9: line 9\n10: line 10\n")


def test_a_page_ends_before_it_is_too_large(ws: Workspace) -> None:
    put(ws, "f", "".join(f"{number:04} {'x' * 195}\n" for number in range(1, 1001)))
    page = read(ws)
    assert len(page) < 51_000
    shown = page.count("x" * 195)
    assert f"[Lines 1-{shown} of 1000; {1000 - shown} more. Use offset={shown + 1} to read on.]" in page
    assert read(ws, offset=shown + 1).startswith(f"{shown + 1:04} ")


def test_a_very_long_line_is_cut_and_can_be_paged(ws: Workspace) -> None:
    line = "".join(f"{number:09}," for number in range(12_000))
    put(ws, "f", f"short\n{line}\nend\n")
    page = read(ws)
    assert "[... 118,000 more characters]\nend" in page
    assert "read it with offset=2, limit=1, column=2001" in page
    got, column = "", 1
    while column <= len(line):
        piece = read(ws, offset=2, limit=1, column=column).split("\n\n[")[0].split(" [... ")[0]
        got += piece
        column += len(piece)
    assert got == line


def test_a_column_past_the_end_of_all_lines_is_said(ws: Workspace) -> None:
    put(ws, "f", "four\nseven77\n")
    with pytest.raises(ToolError, match="Column 9 is past the end of line 2 of f: 7 characters"):
        read(ws, offset=2, limit=1, column=9)
    with pytest.raises(ToolError, match="Column 8 is past the end of lines 1-2 of f: 7 characters"):
        read(ws, column=8)
    assert read(ws, offset=2, limit=1, column=7).startswith("seven77\n\n[")
    assert read(ws, column=6).startswith("\nseven77")


def test_pages_of_wide_characters_stay_in_their_limit(ws: Workspace) -> None:
    put(ws, "f", "€" * 40_000)
    page = read(ws, limit=1)
    assert page.count("€") == 16_666 and "column=16667" in page


RUSSIAN = "# Проверяет, существует ли файл.\nopen(path)\n"
JAPANESE = "# ファイルが存在するか確認します。\nopen(path)\n"


@pytest.mark.parametrize(
    ("data", "text", "note"),
    [
        ("Grüße\n".encode(), "Grüße", ""),
        (b"\xef\xbb\xbfhi\n", "hi", "UTF-8 with a byte order mark"),
        ("\ufeffhé\n".encode("utf-16-le"), "hé", "UTF-16-LE"),
        ("\ufeffhé\n".encode("utf-16-be"), "hé", "UTF-16-BE"),
        ("\ufeffhé\n".encode("utf-32-le"), "hé", "UTF-32-LE"),
        (b"caf\xe9\n", "café", "WINDOWS-1252, it seems"),
        (RUSSIAN.encode("koi8-r"), RUSSIAN.rstrip(), "KOI8-R, it seems"),
        (JAPANESE.encode("cp932"), JAPANESE.rstrip(), "CP932, it seems"),
        (
            b"a" * 20_000 + b"\n# M\xfcller\n",
            "a" * 2_000 + " [... 18,000 more characters]\n# Müller",
            "WINDOWS-1252",
        ),
        ("Größe, Länge\n".encode() + b"\xff\n", "Größe, Länge\n\ufffd", "not valid UTF-8"),
        (b"\xff\xfe\nplain\n", "\ufffd\ufffd\nplain", "no known encoding"),
        (b"a\r\nb\r\n", "a\nb", ""),
    ],
)
def test_encodings(ws: Workspace, data: bytes, text: str, note: str) -> None:
    put(ws, "f", data)
    got = read(ws)
    assert got.split("\n\n[")[0] == text
    assert note in got and ("[" in got) == bool(note)


def test_multi_byte_characters_across_chunks_are_whole(ws: Workspace) -> None:
    text = "aé€😀\n" * 10_000
    put(ws, "f", "x" + text)
    assert read(ws, offset=9_999, limit=2).startswith("aé€😀\naé€😀")


def test_an_empty_file_is_said_to_be_empty(ws: Workspace) -> None:
    put(ws, "f", "")
    assert read(ws) == "[f is empty.]"


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"%PDF-1.7\n\0", "a PDF document"),
        (b"\x7fELF\0\0", "a program or library"),
        (b"hello\0world", "a binary file"),
    ],
)
def test_binary_files_are_described(ws: Workspace, data: bytes, words: str) -> None:
    put(ws, "f", data)
    with pytest.raises(ToolError, match=words):
        read(ws)


@pytest.mark.parametrize(
    ("data", "kind"),
    [
        (PNG, "image/png"),
        (b"\xff\xd8\xff\xe0jpeg", "image/jpeg"),
        (b"GIF89a...", "image/gif"),
        (b"RIFF\0\0\0\0WEBPVP8 ", "image/webp"),
    ],
)
def test_pictures_are_shown_whatever_their_name(ws: Workspace, data: bytes, kind: str) -> None:
    put(ws, "f.txt", data)
    got = ReadFile(ws).execute(ReadFileParams(path="f.txt"), Context())
    assert isinstance(got, ToolResult)
    picture = got.parts[1]
    assert isinstance(picture, Image) and picture.media_type == kind
    assert base64.b64decode(picture.data) == data


def test_a_picture_that_is_too_large_is_refused(ws: Workspace) -> None:
    put(ws, "f", PNG + bytes(4_000_000))
    with pytest.raises(ToolError, match="at most 3,750,000"):
        read(ws)


def test_reading_stops_when_cancelled(ws: Workspace) -> None:
    put(ws, "f", HUNDRED)
    ctx: Context[None] = Context(tool="read_file")
    ctx._cancelled = True
    with pytest.raises(Cancelled):
        ReadFile(ws).execute(ReadFileParams(path="f"), ctx)


# Writing.


def test_write_tells_what_it_did_and_shows_the_person_a_diff(ws: Workspace) -> None:
    listener = Listener()
    ctx: Context[None] = Context(host=listener)  # type: ignore[arg-type]
    tool = WriteFile(ws)
    told = tool.execute(WriteFileParams(path="new/f", content="one\n"), ctx)
    assert told == "Created new/f: 1 line, 4 bytes."
    told = tool.execute(WriteFileParams(path="new/f", content="one\ntwo\n"), ctx)
    assert told == "Replaced new/f: 2 lines, 8 bytes (before: 4 bytes)."
    assert listener.told[-1]["result"]["diff"] == "--- new/f\n+++ new/f\n@@ -1 +1,2 @@\n one\n+two\n"
    assert get(ws, "new/f") == b"one\ntwo\n"


def test_write_refuses_what_is_no_text_or_no_file(ws: Workspace) -> None:
    tool = WriteFile(ws)
    assert tool.precheck(WriteFileParams(path="f", content="fine")) is None
    assert "surrogate" in str(tool.precheck(WriteFileParams.model_construct(path="f", content="\ud800")))
    assert "names a folder" in str(tool.precheck(WriteFileParams(path="src/", content="")))


ELEGANT = (
    "d\u00e9j\u00e0 vu l\u00e0-bas, tr\u00e8s \u00e9l\u00e9gant, c'est l'\u00e9t\u00e9 \u00e0 la for\u00eat\n"
)


@pytest.mark.parametrize(
    ("there", "content", "shown"),
    [
        (None, "", "f: It is made, and empty."),
        (b"one\n", "one\n", "f: It stays as it is."),
        (b"\xef\xbb\xbfone\n", "one\n", "encoded as UTF-8 with a byte order mark, and becomes UTF-8"),
        (b"\xef\xbb\xbfone\n", "\ufeffone\n", "f: It stays as it is."),
        ("one\n".encode("utf-16"), "two\n", "encoded as UTF-16-LE with a byte order mark, and becomes UTF-8"),
        (ELEGANT.encode("latin-1"), ELEGANT, "encoded as WINDOWS-1252, it seems, and becomes UTF-8"),
        (b"one\n", "", "-one"),
        (b"", "one\n", "+one"),
        (
            bytes(range(256)),
            "new\n",
            "f: It was a binary file of 256 bytes.\n--- f\n+++ f\n@@ -0,0 +1 @@\n+new\n",
        ),
        (
            b"one\n" * 300_000,
            "new\n",
            "f: It has 1,200,000 bytes, too many to be shown.\n--- f\n+++ f\n@@ -0,0 +1 @@\n+new\n",
        ),
        (
            b"one\n" * 3_000_000,
            "new\n",
            "f: It has 12,000,000 bytes, too many to be shown.\n--- f\n+++ f\n@@ -0,0 +1 @@\n+new\n",
        ),
    ],
)
def test_a_person_who_is_asked_sees_every_change_of_a_file(
    ws: Workspace, there: bytes | None, content: str, shown: str
) -> None:
    if there is not None:
        put(ws, "f", there)
    assert shown in WriteFile(ws).preview(WriteFileParams(path="f", content=content)).text


# Editing.


@pytest.mark.parametrize(
    ("before", "old", "new", "after"),
    [
        ("a\nb\nc\n", "b\n", "", "a\nc\n"),
        ("a\r\nb\r\n", "a\nb", "x\ny\nz", "x\r\ny\r\nz\r\n"),
        ("a\r\nb\r\n", "a\r\nb", "x", "x\r\n"),
        ("a\nb\n", "a\r\nb", "x\r\ny", "x\ny\n"),
        ("a\r\nb\nc\r\n", "b\n", "x\n", "a\r\nx\nc\r\n"),
        ("one\r\ntwo", "two", "two\nthree", "one\r\ntwo\r\nthree"),
        ("price\n", "price", r"$& \1 $1", "$& \\1 $1\n"),
        ("tail", "tail", "tail\n", "tail\n"),
    ],
)
def test_exact_edits_keep_line_breaks(ws: Workspace, before: str, old: str, new: str, after: str) -> None:
    put(ws, "f", before)
    assert edit(ws, old, new).startswith("Edited f at line ")
    assert get(ws, "f").decode() == after


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (b"\xef\xbb\xbfold\r\n", b"\xef\xbb\xbfnew\r\n"),
        ("\ufeffold é\n".encode("utf-16-le"), "\ufeffnew é\n".encode("utf-16-le")),
        (b"caf\xe9 old \xff\n", b"caf\xe9 new \xff\n"),
        ((RUSSIAN + "old é".replace("é", "е")).encode("koi8-r"), (RUSSIAN + "new е").encode("koi8-r")),
        ((JAPANESE + "old").encode("cp932"), (JAPANESE + "new").encode("cp932")),
        (b"\xff\xfe\nold\n", b"\xff\xfe\nnew\n"),
    ],
)
def test_edits_keep_encoding_and_bytes_that_are_no_text(ws: Workspace, before: bytes, after: bytes) -> None:
    put(ws, "f", before)
    edit(ws, "old", "new")
    assert get(ws, "f") == after


def test_new_text_is_written_in_the_encoding_of_the_file_or_refused(ws: Workspace) -> None:
    put(ws, "f", "# Größe für Müller\nold\n".encode("latin-1"))
    assert "line 2" in edit(ws, "old", "naïve “quotes”")
    assert get(ws, "f") == "# Größe für Müller\nnaïve “quotes”\n".encode("cp1252")
    with pytest.raises(
        ToolError, match=r"'→' \(U\+2192\), which cannot be written: f is encoded as WINDOWS-1252"
    ):
        edit(ws, "naïve", "→")
    patch = "*** Begin Patch\n*** Update File: f\n-# Größe für Müller\n+# 大\n*** End Patch"
    with pytest.raises(ToolError, match="WINDOWS-1252"):
        ApplyPatch(ws).execute(ApplyPatchParams(patch=patch), Context())
    assert get(ws, "f") == "# Größe für Müller\nnaïve “quotes”\n".encode("cp1252")
    put(ws, "f", b"\xff\xfe\nold\n")
    with pytest.raises(ToolError, match="only ASCII characters"):
        edit(ws, "old", "é")


@pytest.mark.parametrize(
    ("before", "old", "new", "after", "said"),
    [
        ("say(‘hi’);\nkeep “this”  \n", "say('hi');", "say('ho');", "say('ho');\nkeep “this”  \n", "quotes"),
        ("a – b\n", "a - b", "c", "c\n", "dashes"),
        ("x\u00a0= 1\n", "x = 1", "x = 2", "x = 2\n", "spaces"),
        ("if a:   \n    b\n", "if a:\n    b\n", "if c:\n    d\n", "if c:\n    d\n", "ends of lines"),
        ("  a\n    b\n", "a\n  b", "c\n  d\n\n  e", "  c\n    d\n\n    e\n", "indentation"),
        ("a\n  b\n", "    a\n      b\n", "    c\n      d\n", "c\n  d\n", "indentation"),
        ("\tf()\n\tg()\n", "f()\ng()", "h()", "\th()\n", "indentation"),
        (
            "if a:\n    b()\n",
            "if a:\n\tb()",
            "if a:\n\tc()\n\t\td()",
            "if a:\n    c()\n        d()\n",
            "indentation",
        ),
        ("\ta\n\t\tb\n", "  a\n    b", "  c\n    d\n      e", "\tc\n\t\td\n\t\t\te\n", "indentation"),
        ("    a\n        b\n", "  a\n    b", "    c\n  d", "        c\n    d\n", "indentation"),
        ("  // c\n\n  f()", "\nf()", "\n  g()", "  // c\n\n  g()", "indented right"),
        ("cafe\u0301()\n", "caf\u00e9()", "tea()", "tea()\n", "accents"),
        ("\r\n  a\r\n  b\r\n", "a\nb\n", "c\n", "\r\n  c\r\n", "indentation"),
    ],
)
def test_what_only_typography_or_indentation_tells_apart_is_found_and_said(
    ws: Workspace, before: str, old: str, new: str, after: str, said: str
) -> None:
    put(ws, "f", before)
    assert said in edit(ws, old, new)
    assert get(ws, "f").decode() == after


@pytest.mark.parametrize(
    ("before", "old", "words"),
    [
        ("foo\nbar\nfoo\n", "foo", ["2 times", "line 1: foo", "line 3: foo", "replace_all"]),
        ("  a\n    a\n", "a\n", ["2 times"]),
        ("  x()\n    x()\n", "\tx()", ["2 places", "line 1", "line 2"]),
        ("    x()\n  y()\n", "\tx()\n\ty()", ["not found", "indentation"]),
        ("‘a’\n’a’\n", "'a'", ["2 places"]),
        ("  hello\n    world\n", "hello\nworld", ["not found", "indentation", "   1:   hello"]),
        ("f( a, b )\n", "f(a, b)", ["not found", "spacing"]),
        ("a = {\n  x: 1,\n}\n", "a = {\n  x: 1\n}", ["not found", "line 2 of old_string", "its text"]),
        ("Def f():\n", "def f():", ["not found", "upper and lower case"]),
        ("one\ntwo\n", "one\ntwo\nthree", ["not found", "ends after 2"]),
        ("total = count * price\n", "total = counter * price", ["not found", "Nearest, from line 1"]),
        ("something\n", "else entirely", ["not found", "The file begins", "1: something"]),
        ("a\nb\n", "a\\nb", ["was a line break meant"]),
        ("", "x", ["is empty"]),
    ],
)
def test_what_is_not_sure_changes_nothing_and_says_why(
    ws: Workspace, before: str, old: str, words: list[str]
) -> None:
    put(ws, "f", before)
    with pytest.raises(ToolError) as refused:
        edit(ws, old, "new")
    for expected in words:
        assert expected in refused.value.message
    assert get(ws, "f").decode() == before


def test_replace_all_is_exact_only(ws: Workspace) -> None:
    put(ws, "f", "foo ‘foo’\r\nfoo\r\n")
    assert edit(ws, "foo", "$1", replace_all=True) == "Edited f: replaced 3 occurrences, at lines 1, 1, 2."
    assert get(ws, "f").decode() == "$1 ‘$1’\r\n$1\r\n"
    with pytest.raises(ToolError, match="not found"):
        edit(ws, "'$1'", "x", replace_all=True)
    put(ws, "f", "a a\na\n")
    said = edit(ws, "a", "b", replace_all=True, at=address_of(1, "a a"))
    assert said == "Edited f: replaced 2 occurrences, at lines 1, 1." and get(ws, "f") == b"b b\na\n"


@pytest.mark.parametrize(("old", "new", "words"), [("a", "a", "identical"), ("", "a", "use write_file")])
def test_edits_that_mean_nothing_are_refused_before(ws: Workspace, old: str, new: str, words: str) -> None:
    problem = EditFile(ws).precheck(EditFileParams(path="f", old_string=old, new_string=new))
    assert problem is not None and words in problem


def test_binary_files_are_not_edited(ws: Workspace) -> None:
    put(ws, "f", b"a\0b")
    with pytest.raises(ToolError, match="cannot be edited"):
        edit(ws, "a", "c")


LINES = st.lists(st.text(alphabet="ab \t'“", max_size=4), max_size=6)
BREAKS = st.sampled_from(["\n", "\r\n"])


@given(LINES, LINES, LINES, BREAKS, BREAKS)
def test_what_is_around_an_exact_match_never_changes(
    head: list[str], middle: list[str], tail: list[str], one: str, other: str
) -> None:
    before = one.join([*head, "<<"]) + other.join(middle) + one.join([">>", *tail])
    source = Source(before)
    matches = find_exact(source.text, "<<" + "\n".join(middle) + ">>", "new\ntext")
    assert len(matches) == 1
    after = source.replace(matches)
    assert after.startswith(one.join([*head, ""])) and after.endswith(one.join(["", *tail]))
    assert after.replace("\r\n", "\n").count("new\ntext") == 1


@given(LINES, LINES, LINES, st.sampled_from(["", "  ", "\t"]))
def test_a_tolerant_match_is_the_same_text_but_for_spaces_and_quotes(
    head: list[str], wanted: list[str], tail: list[str], indent: str
) -> None:
    there = [indent + line if line.strip() else line for line in wanted]
    text = "\n".join([*head, *there, *tail])
    for match in find_tolerant(Source(text), "\n".join(wanted), "new"):
        found = text[match.start : match.end].replace("“", '"')
        assert found.split() == "\n".join(wanted).replace("“", '"').split()


# Diffs.


@given(st.lists(st.sampled_from("abc"), max_size=30), st.lists(st.sampled_from("abc"), max_size=30))
def test_a_diff_says_exactly_what_changed(old: list[str], new: list[str]) -> None:
    import difflib

    before, after = "".join(f"{line}\n" for line in old), "".join(f"{line}\n" for line in new)
    diff = unified_diff(before, after, "f")
    assert bool(diff) == (old != new)
    body = [line for line in diff.splitlines()[2:] if not line.startswith("@@")]
    expected = list(difflib.unified_diff(old, new, lineterm="", n=0))[2:]
    for sign in "+-":
        mine = sum(line.startswith(sign) for line in body)
        assert mine >= sum(line.startswith(sign) for line in expected) or mine <= max(len(old), len(new))
    assert [line[1:] for line in body if line[0] in " -"] == _covered(old, diff, 0)
    assert [line[1:] for line in body if line[0] in " +"] == _covered(new, diff, 1)


ENDS = st.sampled_from(["\n", "\r\n"])


@given(st.lists(st.tuples(st.sampled_from("abc"), ENDS, ENDS), max_size=8), st.booleans(), st.booleans())
def test_a_diff_shows_line_ends_that_changed(
    lines: list[tuple[str, str, str]], ended: bool, new_ended: bool
) -> None:
    old = "".join(text + end for text, end, _ in lines) + ("" if ended else "z")
    new = "".join(text + end for text, _, end in lines) + ("" if ended else "z\n" if new_ended else "z")
    diff = unified_diff(old, new, "f")
    sides = [
        [line[1:] for line in diff.split("\n")[2:] if line.startswith((" ", "\\", sign))] for sign in "-+"
    ]
    assert bool(diff) == (old != new) and (not diff or sides[0] != sides[1] or "\\ No newline" in diff)


def test_a_diff_shows_only_line_ends_that_changed() -> None:
    assert unified_diff("a\r\nb\r\n", "a\r\nc\r\n", "f").splitlines()[3:] == [" a", "-b", "+c"]
    assert unified_diff("a\r\nb\r\n", "a\nb\r\n", "f").split("\n")[3:] == ["-a\r", "+a", " b\r", ""]
    no_end = "\\ No newline at end of file"
    assert unified_diff("a\nb\n", "a\nb", "f").splitlines()[3:] == [" a", "-b", "+b", no_end]
    assert unified_diff("a\nb", "a\nc", "f").splitlines()[3:] == [" a", "-b", "+c"]


def _covered(lines: list[str], diff: str, side: int) -> list[str]:
    """The lines of one side that the hunks' headers name."""
    covered: list[str] = []
    for header in (line for line in diff.splitlines() if line.startswith("@@")):
        start, _, length = header.split()[1 + side][1:].partition(",")
        count = int(length or 1)
        first = int(start) - 1 if count else int(start)
        covered += lines[first : first + count]
    return covered


# Listing.


def test_a_listing_is_sorted_indented_and_paged(ws: Workspace) -> None:
    for path in ("b.txt", "a/deep/x", "a/y", ".hidden", "node_modules/pkg/index.js", ".git/HEAD"):
        put(ws, path, "")
    tool = ListDir(ws)

    def as_tuple(**named: Any) -> str:
        return tool.execute(ListDirParams(**named), Context())

    assert as_tuple().splitlines() == [".git/", ".hidden  0 B", "a/", "b.txt  0 B", "node_modules/"]
    assert as_tuple(depth=3).splitlines() == [
        ".git/ (not listed)",
        ".hidden  0 B",
        "a/",
        "  deep/",
        "    x  0 B",
        "  y  0 B",
        "b.txt  0 B",
        "node_modules/ (not listed)",
    ]
    assert as_tuple(limit=2) == ".git/\n.hidden  0 B\n\n[Entries 1-2 of 5. Use offset=3 to read on.]"
    assert as_tuple(offset=5) == "node_modules/"
    assert as_tuple(path="node_modules") == "pkg/"
    with pytest.raises(ToolError, match="has 5 entries"):
        as_tuple(offset=6)
    with pytest.raises(ToolError, match=r"b\.txt is a file, not a folder"):
        as_tuple(path="b.txt")
    with pytest.raises(ToolError, match="Did you mean a"):
        as_tuple(path="A")
    put(ws, "empty/x", "")
    with pytest.raises(ToolError, match=r"has 1 entry\."):
        as_tuple(path="empty", offset=2)
    (Path(ws.root.path) / "empty/x").unlink()
    assert as_tuple(path="empty") == "[empty is empty.]"
    for name, size in (("a", 999), ("b", 1_000), ("c", 12_345), ("d", 999_949), ("e", 1_000_000)):
        put(ws, f"sizes/{name}", b"x" * size)
    assert as_tuple(path="sizes").splitlines() == [
        "a  999 B",
        "b  1.0 KB",
        "c  12.3 KB",
        "d  999.9 KB",
        "e  1.0 MB",
    ]


def test_names_stay_on_their_line(ws: Workspace) -> None:
    put(ws, "two\nlines", "")
    put(ws, "é", "")
    assert ListDir(ws).execute(ListDirParams(), Context()).splitlines() == ["two\\nlines  0 B", "é  0 B"]


@each("text", ["café crème", "ça va très bien, déjà vu", "Tromsø på søndag", "Größe: 5", "jalapeño", "25 °C"])
def test_a_short_western_text_is_not_read_as_greek_or_russian(text: str) -> None:
    assert text_encoding.detect(text.encode("cp1252")) == text_encoding.Encoding("windows-1252", guessed=True)


@each("text, name", [("Привет, мир", "windows-1251"), ("Καλημέρα κόσμε", "windows-1253"), ("# Это для Python", "windows-1251")])  # fmt: skip
def test_a_short_text_of_another_script_is_read_as_such(text: str, name: str) -> None:
    assert text_encoding.detect(text.encode(name)) == text_encoding.Encoding(name, guessed=True)


@each(
    "name",
    [
        "write_file",
        "edit_file",
        "multi_edit",
        "apply_patch",
        "delete_file",
        "move_file",
        "read_file",
        "list_dir",
        "glob",
        "grep",
    ],
)
@each("path", ["/etc/x", "../x", "~/x", " "])
def test_nobody_is_asked_about_a_path_outside(tmp_path: Path, name: str, path: str) -> None:
    """What cannot succeed, whatever a person says, is refused before anybody is asked."""
    arguments: dict[str, dict[str, Any]] = {
        "write_file": {"path": path, "content": "x"},
        "edit_file": {"path": path, "old_string": "a", "new_string": "b"},
        "multi_edit": {"edits": [{"path": path, "old_string": "a", "new_string": "b"}]},
        "apply_patch": {"patch": f"*** Begin Patch\n*** Delete File: {path}\n*** End Patch\n"},
        "move_file": {"path": "a.txt", "to": path},
        "glob": {"pattern": "*", "path": path},
        "grep": {"pattern": "x", "path": path},
    }
    questions: list[Question] = []

    def approver(question: Question) -> Answer:
        questions.append(question)
        return Answer(Verdict.YES)

    tools = workspace_tools(Workspace(tmp_path), patches=name == "apply_patch")
    box = Toolbox(tools, policy=RulePolicy("full", [Rule(verb=Verb.ASK, tools=("*",))]), approver=approver)
    result = box.call_sync(name, arguments.get(name, {"path": path}))
    assert result.is_error and not questions, result.text
    assert "outside the workspace" in result.text or "path is empty" in result.text or "patch" in result.text
