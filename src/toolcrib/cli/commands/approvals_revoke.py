"""`toolcrib approvals revoke`: approvals that outlast a run are forgotten."""

from __future__ import annotations

from typing import Annotated

import typer

from toolcrib.cli.console import DONE, NOT_DONE, Problem, out, say
from toolcrib.cli.user_files import approval_store
from toolcrib.errors import ToolcribError
from toolcrib.visible import on_one_line

Ids = Annotated[list[str], typer.Argument(metavar="ID", help='Ids from toolcrib approvals list, or "all".')]


def command(ids: Ids) -> int:
    store = approval_store()
    try:
        kept = store.all()
        wanted = [item.id for item in kept] if ids == ["all"] else ids
        missing = [id for id in wanted if not store.revoke(id)]
    except (OSError, ToolcribError) as problem:
        raise Problem(str(problem)) from problem
    for id in missing:
        say(f"there is no approval {on_one_line(id)}; toolcrib approvals list shows all")
    if not wanted:
        out("there is nothing to revoke")
    elif len(wanted) > len(missing):
        out(f"revoked {len(wanted) - len(missing)}")
    return NOT_DONE if missing else DONE
