"""`toolcrib transcript check`: what is wrong with a transcript, line by line."""

from __future__ import annotations

from dataclasses import asdict
from json import dumps

from toolcrib.cli.console import DONE, NOT_DONE, out
from toolcrib.cli.options import AsJson
from toolcrib.cli.transcript_reading import TranscriptPath, scan


def command(file: TranscriptPath, json: AsJson = False) -> int:
    """The exit code is 1 if there is anything, and 2 for a file that is no transcript. Any run can go on all the same:
    what is wrong is mended when the file is read.
    """
    reading = scan(file)
    problems, count = reading.problems, len(reading.mended)
    if json:
        out(dumps({"messages": count, "problems": [asdict(problem) for problem in problems]}))
        return NOT_DONE if problems else DONE
    for problem in problems:
        out(str(problem))
    found = f"{len(problems)} problem{'s' * (len(problems) != 1)}" if problems else "nothing is wrong"
    out(f"{file}: {count} message{'s' * (count != 1)}; {found}")
    return NOT_DONE if problems else DONE
