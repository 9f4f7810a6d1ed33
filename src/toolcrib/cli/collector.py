"""Spares Python's garbage collector the objects that stay for the whole command: modules, classes, compiled tools.

Looking at them over and over, and once more when the process ends, takes an eighth of the time of a short command.
"""

from __future__ import annotations

import gc

# The collector looks again when so many more objects exist; Python's own 700 is reached by each few imports.
YOUNG_OBJECTS = 20_000

_ours = False


def own_process() -> None:
    """The process runs one command of ours and ends: only then may `spare_loaded` change what is collected."""
    global _ours
    _ours = True
    gc.set_threshold(YOUNG_OBJECTS, *gc.get_threshold()[1:])


def spare_loaded() -> None:
    """What is loaded by now is collected no more. Objects of other people's code are loaded after it, and still are."""
    if _ours:
        gc.freeze()
