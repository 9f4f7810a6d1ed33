"""Commands that run in the background of a run: each a handle with its output by byte offsets, its input and its end.

`Processes` holds those of one run. A `BackgroundProcess` is a task that runs a command to its end: a `LocalCommand` by
`launch.run_command`, so that it is confined and ended exactly as in the foreground, or one on another host.
`ProcessOutput` keeps what it prints.
"""

from toolcrib.command.background.local_command import LocalCommand
from toolcrib.command.background.process import BackgroundCommand, BackgroundProcess, RefusedToProcess
from toolcrib.command.background.process_input import ProcessInput
from toolcrib.command.background.process_output import ProcessOutput
from toolcrib.command.background.processes import Processes

__all__ = [
    "BackgroundCommand",
    "BackgroundProcess",
    "LocalCommand",
    "ProcessInput",
    "ProcessOutput",
    "Processes",
    "RefusedToProcess",
]
