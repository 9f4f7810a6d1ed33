"""Names of remote tools: `server__tool`, in the characters and the length that every provider takes.

A server names its tools as it likes, and two servers may use the same name. The model is shown a name that is made of
the server's configured name and of the tool's; the tool's own name is kept for the wire.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from hashlib import sha256

__all__ = ["LONGEST_SERVER", "SEPARATOR", "may_belong", "possible_names", "shown_names", "shown_server"]

SEPARATOR = "__"
LONGEST = 64  # characters of a function's name that OpenAI and Anthropic take
LONGEST_SERVER = 24  # characters of a server's part of a name that is too long
DIGITS = 8  # of a hash

FOREIGN = re.compile(r"[^A-Za-z0-9_-]")
SEVERAL = re.compile(r"_{2,}")


def shown_names(tools: Iterable[tuple[str, str]]) -> dict[tuple[str, str], str]:
    """The name to show for each (server, tool).

    A name that is too long, or that says nothing without its foreign letters, ends in a hash of the pair; so do
    names that would be the same. The hash depends on the pair alone, so a name is the same in every process. A tool
    whose names need no change has its name whatever else is listed: a rule about it goes on to mean it.

    >>> shown_names([("git", "log"), ("my.server", "read file")])
    {('git', 'log'): 'git__log', ('my.server', 'read file'): 'my_server__read_file'}
    >>> shown_names([("a", "x.y"), ("a", "x y")])
    {('a', 'x.y'): 'a__x_y_7ace4eaa', ('a', 'x y'): 'a__x_y_2f084c7e'}
    >>> shown_names([("a", "x.y"), ("a", "x_y")])
    {('a', 'x.y'): 'a__x_y_7ace4eaa', ('a', 'x_y'): 'a__x_y'}
    """
    plain = {pair: _plain(*pair) for pair in tools}
    hashed = {pair for pair, name in plain.items() if not name or len(name) > LONGEST}
    while True:  # a name may be made to be that of another with its hash
        shown = {pair: _hashed(pair) if pair in hashed else name for pair, name in plain.items()}
        times = Counter(shown.values())
        same = {pair for pair, name in shown.items() if times[name] > 1} - hashed
        if not same:
            return shown
        hashed |= {pair for pair in same if plain[pair] != SEPARATOR.join(pair)} or same


def possible_names(server: str, tool: str) -> list[str]:
    """The names by which a tool may be shown, by itself and beside others.

    >>> possible_names("a", "x.y")
    ['a__x_y', 'a__x_y_7ace4eaa']
    """
    return [name for name in (_plain(server, tool), _hashed((server, tool))) if name]


def may_belong(name: str, server: str) -> bool:
    """Whether a shown name can be that of a tool of a server, whose tools need not be known for that.

    >>> may_belong("git__log", "git"), may_belong("github__log", "git")
    (True, False)
    """
    part = shown_server(server)
    return name.startswith((f"{part}{SEPARATOR}", f"{part[:LONGEST_SERVER]}{SEPARATOR}"))


def _plain(server: str, tool: str) -> str:
    """The readable name; empty if nothing of the tool's name is left."""
    kept = FOREIGN.sub("_", tool)
    return f"{shown_server(server)}{SEPARATOR}{kept}" if kept.strip("_-") else ""


def shown_server(server: str) -> str:
    """The server's part, without the separator in it; it begins with a letter, as Gemini wants it."""
    part = SEVERAL.sub("_", FOREIGN.sub("_", server)).strip("_-") or "mcp"
    return part if part[0].isalpha() else f"mcp_{part}"


def _hashed(pair: tuple[str, str]) -> str:
    ending = "_" + sha256("\0".join(pair).encode("utf-8", "surrogatepass")).hexdigest()[:DIGITS]
    server = shown_server(pair[0])
    name = _plain(*pair) or f"{server}{SEPARATOR}tool"
    if len(name) + len(ending) > LONGEST:
        name = server[:LONGEST_SERVER] + name[len(server) :]
    return name[: LONGEST - len(ending)] + ending
