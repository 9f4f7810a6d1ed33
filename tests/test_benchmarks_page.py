"""How results of benchmarks get into docs/benchmarks.md: sections of measures that were not run stay, and who leads is said."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path
from typing import Any

import pytest

BENCHMARKS = Path(__file__).parents[1] / "benchmarks"


@pytest.fixture
def report(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    yield importlib.import_module("report")
    for name in ("report", "goals", "measures"):
        sys.modules.pop(name, None)


def sample(peer: str, microseconds: float, row: str = "async") -> dict[str, Any]:
    return {"row": row, "peer": peer, "name": peer, "path": "call", "figures": {"µs": microseconds}}


def test_a_page_keeps_what_was_not_measured_and_says_who_leads(report: Any) -> None:
    calls = [
        sample(peer, us) for peer, us in (("toolcrib", 9.0), ("floor", 2.0), ("quick", 5.0), ("slow", 30.0))
    ]
    tables = [
        report.table(
            "calls",
            "One call",
            "About.",
            "Measured.",
            report.medians([*calls, sample("slow", 1.0, "theirs alone")]),
        ),
        report.table("imports", "Import", "About.", "Measured.", report.medians([sample("toolcrib", 1.0)])),
    ]
    first = report.into_page("Words.\n\n## Results\n", "a machine", {"toolcrib": "1", "slow": "3"}, tables)
    assert (
        "- One call, async: quick (5 to 9 µs)\n" in first and "theirs" not in first.split("### One call")[0]
    )
    again = report.table("imports", "Import", "About.", "Anew.", report.medians([sample("toolcrib", 2.0)]))
    second = report.into_page(first, "another machine", {"toolcrib": "2"}, [again])
    assert second.startswith("Words.\n\n## Results\n\nanother machine\n")
    assert "- toolcrib: 2\n- slow: 3\n" in second
    assert second.count("### One call") == second.count(f"### {report.AHEAD}") == 1
    assert "| async | slow | call | 30 |" in second and "Anew." in second and second.count("### Import") == 1
