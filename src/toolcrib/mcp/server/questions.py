"""Questions of the policy and of tools, put to the person at the client whose call asks; and events for that client."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Callable, Sequence
from typing import Any

import mcp_types as types

from toolcrib.dataclass import replace
from toolcrib.events import Event
from toolcrib.hooks import is_async
from toolcrib.mcp.elicitation import answer_to, elicitation
from toolcrib.mcp.server.served_call import CURRENT, ServedCall
from toolcrib.question import Answer, Lasting, Question, Verdict
from toolcrib.visible import escape_invisible, on_one_line

__all__ = ["ClientApprover", "Listener", "call_within"]

BY = "the MCP client's user"


def call_within(face: object) -> ServedCall | None:
    """The served call of this face in which the current code runs; None outside of one, and after its end."""
    call = CURRENT.get()
    return call if call is not None and call.face is face and not call.done else None


class ClientApprover:
    """Asks the client of the call that asks; anything else is put to the toolbox's own approver."""

    def __init__(self, face: object, own: Callable[[Any], Any] | None, lasting: bool) -> None:
        self.own = own
        self._face = face
        self._lasting = lasting

    async def __call__(self, question: Question) -> Any:
        call = self._asking()
        if call is not None:
            return (await self._answers([question], call))[0]
        return await _ask_own_approver(self.own, question)

    async def ask_all(self, questions: Sequence[Question]) -> Any:
        """The answers to several questions that were asked at one time."""
        call = self._asking()
        if call is not None:
            return await self._answers(questions, call)
        together = getattr(self.own, "ask_all", None)
        if callable(together):
            return await _ask_own_approver(together, questions)
        return [await _ask_own_approver(self.own, question) for question in questions]

    def _asking(self) -> ServedCall | None:
        call = call_within(self._face)
        return call if call is not None and call.abilities.forms else None

    async def _answers(self, questions: Sequence[Question], call: ServedCall) -> list[Answer | None]:
        if not self._lasting:
            questions = [replace(question, lastings=(Lasting.RUN,)) for question in questions]
        requests: dict[str, types.InputRequest] = {}
        for number, question in enumerate(questions):
            as_page = bool(question.url) and call.abilities.urls
            params = _page(question) if as_page else elicitation(question)
            request = {"method": "elicitation/create", "params": params}
            name = question.kind if not number else f"{question.kind}_{number + 1}"
            requests[name] = types.ElicitRequest.model_validate(request, by_name=False)
        responses = await call.ask(requests)
        return [
            self._answer(question, responses.get(name), call)
            for name, question in zip(requests, questions, strict=True)
        ]

    def _answer(self, question: Question, response: Any, call: ServedCall) -> Answer | None:
        if response is None:
            return None
        if question.url and call.abilities.urls and response.action == "accept":
            return Answer(Verdict.YES, by=BY, chosen=question.options[:1])  # yes, the address was opened
        return answer_to(question, response.model_dump(mode="json", exclude_none=True), by=BY)


def _page(question: Question) -> dict[str, Any]:
    """The params of a request that asks the person to open the question's address."""
    message = f"{on_one_line(question.reason)}:\n{escape_invisible(question.action)}"
    return {"mode": "url", "message": message, "url": question.url, "elicitationId": question.id}


async def _ask_own_approver(own: Callable[[Any], Any] | None, asked: Any) -> Any:
    """The answer of the toolbox's own approver. A sync one may wait for a person, so it runs on a thread."""
    if own is None:
        return None
    if is_async(own):
        return await own(asked)
    given = await asyncio.to_thread(own, asked)
    return await given if inspect.isawaitable(given) else given


class Listener:
    """Hands events to the served call that they were emitted in."""

    def __init__(self, face: object) -> None:
        self._face = face

    def put(self, event: Event) -> None:
        call = call_within(self._face)
        if call is not None:
            call.take(event)

    def close(self) -> None:
        """Do nothing: what waits is sent."""
