"""Tools from other code: those that a person names as `module:attribute`, and those of installed packages.

To import a module is to run it. A module is imported here only if a person named it, or if its package is
installed and declares an entry point of the group "toolcrib.tools". `plugin_files.py` imports files of folders.
"""

from __future__ import annotations

import importlib
import os
import sys
import traceback
from collections.abc import Collection, Iterable
from difflib import get_close_matches
from importlib.machinery import ModuleSpec, PathFinder
from pathlib import Path
from types import ModuleType
from typing import Any

from toolcrib.dataclass import dataclass, field
from toolcrib.errors import ToolcribError
from toolcrib.tool import Tool
from toolcrib.toolset import ToolFactory, ToolLike, Toolset, filtered, is_tool, is_toolset, name_of

__all__ = [
    "Plugin",
    "PluginError",
    "import_failure",
    "installed_plugins",
    "is_tool",
    "load_named",
    "load_object",
    "tools_of",
]

GROUP = "toolcrib.tools"


class PluginError(ToolcribError):
    """Tools could not be loaded. The message says what was asked for, what was found, and what to do."""


@dataclass(slots=True)
class Plugin:
    """The tools of a source, which is an entry point or a reference. `problem` says why they could not be loaded."""

    source: str
    tools: list[ToolLike | Toolset] = field(default_factory=list)
    problem: str = ""

    def without(self, names: Collection[str]) -> Plugin:
        """The plugin without the tools of these names."""
        tools: list[ToolLike | Toolset] = []
        for tool in self.tools:
            if is_toolset(tool):
                tools.append(filtered(tool, lambda name: name not in names) if names else tool)
            elif name_of(tool) not in names:
                tools.append(tool)
        return Plugin(self.source, tools, self.problem)


def load_named(reference: str) -> Plugin:
    """The tools behind "module:attribute" or "module"; a module may be given as its file. Raises PluginError.

    The attribute is a tool, a list of tools, a Toolset, or a module. A module supplies the tools that its `__all__`
    names, or else those defined in it or in a submodule. Modules are searched on the import path and then in the
    current folder; there only among the files that exist now, so that no file which a run writes is imported.
    """
    return Plugin(reference, tools_of(load_object(reference, example="weather:forecast"), reference))


def load_object(reference: str, *, example: str) -> Any:
    """The object behind "module:attribute", or the module. Raises PluginError, which shows an `example`."""
    module_name, colon, path = reference.partition(":")
    if not module_name or (colon and not path):
        raise PluginError(f"expected module:attribute or module, got {reference!r}; for example {example}")
    _CurrentFolderFinder.install()
    if os.sep in module_name or module_name.endswith(".py") or not module_name.strip("."):
        module_name = _module_of_file(module_name)
    value: Any = _imported(module_name, reference)
    for name in path.split(".") if path else ():
        value = _attribute(value, name, reference)
    return value


def _module_of_file(given: str) -> str:
    """The name of the module in a file below the current folder. Raises PluginError where there is none."""
    path = Path(given)
    if path.is_dir():
        raise PluginError(f"{given!r} is a folder; give MODULE, or a file of Python below this folder")
    if not path.is_file():
        raise PluginError(f"there is no file {given!r}; give MODULE, or a file of Python below this folder")
    try:
        inside = path.resolve().relative_to(Path.cwd().resolve())
    except ValueError:
        raise PluginError(f"{given!r} lies outside of the current folder; begin in its own folder") from None
    names = inside.with_suffix("").parts
    if inside.suffix != ".py" or not all(name.isidentifier() for name in names):
        raise PluginError(f"{given!r} is no file that Python can import as a module")
    if not _is_found_in(Path.cwd(), names[0]):
        raise PluginError(
            f"{given!r} cannot be imported: Python finds another module named {names[0]!r} first. Rename "
            f"{'the file' if len(names) == 1 else 'its folder'}, or begin in another folder"
        )
    return ".".join(names)


def _is_found_in(folder: Path, name: str) -> bool:
    """Whether importing a module by this name finds the file or the package in a folder."""
    from importlib.util import find_spec

    try:
        return comes_from(folder, name, find_spec(name))
    except ValueError:  # loaded without a spec, as __main__ is
        return False


def comes_from(folder: Path, name: str, spec: Any) -> bool:
    """Whether a top-level module with this `__spec__`, which may be anything, is a file or a package of a folder."""
    if not isinstance(spec, ModuleSpec):
        return False
    places = [spec.origin, *(spec.submodule_search_locations or ())]
    ours = {os.path.realpath(folder / path) for path in (f"{name}.py", name, f"{name}/__init__.py")}
    return any(place is not None and os.path.realpath(place) in ours for place in places)


class _CurrentFolderFinder:
    """An import finder, the last of all, for the modules that were in a folder when the finder was made.

    The folder is not put on `sys.path`: if toolcrib later imports a module that is not installed, a command could
    have written a file of that name there.
    """

    def __init__(self, folder: str) -> None:
        self.folder = folder
        self.names = {path.name.partition(".")[0] for path in Path(folder).iterdir()}

    def find_spec(self, fullname: str, path: Any = None, target: Any = None) -> ModuleSpec | None:
        known = path is None and fullname in self.names
        return PathFinder.find_spec(fullname, [self.folder]) if known else None

    @classmethod
    def install(cls) -> None:
        """Add a finder for the current folder, unless there is one."""
        here = os.getcwd()  # noqa: PTH109 - as sys.path holds it
        known = (finder.folder for finder in sys.meta_path if isinstance(finder, cls))
        if here not in sys.path and here not in known:
            sys.meta_path.append(cls(here))


def installed_plugins() -> list[Plugin]:
    """The plugins of installed packages, sorted by name. A plugin that cannot be imported has a `problem`."""
    from importlib.metadata import entry_points

    plugins: list[Plugin] = []
    for point in sorted(entry_points(group=GROUP), key=lambda point: (point.name, point.value)):
        package = point.dist.name if point.dist is not None else ""
        source = f"{package or point.name}: {point.value}"
        try:
            plugins.append(Plugin(source, tools_of(point.load(), point.value)))
        except KeyboardInterrupt:
            raise
        except BaseException as problem:  # an imported package may raise anything
            plugins.append(Plugin(source, problem=import_failure(problem)))
    return plugins


def tools_of(value: Any, reference: str) -> list[ToolLike | Toolset]:
    """The tools of the object that a reference leads to. Raises PluginError for an object that is no tool."""
    if isinstance(value, ModuleType):
        found = _of_module(value, reference)
        if not found:
            raise PluginError(
                f"{reference}: module {value.__name__} defines no tools; is @tool(...) missing?"
            )
        return found
    if isinstance(value, Toolset):
        return [value]
    if isinstance(value, Iterable) and not isinstance(value, str | bytes):
        return [_require_tool(item, reference) for item in value]
    return [_require_tool(value, reference)]


def _of_module(module: ModuleType, reference: str) -> list[Any]:
    public = getattr(module, "__all__", None)
    names: list[str] = list(vars(module)) if public is None else list(public)
    found: dict[int, Any] = {}
    for name in names:
        value = getattr(module, name, None)
        if not is_tool(value) or (public is None and not _defined_in(value, module.__name__)):
            continue
        found.setdefault(id(value), _require_tool(value, reference))
    # A class beside an object or a factory of the same name is what makes that object, not a second tool.
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
        raise PluginError(f"{reference}: {import_failure(problem)}") from problem
    except BaseException as problem:  # also a sys.exit() at the top of a script
        raise PluginError(f"{reference}: {import_failure(problem)}") from problem


def _attribute(value: Any, name: str, reference: str) -> Any:
    try:
        return getattr(value, name)
    except AttributeError:
        near = get_close_matches(name, dir(value), n=3)
        hint = f"; did you mean {' or '.join(near)}?" if near else ""
        owner = value.__name__ if isinstance(value, ModuleType) else type(value).__name__
        raise PluginError(f"{reference}: {owner} has no attribute {name!r}{hint}") from None


def import_failure(problem: BaseException) -> str:
    """What went wrong during an import, with the line of the imported code that failed."""
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
