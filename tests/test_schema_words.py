"""Tools in a prompt, and advice to those who describe them."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import pytest

from toolcrib.schema import lint, to_markdown


@dataclass
class Spec:
    name: str = "get_weather"
    description: str = "Looks up the weather of a city for the next days."
    input_schema: dict[str, Any] = field(default_factory=lambda: {"type": "object"})
    title: str | None = None
    category: str | None = None
    examples: tuple[Any, ...] = ()


def with_fields(required: tuple[str, ...] = (), **fields: Any) -> Spec:
    return Spec(input_schema={"type": "object", "properties": fields, "required": list(required)})


def test_a_prompt_section_says_what_a_schema_says() -> None:
    spec = with_fields(
        ("city",),
        city={"type": "string", "description": "City name,\n such as Oslo"},
        days={"type": "integer", "minimum": 1, "maximum": 14, "default": 1, "description": "How many"},
        unit={"anyOf": [{"enum": ["c", "f"], "type": "string"}, {"type": "null"}]},
        where={"type": "object", "properties": {"lat": {"type": "number"}}, "required": ["lat"]},
        tags={"type": "array", "items": {"type": "string", "maxLength": 5}},
        stops={"type": "array", "items": {"type": "object", "properties": {"name": {"type": "string"}}}},
        target={"anyOf": [{"type": "object", "properties": {"id": {"type": "integer"}}}, {"type": "string"}]},
    )
    spec = replace(spec, title="Weather", category="net", examples=({"city": "Oslo"},))
    assert (
        to_markdown([spec])
        == """\
# Available Tools

You have access to the following 1 tool(s):

## get_weather
Display Name: Weather
Description: Looks up the weather of a city for the next days.
Category: net

Parameters:
  - city: string (required) - City name, such as Oslo
  - days: integer (optional) - How many. Default: 1. At least 1. At most 14.
  - unit: string or null (optional) - One of "c", "f", null.
  - where: object (optional)
    - lat: number (required)
  - tags: list of string (optional) - Each item: At most 5 characters.
  - stops: list of object (optional)
    - name: string (optional)
  - target: object or string (optional)
    - form 1: object
      - id: integer (optional)

Examples:
  - {"city": "Oslo"}
"""
    )


def test_a_recursive_definition_is_written_once() -> None:
    node = {"type": "object", "properties": {"next": {"$ref": "#/$defs/Node"}}}
    spec = Spec(
        input_schema={
            "type": "object",
            "properties": {"a": {"$ref": "#/$defs/Node"}},
            "$defs": {"Node": node},
        }
    )
    text = to_markdown([spec])
    assert "  - a: Node (optional)\n\nNode:\n  - next: Node (optional)\n" in text


def test_no_tools_and_no_parameters_are_said() -> None:
    assert "following 0 tool(s)" in to_markdown([])
    assert "Parameters:\n  No parameters\n" in to_markdown([Spec()])


DOCUMENTED = {"type": "string", "description": "What to look for"}
ACTIONS = {"enum": ["list", "move", "copy"], "description": "What to do with it"}
DAYS = {"type": "integer", "description": "How many of them"}
BY_HOUR = {"type": "boolean", "description": "One line for each hour"}
FINDINGS: list[tuple[Spec, list[tuple[str, str]]]] = [
    (with_fields(q=DOCUMENTED), []),
    (Spec(name="a.b"), [("", "name-refused")]),
    (Spec(name="1st"), [("", "name-refused")]),
    (Spec(name="x" * 65), [("", "name-refused")]),
    (Spec(description=""), [("", "no-description")]),
    (Spec(description="Weather lookup"), [("", "short-description")]),
    (Spec(description="查询指定城市今天和未来几天的实时天气信息"), []),
    (with_fields(q={"type": "string"}), [("/properties/q", "undocumented-parameter")]),
    (with_fields(file_path={"type": "string", "description": "The file path."}),
     [("/properties/file_path", "undocumented-parameter")]),
    (with_fields(to={"type": "string", "description": "Only used when action is 'move'"}, action=ACTIONS),
     [("/properties/to", "conditional-parameter")]),
    (with_fields(to={"type": "string", "description": "Target, used with action=move"}, action=ACTIONS),
     [("/properties/to", "conditional-parameter")]),
    (with_fields(to={"type": "string", "description": "Needed if files are large"}, action=ACTIONS), []),
    *(
        (with_fields(unit={"type": "string", "description": said}, days=DAYS, by_hour=BY_HOUR), found)
        for said, found in (
            *((said, [("/properties/unit", "conditional-parameter")]) for said in (
                "Celsius or Fahrenheit. Only with days.",
                "The unit (only together with `days`).",
                "The unit; ignored without by_hour",
                "The unit. Requires days.",
                "The unit. Only valid in combination with the by_hour parameter",
                "Used only when by_hour is given",
                "Has no effect unless `by_hour` is true",
                "Depends on 'days'",
            )),
            *((said, []) for said in (
                "The unit of the forecast for the days that are asked for",
                "Used to convert the temperatures of all days",
                "Only Celsius or Fahrenheit. Days are counted from today.",
                "Requires days of practice to be understood",
                "Replaced with by hour values",
                "Cannot be combined with days",
            )),
        )
    ),
    (with_fields(action=ACTIONS, a=DOCUMENTED, b=DOCUMENTED, c=DOCUMENTED, d=DOCUMENTED),
     [("/properties/action", "action-switch")]),
    (with_fields(o={"type": "object", "description": "More of these"}),
     [("/properties/o", "free-form-object")]),
    (with_fields(o={"description": "Some more options"}), [("/properties/o", "any-value")]),
    (with_fields(o={"enum": [f"v{n}" for n in range(1001)], "description": "One of many"}),
     [("/properties/o", "large-enum")]),
]  # fmt: skip


@pytest.mark.parametrize(("spec", "expected"), FINDINGS)
def test_advice(spec: Spec, expected: list[tuple[str, str]]) -> None:
    findings = lint(spec)
    assert [(finding.path, finding.code) for finding in findings] == expected
    assert all(finding.tool == spec.name and finding.message for finding in findings)


def test_a_parameter_that_the_schema_ties_to_another_is_found() -> None:
    fields = {name: {"type": "string", "description": "Part of it"} for name in ("street", "city")}
    schema = {"type": "object", "properties": fields, "dependentRequired": {"street": ["city"]}}
    assert [(found.path, found.code) for found in lint(Spec(input_schema=schema))] == [
        ("/properties/street", "conditional-parameter")
    ]
