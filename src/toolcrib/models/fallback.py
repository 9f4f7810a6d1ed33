"""Several models as one: when the first does not answer, the next is asked."""

from __future__ import annotations

import logging
from collections.abc import AsyncGenerator, Iterable
from contextlib import AsyncExitStack
from typing import Any, Self

from toolcrib.codecs.codec import LONGEST_WORDS, shortened
from toolcrib.errors import is_object_with
from toolcrib.messages import Chunk, FallbackChunk, NoticeChunk, Request, Response, RestartChunk, RetryChunk
from toolcrib.models.model import Model, ModelError, counted_if_left

log = logging.getLogger("toolcrib")


class Fallback:
    """A model that asks its models in their order until one answers to the end.

    An answer that broke off is discarded: a `RestartChunk` follows its chunks, and its calls never run. Each
    request starts with the first model again. `Response.model` names the model that answered.

    >>> from toolcrib.models import Scripted
    >>> Fallback([Scripted([{"error": "overloaded"}]), Scripted([{"text": "Hello."}])]).name
    'scripted,scripted'
    """

    def __init__(self, models: Iterable[Model]) -> None:
        self.models = tuple(models) if isinstance(models, Iterable) else (models,)
        for model in self.models:
            if not is_object_with(model, "stream"):
                raise TypeError(
                    f"models must be a list of Models, such as [resolve_model(name)]; got {model!r}"
                )
        if not self.models:
            raise ValueError("a fallback list needs at least one model")

    @property
    def name(self) -> str:
        return ",".join(model.name for model in self.models)

    @property
    def target(self) -> str:
        """The name of the server in `guided.TARGETS`, if it is the same for all models; else ""."""
        targets = {getattr(model, "target", "") for model in self.models}
        return targets.pop() if len(targets) == 1 else ""

    @property
    def cache_seconds(self) -> float | None:
        """How long the first model's provider keeps a prompt in its cache; None: not known."""
        seconds: float | None = getattr(self.models[0], "cache_seconds", None)
        return seconds

    def __repr__(self) -> str:
        return f"Fallback([{', '.join(map(repr, self.models))}])"

    async def stream(self, request: Request) -> AsyncGenerator[Chunk | Response, None]:
        """The chunks of the first model that answers to the end, then its Response. Raises ModelError."""
        errors: list[ModelError] = []
        for model in self.models:
            answer: Any = model.stream(request)
            handed_out = False
            try:
                async for item in answer:
                    handed_out |= not isinstance(item, RetryChunk | FallbackChunk | NoticeChunk)
                    yield item
                return
            except ModelError as error:
                errors.append(error)
            finally:
                closing = getattr(answer, "aclose", None)
                if closing is not None:
                    await closing()
            if len(errors) < len(self.models):
                problem, following = errors[-1].message, self.models[len(errors)].name
                if handed_out:
                    with counted_if_left(request, errors[-1].usage):
                        yield RestartChunk(f"{problem}; asking {following}")
                log.warning("%s; asking %s", problem, following)
                yield FallbackChunk(problem, following, errors[-1].usage)
        raise self._nobody(errors)

    async def respond(self, request: Request) -> Response:
        """The whole answer of the first model that gives one. Raises ModelError."""
        errors: list[ModelError] = []
        for model in self.models:
            try:
                return await model.respond(request)
            except ModelError as error:
                errors.append(error)
                if len(errors) < len(self.models):
                    log.warning("%s; asking %s", error.message, self.models[len(errors)].name)
        raise self._nobody(errors)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *exc: object) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        """Close the models that can be closed."""
        async with AsyncExitStack() as stack:  # closes the others, too, if one raises
            for model in self.models:
                if (closing := getattr(model, "aclose", None)) is not None:
                    stack.push_async_callback(closing)

    def _nobody(self, errors: list[ModelError]) -> ModelError:
        if len(errors) == 1:
            return errors[0]
        most = LONGEST_WORDS // len(errors)
        said = "; ".join(
            shortened(
                error.message if model.name in error.message else f"{model.name}: {error.message}", most
            )
            for model, error in zip(self.models, errors, strict=True)
        )
        last = errors[-1]
        words = f"none of {len(errors)} models answered: {said}"
        return ModelError(
            words, any(e.retryable for e in errors), last.status, last.retry_after, last.partial
        )
