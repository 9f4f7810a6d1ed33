"""The runs of a toolbox that end at their questions: how they are saved, and how they and their calls go on."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from toolcrib.call import CallKey
from toolcrib.compiling.definition import Definition
from toolcrib.dataclass import dataclass, replace
from toolcrib.facts import Facts
from toolcrib.fingerprint import fingerprint
from toolcrib.prepared import Pending, Prepared, Ready, Refused, ResolvedTool
from toolcrib.question import Answer, Lasting, Verdict
from toolcrib.result import ToolResult
from toolcrib.toolbox.approval import Approval
from toolcrib.toolbox.ask import AskAgain
from toolcrib.toolbox.path import CallPath
from toolcrib.toolbox.registry import Entry
from toolcrib.toolbox.report import Record
from toolcrib.toolbox.restore import restored_call
from toolcrib.toolbox.runs import Limiter

if TYPE_CHECKING:
    from toolcrib.toolbox.suspension import Suspension

__all__ = ["Suspensions", "checked_memory"]


@dataclass(slots=True)
class Suspensions:
    """Saves runs that wait for answers, and lets them and their calls go on."""

    path: CallPath
    limiter: Limiter | None

    def begin(self, run: str, suspension: Suspension) -> None:
        """Let the questions of a run wait, in the place of being put to the approver."""
        self.path.runs.suspend(run, suspension)
        resume = getattr(self.limiter, "resume", None)  # some limiters count what the run took before
        if suspension.taken and resume is not None:
            resume(run, suspension.taken)

    def begin_within(self, run: str) -> None:
        """Let the limits of a run within a call, whose questions wait with those of its outer run, go on."""
        suspension, resume = self.of(run), getattr(self.limiter, "resume", None)
        if suspension is not None and resume is not None and run in suspension.taken_within:
            resume(run, suspension.taken_within[run])

    def of(self, run: str) -> Suspension | None:
        """The suspension in which the questions of a run wait; None where they are put to the approver."""
        return self.path.runs.suspension(run)

    # -- runs

    def saved(self, run: str) -> dict[str, Any]:
        """What is remembered of a run, as JSON data: approvals that hold for the run, and its taint.

        An approval for a tool of another toolbox, which an agent in a call has, is not kept.
        """
        runs, registry, approvals = self.path.runs, self.path.questions.registry, []
        for tool, approval in runs.approved(run):
            kind, entry = _kind_of(tool), registry.known(approval.tool) or registry.lent.get(approval.tool)
            if _subject(entry, kind) is tool:
                approvals.append({"of": kind, **asdict(approval)})
        return {"approvals": approvals, "taint": sorted(runs.provenance(run).taint)}

    async def restore(self, run: str, data: dict[str, Any]) -> None:
        """Remember what was saved of a run. An approval holds only for a tool that is what it was."""
        runs, registry = self.path.runs, self.path.questions.registry
        for tool in data["taint"]:
            runs.add_taint(run, tool)
        for item in data["approvals"]:
            approval, kind = _approval_of(item), item["of"]
            entry = await registry.entry(approval.tool)
            if entry is not None and approval.identity == self._identity(entry, kind):
                runs.add_approved(run, _subject(entry, kind), approval)

    def _identity(self, entry: Entry, kind: str) -> str:
        """The identity of a run's approval of this kind; "" for a tool that is known only when a call makes it."""
        definition = entry.definition()
        if definition is None or (entry.make is not None and "base_folder" in definition.hooks):
            return ""
        identity = fingerprint(definition.identity, kind) if kind == "permission" else definition.identity
        tool = ResolvedTool(entry, entry.supplied, definition)
        return self.path.decider.approvals.in_folder(Lasting.RUN, identity, tool)

    # -- calls

    async def go_on(self, key: CallKey, deps: Any, record: Record | None) -> ToolResult:
        """Run a call that waited when its run was saved; returns its result."""
        return await self.path.finish(await self.restored(key, deps), deps, None, record)

    async def restored(self, key: CallKey, deps: Any) -> Prepared:
        """A call that waited when its run was saved. What a person allowed before is not asked about again."""
        path, suspension = self.path, self.of(key.run)
        assert suspension is not None
        saved = suspension.saved[key]
        changed = saved.get("arguments")
        prepared = await restored_call(saved["call"], path.preparation, path.decider, deps, changed=changed)
        why = saved.get("approved")
        if why is None or isinstance(prepared, Refused):
            return prepared
        if isinstance(prepared, Pending):
            again = replace(prepared, question=replace(prepared.question, digest=""))
            granted = await path.questions.answered(again, Answer(Verdict.YES), deps)
            if isinstance(granted, ToolResult):
                return Refused(prepared.call, key, granted)
            prepared = granted.pending if isinstance(granted, AskAgain) else granted
        return prepared._replace(approved=True, why=why) if isinstance(prepared, Ready) else prepared

    async def hold_back(self, prepared: Ready | Pending, record: Record | None) -> ToolResult:
        """Let a call wait that comes after a waiting one. If it has a question, that is prepared for asking now."""
        if isinstance(prepared, Pending):
            prepared = await self.path.questions.previews.with_preview(prepared)
        return await self.path.wait(prepared, record)


def checked_memory(data: dict[str, Any]) -> dict[str, Any]:
    """What `Suspensions.saved` gave. Raises AttributeError, KeyError, TypeError or ValueError for other data."""
    approvals = list(data["approvals"])
    for item in approvals:
        _approval_of(item)
        if item["of"] not in dict(KINDS).values():
            raise ValueError(f"an approval of {item['of']!r}")
    return {"approvals": approvals, "taint": [str(tool) for tool in data["taint"]]}


def _approval_of(item: dict[str, Any]) -> Approval:
    from toolcrib.rules.approvals import approval_from_dict

    return approval_from_dict({name: value for name, value in item.items() if name != "of"})


KINDS = ((Entry, "call"), (Definition, "ask"), (Facts, "permission"))


def _kind_of(tool: object) -> str:
    """What an approval was given for: a call, a tool's question, or a permission that only a person gives."""
    return next(kind for form, kind in KINDS if isinstance(tool, form))


def _subject(entry: Entry | None, kind: str) -> Any:
    """What an approval is remembered for in a run; None where its tool is unknown."""
    definition = entry.definition() if entry is not None else None
    if definition is None:
        return None
    return {"call": entry, "ask": definition, "permission": definition.facts}[kind]
