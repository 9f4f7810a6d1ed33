"""Recorded: from how a command ended and what it said, whether a sandbox refused it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.conformance.conftest import load_cases
from toolcrib.command.sandbox import Bubblewrap, Landlock, Launch, NoSandbox, Sandbox, Seatbelt

SANDBOXES: dict[str, Callable[[Path], Sandbox]] = {
    "none": lambda ws: NoSandbox(),
    "seccomp": Landlock,
    "landlock": Landlock,
    "bubblewrap": Bubblewrap,
    "seatbelt": Seatbelt,
}
CASES = load_cases("cases/codex/sandbox_denied_detection.json")


@pytest.mark.parametrize("case", CASES, ids=[case["name"] for case in CASES])
def test_a_refusal_is_told_from_a_failure(case: dict[str, Any], tmp_path: Path) -> None:
    given = case["input"]
    sandbox = next(make for name, make in SANDBOXES.items() if name in given["sandbox"].lower())(tmp_path)
    said = "\n".join(given[name] for name in ("stdout", "stderr", "aggregated") if given[name])
    denial = sandbox.explain(given["exit_code"], said, Launch([], {}, str(tmp_path)))
    assert (denial is not None) == case["expected"], denial
