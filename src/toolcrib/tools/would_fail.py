"""Whether a change of files would fail, found without showing a model more than it may read unasked."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from toolcrib.access import Access, Reach
from toolcrib.errors import ToolError
from toolcrib.tools.backends.protocol import Backend, Permits
from toolcrib.tools.backends.refusals import refuse_folder


def find_file(backend: Backend, path: str, folders: str, permits: Permits) -> None:
    """Raises ToolError unless there is a file at `path`. `folders` is the sentence for a folder there."""
    refuse_folder(backend, path, permits, folders)
    if backend.stat(path, permits) is None:
        backend.open_file(path, permits)[0].close()  # says what is missing, and what is like it


def failure_of(plan: Callable[[Permits], object], accesses: Iterable[Access], permits: Permits) -> str | None:
    """The error that a change with these accesses would end with, as the model is told it.

    None if it would succeed, or if a file that it needs may not be read unasked. Of such a file not even its existence
    is told, so the names are asked about before anything is looked at.
    """
    kept_back: list[Access] = []

    def readable(access: Access) -> bool:
        allowed = permits(access)
        if not (allowed or access.filtered):
            kept_back.append(access)
        return allowed

    if not all(permits(Access(Reach.READ, access.target)) for access in accesses):
        return None
    try:
        plan(readable)
    except ToolError as problem:
        return None if kept_back else problem.message
    return None
