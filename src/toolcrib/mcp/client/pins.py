"""Definitions of remote tools, pinned when a call of the tool first runs; a later change needs a new yes of a person.

A server may change what it says of a tool at any time. A pin is the definition that was approved, with its hash, in a
private file of the user.

| state | when | what the model is shown | a call |
| --- | --- | --- | --- |
| new | not pinned, nothing suspicious | the definition, without invisible characters | is decided by the policy |
| flagged | not pinned, suspicious words | a notice, and harmless names of its parameters | asks a person |
| approved | it is as it was pinned | the definition, without invisible characters | is decided by the policy |
| changed | it differs from the pin | what was pinned, and a notice | asks a person and shows the difference |

Approvals that are remembered are bound to the exact definition, so none of them holds for a changed one.
"""

from __future__ import annotations

import difflib
import hashlib
import json
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from enum import StrEnum
from pathlib import Path
from typing import Any

from toolcrib.dataclass import dataclass, field, replace
from toolcrib.errors import ToolcribError
from toolcrib.mcp.client.definitions import RemoteDefinition, read_definition
from toolcrib.mcp.client.descriptions import (
    Suspicion,
    findings,
    foreign_names,
    without_invisible,
    without_words,
)
from toolcrib.mcp.config import McpServer
from toolcrib.mcp.names import possible_names
from toolcrib.private_files import state_folder
from toolcrib.question import Doubt
from toolcrib.rules.locked_json import LockedJsonFile
from toolcrib.visible import counted, escape_invisible

__all__ = ["JudgedTool", "PinState", "Pins", "definition_hash"]

CHANGED = (
    "[This tool has changed since it was approved. What follows is what was approved. A person is asked before it "
    "runs.]"
)
FLAGGED = (
    "[The description of this tool is withheld, because it looks like instructions to you. A person is asked before it "
    "runs.]"
)


Key = tuple[str, str, str]
"""A server, the file of its configuration, and the name of a tool."""


class PinState(StrEnum):
    """How a tool's definition compares with the approved one; see `toolcrib.mcp.client.pins`."""

    NEW = "new"
    FLAGGED = "flagged"
    APPROVED = "approved"
    CHANGED = "changed"


@dataclass(frozen=True, slots=True)
class JudgedTool:
    """A tool as its server defines it now, and what follows from its pin.

    `shown` is what a model may read of it. `pinned` is what was approved, where that is something else.
    """

    definition: RemoteDefinition
    state: PinState
    shown: RemoteDefinition
    hash: str
    findings: tuple[Suspicion, ...] = ()
    pinned: RemoteDefinition | None = None

    def same_tool(self, other: JudgedTool) -> bool:
        """Whether models and people see no difference between two states of a tool. NEW and APPROVED look the same."""
        mine, others = (
            (
                one.doubt,
                one.hash,
                one.definition.meta,
                None if one.pinned is None else definition_hash(one.pinned),
            )
            for one in (self, other)
        )
        return mine == others

    @property
    def doubt(self) -> Doubt | None:
        """Why a person must be asked before a call; None if the pin gives no reason."""
        words = "; ".join(escape_invisible(str(finding)) for finding in self.findings)
        if self.state is PinState.CHANGED:
            return Doubt(
                "its definition has changed since it was approved"
                + (f"; suspicious: {words}" if words else ""),
                must_ask=True,
            )
        if self.state is PinState.FLAGGED:
            return Doubt(f"its server's words about it are suspicious: {words}", must_ask=True)
        return None

    def difference(self, most: int | None = None) -> str:
        """What a person reads before they approve it: the changes, or else the definition; its first `most` lines.

        Invisible characters are shown.
        """
        now = _lines(self.definition)
        if self.pinned is None:
            lines = now
        else:
            both = difflib.unified_diff(_lines(self.pinned), now, "approved", "now", lineterm="", n=1)
            lines = list(both)
        shown = [escape_invisible(line) for line in lines[:most]]
        if more := len(lines) - len(shown):
            shown.append(f"… {counted(more, 'more line')}; to read all: toolcrib mcp approve")
        return "\n".join(shown)


@dataclass(frozen=True, slots=True)
class _Pin:
    server: str
    source: str
    tool: str
    hash: str
    definition: Mapping[str, Any] = field(repr=False)
    at: float = 0.0


class Pins:
    """The pins of a user, in a file that nobody else may write; several processes may use it.

    Without a `path` the pins last as long as this object. `clock` gives the time in seconds since the epoch. A file
    that cannot be read, or that others may write, counts as no pins at all for suspicious tools, and as a change for
    all others: everything asks. `problem` says why.
    """

    def __init__(self, path: str | Path | None = None, *, clock: Callable[[], float] = time.time) -> None:
        self._file = None if path is None else LockedJsonFile(path, "pins")
        self._clock = clock
        self._lock = threading.Lock()
        self._stamp: tuple[int, ...] | None = None
        self._pins: dict[Key, _Pin] = {}
        self._found: tuple[str, dict[str, tuple[Suspicion, ...]]] = "", {}  # beside which names, by hash
        self._doubted: set[str] = set()
        self.problem = ""
        self._version = 0

    @classmethod
    def of_user(cls) -> Pins:
        """The pins of this user, below the user's state folder."""
        return cls(state_folder() / "mcp-pins.json")

    @property
    def version(self) -> int:
        """A number that changes with the pins, also when another process, such as `mcp approve`, changes them."""
        self._read()
        return self._version

    @property
    def stored(self) -> bool:
        """Whether the pins are in a file, so that approving one waits for the disk."""
        return self._file is not None

    def judge(self, tools: Sequence[tuple[McpServer, RemoteDefinition]]) -> list[JudgedTool]:
        """Each tool with what follows from its pin. All tools of all servers are given: one may name another."""
        pins = self._read()
        shown = _by_shown_names(pins)
        foreign = foreign_names((server.name, tool.name) for server, tool in tools)
        names = hashlib.sha256(repr(sorted((s.name, t.name) for s, t in tools)).encode()).hexdigest()
        if self._found[0] != names:
            self._found = names, {}  # a server may name its tools anew again and again
        known = self._found[1]
        return [
            self._judged(_pin_of(pins, shown, server, tool), tool, foreign, known) for server, tool in tools
        ]

    def approve(self, server: McpServer, definition: RemoteDefinition) -> None:
        """Pin a definition that a person or the policy approved. Raises ToolcribError if that cannot be stored."""
        pin = _Pin(
            server.name,
            server.source,
            definition.name,
            definition_hash(definition),
            definition.to_dict(),
            self._clock(),
        )
        key = (pin.server, pin.source, pin.tool)
        known = self._read().get(key)
        if known is not None and known.hash == pin.hash:
            return
        self._change(lambda pins: pins.__setitem__(key, pin))
        if known is not None or pin.hash in self._doubted:  # what a model is shown changes
            self._version += 1

    def forget(self, server: McpServer) -> int:
        """Remove the pins of a server; returns how many there were. Raises ToolcribError."""
        gone = [key for key in self._read() if key[:2] == (server.name, server.source)]
        if gone:
            self._change(lambda pins: [pins.pop(key, None) for key in gone])
            self._version += 1
        return len(gone)

    def _judged(
        self,
        pin: _Pin | None,
        tool: RemoteDefinition,
        foreign: Mapping[str, Any],
        known: dict[str, tuple[Suspicion, ...]],
    ) -> JudgedTool:
        mark = definition_hash(tool)
        if pin is not None and pin.hash == mark:
            return JudgedTool(tool, PinState.APPROVED, without_invisible(tool), mark)
        found = known.get(mark)
        if found is None:
            found = known[mark] = tuple(findings(tool, foreign))
        if pin is not None:
            before = read_definition(tool.server, pin.definition, [])
            if before is not None:
                self._doubted.add(mark)
                approved = without_invisible(before)
                shown = replace(approved, description=f"{CHANGED}\n{approved.description}".strip())
                return JudgedTool(tool, PinState.CHANGED, shown, mark, found, before)
        problem = self.problem or ("" if pin is None else "what was approved cannot be read")
        if found or problem:
            self._doubted.add(mark)
            broken = (Suspicion("pins", "file of pins", problem),) if problem else ()
            return JudgedTool(tool, PinState.FLAGGED, _withheld(tool, foreign), mark, (*found, *broken))
        return JudgedTool(tool, PinState.NEW, without_invisible(tool), mark)

    def _read(self) -> dict[Key, _Pin]:
        if self._file is None:
            return self._pins
        with self._lock:
            stamp = self._file.stamp()
            if stamp != self._stamp or not stamp:
                before = self._pins, self.problem
                self._stamp = stamp
                try:
                    self._pins = _indexed(self._file.read())
                    self.problem = ""
                except (ToolcribError, KeyError, TypeError) as problem:
                    self._pins = {}
                    self.problem = str(problem)
                self._version += (self._pins, self.problem) != before
            return self._pins

    def _change(self, change: Callable[[dict[Key, _Pin]], Any]) -> None:
        if self._file is None:
            change(self._pins)
            return
        with self._file.changing():
            self._read()
            pins = _indexed(self._file.read())
            change(pins)
            self._file.write([_as_dict(pin) for pin in pins.values()])
            with self._lock:
                self._stamp, self._pins = self._file.stamp(), pins


def _withheld(tool: RemoteDefinition, foreign: Mapping[str, Any]) -> RemoteDefinition:
    """What a model may read of a flagged tool: the names of its parameters, unless these are suspicious themselves."""
    shown = without_words(tool, FLAGGED)
    if findings(replace(shown, name="", description=""), foreign):
        return replace(shown, input_schema={"type": "object"})
    return shown


def definition_hash(definition: RemoteDefinition) -> str:
    """The sha256 of all that a server says of a tool and that a model or a person may go by.

    Its `_meta` and whether it is called as a task are left out.
    """
    data = {key: value for key, value in definition.to_dict().items() if key not in ("_meta", "execution")}
    canonical = json.dumps(data, sort_keys=True, separators=(",", ":"), ensure_ascii=True, default=str)
    return hashlib.sha256(canonical.encode()).hexdigest()


def _lines(definition: RemoteDefinition) -> list[str]:
    """A definition as lines to compare and to read."""
    data = definition.to_dict()
    lines = [f"name: {definition.name}"]
    lines += [f"title: {definition.title}"] if definition.title else []
    lines += ["description:", *(f"  {line}" for line in definition.description.split("\n"))]
    for key in ("annotations", "inputSchema", "outputSchema"):
        if key in data:
            text = json.dumps(data[key], indent=1, ensure_ascii=False, default=str)
            lines += [f"{key}:", *(f"  {line}" for line in text.split("\n"))]
    return lines


def _by_shown_names(pins: Mapping[Key, _Pin]) -> dict[Key, _Pin]:
    """The pins, each under every name by which its tool may have been shown."""
    return {
        (pin.server, pin.source, name): pin
        for pin in pins.values()
        for name in possible_names(pin.server, pin.tool)
    }


def _pin_of(
    pins: Mapping[Key, _Pin], shown: Mapping[Key, _Pin], server: McpServer, tool: RemoteDefinition
) -> _Pin | None:
    """The pin of a tool, or of another tool that may have been shown by the same name.

    Rules go by the name that is shown.
    """
    if own := pins.get((server.name, server.source, tool.name)):
        return own
    names = possible_names(server.name, tool.name) if shown else ()
    return next((pin for name in names if (pin := shown.get((server.name, server.source, name)))), None)


def _indexed(listed: Iterable[Any]) -> dict[Key, _Pin]:
    pins = (
        _Pin(item["server"], item["source"], item["tool"], item["hash"], item["definition"], item["at"])
        for item in listed
    )
    return {(pin.server, pin.source, pin.tool): pin for pin in pins}


def _as_dict(pin: _Pin) -> dict[str, Any]:
    return {
        "server": pin.server,
        "source": pin.source,
        "tool": pin.tool,
        "hash": pin.hash,
        "definition": pin.definition,
        "at": pin.at,
    }
