"""The tables "promise | test" of the pages, from the marks of the tests: `@pytest.mark.promise(PAGE, WORDS)`.

The words are the page's own. The marks are read from the source of the tests, of which nothing is imported.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

PAGES = Path(__file__).parent
TESTS = PAGES.parent / "tests"
MARKUP = re.compile(r"<!--.*?-->|\*\*|^#+ |^ *- ", re.MULTILINE)
LINK = re.compile(r"\[([^\]]*)\]\([^)]*\)")


@dataclass(frozen=True, slots=True)
class Promise:
    """What a page promises, and a test that holds it."""

    page: str
    words: str
    test: str


@cache
def promises() -> tuple[Promise, ...]:
    """All marks, in the order of the tests."""
    return tuple(promise for file in sorted(TESTS.glob("test_*.py")) for promise in _marks(file))


def _marks(file: Path) -> Iterator[Promise]:
    source = file.read_text(encoding="utf-8")
    if "mark.promise(" not in source:
        return
    for node in ast.parse(source).body:
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            for mark in node.decorator_list:
                if isinstance(mark, ast.Call) and ast.unparse(mark.func) == "pytest.mark.promise":
                    page, words = map(ast.literal_eval, mark.args)
                    yield Promise(page, words, f"{file.name}::{node.name}")


def plain(text: str) -> str:
    """A text without the marks of Markdown that stand between its words, on one line."""
    return " ".join(LINK.sub(r"\1", MARKUP.sub("", text)).split())


def page_text(page: str) -> str:
    """What a page says, without its table of promises."""
    text = (PAGES / page).read_text(encoding="utf-8")
    return re.sub(r"<!-- promises -->.*<!-- /promises -->", "", text, flags=re.DOTALL)


def promise_table(page: str) -> str:
    """The promises of a page in their order, each with its tests. ValueError for words that the page does not have."""
    said, tests = plain(page_text(page)), dict[str, list[str]]()
    for promise in promises():
        if promise.page == page:
            if plain(promise.words) not in said:
                raise ValueError(f"{page} does not say what {promise.test} promises: {promise.words}")
            tests.setdefault(promise.words, []).append(promise.test)
    rows = (
        "| {} | {} |".format(words.replace("|", "\\|"), ", ".join(f"`{test}`" for test in tests[words]))
        for words in sorted(tests, key=lambda words: said.index(plain(words)))
    )
    return "\n".join(["| promise | test |", "| --- | --- |", *rows])


def items(page: str, heading: str) -> list[str]:
    """The list items and table rows of a section, by its heading."""
    section = re.split(
        r"^#+ ", page_text(page).partition(f"# {heading}\n")[2], maxsplit=1, flags=re.MULTILINE
    )[0]
    section = re.sub(r"```.*?```", "", section, flags=re.DOTALL)
    found = re.split(r"^(?=- |\| )", section, flags=re.MULTILINE)[1:]
    return [plain(item) for item in found if not item.startswith("| ---") and not item.startswith("| |")]
