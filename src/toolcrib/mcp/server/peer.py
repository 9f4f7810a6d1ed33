"""What a running tool may ask of the MCP client that called it, beyond approvals and questions.

Approvals (`ctx.ask`) and questions to the user (`ctx.ask_user`) reach the client by themselves. This is for tools that
want what only this protocol has: forms with a schema of their own, pages to open, the client's model, its folders.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import mcp_types as types
from pydantic import TypeAdapter, ValidationError

from toolcrib.errors import ToolError
from toolcrib.mcp.server.asking import lacking
from toolcrib.mcp.server.served_call import CURRENT, ServedCall

__all__ = ["McpPeer", "peer_of_call"]

REQUEST: TypeAdapter[types.InputRequest] = TypeAdapter(types.InputRequest)
NO_ANSWER = "The connected client cannot answer this, or did not: {}. Go on without it."


class McpPeer:
    """The client whose call a tool runs in. `abilities` says what it can be asked."""

    def __init__(self, call: ServedCall) -> None:
        self._call = call
        self.abilities = call.abilities

    async def elicit(self, message: str, schema: Mapping[str, Any]) -> dict[str, Any]:
        """Show a form: the result has an `action` (accept, decline, cancel) and, if accepted, its `content`.

        `schema` is a flat object of primitives. ToolError if the client cannot be asked, or its content does not fit.
        """
        params = {"mode": "form", "message": message, "requestedSchema": dict(schema)}
        return await self._one("elicitation", "elicitation/create", params)

    async def elicit_url(self, message: str, url: str, elicitation_id: str) -> dict[str, Any]:
        """Ask the user to open a page, for what must not pass through the client; the result has an `action`."""
        params = {"mode": "url", "message": message, "url": url, "elicitationId": elicitation_id}
        return await self._one("elicitation", "elicitation/create", params)

    async def sample(self, params: Mapping[str, Any]) -> dict[str, Any]:
        """Let the client's model answer; `params` are those of `sampling/createMessage`, in their wire form."""
        return await self._one("sampling", "sampling/createMessage", params)

    async def roots(self) -> list[dict[str, Any]]:
        """The folders that the client works in."""
        result = await self._one("roots", "roots/list", None)
        found: list[dict[str, Any]] = result.get("roots", [])
        return found

    async def ask(self, requests: Mapping[str, Mapping[str, Any]]) -> dict[str, dict[str, Any]]:
        """Put several requests (`{"method": …, "params": …}`) to the client at one time; its results by name.

        ToolError if one is not answered. Since revision 2026-07-28, the call of a tool that asks for what the client
        did not declare ends as an error of the protocol, which says so to the client.
        """
        parsed = {name: _request(request) for name, request in requests.items()}
        answers = await self._call.ask(parsed, anew=False)
        if missing := sorted(parsed.keys() - answers.keys()):
            beyond = [parsed[name] for name in missing if not self.abilities.answers(parsed[name])]
            self._call.lacking = lacking(beyond[0]) if beyond else self._call.lacking
            raise ToolError(NO_ANSWER.format(", ".join(parsed[name].method for name in missing)))
        return {name: _wire(parsed[name], answers[name]) for name in parsed}

    async def log(self, level: types.LoggingLevel, data: Any, logger: str | None = None) -> None:
        """Send a log message to the client, if it wants messages of this level."""
        await self._call.log(level, data, logger)

    async def progress(self, progress: float, total: float | None = None, message: str = "") -> None:
        """Send progress in the tool's own numbers. `ctx.report(progress=…)` does the same with a fraction."""
        await self._call.progress(progress, total, message)

    async def end_stream(self) -> None:
        """End the HTTP stream of the call's request for now; the client opens another one, and misses nothing.

        For long calls behind proxies, in revision 2025-11-25; it does nothing elsewhere.
        """
        if self._call.end_stream is not None:
            await self._call.end_stream()

    async def _one(self, name: str, method: str, params: Mapping[str, Any] | None) -> dict[str, Any]:
        request = {"method": method} if params is None else {"method": method, "params": dict(params)}
        return (await self.ask({name: request}))[name]


def peer_of_call() -> McpPeer | None:
    """The client whose call this code runs in; None outside of a served call, or after its end."""
    call = CURRENT.get()
    return None if call is None or call.done else McpPeer(call)


def _request(data: Mapping[str, Any]) -> types.InputRequest:
    try:
        return REQUEST.validate_python(dict(data), by_alias=True, by_name=False)
    except ValidationError as problem:
        raise ToolError(f"This request to the client is not valid: {problem.errors()[0]['msg']}") from None


def _wire(request: types.InputRequest, answer: Any) -> dict[str, Any]:
    data: dict[str, Any] = answer.model_dump(mode="json", by_alias=True, exclude_none=True)
    if isinstance(request, types.ElicitRequest) and data.get("action") == "accept":
        _check_content(request.params, data)
    return data


def _check_content(params: types.ElicitRequestParams, data: dict[str, Any]) -> None:
    """Raise ToolError where the content of a form does not fit the schema that was sent."""
    if not isinstance(params, types.ElicitRequestFormParams):
        return
    from toolcrib.schema.validator import offline_validator

    schema = dict(params.requested_schema)
    problem = next(iter(offline_validator(schema).iter_errors(data.get("content") or {})), None)
    if problem is not None:
        raise ToolError(f"The client's answer does not fit the form: {problem.message}")
