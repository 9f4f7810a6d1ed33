"""A toolbox for a helper: what its maker may do, or less."""

from __future__ import annotations

import copy
from collections.abc import Collection, Iterable
from typing import TYPE_CHECKING, Any

from toolcrib.errors import as_tuple
from toolcrib.toolbox.context_host import ContextHost
from toolcrib.toolbox.policy import AutonomyPolicy, Verb

if TYPE_CHECKING:
    from toolcrib.rules import Rule
    from toolcrib.toolbox.box import Toolbox


def restricted(
    box: Toolbox, tools: Collection[str] | None, rules: Iterable[Rule], autonomy: str | None
) -> Toolbox:
    """The same box under a policy that allows no more. TypeError where its policy cannot be restricted."""
    from toolcrib.rules import Rule, RulePolicy

    policy: Any = box.policy
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
    made = copy.copy(box)
    made.policy = policy.restricted(added, autonomy)
    made.host = ContextHost(made)
    made._tool_list = None
    made._portal = None
    # Toolsets stay entered as long as whoever entered them says.
    made._stack = None
    made._entered = box._entered
    return made
