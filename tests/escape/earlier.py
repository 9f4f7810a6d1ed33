# ruff: noqa: PTH101, PTH104, PTH108, PTH211 - paths are text and descriptors here
"""Run inside a sandbox before the attempts: what an earlier command leaves for a later one of the same sandbox."""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from .trying import GIVEN, HOME, OUT

TIME_OF_A_PLACEHOLDER = 1_000_000_007
# Where bwrap, while it lays out the file system of a later command, finds the whole file system.
OUTER = "" if GIVEN["backend"] == "none" else "/oldroot"


def take_for_placeholders() -> None:
    for path in (f"{HOME}/.ssh", f"{HOME}/.aws", f"{HOME}/.config/gh", HOME):
        os.utime(path, (TIME_OF_A_PLACEHOLDER, TIME_OF_A_PLACEHOLDER))


def shut_a_toolchain() -> None:
    os.chmod(f"{HOME}/.conda", 0)


def link_a_mount_point_in_a_cache() -> None:
    with suppress(OSError):
        os.rename(f"{HOME}/.gradle/read-only", f"{HOME}/.gradle/away")
    os.symlink(f"{OUTER}{OUT}", f"{HOME}/.gradle/read-only")


def link_a_mount_point_for_temporary_files() -> None:
    with suppress(OSError):
        os.unlink(GIVEN["opened"])
    os.symlink(f"{OUTER}{OUT}/by-a-mount-point", GIVEN["opened"])


if __name__ == "__main__":
    steps: list[Callable[[], Any]] = [
        take_for_placeholders, shut_a_toolchain, link_a_mount_point_in_a_cache, link_a_mount_point_for_temporary_files
    ]  # fmt: skip
    for step in steps:
        with suppress(OSError):
            step()
    os.write(1, b"\n@@\n")
