"""The tables of the pages are what the code says; `python docs/tables.py` writes them anew."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import pytest

from toolcrib.codecs.catalog import CODECS
from toolcrib.codecs.text import formats
from toolcrib.models.providers import PROVIDERS

DOCS = Path(__file__).parents[1] / "docs"


def tables_module() -> ModuleType:
    spec = importlib.util.spec_from_file_location("docs_tables", DOCS / "tables.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


TABLES = tables_module()
PROMISES = sys.modules["promises"]


@pytest.mark.parametrize("page", TABLES.TABLES)
def test_a_page_says_what_the_code_says(page: str) -> None:
    written = (DOCS / page).read_text(encoding="utf-8")
    assert written == TABLES.filled(page), "run: python docs/tables.py"


def test_every_provider_has_a_page_that_is_filled() -> None:
    pages = {str(page.relative_to(DOCS)) for page in (DOCS / "providers").glob("*.md")}
    assert pages == {page for page in TABLES.TABLES if page.startswith("providers/")}
    assert {f"providers/{page}" for _, page in TABLES.FORMATS.values()} <= pages
    assert {row.cls for row in PROVIDERS.values()} <= set(TABLES.FORMATS)


def test_nothing_that_there_is_lacks_its_row() -> None:
    assert all(f"| `{name}` |" in TABLES.text_format_table() for name in formats())
    assert all(f"| `{name}:`" in TABLES.provider_table() for name in PROVIDERS)
    assert set(TABLES.HEADS) == set(CODECS)


def test_the_page_of_public_names_says_what_each_is() -> None:
    lines = TABLES.api_table().splitlines()
    assert [line for line in lines if line.startswith("| `") and line.endswith("|  |")] == []
    # What Python says of a type that an alias stands for is nothing about the alias.
    assert [line for line in lines if "Built-in immutable" in line or "generic container" in line] == []


@pytest.mark.parametrize(
    ("text", "shown"),
    [("a\nb", "`a⏎b`"), ("<|x|>", r"`<\|x\|>`"), ("```json\n[]\n```", "```` ```json⏎[]⏎``` ````")],
)
def test_code_in_a_cell_is_one_line_that_ends_no_cell(text: str, shown: str) -> None:
    assert TABLES.code(text) == shown


PROMISING = [
    ("security.md", "What is promised"),
    ("policy.md", "A reviewer"),
    ("policy.md", "Rules that lie in a project"),
    ("faults.md", "The process is killed"),
    ("faults.md", "The disk is full"),
    ("faults.md", "No descriptor is left"),
    ("faults.md", "The network breaks"),
    ("faults.md", "A tool hangs, or code of yours raises"),
    ("faults.md", "The clock is set"),
]


@pytest.mark.parametrize(("page", "heading"), PROMISING)
def test_what_a_page_promises_has_a_test(page: str, heading: str) -> None:
    """Each item of a section in which everything is a promise. What has no test is no promise, or lacks one."""
    items = PROMISES.items(page, heading)
    assert items
    held = [PROMISES.plain(promise.words) for promise in PROMISES.promises() if promise.page == page]
    assert [item for item in items if not any(words in item for words in held)] == []


def test_a_promise_stands_in_its_page_and_is_held_by_tests() -> None:
    pages = {promise.page for promise in PROMISES.promises()}
    assert {"security.md", "sandbox.md", "shell-commands.md", "policy.md", "undo.md", "faults.md"} <= pages
    missing = [
        f"{promise.page}: {promise.words} ({promise.test})"
        for promise in PROMISES.promises()
        if PROMISES.plain(promise.words) not in PROMISES.plain(PROMISES.page_text(promise.page))
    ]
    assert missing == []
