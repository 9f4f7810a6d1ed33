"""What a typed answer costs: whole, and streamed with the value so far at each piece; and what the request holds."""

import asyncio
import gc
import json
import time
from typing import Any

from typed_answers import VALUE, Served, frames, tool_in, whole


def _floor(request: dict[str, Any], streamed: bool) -> float:
    """CPU seconds of reading the same bytes with `json.loads` alone."""
    name = tool_in(request)
    body, events = whole(name), frames(name)
    gc.collect()
    begun = time.process_time()
    for _ in range(20):
        if streamed:
            for event in events[:-1]:
                json.loads(event[6:])
        else:
            json.loads(body)
    return (time.process_time() - begun) / 20


async def _sample(answer: Any, served: Served, times: int, streamed: bool) -> dict[str, float]:
    value = await answer()
    given = value.model_dump() if hasattr(value, "model_dump") else value
    assert given == VALUE, "the value is not that which was sent"
    await answer()
    gc.collect()
    begun = time.process_time()
    for _ in range(times):
        await answer()
    spent = (time.process_time() - begun) / times
    size = len(json.dumps({key: item for key, item in served.request.items() if key != "stream"}))
    return {"bytes asked": size, "ms": spent * 1e3, "× json": spent / _floor(served.request, streamed)}


def measure(adapter: Any, options: dict[str, Any]) -> list[dict[str, Any]]:
    samples: list[dict[str, Any]] = []
    times = 10 if options["quick"] else 30
    for row, by_path in (adapter.typed() if hasattr(adapter, "typed") else {}).items():
        for path, (answer, served) in by_path.items():
            figures = asyncio.run(_sample(answer, served, times, row == "streamed"))
            samples.append({"row": row, "path": path, "figures": figures, "guessed": []})
    return samples
