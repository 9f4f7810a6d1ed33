"""POSIX character classes in searches: they mean what grep's and ripgrep's mean, and nothing else changes its meaning."""

from __future__ import annotations

import importlib
import re
import string
import warnings
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from toolcrib.context import Context
from toolcrib.tools import Grep, GrepParams
from toolcrib.tools.backends import MemoryBackend, Write
from toolcrib.tools.posix_classes import CLASSES, without_posix_classes

ASCII = "".join(map(chr, range(128)))
MEANT = {
    "alnum": string.ascii_letters + string.digits,
    "alpha": string.ascii_letters,
    "ascii": ASCII,
    "blank": " \t",
    "cntrl": "".join(char for char in ASCII if not char.isprintable()),
    "digit": string.digits,
    "graph": string.ascii_letters + string.digits + string.punctuation,
    "lower": string.ascii_lowercase,
    "print": string.ascii_letters + string.digits + string.punctuation + " ",
    "punct": string.punctuation,
    "space": string.whitespace,
    "upper": string.ascii_uppercase,
    "word": string.ascii_letters + string.digits + "_",
    "xdigit": string.hexdigits,
}
parser: Any = importlib.import_module("re._parser")


def grep(pattern: str, **more: Any) -> str:
    backend = MemoryBackend()
    backend.apply([Write("a.c", b"int foo = 1;\n\tbar\n]x\n")])
    tool = Grep(backend)
    params = GrepParams(pattern=pattern, **more)
    return tool.precheck(params) or tool.execute(params, Context())


def test_each_class_has_its_characters() -> None:
    assert set(CLASSES) == set(MEANT)
    for name, chars in MEANT.items():
        inside = re.compile(without_posix_classes(f"[[:{name}:]]"))
        outside = re.compile(without_posix_classes(f"[^[:{name}:]]"))
        assert {char for char in ASCII if inside.match(char)} == set(chars), name
        assert {char for char in ASCII if outside.match(char)} == set(ASCII) - set(chars), name


def test_searches_know_them() -> None:
    assert "1: int foo" in grep("^[[:alpha:]]+ [[:lower:]_]+ = [[:digit:]]")
    assert "2: \tbar" in grep("^[[:space:]]bar", multiline=True)
    assert "3: ]x" in grep("^[][:punct:]][^[:upper:]]")


@pytest.mark.parametrize(
    ("pattern", "words"),
    [
        ("[[:alfa:]]", "[:alfa:] is not known; known are [:alnum:], [:alpha:]"),
        ("[[:^alpha:]]", "write [^[:alpha:]]"),
        ("a[:space:]b", "stands inside of brackets: [[:space:]]"),
    ],
)
def test_what_they_do_not_mean_is_explained(pattern: str, words: str) -> None:
    assert words in grep(pattern)


def test_an_escaped_bar_that_finds_nothing_is_explained() -> None:
    assert r"\| is the character | itself" in grep(r"foo\|bar;")


@example("(?#[)|")
@given(st.text(alphabet="[]^-\\&|~:abdwx()*.0?#", max_size=14))
def test_other_patterns_keep_their_meaning_without_warnings(pattern: str) -> None:
    try:
        written = without_posix_classes(pattern)
    except re.error:
        assert "[:" in pattern
        return
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            meant = parser.parse(pattern)
        except re.error:
            meant = None
    if meant is None:
        with pytest.raises(re.error):
            re.compile(written)
    else:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            assert str(parser.parse(written)) == str(meant)
