"""The reason of a denying rule reaches the model, in its author's words; names and places of rules do not."""

from pathlib import Path
from typing import Any

import pytest

from tests.cases import each
from toolcrib import Toolbox, ToolCall
from toolcrib.assembly import default_tools
from toolcrib.command.sandbox import Bubblewrap
from toolcrib.rules import RulePolicy, read_rules

RULES = """
[[rule]]
name = "secret plan"
deny = true
path = "vault/**"
{why}

[[rule]]
name = "no searching"
deny = true
tool = "grep"
{why}

[[rule]]
name = "no deploys"
deny = true
command = "deploy *"
{why}
"""
WHY = "keys are handed out by Ann"
CALLS = [
    ("read_file", {"path": "vault/key"}),
    ("read_file", {"path": "link"}),
    ("list_dir", {"path": "vault"}),
    ("write_file", {"path": "vault/other", "content": ""}),
    ("grep", {"pattern": "x"}),
    ("shell", {"command": "cat vault/key"}),
    ("shell", {"command": "make && deploy now"}),
    ("shell", {"command": "python3 -c 'print(open(\"vault/key\").read())'"}),  # hidden by the sandbox
]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "vault").mkdir()
    (tmp_path / "vault" / "key").write_text("x\n")
    (tmp_path / "link").symlink_to("vault/key")
    return tmp_path


def box_of(folder: Path, policy: RulePolicy) -> Toolbox:
    return Toolbox(default_tools(folder, sandbox=Bubblewrap(str(folder))), policy=policy)


@pytest.mark.promise("policy.md", "`reason` is also what the model reads when the rule denies")
@each(("name", "arguments"), CALLS)
async def test_the_reason_of_a_rule_reaches_the_model(
    folder: Path, name: str, arguments: dict[str, Any]
) -> None:
    for why, wanted in ((f'reason = "{WHY}"', True), ("", False)):
        rules = read_rules(RULES.format(why=why), "/home/somebody/policy.toml")
        text = (await box_of(folder, rules.policy("full")).call(name, arguments)).text
        assert (WHY in text) == wanted, text
        for internal in ("policy.toml", "secret plan", "no searching", "no deploys", "rule 1", str(folder)):
            assert internal not in text, text


async def test_a_tool_that_is_not_shown_is_refused_with_the_reason(folder: Path) -> None:
    for why, wanted in ((f'reason = "{WHY}"', True), ("", False)):
        box = box_of(folder, read_rules(RULES.format(why=why)).policy("full"))
        listed = await box.tool_list()
        assert "grep" not in [spec.name for spec in listed.specs]
        results = await box.call_turn([ToolCall("grep", {"pattern": "x"})], tool_list=listed)
        assert (WHY in results[0].text) == wanted, results[0].text


async def test_a_restricted_box_gives_the_reason_too(folder: Path) -> None:
    box = box_of(folder, read_rules(RULES.format(why=f'reason = "{WHY}"')).policy("full"))
    listed = await box.restricted().tool_list()
    results = await box.restricted().call_turn([ToolCall("grep", {"pattern": "x"})], tool_list=listed)
    assert WHY in results[0].text
