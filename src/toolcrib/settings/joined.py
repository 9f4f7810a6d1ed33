"""The settings of several files as one: the project's before the user's, and what either switches off is off."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from toolcrib.settings.catalogue import CATALOGUE
from toolcrib.settings.file import SettingsFile
from toolcrib.settings.model import SettingsTable, ToolSettings

__all__ = ["JoinedSettings", "SettingInEffect", "join_settings"]

SWITCHES = ("groups", "tools")
SERVERS = ("mcp", "servers")
DEFAULT = "default"
DEFAULTS = ToolSettings.model_construct()


@dataclass(frozen=True, slots=True)
class SettingInEffect:
    """A setting that counts: its key, its value, and the file and line it comes from, or "default"."""

    key: str
    value: Any
    source: str


@dataclass(frozen=True, slots=True)
class JoinedSettings:
    """The settings that count, and where each comes from; the switches are those of single tools."""

    settings: ToolSettings
    listed: tuple[SettingInEffect, ...]


def join_settings(files: Sequence[SettingsFile]) -> JoinedSettings:
    """The settings of files, the one that counts most first (a trusted project's, then the user's).

    A switch that one of them has off is off, whatever another says. Of other settings the first counts.
    """
    listed = (*_switches(files), *_others(files))
    servers = _servers(files)
    data: dict[str, dict[str, Any]] = {}
    for one in listed:
        table, _, key = one.key.partition(".")
        if one.source != DEFAULT:
            data.setdefault(table, {})[key] = one.value
    settings = ToolSettings.model_validate(data) if data else DEFAULTS
    return JoinedSettings(settings, (*listed, *servers))


def _switches(files: Sequence[SettingsFile]) -> Iterator[SettingInEffect]:
    """The switch of each built-in tool."""
    for row in CATALOGUE:
        said = [(file, on) for file in files if (on := file.settings.said(row.name)) is not None]
        file, on = next((one for one in said if not one[1]), said[0] if said else (None, False))
        if file is None:
            yield SettingInEffect(f"tools.{row.name}", row.on, DEFAULT)
        else:
            own = row.name in _table(file.settings, "tools").model_fields_set
            key = f"tools.{row.name}" if own else f"groups.{row.group}"
            yield SettingInEffect(f"tools.{row.name}", on, file.place(key))


def _others(files: Sequence[SettingsFile]) -> Iterator[SettingInEffect]:
    """All settings but the switches of tools and groups."""
    for name in ToolSettings.model_fields:
        if name in SWITCHES:
            continue
        for key in type(_table(DEFAULTS, name)).model_fields:
            if (name, key) == SERVERS:
                continue
            full = f"{name}.{key}"
            said = [
                (file, getattr(table, key))
                for file in files
                if key in (table := _table(file.settings, name)).model_fields_set
            ]
            # A switch that somebody has off is off, and lists of what is left out are joined.
            off = next((one for one in said if one[1] is False), None)
            if not said:
                yield SettingInEffect(full, getattr(_table(DEFAULTS, name), key), DEFAULT)
            elif isinstance(said[0][1], tuple):
                places = " and ".join(file.place(full) for file, _ in said)
                values = dict.fromkeys(item for _, value in said for item in value)
                yield SettingInEffect(full, tuple(values), places)
            else:
                file, value = off or said[0]
                yield SettingInEffect(full, value, file.place(full))


def _servers(files: Sequence[SettingsFile]) -> list[SettingInEffect]:
    """The MCP servers: of two with one name, the user's counts, so that a project cannot replace it."""
    found: dict[str, SettingInEffect] = {}
    for file in reversed(files):
        for name, entry in file.settings.mcp.servers.items():
            key = f"mcp.servers.{name}"
            found.setdefault(name, SettingInEffect(key, entry.server(name).address(), file.place(key)))
    return list(found.values())


def _table(settings: ToolSettings, name: str) -> SettingsTable:
    table: SettingsTable = getattr(settings, name)
    return table
