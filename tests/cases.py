"""Tables of cases in one test: every case runs, and the test fails with the list of the cases that failed.

`each` takes what pytest's `parametrize` takes. A test per case is right for a dozen cases; for hundreds it costs more
than what is tested. Where the cases are given as a function, no file is read before the test runs.
`pytest --case NAME` runs only the cases whose name contains NAME.
"""

from __future__ import annotations

import asyncio
import functools
import inspect
import traceback
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

SHOWN = 5  # failures that are shown with their traceback; of the others, the last line
only_case = ""  # set by the option --case

Cases = Iterable[Any] | Callable[[], Iterable[Any]]
Ids = Iterable[str] | Callable[[Any], Any] | None
Failures = list[tuple[str, BaseException]]


def each(
    names: str | tuple[str, ...] | list[str], cases: Cases, ids: Ids = None, *, at_once: int = 1
) -> Callable[[Any], Any]:
    """Runs a test once per case, as one test of pytest's.

    `at_once` cases of an async test run side by side. That is for cases that wait: for a timeout, for a process to end.
    """
    arguments = [name.strip() for name in names.split(",")] if isinstance(names, str) else [*names]

    def decorate(test: Any) -> Any:
        signature = inspect.signature(test)
        left = [p for name, p in signature.parameters.items() if name not in arguments]
        assert len(left) + len(arguments) == len(signature.parameters), f"{test.__name__} takes {arguments}"

        if inspect.iscoroutinefunction(test):

            async def run_async(*args: Any, **fixtures: Any) -> None:
                assert at_once == 1 or "monkeypatch" not in fixtures, (
                    "side by side they would patch each other"
                )
                run, free = Run(), asyncio.Semaphore(at_once)

                async def one_case(name: str, values: dict[str, Any]) -> None:
                    async with free:
                        with run.case(name, fixtures) as own:
                            await test(*args, **own, **values)

                named = run.named(arguments, cases, ids)
                if at_once == 1:
                    for name, values in named:
                        await one_case(name, values)
                else:
                    await asyncio.gather(*(one_case(name, values) for name, values in named))
                run.finish()

            one: Any = run_async
        else:

            def run_sync(*args: Any, **fixtures: Any) -> None:
                run = Run()
                for name, values in run.named(arguments, cases, ids):
                    with run.case(name, fixtures) as own:
                        test(*args, **own, **values)
                run.finish()

            one = run_sync
        one = functools.wraps(test)(one)
        one.__signature__ = signature.replace(parameters=left)
        del one.__wrapped__
        return one

    return decorate


class Run:
    """One run over a table: what ran, what was skipped, what failed."""

    def __init__(self) -> None:
        self.ran = 0
        self.skipped: list[str] = []
        self.failed: Failures = []

    def named(self, arguments: list[str], cases: Cases, ids: Ids) -> Iterator[tuple[str, dict[str, Any]]]:
        given = [*(cases() if callable(cases) else cases)]
        names = iter(ids) if ids is not None and not callable(ids) else None
        for case in given:
            name = next(names) if names else None
            if isinstance(case, type(pytest.param())):
                assert not case.marks, "a case takes no marks"
                values, name = case.values, case.id or name
            else:
                values = (case,) if len(arguments) == 1 else tuple(case)
            if name is None:
                name = "-".join(_name(ids(value) if callable(ids) else None, value) for value in values)
            if only_case in str(name):
                yield str(name), dict(zip(arguments, values, strict=True))

    @contextmanager
    def case(self, name: str, fixtures: dict[str, Any]) -> Iterator[dict[str, Any]]:
        """A case of its own: a folder of its own below `tmp_path`, and nothing of the last one's `monkeypatch`."""
        self.ran += 1
        own = dict(fixtures)
        if isinstance(path := fixtures.get("tmp_path"), Path):
            own["tmp_path"] = path / f"case{self.ran}"
            own["tmp_path"].mkdir()
        try:
            if isinstance(patch := fixtures.get("monkeypatch"), pytest.MonkeyPatch):
                with patch.context() as own["monkeypatch"]:
                    yield own
            else:
                yield own
        except pytest.skip.Exception as skipped:
            self.skipped.append(f"{name}: {skipped}")
        except (Exception, pytest.fail.Exception) as failed:
            self.failed.append((name, failed))

    def finish(self) -> None:
        if self.failed:
            lines = [f"{len(self.failed)} of {self.ran} cases failed"]
            for number, (name, failure) in enumerate(self.failed):
                told = traceback.format_exception(failure, chain=False)
                lines.append(f"--- {name}\n" + "".join(told if number < SHOWN else told[-1:]).rstrip())
            pytest.fail("\n".join(lines), pytrace=False)
        if self.skipped and len(self.skipped) == self.ran:
            pytest.skip(f"{self.skipped[0]} (and {self.ran - 1} more)")
        if not self.ran and not only_case:
            pytest.skip("no cases")


def _name(given: Any, value: Any) -> str:
    return str(given) if given is not None else f"{value!r:.60}"
