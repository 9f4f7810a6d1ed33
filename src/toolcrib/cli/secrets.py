"""`toolcrib secrets set | list | remove`: what is kept for tools. No value is shown, or taken from a command line."""

from __future__ import annotations

import os
import sys
from enum import StrEnum
from json import dumps
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from toolcrib.cli.console import Problem, out, say
from toolcrib.cli.flags import AsJson

if TYPE_CHECKING:
    from toolcrib.secrets import Keyring, SecretFile

secrets = typer.Typer(
    help="Keep secrets for tools, by name: no value is ever shown.",
    no_args_is_help=True,
    rich_markup_mode=None,
)


ON_THE_LINE = """\
a name alone is expected: a value on the command line is seen by other programs and stays in your shell's history.
Nothing was kept. Run toolcrib secrets set NAME and type the value, or pipe it in; if what you wrote was a value, \
consider it known and make a new one."""


class Store(StrEnum):
    """Where secrets can be kept."""

    FILE = "file"
    KEYRING = "keyring"


Kept = Annotated[
    Store, typer.Option("--store", help="file: only you may read it; keyring: the system's own.")
]
File = Annotated[Path | None, typer.Option(help="The file, if not the usual one under ~/.config.")]


def stored_secrets() -> SecretFile | None:
    """What `toolcrib secrets set` keeps, if there is anything."""
    from toolcrib.secrets import SecretError, SecretFile

    store = SecretFile(default_path())
    try:
        return store if default_path().exists() and store.names() else None
    except SecretError as problem:
        raise Problem(str(problem)) from problem


@secrets.command("set", context_settings={"allow_extra_args": True, "ignore_unknown_options": True})
def set_(context: typer.Context, name: str, store: Kept = Store.FILE, file: File = None) -> int:
    """Keep a value, which is typed unseen, or read from stdin."""
    from toolcrib.secrets import SecretError, unfit

    if context.args or "=" in name:  # it may be the value, so it is not repeated
        raise Problem(ON_THE_LINE)
    value = _value(name)
    if (reason := unfit(value, name)) is not None:
        raise Problem(f"{name}: this value cannot be a secret: {reason}")
    kept = _store(store, file)
    try:
        kept.set(name, value)
    except (SecretError, ValueError) as problem:
        raise Problem(str(problem)) from None
    say(f"{name} is kept in {_where(kept)}; models name it as <secret_ref:{name}>")
    return 0


@secrets.command("list")
def list_(store: Kept = Store.FILE, file: File = None, json: AsJson = False) -> int:
    """The names of what is kept, a line each."""
    from toolcrib.secrets import SecretError

    try:
        names = list(_store(store, file).names())
    except SecretError as problem:
        raise Problem(str(problem)) from None
    if json:
        out(dumps(names))
    else:
        for name in names:
            out(name)
        if not names:
            say("no secrets")
    return 0


@secrets.command()
def remove(name: str, store: Kept = Store.FILE, file: File = None) -> int:
    """Forget a value; the exit code is 1 if there is none of that name."""
    from toolcrib.secrets import SecretError

    kept = _store(store, file)
    try:
        removed = kept.remove(name)
    except SecretError as problem:
        raise Problem(str(problem)) from None
    say(
        f"{name} is removed from {_where(kept)}"
        if removed
        else f"there is no secret {name!r} in {_where(kept)}"
    )
    return 0 if removed else 1


def default_path() -> Path:
    """Where secrets are kept if no file is named: `$XDG_CONFIG_HOME/toolcrib/secrets.json`, usually under ~/.config."""
    base = os.environ.get("XDG_CONFIG_HOME", "")
    return (Path(base) if base.startswith("/") else Path.home() / ".config") / "toolcrib" / "secrets.json"


def _store(store: Store, file: Path | None) -> SecretFile | Keyring:
    from toolcrib.secrets import Keyring, SecretFile

    return Keyring() if store is Store.KEYRING else SecretFile(file or default_path())


def _where(store: SecretFile | Keyring) -> str:
    return str(getattr(store, "path", "the system keyring"))


def _value(name: str) -> str:
    """Typed unseen, or piped in; one line break at its end is not part of it."""
    if not sys.stdin.isatty():
        return sys.stdin.read().removesuffix("\n").removesuffix("\r")
    import getpass

    first = getpass.getpass(f"Value of {name}: ")
    if getpass.getpass("Once more: ") != first:
        raise Problem("the two values differ; nothing is kept")
    return first
