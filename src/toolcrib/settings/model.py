"""What may stand in `toolcrib.toml`: one model, from which the check, the JSON Schema and the docs follow."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, create_model, field_validator, model_validator

from toolcrib.rules.name_patterns import any_name_matches, selected
from toolcrib.settings.catalogue import CATALOGUE, GROUPS

if TYPE_CHECKING:
    from toolcrib.mcp.config import McpServer

__all__ = ["NamedAgentSettings", "ToolSettings"]

AGENT_NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")


class SettingsTable(BaseModel):
    """A table of settings: no unknown key, and no value that would have to be converted."""

    # a table is compiled when something is read with it: where there is no file, never
    model_config = ConfigDict(extra="forbid", strict=True, frozen=True, defer_build=True)


def _switches(name: str, doc: str, texts: dict[str, tuple[bool, str]]) -> Any:
    """A table with a switch for each name; its default and description are in `texts`."""
    fields: dict[str, Any] = {
        key: (bool, Field(default=on, description=text)) for key, (on, text) in texts.items()
    }
    return create_model(name, __base__=SettingsTable, __doc__=doc, **fields)


GroupSwitches = _switches(
    "GroupSwitches",
    "Switches of groups of tools. The switch of a single tool counts before that of its group.",
    {name: (any(row.on for row in CATALOGUE if row.group == name), text) for name, text in GROUPS.items()},
)
ToolSwitches = _switches(
    "ToolSwitches",
    "Switches of single tools.",
    {row.name: (row.on, f"The tool {row.name}, of the group {row.group}.") for row in CATALOGUE},
)


class ShellSettings(SettingsTable):
    """How commands are run."""

    kind: Literal["bash", "sh", "zsh", "pwsh"] = Field(
        "bash", description="The shell that runs commands; under zsh and pwsh every command asks."
    )
    passthrough: tuple[str, ...] = Field(
        (),
        strict=False,
        description="Variables of your environment that commands and python get, or patterns of such, as NODE_*. A "
        "pattern matches no name of a credential. Not in a project.",
    )


class EditSettings(SettingsTable):
    """How files are edited."""

    patches: Literal["by_model", "always", "never"] = Field(
        "by_model",
        description="Whether apply_patch takes the place of edit_file and multi_edit: for models that were trained on "
        "patches, always, or never.",
    )
    broken_syntax: Literal["tell", "refuse"] = Field(
        "tell",
        description="What edit_file does with an edit that breaks the syntax of a file: make it and tell, or refuse.",
    )


class PluginSettings(SettingsTable):
    """Tools of other people, and your own."""

    installed: bool = Field(
        True, description="Tools of installed packages (entry points of the group toolcrib.tools)."
    )
    folders: bool = Field(
        True,
        description="Tools in tools/*.py and tool/*.py of your settings folder and of .toolcrib in a project.",
    )
    top_level: bool = Field(
        False, description="Tools in tools/*.py and tool/*.py at the top of a project, once they are trusted."
    )
    off: tuple[str, ...] = Field((), strict=False, description="Names of tools of plugins that are left out.")


class McpServerSettings(SettingsTable):
    """An MCP server: a command or a url. Texts may refer to ${VARIABLE}, ${VARIABLE:-default} and <secret_ref:NAME>."""

    command: str | list[str] = Field("", description="The program of a local server, or its command line.")
    args: tuple[str, ...] = Field((), strict=False, description="The arguments of the program.")
    env: dict[str, str] = Field({}, description="Variables of its environment.")
    cwd: str | None = Field(None, description="The folder in which it runs.")
    url: str = Field("", description="The address of a remote server.")
    transport: Literal["stdio", "http", "sse"] | None = Field(
        None, description="http is what a url means; sse is the older transport."
    )
    headers: dict[str, str] = Field({}, description="HTTP headers of each request to a remote server.")
    enabled: bool = Field(True, description="Whether it is used.")
    timeout: float = Field(60.0, gt=0, description="Seconds that a call may take without progress.")
    max_timeout: float = Field(600.0, gt=0, description="Seconds that a call may take at all.")
    start_timeout: float = Field(60.0, gt=0, description="Seconds until it must be ready.")
    tools: tuple[str, ...] = Field(
        (), strict=False, description='Patterns of the tools that are used; "!name" leaves one out.'
    )
    effects: dict[str, Literal["read", "write", "destructive"]] = Field(
        {},
        description="The effect of its tools, by name or pattern, whatever it says itself. Not in a project.",
    )
    auth: Literal["oauth", "none"] | None = Field(
        None, description="oauth sends the token of toolcrib mcp login; none never does."
    )
    oauth: dict[str, Any] = Field(
        {}, description="What OAuth needs to be told, such as client_id and scopes."
    )
    trusted: bool = Field(
        False, description="Whether its word counts where it calls a tool harmless. Not in a project."
    )

    @model_validator(mode="after")
    def _is_a_server(self) -> McpServerSettings:
        try:
            self.server("server")
        except ValueError as problem:
            raise ValueError(str(problem).removeprefix("MCP server 'server': ")) from None
        return self

    def server(self, name: str, source: str = "") -> McpServer:
        """The server that this configures. Raises ValueError with words for a person."""
        from toolcrib.mcp.config_files import mcp_server

        entry = {key: getattr(self, key) for key in self.model_fields_set}
        lists = {key: list(value) for key, value in entry.items() if isinstance(value, tuple)}
        return mcp_server(name, entry | lists, source=source, seconds=True)


class McpSettings(SettingsTable):
    """MCP servers, whose tools an agent has."""

    project_files: bool = Field(
        True,
        description="The servers in .mcp.json, .cursor/mcp.json and .vscode/mcp.json of a trusted project.",
    )
    logins: Literal["file", "keyring"] = Field(
        "file",
        description="Where logins at remote servers are: a file that only you may read, or the system's keyring. "
        "Not in a project.",
    )
    servers: dict[str, McpServerSettings] = Field(
        {}, description="The servers, by the name that their tools begin with."
    )


class NamedAgentSettings(SettingsTable):
    """An agent that a run may hand tasks to. What it may do is at most what the run may do."""

    description: str = Field(
        min_length=1, description="What it can be asked to do, for the model that asks it."
    )
    model: str = Field("", description="Its model, as for --model; without it, that of the run.")
    instructions: str = Field("", description="Its system prompt: who it is, and how it works.")
    instructions_file: str = Field(
        "", description="A file with its instructions, below the folder of this toolcrib.toml."
    )
    tools: tuple[str, ...] = Field(
        (),
        strict=False,
        description='Patterns of the tools of the run that it has; "!name" leaves one out. Without it, all but those '
        "of delegation.",
    )
    autonomy: Literal["read_only", "supervised", "sandboxed", "full"] = Field(
        "full", description="Its autonomy, where that of the run is not lower."
    )
    max_turns: int = Field(50, gt=0, description="How often its model is asked in a task.")
    budget_tokens: int | None = Field(None, gt=0, description="Tokens that a task may use.")
    budget_cost: float | None = Field(None, gt=0, description="What a task may cost, in US dollars.")
    max_tokens: int | None = Field(None, gt=0, description="Tokens that one answer of its model may have.")
    temperature: float | None = Field(None, ge=0, description="The temperature of its model.")

    @field_validator("instructions_file")
    @classmethod
    def _lies_below(cls, file: str) -> str:
        parts = file.split("/")
        if file and (not all(parts) or {".", ".."} & set(parts)):
            raise ValueError(
                f"expected a path below the folder of this file, such as agents/a.md; got {file!r}"
            )
        return file

    @field_validator("tools")
    @classmethod
    def _can_be_read(cls, tools: tuple[str, ...]) -> tuple[str, ...]:
        selected(tools, "")  # a pattern that cannot be read raises
        return tools

    @model_validator(mode="after")
    def _has_one_source_of_instructions(self) -> NamedAgentSettings:
        if self.instructions and self.instructions_file:
            raise ValueError("give instructions or instructions_file, not both")
        return self


class DelegationSettings(SettingsTable):
    """Which agents a run may hand tasks to, besides those in `agents`."""

    helper: bool = Field(
        True,
        description="The agent helper: the model, tools and instructions of the run, without delegation.",
    )
    max_depth: int = Field(3, gt=0, le=10, description="How many agents below the run an agent may stand.")
    models: tuple[str, ...] = Field(
        (),
        strict=False,
        description="Patterns of the models that agents of a project may name, besides the model of the run. "
        "Not in a project.",
    )

    @field_validator("models")
    @classmethod
    def _can_be_read(cls, models: tuple[str, ...]) -> tuple[str, ...]:
        any_name_matches(models, "")  # a pattern that cannot be read raises
        return models


class ToolSettings(SettingsTable):
    """The settings in toolcrib.toml: which tools an agent has, and how they work."""

    groups: GroupSwitches = GroupSwitches.model_construct()  # type: ignore[valid-type] # made from the catalogue
    tools: ToolSwitches = ToolSwitches.model_construct()  # type: ignore[valid-type] # made from the catalogue
    shell: ShellSettings = ShellSettings.model_construct()
    edits: EditSettings = EditSettings.model_construct()
    plugins: PluginSettings = PluginSettings.model_construct()
    mcp: McpSettings = McpSettings.model_construct()
    delegation: DelegationSettings = DelegationSettings.model_construct()
    agents: dict[str, NamedAgentSettings] = Field(
        default={}, description="The agents that a run may hand tasks to, by name. They switch new_task on."
    )

    @field_validator("agents")
    @classmethod
    def _names_fit(cls, agents: dict[str, NamedAgentSettings]) -> dict[str, NamedAgentSettings]:
        for name in agents:
            if not AGENT_NAME.fullmatch(name):
                raise ValueError(
                    f"the name {name!r} must have at most 64 characters, of letters, digits, - and _"
                )
        return agents

    def switch(self, name: str) -> bool:
        """Whether a built-in tool is on: by its own switch, its group's, or by default.

        >>> settings = ToolSettings.model_validate({"groups": {"commands": False}, "tools": {"python": True}})
        >>> [settings.switch(name) for name in ("shell", "python", "grep")]
        [False, True, True]
        """
        said = self.written_switch(name)
        return self.by_default(name) if said is None else said

    def by_default(self, name: str) -> bool:
        """Whether a built-in tool is on if no setting says so; those of delegation are on if agents are named."""
        row = _ROWS[name]
        return row.on or (row.group == "delegation" and not row.alone and bool(self.agents))

    def only(self, name: str) -> ToolSettings:
        """These settings with every other built-in tool off."""
        switches = {row.name: row.name == name and self.switch(name) for row in CATALOGUE}
        return self.model_copy(update={"tools": ToolSwitches.model_construct(**switches)})

    def written_switch(self, name: str) -> bool | None:
        """The written value of a built-in tool's switch, or else of its group's; None if neither decides."""
        tools: SettingsTable = self.tools
        groups: SettingsTable = self.groups
        if name in tools.model_fields_set:
            return bool(getattr(tools, name))
        row = _ROWS[name]
        if row.group not in groups.model_fields_set:
            return None
        on = bool(getattr(groups, row.group))
        return None if on and row.alone else on


_ROWS = {row.name: row for row in CATALOGUE}
