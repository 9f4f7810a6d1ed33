"""`process`: reads what a background process prints, waits for it, and stops it.

It only reads, also where it stops a process: that belongs to the run, which ends it anyway. It touches nothing but the
process, so that no other call has to wait while it waits.
"""

from __future__ import annotations

import re
import time
from dataclasses import asdict
from typing import TYPE_CHECKING

from pydantic import BaseModel, Field

from toolcrib.access import OWN
from toolcrib.dataclass import dataclass
from toolcrib.effect import Effect
from toolcrib.errors import ToolError
from toolcrib.facts import MaxOutput
from toolcrib.result import ToolResult
from toolcrib.tool import Tool
from toolcrib.tools.command_place import commands_of
from toolcrib.tools.posix_classes import without_posix_classes
from toolcrib.tools.regex_search import BadPattern, RegexSearcher, TooSlow, Wanted

if TYPE_CHECKING:
    from typing import Any

    from toolcrib.access import Access
    from toolcrib.command.background import BackgroundProcess
    from toolcrib.context import Context
    from toolcrib.tools.backends import Backend

DEFAULT_WAIT = 30
MAX_WAIT = 600
MAX_LINE = 64_000  # bytes of an unfinished line that are searched again when more of it comes
PIECE = 256_000  # bytes that are searched at once
SIGNS = re.compile(r"[\\.^$*+?{}\[\]|()]")  # without any of them, a pattern is a plain text


class ProcessParams(BaseModel):
    process_id: str = Field(description="The process, as shell and process_list name it.")
    block: bool = Field(False, description="Wait for its end.")
    until: str = Field(
        "", description="Wait until a line that process did not show before matches this regular expression."
    )
    timeout: int = Field(
        DEFAULT_WAIT,
        ge=0,
        le=MAX_WAIT,
        description="Seconds to wait at most: for what block and until name, else for any new output.",
    )
    stop: bool = Field(False, description="First stop it, with everything that it started.")
    offset: int | None = Field(
        None, ge=0, description="Byte of its output to begin at. Without it, where the last reading ended."
    )


@dataclass(frozen=True, slots=True)
class ProcessResult:
    """A background process, as data: its output from byte `start` to byte `end`, of `total` so far.

    `matched` says whether `until` was seen; None if it was not asked for.
    """

    process_id: str
    running: bool
    exit_code: int | None
    signal: int | None
    seconds: float
    start: int
    end: int
    total: int
    matched: bool | None = None


class Process(
    Tool[ProcessParams, ToolResult],
    name="process",
    effect=Effect.READ,
    secrets=(),
    title="Background process",
    category="shell",
    timeout=MAX_WAIT + 30.0,
    max_output=MaxOutput(),
    output_schema=ProcessResult,
):
    """Read what a command that runs in the background has printed since the last time, and wait for it or stop it.

    Returns at once if there is new output. To wait for a server, give until="Listening on"; for a build, give
    block. The processes are those that shell started with run_in_background in this run; they end with it.
    """

    def __init__(self, files: Backend) -> None:
        """`files` is the backend of the `Shell` that starts the processes. Raises TypeError where no command runs."""
        commands_of(files)

    def resources(self, params: ProcessParams) -> tuple[str]:
        return (OWN + params.process_id,)

    def accesses(self, params: ProcessParams) -> tuple[Access, ...]:
        return ()

    async def execute(self, params: ProcessParams, ctx: Context[Any]) -> ToolResult:
        from toolcrib.command.background import Processes

        process = ctx.of_run(Processes).get(params.process_id)
        return await process.in_its_loop(self._read(params, ctx, process))

    async def _read(self, params: ProcessParams, ctx: Context[Any], process: BackgroundProcess) -> ToolResult:
        from toolcrib.command.explain import process_text, read_process

        async with process.turns:
            if params.stop:
                await process.stop()
            matched = await self._wait(params, ctx, process)
            if not process.running and process.refused is not None and not params.stop:
                await process.refused.run_again(ctx)
            reading = read_process(process, params.offset)
            process.searched = reading.end
        text = process_text(process, reading)
        if matched is not None:
            text += f"\n[{'a' if matched else 'no'} line matched {params.until!r}]"
        ctx.report(result={"output": reading.text, "exit_code": process.exit_code})
        return ToolResult(text, structured=asdict(process_result(process, reading, matched)))

    async def _wait(
        self, params: ProcessParams, ctx: Context[Any], process: BackgroundProcess
    ) -> bool | None:
        """Waits for what was asked for. Returns whether `until` was seen, if it was asked for."""
        from toolcrib.command.explain import Reporter

        reporter = Reporter(ctx)
        start = process.cursor if params.offset is None else params.offset

        async def more() -> bool:
            reporter.output(process.output)
            return not params.block and process.output.total > start

        if not params.until:
            await process.wait_until(more, params.timeout)
            return None
        searched = process.searched if params.offset is None else params.offset
        with LineSearch(params.until, searched, params.timeout, ctx) as search:
            await search.check()

            async def seen() -> bool:
                reporter.output(process.output)
                return await search.found_in(process) and not params.block

            await process.wait_until(seen, params.timeout)
            return await search.found_in(process)


class LineSearch:
    """Looks for a pattern in the output of a process, from an offset on, as it comes; use it in a `with` block.

    Only for a pattern that is more than a text, another process does the matching, which can be given up.
    """

    def __init__(self, pattern: str, start: int, timeout: float, ctx: Context[Any]) -> None:
        self.found = False
        self._at = start
        self._text = pattern if not SIGNS.search(pattern) else ""
        self._searcher: RegexSearcher | None = None
        if not self._text:
            try:
                wanted = Wanted(
                    without_posix_classes(pattern), room=0, most=1
                )  # one match in each text is enough
            except re.error as wrong:
                raise ToolError(_not_valid(str(wrong))) from None
            self._searcher = RegexSearcher(wanted, time.monotonic() + timeout + 5.0, ctx.check_cancelled)

    def __enter__(self) -> LineSearch:
        return self

    def __exit__(self, *exc: object) -> None:
        if self._searcher is not None:
            self._searcher.__exit__(*exc)

    async def check(self) -> None:
        """Raises ToolError if the pattern is no valid regular expression."""
        await self._matches("")

    async def found_in(self, process: BackgroundProcess) -> bool:
        """Whether the pattern is in what the process has printed by now."""
        from toolcrib.command.launch.output import plain

        while not self.found:
            total = process.output.total
            start, data = process.output.read(self._at, PIECE)
            if not data:
                break
            more = start + len(data) < total  # then an unfinished line is too long to wait for its end
            self.found = await self._matches(plain(data))
            whole_lines = data.rfind(b"\n") + 1
            if not whole_lines and (more or len(data) >= MAX_LINE):
                whole_lines = len(data)
            self._at = start + whole_lines
            if not more:
                break
        return self.found

    async def _matches(self, text: str) -> bool:
        if self._searcher is None:
            return self._text in text
        import asyncio

        try:
            matches = await asyncio.to_thread(self._searcher.search, [text.encode()])
        except BadPattern as wrong:
            raise ToolError(_not_valid(str(wrong))) from None
        except TooSlow:
            raise ToolError("until took too long to match. Simplify the regular expression.") from None
        return matches[0].count > 0


def _not_valid(why: str) -> str:
    return f"until is no valid regular expression: {why}."


def process_result(process: BackgroundProcess, reading: Any, matched: bool | None = None) -> ProcessResult:
    """A reading of a process as data."""
    return ProcessResult(
        process_id=process.id,
        running=process.running,
        exit_code=process.exit_code,
        signal=process.signal,
        seconds=round(process.seconds, 3),
        start=reading.start,
        end=reading.end,
        total=reading.total,
        matched=matched,
    )
