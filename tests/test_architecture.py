"""The plan of the package: what may import what, and how short the way to a user's function is."""

import ast
import re
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from types import FrameType

import pytest

import toolcrib
from toolcrib import Effect, Toolbox
from toolcrib.function import tool

ROOT = Path(toolcrib.__file__).parent


def modules() -> list[Path]:
    return sorted(ROOT.rglob("*.py"))


def name_of(path: Path) -> str:
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(part for part in parts if part != "__init__")


PLAN = ROOT.parents[1] / "ARCHITECTURE.md"


def layers() -> list[tuple[str, set[str]]]:
    """The layers of the table in ARCHITECTURE.md, from the core up, each with its modules and packages."""
    text = PLAN.read_text(encoding="utf-8")
    table = text.partition("| layer | where |")[2].partition("\n\n")[0]
    found: list[tuple[str, set[str]]] = []
    for row in table.splitlines()[2:]:
        layer, where = (cell.strip() for cell in row.split("|")[1:3])
        if layer:
            found.insert(0, (layer, set()))
        found[0][1].update(
            name.removesuffix("/").removesuffix(".py") for name in re.findall(r"`([^`]+)`", where)
        )
    return found


# A module may import from its own layer and from those below.
LAYERS = layers()
LEVEL = {package: level for level, (_, packages) in enumerate(LAYERS) for package in packages}
NAMES = {name_of(path): path for path in modules()}
HOME_OF = {name: getattr(toolcrib, name).__module__ for name in toolcrib.__all__} | {
    "__version__": "toolcrib"
}
STRANGERS = {"tools", "codecs"}  # leaves of one layer that do not know each other

# Built-in tools are confined and know only the core; codecs do no I/O.
IO_MODULES = {
    "socket",
    "ssl",
    "http",
    "urllib",
    "asyncio",
    "subprocess",
    "httpx",
    "requests",
    "openai",
    "anthropic",
}


@cache
def imports(path: Path) -> tuple[str, ...]:
    """Every module that a file imports, also inside functions and for type checkers."""
    return tuple(read_imports(path))


def read_imports(path: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert not node.level, f"{path.name}: write imports in full"
            for alias in node.names:
                inner = f"{node.module}.{alias.name}"
                if node.module == "toolcrib":
                    yield HOME_OF.get(alias.name, inner)
                else:
                    yield inner if inner.removeprefix("toolcrib.") in NAMES else str(node.module)


def package(module: str) -> str:
    return module.removeprefix("toolcrib.").split(".")[0]


def test_every_module_has_its_layer() -> None:
    unplanned = {package(name) for name in NAMES if name} - set(LEVEL)
    assert unplanned == set(), "not in the table of ARCHITECTURE.md"
    gone = set(LEVEL) - {package(name) for name in NAMES if name}
    assert gone == set(), "in the table of ARCHITECTURE.md, but not in the tree"


def test_imports_run_downwards_only() -> None:
    found = []
    for name, path in NAMES.items():
        own = package(name)
        if not own:  # toolcrib/__init__.py hands out names of all layers
            continue
        for imported in imports(path):
            other = package(imported)
            if not imported.startswith("toolcrib.") or other == own:
                continue
            if LEVEL.get(other, 99) > LEVEL[own] or {own, other} == STRANGERS:
                found.append(f"{name} -> {imported}")
    assert found == []


def test_no_modules_import_each_other_in_a_circle() -> None:
    left = {name: others - {name} for name, others in edges().items()}
    while leaves := {name for name, others in left.items() if not others & left.keys()}:
        for name in leaves:
            del left[name]
    circles = sorted(name for name in left if _reaches(name, name, left))
    assert circles == []


def test_dataclasses_are_made_in_one_way() -> None:
    theirs = re.compile(
        r"^\s*(?:from dataclasses import .*\b(?:dataclass|field|replace)\b|.*dataclasses\.dataclass\()",
        re.MULTILINE,
    )
    others = [
        name for name, path in NAMES.items() if name != "dataclass" and theirs.search(path.read_text("utf-8"))
    ]
    assert others == []


def _reaches(start: str, goal: str, edges: dict[str, set[str]]) -> bool:
    """Whether imports lead from one module to another."""
    seen: set[str] = set()
    todo = [start]
    while todo:
        for other in edges.get(todo.pop(), set()) - seen:
            if other == goal:
                return True
            seen.add(other)
            todo.append(other)
    return False


# One call from `Toolbox.call` to the user's function and back to its recorded result, in the order in which to read it.
# A tool is met here as its Definition; `tool.py` and `function.py` are how authors write it.
READING_PATH = [
    "call", "prepared", "context", "compiling.definition", "toolbox.registry", "toolbox.tool_list", "toolbox.deadline",
    "toolbox.box", "toolbox.path", "toolbox.prepare", "toolbox.resolve", "toolbox.decode", "toolbox.decide",
    "toolbox.ask", "toolbox.execute", "toolbox.modes", "toolbox.output", "toolbox.report",
]  # fmt: skip
STEPS = {
    f"toolcrib.{name}" for name in READING_PATH[7:]
}  # what stands before them are values and mechanisms, which know no step
LINES_TO_READ = 3_000


def edges() -> dict[str, set[str]]:
    names = {f"toolcrib.{name}": path for name, path in NAMES.items() if name}
    return {name: {other for other in imports(path) if other in names} for name, path in names.items()}


def test_one_call_can_be_read_end_to_end() -> None:
    """The files of the path are few, and what they import besides leads to no other step of a call."""
    lines = {name: len(NAMES[name].read_text(encoding="utf-8").splitlines()) for name in READING_PATH}
    assert sum(lines.values()) <= LINES_TO_READ, lines
    graph = edges()
    composing = "toolcrib.toolbox.box"  # it puts all parts together: the one file that knows every other
    no_leaves = [
        f"{name} -> {other}"
        for name in (f"toolcrib.{name}" for name in READING_PATH)
        for other in graph[name] - {f"toolcrib.{name}" for name in READING_PATH}
        if name != composing and any(_reaches(other, step, graph) for step in STEPS)
    ]
    assert no_leaves == []


def test_no_step_of_a_call_is_handed_the_toolbox() -> None:
    """No module of toolbox/ but `box.py` (and the package, which hands the name out) names the class Toolbox."""
    naming = [
        name
        for name, path in NAMES.items()
        if name.startswith("toolbox.") and name != "toolbox.box"
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if (isinstance(node, ast.Name) and node.id == "Toolbox")
        or (isinstance(node, ast.alias) and node.name in ("Toolbox", "toolcrib.toolbox.box"))
        or (isinstance(node, ast.ImportFrom) and node.module == "toolcrib.toolbox.box")
    ]
    assert naming == []


def test_codecs_do_no_io() -> None:
    found = [
        f"{name_of(path)} -> {imported}"
        for path in modules()
        if package(name_of(path)) == "codecs"
        for imported in imports(path)
        if imported.split(".")[0] in IO_MODULES
    ]
    assert found == []


def test_a_package_hands_out_names_and_defines_nothing() -> None:
    for path in ROOT.rglob("__init__.py"):
        if path.parent == ROOT:
            continue
        tree = ast.parse(path.read_text(encoding="utf-8"))
        defined = [
            n for n in tree.body if isinstance(n, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef)
        ]
        names = [n.name for n in defined if n.name not in ("__getattr__", "__dir__")]
        assert names == [], f"{name_of(path)} defines {names}"


def test_the_top_level_hands_out_at_most_30_names() -> None:
    assert len(toolcrib.__all__) <= 30
    assert toolcrib.__all__ == sorted(toolcrib.__all__)
    for name in toolcrib.__all__:
        assert getattr(toolcrib, name) is not None


def test_files_stay_of_a_size_to_read() -> None:
    large = {
        name_of(path): count
        for path in modules()
        if (count := len(path.read_text(encoding="utf-8").splitlines())) > 600
    }
    assert large == {}


# -- the way to a user's function


def frames_above() -> list[str]:
    """Our own frames between this function and the test, from the inside out."""
    found = []
    frame = sys._getframe(2)
    while frame is not None and frame.f_code.co_filename != __file__:
        if frame.f_code.co_filename.startswith(str(ROOT)):
            found.append(f"{Path(frame.f_code.co_filename).name}:{frame.f_code.co_name}")
        frame = frame.f_back  # type: ignore[assignment]
    return found


@pytest.mark.parametrize("kind", ["async", "inline", "nullable", "class"])
async def test_at_most_six_of_our_frames_stand_before_the_users_function(
    kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    from pydantic import BaseModel

    from toolcrib import Context, Tool
    from toolcrib.toolbox.telemetry import SDK

    monkeypatch.delitem(
        sys.modules, SDK, raising=False
    )  # loaded by tests of telemetry, whose step is optional
    seen: list[list[str]] = []

    class Params(BaseModel):
        n: int = 0

    async def of_async(n: int = 0) -> str:
        seen.append(frames_above())
        return ""

    def inline(n: int = 0) -> str:
        seen.append(frames_above())
        return ""

    async def nullable(n: int | None) -> str:
        seen.append(frames_above())
        return ""

    class Made(Tool[Params, str], name="made", effect=Effect.READ, secrets=()):
        async def execute(self, params: Params, ctx: Context) -> str:
            seen.append(frames_above())
            return ""

    made = {
        "async": lambda: tool(of_async, name="t", effect=Effect.READ, secrets=()),
        "inline": lambda: tool(inline, name="t", effect=Effect.READ, secrets=(), inline=True),
        "nullable": lambda: tool(nullable, name="t", effect=Effect.READ, secrets=()),
        "class": lambda: Made,
    }[kind]()
    box = Toolbox([made])
    await box.call("made" if kind == "class" else "t", {"n": 1})
    assert len(seen) == 1
    assert len(seen[0]) <= 6, seen[0]


@pytest.mark.parametrize(
    ("given", "most_files", "most_functions"),
    [
        ('{"n": 1}', 17, 25),
        ('{"n": 1, "where": "caf\\u00e9 at 10:30"}', 18, 27),
        ({"n": 1, "where": "at 10:30"}, 17, 26),
    ],
)
async def test_a_valid_call_enters_few_of_our_functions(
    given: str | dict[str, object], most_files: int, most_functions: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    from toolcrib.toolbox.telemetry import SDK

    monkeypatch.delitem(sys.modules, SDK, raising=False)

    async def work(n: int = 0, where: str = "") -> str:
        return ""

    box, call = Toolbox([tool(work, name="t", effect=Effect.READ, secrets=())]), toolcrib.ToolCall("t", given)
    await box.call(call)
    entered: list[tuple[str, str]] = []

    def note(frame: FrameType, event: str, _: object) -> None:
        code = frame.f_code
        if event == "call" and code.co_filename.startswith(str(ROOT)):
            entered.append((code.co_filename, code.co_qualname))

    sys.setprofile(note)
    await box.call(call)
    sys.setprofile(None)
    assert len({file for file, _ in entered}) <= most_files, entered
    assert len(set(entered)) <= most_functions, entered


# -- what importing costs

HEAVY = ["asyncio", "opentelemetry", "docstring_parser", "pydantic", "rich", "typer", "jsonschema_rs", "yaml", "openai", "anthropic"]  # fmt: skip


@pytest.mark.parametrize(
    ("program", "allowed"),
    [
        ("import toolcrib", set()),
        ("from toolcrib import Effect, Tool, ToolCall, ToolResult", set()),
        (
            "from toolcrib import Effect, tool\n"
            "@tool(effect=Effect.READ, secrets=())\n"
            "def f(a: int) -> int:\n    'Do it.'\n    return a\n",
            set(),
        ),
        ("from toolcrib import Toolbox", set()),
        ("from toolcrib import Agent", {"asyncio"}),
    ],
)
def test_importing_loads_nothing_heavy(program: str, allowed: set[str]) -> None:
    code = f"import sys\n{program}\nprint(','.join(m for m in {HEAVY!r} if m in sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded = {name for name in done.stdout.strip().split(",") if name}
    assert loaded <= allowed


def test_a_call_of_an_undocumented_tool_loads_no_telemetry_or_docstring_parser() -> None:
    code = (
        "import sys\nfrom toolcrib import Effect, Toolbox, tool\n"
        "def f(a: int) -> int:\n    'Do it.'\n    return a\n"
        "box = Toolbox([tool(f, effect=Effect.READ, secrets=())])\n"
        "assert box.call_sync('f', {'a': 1}).text == '1'\n"
        "print(','.join(m for m in ('opentelemetry', 'docstring_parser', 'jsonschema_rs', 'rich') if m in sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.stdout.strip() == "", done.stderr
