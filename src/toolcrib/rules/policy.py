"""Decides about calls by rules: who may run what, by tool, effect, arguments, paths, hosts and commands.

Several rules about one call are settled in this order, whatever order they stand in:

| what holds | decision |
| --- | --- |
| autonomy `read_only`, and the call does more than read | deny |
| a deny rule matches something that the call reaches | deny |
| a deny rule may match something, or a part of it (a subtree, a pattern, an opaque command) | ask, always |
| an ask rule matches, or may match, something that the call reaches | ask, always |
| a person approved the call before | allow |
| allow rules together match everything that the call reaches | allow |
| none of these | what `otherwise` says; without it the autonomy, by the effect; unknown means ask |

"Always" means that no earlier approval counts. A tool that by itself leaves out denied files (a `filtered` access) is
not asked about for a part of what it searches. A rule may have exceptions (`unless`): a deny or ask rule does not
match what an exception matches for certain; an allow rule does not allow a call that an exception may match.
With `otherwise = "deny"`, an ask rule asks only about what it matches: for everything else that the call reaches there
must be an allow rule, or the call is denied.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence

from toolcrib.access import Access, DeniedPaths, Permits, Reach
from toolcrib.dataclass import dataclass, replace
from toolcrib.facts import Facts
from toolcrib.rules.folder_cache import FolderCache
from toolcrib.rules.match import NO, PARTLY, YES, MatchLevel
from toolcrib.rules.rule import Rule, with_relative_paths
from toolcrib.rules.rule_index import RuleIndex
from toolcrib.toolbox.policy import Autonomy, AutonomyPolicy, Decision, PolicyRequest, Verb

__all__ = ["Explanation", "RulePolicy", "lowest_autonomy"]

MAX_CACHED_TOOLS = 1_000  # tools for which the rules about them are cached


@dataclass(frozen=True, slots=True)
class Explanation:
    """A decision, the rule that decided (None: the autonomy), and a line for each rule that had a part in it."""

    decision: Decision
    rule: Rule | None
    steps: tuple[str, ...]


def lowest_autonomy(*autonomies: Autonomy) -> Autonomy:
    """The autonomy under which least runs unasked."""
    return min(autonomies, key=list(Autonomy).index)


class RulePolicy:
    """Rules, and an autonomy for what no rule decides.

    >>> from toolcrib.tool import Effect
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
        """`otherwise` ("ask" or "deny") decides about calls that no rule allows, also about those that only read."""
        self.autonomy = AutonomyPolicy(autonomy)
        self.otherwise = None if otherwise is None else _OTHERWISE[Verb(otherwise)]
        self.rules = tuple(rules)
        for rule in self.rules:
            if not isinstance(rule, Rule):
                raise TypeError(f"rules must be Rule objects, as in load_rules(path).rules; got {rule!r}")
        self.tracks_taint = any(rule.needs_provenance for rule in self.rules)
        self._by_tool: dict[tuple[str, str], dict[Verb, RuleIndex]] = {}
        self._folders = FolderCache()

    def restricted(self, rules: Iterable[Rule] = (), autonomy: Autonomy | str | None = None) -> RulePolicy:
        """A policy that allows no more: deny and ask rules are added, the autonomy may only fall.

        An added ask rule asks about what would have run, and not about what `otherwise` denies.
        """
        added = (replace(rule, narrows=True) for rule in rules if rule.verb is not Verb.ALLOW)
        current = self.autonomy.autonomy
        lower = lowest_autonomy(current, Autonomy(autonomy) if autonomy is not None else current)
        return self._with((*self.rules, *added), lower)

    def within(self, *roots: str | os.PathLike[str]) -> RulePolicy:
        """The policy for tools whose paths are relative to given folders: absolute patterns mean files there too."""
        folders = {name for root in roots for name in (os.path.abspath(root), os.path.realpath(root))}  # noqa: PTH100
        rules = [with_relative_paths(rule, sorted(folders)) for rule in self.rules]
        return self._with(rules, self.autonomy.autonomy)

    def _with(self, rules: Iterable[Rule], autonomy: Autonomy) -> RulePolicy:
        otherwise = None if self.otherwise is None else self.otherwise.verb
        return RulePolicy(autonomy, rules, otherwise=otherwise)

    def decide(self, request: PolicyRequest) -> Decision:
        """The decision about a call; `explain` gives the reasons too."""
        return self._decide(request, None)[0]

    def explain(self, request: PolicyRequest) -> Explanation:
        """The decision about a call, and what every rule had to do with it."""
        steps: list[str] = []
        decision, rule = self._decide(request, steps)
        return Explanation(decision, rule, tuple(steps))

    def shows(self, facts: Facts) -> bool:
        """Whether a call of a tool can be allowed at all; the model is not shown other tools."""
        rules = self._rules_about(facts)
        denied = any(rule.denies_every_call(facts) for rule in rules[Verb.DENY].rules)
        if denied or not self.autonomy.shows(facts):
            return False
        if not self._denies_the_rest:
            return True
        return bool(rules[Verb.ALLOW].rules) or any(not rule.narrows for rule in rules[Verb.ASK].rules)

    def why_hidden(self, facts: Facts) -> str:
        """Why the model is not shown a tool, in the words of the rule that denies all its calls; "" without any."""
        denying = (
            rule for rule in self._rules_about(facts)[Verb.DENY].rules if rule.denies_every_call(facts)
        )
        return next((rule.reason for rule in denying if rule.reason), "")

    @property
    def _denies_the_rest(self) -> bool:
        return self.otherwise is not None and self.otherwise.verb is Verb.DENY

    def permits(self, request: PolicyRequest, decided: Permits) -> Permits:
        """A function that says whether a call that runs may reach something that it comes upon.

        It must not be denied; and it must have been `decided` on before, or be something that is read unasked.
        """
        rules = self._rules_about(request.facts)
        denies, asks = (
            RuleIndex(
                [rule for rule in rules[verb].rules if rule.needs_accesses and rule.conditions_hold(request)]
            )
            for verb in (Verb.DENY, Verb.ASK)
        )

        def matched(rule: Rule, access: Access) -> MatchLevel:
            return rule.match(access, request) if rule.may_forbid(access) else NO

        def permitted(access: Access) -> bool:
            accesses = (access,)
            # A folder of which a part is denied may be listed: the tool asks about each thing in it.
            tolerated = PARTLY if access.subtree and access.reach is Reach.READ else NO
            if any(matched(rule, access) > tolerated for rule in denies.candidates(accesses)):
                return False
            if decided(access):
                return True
            unasked = access.reach is Reach.READ and self.otherwise is None
            return unasked and not any(matched(rule, access) for rule in asks.candidates(accesses))

        return permitted

    def why_denied(self, request: PolicyRequest, access: Access) -> str:
        """The reason that the author of a deny rule gave for keeping an access from a call; "" without any."""
        denies = self._rules_about(request.facts)[Verb.DENY].rules
        matching = (rule for rule in denies if rule.reason and rule.needs_accesses)
        found = (rule for rule in matching if rule.may_forbid(access) and rule.conditions_hold(request))
        return next((rule.reason for rule in found if rule.match(access, request) is not NO), "")

    def denied_paths(self, request: PolicyRequest) -> Callable[[str, Iterable[str]], DeniedPaths] | None:
        """A function that finds the denied paths below a workspace and other folders; None if no rule denies paths."""
        denies = self._rules_about(request.facts)[Verb.DENY].rules
        rules = [rule for rule in denies if rule.may_deny_paths and rule.conditions_hold(request)]
        if not rules:
            return None
        from toolcrib.rules.denied_paths import find_denied_paths

        return lambda root, others: find_denied_paths(rules, request, root, others, self._folders)

    def _rules_about(self, facts: Facts) -> dict[Verb, RuleIndex]:
        key = (facts.name, facts.server)
        found = self._by_tool.get(key)
        if found is None:
            about = [rule for rule in self.rules if rule.is_about_tool(facts)]
            found = {verb: RuleIndex([rule for rule in about if rule.verb is verb]) for verb in Verb}
            if len(self._by_tool) >= MAX_CACHED_TOOLS:
                self._by_tool.clear()
            self._by_tool[key] = found
        return found

    def _decide(self, request: PolicyRequest, steps: list[str] | None) -> tuple[Decision, Rule | None]:
        """The decision and the rule behind it; what rules have to do with it is added to `steps`."""
        default = self.autonomy.decide(request)
        if default.verb is Verb.DENY:
            return default, None
        rules = self._rules_about(request.facts)
        needs_accesses = any(index.needs_accesses for index in rules.values())
        accesses = request.accesses if needs_accesses else ()
        decided = (
            self._by_deny_rules(rules[Verb.DENY], request, accesses, steps)
            if rules[Verb.DENY].rules
            else None
        )
        if decided is not None and decided[0].verb is Verb.DENY:
            return decided
        asking: list[Rule] = []  # what they match is not denied by `otherwise`
        if rules[Verb.ASK].rules and (decided is None or self._denies_the_rest):
            for rule in rules[Verb.ASK].candidates(accesses):
                if self._match(rule, request, accesses, steps) is not NO:
                    decided = decided or (Decision(Verb.ASK, _why(rule), str(rule), True), rule)
                    if not self._denies_the_rest:
                        break
                    if not rule.narrows:
                        asking.append(rule)
        if decided is not None and not self._denies_the_rest:
            return decided
        rest = self._by_allow_rules(rules[Verb.ALLOW], asking, request, accesses, default, steps)
        return rest if decided is None or rest[0].verb is Verb.DENY else decided

    def _by_deny_rules(
        self,
        denies: RuleIndex,
        request: PolicyRequest,
        accesses: Sequence[Access] | None,
        steps: list[str] | None,
    ) -> tuple[Decision, Rule | None] | None:
        """A denial by a rule that matches for certain, else a question by a rule that may match, else None."""
        named = [access for access in accesses or () if not access.real]
        if accesses is not None and len(named) < len(accesses):
            # First by the names alone: the words of a denial must not tell where a link leads.
            for rule in denies.sure_candidates(named):
                if rule.match_call(request, named) is YES:
                    _note(steps, rule, "holds")
                    return Decision(Verb.DENY, _why_denied(rule), rule=str(rule)), rule
        for rule in denies.sure_candidates(accesses):
            if rule.match_call(request, accesses) is YES:
                _note(steps, rule, "holds")
                return Decision(Verb.DENY, _why_denied(rule), rule=str(rule)), rule
        asked: tuple[Decision, Rule | None] | None = None
        for rule in denies.candidates(accesses, skip_filtered=True):
            if self._match(rule, request, accesses, steps) is PARTLY and asked is None:
                reason = f"it may reach what is denied: {_why(rule)}"
                asked = Decision(Verb.ASK, reason, str(rule), True), rule
                if steps is None:
                    break
        return asked

    def _by_allow_rules(
        self,
        allows: RuleIndex,
        asking: Sequence[Rule],
        request: PolicyRequest,
        accesses: Sequence[Access] | None,
        default: Decision,
        steps: list[str] | None,
    ) -> tuple[Decision, Rule | None]:
        """An allowance by rules that together match every access that needs one, else what decides about the rest.

        An access that one of the `asking` rules matches needs no other rule.
        """
        asked = {
            access
            for rule in asking
            for access in rule.decides_on(accesses or ())
            if rule.match(access, request)
        }
        waiting = [
            access
            for access in accesses or ()
            if access not in asked and (not access.free or self._must_be_named(access))
        ]
        by: Rule | None = None
        for rule in allows.candidates(accesses):
            left = waiting
            if rule.names_accesses:
                left = [access for access in waiting if rule.match(access, request) is not YES]
                if len(left) == len(waiting):
                    continue
            if not rule.conditions_hold(request) or (rule.unless and rule.may_be_excepted(request, accesses)):
                continue
            if not rule.names_accesses:
                _note(steps, rule, "allows the call")
                return Decision(Verb.ALLOW, "", str(rule)), rule
            _note(steps, rule, f"allows {len(waiting) - len(left)} of the {len(waiting)} things it reaches")
            by, waiting = rule, left
        if not waiting and (by is not None or asking):
            return Decision(Verb.ALLOW, "", str(by)), by
        if by is not None and steps is not None:
            steps.append(f"not allowed by a rule: {', '.join(map(str, waiting))}")
        return self.otherwise or default, None

    def _must_be_named(self, access: Access) -> bool:
        """Whether a rule must name even what was proved harmless: with `otherwise`, every command."""
        return self.otherwise is not None and access.reach is Reach.RUN and not access.hint

    def _match(
        self, rule: Rule, request: PolicyRequest, accesses: Sequence[Access] | None, steps: list[str] | None
    ) -> MatchLevel:
        found = rule.match_call(request, accesses)
        if found:
            _note(steps, rule, "holds" if found is YES else "may hold")
        return found


_OTHERWISE = {
    Verb.ALLOW: None,
    Verb.ASK: Decision(Verb.ASK, "no rule allows it", 'otherwise = "ask"'),
    Verb.DENY: Decision(Verb.DENY, "no rule allows it", 'otherwise = "deny"'),
}


def _why(rule: Rule) -> str:
    return rule.reason or f"the {rule.words} says so"


def _why_denied(rule: Rule) -> str:
    """The reason of a denial, which a model reads: in the words of the rule's author, or none of the rule's own."""
    return rule.reason or "a rule denies it"


def _note(steps: list[str] | None, rule: Rule, what: str) -> None:
    if steps is not None:
        steps.append(f"{rule.verb.value} {rule.words}: {what}")
