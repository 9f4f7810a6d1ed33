"""A conformance check for tools."""

from __future__ import annotations

import asyncio
import hashlib
import inspect
import re
import shutil
import tempfile
import threading
from collections.abc import Callable, Generator, Iterable, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, cast

from toolcrib.call import ToolCall
from toolcrib.dataclass import dataclass
from toolcrib.effect import Effect
from toolcrib.errors import ErrorCode, ToolDefinitionError
from toolcrib.events import CallFinished, Event
from toolcrib.prepared import Ready, Refused
from toolcrib.result import ToolResult
from toolcrib.schema import DIALECTS, lint, to_dialect
from toolcrib.spec import ToolSpec
from toolcrib.testing.report import Report
from toolcrib.testing.samples import invalid_samples, samples
from toolcrib.toolbox import Toolbox
from toolcrib.toolset import ToolLike, is_tool, name_of
from toolcrib.visible import counted

GRACE = 1.0  # seconds that a cancelled call has to end
CANCEL_AFTER = 0.02  # seconds after which a running call is cancelled
CANCELLED = 3  # calls that are cancelled
# What has no place in the words for a model: tracebacks, Python's names for things, paths of the host.
UNFIT = (
    re.compile(r"Traceback \(most recent call last\)"),
    re.compile(r'File "[^"]+", line \d+'),
    re.compile(r"<class '|<[\w.]+ object at 0x|\bat 0x[0-9a-f]{6,}"),
    re.compile(r"\b(?:pydantic(?:_core)?|toolcrib|builtins|typing)\.\w|\bNoneType\b|ValidationError"),
    re.compile(r"(?<![\w.])/(?:home|root|Users|tmp|private|var/folders|usr/lib)/[\w.-]+"),
)


def check_tool(
    tool: ToolLike | Callable[[Path], ToolLike],
    *,
    workspace: str | Path | None = None,
    arguments: Iterable[Mapping[str, Any]] = (),
    count: int = 20,
    seed: int = 0,
    execute: bool | None = None,
    deps: Any = None,
    timeout: float = 10.0,
) -> Report:
    """Checks a tool as a model meets it: its schema, its descriptions, and its handling of arguments.

    Arguments are made from the schema (`count` of them, the same for the same `seed`), after those of
    `arguments` and the tool's own examples. A tool that works in a folder is given as a function of the
    folder; it is then handed a copy of `workspace` (an empty folder without one), and a tool that says READ
    must leave it unchanged. For any other tool, `workspace` is a folder that is only watched.

    Calls with effect WRITE are run only in such a copy; with `execute=True` all calls are run, DESTRUCTIVE
    ones too, with `execute=False` none. Each call has `timeout` seconds. Raises nothing for a bad tool: see `Report`.

    >>> from toolcrib import Effect, tool
    >>> @tool(effect=Effect.READ, secrets=())
    ... def greet(name: str) -> str:
    ...     '''Greet somebody by name and give the greeting back.
    ...
    ...     Args:
    ...         name: Who is greeted, such as "Ada".
    ...     '''
    ...     return f"Hello, {name}."
    >>> check_tool(greet).ok
    True
    """
    if isinstance(arguments, Mapping):
        raise TypeError(f"arguments are a list of those of each call: write arguments=[{arguments!r}]")
    outcome: list[Report | BaseException] = []

    def work() -> None:
        try:
            outcome.append(
                asyncio.run(_checked(tool, workspace, list(arguments), count, seed, execute, deps, timeout))
            )
        except BaseException as problem:
            outcome.append(problem)

    # A thread of its own: a test that runs in an event loop may call this too.
    thread = threading.Thread(target=work, name="toolcrib-check", daemon=True)
    with _no_log_of_failures():
        thread.start()
        thread.join()
    if isinstance(outcome[0], Report):
        return outcome[0]
    raise outcome[0]


def _takes_folder(tool: object) -> bool:
    """Whether this is a function that makes a tool for a folder, and not a tool."""
    return callable(tool) and not is_tool(tool)


def _fits_a_folder(make: Any) -> bool:
    """Whether a function can be called with a folder as its only argument. False for a builtin such as `len`."""
    try:
        inspect.signature(make).bind("folder")
    except TypeError:
        return False
    except ValueError:  # without a signature
        pass
    return not inspect.isbuiltin(make)


async def _checked(
    tool: Any,
    workspace: str | Path | None,
    given: list[Mapping[str, Any]],
    count: int,
    seed: int,
    execute: bool | None,
    deps: Any,
    timeout: float,
) -> Report:
    folder, copied = (Path(workspace) if workspace is not None else None), None
    try:
        if _takes_folder(tool):
            if not _fits_a_folder(tool):
                name_of(tool)  # raises TypeError, which says what a tool is
            copied = folder = _copy_of(folder)
            make, tool = tool, tool(copied)
            if not is_tool(tool):
                raise TypeError(
                    f"{make!r} is no tool, so it was called with a folder, and gave {tool!r}, which is none either: "
                    "decorate it with @tool(effect=..., secrets=...), or return a tool for the folder"
                )
        subject = cast("ToolLike", tool)
        bench = Bench(subject, folder, Report(f"tool {name_of(subject)}"), deps, timeout)
        spec = await bench.compiled()
        if spec is None:
            return bench.report
        bench.described(spec)
        made = [*given, *spec.examples, *samples(spec.input_schema, count, seed)]
        if not made:
            bench.report.warning("arguments", "none could be made from the schema; pass some as arguments=")
            return bench.report
        fitting = await bench.accepts(made)
        await bench.refuses(spec, fitting)
        worst = Effect.WRITE if copied is not None else Effect.READ
        allowed = [fit for fit in fitting if execute or (execute is None and fit.effect <= worst)]
        if len(allowed) < len(fitting):
            left = len(fitting) - len(allowed)
            bench.report.note(
                "execution",
                f"not run: {counted(left, 'call')}; execute=True runs calls that may change things",
            )
        await bench.runs(allowed)
        await bench.stops(allowed)
        return bench.report
    finally:
        if copied is not None:
            shutil.rmtree(copied, ignore_errors=True)


@dataclass(frozen=True, slots=True)
class Fit:
    """Arguments that a tool accepts, and the effect of a call with them."""

    arguments: dict[str, Any]
    effect: Effect


class Bench:
    """One tool under test, in a toolbox of its own."""

    def __init__(
        self, tool: ToolLike, folder: Path | None, report: Report, deps: Any, timeout: float
    ) -> None:
        self.tool = tool
        self.name = name_of(tool)
        self.folder = folder
        self.report = report
        self.timeout = timeout
        self.mode = ""
        self.finished: list[CallFinished] = []
        self.box = Toolbox([tool], autonomy="full", deps=deps, grace=GRACE)
        self.watching = self.box.subscribe(self._watch)

    def _watch(self, event: Event) -> None:
        if isinstance(event, CallFinished):
            self.finished.append(event)

    async def compiled(self) -> ToolSpec | None:
        """The tool's spec; None, and an error in the report, where it does not compile."""
        import warnings

        name = self.name
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                tool_list = await self.box.tool_list()
            entry = tool_list.entries.get(name)
            definition = entry.definition() if entry is not None else None
            if definition is not None:
                self.mode = definition.mode
        except ToolDefinitionError as problem:
            self.report.error("compile", str(problem))
            return None
        if name in tool_list.broken:
            self.report.error("compile", tool_list.broken[name])
            return None
        spec = next((spec for spec in tool_list.specs if spec.name == name), None)
        if spec is None and definition is not None:
            spec = definition.spec  # deferred
        return spec

    def described(self, spec: ToolSpec) -> None:
        """Checks that every dialect accepts the schema, and that the tool and its parameters are described."""
        for name in DIALECTS:
            try:
                to_dialect(spec.input_schema, name)
            except Exception as problem:
                self.report.error("dialect", f"{name} cannot take its schema: {problem}")
        for finding in lint(spec):
            self.report.warning("lint", f"{finding.path or spec.name}: {finding.code}: {finding.message}")

    async def accepts(self, made: list[Mapping[str, Any]]) -> list[Fit]:
        """Checks that arguments which fit the schema are accepted, or refused for a reason of the tool's own."""
        fitting: list[Fit] = []
        refused: list[str] = []
        for item in made:
            prepared = await self.box.prepare(ToolCall(self.name, dict(item)))
            if isinstance(prepared, Ready):
                fitting.append(Fit(dict(item), prepared.effect))
                continue
            assert isinstance(prepared, Refused)
            if prepared.result.code is ErrorCode.FAILED:
                last = _last_line(prepared.problem)
                self.report.error("precheck", f"it raises for {item}: {last}", alike=last)
            elif prepared.result.code is ErrorCode.INVALID_ARGUMENTS:
                refused.append(prepared.result.text)
            self._words("accepts", prepared.result, item)
        if refused:
            tell = self.report.warning if fitting else self.report.error
            tell(
                "schema",
                f"{len(refused)} of {len(made)} arguments that fit the schema are refused: {refused[0]}",
            )
        return fitting

    async def refuses(self, spec: ToolSpec, fitting: list[Fit]) -> None:
        """Checks that arguments which do not fit are refused with a message that names the parameter."""
        for name, wrong in invalid_samples(spec.input_schema, fitting[0].arguments if fitting else {}):
            prepared = await self.box.prepare(ToolCall(self.name, wrong))
            if not isinstance(prepared, Refused):
                continue  # its arguments could be repaired
            if prepared.result.code is ErrorCode.INVALID_ARGUMENTS and name not in prepared.result.text:
                self.report.error(
                    "words", f"the refusal of {wrong} does not name {name}: {prepared.result.text}"
                )
            self._words("refuses", prepared.result, wrong)

    async def runs(self, fitting: list[Fit]) -> None:
        """Checks that every call ends in exactly one result, does not crash, and changes nothing when its
        effect is READ.
        """
        for fit in fitting:
            item = fit.arguments
            before = snapshot(self.folder)
            self.finished.clear()
            results: list[ToolResult] = []
            try:
                result = await self.box.call(
                    ToolCall(self.name, dict(item)),
                    timeout=self.timeout,
                    record=lambda _, recorded, kept=results: kept.append(recorded),  # type: ignore[misc]
                )
            except Exception as problem:
                self.report.error("execution", f"{item} raises through the toolbox: {problem!r}")
                continue
            self.report.calls += 1
            self.watching.flush(1.0)
            if results != [result] or len(self.finished) != 1:
                self.report.error(
                    "execution", f"{item} gave {counted(len(results), 'result')} instead of one"
                )
            self._judged(item, result)
            changed = sorted(_changed(before, snapshot(self.folder)))
            if changed and fit.effect is Effect.READ:
                self.report.error("effect", f"it says READ, and {item} changed {', '.join(changed[:5])}")

    async def stops(self, fitting: list[Fit]) -> None:
        """Checks that a cancelled call ends within the grace period, or reports that its outcome is unknown."""
        for item in (fit.arguments for fit in fitting[:CANCELLED]):
            self.finished.clear()
            work = asyncio.create_task(self.box.call(ToolCall(self.name, dict(item)), timeout=self.timeout))
            await asyncio.sleep(CANCEL_AFTER)
            work.cancel()
            _, pending = await asyncio.wait((work,), timeout=GRACE * 3)
            if pending:
                self.report.error(
                    "cancellation", f"{item} still runs {counted(GRACE * 3, 'second')} after it was cancelled"
                )
                return
            self.watching.flush(1.0)
            codes = [event.result.code for event in self.finished]
            if len(codes) != 1:
                self.report.error(
                    "cancellation", f"{item} gave {counted(len(codes), 'result')} when it was cancelled"
                )
            elif codes[0] is ErrorCode.OUTCOME_UNKNOWN:
                # A thread cannot be stopped from outside; a coroutine can, so that it must be its own doing.
                tell = self.report.error if self.mode.startswith("async") else self.report.warning
                tell(
                    "cancellation",
                    f"{item} does not stop when it is cancelled: look at ctx.cancelled in loops, and let "
                    "CancelledError through. Its outcome is then unknown to the model",
                )
                return

    def _judged(self, item: Mapping[str, Any], result: ToolResult) -> None:
        problem = next((event.problem for event in self.finished if event.problem), "")
        if result.code is ErrorCode.FAILED:
            last = _last_line(problem)
            self.report.error("execution", f"it crashes on {item}: {last}", alike=last)
        elif result.code in (ErrorCode.TIMED_OUT, ErrorCode.OUTCOME_UNKNOWN):
            self.report.warning("execution", f"{item} has no result after {counted(self.timeout, 'second')}")
        elif problem:
            self.report.error(
                "result", f"what it gives for {item} does not fit its declared type: {problem}", alike=problem
            )
        if result.is_error:
            self._words("error", result, item)

    def _words(self, check: str, result: ToolResult, item: Any) -> None:
        for unfit in UNFIT:
            found = unfit.search(_without_given(result.text, item))
            if found is not None:
                self.report.error(
                    "words",
                    f"{check}: a model should not be told {found[0]!r}: {result.text[:300]}",
                    alike=f"{check} {unfit.pattern}",
                )


@contextmanager
def _no_log_of_failures() -> Generator[None]:
    """Keeps log records of failures off stderr, since the report contains them."""
    import logging

    log, nobody = logging.getLogger("toolcrib"), logging.NullHandler()
    log.addHandler(nobody)
    try:
        yield
    finally:
        log.removeHandler(nobody)


def snapshot(folder: Path | None) -> dict[str, str]:
    """The content of a folder: every path with its kind, mode and content, without times."""
    if folder is None:
        return {}
    held: dict[str, str] = {}
    for path in sorted(folder.rglob("*")):
        status = path.lstat()
        content = ""
        if path.is_symlink():
            content = str(path.readlink())
        elif path.is_file():
            content = hashlib.sha256(path.read_bytes()).hexdigest()
        held[str(path.relative_to(folder))] = f"{status.st_mode:o} {content}"
    return held


def _changed(before: dict[str, str], after: dict[str, str]) -> set[str]:
    return {path for path in before.keys() | after.keys() if before.get(path) != after.get(path)}


def _copy_of(folder: Path | None) -> Path:
    copy = Path(tempfile.mkdtemp(prefix="toolcrib-check-")).resolve()
    if folder is not None:
        shutil.copytree(folder, copy, symlinks=True, dirs_exist_ok=True)
    return copy


def _without_given(text: str, item: Any) -> str:
    """Removes the arguments' own words from a text, which may repeat them."""
    given: list[str] = []

    def gather(value: Any) -> None:
        if isinstance(value, str) and len(value) > 3:
            given.append(value)
        for inner in (
            value.values() if isinstance(value, Mapping) else value if isinstance(value, list) else ()
        ):
            gather(inner)

    gather(item)
    for words in sorted(given, key=len, reverse=True):
        text = text.replace(words, "")
    return text


def _last_line(problem: str) -> str:
    lines = problem.strip().splitlines()
    return lines[-1] if lines else "(no more is known)"
