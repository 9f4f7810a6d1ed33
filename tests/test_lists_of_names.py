"""One string where a list of names is wanted would be read as its letters: it is refused where it is given."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.cases import each
from toolcrib import Toolbox
from toolcrib.command.sandbox import Bubblewrap, Landlock, Level, Seatbelt, environment
from toolcrib.command.sandbox.egress import allowlist_guard
from toolcrib.net import NetGuard
from toolcrib.rules import Limit, Rule
from toolcrib.secrets import Environment, SecretCommand
from toolcrib.toolbox.policy import Verb
from toolcrib.tools import Shell, Workspace

HERE: Any = str(Path(__file__).parent)

TAKERS: list[tuple[str, Callable[[Any], Any]]] = [
    ("tools", lambda text: Limit(1, text)),
    *[
        (name, lambda text, name=name: Rule(verb=Verb.DENY, **{name: text}))
        for name in ("tools", "servers", "hosts", "paths", "commands", "unsaid")
    ],
    *[
        (name, lambda text, name=name: NetGuard(**{name: text}))
        for name in ("allow_hosts", "deny_hosts", "allow_private", "nat64")
    ],
    ("hosts", lambda text: Level.of("workspace_write", "allowlist", text)),
    ("hosts", allowlist_guard),
    *[
        (name, lambda text, name=name: Level(**{name: text}))
        for name in ("hosts", "writable", "readable", "hidden", "read_only")
    ],
    *[
        (name, lambda text, name=name, make=make: make(HERE, **{name: text}))
        for name in ("readable", "protected")
        for make in (Bubblewrap, Landlock, Seatbelt)
    ],
    ("passed", lambda text: environment({}, passed=text)),
    ("names", Environment),
    ("names", lambda text: SecretCommand(["pass", "show", "{name}"], text)),
    ("readable", lambda text: Workspace(HERE, readable=text)),
    ("passthrough", lambda text: Shell(Workspace(HERE), passthrough=text)),
    ("tools", lambda text: Toolbox().restricted(text)),
]


@each(("name", "taken"), TAKERS)
def test_one_string_is_no_list(name: str, taken: Callable[[Any], Any]) -> None:
    with pytest.raises(TypeError, match=rf"{name} is a list of names, got the string '/ab': write \['/ab'\]"):
        taken("/ab")
