"""`process_write`: types into a background process.

What is typed into a shell or an interpreter is code. So it asks as an unrecognised command does, text that would
destroy the host is never typed, and rules that deny a command recognise it in the text. A command that is typed in
several calls, perhaps on several lines, is decided on as a whole. What the process may reach was decided when it was
started in its sandbox.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Literal

from pydantic import BaseModel, Field

from toolcrib.access import OWN, Access, Reach
from toolcrib.effect import Effect
from toolcrib.errors import ToolError
from toolcrib.facts import MaxOutput
from toolcrib.question import Doubt, Preview
from toolcrib.result import ToolResult
from toolcrib.tool import Tool
from toolcrib.tools.command_place import commands_of
from toolcrib.tools.process import ProcessResult, process_result
from toolcrib.visible import spelled_out

if TYPE_CHECKING:
    from typing import Any

    from toolcrib.command.background import BackgroundProcess
    from toolcrib.context import Context
    from toolcrib.tools.backends import Backend

DEFAULT_WAIT = 5
MAX_WAIT = 60
MAX_TEXT = 100_000  # characters
QUIET = 0.15  # seconds without further output after which an answer counts as whole
Key = Literal[
    "enter", "tab", "escape", "backspace", "delete", "up", "down", "left", "right", "home", "end", "page_up",
    "page_down", "ctrl-a", "ctrl-c", "ctrl-d", "ctrl-e", "ctrl-k", "ctrl-l", "ctrl-r", "ctrl-u", "ctrl-w", "ctrl-z",
]  # fmt: skip
NAMED: dict[Key, bytes] = {
    "enter": b"\r", "tab": b"\t", "escape": b"\x1b", "backspace": b"\x7f", "delete": b"\x1b[3~", "up": b"\x1b[A",
    "down": b"\x1b[B", "right": b"\x1b[C", "left": b"\x1b[D", "home": b"\x1b[H", "end": b"\x1b[F",
    "page_up": b"\x1b[5~", "page_down": b"\x1b[6~",
}  # fmt: skip
APPLICATION: dict[Key, bytes] = {
    "up": b"\x1bOA", "down": b"\x1bOB", "right": b"\x1bOC", "left": b"\x1bOD", "home": b"\x1bOH", "end": b"\x1bOF",
}  # fmt: skip
"""What keys send instead once a program has asked for it; Python's own prompt, from 3.13 on, knows no other."""


class ProcessWriteParams(BaseModel):
    process_id: str = Field(description="The process, as shell and process_list name it.")
    text: str = Field("", max_length=MAX_TEXT, description="Text to type. A line has to end with \\n.")
    keys: list[Key] = Field(default_factory=list, max_length=100, description="Keys to press after the text.")
    timeout: int = Field(
        DEFAULT_WAIT, ge=0, le=MAX_WAIT, description="Seconds to wait for what it prints in answer."
    )


class ProcessWrite(
    Tool[ProcessWriteParams, ToolResult],
    name="process_write",
    effect=Effect.DESTRUCTIVE,
    secrets=("text",),
    title="Type into a process",
    category="shell",
    timeout=MAX_WAIT + 30.0,
    approval_ignores=("timeout",),
    max_output=MaxOutput(),
    output_schema=ProcessResult,
):
    """Type text or keys into a command that runs in the background, and read what it prints in answer.

    Use it for an interpreter, a debugger or an installer that asks. Keys other than enter and ctrl-d, which
    ends the input, need a command that was started with terminal=true. To stop a process use process.
    """

    def __init__(self, files: Backend) -> None:
        """`files` is the backend of the `Shell` that starts the processes. Raises TypeError where no command runs."""
        commands_of(files)

    def precheck(self, params: ProcessWriteParams) -> str | None:
        if not params.text and not params.keys:
            return "text and keys are both empty, so there is nothing to type."
        try:
            params.text.encode()
        except UnicodeEncodeError:
            return "text holds half of a surrogate pair, which cannot be typed."
        from toolcrib.command.judge import judge

        judgement = judge(params.text)
        if judgement.verdict == "deny":
            return f"Nothing was typed, and never will be, whoever asks for it: {judgement.reason}."
        return None

    def resources(self, params: ProcessWriteParams) -> tuple[str]:
        return (OWN + params.process_id,)

    def accesses(self, params: ProcessWriteParams) -> tuple[Access, ...]:
        return _accesses(params.text, params.keys)

    def doubt(self, params: ProcessWriteParams) -> Doubt:
        return Doubt(f"it types into {spelled_out(params.process_id)}, which may run what is typed as code")

    def preview(self, params: ProcessWriteParams) -> Preview:
        lines = [f"into {spelled_out(params.process_id)}:"]
        lines += [f"  {spelled_out(line)}" for line in params.text.split("\n")]
        return Preview("\n".join([*lines, *(f"  [{key}]" for key in params.keys)]))

    async def execute(self, params: ProcessWriteParams, ctx: Context[Any]) -> ToolResult:
        if problem := self.precheck(params):
            raise ToolError(problem)
        from toolcrib.command.background import Processes

        process = ctx.of_run(Processes).get(params.process_id)
        return await process.in_its_loop(self._write(params, ctx, process))

    async def _write(
        self, params: ProcessWriteParams, ctx: Context[Any], process: BackgroundProcess
    ) -> ToolResult:
        from toolcrib.command.explain import process_text, read_process

        async with process.turns:
            if not process.running:
                raise ToolError(f"Nothing was typed: process {process.id} has ended. Read it with process.")
            if process.runs.input is None:
                raise ToolError(
                    f"Nothing was typed: {process.id} runs without a shell, because its command was proved harmless, "
                    "and has no input."
                )
            if process.runs.input.closed:
                raise ToolError(f"Nothing was typed: the input of {process.id} was ended before.")
            data = _as_bytes(params, process)
            await _ask_about_line(params, ctx, process)
            start = process.searched = process.output.total
            not_taken = await self._type(params, process, data)
            await _wait_for_answer(process, start, params.timeout)
            reading = read_process(process)
        text = process_text(process, reading) + not_taken
        ctx.report(result={"output": reading.text, "exit_code": process.exit_code})
        return ToolResult(text, structured=asdict(process_result(process, reading)))

    async def _type(self, params: ProcessWriteParams, process: BackgroundProcess, data: bytes) -> str:
        """Types, and returns a note where the process did not read all of it."""
        assert process.runs.input is not None
        try:
            taken = await process.runs.input.write(data, max(1, params.timeout))
        except BrokenPipeError:
            raise ToolError(f"Nothing was typed: {process.id} does not read its input any more.") from None
        if not process.runs.terminal and "ctrl-d" in params.keys:
            await process.runs.input.end()
        if taken < len(data):
            return f"\n[{taken:,} of {len(data):,} bytes were typed: it does not read its input now]"
        return ""


def _accesses(text: str, keys: Sequence[str] = ()) -> tuple[Access, ...]:
    """The accesses of a text that may be run as commands of a shell, or as Python code."""
    from toolcrib.command.judge import Judgement, accesses_of
    from toolcrib.command.judge.python_code import NO_COMMANDS, commands_in_code

    judgement = Judgement("ask", "typed into a process")
    code = commands_in_code(text) or NO_COMMANDS
    run = (one for one in accesses_of(code.run, judgement, ".", unasked=False) if one.hint)
    return tuple(dict.fromkeys((*accesses_of(" ".join([text, *keys]), judgement, ".", unasked=False), *run)))


def _as_bytes(params: ProcessWriteParams, process: BackgroundProcess) -> bytes:
    typed = params.text.encode()
    if process.runs.terminal:
        named = NAMED | APPLICATION if process.wants_application_keys() else NAMED
        return typed + b"".join(_key(key, named) for key in params.keys)
    if wrong := [key for key in params.keys if key not in ("enter", "ctrl-d")]:
        raise ToolError(
            f"Nothing was typed: {process.id} runs without a terminal, so the key {wrong[0]} means nothing to it. "
            "Start it with terminal=true; to end it, use process with stop=true."
        )
    return typed + b"\n" * params.keys.count("enter")


def _key(key: Key, named: Mapping[Key, bytes]) -> bytes:
    return named[key] if key in named else bytes([ord(key[-1]) & 0x1F])


async def _ask_about_line(params: ProcessWriteParams, ctx: Context[Any], process: BackgroundProcess) -> None:
    """Asks about a command that was begun in an earlier call, because only its end was decided on so far.

    What keys such as "up" put into a line is not known, so the line may be any command. Else, if a person said yes to
    this call, only accesses of the whole line are asked about that neither its beginning nor its end has by itself.
    Raises ToolError.
    """
    typed = process.typed
    if (typed.text or typed.changed) and params.text.strip():
        from toolcrib.command.judge import judge

        whole = typed.text + params.text
        judgement = judge(whole)
        if judgement.verdict == "deny":
            raise ToolError(f"Nothing was typed, and never will be, whoever asks for it: {judgement.reason}.")
        line = f"(what keys made of the line) {whole}" if typed.changed else whole
        reached = (Access(Reach.RUN, line), *_accesses(whole)) if typed.changed else _accesses(whole)
        if ctx.approved and not typed.changed:
            decided = {*_accesses(typed.text), *_accesses(params.text)}
            reached = tuple(one for one in reached if one.free and one not in decided)
        if reached:
            action = f"type the rest of a line into {process.id}, which runs {spelled_out(process.command)}"
            await ctx.ask(action, [line], accesses=reached)
    typed.type(params.text)
    for key in params.keys:
        typed.press(key)


async def _wait_for_answer(process: BackgroundProcess, start: int, timeout: float) -> None:
    """Waits for output, and then until no more comes for a moment."""
    import asyncio

    async def more() -> bool:
        return process.output.total > start

    loop = asyncio.get_running_loop()
    deadline = loop.time() + timeout
    await process.wait_until(more, timeout)
    while process.running and (left := deadline - loop.time()) > 0:
        total = process.output.total
        await asyncio.sleep(min(QUIET, left))
        if process.output.total == total:
            return
