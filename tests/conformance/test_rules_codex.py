"""Codex: its execution policy (prefix rules, hosts), when it asks, what "always" may remember, MCP annotations.

Left out: PowerShell and cmd (`windows_*`), for which there is no shell here.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.conformance.conftest import load_cases
from tests.conformance.rules_of_others import STRICTNESS, any_tool, command, shell_in, verdict
from toolcrib import Effect, Toolbox, ToolCall
from toolcrib.access import Reach
from toolcrib.command.judge import judge
from toolcrib.command.plan import quoted
from toolcrib.prepared import Pending
from toolcrib.question import Answer, Scope, Verdict
from toolcrib.rules import PatternError, Rule, RuleError, RulePolicy, read_rules
from toolcrib.toolbox.policy import Verb

VERBS = {"allow": Verb.ALLOW, "prompt": Verb.ASK, "forbidden": Verb.DENY, "deny": Verb.DENY}
THEIRS = {"allow": "allow", "prompt": "ask", "forbidden": "deny", "ask": "ask", "forbid": "deny"}
ONLY_THERE = {
    "host_executable": "a program is denied by its name wherever it lies, and allowed by the very words of a rule",
    "protocol": "a host is a name and perhaps a port",
}


def evaluated(source: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """The calls of a policy file: its literals are Python's."""
    import ast

    for node in ast.parse(source).body:
        assert (
            isinstance(node, ast.Expr)
            and isinstance(node.value, ast.Call)
            and isinstance(node.value.func, ast.Name)
        )
        names = ("pattern", "decision", "match", "not_match", "justification")
        listed = dict(zip(names, map(ast.literal_eval, node.value.args), strict=False))
        yield (
            node.value.func.id,
            listed | {str(one.arg): ast.literal_eval(one.value) for one in node.value.keywords},
        )


def rules_of(sources: list[str]) -> list[Rule]:
    made = []
    for source in sources:
        for kind, given in evaluated(source):
            verb = VERBS[given.get("decision", "allow")]
            common: dict[str, Any] = {"verb": verb, "reason": given.get("justification", "")}
            if kind == "prefix_rule":
                if not given["pattern"]:
                    raise PatternError("an empty prefix")
                made.append(Rule(**common, commands=tuple(map(command, spelled_out(given["pattern"])))))
            elif kind == "network_rule":
                text = f'[[rule]]\n{verb.value} = true\nhost = "{given["host"]}"'
                made += read_rules(text).rules
    return made


def spelled_out(pattern: list[Any]) -> Iterator[list[str]]:
    """Every way to write a prefix some words of which have alternatives."""
    if not pattern:
        yield []
        return
    for first in pattern[0] if isinstance(pattern[0], list) else [pattern[0]]:
        yield from ([first, *rest] for rest in spelled_out(pattern[1:]))


def line(argv: list[str]) -> str:
    """An argv as it is typed; a script of a shell is the command itself, as it is with our tool."""
    if len(argv) == 3 and re.search(r"(ba|z)?sh$", argv[0]) and re.fullmatch(r"-l?c", argv[1]):
        return argv[2]
    return " ".join(word if word in ("&&", "||", "|", ";") else quoted(word) for word in argv)


EXECPOLICY = load_cases("cases/codex/execpolicy.json")


@pytest.mark.parametrize("case", [pytest.param(c, id=c["name"]) for c in EXECPOLICY])
async def test_prefix_rules(case: dict[str, Any], tmp_path: Path) -> None:
    given, expected = case["input"], case["expected"]
    if "parse_error_contains" in expected or "parse_error" in expected:
        if "host_executable" in str(given["policy"]):
            return  # ONLY_THERE
        if "match" in str(expected) or "example" in str(expected).lower():
            return  # examples: below, in our words
        with pytest.raises(
            (RuleError, PatternError, AssertionError, KeyError, SyntaxError, TypeError, ValueError)
        ):
            rules_of(given["policy"])
        return
    rules = rules_of(given["policy"])
    for group, verb in (("allowed_domains", Verb.ALLOW), ("denied_domains", Verb.DENY)):
        if group in expected:
            assert sorted(host for rule in rules if rule.verb is verb for host in rule.hosts) == sorted(
                expected[group]
            )
    if "decision" not in expected:
        return
    full = given.get("default", "allow") == "allow"
    policy = RulePolicy("full", rules, otherwise=None if full else "ask")
    argvs = [given["command"]] if "command" in given else given["commands"]
    text = " && ".join(map(line, argvs))
    ours = await verdict(Toolbox([shell_in(tmp_path)], policy=policy), "shell", {"command": text})
    theirs = THEIRS[expected["decision"]]
    if ours != theirs:
        assert STRICTNESS.index(ours) > STRICTNESS.index(theirs), (ours, theirs)
        by_path = any("/" in argv[0] for argv in argvs)  # ONLY_THERE["host_executable"]
        assert by_path or judge(text).verdict == "deny"
    wanted = [
        rule.get("justification")
        for rule in expected.get("matched_rules", [])
        if rule.get("decision") == "forbidden"
    ]
    if ours == "deny" and wanted and wanted[0]:
        refused = await Toolbox([shell_in(tmp_path)], policy=policy).prepare(
            ToolCall("shell", {"command": text})
        )
        assert wanted[0] in refused.result.text or judge(text).verdict == "deny"  # type: ignore[union-attr]


APPROVALS = load_cases("cases/codex/approval_requirement.json")
STRICTER = {
    "sandbox": "supervised asks about all that is not proved plain, also where a sandbox would hold it",
    "never": "where nobody can be asked, what has to be asked about is refused",
}
LOOSER = "what is proved only to read in the workspace, or is a check of the project's own, runs unasked in a sandbox"


def refuses_questions(policy: Any, source: str | None, escalates: bool) -> bool:
    """Whether such a question is put to nobody."""
    if policy == "Never":
        return True
    if isinstance(policy, dict):
        named = policy["Granular"]
        return (escalates and not named["sandbox_approval"]) or (source is not None and not named["rules"])
    return False


@pytest.mark.parametrize(
    "case", [pytest.param(c, id=c["name"]) for c in APPROVALS if "command" in c["input"]]
)
async def test_when_a_person_is_asked(case: dict[str, Any], tmp_path: Path) -> None:
    given, expected = case["input"], case["expected"]
    if re.search(r"powershell|pwsh|cmd(\.exe)?$", given["command"][0], re.IGNORECASE):
        return
    source = given.get("policy_src")
    rules = rules_of([source]) if source else []
    escalates = given.get("sandbox_permissions", "UseDefault") != "UseDefault"
    # To leave the sandbox is to run where none holds.
    box = Toolbox([shell_in(tmp_path, confined=not escalates)], policy=RulePolicy("supervised", rules))
    text = line(given["command"])
    prepared = await box.prepare(ToolCall("shell", {"command": text}))
    ours = {"ready": "allow", "pending": "ask", "refused": "deny"}[prepared.kind]
    theirs = THEIRS[expected["requirement"]]
    if ours == "ask" and refuses_questions(given["approval_policy"], source, escalates):
        ours = "deny"
    empty = not text.strip()
    if ours == "allow" and judge(text).verdict == "plain":
        return  # LOOSER
    if ours != theirs and not empty:
        assert STRICTNESS.index(ours) > STRICTNESS.index(theirs), (ours, theirs)
        destruction_in = judge(text).verdict == "deny"
        assert destruction_in or judge(text).verdict == "ask", STRICTER
    amendment = expected.get("proposed_execpolicy_amendment")
    if isinstance(prepared, Pending) and amendment is None and prepared.question.strict:
        assert not prepared.question.prefixes
    for prefix in prepared.question.prefixes if isinstance(prepared, Pending) else ():
        assert (
            amendment is None or list(prefix) == amendment[: len(prefix)] or len(prefix) <= len(amendment) + 1
        )


@pytest.mark.parametrize(
    "case", [pytest.param(c, id=c["name"]) for c in APPROVALS if "requested_prefix_rule" in c["input"]]
)
async def test_what_always_never_remembers(case: dict[str, Any], tmp_path: Path) -> None:
    """Neither by an answer nor in a file of rules does such a prefix let a command run."""
    given = case["input"]
    prefix = given["requested_prefix_rule"]
    if "matched_rule" in given:
        matched = given["matched_rule"]
        rules = [Rule(verb=VERBS[matched["decision"]], commands=(command(matched["prefix"]),))]
        prepared = await Toolbox([shell_in(tmp_path)], policy=RulePolicy("supervised", rules)).prepare(
            ToolCall("shell", {"command": line([*prefix, "more"])})
        )
        assert not isinstance(prepared, Pending) or not prepared.question.prefixes
        return
    text = " ".join(map(quoted, prefix))
    with pytest.raises(RuleError):
        read_rules(f'[[rule]]\nallow = true\ncommand = """{text + " *" if text else ""}"""')

    async def always(question: Any) -> Answer:
        assert tuple(prefix) not in question.prefixes
        return Answer(Verdict.ALWAYS, scope=Scope.PREFIX)

    if not prefix:
        return
    box = Toolbox([shell_in(tmp_path)], approver=always)
    for more in (["--version-of-x"], ["x.py"]):
        prepared = await box.prepare(ToolCall("shell", {"command": line([*prefix, *more])}))
        assert not isinstance(prepared, Pending) or tuple(prefix) not in prepared.question.prefixes


MCP = load_cases("cases/codex/mcp_approval.json")


def effect_of(hints: dict[str, Any] | None) -> Effect:
    hints = hints or {"destructiveHint": True}
    if hints.get("readOnlyHint"):
        return Effect.READ
    return Effect.WRITE if hints.get("destructiveHint") is False else Effect.DESTRUCTIVE


BELIEVED = (
    "a server's word that its tool only reads is a claim; a rule for the server says whether it is taken"
)
WRITES_ASK = (
    "what changes something asks, also where a server says that it destroys nothing and stays in its world"
)


@pytest.mark.parametrize("case", [pytest.param(c, id=c["name"]) for c in MCP if "annotations" in c["input"]])
async def test_annotations(case: dict[str, Any]) -> None:
    given = case["input"]
    hints = given["annotations"]
    autonomy = {"approve": "full"}.get(given["mode"], "supervised")
    otherwise = "ask" if given["mode"] == "prompt" else None
    policy = RulePolicy(autonomy, otherwise=otherwise)
    ours = await verdict(Toolbox([any_tool("t", effect_of(hints), server="s")], policy=policy), "t", {})
    assert STRICTNESS.index(ours) >= STRICTNESS.index(case["expected"]) or (hints or {}).get(
        "readOnlyHint"
    ), ours
    if ours != case["expected"] and (hints or {}).get("readOnlyHint"):  # destructive as well, they say
        rule = Rule(verb=Verb.ASK, servers=("s",))
        strict = RulePolicy(autonomy, [rule])
        assert (
            await verdict(Toolbox([any_tool("t", Effect.READ, server="s")], policy=strict), "t", {}) == "ask"
        ), BELIEVED
    elif ours != case["expected"]:
        assert (ours, case["expected"]) == ("ask", "allow"), WRITES_ASK


@pytest.mark.parametrize(
    "case", [pytest.param(c, id=c["name"]) for c in MCP if "user_decision" in c["input"]]
)
async def test_an_always_is_once_where_rules_always_ask(case: dict[str, Any]) -> None:
    given, asked = case["input"], []
    if not given["user_decision"].startswith("accept"):
        return  # a no is a no: test_rules_opencode
    remembers = given["user_decision"] != "accept" and case["expected"] != "accept"

    async def approver(question: Any) -> Answer:
        asked.append(question)
        return Answer(Verdict.ALWAYS if given["user_decision"] != "accept" else Verdict.YES)

    rules = [] if remembers else [Rule(verb=Verb.ASK, servers=("s",))]
    box = Toolbox(
        [any_tool("t", Effect.WRITE, server="s")], policy=RulePolicy("supervised", rules), approver=approver
    )
    for _ in range(2):
        assert not (await box.call("t", {})).is_error
    assert len(asked) == (1 if remembers else 2)


def test_examples_in_rules_are_tried() -> None:
    """Theirs have `match` and `not_match` as well: a file in which one does not hold is refused, with its line."""
    text = '[[rule]]\nallow = true\ncommand = "git status *"\nmatch = [\'shell {"command": "git log"}\']\n'
    box = Toolbox([shell_in(Path())], autonomy="full")

    def case_of(call: ToolCall) -> Any:
        import asyncio

        from toolcrib.cli.dry_run import policy_request as made

        return asyncio.run(made(box, call))

    with pytest.raises(RuleError, match="line 4"):
        read_rules(text).check(case_of)
    read_rules(text.replace("git log", "git status -s")).check(case_of)
    assert Reach.RUN
