"""Replaces references in a shell command by variables, so that no value is part of the command line.

Every process of the machine can read a command line, and a value with quotes in it would change what the command means.
The shell expands `"$VARIABLE"` after it has parsed the command, whatever the value contains.
"""

from __future__ import annotations

import re

from toolcrib.secrets.references import REFERENCE

__all__ = ["PREFIX", "as_variables"]

PREFIX = "TOOLCRIB_SECRET_"

# The signs that matter; an escaped character is one token, so that an escaped quote is not taken for a quote.
_TOKEN = re.compile(
    rf"(?P<reference>{REFERENCE.pattern})|(?P<escaped>\\.)|(?P<quote>['\"])|(?P<odd>\$'|\$\"|<<|`|\$\()",
    re.DOTALL,
)


def as_variables(command: str) -> tuple[str, dict[str, str]] | str:
    """The command with a quoted variable for each reference, and {variable: secret's name}; or why this is impossible.

    A reference may stand in single quotes, in double quotes and outside of quotes. It must not follow a here-document,
    `$'…'`, backquotes or `$(`, where quotes may mean something else.

    >>> as_variables("curl -H 'X: <secret_ref:KEY>' host")
    ('curl -H \\'X: \\'"$TOOLCRIB_SECRET_KEY"\\'\\' host', {'TOOLCRIB_SECRET_KEY': 'KEY'})
    """
    out: list[str] = []
    names: dict[str, str] = {}
    at, quote, odd = 0, "", ""
    for match in _TOKEN.finditer(command):
        kind = match.lastgroup if match.lastgroup else "reference"
        if match["reference"]:
            if odd:
                return f"a secret cannot follow {odd} in a command; give it in a variable of the environment instead"
            variable = _variable(match[2])
            names[variable] = match[2]
            out += (command[at : match.start()], _SPELLED[quote].format(variable))
            at = match.end()
        elif kind == "quote":
            if not quote:
                quote = match[0]
            elif quote == match[0]:
                quote = ""
        elif kind == "odd" and quote != "'" and not (quote and match[0] in ("<<", "$'", '$"')):
            odd = odd or match[0]
        elif kind == "escaped" and quote == "'" and match[0][1] == "'":
            quote = ""  # a backslash is no escape in single quotes
    return "".join((*out, command[at:])), names


_SPELLED = {"": '"${}"', '"': "${{{}}}", "'": "'\"${}\"'"}


def _variable(name: str) -> str:
    return PREFIX + re.sub(r"[^A-Za-z0-9_]", lambda char: f"_{ord(char[0]):x}_", name)
