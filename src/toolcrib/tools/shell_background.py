"""The result of `shell` for a command that it started in the background."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING

from toolcrib.command.explain import process_text, read_process
from toolcrib.result import ToolResult
from toolcrib.tools.shell_params import ShellResult

if TYPE_CHECKING:
    from typing import Any

    from toolcrib.command.background import BackgroundProcess
    from toolcrib.context import Context

START_WAIT = 0.5  # seconds in which a command in the background may fail, which its start then tells


async def started_result(process: BackgroundProcess, ctx: Context[Any]) -> ToolResult:
    """What the model is told of a process that was just started.

    Where the sandbox refused something at once, a person may allow it, and the command runs again.
    """
    import asyncio

    notes: list[str] = []
    while True:
        await asyncio.wait([asyncio.ensure_future(process.ended())], timeout=START_WAIT)
        again = None
        if not process.running and process.refused is not None:
            again = await process.refused.run_again(ctx)
        if again is None:
            break
        notes.append(
            f"[{process.id} ended, because the sandbox refused something. The user allowed it, and the command was run "
            "again from its start.]\n"
        )
        process.end_is_known = True
        process = again
    reading = read_process(process)
    ctx.report(result={"output": reading.text, "process": process.id})
    told = f"{''.join(notes)}Started in the background as process {process.id}.\n\n{process_text(process, reading)}"
    result = ShellResult(process.exit_code, process.signal, round(process.seconds, 3), process.id)
    return ToolResult(told, structured=asdict(result))
