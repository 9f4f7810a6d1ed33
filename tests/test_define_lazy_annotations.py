"""Annotations that cannot be evaluated when a tool is defined: texts, and from Python 3.14 on every annotation.

Each case is a module. It begins with `from __future__ import annotations`, and is tried without that line too where
Python evaluates annotations lazily.
"""

from __future__ import annotations

import re
import sys
from types import ModuleType
from typing import Any

import pytest

from tests.cases import each
from toolcrib import Agent, Toolbox, ToolDefinitionError
from toolcrib.agent import OutputType
from toolcrib.cli.dependencies import load_factory
from toolcrib.models import Scripted
from toolcrib.parameter_names import constructor_needs

BEGINNINGS = ["from __future__ import annotations\n", ""] if sys.version_info >= (3, 14) else [
    "from __future__ import annotations\n"
]  # fmt: skip
MODULE = "a_module_of_the_test"
IMPORTS = """
from dataclasses import dataclass
from typing import TYPE_CHECKING, Generic, TypedDict, TypeVar
from pydantic import BaseModel
from toolcrib import Context, Effect, Tool, tool
if TYPE_CHECKING:
    from elsewhere import Elsewhere
READ = Effect.READ
"""
FUNCTION = """
@tool(effect=READ, secrets=())
def made({parameters}) -> {returns}:
    "Do a thing."
    return {result}
class Later(BaseModel):
    text: str
"""
CLASS = """
{fields}
    a: int
    b: Elsewhere = 1
class Made(Tool[{kind}, str], name="made", effect=READ, secrets={secrets}):
    "Do a thing."
    def execute(self, params: {kind}, ctx: {context}) -> str:
        return "done"
made = Made
"""
OK: dict[str, tuple[str, dict[str, Any]]] = {
    "a type that is defined below": (
        FUNCTION.format(parameters="x: Later", returns="Later", result="x"),
        {"x": {"text": "a"}},
    ),
    "a class whose execute names a type for type checkers alone": (
        CLASS.format(
            fields="class Fields(BaseModel):", kind="Fields", secrets="()", context="Elsewhere"
        ).replace("b: Elsewhere", "b: int"),
        {"a": 1},
    ),
}
BROKEN: dict[str, tuple[str, str]] = {
    "an unknown type of a parameter": (
        FUNCTION.format(parameters="x: int, y: Elsewhere", returns="str", result="''"),
        "parameter 'y' cannot be resolved: name 'Elsewhere' is not defined",
    ),
    "an unknown type within a type": (
        FUNCTION.format(parameters="x: int, y: list[Elsewhere]", returns="str", result="''"),
        "parameter 'y' cannot be resolved: name 'Elsewhere' is not defined",
    ),
    "an unknown result": (
        FUNCTION.format(parameters="x: int", returns="Elsewhere", result="''"),
        "its result cannot be resolved: name 'Elsewhere' is not defined",
    ),
    "an annotation that raises": (
        FUNCTION.format(parameters="x: int, y: 1 / 0", returns="str", result="''"),
        "division by zero",
    ),
    **{
        f"an unknown type of a field: {fields}": (
            CLASS.format(fields=fields, kind="Fields", secrets="{'a'}", context="Context"),
            "parameter 'b': name 'Elsewhere' is not defined",
        )
        for fields in ("class Fields(BaseModel):", "@dataclass\nclass Fields:")
    },
}
FIELDS = {
    "model": ("class Fields(BaseModel):", "Fields"),
    "dataclass": ("@dataclass\nclass Fields:", "Fields"),
    "TypedDict": ("class Fields(TypedDict):", "Fields"),
    "generic model": ("T = TypeVar('T')\nclass Fields(BaseModel, Generic[T]):", "Fields[int]"),
    "generic dataclass": ("T = TypeVar('T')\n@dataclass\nclass Fields(Generic[T]):", "Fields[int]"),
}


def made(source: str) -> Any:
    """What a module of this source calls `made`; the module stays, as compiling the tool looks names up in it."""
    module = sys.modules[MODULE] = ModuleType(MODULE)
    exec(compile(source, "module", "exec", dont_inherit=True), vars(module))
    return vars(module)["made"]


@each("beginning, name", [(beginning, name) for beginning in BEGINNINGS for name in OK])
def test_a_name_that_is_defined_later_is_no_mistake(beginning: str, name: str) -> None:
    source, arguments = OK[name]
    assert not Toolbox([made(beginning + IMPORTS + source)]).call_sync("made", arguments).is_error


@each("beginning, name", [(beginning, name) for beginning in BEGINNINGS for name in BROKEN])
def test_what_cannot_be_resolved_is_named_when_the_tool_is_compiled(beginning: str, name: str) -> None:
    source, words = BROKEN[name]
    tool = made(beginning + IMPORTS + source)
    with pytest.raises(ToolDefinitionError, match=re.escape(words)):
        tool.check()


OTHERS = """
def made(value: Elsewhere, ctx: Context) -> Elsewhere:
    return value
def opened(times: Elsewhere = 1) -> Elsewhere:
    return times
class Fields(BaseModel):
    a: int
class Needy(Tool[Fields, str], name="needy", effect=READ, secrets=()):
    def __init__(self, place: Elsewhere) -> None:
        self.place = place
    def execute(self, params: Fields, ctx: Context) -> str:
        return "done"
"""


@each("beginning", BEGINNINGS)
def test_functions_and_classes_of_users_are_looked_at_without_their_annotations(beginning: str) -> None:
    model = Scripted([{"calls": [{"name": "attempt_completion", "arguments": {"result": 3}}]}])
    agent = Agent(model, output=OutputType(int, validators=[made(beginning + IMPORTS + OTHERS)]))
    assert agent.run_sync("x").output == 3
    assert constructor_needs(vars(sys.modules[MODULE])["Needy"]) == ["place"]
    assert load_factory(f"{MODULE}:opened") is vars(sys.modules[MODULE])["opened"]


@each("beginning, name", [(beginning, name) for beginning in BEGINNINGS for name in FIELDS])
def test_secrets_name_fields_whose_types_are_unknown(beginning: str, name: str) -> None:
    fields, kind = FIELDS[name]
    source = CLASS.format(fields=fields, kind=kind, secrets="{secrets}", context="Context")
    source = source.replace(" = 1", "") if name == "TypedDict" else source
    assert made(beginning + IMPORTS + source.format(secrets="{'b'}")).facts.secrets == {"b"}
    with pytest.raises(TypeError, match=r"secrets names \['zz'\], but its parameters are \['a', 'b'\]"):
        made(beginning + IMPORTS + source.format(secrets="{'zz'}"))
