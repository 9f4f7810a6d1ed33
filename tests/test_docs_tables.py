"""The tables of the pages are what the code says; `python docs/tables.py` writes them anew."""

from __future__ import annotations

import importlib.util
import re
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


@pytest.mark.parametrize(
    ("text", "shown"),
    [("a\nb", "`a⏎b`"), ("<|x|>", r"`<\|x\|>`"), ("```json\n[]\n```", "```` ```json⏎[]⏎``` ````")],
)
def test_code_in_a_cell_is_one_line_that_ends_no_cell(text: str, shown: str) -> None:
    assert TABLES.code(text) == shown


def test_the_tests_that_a_page_names_exist() -> None:
    named = re.findall(r"`(test_\w+\.py)::(test_\w+)`", (DOCS / "faults.md").read_text(encoding="utf-8"))
    tests = Path(__file__).parent
    assert len(named) > 20
    missing = [
        f"{file}::{name}"
        for file, name in named
        if not re.search(
            rf"^(?:async )?def {name}\(", (tests / file).read_text(encoding="utf-8"), re.MULTILINE
        )
    ]
    assert missing == []
