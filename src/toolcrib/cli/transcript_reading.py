"""The transcript file that `toolcrib transcript check` and `mend` read."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from toolcrib.agent import TranscriptReading, scan_transcript
from toolcrib.cli.console import Problem

TranscriptPath = Annotated[Path, typer.Argument(metavar="FILE", help="A transcript that a run wrote.")]


def scan(file: Path) -> TranscriptReading:
    """What can be read of the file. Raises Problem for a file that is no transcript, or cannot be read."""
    try:
        return scan_transcript(file)
    except OSError as problem:
        raise Problem(f"{file} cannot be read: {problem.strerror or problem}") from None
    except ValueError as problem:
        raise Problem(str(problem)) from None
