"""Recorded cases live beside a developer's checkout, never in it."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

SHARED = Path(__file__).parents[2].parent / "shared"


def shared_dir() -> Path:
    """The folder of recorded cases; skips the asking test where it is absent, and fails it in CI."""
    if SHARED.is_dir():
        return SHARED
    if os.environ.get("CI"):
        pytest.fail(f"CI needs the recorded cases at {SHARED}", pytrace=False)
    pytest.skip(f"no recorded cases at {SHARED}", allow_module_level=True)


def load_cases(relative: str) -> list[Any]:
    """All cases of one JSON or JSON Lines file below the folder of recorded cases."""
    return list(_records(shared_dir() / relative))


def _records(path: Path) -> Iterator[Any]:
    text = path.read_text(encoding="utf-8")
    if path.suffix == ".jsonl":
        yield from (json.loads(line) for line in text.split("\n") if line.strip())
    else:
        yield from json.loads(text)


@pytest.fixture(scope="session")
def shared() -> Path:
    return shared_dir()
