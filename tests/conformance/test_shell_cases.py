"""Recorded commands of other systems, judged by ours.

Each system's expectation is mapped to ours by a rule; where we differ on purpose, the rule or a table says why.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Any

import pytest

from tests.cases import each
from tests.conformance.conftest import load_cases, shared_dir
from toolcrib.command.judge import Judgement, judge
from toolcrib.command.judge.find_commands import programs_in
from toolcrib.command.judge.parse import parse
from toolcrib.command.judge.unwrap import unwrapped
from toolcrib.command.not_proved import NotProved
from toolcrib.command.plan import Command, Plan, commands, quoted
from toolcrib.command.programs.traits import count_of_words

OPERATORS = {"&&", "||", "|", ";"}


def line(argv: Sequence[str], *, operators: bool = False) -> str:
    return " ".join(word if operators and word in OPERATORS else quoted(word) for word in argv)


def named(relative: str) -> list[Any]:
    return [pytest.param(case, id=case["name"]) for case in load_cases(f"cases/{relative}")]


# --- proven bypasses --------------------------------------------------------------------------------------

DIFFERENT = {
    "paths-symlink": "a link has a plain name: where it leads is seen by the file system and the sandbox, not by a parser",
}


def bypasses() -> list[Any]:
    folder = shared_dir() / "cases" / "shell-bypass"
    return [
        pytest.param(case, id=case["name"])
        for path in sorted(folder.glob("*.json"))
        for case in json.loads(path.read_text("utf-8"))["cases"]
    ]


@each("case", bypasses())
def test_no_bypass_is_plain_and_no_harmless_command_is_stopped(case: dict[str, Any]) -> None:
    if case["name"] in DIFFERENT:
        pytest.skip(DIFFERENT[case["name"]])
    found = judge(case["input"])
    verdict = {"plain": "allow"}.get(found.verdict, found.verdict)
    if case["expected"] == "ask" and found.destroys:
        verdict = "ask"  # denied where a question would do: what it destroys is said
    assert verdict == case["expected"], found.reason


@each("case", named("beyond/shell_policy_gaps.json"))
def test_gaps_of_an_allow_list(case: dict[str, Any]) -> None:
    command = case["input"]["command"]
    if "must_not_auto_allow" in case["expected"]:
        assert judge(command).verdict != "plain"
    else:
        assert len(list(commands(parse(command)))) == 1
        assert judge(command).verdict != "deny"


# --- codex ------------------------------------------------------------------------------------------------


def plain_words(plan: Plan) -> list[list[str]] | None:
    """The commands of a plan, if they are words and operators alone."""
    found = list(commands(plan))
    literal = all(word.literal is not None for command in found for word in command.words)
    grouped = any(not isinstance(stage, Command) for step in plan.steps for stage in step.pipeline.stages)
    if grouped or not literal or any(command.redirects or command.env for command in found):
        return None
    return [[word.literal or "" for word in command.words] for command in found]


def parsed(text: str) -> Plan | None:
    try:
        return parse(text)
    except NotProved:
        return None


@pytest.mark.parametrize("case", named("codex/bash_parsing.json"))
def test_scripts_decomposed(case: dict[str, Any]) -> None:
    given, expected = case["input"], case["expected"]
    text = given["script"] if "script" in given else given["argv"][-1]
    if "argv" in given and parsed(line(given["argv"])) is None:
        assert expected is None
        return
    plan = parsed(text)
    if given["api"] == "argv_to_single_command_prefix":
        single = list(commands(plan)) if plan is not None else []
        documents = single and all(redirect.kind == "text" for redirect in single[0].redirects)
        literal = single and all(word.literal is not None for word in single[0].words)
        ours = [single[0].words[0].literal] if len(single) == 1 and documents and literal else None
        # Ours runs the whole plan, so that words after the name do not matter to it.
        assert (ours if ours is None or expected is None else ours[:1]) == expected
        return
    assert (plain_words(plan) if plan is not None else None) == expected


# Upstream asks about every option before git's action. Ours judges the folder of -C, and runs with its settings off.
FOLDER_OF_GIT = ["git", "-C", ".", "status"]


@each("case", named("codex/is_safe_command.json"))
def test_known_safe(case: dict[str, Any]) -> None:
    found = judge(line(case["input"]["argv"]))
    if case["input"]["argv"] == FOLDER_OF_GIT:
        assert found.verdict == "plain"
        return
    assert (found.verdict == "plain") == (case["expected"] == "safe"), found.reason


@pytest.mark.parametrize("case", named("codex/dangerous_command.json"))
def test_known_dangerous(case: dict[str, Any]) -> None:
    if case["input"].get("platform") not in (None, "posix"):
        pytest.skip("no shell of ours")
    found = judge(line(case["input"]["argv"]))
    if case["expected"] == "dangerous":
        assert found.verdict != "plain"
    else:
        assert found.verdict != "deny"


# What reads, by upstream's summary, and asks with us.
READS_BUT_ASKS = {
    "lsd": "not reviewed", "pt": "not reviewed",
    "rga": "runs converters", "python": "runs code", "python3": "runs code", "node": "runs code", "perl": "runs code",
}  # fmt: skip


@each("case", named("codex/parse_command.json"))
def test_what_reads_is_plain(case: dict[str, Any]) -> None:
    argv = case["input"]["argv"]
    found = judge(line(argv, operators=True))
    assert found.verdict != "deny"
    if any(one["kind"] == "unknown" for one in case["expected"]) or re.match(r"power|pwsh", argv[0]):
        return
    programs = programs_in(argv[-1] if re.search(r"(ba|z)?sh$", argv[0]) else line(argv, operators=True))
    if found.verdict != "plain":
        follows = re.search(
            r"\brg\b.* -L\b|\bcd \S+ \S+ &&|\byes\b|\bsed -n(?: |$)", line(argv, operators=True)
        )
        assert follows or set(programs) & set(READS_BUT_ASKS), found.reason


# Upstream's rule is narrower than what the program takes: nothing about these is unsafe.
NARROWER = {
    "InvalidPositiveInteger": "head takes any number",
    "UnknownOption": "our row has all options of ls that only show",
}


@pytest.mark.parametrize("case", named("codex/arg_level_policy_legacy.json"))
def test_operands_and_what_happens_to_them(case: dict[str, Any]) -> None:
    given, expected = case["input"], case["expected"]
    if "sed_command" in given:
        found = judge(f"sed -n {quoted(given['sed_command'])} file.txt")
        assert (found.verdict == "plain") == expected["provably_safe"]
        return
    found = judge(line(given["argv"]))
    if not expected["match"]:
        if expected["error"] not in NARROWER and given["argv"][1:]:
            assert found.verdict != "plain"
        return
    access = {"ReadableFile": "read", "ReadableFiles": "read", "WriteableFile": "write"}
    wanted = {(arg["value"], access[arg["type"]]) for arg in expected["args"] if arg["type"] in access}
    if given["argv"] != ["ls"]:
        assert {(operand.path, operand.access) for operand in found.operands} == wanted
    assert found.proved


# --- gemini-cli -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("case", named("gemini-cli/command_safety_posix.json"))
def test_command_safety(case: dict[str, Any]) -> None:
    given = case["input"]
    first = given["args"][0]
    argv = first if isinstance(first, list) else [first, *given["args"][1]]
    argv = [re.sub(r"<<[^>]*>>", "/tmp/given", word) for word in argv]
    found = judge(line(argv), workspace="/tmp/given/workspace")
    if given["fn"] == "isDangerousCommand":
        assert (found.verdict != "plain") if case["expected"] else (found.verdict != "deny")
    elif case["expected"]:
        assert found.verdict == "plain", found.reason
    elif argv[0] == "rg":
        return  # upstream wants the full path: our programs come from a PATH that the operator gave
    elif any("link" in word for word in argv):
        return  # as paths-symlink above
    else:
        assert found.verdict != "plain"


@pytest.mark.parametrize("case", named("gemini-cli/command_substitution.json"))
def test_substitutions_are_understood_and_not_refused(case: dict[str, Any]) -> None:
    command = case["input"]["command"]
    found = judge(command)
    if case["expected"] == "allowed" and case["input"].get("platform") != "win32":
        assert found.verdict == "plain", found.reason
    # Blocked upstream: plain with us only where each of the commands inside is itself plain.
    if found.verdict == "plain" and case["expected"] == "blocked":
        assert found.plan is not None
        assert all(judge(str(Plan((step,)))).verdict == "plain" for step in found.plan.steps)


@each("case", named("gemini-cli/shell_utils.json"))
def test_roots_and_redirections(case: dict[str, Any]) -> None:
    given, expected, note = case["input"], case["expected"], case.get("note") or ""
    if "win32" in note or not given["args"] or not isinstance(given["args"][0], str):
        pytest.skip("no shell of ours")
    text = given["args"][0]
    if given["fn"] == "getCommandRoots":
        roots = {root.rpartition("/")[2] for root in expected}
        assert roots <= set(programs_in(text))
    elif given["fn"] == "hasRedirection":
        plan = parsed(text)
        if plan is None:
            assert expected or judge(text).verdict == "ask"
        else:
            assert any(command.redirects for command in commands(plan)) == expected
    elif given["fn"] == "splitCommands" and expected and (plan := parsed(text)) is not None:
        stages = [stage for step in plan.steps for stage in step.pipeline.stages]
        assert len(stages) == len(expected)
    elif given["fn"] == "stripShellWrapper" and expected == text:
        plan = parsed(text)
        assert plan is None or unwrapped(plan) == plan


# --- zeroclaw ---------------------------------------------------------------------------------------------

DEFAULT_LIST = set(
    "git npm cargo ls cat grep find echo pwd wc head tail date df du uname uptime hostname python python3 pip node free".split()  # noqa: SIM905
)
# What upstream's list or `*` lets through unread, and we ask about because it was not understood.
NOT_READ = re.compile(r"\$[\w{(@*#?]|`|[<>]\(|&(?!&|>)|<<(?!<)")


def of_posix(case: dict[str, Any]) -> dict[str, Any]:
    if case["input"].get("shell", "Posix") != "Posix":
        pytest.skip("no shell of ours")
    return case


def refused_by_list(given: dict[str, Any], found: Judgement) -> bool:
    """Whether upstream refused for its allow list or its level, and not for what the command does."""
    listed = given["policy"].get("allowed_commands")
    allowed = DEFAULT_LIST if listed is None else {name.lower() for name in listed}
    if given["policy"].get("autonomy") == "ReadOnly":
        return True
    return "*" not in allowed and not {name.lower() for name in found.programs} <= allowed


@each("case", named("zeroclaw/shell_command_allowed.json"))
def test_an_allow_list_against_proof(case: dict[str, Any]) -> None:
    given = of_posix(case)["input"]
    found = judge(given["command"])
    if case["expected"]["allowed"]:
        # Listed upstream: with us plain, or understood and asked about for its effect or a path, or not read at all.
        understood = found.plan is not None and bool(found.reason)
        assert found.verdict == "plain" or understood or found.destroys or NOT_READ.search(given["command"])
        if not given["policy"] and found.effect == "read" and found.plan is not None:
            outside = any(operand.path.startswith("/") for operand in found.operands)
            assert found.verdict == "plain" or outside, found.reason
    elif found.verdict == "plain" and not refused_by_list(given, found):
        # Upstream refuses every substitution and variable; ours is plain only where what is inside is, or $HOME and the like.
        assert re.search(r"\$\(|`|\$\{?HOME|<\(", given["command"])


@pytest.mark.parametrize("case", named("zeroclaw/shell_command_risk.json"))
def test_what_is_risky_asks(case: dict[str, Any]) -> None:
    found = judge(of_posix(case)["input"]["command"])
    if case["expected"]["risk"] != "Low":
        assert found.verdict != "plain"
    else:
        assert found.verdict != "deny"


@pytest.mark.parametrize("case", named("zeroclaw/shell_validate_execution.json"))
def test_what_needs_approval_asks(case: dict[str, Any]) -> None:
    given = of_posix(case)["input"]
    found = judge(given["command"])
    if not case["expected"]["ok"]:
        assert found.verdict != "plain" or refused_by_list(given, found)
    elif given.get("approved"):
        assert found.verdict != "deny" or found.destroys


@pytest.mark.parametrize("case", named("zeroclaw/shell_redirects.json"))
def test_redirections(case: dict[str, Any]) -> None:
    command = case["input"]["command"]
    if case["expected"]["unsafe_redirect"]:
        assert judge(command).verdict != "plain"
    else:
        plan = parsed(command)
        assert plan is not None
        assert not [r for one in commands(plan) for r in one.redirects if r.kind in ("write", "append")]


@each("case", named("zeroclaw/shell_forbidden_path_argument.json"))
def test_forbidden_paths(case: dict[str, Any]) -> None:
    given = of_posix(case)["input"]
    if "command" not in given:
        pytest.skip("asks the file system")
    found = judge(given["command"])
    if case["expected"].get("forbidden_path") or case["expected"].get("blocked"):
        links = given.get("fixture") and found.proved  # where a link leads is not in its name
        assert found.verdict != "plain" or links
    elif found.verdict != "plain":
        assert "outside the workspace" not in found.reason
        assert found.verdict != "deny"


# --- the others -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("case", named("entelix/shell_policy.json"))
def test_argv_policies(case: dict[str, Any]) -> None:
    argv, policy = case["input"]["argv"], case["input"]["policy"]
    found = judge(line(argv))
    if case["expected"]["ok"]:
        assert found.verdict == "plain" or (policy != "read_only" and found.verdict == "ask")
    elif found.verdict == "plain":
        # Not on the list of that case; ours has no list of names.
        assert (
            isinstance(policy, list)
            or "ot on the allow" in str(case["expected"])
            or "NotAllowed" in str(case["expected"])
        )


@pytest.mark.parametrize("case", named("pi/plan_mode_safe_command.json"))
def test_read_only_mode(case: dict[str, Any]) -> None:
    found = judge(case["input"]["command"])
    if case["expected"] == "not_safe":
        assert found.verdict != "plain" or found.effect == "exec"
    elif found.verdict != "plain":
        network = found.effect == "network"  # safe upstream, because it changes nothing; it asks with us
        pager = set(found.programs) & set(READS_BUT_ASKS)
        assert network or pager, found.reason


FAKE = "sk-" + "a1B2" * 8


@pytest.mark.parametrize("case", named("deepagents/secret_in_command.json"))
def test_secrets_on_a_command_line(case: dict[str, Any]) -> None:
    command = case["input"]["command"].replace("{fake_token}", FAKE)
    found = judge(command)
    if case["expected"] == "reject":
        assert found.verdict == "ask"
        assert "key or token" in found.reason
        assert not found.grantable
    else:
        assert "key or token" not in found.reason


@pytest.mark.parametrize("case", named("opencode/shell_permission.json"))
def test_patterns_and_folders(case: dict[str, Any]) -> None:
    given, expected = case["input"], case["expected"]
    if given.get("shell") not in (None, "bash", "sh", "zsh"):
        pytest.skip("no shell of ours")
    command = re.sub(r"\{\w+\}", "/tmp/given", given["command"])
    outside = str(given.get("workdir", "")).startswith(("{outer}", "{outside}", "/"))
    found = judge(command, cwd_is_workspace=not outside)
    if "external_directory" in expected or expected.get("asks_permission") == "external_directory" or outside:
        assert (found.verdict != "plain") == bool(expected.get("external_directory", True))
    for pattern in expected.get("bash_patterns", []):
        assert found.plan is not None
        assert pattern.replace(" ", "") in str(found.plan).replace(" ", "")


@pytest.mark.parametrize("case", named("opencode/command_prefix_arity.json"))
def test_how_many_words_name_a_command(case: dict[str, Any]) -> None:
    tokens = case["input"]["tokens"]
    assert tokens[: count_of_words(tokens)] == case["expected"]
