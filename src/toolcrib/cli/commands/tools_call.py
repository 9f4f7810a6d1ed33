"""`toolcrib tools call`: one call by hand, along the path that a model's call takes."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable
from dataclasses import fields
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import typer

from toolcrib.cli.console import (
    DEBUG,
    DONE,
    NOT_DONE,
    Problem,
    asking_stream,
    debugging,
    out,
    person_can_be_asked,
    say,
    stdout_reserved,
)
from toolcrib.cli.dependencies import Factory, dependencies, load_factory, require_dependencies
from toolcrib.cli.loaded_tools import load_assembly, load_tool, load_tool_with
from toolcrib.cli.mcp_servers import ServersWanted
from toolcrib.cli.options import ToolName, ToolsToUse
from toolcrib.cli.policy_options import PolicyOptions
from toolcrib.cli.question_text import repair_lines
from toolcrib.cli.sandbox_options import NetworkSwitch, SandboxOptions
from toolcrib.cli.settings_in_effect import BY_DEFAULT, FLAG, SettingsInEffect, has_rules, settings_in_effect
from toolcrib.cli.signals import STOPPING, at_signals
from toolcrib.cli.tool_arguments import arguments_from, option_lines
from toolcrib.cli.tool_settings import ToolsWanted
from toolcrib.cli.user_files import approval_store, stored_secrets
from toolcrib.command.sandbox import Files
from toolcrib.command.sandbox.process.kernel import hide_own_process
from toolcrib.dataclass import replace
from toolcrib.errors import ErrorCode
from toolcrib.events import CallFinished, Event, Notice, StatusChanged
from toolcrib.spec import ToolSpec
from toolcrib.toolbox.policy import Autonomy
from toolcrib.toolset import is_toolset, name_of
from toolcrib.visible import escape_invisible, on_one_line

if TYPE_CHECKING:
    from toolcrib.assembly import Assembly
    from toolcrib.question import Answer, Question
    from toolcrib.result import ToolResult

CONTEXT_SETTINGS = {"allow_interspersed_args": False, "ignore_unknown_options": True}

# Our own options may also stand after the tool's name, unless the tool has a parameter of that name.
OWN_OPTIONS = {
    "--from": "from_", "-f": "from_", "--mcp": "mcp", "--deps": "deps", "--workspace": "workspace", "-w": "workspace",
    "--autonomy": "autonomy", "--policy": "policy", "--sandbox": "sandbox", "--network": "network",
    "--allow-host": "allow_host", "--outer-sandbox": "outer_sandbox",
}  # fmt: skip
REPEATED = {"from_", "allow_host", "mcp"}
KINDS: dict[str, type[Any]] = {
    "workspace": Path,
    "policy": Path,
    "autonomy": Autonomy,
    "sandbox": Files,
    "network": NetworkSwitch,
}

Options = TypeVar("Options", bound=ToolsToUse | PolicyOptions | SandboxOptions)
Arguments = Annotated[
    list[str] | None,
    typer.Argument(metavar="JSON | --PARAMETER VALUE", help="The arguments; - reads JSON from stdin."),
]


def command(
    name: ToolName,
    tools: ToolsToUse,
    policy: PolicyOptions,
    sandbox: SandboxOptions,
    arguments: Arguments = None,
) -> int:
    """Give the arguments as JSON, or as options that follow from the tool's parameters: --city Oslo --days 3. Repeat
    an option for a list, write a boolean as --flag or --no-flag, and nested values as JSON. NAME --help shows the
    options of a tool.

    The result goes to stdout, everything else to stderr. The exit code is 1 if the call gave an error.
    """
    own, tokens = _parted(name, list(arguments or ()), tools)
    tools, policy, sandbox = _with_own(tools, own), _with_own(policy, own), _with_own(sandbox, own)
    hide_own_process()  # what runs must not read our environment
    assembly = load_assembly(
        tools.references,
        tools.workspace,
        sandbox.chosen(tools.workspace),
        # examples of rules may be of any tool
        ToolsWanted(only="" if has_rules(policy, tools.workspace) else name),
        mcp=ServersWanted(tools.mcp_files, start=True, tool=name),
    )
    factory = load_factory(tools.deps)
    if factory is None:
        require_dependencies(
            tool for tool in assembly.named if not is_toolset(tool) and name_of(tool) == name
        )

    def in_effect() -> SettingsInEffect:
        return settings_in_effect(policy, tools.workspace, assembly.toolbox(autonomy="full"))

    project = tools.workspace.resolve()
    with stdout_reserved():
        called = asyncio.run(_loaded_and_called(assembly, name, tokens, project, in_effect, factory))
    if isinstance(called, ToolSpec):
        _print_help(name, called.input_schema)
        return DONE
    return _report(name, *called)


async def _loaded_and_called(
    assembly: Assembly,
    name: str,
    tokens: list[str],
    project: Path,
    in_effect: Callable[[], SettingsInEffect],
    factory: Factory | None,
) -> ToolSpec | tuple[ToolResult, list[str], Autonomy]:
    """The tool's spec if its help is asked for; or the call's result, what the operator should know, and the autonomy.

    The dependencies are made once, for the description and the call. Raises Problem when Ctrl-C cancelled the call.
    """
    async with dependencies(factory) as deps:
        _, spec = await load_tool_with(deps, assembly, name)
        if tokens in (["--help"], ["-h"]) and "help" not in spec.input_schema.get("properties", {}):
            return spec
        given = _arguments(tokens, spec.input_schema)
        settings = await asyncio.to_thread(
            in_effect
        )  # examples of rules are tried in an event loop of their own
        if settings.autonomy_from not in (FLAG, BY_DEFAULT):
            say(f"autonomy {settings.autonomy} ({on_one_line(settings.autonomy_from)})")
        result, problems = await _call(assembly, name, given, settings, project, deps)
        return result, problems, settings.autonomy


async def _call(
    assembly: Assembly, name: str, arguments: Any, settings: SettingsInEffect, project: Path, deps: Any
) -> tuple[ToolResult, list[str]]:
    """The call's result, and what the operator should know of it. Raises Problem when Ctrl-C cancelled it."""
    problems: list[str] = []

    def watch(event: Event) -> None:
        if isinstance(event, CallFinished):
            problems.append(event.problem)
        elif isinstance(event, StatusChanged) and event.tip:
            say(f"… {on_one_line(event.tip)}")
        elif isinstance(event, Notice):
            say(f"note: {on_one_line(event.message)}")

    async def approver(question: Question) -> Answer | None:
        if not person_can_be_asked():
            return None
        from toolcrib.cli.prompt import ask_on, console_on  # loads rich

        return await ask_on(console_on(asking_stream()), question)

    box = assembly.toolbox(
        policy=settings.policy,
        limits=settings.limits or None,
        approver=approver,
        approvals=approval_store(),
        project=project,
        secrets=stored_secrets(),
    )
    watching = box.subscribe(watch)
    signals: list[int] = []

    def stop(number: int) -> None:
        signals.append(number)
        work.cancel()

    async with box:
        work = asyncio.create_task(box.call(name, arguments, deps=deps))
        try:
            with at_signals(STOPPING, stop):
                result = await work
        except asyncio.CancelledError:
            if not signals:
                raise
            raise Problem(f"{name} was cancelled", code=128 + signals[0]) from None
    watching.flush(1.0)
    return result, problems


def _report(name: str, result: ToolResult, problems: list[str], autonomy: Autonomy) -> int:
    """Print the result on stdout, or the error on stderr; the exit code."""
    for line in repair_lines(result.edits):
        say(f"repaired: {line}")
    problem = next((text for text in problems if text), "")
    if not result.is_error:
        out(escape_invisible(result.text) if sys.stdout.isatty() else result.text)
        if problem:
            say(f"note: the result does not match the tool's declared result: {problem}")
        say(f"{name}: success")
        return DONE
    say(result.text)
    if problem:
        last = problem.strip().splitlines()[-1]
        say(problem if debugging() else f"What happened: {on_one_line(last)} ({DEBUG}=1 shows where)")
    if result.code is ErrorCode.NOBODY_TO_ASK:
        unasked = ", or with --autonomy full to run it without a question"
        say(f"Call it from a terminal to be asked{unasked if autonomy is not Autonomy.FULL else ''}.")
    say(f"{name}: error ({result.code.value if result.code is not None else 'tool_error'})")
    return NOT_DONE


def _print_help(name: str, schema: dict[str, Any]) -> None:
    out(f"Usage: toolcrib tools call {name} [JSON | OPTIONS]\n")
    out("\n".join(f"  {escape_invisible(line)}" for line in option_lines(schema)) or "  (no parameters)")


def _arguments(tokens: list[str], schema: dict[str, Any]) -> str | dict[str, Any]:
    """JSON text as it was given, for the call itself to decode and repair, or what the options say."""
    if not tokens or tokens[0].startswith("--"):
        return arguments_from(tokens, schema)
    if len(tokens) > 1:
        raise Problem(
            f"expected one JSON object, or options such as --name VALUE; got {tokens[0]!r} and then {tokens[1]!r}"
        )
    if tokens[0] != "-" and "{" not in tokens[0]:
        raise Problem(
            f"expected one JSON object, or options such as --name VALUE; got {tokens[0]!r}. "
            "NAME --help shows the options of a tool"
        )
    return sys.stdin.read() if tokens[0] == "-" else tokens[0]


def _parted(name: str, tokens: list[str], tools: ToolsToUse) -> tuple[dict[str, list[str]], list[str]]:
    """Our own options among the tokens after the tool's name, and the tokens that are the tool's."""
    if not any(token.partition("=")[0] in OWN_OPTIONS for token in tokens):
        return {}, tokens
    try:
        mcp = ServersWanted(tools.mcp_files, tool=name)
        assembly = load_assembly(tools.references, tools.workspace, mcp=mcp)
        _, spec = load_tool(assembly, name)
        parameters = set(spec.input_schema.get("properties", {}))
    except Problem:
        parameters = set()
    own: dict[str, list[str]] = {}
    others: list[str] = []
    queue = list(tokens)
    while queue:
        token = queue.pop(0)
        option, equals, value = token.partition("=")
        label = OWN_OPTIONS.get(option)
        if label is None or label.rstrip("_").replace("_", "-") in parameters:
            others.append(token)
            continue
        if not equals:
            if not queue:
                raise Problem(f"option {option} needs a value")
            value = queue.pop(0)
        own.setdefault(label, []).append(value)
    return own, others


def _with_own(given: Options, own: dict[str, list[str]]) -> Options:
    """A group of options with those after the tool's name. Raises Problem for a value that is not allowed."""
    changed: dict[str, Any] = {}
    for field in fields(given):
        values = own.get(field.name)
        if values and field.name in REPEATED:
            changed[field.name] = [*(getattr(given, field.name) or ()), *values]
        elif values:
            changed[field.name] = _read_option(field.name, values[-1])
    return replace(given, **changed)


def _read_option(name: str, text: str) -> Any:
    kind = KINDS.get(name, str)
    try:
        return kind(text)
    except ValueError:
        choices = " or ".join(kind) if issubclass(kind, StrEnum) else kind.__name__
        raise Problem(f"--{name}: expected {choices}; got {text}") from None
