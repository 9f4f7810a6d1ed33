"""`toolcrib secrets set`: a value is kept under a name. It is never shown, nor taken from the command line."""

from __future__ import annotations

import sys

import typer

from toolcrib.cli.console import DONE, Problem, say
from toolcrib.cli.secret_options import SecretName, SecretOptions
from toolcrib.secrets import SecretError, why_unusable

# A value on the command line is accepted by the parser, so that the answer can say what is wrong with it.
CONTEXT_SETTINGS = {"allow_extra_args": True, "ignore_unknown_options": True}

ON_THE_LINE = """\
give the name alone: other programs can read a value on the command line, and it stays in your shell's history.
Nothing was kept. Run toolcrib secrets set NAME and type the value, or pipe it in. If what you wrote was the value, \
replace it by a new one, because it is no longer secret."""


def command(context: typer.Context, name: SecretName, secrets: SecretOptions) -> int:
    if context.args or "=" in name:  # this may be the value, so it is not repeated
        raise Problem(ON_THE_LINE)
    value = _read_value(name)
    if any("\ud800" <= char <= "\udfff" for char in value):  # how bytes are read that are no text
        raise Problem(f"{name}: this value cannot be a secret: it must be text in UTF-8; nothing is kept")
    if (reason := why_unusable(value, name)) is not None:
        raise Problem(f"{name}: this value cannot be a secret: {reason}")
    try:
        secrets.opened().set(name, value)
    except (SecretError, ValueError) as problem:
        raise Problem(str(problem)) from None
    say(f"{name} is kept in {secrets.place}; models name it as <secret_ref:{name}>")
    return DONE


def _read_value(name: str) -> str:
    """The value, typed unseen or piped in; a line break at its end is not part of it."""
    if not sys.stdin.isatty():
        return sys.stdin.read().removesuffix("\n").removesuffix("\r")
    import getpass

    first = getpass.getpass(f"Value of {name}: ")
    if getpass.getpass("Once more: ") != first:
        raise Problem("the two values differ; nothing is kept")
    return first
