"""The search of `grep`: reads the files that a call may read, and finds their matching lines.

A file's content is read once, through the backend, and what was read is what is searched. Most files are passed over
quickly: those without any of the texts that a match contains (`line_filter`), and, in larger searches, those in which
ripgrep finds nothing. A worker process finds the matching lines of the rest.
"""

from __future__ import annotations

import codecs
import posixpath
import time
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from toolcrib.access import Reach
from toolcrib.command.judge.paths import may_hold_secrets
from toolcrib.dataclass import dataclass, field, replace
from toolcrib.glob_patterns import GlobPattern
from toolcrib.tools.backends.refusals import FileTooLargeError
from toolcrib.tools.file_types import patterns_of_type
from toolcrib.tools.file_walk import FileWalk, is_file, read_or_none
from toolcrib.tools.line_filter import line_filter
from toolcrib.tools.posix_classes import without_posix_classes
from toolcrib.tools.regex_search import RegexSearcher, TooSlow, Wanted
from toolcrib.tools.ripgrep import texts_with_matches
from toolcrib.tools.text_encoding import SNIFFED, detect
from toolcrib.tools.workspace_paths import printable_path
from toolcrib.visible import counted

if TYPE_CHECKING:
    from typing import Any

    from toolcrib.context import Context
    from toolcrib.tools.backends.protocol import Backend, DirectoryEntry
    from toolcrib.tools.grep_params import GrepParams
    from toolcrib.tools.grep_results import GrepResults

MAX_LINE = 500  # characters shown of one line
MAX_FILE = 5_000_000  # bytes; larger files are named, not searched
SECONDS = 30.0
FIRST_BYTES = 200_000  # of the first batch, which often has enough matches
BATCH_BYTES = 4_000_000
BATCH_FILES = 2_000
WORTH_RIPGREP = 200_000  # bytes; starting it costs about as much as searching these
MANY = 0.5  # share of texts with matches from which on ripgrep saves no work
WIDE = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
ALL = 1 << 62


@dataclass(slots=True)
class _Batch:
    paths: list[str] = field(default_factory=list)
    texts: list[bytes] = field(default_factory=list)
    size: int = 0

    def add(self, path: str, text: bytes) -> None:
        self.paths.append(path)
        self.texts.append(text)
        self.size += len(text)


class GrepSearch:
    """One search; what it finds goes to `results`."""

    def __init__(
        self,
        backend: Backend,
        ripgrep: str | None,
        params: GrepParams,
        ctx: Context[Any],
        results: GrepResults,
    ) -> None:
        self.backend = backend
        self.params = params
        self.ctx = ctx
        self.results = results
        self.deadline = time.monotonic() + SECONDS
        self.pattern = without_posix_classes(params.pattern)
        self.filter = line_filter(self.pattern, ignore_case=params.ignore_case)
        if params.multiline:
            self.filter = replace(self.filter, expression="")
        self.ripgrep = ripgrep if self.filter.expression else None
        self.start = ""
        self.literals = [text.encode() for text in self.filter.literals]

    def run(self, start: str) -> None:
        """Searches a file or folder."""
        self.start = start
        results = self.results
        with RegexSearcher(self._wanted(), self.deadline, self.ctx.check_cancelled) as searcher:
            if not self.literals:
                searcher.search(
                    []
                )  # a pattern that only the worker can compile is refused even if there is no file
            sent = _Batch()
            try:
                for batch in self._batches(start):  # read while the worker searches the one before
                    batch = self._with_matches(batch)
                    self._add_found(sent, searcher)
                    sent = _Batch()
                    if results.full():
                        break
                    if batch.texts:
                        searcher.send(batch.texts)
                        sent = batch
                self._add_found(sent, searcher)
            except TooSlow:
                results.stopped = SECONDS

    def _add_found(self, sent: _Batch, searcher: RegexSearcher) -> None:
        """Adds what the worker finds in the texts that it was sent."""
        if not sent.texts:
            return
        for path, lines in zip(sent.paths, searcher.receive(), strict=True):
            self.results.add(printable_path(path), lines)
        found = counted(self.results.matches, "matching line")
        self.ctx.report(tip=f"{found} in {counted(len(self.results.files), 'file')}")

    def _wanted(self) -> Wanted:
        params, output = self.params, self.params.output
        shows = output not in ("files", "count")
        before, after = (0, 0) if isinstance(output, str) else (output.before, output.after)
        return Wanted(
            pattern=self.pattern,
            filter="" if self.filter.for_linear else self.filter.expression,
            ignore_case=params.ignore_case,
            multiline=params.multiline,
            before=before,
            after=after,
            skip=params.offset - 1 if shows else 0,
            room=params.limit if shows else 0,
            width=MAX_LINE,
            most=None if shows else 1 if output == "files" else ALL,
        )

    def _with_matches(self, batch: _Batch) -> _Batch:
        """The texts of a batch in which ripgrep finds something, or all of them."""
        if self.ripgrep is None or batch.size < WORTH_RIPGREP:
            return batch
        found = texts_with_matches(
            self.ripgrep, self.filter.expression, batch.texts, self.deadline, self.ctx.check_cancelled
        )
        if found is None or len(found) > MANY * len(batch.texts):
            self.ripgrep = None
        if found is None:
            return batch
        return _Batch([batch.paths[index] for index in found], [batch.texts[index] for index in found])

    # Reading.

    def _batches(self, start: str) -> Iterator[_Batch]:
        batch, room = _Batch(), FIRST_BYTES
        for path, read in self._files(start):
            text = self._text(path, read)
            if text is None:
                continue
            batch.add(path, text)
            if batch.size >= room or len(batch.texts) >= BATCH_FILES:
                yield batch
                batch, room = _Batch(), BATCH_BYTES
        if batch.texts:
            yield batch

    def _files(self, start: str) -> Iterator[tuple[str, Callable[[], bytes | None]]]:
        """The files to search, each with what reads it until the next one is taken."""
        permits = self.ctx.permits
        if is_file(self.backend, start, permits):
            yield start, lambda: read_or_none(self.backend, start, MAX_FILE, permits)
            return
        chosen = self._chosen()
        walk = FileWalk(self.backend, start, self.params.include_ignored, self._check, permits)
        try:
            for inside, entry in walk.files():
                if not chosen(inside):
                    continue
                path = inside if start == "." else posixpath.join(start, inside)
                if self._may_show(path, entry, walk):
                    yield path, lambda path=path, entry=entry: walk.content(path, entry, MAX_FILE)  # type: ignore[misc]
                else:
                    self.results.unshown += 1
        finally:
            self.results.withheld = walk.withheld

    def _chosen(self) -> Callable[[str], bool]:
        include = GlobPattern(self.params.include) if self.params.include else None
        kinds = patterns_of_type(self.params.type) if self.params.type else None

        def chosen(path: str) -> bool:
            return (include is None or include.matches(path)) and (
                kinds is None or any(kind.matches(path[path.rfind("/") + 1 :]) for kind in kinds)
            )

        return chosen

    def _check(self) -> None:
        self.ctx.check_cancelled()
        if time.monotonic() > self.deadline:
            raise TooSlow

    def _may_show(self, path: str, entry: DirectoryEntry, walk: FileWalk) -> bool:
        """Whether matching lines of a file may be shown. A file that may hold secrets has to be named by the call."""
        if entry.kind == "file" and not walk.behind_link and not may_hold_secrets(path):
            return True
        reached = self.backend.accesses_to(Reach.READ, path, contents=True)
        return all(self.ctx.permits(access) for access in reached if access.secret)

    def _has_literal(self, data: bytes) -> bool:
        if not self.filter.folded:
            if any(text in data for text in self.literals):
                return True
            return not (all(text.isascii() for text in self.literals) or _is_utf8(data))
        if not data.isascii():
            return True
        lower = data.lower()
        return any(text in lower for text in self.literals)

    def _text(self, path: str, read: Callable[[], bytes | None]) -> bytes | None:
        """A file's text as UTF-8; None for one that has no match or no text."""
        try:
            data = read()
        except FileTooLargeError:
            self.results.too_large.append(printable_path(path))
            return None
        if data is None:
            return None
        if (
            self.literals
            and not self._has_literal(data)
            and b"\0" not in data[:SNIFFED]
            and not data.startswith(WIDE)
        ):
            return None
        encoding = detect(data)
        if encoding is None:
            self.results.no_text = path == self.start
            return None
        if encoding.name == "utf-8" and (data.isascii() or _is_utf8(data)):
            return data[len(encoding.bom) :]
        return data[len(encoding.bom) :].decode(encoding.name, "replace").encode("utf-8", "replace")


def _is_utf8(data: bytes) -> bool:
    try:
        data.decode()
    except UnicodeDecodeError:
        return False
    return True
