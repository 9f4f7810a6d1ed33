"""Tools from elsewhere: what a person names as `module:attribute`, and what installed packages offer.

Importing is running. A module is imported here only because a person named it, or because its package was
installed and declares the entry point group "toolcrib.tools"; nothing is imported for lying in a folder.
"""

from __future__ import annotations

import importlib
import os
import sys
import traceback
from collections.abc import Iterable
from dataclasses import dataclass, field
from difflib import get_close_matches
from importlib.machinery import ModuleSpec, PathFinder
from pathlib import Path
from types import ModuleType
from typing import Any

from toolcrib.errors import ToolcribError
from toolcrib.tool import Tool
from toolcrib.toolset import ToolFactory, ToolLike, Toolset, is_tool, name_of

GROUP = "toolcrib.tools"


class PluginError(ToolcribError):
    """Tools could not be loaded; the message names what was asked for, what came, and what to do."""


@dataclass(slots=True)
class Plugin:
    """What one source supplies: an entry point, or a reference that a person named. `problem` if it failed."""

    source: str
    tools: list[ToolLike | Toolset] = field(default_factory=list)
    problem: str = ""


def load_named(reference: str) -> Plugin:
    """The tools behind "module:attribute" or "module". Raises PluginError.

    The attribute is a tool, a list of tools, a Toolset, or a module; of a module, its tools are collected:
    those that `__all__` names, else those defined in it or below it. Modules are looked for on the import
    path, and then in the current folder, among what lies there now: what a run writes there is not imported.
    """
    module_name, colon, path = reference.partition(":")
    if not module_name or (colon and not path):
        raise PluginError(
            f"expected module:attribute or module, got {reference!r}; for example weather:forecast"
        )
    if os.sep in module_name or module_name.endswith(".py"):
        dotted = os.path.normpath(module_name).removesuffix(".py").lstrip(f".{os.sep}").replace(os.sep, ".")
        raise PluginError(f"expected a module's name, got the path {module_name!r}; did you mean {dotted!r}?")
    _Here.found()
    value: Any = _imported(module_name, reference)
    for name in path.split(".") if path else ():
        value = _attribute(value, name, reference)
    return Plugin(reference, collected(value, reference))


class _Here:
    """Finds the modules that lay in a folder when it was looked at, after all others.

    Not the folder on `sys.path`: a module that toolcrib imports later, and that is not installed, could be written
    there by a command in the meantime.
    """

    def __init__(self, folder: str) -> None:
        self.folder = folder
        self.names = {path.name.partition(".")[0] for path in Path(folder).iterdir()}

    def find_spec(self, fullname: str, path: Any = None, target: Any = None) -> ModuleSpec | None:
        known = path is None and fullname in self.names
        return PathFinder.find_spec(fullname, [self.folder]) if known else None

    @classmethod
    def found(cls) -> None:
        """Look at the current folder, once."""
        here = os.getcwd()  # noqa: PTH109 - as sys.path holds it
        known = (finder.folder for finder in sys.meta_path if isinstance(finder, cls))
        if here not in sys.path and here not in known:
            sys.meta_path.append(cls(here))


def entry_points() -> list[Plugin]:
    """The tools that installed packages offer, in the order of their names; a broken one says its problem."""
    from importlib.metadata import entry_points as installed

    plugins: list[Plugin] = []
    for point in sorted(installed(group=GROUP), key=lambda point: (point.name, point.value)):
        package = point.dist.name if point.dist is not None else ""
        source = f"{package or point.name}: {point.value}"
        try:
            plugins.append(Plugin(source, collected(point.load(), point.value)))
        except KeyboardInterrupt:
            raise
        except BaseException as problem:  # an installed package may do anything while it is imported
            plugins.append(Plugin(source, problem=_in_short(problem)))
    return plugins


def collected(value: Any, reference: str) -> list[ToolLike | Toolset]:
    """The tools of what a reference leads to. Raises PluginError for what is no tool."""
    if isinstance(value, ModuleType):
        found = _of_module(value)
        if not found:
            raise PluginError(
                f"{reference}: module {value.__name__} defines no tools; is @tool(...) missing?"
            )
        return found
    if is_tool(value) or isinstance(value, Toolset):
        return [value]
    if isinstance(value, Iterable) and not isinstance(value, str | bytes):
        return [_require_tool(item, reference) for item in value]
    return [_require_tool(value, reference)]


def missing_arguments(supplied: ToolLike) -> str:
    """The constructor's parameters that a Tool class cannot be made without, or ""."""
    import inspect

    if (
        not (isinstance(supplied, type) and issubclass(supplied, Tool))
        or supplied.__init__ is object.__init__
    ):
        return ""
    parameters = list(inspect.signature(supplied.__init__).parameters.values())[1:]
    needed = [
        item.name
        for item in parameters
        if item.default is item.empty and item.kind not in (item.VAR_POSITIONAL, item.VAR_KEYWORD)
    ]
    return ", ".join(needed)


def _of_module(module: ModuleType) -> list[Any]:
    public = getattr(module, "__all__", None)
    names: list[str] = list(vars(module)) if public is None else list(public)
    found: dict[int, Any] = {}
    for name in names:
        value = getattr(module, name, None)
        if not is_tool(value) or (public is None and not _defined_in(value, module.__name__)):
            continue
        found.setdefault(id(value), value)
    # A class beside an object or a factory of its name is how that one is made, not a second tool.
    made = {name_of(value) for value in found.values() if not isinstance(value, type)}
    return [value for value in found.values() if not isinstance(value, type) or name_of(value) not in made]


def _defined_in(value: Any, module: str) -> bool:
    home = getattr(value, "__module__", None) or type(value).__module__
    if isinstance(value, ToolFactory) or (isinstance(value, Tool) and not isinstance(value, type)):
        return True  # an object made here, whatever module its class is from
    return home == module or home.startswith(f"{module}.")


def _require_tool(value: Any, reference: str) -> ToolLike:
    """The value if it is a tool; PluginError if not."""
    try:
        name_of(value)
    except TypeError as problem:
        raise PluginError(f"{reference}: {problem}") from None
    tool: ToolLike = value
    return tool


def _imported(module: str, reference: str) -> ModuleType:
    try:
        return importlib.import_module(module)
    except KeyboardInterrupt:
        raise
    except ModuleNotFoundError as problem:
        if problem.name and (module == problem.name or module.startswith(f"{problem.name}.")):
            raise PluginError(
                f"{reference}: no module is named {problem.name!r}. Run from the folder that holds it, "
                "install it, or add its folder to PYTHONPATH"
            ) from problem
        raise PluginError(f"{reference}: {_in_short(problem)}") from problem
    except BaseException as problem:  # also a sys.exit() at the top of a script
        raise PluginError(f"{reference}: {_in_short(problem)}") from problem


def _attribute(value: Any, name: str, reference: str) -> Any:
    try:
        return getattr(value, name)
    except AttributeError:
        near = get_close_matches(name, dir(value), n=3)
        hint = f"; did you mean {' or '.join(near)}?" if near else ""
        owner = value.__name__ if isinstance(value, ModuleType) else type(value).__name__
        raise PluginError(f"{reference}: {owner} has no attribute {name!r}{hint}") from None


def _in_short(problem: BaseException) -> str:
    """What went wrong while importing, with the line of the code that was imported."""
    ours = os.path.dirname(__file__)  # noqa: PTH120 - frames hold strings
    frames = [
        frame
        for frame in traceback.extract_tb(problem.__traceback__)
        if "importlib" not in frame.filename and not frame.filename.startswith(ours + os.sep)
    ]
    where = ""
    if frames:
        where = f" ({frames[-1].filename}, line {frames[-1].lineno})"
    if isinstance(problem, PluginError):
        return str(problem)
    return f"importing it failed: {type(problem).__name__}: {problem}{where}"
