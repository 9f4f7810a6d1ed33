"""A server in this process that answers with whatever a test says, also with what breaks the protocol.

`McpToolset(in_process={"name": RawServer({...})})` connects to it as to a server of the SDK.
"""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Mapping
from typing import Any

LEGACY, MODERN = "2025-11-25", "2026-07-28"


class Refusal(Exception):
    """Answers a request with an error."""

    def __init__(self, code: int, message: str, data: Any = None) -> None:
        super().__init__(message)
        self.code, self.message, self.data = code, message, data


def tool(name: str, **fields: Any) -> dict[str, Any]:
    """A definition as a server lists it."""
    return {"name": name, "inputSchema": {"type": "object"}, **fields}


def text(words: str, **fields: Any) -> dict[str, Any]:
    """The result of a call."""
    return {"content": [{"type": "text", "text": words}], "resultType": "complete", **fields}


class RawServer:
    """Answers the requests named in `answers`: with JSON data, or with what a function of the params gives.

    `tools` is what `tools/list` answers unless `answers` says otherwise. While `gate` is not set, it answers nothing.
    """

    def __init__(
        self,
        answers: Mapping[str, Any] | None = None,
        *,
        tools: Any = (),
        protocol: str = MODERN,
        gate: asyncio.Event | None = None,
        capabilities: Any = None,
    ) -> None:
        self.tools = tools
        self.gate = gate
        self.seen: list[str] = []
        self.params: list[Any] = []
        self.ids: dict[str, Any] = {}
        self.starts = 0
        self._write: Any = None
        known = {"tools": {"listChanged": True}} if capabilities is None else capabilities
        self._answers: dict[str, Any] = {
            "tools/list": lambda params: {"tools": self.listed(), "resultType": "complete"},
            "tools/call": text("done"),
            "ping": {},
            "server/discover": Refusal(-32601, "Method not found"),
            "initialize": {
                "protocolVersion": LEGACY,
                "capabilities": known,
                "serverInfo": {"name": "raw", "version": "1"},
            },
        }
        if protocol == MODERN:
            self._answers["server/discover"] = {
                "supportedVersions": [MODERN],
                "capabilities": known,
                "resultType": "complete",
                "ttlMs": 0,
                "cacheScope": "private",
            }
        self._answers.update(answers or {})

    def listed(self) -> Any:
        return list(self.tools) if isinstance(self.tools, tuple) else self.tools

    def create_initialization_options(self) -> None:
        return None

    async def run(self, read: Any, write: Any, options: None) -> None:
        from mcp_types import JSONRPCRequest

        self.starts += 1
        if self.gate is not None:
            await self.gate.wait()
        self._write, tasks = write, set()
        try:
            async for item in read:
                self.seen.append(item.message.method)
                self.params.append(item.message.params)
                if isinstance(item.message, JSONRPCRequest):
                    self.ids[item.message.method] = item.message.id
                    task = asyncio.ensure_future(self._answer(item.message))
                    tasks.add(task)
        finally:
            for task in tasks:
                task.cancel()

    async def _answer(self, request: Any) -> None:
        from mcp.shared.message import SessionMessage
        from mcp_types import ErrorData, JSONRPCError, JSONRPCResponse

        answer = self._answers.get(request.method, Refusal(-32601, "Method not found"))
        try:
            if callable(answer):
                answer = answer(request.params or {})
                if inspect.isawaitable(answer):
                    answer = await answer
            if isinstance(answer, Refusal):
                raise answer
            message: Any = JSONRPCResponse(jsonrpc="2.0", id=request.id, result=answer)
        except Refusal as refusal:
            error = ErrorData(code=refusal.code, message=refusal.message, data=refusal.data)
            message = JSONRPCError(jsonrpc="2.0", id=request.id, error=error)
        await self._write.send(SessionMessage(message))

    async def notify(self, method: str, params: Mapping[str, Any] | None = None) -> None:
        """Send a notification."""
        from mcp.shared.message import SessionMessage
        from mcp_types import JSONRPCNotification

        given = {} if params is None else {"params": dict(params)}
        await self._write.send(SessionMessage(JSONRPCNotification(jsonrpc="2.0", method=method, **given)))

    async def crash(self) -> None:
        """End the connection, whatever is under way."""
        await self._write.aclose()
