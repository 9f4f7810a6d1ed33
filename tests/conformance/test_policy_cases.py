"""What other systems let which tool, helper or host do, said in rules and tried on a toolbox's path."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from tests.cases import each
from tests.conformance.conftest import load_cases
from toolcrib import Effect, Toolbox, ToolCall, ToolError, tool
from toolcrib.access import Access, Reach
from toolcrib.call import CallKey
from toolcrib.net import NetworkRefused
from toolcrib.net.urls import parse_url
from toolcrib.prepared import Pending, Refused
from toolcrib.rules import (
    CommandPattern,
    Limit,
    PathPattern,
    RateLimits,
    Rule,
    RuleError,
    RulePolicy,
    read_rules,
)
from toolcrib.toolbox.policy import Verb
from toolcrib.tools import Workspace, workspace_tools


def cases(relative: str) -> Any:
    found = load_cases(f"cases/{relative}")
    return each("case", found, ids=[c["name"] for c in found])


def named(name: str) -> Any:
    return tool(lambda: "done", name=name, effect=Effect.WRITE, secrets=(), inline=True)


RANK = {"ready": 0, "pending": 1, "refused": 2}


# -- lists of tools


def tool_rules(policy: dict[str, Any]) -> str:
    """What is not on a list of allowed tools is denied, and so is what is on one of excluded tools."""
    allowed, excluded = policy.get("allowed_tools"), policy.get("excluded_tools")
    rules = ['autonomy = "full"']
    if allowed is not None:
        kept = f"except = {{ tool = {json.dumps(allowed)} }}\n" if allowed else ""
        rules.append(f'[[rule]]\ndeny = true\ntool = "*"\n{kept}')
    if excluded:
        rules.append(f"[[rule]]\ndeny = true\ntool = {json.dumps(excluded)}")
    return "\n".join(rules)


@cases("zeroclaw/tool_allow_exclude.json")
async def test_lists_of_tools(case: dict[str, Any]) -> None:
    """A tool that is not to be had is neither shown nor run."""
    given, expected = case["input"], case["expected"]
    policy = dict(given["policy"])
    if "excluded" in expected:
        policy["allowed_tools"] = None  # what is excluded does not follow from what is listed
    box = Toolbox([named(given["tool"])], policy=read_rules(tool_rules(policy)).policy())
    usable = expected["allowed"] if "allowed" in expected else not expected["excluded"]
    assert ([spec.name for spec in (await box.tool_list()).specs] == [given["tool"]]) is usable
    assert ((await box.call(given["tool"])).code is None) is usable


# -- helpers: never more than whom they help

NOT_RIGHTS = {
    "max_cost_per_day_cents": "what a run may cost is a Budget of the agent, and a helper's run has one of its own",
    "require_approval_for_medium_risk": "what asks follows from the rules",
    "block_high_risk_commands": "what destroys the host is denied whatever the rules say",
}
LEVELS = {"Supervised": "supervised", "Full": "full", "ReadOnly": "read_only"}


def own_rules(config: dict[str, Any]) -> list[Rule]:
    """What a configuration of theirs says, as rules of a policy."""
    rules = [
        Rule(verb=Verb.DENY, name=path, paths=(PathPattern(path), PathPattern(f"{path}/**")))
        for path in config.get("forbidden_paths", [])
    ]
    if commands := [command for command in config.get("allowed_commands", []) if command != "*"]:
        patterns = tuple(CommandPattern(f"{command} *") for command in commands)
        rules.append(Rule(verb=Verb.ALLOW, name="commands", tools=("shell",), commands=patterns))
    return rules


def narrowing(override: dict[str, Any], parent: dict[str, Any]) -> list[Rule]:
    """What a helper is given, as rules that take away: all that is not on its own lists."""
    rules = [rule for rule in own_rules(override) if rule.verb is Verb.DENY]
    if "allowed_commands" in override:
        kept = tuple(CommandPattern(f"{command} *") for command in override["allowed_commands"])
        unless = (Rule(verb=Verb.ALLOW, commands=kept),) if kept else ()
        rules.append(Rule(verb=Verb.DENY, reach=frozenset({Reach.RUN}), unless=unless))
    if "allowed_tools" in override:
        unless = (Rule(verb=Verb.ALLOW, tools=tuple(override["allowed_tools"])),)
        rules.append(Rule(verb=Verb.DENY, tools=("*",), unless=unless if override["allowed_tools"] else ()))
    if override.get("excluded_tools"):
        rules.append(Rule(verb=Verb.DENY, tools=tuple(override["excluded_tools"])))
    for roots, ways in (
        ("allowed_roots", (Reach.WRITE, Reach.DELETE)),
        ("allowed_roots_read_only", (Reach.READ,)),
    ):
        if roots in override:
            keeps = [*override.get("allowed_roots", []), *(override[roots] if ways == (Reach.READ,) else [])]
            lost = [path for path in parent.get(roots, []) if path not in keeps]
            if lost:
                patterns = tuple(map(PathPattern, lost))
                rules.append(Rule(verb=Verb.DENY, paths=patterns, reach=frozenset(ways)))
    return rules


def probing() -> list[Any]:
    """Tools that say what they reach; what they reach is all that the probes are about."""

    def reached(given: dict[str, Any]) -> list[Access]:
        argv = tuple(given["what"].split())
        reach = Reach(given["way"])
        return [Access(reach, given["what"], argv=argv if reach is Reach.RUN else ())]

    def act(way: str, what: str) -> str:
        return "done"

    return [
        tool(act, name=name, effect=effect, secrets=(), accesses=reached)
        for name, effect in (("shell", Effect.DESTRUCTIVE), ("file_write", Effect.WRITE), ("file_read", Effect.READ))
    ]  # fmt: skip


def probes(*configs: dict[str, Any]) -> list[tuple[str, str, str]]:
    """Calls about everything that any configuration names, and a little more."""
    paths: set[str] = {"/workspace/a", "/elsewhere/a"}
    commands: set[str] = {"id"}
    for config in configs:
        for key in ("allowed_roots", "allowed_roots_read_only", "forbidden_paths"):
            paths |= {f"{path}/deep/a" for path in config.get(key, [])} | set(config.get(key, []))
        commands |= {f"{command} x" for command in config.get("allowed_commands", [])}
    found = [("shell", "run", command) for command in sorted(commands)]
    for path in sorted(paths):
        found += [("file_read", "read", path), ("file_write", "write", path), ("file_write", "delete", path)]
    return found


async def ranks(policy: RulePolicy, calls: Iterable[tuple[str, str, str]]) -> list[int]:
    box = Toolbox(probing(), policy=policy)
    return [
        RANK[(await box.prepare(ToolCall(name, {"way": way, "what": what}))).kind]
        for name, way, what in calls
    ]


@cases("zeroclaw/subagent_policy_escalation.json")
async def test_a_helper_has_never_more(case: dict[str, Any]) -> None:
    """Theirs refuses to start a helper that was given more; ours gives it what is left of that, and never more."""
    parent, override, expected = case["input"]["parent"], case["input"]["child_overrides"], case["expected"]
    policy = RulePolicy(LEVELS[parent.get("autonomy", "Supervised")], own_rules(parent))
    level = LEVELS[override["autonomy"]] if "autonomy" in override else None
    child = policy.restricted([*own_rules(override), *narrowing(override, parent)], autonomy=level)
    calls = probes(parent, override)
    before, after = await ranks(policy, calls), await ranks(child, calls)
    assert all(theirs >= ours for ours, theirs in zip(before, after, strict=True)), calls
    if expected["ok"] and not override:
        assert before == after
    grandchild = child.restricted(own_rules(parent), autonomy="full")
    assert await ranks(grandchild, calls) == after
    actions = override.get("max_actions_per_hour", parent.get("max_actions_per_hour"))
    if actions is not None and "max_actions_per_hour" in parent:
        assert await _ran(parent["max_actions_per_hour"], actions) <= parent["max_actions_per_hour"]


async def _ran(parents: int, childs: int) -> int:
    """How often a helper may act that has a limit of its own beside its parent's."""
    shared, own = Limit(parents, seconds=3600), Limit(childs, seconds=3600)
    box = Toolbox([named("t")], autonomy="full", limits=RateLimits([shared, own], clock=lambda: 0.0))
    results = [await box.call("t") for _ in range(max(parents, childs) + 1)]
    return sum(not result.is_error for result in results)


async def test_every_narrowing_of_every_parent_is_one() -> None:
    """Each parent with each override of the recorded cases, whether or not they were recorded together."""
    recorded = [case["input"] for case in load_cases("cases/zeroclaw/subagent_policy_escalation.json")]
    parents, overrides = [one["parent"] for one in recorded], [one["child_overrides"] for one in recorded]
    calls = probes(*parents, *overrides)
    for parent, override in itertools.product(parents[::3], overrides):
        policy = RulePolicy(LEVELS[parent.get("autonomy", "Supervised")], own_rules(parent))
        child = policy.restricted([*own_rules(override), *narrowing(override, parent)])
        pairs = zip(await ranks(policy, calls), await ranks(child, calls), strict=True)
        assert all(theirs >= ours for ours, theirs in pairs)


@cases("zeroclaw/subagent_policy_escalation.json")
def test_a_helper_works_below_its_parents_folder(case: dict[str, Any], tmp_path: Path) -> None:
    """Roots that the parent does not have are outside of every workspace that the parent can hand on."""
    parent, override = case["input"]["parent"], case["input"]["child_overrides"]
    mine = tmp_path / parent.get("workspace_dir", "/workspace").lstrip("/")
    mine.mkdir(parents=True)
    readable = [tmp_path / path.lstrip("/") for path in parent.get("allowed_roots_read_only", [])]
    ws = Workspace(mine, readable=readable)
    known = {str(path) for path in (mine, *readable)}
    for path in [*override.get("allowed_roots", []), *override.get("allowed_roots_read_only", [])]:
        wanted = str(tmp_path / path.lstrip("/"))
        if not any(wanted == root or wanted.startswith(root + "/") for root in known):
            with pytest.raises(ToolError):
                ws.place(wanted)


# -- hosts

KINDS_OF_SITE = (
    "lists of what is a bank grow old unseen; hosts are written out, and what is no key is an error"
)


def fetching() -> Any:
    """A tool that says which host it would ask; nothing is asked."""

    def host(given: dict[str, Any]) -> list[Access]:
        target = parse_url(given["url"])
        name = f"[{target.host.name}]" if ":" in target.host.name else target.host.name
        return [Access(Reach.CONNECT, f"{name}:{target.port}")]

    def refused(given: dict[str, Any]) -> str | None:
        try:
            parse_url(given["url"])
        except NetworkRefused as refused:
            return refused.reason
        return None

    return tool(
        lambda given: "page", name="fetch", effect=Effect.WRITE, secrets=(), accesses=host, precheck=refused,
        params={"type": "object", "properties": {"url": {"type": "string"}}, "required": ["url"]},
    )  # fmt: skip


@cases("zeroclaw/domain_gate.json")
async def test_a_gate_before_hosts(case: dict[str, Any]) -> None:
    """Theirs wants a one-time code; ours a person's answer, each time anew."""
    given, expected = case["input"], case["expected"]
    if given["categories"]:
        with pytest.raises(RuleError, match="category"):
            read_rules(f"[[rule]]\nask = true\ncategory = {json.dumps(given['categories'])}")
        return
    if "error_contains" in expected:
        with pytest.raises(RuleError):
            read_rules(f"[[rule]]\nask = true\nhost = {json.dumps(given['patterns'])}")
        return
    rules = f"[[rule]]\nask = true\nhost = {json.dumps(given['patterns'])}" if given["patterns"] else ""
    box = Toolbox([fetching()], policy=read_rules(rules).policy("full"))
    text = given["host_or_url"]
    prepared = await box.prepare(
        ToolCall("fetch", {"url": text if "://" in text else f"https://{text.strip()}"})
    )
    if expected["gated"]:
        assert not isinstance(prepared, Pending) or prepared.question.strict
        assert isinstance(
            prepared, Pending | Refused
        )  # refused: written so that two would read it in two ways
    else:
        assert prepared.kind == "ready" or "@" in text or text != text.strip()


LISTED = [case for case in load_cases("cases/entelix/host_allowlist.json") if "url" in case["input"]]


@pytest.mark.parametrize("case", LISTED, ids=[case["name"] for case in LISTED])
async def test_hosts_on_a_list(case: dict[str, Any]) -> None:
    """Rules say who may be asked for; that a name on the list leads to an address inside is the guard's to see."""
    hosts = []
    for rule in case["input"]["rules"]:
        kind, _, name = rule.partition(":")
        hosts.append("*." + name.removeprefix("*.") if kind == "sub" else name)
    rules = f'[[rule]]\nallow = true\ntool = "fetch"\nhost = {json.dumps(hosts)}'
    prepared = await Toolbox([fetching()], policy=read_rules(rules).policy()).prepare(
        ToolCall("fetch", {"url": case["input"]["url"]})
    )
    inside = "localhost" in case["input"]["url"]
    assert (prepared.kind == "ready") is (case["expected"]["ok"] or inside)


# -- what a text says never decides


@cases("zeroclaw/prompt_guard.json")
async def test_what_came_from_outside_asks_whatever_it_says(case: dict[str, Any], tmp_path: Path) -> None:
    """No list of suspicious words: whoever writes attacks reads it too. Where a text came from is what counts."""
    text = case["input"]["text"]
    page = tool(lambda: text, name="page", effect=Effect.READ, secrets=(), open_world=True, inline=True)
    rules = (
        '[[rule]]\nask = true\ntainted = true\neffect = ["write", "destructive"]\nreason = "it read a page"'
    )
    box = Toolbox(
        [page, named("send")], policy=read_rules(rules).policy("full"),
        builtin=workspace_tools(Workspace(tmp_path)),
    )  # fmt: skip
    key = CallKey("run", 1, 0)
    assert (await box.prepare(ToolCall("send"), key=key)).kind == "ready"
    assert (await box.call(ToolCall("page"), key=key)).text == text
    for name, arguments in (
        ("send", {}),
        ("write_file", {"path": "a", "content": "b"}),
        ("shell", {"command": "touch a"}),
    ):
        prepared = await box.prepare(ToolCall(name, arguments), key=CallKey("run", 2, 0))
        assert isinstance(prepared, Pending) and prepared.question.strict
    assert (await box.prepare(ToolCall("read_file", {"path": "a"}), key=CallKey("run", 2, 1))).kind == "ready"
