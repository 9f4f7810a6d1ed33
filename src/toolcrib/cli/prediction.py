"""What would happen to a call: what the policy decides, and where an approval or the tool itself decides otherwise."""

from __future__ import annotations

import posixpath
from collections.abc import Sequence
from typing import TYPE_CHECKING

from toolcrib.access import PATHS, Access, Reach
from toolcrib.call import ToolCall
from toolcrib.cli.dry_run import dry_run
from toolcrib.dataclass import dataclass, replace
from toolcrib.effect import Effect
from toolcrib.errors import ToolError
from toolcrib.prepared import Pending, Refused, ResolvedTool
from toolcrib.rules import Explanation, RulePolicy
from toolcrib.toolbox.policy import AutonomyPolicy, Covers, PolicyRequest, Verb
from toolcrib.tools import Workspace
from toolcrib.tools.workspace_paths import WORDS
from toolcrib.visible import on_one_line

if TYPE_CHECKING:
    from toolcrib.toolbox import Toolbox

TOOL = "the tool itself"
APPROVED = "an approval that you kept"
MAX_GUESSED = 8  # paths that are named
POLICY_SAYS = {Verb.ALLOW: "allows it", Verb.ASK: "asks", Verb.DENY: "denies it"}


@dataclass(frozen=True, slots=True)
class Prediction:
    """What would happen (`verb`, `reason`), who decides it (`by`), and what the policy alone would decide.

    `offered`: whether the model would see the tool at all.
    """

    verb: Verb
    reason: str
    by: str
    request: PolicyRequest
    policy: Explanation
    offered: bool = True

    def lines(self) -> list[str]:
        """The prediction for a person: what would happen first."""
        decision = self.policy.decision
        lines = [self.verb.value + (f": {on_one_line(self.reason, 300)}" if self.reason else "")]
        lines.append(f"  decided by  {on_one_line(self.by)}")
        if self.by.startswith((TOOL, APPROVED)):
            reason = f": {on_one_line(decision.reason)}" if decision.reason else ""
            lines.append(f"  the policy  {POLICY_SAYS[decision.verb]}{reason} ({on_one_line(decision.rule)})")
        if not self.offered:
            lines.append("  the model   is not offered this tool")
        lines.append(f"  effect      {self.request.effect.label}")
        lines += [f"  {on_one_line(text)}" for text in _reached(self.request)]
        lines += [f"  {on_one_line(step)}" for step in self.policy.steps]
        if decision.strict:
            lines.append("  no earlier approval counts")
        return lines


async def predict(
    box: Toolbox,
    call: ToolCall,
    policy: AutonomyPolicy | RulePolicy,
    *,
    tainted: bool = False,
    user_texts: Sequence[str] = (),
    covers: Covers | None = None,
) -> Prediction:
    """What would happen to a call under a policy, after a checkpoint that `covers` what it says.

    Nothing is run, and nobody is asked.

    Raises ToolcribError for a call that cannot be made.
    """
    request, prepared = await dry_run(
        box, call, policy, tainted=tainted, user_texts=user_texts, covers=covers
    )
    assert request.prepared is not None
    rules = policy if isinstance(policy, RulePolicy) else RulePolicy(policy.autonomy)
    explained = rules.explain(request)
    decision = explained.decision
    rule = decision.rule or f"autonomy {rules.autonomy.autonomy.value}"
    explained = Explanation(replace(decision, rule=rule), explained.rule, explained.steps)
    offered = rules.shows(request.facts)

    def outcome(verb: Verb, reason: str = "", by: str = rule) -> Prediction:
        return Prediction(verb, reason, by, request, explained, offered)

    if decision.verb is Verb.DENY:
        return outcome(Verb.DENY, decision.reason)
    if isinstance(prepared, Refused):
        name = prepared.call.name
        reason = prepared.result.text.removeprefix(f'Tool "{name}" was not run: ')  # meant for a model
        return outcome(Verb.DENY, reason, f"{TOOL}, whatever rules say")
    if refusal := _refused_by_workspace(request.prepared.tool, request):
        return outcome(Verb.DENY, refusal, f"{TOOL}, whatever rules say")
    if isinstance(prepared, Pending):
        allowed = decision.verb is Verb.ALLOW
        return outcome(
            Verb.ASK, prepared.question.reason, f"{TOOL}, whatever rules allow" if allowed else rule
        )
    if decision.verb is Verb.ASK:
        return outcome(Verb.ALLOW, by=f"{APPROVED}: toolcrib approvals list")
    return outcome(Verb.ALLOW, decision.reason)


def _refused_by_workspace(tool: ResolvedTool, request: PolicyRequest) -> str:
    """Why a tool that works on a workspace refuses the path in its arguments; "" if it accepts the path."""
    found = (getattr(tool.instance, name, None) for name in ("backend", "place", "workspace"))
    workspace = next(filter(None, found), None)
    arguments = request.arguments
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
        if name == "path" and request.effect is not Effect.READ and place.root is not workspace.root:
            return f"{place.shown} can only be read."
    return ""


def _reached(request: PolicyRequest) -> list[str]:
    """What a call reaches, in words, each thing once; then the paths that the words of a command could name."""
    if request.accesses is None:
        return ["reaches     (the tool does not say)"]
    certain = [access for access in request.accesses if not (access.hint or _is_guess(access))]
    lines = [f"reaches     {_access_in_words(access)}" for access in certain]
    known = {_path(access) for access in certain}
    words = {posixpath.normpath(word) for access in certain for word in access.argv or access.target.split()}
    guessed = dict.fromkeys(_path(access) for access in request.accesses if _is_guess(access))
    if named := [path for path in guessed if path in words and path not in known]:
        more = ", …" if len(named) > MAX_GUESSED else ""
        lines.append(
            f"may reach   {', '.join(named[:MAX_GUESSED])}{more} (rules that deny look at these, too)"
        )
    return list(dict.fromkeys(lines))


def _is_guess(access: Access) -> bool:
    """Whether the access stands for a word of a command that could be a path: then it counts as read and written."""
    whole = access.target in (".", "/") and access.pattern.startswith("./") and access.pattern.endswith("**")
    return access.free and access.subtree and whole and access.reach is not Reach.DELETE


def _path(access: Access) -> str:
    return posixpath.normpath(posixpath.join(access.target, access.pattern or ".")).removesuffix("/**")


def _access_in_words(access: Access) -> str:
    if access.reach not in PATHS:
        return f"{access.reach} {access.target}"
    if not access.subtree:
        return f"{access.reach} {posixpath.normpath(access.target)}"
    path = posixpath.normpath(posixpath.join(access.target, access.pattern or "**"))
    if path == "**":
        return f"{access.reach} all of the workspace"
    folder = path.removesuffix("/**")
    return f"{access.reach} {path}" if folder == path else f"{access.reach} {folder or '/'} and all below"
