"""`grep`: finds the lines that match a regular expression in the files of the workspace."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from toolcrib.access import Access, Reach
from toolcrib.effect import Effect
from toolcrib.errors import ToolError
from toolcrib.glob_patterns import GlobError, GlobPattern
from toolcrib.tool import Tool
from toolcrib.tools.backends.refusals import as_backend, problem_of_paths
from toolcrib.tools.file_types import FILE_TYPES, patterns_of_type
from toolcrib.tools.grep_params import GrepParams
from toolcrib.tools.grep_results import GrepResults
from toolcrib.tools.grep_search import GrepSearch
from toolcrib.tools.in_folder import InFolder
from toolcrib.tools.posix_classes import without_posix_classes
from toolcrib.tools.regex_search import BadPattern
from toolcrib.tools.ripgrep import find_ripgrep

if TYPE_CHECKING:
    from typing import Any

    from toolcrib.context import Context
    from toolcrib.tools.backends.protocol import Backend

MAX_PATTERN = 10_000  # characters
# A group of ranges that ignores case can take minutes to compile: left to the worker, which can be ended.
FLAGS = re.compile(r"\(\?[a-zA-Z]*i")


class Grep(
    InFolder,
    Tool[GrepParams, str],
    name="grep",
    effect=Effect.READ,
    secrets=(),
    title="Search in files",
    category="search",
    idempotent=True,
    open_world=False,
):
    """Search the text of the files in the workspace with a regular expression, line by line.

    Use it to find where something is written; use glob to find files by name, and read_file for the text around. Binary
    files are skipped. Matching lines are given below their file's path as "number: text".
    """

    def __init__(self, backend: Backend, *, ripgrep: str | bool = True) -> None:
        """`ripgrep` is the path of the program; True takes the system's, False none. Results are the same."""
        self.backend = as_backend(backend)
        self.ripgrep = find_ripgrep() if ripgrep is True else ripgrep or None

    def accesses(self, params: GrepParams) -> tuple[Access, ...]:
        include = params.include or ""
        return self.backend.accesses_to(Reach.READ, params.path, subtree=True, pattern=include, contents=True)

    def precheck(self, params: GrepParams) -> str | None:
        if not params.pattern:
            return "pattern is empty."
        if "\n" in params.pattern and not params.multiline:
            return "pattern spans lines, but each line is searched alone. Set multiline, or look for one of its lines."
        if len(params.pattern) > MAX_PATTERN:
            return (
                f"pattern is {len(params.pattern):,} characters long; at most {MAX_PATTERN:,} are possible."
            )
        try:
            pattern = without_posix_classes(params.pattern)
            if not FLAGS.search(pattern):
                re.compile(pattern)
        except (re.error, RecursionError, OverflowError) as wrong:
            return _not_valid(params.pattern, str(wrong))
        try:
            GlobPattern(params.include or "*")
        except GlobError as refused:
            shown = (params.include or "")[:200]
            return f'include "{shown}": {refused}.'
        if params.type and patterns_of_type(params.type) is None:
            return f'type "{params.type}" is not known. Known are {", ".join(FILE_TYPES)}; else use include.'
        return problem_of_paths(self.backend, params.path)

    def execute(self, params: GrepParams, ctx: Context[Any]) -> str:
        if problem := self.precheck(params):
            raise ToolError(problem)
        start = self.backend.place(params.path).shown
        results = GrepResults(params)
        try:
            GrepSearch(self.backend, self.ripgrep, params, ctx, results).run(start)
        except BadPattern as wrong:
            raise ToolError(_not_valid(params.pattern, str(wrong))) from None
        return results.render(start)


def _not_valid(pattern: str, why: str) -> str:
    return (
        f'pattern "{pattern}" is not a valid regular expression: {why}. To look for these very characters '
        f"write {re.escape(pattern)}"
    )
