"""Who may run what: the policy decides allow, ask or deny; an approver is the one who is asked."""

from __future__ import annotations

import posixpath
import reprlib
from collections.abc import Awaitable, Callable, Iterable, Iterator
from enum import StrEnum
from typing import Any, Literal, Protocol

from toolcrib.access import PATHS, Access, Reach
from toolcrib.dataclass import dataclass
from toolcrib.effect import Effect
from toolcrib.errors import is_object_with
from toolcrib.facts import Facts
from toolcrib.prepared import Ready
from toolcrib.question import Answer, Question, Verdict

__all__ = [
    "ALLOWED",
    "BY_EFFECT",
    "Approver",
    "Autonomy",
    "AutonomyPolicy",
    "Covers",
    "Decision",
    "Policy",
    "PolicyRequest",
    "Reply",
    "Verb",
    "as_policy",
]

Reply = Answer | Verdict | bool | Literal["yes", "no", "always"] | None
"""What an approver may give: an Answer, in short its verdict, or None, which means that nobody could be asked."""

Approver = Callable[[Question], Awaitable[Reply] | Reply]
"""Asks a person. A sync function may take its time: it runs on a worker thread.

An approver may also have a method `ask_all`: it is given the questions of a turn that wait at the same time, as a
tuple, and gives a list with a Reply for each, in their order.
"""


Covers = Callable[[str], str | None]
"""Why the checkpoint of this turn cannot bring back what is at an absolute path; None where it can."""


class Verb(StrEnum):
    """The three verbs of a policy."""

    ALLOW = "allow"
    ASK = "ask"
    DENY = "deny"


@dataclass(frozen=True, slots=True)
class Decision:
    """The decision of a policy: its verb, and the reason in one line (always given unless the verb is ALLOW).

    The verb may be given as its word ("allow", "ask", "deny"); whatever is no such word is DENY. `rule`
    names the rule that decided; with `strict`, no earlier approval counts: a person is asked each time. `confined`:
    the call may run only as long as its accesses are confined as they were stated.
    """

    verb: Verb
    reason: str = ""
    rule: str = ""
    strict: bool = False
    confined: bool = False

    def __post_init__(self) -> None:
        given: Any = self.verb  # a policy read from a file gives text, or anything
        if not isinstance(given, Verb):
            object.__setattr__(self, "verb", Verb(given) if given in list(Verb) else Verb.DENY)
        if not self.reason and self.verb is not Verb.ALLOW:
            object.__setattr__(self, "reason", _NO_REASON[self.verb])


_NO_REASON = {Verb.ASK: "the policy wants a person to decide", Verb.DENY: "the policy does not allow it"}
ALLOWED = Decision(Verb.ALLOW)


@dataclass(slots=True)
class PolicyRequest:
    """What a policy decides on: the tool's facts, the effect of this call, and its arguments or an action.

    `prepared` is the call that would run. A tool's own question in the middle of its work comes with `action`,
    `patterns` and what it `reached` instead, and the `folder` that its paths are relative to. With both, the
    request is about the one access of the call in `reached`.
    `taint` names the tools that brought in content from outside so far,
    `user_texts` is what the user of the run wrote. `covers` tells what the checkpoint of this turn can bring back; it
    is None where none was taken.
    """

    facts: Facts
    effect: Effect
    prepared: Ready | None = None
    action: str = ""
    patterns: tuple[str, ...] = ()
    taint: frozenset[str] = frozenset()
    reached: tuple[Access, ...] | None = None
    user_texts: tuple[str, ...] = ()
    covers: Covers | None = None
    folder: str = ""

    @property
    def arguments(self) -> Any:
        """The validated arguments as JSON data; None for a tool's own question."""
        return None if self.prepared is None else self.prepared.arguments

    @property
    def params_schema(self) -> dict[str, Any]:
        """The JSON Schema of the tool's params; empty for a tool's own question."""
        return {} if self.prepared is None else self.prepared.tool.definition.params.schema

    @property
    def accesses(self) -> tuple[Access, ...] | None:
        """The accesses of the call, as its tool states them; None where it states none."""
        return self.reached if self.reached is not None or self.prepared is None else self.prepared.accesses

    @property
    def free(self) -> bool:
        """Whether the tool says of each access of the call that it needs no approval."""
        accesses = self.accesses
        return bool(accesses) and all(access.free for access in accesses or ())

    @property
    def delegated(self) -> bool:
        """Whether the call changes nothing itself: it makes inner calls, which are decided on by themselves."""
        return self.prepared is not None and self.facts.delegates


def _only_free_changes(request: PolicyRequest) -> bool:
    return request.effect is Effect.WRITE and request.free


def _why_not_undone(request: PolicyRequest) -> str | None:
    """Why a checkpoint could not bring back all that a confined call may change; "" if it could.

    None where the call is not confined.
    """
    accesses = request.accesses or ()
    if not all(access.confined or access.free for access in accesses):
        return None
    lasting = [access for access in accesses if not (access.confined and access.confined.temporary)]
    folders = [access.confined.folder for access in lasting if access.confined]
    if not folders:
        return None
    if request.covers is None:
        return "no checkpoint was taken"
    for path in dict.fromkeys(_changed_paths(lasting, folders[0])):
        if problem := request.covers(path):
            return problem
    return ""


def _changed_paths(accesses: Iterable[Access], folder: str) -> Iterator[str]:
    """The absolute paths that confined accesses may change; for a command, the whole folder and what it names."""
    for access in accesses:
        folder = access.confined.folder if access.confined else folder
        if access.reach is Reach.RUN:
            yield folder
        elif access.reach in PATHS and access.reach is not Reach.READ and access.target not in (".", "/"):
            yield posixpath.normpath(posixpath.join(folder, access.target))


class Policy(Protocol):
    """Decides each call; `shows` says whether a tool is worth showing to a model at all."""

    def decide(self, request: PolicyRequest, /) -> Decision: ...
    def shows(self, facts: Facts) -> bool: ...


class Autonomy(StrEnum):
    """How much may happen without a person, from the least to the most."""

    READ_ONLY = "read_only"
    SUPERVISED = "supervised"
    SANDBOXED = "sandboxed"
    FULL = "full"


class AutonomyPolicy:
    """The policy of one word: `read_only` runs and shows only READ, `supervised` asks for the rest, `full` runs all.

    A tool that `delegates` runs at each of them: the calls that it makes are decided on by themselves, by this policy,
    too.
    `sandboxed` asks as `supervised` does, except for a call whose accesses are all confined to a folder that the
    checkpoint of this turn can bring back.
    """

    tracks_taint = False

    def __init__(self, autonomy: Autonomy | str) -> None:
        try:
            self.autonomy = Autonomy(autonomy)
        except ValueError:
            known = ", ".join(Autonomy)
            raise ValueError(f"autonomy must be one of {known}; got {autonomy!r}") from None
        self.by_effect = _DECISIONS[self.autonomy]
        self.looks = self.autonomy is not Autonomy.FULL
        self.looks_up_to = Effect.DESTRUCTIVE if self.autonomy is Autonomy.SANDBOXED else Effect.WRITE

    def decide(self, request: PolicyRequest, /) -> Decision:
        decision = self.by_effect[request.effect]
        if self.looks and request.effect is Effect.READ:
            secret = next((access.target for access in request.accesses or () if access.secret), None)
            if secret is not None:
                verb = Verb.DENY if self.autonomy is Autonomy.READ_ONLY else Verb.ASK
                return Decision(verb, f"it reads {secret}, which may hold secrets")
        if decision.verb is not Verb.ALLOW and request.delegated:
            return ALLOWED
        if decision.verb is Verb.ASK and _only_free_changes(request):
            return ALLOWED
        if decision.verb is Verb.ASK and self.autonomy is Autonomy.SANDBOXED:
            return self._unless_undone(request, decision)
        return decision

    def _unless_undone(self, request: PolicyRequest, decision: Decision) -> Decision:
        """The decision under `sandboxed` about a call that changes something."""
        problem = _why_not_undone(request)
        if problem is None:
            return decision
        if problem:
            return Decision(Verb.ASK, f"it could not be undone: {problem}")
        accesses = request.accesses or ()
        if any(access.secret for access in accesses):
            return decision
        by = next(access.confined.by for access in accesses if access.confined)
        return Decision(Verb.ALLOW, f"confined by {by}, and a checkpoint can bring it back", confined=True)

    def shows(self, facts: Facts) -> bool:
        return self.autonomy is not _NARROWEST or facts.effect is _READ or facts.delegates

    def __repr__(self) -> str:
        return f"AutonomyPolicy({self.autonomy.value!r})"


BY_EFFECT = ("it changes something", "it can destroy something")  # where a tool cannot say it better
_NARROWEST, _READ = (
    Autonomy.READ_ONLY,
    Effect.READ,
)  # looked up once: an enum's members are slow to reach on 3.11
_READ_ONLY = Decision(Verb.DENY, "only reading is allowed here")
_DECISIONS: dict[Autonomy, tuple[Decision, Decision, Decision]] = {
    Autonomy.READ_ONLY: (ALLOWED, _READ_ONLY, _READ_ONLY),
    Autonomy.SUPERVISED: (
        ALLOWED,
        Decision(Verb.ASK, BY_EFFECT[0]),
        Decision(Verb.ASK, BY_EFFECT[1]),
    ),
    Autonomy.SANDBOXED: (
        ALLOWED,
        Decision(Verb.ASK, BY_EFFECT[0]),
        Decision(Verb.ASK, BY_EFFECT[1]),
    ),
    Autonomy.FULL: (ALLOWED, ALLOWED, ALLOWED),
}


def as_policy(policy: Any) -> Policy:
    """A policy as it is, or the one of an autonomy's name."""
    if isinstance(policy, str):
        return AutonomyPolicy(policy)
    if not is_object_with(policy, "decide"):
        raise TypeError(
            f"policy must have decide(request), as RulePolicy(autonomy, rules) has; got {reprlib.repr(policy)}"
        )
    made: Policy = policy
    return made
