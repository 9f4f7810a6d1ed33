"""How a question reaches the client that called a tool, in both revisions of the protocol.

| revision   | how                                                                                           |
| ---------- | --------------------------------------------------------------------------------------------- |
| 2025-11-25 | the server sends a request of its own, and the call goes on with the response: `DirectPort`    |
| 2026-07-28 | the call's result is "input required"; the client sends the call again with responses: `Rounds` |

With `Rounds` the call itself stays where it is, in its task; only the request that asked for it has ended.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from typing import Any, Protocol

import mcp_types as types
from mcp.server.session import ServerSession
from mcp.shared.exceptions import MCPError
from mcp.shared.message import ServerMessageMetadata
from pydantic import BaseModel, ValidationError

from toolcrib.dataclass import dataclass

__all__ = ["Abilities", "DirectPort", "Port", "Rounds", "abilities_of", "lacking"]

RESULTS: dict[str, type[BaseModel]] = {
    "elicitation/create": types.ElicitResult,
    "sampling/createMessage": types.CreateMessageResultWithTools,
    "roots/list": types.ListRootsResult,
}


@dataclass(frozen=True, slots=True)
class Abilities:
    """What a client says that it can be asked."""

    forms: bool = False
    urls: bool = False
    sampling: bool = False
    roots: bool = False

    def answers(self, request: types.InputRequest) -> bool:
        """Whether the client can answer this request."""
        if isinstance(request, types.ElicitRequest):
            return self.urls if isinstance(request.params, types.ElicitRequestURLParams) else self.forms
        return self.sampling if isinstance(request, types.CreateMessageRequest) else self.roots


def lacking(request: types.InputRequest) -> MCPError:
    """The error for a client that did not declare the capability which a request needs."""
    needed: dict[str, Any] = (
        {"sampling": {}} if isinstance(request, types.CreateMessageRequest) else {"roots": {}}
    )
    if isinstance(request, types.ElicitRequest):
        needed = {"elicitation": {request.params.mode: {}}}
    words = f"This needs the capability {next(iter(needed))}, which the client did not declare"
    return MCPError(types.MISSING_REQUIRED_CLIENT_CAPABILITY, words, data={"requiredCapabilities": needed})


def abilities_of(capabilities: types.ClientCapabilities | None) -> Abilities:
    """What the declared capabilities of a client allow to ask."""
    if capabilities is None:
        return Abilities()
    elicitation = capabilities.elicitation
    return Abilities(
        # before 2025-11-25, the capability has no fields and means forms
        forms=elicitation is not None and (elicitation.form is not None or elicitation.url is None),
        urls=elicitation is not None and elicitation.url is not None,
        sampling=capabilities.sampling is not None,
        roots=capabilities.roots is not None,
    )


class Port(Protocol):
    """Puts requests to the client of a call."""

    async def ask(self, requests: Mapping[str, types.InputRequest], *, anew: bool) -> dict[str, Any]:
        """The client's responses by name, as objects of the SDK; without those that did not come.

        `anew`: responses that the client sent before it was asked do not count.
        """
        ...


class DirectPort:
    """Asks by requests of the server on the stream of the call's own request."""

    def __init__(self, session: ServerSession, request_id: Any, seconds: float) -> None:
        self._session = session
        self._related = ServerMessageMetadata(related_request_id=request_id)
        self._seconds = seconds

    async def ask(self, requests: Mapping[str, types.InputRequest], *, anew: bool) -> dict[str, Any]:
        answers = await asyncio.gather(*(self._one(request) for request in requests.values()))
        return {name: answer for name, answer in zip(requests, answers, strict=True) if answer is not None}

    async def _one(self, request: types.InputRequest) -> BaseModel | None:
        try:
            async with asyncio.timeout(self._seconds):
                return await self._session.send_request(
                    request, RESULTS[request.method], metadata=self._related
                )
        except (TimeoutError, MCPError, ValidationError):  # no answer, or none that says anything
            return None


class Rounds:
    """Asks by results that require input. `questions` are those that wait for a response.

    `given` are responses that came with the first request: a client may know by name what a tool will ask.
    """

    def __init__(self, seconds: float, given: Mapping[str, Any] | None = None) -> None:
        self._seconds = seconds
        self._given = dict(given or {})
        self._asked = 0
        self._names: set[str] = set()
        self._waiting: dict[str, tuple[types.InputRequest, asyncio.Future[Any]]] = {}
        self.news = asyncio.Event()
        self.on_change: Callable[[], None] = lambda: None

    @property
    def questions(self) -> dict[str, types.InputRequest]:
        """The requests that wait, by the name that the client is told."""
        return {name: request for name, (request, _) in self._waiting.items()}

    async def ask(self, requests: Mapping[str, types.InputRequest], *, anew: bool) -> dict[str, Any]:
        loop, names = asyncio.get_running_loop(), {}
        for name, request in requests.items():
            self._asked += 1
            # A name is used once: an answer that comes twice must not answer the next question.
            names[name] = shown = f"{name}_{self._asked}" if name in self._names else name
            self._names.add(shown)
            self._waiting[shown] = (request, loop.create_future())
        futures = {name: self._waiting[shown][1] for name, shown in names.items()}
        if not anew:
            self.answer({names[name]: self._given.pop(name) for name in requests if name in self._given})
        self.news.set()
        self.on_change()
        try:
            await asyncio.wait(futures.values(), timeout=self._seconds)
            return {name: future.result() for name, future in futures.items() if future.done()}
        finally:
            for shown in names.values():
                self._waiting.pop(shown, None)

    def answer(self, responses: Mapping[str, Any]) -> None:
        """Hand in what the client responded. What answers nothing that waits, or is no such response, is ignored."""
        for name, response in responses.items():
            waiting = self._waiting.get(name)
            if waiting is None or waiting[1].done():
                continue
            request, future = waiting
            data = (
                response.model_dump(mode="json", by_alias=True)
                if isinstance(response, BaseModel)
                else response
            )
            try:
                future.set_result(RESULTS[request.method].model_validate(data, by_name=False))
            except ValidationError:
                continue
            del self._waiting[name]
            self.on_change()
