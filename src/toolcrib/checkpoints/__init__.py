"""Checkpoints of a workspace: everything that a run did to its files can be undone.

| what | where |
| --- | --- |
| what is promised: take, undo, redo, covers | `checkpoints.py` |
| the files as they are: comparing, reading, what is left out | `scan.py`, `entry.py` |
| copies of contents; the list of checkpoints, and its bounds | `content.py`, `history.py` |
| what an undo changes and what it keeps | `undo_plan.py` |
| changing the files, also after a crash | `restore.py` |
"""

from __future__ import annotations

from toolcrib.checkpoints.checkpoints import Change, Checkpoints, Restoration
from toolcrib.checkpoints.history import Checkpoint, CheckpointError, Conversation, Whose
from toolcrib.checkpoints.scan import CheckpointLimits

__all__ = [
    "Change",
    "Checkpoint",
    "CheckpointError",
    "CheckpointLimits",
    "Checkpoints",
    "Conversation",
    "Restoration",
    "Whose",
]
