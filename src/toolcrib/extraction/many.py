"""One value for each of many sources: side by side, each failure by itself, resumable."""

from __future__ import annotations

import asyncio
import hashlib
import json
from collections.abc import AsyncIterable, AsyncIterator, Callable, Iterable, Mapping, Sized
from contextlib import aclosing
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, TypeVar, Unpack

from toolcrib.agent.outcome import NotFinished, Outcome
from toolcrib.agent.output_type import OutputSpec, as_output_type
from toolcrib.dataclass import dataclass, field
from toolcrib.extraction.extract import ExtractOptions, extractor, outcome_of, run_sync
from toolcrib.extraction.sources import conversation_of
from toolcrib.messages import Usage, messages_to_json
from toolcrib.models.model import Model

if TYPE_CHECKING:
    from toolcrib.agent.agent import Agent
    from toolcrib.agent.output_shape import OutputShape
    from toolcrib.extraction.sources import Source

__all__ = ["Extracted", "extract_many", "extract_many_sync"]

T = TypeVar("T")

CONCURRENCY = 8
FORMAT = 1
BEGIN = b'{"format": '  # of a resume file
Progress = Callable[[int, int | None, "Extracted[Any]"], Any]


@dataclass(slots=True)
class Extracted(Generic[T]):
    """What became of one source: `index` is its place among them, `key` its name, if the sources are a mapping.

    `outcome` is None for a source that could not be read, and for one that a resume file had; `usage` is known all the
    same. `problem` says why there is no value.
    """

    index: int
    key: str = ""
    problem: str = ""
    outcome: Outcome[T] | None = None
    usage: Usage = field(default_factory=Usage)
    resumed: bool = False
    _value: Any = None

    @property
    def ok(self) -> bool:
        """Whether there is a value."""
        return not self.problem

    @property
    def output(self) -> T:
        """The value. Raises NotFinished with the outcome where a run gave none, ValueError where none could begin."""
        if self.problem:
            if self.outcome is not None:
                raise NotFinished(self.outcome)
            raise ValueError(self.problem)
        value: T = self._value
        return value


async def extract_many(
    model: Model | str,
    output: OutputSpec[T],
    sources: Iterable[Source] | AsyncIterable[Source] | Mapping[str, Source],
    *,
    concurrency: int = CONCURRENCY,
    resume: Path | str | None = None,
    on_progress: Progress | None = None,
    **options: Unpack[ExtractOptions],
) -> AsyncIterator[Extracted[T]]:
    """A value for each source, as they are finished; `extracted.index` says whose it is.

    At most `concurrency` are worked on at the same time, and sources are taken only as fast. A failure is an Extracted
    with a `problem`, and ends no other. `resume` is a file to which each value is written as it is known: what it has
    of the same sources, for the same type, is read from it instead of asked for again. OSError where it holds something
    else, or cannot be written. `on_progress(done, total, extracted)` is called after each; the total is None where the
    sources do not say how many they are. Leaving the loop cancels what is worked on.
    """
    if concurrency < 1:
        raise ValueError(f"concurrency must be a whole number from 1, got {concurrency!r}")
    agent = extractor(model, as_output_type(output), options)
    kept = None if resume is None else _ResumeFile(Path(resume), as_output_type(output).check(), options)
    total = len(sources) if isinstance(sources, Sized) else None
    done = 0
    finished: asyncio.Queue[Extracted[T] | None] = asyncio.Queue()
    free = asyncio.Semaphore(concurrency)
    running: set[asyncio.Task[None]] = set()

    async def work(found: Extracted[T], source: Source) -> None:
        try:
            await _fill(found, agent, source, options, kept)
        except Exception as problem:  # of one source: it ends no other
            found.problem = found.problem or _words(problem)
        finally:
            finished.put_nowait(found)

    async def take() -> None:
        try:
            index = 0
            async for key, source in _listed(sources):
                await free.acquire()
                task = asyncio.create_task(work(Extracted(index, key), source))
                running.add(task)
                task.add_done_callback(running.discard)
                index += 1
        finally:
            await asyncio.gather(*running)
            finished.put_nowait(None)

    taking = asyncio.create_task(take())
    try:
        while (found := await finished.get()) is not None:
            free.release()
            done += 1
            if on_progress is not None:
                on_progress(done, total, found)
            yield found
        await taking  # raises what the sources raised
    finally:
        for task in (taking, *running):
            task.cancel()
        await asyncio.gather(taking, *running, return_exceptions=True)
        if kept is not None:
            kept.close()
        await agent.aclose()


def extract_many_sync(
    model: Model | str,
    output: OutputSpec[T],
    sources: Iterable[Source] | Mapping[str, Source],
    *,
    concurrency: int = CONCURRENCY,
    resume: Path | str | None = None,
    on_progress: Progress | None = None,
    **options: Unpack[ExtractOptions],
) -> list[Extracted[T]]:
    """`extract_many`, for code without an event loop: all of them, in the order of the sources."""

    async def all_of_them() -> list[Extracted[T]]:
        found = extract_many(
            model, output, sources, concurrency=concurrency, resume=resume, on_progress=on_progress, **options
        )
        async with aclosing(found):  # type: ignore[type-var]
            return sorted([one async for one in found], key=lambda one: one.index)

    made: list[Extracted[T]] = run_sync(all_of_them())
    return made


def _words(problem: Exception) -> str:
    """Why a source has no value: what could not be read, in plain words."""
    if isinstance(problem, OSError):
        return f"it cannot be read: {problem.strerror or problem}"
    return str(problem) if type(problem) is ValueError else f"{type(problem).__name__}: {problem}"


async def _listed(sources: Any) -> AsyncIterator[tuple[str, Any]]:
    if isinstance(sources, Mapping):
        for key, source in sources.items():
            yield str(key), source
    elif isinstance(sources, AsyncIterable):
        async for source in sources:
            yield "", source
    elif isinstance(sources, str):
        raise TypeError("sources are several: a list of texts, not one text")
    else:
        for source in sources:
            yield "", source


async def _fill(
    found: Extracted[Any],
    agent: Agent[Any, Any],
    source: Any,
    options: ExtractOptions,
    kept: _ResumeFile | None,
) -> None:
    """Ask for the value of one source, unless the resume file has it."""
    mark = ""
    if kept is not None:
        mark = kept.mark_of(source)
        if kept.give(found, mark):
            return
    outcome = await outcome_of(agent, source, options)
    found.outcome, found.usage = outcome, outcome.usage
    if not outcome.has_output:
        found.problem = str(NotFinished(outcome))
        return
    found._value = outcome.output
    if kept is not None:
        kept.keep(found, mark, outcome.output)


class _ResumeFile:
    """Values by the fingerprint of source, type and options, a JSON line each. A line that was cut is left out."""

    def __init__(self, path: Path, shape: OutputShape, options: ExtractOptions) -> None:
        self._shape = shape
        told = {name: repr(options.get(name)) for name in ("instructions", "messages", "temperature")}
        self._about = json.dumps([shape.schema, told], sort_keys=True)
        self._known: dict[str, Any] = {}
        whole = b""
        if path.exists():
            whole = path.read_bytes() if path.is_file() else b"no file"
            if not whole.startswith(
                BEGIN[: len(whole)]
            ):  # a file of the user's, which must not be written to
                raise OSError(0, "it holds something else than values that were kept: name a new file")
            for line in whole.splitlines():
                try:
                    data = json.loads(line)
                    if data["format"] == FORMAT:
                        self._known[data["mark"]] = data
                except (ValueError, KeyError, TypeError):
                    continue
        self._file = path.open("ab")
        if whole and not whole.endswith(b"\n"):
            self._file.write(b"\n")

    def mark_of(self, source: Any) -> str:
        """The fingerprint of a source."""
        before, task = conversation_of(source)
        data = json.dumps([self._about, messages_to_json([*before, task])], sort_keys=True, default=str)
        return hashlib.sha256(data.encode("utf-8", "replace")).hexdigest()

    def give(self, found: Extracted[Any], mark: str) -> bool:
        """Fill in what the file has; it is validated again."""
        data = self._known.get(mark)
        if data is None:
            return False
        try:
            found._value = self._shape.read_value(data["output"])
            found.usage = Usage(**data["usage"])
        except Exception:  # it was written for another version of the type: it is asked for again
            return False
        found.resumed = True
        return True

    def keep(self, found: Extracted[Any], mark: str, output: Any) -> None:
        """Write a value."""
        from toolcrib.agent.completion_tool import json_text

        line = {
            "format": FORMAT,
            "mark": mark,
            "key": found.key,
            "output": json.loads(json_text(output)),
            "usage": asdict(found.usage),
        }
        self._file.write(json.dumps(line, ensure_ascii=False).encode("utf-8", "replace") + b"\n")
        self._file.flush()

    def close(self) -> None:
        self._file.close()
