"""What holds of any rules: their order means nothing, what is added to forbid forbids, and a helper has never more."""

from __future__ import annotations

import random
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from toolcrib import Effect
from toolcrib.access import PATHS, UNKNOWN_WORD, Access, Reach
from toolcrib.facts import Facts
from toolcrib.rules import CommandPattern, PathPattern, Rule, RulePolicy, read_rules
from toolcrib.toolbox.policy import Autonomy, Decision, PolicyRequest, Verb

RANK = {Verb.ALLOW: 0, Verb.ASK: 1, Verb.DENY: 2}

paths = st.sampled_from(["a", "a/b", "a/.env", "/etc/passwd", ".git/hooks/x", "A/B", "a/../.env", "."])
path_patterns = st.sampled_from(["a", "a/**", ".env", "*.py", "/etc/**", ".git/**", "**", "{a,b}/*"])
words = st.sampled_from(["git", "push", "rm", "-r", "status", UNKNOWN_WORD])
command_patterns = st.sampled_from(["git *", "git push", "rm *", "git push ** -r *", "rm"])
hosts = st.sampled_from(["example.org:443", "api.example.org:80", "example.org", "[::1]:80"])
host_patterns = st.sampled_from(["example.org", "*.example.org", "example.org:443", "::1", "*"])
tools = st.sampled_from(["shell", "write_file", "fetch"])
effects = st.sampled_from(list(Effect))


@st.composite
def accesses(draw: st.DrawFn) -> Access:
    reach, free = draw(st.sampled_from(list(Reach))), draw(st.booleans())
    if reach is Reach.CONNECT:
        return Access(reach, draw(hosts), free=free)
    if reach is Reach.RUN:
        argv = tuple(draw(st.lists(words, max_size=3)))
        return Access(reach, " ".join(argv), argv=argv, free=free, hint=draw(st.booleans()))
    subtree = draw(st.booleans())
    return Access(
        reach, draw(paths), subtree=subtree, pattern=draw(st.sampled_from(["", "*.py", "**/x"])), free=free
    )


@st.composite
def rules(draw: st.DrawFn, verbs: list[Verb] = list(Verb), depth: int = 1) -> Rule:  # noqa: B006 - not changed
    unless = tuple(draw(st.lists(rules(verbs=[Verb.ALLOW], depth=0), max_size=1))) if depth else ()
    verb = draw(st.sampled_from(verbs))
    return Rule(
        verb=verb,
        tools=tuple(draw(st.lists(st.sampled_from(["shell", "write_*", "*"]), max_size=1))),
        effects=frozenset(draw(st.lists(effects, max_size=1))),
        paths=tuple(PathPattern(text) for text in draw(st.lists(path_patterns, max_size=1))),
        reach=frozenset(draw(st.lists(st.sampled_from(list(Reach)), max_size=1))),
        commands=tuple(CommandPattern(text) for text in draw(st.lists(command_patterns, max_size=1))),
        hosts=tuple(draw(st.lists(host_patterns, max_size=1))),
        tainted=draw(st.sampled_from([None, None, True, False])),
        # an exception of an allow rule is read as one that forbids
        unless=tuple(replace(one, verb=Verb.DENY if verb is Verb.ALLOW else Verb.ALLOW) for one in unless),
    )


@st.composite
def cases(draw: st.DrawFn) -> PolicyRequest:
    effect = draw(effects)
    facts = Facts(draw(tools), effect, frozenset())
    reached = draw(st.none() | st.lists(accesses(), max_size=3))
    taint = frozenset(draw(st.lists(st.just("fetch"), max_size=1)))
    return PolicyRequest(facts, effect, reached=None if reached is None else tuple(reached), taint=taint)


policies = st.builds(
    lambda autonomy, listed, otherwise: RulePolicy(autonomy, listed, otherwise=otherwise),
    st.sampled_from(list(Autonomy)),
    st.lists(rules(), max_size=4),
    st.sampled_from([None, None, Verb.ASK, Verb.DENY]),
)


def strength(decision: Decision) -> tuple[int, bool]:
    return RANK[decision.verb], decision.verb is Verb.ASK and decision.strict


@pytest.mark.promise("policy.md", "wherever they stand in the file")
@given(policies, cases(), st.integers())
def test_the_order_of_rules_means_nothing(policy: RulePolicy, case: PolicyRequest, seed: int) -> None:
    shuffled = list(policy.rules)
    random.Random(seed).shuffle(shuffled)
    otherwise = None if policy.otherwise is None else policy.otherwise.verb
    other = RulePolicy(policy.autonomy.autonomy, shuffled, otherwise=otherwise)
    assert strength(policy.decide(case)) == strength(other.decide(case))
    assert policy.shows(case.facts) == other.shows(case.facts)


@pytest.mark.promise("policy.md", "returns a policy that allows no more than the original")
@given(policies, cases(), st.lists(rules(), max_size=3), st.none() | st.sampled_from(list(Autonomy)))
def test_a_helper_has_never_more(
    policy: RulePolicy, case: PolicyRequest, added: list[Rule], autonomy: Autonomy | None
) -> None:
    child = policy.restricted(added, autonomy)
    assert strength(child.decide(case)) >= strength(policy.decide(case))
    assert policy.shows(case.facts) or not child.shows(case.facts)


@given(policies, cases(), rules(verbs=[Verb.DENY, Verb.ASK]))
def test_what_is_added_to_forbid_never_lets_run(policy: RulePolicy, case: PolicyRequest, added: Rule) -> None:
    """Where all that is not named is denied, an ask rule names something: there it gives."""
    if added.verb is Verb.ASK and policy.otherwise is not None and policy.otherwise.verb is Verb.DENY:
        added = replace(added, verb=Verb.DENY)
    otherwise = None if policy.otherwise is None else policy.otherwise.verb
    more = RulePolicy(policy.autonomy.autonomy, [*policy.rules, added], otherwise=otherwise)
    assert strength(more.decide(case)) >= strength(policy.decide(case))


@pytest.mark.promise("policy.md", "No rule allows more than `read_only` does.")
@given(policies, cases())
def test_read_only_is_the_last_word(policy: RulePolicy, case: PolicyRequest) -> None:
    child = policy.restricted(autonomy=Autonomy.READ_ONLY)
    if case.effect is not Effect.READ:
        assert child.decide(case).verb is Verb.DENY


@pytest.mark.promise("security.md", "No call runs that was not allowed.")
@given(policies, cases())
def test_a_hidden_tool_is_never_run(policy: RulePolicy, case: PolicyRequest) -> None:
    if not policy.shows(case.facts):
        assert policy.decide(case).verb is Verb.DENY


@pytest.mark.promise("policy.md", "prints the decision about a call, who decides, and why")
@given(policies, cases())
def test_an_explanation_is_the_decision(policy: RulePolicy, case: PolicyRequest) -> None:
    explained = policy.explain(case)
    assert explained.decision == policy.decide(case)
    if explained.rule is not None:
        assert explained.rule in policy.rules and explained.decision.rule == str(explained.rule)


@pytest.mark.promise(
    "policy.md", "allow runs the call if the allow rules together match everything that it reaches."
)
@given(policies, cases(), accesses())
def test_to_reach_more_never_needs_less(policy: RulePolicy, case: PolicyRequest, further: Access) -> None:
    """Where something is reached that a rule has to allow, and more of its kind is: a path, a command, a host.

    A call that reaches no path at all is not met by what a rule excepts among paths, and a call that reaches only
    what was proved harmless is left to `otherwise`, or to the autonomy.
    """
    reached = [one for one in case.reached or () if not one.hint]
    if kind_of(further) not in map(kind_of, reached) or not any(needs_a_rule(one, policy) for one in reached):
        return
    wider = replace(case, reached=(*(case.reached or ()), further))
    assert RANK[policy.decide(wider).verb] >= RANK[policy.decide(case).verb]


def kind_of(access: Access) -> Reach:
    return Reach.READ if access.reach in PATHS else access.reach


def needs_a_rule(access: Access, policy: RulePolicy) -> bool:
    """With `otherwise`, rules must name every command, also one that was proved harmless."""
    return not access.free or (policy.otherwise is not None and access.reach is Reach.RUN)


ONLY_WHAT_IS_NAMED = """
autonomy = "full"
otherwise = "deny"
[[rule]]
ask = true
command = "git push *"
[[rule]]
ask = true
command = "make *"
[[rule]]
allow = true
command = "git add *"
[[rule]]
ask = true
tool = "deploy"
except = { command = "git add *" }
"""
NAMED_CASES = [
    ("shell", "git push", Verb.ASK),
    ("shell", "git push|make", Verb.ASK),
    ("shell", "git add|git push", Verb.ASK),
    ("shell", "git push|rm -r", Verb.DENY),
    ("shell", "rm -r", Verb.DENY),
    ("deploy", "rm -r", Verb.ASK),
    ("deploy", "git add|rm -r", Verb.ASK),
    ("deploy", "git add", Verb.ALLOW),
]


@pytest.mark.promise("policy.md", "An ask rule is on that list only for what it matches")
@pytest.mark.parametrize(("name", "commands", "verb"), NAMED_CASES)
def test_an_ask_rule_gives_only_what_it_is_about(name: str, commands: str, verb: Verb) -> None:
    """Where all is denied that no rule names, the other commands of a line need a rule of their own."""
    policy = read_rules(ONLY_WHAT_IS_NAMED).policy()
    reached = [Access(Reach.RUN, text, tuple(text.split())) for text in commands.split("|")]
    case = PolicyRequest(
        Facts(name, Effect.DESTRUCTIVE, frozenset()), Effect.DESTRUCTIVE, reached=tuple(reached)
    )
    assert policy.decide(case).verb is verb


def test_an_exception_for_reading_is_none_for_writing_beside_it() -> None:
    policy = read_rules('[[rule]]\ndeny = true\ntool = "shell"\nexcept = { reach = "read" }').policy("full")
    read, write = Access(Reach.READ, "a"), Access(Reach.WRITE, "b")

    def decided(*reached: Access) -> Verb:
        facts = Facts("shell", Effect.DESTRUCTIVE, frozenset())
        return policy.decide(PolicyRequest(facts, Effect.DESTRUCTIVE, reached=reached)).verb

    assert decided(read) is Verb.ALLOW
    assert decided(write) is decided(read, write) is Verb.DENY


class Helpers(RuleBasedStateMachine):
    """A policy handed on and on, each time with what its holder likes: no one down the line may more than the first."""

    @initialize(policy=policies, asked=st.lists(cases(), min_size=1, max_size=4))
    def begin(self, policy: RulePolicy, asked: list[PolicyRequest]) -> None:
        self.line = [policy]
        self.asked: list[Any] = asked

    @rule(added=st.lists(rules(), max_size=2), autonomy=st.none() | st.sampled_from(list(Autonomy)))
    def hand_on(self, added: list[Rule], autonomy: Autonomy | None) -> None:
        self.line.append(self.line[-1].restricted(added, autonomy))

    @rule()
    def widen(self) -> None:
        self.line.append(self.line[-1].restricted([Rule(verb=Verb.ALLOW)], Autonomy.FULL))

    @invariant()
    def no_more_than_the_one_before(self) -> None:
        for case in self.asked:
            found = [strength(policy.decide(case)) for policy in self.line]
            assert found == sorted(found)


TestHelpers = Helpers.TestCase


def test_a_rule_asks_about_what_its_exceptions_speak_of_and_not_about_the_rest() -> None:
    policy = read_rules(
        'otherwise = "deny"\n[[rule]]\nask = true\ntool = "shell"\nexcept = { path = "out/**" }'
    ).policy("full")
    run, excepted, asked = Access(Reach.RUN, "x"), Access(Reach.WRITE, "out/a"), Access(Reach.WRITE, "a")

    def decided(*reached: Access) -> Verb:
        facts = Facts("shell", Effect.DESTRUCTIVE, frozenset())
        return policy.decide(PolicyRequest(facts, Effect.DESTRUCTIVE, reached=reached)).verb

    assert decided(run) is decided(asked) is Verb.ASK
    assert decided(run, excepted) is decided(run, excepted, asked) is Verb.DENY
