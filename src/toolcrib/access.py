"""What a call reaches: files, commands, hosts. Rules are about these, whatever the tool is called."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

__all__ = ["PATHS", "UNKNOWN_WORD", "Access", "DeniedPaths", "Reach"]


class Reach(StrEnum):
    """How something is reached."""

    READ = "read"
    WRITE = "write"
    DELETE = "delete"
    RUN = "run"
    CONNECT = "connect"


UNKNOWN_WORD = "\ufffd"  # none, one or several words that are only known when a command runs
PATHS = (Reach.READ, Reach.WRITE, Reach.DELETE)  # a tuple: the hash of an enum's member is slow


@dataclass(frozen=True, slots=True)
class Access:
    """One thing that a call reaches.

    `target` is a path (relative to the workspace, or absolute), a command line, or a host (`name:port`).
    `argv` holds the words of a command as far as they are known (`UNKNOWN_WORD` stands for those that are
    not); without them nobody knows what it would do.
    `subtree` says that everything below the path is meant, `pattern` narrows that to what matches it.
    `prefix` are the words of a command that an approval may remember; empty: none is broad enough to be
    useful and narrow enough to be safe. What is `free` needs no yes of its own, because it was proved harmless
    or belongs to something that is listed as well: only rules that deny or ask look at it. A `hint` is no
    command of its own, but another form of one that is listed, or one that may be run by it.
    `filtered`: the tool asks `ctx.permits` about each thing below the path and leaves out what it may not reach, or a
    sandbox keeps it from what `ctx.denied_paths` names.
    `real`: where the name that is listed before it leads, through links. `secret`: its contents are given, and may be
    secrets by its name, so that no autonomy but full reads it unasked.
    """

    reach: Reach
    target: str
    argv: tuple[str, ...] = ()
    subtree: bool = False
    pattern: str = ""
    prefix: tuple[str, ...] = ()
    free: bool = False
    hint: bool = False
    filtered: bool = False
    real: bool = False
    secret: bool = False

    def __str__(self) -> str:
        below = f"/{self.pattern or '**'}" if self.subtree else ""
        return f"{self.reach} {self.target}{below}"


@dataclass(frozen=True, slots=True)
class DeniedPaths:
    """Absolute paths that deny rules take from a call: `hidden` ones may not be read, `read_only` ones not be changed.

    `incomplete` says in words why these are not all; "" if they are.
    """

    hidden: tuple[str, ...] = ()
    read_only: tuple[str, ...] = ()
    incomplete: str = ""
