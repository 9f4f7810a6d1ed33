"""Shell commands: `judge` a command line, `launch` it in a `sandbox`, `explain` why it failed.

A tool that runs commands takes these steps in this order, as `toolcrib.tools.shell` does. Each package hands out what
others may use; `toolcrib.command.sandbox` and `toolcrib.command.judge` are also meant for programs of your own.
"""
