"""A toolbox for a helper: it may do what its maker may, or less."""

from __future__ import annotations

import gc
import sys
import threading
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolcrib import Answer, Context, Effect, Question, Toolbox, Verdict, tool
from toolcrib.audit import AuditLog
from toolcrib.rules import Limit, RateLimits, Rule, RulePolicy, read_rules
from toolcrib.toolbox.policy import Autonomy, Decision, PolicyRequest, Verb


@tool(effect=Effect.READ, secrets=())
def look(path: str) -> str:
    """Look."""
    return f"saw {path}"


@tool(effect=Effect.WRITE, secrets=())
def save(path: str) -> str:
    """Save."""
    return f"saved {path}"


@tool(effect=Effect.DESTRUCTIVE, secrets=())
def wipe(path: str) -> str:
    """Wipe."""
    return f"wiped {path}"


@tool(effect=Effect.READ, secrets=())
async def both(path: str, ctx: Context[Any]) -> str:
    """Look and save."""
    return (await ctx.call("save", path=path)).text


TOOLS = [look, save, wipe, both]
SAVING = PolicyRequest(save.facts, Effect.WRITE, None)
ORDER = ["denied", "nobody_to_ask", None]


def codes(box: Toolbox) -> dict[str, str | None]:
    found = {name: box.call_sync(name, {"path": "a"}).code for name in ("look", "save", "wipe")}
    return {name: None if code is None else code.value for name, code in found.items()}


def shown(box: Toolbox) -> list[str]:
    return [spec.name for spec in box.run_sync(box.tool_list()).specs]


def test_a_helper_has_the_tools_that_it_was_handed() -> None:
    box = Toolbox(TOOLS, autonomy="full")
    helper = box.restricted(["look", "save"])
    assert shown(helper) == ["look", "save"]
    assert codes(helper) == {"look": None, "save": None, "wipe": "denied"}
    assert codes(box) == dict.fromkeys(("look", "save", "wipe"))
    assert shown(box.restricted([])) == []
    assert shown(helper.restricted(["save", "wipe"])) == ["save"]  # a helper's helper


def test_less_autonomy_and_never_more() -> None:
    assert codes(Toolbox(TOOLS, autonomy="full").restricted(autonomy="read_only"))["save"] == "denied"
    assert codes(Toolbox(TOOLS, autonomy="read_only").restricted(autonomy="full"))["save"] == "denied"


def test_what_a_tool_of_the_helper_calls_is_held_to_the_same() -> None:
    box = Toolbox(TOOLS, autonomy="full")
    assert box.call_sync("both", {"path": "a"}).text == "saved a"
    assert "not allowed to run" in box.restricted(["both"]).call_sync("both", {"path": "a"}).text


def test_another_policy_of_its_maker_counts_for_a_helper_too() -> None:
    box = Toolbox(TOOLS, autonomy="full")
    helper = box.restricted(["look", "save"])
    of_helper = helper.restricted(rules=[Rule(verb=Verb.ASK, tools=("save",))])
    for policy, saves in (("supervised", "nobody_to_ask"), ("read_only", "denied"), ("full", None)):
        box.policy = RulePolicy(policy)
        assert codes(helper) == {"look": None, "save": saves, "wipe": "denied"}
        assert codes(of_helper) == {"look": None, "save": saves or "nobody_to_ask", "wipe": "denied"}
    box.policy = read_rules('[[rule]]\ndeny = true\ntool = "look"').policy("full")
    assert shown(helper) == ["save"]
    helper.policy = RulePolicy("read_only")  # a policy of its own, from now on
    box.policy = RulePolicy("full")
    assert codes(helper) == {"look": None, "save": "denied", "wipe": "denied"}


def test_a_helper_may_nothing_once_the_policy_of_its_maker_cannot_be_restricted() -> None:
    class AllowsAll:
        def decide(self, request: Any) -> Decision:
            return Decision(Verb.ALLOW)

        def shows(self, facts: Any) -> bool:
            return True

    box = Toolbox(TOOLS, autonomy="full")
    helper = box.restricted(["look", "save"])
    box.policy = AllowsAll()
    assert codes(box) == dict.fromkeys(("look", "save", "wipe"))
    assert codes(helper) == dict.fromkeys(("look", "save", "wipe"), "denied")
    assert shown(helper) == []


@pytest.mark.promise("policy.md", "returns a policy that allows no more than the original")
@given(
    autonomy=st.sampled_from(list(Autonomy)),
    lower=st.none() | st.sampled_from(list(Autonomy)),
    names=st.none() | st.lists(st.sampled_from(["look", "save", "wipe"])),
    verbs=st.lists(st.tuples(st.sampled_from(list(Verb)), st.sampled_from(["look", "save", "wipe"])), max_size=3),
    own=st.lists(st.tuples(st.sampled_from(list(Verb)), st.sampled_from(["look", "save", "wipe"])), max_size=3),
)  # fmt: skip
def test_a_helper_may_never_do_more(
    autonomy: Autonomy, lower: Any, names: Any, verbs: list[tuple[Verb, str]], own: list[tuple[Verb, str]]
) -> None:
    def rules(given: list[tuple[Verb, str]]) -> list[Rule]:
        return [Rule(verb=verb, tools=(name,)) for verb, name in given]

    box = Toolbox(TOOLS, policy=RulePolicy(autonomy, rules(own)))
    mine = codes(box)
    for name, code in codes(box.restricted(names, rules=rules(verbs), autonomy=lower)).items():
        assert ORDER.index(code) <= ORDER.index(mine[name])


def test_a_box_follows_through_one_that_nobody_holds() -> None:
    box = Toolbox(TOOLS, autonomy="full")
    helper = box.restricted(["save"]).restricted(autonomy="full")
    gc.collect()
    box.policy = RulePolicy("read_only")
    assert helper.call_sync("save", {"path": "a"}).code == "denied"


def test_a_box_follows_a_policy_that_is_set_while_it_is_made() -> None:
    class Late(RulePolicy):
        def restricted(self, *args: Any) -> RulePolicy:
            made = super().restricted(*args)
            box.policy = RulePolicy("read_only")
            return made

    box = Toolbox(TOOLS, policy=Late("full"))
    assert box.restricted().call_sync("save", {"path": "a"}).code == "denied"


def test_helpers_decide_by_the_policy_that_was_set_last_by_whatever_thread() -> None:
    box = Toolbox(TOOLS, autonomy="full")
    helpers = [box.restricted(["save"]), box.restricted().restricted(["save"])]
    policies = [RulePolicy("full"), RulePolicy("read_only")]

    def set_policy(policy: RulePolicy) -> None:
        together.wait()
        box.policy = policy

    between = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        for _ in range(200):
            together = threading.Barrier(2)
            threads = [threading.Thread(target=set_policy, args=(policy,)) for policy in policies]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            may = box.policy.decide(SAVING).verb
            assert [helper.policy.decide(SAVING).verb for helper in helpers] == [may, may]
    finally:
        sys.setswitchinterval(between)


def test_a_helper_may_nothing_where_its_policy_cannot_be_made() -> None:
    class Fails(RulePolicy):
        def restricted(self, *args: Any) -> RulePolicy:
            raise ValueError("not today")

    box = Toolbox(TOOLS, autonomy="full")
    helpers = [box.restricted(), box.restricted()]
    box.policy = Fails("full")
    assert [codes(helper) for helper in helpers] == [dict.fromkeys(("look", "save", "wipe"), "denied")] * 2


def test_the_rest_is_shared(tmp_path: Path) -> None:
    asked: list[str] = []

    async def approver(question: Question) -> Answer:
        asked.append(question.tool)
        return Answer(Verdict.YES, by="ann")

    log = AuditLog(tmp_path / "audit.jsonl", key=b"k" * 32)
    box = Toolbox(TOOLS, approver=approver, audit=log, limits=RateLimits([Limit(2, ("save",), seconds=3600)]))
    helper = box.restricted()
    said = [b.call_sync("save", {"path": "a"}).code for b in (box, helper, helper)]
    assert said == [None, None, "rate_limited"]
    assert asked == ["save", "save", "save"]
    log.flush()
    assert (tmp_path / "audit.jsonl").read_text().count('"save"') >= 3


def test_a_policy_that_cannot_be_restricted_is_said() -> None:
    class Own:
        def decide(self, case: Any) -> Any: ...
        def shows(self, facts: Any) -> bool:
            return True

    with pytest.raises(TypeError, match="a method restricted"):
        Toolbox(TOOLS, policy=Own()).restricted()
    with pytest.raises(TypeError, match="is a list of names"):
        Toolbox(TOOLS).restricted("look")


def test_rules_about_arguments_narrow_too() -> None:
    rules = read_rules('[[rule]]\ndeny = true\ntool = "save"\nargument = { path = "a*" }').rules
    helper = Toolbox(TOOLS, autonomy="full").restricted(rules=rules)
    assert helper.call_sync("save", {"path": "abc"}).code == "denied"
    assert helper.call_sync("save", {"path": "b"}).code is None
