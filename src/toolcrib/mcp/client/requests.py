"""What a server asks of us while a call runs: questions to the person, answers of a model, the workspace's folders.

There are two ways. A server of an older revision sends a request of its own on the open connection, which names no
call: it is taken as belonging to the call that runs, and is declined where calls of several runs do. A server of the
stateless revisions ends its answer with the requests, and is called again with the responses (`calling.py`). Both end
here.
"""

from __future__ import annotations

import asyncio
from collections.abc import Generator, Iterable, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from toolcrib.errors import Suspended, ToolError
from toolcrib.event_loops import in_loop
from toolcrib.mcp.client.elicit import CannotAsk, input_request, response_to
from toolcrib.mcp.client.running import RunningCall
from toolcrib.mcp.client.sampling import Sampling, sampled
from toolcrib.mcp.content import APP_MIME_TYPE, as_wire
from toolcrib.visible import on_one_line

if TYPE_CHECKING:
    from toolcrib.models.model import Model

__all__ = ["ServerRequests"]

TASKS = "io.modelcontextprotocol/tasks"
APPS = "io.modelcontextprotocol/ui"
MAX_REQUESTS = 20  # of one round
MAX_QUESTIONS = 40  # to the person, of one call
INVALID_REQUEST = -32600


class ServerRequests:
    """Answers what one server asks.

    Args:
        server: The server's name in the user's configuration.
        elicitation: Whether it may put questions to the person.
        credentials: Whether its forms may ask for passwords and keys. They should not.
        sampling: A model that it may ask, or how it may; None where it may not.
        roots: Folders that it is told of, as the ones to work in; empty where it is told of none.
        apps: Whether somebody shows the user interfaces that its results may have (MCP Apps).
        tasks: Whether it may answer a call with a task that goes on.
        log_level: The least level of its log messages that are shown; empty for none.
    """

    def __init__(
        self,
        server: str,
        *,
        elicitation: bool = True,
        credentials: bool = False,
        sampling: Model | Sampling | None = None,
        roots: Iterable[str | Path] = (),
        apps: bool = False,
        tasks: bool = True,
        log_level: str = "info",
    ) -> None:
        self.server = server
        self.log_level = log_level
        self._elicitation = elicitation
        self._credentials = credentials
        self._sampling = (
            sampling if sampling is None or isinstance(sampling, Sampling) else Sampling(sampling)
        )
        self._roots = tuple(Path(root).absolute() for root in roots)
        self._apps = apps
        self.tasks = tasks
        self._calls: list[RunningCall] = []

    # -- the SDK's side

    def client_options(self) -> dict[str, Any]:
        """See `RequestHandlers`."""
        from mcp.client import advertise

        options: dict[str, Any] = {"logging_callback": self._logged}
        if self._elicitation:
            options["elicitation_callback"] = self._elicit
        if self._sampling is not None:
            options["sampling_callback"] = self._sample
        if self._roots:
            options["list_roots_callback"] = self._list_roots
        announced: dict[str, dict[str, Any]] = {TASKS: {}} if self.tasks else {}
        if self._apps:
            announced[APPS] = {"mimeTypes": [APP_MIME_TYPE]}
        if announced:
            options["extensions"] = [advertise(name, settings) for name, settings in announced.items()]
        return options

    async def _elicit(self, context: Any, params: Any) -> Any:
        from mcp_types import ElicitResult

        answer = await self._asked("elicitation/create", params)
        return answer if not isinstance(answer, dict) else ElicitResult.model_validate(answer)

    async def _sample(self, context: Any, params: Any) -> Any:
        from mcp_types import CreateMessageResult

        answer = await self._asked("sampling/createMessage", params)
        return answer if not isinstance(answer, dict) else CreateMessageResult.model_validate(answer)

    async def _list_roots(self, context: Any) -> Any:
        from mcp_types import ListRootsResult

        return ListRootsResult.model_validate(self.roots())

    async def _logged(self, params: Any) -> None:
        call = self._call_that_asks()
        if call is not None:
            call.loop.call_soon_threadsafe(call.log, params.level, params.data)

    async def _asked(self, method: str, params: Any) -> Any:
        """The answer to a request of an older server: a result, or an `ErrorData`."""
        from mcp_types import ErrorData

        call = self._call_that_asks()
        request = {"method": method, "params": as_wire(params)}
        try:
            answer = None if call is None else await in_loop(call.loop, self._answered_for(call, request))
        except CannotAsk as refusal:
            return ErrorData(code=INVALID_REQUEST, message=str(refusal))
        if answer is None and method == "elicitation/create":
            return {"action": "cancel"}
        return answer or ErrorData(
            code=INVALID_REQUEST, message="no call is running that this could belong to"
        )

    async def _answered_for(self, call: RunningCall, request: dict[str, Any]) -> Any:
        """The answer to a request that the server made on its connection; None if the call is over before.

        A question that a person has not answered by then is withdrawn.
        """
        work = self.responses(call, {"it": request})
        context = call.context.copy()  # another call may have opened the connection
        answer = asyncio.get_running_loop().create_task(work, context=context)
        first: list[asyncio.Future[Any]] = [answer, call.over]
        try:
            await asyncio.wait(first, return_when=asyncio.FIRST_COMPLETED)
            if answer.done():
                return answer.result()["it"]
        except Suspended as suspended:  # the connection cannot be saved
            call.interrupt(suspended)  # the tool may run twice: it is called anew when the answer is there
        finally:
            answer.cancel()
        await call.ended()
        return None

    def _call_that_asks(self) -> RunningCall | None:
        """The call that a request belongs to: the last one, if all that run are of one run."""
        calls = [call for call in self._calls if not call.over.done()]
        return calls[-1] if len(set(map(_run_of, calls))) == 1 else None

    # -- calls

    @contextmanager
    def serving(self, call: RunningCall) -> Generator[None]:
        """While a call runs, what the server asks belongs to it."""
        self._calls.append(call)
        try:
            yield
        finally:
            self._calls.remove(call)

    async def responses(self, call: RunningCall, requests: Mapping[str, Any]) -> dict[str, Any]:
        """The responses to requests, by their keys, as JSON data. Questions to the person are put together.

        Raises CannotAsk for what is not allowed or no request, and Suspended where a question waits for its answer.
        """
        if len(requests) > MAX_REQUESTS:
            raise CannotAsk(f"the server {self.server!r} asked {len(requests):,} things at once")
        by_method: dict[str, dict[str, Mapping[str, Any]]] = {}
        for key, request in requests.items():
            method = request.get("method") if isinstance(request, Mapping) else None
            params = request.get("params") if isinstance(request, Mapping) else None
            by_method.setdefault(str(method), {})[key] = params if isinstance(params, Mapping) else {}
        responses: dict[str, Any] = {}
        elicited = by_method.pop("elicitation/create", {})
        if elicited:
            responses |= await self._elicited(call, elicited)
        for key in by_method.pop("roots/list", {}):
            responses[key] = self.roots()
        for key, params in by_method.pop("sampling/createMessage", {}).items():
            if self._sampling is None:
                raise CannotAsk(
                    f"the server {self.server!r} needs an answer of a model, which it may not ask"
                )
            responses[key] = await sampled(call, call.concealed(params), self._sampling)
        if by_method:
            unknown = on_one_line(", ".join(sorted(by_method)), 200)
            raise CannotAsk(f"the server {self.server!r} asked for what nobody knows: {unknown}")
        return {key: responses[key] for key in requests}

    async def _elicited(self, call: RunningCall, asked: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
        """The person's answers. What is refused, or cannot be asked, is told to the model and the person."""
        if not self._elicitation:
            raise CannotAsk(f"the server {self.server!r} asked the user something, which it may not")
        call.questions += len(asked)
        if call.questions > MAX_QUESTIONS:
            raise CannotAsk(
                f"the server {self.server!r} asked the user more than {MAX_QUESTIONS} things in one call"
            )
        responses: dict[str, Any] = {}
        questions = {}
        for key, params in asked.items():
            try:
                shown = call.concealed(params, words=False)  # the server knows the names of its fields
                questions[key] = input_request(self.server, shown, credentials=self._credentials)
            except ValueError as problem:
                why = on_one_line(str(problem), 300)
                raise CannotAsk(f"the server {self.server!r} asked for what cannot be asked: {why}") from None
            except CannotAsk as refusal:
                call.remarks.append(f"{refusal}; this was refused")
                call.ctx.note(f"Refused: {refusal}.")
                responses[key] = {"action": "decline"}
        if questions:
            try:
                with self._clocks_stopped(call):
                    answers = await call.ctx._connected().ask_inputs(call.ctx, list(questions.values()))
            except ToolError as refusal:  # nobody can be asked here, or the call cannot wait
                call.remarks.append(on_one_line(refusal.message.rstrip("."), 500))
                answers = [None] * len(questions)
            for (key, question), answer in zip(questions.items(), answers, strict=True):
                responses[key] = response_to(question, answer)
        return responses

    @contextmanager
    def _clocks_stopped(self, call: RunningCall) -> Generator[None]:
        """Stop the clocks of all calls of a run on this server, since which of them asks is not always known."""
        with ExitStack() as stack:
            for other in {call, *(one for one in self._calls if _run_of(one) == _run_of(call))}:
                stack.enter_context(other.paused())
                deadline = other.ctx._deadline
                if other is not call and deadline is not None:
                    stack.enter_context(deadline.paused())
            yield

    def roots(self) -> dict[str, Any]:
        """The folders to work in, as the result of `roots/list`."""
        return {"roots": [{"uri": root.as_uri(), "name": root.name} for root in self._roots]}


def _run_of(call: RunningCall) -> str:
    """The outermost run that a call belongs to."""
    return call.ctx.key.run.partition("/")[0]
