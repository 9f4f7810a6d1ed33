"""Packages whose names are imported when they are first used, so that nobody waits for the others (PEP 562)."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from importlib import import_module
from types import ModuleType
from typing import Any


def lazy_names(package: str, homes: Mapping[str, tuple[str, ...]]) -> Callable[[str], Any]:
    """The `__getattr__` of a package; `homes` are its modules, each with the names that it defines.

    A module of another package is named as a relative import names it. `dir()` of the package lists them too. A name
    stays what its module defines, even if a module has the same name (`choose`, say): importing that module does not
    bind it to the package.
    """
    home_of = {name: module for module, names in homes.items() for name in names}

    def load(name: str) -> Any:
        if name not in home_of:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        value = getattr(import_module(f".{home_of[name]}", package), name)
        setattr(sys.modules[package], name, value)
        return value

    class Package(ModuleType):
        def __setattr__(self, name: str, value: Any) -> None:
            if not (isinstance(value, ModuleType) and name in home_of):
                super().__setattr__(name, value)

    module = sys.modules[package]
    module.__class__ = Package
    vars(module)["__dir__"] = lambda: sorted({*vars(module), *home_of})
    return load
