"""Reads a `toolcrib.toml`. What is wrong in it is told with the line, what was expected, and near names."""

from __future__ import annotations

import tomllib
from collections.abc import Iterable
from difflib import get_close_matches
from typing import Any, get_args

from pydantic import BaseModel, ValidationError

from toolcrib.dataclass import dataclass
from toolcrib.errors import ToolcribError
from toolcrib.rules.toml_lines import TomlLines
from toolcrib.settings.model import ToolSettings

__all__ = ["NAME", "SettingsError", "SettingsFile", "read_settings"]

NAME = "toolcrib.toml"
UNION = ("str", "list[str]")  # what pydantic adds to the place of a value that may be either
MAX_VALUE = 60  # characters of a wrong value that a message shows


class SettingsError(ToolcribError):
    """A file of settings that cannot be used. `problems` has a line for each thing that is wrong."""

    def __init__(self, problems: Iterable[str]) -> None:
        self.problems = tuple(problems)
        super().__init__("\n".join(self.problems))


@dataclass(frozen=True, slots=True)
class SettingsFile:
    """The settings of one file. `path` is how a person is told of it; `lines` finds where a key stands."""

    path: str
    settings: ToolSettings
    lines: TomlLines
    of_project: bool = False

    def place(self, key: str) -> str:
        """The file and line of a key such as "shell.kind"."""
        return f"{self.path}, line {self.lines.of_path(key.split('.'))}"


def read_settings(text: str, path: str = NAME, *, of_project: bool = False) -> SettingsFile:
    """Settings from TOML. Raises SettingsError, which names all that is wrong.

    >>> read_settings("[tools]\\nshell = false").settings.switch("shell")
    False
    >>> read_settings("[tools]\\nshel = false")
    Traceback (most recent call last):
        ...
    toolcrib.settings.file.SettingsError: toolcrib.toml, line 2: unknown key 'shel' in [tools]; did you mean shell?
    """
    text = text.removeprefix("\ufeff")  # which some editors put before all they save
    try:
        data = tomllib.loads(text)
    except (ValueError, RecursionError) as problem:
        raise SettingsError([f"{path}: not TOML: {problem}"]) from None
    lines = TomlLines(text)
    try:
        return SettingsFile(path, ToolSettings.model_validate(data), lines, of_project)
    except ValidationError as failed:
        found = []
        for error in failed.errors(include_url=False):
            where = [part for part in error["loc"] if isinstance(part, str) and part not in UNION]
            found.append((lines.of_path(where), _words(where, error)))
        raise SettingsError(f"{path}, line {line}: {words}" for line, words in sorted(found)) from None


def _words(where: list[str], error: Any) -> str:
    """What is wrong at a key: what was expected, and what is there."""
    *above, key = where or [""]
    if error["type"] == "extra_forbidden":
        known = list(_table(above).model_fields)
        near = [OTHER_WORDS[key]] if OTHER_WORDS.get(key) in known else get_close_matches(key, known, n=3)
        place = f" in [{'.'.join(above)}]" if above else ""
        hint = f"did you mean {' or '.join(near)}?" if near else f"known are {', '.join(known)}"
        return f"unknown key {key!r}{place}; {hint}"
    got = f"; got {_shown(error['input'])}"
    name = ".".join(where)
    if error["type"] == "missing":
        return f"{name} is missing: {_table(above).model_fields[key].description}"
    if error["type"] == "value_error":
        return f"{name}: {error['ctx']['error']}"
    if error["type"] == "literal_error":
        return f"{name} must be {error['ctx']['expected']}{got}"
    if error["type"] in ("greater_than_equal", "less_than_equal"):
        word = "at least" if error["type"] == "greater_than_equal" else "at most"
        return f"{name} must be {word} {error['ctx'].get('ge', error['ctx'].get('le')):g}{got}"
    expected = _EXPECTED.get(error["type"])
    return f"{name} must be {expected}{got}" if expected else f"{name}: {error['msg']}{got}"


def _table(path: Iterable[str]) -> type[BaseModel]:
    """The model of the table at a path of keys."""
    found: Any = ToolSettings
    for key in path:
        field = getattr(found, "model_fields", {}).get(key)
        found = field.annotation if field is not None else get_args(found)[-1]  # a table whose keys are names
    model: type[BaseModel] = found
    return model


def _shown(value: Any) -> str:
    text = {True: "true", False: "false"}[value] if isinstance(value, bool) else repr(value)
    return text if len(text) <= MAX_VALUE else f"{text[:MAX_VALUE]}…"


OTHER_WORDS = {  # what other agents call a key, and what it is called here
    "system_prompt": "instructions",
    "prompt": "instructions",
    "prompt_file": "instructions_file",
    "allowed_tools": "tools",
    "max_iterations": "max_turns",
    "steps": "max_turns",
}
_EXPECTED = {
    "bool_type": "true or false",
    "string_type": "a text",
    "tuple_type": "a list of texts",
    "list_type": "a list of texts",
    "string_too_short": "a text that is not empty",
    "int_type": "a whole number",
    "float_type": "a number",
    "float_parsing": "a number",
    "greater_than": "a number above 0",
    "model_type": "a table of settings",
    "model_attributes_type": "a table of settings",
    "dict_type": "a table of settings",
}
