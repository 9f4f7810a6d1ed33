"""What a running call is held to: what it was decided on, and for what it finds on its way, the same rules.

A tool is handed the answers alone: functions of one access, and of the folders that it works in.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING

from toolcrib.access import PATHS, Access, DeniedPaths, Reach
from toolcrib.rules.patterns import compared
from toolcrib.toolbox.policy import AutonomyPolicy

if TYPE_CHECKING:
    from toolcrib.prepared import Ready
    from toolcrib.toolbox.box import Toolbox

Permits = Callable[[Access], bool]
DeniedPathsFinder = Callable[[str, Iterable[str]], DeniedPaths]


def held(box: Toolbox, ready: Ready) -> tuple[Permits, DeniedPathsFinder | None]:
    """Whether a call that was let run may reach something, and which places deny rules take from it.

    What a deny rule means never. Else what was decided on, and what may be read unasked.
    """
    from toolcrib.rules.policy import RulePolicy

    assert ready.bound is not None
    decided = covering(ready.accesses)
    policy = box.policy
    if isinstance(policy, RulePolicy):
        case = box.case_of(ready)
        return _unshown(policy.permits(case, decided), policy.autonomy, ready), policy.denied_paths(case)
    if isinstance(policy, AutonomyPolicy):
        return _unshown(lambda access: access.reach is Reach.READ or decided(access), policy, ready), None
    return decided, None


def _unshown(permits: Permits, autonomy: AutonomyPolicy, ready: Ready) -> Permits:
    """The same without the contents of what may hold secrets, unless it was decided on by its own name."""
    if not autonomy.looks:
        return permits
    named = covering([access for access in ready.accesses or () if access.secret])
    return lambda access: (not access.secret or named(access)) and permits(access)


def covering(accesses: Sequence[Access] | None) -> Permits:
    """Whether an access is one of some, or lies below one of them; all are where nobody said which."""
    if accesses is None:
        return lambda access: True
    exact: dict[str, list[Reach]] = {}
    for one in accesses:
        exact.setdefault(_key(one), []).append(one.reach)
    below = [(one.reach, compared(one.target)) for one in accesses if one.subtree and one.reach in PATHS]

    def covered(access: Access) -> bool:
        key = _key(access)
        if access.reach in exact.get(key, ()):
            return True
        return access.reach in PATHS and any(
            reach is access.reach and _lies_below(key, folder) for reach, folder in below
        )

    return covered


def _key(access: Access) -> str:
    return compared(access.target) if access.reach in PATHS else access.target


def _lies_below(path: str, folder: str) -> bool:
    if folder == "":  # the workspace, which nothing absolute lies below
        return not path.startswith("/")
    return path.startswith(folder)
