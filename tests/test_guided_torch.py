"""Logits processors with PyTorch, in an environment of their own: `python3 dev.py torch`, which the nightly job runs."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]


@pytest.mark.slow
def test_a_model_of_random_weights_writes_only_what_the_constraint_says() -> None:
    place = os.environ.get("TOOLCRIB_TEST_TORCH", "")
    if not place:
        pytest.skip("TOOLCRIB_TEST_TORCH names no environment with PyTorch: `python3 dev.py torch` makes it")
    done = subprocess.run(
        [str(Path(place) / "bin" / "python"), "-m", "tests.guided_with_torch", "1000"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=1_800,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-2_000:]
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    assert {line["by"] for line in lines} == {"transformers", "vllm", "beams", "tokenizer"}
    assert {line["backend"] for line in lines} == {"llguidance", "xgrammar"}
    assert [line for line in lines if not line["valid"] == line["finished"] == line["of"]] == []
