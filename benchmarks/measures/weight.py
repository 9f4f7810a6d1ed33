"""How many other packages come with it, and how much they weigh."""

import importlib.metadata
from pathlib import Path
from typing import Any


def _needs(name: str, extras: set[str]) -> list[tuple[str, set[str]]]:
    """What a distribution requires in this environment."""
    from pip._vendor.packaging.requirements import Requirement

    found = []
    for line in importlib.metadata.requires(name) or ():
        wanted = Requirement(line)
        marker = wanted.marker
        if marker is None or any(marker.evaluate({"extra": extra}) for extra in extras or {""}):
            found.append((wanted.name, set(wanted.extras)))
    return found


def closure(names: tuple[str, ...]) -> dict[str, importlib.metadata.Distribution]:
    """Everything that is installed because of these."""
    from pip._vendor.packaging.utils import canonicalize_name

    seen: dict[str, importlib.metadata.Distribution] = {}
    asked: set[tuple[str, frozenset[str]]] = set()
    waiting: list[tuple[str, set[str]]] = [(name, set()) for name in names]
    while waiting:
        name, extras = waiting.pop()
        key = (canonicalize_name(name), frozenset(extras))
        if key in asked:
            continue
        asked.add(key)
        seen[key[0]] = importlib.metadata.distribution(name)
        waiting += _needs(name, extras)
    return seen


def _bytes(distribution: importlib.metadata.Distribution) -> int:
    files = [Path(str(distribution.locate_file(file))) for file in distribution.files or ()]
    return sum(file.stat().st_size for file in files if file.is_file())


def measure(adapter: Any, options: dict[str, Any]) -> list[dict[str, Any]]:
    distributions = closure(adapter.PACKAGES[:1])
    size = sum(_bytes(item) for item in distributions.values())
    root = getattr(adapter, "SOURCE", None)  # installed in place: its files are not in the record
    if root is not None:
        size += sum(file.stat().st_size for file in root.rglob("*") if file.is_file())
    figures = {"MB": size / 1e6, "other packages": len(distributions) - 1}
    return [{"row": "installed with the command line", "path": adapter.PACKAGES[0], "figures": figures}]
