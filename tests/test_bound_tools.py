"""Tools that were assembled with a policy hold to it also where they are called directly, without a toolbox."""

from __future__ import annotations

import asyncio
import inspect
from pathlib import Path
from typing import Any

import pytest

from tests.cases import each
from toolcrib import Context, Toolbox, ToolError
from toolcrib.assembly import all_tools, default_tools
from toolcrib.rules import PathPattern, Rule, RulePolicy
from toolcrib.rules.trust import KEEP_THE_RULES
from toolcrib.settings import CATALOGUE
from toolcrib.tool import Tool, params_type
from toolcrib.toolbox.policy import Verb
from toolcrib.toolset import name_of


def rules(autonomy: str = "full") -> RulePolicy:
    keys = Rule(verb=Verb.DENY, paths=(PathPattern("keys/**"),), reason="keys stay where they are")
    drafts = Rule(verb=Verb.ASK, paths=(PathPattern("drafts/**"),), reason="drafts are somebody's")
    no_rm = Rule(verb=Verb.DENY, tools=("shell",), arguments={"description": "forbidden*"}, reason="not this")
    return RulePolicy(autonomy, [keys, drafts, no_rm])


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for path in ("keys/a", "drafts/a", "a"):
        (tmp_path / path).parent.mkdir(exist_ok=True)
        (tmp_path / path).write_text("text of the file\n")
    (tmp_path / "link").symlink_to("keys/a")
    return tmp_path


def call(tools: list[Any], name: str, arguments: dict[str, Any]) -> str:
    """Call a tool directly, as a program would that has no toolbox."""
    tool: Tool[Any, Any] = next(one for one in tools if name_of(one) == name)
    params = params_type(type(tool)).model_validate(arguments)

    async def awaited() -> Any:
        value: Any = tool.execute(params, Context())
        return await value if inspect.isawaitable(value) else value

    value = asyncio.run(awaited())
    return value if isinstance(value, str) else value.text


REFUSED = [
    ("read_file", {"path": "keys/a"}, "keys stay where they are"),
    ("read_file", {"path": "link"}, "keys stay where they are"),
    ("write_file", {"path": "keys/b", "content": "x"}, "keys stay where they are"),
    ("edit_file", {"path": "keys/a", "old_string": "text", "new_string": "x"}, "keys stay where they are"),
    ("delete_file", {"path": "keys/a"}, "keys stay where they are"),
    ("move_file", {"path": "keys/a", "to": "b"}, "keys stay where they are"),
    ("move_file", {"path": "a", "to": "keys/b"}, "keys stay where they are"),
    ("shell", {"command": "cat keys/a"}, "keys stay where they are"),
    ("shell", {"command": "true", "description": "forbidden"}, "not this"),
    (
        "write_file",
        {"path": "drafts/a", "content": "x"},
        "needs a person's approval, and nobody can be asked",
    ),
    ("read_file", {"path": "drafts/a"}, "drafts are somebody's"),
]


@each("name, arguments, words", REFUSED)
def test_a_direct_call_is_refused(name: str, arguments: dict[str, Any], words: str, tmp_path: Path) -> None:
    for path in ("keys/a", "drafts/a", "a"):
        (tmp_path / path).parent.mkdir(exist_ok=True)
        (tmp_path / path).write_text("text of the file\n")
    if not (tmp_path / "link").is_symlink():
        (tmp_path / "link").symlink_to("keys/a")
    with pytest.raises(ToolError) as caught:
        call(default_tools(tmp_path, rules()), name, arguments)
    assert words in caught.value.message
    assert (tmp_path / "keys/a").read_text() == "text of the file\n"
    assert not (tmp_path / "keys/b").exists()


def test_what_is_allowed_runs(folder: Path) -> None:
    tools = default_tools(folder, rules())
    assert "text of the file" in call(tools, "read_file", {"path": "a"})
    call(tools, "write_file", {"path": "b", "content": "x"})
    assert (folder / "b").read_text() == "x"
    assert "text of the file" in call(tools, "shell", {"command": "cat a"})
    only_denying = RulePolicy("full", [rule for rule in rules().rules if rule.verb is Verb.DENY])
    found = call(default_tools(folder, only_denying), "grep", {"pattern": "text"})
    assert "drafts/a" in found and "keys" not in found, "a search leaves out what is denied"


def test_autonomy_holds_too(folder: Path) -> None:
    with pytest.raises(ToolError, match="needs a person's approval"):
        call(default_tools(folder, "supervised"), "write_file", {"path": "b", "content": "x"})
    assert "text" in call(default_tools(folder, "supervised"), "read_file", {"path": "a"})
    shown = {name_of(tool) for tool in default_tools(folder, "read_only")}
    assert shown.isdisjoint({"write_file", "shell"}) and "read_file" in shown


def test_in_a_wider_toolbox_it_holds_too_and_a_person_is_asked_once(folder: Path) -> None:
    box = Toolbox(default_tools(folder, rules()), autonomy="full")
    denied = box.call_sync("read_file", {"path": "keys/a"})
    assert denied.is_error and "keys stay where they are" in denied.text
    assert "keys/a" not in box.call_sync("grep", {"pattern": "text"}).text
    asked: list[str] = []

    def approver(question: Any) -> bool:
        asked.append(question.tool)
        return True

    same = Toolbox(default_tools(folder, rules()), policy=rules(), approver=approver)
    assert not same.call_sync("write_file", {"path": "drafts/a", "content": "x"}).is_error
    assert asked == ["write_file"]


def test_nothing_is_bound_without_a_policy(folder: Path) -> None:
    assert "text" in call(default_tools(folder), "read_file", {"path": "keys/a"})


def test_every_tool_that_changes_files_is_kept_from_what_was_trusted(tmp_path: Path) -> None:
    from toolcrib.effect import Effect

    made = all_tools({"edits": {"patches": "always"}}, tmp_path) + all_tools(None, tmp_path)
    groups = {row.name: row.group for row in CATALOGUE}
    changing: Any = {
        tool.facts.name
        for tool in made
        if isinstance(tool, Tool)
        and tool.facts.effect is not Effect.READ
        and groups[tool.facts.name] in ("files", "commands")
    }
    facts: dict[str, Any] = {tool.facts.name: tool.facts for tool in made if isinstance(tool, Tool)}
    named = {name for name in changing if KEEP_THE_RULES.is_about_tool(facts[name])}
    # What process_write types into was started by shell, in its sandbox or after a question.
    assert changing - named == {"process_write"}


CHANGES = [
    ("write_file", {"path": ".toolcrib/tools/a.py", "content": "x"}),
    ("edit_file", {"path": ".toolcrib/toolcrib.toml", "old_string": "a", "new_string": "b"}),
    ("multi_edit", {"edits": [{"path": ".toolcrib/policy.toml", "old_string": "a", "new_string": "b"}]}),
    ("apply_patch", {"patch": "*** Begin Patch\n*** Delete File: .toolcrib/toolcrib.toml\n*** End Patch"}),
    ("delete_file", {"path": ".toolcrib/skills/a/SKILL.md"}),
    ("move_file", {"path": "a", "to": ".toolcrib/tools/a.py"}),
    ("move_file", {"path": ".toolcrib/toolcrib.toml", "to": "a2"}),
    ("shell", {"command": "echo x > .toolcrib/toolcrib.toml"}),
]


@each("name, arguments", CHANGES)
def test_what_was_trusted_is_not_changed(name: str, arguments: dict[str, Any], tmp_path: Path) -> None:
    (tmp_path / "a").write_text("a")
    patches = "always" if name == "apply_patch" else "never"
    box = Toolbox(
        builtin=all_tools({"edits": {"patches": patches}}, tmp_path),
        policy=RulePolicy("full", [KEEP_THE_RULES]),
    )
    result = box.call_sync(name, arguments)
    assert result.is_error and "the project's rules are changed by people" in result.text
