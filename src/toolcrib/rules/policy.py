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
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

from toolcrib.access import Access, DeniedPaths, Reach
from toolcrib.facts import Facts
from toolcrib.rules.folder_cache import FolderCache
from toolcrib.rules.rule import NO, PARTLY, YES, Rule, within
from toolcrib.rules.rule_index import RuleIndex
from toolcrib.toolbox.policy import Autonomy, AutonomyPolicy, Decision, PolicyRequest, Verb

__all__ = ["NO", "Explanation", "Rule", "RulePolicy"]

KEPT_TOOLS = 1_000  # of which the rules about them are remembered


@dataclass(frozen=True, slots=True)
class Explanation:
    """Why a policy decides as it does: the decision, the rule behind it (None: the autonomy), each rule's part."""

    decision: Decision
    rule: Rule | None
    steps: tuple[str, ...]


class RulePolicy:
    """Rules over an autonomy. `restricted` adds rules that may take away and never give.

    `otherwise` is a decision, or None where the autonomy has the last word.

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
        """`otherwise` ("ask" or "deny") is what becomes of a call that no rule allows, also if it only reads."""
        self.autonomy = AutonomyPolicy(autonomy)
        self.otherwise = None if otherwise is None else _OTHERWISE[Verb(otherwise)]
        self.rules = tuple(rules)
        self.tracks_taint = any(rule.marked for rule in self.rules)
        self._by_tool: dict[tuple[str, str], dict[Verb, RuleIndex]] = {}
        self._folders = FolderCache()

    def restricted(self, rules: Iterable[Rule] = (), autonomy: Autonomy | str | None = None) -> RulePolicy:
        """A policy that allows no more: deny and ask rules are added, the autonomy may only fall.

        An added ask rule asks about what would have run, and not about what `otherwise` denies.
        """
        order = list(Autonomy)
        wanted = Autonomy(autonomy) if autonomy is not None else self.autonomy.autonomy
        lower = min(wanted, self.autonomy.autonomy, key=order.index)
        added = (replace(rule, narrows=True) for rule in rules if rule.verb is not Verb.ALLOW)
        kept = (*self.rules, *added)
        return RulePolicy(lower, kept, otherwise=None if self.otherwise is None else self.otherwise.verb)

    def within(self, *roots: str | os.PathLike[str]) -> RulePolicy:
        """The same for tools whose paths are named from one of some folders: absolute patterns mean files there too."""
        folders = {name for root in roots for name in (os.path.abspath(root), os.path.realpath(root))}  # noqa: PTH100
        rules = [within(rule, sorted(folders)) for rule in self.rules]
        otherwise = None if self.otherwise is None else self.otherwise.verb
        return RulePolicy(self.autonomy.autonomy, rules, otherwise=otherwise)

    def decide(self, case: PolicyRequest) -> Decision:
        """The decision alone; `explain` gives the reasons."""
        return self._judged(case, None)[0]

    def explain(self, case: PolicyRequest) -> Explanation:
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
        return bool(known[Verb.ALLOW].rules) or any(not rule.narrows for rule in known[Verb.ASK].rules)

    def permits(self, case: PolicyRequest, decided: Callable[[Access], bool]) -> Callable[[Access], bool]:
        """Whether a call that runs may reach a thing: none that is denied; what was decided on, or is read unasked."""
        known = self._known(case.facts)
        denies = RuleIndex([rule for rule in known[Verb.DENY].rules if rule.looks and rule.fits(case)])
        asks = RuleIndex([rule for rule in known[Verb.ASK].rules if rule.looks and rule.fits(case)])

        def meant(rule: Rule, access: Access) -> int:
            return rule.means(access, case) if rule.weighs_on(access) else NO

        def permitted(access: Access) -> bool:
            one = (access,)
            # A folder of which a part is denied may be entered: each thing in it is asked about.
            entered = PARTLY if access.subtree and access.reach is Reach.READ else NO
            if any(meant(rule, access) > entered for rule in denies.concerned(one)):
                return False
            if decided(access):
                return True
            unasked = access.reach is Reach.READ and self.otherwise is None
            return unasked and not any(meant(rule, access) for rule in asks.concerned(one))

        return permitted

    def denied_paths(self, case: PolicyRequest) -> Callable[[str, Iterable[str]], DeniedPaths] | None:
        """What deny rules take from a call below a workspace and some other folders; None where none is about paths."""
        rules = [
            rule for rule in self._known(case.facts)[Verb.DENY].rules if rule.takes_paths and rule.fits(case)
        ]
        if not rules:
            return None
        from toolcrib.rules.denied_paths import denied_paths

        return lambda root, others: denied_paths(rules, case, root, others, self._folders)

    def _known(self, facts: Facts) -> dict[Verb, RuleIndex]:
        """The rules about a tool."""
        key = (facts.name, facts.server)
        known = self._by_tool.get(key)
        if known is None:
            about = [rule for rule in self.rules if rule.knows(facts)]
            known = {verb: RuleIndex([rule for rule in about if rule.verb is verb]) for verb in Verb}
            if len(self._by_tool) >= KEPT_TOOLS:
                self._by_tool.clear()
            self._by_tool[key] = known
        return known

    def _judged(self, case: PolicyRequest, steps: list[str] | None) -> tuple[Decision, Rule | None]:
        default = self.autonomy.decide(case)
        if default.verb is Verb.DENY:
            return default, None
        known = self._known(case.facts)
        looks = any(sieve.looks for sieve in known.values())
        accesses = case.accesses if looks else ()
        decided = self._against(known[Verb.DENY], case, accesses, steps) if known[Verb.DENY].rules else None
        if decided is not None and decided[0].verb is Verb.DENY:
            return decided
        lifted = self.otherwise is None or self.otherwise.verb is not Verb.DENY
        if known[Verb.ASK].rules and (decided is None or not lifted):
            for rule in known[Verb.ASK].concerned(accesses):
                if self._found(rule, case, accesses, steps) is not NO:
                    decided = decided or (Decision(Verb.ASK, _why(rule), str(rule), True), rule)
                    lifted = lifted or not rule.narrows
                    if lifted:
                        break
        if decided is not None and lifted:
            return decided
        rest = self._allowed(known[Verb.ALLOW], case, accesses, default, steps)
        return rest if decided is None or rest[0].verb is Verb.DENY else decided

    def _against(
        self,
        denies: RuleIndex,
        case: PolicyRequest,
        accesses: Sequence[Access] | None,
        steps: list[str] | None,
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
        allows: RuleIndex,
        case: PolicyRequest,
        accesses: Sequence[Access] | None,
        default: Decision,
        steps: list[str] | None,
    ) -> tuple[Decision, Rule | None]:
        waiting = [access for access in accesses or () if not access.free or self._is_named(access)]
        by: Rule | None = None
        for rule in allows.concerned(accesses):
            left = waiting
            if rule.about_accesses:
                left = [access for access in waiting if rule.means(access, case) is not YES]
                if len(left) == len(waiting):
                    continue
            if not rule.fits(case) or (rule.unless and rule.excepts(case, accesses)):
                continue
            if not rule.about_accesses:
                _note(steps, rule, "allows the call")
                return Decision(Verb.ALLOW, "", str(rule)), rule
            _note(steps, rule, f"allows {len(waiting) - len(left)} of the {len(waiting)} things it reaches")
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
        self, rule: Rule, case: PolicyRequest, accesses: Sequence[Access] | None, steps: list[str] | None
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


def _why(rule: Rule) -> str:
    return rule.reason or f"the rule {rule} says so"


def _note(steps: list[str] | None, rule: Rule, what: str) -> None:
    if steps is not None:
        steps.append(f"{rule.verb.value} rule {rule}: {what}")
