"""Spares Python's garbage collector the objects that stay for the whole command: modules, classes, compiled tools.

Looking at them over and over, and once more when the process ends, takes an eighth of the time of a short command.
"""

from __future__ import annotations

import gc

# New objects after which the collector runs again. Python's own 700 is reached after every few imports.
YOUNG_OBJECTS = 20_000

_ours = False


def own_process() -> None:
    """Declares that this process runs one command of ours and ends. Without it `spare_loaded` does nothing."""
    global _ours
    _ours = True
    gc.set_threshold(YOUNG_OBJECTS, *gc.get_threshold()[1:])


def spare_loaded() -> None:
    """Excludes all objects that exist now from collection. Users' code is loaded later; its objects are collected."""
    if _ours:
        gc.freeze()
