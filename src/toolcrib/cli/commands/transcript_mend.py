"""`toolcrib transcript mend`: a valid transcript of what can be read of a broken one."""

from __future__ import annotations

import os
import shutil
from contextlib import closing
from itertools import count
from pathlib import Path
from typing import Annotated

import typer

from toolcrib.agent import TranscriptFile, TranscriptReading
from toolcrib.cli.console import DONE, Problem, out, say
from toolcrib.cli.transcript_reading import TranscriptPath, scan

Output = Annotated[
    Path | None,
    typer.Option("--output", "-o", metavar="NEW", help="Write this file, and leave the first as it is."),
]
Force = Annotated[bool, typer.Option("--force", help="Write over the file that --output names.")]


def command(file: TranscriptPath, output: Output = None, force: Force = False) -> int:
    """Nothing that could be read is lost. Without --output the file is replaced in one step, and stays as FILE.bak,
    with a number if that exists. A file without problems is left as it is.
    """
    reading = scan(file)
    try:
        if output is not None:
            _check_output(file, output, force=force)
            _write(reading, output.resolve(), like=file)
            words = str(output)
        elif reading.problems:
            kept = _backup(file.resolve())
            _write(reading, file.resolve(), like=file)
            words = f"{file}; the file as it was is {kept.name}"
        else:
            say(f"{file}: nothing is wrong; the file is as it was")
            return DONE
    except OSError as problem:
        raise Problem(f"{output or file} cannot be written: {problem.strerror or problem}") from None
    for found in reading.problems:
        say(str(found))
    out(f"mended: {words}")
    return DONE


def _check_output(file: Path, output: Path, *, force: bool) -> None:
    if output.exists() and output.samefile(file):
        raise Problem(
            f"{output} is the file itself; without --output it is mended, and stays as {file.name}.bak"
        )
    if output.exists() and not force:
        raise Problem(f"{output} exists; name another file, or say --force to write over it")


def _backup(file: Path) -> Path:
    """A copy of the file under a name that is free."""
    for number in count(1):
        kept = file.with_name(f"{file.name}.bak{number if number > 1 else ''}")
        try:
            with kept.open("xb") as copy, file.open("rb") as original:
                shutil.copyfileobj(original, copy)
                os.fsync(copy.fileno())
        except FileExistsError:
            continue
        shutil.copymode(file, kept)
        return kept
    raise AssertionError("numbers do not end")


def _write(reading: TranscriptReading, path: Path, *, like: Path) -> None:
    """Write the conversation in one step: a reader sees the old or the new file."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}.{os.urandom(4).hex()}")
    try:
        with closing(TranscriptFile(temporary)) as transcript:
            shutil.copymode(like, temporary)
            transcript.conversation(reading.mended)
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)
