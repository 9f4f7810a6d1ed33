"""The public names are what they say, in whatever order they are imported."""

from __future__ import annotations

import subprocess
import sys

import pytest

import toolcrib

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("name", ["tool", "repair"])
@pytest.mark.parametrize("first", ["", "Effect", "Toolbox", "Agent"])
def test_a_public_name_is_never_a_module_whatever_was_imported_before(name: str, first: str) -> None:
    """`from toolcrib import Effect, tool` is the first line of every example."""
    names = f"{first}, {name}" if first else name
    program = f"from toolcrib import {names}\nassert callable({name}), {name}"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr.splitlines()[-1]


@pytest.mark.parametrize("name", toolcrib.__all__)
def test_every_public_name_can_be_imported_alone(name: str) -> None:
    done = subprocess.run(
        [sys.executable, "-c", f"from toolcrib import {name}"], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr.splitlines()[-1]
