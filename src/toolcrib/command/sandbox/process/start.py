"""The script that starts a launcher: `start.py FD` for one command, `start.py serve FD PIDFD` for many (`serve`).

It is short, because Python compiles a script anew each time, and modules only once.
"""

import os
import sys
from types import ModuleType


def _find_siblings() -> None:
    """Makes the sandbox's modules importable without running the `__init__` of their packages, which load much more."""
    names = ["toolcrib", "command", "sandbox", "process"]
    folder = os.path.dirname(os.path.abspath(__file__))
    while names:
        package = ModuleType(".".join(names))
        package.__path__ = [folder]
        sys.modules[package.__name__] = package
        names.pop()
        folder = os.path.dirname(folder)


if __name__ == "__main__":
    _find_siblings()
    if sys.argv[1] == "serve":
        from toolcrib.command.sandbox.process.serve import serve

        serve(int(sys.argv[2]), int(sys.argv[3]))
    from toolcrib.command.sandbox.process.launcher import main

    main(int(sys.argv[1]))
