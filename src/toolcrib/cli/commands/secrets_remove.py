"""`toolcrib secrets remove`: a secret is forgotten."""

from __future__ import annotations

from toolcrib.cli.console import DONE, NOT_DONE, Problem, say
from toolcrib.cli.secret_options import SecretName, SecretOptions
from toolcrib.secrets import SecretError


def command(name: SecretName, secrets: SecretOptions) -> int:
    """The exit code is 1 if there is no secret of that name."""
    try:
        removed = secrets.opened().remove(name)
    except SecretError as problem:
        raise Problem(str(problem)) from None
    if not removed:
        say(f"there is no secret {name!r} in {secrets.place}")
        return NOT_DONE
    say(f"{name} is removed from {secrets.place}")
    return DONE
