# ruff: noqa: E501, ISC004 - tables read better in lines; the size is printed
"""The plan of the house: what may import what, and how short the way to a user's function is."""

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import toolcrib
from toolcrib import Effect, Toolbox
from toolcrib.function import tool

ROOT = Path(toolcrib.__file__).parent

# From the ground up: a module may import from its own floor and from those below.
FLOORS: list[tuple[str, set[str]]] = [
    (
        "ground",
        {
            "effect", "facts", "retry", "fingerprint", "prepared", "question", "spec", "tool", "compiling", "hooks", "parameter_names", "call", "access", "messages", "events", "sink", "context", "result", "toolset", "errors", "content",
            "function", "explain", "schema", "jsonstream", "repair", "lenient_json",
            "lenient_grammar", "json_shape", "json_values", "json_tokens", "visible", "lazy_names", "secrets", "net", "shell", "command", "audit",
        },
    ),
    ("rooms", {"tools", "codecs"}),
    ("box", {"toolbox", "rules"}),
    ("doors", {"models", "mcp"}),
    ("loop", {"agent"}),
    ("assembly", {"assembly", "plugins", "testing", "samples"}),
    ("faces", {"cli", "web", "__main__"}),
]  # fmt: skip
LEVEL = {package: level for level, (_, packages) in enumerate(FLOORS) for package in packages}
HOME_OF = {name: getattr(toolcrib, name).__module__ for name in toolcrib.__all__} | {
    "__version__": "toolcrib"
}
STRANGERS = {"tools", "codecs"}  # leaves on one floor that do not know each other

# Built-in tools are confined and know only the ground; codecs do no I/O.
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


def modules() -> list[Path]:
    return sorted(ROOT.rglob("*.py"))


def name_of(path: Path) -> str:
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(part for part in parts if part != "__init__")


def imports(path: Path, *, typing_too: bool = False) -> Iterator[str]:
    """Every imported module, also inside functions; what stands under TYPE_CHECKING only if asked for."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    skipped: set[int] = set()
    if not typing_too:
        for node in ast.walk(tree):
            if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
                skipped.update(id(inner) for child in node.body for inner in ast.walk(child))
    for node in ast.walk(tree):
        if id(node) in skipped:
            continue
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            if node.level:
                here = [*path.relative_to(ROOT).parent.parts]
                above = here[: len(here) - node.level + 1]
                yield ".".join(["toolcrib", *above, node.module or node.names[0].name])
            elif node.module == "toolcrib":
                yield from (HOME_OF.get(alias.name, f"toolcrib.{alias.name}") for alias in node.names)
            elif node.module:
                yield node.module


def package(module: str) -> str:
    return module.removeprefix("toolcrib.").split(".")[0]


def upward(path: Path, *, typing_too: bool) -> list[str]:
    own = package(name_of(path)) if name_of(path) else ""
    if not own:  # toolcrib/__init__.py hands out names of all floors
        return []
    found = []
    for imported in imports(path, typing_too=typing_too):
        if not imported.startswith("toolcrib."):
            continue
        other = package(imported)
        if other == own:
            continue
        if LEVEL.get(other, 99) > LEVEL[own] or {own, other} == STRANGERS:
            found.append(f"{name_of(path)} -> {imported}")
    return found


def test_every_module_has_its_floor() -> None:
    strays = {package(name_of(path)) for path in modules() if name_of(path)} - set(LEVEL)
    assert not strays, f"not in the plan of the house: {sorted(strays)}"


def test_imports_run_downwards_only() -> None:
    assert [line for path in modules() for line in upward(path, typing_too=False)] == []


# What the ground names for type checkers alone, and nothing runs: protocols would need a copy of each.
SEEN_FROM_BELOW: set[str] = set()


def test_types_run_downwards_too() -> None:
    upwards = {line for path in modules() for line in upward(path, typing_too=True)}
    assert upwards == SEEN_FROM_BELOW


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
async def test_at_most_six_of_our_frames_stand_before_the_users_function(kind: str) -> None:
    from pydantic import BaseModel

    from toolcrib import Context, Tool

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
