"""Reads a scripted model's YAML file and keeps the line of every turn for error messages."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from toolcrib.text_file import read_text_file

SETTINGS: dict[str, tuple[type, ...]] = {"name": (str,), "delay": (int, float), "chunk_size": (int,)}


def read_script(path: Path) -> tuple[dict[str, Any], list[tuple[Any, str]]]:
    """A script's settings, and its turns, each with its location for error messages. Raises ValueError."""
    import yaml

    try:
        loader = yaml.SafeLoader(read_text_file(path))
    except ValueError as problem:
        raise ValueError(f"{path}: {problem}") from None
    loader.name = path.name  # the name that its errors show
    try:
        root: Any = loader.get_single_node()
        data = loader.construct_document(root) if root is not None else None
    except yaml.YAMLError as problem:
        raise ValueError(f"{path}: not YAML: {problem}") from None
    finally:
        loader.dispose()
    settings: dict[str, Any] = {}
    if isinstance(data, dict) and root is not None:
        settings = {str(key): value for key, value in data.items() if key != "turns"}
        _check(settings, path)
        data = data.get("turns")
        root = next((value for key, value in root.value if key.value == "turns"), None)
    if not isinstance(data, list) or root is None:
        raise ValueError(f"{path}: expected a list of turns, or a mapping with the key 'turns'")
    lines = [item.start_mark.line + 1 for item in root.value]
    wheres = [f"{path}, turn {number} (line {line})" for number, line in enumerate(lines, 1)]
    return settings, list(zip(data, wheres, strict=True))


def _check(settings: dict[str, Any], path: Path) -> None:
    for name, value in settings.items():
        kind = SETTINGS.get(name)
        if kind is None:
            raise ValueError(f"{path}: unknown key {name}; a script has {', '.join(sorted(SETTINGS))}, turns")
        if isinstance(value, bool) or not isinstance(value, kind):
            raise ValueError(f"{path}: {name} cannot be {value!r}")
