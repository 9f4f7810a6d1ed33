"""grep finds the same with ripgrep and without it; what decides is Python's `re`, tried here on each line."""

from __future__ import annotations

import os
import re
import subprocess
import threading
import time
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from toolcrib.context import Context
from toolcrib.errors import Cancelled
from toolcrib.tools import Grep, GrepParams, Workspace
from toolcrib.tools.backends import MemoryBackend, Write
from toolcrib.tools.line_filter import line_filter
from toolcrib.tools.regex_search import TooSlow, Wanted
from toolcrib.tools.regex_worker import Search
from toolcrib.tools.ripgrep import find_ripgrep, texts_with_matches

RIPGREP = find_ripgrep()
ENGINES = [False, *([RIPGREP] if RIPGREP else [])]
needs_ripgrep = pytest.mark.skipif(
    RIPGREP is None, reason="ripgrep is not installed: searches with and without it are not compared"
)


@pytest.fixture(autouse=True)
def small_searches_use_ripgrep(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("toolcrib.tools.grep_search.WORTH_RIPGREP", 0)
    monkeypatch.setattr("toolcrib.tools.grep_search.MANY", 1.0)


TEXTS: dict[str, bytes] = {
    "plain.txt": b"foo bar\nFOO\n\nfoofoo x1 _y\n  indented\nend",
    "windows.txt": b"foo\r\nbar foo\r\n\r\nend\r\n",
    "odd.txt": b"a\rb\nfoo\r\r\nlast\r",
    "utf8.txt": "Straße ÉCOLE école ſoo K İstanbul ıi ²½ ٣\u00a0x\u2028y\x85z\n".encode(),
    "latin.txt": b"caf\xe9 foo\n\xff\xfe\n",
    "wide.txt": "\ufefffoo é\nbar\n".encode("utf-16-le"),
    "bom.txt": b"\xef\xbb\xbffoo\n",
    "empty.txt": b"",
    "newlines.txt": b"\n\n\n",
    "control.txt": b"tab\there\x0bvt\x0cff\x1cfs\x7f\n",
    "late_zero.txt": b"x" * 9_000 + b"\0foo\n",
    "blob.bin": b"foo\0\1\2",
    "long.txt": b"a" * 3_000 + b"foo" + b"b" * 3_000 + b"\n",
    "repeats.txt": b"abab\nabba\naa bb aa\n(x)\n[y]\n$5.00\na.b*c\n",
}
PATTERNS = [
    "foo", "^foo", "foo$", "^foo$", "^$", "^", "$", "x?", r"\bfoo\b", r"\Bfoo", r"\w+", r"\W", r"\d", r"\D", r"\s", r"\S+$", r"\s$", ".", "..+",
    "[a-c]{2,}", "[^a-z]", r"[^\w\s]", r"[\w.]+\*", r"[\d²]", "[é-ſ]", "É", "école", "straße", "[k-s]oo", "ſ", "k", "i", "İ", "ı", "[^i]",
    "foo|bar", "(?:foo|bar) ", "(ab)+", r"(ab)\1", r"(a)(b)\2\1", r"(?P<n>a)(?P=n)", "(?<=foo)bar", "foo(?= bar)", "foo(?! bar)", "(?<!o)foo",
    "(?i)foo", "(?i:FOO) bar", "(?s:.)foo", "(?m)^end$", "(?x) foo \\s bar # words", "(?a)\\w\u00e9?", r"\Aend\Z", "(?>a+)b", "a++b", "a*+$",
    "(a)?b(?(1)a|x)", r"\$5\.00", r"\(x\)", r"\[y\]", "\\x00", "\\x1c", "\u2028", "\x85", r"\u00e9", r"a{0,3}b", "a{3000}", "(?:a{40}){2}", "a{60,}f",
    "[^\n]foo", r"[\s\S]foo", r"\n", "a\\nb", "\r", "\\r$", "(?!)", "x*y*", "", "\ufffd", "fs\x7f", "[\\x00-\\x20]", "(|foo)z", "((((foo))))",
]  # fmt: skip


def as_text(data: bytes) -> str:
    """A file's text, as a search takes it."""
    text = data.decode("utf-16" if data.startswith(b"\xff\xfef") else "utf-8", "replace")
    return text.removeprefix("\ufeff")


def lines_of(text: str) -> list[str]:
    lines = text.split("\n")
    return [line.removesuffix("\r") for line in (lines if lines[-1] else lines[:-1])]


def search(ws: Any, engine: str | bool, **named: Any) -> str:
    return Grep(ws, ripgrep=engine).execute(GrepParams(**named), Context())


def stored(files: dict[str, bytes]) -> MemoryBackend:
    backend = MemoryBackend()
    backend.apply([Write(path, data) for path, data in files.items()])
    return backend


@pytest.mark.parametrize("ignore_case", [False, True])
def test_every_engine_finds_the_lines_that_python_finds(ignore_case: bool) -> None:
    texts = [as_text(data) for data in TEXTS.values()]
    wrong: dict[str, object] = {}
    for pattern in filter(None, PATTERNS):
        compiled = re.compile(pattern, re.IGNORECASE if ignore_case else 0)
        wanted = [sum(compiled.search(line) is not None for line in lines_of(text)) for text in texts]
        known = line_filter(pattern, ignore_case=ignore_case)
        for expression in {"", "" if known.for_linear else known.expression}:
            asked = Wanted(pattern, expression, ignore_case, room=0, most=1_000)
            found = [Search(asdict(asked)).search(text)[0] for text in texts]
            if found != wanted:
                wrong[pattern, expression] = [found, wanted]
        if RIPGREP and known.expression:
            given = [text.encode() for text in texts]
            where = texts_with_matches(RIPGREP, known.expression, given, 1e18, lambda: None)
            missed = [index for index, count in enumerate(wanted) if count and index not in (where or [])]
            if missed and where is not None:
                wrong[pattern, "ripgrep"] = missed
    assert not wrong


def test_kinds_of_text_are_searched_alike() -> None:
    for engine in ENGINES:
        said = search(stored(TEXTS), engine, pattern="f[o]+", output="count").splitlines()
        assert said == [
            "bom.txt: 1", "late_zero.txt: 1", "latin.txt: 1", "long.txt: 1", "odd.txt: 1", "plain.txt: 2", "wide.txt: 1", "windows.txt: 2",
        ]  # fmt: skip


PIECES = st.sampled_from(
    ["a", "b", "É", "ß", "s", "k", "i", ".", r"\w", r"\W", r"\d", r"\s", r"\S", r"\b", "^", "$", "[ab]", "[^a]", "[a-z]", r"[^\w]", "(?:ab|b)", "(a)",
     "(?=a)", "(?<!b)", " ", "x"]
)  # fmt: skip
ENDINGS = st.sampled_from(["", "", "", "*", "+", "?", "{2}", "{0,3}", "+?"])
CHARS = st.text(alphabet="abABxsSkKiIéÉßſK İı1²\t\r\n_.", max_size=12)


@st.composite
def patterns(draw: st.DrawFn) -> str:
    parts = draw(st.lists(st.tuples(PIECES, ENDINGS), min_size=1, max_size=5))
    said = "".join(
        piece + ("" if piece in ("^", "$", r"\b", "(?=a)", "(?<!b)") else end) for piece, end in parts
    )
    other = draw(st.sampled_from(["", "", "|b", "|ab$"]))
    return said + other


@needs_ripgrep
@settings(max_examples=30)
@given(
    patterns(),
    st.dictionaries(st.sampled_from(["a.py", "b.txt", "d/c.py", "d/e/f", "g.md"]), CHARS, min_size=1),
    st.booleans(),
    st.sampled_from(["content", "files", "count", {"before": 1, "after": 2}]),
    st.integers(1, 3),
    st.booleans(),
)
def test_results_are_the_same_with_ripgrep_and_without(
    pattern: str, texts: dict[str, str], ignore_case: bool, output: Any, offset: int, multiline: bool
) -> None:
    backend = stored({path: text.encode() for path, text in texts.items()})
    named = {"pattern": pattern, "ignore_case": ignore_case, "output": output, "offset": offset, "limit": 2}
    told = [search(backend, engine, multiline=multiline, **named) for engine in ENGINES]
    assert told[0] == told[1]


@settings(max_examples=100)
@given(patterns(), CHARS, st.booleans())
def test_no_line_with_a_match_is_filtered_out(pattern: str, text: str, ignore_case: bool) -> None:
    known = line_filter(pattern, ignore_case=ignore_case)
    for line in text.split("\n"):
        if re.search(pattern, line, re.IGNORECASE if ignore_case else 0):
            assert re.search(known.expression, line)
            within = line.lower() if known.folded and line.isascii() else line
            assert (
                not known.literals
                or any(one in within for one in known.literals)
                or (known.folded and not line.isascii())
            )


@needs_ripgrep
def test_ripgrep_opens_no_file_and_reads_no_settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    settings_file = tmp_path / "settings"
    settings_file.write_text("--invert-match\n")
    monkeypatch.setenv("RIPGREP_CONFIG_PATH", str(settings_file))
    (tmp_path / "bin").mkdir()
    planted = tmp_path / "bin" / "rg"
    planted.write_text(f"#!/bin/sh\ntouch {tmp_path}/ran\n")
    planted.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}/bin:{os.environ['PATH']}")
    (tmp_path / "secret").symlink_to("/etc/passwd")
    (tmp_path / "a.txt").write_text("root\n")
    assert search(Workspace(tmp_path), True, pattern="ro+t", output="files", include="*.txt") == "a.txt"
    assert not (tmp_path / "ran").exists()


@needs_ripgrep
def test_ripgrep_is_left_out_where_no_thread_can_be_started(monkeypatch: pytest.MonkeyPatch) -> None:
    children: list[subprocess.Popen[bytes]] = []

    class Noted(subprocess.Popen[bytes]):
        def __init__(self, *given: Any, **more: Any) -> None:
            super().__init__(*given, **more)
            children.append(self)

    def start(thread: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(subprocess, "Popen", Noted)
    monkeypatch.setattr(threading.Thread, "start", start)
    assert texts_with_matches(str(RIPGREP), "a", [b"a"], time.monotonic() + 5, lambda: None) is None
    assert [child.returncode is None for child in children] == [False]


@needs_ripgrep
def test_a_search_in_ripgrep_ends_when_it_is_cancelled() -> None:
    def check() -> None:
        raise Cancelled

    with pytest.raises(Cancelled):
        texts_with_matches(RIPGREP or "", "c", [b"ab" * 2_000_000], 1e18, check)
    with pytest.raises(TooSlow):
        texts_with_matches(RIPGREP or "", "c", [b"ab" * 2_000_000], 0.0, lambda: None)


def test_a_pattern_may_span_lines() -> None:
    backend = stored({"a.c": b"struct x {\r\n  int a;\r\n};\r\nint b;\r\n", "b.c": b"struct y;\n"})
    for engine in ENGINES:
        said = search(backend, engine, pattern=r"struct x \{.*?\};", multiline=True)
        assert said == "a.c\n  1: struct x {\n  2:   int a;\n  3: };"
        assert search(backend, engine, pattern="\\};\nint", multiline=True, output="count") == "a.c: 2"
        assert search(backend, engine, pattern=r"^int b;$", multiline=True) == "a.c\n  4: int b;"
    assert "set multiline" in search(backend, False, pattern=r"\};\nint")


def test_results_are_read_on_from_an_offset() -> None:
    backend = stored({f"f{number}": b"hit 1\nhit 2\nno\nhit 3\n" for number in range(3)})
    for engine in ENGINES:
        seen = ""
        for offset in range(1, 10, 2):
            said = search(backend, engine, pattern="h.t", offset=offset, limit=2)
            seen += re.sub(r"(?s)\n\n\[.*|^f\d$|\n", "", said.replace("\n\n", "\n"), flags=re.MULTILINE)
            assert ("there are more" in said) == (offset < 8)
        assert re.findall(r"hit \d", seen) == ["hit 1", "hit 2", "hit 3"] * 3
    assert "only 9 matching lines; offset 10" in search(backend, False, pattern="hit", offset=10)
    assert search(backend, False, pattern="hit", output="files", offset=3) == "f2"
    assert search(backend, False, pattern="hit", output="count", offset=2, limit=1).startswith(
        "f1: 3\n\n[Files 2-2"
    )


def test_files_are_chosen_by_their_type() -> None:
    backend = stored({"a.py": b"x", "b.pyi": b"x", "d/c.ts": b"x", "Makefile": b"x", "py": b"x"})
    for named, wanted in [
        ({"type": "py"}, "a.py\nb.pyi"),
        ({"type": "Python"}, "a.py\nb.pyi"),
        ({"type": "ts"}, "d/c.ts"),
        ({"type": "make"}, "Makefile"),
        ({"type": "py", "include": "a*"}, "a.py"),
    ]:
        assert search(backend, False, pattern="x", output="files", **named) == wanted
    problem = Grep(backend).precheck(GrepParams(pattern="x", type="cobol"))
    assert problem is not None and "py" in problem and "use include" in problem
