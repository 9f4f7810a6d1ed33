"""Previews: what a tool shows of a call to the person who is asked, and whether that still holds after the answer.

And, before anybody is asked, whether the call would fail anyway.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from toolcrib.dataclass import replace
from toolcrib.errors import belongs_to_caller, traceback_text
from toolcrib.prepared import Pending
from toolcrib.question import Preview
from toolcrib.toolbox.operator_log import Mask, OperatorLog, shown_value
from toolcrib.toolbox.policy import Policy, PolicyRequest
from toolcrib.toolbox.threads import Workers

if TYPE_CHECKING:
    from toolcrib.toolbox.suspension import Suspension

__all__ = ["Previews"]

PREVIEW_TIME = 10.0  # seconds that a person waits for what a tool shows
LATE = object()


class Previews:
    """Asks tools for previews, on worker threads: a preview may read files."""

    def __init__(self, workers: Workers, operator: OperatorLog, mask: Mask) -> None:
        self._workers = workers
        self._operator = operator
        self._mask = mask

    async def with_preview(self, pending: Pending) -> Pending:
        """The call with a preview in its question: what the tool shows of the call, to the person only."""
        preview = await self._preview_of(pending)
        shown = [f"it leads to {access.target}" for access in pending.ready.accesses or () if access.real]
        digest = pending.question.digest
        if preview is not None:
            shown.append(preview.text)
            digest = preview.digest
        question = replace(pending.question, preview=self._mask("\n".join(shown)), digest=digest)
        return replace(pending, question=question)

    async def failure_of(
        self, pending: Pending, policy: Policy, request: PolicyRequest, suspension: Suspension | None
    ) -> str:
        """Why the call would fail, as far as the tool can tell from files it may read unasked; "" if it may succeed.

        Also "" if a person has said no already: the model is told of that no instead, with the person's words.
        """
        given = None if suspension is None else suspension.given(pending.question)
        if "would_fail" not in pending.tool.definition.hooks or not (given is None or given.allows):
            return ""
        from toolcrib.rules.permissions import read_unasked

        why = await self._asked_of(pending, "would_fail", str, read_unasked(policy, request))
        return self._mask(why) if isinstance(why, str) else ""

    async def outdated(self, pending: Pending) -> bool:
        """Whether what the person saw rests on something that has changed since."""
        if not pending.question.digest:
            return False
        preview = await self._preview_of(pending)
        return preview is None or preview.digest != pending.question.digest

    async def _preview_of(self, pending: Pending) -> Preview | None:
        shown = await self._asked_of(pending, "preview", Preview)
        if shown is LATE:
            return Preview("(what it would do could not be shown in time)")
        return shown if isinstance(shown, Preview) and isinstance(shown.text, str) else None

    async def _asked_of(self, pending: Pending, name: str, kind: type, *more: Any) -> Any:
        """Run a hook of the tool and return its value, which is of this kind.

        None if the hook is missing, fails, or gives anything else; LATE if it takes too long.
        """
        hook: Callable[..., Any] | None = pending.tool.definition.hooks.get(name)
        if hook is None:
            return None
        import asyncio

        args = pending.tool.instance, pending.params, *more
        job = self._workers.submit(hook, args, asyncio.get_running_loop())
        try:
            if not await job.wait(PREVIEW_TIME):
                return LATE
            if (value := job.result()) is None or isinstance(value, kind):
                return value
            raise TypeError(f"{name} gives a {kind.__name__} or None, got {shown_value(value)}")
        except BaseException as problem:
            job.withdraw()
            if belongs_to_caller(problem):
                raise
            self._operator.problem(f"{name} of tool {pending.call.name} failed", traceback_text(problem))
            return None
