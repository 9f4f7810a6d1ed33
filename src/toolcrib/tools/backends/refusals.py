"""The words with which backends refuse, the same on all of them."""

from __future__ import annotations

import difflib
import posixpath
from collections.abc import Collection, Iterable
from typing import TypeVar

from toolcrib.access import Access, Reach
from toolcrib.dataclass import replace
from toolcrib.errors import ToolError, is_object_with
from toolcrib.tools.backends.protocol import ABSENT, Backend, Change, Delete, Move, Permits, Write

B = TypeVar("B", bound=Backend)

NEAR_NAMES = 3
NEAR_NAMES_OF = 2_000  # names looked at for suggestions


def as_backend(backend: B) -> B:
    """The backend that a tool is made with. Raises TypeError for what is none, such as the path of a folder."""
    if not is_object_with(backend, "place"):
        raise TypeError(f"a tool for files takes a backend, such as Workspace('.'); got {backend!r}")
    return backend


def check_text(path: str) -> None:
    """Refuses a text that is no path anywhere."""
    if not path or path.isspace():
        raise ToolError("The path is empty. Give a path relative to the workspace, such as src/main.py.")
    if "\0" in path:
        raise ToolError("The path contains a NUL character.")
    try:
        path.encode()
    except UnicodeEncodeError:
        raise ToolError("The path contains characters that no file name can have.") from None


def outside(path: str) -> ToolError:
    return ToolError(
        f"{path} lies outside the workspace. Use a path relative to the workspace, such as src/main.py "
        '("." is the workspace itself).'
    )


def problem_of_paths(backend: Backend, *paths: str) -> str | None:
    """Why none of a tool's calls can use one of the paths, whatever a person allows; None if nothing is wrong.

    For prechecks, so that nobody is asked about a call that cannot be made. No file is looked at.
    """
    try:
        for path in paths:
            backend.place(path)
    except ToolError as refused:
        return refused.message
    return None


def for_suggestions(permits: Permits) -> Permits:
    """The permits by which names to suggest are looked for. A denied name is only not suggested; no call is refused."""
    return lambda access: permits(replace(access, filtered=True))


def near_names(name: str, names: Iterable[str]) -> list[str]:
    """The names that are most like a name that does not exist."""
    known = {name.casefold(): name for name in sorted(names)[:NEAR_NAMES_OF]}
    return [known[key] for key in difflib.get_close_matches(name.casefold(), known, NEAR_NAMES, 0.6)]


def not_there(
    shown: str, beside: Collection[str] | None, permits: Permits, wanted: str = "file"
) -> ToolError:
    """There is no such file. `beside` are the names in its folder; None if there is no such folder either."""
    text = f"There is no {wanted} {shown}."
    parent, name = posixpath.split(shown)
    if beside is None:
        return ToolError(f"{text} There is no folder {parent or '.'} either.")
    near = [posixpath.join(parent, one) for one in near_names(name, beside)]
    permitted = for_suggestions(permits)
    near = [path for path in near if permitted(Access(Reach.READ, path))]
    return ToolError(f"{text} Did you mean {', '.join(near)}?" if near else text)


class FileTooLargeError(ToolError):
    """A file has more bytes than the caller wants to read."""


def too_large(shown: str, limit: int) -> FileTooLargeError:
    return FileTooLargeError(f"{shown} is larger than {limit:,} bytes, the most that this tool takes.")


def is_folder(shown: str) -> ToolError:
    return ToolError(f"{shown} is a folder, not a file.")


def refuse_folder(backend: Backend, path: str, permits: Permits, words: str) -> None:
    """Raises ToolError with the words where a path is a folder, for a tool that takes files only."""
    shown = backend.place(path).shown
    status = backend.stat(path, permits)
    if status is not None and status.kind == "folder" and backend.leads_to(path) == shown:
        raise ToolError(f"{shown} is a folder. {words}")


def not_a_folder(shown: str) -> ToolError:
    return ToolError(f"{shown} is a file, not a folder.")


def part_is_file(shown: str) -> ToolError:
    return ToolError(f"{shown}: a part of this path is a file, not a folder.")


def not_permitted(shown: str) -> ToolError:
    return ToolError(
        f"{shown} leads to another place than when it was decided on, so it was left alone. Try again."
    )


def changed(shown: str) -> ToolError:
    return ToolError(f"{shown} was changed by somebody else meanwhile. Read it again, then edit.")


def exists(shown: str) -> ToolError:
    return ToolError(f"{shown} exists already; nothing was changed.")


def check_version(shown: str, expected: str | None, now: str) -> None:
    """Refuses a change of a file that has another version than expected; `now` may be ABSENT."""
    if expected is None or expected == now:
        return
    if now == ABSENT:
        raise ToolError(f"{shown} was deleted meanwhile; nothing was changed.")
    if expected == ABSENT:
        raise exists(shown)
    raise changed(shown)


def named_twice(shown: str) -> ToolError:
    return ToolError(f"{shown} is named twice; give all that shall happen to it as one change.")


def reaches_of(change: Change) -> list[tuple[str, tuple[Reach, ...]]]:
    """The paths that a change touches, each with how it is reached."""
    if isinstance(change, Write):
        return [(change.path, (Reach.WRITE,))]
    if isinstance(change, Delete):
        return [(change.path, (Reach.DELETE,))]
    return [(change.path, (Reach.DELETE, Reach.READ)), (change.to, (Reach.WRITE,))]


def source_of(change: Change) -> str | None:
    """The path of a file that must exist for a change; None for a write."""
    return change.path if isinstance(change, Delete | Move) else None
