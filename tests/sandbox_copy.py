"""The sandbox alone, copied to where another user may import it."""

import shutil
from pathlib import Path

import toolcrib

# All that the sandbox imports from elsewhere.
NEEDED = (
    "birth_time.py", "command/backup_names.py", "credentials.py", "dataclass.py", "errors.py", "folder_handles.py", "lazy_names.py",
    "visible.py",
)  # fmt: skip


def copy_sandbox(lib: Path) -> None:
    """Make `toolcrib.command.sandbox` importable from the folder `lib`."""
    source, package = Path(toolcrib.__file__).parent, lib / "toolcrib"
    (package / "command").mkdir(parents=True)
    (package / "__init__.py").touch()
    (package / "command/__init__.py").touch()
    for module in NEEDED:
        shutil.copy(source / module, package / module)
    shutil.copytree(
        source / "command/sandbox", package / "command/sandbox", ignore=shutil.ignore_patterns("__pycache__")
    )
