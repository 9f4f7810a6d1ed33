"""What `toolcrib policy` says of good and bad files of rules, and what a model is not shown for them."""

from __future__ import annotations

from pathlib import Path
from typing import Any, cast

import pytest

from toolcrib import Toolbox, ToolCall
from toolcrib.cli.main import main
from toolcrib.rules import read_rules
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
    ('read_file {"path": "sub/.env"}', "deny: the rule env", "env (rules.toml:12)"),
    ('read_file {"path": ".env.example"}', "ask: no rule allows it", 'otherwise = "ask"'),
    ('glob {"pattern": "*"}', "deny: the rule rule 3", "rule 3 (rules.toml:20)"),
]


@pytest.mark.parametrize(("call", "decision", "by"), EXPLAINED)
def test_which_rule_decided(
    rules: Path, capsys: pytest.CaptureFixture[str], call: str, decision: str, by: str
) -> None:
    code, text = said(capsys, "policy", "explain", call, "--policy", str(rules))
    first, second, *_ = text.splitlines()
    assert code == 0 and first.startswith(decision)
    assert second == f"  decided by  {by}"


def test_a_good_file_is_counted(rules: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert said(capsys, "policy", "check", "--policy", str(rules)) == (
        0,
        f"{rules}: 3 rules, 5 examples, all as they say\n",
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
    ('tool = "read_file"\nmatch = [\n "nosuch {}",\n]', 7, 'Unknown tool "nosuch"'),
    ("""tool = "read_file"\nnot_match = [\n 'read_file {"path": "a"}',\n]""", 7, "not_match, but match it"),
]


@pytest.mark.parametrize(("what", "line", "words"), WRONG)
def test_a_wrong_file_is_told_with_its_line(
    rules: Path, capsys: pytest.CaptureFixture[str], what: str, line: int, words: str
) -> None:
    rules.write_text(f"# ours\n\n[[rule]]\nallow = true\n{what}\n")
    code, text = said(capsys, "policy", "check", "--policy", str(rules))
    assert code == 2
    assert f"rules.toml, line {line}: " in text and words in text, text


@pytest.mark.parametrize(("otherwise", "hidden"), [("ask", {"glob"}), ("deny", None)])
async def test_tools_that_can_never_run_are_not_shown(
    tmp_path: Path, otherwise: str, hidden: set[str] | None
) -> None:
    tools = workspace_tools(Workspace(tmp_path))
    policy = read_rules(GOOD.replace('"ask"', f'"{otherwise}"')).policy("full")
    everything = {spec.name for spec in (await Toolbox(tools, autonomy="full").offer()).specs}
    shown = {spec.name for spec in (await Toolbox(tools, policy=policy).offer()).specs}
    assert shown == ({"shell"} if hidden is None else everything - hidden)


async def test_a_policy_may_be_given_as_its_word(tmp_path: Path) -> None:
    word: Any = "read_only"
    box = Toolbox(workspace_tools(Workspace(tmp_path)), policy=word)
    assert (await box.prepare(ToolCall("write_file", {"path": "a", "content": ""}))).kind == "refused"
    with pytest.raises(ValueError, match="autonomy must be one of"):
        Toolbox([], policy=cast(Any, "yolo"))
