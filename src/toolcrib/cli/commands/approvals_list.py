"""`toolcrib approvals list`: the approvals that outlast a run."""

from __future__ import annotations

from json import dumps
from typing import Any

from toolcrib.cli.console import DONE, Problem, out
from toolcrib.cli.options import AsJson
from toolcrib.cli.user_files import approval_store
from toolcrib.cli.wording import local_minute
from toolcrib.errors import ToolcribError
from toolcrib.toolbox.approval import Approval
from toolcrib.visible import on_one_line


def command(json: AsJson = False) -> int:
    try:
        kept = approval_store().all()
    except (OSError, ToolcribError) as problem:
        raise Problem(str(problem)) from problem
    if json:
        out(dumps([_as_data(item) for item in kept], ensure_ascii=False, indent=2))
        return DONE
    for item in kept:
        out(_line(item))
    if not kept:
        out("nothing is approved beyond a run")
    return DONE


def _line(item: Approval) -> str:
    where = {"project": f"in {item.where}", "user": "everywhere"}.get(item.lasting.value, "")
    until = f", until {local_minute(item.expires)}" if item.expires is not None else ""
    by = f" by {item.by}" if item.by else ""
    call = f"{item.tool}: {on_one_line(item.shown, 80)}"
    return f"{item.id}  {call}  {where}{until}, approved {local_minute(item.at)}{by}"


def _as_data(item: Approval) -> dict[str, Any]:
    return {name: getattr(item, name) for name in ("id", "tool", "shown", "by", "at", "expires", "where")} | {
        "scope": item.scope.value,
        "lasting": item.lasting.value,
    }
