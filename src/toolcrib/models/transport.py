"""The common part of all transports: sends a request and reads the answer's bytes through a codec.

The SDK's raw bytes go through our own event reader, so that fields which the SDK does not know are kept.
"""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import AsyncGenerator, Mapping
from contextlib import AbstractAsyncContextManager, aclosing
from functools import partial
from importlib import import_module
from typing import Any, Self

from toolcrib.codecs.codec import Codec, Decoder, ModelError, last_chunks, shortened
from toolcrib.codecs.left_out import left_out
from toolcrib.codecs.pairing import CONTINUES
from toolcrib.codecs.sse import JSONEvents
from toolcrib.codecs.unread_calls import answer_to
from toolcrib.codecs.wire_json import encodable, own_extras, wire_value
from toolcrib.conversation_cache import cache_of
from toolcrib.dataclass import replace
from toolcrib.mending import mend, notes_on_one_line
from toolcrib.merged_fields import merged
from toolcrib.messages import Chunk, NoticeChunk, Request, Response, RestartChunk, RetryChunk
from toolcrib.models.answer_body import (
    ErrorResponse,
    EventReader,
    RawResponse,
    StreamedBody,
    parsed,
    read_body,
)
from toolcrib.models.error_answers import SHORTEST_KEY, body_of, seconds_to_wait, where_it_points, without_key
from toolcrib.models.loop_clients import LoopClients
from toolcrib.models.model import chunks_of, counted_if_left
from toolcrib.models.prices import Prices, priced
from toolcrib.models.providers import Missing, host_of
from toolcrib.models.server_limits import lacking_in
from toolcrib.retry import Retry
from toolcrib.visible import counted, escape_invisible

MAX_RETRIES = 2
MAX_TOLD = 10_000  # notes on conversations that are remembered, so that each is said once
log = logging.getLogger("toolcrib")
HTTP_MODULES = frozenset({"httpx", "httpx2", "httpcore", "httpcore2", "h11", "h2", "ssl"})


class Transport:
    """A model behind an SDK. A subclass makes the client and sends a body with it.

    One client serves each event loop: the SDKs' connection pools belong to the loop that opened them. It is closed
    when that loop ends (`asyncio.run`, `run_sync`), or by `aclose` and `async with`. The SDK, in `modules`, is
    imported in a thread with the first request, so that the event loop goes on. A request that failed with a
    retryable error is sent again, at most `max_retries` times, after the delay that the server asked for or a
    growing one; `deadline` (seconds) limits all attempts together. The SDKs' own retries
    are switched off. Where the provider does not state an answer's cost, it is computed from `prices` (None:
    the default prices).
    """

    sdk_name: str
    extra: str
    modules: tuple[str, ...] = ()

    def __init__(
        self,
        model: str,
        codec: Codec,
        body: Mapping[str, Any] | None = None,
        *,
        max_retries: int | None = None,
        deadline: float | None = None,
    ) -> None:
        if dialect := getattr(codec, "dialect", ""):
            from toolcrib.schema.dialects import dialect_named

            dialect_named(dialect)
        self.model = model
        self.codec = codec
        self.retry = Retry((MAX_RETRIES if max_retries is None else max_retries) + 1, 0.5, max_delay=60.0)
        self.deadline = deadline
        self.prices: Prices | None = None
        self.streams = True  # answers to requests with tools, as far as is known
        self._body = dict(body or {})
        self._clients = LoopClients(self._close)
        self._told: set[str] = set()

    @property
    def name(self) -> str:
        return f"{self.codec.provider}:{self.model}"

    @property
    def target(self) -> str:
        """The name of the server in `guided.TARGETS`, by which constraints are lowered for it."""
        from toolcrib.guided.targets import target_for

        codec = getattr(self.codec, "base", self.codec)
        return target_for(codec.name, codec.provider)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.model!r}, provider={self.codec.provider!r})"

    async def stream(self, request: Request) -> AsyncGenerator[Chunk | Response, None]:
        """The answer's chunks as they come, then exactly one Response. Raises ModelError.

        A `RetryChunk` says that an attempt failed and that another begins after a pause. A `RestartChunk` before it
        says that the chunks so far do not count.
        """
        client = await self._client()
        ends, attempt = self._ends(), 0
        while True:
            attempt += 1
            handed_out, asked = False, (self.codec, self.streams)
            answer = self._streamed(client, request, ends)
            try:
                async for item in answer if ends is None else within(answer, ends):
                    handed_out = True
                    yield item
                return
            except TimeoutError:
                raise self._too_late() from None
            except ModelError as error:
                failed, problem = error, error.message
            finally:
                await answer.aclose()
            unread, learned = answer_to(failed, request), self._learned(failed, request, asked)
            delay = self._pause(attempt, failed, ends) if unread is None and learned is None else 0.0
            with counted_if_left(request, failed.usage):
                if handed_out:
                    yield RestartChunk(problem)
                for chunk in () if unread is None else chunks_of(unread):
                    yield chunk
            if unread is not None:
                yield unread
                return
            if learned:
                yield NoticeChunk(learned)
            if learned is None:
                yield RetryChunk(problem, delay, attempt + 1, self.retry.attempts, failed.usage)
            await asyncio.sleep(delay)

    async def respond(self, request: Request) -> Response:
        """The whole answer. Raises ModelError."""
        client = await self._client()
        ends, attempt = self._ends(), 0
        while True:
            attempt += 1
            codec = self.codec
            try:
                async with asyncio.timeout_at(ends):
                    return await self._responded(client, request, ends)
            except TimeoutError:
                raise self._too_late() from None
            except ModelError as error:
                unread, learned = answer_to(error, request), self._learned(error, request, (codec, False))
                if unread is not None:
                    return unread
                if learned:
                    log.warning("%s", learned)
                delay = self._pause(attempt, error, ends) if learned is None else 0.0
            await asyncio.sleep(delay)

    def _learned(self, error: ModelError, request: Request, asked: tuple[Codec, bool]) -> str | None:
        """Adapt to an error that says what the server cannot do: later requests are sent otherwise. Returns words for
        the operator, "" if another request has reported it already; None for any other error.

        `asked` is how the request that failed was sent: its codec, and whether the answer was to stream.
        """
        codec, streamed = asked
        lacking = lacking_in(error) if request.tools else ""
        if lacking == "streaming" and streamed:
            news, self.streams = self.streams, False
            return f"{self.name} streams no answers with tools, so each comes as a whole" if news else ""
        if lacking != "tools":
            return None
        from toolcrib.codecs.text.codec import TextCodec

        if codec is not self.codec:
            return ""
        if isinstance(codec, TextCodec):
            return None
        text = self.codec = TextCodec(codec, None, self.model)
        return (
            f"{self.name} takes no tools, so its calls are written as text, in the format {text.format.name}"
        )

    def _ends(self) -> float | None:
        return None if self.deadline is None else asyncio.get_running_loop().time() + self.deadline

    def _too_late(self) -> ModelError:
        assert self.deadline is not None  # else no answer is too late
        return ModelError(
            f"{self.name} did not answer within {counted(self.deadline, 'second')}", retryable=True
        )

    def _pause(self, attempt: int, error: ModelError, ends: float | None) -> float:
        """The seconds to wait before the next attempt, which are logged. Raises the error if there is no next attempt.

        Where the server asked for a wait that is not kept, the error says why.
        """
        delay = self.retry.delay_after(attempt, error, random.random())
        if not error.retryable:
            raise error
        if attempt >= self.retry.attempts:
            why = "no attempt is left"
        elif (error.retry_after or 0) > self.retry.max_delay:
            why = f"at most {self.retry.max_delay:g} s are waited"
        elif ends is not None and asyncio.get_running_loop().time() + delay >= ends:
            why = f"the deadline of {self.deadline:g} s comes before"
        else:
            words = "%s; trying again in %.3g s (attempt %d of %d)"
            log.warning(words, error.message, delay, attempt + 1, self.retry.attempts)
            return delay
        if error.retry_after:
            error.reworded(f"{error.message} (it asks to wait {error.retry_after:g} s, but {why})")
        raise error

    async def _streamed(
        self, client: Any, request: Request, ends: float | None
    ) -> AsyncGenerator[Chunk | Response, None]:
        """One attempt at a streamed answer."""
        if not self.streams and request.tools:
            response = await self._responded(client, request, ends)
            with counted_if_left(request, response.usage):
                for chunk in chunks_of(response):
                    yield chunk
            yield response
            return
        body = self._request(request, stream=True)
        decoder, given = self.codec.decoder(request), False
        whole: Response | None = None
        try:
            async with (
                self._send(client, body) as raw,
                aclosing(StreamedBody(raw, self._events(), decoder, ends)) as answer,
            ):
                # A server that does not stream, or whose status hides a failure, answers in one piece.
                if raw.headers.get("content-type", "").partition(";")[0].strip() == "application/json":
                    plain: bytes | None = await read_body(raw, ends)
                else:
                    async with aclosing(answer.events()) as events:
                        async for event in events:
                            for chunk in decoder.feed(event):
                                yield chunk
                    plain = answer.plain
                if plain is not None:
                    whole = await parsed(partial(self._whole, request=request), plain, len(plain))
                for chunk in last_chunks(decoder) if whole is None else chunks_of(whole):
                    yield chunk
                response = whole or self._priced(decoder.finish())
                given = True
                yield response
                await answer.rest()
        except ModelError as known:
            raise self._named(known) from None
        except (asyncio.CancelledError, GeneratorExit):
            begun = whole or self._priced_partial(_partial(decoder))
            if not given and begun is not None and request.lost is not None:
                request.lost(begun.usage)
            raise
        except Exception as problem:
            if given:
                return
            error, cause = self._problem(problem)
            error.partial = self._priced_partial(_partial(decoder))
            raise error from cause

    async def _responded(self, client: Any, request: Request, ends: float | None) -> Response:
        """One attempt at a whole answer."""
        body = self._request(request, stream=False)
        try:
            async with self._send(client, body) as raw:
                data = await read_body(raw, ends)
            return await self._read(data, request)
        except ModelError as known:
            raise self._named(known) from None
        except Exception as problem:
            error, cause = self._problem(problem)
            raise error from cause

    def missing(self) -> Missing | None:
        """What the model certainly lacks before anything is sent, such as a key; None if nothing is known to lack."""
        return None

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *exc: object) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        """Close the connections, also those of other loops that still run. The model can be used again."""
        await self._clients.aclose()

    @staticmethod
    async def _close(client: Any) -> None:
        """Close a client; called on the loop that opened it."""
        await client.close()

    def _make_client(self) -> Any:
        raise NotImplementedError

    def _send(self, client: Any, body: dict[str, Any]) -> AbstractAsyncContextManager[RawResponse]:
        raise NotImplementedError

    def _events(self) -> EventReader:
        """The reader of the server's framing: server-sent events, unless a subclass overrides it."""
        return JSONEvents()

    async def _client(self) -> Any:
        """The client of the running loop. Raises ModelError if the model lacks something, or its SDK."""
        if (client := self._clients.of_this_loop()) is not None:
            return client
        if missing := self.missing():
            raise ModelError(
                f"no {missing.what} for {self.name}: set {missing.variables[0]}, or pass {missing.option}="
            )
        try:
            return await self._clients.open(self._made_client)
        except ImportError as absent:
            raise ModelError(
                f"model {self.name} needs the {self.sdk_name} package: pip install 'toolcrib[{self.extra}]'"
            ) from absent

    def _made_client(self) -> Any:
        """A client of the SDK, which is imported first."""
        for name in self.modules:
            import_module(name)
        return self._make_client()

    async def _read(self, data: bytes, request: Request) -> Response:
        return await parsed(partial(self._whole, request=request), data, len(data))

    def _whole(self, data: bytes, request: Request) -> Response:
        try:
            body = wire_value(data)
        except (ValueError, RecursionError):
            body = None
        if not isinstance(body, dict):
            text = data[:200].decode("utf-8", "replace") or "it is empty"
            raise ModelError(f"{self.name} answered with something that is not a JSON object: {text}", True)
        return self._priced(self.codec.response(body, request))

    def _priced(self, response: Response) -> Response:
        return priced(response, self.codec.provider, self.model, self.prices)

    def _priced_partial(self, partial: Response | None) -> Response | None:
        return None if partial is None else self._priced(partial)

    def _problem(self, problem: Exception) -> tuple[ModelError, Exception | None]:
        """An exception of the SDK, or of the HTTP client below it, as ours, with the cause that may be shown.

        Any other is raised again.
        """
        if isinstance(
            problem.__cause__, ErrorResponse
        ):  # an SDK takes what a hook raises for a lost connection
            problem = problem.__cause__
        module = type(problem).__module__.partition(".")[0]
        status = getattr(problem, "status_code", None)
        if isinstance(status, int) and (module == self.sdk_name or isinstance(problem, ErrorResponse)):
            headers = getattr(getattr(problem, "response", None), "headers", {})
            said = self.codec.error(body_of(problem), status, seconds_to_wait(headers))
            words = f"{self.name} answered {status}: {self._shown(said.message)}"
            if advice := where_it_points(status, headers) or self._advice(status):
                words += f" ({advice})"
            told = {"true": True, "false": False}.get(headers.get("x-should-retry", ""), said.retryable)
            error = ModelError(words, told, status, said.retry_after)
            error.unread = said.unread
            return error, None
        if module == self.sdk_name or module in HTTP_MODULES or isinstance(problem, OSError):
            words = str(problem) or type(problem).__name__
            below = str(problem.__cause__ or "")
            cause = f" ({below})" if below and below not in words else ""
            host = host_of(getattr(self, "base_url", ""))
            at = f", at {host}" if host not in self.name else ""
            shown = self._shown(words + cause)
            error = ModelError(f"the connection to {self.name} failed: {shown}{at}", retryable=True)
            return error, problem if shown == words + cause else None
        raise problem

    def _advice(self, status: int) -> str:
        """A hint for the caller about the usual cause of this HTTP status."""
        return ""

    def _shown(self, words: str) -> str:
        """A server's words as a person and a log may see them: no more than a few, without control characters, and
        without our keys, which servers and HTTP clients echo.
        """
        for key in self._keys():
            words = without_key(words, key)
        return shortened(escape_invisible(words))

    def _named(self, error: ModelError) -> ModelError:
        """A codec's error as a person may see it, with the model's name, which the codec does not know."""
        words = self._shown(error.message)
        error.partial = self._priced_partial(error.partial)
        return error.reworded(words if self.name in words else f"{self.name}: {words}")

    def _keys(self) -> set[str]:
        given = (
            getattr(client, name, None)
            for client in self._clients.all()
            for name in ("api_key", "auth_token")
        )
        return {key.strip() for key in given if isinstance(key, str) and len(key.strip()) >= SHORTEST_KEY}

    def _request(self, request: Request, *, stream: bool) -> dict[str, Any]:
        """The request body. The model's own `body` reaches the codec as extras, so that the codec merges tools
        and adapts the rest.
        """
        provider = self.codec.provider
        extras = merged(own_extras(request, provider), self._body)
        self._tell(request, continues=any(extras.get(name) for name in CONTINUES))
        whole = replace(request, extras={**request.extras, provider: extras})
        return dict(encodable(self.codec.request(whole, model=self.model, stream=stream)))

    def _tell(self, request: Request, *, continues: bool) -> None:
        """Say in the log, once, what of a conversation had to be mended and what of it is not sent."""
        cache, messages = cache_of(request), request.messages
        is_valid = cache is not None or continues  # a continued conversation has its calls on the server
        notes = [] if is_valid else mend(messages)[1]
        parts = (part for message in messages for part in message.parts) if cache is None else cache.opaque
        news = [*map(str, notes), *left_out(parts, self.codec)]
        news = [text for text in news if text not in self._told]
        if not news:
            return
        self._told = {*(self._told if len(self._told) < MAX_TOLD else ()), *news}
        log.warning("the conversation for %s: %s", self.name, notes_on_one_line(news))


async def within(
    answer: AsyncGenerator[Chunk | Response, None], ends: float
) -> AsyncGenerator[Chunk | Response, None]:
    """The items of a stream; TimeoutError when one has not come by `ends`, on the event loop's clock.

    The deadline is checked only while an item is awaited: it never interrupts the consumer's own work between two
    items, and does not count after the answer.
    """
    late: float | None = ends
    while late is not None:
        try:
            async with asyncio.timeout_at(late):
                item = await anext(answer)
        except StopAsyncIteration:
            return
        yield item
        if isinstance(item, Response):
            late = None
    async for item in answer:
        yield item


def _partial(decoder: Decoder) -> Response | None:
    """The partial answer of a stream that broke off; None if it cannot be built."""
    try:
        return decoder.finish()
    except ModelError as error:
        return error.partial
