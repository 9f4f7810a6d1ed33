"""`toolcrib policy test`: recorded calls decided anew."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

import typer

from toolcrib.call import ToolCall
from toolcrib.cli.console import DONE, NOT_DONE, Problem, out, say
from toolcrib.cli.loaded_tools import load_assembly
from toolcrib.cli.mcp_servers import ServersWanted
from toolcrib.cli.options import ToolSelection
from toolcrib.cli.policy_options import PolicyOptions
from toolcrib.cli.prediction import Prediction, predict
from toolcrib.cli.sandbox_options import SandboxOptions
from toolcrib.cli.settings_in_effect import covers_of, settings_as_in_a_run
from toolcrib.dataclass import dataclass, replace
from toolcrib.errors import ToolcribError
from toolcrib.text_file import read_text_file
from toolcrib.toolbox.policy import Verb
from toolcrib.visible import on_one_line

Calls = Annotated[
    Path, typer.Argument(metavar="CALLS.jsonl", help='A call on each line: {"name", "arguments"}.')
]
Against = Annotated[Path | None, typer.Option(metavar="FILE", help="Other rules to compare with.")]


@dataclass(frozen=True, slots=True)
class RecordedCall:
    """One call from the file, and the decision that the file records for it, if any."""

    line: int
    call: ToolCall
    decision: str
    tainted: bool
    user_texts: list[str]


def command(
    calls: Calls,
    policy: PolicyOptions,
    tools: ToolSelection,
    sandbox: SandboxOptions,
    against: Against = None,
) -> int:
    """Nothing is run.

    A line may record as "decision" what was decided then. With --against, the decisions under two files of rules are
    compared.
    """
    assembly = load_assembly(
        tools.references, tools.workspace, sandbox.chosen(tools.workspace), mcp=ServersWanted(tools.mcp_files)
    )
    box = assembly.toolbox(autonomy="full")
    decides = settings_as_in_a_run(policy, tools.workspace, box, sandbox).policy
    other = None
    if against is not None:
        other = settings_as_in_a_run(replace(policy, policy=against), tools.workspace, box, sandbox).policy

    covers = covers_of(tools.workspace)

    def predicted(recorded: RecordedCall, by: Any) -> Prediction:
        call, tainted, texts = recorded.call, recorded.tainted, recorded.user_texts
        return asyncio.run(predict(box, call, by, tainted=tainted, user_texts=texts, covers=covers))

    decisions = dict.fromkeys(Verb, 0)
    changed = unreadable = 0
    for recorded in _recorded_calls(calls):
        try:
            now = predicted(recorded, decides)
            before = recorded.decision if other is None else predicted(recorded, other).verb.value
        except ToolcribError as problem:
            unreadable += 1
            say(f"{calls}, line {recorded.line}: {on_one_line(str(problem), 160)}")
            continue
        decisions[now.verb] += 1
        if before and before != now.verb.value:
            changed += 1
            out(_change_line(recorded, before, now))
    total = ", ".join(f"{count} {verb.value}" for verb, count in decisions.items())
    if other is not None or changed:
        total += f"; {changed} decided differently"
    if unreadable:
        total += f"; {unreadable} could not be prepared"
    out(total)
    return NOT_DONE if unreadable else DONE


def _change_line(recorded: RecordedCall, before: str, now: Prediction) -> str:
    arguments = json.dumps(recorded.call.arguments, ensure_ascii=False)
    call = on_one_line(f"{recorded.call.name} {arguments}", 100)
    return f"line {recorded.line}: {before} -> {now.verb.value}  {call}  ({on_one_line(now.by)})"


def _recorded_calls(path: Path) -> Iterator[RecordedCall]:
    """The calls of a JSON Lines file. Raises Problem for a line that is no call.

    A line is `{"name", "arguments"}`, or has these below "call". It may also hold the "decision" that was made,
    "tainted", and "said": what the user had said, a text or a list of texts.
    """
    try:
        text = read_text_file(path)
    except (OSError, ValueError) as problem:
        raise Problem(f"{path} cannot be read: {getattr(problem, 'strerror', None) or problem}") from problem
    for number, line in enumerate(text.split("\n"), 1):
        if not line.strip():
            continue
        try:
            data: Any = json.loads(line)
            call = data.get("call", data)
            name = call.get("name") or call["tool"]
            said = data.get("said") or []
            yield RecordedCall(
                number,
                ToolCall(str(name), call.get("arguments", {})),
                str(data.get("decision") or ""),
                bool(data.get("tainted")),
                [said] if isinstance(said, str) else [str(text) for text in said],
            )
        except (ValueError, KeyError, AttributeError, TypeError):
            raise Problem(
                f'{path}, line {number}: expected {{"name": "TOOL", "arguments": {{...}}}}, got {on_one_line(line, 80)}'
            ) from None
