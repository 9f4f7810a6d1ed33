"""What a person trusted of a project, and the rules in its folder, which are used only then and only to restrict.

The file of rules is `.toolcrib/policy.toml` in the workspace. What a person trusted is stored in a file of the user:
the hash of each file's bytes, by the path of the folder and of the file. A file that has changed is not trusted.
"""

from __future__ import annotations

import contextlib
import hashlib
import time
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any, Protocol

from toolcrib.access import Reach
from toolcrib.dataclass import dataclass, field
from toolcrib.errors import ToolcribError
from toolcrib.private_files import replace_private_file
from toolcrib.rules.locked_json import LockedJsonFile
from toolcrib.rules.path_patterns import PathPattern
from toolcrib.rules.policy import RulePolicy
from toolcrib.rules.project_files import FOLDER, TrustError, read_project_file
from toolcrib.rules.rule import Rule
from toolcrib.rules.rule_file import RuleFile, read_rules
from toolcrib.toolbox.policy import Verb

__all__ = [
    "PLACE",
    "ProjectRules",
    "TrustError",
    "TrustStore",
    "Trustable",
    "TrustedFile",
    "project_rules",
]

PLACE = f"{FOLDER}/policy.toml"
# The tools that may change files and state their accesses; every call of a tool that states none would be a question.
# The sandbox keeps commands and code from these files, too; without one, a person is asked about what may change them.
FILE_WRITERS = ("write_file", "edit_file", "multi_edit", "apply_patch", "delete*", "move*")
RUNNERS = ("shell", "python")
# A run must not change what it obeys, or what was trusted: rules, settings, tools, skills.
KEEP_THE_RULES = Rule(
    verb=Verb.DENY,
    name="the project's rules",
    reason="the project's rules are changed by people",
    tools=(*FILE_WRITERS, *RUNNERS),
    paths=(PathPattern(FOLDER),),
    reach=frozenset({Reach.WRITE, Reach.DELETE}),
    source=PLACE,
)


class Trustable(Protocol):
    """A file of a project, with the hash of its content."""

    @property
    def project(self) -> str: ...
    @property
    def path(self) -> str: ...
    @property
    def sha256(self) -> str: ...
    @property
    def data(self) -> bytes: ...


@dataclass(frozen=True, slots=True)
class ProjectRules:
    """The rules in a project's file. It is read once, so that the same bytes are shown, hashed and used."""

    project: str
    sha256: str
    rules: RuleFile
    data: bytes = field(default=b"", repr=False)

    @property
    def path(self) -> str:
        return PLACE

    @property
    def narrowing(self) -> tuple[Rule, ...]:
        return tuple(rule for rule in self.rules.rules if rule.verb is not Verb.ALLOW)

    @property
    def widening(self) -> tuple[Rule, ...]:
        """The allow rules, which are not used: a project allows nothing."""
        return tuple(rule for rule in self.rules.rules if rule.verb is Verb.ALLOW)

    def restricted(self, policy: RulePolicy) -> RulePolicy:
        """A policy that allows no more: with the project's deny and ask rules, and its autonomy if that is lower."""
        return policy.restricted((*self.narrowing, KEEP_THE_RULES), self.rules.autonomy)


@dataclass(frozen=True, slots=True)
class TrustedFile:
    """A person trusted the file at a path of a project, with this hash."""

    project: str
    sha256: str
    at: float
    by: str = ""
    path: str = PLACE


def project_rules(workspace: str | Path) -> ProjectRules | None:
    """The rules in a workspace, trusted or not; None if it has none. Raises TrustError."""
    found = read_project_file(workspace, PLACE)
    if found is None:
        return None
    try:
        rules = read_rules(found.text, PLACE)
    except ValueError as problem:
        raise TrustError(str(problem)) from None
    return ProjectRules(found.project, found.sha256, rules, found.data)


class TrustStore:
    """The trusted files of projects, in a file of the user that nobody else may write. Several processes may use it.

    Copies of what was trusted lie beside it, to show what has changed since; nothing depends on them.
    """

    def __init__(self, path: str | Path, *, clock: Callable[[], float] = time.time) -> None:
        self.path = Path(path)
        self._file = LockedJsonFile(path, "trusted")
        self._clock = clock

    def all(self) -> list[TrustedFile]:
        """Every trusted file. Raises ToolcribError for a file that cannot be trusted itself."""
        try:
            return [_trusted(item) for item in self._file.read()]
        except (KeyError, TypeError) as problem:
            raise ToolcribError(f"{self.path} cannot be read as what is trusted: {problem}") from None

    def find(self, project: str, path: str = PLACE) -> TrustedFile | None:
        """The record of a file that was trusted, whatever the file contains now; None if it never was."""
        return next((item for item in self.all() if (item.project, item.path) == (project, path)), None)

    def holds(self, found: Trustable) -> bool:
        """Whether exactly this content was trusted."""
        known = self.find(found.project, found.path)
        return known is not None and known.sha256 == found.sha256

    def add(self, *found: Trustable, by: str = "") -> None:
        """Store that a person has read these files and trusts them."""
        with self._file.changing():
            new = {(item.project, item.path): item for item in found}
            kept = [item for item in self.all() if (item.project, item.path) not in new]
            kept += [TrustedFile(one.project, one.sha256, self._clock(), by, one.path) for one in found]
            self._file.write([asdict(item) for item in kept])
        for one in found:
            self._keep_copy(one)

    def revoke(self, project: str) -> bool:
        """Stop trusting a project; returns whether it was trusted."""
        with self._file.changing():
            known = self.all()
            others = [item for item in known if item.project != project]
            if len(others) < len(known):
                self._file.write([asdict(item) for item in others])
        return len(others) < len(known)

    def copy_of(self, trusted: TrustedFile) -> bytes | None:
        """The content that was trusted; None where no copy of it is left."""
        try:
            data = self._copy(trusted.sha256).read_bytes()
        except (OSError, ValueError):
            return None
        return data if hashlib.sha256(data).hexdigest() == trusted.sha256 else None

    def _copy(self, sha256: str) -> Path:
        return self.path.with_name("trusted-copies") / sha256

    def _keep_copy(self, found: Trustable) -> None:
        copy = self._copy(found.sha256)
        with contextlib.suppress(OSError):  # without it nothing but a diff is missing
            copy.parent.mkdir(mode=0o700, exist_ok=True)
            replace_private_file(copy, found.data)


def _trusted(item: Any) -> TrustedFile:
    found = TrustedFile(item["project"], item["sha256"], item["at"], item["by"], item.get("path", PLACE))
    if not all(isinstance(text, str) for text in (found.project, found.sha256, found.by, found.path)):
        raise TypeError("expected text")
    if isinstance(found.at, bool) or not isinstance(found.at, int | float):
        raise TypeError("expected a time")
    return found
