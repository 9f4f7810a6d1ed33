"""Tools in files of a folder. The bytes that were read, and maybe trusted, are the ones that are executed.

The files make a package that exists in memory only: a file that was not given cannot be imported from it, and what is
written to the folder afterwards has no effect. They are UTF-8, whatever encoding they name. A file imports another with
`from .other import name`.
"""

from __future__ import annotations

import hashlib
import importlib
import sys
import threading
from collections.abc import Iterable, Mapping
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from importlib.util import spec_from_loader
from types import ModuleType
from typing import Any

from toolcrib.dataclass import dataclass
from toolcrib.plugins import Plugin, import_failure, tools_of
from toolcrib.text_file import text_of
from toolcrib.visible import counted

__all__ = ["PluginFile", "load_files"]

IMPORT_SECONDS = 10.0  # that a file may take to be imported


@dataclass(frozen=True, slots=True)
class PluginFile:
    """A Python file: how a person is told of it, its path below the folder, its place on disk, and its content."""

    shown: str
    path: str
    place: str
    data: bytes

    @property
    def module(self) -> str:
        return self.path.removesuffix(".py").removesuffix("__init__").strip("/").replace("/", ".")

    @property
    def supplies(self) -> bool:
        """Whether it is a file of tools, and not one for others to import."""
        return "/" not in self.path and not self.path.startswith("_")


def load_files(files: Iterable[PluginFile], *, seconds: float = IMPORT_SECONDS) -> list[Plugin]:
    """The tools of the files of one folder. A file that cannot be imported, or takes too long, has a `problem`."""
    given = sorted(files, key=lambda file: file.path)
    if not given:
        return []
    digest = hashlib.sha256(repr([(file.place, file.data) for file in given]).encode()).hexdigest()
    package = f"toolcrib_files_{digest[:16]}"
    if not any(isinstance(finder, _Files) and finder.package == package for finder in sys.meta_path):
        sys.meta_path.append(_Files(package, given))
    return [_loaded(f"{package}.{file.module}", file, seconds) for file in given if file.supplies]


def _loaded(module: str, file: PluginFile, seconds: float) -> Plugin:
    """Import one file, on a thread of its own, which cannot be stopped but is not waited for."""
    made: list[Plugin] = []

    def load() -> None:
        try:
            made.append(Plugin(file.shown, tools_of(importlib.import_module(module), file.module)))
        except BaseException as problem:  # what is imported may raise anything, also SystemExit
            made.append(Plugin(file.shown, problem=import_failure(problem)))

    thread = threading.Thread(target=load, name=f"toolcrib-import-{file.path}", daemon=True)
    thread.start()
    thread.join(seconds)
    if made:
        return made[0]
    return Plugin(file.shown, problem=f"importing it took more than {counted(seconds, 'second')}")


class _Files(MetaPathFinder, Loader):
    """Finds and executes the modules of one package in memory."""

    def __init__(self, package: str, files: Iterable[PluginFile]) -> None:
        self.package = package
        self.files: Mapping[str, PluginFile] = {
            f"{package}.{file.module}".rstrip("."): file for file in files
        }
        self.packages = {package} | {
            name.rpartition(".")[0] for name, file in self.files.items() if "/" in file.path
        }
        self.packages |= {name for name, file in self.files.items() if file.path.endswith("__init__.py")}

    def find_spec(self, fullname: str, path: Any = None, target: Any = None) -> ModuleSpec | None:
        if fullname not in self.files and fullname not in self.packages:
            return None
        file = self.files.get(fullname)
        origin = file.place if file is not None else None
        return spec_from_loader(fullname, self, origin=origin, is_package=fullname in self.packages)

    def exec_module(self, module: ModuleType) -> None:
        file = self.files.get(module.__name__)
        if file is not None:
            module.__file__ = file.place
            # As text: a line that names an encoding would make other code of the bytes than a person was shown.
            exec(compile(text_of(file.data), file.place, "exec", dont_inherit=True), vars(module))
