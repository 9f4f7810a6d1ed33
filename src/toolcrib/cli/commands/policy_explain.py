"""`toolcrib policy explain`: what would become of one call."""

from __future__ import annotations

import asyncio
from typing import Annotated

import typer

from toolcrib.cli.console import DONE, Problem, out
from toolcrib.cli.loaded_tools import load_assembly, why_not_there
from toolcrib.cli.mcp_servers import ServersWanted
from toolcrib.cli.options import ToolSelection
from toolcrib.cli.policy_options import PolicyOptions
from toolcrib.cli.prediction import predict
from toolcrib.cli.sandbox_options import SandboxOptions
from toolcrib.cli.settings_in_effect import covers_of, settings_as_in_a_run
from toolcrib.cli.user_files import approval_store
from toolcrib.errors import ToolcribError
from toolcrib.rules import MissingTool
from toolcrib.rules.examples import call_from
from toolcrib.visible import on_one_line

Call = Annotated[
    list[str],
    typer.Argument(metavar="CALL", help='A tool and its arguments, such as: shell {"command": "ls"}'),
]
Tainted = Annotated[
    bool, typer.Option("--tainted", help="As in a run that has already read something from outside.")
]
Said = Annotated[
    list[str] | None, typer.Option(metavar="TEXT", help="What the user wrote before; may be repeated.")
]


def command(
    call: Call,
    policy: PolicyOptions,
    tools: ToolSelection,
    sandbox: SandboxOptions,
    tainted: Tainted = False,
    said: Said = None,
) -> int:
    """Nothing is run."""
    written = " ".join(call)
    assembly = load_assembly(
        tools.references, tools.workspace, sandbox.chosen(tools.workspace), mcp=ServersWanted(tools.mcp_files)
    )
    settings = settings_as_in_a_run(policy, tools.workspace, assembly.toolbox(autonomy="full"), sandbox)
    box = assembly.toolbox(approvals=approval_store(), project=tools.workspace.resolve())
    try:
        prediction = asyncio.run(
            predict(
                box,
                call_from(written),
                settings.policy,
                tainted=tainted,
                user_texts=said or (),
                covers=covers_of(tools.workspace),
            )
        )
    except MissingTool as problem:
        reason = why_not_there(written.split()[0])
        raise Problem(f"{problem}{f'; {reason}' if reason else ''}") from problem
    except ToolcribError as problem:
        raise Problem(str(problem)) from problem
    for line in prediction.lines():
        out(line)
    out(f"  autonomy    {settings.autonomy} ({on_one_line(settings.autonomy_from)})")
    return DONE
