"""Tasks: a server answers a call with a task that goes on, and is asked for its state until it has ended.

This is the extension `io.modelcontextprotocol/tasks` of revision 2026-07-28. A task outlives the connection, so a poll
that fails is tried again on a new one; and a run that waits for a person's answer goes on from the task's id.

Revision 2025-11-25 has tasks of another kind, which are used for tools that are called only as tasks. Their result is a
request of its own; until that is answered, the server's questions come on the connection.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from toolcrib.mcp.client.elicit import CannotAsk
from toolcrib.mcp.client.errors import ConnectionLost, ServerUnavailable
from toolcrib.mcp.client.running import RemoteFailure, RunningCall

if TYPE_CHECKING:
    from toolcrib.mcp.client.requests import ServerRequests

__all__ = ["older_task_result", "task_result"]

POLL = 1.0  # seconds between polls where the server names none
LEAST_POLL, MOST_POLL = 0.05, 30.0
MAX_FAILURES = 5  # polls in a row that fail
CANCEL = 0.8  # seconds in which a server is told to cancel a task
POLL_TIMEOUT = 30.0  # seconds that one poll may take
MAX_INPUTS = 100  # requests that one task may make
MAX_NAME = (
    1_000  # characters of a task's id, and of the name of a request: they are sent with each poll, and saved
)
INVALID_PARAMS = -32602
RESULT = "tasks/result"


async def task_result(
    call: RunningCall,
    requests: ServerRequests,
    created: Mapping[str, Any],
    state: Mapping[str, Any] | None,
) -> dict[str, Any]:
    """The result of the task that a call created, as JSON data of a `CallToolResult`.

    Raises RemoteFailure where it failed or was cancelled, and Suspended where it waits for a person's answer.
    """
    task = _id_of(created)
    answered: set[str] = set(state["answered"]) if state else set()
    current: Mapping[str, Any] = {} if state else created
    try:
        while True:
            status = current.get("status")
            if status == "completed":
                result = current.get("result")
                return dict(result) if isinstance(result, Mapping) else {}
            if status == "failed":
                raise RemoteFailure(_why(current))
            if status == "cancelled":
                raise RemoteFailure(f"cancelled the call{_said(current)}", unknown=True)
            if isinstance(words := current.get("statusMessage"), str):
                call.report(words)
            call.extend()
            asked = current.get("inputRequests") if status == "input_required" else None
            new = (
                {key: one for key, one in asked.items() if key not in answered}
                if isinstance(asked, Mapping)
                else {}
            )
            if new:
                if any(len(key) > MAX_NAME for key in new):
                    raise _TooMany("asked something under a name that is too long", unknown=True)
                if len(answered) + len(new) > MAX_INPUTS:
                    raise _TooMany(f"asked more than {MAX_INPUTS} things in one task", unknown=True)
                save = {"kind": "task", "task": {"taskId": task}, "answered": sorted(answered)}
                call.save(save)
                responses = await requests.responses(call, new)
                await _ask(call, "tasks/update", {"taskId": task, "inputResponses": responses})
                answered |= new.keys()
            elif current:
                await asyncio.sleep(_interval(current))
            current = await _ask(call, "tasks/get", {"taskId": task})
    except (asyncio.CancelledError, CannotAsk, _TooMany):
        await _cancel(call, task)
        raise


async def older_task_result(call: RunningCall, created: Mapping[str, Any]) -> dict[str, Any]:
    """The result of a task of revision 2025-11-25, as JSON data of a `CallToolResult`. Raises RemoteFailure."""
    task, current = _id_of(created), created
    result: asyncio.Future[Mapping[str, Any]] | None = None
    try:
        while True:
            if current.get("status") == "cancelled":
                raise RemoteFailure(f"cancelled the call{_said(current)}", unknown=True)
            if isinstance(words := current.get("statusMessage"), str):
                call.report(words)
            call.extend()
            interval = _interval(current, "pollInterval")
            if result is None and current.get("status") == "working":
                await asyncio.sleep(interval)
            else:
                result = result or asyncio.ensure_future(_ask(call, RESULT, {"taskId": task}, timeout=None))
                await asyncio.wait([result], timeout=interval)
                if result.done():
                    return _older_end(current, result)
            try:
                current = await _ask(call, "tasks/get", {"taskId": task})
            except RemoteFailure:  # a server may forget a task whose result it sends
                if result is None or not (await asyncio.wait([result], timeout=POLL))[0]:
                    raise
                return _older_end(current, result)
    except asyncio.CancelledError:
        await _cancel(call, task)
        raise
    finally:
        if result is not None:
            result.cancel()
            # asyncio would report an error that nobody reads.
            result.add_done_callback(lambda ended: ended.cancelled() or ended.exception())


def _older_end(current: Mapping[str, Any], result: asyncio.Future[Mapping[str, Any]]) -> dict[str, Any]:
    """The data of a task's result. Raises RemoteFailure where the task failed, or what it gave is lost."""
    from mcp import MCPError

    failed = current.get("status") == "failed"
    try:
        data = dict(result.result())
    except MCPError as problem:
        raise RemoteFailure(f"failed: {problem.message}", unknown=not failed) from problem
    if failed and data.get("isError") is not True:
        raise RemoteFailure(_why(current))
    return data


def _id_of(created: Mapping[str, Any]) -> str:
    task = created.get("taskId")
    if not isinstance(task, str) or not task:
        raise RemoteFailure("answered with a task that has no id", unknown=True)
    if len(task) > MAX_NAME:
        raise RemoteFailure("answered with a task whose id is too long", unknown=True)
    return task


async def _cancel(call: RunningCall, task: str) -> None:
    """Tell the server to cancel a task; where that fails, nothing more can be done."""
    with suppress(Exception):
        async with asyncio.timeout(CANCEL):
            connection, headers = await call.reached()
            await connection.request("tasks/cancel", {"taskId": task}, headers=headers)


async def _ask(
    call: RunningCall, method: str, params: Mapping[str, Any], timeout: float | None = POLL_TIMEOUT
) -> Mapping[str, Any]:
    """A request about a task, tried again where it fails: each of them may be sent twice."""
    from mcp import MCPError

    failures = 0
    while True:
        try:
            connection, headers = await call.reached()
            return await connection.request(method, params, headers=headers, timeout=timeout)
        except (ConnectionLost, ServerUnavailable, MCPError) as problem:
            if isinstance(problem, MCPError) and method == RESULT:
                raise  # the error is the task's result
            if isinstance(problem, MCPError) and problem.code == INVALID_PARAMS:
                why = f"does not know its task any more ({problem.message})"
                raise RemoteFailure(why, unknown=True) from problem
            failures += 1
            if failures >= MAX_FAILURES:
                why = "does not answer any more, while a task of it may go on"
                raise RemoteFailure(why, unknown=True) from problem
            await asyncio.sleep(LEAST_POLL * 4**failures)


class _TooMany(RemoteFailure):
    """A task is given up because of what it asks."""


def _interval(task: Mapping[str, Any], field: str = "pollIntervalMs") -> float:
    given = task.get(field)
    if not isinstance(given, int | float) or isinstance(given, bool) or given != given:
        return POLL
    return (
        min(max(given, LEAST_POLL * 1000), MOST_POLL * 1000) / 1000
    )  # an integer may be too large for a float


def _why(task: Mapping[str, Any]) -> str:
    error = task.get("error")
    words = error.get("message") if isinstance(error, Mapping) else None
    return f"failed: {words}" if isinstance(words, str) and words else f"failed{_said(task)}"


def _said(task: Mapping[str, Any]) -> str:
    words = task.get("statusMessage")
    return f": {words}" if isinstance(words, str) and words else ""
