"""Tool names on the wire: names that a provider would refuse are replaced, and mapped back in the answer."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping

from toolcrib.call import ToolCall
from toolcrib.messages import Request, ResultPart

# The narrowest rule of the big providers, so that one conversation can go on with any of them.
LEGAL = re.compile(r"[A-Za-z_][A-Za-z0-9_-]{0,63}\Z")
ILLEGAL_CHARACTER = re.compile(r"[^A-Za-z0-9_-]")


def wire_names(request: Request | None) -> dict[str, str]:
    """Maps our names to wire names, for those names of a request that cannot be sent as they are; mostly empty.

    The map does not depend on the order of the names, and no two names share a wire name.
    """
    if request is None:
        return {}
    names = {spec.name for spec in request.tools}
    for message in request.messages:
        for part in message.parts:
            if isinstance(part, ToolCall):
                names.add(part.name)
            elif isinstance(part, ResultPart):
                names.add(part.call.name)
    illegal = sorted(name for name in names if not LEGAL.match(name))
    if not illegal:
        return {}
    taken = names.difference(illegal)
    mapped: dict[str, str] = {}
    for name in illegal:
        salt = 0
        while (wire := _candidate(name, salt)) in taken:
            salt += 1
        taken.add(wire)
        mapped[name] = wire
    return mapped


def our_names(request: Request | None) -> dict[str, str]:
    """Maps wire names to our names: the inverse of `wire_names`."""
    return inverse(wire_names(request))


def inverse(names: Mapping[str, str]) -> dict[str, str]:
    return {wire: name for name, wire in names.items()}


def _candidate(name: str, salt: int) -> str:
    seed = f"{name}\0{salt}" if salt else name
    digest = hashlib.sha256(seed.encode("utf-8", "surrogatepass")).hexdigest()[:8]
    readable = ILLEGAL_CHARACTER.sub("_", name)[:54] or "unreadable"
    lead = "" if readable[:1].isalpha() or readable[:1] == "_" else "_"
    return f"{lead}{readable}_{digest}"
