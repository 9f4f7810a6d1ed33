"""What a person is shown before a command runs: what it does and touches, and what confines it."""

from __future__ import annotations

from toolcrib.command.judge import JudgedCommand, Judgement, Operand, why_of_command
from toolcrib.command.plan import quoted
from toolcrib.command.sandbox import Sandbox
from toolcrib.visible import spelled_out

MAX_OPERANDS = 20
DOES = {"read": "reads", "write": "changes files", "network": "uses the network", "exec": "runs other code"}


def preview_text(command: str, judgement: Judgement, folder: str, sandbox: Sandbox) -> str:
    """What a person should know in addition to the command itself. Contains nothing invisible."""
    line = command.replace("\n", " ")
    lines = [f"spelled out: {spelled_out(line)}"] if spelled_out(line) != line else []
    lines.append(f"in {spelled_out(folder)}")
    if judgement.plan is None:
        programs = ", ".join(map(spelled_out, judgement.programs))
        seen = f"; programs seen in it: {programs}" if programs else ""
        lines.append("it is run by a shell as it stands" + seen)
    else:
        parts = [part for part in judgement.parts if part.argv]
        for number, part in enumerate(parts, start=1):
            lines += _of_part(part, number if len(parts) > 1 else None)
    return "\n".join([*lines, f"sandbox: {_limits(sandbox)}"])


def _of_part(part: JudgedCommand, number: int | None) -> list[str]:
    """What one command does and touches. It is named, with its number, if there are several."""
    lines: list[str] = []
    if number is not None:
        does = why_of_command(part) if part.reason else DOES[part.effect]
        lines = [f"{number}. {' '.join(map(quoted, part.argv))}", f"   {spelled_out(does)}"]
    return lines + [f"   {operand.access} {_path(operand)}" for operand in part.operands[:MAX_OPERANDS]]


def _path(operand: Operand) -> str:
    return spelled_out(operand.path) + (" and all below it" if operand.reach == "subtree" else "")


def _limits(sandbox: Sandbox) -> str:
    report, level = sandbox.report(), sandbox.level
    if not report.confines:
        return f"{report.backend}: NOTHING limits this command"
    return f"{report.backend}, files: {level.files}, network: {level.network}"
