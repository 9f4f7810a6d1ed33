"""What a background process printed and how it is, in words for the model."""

from __future__ import annotations

from dataclasses import dataclass

from toolcrib.command.background.process import BackgroundProcess
from toolcrib.command.background.processes import end_in_words
from toolcrib.command.explain.failure import explain_failure
from toolcrib.command.explain.result_text import sandbox_sentences

MAX_READ = 30_000  # bytes of output in one reading


@dataclass(frozen=True, slots=True)
class ProcessReading:
    """Output that was read: its text, and the offsets `start` and `end`, of `total` bytes so far.

    `lost` is how many bytes before `start` were asked for and are no longer kept.
    """

    text: str
    start: int
    end: int
    total: int
    lost: int = 0


def read_process(process: BackgroundProcess, offset: int | None = None) -> ProcessReading:
    """Reads output from an offset on, or where the last reading ended; the next one goes on behind it."""
    wanted = process.cursor if offset is None else offset
    start, end, text = process.text(wanted, MAX_READ)
    process.cursor = end
    if not process.running and end == process.output.total:
        process.told = True
    return ProcessReading(text, start, end, process.output.total, max(0, start - wanted))


def process_text(process: BackgroundProcess, reading: ProcessReading, root: str) -> str:
    """A reading as the model is shown it, with the state of the process. `root` is the workspace."""
    notes: list[str] = []
    if reading.lost:
        notes.append(f"{reading.lost:,} bytes before it are no longer kept")
    if reading.end < reading.total:
        notes.append(
            f"bytes {reading.start} to {reading.end} of {reading.total}; the next call goes on at {reading.end}, "
            f"offset={max(0, reading.total - MAX_READ)} shows the end"
        )
    elif reading.end > reading.start:
        notes.append(f"bytes {reading.start} to {reading.end}")
    body = reading.text.rstrip("\n") or "(no new output)"
    said = [f"{body}\n\n[{'; '.join([_state(process), *notes])}]"]
    if (finished := process.finished) is not None:
        denial = explain_failure(finished, process.sandbox, process.line.judgement, process.command)
        if sentences := sandbox_sentences(denial, tuple(finished.reverted), root):
            said.append(f"[sandbox: {' '.join(sentences)}]")
    return "\n".join(said)


def _state(process: BackgroundProcess) -> str:
    if process.running:
        return f"process {process.id} is running"
    left = process.finished.outcome.left if process.finished is not None else 0
    what_it_left = f"; stopped what it left running ({left})" if left else ""
    return f"process {process.id} ended: {end_in_words(process)} after {process.seconds:.1f} s{what_it_left}"
