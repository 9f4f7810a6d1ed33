"""A policy under random rules, calls, yeses, marks and narrowing: what must hold whatever is done to it."""

from __future__ import annotations

import asyncio
import dataclasses
from collections.abc import Iterator
from fnmatch import fnmatchcase
from typing import Any

from hypothesis import HealthCheck
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from tests.properties import examples
from toolcrib import Effect, Toolbox, ToolCall, tool
from toolcrib.access import Access, Reach
from toolcrib.facts import Facts
from toolcrib.function import FunctionTool
from toolcrib.prepared import Pending, Ready, Refused
from toolcrib.question import Answer, Lasting, Question, Scope, Verdict
from toolcrib.rules import CommandPattern, PathPattern, Rule, RulePolicy
from toolcrib.toolbox.policy import Autonomy, Decision, PolicyRequest, Verb

RANK = {Verb.ALLOW: 0, Verb.ASK: 1, Verb.DENY: 2}
PATHS = ["src/a.py", "src/keys/b.key", "keys/a.key", "KEYS/a.key", "keys/deep/c", "notes", "/etc/passwd"]
FOLDERS = [".", "src", "keys", "keys/deep", "/etc"]
# Patterns with what they mean, written down apart from the code: a path in lower case, whether it is meant.
PATTERNS = {
    "keys/**": lambda path: path == "keys" or path.startswith("keys/"),
    "*.key": lambda path: any(piece.endswith(".key") for piece in path.split("/")),
    "src": lambda path: path == "src" or path.startswith("src/"),
    "**": lambda path: True,
    "/etc/*": lambda path: path.startswith("/etc/"),
}
COMMANDS = {"git status": ("git", "status"), "git push *": ("git", "push"), "rm *": ("rm",)}
LINES = [("git", "status"), ("git", "push", "-f"), ("rm", "x"), ("ls",)]
HOSTS = {"a.example": "a.example", "*.b.example": ".b.example"}
TARGETS = ["a.example:443", "x.b.example:443", "b.example:443"]

# What calls may say that they reach, by the word that stands in their arguments.
REACHED: dict[str, Access] = {
    **{f"{reach.value} {path}": Access(reach, path) for reach in (Reach.READ, Reach.WRITE) for path in PATHS},
    **{f"search {path}": Access(Reach.READ, path, subtree=True, filtered=True) for path in FOLDERS},
    **{f"delete {path}": Access(Reach.DELETE, path, subtree=True) for path in FOLDERS},
    **{f"run {' '.join(argv)}": Access(Reach.RUN, " ".join(argv), argv) for argv in LINES},
    "run who knows": Access(Reach.RUN, "who knows"),
    **{f"connect {target}": Access(Reach.CONNECT, target) for target in TARGETS},
    "read link": Access(Reach.READ, "link"),
    "leads keys/a.key": Access(Reach.READ, "keys/a.key", real=True),
    "free write src/a.py": Access(Reach.WRITE, "src/a.py", free=True),
}
NAMES = {"look": Effect.READ, "save": Effect.WRITE, "wipe": Effect.DESTRUCTIVE, "mute": Effect.WRITE}
RAN: list[str] = []


def _tools() -> Iterator[FunctionTool[Any, Any]]:
    def reaches(given: Any) -> list[Access]:
        return [REACHED[word] for word in given["what"]]

    for name, effect in NAMES.items():
        said: dict[str, Any] = {} if name == "mute" else {"accesses": reaches}
        yield tool(name=name, effect=effect, secrets=(), **said)(_named(name))


def _named(name: str) -> Any:
    def run(what: list[str]) -> str:
        """Run."""
        RAN.append(name)
        return "done"

    run.__annotations__ = {"what": list[str], "return": str}
    return run


def some(values: Any, most: int = 2) -> Any:
    return st.lists(st.sampled_from(sorted(values)), max_size=most, unique=True)


@st.composite
def rules(draw: Any, verbs: Any = tuple(Verb), deep: bool = True) -> Rule:
    about = draw(st.sampled_from(["tool", "path", "command", "host", "reach"]))
    return Rule(
        verb=draw(st.sampled_from(verbs)),
        name=f"r{draw(st.integers(0, 99))}",
        tools=tuple(draw(some([*NAMES, "*", "s*"]))),
        effects=frozenset(draw(st.lists(st.sampled_from(list(Effect)), max_size=2))),
        paths=tuple(map(PathPattern, draw(some(PATTERNS)))) if about == "path" else (),
        commands=tuple(map(CommandPattern, draw(some(COMMANDS)))) if about == "command" else (),
        hosts=tuple(draw(some(HOSTS))) if about == "host" else (),
        reach=frozenset(draw(st.lists(st.sampled_from(list(Reach)), max_size=2)))
        if about in ("path", "reach")
        else frozenset(),
        tainted=draw(st.sampled_from([None, None, True, False])),
        unless=tuple(draw(st.lists(rules(deep=False), max_size=1))) if deep else (),
    )


calls = st.tuples(st.sampled_from(sorted(NAMES)), some(REACHED, 3))


def case_of(name: str, what: list[str], taint: bool) -> PolicyRequest:
    class Given(PolicyRequest):
        @property
        def accesses(self) -> tuple[Access, ...] | None:
            return None if name == "mute" else tuple(REACHED[word] for word in what)

    facts = Facts(name, NAMES[name], frozenset())
    return Given(facts, NAMES[name], taint=frozenset({"web"}) if taint else frozenset())


def denied_for_certain(one: Rule, case: PolicyRequest) -> bool:
    """What a deny rule says of a call, from the words of the documentation alone; exceptions are left out."""
    if one.verb is not Verb.DENY or one.unless:
        return False
    if one.tools and not any(fnmatchcase(case.facts.name, pattern) for pattern in one.tools):
        return False
    if (one.effects and case.effect not in one.effects) or one.tainted is (not case.taint):
        return False
    if not (one.paths or one.commands or one.hosts or one.reach):
        return True
    for access in case.accesses or ():
        if one.reach and access.reach not in one.reach:
            continue
        if access.reach in (Reach.READ, Reach.WRITE, Reach.DELETE):
            path = access.target.lower()
            if one.paths and any(PATTERNS[pattern.text](path) for pattern in one.paths):
                return True
        elif access.reach is Reach.RUN:
            for text in (pattern.text for pattern in one.commands):
                # A rule that forbids a command forbids it with any more words.
                words = COMMANDS.get(text) or COMMANDS[text.removesuffix(" *")]
                if access.argv[: len(words)] == words and (text.endswith("*") or access.argv == words):
                    return True
        elif any(
            access.target == f"{HOSTS[host]}:443"
            if not host.startswith("*")
            else access.target.endswith(f"{HOSTS[host]}:443")
            for host in one.hosts
        ):
            return True
        if one.reach and not (one.paths or one.commands or one.hosts):
            return True
    return False


class Policies(RuleBasedStateMachine):
    """A policy that grows rule by rule, and a toolbox that runs calls under it."""

    @initialize(
        autonomy=st.sampled_from(list(Autonomy)), otherwise=st.sampled_from([None, None, Verb.ASK, Verb.DENY])
    )
    def begin(self, autonomy: Autonomy, otherwise: Verb | None) -> None:
        self.autonomy, self.otherwise = autonomy, otherwise
        self.policy = RulePolicy(autonomy, (), otherwise=otherwise)
        self.seen: list[tuple[str, list[str]]] = [(name, []) for name in NAMES]
        self.answer: Answer | None = None
        self.asked: list[Question] = []

        async def approver(question: Question) -> Answer | None:
            self.asked.append(question)
            return self.answer

        self.box = Toolbox(list(_tools()), policy=self.policy, approver=approver)

    def decided(self, policy: RulePolicy | None = None) -> list[Decision]:
        policy = policy or self.policy
        return [
            policy.decide(case_of(name, what, taint)) for name, what in self.seen for taint in (False, True)
        ]

    def ranks(self, policy: RulePolicy | None = None) -> list[int]:
        return [RANK[decision.verb] for decision in self.decided(policy)]

    def become(self, policy: RulePolicy) -> None:
        self.policy = self.box.policy = policy

    @rule(call=calls)
    def meet(self, call: tuple[str, list[str]]) -> None:
        if len(self.seen) < 30:
            self.seen.append(call)

    @rule(one=rules())
    def add(self, one: Rule) -> None:
        before = self.ranks()
        self.become(RulePolicy(self.autonomy, (*self.policy.rules, one), otherwise=self.otherwise))
        for old, new in zip(before, self.ranks(), strict=True):
            if one.verb is Verb.ALLOW:
                assert new <= old and (new == old or old != RANK[Verb.DENY] or self.otherwise is Verb.DENY)
            elif one.verb is Verb.ASK and self.otherwise is Verb.DENY and new == RANK[Verb.ASK]:
                continue  # a person is asked instead of nobody: that is what such a rule is for
            else:
                assert new >= old, "a rule that denies or asks gave something"

    @rule(more=st.lists(rules(), max_size=3), autonomy=st.sampled_from([None, *Autonomy]))
    def narrow(self, more: list[Rule], autonomy: Autonomy | None) -> None:
        narrowed = self.policy.restricted(more, autonomy)
        assert all(new >= old for old, new in zip(self.ranks(), self.ranks(narrowed), strict=True))
        shown = [narrowed.shows(Facts(name, effect, frozenset())) for name, effect in NAMES.items()]
        before = [self.policy.shows(Facts(name, effect, frozenset())) for name, effect in NAMES.items()]
        assert all(old or not new for old, new in zip(before, shown, strict=True))

    @precondition(lambda self: len(self.policy.rules) > 1)
    @rule(order=st.randoms(use_true_random=False))
    def reorder(self, order: Any) -> None:
        shuffled = list(self.policy.rules)
        order.shuffle(shuffled)
        other = RulePolicy(self.autonomy, shuffled, otherwise=self.otherwise)
        before = [(one.verb, one.strict) for one in self.decided()]
        assert before == [(one.verb, one.strict) for one in self.decided(other)]

    @rule(
        call=calls,
        scope=st.sampled_from(list(Scope)),
        verdict=st.sampled_from(list(Verdict)),
        again=st.booleans(),
    )
    def run_it(self, call: tuple[str, list[str]], scope: Scope, verdict: Verdict, again: bool) -> None:
        """A call, and the same once more: what was said of the first counts for the second as far as it may."""
        name, what = call
        self.answer = Answer(verdict, scope=scope, lasting=Lasting.RUN)
        for _ in range(2):
            taint = bool(self.box.provenance(self.box.run).taint)  # the call before may have left a mark
            decision = self.policy.decide(case_of(name, what, taint))
            RAN.clear()
            self.asked.clear()
            prepared = asyncio.run(self.box.prepare(ToolCall(name, {"what": what})))
            if decision.verb is Verb.DENY:
                assert isinstance(prepared, Refused)
            if decision.strict and decision.verb is Verb.ASK:
                assert isinstance(prepared, Pending) and prepared.question.strict
            if decision.verb is Verb.ALLOW:
                assert type(prepared) is Ready
            asyncio.run(self.box.call(ToolCall(name, {"what": what})))
            ran = bool(RAN)
            assert not (ran and decision.verb is Verb.DENY)
            assert not (ran and decision.strict and not self.asked), "a strict question was not asked"
            assert not (ran and self.asked and verdict is Verdict.NO)
            assert not (ran and self.autonomy is Autonomy.READ_ONLY and NAMES[name] > Effect.READ)
            if decision.verb is Verb.ALLOW:
                assert ran and not self.asked
        if again:
            self.box.forget(self.box.run)

    @invariant()
    def what_holds_of_every_decision(self) -> None:
        hidden = {
            name for name, effect in NAMES.items() if not self.policy.shows(Facts(name, effect, frozenset()))
        }
        for name, what in self.seen:
            for taint in (False, True):
                case = case_of(name, what, taint)
                decision = self.policy.decide(case)
                explained = self.policy.explain(case)
                assert explained.decision == decision
                assert explained.rule is None or decision.rule == str(explained.rule)
                if any(denied_for_certain(one, case) for one in self.policy.rules):
                    assert decision.verb is Verb.DENY
                if name in hidden:
                    assert decision.verb is not Verb.ALLOW
                if self.autonomy is Autonomy.READ_ONLY and case.effect is not Effect.READ:
                    assert decision.verb is Verb.DENY
                allowed = [one for one in self.policy.rules if one.verb is Verb.ALLOW]
                if not allowed and self.autonomy is Autonomy.SUPERVISED and case.effect is not Effect.READ:
                    assert decision.verb is not Verb.ALLOW, "what nobody spoke of ran unasked"

    @invariant()
    def what_runs_may_reach_nothing_that_is_denied(self) -> None:
        for name, what in self.seen:
            case = case_of(name, what, taint=False)
            if self.policy.decide(case).verb is Verb.DENY:
                continue
            permits = self.policy.permits(case, lambda access: False)
            for access in REACHED.values():
                alone = dataclasses.replace(access, filtered=False)
                if permits(alone):
                    assert alone.reach is Reach.READ
                    one = case_of(name, [], taint=False)
                    type(one).accesses = property(lambda _, a=alone: (a,))  # type: ignore[assignment]
                    assert not any(denied_for_certain(rule, one) for rule in self.policy.rules)


Policies.TestCase.settings = examples(
    100,
    stateful_step_count=15,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much],
)
TestPolicies = Policies.TestCase
