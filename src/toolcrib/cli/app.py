"""The commands and their options; what they do is imported when one of them is called."""

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
from toolcrib.cli.safety import approvals, audit, policy, trust
from toolcrib.cli.secrets import secrets

app = typer.Typer(
    name="toolcrib",
    help="Tools for language models: run an agent in a folder, call any tool by hand, check your own.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)
tools = typer.Typer(
    help="Look at tools, check them, and call them by hand.", no_args_is_help=True, rich_markup_mode=None
)
app.add_typer(tools, name="tools")
app.add_typer(policy, name="policy")
app.add_typer(approvals, name="approvals")
app.add_typer(secrets, name="secrets")
app.add_typer(audit, name="audit")


def _version(asked: bool) -> None:
    if asked:
        from toolcrib import __version__

        typer.echo(f"toolcrib {__version__}")
        raise typer.Exit


@app.callback()
def root(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Say the version.")
    ] = False,
) -> None:
    pass


@app.command()
def run(
    task: Annotated[str, typer.Argument(help="What is to be done; - reads it from stdin.")] = "",
    model: Annotated[
        str | None,
        typer.Option(
            "--model", "-m", help="Such as openai:NAME or http://HOST/v1#NAME; several with commas."
        ),
    ] = None,
    workspace: Workspace = Path(),
    autonomy: AutonomyOption = None,
    policy: Policy = None,
    sandbox: Sandbox = Files.WORKSPACE_WRITE,
    network: NetworkOption = None,
    allow_host: AllowHost = None,
    outer_sandbox: OuterSandbox = "",
    from_: From = None,
    max_turns: Annotated[int, typer.Option(min=1, help="How often the model is asked at most.")] = 50,
    budget_tokens: Annotated[int | None, typer.Option(min=1, help="Stop after this many tokens.")] = None,
    budget_seconds: Annotated[float | None, typer.Option(min=0, help="Stop after this many seconds.")] = None,
    answer_timeout: Annotated[
        float | None,
        typer.Option(
            min=0, metavar="SECONDS", help="A question that nobody answers for so long is nobody's yes."
        ),
    ] = None,
    early_start: Annotated[
        bool, typer.Option("--early-start", help="Begin calls that only read while the model writes.")
    ] = False,
    audit: Annotated[
        bool, typer.Option("--audit", help="Note every decision and call in your audit log.")
    ] = False,
    transcript: Annotated[
        Path | None, typer.Option(help="Write the transcript to this file as it grows.")
    ] = None,
    continue_: Annotated[
        Path | None, typer.Option("--continue", help="Go on where the transcript in this file ends.")
    ] = None,
    json: Annotated[
        bool, typer.Option("--json", help="Events as JSON lines on stdout, nothing else.")
    ] = False,
    answers: Annotated[
        bool, typer.Option("--answers", help="With --json: read answers to questions from stdin.")
    ] = False,
) -> int:
    """Let a model work on a task with the tools, in a folder.

    What changes something is asked about: y runs it, n does not, "n use pip instead" tells the model why, a
    allows exactly this for the rest of the run, p commands that begin alike; "a project" and "a user" hold
    beyond the run (toolcrib approvals). No answer is a no. Ctrl-C ends the run in good order.

    Commands are confined by the best sandbox that works here. What it refuses is offered to you: with a yes the
    command runs again with exactly that much more.

    With --json every event is a JSON object on a line. Nobody is asked then, so what needs approval is
    refused, unless --answers is given: each question_asked event is answered by a line on stdin such as
    {"fingerprint": "…", "verdict": "yes"} (yes, no or always; "message" tells the model why).

    Exit code: 0 finished, 1 not finished (a limit, a pause, the model failed), 2 wrong usage, 130 after Ctrl-C.
    """
    from toolcrib.cli.run import Settings, run_task

    return run_task(
        Settings(
            task=task,
            model=model,
            workspace=workspace,
            autonomy=autonomy,
            policy=policy,
            confinement=confinement(sandbox, network, allow_host, outer_sandbox),
            named=tuple(from_ or ()),
            max_turns=max_turns,
            budget_tokens=budget_tokens,
            budget_seconds=budget_seconds,
            answer_timeout=answer_timeout,
            early_start=early_start,
            audit=audit,
            transcript=transcript,
            continued=continue_,
            json=json,
            answers=answers,
        )
    )


@app.command()
def demo(
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Answer the demo's questions with yes.")] = False,
    keep: Annotated[bool, typer.Option("--keep", help="Leave the sample project where it is.")] = False,
    sandbox: Sandbox = Files.WORKSPACE_WRITE,
    network: NetworkOption = None,
    allow_host: AllowHost = None,
    outer_sandbox: OuterSandbox = "",
) -> int:
    """Watch an agent repair a small broken project. Needs no key and no network.

    The model is scripted, and says so; the loop, the tools, the approvals and the project are real. The exit
    code says whether the project's tests pass at the end.
    """
    from toolcrib.cli.demo import show_demo

    return show_demo(yes=yes, keep=keep, confinement=confinement(sandbox, network, allow_host, outer_sandbox))


@app.command()
def doctor(workspace: Workspace = Path()) -> int:
    """What is installed, what is configured, and what is missing."""
    from toolcrib.cli.doctor import examine

    return examine(workspace)


@app.command()
def models(
    name: Annotated[str, typer.Argument(metavar="[NAME]", help="A model, as you would give it to run.")] = "",
    json: AsJson = False,
) -> int:
    """Which providers are configured, and how to name a model.

    With a name it says what that name means; the exit code is 1 then if something that it needs is missing. No
    key is ever shown.
    """
    from toolcrib.cli.models import list_models, show_model

    return show_model(name, as_json=json) if name else list_models(as_json=json)


app.command()(trust)


@tools.command("list")
def list_(from_: From = None, workspace: Workspace = Path(), json: AsJson = False) -> int:
    """All tools: yours, those of plugins, and the built-in ones."""
    from toolcrib.cli.tools import list_tools

    return list_tools(from_ or [], workspace, as_json=json)


@tools.command()
def show(name: str, from_: From = None, workspace: Workspace = Path()) -> int:
    """What is known of one tool, and what it takes."""
    from toolcrib.cli.tools import show_tool

    return show_tool(name, from_ or [], workspace)


@tools.command()
def check(from_: From = None, workspace: Workspace = Path()) -> int:
    """Compile every tool and name what is broken.

    The exit code is 1 if anything is.
    """
    from toolcrib.cli.tools import check_tools

    return check_tools(from_ or [], workspace)


@tools.command()
def lint(from_: From = None, workspace: Workspace = Path(), json: AsJson = False) -> int:
    """Point out what models stumble over in your tools.

    Short descriptions, undocumented parameters, … The exit code is 1 if there is anything to say.
    """
    from toolcrib.cli.tools import lint_tools

    return lint_tools(from_ or [], workspace, as_json=json)


@tools.command()
def schema(
    name: str,
    dialect: Annotated[
        str | None, typer.Option("--dialect", "-d", help="openai, openai-strict, anthropic, gemini, …")
    ] = None,
    from_: From = None,
    workspace: Workspace = Path(),
) -> int:
    """A tool's input schema as JSON.

    What a dialect cannot say is told on stderr.
    """
    from toolcrib.cli.tools import show_schema

    return show_schema(name, dialect, from_ or [], workspace)


@tools.command(context_settings={"allow_interspersed_args": False, "ignore_unknown_options": True})
def call(
    name: str,
    arguments: Annotated[
        list[str] | None,
        typer.Argument(metavar="[JSON | --PARAMETER VALUE ...]", help="Arguments; - reads JSON from stdin."),
    ] = None,
    from_: From = None,
    workspace: Workspace = Path(),
    autonomy: AutonomyOption = None,
    policy: Policy = None,
    sandbox: Sandbox = Files.WORKSPACE_WRITE,
    network: NetworkOption = None,
    allow_host: AllowHost = None,
    outer_sandbox: OuterSandbox = "",
) -> int:
    """Call a tool by hand, along the same path as a model's call.

    Give the arguments as JSON, or as options made from the tool's parameters: --city Oslo --days 3. A list
    is given by repeating its option, a boolean as --flag or --no-flag, anything nested as JSON. NAME --help
    shows the tool's own options.

    The result goes to stdout, everything else to stderr. The exit code is 1 if the call gave an error.
    """
    from toolcrib.cli.call import call_tool

    confined = confinement(sandbox, network, allow_host, outer_sandbox)
    return call_tool(name, list(arguments or ()), from_ or [], workspace, autonomy, confined, policy)
