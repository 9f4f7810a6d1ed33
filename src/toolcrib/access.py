"""What a call reaches: files, commands and hosts. Rules are about these, whatever the tool is called."""

from __future__ import annotations

from collections.abc import Callable
from enum import StrEnum
from typing import TypeAlias

from toolcrib.dataclass import dataclass

__all__ = [
    "ANY_HOST",
    "OWN",
    "PATHS",
    "UNKNOWN_WORD",
    "UNSEEN_CODE",
    "Access",
    "Confinement",
    "DeniedPaths",
    "Permits",
    "Reach",
]


class Reach(StrEnum):
    """A way to reach something."""

    READ = "read"
    WRITE = "write"
    DELETE = "delete"
    RUN = "run"
    CONNECT = "connect"


UNKNOWN_WORD = "\ufffd"  # stands for any number of words, which are only known when the command runs
UNSEEN_CODE = "\ufffd"  # stands for code at which nobody here can look
ANY_HOST = "*"  # stands for every host
OWN = "process://"  # prefix of a run's own resources; a call touches one only if it names it
PATHS = (Reach.READ, Reach.WRITE, Reach.DELETE)  # a tuple: the hash of an enum's member is slow
"""The ways to reach a path."""


@dataclass(frozen=True, slots=True)
class Confinement:
    """What keeps an access inside a folder, whatever the call does: nothing outside is changed, no network is reached.

    `folder` is an absolute path; `by` names in words what enforces it. `temporary`: the folder is the sandbox's own and
    ends with it, so that nothing in it has to be brought back.
    """

    folder: str
    by: str
    temporary: bool = False


@dataclass(frozen=True, slots=True)
class Access:
    """One thing that a call reaches, and how.

    - `target`: a path (relative to the workspace, or absolute), a command line, or a host (`name:port`).
    - `argv`: the words of a command, with `UNKNOWN_WORD` for those that are not known. Empty: what it does is
    unknown.
    - `subtree`: everything below the path is reached; with `pattern`, everything there that matches it. Of a host: the
    call may reach it; the target can be `ANY_HOST`.
    - `prefix`: the first words of a command that an approval may remember. Empty: no prefix is useful and safe.
    - `free`: needs no approval of its own, because it was proved harmless or belongs to another access that is listed.
      Only rules that deny or ask look at it.
    - `hint`: another form of a listed command, or a command that a listed one may run; it counts as no further command.
    - `perhaps`: a hint from a text that may be plain data, like a message. A rule that denies it asks.
    - `hinted`: of a command without `argv`: all that it runs is listed in hints. Rules that deny or ask look at those.
    - `filtered`: the tool asks `ctx.permits` about each thing that it gives, and leaves out what is denied, or a
      sandbox hides what `ctx.denied_paths` finds.
    - `code`: a digest of the files whose code a command runs; an approval of the command holds for that code alone.
      `UNSEEN_CODE` where nobody here can look at them: then no answer is remembered.
    - `real`: the place that the access before it leads to through links.
    - `secret`: gives contents that may be secret, by the file's name; only full autonomy reads such contents unasked.
    - `confined`: what enforces that the access stays inside a folder; None where nothing does. State it only where
      something other than the tool's good will keeps it there.
    """

    reach: Reach
    target: str
    argv: tuple[str, ...] = ()
    subtree: bool = False
    pattern: str = ""
    prefix: tuple[str, ...] = ()
    free: bool = False
    hint: bool = False
    perhaps: bool = False
    hinted: bool = False
    filtered: bool = False
    real: bool = False
    secret: bool = False
    confined: Confinement | None = None
    code: str = ""

    def __str__(self) -> str:
        below = f"/{self.pattern or '**'}" if self.subtree else ""
        return f"{self.reach} {self.target}{below}"


Permits: TypeAlias = Callable[[Access], bool]
"""Says whether a call may make an access."""


@dataclass(frozen=True, slots=True)
class DeniedPaths:
    """Absolute paths that deny rules take from a call: `hidden` ones may not be read, `read_only` ones not be changed.

    `incomplete` says in words why these are not all; "" if they are.
    """

    hidden: tuple[str, ...] = ()
    read_only: tuple[str, ...] = ()
    incomplete: str = ""
