"""Commands as other systems judge them, put to the shell tool under rules that say what their settings say.

Where theirs refuses, ours asks or refuses; where theirs lets run, ours may ask, but refuses only what destroys
the host, and what `STRICTER` says.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from tests.cases import each
from tests.conformance.conftest import load_cases
from tests.conformance.test_tools_paths import build
from toolcrib import Toolbox, ToolCall
from toolcrib.command.sandbox import NoSandbox
from toolcrib.prepared import Pending, Prepared, Refused
from toolcrib.rules import read_rules
from toolcrib.tools import Shell, Workspace

LEVELS = {"Supervised": "supervised", "Full": "full", "ReadOnly": "read_only"}
DEFAULTS = ["git", "npm", "cargo", "ls", "cat", "grep", "find", "echo", "pwd", "wc", "head", "tail", "date", "df", "du", "uname", "uptime", "hostname", "python", "python3", "pip", "node", "free"]  # fmt: skip
STRICTER = {
    "a program written as a path": "is not the program of that name on a list: it may lie anywhere",
}
OTHER_SHELLS = "a grammar of PowerShell or cmd: our tool runs bash, wherever it runs at all"


def cases(relative: str) -> Any:
    found = [c for c in load_cases(f"cases/{relative}") if c["input"].get("shell", "Posix") == "Posix"]
    return each("case", [c for c in found if "command" in c["input"] or "argv" in c["input"]],
                                   ids=lambda case: case["name"])  # fmt: skip


def as_rules(policy: dict[str, Any], *, listed: list[str] | None = None) -> str:
    """Settings of theirs as a file of rules."""
    rules = [f'autonomy = "{LEVELS[policy.get("autonomy", "Supervised")]}"']
    names = policy.get("allowed_commands", listed)
    if (
        policy.get("autonomy") == "ReadOnly"
    ):  # there no command at all; here those that were proved only to read
        names = []
    if names is not None and "*" not in names:
        bare = {name.lower() for name in names if "/" not in name}  # there a name has no case
        kept = [pattern for name in sorted({*names, *bare}) for pattern in (name, f"{name} *")]
        unless = f"except = {{ command = {json.dumps(kept)} }}" if kept else ""
        rules.append(f'[[rule]]\nname = "listed"\ndeny = true\nreach = "run"\n{unless}')
    if forbidden := policy.get("forbidden_paths"):
        paths = [path for one in forbidden for path in (one, f"{one}/**")]
        rules.append(f'[[rule]]\nname = "forbidden"\ndeny = true\npath = {json.dumps(paths)}')
    if policy.get(
        "block_high_risk_commands", True
    ):  # there: never, unless it is listed; here a person decides
        rules.append('[[rule]]\nname = "risky"\nask = true\ntool = "shell"\neffect = "destructive"')
    return "\n".join(rules)


async def prepared(command: str, rules: str, root: Path) -> Prepared:
    box = Toolbox([Shell(Workspace(root), sandbox=NoSandbox())], policy=read_rules(rules).policy())
    return await box.prepare(ToolCall("shell", {"command": command}))


def destroys(found: Prepared) -> bool:
    return isinstance(found, Refused) and "never will be" in found.result.text


@cases("zeroclaw/shell_validate_execution.json")
async def test_what_may_run(case: dict[str, Any], tmp_path: Path) -> None:
    given, expected = case["input"], case["expected"]
    found = await prepared(given["command"], as_rules(given["policy"], listed=DEFAULTS), tmp_path)
    if not expected["ok"]:
        assert found.kind != "ready"
        if "not allowed" in expected.get("error_contains", ""):
            strict = isinstance(found, Pending) and found.question.strict
            assert strict or isinstance(found, Refused)
    else:
        assert not isinstance(found, Refused) or destroys(found), found.result.text


@cases("zeroclaw/shell_command_allowed.json")
async def test_a_list_of_commands(case: dict[str, Any], tmp_path: Path) -> None:
    """What is not on the list is refused, or asked about each time where nobody can tell what would run."""
    given, expected = case["input"], case["expected"]
    found = await prepared(given["command"], as_rules(given["policy"], listed=DEFAULTS), tmp_path)
    if expected["allowed"]:
        if isinstance(found, Refused):
            as_path = re.search(r"(^|[;&|\s])(/|\./|~/)[\w./-]+", given["command"])  # STRICTER
            assert destroys(found) or as_path, found.result.text
    elif found.kind == "ready":
        # Upstream refuses every substitution and variable; ours is plain where what is inside is listed or harmless.
        assert re.search(r"\$\(|`|\$\{HOME\}|<\(", given["command"])
    else:
        assert isinstance(found, Refused) or (isinstance(found, Pending) and found.question.reason)


@cases("zeroclaw/shell_forbidden_path_argument.json")
async def test_paths_in_commands(case: dict[str, Any], tmp_path: Path) -> None:
    given, expected = case["input"], case["expected"]
    root = tmp_path / "workspace"
    build(tmp_path, given.get("fixture", {}))
    root.mkdir(exist_ok=True)
    policy = {**given.get("policy", {}), "allowed_commands": ["*"], "block_high_risk_commands": False}
    found = await prepared(given["command"], as_rules(policy), root)
    if expected.get("forbidden_path") or expected.get("blocked"):
        assert found.kind != "ready"
    elif isinstance(found, Refused):
        raise AssertionError(found.result.text)
    elif isinstance(found, Pending):
        assert "outside the workspace" not in found.question.reason
        assert "forbidden" not in found.question.reason


@pytest.mark.parametrize(
    "case", [c for c in load_cases("cases/zeroclaw/path_fs_cases.json") if c["input"].get("check") == "shell_paths"],
    ids=lambda case: case["name"],
)  # fmt: skip
async def test_paths_that_links_lead_to(case: dict[str, Any], tmp_path: Path) -> None:
    given, expected = case["input"], case["expected"]
    build(tmp_path, given.get("tree", {}))
    policy = {**given["policy"], "allowed_commands": ["*"], "block_high_risk_commands": False}
    command = re.sub(r"(?<![\w/])root/", f"{tmp_path}/root/", given["command"])
    found = await prepared(command, as_rules(policy), tmp_path / given["policy"]["workspace_dir"])
    if expected["forbidden_path"]:
        assert found.kind != "ready"
    else:
        assert not isinstance(found, Refused)


@cases("beyond/shell_policy_gaps.json")
async def test_gaps_of_a_list(case: dict[str, Any], tmp_path: Path) -> None:
    """With every program of the case on a list that allows: what the list does not know still asks."""
    given = case["input"]
    names = given["policy"]["allowed_commands"]
    if "must_not_auto_allow" not in case["expected"]:
        names = [*names, given["command"].split()[0]]
    rules = as_rules({"allowed_commands": names, "block_high_risk_commands": False})
    found = await prepared(given["command"], rules, tmp_path)
    if "must_not_auto_allow" in case["expected"]:
        assert found.kind != "ready"
    else:
        assert not isinstance(found, Refused)


BASELINES = {
    "default": [],
    "read_only": ["ls", "cat", "head", "tail", "wc", "grep", "find", "rg", "pwd", "echo", "stat", "file", "which", "env", "date"],
    "development": ["git", "cargo", "npm", "node", "python3", "python", "pip", "make", "rustc", "ls", "cat", "grep", "find", "head", "tail", "wc", "echo", "pwd", "go", "pnpm", "yarn", "uv"],
}  # fmt: skip


@cases("entelix/shell_policy.json")
async def test_lists_by_name(case: dict[str, Any], tmp_path: Path) -> None:
    import shlex

    argv, policy = case["input"]["argv"], case["input"]["policy"]
    listed = policy if isinstance(policy, list) else BASELINES.get(policy, [])
    if case["expected"]["ok"] and isinstance(policy, str) and argv[0] not in listed:
        listed = [*listed, argv[0]]  # their list, which we do not have whole
    rules = as_rules({"allowed_commands": listed, "block_high_risk_commands": False})
    found = await prepared(shlex.join(argv), rules, tmp_path)
    if case["expected"]["ok"]:
        assert not isinstance(found, Refused), found.result.text
        if policy == "read_only" and argv[0] in ("ls", "cat", "head", "tail", "wc", "grep", "find"):
            assert found.kind == "ready"
    else:
        assert isinstance(found, Refused)


@cases("pi/plan_mode_safe_command.json")
async def test_planning_only_reads(case: dict[str, Any], tmp_path: Path) -> None:
    """A plan is made under `read_only`: nothing asks there, what does more than read is refused."""
    found = await prepared(case["input"]["command"], 'autonomy = "read_only"', tmp_path)
    if case["expected"] == "not_safe":
        assert isinstance(found, Refused)
    else:
        supervised = await prepared(case["input"]["command"], "", tmp_path)
        # Stricter: what asks the network, opens a pager or was not reviewed is no proved reading.
        assert found.kind == "ready" or isinstance(supervised, Pending)


TOKENS = [c for c in load_cases("cases/zeroclaw/path_fs_cases.json") if "token" in c["input"]]


@pytest.mark.parametrize("case", TOKENS, ids=lambda case: case["name"])
async def test_a_path_behind_an_option(case: dict[str, Any], tmp_path: Path) -> None:
    """An option that nobody knows asks, whatever follows it."""
    token, value = case["input"]["token"], case["expected"].get("value")
    found = await prepared(f"cat '{token}'", 'autonomy = "supervised"', tmp_path)
    assert found.kind != "ready" if value else not isinstance(found, Refused)


DEVICES = [
    c for c in load_cases("cases/zeroclaw/path_fs_cases.json") if c["name"].startswith("posix_devices")
]


@pytest.mark.parametrize("case", DEVICES, ids=lambda case: case["name"])
async def test_devices_are_read_by_commands(case: dict[str, Any], tmp_path: Path) -> None:
    """They are no files to the file tools; a command may read those that are harmless."""
    given = case["input"]
    found = await prepared(f"head -c 4 {given['path']}", 'autonomy = "supervised"', tmp_path)
    if case["expected"]["allowed"]:
        assert not isinstance(found, Refused)
    if given["path"] == "/dev/null":
        assert found.kind == "ready"
