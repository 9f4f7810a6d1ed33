"""`toolcrib secrets list`: the names of the secrets that are kept."""

from __future__ import annotations

from json import dumps

from toolcrib.cli.console import DONE, Problem, out, say
from toolcrib.cli.options import AsJson
from toolcrib.cli.secret_options import SecretOptions
from toolcrib.secrets import SecretError


def command(secrets: SecretOptions, json: AsJson = False) -> int:
    try:
        names = list(secrets.opened().names())
    except SecretError as problem:
        raise Problem(str(problem)) from None
    if json:
        out(dumps(names))
        return DONE
    for name in names:
        out(name)
    if not names:
        say("no secrets")
    return DONE
