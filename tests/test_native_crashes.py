"""No text that a model writes ends the process: each package in C or Rust that meets one is fuzzed in a child process.

`python -m tests.native_fuzz TARGET SEED COUNT` does it by hand, for longer.
"""

from __future__ import annotations

import random
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import settings

from tests.native_fuzz import TARGETS, text_of
from tests.properties import FAST

ROOT = Path(__file__).parents[1]
# Texts for each 40 examples of a property; a text costs between 1 and 15 ms.
SHARE = {
    "tree_sitter_bash": 1_500,
    "python_parser": 1_500,
    "pydantic_core and jsonschema_rs": 200,
    "re": 500,
    "ahocorasick": 1_000,
    "pypdfium2": 200,
}


@pytest.mark.slow
@pytest.mark.parametrize("target", TARGETS)
def test_no_text_ends_the_process(target: str, tmp_path: Path) -> None:
    if target == "pypdfium2":
        pytest.importorskip("pypdfium2")
    profile = settings.default
    assert profile is not None
    seed = 1 if settings.get_profile(FAST) == profile else random.randrange(2**32)
    count = SHARE[target] * profile.max_examples // 40
    at = tmp_path / "at"
    at.touch()
    done = subprocess.run(
        [sys.executable, "-X", "utf8", "-m", "tests.native_fuzz", target, str(seed), str(count), str(at)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=60 + count // 20,
    )
    if done.returncode:
        texts = {number: text_of(target, seed, int(number))[:500] for number in at.read_text().split()}
        pytest.fail(f"exit {done.returncode}, seed {seed}\n{done.stderr[-3000:]}\nat work: {texts!r}")


@pytest.mark.slow
def test_a_crash_would_be_seen() -> None:
    """The control: a child that reads memory which it does not have. Whether a parser meets such memory is chance."""
    raw = "import ctypes; ctypes.string_at(1)"
    done = subprocess.run([sys.executable, "-c", raw], capture_output=True, timeout=60)
    assert done.returncode != 0
