"""The settings of several files as one: the project's before the user's, and what either switches off is off."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from toolcrib.dataclass import dataclass
from toolcrib.settings.catalogue import CATALOGUE
from toolcrib.settings.file import SettingsFile
from toolcrib.settings.model import NamedAgentSettings, SettingsTable, ToolSettings

__all__ = ["JoinedSettings", "NamedAgent", "SettingInEffect", "join_settings"]

SWITCHES = ("groups", "tools")
NO_TABLES = (*SWITCHES, "agents")
SERVERS = ("mcp", "servers")
USERS_OWN = {
    ("mcp", "logins"),
    ("delegation", "models"),
    ("shell", "passthrough"),
}  # settings that do not count in a project's file
DEFAULT = "default"
DEFAULTS = ToolSettings.model_construct()


@dataclass(frozen=True, slots=True)
class SettingInEffect:
    """A setting that counts: its key, its value, and the file and line it comes from, or "default"."""

    key: str
    value: Any
    source: str


@dataclass(frozen=True, slots=True)
class NamedAgent:
    """An agent that the settings name, and the file that does so."""

    name: str
    settings: NamedAgentSettings
    file: SettingsFile

    @property
    def key(self) -> str:
        """The key of its table."""
        return f"agents.{self.name}"


@dataclass(frozen=True, slots=True)
class JoinedSettings:
    """The settings that count, and where each comes from; the switches are those of single tools."""

    settings: ToolSettings
    listed: tuple[SettingInEffect, ...]
    agents: tuple[NamedAgent, ...] = ()


def join_settings(files: Sequence[SettingsFile]) -> JoinedSettings:
    """The settings of several files, given in order of precedence (a trusted project's, then the user's).

    A switch that one of them has off is off, whatever another says. Of numbers the smallest counts, of other settings
    the first.
    """
    listed = (*_switches(files), *_others(files))
    agents = _agents(files)
    data: dict[str, dict[str, Any]] = {}
    for one in listed:
        table, _, key = one.key.partition(".")
        if one.source != DEFAULT:
            data.setdefault(table, {})[key] = one.value
    settings = ToolSettings.model_validate(data) if data else DEFAULTS
    named = [SettingInEffect(one.key, _summary(one.settings), one.file.place(one.key)) for one in agents]
    return JoinedSettings(settings, (*listed, *_servers(files), *named), tuple(agents))


def _switches(files: Sequence[SettingsFile]) -> Iterator[SettingInEffect]:
    """The switch of each built-in tool."""
    for row in CATALOGUE:
        said = [(file, on) for file in files if (on := file.settings.written_switch(row.name)) is not None]
        file, on = next((one for one in said if not one[1]), said[0] if said else (None, False))
        by_agents = next((file for file in files if file.settings.by_default(row.name) > row.on), None)
        if file is None and by_agents is not None:
            yield SettingInEffect(f"tools.{row.name}", True, by_agents.place("agents"))
        elif file is None:
            yield SettingInEffect(f"tools.{row.name}", row.on, DEFAULT)
        else:
            own = row.name in _table(file.settings, "tools").model_fields_set
            key = f"tools.{row.name}" if own else f"groups.{row.group}"
            yield SettingInEffect(f"tools.{row.name}", on, file.place(key))


def _others(files: Sequence[SettingsFile]) -> Iterator[SettingInEffect]:
    """All settings but the switches of tools and groups."""
    for name in ToolSettings.model_fields:
        if name in NO_TABLES:
            continue
        for key in type(_table(DEFAULTS, name)).model_fields:
            if (name, key) == SERVERS:
                continue
            full = f"{name}.{key}"
            said = [
                (file, getattr(table, key))
                for file in files
                if key in (table := _table(file.settings, name)).model_fields_set
                and not (file.of_project and (name, key) in USERS_OWN)
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
                numbers = [one for one in said if type(one[1]) is int]
                file, value = off or min(numbers, key=lambda one: one[1], default=said[0])
                yield SettingInEffect(full, value, file.place(full))


def _servers(files: Sequence[SettingsFile]) -> list[SettingInEffect]:
    """The MCP servers: of two with one name, the user's counts, so that a project cannot replace it."""
    found: dict[str, SettingInEffect] = {}
    for file in reversed(files):
        for name, entry in file.settings.mcp.servers.items():
            key = f"mcp.servers.{name}"
            found.setdefault(name, SettingInEffect(key, entry.server(name).address(), file.place(key)))
    return list(found.values())


def _agents(files: Sequence[SettingsFile]) -> list[NamedAgent]:
    """The agents: of two with one name, the user's counts, so that a project cannot replace it."""
    found: dict[str, NamedAgent] = {}
    for file in reversed(files):
        for name, settings in file.settings.agents.items():
            found.setdefault(name, NamedAgent(name, settings, file))
    return list(found.values())


def _summary(agent: NamedAgentSettings) -> str:
    return f"{agent.model or 'the model of the run'}: {' '.join(agent.description.split())}"


def _table(settings: ToolSettings, name: str) -> SettingsTable:
    table: SettingsTable = getattr(settings, name)
    return table
