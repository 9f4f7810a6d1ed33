"""`python -m toolcrib`: the same as the command `toolcrib`."""

import os
import sys

if __name__ == "__main__":
    # `-m` puts the current folder first on the import path; a file there must not stand in for a library.
    if not sys.flags.safe_path and sys.path and sys.path[0] in ("", os.getcwd()):  # noqa: PTH109
        del sys.path[0]

    from toolcrib.cli import main

    sys.exit(main())
