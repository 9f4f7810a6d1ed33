"""What would become of a call: what the policy says, and where an approval or the tool says another thing."""

from __future__ import annotations

import posixpath
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from toolcrib.access import PATHS, Access
from toolcrib.call import ToolCall
from toolcrib.cli.policy_request import imagined
from toolcrib.effect import Effect
from toolcrib.errors import ToolError
from toolcrib.prepared import Pending, Refused, ResolvedTool
from toolcrib.rules import Explanation, RulePolicy
from toolcrib.toolbox.policy import AutonomyPolicy, PolicyRequest, Verb
from toolcrib.tools import Workspace
from toolcrib.tools.workspace_paths import WORDS
from toolcrib.visible import on_one_line

TOOL = "the tool itself"
APPROVED = "an approval that you kept"


@dataclass(frozen=True, slots=True)
class Prediction:
    """What would happen (`verb`, `reason`), who decides that (`by`), and what the policy says of it."""

    verb: Verb
    reason: str
    by: str
    case: PolicyRequest
    policy: Explanation
    offered: bool = True

    def lines(self) -> list[str]:
        """For a person: the outcome first."""
        decision = self.policy.decision
        said = [f"{self.verb.value}{f': {on_one_line(self.reason, 300)}' if self.reason else ''}"]
        said.append(f"  decided by  {on_one_line(self.by)}")
        if self.by.startswith((TOOL, APPROVED)):
            reason = f": {on_one_line(decision.reason)}" if decision.reason else ""
            said.append(f"  the policy  {_SAYS[decision.verb]}{reason} ({on_one_line(decision.rule)})")
        if not self.offered:
            said.append("  the model   is not offered this tool")
        said.append(f"  effect      {self.case.effect.label}")
        accesses = self.case.accesses
        reached = dict.fromkeys(_plainly(access) for access in accesses or ())
        said += [f"  reaches     {on_one_line(line)}" for line in reached]
        said += ["  reaches     (the tool does not say)"] if accesses is None else []
        said += [f"  {on_one_line(step)}" for step in self.policy.steps]
        return said + (["  no earlier approval counts"] if decision.strict else [])


_SAYS = {Verb.ALLOW: "allows it", Verb.ASK: "asks", Verb.DENY: "denies it"}


async def predict(
    box: Any,
    call: ToolCall,
    policy: AutonomyPolicy | RulePolicy,
    *,
    tainted: bool = False,
    user_texts: Sequence[str] = (),
) -> Prediction:
    """The outcome of a call under a policy, as the box prepares it. Nothing is run, nobody asked.

    Raises ToolcribError for a call that cannot be made.
    """
    case, prepared = await imagined(box, call, policy, tainted, user_texts)
    assert case.prepared is not None
    rules = policy if isinstance(policy, RulePolicy) else RulePolicy(policy.autonomy)
    explained = rules.explain(case)
    decision = explained.decision
    by = decision.rule or f"autonomy {rules.autonomy.autonomy.value}"
    offered = rules.shows(case.facts)

    def outcome(verb: Verb, reason: str, decider: str = by) -> Prediction:
        named = Explanation(replace(decision, rule=by), explained.rule, explained.steps)
        return Prediction(verb, reason, decider, case, named, offered)

    if decision.verb is Verb.DENY:
        return outcome(Verb.DENY, decision.reason)
    if isinstance(prepared, Refused):
        return outcome(Verb.DENY, prepared.result.text, f"{TOOL}, whatever rules say")
    if refusal := _refused_by_workspace(case.prepared.tool, case):
        return outcome(Verb.DENY, refusal, f"{TOOL}, whatever rules say")
    if isinstance(prepared, Pending):
        own = decision.verb is Verb.ALLOW
        reason = prepared.question.reason
        return outcome(Verb.ASK, reason, f"{TOOL}, whatever rules allow" if own else by)
    if decision.verb is Verb.ASK:
        return outcome(Verb.ALLOW, "", f"{APPROVED}: toolcrib approvals list")
    return outcome(Verb.ALLOW, "")


def _refused_by_workspace(tool: ResolvedTool, case: PolicyRequest) -> str:
    """Why a tool on a workspace can never use a path that it is given; "" where it can."""
    workspace, arguments = getattr(tool.instance, "workspace", None), case.arguments
    if not isinstance(workspace, Workspace) or not isinstance(arguments, dict):
        return ""
    for name in ("path", "workdir"):
        path = arguments.get(name)
        if not isinstance(path, str):
            continue
        try:
            place = workspace.place(path)
        except ToolError as refused:
            return refused.message
        try:
            workspace.real(place)
        except OSError as problem:
            return WORDS.get(problem.errno or 0, "{path} cannot be used.").format(path=place.shown)
        if name == "path" and case.effect is not Effect.READ and place.root is not workspace.root:
            return f"{place.shown} can only be read."
    return ""


def _plainly(access: Access) -> str:
    """What is reached, in words; paths without what says nothing in them."""
    if access.reach not in PATHS:
        return f"{access.reach} {access.target}"
    if not access.subtree:
        return f"{access.reach} {posixpath.normpath(access.target)}"
    path = posixpath.normpath(posixpath.join(access.target, access.pattern or "**"))
    if path == "**":
        return f"{access.reach} all of the workspace"
    below = path.removesuffix("/**")
    return f"{access.reach} {path}" if below == path else f"{access.reach} {below or '/'} and all below"
