"""Rules in a project's folder: used only after a person trusted their content, and only to restrict.

The file is `.toolcrib/policy.toml` in the workspace. What a person trusted is stored in a file of the user: the hash
of the file's bytes, by the path of the folder. A file that has changed is not trusted.
"""

from __future__ import annotations

import hashlib
import os
import stat
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from toolcrib.access import Reach
from toolcrib.errors import ToolcribError
from toolcrib.folder_handles import DIRECTORY, NOFOLLOW, close_handle, open_in, open_root
from toolcrib.private_files import OPEN_FLAGS
from toolcrib.rules.locked_json import LockedJsonFile
from toolcrib.rules.path_patterns import PathPattern
from toolcrib.rules.policy import RulePolicy
from toolcrib.rules.rule import Rule
from toolcrib.rules.rule_file import RuleFile, read_rules
from toolcrib.toolbox.policy import Verb

__all__ = ["PLACE", "ProjectRules", "TrustError", "TrustStore", "TrustedProject", "project_rules"]

FOLDER, NAME = ".toolcrib", "policy.toml"
PLACE = f"{FOLDER}/{NAME}"
MAX_BYTES = 64_000  # that a person can be expected to have read
# A run must not change the rules that it obeys. The sandbox keeps commands from it, too.
KEEP_THE_RULES = Rule(
    verb=Verb.DENY,
    name="the project's rules",
    reason="the project's rules are changed by people",
    tools=("write_file", "edit_file", "delete*"),
    paths=(PathPattern(FOLDER),),
    reach=frozenset({Reach.WRITE, Reach.DELETE}),
    source=PLACE,
)


class TrustError(ToolcribError):
    """A project's file that cannot be used: a link, a special file, too large, or no rules."""


@dataclass(frozen=True, slots=True)
class ProjectRules:
    """The rules in a project's file. It is read once, so that the same bytes are shown, hashed and used."""

    project: str
    sha256: str
    rules: RuleFile

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
class TrustedProject:
    """A person trusted the file of a project, with this hash."""

    project: str
    sha256: str
    at: float
    by: str = ""


def project_rules(workspace: str | Path) -> ProjectRules | None:
    """The rules in a workspace, trusted or not; None if it has none. Raises TrustError."""
    project = Path(os.path.realpath(workspace))
    data = _read(project)
    if data is None:
        return None
    try:
        text = data.decode("utf-8")
        rules = read_rules(text, PLACE)
    except ValueError as problem:
        raise TrustError(
            str(problem) if not isinstance(problem, UnicodeError) else f"{PLACE} is no text"
        ) from None
    return ProjectRules(str(project), hashlib.sha256(data).hexdigest(), rules)


class TrustStore:
    """The trusted projects, in a file of the user that nobody else may write. Several processes may use it."""

    def __init__(self, path: str | Path, *, clock: Callable[[], float] = time.time) -> None:
        self.path = Path(path)
        self._file = LockedJsonFile(path, "trusted")
        self._clock = clock

    def all(self) -> list[TrustedProject]:
        """Every trusted project. Raises ToolcribError for a file that cannot be trusted itself."""
        try:
            return [_trusted(item) for item in self._file.read()]
        except (KeyError, TypeError) as problem:
            raise ToolcribError(f"{self.path} cannot be read as what is trusted: {problem}") from None

    def find(self, project: str) -> TrustedProject | None:
        """What was trusted of a project, whatever its file contains now; None if nothing was."""
        return next((item for item in self.all() if item.project == project), None)

    def holds(self, found: ProjectRules) -> bool:
        """Whether exactly these rules were trusted."""
        known = self.find(found.project)
        return known is not None and known.sha256 == found.sha256

    def add(self, found: ProjectRules, *, by: str = "") -> None:
        """Store that a person has read the rules and trusts them."""
        with self._file.changing():
            others = [item for item in self.all() if item.project != found.project]
            others.append(TrustedProject(found.project, found.sha256, self._clock(), by))
            self._file.write([asdict(item) for item in others])

    def revoke(self, project: str) -> bool:
        """Stop trusting a project; returns whether it was trusted."""
        with self._file.changing():
            known = self.all()
            others = [item for item in known if item.project != project]
            if len(others) < len(known):
                self._file.write([asdict(item) for item in others])
        return len(others) < len(known)


def _trusted(item: Any) -> TrustedProject:
    found = TrustedProject(item["project"], item["sha256"], item["at"], item["by"])
    if not all(isinstance(text, str) for text in (found.project, found.sha256, found.by)):
        raise TypeError("expected text")
    if isinstance(found.at, bool) or not isinstance(found.at, int | float):
        raise TypeError("expected a time")
    return found


def _read(project: Path) -> bytes | None:
    """The bytes of a project's file, which must be an ordinary file with one name; links are not followed."""
    try:
        above = open_root(str(project))
        try:
            folder = open_in(above, FOLDER, os.O_RDONLY | DIRECTORY | NOFOLLOW | OPEN_FLAGS)
        finally:
            close_handle(above)
    except FileNotFoundError:
        return None
    except OSError as problem:
        raise TrustError(f"{FOLDER} is no ordinary folder: {problem.strerror}") from None
    try:
        fd = open_in(folder, NAME, os.O_RDONLY | NOFOLLOW | OPEN_FLAGS)
    except FileNotFoundError:
        return None
    except OSError as problem:
        raise TrustError(f"{PLACE} is no ordinary file: {problem.strerror}") from None
    finally:
        close_handle(folder)
    if not isinstance(fd, int):
        raise TrustError(f"{PLACE} is no ordinary file")
    try:
        status = os.fstat(fd)
        if not stat.S_ISREG(status.st_mode):
            raise TrustError(f"{PLACE} is no ordinary file")
        if status.st_nlink > 1:
            raise TrustError(f"{PLACE} has another name too (a hard link)")
        with open(fd, "rb", closefd=False) as file:
            data = file.read(MAX_BYTES + 1)
    finally:
        os.close(fd)
    if len(data) > MAX_BYTES:
        raise TrustError(
            f"{PLACE} has more than {MAX_BYTES:,} bytes, which nobody reads before trusting them"
        )
    return data
