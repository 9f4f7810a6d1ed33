# mypy: disable-error-code="misc, name-defined"
"""An internet of the tests' own: names that it knows, and connections that all end on loopback."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import pytest

httpcore2 = pytest.importorskip("httpcore2")

PUBLIC = "93.184.216.34"


class Wire:
    """Where connections would have gone; all of them go to the test's own server."""

    def __init__(self, port: int) -> None:
        self.port = port
        self.seen: list[tuple[str, int]] = []
        wire = self

        class Sync(httpcore2.SyncBackend):
            def connect_tcp(self, host: str, port: int, *rest: Any, **more: Any) -> Any:
                wire.seen.append((host, port))
                return super().connect_tcp("127.0.0.1", wire.port, *rest, **more)

        class Async(httpcore2.AnyIOBackend):
            async def connect_tcp(self, host: str, port: int, *rest: Any, **more: Any) -> Any:
                wire.seen.append((host, port))
                return await super().connect_tcp("127.0.0.1", wire.port, *rest, **more)

        self.backends = Sync(), Async()


class Names:
    """A resolver of the test's own; `rebind.test` is public once and ours ever after."""

    def __init__(self) -> None:
        self.rebinding = itertools.chain([PUBLIC], itertools.repeat("127.0.0.1"))
        self.asked: list[str] = []

    def __call__(self, host: str, port: int) -> Sequence[str]:
        self.asked.append(host)
        if host == "rebind.test":
            return [next(self.rebinding)]
        answers = {
            "public.test": [PUBLIC],
            "other.test": ["1.1.1.1"],
            "multi.test": [PUBLIC, "127.0.0.1"],
            "private.test": ["10.0.0.5"],
        }
        if host not in answers:
            raise OSError("no such name")
        return answers[host]
