"""Explains a command: to the person before and while it runs, why it failed, and to the model in its result.

`preview` says what would run, `reporter` what comes of it. `failure` finds what the sandbox refused, `escalation` asks
a person to allow that, and `result_text` writes the result for the model;
`process_text` does so for a process in the background.
"""

from toolcrib.command.explain.escalation import MAX_PERMISSIONS, PermissionEscalation
from toolcrib.command.explain.failure import explain_failure
from toolcrib.command.explain.preview import preview_text
from toolcrib.command.explain.process_text import (
    ProcessReading,
    RefusedInBackground,
    process_text,
    read_process,
)
from toolcrib.command.explain.reporter import Reporter
from toolcrib.command.explain.result_text import result_text, sandbox_sentences

__all__ = [
    "MAX_PERMISSIONS",
    "PermissionEscalation",
    "ProcessReading",
    "RefusedInBackground",
    "Reporter",
    "explain_failure",
    "preview_text",
    "process_text",
    "read_process",
    "result_text",
    "sandbox_sentences",
]
