"""The tasks extension: a long call becomes a task, which the client asks about until it has ended.

The server decides which calls become tasks: those of tools that are declared so, at once, and any call that still runs
after a while. A task belongs to the run of the client that began it; for all others it does not exist.

| request        | what it gives                                                                              |
| -------------- | ------------------------------------------------------------------------------------------ |
| `tools/call`   | a task in the place of a result                                                             |
| `tasks/get`    | its status, and what goes with that: result, error, or the questions that wait              |
| `tasks/update` | takes responses to questions; some or all of them                                           |
| `tasks/cancel` | cancels the call, really                                                                    |

A tool that says "no" has completed, with an error as its result; a task has failed only where the tool crashed.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any, Literal

import mcp_types as types
from mcp.server.lowlevel.server import Server
from mcp.shared.exceptions import MCPError
from pydantic import Field

from toolcrib.errors import ErrorCode
from toolcrib.mcp.server.asking import Rounds
from toolcrib.mcp.server.clients import Clients, RequestContext, is_modern
from toolcrib.mcp.server.served_call import ServedCall
from toolcrib.result import ToolResult

__all__ = ["EXTENSION", "TaskSupport", "Tasks", "extension_missing", "takes_tasks"]

EXTENSION = "io.modelcontextprotocol/tasks"
TaskSupport = Literal["optional", "required"]
POLL_MS = 500
MCP_NAME = "mcp-name"


class TaskParams(types.RequestParams):
    """The params of `tasks/get` and `tasks/cancel`."""

    task_id: str = Field(alias="taskId")


class UpdateParams(TaskParams):
    """The params of `tasks/update`. A response is checked against the question that it answers, not before."""

    responses: dict[str, Any] = Field(alias="inputResponses", default_factory=dict)


def takes_tasks(ctx: RequestContext) -> bool:
    """Whether the client of a request knows the extension. Tasks exist since revision 2026-07-28 only."""
    capabilities = ctx.session.client_capabilities
    return is_modern(ctx) and capabilities is not None and EXTENSION in (capabilities.extensions or {})


def extension_missing() -> MCPError:
    """The error for a client that would have to know the extension."""
    return MCPError(
        types.MISSING_REQUIRED_CLIENT_CAPABILITY,
        f"This needs the extension {EXTENSION}, which the client did not declare",
        data={"requiredCapabilities": {"extensions": {EXTENSION: {}}}},
    )


class Task:
    """A call that became a task."""

    def __init__(self, call: ServedCall, finish: Callable[[ToolResult], dict[str, Any]], ttl: float) -> None:
        self.call = call
        self.finish = finish
        self.ttl_ms = max(1, math.ceil(ttl * 1000))
        self.created = self.updated = _now()
        self.cancelled = False
        self.expiry: asyncio.TimerHandle | None = None
        assert call.task is not None
        call.task.add_done_callback(lambda _: self.touch())

    def touch(self) -> None:
        """Something happened to the task."""
        self.updated = _now()

    @property
    def status(self) -> str:
        task = self.call.task
        assert task is not None
        if not task.done():
            rounds = self.call.port
            return "input_required" if isinstance(rounds, Rounds) and rounds.questions else "working"
        if task.cancelled() or self.cancelled:
            return "cancelled"
        if task.exception() is not None or task.result().code is ErrorCode.FAILED:
            return "failed"
        return "completed"

    def brief(self) -> dict[str, Any]:
        """The task without what goes with its status."""
        data = {
            "taskId": self.call.id,
            "status": self.status,
            "createdAt": self.created,
            "lastUpdatedAt": self.updated,
            "ttlMs": self.ttl_ms,
            "pollIntervalMs": POLL_MS,
        }
        words = self.call.last_words
        return {**data, "statusMessage": words} if words else data

    def detailed(self) -> dict[str, Any]:
        """The task as `tasks/get` tells it."""
        data, task = self.brief(), self.call.task
        assert task is not None
        if data["status"] == "input_required" and isinstance(self.call.port, Rounds):
            data["inputRequests"] = {
                name: request.model_dump(mode="json", by_alias=True, exclude_none=True)
                for name, request in self.call.port.questions.items()
            }
        elif data["status"] == "completed":
            data["result"] = self.finish(task.result())
        elif data["status"] == "failed":
            words = "Internal error" if task.exception() is not None else task.result().text
            data["error"] = {"code": types.INTERNAL_ERROR, "message": words}
        return data


class Tasks:
    """The tasks of all clients, at most `most` at a time; each is forgotten when its time is up."""

    def __init__(
        self, clients: Clients, support: Mapping[str, TaskSupport], after: float | None, ttl: float, most: int
    ) -> None:
        self.support = dict(support)
        self.after = after
        self._ttl = ttl
        self._most = most
        self._clients = clients
        self._tasks: dict[str, Task] = {}

    def register(self, server: Server[Any]) -> None:
        """Let a server speak the extension."""
        server.extensions[EXTENSION] = {}
        server.add_request_handler("tasks/get", TaskParams, self._get)
        server.add_request_handler("tasks/update", UpdateParams, self._update)
        server.add_request_handler("tasks/cancel", TaskParams, self._cancel)

    def patience(self, ctx: RequestContext, tool: str) -> float | None:
        """Seconds after which a call becomes a task; None for never. Raises MCPError where it cannot, and must."""
        support = self.support.get(tool)
        if not takes_tasks(ctx):
            if support == "required":
                raise extension_missing()
            return None
        if self.full:
            if support == "required":
                raise MCPError(types.INTERNAL_ERROR, "The server is busy: it has too many tasks. Try later.")
            return None
        return 0.0 if support is not None else self.after

    @property
    def full(self) -> bool:
        """Whether there may be no further task."""
        return len(self._tasks) >= self._most

    def add(self, call: ServedCall, finish: Callable[[ToolResult], dict[str, Any]]) -> dict[str, Any]:
        """Make a task of a running call; the result that tells the client."""
        task = self._tasks[call.id] = Task(call, finish, self._ttl)
        task.expiry = asyncio.get_running_loop().call_later(self._ttl, self._expire, call.id)
        if isinstance(call.port, Rounds):
            call.port.on_change = task.touch
        return {"resultType": "task", **task.brief()}

    async def close(self) -> None:
        """Cancel what still runs."""
        for task in list(self._tasks.values()):
            if task.expiry is not None:
                task.expiry.cancel()
        await asyncio.gather(*(task.call.stop() for task in self._tasks.values()))
        self._tasks.clear()

    def _expire(self, name: str) -> None:
        task = self._tasks.pop(name, None)
        if task is not None and task.call.task is not None:
            task.call.task.cancel()

    async def _get(self, ctx: RequestContext, params: TaskParams) -> dict[str, Any]:
        return {"resultType": "complete", **(await self._of(ctx, params)).detailed()}

    async def _update(self, ctx: RequestContext, params: UpdateParams) -> dict[str, Any]:
        task = await self._of(ctx, params)
        if isinstance(task.call.port, Rounds):
            task.call.port.answer(params.responses)
        return {"resultType": "complete"}

    async def _cancel(self, ctx: RequestContext, params: TaskParams) -> dict[str, Any]:
        task = await self._of(ctx, params)
        if task.call.task is not None and not task.call.task.done():
            task.cancelled = True
            task.call.task.cancel()
        return {"resultType": "complete"}

    async def _of(self, ctx: RequestContext, params: TaskParams) -> Task:
        if not takes_tasks(ctx):
            raise extension_missing()
        headers = getattr(ctx.request, "headers", None)  # over HTTP, they repeat the name for routers
        if headers is not None and headers.get(MCP_NAME) != params.task_id:
            raise MCPError(types.HEADER_MISMATCH, "The header Mcp-Name must be the taskId of the request")
        task = self._tasks.get(params.task_id)
        if task is None or task.call.key.run != await self._clients.run_of(ctx):
            raise MCPError(
                types.INVALID_PARAMS, "Unknown task: it never was, its time is up, or it is another's"
            )
        return task


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
