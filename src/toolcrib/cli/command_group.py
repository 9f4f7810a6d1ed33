"""The groups of commands for Typer, made from the command table. A command's module is imported when it is called."""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Callable, Iterator, Mapping
from dataclasses import MISSING, fields, is_dataclass
from functools import partial
from typing import Annotated, Any, get_type_hints

import typer
from typer.core import TyperCommand, TyperGroup

from toolcrib.cli.collector import spare_loaded
from toolcrib.cli.command_table import COMMANDS, GROUPS, names_in

PLAIN: dict[str, Any] = {
    "add_completion": False,
    "pretty_exceptions_enable": False,
    "rich_markup_mode": None,
}


def root_group() -> Any:
    """The command `toolcrib`, with all commands below it."""
    app = _typer("")

    @app.callback()
    def root(
        version: Annotated[
            bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Say the version.")
        ] = False,
    ) -> None:
        pass

    return _filled(app, "")


class _PlainHelp:
    """Reads `--help` without Pydantic, as the other options of a command or a group."""

    def get_help_option(self, ctx: Any) -> Any:
        option = super().get_help_option(ctx)  # type: ignore[misc] # of Typer's class
        _take_plain_values_as_they_are(option)
        return option


class CommandGroup(_PlainHelp, TyperGroup):
    """A group whose `--help` is written from the command table, so that it imports none of its commands."""

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """Write each command with its whole summary."""
        with formatter.section("Commands"):
            formatter.write_dl(list(self.commands.summaries.items()))  # type: ignore[attr-defined] # the table of this group


class _Command(_PlainHelp, TyperCommand):
    """A command that says which option takes what was given as an argument, where it takes no arguments."""

    option_for_argument = ""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        try:
            return super().parse_args(ctx, args)
        except Exception as problem:
            said = getattr(problem, "message", "")
            if self.option_for_argument and said.startswith("Got unexpected extra argument"):
                problem.message = f"{said}; did you mean {self.option_for_argument}?"  # type: ignore[attr-defined] # a usage error
            raise


class _Commands(Mapping[str, Any]):
    """The commands of a group by name; each is made when it is asked for."""

    def __init__(self, group: str) -> None:
        self.group = group
        self.summaries = names_in(group)

    def __getitem__(self, name: str) -> Any:
        path = f"{self.group} {name}".strip()
        if path in GROUPS:
            return _filled(_typer(path), path)
        return _command(path, COMMANDS[path])

    def __iter__(self) -> Iterator[str]:
        return iter(self.summaries)

    def __len__(self) -> int:
        return len(self.summaries)


def _typer(group: str) -> typer.Typer:
    return typer.Typer(
        name=group or "toolcrib",
        cls=CommandGroup,
        help=GROUPS[group],
        no_args_is_help=True,
        context_settings={"help_option_names": ["-h", "--help"]},
        **PLAIN,
    )


def _filled(app: typer.Typer, group: str) -> Any:
    made: Any = typer.main.get_group(app)
    made.commands = _Commands(group)
    return made


def _command(path: str, summary: str) -> Any:
    """Import the module of a command, and give its function `command` to Typer."""
    module = importlib.import_module(f"toolcrib.cli.commands.{path.replace(' ', '_')}")
    spare_loaded()
    app = typer.Typer(**PLAIN)
    details = inspect.getdoc(module.command) or ""
    option = getattr(module, "OPTION_FOR_ARGUMENT", "")
    app.command(
        name=path.rpartition(" ")[2],
        cls=type("Command", (_Command,), {"option_for_argument": option}),
        help=f"{summary}\n\n{details}".strip(),
        context_settings=getattr(module, "CONTEXT_SETTINGS", None),
    )(_with_options_apart(module.command))
    made: Any = typer.main.get_command(app)
    for parameter in made.params:
        _take_plain_values_as_they_are(parameter)
        if parameter.param_type_name == "argument":
            parameter.display_type_rich = lambda ctx: ""  # its name is enough: `list[str]` is Python's word
    return made


def _take_plain_values_as_they_are(parameter: Any) -> None:
    """Convert the plain values of a parameter without Pydantic, of which Typer makes an adapter for each parameter.

    A version of Typer that converts values in another way does not look at what is set here.
    """
    by_typer = getattr(type(parameter), "get_runtime_param", None)
    if by_typer is not None:
        converter = _PlainOrTyper(partial(by_typer, parameter))
        parameter.get_runtime_param = lambda: converter


class _PlainOrTyper:
    """Converts the values of one parameter. Its default, and a value that already has its type, stay as they are."""

    def __init__(self, by_typer: Callable[[], Any]) -> None:
        self._by_typer = by_typer

    def coerce(self, value: Any, param: Any, ctx: Any) -> Any:
        descriptor = param.type_descriptor
        if value is None:
            return () if param.multiple or param.nargs == -1 else None
        parser = descriptor.parameter_info.parser
        plain = type(value) in (str, bool, int) and type(value) is descriptor.annotation
        if value is param.default or (plain and parser is None):
            return value
        if descriptor.annotation == list[str] and parser is None and all(type(one) is str for one in value):
            return list(value)
        try:
            return self._by_typer().coerce(value, param=param, ctx=ctx)
        except typer.BadParameter as problem:
            if repr(value) not in problem.message:
                problem.message += f"; got {value!r}"
            raise


def _with_options_apart(command: Callable[..., int]) -> Callable[..., int]:
    """The command as Typer can read it: a parameter that is a dataclass becomes a parameter for each field."""
    signature = inspect.signature(command)
    hints = get_type_hints(command, include_extras=True)
    parts: dict[str, Any] = {}
    parameters: list[inspect.Parameter] = []
    for name, given in signature.parameters.items():
        if not is_dataclass(hints[name]):
            parameters.append(given.replace(annotation=hints[name], kind=inspect.Parameter.KEYWORD_ONLY))
            continue
        options = parts[name] = hints[name]
        types = get_type_hints(options, include_extras=True)
        for field in fields(options):
            default = inspect.Parameter.empty if field.default is MISSING else field.default
            parameters.append(
                inspect.Parameter(
                    field.name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=types[field.name]
                )
            )

    def run(**given: Any) -> int:
        joined = {
            name: cls(**{field.name: given.pop(field.name) for field in fields(cls)})
            for name, cls in parts.items()
        }
        return command(**given, **joined)

    run.__signature__ = signature.replace(parameters=parameters)  # type: ignore[attr-defined] # read by inspect
    run.__annotations__ = {item.name: item.annotation for item in parameters}
    return run


def _print_version(asked: bool) -> None:
    if asked:
        from toolcrib import __version__

        typer.echo(f"toolcrib {__version__}")
        raise typer.Exit
