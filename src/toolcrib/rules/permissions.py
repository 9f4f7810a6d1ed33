"""The accesses that a running call may make: those decided on, and others that the same policy permits.

A tool is handed functions only, through its `Context`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import NamedTuple

from toolcrib.access import PATHS, Access, DeniedPaths, Permits, Reach
from toolcrib.command.judge.paths import may_hold_secrets
from toolcrib.dataclass import replace
from toolcrib.effect import Effect
from toolcrib.rules.comparable_paths import comparable_path
from toolcrib.rules.policy import RulePolicy
from toolcrib.toolbox.nested import BothPolicies
from toolcrib.toolbox.policy import AutonomyPolicy, Policy, PolicyRequest, Verb
from toolcrib.toolbox.provenance import lies_elsewhere

__all__ = ["CallPermissions", "call_permissions", "covering", "permissions_of_both", "read_unasked"]


class CallPermissions(NamedTuple):
    """What a call may reach.

    `permits` says whether it may reach something. `denied_paths` finds what deny rules take away below a workspace and
    other folders; it is None if no rule denies paths. `why_denied` gives the reason that a deny rule states, or "".
    """

    permits: Permits
    denied_paths: Callable[[str, Iterable[str]], DeniedPaths] | None = None
    why_denied: Callable[[Access], str] | None = None


def call_permissions(policy: Policy, request: PolicyRequest) -> CallPermissions:
    """The permissions of a call that was decided on.

    A call never reaches what a deny rule matches. It may reach what was decided on, and what may be read unasked.
    """
    accesses = request.accesses
    decided = covering(accesses)
    if isinstance(policy, RulePolicy):
        permits = _without_secrets(policy.permits(request, decided), policy.autonomy, accesses)
        return CallPermissions(permits, policy.denied_paths(request), partial(policy.why_denied, request))
    if isinstance(policy, AutonomyPolicy):
        return CallPermissions(
            _without_secrets(lambda access: access.reach is Reach.READ or decided(access), policy, accesses)
        )
    if isinstance(policy, BothPolicies):
        return permissions_of_both(*(call_permissions(one, request) for one in policy.about(request)))
    return CallPermissions(decided)


def read_unasked(policy: Policy, request: PolicyRequest) -> Permits:
    """What the tool of a call may read before anybody was asked about the call.

    Each access is decided like a call with the same arguments that only reads it, so that the tool need not know which
    names may hold secrets. Where rules look at what came from outside, nothing outside the workspace is read: a call
    that does not run cannot taint its run.
    """
    tracks_taint = getattr(policy, "tracks_taint", False)

    def permits(access: Access) -> bool:
        if access.reach is not Reach.READ or (tracks_taint and lies_elsewhere(access.target)):
            return False
        access = replace(access, secret=access.secret or may_hold_secrets(access.target))
        asked = replace(request, effect=Effect.READ, action=f"read {access.target}", reached=(access,))
        return policy.decide(asked).verb is Verb.ALLOW and call_permissions(policy, asked).permits(access)

    return permits


def permissions_of_both(first: CallPermissions, second: CallPermissions) -> CallPermissions:
    """What both permit. What either denies is denied."""

    def permits(access: Access) -> bool:
        return first.permits(access) and second.permits(access)

    finding = [one.denied_paths for one in (first, second) if one.denied_paths is not None]

    def denied_paths(root: str, others: Iterable[str]) -> DeniedPaths:
        folders = tuple(others)
        found = [find(root, folders) for find in finding]
        return DeniedPaths(
            tuple(dict.fromkeys(path for one in found for path in one.hidden)),
            tuple(dict.fromkeys(path for one in found for path in one.read_only)),
            "; ".join(one.incomplete for one in found if one.incomplete),
        )

    def why_denied(access: Access) -> str:
        reasons = (one.why_denied for one in (first, second))
        return next((why for reason in reasons if reason is not None and (why := reason(access))), "")

    return CallPermissions(permits, denied_paths if finding else None, why_denied)


def _without_secrets(
    permits: Permits, autonomy: AutonomyPolicy, accesses: Sequence[Access] | None
) -> Permits:
    """The same, except for contents that may be secret and were not decided on by their own name."""
    if not autonomy.looks:
        return permits
    named = covering([access for access in accesses or () if access.secret])
    return lambda access: (not access.secret or named(access)) and permits(access)


def covering(accesses: Sequence[Access] | None) -> Permits:
    """A function that says whether an access is one of these or lies below one. With None, every access does."""
    if accesses is None:
        return lambda access: True
    exact: dict[str, list[Reach]] = {}
    for one in accesses:
        exact.setdefault(_key(one), []).append(one.reach)
    subtrees = [
        (one.reach, comparable_path(one.target)) for one in accesses if one.subtree and one.reach in PATHS
    ]

    def covered(access: Access) -> bool:
        key = _key(access)
        if access.reach in exact.get(key, ()):
            return True
        return access.reach in PATHS and any(
            reach is access.reach and _lies_below(key, folder) for reach, folder in subtrees
        )

    return covered


def _key(access: Access) -> str:
    return comparable_path(access.target) if access.reach in PATHS else access.target


def _lies_below(path: str, folder: str) -> bool:
    if folder == "":  # the workspace, which no absolute path lies below
        return not path.startswith("/")
    return path.startswith(folder)
