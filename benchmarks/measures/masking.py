"""How fast secrets are masked: megabytes of text a second of CPU."""

import random
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from adapters import own

SIZE = 1 << 20


def _texts() -> dict[str, str]:
    """A megabyte each of what tools print."""
    chance = random.Random(1)
    code = "".join(path.read_text("utf-8") for path in sorted(Path(__file__).parents[1].glob("*.py")))
    return {
        "prose": ("The quick brown fox jumps over the lazy dog, 42 times. " * (SIZE // 50))[:SIZE],
        "code": (code * (SIZE // len(code) + 1))[:SIZE],
        "hex": chance.randbytes(SIZE // 2).hex(),
    }


def _speed(work: Callable[[], object], times: int) -> float:
    least = float("inf")
    for _ in range(times):
        begun = time.process_time()
        work()
        least = min(least, time.process_time() - begun)
    return SIZE / least / 1e6


def measure(adapter: Any, options: dict[str, Any]) -> list[dict[str, Any]]:
    samples = []
    texts = _texts()
    for row, path, mask, streamed in own.masking():
        speeds = {f"MB/s of {name}": _speed(lambda t=text, m=mask: m(t), 3) for name, text in texts.items()}
        if streamed is not None:
            speeds["MB/s streamed"] = _speed(lambda s=streamed: s(texts["code"]), 3)
        samples.append({"row": row, "path": path, "figures": speeds})
    return samples
