"""`toolcrib tools call`: one call by hand, along the path that a model's call takes."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from toolcrib.cli.ask import ask_on, asking_stream, repairs, someone_is_there
from toolcrib.cli.confine import Confinement
from toolcrib.cli.console import DEBUG, INTERRUPTED, Problem, debugging, out, say, stdout_reserved
from toolcrib.cli.force import BY_DEFAULT, FLAG, Force, approval_store, in_force
from toolcrib.cli.options import arguments_from, option_lines
from toolcrib.cli.secrets import stored_secrets
from toolcrib.cli.shown import on_one_line, shown
from toolcrib.cli.tools import assembled, find, items_of
from toolcrib.command.sandbox.process.kernel import hide_own_process
from toolcrib.errors import ErrorCode

if TYPE_CHECKING:
    from toolcrib.assembly import Assembly
    from toolcrib.question import Answer, Question
    from toolcrib.result import ToolResult

OURS = (
    "--from", "-f", "--workspace", "-w", "--autonomy", "--sandbox", "--network", "--allow-host", "--outer-sandbox",
    "--policy",
)  # fmt: skip


def call_tool(
    name: str,
    tokens: list[str],
    named: Sequence[str],
    workspace: Path,
    autonomy: str | None,
    confinement: Confinement = Confinement(),  # noqa: B008 - frozen
    rules: Path | None = None,
) -> int:
    """Call a tool with JSON or with options; the exit code."""
    ours, theirs = _parted(name, tokens, named, workspace)
    named = [*named, *ours.get("from", ())]
    workspace = Path(ours["workspace"][-1]) if "workspace" in ours else workspace
    autonomy = ours["autonomy"][-1] if "autonomy" in ours else autonomy
    hide_own_process()  # what runs shall not look into our environment
    confinement = _with(confinement, ours)
    assembly = assembled(
        named, workspace, confinement.sandbox(workspace) if confinement != Confinement() else None
    )
    item = find(items_of(assembly), name)
    assert item.spec is not None
    if theirs in (["--help"], ["-h"]) and "help" not in item.spec.input_schema.get("properties", {}):
        out(f"Usage: toolcrib tools call {name} [JSON | OPTIONS]\n")
        out(
            "\n".join(f"  {shown(line)}" for line in option_lines(item.spec.input_schema))
            or "  (no parameters)"
        )
        return 0
    arguments = _arguments(theirs, item.spec.input_schema)
    rules = Path(ours["policy"][-1]) if "policy" in ours else rules
    force = in_force(rules, autonomy, workspace, assembly.toolbox(autonomy="full"))
    if force.why not in (FLAG, BY_DEFAULT):
        say(f"autonomy {force.autonomy} ({on_one_line(force.why)})")
    with stdout_reserved():
        result, problems = asyncio.run(_called(assembly, name, arguments, force, workspace.resolve()))
    return _told(name, result, problems)


def _with(given: Confinement, ours: dict[str, list[str]]) -> Confinement:
    """What was said of the sandbox before the tool's name, and after it."""
    return Confinement(
        ours.get("sandbox", [given.files])[-1],
        ours.get("network", [given.network])[-1],
        (*given.hosts, *ours.get("allow-host", ())),
        ours.get("outer-sandbox", [given.outer])[-1],
    )


def _arguments(tokens: list[str], schema: dict[str, Any]) -> str | dict[str, Any]:
    """JSON text as it was given, to be judged where every call's is, or what the options say."""
    if not tokens or tokens[0].startswith("--"):
        return arguments_from(tokens, schema)
    if len(tokens) > 1:
        raise Problem(f"expected one JSON object or options; got {tokens[0]!r} and then {tokens[1]!r}")
    return sys.stdin.read() if tokens[0] == "-" else tokens[0]


async def _called(
    assembly: Assembly, name: str, arguments: Any, force: Force, project: Path
) -> tuple[ToolResult, list[str]]:
    """The call's result, and what the operator should know of it. Raises Problem when it was interrupted."""
    import signal

    from toolcrib.events import CallFinished, Event, Notice, StatusChanged

    problems: list[str] = []

    def watch(event: Event) -> None:
        if isinstance(event, CallFinished):
            problems.append(event.problem)
        elif isinstance(event, StatusChanged) and event.tip:
            say(f"… {on_one_line(event.tip)}")
        elif isinstance(event, Notice):
            say(f"note: {on_one_line(event.message)}")

    async def approver(question: Question) -> Answer | None:
        from rich.console import Console

        if not someone_is_there():
            return None
        return await ask_on(Console(file=asking_stream(), highlight=False), question)

    box = assembly.toolbox(
        policy=force.policy,
        limits=force.limits or None,
        approver=approver,
        approvals=approval_store(),
        project=project,
        secrets=stored_secrets(),
    )
    watching = box.subscribe(watch)
    interrupted = False

    def interrupt() -> None:
        nonlocal interrupted
        interrupted = True
        work.cancel()

    async with box:
        work = asyncio.create_task(box.call(name, arguments))
        asyncio.get_running_loop().add_signal_handler(signal.SIGINT, interrupt)
        try:
            result = await work
        except asyncio.CancelledError:
            if not interrupted:
                raise
            raise Problem(f"{name} was cancelled", code=INTERRUPTED) from None
    watching.flush(1.0)
    return result, problems


def _told(name: str, result: ToolResult, problems: list[str]) -> int:
    for line in repairs(result.edits):
        say(f"repaired: {line}")
    problem = next((text for text in problems if text), "")
    text = shown(result.text) if sys.stdout.isatty() else result.text
    if not result.is_error:
        out(text)
        if problem:
            say(f"note: the result does not match the tool's declared result: {shown(problem)}")
        say(f"{name}: success")
        return 0
    say(shown(result.text))
    if problem:
        last = problem.strip().splitlines()[-1]
        say(shown(problem) if debugging() else f"What happened: {on_one_line(last)} ({DEBUG}=1 shows where)")
    if result.code is ErrorCode.NOBODY_TO_ASK:
        say("Call it from a terminal to be asked, or with --autonomy full to run it unasked.")
    say(f"{name}: error ({result.code.value if result.code is not None else 'tool_error'})")
    return 1


def _parted(
    name: str, tokens: list[str], named: Sequence[str], workspace: Path
) -> tuple[dict[str, list[str]], list[str]]:
    """Our own options that stand after the tool's name, unless the tool has a parameter of that name; the rest."""
    if not any(token.partition("=")[0] in OURS for token in tokens):
        return {}, tokens
    try:
        spec = find(items_of(assembled(named, workspace)), name).spec
        taken = set(spec.input_schema.get("properties", {})) if spec is not None else set()
    except Problem:
        taken = set()
    short = {"-f": "from", "-w": "workspace"}
    ours: dict[str, list[str]] = {}
    theirs: list[str] = []
    queue = list(tokens)
    while queue:
        token = queue.pop(0)
        option, equals, value = token.partition("=")
        label = short.get(option, option.removeprefix("--"))
        if option not in OURS or label in taken:
            theirs.append(token)
            continue
        if not equals:
            if not queue:
                raise Problem(f"option {option} needs a value")
            value = queue.pop(0)
        ours.setdefault(label, []).append(value)
    if ours.get("autonomy", ["full"])[-1] not in ("read_only", "supervised", "full"):
        raise Problem(f"--autonomy must be read_only, supervised or full; got {ours['autonomy'][-1]!r}")
    return ours, theirs
