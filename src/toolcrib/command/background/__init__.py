"""Commands that run in the background of a run: each a handle with its output by byte offsets, its input and its end.

`Processes` holds those of one run. A `BackgroundProcess` is a task that runs `launch.run_command` to its end, so that a
command in the background is confined and ended exactly as one in the foreground. `ProcessOutput` keeps what it prints.
"""

from toolcrib.command.background.process import BackgroundProcess
from toolcrib.command.background.process_input import ProcessInput
from toolcrib.command.background.process_output import ProcessOutput
from toolcrib.command.background.processes import Processes

__all__ = ["BackgroundProcess", "ProcessInput", "ProcessOutput", "Processes"]
