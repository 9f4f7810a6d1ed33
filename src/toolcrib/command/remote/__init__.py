"""Commands where only a transport reaches: in a container, in a virtual machine, on another host.

A transport runs one short script for `sh` and gives its exit code, output and errors. `RemoteCommand` makes of that a
command with streamed output, an input and an end, by the scripts in `scripts.py`.
"""

from toolcrib.command.remote.remote_command import RemoteCommand

__all__ = ["RemoteCommand"]
