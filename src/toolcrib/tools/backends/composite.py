"""Several backends as one, each below a path of its own."""

from __future__ import annotations

import posixpath
from collections.abc import Callable, Collection, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from typing import TYPE_CHECKING, BinaryIO, TypeVar

from toolcrib.access import Access, Reach
from toolcrib.dataclass import dataclass, field, replace
from toolcrib.errors import ToolError
from toolcrib.tools.backends import refusals
from toolcrib.tools.backends.protocol import (
    ABSENT,
    Backend,
    Change,
    Delete,
    DirectoryEntry,
    FileStatus,
    Folder,
    Move,
    Permits,
    Write,
    permit_all,
    version_of,
)
from toolcrib.tools.seen_versions import SeenVersions

if TYPE_CHECKING:
    from toolcrib.question import Doubt

MAX_TAKEN_BACK = 100_000_000  # bytes of a file that a change set over several backends can put back

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class RoutedPath:
    """A path with the backend that it belongs to, and how that backend is given it."""

    shown: str
    prefix: str  # "" for the default backend
    backend: Backend
    inside: str


class CompositeBackend:
    """Backends by path prefix: `{"/memories/": SqliteBackend(...)}`, and `default` for all other paths.

    Prefixes are absolute; the longest one counts, after `..` was removed from the path. Commands run where the
    default backend is. Changes that touch several backends are made one backend after the other, and taken back
    if one of them refuses; a crash in between leaves each backend old or new. Raises ValueError for a prefix that
    is not absolute.
    """

    def __init__(self, routes: Mapping[str, Backend], *, default: Backend) -> None:
        self.routes = {self._prefix(prefix): backend for prefix, backend in routes.items()}
        self.default = default
        self.seen = SeenVersions()

    @staticmethod
    def _prefix(prefix: str) -> str:
        normal = posixpath.normpath("/" + prefix.strip("/"))
        if not prefix.startswith("/") or normal == "/" or ".." in prefix.split("/"):
            raise ValueError(f"the prefix {prefix!r} must be an absolute path, such as /memories/")
        return normal

    def __repr__(self) -> str:
        return f"CompositeBackend({self.routes!r}, default={self.default!r})"

    @property
    def read_only(self) -> str | None:
        """The reason why nothing may be changed in any of the backends."""
        reasons = [backend.read_only for backend in (self.default, *self.routes.values())]
        return reasons[0] if all(reasons) else None

    # Paths.

    def place(self, path: str) -> RoutedPath:
        refusals.check_text(path)
        normal = posixpath.normpath(path)
        normal = "/" + normal.lstrip("/") if path.startswith("/") else normal
        found = [prefix for prefix in self.routes if normal == prefix or normal.startswith(prefix + "/")]
        if not found:
            return RoutedPath(self.default.place(path).shown, "", self.default, path)
        prefix = max(found, key=len)
        backend = self.routes[prefix]
        inside = backend.place(normal[len(prefix) + 1 :] or ".").shown
        return RoutedPath(_below(prefix, inside), prefix, backend, inside)

    def resource(self, path: str) -> str:
        try:
            return self.place(path).shown
        except ToolError:
            return path

    def accesses_to(
        self, reach: Reach, path: str, *, subtree: bool = False, pattern: str = "", contents: bool = False
    ) -> tuple[Access, ...]:
        try:
            place = self.place(path)
        except ToolError:
            return (Access(reach, path, subtree=subtree, pattern=pattern, filtered=subtree),)
        found = place.backend.accesses_to(
            reach, place.inside, subtree=subtree, pattern=pattern, contents=contents
        )
        return tuple(_outer(place, access) for access in found)

    def leads_to(self, path: str) -> str | None:
        place = self.place(path)
        inside = place.backend.leads_to(place.inside)
        return None if inside is None else _below(place.prefix, inside)

    def doubt(self, accesses: Iterable[Access]) -> Doubt | None:
        for access in accesses:
            try:
                place = self.place(access.target)
            except ToolError:
                continue
            if (found := place.backend.doubt([replace(access, target=place.inside)])) is not None:
                return found
        return None

    # Reading.

    def read(self, path: str, limit: int, permits: Permits = permit_all) -> bytes:
        return self._routed(path, permits, lambda b, inside, inner: b.read(inside, limit, inner))

    def open_file(self, path: str, permits: Permits = permit_all) -> tuple[BinaryIO, FileStatus]:
        return self._routed(path, permits, lambda b, inside, inner: b.open_file(inside, inner))

    def stat(self, path: str, permits: Permits = permit_all) -> FileStatus | None:
        try:
            return self._routed(path, permits, lambda b, inside, inner: b.stat(inside, inner))
        except ToolError:
            return None

    def entries(self, path: str, permits: Permits = permit_all) -> list[DirectoryEntry]:
        return self._routed(path, permits, lambda b, inside, inner: b.entries(inside, inner))

    def walk(
        self,
        path: str,
        enter: Callable[[str], bool],
        *,
        skip: Collection[str] = (),
        permits: Permits = permit_all,
    ) -> Iterator[Folder]:
        place = self.place(path)
        for folder in self._routed(
            path,
            permits,
            lambda b, inside, inner: b.walk(
                inside, lambda below: enter(_below(place.prefix, below)), skip=skip, permits=inner
            ),
        ):
            real = _below(place.prefix, folder.real) if folder.real else ""
            yield replace(folder, path=_below(place.prefix, folder.path), real=real)

    def _routed(self, path: str, permits: Permits, use: Callable[[Backend, str, Permits], T]) -> T:
        place = self.place(path)
        with _outer_words(place):
            return use(place.backend, place.inside, _inner(place, permits))

    # Changing.

    def locked(self) -> AbstractContextManager[object]:
        stack = ExitStack()
        for backend in {id(one): one for one in (self.default, *self.routes.values())}.values():
            stack.enter_context(backend.locked())
        return stack

    def apply(self, changes: Sequence[Change], permits: Permits = permit_all) -> tuple[bool, ...]:
        parts: dict[str, _Part] = {}
        for index, change in enumerate(changes):
            for place, inner in self._inside(change, permits):
                parts.setdefault(place.prefix, _Part(place)).add(index, inner)
        new = [False] * len(changes)
        done: list[tuple[Backend, list[Change]]] = []
        try:
            for number, part in enumerate(parts.values(), 1):
                backend = part.place.backend
                back = [_inverse(backend, change) for change in part.changes] if number < len(parts) else []
                with _outer_words(part.place):
                    made = backend.apply(part.changes, _inner(part.place, permits))
                done.append((backend, back))
                for index, is_new in zip(part.indices, made, strict=True):
                    new[index] |= is_new
        except BaseException:
            for backend, back in reversed(done):
                backend.apply(back)
            raise
        return tuple(new)

    def _inside(self, change: Change, permits: Permits) -> list[tuple[RoutedPath, Change]]:
        """A change as the backends that it touches are given it: a move between two writes here and deletes there."""
        place = self.place(change.path)
        if not isinstance(change, Move):
            return [(place, replace(change, path=place.inside))]
        to = self.place(change.to)
        if to.prefix == place.prefix:
            return [(place, replace(change, path=place.inside, to=to.inside))]
        with _outer_words(place):
            there = place.backend.read(place.inside, MAX_TAKEN_BACK, _inner(place, permits))
        version = version_of(there)
        refusals.check_version(place.shown, change.expect, version)
        data = there if change.data is None else change.data
        return [(to, Write(to.inside, data, ABSENT)), (place, Delete(place.inside, version))]

    def command_backend(self) -> Backend | None:
        return self.default.command_backend()


@dataclass(slots=True)
class _Part:
    """What one backend has to do of a change set."""

    place: RoutedPath
    changes: list[Change] = field(default_factory=list)
    indices: list[int] = field(default_factory=list)

    def add(self, index: int, change: Change) -> None:
        self.changes.append(change)
        self.indices.append(index)


def _inverse(backend: Backend, change: Change) -> Change:
    """The change that takes another one back."""
    there = backend.stat(change.path)
    old = b"" if there is None else backend.read(change.path, MAX_TAKEN_BACK)
    if isinstance(change, Delete):
        return Write(change.path, old, ABSENT)
    new = version_of(old if change.data is None else change.data)
    if isinstance(change, Move):
        return Move(change.to, change.path, None if change.data is None else old, new)
    return Delete(change.path, new) if there is None else Write(change.path, old, new)


def _below(prefix: str, inside: str) -> str:
    return inside if not prefix else prefix if inside == "." else f"{prefix}/{inside}"


def _outer(place: RoutedPath, access: Access) -> Access:
    if not place.prefix:
        return access
    # What confines it was said of the name inside: under this one it means another path.
    return replace(access, target=_below(place.prefix, access.target), confined=None)


def _inner(place: RoutedPath, permits: Permits) -> Permits:
    """Permits for the paths of one backend, which the policy knows with their prefix."""
    if not place.prefix or permits is permit_all:
        return permits
    return lambda access: permits(_outer(place, access))


@contextmanager
def _outer_words(place: RoutedPath) -> Generator[None]:
    """Refusals name the path as the model wrote it."""
    try:
        yield
    except ToolError as refused:
        if not place.prefix or place.inside == ".":
            raise
        raise ToolError(refused.message.replace(place.inside, place.shown, 1)) from None
