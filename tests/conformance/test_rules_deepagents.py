"""Path permissions of deepagents, where the first rule that means a path decides and all else is allowed.

Its paths begin at a root of their own; the same patterns hold here for absolute paths, and without their first
slash for files of the workspace.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.cases import each
from tests.conformance.conftest import load_cases
from tests.conformance.rules_of_others import any_tool, ordered, shell_in
from toolcrib import Effect, Toolbox, ToolCall, ToolResult, tool
from toolcrib.access import Access, Reach
from toolcrib.errors import ErrorCode
from toolcrib.question import Answer, Verdict
from toolcrib.rules import PathPattern, PatternError, Rule, RulePolicy
from toolcrib.toolbox.policy import Verb
from toolcrib.tools import Workspace
from toolcrib.tools.builtin import workspace_tools

VERBS = {"allow": Verb.ALLOW, "deny": Verb.DENY, "interrupt": Verb.ASK}
REACH = {"read": {Reach.READ}, "write": {Reach.WRITE, Reach.DELETE}}


def rules_of(listed: list[dict[str, Any]], *, inside: bool = False) -> tuple[Rule, ...]:
    made = []
    for rule in listed:
        reach = frozenset(one for operation in rule["operations"] for one in REACH[operation])
        paths = [path.removeprefix("/") or "**" if inside else path for path in rule["paths"]]
        made.append(
            Rule(verb=VERBS[rule.get("mode", "allow")], paths=tuple(map(PathPattern, paths)), reach=reach)
        )
    return ordered(made)


def of_api(*apis: str) -> Any:
    cases = [
        case for case in load_cases("cases/deepagents/fs_permissions.json") if case["input"]["api"] in apis
    ]
    return each("case", [pytest.param(case, id=case["name"]) for case in cases])


async def decided(rules: tuple[Rule, ...], access: Access) -> str:
    @tool(
        effect=Effect.READ if access.reach is Reach.READ else Effect.WRITE,
        secrets=(),
        accesses=lambda given: [access],
    )
    def act() -> str:
        "Reach something."
        return "done"

    prepared = await Toolbox([act], policy=RulePolicy("full", rules)).prepare(ToolCall("act", {}))
    return {"ready": "allow", "pending": "interrupt", "refused": "deny"}[prepared.kind]


@of_api("check", "exact_write_needs_approval")
async def test_a_path(case: dict[str, Any]) -> None:
    given = case["input"]
    reach = Reach.READ if given.get("operation") == "read" else Reach.WRITE
    ours = await decided(rules_of(given["rules"]), Access(reach, given["path"]))
    expected = case["expected"]
    assert ours == (expected if isinstance(expected, str) else "interrupt" if expected else "allow")


@of_api("delete_denied_by")
async def test_deleting_a_folder(case: dict[str, Any]) -> None:
    """There a subtree that may hold a denied path is refused; with us a person is asked, and nobody is not enough."""
    given = case["input"]
    ours = await decided(rules_of(given["rules"]), Access(Reach.DELETE, given["target"], subtree=True))
    assert (ours != "allow") == bool(case["expected"]), ours
    if not isinstance(case["expected"], list):
        return
    itself = await decided(rules_of(given["rules"]), Access(Reach.DELETE, given["target"]))
    assert itself == "allow" or case["expected"]


@of_api("paths_overlap")
async def test_paths_that_overlap(case: dict[str, Any]) -> None:
    a, b = case["input"]["a"], case["input"]["b"]
    for one, other in ((a, b), (b, a)):
        assert PathPattern(one).may_match_below(other) == case["expected"]


OUTSIDE = "no rule is needed: a search outside the workspace is refused"


@of_api("bulk_read_needs_approval", "glob_needs_approval")
async def test_a_search_that_could_reach_it(case: dict[str, Any], tmp_path: Path) -> None:
    given = case["input"]
    root = tmp_path / "root"
    for folder in ("secrets", "workspace"):
        (root / folder).mkdir(parents=True)
    arguments = {key: value for key, value in given["args"].items() if value is not None}
    path = str(arguments.get("path", "")).lstrip("/") or "."
    policy = RulePolicy("full", rules_of(given["rules"], inside=True))
    box = Toolbox(workspace_tools(Workspace(root)), policy=policy)
    if given["api"] == "bulk_read_needs_approval":
        calls = [ToolCall("list_dir", {"path": path}), ToolCall("grep", {"pattern": "x", "path": path})]
    else:
        pattern = str(arguments["pattern"]).lstrip("/")
        calls = [
            ToolCall("glob", {"pattern": pattern, "path": "." if arguments["pattern"][0] == "/" else path})
        ]
    for call in calls:
        prepared = await box.prepare(call)
        assert (prepared.kind != "ready") == case["expected"], (call, prepared)


WORDS = {"must not contain '..'": "\\", "must not contain '~'": "~", "must start with": "/"}
RELATIVE = "a pattern without a slash before it is one for the workspace"


@of_api("rule")
def test_patterns_that_are_refused(case: dict[str, Any]) -> None:
    for path in case["input"]["paths"]:
        if isinstance(case["expected"], dict) and "error_contains" in case["expected"]:
            if ".." in path or "\\" in path or "~" in path.split("/")[1:]:
                with pytest.raises(PatternError):
                    PathPattern(path)
            else:
                assert RELATIVE
        else:
            PathPattern(path)


# -- whole tools

NAMES = {
    "ls": "list_dir",
    "write_file": "write_file",
    "read_file": "read_file",
    "edit_file": "edit_file",
    "grep": "grep",
    "glob": "glob",
}


def in_our_words(name: str, given: dict[str, Any]) -> dict[str, Any]:
    made = {}
    for key, value in given.items():
        if value is None:
            continue
        if key in ("file_path", "path"):
            key, value = "path", str(value).lstrip("/") or "."
        if key == "pattern" and name == "glob":
            value = str(value).lstrip("/")
        made[key] = value
    return made


async def called(box: Toolbox, name: str, arguments: dict[str, Any]) -> ToolResult:
    return await box.call(NAMES[name], arguments)


@of_api("tool")
async def test_tools(case: dict[str, Any], tmp_path: Path) -> None:
    given, expected = case["input"], case["expected"]
    if given["tool"] not in {*NAMES, "delete", "(construct)"}:
        return
    if given["tool"] == "(construct)":
        await test_rules_hold_for_commands_too(tmp_path)
        return
    for path, text in given["files"].items():
        place = tmp_path / path.lstrip("/")
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(text)

    async def yes(question: Any) -> Answer:
        return Answer(Verdict.YES)

    policy = RulePolicy("full", rules_of(given["rules"], inside=True))
    refused_words = "denied" in str(expected.get("contains", "")) or "traversal" in str(
        expected.get("contains", "")
    )
    if given["tool"] == "delete":
        target = given["args"]["file_path"].lstrip("/") or "."
        deleting = any_tool("delete", Effect.DESTRUCTIVE, path=target, reach=Reach.DELETE)
        subtree = Access(Reach.DELETE, target, subtree=True)
        assert deleting is not None and (await decided(policy.rules, subtree) == "allow") != refused_words
        return
    tools = workspace_tools(Workspace(tmp_path))
    asked = await called(
        Toolbox(tools, policy=policy), given["tool"], in_our_words(given["tool"], given["args"])
    )
    said = await called(
        Toolbox(tools, policy=policy, approver=yes), given["tool"], in_our_words(given["tool"], given["args"])
    )
    known = (
        "there is no" in said.text.lower()
        or "does not exist" in said.text.lower()
        or "found" in said.text.lower()
    )
    if refused_words:
        assert asked.code in (ErrorCode.DENIED, ErrorCode.NOBODY_TO_ASK), asked.text
    elif "permission denied" in expected.get("not_contains", []):
        assert said.code not in (ErrorCode.DENIED, ErrorCode.REJECTED), said.text
    for text in expected.get("contains", []):
        if not refused_words and "denied" not in text and not known:
            assert text.strip("/") in said.text, said.text
    for text in expected.get("not_contains", []):
        if text.startswith("/"):  # what a deny rule means is left out even after a yes
            assert text.strip("/") + "/" not in said.text, said.text
    for path in expected.get("present", []):
        assert (tmp_path / path.lstrip("/")).exists()


async def test_rules_hold_for_commands_too(tmp_path: Path) -> None:
    """There path rules and a shell exclude each other; here they hold for the operands of commands."""
    (tmp_path / "secrets").mkdir()
    rules = rules_of(
        [{"operations": ["read", "write"], "paths": ["/secrets/**"], "mode": "deny"}], inside=True
    )
    box = Toolbox([shell_in(tmp_path)], policy=RulePolicy("full", rules))
    for command, kind in (
        ("cat secrets/key", "refused"),
        ("grep -r x .", "pending"),
        ("ls docs", "ready"),
        ("mytool $X", "pending"),
    ):
        assert (await box.prepare(ToolCall("shell", {"command": command}))).kind == kind, command
