"""A project's files that count once a person trusted their content: rules, settings, tools, skills, MCP servers."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Iterator
from pathlib import Path

from toolcrib.cli.mcp_servers import servers_of_project_file
from toolcrib.cli.tool_settings import projects_settings, users_settings
from toolcrib.cli.user_files import trust_store
from toolcrib.cli.wording import value_on_one_line
from toolcrib.dataclass import dataclass, field
from toolcrib.mcp.config_files import PROJECT_FILES
from toolcrib.mcp.expansion import references_of
from toolcrib.rules import Rule
from toolcrib.rules.project_files import (
    FOLDER,
    ProjectFile,
    TrustError,
    read_project_file,
    read_project_folder,
)
from toolcrib.rules.trust import ProjectRules, Trustable, project_rules
from toolcrib.settings.file import NAME, SettingsError, SettingsFile
from toolcrib.settings.joined import join_settings
from toolcrib.settings.model import ToolSettings
from toolcrib.visible import escape_invisible, on_one_line

SKILLS = f"{FOLDER}/skills"
TOOLS = ("tools", "tool")


@dataclass(frozen=True, slots=True)
class FilesToTrust:
    """What lies in a project, and in words what of it cannot be trusted."""

    rules: ProjectRules | None = None
    settings: tuple[ProjectFile, SettingsFile] | None = None
    others: list[ProjectFile] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)

    @property
    def all(self) -> list[Trustable]:
        first: list[Trustable | None] = [self.rules, self.settings[0] if self.settings else None]
        return [item for item in (*first, *self.others) if item is not None]


def files_to_trust(folder: Path) -> FilesToTrust:
    """The files of a project that count once they are trusted. Raises TrustError for wrong rules or settings."""
    try:
        settings = projects_settings(folder)
    except SettingsError as problem:
        raise TrustError(str(problem)) from None
    found = FilesToTrust(project_rules(folder), settings)
    both = [settings[1] if settings else None, users_settings()]
    joined = join_settings([file for file in both if file is not None]).settings
    for place in tool_folders(joined):
        _add(found, folder, place)
    _add(found, folder, SKILLS)
    if settings is not None:
        agents = settings[1].settings.agents.values()
        _add_files(
            found, folder, [f"{FOLDER}/{one.instructions_file}" for one in agents if one.instructions_file]
        )
    if joined.mcp.project_files:
        _add_files(found, folder, PROJECT_FILES)
    return found


def tool_folders(settings: ToolSettings) -> list[str]:
    """The folders of a project that may have tools."""
    tops = [f"{FOLDER}/", *([""] if settings.plugins.top_level else [])] if settings.plugins.folders else []
    return [f"{top}{name}" for top in tops for name in TOOLS]


def project_folder(folder: Path | str, place: str) -> tuple[list[ProjectFile], list[TrustError]]:
    """The files of a folder of tools, or of skills, of a project. Raises TrustError."""
    return read_project_folder(folder, place, lambda name: place == SKILLS or name.endswith(".py"))


def _add(found: FilesToTrust, folder: Path, place: str) -> None:
    try:
        files, problems = project_folder(folder, place)
    except TrustError as problem:
        found.problems.append(str(problem))
        return
    found.others.extend(files)
    found.problems.extend(str(problem) for problem in problems)


def _add_files(found: FilesToTrust, folder: Path, places: Iterable[str]) -> None:
    for place in places:
        try:
            file = read_project_file(folder, place)
        except TrustError as problem:
            found.problems.append(str(problem))
        else:
            found.others.extend([] if file is None else [file])


def lines_of(found: FilesToTrust) -> Iterator[str]:
    """What a person reads before they trust the files: all of it, or what changed since they trusted it."""
    for item in found.all:
        trusted = trust_store().find(item.project, item.path)
        state = "" if trusted is None else " (trusted)" if trusted.sha256 == item.sha256 else " (changed)"
        yield f"{on_one_line(item.project)}/{on_one_line(item.path)}  (sha256 {item.sha256}){state}"
        before = trust_store().copy_of(trusted) if trusted is not None and state == " (changed)" else None
        if before is not None:
            yield from _diff(before, item.data)
        if isinstance(item, ProjectRules):
            yield from _rules_lines(item)
        elif before is None and state != " (trusted)":
            yield from _text_lines(item.data)
        yield from _servers_lines(item)
    for problem in found.problems:
        yield f"not used: {on_one_line(problem)}"


def _servers_lines(item: Trustable) -> Iterator[str]:
    """What the MCP servers in a file would start or reach, and the variables and secrets that they would be given."""
    if item.path in PROJECT_FILES or item.path.endswith(f"/{NAME}"):
        servers, notes = servers_of_project_file(item)
        for server in servers:
            given = references_of(server)
            verb = "starts" if server.command else "sends calls to"
            what = f"  MCP server {server.name} {verb}: {server.address()}"
            yield on_one_line(what + (f"  (is given {', '.join(given)})" if given else ""))
        yield from (f"  note: {on_one_line(note)}" for note in notes)


def _text_lines(data: bytes) -> Iterator[str]:
    for line in _lines(data):
        yield f"    {escape_invisible(line)}"


def _lines(data: bytes) -> list[str]:
    """The lines as programs read them, which know fewer ends of lines than `splitlines`."""
    text = data.decode("utf-8", "backslashreplace")
    return re.split(r"\r\n|\r|\n", text.removesuffix("\n"))


def _diff(before: bytes, after: bytes) -> Iterator[str]:
    for line in difflib.unified_diff(_lines(before), _lines(after), "trusted", "now", lineterm="", n=2):
        yield f"    {escape_invisible(line)}"


def _rules_lines(found: ProjectRules) -> Iterator[str]:
    if found.rules.autonomy is not None:
        yield f"  autonomy at most {found.rules.autonomy.value}"
    for rule in found.narrowing:
        yield from (f"  {line}" for line in _rule_lines(rule))
    if found.widening:
        yield "  not used, because a project may not allow anything:"
        for rule in found.widening:
            yield from (f"    {line}" for line in _rule_lines(rule))
    yield from (f"  {on_one_line(str(limit))}" for limit in found.rules.limits)
    if not found.rules.rules:
        yield "  no rules"


def _rule_lines(rule: Rule) -> list[str]:
    """What a rule matches, and what the model and the person are told."""
    fields = {**rule.written(), **({"reason": rule.reason} if rule.reason else {})}
    lines = [f"{rule.verb.value:<5} {on_one_line(rule.name)}"]
    for name, value in fields.items():
        plain = isinstance(value, list) and all(isinstance(item, str) for item in value)
        text = ", ".join(value) if plain else value
        lines.append(
            f"        {name}: {on_one_line(text) if isinstance(text, str) else value_on_one_line(text)}"
        )
    return lines
