"""The public API has edges: documented modules, an `__all__` in each, and pages and examples that use nothing else."""

from __future__ import annotations

import ast
import importlib
import textwrap
from collections.abc import Iterator
from pathlib import Path

import pytest

import toolcrib
from tests.test_docs import FENCE
from tests.test_docs_tables import TABLES

ROOT = Path(__file__).parents[1]
PUBLIC: tuple[str, ...] = TABLES.PUBLIC_MODULES


def programs() -> Iterator[tuple[str, str]]:
    """Every Python program that a user is shown, with the name of its page."""
    for page in [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]:
        for _, language, _, block in FENCE.findall(page.read_text(encoding="utf-8")):
            if language == "python":
                yield page.name, textwrap.dedent(block)
    for example in sorted((ROOT / "examples").glob("*.py")):
        yield example.name, example.read_text(encoding="utf-8")


def imports(program: str) -> Iterator[tuple[str, str]]:
    for node in ast.walk(ast.parse(program)):
        if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "toolcrib":
            yield from ((str(node.module), alias.name) for alias in node.names)
        elif isinstance(node, ast.Import):
            yield from ((alias.name, "") for alias in node.names if alias.name.split(".")[0] == "toolcrib")


def test_what_users_are_shown_imports_only_public_names() -> None:
    private = {
        f"{page}: from {module} import {name}"
        for page, program in programs()
        for module, name in imports(program)
        if module not in PUBLIC or (name and name not in importlib.import_module(module).__all__)
    }
    assert sorted(private) == []


@pytest.mark.parametrize("name", PUBLIC)
def test_a_public_module_hands_out_what_it_lists(name: str) -> None:
    module = importlib.import_module(name)
    assert [item for item in module.__all__ if not hasattr(module, item)] == []
    assert len(module.__all__) == len(set(module.__all__))
    assert not [item for item in module.__all__ if item.startswith("_")]


def test_no_two_public_classes_share_a_name() -> None:
    homes: dict[str, set[str]] = {}
    for path in sorted(Path(toolcrib.__file__).parent.rglob("*.py")):
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                homes.setdefault(node.name, set()).add(path.name)
    assert {name: sorted(files) for name, files in homes.items() if len(files) > 1} == {}
