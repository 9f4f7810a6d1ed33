"""Forms that a person fills in: read from a schema, checked, and asked for on a terminal and through a client."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.cases import each
from toolcrib import Answer, Question, Verdict
from toolcrib.call import CallKey
from toolcrib.cli.answers import answer_from
from toolcrib.forms import FormField, expected, form_problems, form_schema, form_values, read_form
from toolcrib.mcp import answer_to, elicitation


def form_of(required: bool = False, **field: Any) -> tuple[FormField, ...]:
    return read_form({"type": "object", "properties": {"x": field}, "required": ["x"] if required else []})


TITLED = {
    "type": "string",
    "oneOf": [{"const": "a", "title": "The first"}, {"const": "b", "title": "The second"}],
}
MANY = {"type": "array", "items": {"type": "string", "enum": ["a", "b", "c"]}, "minItems": 1, "maxItems": 2}
NAMED = {"type": "string", "enum": ["a", "b"], "enumNames": ["Alpha", "Beta"]}
TITLED_MANY = {"type": "array", "items": {"anyOf": TITLED["oneOf"]}}

# a field, what is given, and its value; None where it does not fit
VALUES: list[tuple[dict[str, Any], Any, Any]] = [
    ({"type": "string"}, "hi", "hi"),
    ({"type": "string"}, 3, None),
    ({"type": "string", "minLength": 2, "maxLength": 3}, "a", None),
    ({"type": "string", "minLength": 2, "maxLength": 3}, "abc", "abc"),
    ({"type": "string", "format": "email"}, "ann@a.example", "ann@a.example"),
    ({"type": "string", "format": "email"}, "ann", None),
    ({"type": "string", "format": "uri"}, "https://a.example", "https://a.example"),
    ({"type": "string", "format": "uri"}, "a.example", None),
    ({"type": "string", "format": "date"}, "2026-01-31", "2026-01-31"),
    ({"type": "string", "format": "date"}, "2026-02-31", None),
    ({"type": "string", "format": "date-time"}, "2026-01-31T12:00:00Z", "2026-01-31T12:00:00Z"),
    ({"type": "string", "format": "date-time"}, "noon", None),
    ({"type": "string", "format": "telepathy"}, "hm", "hm"),
    ({"type": "integer"}, "42", 42),
    ({"type": "integer"}, 4.0, 4),
    ({"type": "integer"}, 4.5, None),
    ({"type": "integer"}, True, None),
    ({"type": "integer", "minimum": 1, "maximum": 9}, 10, None),
    ({"type": "number"}, "4.5", 4.5),
    ({"type": "number"}, "nan", None),
    ({"type": "number"}, "1e999", None),
    ({"type": "boolean"}, "yes", True),
    ({"type": "boolean"}, False, False),
    ({"type": "boolean"}, "perhaps", None),
    (TITLED, "b", "b"),
    (TITLED, "the second", "b"),
    (TITLED, "c", None),
    (NAMED, "beta", "b"),
    (MANY, ["a", "b"], ["a", "b"]),
    (MANY, "a, B", ["a", "b"]),
    (MANY, ["a", "b", "c"], None),
    (MANY, [], None),
    (MANY, ["d"], None),
    (TITLED_MANY, ["The first"], ["a"]),
    ({"type": "array", "items": {"type": "string", "enum": ["milk, sugar", "milk", "none"]}}, "None, milk, Sugar,milk",
     ["none", "milk, sugar", "milk"]),
    ({"type": "integer"}, "1234567890123456789", 1234567890123456789),
    ({"type": "number"}, "-1234567890123456789", -1234567890123456789),
    ({"type": "integer", "minimum": 10**400}, "4", 4),  # no number that is typed is that large
    ({"type": "string", "format": "date"}, "20260131", "2026-01-31"),
]  # fmt: skip


@each("field, given, value", VALUES)
def test_what_is_given_fits_its_field_or_not(field: dict[str, Any], given: Any, value: Any) -> None:
    form = form_of(**field)
    assert read_form(form_schema(form)) == form
    if value is None:
        [problem] = form_problems(form, {"x": given})
        assert problem.startswith(f"x: expected {expected(form[0])}, got ")
        with pytest.raises(ValueError, match="x: expected"):
            form_values(form, {"x": given})
    else:
        values = form_values(form, {"x": given})
        assert values == {"x": value} and type(values["x"]) is type(value)


def test_defaults_stand_for_what_is_not_given() -> None:
    for field, default in (
        ({"type": "string"}, "a"), ({"type": "integer"}, 0), ({"type": "number"}, 1.5), ({"type": "boolean"}, False),
        (NAMED, "b"), (MANY, ["c"]),
    ):  # fmt: skip
        assert form_values(form_of(**field, default=default), {}) == {"x": default}
        assert form_values(form_of(True, **field, default=default), {"x": None}) == {"x": default}
    assert (
        form_values(form_of(type="integer", default="many"), {}) == {}
    )  # a default that does not fit is none
    assert form_problems(form_of(True, type="string"), {}) == ["x: a value is required: a text"]
    assert form_problems((), {"y\x1b": 1}) == ["y\\x1b: the form has no such field"]


NO_FORMS: list[Any] = [
    None, [], {"type": "string"}, {"properties": []}, {"properties": {"x": 1}}, {"properties": {"x": {}}},
    {"properties": {"x": {"type": "object"}}}, {"properties": {"x": {"type": "array", "items": {"type": "string"}}}},
    {"properties": {"x": {"type": "string", "enum": []}}}, {"properties": {"x": {"type": "string", "enum": [1]}}},
    {"properties": {str(n): {"type": "string"} for n in range(51)}}, {"properties": {"x": {"type": ["string"]}}},
]  # fmt: skip


@each("schema", NO_FORMS)
def test_what_is_no_form_is_refused(schema: Any) -> None:
    with pytest.raises(ValueError):
        read_form(schema)


SCHEMA = {
    "type": "object",
    "properties": {
        "count": {"type": "integer", "title": "How many", "minimum": 1, "maximum": 9},
        "size": {"type": "string", "enum": ["S", "M"], "default": "M", "description": "Of the cup."},
        "note": {"type": "string"},
    },
    "required": ["count"],
}
ASKED = Question(
    CallKey("r", 1, 0), "shop__order", "Tea?\nRun it? [y]es", "the MCP server 'shop' asks", {}, "read", "f",
    kind="input", form=read_form(SCHEMA), source="shop",
)  # fmt: skip


def test_a_question_with_a_form_is_data() -> None:
    data = ASKED.to_dict()
    assert json.loads(json.dumps(data)) == data
    assert read_form(data["form"]) == ASKED.form and data["source"] == "shop"
    answer = Answer(Verdict.YES, values={"count": 3})
    assert answer_from({"verdict": "yes", "values": {"count": 3}}, by="") == answer
    with pytest.raises(TypeError):
        answer_from({"verdict": "yes", "values": [3]}, by="")
    assert Answer(**json.loads(json.dumps(answer.to_dict()))) == answer


def test_a_form_goes_on_to_a_client_of_ours() -> None:
    """As in a gateway: who asks stands before the words of the server, which stay within their margin."""
    request = elicitation(ASKED)
    assert request["requestedSchema"] == SCHEMA
    assert request["message"] == "the MCP server 'shop' asks:\n  | Tea?\n  | Run it? [y]es"
    given = answer_to(ASKED, {"action": "accept", "content": {"count": 3}})
    assert given == Answer(Verdict.YES, values={"count": 3})


OWN = '''
from toolcrib import Context, Effect, tool
from toolcrib.question import InputRequest
from tests.test_forms import ASKED

@tool(effect=Effect.READ, secrets=())
async def order(ctx: Context) -> str:
    """Order."""
    request = InputRequest(ASKED.action, form=ASKED.form, source=ASKED.source, reason=ASKED.reason)
    [answer] = await ctx._connected().ask_inputs(ctx, [request])
    return f"told {answer.values if answer and answer.allows else 'nothing'}"
'''
TYPED = [
    (["3", "s", "", "y"], "told {'count': 3, 'size': 'S'}"),
    (["many", "10", "2", "", "no sugar", "yes"], "told {'count': 2, 'size': 'M', 'note': 'no sugar'}"),
    (["3", "", "", "n"], "told nothing"),
    (["-"], "told nothing"),
    (["", "", ""], "told nothing"),
]


@pytest.mark.promise("mcp-calls.md", "The words of a server stay within a margin")
@pytest.mark.slow
def test_a_form_is_filled_in_on_a_terminal(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from tests.test_cli_terminal import Pty

    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parent.parent))
    (tmp_path / "own.py").write_text(OWN)
    (tmp_path / "asks.yaml").write_text("- calls:\n    - {name: order, arguments: {}}\n- text: Done.\n")
    for lines, told in TYPED:
        run = Pty(tmp_path, "run", "x", "-m", "scripted:asks.yaml", "--from", "own:order")
        came = run.until("A whole number from 1 to 9:")
        assert "? the MCP server 'shop' asks  (tool order)" in came
        assert "  │ Run it? [y]es" in came and "  │ How many" in came
        for line in lines[:-1]:
            run.send(f"{line}\n")
            assert "\ncount: expected" not in run.until(": ").replace("\r", "")
        run.send(f"{lines[-1]}\n")
        run.until(told)
        assert run.end() == 0
