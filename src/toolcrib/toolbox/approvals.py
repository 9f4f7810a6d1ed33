"""Answers of "always" that are remembered: what each covers, how long it holds, who gave it and when."""

from __future__ import annotations

import copy
import os
import posixpath
import time
from collections.abc import Callable, Iterable
from typing import Any, Protocol

from toolcrib.access import Access, Reach
from toolcrib.credentials import arguments_on_one_line
from toolcrib.dataclass import dataclass, replace
from toolcrib.effect import Effect
from toolcrib.errors import belongs_to_caller
from toolcrib.fingerprint import fingerprint
from toolcrib.json_text.values import same_json
from toolcrib.prepared import Ready, ResolvedTool
from toolcrib.question import Answer, Lasting, Question, Scope
from toolcrib.toolbox.operator_log import Mask, unmasked
from toolcrib.toolbox.resources import base_folder
from toolcrib.toolbox.runs import Runs

__all__ = [
    "Approval",
    "ApprovalStorage",
    "Approvals",
    "ExpiryClock",
    "as_shown",
    "commands_begin_with",
    "prefixes_of",
]


@dataclass(frozen=True, slots=True)
class Approval:
    """One remembered answer. `where` is the run or the project's path, "" for a user's everywhere.

    `identity` is the tool's: a tool whose description or schema changed is another tool. `at` and `expires`
    are seconds since the epoch.
    """

    id: str
    tool: str
    identity: str
    scope: Scope
    lasting: Lasting
    where: str = ""
    fingerprint: str = ""
    prefixes: tuple[tuple[str, ...], ...] = ()
    by: str = ""
    at: float = 0.0
    expires: float | None = None
    shown: str = ""
    patterns: tuple[str, ...] = ()
    folders: tuple[str, ...] = ()

    def covers(self, identity: str, mark: str, accesses: Iterable[Access] | None) -> bool:
        """Whether the answer covers a call with this fingerprint (`mark`) and these accesses."""
        if self.identity != identity:
            return False
        if self.scope is Scope.TOOL:
            return True
        if self.scope is Scope.PREFIX:
            return commands_begin_with(self.prefixes, accesses)
        if self.scope is Scope.FOLDER:
            return files_lie_below(self.folders, accesses)
        return self.fingerprint == mark


def prefixes_of(accesses: Iterable[Access] | None) -> tuple[tuple[str, ...], ...]:
    """The prefixes of a call's commands that an approval would remember; empty where one of them has no prefix."""
    commands = _commands_to_approve(accesses)
    prefixes = tuple(dict.fromkeys(access.prefix for access in commands))
    return prefixes if commands and all(prefixes) else ()


def commands_begin_with(prefixes: Iterable[tuple[str, ...]], accesses: Iterable[Access] | None) -> bool:
    """Whether every command of a call that needs approval has known words and begins with an approved prefix."""
    commands = _commands_to_approve(accesses)
    known = tuple(prefixes)
    return bool(commands) and all(
        access.argv and access.prefix and any(access.argv[: len(prefix)] == prefix for prefix in known)
        for access in commands
    )


def folders_of(ready: Ready) -> tuple[str, ...]:
    """The folders that an approval by folder would remember of a call; empty where it writes no file below one.

    Only files of the workspace count, never the workspace itself, and no hidden files or folders: other programs obey
    what stands in many of those.
    """
    if not _may_go_by_folder(ready):
        return ()
    listed = tuple(ready.accesses or ())
    folders = tuple(dict.fromkeys(posixpath.dirname(access.target) for access in _not_free(listed)))
    return folders if files_lie_below(folders, listed) else ()


def files_lie_below(folders: Iterable[str], accesses: Iterable[Access] | None) -> bool:
    """Whether a call reads and writes files below approved folders of the workspace, and reaches nothing else."""
    listed = tuple(accesses or ())
    files, known = _not_free(listed), tuple(folders)
    return (
        any(access.reach is Reach.WRITE for access in files)
        and not any(access.real for access in listed)
        and all(_is_plain_file(access) and _lies_below(access.target, known) for access in files)
    )


def _may_go_by_folder(ready: Ready) -> bool:
    """Whether an approval for a folder may cover this call: it covers no destructive call, and none that must ask."""
    return ready.effect <= Effect.WRITE and not ready.must_ask


def _not_free(accesses: Iterable[Access]) -> list[Access]:
    return [access for access in accesses if not access.free]


def _is_plain_file(access: Access) -> bool:
    hidden = any(part.startswith(".") for part in access.target.split("/"))
    return access.reach in (Reach.READ, Reach.WRITE) and not (access.subtree or access.secret or hidden)


def _lies_below(path: str, folders: tuple[str, ...]) -> bool:
    return not path.startswith("/") and any(folder and path.startswith(f"{folder}/") for folder in folders)


def approval_mark(ready: Ready) -> str:
    """The fingerprint that an approval of exactly these arguments is remembered by.

    Arguments that have their default count as left out, and those that the tool lists in `approval_ignores` do not
    count: the same command with another timeout is the same command.
    """
    definition, arguments = ready.tool.definition, ready.arguments
    if not isinstance(arguments, dict):
        return ready.fingerprint
    ignored, declared = definition.facts.approval_ignores, definition.params.schema.get("properties", {})
    given = {name: value for name, value in arguments.items() if not _is_default(declared.get(name), value)}
    if len(given) < len(arguments) and not _means_the_same(ready, given):
        given = arguments
    counted = {name: value for name, value in given.items() if name not in ignored}
    if len(counted) == len(arguments) and ready.fingerprint:
        return ready.fingerprint
    return fingerprint(definition.identity, with_targets(ready.accesses, counted))


def _is_default(schema: Any, value: Any) -> bool:
    return isinstance(schema, dict) and "default" in schema and same_json(schema["default"], value)


def _means_the_same(ready: Ready, given: dict[str, Any]) -> bool:
    """Whether the tool gets the same params if arguments that equal their defaults are left out.

    False for a foreign schema: what its tool does without an argument is unknown. A function fills in its defaults.
    """
    from pydantic_core import to_json

    from toolcrib.compiling.schema_params import SchemaParams

    params = ready.tool.definition.params
    if isinstance(params, SchemaParams):
        return False
    try:
        return isinstance(ready.params, dict) or bool(params.parse(to_json(given)) == ready.params)
    except Exception:
        return False


def with_targets(accesses: Iterable[Access] | None, arguments: Any) -> Any:
    """Arguments with the files that links lead to and the code that commands run: an answer holds for these alone."""
    leads = [access.code or access.target for access in accesses or () if access.real or access.code]
    return [*leads, arguments] if leads else arguments


def _commands_to_approve(accesses: Iterable[Access] | None) -> list[Access]:
    return [access for access in accesses or () if access.reach is Reach.RUN and not access.free]


def as_shown(fresh: Question, shown: Question) -> Question:
    """The question about a person's own arguments. An "always" covers no command and no folder that was not shown."""
    return replace(
        fresh,
        prefixes=fresh.prefixes if set(fresh.prefixes) <= set(shown.prefixes) else (),
        folders=fresh.folders if set(fresh.folders) <= set(shown.folders) else (),
    )


class ApprovalStorage(Protocol):
    """Where approvals are kept that outlast a run; `toolcrib.rules.ApprovalStore` is a file of the user's."""

    def all(self) -> list[Approval]: ...
    def add(self, approval: Approval) -> None: ...


class ExpiryClock:
    """The clock by which approvals expire: if the system's clock is set back, it goes on from its latest time.

    So what has expired stays expired, and nothing lasts longer than it was meant to.
    """

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._latest = 0.0
        self._asked = time.monotonic()

    def __call__(self, at_least: float = 0.0) -> float:
        """The time in seconds since the epoch; never less than `at_least` or than it gave before."""
        passed, self._asked = time.monotonic() - self._asked, time.monotonic()
        self._latest = max(self._clock(), at_least, self._latest + passed)
        return self._latest


class Approvals:
    """The approvals that count in a box: those of its runs, and those of the storage for its project and user."""

    def __init__(
        self,
        runs: Runs,
        *,
        storage: ApprovalStorage | None = None,
        project: str = "",
        clock: Callable[[], float] = time.time,
        mask: Mask = unmasked,
    ) -> None:
        self._runs = runs
        self._mask = mask
        self._storage = storage
        self._project = project
        self._folder = os.path.realpath(project) if project else ""
        self._clock = ExpiryClock(clock)

    def masked(self, mask: Mask) -> Approvals:
        """The same approvals for a run within a call, whose secrets are masked too."""
        made = copy.copy(self)
        made._mask = mask
        return made

    def check_stored_outside(self, workspace: str) -> None:
        """Raise ValueError if approvals are stored in a workspace: a tool that may change its files could approve.

        The user's state folder may lie in it, because the command line keeps tools from that.
        """
        if (path := getattr(self._storage, "path", None)) is None:
            return
        from pathlib import Path  # this and state_folder take 2 ms to import

        from toolcrib.private_files import state_folder

        place = Path(os.path.realpath(path))
        if place.is_relative_to(workspace) and not place.is_relative_to(os.path.realpath(state_folder())):
            raise ValueError(f"approvals must be stored outside of the workspace {workspace}, got {path}")

    def add(
        self,
        question: Question,
        answer: Answer,
        tool: Any,
        identity: str,
        ready: Ready,
        mark: str = "",
    ) -> None:
        """Remember an answer about a call, or about a step of it. For a run, `tool` is the very object asked about.

        `mark` is what an approval of exactly these arguments is remembered by, if it is not the question's fingerprint.
        """
        if question.strict:
            return
        run = self._runs.outermost(question.key.run)
        scope = answer.scope
        offered = {Scope.PREFIX: question.prefixes, Scope.FOLDER: question.folders}
        if not offered.get(scope, True):
            scope = Scope.ARGUMENTS
        lastings = self.lastings() if scope is Scope.TOOL else question.lastings
        lasting = answer.lasting_among(lastings)
        approval = Approval(
            os.urandom(4).hex(),
            question.tool,
            self.in_folder(lasting, identity, ready.tool),
            scope,
            lasting,
            {Lasting.RUN: run, Lasting.PROJECT: self._project, Lasting.USER: ""}[lasting],
            (mark or question.fingerprint) if scope is Scope.ARGUMENTS else "",
            question.prefixes if scope is Scope.PREFIX else (),
            answer.by,
            self._clock(),
            answer.expires,
            _shown(question, scope),
            question.patterns,
            question.folders if scope is Scope.FOLDER else (),
        )
        if lasting is not Lasting.RUN and self._storage is not None:
            self._store(self._storage, approval)
        else:
            self._runs.add_approved(run, tool, approval)

    def in_folder(self, lasting: Lasting, identity: str, tool: ResolvedTool) -> str:
        """The identity that an approval is stored under: one for each folder, unless it lasts for the user."""
        folder = base_folder(tool) if lasting is not Lasting.USER else ""
        elsewhere = folder and folder != self._folder
        return fingerprint(identity, folder) if elsewhere else identity

    def lastings(self) -> tuple[Lasting, ...]:
        """For how long an answer of "always" can be kept here: beyond the run only where there is a storage for it."""
        if self._storage is None:
            return (Lasting.RUN,)
        return tuple(Lasting) if self._project else (Lasting.RUN, Lasting.USER)

    def of_steps(self, ready: Ready, tool: Any, identity: str) -> list[Approval]:
        """The approvals that hold now for steps of a running call. `tool` and `identity` choose the kind of step."""
        return [
            approval
            for approval in self.active(ready.key.run, tool)
            if approval.identity == self.in_folder(approval.lasting, identity, ready.tool)
        ]

    def covers_step(self, ready: Ready, tool: Any, mark: str, identity: str) -> bool:
        """Whether an earlier answer covers a step with this fingerprint (`mark`) that a running call asks about."""
        steps = self.of_steps(ready, tool, identity)
        return any(approval.covers(approval.identity, mark, None) for approval in steps)

    def covers_call(self, ready: Ready) -> bool:
        """Whether an earlier answer covers a prepared call."""
        entry, definition = ready.tool.entry, ready.tool.definition
        active = self.active(ready.key.run, entry)
        if not active:
            return False
        mark = approval_mark(ready)
        return any(
            approval.covers(
                approval.identity
                if approval.lasting is Lasting.RUN
                else self.in_folder(approval.lasting, definition.identity, ready.tool),
                mark,
                ready.accesses if approval.scope in (Scope.PREFIX, Scope.FOLDER) else None,
            )
            for approval in active
            if approval.scope is not Scope.FOLDER or _may_go_by_folder(ready)
        )

    def active(self, run: str, tool: Any) -> list[Approval]:
        """The approvals that count in a run now: given in it for this tool, or stored for its project and user."""
        now = self._clock()
        found: list[Approval] = [item for known, item in self._runs.approved(run) if known is tool]
        if self._storage is not None:
            found += [item for item in self._stored() if item.where in ("", self._project)]
        return [item for item in found if item.expires is None or item.expires > now]

    def _store(self, storage: ApprovalStorage, approval: Approval) -> None:
        try:
            storage.add(approval)
        except BaseException as problem:  # the yes holds for this call all the same
            self._log_failure("an approval could not be kept", problem)

    def _stored(self) -> list[Approval]:
        try:
            return self._storage.all() if self._storage is not None else []
        except BaseException as problem:
            self._log_failure("approvals are not used", problem)
            return []

    def _log_failure(self, what: str, problem: BaseException) -> None:
        """Log what a storage raised, which may be anybody's code."""
        import logging

        if belongs_to_caller(problem):
            raise problem
        message = self._mask(f"{what}: {type(problem).__name__}: {problem}")
        logging.getLogger("toolcrib").error("%s", message)


def _shown(question: Question, scope: Scope) -> str:
    """What was approved, as a list of approvals shows it."""
    if scope is Scope.TOOL:
        return f"every call of {question.tool}"
    if scope is Scope.PREFIX:
        return ", ".join(" ".join(prefix) + " *" for prefix in question.prefixes)
    if scope is Scope.FOLDER:
        return ", ".join(f"{folder}/**" for folder in question.folders)
    return (
        arguments_on_one_line(question.arguments)
        if question.arguments or not question.patterns
        else question.action
    )
