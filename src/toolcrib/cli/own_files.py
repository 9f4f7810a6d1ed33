"""Rules that keep a run from the files of toolcrib itself that lie in the workspace."""

from __future__ import annotations

import glob
import os
import re
from collections.abc import Sequence
from pathlib import Path

from toolcrib.access import Reach
from toolcrib.command.sandbox.files.own_files import own_files, own_program_in
from toolcrib.rules import PathPattern, Rule, RulePolicy
from toolcrib.rules.trust import FILE_WRITERS
from toolcrib.toolbox.policy import AutonomyPolicy, Verb

READERS = ("read_file", "grep", "glob", "list_dir")
CHANGES = frozenset({Reach.WRITE, Reach.DELETE})
NOT_LITERAL = re.compile(r"[\\{}~]")  # characters that mean something else in a path pattern


def protect_own_files(
    policy: AutonomyPolicy | RulePolicy, workspace: Path, named: Sequence[Path] = ()
) -> AutonomyPolicy | RulePolicy:
    """The policy as it holds in a workspace: no call may change rules, approvals or this program, or read secrets.

    `named` are files that the run itself goes by, such as its rules and transcript. Rules for absolute paths count
    for the same files in the workspace, too.
    """
    root = os.path.realpath(workspace)
    own = own_files()
    rules = [
        _denial(root, own, "rules and approvals are a person's to change", CHANGES),
        _denial(root, own, "rules, approvals and secrets are a person's", frozenset({Reach.READ}), READERS),
        _denial(
            root, [os.path.realpath(path) for path in named], "this run goes by it", CHANGES, FILE_WRITERS
        ),
        _denial(root, own_program_in(root), "it is the program that runs this", CHANGES, FILE_WRITERS),
    ]
    inside = [rule for rule in rules if rule is not None]
    if isinstance(policy, RulePolicy):
        policy = policy.within(workspace)
    elif inside:
        policy = RulePolicy(policy.autonomy)
    return policy.restricted(inside) if inside and isinstance(policy, RulePolicy) else policy


def _denial(
    root: str, places: Sequence[str], reason: str, reach: frozenset[Reach], tools: tuple[str, ...] = ()
) -> Rule | None:
    """The rule that denies those of the places that lie in the workspace; for all tools if none is named."""
    inside = [path for path in places if path != root and Path(path).is_relative_to(root)]
    if not inside:
        return None
    names = (glob.escape(os.path.relpath(path, root)) for path in inside)
    paths = tuple(PathPattern(f"./{NOT_LITERAL.sub('?', name)}") for name in names)
    return Rule(verb=Verb.DENY, name="our own files", reason=reason, tools=tools, paths=paths, reach=reach)
