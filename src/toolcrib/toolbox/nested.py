"""What holds for a run within a call of another run: the rights of both, the limits of both, the secrets of its own."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple, Protocol

from toolcrib.effect import Effect
from toolcrib.facts import Facts
from toolcrib.toolbox.policy import Decision, Policy, PolicyRequest, Verb
from toolcrib.toolbox.resources import base_folder
from toolcrib.toolbox.runs import Limiter

__all__ = ["BothPolicies", "NestedRun", "both_limiters"]

ORDER = (Verb.ALLOW, Verb.ASK, Verb.DENY)


class NestedRun(NamedTuple):
    """The place of a run within a call: its name, its toolbox, and the account of the run that the call belongs to."""

    run: str
    box: Any
    account: Any


class HasPolicy(Protocol):
    """An object whose policy may be replaced at any time."""

    policy: Policy


class BothPolicies:
    """The rights that two policies give: the stricter decision counts, and no call does more than `most`."""

    def __init__(self, own: Policy, outer: HasPolicy, most: Effect) -> None:
        self._own = own
        self._outer = outer
        self._most = most
        self._placed: tuple[Policy | None, dict[str, Policy]] = (None, {})

    @property
    def both(self) -> tuple[Policy, Policy]:
        """The two policies, as they are now."""
        return self._outer.policy, self._own

    def about(self, request: PolicyRequest) -> tuple[Policy, Policy]:
        """The two policies for a call. Absolute patterns of the outer one also match files in the tool's folder."""
        outer = self._outer.policy
        within: Any = getattr(outer, "within", None)
        if within is None:
            return outer, self._own
        folder = request.folder if request.prepared is None else base_folder(request.prepared.tool)
        if not folder:
            return outer, self._own
        if self._placed[0] is not outer:
            self._placed = outer, {}
        known = self._placed[1]
        if folder not in known:
            known[folder] = within(folder)
        return known[folder], self._own

    @property
    def tracks_taint(self) -> bool:
        return any(getattr(policy, "tracks_taint", False) for policy in self.both)

    def decide(self, request: PolicyRequest, /) -> Decision:
        about_step = request.prepared is None and request.action  # its effect was raised so that it asks
        if (request.facts.effect if about_step else request.effect) > self._most:
            limit = f"the call that this belongs to may {_MAY[self._most]}"
            return Decision(Verb.DENY, limit)
        first, second = (policy.decide(request) for policy in self.about(request))
        if second.confined and first.verb is Verb.ALLOW:  # it holds only while the call is confined
            return second
        decision = max(first, second, key=lambda made: ORDER.index(made.verb))
        if decision.verb is Verb.ASK and first.verb is second.verb and second.strict:
            return second
        return decision

    def shows(self, facts: Facts) -> bool:
        return facts.effect <= self._most and all(policy.shows(facts) for policy in self.both)

    def why_hidden(self, facts: Facts) -> str:
        """Why the model is not shown a tool: the first reason that one of the two gives."""
        reasons = (getattr(policy, "why_hidden", None) for policy in self.both)
        return next((why for reason in reasons if reason is not None and (why := reason(facts))), "")

    def within(self, *folders: str) -> BothPolicies:
        """The same, but absolute patterns of its own policy also match files in these folders."""
        own: Any = self._own
        return BothPolicies(own.within(*folders) if hasattr(own, "within") else own, self._outer, self._most)

    def restricted(self, rules: Any = (), autonomy: Any = None) -> BothPolicies:
        """The same with further deny and ask rules, and less autonomy."""
        from toolcrib.toolbox.restrict import Restriction

        own = Restriction(rules=rules, autonomy=autonomy).of(self._own)
        return BothPolicies(own, self._outer, self._most)


_MAY = {Effect.READ: "only read", Effect.WRITE: "change, but not destroy, something", Effect.DESTRUCTIVE: ""}


def both_limiters(own: Limiter | None, outer: Limiter | None, run: str) -> Limiter | None:
    """The limits of both for a nested run. A limiter that both share is used once."""
    return outer if own is None or own in _all_of(outer) else BothLimiters(own, outer, run)


def _all_of(limiter: Limiter | None) -> list[Limiter | None]:
    """The limiters that a limiter combines; itself if it combines none."""
    return [limiter] if not isinstance(limiter, BothLimiters) else [limiter.own, *_all_of(limiter.outer)]


class BothLimiters:
    """Two limiters: the own one counts for the nested run, the outer one for the outermost run."""

    def __init__(self, own: Limiter, outer: Limiter | None, run: str) -> None:
        self.own = own
        self.outer = outer
        self._run = run
        self.nested_runs: tuple[str, ...] = (
            run,
            *getattr(outer, "nested_runs", ()),
        )  # the nested runs that have limits of their own

    def resume(self, run: str, taken: Mapping[str, int]) -> None:
        if (resume := getattr(self.own, "resume", None)) is not None:
            resume(run, taken)

    def take(self, run: str, tool: str) -> str:
        why = self.own.take(self._run, tool)
        if why or self.outer is None:
            return why
        why = self.outer.take(run, tool)
        if why:
            self.own.give_back(self._run, tool)
        return why

    def give_back(self, run: str, tool: str) -> None:
        self.own.give_back(self._run, tool)
        if self.outer is not None:
            self.outer.give_back(run, tool)

    def forget(self, run: str) -> None:
        self.own.forget(self._run)
