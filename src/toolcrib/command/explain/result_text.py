"""The result of a command, in words for the model."""

from __future__ import annotations

import signal
from collections.abc import Sequence

from toolcrib.command.launch.process import ProcessOutcome
from toolcrib.command.launch.terminal_screen import text_of_terminal
from toolcrib.command.sandbox import Denial
from toolcrib.errors import ToolError
from toolcrib.visible import counted, spelled_out

MAX_AT_TIMEOUT = 20_000  # characters of output that are shown when the time is up
WORTH_TELLING = 10.0  # seconds of a successful command


def sandbox_sentences(denial: Denial | None, reverted: Sequence[str], root: str, why: str = "") -> list[str]:
    """What the sandbox refused and reverted; paths are relative to the workspace, as the model knows them.

    `why` is the reason of the rule that the sandbox kept.
    """
    refused = [denial.message, *([f"The reason: {why.rstrip('.')}."] if why else [])] if denial else []
    sentences = [*refused, *reverted]
    return [spelled_out(sentence.replace(f"{root}/", "")) for sentence in sentences]


def result_text(
    outcome: ProcessOutcome,
    timeout: float,
    max_timeout: int,
    refused: Sequence[str],
    allowed: Sequence[str] = (),
    *,
    terminal: bool = False,
) -> str:
    """The result for the model. `refused` are the sentences of the sandbox, `allowed` says what a person allowed.

    Of a command in a `terminal` it has what is seen there.

    Raises ToolError if the time was up.
    """
    text = (text_of_terminal(outcome.output) if terminal else outcome.output.text()).rstrip()
    if allowed:
        text = f"{text or '(no output)'}\n\n[sandbox: {' '.join(allowed)} This is what the last run did.]"
    if outcome.code is None:
        if len(text) > MAX_AT_TIMEOUT:
            text = "[...]" + text[-MAX_AT_TIMEOUT:]
        if refused:
            text = f"{text}\n[sandbox: {' '.join(refused)}]".lstrip()
        raise ToolError(
            f"The command was stopped because it ran longer than {counted(timeout, 'second')}. "
            f"Give it a longer timeout (at most {max_timeout}) if it needs one, or run it in the background "
            f"(run_in_background=true), where it has no limit. What it printed:\n{text or '(nothing)'}"
        )
    notes: list[str] = []
    if outcome.code < 0:
        notes.append(f"ended by signal {-outcome.code} ({signal_name(-outcome.code)})")
    elif outcome.code:
        notes.append(f"exit code {outcome.code}")
    if outcome.code or outcome.seconds >= WORTH_TELLING:
        notes.append(f"{outcome.seconds:.1f} s")
    if outcome.left:
        count = "1 process" if outcome.left == 1 else f"{outcome.left} processes"
        notes.append(f"stopped what it left running in the background ({count})")
    body = text or "(no output)"
    if refused:
        body += f"\n\n[sandbox: {' '.join(refused)} This was not your command's fault; do not try to get around it.]"
    return body if not notes else f"{body}\n\n[{'; '.join(notes)}]"


def signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return "unknown"
