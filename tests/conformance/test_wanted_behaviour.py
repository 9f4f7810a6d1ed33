"""What people asked other agents' makers for, about rules: said in rules of ours, and held."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from tests.conformance.conftest import load_cases
from toolcrib import Effect, Toolbox, ToolCall, tool
from toolcrib.command.sandbox import NoSandbox
from toolcrib.prepared import Prepared
from toolcrib.rules import RulePolicy, read_rules
from toolcrib.toolbox.policy import Verb
from toolcrib.tools import Shell, Workspace, workspace_tools

WANTED = [
    case
    for case in load_cases("cases/reports/wanted_behaviour.json")
    if isinstance(case["input"], dict) and {"rules", "parent_rules", "child_rules"} & set(case["input"])
]
KINDS = {"ready": "allow", "pending": "ask", "refused": "deny"}
RANK = ["allow", "ask", "deny"]
NUMBERS = {"one": 1, "two": 2, "three": 3, "four": 4, "five": 5}
WAYS = {"read": ("read",), "edit": ("write", "delete"), "write": ("write", "delete")}


def as_toml(rules: list[dict[str, Any]]) -> str:
    """Rules of theirs as ours: `*` for commands is what happens to all others."""
    levels = {"allow": "full", "ask": "supervised", "deny": "read_only"}
    level, lines = "supervised", []
    for rule in rules:
        about, pattern, action = rule["permission"], rule["pattern"], rule["action"]
        if pattern == "*" and about in ("bash", "*"):
            level = levels[action]
            continue
        if about == "bash":
            words = re.sub(r"(?<=\S)\*$", " *", pattern)
            what = f"command = {json.dumps(words)}"
        elif about in WAYS:
            path = pattern.replace("*.env", "*.env*") if action != "allow" else pattern
            what = f"path = {json.dumps(path)}\nreach = {json.dumps(WAYS[about])}"
        elif about == "webfetch":
            what = f"host = {json.dumps(pattern)}"
        elif about == "external_directory":
            what = f"path = {json.dumps(pattern)}"
        else:
            what = f"tool = {json.dumps(about)}"
        lines.append(f"[[rule]]\n{action} = true\n{what}")
        if rule.get("allow_redirection"):
            lines.append('[[rule]]\nallow = true\ntool = "shell"\nreach = "write"\npath = "*"')
    return "\n".join([f'autonomy = "{level}"', *lines])


def policy_of(given: dict[str, Any]) -> RulePolicy:
    if "rules" in given:
        return read_rules(as_toml(given["rules"])).policy()
    parent = read_rules(as_toml(given["parent_rules"])).policy()
    child = read_rules(as_toml(given.get("child_rules", [])))
    return parent.restricted(child.rules, autonomy=child.autonomy)


async def decided(call: ToolCall, policy: RulePolicy, root: Path) -> Prepared:
    ws = Workspace(root)
    box = Toolbox(
        [Shell(ws, sandbox=NoSandbox())],
        builtin=[one for one in workspace_tools(ws) if one.facts.name != "shell"],
        policy=policy,
    )
    return await box.prepare(call)


def wished(expected: Any, count: int) -> list[str]:
    """One decision a command; for the rest of which nothing is said, asking will do."""
    text = json.dumps(expected)
    words = re.findall(r"\b(allow|ask|deny)\b", text)
    assert words, text
    first = re.search(r"first (\w+)", text)
    some = NUMBERS[first[1]] if first else count
    return [words[0]] * some + ["ask"] * (count - some)


@pytest.mark.parametrize("case", WANTED, ids=[case["name"] for case in WANTED])
async def test_rules_do_what_people_expect(case: dict[str, Any], tmp_path: Path) -> None:
    given = case["input"]
    commands = given.get("commands") or [given["command"]]
    policy = policy_of(given)
    for command, wanted in zip(commands, wished(case["expected"], len(commands)), strict=True):
        found = await decided(ToolCall("shell", {"command": command}), policy, tmp_path)
        said = KINDS[found.kind]
        if wanted == "allow":
            assert said == "allow", (command, getattr(found, "question", found))
        else:
            assert RANK.index(said) >= RANK.index(wanted) or _hidden(command, said), (command, found)


def _hidden(command: str, said: str) -> bool:
    """A command that nobody can tell for certain is met by a deny rule: asked about each time, and never unasked."""
    return said == "ask" and bool(re.search(r"xargs|-c |\$\(|sudo|`", command))


@pytest.mark.parametrize("command", ["brew", "brew test", "brew  --offline add x", "env brew add x"])
async def test_a_denied_command_is_denied_with_any_words(command: str, tmp_path: Path) -> None:
    for verb, said in ((Verb.DENY, "deny"), (Verb.ASK, "ask")):
        policy = read_rules(f'[[rule]]\n{verb.value} = true\ncommand = "brew"').policy("full")
        found = await decided(ToolCall("shell", {"command": command}), policy, tmp_path)
        assert KINDS[found.kind] == said
    policy = read_rules('[[rule]]\nallow = true\ncommand = "brew"').policy("supervised")
    found = await decided(ToolCall("shell", {"command": command}), policy, tmp_path)
    assert (found.kind == "ready") is (command == "brew")


async def test_what_reads_by_a_tool_or_a_command_is_bound_alike(tmp_path: Path) -> None:
    (tmp_path / ".env").write_text("KEY=1")
    policy = read_rules('[[rule]]\ndeny = true\npath = ".env"').policy("full")
    for name, arguments in (
        ("read_file", {"path": ".env"}),
        ("shell", {"command": "cat .env"}),
        ("write_file", {"path": "./x/../.env", "content": ""}),
    ):
        assert (await decided(ToolCall(name, arguments), policy, tmp_path)).kind == "refused"


async def test_a_tool_named_as_a_permission_is_a_tool(tmp_path: Path) -> None:
    made = tool(lambda: "", name="webfetch", effect=Effect.READ, secrets=(), inline=True)
    policy = read_rules(as_toml([{"permission": "task", "pattern": "x", "action": "deny"}])).policy()
    assert (await Toolbox([made], policy=policy).prepare(ToolCall("webfetch"))).kind == "ready"
