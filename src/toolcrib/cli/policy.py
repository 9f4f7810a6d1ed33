"""`toolcrib policy explain | test | check` and `toolcrib approvals list | revoke`."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from toolcrib.call import ToolCall
from toolcrib.cli.confine import Confinement
from toolcrib.cli.console import Problem, out, say
from toolcrib.cli.explain import foreseen
from toolcrib.cli.force import (
    approval_store,
    config_folder,
    counted,
    counts,
    in_force,
    rules_file,
    stray,
    tried,
)
from toolcrib.cli.shown import on_one_line
from toolcrib.cli.tools import assembled
from toolcrib.errors import ToolcribError
from toolcrib.rules.file import NotThere, call_from
from toolcrib.toolbox.approvals import Approval
from toolcrib.toolbox.policy import Verb

if TYPE_CHECKING:
    from toolcrib.assembly import Assembly
    from toolcrib.toolbox import Toolbox


@dataclass(frozen=True, slots=True)
class Asked:
    """What the commands share: which rules and tools, under which autonomy and sandbox, where."""

    named: Path | None
    autonomy: str | None = None
    tools: Sequence[str] = ()
    workspace: Path = Path()
    confinement: Confinement = Confinement()  # noqa: RUF009 - frozen

    def assembly(self) -> Assembly:
        plain = self.confinement == Confinement()
        sandbox = None if plain else self.confinement.sandbox(self.workspace)
        return assembled(self.tools, self.workspace, sandbox)

    def box(self) -> Toolbox:
        """All tools, to look at calls with."""
        return self.assembly().toolbox(autonomy="full")


def explain(text: str, asked: Asked, *, tainted: bool = False, said: Sequence[str] = ()) -> int:
    """What would become of a call, who decides it, and why."""
    assembly = asked.assembly()
    force = in_force(asked.named, asked.autonomy, asked.workspace, assembly.toolbox(autonomy="full"))
    box = assembly.toolbox(approvals=approval_store(), project=asked.workspace.resolve())
    try:
        seen = asyncio.run(foreseen(box, call_from(text), force.policy, tainted=tainted, said=said))
    except ToolcribError as problem:
        more = " fetch comes with --allow-host and --network on." if text.split()[:1] == ["fetch"] else ""
        raise Problem(f"{problem}{more if isinstance(problem, NotThere) else ''}") from problem
    for line in seen.lines():
        out(line)
    out(f"  autonomy    {force.autonomy} ({on_one_line(force.why)})")
    return 0


def test(path: Path, asked: Asked, against: Path | None) -> int:
    """Decide recorded calls anew and say what would be another decision than `against`, or than was noted."""
    box = asked.box()
    policy = in_force(asked.named, asked.autonomy, asked.workspace, box).policy
    other = in_force(against, asked.autonomy, asked.workspace, box).policy if against is not None else None
    counts = dict.fromkeys(Verb, 0)
    changed = unreadable = 0
    for number, call, noted, tainted, heard in _calls(path):
        try:
            seen = asyncio.run(foreseen(box, call, policy, tainted=tainted, said=heard))
            before = noted
            if other is not None:
                before = asyncio.run(foreseen(box, call, other, tainted=tainted, said=heard)).verb.value
        except ToolcribError as problem:
            unreadable += 1
            say(f"{path}, line {number}: {on_one_line(str(problem), 160)}")
            continue
        counts[seen.verb] += 1
        if before and before != seen.verb.value:
            changed += 1
            shown = on_one_line(f"{call.name} {json.dumps(call.arguments, ensure_ascii=False)}", 100)
            out(f"line {number}: {before} -> {seen.verb.value}  {shown}  ({on_one_line(seen.by)})")
    total = ", ".join(f"{count} {verb.value}" for verb, count in counts.items())
    said = f"; {changed} decided otherwise than before" if other is not None or changed else ""
    out(f"{total}{said}{f'; {unreadable} could not be prepared' if unreadable else ''}")
    return 1 if unreadable else 0


def _calls(path: Path) -> Iterator[tuple[int, ToolCall, str, bool, list[str]]]:
    """Calls of a JSON Lines file: `{"name", "arguments"}`, perhaps below "call".

    Perhaps with a "decision" that was made, "tainted", and "said": what the user had said, a text or a list.
    """
    try:
        text = path.read_text(encoding="utf-8")
    except OSError as problem:
        raise Problem(f"{path} cannot be read: {problem.strerror or problem}") from problem
    for number, line in enumerate(text.split("\n"), 1):
        if not line.strip():
            continue
        try:
            data: Any = json.loads(line)
            call = data.get("call", data)
            arguments = call.get("arguments", {})
            name = call.get("name") or call["tool"]
            said = data.get("said") or []
            heard = [said] if isinstance(said, str) else [str(text) for text in said]
            decision = str(data.get("decision") or "")
            yield number, ToolCall(str(name), arguments), decision, bool(data.get("tainted")), heard
        except (ValueError, KeyError, AttributeError, TypeError):
            raise Problem(
                f'{path}, line {number}: expected {{"name": "TOOL", "arguments": {{...}}}}, got {on_one_line(line, 80)}'
            ) from None


def check(asked: Asked) -> int:
    """Read the rules and try their examples; name those that cannot be tried, and rules that hold for nothing."""
    file = rules_file(asked.named)
    if file is None:
        out(f"no rules: {config_folder() / 'policy.toml'} does not exist")
        return 0
    box = asked.box()
    untried = tried(file, box)
    for line in stray(file, box):
        out(f"warning: {line}")
    for number, text in untried:
        out(f"not tried, as there is no such tool now: line {number}: {on_one_line(text, 120)}")
    examples = f"{counted(len(file.examples), 'example')}"
    rest = f"{len(untried)} not tried" if untried else "all as they say" if file.examples else ""
    out(f"{file.path}: {', '.join(part for part in (counts(file), examples, rest) if part)}")
    return 0


def list_approvals(*, as_json: bool) -> int:
    """What is remembered beyond a run."""
    kept = _stored()
    if as_json:
        out(json.dumps([_as_json(item) for item in kept], ensure_ascii=False, indent=2))
        return 0
    for item in kept:
        where = {"project": f"in {item.where}", "user": "everywhere"}.get(item.lasting.value, "")
        until = f", until {_when(item.expires)}" if item.expires is not None else ""
        by = f" by {item.by}" if item.by else ""
        out(
            f"{item.id}  {item.tool}: {on_one_line(item.shown, 80)}  {where}{until}, approved {_when(item.at)}{by}"
        )
    if not kept:
        out("nothing is approved beyond a run")
    return 0


def revoke(ids: Sequence[str]) -> int:
    """Forget approvals by their ids; "all" forgets every one."""
    store, kept = approval_store(), _stored()
    wanted = [item.id for item in kept] if list(ids) == ["all"] else list(ids)
    missing = [id for id in wanted if not store.revoke(id)]
    for id in missing:
        say(f"no approval {on_one_line(id)}; toolcrib approvals list shows them")
    if len(wanted) > len(missing):
        out(f"revoked {len(wanted) - len(missing)}")
    return 1 if missing else 0


def _stored() -> list[Approval]:
    try:
        return approval_store().all()
    except (OSError, ToolcribError) as problem:
        raise Problem(str(problem)) from problem


def _as_json(item: Approval) -> dict[str, Any]:
    return {name: getattr(item, name) for name in ("id", "tool", "shown", "by", "at", "expires", "where")} | {
        "scope": item.scope.value,
        "lasting": item.lasting.value,
    }


def _when(seconds: float) -> str:
    return time.strftime("%Y-%m-%d %H:%M", time.localtime(seconds))
