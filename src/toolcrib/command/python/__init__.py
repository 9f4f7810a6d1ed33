"""A Python session in a sandbox: one process that runs pieces of code, one after the other, and keeps its variables.

`PythonSession` starts it and talks to it; `driver.py` is what runs in it. Replies stand between the output in frames,
so that what was printed before a reply belongs to it.
"""

from toolcrib.command.python.session import PythonSession, Reply, SessionCrashed, SessionInterrupted

__all__ = ["PythonSession", "Reply", "SessionCrashed", "SessionInterrupted"]
