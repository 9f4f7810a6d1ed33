"""The policy of a restricted toolbox, which allows no more than the policy it was made from."""

from __future__ import annotations

import logging
from collections.abc import Collection, Iterable
from typing import TYPE_CHECKING, Any

from toolcrib.errors import as_tuple
from toolcrib.toolbox.policy import Autonomy, AutonomyPolicy, Policy, Verb

if TYPE_CHECKING:
    from toolcrib.rules.rule import Rule

__all__ = ["Restriction"]


class Restriction:
    """Makes policies that allow no more: some of the tools, further deny and ask rules, less autonomy."""

    def __init__(
        self,
        tools: Collection[str] | None = None,
        rules: Iterable[Rule] = (),
        autonomy: Autonomy | str | None = None,
    ) -> None:
        from toolcrib.rules.rule import Rule

        self._rules, self._autonomy = [*rules], autonomy
        if tools is not None:
            handed = (Rule(verb=Verb.DENY, tools=as_tuple("tools", tools)),) if tools else ()
            self._rules.append(
                Rule(verb=Verb.DENY, name="tools of a helper", reason="it was not handed out", unless=handed)
            )

    def of(self, policy: Any) -> Policy:
        """The policy, restricted. TypeError where it has no method `restricted`, as RulePolicy has."""
        from toolcrib.rules.policy import RulePolicy

        if isinstance(policy, AutonomyPolicy):
            policy = RulePolicy(policy.autonomy)
        if not hasattr(policy, "restricted"):
            raise TypeError(
                f"a box can be restricted whose policy has a method restricted, as RulePolicy; got {policy!r}"
            )
        made: Policy = policy.restricted(self._rules, self._autonomy)
        return made

    def of_any(self, policy: Any) -> Policy:
        """The policy, restricted. If it cannot be restricted, logs that and returns one that allows nothing."""
        from toolcrib.rules.policy import RulePolicy
        from toolcrib.rules.rule import Rule

        try:
            return self.of(policy)
        except Exception as problem:  # also what its own method raises
            logging.getLogger("toolcrib").error(
                "a restricted toolbox allows nothing from now on: %s", problem
            )
            return RulePolicy("read_only", [Rule(verb=Verb.DENY, reason="its policy cannot be restricted")])
