"""The policy of a restricted toolbox, which allows no more than the policy it was made from."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import TYPE_CHECKING, Any

from toolcrib.errors import as_tuple
from toolcrib.toolbox.policy import Autonomy, AutonomyPolicy, Policy, Verb

if TYPE_CHECKING:
    from toolcrib.rules.rule import Rule

__all__ = ["restricted_policy"]


def restricted_policy(
    policy: Any, tools: Collection[str] | None, rules: Iterable[Rule], autonomy: Autonomy | str | None
) -> Policy:
    """A policy that allows no more: some of the tools, further deny and ask rules, less autonomy.

    TypeError where the policy has no method `restricted`, as RulePolicy has.
    """
    from toolcrib.rules.policy import RulePolicy
    from toolcrib.rules.rule import Rule

    if isinstance(policy, AutonomyPolicy):
        policy = RulePolicy(policy.autonomy)
    if not hasattr(policy, "restricted"):
        raise TypeError(
            f"a box can be restricted whose policy has a method restricted, as RulePolicy; got {policy!r}"
        )
    added = list(rules)
    if tools is not None:
        handed = (Rule(verb=Verb.DENY, tools=as_tuple("tools", tools)),) if tools else ()
        added.append(
            Rule(verb=Verb.DENY, name="tools of a helper", reason="it was not handed out", unless=handed)
        )
    made: Policy = policy.restricted(added, autonomy)
    return made
