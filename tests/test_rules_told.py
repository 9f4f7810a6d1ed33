"""What `toolcrib policy` says of good and bad files of rules, and what a model is not shown for them."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any, cast

import pytest

from toolcrib import Toolbox, ToolCall
from toolcrib.cli.main import main
from toolcrib.rules import Limit, RuleError, load_rules, read_rules
from toolcrib.rules.rule_file import MAX_PROBLEMS
from toolcrib.rules.unmatched import unmatched_rules
from toolcrib.tools import Workspace
from toolcrib.tools.builtin import workspace_tools

GOOD = """
otherwise = "ask"

[[rule]]
name = "tests"
allow = true
tool = "shell"
command = "git status *"
match = ['shell {"command": "git status -s"}']
not_match = ['shell {"command": "git push"}']

[[rule]]
name = "env"
deny = true
path = ["**/.env", "**/.env.*"]
except = { path = "**/.env.example" }
match = ['read_file {"path": "a/.env.local"}']
not_match = ['read_file {"path": ".env.example"}', 'read_file {"path": "a"}']

[[rule]]
deny = true
tool = "gl*"
"""


@pytest.fixture
def rules(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "rules.toml"
    path.write_text(GOOD)
    return path


def said(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str]:
    code = main(list(arguments))
    printed = capsys.readouterr()
    return code, printed.out + printed.err


EXPLAINED = [
    ('read_file {"path": "a"}', "ask: no rule allows it", 'otherwise = "ask"'),
    ('read_file {"path": "sub/.env"}', "deny: a rule denies it", "env (rules.toml:12)"),
    ('read_file {"path": ".env.example"}', "ask: no rule allows it", 'otherwise = "ask"'),
    ('glob {"pattern": "*"}', "deny: a rule denies it", "rule 3 (rules.toml:20)"),
]


@pytest.mark.parametrize(("call", "decision", "by"), EXPLAINED)
def test_which_rule_decided(
    rules: Path, capsys: pytest.CaptureFixture[str], call: str, decision: str, by: str
) -> None:
    code, text = said(capsys, "policy", "explain", call, "--policy", str(rules))
    first, second, *_ = text.splitlines()
    assert code == 0 and first.startswith(decision)
    assert second == f"  decided by  {by}"


def test_a_rule_without_a_name_is_called_a_rule_once() -> None:
    named, unnamed = read_rules(
        '[[rule]]\nname = "r"\ndeny = true\ntool = "x"\n[[rule]]\ndeny = true\ntool = "y"'
    ).rules
    assert (named.words, unnamed.words) == (f"rule {named}", str(unnamed))
    assert str(unnamed).startswith("rule 2")


def test_a_good_file_is_counted(rules: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert said(capsys, "policy", "check", "--policy", str(rules)) == (
        0,
        f"{rules}: 3 rules, 5 examples, all decided as they say\n",
    )


WRONG = [
    ('command = "bash *"', 3, "command 'bash *' is too broad: bash runs whatever it is told to"),
    ('command = "/usr/bin/env FOO=1 *"', 3, "is too broad: env runs whatever"),
    ('command = "*"', 3, "name the program"),
    ('path = "/**"\neffect = "write"', 3, "a path that is everything is too broad"),
    ('host = "*"', 3, "host '*' is too broad"),
    ('tool = "*"', 3, "a rule that allows everything is too broad"),
    ('tool = "shell"', 3, "name commands"),
    ("except = 1", 3, "except must be a table"),
    ('tool = "read_file"\nmatch = [\n "read_file",\n]', 7, "path"),
    (
        'name = "a"\ntool = "read_file"\n[[rule]]\ndeny = true\nname = "a"',
        7,
        "two rules are named 'a': the other is in line 3",
    ),
    (
        'tool = "read_file"\nautonomy = "full"',
        3,
        "autonomy is said of the whole file: write it above the first",
    ),
    ('tool = "read_file"\n[[limit]]\ncalls = -1', 6, "calls must be a number of calls, 0 or more; got -1"),
    (
        'tool = "read_file"\n[[limit]]\ntool = "shell"',
        6,
        "calls must be a number of calls, 0 or more; is missing",
    ),
    (
        'tool = "read_file"\n[[limit]]\ncalls = 1\nper = "week"',
        6,
        "per must be one of run, minute, hour, day",
    ),
    ('tool = "read_file"\n[[limit]]\ncalls = 1\ntools = "shell"', 6, "unknown key 'tools' in a limit"),
    (
        """tool = "read_file"\nnot_match = [\n 'read_file {"path": "a"}',\n]""",
        7,
        "not_match, but the rule matches it",
    ),
]


@pytest.mark.parametrize(("what", "line", "words"), WRONG)
def test_a_wrong_file_is_told_with_its_line(
    rules: Path, capsys: pytest.CaptureFixture[str], what: str, line: int, words: str
) -> None:
    rules.write_text(f"# ours\n\n[[rule]]\nallow = true\n{what}\n")
    code, text = said(capsys, "policy", "check", "--policy", str(rules))
    assert code == 2
    assert f"rules.toml, line {line}: " in text and words in text, text


ALL_WRONG = """autonomi = "full"
otherwise = "allow"

[[rule]]
alow = true
toll = "grep"
tool = "save"
path = 3

[[rule]]
deny = true
effect = "wrote"
reason = 1
except = { pth = "a", tool = [""] }

[[rule]]
allow = true
tool = "*"

[[limit]]
calls = -1

[[limit]]
call = 1
pre = "hour"
"""
ALL_TOLD = [
    (1, "unknown key 'autonomi'"),
    (2, "otherwise must be one of ask, deny; got 'allow'"),
    (4, "unknown key 'alow'; did you mean allow?"),
    (4, "unknown key 'toll'; did you mean tool?"),
    (4, "path must be a text or a list of texts, got 3"),
    (10, "effect must be one of read, write, destructive; got 'wrote'"),
    (10, "reason must be text, got 1"),
    (10, "unknown key 'pth' in except; did you mean path?"),
    (10, "tool must be a text or a list of texts, got ['']"),
    (16, "allows everything"),
    (20, "calls must be a number of calls, 0 or more; got -1"),
    (23, "unknown keys 'call', 'pre' in a limit"),
]


def test_all_that_is_wrong_in_a_file_is_told(rules: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rules.write_text(ALL_WRONG)
    code, text = said(capsys, "policy", "check", "--policy", str(rules))
    lines = text.splitlines()
    assert code == 2 and len(lines) == len(ALL_TOLD), text
    missing = [
        (line, words)
        for line, words in ALL_TOLD
        if not any(f"rules.toml, line {line}: " in shown and words in shown for shown in lines)
    ]
    assert missing == [], text


def test_all_examples_that_do_not_hold_are_told(rules: Path, capsys: pytest.CaptureFixture[str]) -> None:
    wrong = (
        """match = ['read_file {"path": "b"}', 'read_file {']\nnot_match = ['read_file {"path": "a"}']\n"""
    )
    rules.write_text(f"[[rule]]\ndeny = true\ntool = 'read_file'\npath = 'a'\n{wrong}")
    code, text = said(capsys, "policy", "check", "--policy", str(rules))
    assert code == 2 and [line.count("rules.toml, line ") for line in text.splitlines()] == [1, 1, 1], text


def test_a_file_of_nothing_but_mistakes_is_told_in_some_lines_and_at_once(rules: Path) -> None:
    """Nobody has trusted the rules of a project when they are read."""
    for text in (
        "".join(f"k{n} = 1\n" for n in range(80_000)),
        "[[rule]]\n" + "".join(f"k{n} = 1\n" for n in range(80_000)),
        "[[rule]]\nk = 1\n" * 50_000,
    ):
        rules.write_text(text)
        started = time.process_time()
        with pytest.raises(RuleError) as caught:
            load_rules(rules)
        assert len(str(caught.value).splitlines()) == MAX_PROBLEMS
        assert time.process_time() - started < 5


TOP = [
    ("# ours\nautonomi = 'full'\n", 2, "unknown key 'autonomi'"),
    (
        "\n\nautonomy = 'ful'\n",
        3,
        "autonomy must be one of read_only, supervised, sandboxed, full; got 'ful'",
    ),
    ("otherwise = 'deny'\n[rules]\n", 2, "unknown key 'rules'"),
    ("otherwise = 'allow'\n", 1, "otherwise must be one of ask, deny"),
    ("# a\n[rule]\ndeny = true\n", 2, "write every rule under a header [[rule]] of its own"),
    ("# a\nlimit = [{calls = 1}]\n", 2, "write every limit under a header [[limit]] of its own"),
]


@pytest.mark.parametrize(("text", "line", "words"), TOP)
def test_what_is_wrong_above_the_rules_is_told_with_its_line(
    rules: Path, capsys: pytest.CaptureFixture[str], text: str, line: int, words: str
) -> None:
    rules.write_text(text)
    code, shown = said(capsys, "policy", "check", "--policy", str(rules))
    assert code == 2 and f"rules.toml, line {line}: {words}" in shown, shown


def test_a_byte_order_mark_is_no_part_of_the_rules(rules: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rules.write_text("[[rule]]\ndeny = true\npath = 'keys'\n", encoding="utf-8-sig")
    assert said(capsys, "policy", "check", "--policy", str(rules)) == (0, f"{rules}: 1 rule, 0 examples\n")


LIMITS = [
    ("calls = 3", Limit(3)),
    ("calls = 3\nper = 'run'\ntool = 'shell'", Limit(3, ("shell",))),
    ("calls = 0\nper = 'minute'\ntool = ['shell', 'fetch']", Limit(0, ("shell", "fetch"), 60)),
    ("calls = 3\nper = 'hour'", Limit(3, seconds=3600)),
    ("calls = 3\nper = 'day'", Limit(3, seconds=86400)),
    ("calls = 3\nper = 90", Limit(3, seconds=90)),
    ("calls = 3\nper = 0.5", Limit(3, seconds=0.5)),
]


@pytest.mark.parametrize(("text", "limit"), LIMITS)
def test_limits_stand_in_the_file(text: str, limit: Limit) -> None:
    assert read_rules(f"[[limit]]\n{text}\n[[rule]]\ndeny = true\ntool = 'x'").limits == (limit,)


@pytest.mark.promise("policy.md", "The lowest autonomy counts")
@pytest.mark.parametrize(
    ("file", "given", "counts"),
    [
        ("", None, "supervised"),
        ("full", None, "full"),
        ("", "full", "full"),
        ("full", "read_only", "read_only"),
        ("full", "supervised", "supervised"),
        ("read_only", "full", "read_only"),
    ],
)
def test_the_lower_autonomy_counts(file: str, given: str | None, counts: str) -> None:
    rules = read_rules(f"autonomy = '{file}'" if file else "")
    assert rules.policy(given).autonomy.autonomy.value == counts


@pytest.mark.parametrize(
    ("rule", "lines"),
    [
        ("deny = true\ntool = 'read_fil'", ["no tool is called read_fil; did you mean read_file?"]),
        ("ask = true\ntool = ['read_file', 'shel']", ["no tool is called shel; did you mean shell?"]),
        ("ask = true\ntool = ['read_file', 'delete*']", []),
        ("deny = true\ntool = 'delete*'", ["no tool is called delete* here, so it holds for nothing now"]),
        ("deny = true\nserver = 'githb'", ["no server is called githb; did you mean github?"]),
        ("allow = true\ntool = 'read_fil'", []),
        ("deny = true\npath = 'keys'", []),
    ],
)
def test_a_rule_about_nothing_is_noticed(rule: str, lines: list[str]) -> None:
    file = read_rules(f"[[rule]]\nname = 'r'\n{rule}")
    found = unmatched_rules(file.rules, file.limits, ["read_file", "shell"], ["github"])
    assert [line.partition(": ")[2] for line in found] == lines
    assert all(line.startswith(f"{file.rules[0].verb} rule r (rules:1): ") for line in found)


@pytest.mark.parametrize(("otherwise", "hidden"), [("ask", {"glob"}), ("deny", None)])
async def test_tools_that_can_never_run_are_not_shown(
    tmp_path: Path, otherwise: str, hidden: set[str] | None
) -> None:
    tools = workspace_tools(Workspace(tmp_path))
    policy = read_rules(GOOD.replace('"ask"', f'"{otherwise}"')).policy("full")
    everything = {spec.name for spec in (await Toolbox(tools, autonomy="full").tool_list()).specs}
    shown = {spec.name for spec in (await Toolbox(tools, policy=policy).tool_list()).specs}
    assert shown == ({"shell"} if hidden is None else everything - hidden)


async def test_a_policy_may_be_given_as_its_word(tmp_path: Path) -> None:
    word: Any = "read_only"
    box = Toolbox(workspace_tools(Workspace(tmp_path)), policy=word)
    assert (await box.prepare(ToolCall("write_file", {"path": "a", "content": ""}))).kind == "refused"
    with pytest.raises(ValueError, match="autonomy must be one of"):
        Toolbox([], policy=cast(Any, "yolo"))
