"""The third step of a call's path: may this call run, does a person have to be asked, or is it refused?"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from toolcrib.access import UNSEEN_CODE
from toolcrib.call import CallKey, ToolCall
from toolcrib.effect import Effect
from toolcrib.fingerprint import fingerprint
from toolcrib.prepared import OneExecution, Pending, Prepared, Ready, Refused, ResolvedTool, new_ready
from toolcrib.question import Lasting, Question
from toolcrib.toolbox import model_messages
from toolcrib.toolbox.approval import folders_of, prefixes_of, with_targets
from toolcrib.toolbox.approvals import Approvals
from toolcrib.toolbox.decode import Arguments
from toolcrib.toolbox.followers import Followers
from toolcrib.toolbox.policy import BY_EFFECT, AutonomyPolicy, Decision, Policy, PolicyRequest, Verb
from toolcrib.toolbox.resources import only_own, resources_of
from toolcrib.toolbox.runs import Runs

if TYPE_CHECKING:
    from toolcrib.repair import Edit
    from toolcrib.secrets.masking import Masking

__all__ = ["Decider", "effect_of"]

# Looked up once: an enum's members are slow to reach on 3.11.
ALLOW, ASK, DENY, READ = Verb.ALLOW, Verb.ASK, Verb.DENY, Effect.READ


class Decider:
    """Decides on calls by a policy, by earlier approvals, and by what the tool itself says of the call.

    `tracks_taint` says whether the policy or a reviewer looks at what came from outside.
    """

    __slots__ = ("__weakref__", "_masking", "approvals", "followers", "policy", "runs", "tracks_taint")

    def __init__(self, policy: Policy, approvals: Approvals, runs: Runs, masking: Masking | None) -> None:
        self.approvals = approvals
        self.runs = runs
        self._masking = masking
        self.followers = Followers(self)
        self.use(policy)

    def use(self, policy: Policy) -> None:
        """Decide by another policy from now on. Deciders whose policies are made from this one's follow."""
        with self.followers.changing:
            self.policy = policy
            self.tracks_taint: bool = self.runs.reviewed or getattr(policy, "tracks_taint", False)
            if self.tracks_taint:
                self.runs.taint_untracked()
            self.followers.follow()

    def request_for(self, ready: Ready) -> PolicyRequest:
        """The policy's request about a call."""
        taint, texts = self.runs.provenance(ready.key.run)
        facts = ready.tool.definition.facts
        covers = self.runs.covers(ready.key.run)
        return PolicyRequest(facts, ready.effect, ready, taint=taint, user_texts=texts, covers=covers)

    def decide_again(self, ready: Ready) -> Decision:
        """The policy's decision now on a call that was prepared before."""
        return self.policy.decide(self.request_for(ready))

    def decide(self, call: ToolCall, key: CallKey, tool: ResolvedTool, arguments: Arguments) -> Prepared:
        """Decide on a valid call: Ready, Pending or Refused. The tool's own `precheck` comes after the policy."""
        definition = tool.definition
        if definition.unavailable is not None and (why := definition.unavailable(tool.instance)):
            return Refused(call, key, model_messages.denied(call.name, why))
        params, given, edits = arguments
        effect = definition.facts.effect if definition.effect_for is None else effect_of(tool, params)
        one = OneExecution()
        ready = new_ready(
            (call, key, tool, params, given, edits, effect, one, one, "", False, "", False, False, False)
        )
        policy = self.policy
        if type(policy) is AutonomyPolicy and (
            not definition.judged_closely
            or not policy.looks
            or (effect > policy.looks_up_to and not definition.facts.delegates)
        ):
            decision = policy.by_effect[effect]  # it would look at nothing else
        else:
            decision = policy.decide(self.request_for(ready))
            why = decision.rule or (decision.reason if decision.confined else "")
            ready = ready._replace(why=why, confined=decision.confined)
        if decision.verb is DENY:
            return Refused(call, key, model_messages.denied(call.name, decision.reason))
        if definition.precheck is not None and (refusal := definition.precheck(tool.instance, params)):
            return Refused(call, key, model_messages.precheck(call.name, refusal))
        reason = _why_ask(decision, effect, edits) if decision.verb is ASK or edits else ""
        if "doubt" in definition.hooks:
            reason, must_ask = _with_doubt(tool, params, reason)
            ready = ready._replace(must_ask=must_ask)
        return self.asked(ready, decision, reason) if reason else ready

    def asked(self, ready: Ready, decision: Decision, reason: str) -> Ready | Pending:
        """A call that a person has to be asked about, unless an earlier answer covers it."""
        identity, accesses = ready.tool.definition.identity, ready.accesses
        mark = fingerprint(identity, with_targets(accesses, ready.arguments))
        ready = ready._replace(fingerprint=mark)
        if not decision.strict and self.approvals.covers_call(ready):
            return ready._replace(approved=True, why="approved before")
        strict = decision.strict or any(access.code == UNSEEN_CODE for access in accesses or ())
        question = Question(
            key=ready.key,
            tool=ready.call.name,
            action=f"run {ready.call.name}",
            reason=reason,
            arguments=ready.arguments,
            effect=ready.effect.label,
            fingerprint=mark,
            edits=ready.edits,
            prefixes=() if strict else prefixes_of(accesses),
            folders=() if strict else folders_of(ready),
            strict=strict,
            # In another run the same name, such as bash-1, is another process.
            lastings=(Lasting.RUN,) if only_own(resources_of(ready)) else self.approvals.lastings(),
            title=ready.tool.definition.facts.title,
        )
        if self._masking is not None:
            question = self._masking.mask_question(question)
        return Pending(ready._replace(why=""), question)


def effect_of(tool: ResolvedTool, params: Any) -> Effect:
    """The effect of this call: what the tool says of its params, never more than it declared."""
    declared: Effect = tool.definition.facts.effect
    try:
        said = tool.definition.effect_for(tool.instance, params)
        if not isinstance(said, Effect):
            raise TypeError(f"effect_for gives Effect.READ, WRITE or DESTRUCTIVE, got {said!r}")
        return min(said, declared)
    except Exception:
        tool.entry.log_failure("effect_for")
        return declared


def _why_ask(decision: Decision, effect: Effect, edits: tuple[Edit, ...]) -> str:
    """Why a person must be asked, or "": a policy's ASK, or repaired syntax of a call that changes something."""
    if decision.verb is ASK:
        return decision.reason
    if effect is not READ and any(edit.is_syntax for edit in edits):
        return "its arguments were not valid JSON and had to be repaired"
    return ""


def _with_doubt(tool: ResolvedTool, params: Any, reason: str) -> tuple[str, bool]:
    """Why a person must be asked, with the tool's own doubt about the call, and whether the tool itself insists.

    If its `doubt` raises, a person is asked.
    """
    try:
        doubt = tool.definition.hooks["doubt"](tool.instance, params)
        if doubt is None or not (reason or doubt.must_ask):
            return reason, False
        if reason in BY_EFFECT:
            reason = "" if doubt.reason else reason
        words = f"{reason}: {doubt.reason}" if reason else doubt.reason or "its tool wants a person to decide"
        return words, doubt.must_ask
    except Exception:
        tool.entry.log_failure("doubt")
        return reason or "its tool could not say whether it is harmless", True
