"""Tool names on the wire: names that a provider would refuse are replaced, and mapped back in the answer."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Mapping

from toolcrib.call import ToolCall
from toolcrib.conversation_cache import cache_of
from toolcrib.messages import Message, Request, ResultPart

# The narrowest rule of the big providers, so that one conversation can go on with any of them.
LEGAL = re.compile(r"[A-Za-z_][A-Za-z0-9_-]{0,63}\Z")
ILLEGAL_CHARACTER = re.compile(r"[^A-Za-z0-9_-]")


def declared_names(request: Request | None, provider: str) -> dict[str, str]:
    """Maps our names to the names that the extras of tools declare to a provider, whose own tools have fixed names."""
    own = {spec.name: spec.extras.get(provider, {}) for spec in (request.tools if request else ())}
    return {name: extras["name"] for name, extras in own.items() if isinstance(extras.get("name"), str)}


def wire_names(request: Request | None, declared: Mapping[str, str] | None = None) -> dict[str, str]:
    """Maps our names to wire names, for those names of a request that cannot be sent as they are; mostly empty.

    `declared` are names that tools must have on the wire. The map does not depend on the order of the names, and no
    two names share a wire name.
    """
    if request is None:
        return {}
    fixed = dict(declared or {})
    cache = cache_of(request)
    called = _called(request.messages) if cache is None else cache.names
    names = called.union(spec.name for spec in request.tools)
    claimed = set(fixed.values())
    illegal = sorted(name for name in names.difference(fixed) if not LEGAL.match(name) or name in claimed)
    mapped = {name: wire for name, wire in fixed.items() if name != wire}
    return mapped | legal_names(illegal, names.difference(illegal) | claimed)


def legal_names(illegal: Iterable[str], taken: set[str]) -> dict[str, str]:
    """Maps illegal names, which are sorted, to legal ones. Each is new: it is not in `taken`, and is added to it."""
    mapped: dict[str, str] = {}
    for name in illegal:
        salt = 0
        while (wire := _candidate(name, salt)) in taken:
            salt += 1
        taken.add(wire)
        mapped[name] = wire
    return mapped


def _called(messages: Iterable[Message]) -> set[str]:
    """The names of the tools of which a conversation holds calls or results."""
    names: set[str] = set()
    for message in messages:
        for part in message.parts:
            if isinstance(part, ToolCall):
                names.add(part.name)
            elif isinstance(part, ResultPart):
                names.add(part.call.name)
    return names


def our_names(request: Request | None, declared: Mapping[str, str] | None = None) -> dict[str, str]:
    """Maps wire names to our names: the inverse of `wire_names`."""
    return inverse(wire_names(request, declared))


def inverse(names: Mapping[str, str]) -> dict[str, str]:
    return {wire: name for name, wire in names.items()}


def _candidate(name: str, salt: int) -> str:
    seed = f"{name}\0{salt}" if salt else name
    digest = hashlib.sha256(seed.encode("utf-8", "surrogatepass")).hexdigest()[:8]
    readable = ILLEGAL_CHARACTER.sub("_", name)[:54] or "unreadable"
    lead = "" if readable[:1].isalpha() or readable[:1] == "_" else "_"
    return f"{lead}{readable}_{digest}"
