"""The commands about what may run and what did: `toolcrib policy`, `approvals`, `trust` and `audit`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from toolcrib.cli.flags import (
    AllowHost,
    AsJson,
    AutonomyOption,
    Files,
    From,
    NetworkOption,
    OuterSandbox,
    Policy,
    Sandbox,
    Workspace,
    confinement,
)

policy = typer.Typer(
    help="See what your rules decide, before anything runs.", no_args_is_help=True, rich_markup_mode=None
)
approvals = typer.Typer(help="What you approved beyond a run.", no_args_is_help=True, rich_markup_mode=None)


audit = typer.Typer(help="The log of every decision and call.", no_args_is_help=True, rich_markup_mode=None)
LogFile = Annotated[Path | None, typer.Argument(metavar="[LOG]", help="Your own log if it is left out.")]


@policy.command()
def explain(
    call: Annotated[str, typer.Argument(metavar="CALL", help='Such as: shell {"command": "ls"}')],
    policy: Policy = None,
    autonomy: AutonomyOption = None,
    from_: From = None,
    workspace: Workspace = Path(),
    tainted: Annotated[
        bool, typer.Option("--tainted", help="As if the run had taken in something from outside before.")
    ] = False,
    said: Annotated[
        list[str] | None, typer.Option(metavar="TEXT", help="What the user said before; may be repeated.")
    ] = None,
    sandbox: Sandbox = Files.WORKSPACE_WRITE,
    network: NetworkOption = None,
    allow_host: AllowHost = None,
    outer_sandbox: OuterSandbox = "",
) -> int:
    """Say what would become of a call, who decides it, and why. Nothing is run."""
    from toolcrib.cli.policy import Asked
    from toolcrib.cli.policy import explain as explain_call

    confined = confinement(sandbox, network, allow_host, outer_sandbox)
    asked = Asked(policy, autonomy, from_ or [], workspace, confined)
    return explain_call(call, asked, tainted=tainted, said=said or ())


@policy.command()
def test(
    calls: Annotated[Path, typer.Argument(metavar="CALLS.jsonl", help='{"name", "arguments"} a line.')],
    policy: Policy = None,
    against: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Other rules, to see what would change.")
    ] = None,
    autonomy: AutonomyOption = None,
    from_: From = None,
    workspace: Workspace = Path(),
    sandbox: Sandbox = Files.WORKSPACE_WRITE,
    network: NetworkOption = None,
    allow_host: AllowHost = None,
    outer_sandbox: OuterSandbox = "",
) -> int:
    """Decide recorded calls anew, and print what would change. Nothing is run.

    A line may note what was decided then as "decision"; with --against, other rules are compared.
    """
    from toolcrib.cli.policy import Asked
    from toolcrib.cli.policy import test as test_calls

    confined = confinement(sandbox, network, allow_host, outer_sandbox)
    return test_calls(calls, Asked(policy, autonomy, from_ or [], workspace, confined), against)


@policy.command()
def check(
    policy: Policy = None,
    from_: From = None,
    workspace: Workspace = Path(),
    sandbox: Sandbox = Files.WORKSPACE_WRITE,
    network: NetworkOption = None,
    allow_host: AllowHost = None,
    outer_sandbox: OuterSandbox = "",
) -> int:
    """Read the rules and try each on its own examples.

    Examples of tools that are not there are named and not tried: --from brings your own, --allow-host brings fetch.
    Warned of are rules about tools and servers that there are none of.
    """
    from toolcrib.cli.policy import Asked
    from toolcrib.cli.policy import check as check_rules

    confined = confinement(sandbox, network, allow_host, outer_sandbox)
    return check_rules(Asked(policy, None, from_ or [], workspace, confined))


@approvals.command("list")
def list_(json: AsJson = False) -> int:
    """What is remembered, for how long, by whom and since when."""
    from toolcrib.cli.policy import list_approvals

    return list_approvals(as_json=json)


@approvals.command()
def revoke(ids: Annotated[list[str], typer.Argument(metavar="ID...", help='Ids, or "all".')]) -> int:
    """Forget approvals."""
    from toolcrib.cli.policy import revoke as forget

    return forget(ids)


def trust(
    path: Annotated[Path, typer.Argument(metavar="[PATH]", help="The folder of the project.")] = Path(),
    list_: Annotated[bool, typer.Option("--list", help="What you trust, and what changed since.")] = False,
    revoke: Annotated[bool, typer.Option("--revoke", help="Trust the rules of this folder no more.")] = False,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="You have read them, and trust them.")] = False,
) -> int:
    """Read a project's own rules, and say whether they count.

    They lie in its .toolcrib/policy.toml. They can only forbid and ask; what they allow is not used. When the
    file changes, you are the one to say so again.
    """
    from toolcrib.cli import trust as trusting

    if list_ + revoke + yes > 1:
        raise typer.BadParameter("choose one of --list, --revoke and --yes")
    if list_:
        return trusting.list_trusted()
    return trusting.revoke(path) if revoke else trusting.trust(path, yes=yes)


@audit.command()
def verify(log: LogFile = None) -> int:
    """Follow the chain of the log: what was changed shows.

    Changed, missing and moved lines do. The exit code is 1 if there are any, 2 without a log.
    """
    from toolcrib.cli.audit import verify as verify_log

    return verify_log(log)


@audit.command()
def show(
    log: LogFile = None,
    count: Annotated[int, typer.Option("--count", "-n", min=1, help="How many of the last lines.")] = 50,
    json: AsJson = False,
) -> int:
    """Print the last lines: what ran or was refused, and why.

    For whom, and how it ended, too. The exit code is 2 if the log does not hold.
    """
    from toolcrib.cli.audit import show as show_log

    return show_log(log, count, as_json=json)
