"""Rules: who may run what, by tool, effect, arguments, paths, hosts, commands and where a tool comes from.

What several rules say about one call is settled in this order, whatever order they stand in:

| what holds | decision |
| --- | --- |
| autonomy `read_only`, and the call does more than read | deny |
| a deny rule means something that the call reaches | deny |
| a deny rule may mean some of it (a subtree, a pattern, an opaque command) | ask, always |
| an ask rule means, or may mean, something that it reaches | ask, always |
| a person approved it before | allow |
| allow rules mean all that it reaches | allow |
| nothing of these | what `otherwise` says; without it the autonomy, by the effect; unknown means ask |

A tool that leaves out what rules withhold (a `filtered` access) is not asked about for a part of what it searches.
"Always" means that no earlier approval counts. A rule may have exceptions (`unless`): what one of them means for
certain, a deny or ask rule does not mean; a call that one of them may mean, an allow rule does not allow.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from toolcrib.access import PATHS, Access, Reach
from toolcrib.json_values import same_json
from toolcrib.rules.patterns import (
    CommandPattern,
    PathPattern,
    any_matches,
    check_host,
    host_matches,
    reaches,
)
from toolcrib.rules.said import unsaid
from toolcrib.rules.sieve import Sieve
from toolcrib.tool import Effect, Facts
from toolcrib.toolbox.policy import Autonomy, AutonomyPolicy, Case, Decision, Verb

NO, PARTLY, YES = 0, 1, 2
KEPT_TOOLS = 1_000  # of which the rules about them are remembered


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """One rule; all that is given must hold for it to count.

    `tools` and `servers` are patterns of names. `paths` count for `reach` (all ways to reach a path if it is
    empty), `commands` for commands that were proved plain, `hosts` for connections. `arguments` maps names
    to a pattern of their text, to the very value, or to the same of an object's members; an argument that is
    left out is its default. `tainted` counts only (True) or never (False) in a run that took in something from
    outside. `unless` are exceptions, written as rules whose verb says nothing. `source` says where the rule is
    written.
    """

    verb: Verb
    name: str = ""
    reason: str = ""
    tools: tuple[str, ...] = ()
    effects: frozenset[Effect] = frozenset()
    servers: tuple[str, ...] = ()
    paths: tuple[PathPattern, ...] = ()
    reach: frozenset[Reach] = frozenset()
    commands: tuple[CommandPattern, ...] = ()
    hosts: tuple[str, ...] = ()
    arguments: Mapping[str, Any] = field(default_factory=dict)
    tainted: bool | None = None
    unsaid: tuple[str, ...] = ()
    unless: tuple[Rule, ...] = ()
    source: str = ""

    def __post_init__(self) -> None:
        for pattern in self.hosts:
            check_host(pattern)
        if self.verb is not Verb.ALLOW:  # who forbids "rm" does not mean to let "rm -r" run
            object.__setattr__(self, "commands", tuple(pattern.opened() for pattern in self.commands))

    @property
    def about_accesses(self) -> bool:
        return bool(self.paths or self.commands or self.hosts or self.reach)

    @property
    def always(self) -> bool:
        """Whether nothing but the tool itself and its effect decides whether the rule counts."""
        return not (self.about_accesses or self.arguments or self.unsaid or self.tainted is not None)

    @property
    def marked(self) -> bool:
        """Whether the rule or an exception looks at what came from outside, or at what the user said."""
        return self.tainted is not None or bool(self.unsaid) or any(other.marked for other in self.unless)

    def hides(self, facts: Facts) -> bool:
        """Whether the rule, if it denies, leaves no call of a tool."""
        effects = not self.effects or self.effects >= set(Effect)
        return self.always and effects and self.knows(facts) and not any(o.knows(facts) for o in self.unless)

    @property
    def looks(self) -> bool:
        """Whether what a call reaches matters to the rule or to its exceptions."""
        return self.about_accesses or any(other.looks for other in self.unless)

    def knows(self, facts: Facts) -> bool:
        """Whether the rule is about a tool."""
        return (not self.tools or any_matches(self.tools, facts.name)) and (
            not self.servers or (facts.server != "" and any_matches(self.servers, facts.server))
        )

    def counts(self, case: Case) -> bool:
        """Whether the rule is about a call, whatever that reaches."""
        return self.knows(case.facts) and self.fits(case)

    def fits(self, case: Case) -> bool:
        """The same, for a tool that the rule is known to be about."""
        if self.effects and case.effect not in self.effects:
            return False
        if self.tainted is not None and self.tainted is not bool(case.taint):
            return False
        if self.arguments and not self._fits_arguments(case):
            return False
        if self.unsaid and not unsaid(self.unsaid, case.arguments, case.said):
            return False
        return not any(not other.about_accesses and other.counts(case) for other in self.unless)

    def found(self, case: Case, accesses: Sequence[Access] | None) -> int:
        """Whether a rule about the call's tool, if it denies or asks, is about what the call reaches."""
        if not self.fits(case):
            return NO
        looked_at = accesses
        if not self.about_accesses:  # exceptions alone look at what is reached, each at its own kind
            reaches = [a for a in accesses or () if any(o.is_about(a) for o in self.unless)]
            if not reaches:
                return YES
            looked_at = reaches
        elif accesses is None:  # a tool that does not say what it reaches may reach anything
            return NO if case.facts.effect is Effect.READ and not self.tools else PARTLY
        return max((self._weighs(access, case) for access in looked_at or ()), default=NO)

    def _weighs(self, access: Access, case: Case) -> int:
        found = self.means(access, case)
        left_out = found is PARTLY and access.filtered and self.verb is Verb.DENY
        return NO if left_out else found

    def excepts(self, case: Case, accesses: Sequence[Access] | None) -> bool:
        """Whether an exception may be about a call; then an allow rule does not allow it."""
        about = [other for other in self.unless if other.about_accesses and other.counts(case)]
        return any(accesses is None or any(o.means(a, case) for a in accesses) for o in about)

    def is_about(self, access: Access) -> bool:
        """Whether the rule says anything of such a way to reach something."""
        patterns = (
            self.paths
            if access.reach in PATHS
            else self.commands
            if access.reach is Reach.RUN
            else self.hosts
        )
        return bool(patterns) or access.reach in self.reach

    def means(self, access: Access, case: Case) -> int:
        """Whether the rule is about something that is reached: NO, PARTLY or YES."""
        found = self._named(access)
        if found is not NO and self.verb is not Verb.ALLOW:
            for other in self.unless:
                if other.about_accesses and other.counts(case):
                    found = min(found, YES - other.means(access, case))
        return found

    def _named(self, access: Access) -> int:
        if self.reach and access.reach not in self.reach:
            return NO
        if self.paths and access.reach in PATHS:
            whole, part = reaches(self.paths, access)
            return YES if whole else PARTLY if part else NO
        if self.commands and access.reach is Reach.RUN:
            if not access.argv:
                return PARTLY  # nobody knows what an opaque command runs
            if any(pattern.surely_matches(access.argv) for pattern in self.commands):
                return YES
            return PARTLY if any(pattern.may_match(access.argv) for pattern in self.commands) else NO
        if self.hosts and access.reach is Reach.CONNECT:
            if any(host_matches(pattern, access.target) for pattern in self.hosts):
                return YES
            near = any(host_matches(pattern, access.target, any_port=True) for pattern in self.hosts)
            return PARTLY if near else NO
        # Another form of a listed command is not one more: a rule about all commands has met that already.
        return NO if self.paths or self.commands or self.hosts or access.hint else YES

    def _fits_arguments(self, case: Case) -> bool:
        given = case.arguments
        if not isinstance(given, dict):
            return False
        some = self.verb is not Verb.ALLOW
        return all(
            _fits(wanted, given[name] if name in given else _default(case, name), some)
            for name, wanted in self.arguments.items()
        )

    def __str__(self) -> str:
        return f"{self.name or self.verb.value}{f' ({self.source})' if self.source else ''}"


@dataclass(frozen=True, slots=True)
class Explanation:
    """Why a policy decides as it does: the decision, the rule behind it (None: the autonomy), each rule's part."""

    decision: Decision
    rule: Rule | None
    steps: tuple[str, ...]


class RulePolicy:
    """Rules over an autonomy. `narrowed` adds rules that may take away and never give.

    `otherwise` is a decision, or None where the autonomy has the last word.

    >>> from toolcrib.toolbox.policy import Verb
    >>> rules = [Rule(verb=Verb.DENY, tools=("shell",), reason="no commands here")]
    >>> RulePolicy("supervised", rules).shows(Facts("shell", Effect.WRITE, frozenset()))
    False
    """

    def __init__(
        self,
        autonomy: Autonomy | str = "supervised",
        rules: Iterable[Rule] = (),
        *,
        otherwise: Verb | str | None = None,
    ) -> None:
        """`otherwise` ("ask" or "deny") is what becomes of a call that no rule allows, also if it only reads."""
        self.autonomy = AutonomyPolicy(autonomy)
        self.otherwise = None if otherwise is None else _OTHERWISE[Verb(otherwise)]
        self.rules = tuple(rules)
        self.tracks_taint = any(rule.marked for rule in self.rules)
        self._by_tool: dict[tuple[str, str], dict[Verb, Sieve]] = {}

    def narrowed(self, rules: Iterable[Rule] = (), autonomy: Autonomy | str | None = None) -> RulePolicy:
        """A policy that allows no more: deny and ask rules are added, the autonomy may only fall."""
        order = list(Autonomy)
        wanted = Autonomy(autonomy) if autonomy is not None else self.autonomy.autonomy
        lower = min(wanted, self.autonomy.autonomy, key=order.index)
        kept = (*self.rules, *(rule for rule in rules if rule.verb is not Verb.ALLOW))
        return RulePolicy(lower, kept, otherwise=None if self.otherwise is None else self.otherwise.verb)

    def within(self, *roots: str | os.PathLike[str]) -> RulePolicy:
        """The same for tools whose paths are named from one of some folders: absolute patterns mean files there too."""
        folders = {name for root in roots for name in (os.path.abspath(root), os.path.realpath(root))}  # noqa: PTH100
        rules = [_within(rule, sorted(folders)) for rule in self.rules]
        otherwise = None if self.otherwise is None else self.otherwise.verb
        return RulePolicy(self.autonomy.autonomy, rules, otherwise=otherwise)

    def decide(self, case: Case) -> Decision:
        """The decision alone; `explain` gives the reasons."""
        return self._judged(case, None)[0]

    def explain(self, case: Case) -> Explanation:
        """The decision, with what every rule had to do with it."""
        steps: list[str] = []
        decision, rule = self._judged(case, steps)
        return Explanation(decision, rule, tuple(steps))

    def shows(self, facts: Facts) -> bool:
        """Whether a tool may ever be allowed: a rule that denies it whatever it is called with hides it."""
        known = self._known(facts)
        if not self.autonomy.shows(facts) or any(rule.hides(facts) for rule in known[Verb.DENY].rules):
            return False
        if self.otherwise is None or self.otherwise.verb is not Verb.DENY:
            return True
        return bool(known[Verb.ALLOW].rules or known[Verb.ASK].rules)

    def permits(self, case: Case, decided: Callable[[Access], bool]) -> Callable[[Access], bool]:
        """Whether a call that runs may reach a thing: none that is denied; what was decided on, or is read unasked."""
        known = self._known(case.facts)
        denies = Sieve([rule for rule in known[Verb.DENY].rules if rule.about_accesses and rule.fits(case)])
        asks = Sieve([rule for rule in known[Verb.ASK].rules if rule.about_accesses and rule.fits(case)])

        def permitted(access: Access) -> bool:
            one = (access,)
            # A folder of which a part is denied may be entered: each thing in it is asked about.
            entered = PARTLY if access.subtree and access.reach is Reach.READ else NO
            if any(rule.means(access, case) > entered for rule in denies.concerned(one)):
                return False
            if decided(access):
                return True
            unasked = access.reach is Reach.READ and self.otherwise is None
            return unasked and not any(rule.means(access, case) for rule in asks.concerned(one))

        return permitted

    def _known(self, facts: Facts) -> dict[Verb, Sieve]:
        """The rules about a tool."""
        key = (facts.name, facts.server)
        known = self._by_tool.get(key)
        if known is None:
            about = [rule for rule in self.rules if rule.knows(facts)]
            known = {verb: Sieve([rule for rule in about if rule.verb is verb]) for verb in Verb}
            if len(self._by_tool) >= KEPT_TOOLS:
                self._by_tool.clear()
            self._by_tool[key] = known
        return known

    def _judged(self, case: Case, steps: list[str] | None) -> tuple[Decision, Rule | None]:
        default = self.autonomy.decide(case)
        if default.verb is Verb.DENY:
            return default, None
        known = self._known(case.facts)
        looks = any(sieve.looks for sieve in known.values())
        accesses = case.accesses if looks else ()
        decided = self._against(known[Verb.DENY], case, accesses, steps) if known[Verb.DENY].rules else None
        if decided is None and known[Verb.ASK].rules:
            for rule in known[Verb.ASK].concerned(accesses):
                if self._found(rule, case, accesses, steps) is not NO:
                    decided = Decision(Verb.ASK, _why(rule), str(rule), True), rule
                    break
        return decided or self._allowed(known[Verb.ALLOW], case, accesses, default, steps)

    def _against(
        self, denies: Sieve, case: Case, accesses: Sequence[Access] | None, steps: list[str] | None
    ) -> tuple[Decision, Rule | None] | None:
        """What deny rules say: those that are met for certain before those that may be met."""
        named = [access for access in accesses or () if not access.real]
        if accesses is not None and len(named) < len(accesses):
            # First by the names alone: the words of a denial must not tell where a link leads.
            for rule in denies.concerned(named, filters=True):
                if rule.found(case, named) is YES:
                    _note(steps, rule, "holds")
                    return Decision(Verb.DENY, _why(rule), rule=str(rule)), rule
        asked: tuple[Decision, Rule | None] | None = None
        for rule in denies.concerned(accesses, filters=True):
            found = self._found(rule, case, accesses, steps)
            if found is YES:
                return Decision(Verb.DENY, _why(rule), rule=str(rule)), rule
            if found is PARTLY and asked is None:
                reason = f"it may reach what is denied: {_why(rule)}"
                asked = Decision(Verb.ASK, reason, str(rule), True), rule
        return asked

    def _allowed(
        self,
        allows: Sieve,
        case: Case,
        accesses: Sequence[Access] | None,
        default: Decision,
        steps: list[str] | None,
    ) -> tuple[Decision, Rule | None]:
        waiting = [access for access in accesses or () if not access.free or self._is_named(access)]
        by: Rule | None = None
        for rule in allows.concerned(accesses):
            if not rule.fits(case) or (rule.unless and rule.excepts(case, accesses)):
                continue
            if not rule.about_accesses:
                _note(steps, rule, "allows the call")
                return Decision(Verb.ALLOW, "", str(rule)), rule
            left = [access for access in waiting if rule.means(access, case) is not YES]
            if len(left) < len(waiting):
                _note(
                    steps, rule, f"allows {len(waiting) - len(left)} of the {len(waiting)} things it reaches"
                )
                by, waiting = rule, left
        if by is not None and not waiting:
            return Decision(Verb.ALLOW, "", str(by)), by
        if by is not None and steps is not None:
            steps.append(f"not allowed by a rule: {', '.join(map(str, waiting))}")
        return self.otherwise or default, None

    def _is_named(self, access: Access) -> bool:
        """Whether even what was proved harmless needs a rule that names it: a command, where `otherwise` is said."""
        return self.otherwise is not None and access.reach is Reach.RUN and not access.hint

    def _found(
        self, rule: Rule, case: Case, accesses: Sequence[Access] | None, steps: list[str] | None
    ) -> int:
        found = rule.found(case, accesses)
        if found:
            _note(steps, rule, "holds" if found is YES else "may hold")
        return found


_OTHERWISE = {
    Verb.ALLOW: None,
    Verb.ASK: Decision(Verb.ASK, "no rule allows it", 'otherwise = "ask"'),
    Verb.DENY: Decision(Verb.DENY, "no rule allows it", 'otherwise = "deny"'),
}


def _fits(wanted: Any, value: Any, some: bool) -> bool:
    """Whether a value is as a rule says; of a list, `some` members or all."""
    if isinstance(wanted, str) and isinstance(value, str):
        return any_matches((wanted,), value)
    if isinstance(wanted, Mapping) and wanted and isinstance(value, Mapping):
        return all(name in value and _fits(inner, value[name], some) for name, inner in wanted.items())
    if isinstance(value, list) and not isinstance(wanted, list):
        return bool(value) and (any if some else all)(_fits(wanted, item, some) for item in value)
    return same_json(value, wanted)


_ABSENT = object()


def _default(case: Case, name: str) -> Any:
    """What an argument is that was left out, as the tool's schema says."""
    bound = case.prepared.bound if case.prepared is not None else None
    if bound is None:
        return _ABSENT
    return bound.definition.params.schema.get("properties", {}).get(name, {}).get("default", _ABSENT)


def _within(rule: Rule, roots: Sequence[str]) -> Rule:
    further = [inner for pattern in rule.paths for root in roots for inner in pattern.within(root)]
    unless = tuple(_within(other, roots) for other in rule.unless)
    return replace(rule, paths=(*rule.paths, *further), unless=unless) if further or unless else rule


def _why(rule: Rule) -> str:
    return rule.reason or f"the rule {rule} says so"


def _note(steps: list[str] | None, rule: Rule, what: str) -> None:
    if steps is not None:
        steps.append(f"{rule.verb.value} rule {rule}: {what}")
