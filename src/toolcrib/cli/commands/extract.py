"""`toolcrib extract`: values of a type out of files, as JSON lines."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TextIO

import typer

from toolcrib.cli.console import DONE, NOT_DONE, Problem, say, stdout_reserved
from toolcrib.cli.named_model import named_model
from toolcrib.cli.options import ModelName
from toolcrib.dataclass import dataclass
from toolcrib.plugins import PluginError, load_object
from toolcrib.text_file import read_text_file
from toolcrib.visible import counted

if TYPE_CHECKING:
    from toolcrib.extraction import Extracted, ExtractOptions

STDIN = "-"


@dataclass(frozen=True, slots=True)
class ExtractCommandOptions:
    """What to read, out of what, and with which model."""

    schema: Annotated[
        str,
        typer.Option(
            "--schema", "-s", metavar="FILE|MODULE:TYPE", help="A JSON Schema in a file, or a Python type."
        ),
    ]
    files: Annotated[
        list[Path] | None,
        typer.Argument(
            metavar="FILE", help="Texts, PDFs and pictures; - or nothing reads a text from stdin."
        ),
    ] = None
    model: ModelName = None
    lines: Annotated[bool, typer.Option("--lines", help="Each line of a text is a source of its own.")] = (
        False
    )
    instructions: Annotated[
        str | None, typer.Option(metavar="TEXT", help="The system prompt, in place of a short one.")
    ] = None
    concurrency: Annotated[
        int, typer.Option(min=1, metavar="N", help="How many sources are worked on at the same time.")
    ] = 8
    retries: Annotated[
        int, typer.Option(min=0, metavar="N", help="How often a wrong answer is sent back to the model.")
    ] = 2
    resume: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="Keep values in this file, and do not ask again for those that it has."
        ),
    ] = None


def command(options: ExtractCommandOptions) -> int:
    """Each source gives one JSON object on a line of stdout, as soon as it is done: "source" and "output", or "error"
    where there is none. Progress and errors are told on stderr. A failure ends no other source.

    Exit code: 0 all have a value, 1 some have none, 2 wrong usage, 130 after Ctrl-C.
    """
    from toolcrib.agent import OutputType

    wanted = OutputType(_schema(options.schema), retries=options.retries)
    try:
        wanted.check()
    except TypeError as problem:
        raise Problem(f"--schema {options.schema}: {problem}") from problem
    sources = dict(_sources(options))
    if not sources:
        raise Problem("there is nothing to read: name files, or give a text on stdin")
    model = named_model(options.model)
    given: ExtractOptions = {} if options.instructions is None else {"instructions": options.instructions}
    with stdout_reserved() as stdout:
        return asyncio.run(_work(model, wanted, sources, options, given, stdout))


async def _work(
    model: Any,
    wanted: Any,
    sources: dict[str, Any],
    options: ExtractCommandOptions,
    given: ExtractOptions,
    stdout: TextIO,
) -> int:
    from toolcrib.extraction import extract_many

    failed = tokens = 0
    try:
        with _progress(len(sources), stdout) as advance:
            found: Any = extract_many(
                model, wanted, sources, concurrency=options.concurrency, resume=options.resume, **given
            )
            async for one in found:
                print(json.dumps(_line(one), ensure_ascii=False), file=stdout, flush=True)
                tokens += 0 if one.resumed else one.usage.total_tokens
                if not one.ok:
                    failed += 1
                    say(f"{one.key}: {one.problem}")
                advance()
    except OSError as problem:
        if options.resume is None or isinstance(problem, BrokenPipeError):
            raise
        raise Problem(f"--resume {options.resume}: {problem.strerror or problem}") from problem
    finally:
        closing = getattr(model, "aclose", None)
        if closing is not None:
            await closing()
    done = len(sources) - failed
    say(
        f"{done} of {len(sources)} {'source has' if len(sources) == 1 else 'sources have'} a value; "
        f"{counted(tokens, 'token')}"
    )
    return NOT_DONE if failed else DONE


def _line(one: Extracted[Any]) -> dict[str, Any]:
    """One source as a JSON object."""
    from toolcrib.agent.completion_tool import json_text

    if not one.ok:
        reason = "unreadable" if one.outcome is None else one.outcome.reason.value
        return {"source": one.key, "error": one.problem, "reason": reason}
    line: dict[str, Any] = {"source": one.key, "output": json.loads(json_text(one.output))}
    if one.outcome is not None:
        line |= {"attempts": one.outcome.attempts, "guarantee": one.outcome.guarantee}
    return {**line, "tokens": one.usage.total_tokens}


def _schema(reference: str) -> Any:
    """The type or JSON Schema that `--schema` names."""
    path = Path(reference)
    if path.is_dir():
        raise Problem(f"--schema {reference}: expected a file, got a folder")
    if path.suffix == ".json" or path.is_file():
        try:
            text = read_text_file(path)
        except (OSError, ValueError) as problem:
            raise Problem(
                f"--schema {reference}: {getattr(problem, 'strerror', None) or problem}"
            ) from problem
        try:
            schema = json.loads(text)
        except ValueError as problem:
            raise Problem(f"--schema {reference}: this is no JSON: {problem}") from problem
        if not isinstance(schema, dict):
            raise Problem(f"--schema {reference}: a JSON Schema is an object, got {type(schema).__name__}")
        return schema
    try:
        return load_object(reference, example="invoice.json, or models:Invoice")
    except PluginError as problem:
        if ":" not in reference:
            raise Problem(
                f"--schema {reference}: there is no such file; a Python type is written as MODULE:TYPE"
            ) from problem
        raise Problem(f"--schema {problem}") from problem


def _sources(options: ExtractCommandOptions) -> Iterator[tuple[str, Any]]:
    """What is read, by its name."""
    for path in options.files or [Path(STDIN)]:
        name = str(path)
        if name == STDIN:
            if sys.stdin is None or sys.stdin.isatty():
                raise Problem("there is nothing to read: name files, or give a text on stdin")
            text = sys.stdin.buffer.read().decode("utf-8", "replace")
            yield from _texts("stdin", text, options.lines)
        elif options.lines:
            try:
                yield from _texts(name, read_text_file(path), lines=True)
            except (OSError, ValueError):  # told with the others, as a source that cannot be read
                yield name, path
        else:
            yield name, path


def _texts(name: str, text: str, lines: bool) -> Iterator[tuple[str, str]]:
    if not lines:
        if text.strip():
            yield name, text
        return
    for number, line in enumerate(text.splitlines(), 1):
        if line.strip():
            yield f"{name}:{number}", line


@contextmanager
def _progress(total: int, stdout: TextIO) -> Generator[Any]:
    """A bar on stderr, if that is a terminal; where stdout is one too, the lines show the progress."""
    if not sys.stderr.isatty() or stdout.isatty() or total < 2:
        yield lambda: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TimeRemainingColumn

    columns = (BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as progress:
        task = progress.add_task("", total=total)
        yield lambda: progress.advance(task)
