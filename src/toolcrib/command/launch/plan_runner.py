"""Runs a plan: makes the processes, pipes and redirections itself, so no shell can read the command differently.

A `PlanHost` starts the processes and opens the files, so that they can be confined by a sandbox. Statuses are those of
bash: a pipeline has the status of its last stage, a program that is not found gives 127, one that cannot be run 126,
and one that was ended by a signal 128 plus the signal's number.
"""

from __future__ import annotations

import os
import time
from collections.abc import Mapping, Sequence
from typing import NoReturn

from toolcrib.access import Permits
from toolcrib.command.judge.expanded import (
    objection_of_rules,
    objection_to_expanded,
    objection_to_links,
    objection_to_listed,
    objection_to_names,
    objection_to_printed,
)
from toolcrib.command.judge.judged_commands import STDIN, with_pipes_named
from toolcrib.command.judge.links import Links
from toolcrib.command.launch import builtins
from toolcrib.command.launch.expand import expand, named_word
from toolcrib.command.launch.git_options import hardened, hardened_env
from toolcrib.command.launch.plan_host import PlanHost, PlanProcess
from toolcrib.command.launch.plan_streams import (
    PipeReader,
    Streams,
    complain,
    lines_of_input,
    next_line,
    piped_text,
    redirected,
)
from toolcrib.command.plan import (
    Command,
    Compound,
    Pipeline,
    Plan,
    Redirect,
    Stage,
    Step,
    Subshell,
    Substitution,
    Word,
    is_last_status,
)
from toolcrib.command.programs.listing import lists_names
from toolcrib.command.programs.xargs import XargsForm, words_of_input, xargs_form
from toolcrib.dataclass import dataclass, field, replace

NOT_FOUND = 127
NOT_RUN = 126
MAX_STARTED = 1_000  # commands that one xargs starts
TELLS_TYPE = ("bash", "-p", "-c", 'type "$@"', "bash")  # -p: no variable changes what it says
ROUND = 0.001  # seconds between two rounds of a loop


class _Exit(Exception):
    """`exit` with its status: it ends the plan, or the parentheses, stage or substitution that it stands in."""

    def __init__(self, status: int) -> None:
        super().__init__(status)
        self.status = status


class _Refused(Exception):
    """A command is not run because a pattern or a substitution gave it a name that judging would have refused."""


@dataclass(slots=True)
class _State:
    """The state of a running plan, as a shell has it. Every group and every stage of a pipeline gets a copy.

    `processes` are all that run now, in all copies.
    """

    host: PlanHost
    workspace: str
    folder: str
    env: Mapping[str, str]
    harden_git: bool
    processes: list[PlanProcess]
    permits: Permits | None = None
    status: int = 0  # of the last pipeline
    # The values of its variables, and the names to which its loops have come.
    names: Mapping[str, str] = field(default_factory=dict)

    def copy(self) -> _State:
        return _State(
            self.host, self.workspace, self.folder, self.env, self.harden_git, self.processes, self.permits,
            self.status, self.names,
        )  # fmt: skip


@dataclass(slots=True)
class _Pipe:
    """The pipe of `<( … )`: the plan that writes into it, and its ends as far as they are open here."""

    plan: Plan
    state: _State
    streams: Streams
    ends: dict[str, int]

    def close(self, end: str) -> None:
        if (fd := self.ends.pop(end, None)) is not None:
            os.close(fd)

    async def fill(self) -> None:
        try:
            await _shell(self.plan, self.state, (self.streams[0], self.ends["write"], self.streams[2]))
        finally:
            self.close("write")


async def run_plan(
    plan: Plan,
    host: PlanHost,
    *,
    env: Mapping[str, str],
    stdin: int,
    stdout: int,
    stderr: int,
    timeout: float | None = None,
    harden_git: bool = True,
    workspace: str | None = None,
    permits: Permits | None = None,
) -> int:
    """Runs a plan to its end; returns its status, as `bash -c` would.

    Its programs get `env` and the variables that the plan sets. `harden_git` switches off those settings of a
    repository that would run programs. `workspace` is the absolute path that no link may lead out of, by default the
    root of the host. `permits` says whether rules allow a path that was not known before. After `timeout` seconds it
    ends everything that was started and raises TimeoutError; it does the same when the calling task is cancelled.
    """
    import asyncio

    state = _State(host, workspace or host.root, host.root, env, harden_git, [], permits)
    try:
        async with asyncio.timeout(timeout):
            return await _shell(plan, state, (stdin, stdout, stderr))
    finally:
        for process in state.processes:
            process.kill()


async def _shell(plan: Plan, state: _State, streams: Streams) -> int:
    """Runs a plan as a shell of its own, which `exit` ends."""
    try:
        return await _plan(plan, state, streams)
    except _Exit as ended:
        return ended.status


async def _plan(plan: Plan, state: _State, streams: Streams) -> int:
    status = 0
    for step in plan.steps:
        if (step.join == "&&" and status) or (step.join == "||" and not status):
            continue
        state.status = status = await _pipeline(step.pipeline, state, streams)
    return status


async def _pipeline(pipeline: Pipeline, state: _State, streams: Streams) -> int:
    started = time.monotonic()
    if len(pipeline.stages) == 1:
        status = await _stage(pipeline.stages[0], state, streams)
    else:
        status = await _connected(pipeline.stages, state, streams)
    if pipeline.timed:
        minutes, seconds = divmod(time.monotonic() - started, 60)
        await complain(streams[2], f"\nreal\t{minutes:.0f}m{seconds:.3f}s")
    return int(not status) if pipeline.negated else status


async def _connected(stages: Sequence[Stage], state: _State, streams: Streams) -> int:
    """Runs stages side by side, each in a copy of the state. Each end of a pipe is closed by the stage that uses it."""
    import asyncio

    source, sink, errors = streams
    ends: list[tuple[int | None, int | None]] = []
    owned: list[int] = []
    for index in range(len(stages)):
        reading = source
        if index + 1 < len(stages):
            try:
                source, writing = os.pipe()
            except OSError:
                for end in owned:
                    os.close(end)
                raise
            owned += [source, writing]
            ends.append((reading, writing))
        else:
            ends.append((reading, sink))
    open_ends = set(owned)

    async def one(stage: Stage, reading: int | None, writing: int | None) -> int:
        try:
            own = state.copy()
            return await _shell(Plan((Step(";", Pipeline((stage,))),)), own, (reading, writing, errors))
        finally:
            for end in (reading, writing):
                if end in open_ends:
                    open_ends.discard(end)
                    os.close(end)

    try:
        async with asyncio.TaskGroup() as group:
            tasks = [
                group.create_task(one(stage, reading, writing))
                for stage, (reading, writing) in zip(stages, ends, strict=True)
            ]
    finally:
        for end in open_ends:  # of tasks that were cancelled before they began
            os.close(end)
    return tasks[-1].result()


async def _stage(stage: Stage, state: _State, streams: Streams) -> int:
    opened: list[int] = []
    pipes: list[_Pipe] = []
    try:
        try:
            argv = await _argv(stage, state, streams, pipes) if isinstance(stage, Command) else []
            redirects = [_named(redirect, state) for redirect in stage.redirects]
        except _Refused as refused:
            await complain(streams[2], str(refused))
            return 1
        after = await redirected(
            redirects,
            streams,
            opened,
            lambda path, flags: state.host.open(path, folder=state.folder, flags=flags),
        )
        if after is None:
            return 1
        streams = after
        if isinstance(stage, Subshell):
            own = state.copy()
            return await _shell(stage.plan, own, streams)
        if isinstance(stage, Compound) and stage.kind == "set":
            return await _set(stage, state, streams)
        if isinstance(stage, Compound):
            return await _compound(stage, state.copy(), streams)
        return await _command(stage, argv, state, streams, opened, pipes)
    finally:
        for fd in opened:
            os.close(fd)
        for pipe in pipes:
            pipe.close("read")
            pipe.close("write")


def _named(redirect: Redirect, state: _State) -> Redirect:
    """The redirection with the name to which a loop has come. Raises _Refused for one that may not be read."""
    if not isinstance(redirect.target, Word) or not redirect.target.names_of_loops:
        return redirect
    try:
        word = named_word(redirect.target, state.names)
    except ValueError as problem:
        raise _Refused(f"<: not run, because {problem}") from None
    if (wrong := objection_to_names("<", [word.spelled], state.host.root, contents=True)) is not None:
        raise _Refused(wrong)
    return replace(redirect, target=word)


async def _set(stage: Compound, state: _State, streams: Streams) -> int:
    """Sets a variable, in the state that what follows has too. Raises _Exit where that cannot be done as judged."""
    assert stage.over is not None
    text, status = stage.over.literal, 0
    if text is None:
        part = stage.over.substitutions[0]
        try:
            text, status = await _text(part, state, streams)
        except ValueError as problem:
            await complain(streams[2], f"{stage.variable}=: not run, because {problem}")
            raise _Exit(1) from None
    if stage.variable in state.env:
        await complain(
            streams[2], f"{stage.variable}=: not run, because programs get a variable of that name"
        )
        raise _Exit(1)
    state.names = {**state.names, stage.variable: text}
    return status


async def _compound(stage: Compound, state: _State, streams: Streams) -> int:
    import asyncio

    plans = stage.plans
    status = 0
    if stage.over is not None:
        outer = state.names
        try:
            texts = [(await _text(part, state, streams))[0] for part in stage.over.substitutions]
            names = expand(stage.over, texts, lambda path: state.host.names(path, folder=state.folder))
        except ValueError as problem:
            await complain(streams[2], f"for: not run, because {problem}")
            return 1
        for name in names:
            state.names = {**outer, stage.variable: name}
            status = await _plan(plans[0], state, streams)
            await asyncio.sleep(0)
        return status
    if stage.kind == "group":
        return await _plan(plans[0], state, streams)
    if stage.kind == "read":
        return await _read_loop(stage, state, streams)
    if stage.kind == "if":
        for at in range(0, len(plans) - 1, 2):
            if not await _plan(plans[at], state, streams):
                return await _plan(plans[at + 1], state, streams)
        return await _plan(plans[-1], state, streams) if len(plans) % 2 else 0
    while (await _plan(plans[0], state, streams) == 0) == (stage.kind == "while"):
        status = await _plan(plans[1], state, streams)
        await asyncio.sleep(ROUND)  # lets a cancellation in, even if the loop starts nothing
    return status


async def _read_loop(stage: Compound, state: _State, streams: Streams) -> int:
    import asyncio

    status = 0
    opened: list[int] = []
    try:
        lines = await lines_of_input(streams[0], opened)
        while lines is not None and (line := next_line(lines)) is not None:
            if "\\" in line and "-r" not in stage.reads:
                raise ValueError("a line of its input has a backslash: write read -r")
            text = line if "IFS=" in stage.reads else line.strip(" \t")
            state.names = {**state.names, stage.variable: text}
            status = await _plan(stage.plans[0], state, (lines, *streams[1:]))
            await asyncio.sleep(0)
    except ValueError as problem:
        await complain(streams[2], f"read: not run, because {problem}")
        return 1
    finally:
        for fd in opened:
            os.close(fd)
    return status


async def _argv(command: Command, state: _State, streams: Streams, pipes: list[_Pipe]) -> list[str]:
    argv: list[str] = []
    found: list[str] = []  # names that were unknown when the command was judged
    listed: list[str] = []  # those of them that a listing printed
    unknown = False  # whether any word was unknown: `found` may be empty, as a listing may print nothing
    printed = False  # whether any word has a substitution
    for word in command.words:
        if word.piped is not None:
            reading, writing = os.pipe()
            pipes.append(_Pipe(word.piped, state.copy(), streams, {"read": reading, "write": writing}))
            argv.append(f"/dev/fd/{reading}")
            continue
        try:
            texts = [(await _text(part, state, streams))[0] for part in word.substitutions]
            written = named_word(word, state.names)
            fields = expand(written, texts, lambda path: state.host.names(path, folder=state.folder))
        except ValueError as problem:
            raise _Refused(f"{(argv or [word.spelled])[0]}: not run, because {problem}") from None
        if word.is_glob or lists_names(word):
            unknown = True
            found += [] if word.prefix.startswith("-") else fields
            listed += fields if lists_names(word) else []
        printed = printed or bool(word.substitutions)
        argv += fields
    named = {f"/dev/fd/{pipe.ends['read']}" for pipe in pipes}
    judged = [STDIN if text in named else text for text in argv]
    words = with_pipes_named(command.words)
    if unknown and (wrong := objection_to_expanded(words, judged, found, state.host.root)) is not None:
        raise _Refused(wrong)
    if printed and (wrong := objection_to_printed(words, judged)) is not None:
        raise _Refused(wrong)
    if listed and (wrong := objection_to_listed(words, listed, state.folder)) is not None:
        raise _Refused(wrong)
    if (
        unknown
        and (wrong := objection_of_rules(judged, state.folder, state.workspace, state.permits)) is not None
    ):
        raise _Refused(wrong)
    if (wrong := objection_to_links(judged, Links(state.workspace, state.folder))) is not None:
        raise _Refused(wrong)
    return argv


async def _text(part: Substitution, state: _State, streams: Streams) -> tuple[str, int]:
    """What stands in the place of a substitution, and the status of its plan. Raises ValueError if that is too much."""
    if part.variable:
        if part.variable not in state.names:
            raise ValueError(f"${part.variable} has no value")
        return state.names[part.variable], 0
    if is_last_status(part):
        return str(state.status), 0
    return await _printed(part.plan, state, streams)


async def _printed(plan: Plan, state: _State, streams: Streams) -> tuple[str, int]:
    """What a plan prints, without trailing newlines, and its status. Raises ValueError if that is too much."""
    reading, writing = os.pipe()
    try:
        async with PipeReader(reading) as collecting:
            try:
                status = await _shell(plan, state.copy(), (streams[0], writing, streams[2]))
            finally:
                os.close(writing)
                writing = -1
            data = await collecting.all()
    finally:
        if writing >= 0:  # cancelled meanwhile
            os.close(writing)
    return data.replace(b"\0", b"").decode("utf-8", "surrogateescape").rstrip("\n"), status


async def _command(
    command: Command,
    argv: list[str],
    state: _State,
    streams: Streams,
    opened: list[int],
    pipes: Sequence[_Pipe],
) -> int:
    name = argv[0]
    if name == "cd":
        return await _cd(argv[1:], state, streams[2])
    if name == ":":
        return 0
    if name == "exit":
        return await _exit(argv[1:], state, streams[2])
    if (form := xargs_form(argv)) is not None:
        return await _xargs(command, form, argv, state, streams)
    if name == "command" and argv[1:]:  # judging proved that it is `command -v NAME`
        argv = ["which", *argv[2:]]
    if name == "type":
        argv = [*TELLS_TYPE, *argv[1:]]
    env = {**state.env, **dict(command.env)}
    if (known := builtins.answer(argv, env, streams)) is not None:
        return await builtins.run(argv[0], *known, streams)
    if state.harden_git:
        argv, env = hardened(argv), hardened_env(argv, env)
    inherited = [pipe.ends["read"] for pipe in pipes]
    try:
        process = await state.host.spawn(
            argv, folder=state.folder, env=env, streams=streams, inherited=inherited
        )
    except FileNotFoundError:
        await complain(streams[2], f"{name}: command not found")
        return NOT_FOUND
    except OSError as failed:
        await complain(streams[2], f"{name}: {failed.strerror}")
        return NOT_RUN
    state.processes.append(process)
    while opened:  # the program has copies; a reader must see the end when the program ends
        os.close(opened.pop())
    return await _ended(process, state, pipes)


async def _ended(process: PlanProcess, state: _State, pipes: Sequence[_Pipe]) -> int:
    """Waits for a program that was started, while plans write into its pipes. Its status, as a shell gives it."""
    import asyncio

    for pipe in pipes:
        pipe.close("read")
    filling = [asyncio.ensure_future(pipe.fill()) for pipe in pipes]
    try:
        status = await process.wait()
        await asyncio.gather(*filling)
    except BaseException:
        process.kill()
        for task in filling:
            task.cancel()
        await process.wait()
        await asyncio.gather(*filling, return_exceptions=True)
        raise
    state.processes.remove(process)
    return 128 - status if status < 0 else status


async def _xargs(command: Command, form: XargsForm, argv: list[str], state: _State, streams: Streams) -> int:
    """Starts the command of xargs with the words of its input, each looked at before. The status is that of xargs."""
    try:
        given = words_of_input(await piped_text(streams[0], nul=form.ends == "\0"), form)
        started = list(form.commands(argv, given))
        if len(started) > MAX_STARTED:
            raise ValueError(f"it would start more than {MAX_STARTED:,} commands")
    except ValueError as problem:
        await complain(streams[2], f"xargs: not run, because {problem}")
        return 1
    judged = form.judged(command.words)
    for words, names in started:
        wrong = objection_to_expanded(judged, words, names, state.host.root)
        wrong = wrong or objection_to_listed(judged, names, state.folder)
        wrong = wrong or objection_of_rules(words, state.folder, state.workspace, state.permits)
        if wrong is not None:
            await complain(streams[2], wrong)
            return 1
    worst = 0
    for words, _ in started:
        known = tuple(Word((text,) if text else ()) for text in words)
        status = await _stage(Command(known, command.env, (Redirect(0, "null"),)), state, streams)
        if status > 125:
            return status if status in (NOT_RUN, NOT_FOUND) else 124 if status == 255 else 125
        worst = 123 if status else worst
    return worst


async def _exit(args: list[str], state: _State, errors: int | None) -> NoReturn:
    if args and not args[0].isdecimal():
        await complain(errors, f"exit: {args[0]}: numeric argument required")
        raise _Exit(2)
    raise _Exit(int(args[0]) & 255 if args else state.status)


async def _cd(args: list[str], state: _State, errors: int | None) -> int:
    path = next((arg for arg in args if arg != "--"), "")
    try:
        state.folder = state.host.enter(path, folder=state.folder)
    except OSError as failed:
        await complain(errors, f"cd: {path}: {failed.strerror}")
        return 1
    return 0
