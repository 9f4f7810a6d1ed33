"""Reports to the person while a command runs, and when it has ended."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import TYPE_CHECKING

from toolcrib.command.launch.output import BoundedOutput
from toolcrib.command.launch.process import ProcessOutcome
from toolcrib.command.sandbox import Denial

if TYPE_CHECKING:
    from typing import Any

    from toolcrib.context import Context

MAX_LIVE = 8_000  # bytes of output in a report
INTERVAL = 0.2  # seconds between reports; a person cannot read faster


class Reporter:
    """Reports the output of the commands of one call. `root` is the workspace."""

    def __init__(self, ctx: Context[Any], root: str = "") -> None:
        self.ctx = ctx
        self.root = root
        self.last = 0.0

    def output(self, output: BoundedOutput) -> None:
        now = time.monotonic()
        if now - self.last >= INTERVAL:
            self.last = now
            self.ctx.report(result={"output": output.ending(MAX_LIVE)})

    def end(self, outcome: ProcessOutcome, denial: Denial | None, reverted: Sequence[str] = ()) -> None:
        """Reports the result, what the sandbox reverted, and after a refusal what would allow it."""
        result: dict[str, Any] = {
            "output": outcome.output.ending(MAX_LIVE),
            "exit_code": outcome.code,
            "seconds": round(outcome.seconds, 3),
        }
        tip = list(reverted)
        if denial is not None:
            result["refused"] = {"kind": denial.kind, "target": denial.target, "wider": denial.remedy}
            tip.append(denial.message + _how_to_allow(denial, self.root))
        if tip:
            self.ctx.report(tip=" ".join(tip), result=result)
        else:
            self.ctx.report(result=result)


def _how_to_allow(denial: Denial, root: str) -> str:
    """The option of the command line that allows what was refused, or that only an answer to a question does."""
    permission = denial.permission
    if permission is None:
        return ""
    if permission.kind == "host":
        hosts = permission.target.split(", ")
        return f" To allow it: {' '.join(f'--allow-host {host}' for host in hosts)}"
    if permission.kind == "network":
        return " To allow it: --network on"
    if permission.kind == "write" and f"{permission.target}/".startswith(f"{root}/"):
        return " To allow it: --sandbox workspace_write"
    return " Whoever is asked can allow it for a run; no option does."
