"""The approvals that count in a box: where they are kept, how long they hold, who gave them and when."""

from __future__ import annotations

import copy
import os
import time
from collections.abc import Callable
from typing import Any, Protocol

from toolcrib.errors import belongs_to_caller
from toolcrib.fingerprint import fingerprint
from toolcrib.prepared import Ready, ResolvedTool
from toolcrib.question import Answer, Lasting, Question, Scope
from toolcrib.toolbox.approval import Approval, approval_mark, may_go_by_folder, what_was_approved
from toolcrib.toolbox.operator_log import Mask, unmasked
from toolcrib.toolbox.resources import base_folder
from toolcrib.toolbox.runs import Runs

__all__ = ["ApprovalStorage", "Approvals", "ExpiryClock"]


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
            id=os.urandom(4).hex(),
            tool=question.tool,
            identity=self.in_folder(lasting, identity, ready.tool),
            scope=scope,
            lasting=lasting,
            where={Lasting.RUN: run, Lasting.PROJECT: self._project, Lasting.USER: ""}[lasting],
            fingerprint=(mark or question.fingerprint) if scope is Scope.ARGUMENTS else "",
            prefixes=question.prefixes if scope is Scope.PREFIX else (),
            by=answer.by,
            at=self._clock(),
            expires=answer.expires,
            shown=what_was_approved(question, scope),
            patterns=question.patterns,
            folders=question.folders if scope is Scope.FOLDER else (),
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
            if approval.scope is not Scope.FOLDER or may_go_by_folder(ready)
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
