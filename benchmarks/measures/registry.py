"""What it costs to keep 10,000 tools: adding, looking up, listing for a model."""

import asyncio
import gc
import time
from typing import Any, Protocol

import workload

MANY, FEW = 10_000, 100


class Registry(Protocol):
    """What an adapter gives: tools are made in the constructor and not measured."""

    def add(self) -> Any: ...
    def look_up(self, name: str) -> Any: ...
    def list(self) -> Any: ...


async def _maybe(value: Any) -> Any:
    return await value if hasattr(value, "__await__") else value


def _microseconds(begun: float, count: int) -> float:
    return (time.process_time() - begun) / count * 1e6


async def _added(made: Any, count: int) -> float:
    gc.collect()
    begun = time.process_time()
    await _maybe(made.add())
    return _microseconds(begun, count)


async def _looked_up(made: Any, count: int) -> float:
    """The best of three passes, as the first one fills caches."""
    return min([await _one_pass(made, count) for _ in range(3)])


async def _one_pass(made: Any, count: int) -> float:
    names = [f"tool_{number * 7919 % count}" for number in range(2000)]
    gc.collect()
    begun = time.process_time()
    done = 0
    for start in range(0, len(names), 100):
        for name in names[start : start + 100]:
            found = made.look_up(name)
            if hasattr(found, "__await__"):
                found = await found
            assert found is not None, name
        done = start + 100
        if time.process_time() - begun > 2:
            break
    return _microseconds(begun, done)


async def _listed(made: Any) -> float:
    gc.collect()
    begun = time.process_time()
    count = await _maybe(made.list())
    assert count >= MANY, count
    return (time.process_time() - begun) * 1e3


async def _all(adapter: Any, function: Any) -> list[dict[str, Any]]:
    few = sorted([await _added(adapter.registry(function, FEW), FEW) for _ in range(9)])[4]
    small = adapter.registry(function, FEW)
    await _maybe(small.add())
    made = adapter.registry(function, MANY)
    many = await _added(made, MANY)
    samples = [
        {"row": "add, 10,000 against 100", "path": "", "figures": {"µs": many, "× growth": many / few}}
    ]
    if hasattr(made, "look_up"):
        few, many = await _looked_up(small, FEW), await _looked_up(made, MANY)
        figures = {"µs": many, "× growth": many / few}
        samples.append({"row": "look up, 10,000 against 100", "path": "", "figures": figures})
    first, again = await _listed(made), await _listed(made)
    samples.append({"row": "list 10,000", "path": "", "figures": {"ms": first}})
    samples.append({"row": "list 10,000 again", "path": "", "figures": {"ms": again}})
    return samples


def measure(adapter: Any, options: dict[str, Any]) -> list[dict[str, Any]]:
    if not hasattr(adapter, "registry"):
        return []
    return asyncio.run(_all(adapter, workload.KINDS["async"][0]))
