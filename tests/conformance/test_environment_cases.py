"""What of our environment a command gets, and which variables it may be given unasked, beside other systems' lists.

Theirs take away what looks bad; ours passes what is listed. Merging lists of several sources (gemini-cli,
`getSecureSanitizationConfig`) has no counterpart: nothing of a project can add to the list. What is marked as
untrusted in a history there (`extractUntrustedContext`) is a mark on the run here: see test_untrusted_words. Old
outputs are not pruned from a history here (`tool_output_masking`): a result is cut when it is made.
"""

from __future__ import annotations

import re
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

import pytest

from tests.cases import each
from tests.conformance.conftest import load_cases
from tests.conformance.rules_of_others import any_tool, shell_in
from toolcrib import Effect, Toolbox
from toolcrib.command.judge import judge
from toolcrib.command.judge.variables import objection
from toolcrib.command.sandbox import NoSandbox, environment
from toolcrib.command.sandbox.environment import PASSED, git_overrides
from toolcrib.context import Context
from toolcrib.rules import PathPattern, read_rules
from toolcrib.tools import Shell, ShellParams, Workspace

CODEX = load_cases("cases/codex/shell_env_policy.json")
GEMINI = load_cases("cases/gemini-cli/env_sanitization.json")
CREDENTIALS = re.compile(r"KEY|SECRET|TOKEN|PASSW|CREDENTIAL|PRIVATE|AUTH|CERT|JWT", re.IGNORECASE)
BY_NAME = "who names a variable means it to be passed, whatever its name or value look like"
NEEDED = {*PASSED, "LC_ALL", "LC_CTYPE"}  # passed in every mode


def kept(variables: dict[str, str], passed: list[str], added: dict[str, str] | None = None) -> dict[str, str]:
    ours = environment(variables, passed=passed, added=added)
    return {name: value for name, value in ours.items() if name not in git_overrides()}


def by_name(cases: list[Any]) -> Any:
    return each("case", [pytest.param(case, id=case["name"]) for case in cases])


@by_name(CODEX)
def test_environments(case: dict[str, Any]) -> None:
    given, policy, expected = case["input"]["vars"], case["input"]["policy"], case["expected"]
    if policy.get("platform") == "windows":
        return
    named = [
        name
        for name in given
        if any(fnmatchcase(name.upper(), one.upper()) for one in policy.get("include_only", []))
    ]
    excluded = [
        name
        for name in given
        if any(fnmatchcase(name.upper(), one.upper()) for one in policy.get("exclude", []))
    ]
    ours = kept(given, [name for name in named if name not in excluded], policy.get("set"))
    for name in ours:
        assert name in expected or name in NEEDED, name
        assert not CREDENTIALS.search(name) or name in named or name in policy.get("set", {})
    for name in (*named, *policy.get("set", {})):
        assert ours.get(name) == expected.get(name) or name in excluded


@by_name([case for case in GEMINI if case["input"]["fn"] == "sanitizeEnvironment"])
def test_sanitised_environments(case: dict[str, Any]) -> None:
    given, settings = case["input"]["args"]
    given = {name: value.replace("{+}", "") for name, value in given.items()}
    allowed = {name.lower() for name in settings["allowedEnvironmentVariables"]}
    blocked = {name.lower() for name in settings["blockedEnvironmentVariables"]}
    passed = [name for name in given if name.lower() in allowed]
    ours = kept(given, passed)
    for name in ours:
        assert name in case["expected"] or name in passed, BY_NAME
        assert name.lower() not in blocked or name in passed
    for name in NEEDED & set(case["expected"]):
        assert ours[name] == given[name]


@by_name([case for case in GEMINI if case["input"]["fn"] == "isDangerousExecutionEnvironmentVariable"])
def test_variables_that_change_what_runs(case: dict[str, Any]) -> None:
    """All that we do not know is asked about, and so is PATH."""
    name = case["input"]["args"][0]
    if case["expected"]:
        assert objection({name: "x"}) is not None
        assert judge(f"{name}=x ls").verdict != "plain" or not re.fullmatch(r"\w+", name)
        assert not kept({name: "x"}, [])


INHERITED = {
    "OPENAI_API_KEY": "k", "ANTHROPIC_API_KEY": "k", "GEMINI_API_KEY": "k", "AWS_SECRET_ACCESS_KEY": "k", "GITHUB_TOKEN": "k",
    "HF_TOKEN": "k", "DATABASE_URL": "postgres://u:p@h/d", "LC_API_KEY": "k", "LC_SECRET": "k", "LD_LIBRARY_PATH": "/nowhere",
    "BASH_ENV": "/nowhere", "ENV": "/nowhere", "PYTHONSTARTUP": "/nowhere", "NODE_OPTIONS": "--version", "GIT_SSH_COMMAND": "x",
    "SSH_AUTH_SOCK": "/nowhere", "DBUS_SESSION_BUS_ADDRESS": "unix:path=/nowhere", "KUBECONFIG": "/nowhere", "NPM_TOKEN": "k",
}  # fmt: skip


async def test_a_command_sees_none_of_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in INHERITED.items():
        monkeypatch.setenv(name, value)
    shell = Shell(Workspace(tmp_path), sandbox=NoSandbox())
    said = (await shell.execute(ShellParams.model_validate({"command": "env; true"}), Context())).text
    seen = {line.partition("=")[0] for line in said.splitlines()}
    assert "PATH" in seen and not seen & set(INHERITED)
    assert not set(kept(INHERITED, [])), "and in a sandbox"


# -- words from outside

TAINTED = """
[[rule]]
ask = true
effect = ["write", "destructive"]
tainted = true
reason = "the run has read something from outside"
"""
COARSER = (
    "not which words came from outside counts, but that something did: a model may say it in other words"
)


@by_name(
    [
        case
        for case in load_cases("cases/gemini-cli/untrusted_context.json")
        if case["input"]["fn"] != "extractUntrustedContext"
    ]
)
async def test_untrusted_words(case: dict[str, Any], tmp_path: Path) -> None:
    fn, args, expected = case["input"]["fn"], case["input"]["args"], case["expected"]
    if fn == "isBuildOrTestCommand":
        if expected and judge(args[0]).verdict == "plain":
            assert judge(args[0]).effect == "exec"  # a check of the project's own, which a sandbox holds
        return
    command, context = args
    if isinstance(command, list):
        command = " ".join(command)
    outside = any_tool("browse", Effect.READ)
    tainted = bool(context.get("untrustedTexts") or context.get("untrustedTokens"))
    box = Toolbox([outside, shell_in(tmp_path)], policy=read_rules(TAINTED).policy("full"))
    if tainted:
        assert not (await box.call("browse", {})).is_error
    from toolcrib import ToolCall

    prepared = await box.prepare(ToolCall("shell", {"command": command}))
    if expected and expected != [] and judge(command).verdict != "plain":
        assert prepared.kind != "ready" or not tainted, COARSER


# -- paths in words and below each other

PATHS = load_cases("cases/gemini-cli/paths.json")


def on_windows(case: dict[str, Any]) -> bool:
    return (
        bool(re.search(r"[Ww]indows|Darwin", case["name"]))
        or "\\\\" in str(case["input"]["args"])
        or re.search(r"[A-Za-z]:\\", str(case["input"]["args"])) is not None
    )


@by_name([case for case in PATHS if case["input"]["fn"] == "isSubpath" and not on_windows(case)])
def test_what_lies_below(case: dict[str, Any]) -> None:
    parent, child = case["input"]["args"]
    assert PathPattern(parent).matches(child) == case["expected"] or ".." in parent


@by_name(
    [
        case
        for case in PATHS
        if case["input"]["fn"] in ("escapePath", "unescapePath") and "posix" in case["name"]
    ]
)
def test_escaped_paths_are_read_as_bash_does(case: dict[str, Any]) -> None:
    escaped, path = (case["expected"], case["input"]["args"][0])
    if case["input"]["fn"] == "unescapePath":
        escaped, path = path, escaped
    if not path or path != path.strip() or not re.search(r"\w", path):
        return
    found = judge(f"cat -- {escaped}")
    assert [operand.path for operand in found.operands] == [path], found.reason


@by_name(
    [case for case in load_cases("cases/deepagents/virtual_path.json") if "allowed_prefixes" in case["input"]]
)
async def test_folders_that_alone_may_be_reached(case: dict[str, Any]) -> None:
    given, expected = case["input"], case["expected"]
    listed = ", ".join(f'"{prefix.rstrip("/") or "/"}"' for prefix in given["allowed_prefixes"])
    rules = read_rules(f'otherwise = "deny"\n[[rule]]\nallow = true\ntool = "look"\npath = [{listed}]')
    from toolcrib import ToolCall
    from toolcrib.access import Reach

    look = any_tool("look", Effect.READ, path=given["path"], reach=Reach.READ)
    prepared = await Toolbox([look], policy=rules.policy("full")).prepare(ToolCall("look", {}))
    assert (prepared.kind == "ready") == (not isinstance(expected, dict))
