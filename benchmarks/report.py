"""From samples of all rounds to a median a row, and to Markdown."""

from __future__ import annotations

import statistics
from collections.abc import Iterable
from typing import Any

from goals import GOALS
from measures import MEASURES

Sample = dict[str, Any]


def medians(samples: Iterable[Sample]) -> list[Sample]:
    """One sample for each (row, peer, path), in the order of rows, the cheapest first."""
    groups: dict[tuple[str, str, str], list[Sample]] = {}
    for sample in samples:
        groups.setdefault((sample["row"], sample["peer"], sample["path"]), []).append(sample)
    merged = [_merged(group) for group in groups.values()]
    order = list(dict.fromkeys(sample["row"] for sample in merged))
    return sorted(
        merged, key=lambda sample: (order.index(sample["row"]), list(sample["figures"].values())[-1])
    )


def _merged(group: list[Sample]) -> Sample:
    names = dict.fromkeys(name for sample in group for name in sample["figures"])
    figures = {
        name: statistics.median(sample["figures"][name] for sample in group if name in sample["figures"])
        for name in names
    }
    guessed = sorted({name for sample in group for name in sample.get("guessed", ())})
    note = next((sample["note"] for sample in group if sample.get("note")), "")
    return {**group[0], "figures": figures, "guessed": guessed, "note": note, "rounds": len(group)}


def judged(measure: str, sample: Sample) -> tuple[str, bool | None]:
    """The goal of a row of ours as text, and whether it is reached; None where there is none."""
    goal = GOALS.get((measure, sample["row"])) if sample["peer"] == "toolcrib" else None
    if goal is None or goal.figure not in sample["figures"]:
        return "", None
    return str(goal), sample["figures"][goal.figure] <= goal.limit


def table(measure: str, title: str, about: str, measured: str, merged: list[Sample]) -> str:
    """One measure as a Markdown section; `measured` says when and how."""
    names = list(dict.fromkeys(name for sample in merged for name in sample["figures"]))
    head = ["what", "who", "path", *names, "goal", "reached"]
    right = len(names)
    lines = [
        f"### {title}",
        "",
        about,
        "",
        measured,
        "",
        _row(head),
        _row(["---"] * 3 + ["---:"] * right + ["---", "---"]),
    ]
    for sample in merged:
        goal, reached = judged(measure, sample)
        cells = [_cell(sample, name) for name in names]
        who = f"**{sample['name']}**" if sample["peer"] == "toolcrib" else sample["name"]
        path = sample["path"] + (f" ({sample['note']})" if sample["note"] else "")
        lines.append(
            _row([sample["row"], who, path, *cells, goal, {None: "", True: "yes", False: "**no**"}[reached]])
        )
    return "\n".join(lines)


def _row(cells: list[str]) -> str:
    return "| " + " | ".join(cells) + " |"


def _cell(sample: Sample, name: str) -> str:
    value = sample["figures"].get(name)
    if value is None:
        return ""
    return ("~" if name in sample["guessed"] else "") + ("×" if name.startswith("×") else "") + number(value)


def number(value: float) -> str:
    """Three significant digits, thousands apart."""
    if isinstance(value, int) or abs(value) >= 100:
        return f"{value:,.0f}"
    return f"{value:.3g}"


def into_page(page: str, machine: str, versions: dict[str, str], sections: Iterable[str]) -> str:
    """A page with these sections after "## Results", and which rows others lead.

    `versions` are those of each peer. Sections of other measures and versions of other peers stay as they are.
    """
    text, _, old = page.partition("## Results\n")
    head, *parts = old.split("\n### ")
    kept = {part.partition("\n")[0]: part.strip() for part in parts}
    fresh = {section.partition("\n")[0].removeprefix("### "): section[4:].strip() for section in sections}
    titles = [measure.title for measure in MEASURES.values()]
    found = {**kept, **fresh}
    listed = [found[title] for title in titles if title in found]
    told = dict(line[2:].split(": ", 1) for line in head.splitlines() if line.startswith("- "))
    peers = "".join(f"- {peer}: {what}\n" for peer, what in (told | versions).items())
    ahead = "".join(f"- {line}\n" for section in listed for line in led_by_others(section))
    return f"{text}## Results\n\n{machine}\n\n{peers}\n### {AHEAD}\n\n{ahead or 'In no row.'}" + "".join(
        f"\n### {section}\n" for section in listed
    )


AHEAD = "Where others are ahead"
OURS = "**toolcrib**"


def led_by_others(section: str) -> Iterable[str]:
    """A line for each row of a section in which somebody else needs less than toolcrib, who is not the floor."""
    rows: dict[str, list[list[str]]] = {}
    names: list[str] = []
    for line in section.splitlines():
        if line.startswith("| ") and not line.startswith("| ---"):
            cells = [cell.strip() for cell in line.strip("|").split(" | ")]
            names = names or cells
            rows.setdefault(cells[0], []).append(cells)
    for what, listed in rows.items():
        before = [cells for cells in listed if cells[1] != "floor"]
        best = next((at for at, cells in enumerate(before) if cells[1] == OURS), 0)
        if best:
            who = ", ".join(dict.fromkeys(cells[1] for cells in before[:best]))
            figure = max(at for at, cell in enumerate(before[best][:-2]) if cell)
            theirs, ours = before[0][figure], before[best][figure]
            yield f"{section.partition(chr(10))[0]}, {what}: {who} ({theirs} to {ours} {names[figure]})"
