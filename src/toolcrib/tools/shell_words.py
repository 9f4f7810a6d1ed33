"""What the shell tool says: to the person while a command runs and before it, to the model after it."""

from __future__ import annotations

import signal
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING

from toolcrib.command.launch.process import HeadTail, Outcome
from toolcrib.command.sandbox import Denial, Sandbox
from toolcrib.errors import ToolError
from toolcrib.shell import Judgement, Part
from toolcrib.shell.plan import quoted
from toolcrib.tools.shell_reasons import of_part

if TYPE_CHECKING:
    from typing import Any

    from toolcrib.context import Context

PREVIEW = 8_000  # bytes of output in a live report
REPORT_EVERY = 0.2  # seconds
ON_TIMEOUT = 20_000  # characters of output shown when the time is up
WORTH_TELLING = 10.0  # seconds of a successful run
SHAPELESS = "\u115f\u1160\u3164\uffa0\u2800"  # letters by their kind, and nothing to be seen
DOES = {"read": "reads", "write": "changes files", "network": "uses the network", "exec": "runs other code"}


class Reporter:
    """Tells the person what comes, not more often than one can look."""

    def __init__(self, ctx: Context[Any], root: str = "") -> None:
        self.ctx = ctx
        self.root = root
        self.last = 0.0

    def output(self, kept: HeadTail) -> None:
        now = time.monotonic()
        if now - self.last >= REPORT_EVERY:
            self.last = now
            self.ctx.report(result={"output": kept.ending(PREVIEW)})

    def end(self, outcome: Outcome, denial: Denial | None, reverted: Sequence[str] = ()) -> None:
        """What came of it, what was put right, and after a refusal what would allow it, which is a person's to give."""
        result: dict[str, Any] = {
            "output": outcome.output.ending(PREVIEW),
            "exit_code": outcome.code,
            "seconds": round(outcome.seconds, 3),
        }
        tip = list(reverted)
        if denial is not None:
            result["refused"] = {"kind": denial.kind, "target": denial.target, "wider": denial.remedy}
            tip.append(denial.message + _option(denial, self.root))
        if tip:
            self.ctx.report(tip=" ".join(tip), result=result)
        else:
            self.ctx.report(result=result)


def _option(denial: Denial, root: str) -> str:
    """How a person allows what was refused: only what an option, or their yes, does open."""
    more = denial.permission
    if more is None:
        return ""
    if more.kind == "host":
        return f" To allow it: --allow-host {more.target}"
    if more.kind == "network":
        return " To allow it: --network on"
    if more.kind == "write" and f"{more.target}/".startswith(f"{root}/"):
        return " To allow it: --sandbox workspace_write"
    return " Whoever is asked can allow it for a run; no option does."


def refusals(denial: Denial | None, reverted: Sequence[str], root: str) -> list[str]:
    """What the sandbox did, for the model: paths as it knows them."""
    said = [*([denial.message] if denial else []), *reverted]
    return [words.replace(f"{root}/", "") for words in said]


def told(
    outcome: Outcome, timeout: int, longest: int, refused: Sequence[str], allowed: Sequence[str] = ()
) -> str:
    """The result for the model; `allowed` says what a person gave it. Raises ToolError where the time was up."""
    text = outcome.output.text().rstrip()
    if allowed:
        text = f"{text or '(no output)'}\n\n[sandbox: {' '.join(allowed)} This is what the last run did.]"
    if outcome.code is None:
        if len(text) > ON_TIMEOUT:
            text = "[...]" + text[-ON_TIMEOUT:]
        if refused:
            text = f"{text}\n[sandbox: {' '.join(refused)}]".lstrip()
        raise ToolError(
            f"The command was stopped because it ran longer than {timeout} seconds. Give it a longer timeout "
            f"(at most {longest}) if it needs one. What it printed:\n{text or '(nothing)'}"
        )
    notes: list[str] = []
    if outcome.code < 0:
        notes.append(f"ended by signal {-outcome.code} ({_signal_name(-outcome.code)})")
    elif outcome.code:
        notes.append(f"exit code {outcome.code}")
    if outcome.code or outcome.seconds >= WORTH_TELLING:
        notes.append(f"{outcome.seconds:.1f} s")
    if outcome.left:
        notes.append(f"stopped what it left running in the background ({_processes(outcome.left)})")
    body = text or "(no output)"
    if refused:
        body += f"\n\n[sandbox: {' '.join(refused)} This was not your command's fault; do not try to get around it.]"
    return body if not notes else f"{body}\n\n[{'; '.join(notes)}]"


def shown(command: str, judgement: Judgement, folder: str, sandbox: Sandbox) -> str:
    """What is to be known beside the command itself, for the person who is asked; nothing of it is invisible."""
    spelled = visible(command.replace("\n", " "))
    lines = [] if spelled == command.replace("\n", " ") else [f"spelled out: {spelled}"]
    lines.append(f"in {visible(folder)}")
    parts = [part for part in judgement.parts if part.argv]
    if judgement.plan is None:
        lines.append("it is run by a shell as it stands" + _programs(judgement.programs))
    for number, part in enumerate(parts if judgement.plan is not None else (), start=1):
        lines += _of_part(number if len(parts) > 1 else 0, part)
    return "\n".join([*lines, f"sandbox: {_limits(sandbox)}"])


def _of_part(number: int, part: Part) -> list[str]:
    """What a command does and touches; one of several is named, by its number."""
    does = of_part(part) if part.reason else DOES[part.effect]
    lines = [f"{number}. {' '.join(map(quoted, part.argv))}", f"   {visible(does)}"] if number else []
    return lines + [f"   {operand.access} {_place(operand)}" for operand in part.operands[:20]]


def _place(operand: Any) -> str:
    return visible(operand.path) + (" and all below it" if operand.reach == "subtree" else "")


def _programs(names: Sequence[str]) -> str:
    return f"; programs seen in it: {', '.join(map(visible, names))}" if names else ""


def _limits(sandbox: Sandbox) -> str:
    report, level = sandbox.report(), sandbox.level
    if not report.confines:
        return f"{report.backend}: NOTHING limits this command"
    return f"{report.backend}, files: {level.files}, network: {level.network}"


def visible(text: str) -> str:
    """A line as it is, with what a person could not see written as an escape."""
    if text.isascii() and text.isprintable():
        return text
    return "".join(
        char if char.isprintable() and char not in SHAPELESS and not _varies(char) else _escaped(char)
        for char in text
    )


def _varies(char: str) -> bool:
    return "\ufe00" <= char <= "\ufe0f" or "\U000e0100" <= char <= "\U000e01ef"


def _escaped(char: str) -> str:
    code = ord(char)
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def _processes(count: int) -> str:
    return "1 process" if count == 1 else f"{count} processes"


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return "unknown"
