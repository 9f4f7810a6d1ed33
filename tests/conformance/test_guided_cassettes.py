"""Recorded requests with a schema for the answer: ours has the same fields, and the recorded answer is read and fits."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from tests.conformance.cassettes import all_records
from toolcrib.guided import JsonSchema, lower
from toolcrib.schema import clean

pytestmark = pytest.mark.slow


def chat(body: dict[str, Any]) -> Any:
    format = body.get("response_format") or {}
    return format.get("json_schema") if format.get("type") == "json_schema" else None


def responses(body: dict[str, Any]) -> Any:
    format = (body.get("text") or {}).get("format") or {}
    return format if format.get("type") == "json_schema" else None


def messages(body: dict[str, Any]) -> Any:
    return (body.get("output_config") or {}).get("format")


def gemini(body: dict[str, Any]) -> Any:
    schema = (body.get("generationConfig") or {}).get("responseJsonSchema")
    return None if schema is None else {"schema": schema}


# interface, provider, target, what of a body holds the schema
FORMATS: list[tuple[str, str, str, Callable[[dict[str, Any]], Any]]] = [
    ("chat", "openai", "openai.chat", chat),
    ("responses", "openai", "openai.responses", responses),
    ("messages", "anthropic", "anthropic", messages),
    ("generateContent", "google", "gemini", gemini),
]


def plain(schema: Any) -> str:
    """A schema without descriptions, titles and orders."""

    def stripped(node: Any) -> Any:
        if isinstance(node, list):
            return [stripped(item) for item in node]
        if not isinstance(node, dict):
            return node
        kept = {key: stripped(value) for key, value in node.items() if key != "description"}
        return kept | (
            {"required": sorted(kept["required"])} if isinstance(kept.get("required"), list) else {}
        )

    return json.dumps(stripped(clean(schema)), sort_keys=True)


@pytest.mark.parametrize(("api", "provider", "target", "held_in"), FORMATS, ids=[row[2] for row in FORMATS])
def test_recorded_formats_are_ours_and_recorded_answers_fit(
    api: str, provider: str, target: str, held_in: Callable[[dict[str, Any]], Any]
) -> None:
    tried = answered = 0
    wrong: list[Any] = []
    for record in all_records(api):
        body = (record["request"] or {}).get("body")
        if not isinstance(body, dict) or not record["provider"].startswith(provider):
            continue
        held = held_in(body)
        if held is None or record["response"]["status"] != 200:
            continue
        tried += 1
        schema = held["schema"]
        named = {key: held[key] for key in ("name", "description") if held.get(key)}
        low = lower(JsonSchema(schema, **named), target)
        ours = held_in(dict(low.fields))
        same = {key: ours.get(key) for key in ("name", "type")} == {
            key: held.get(key) for key in ("name", "type")
        }
        if low.rung != "native" or not same or plain(ours["schema"]) != plain(schema):
            wrong.append((record["id"], low.rung, low.blockers, plain(ours["schema"]), plain(schema)))
        text = record.get("expected_text") or ""
        if text.strip().startswith("{") and record["finish_reason"] in (
            "stop",
            "completed",
            "STOP",
            "end_turn",
        ):
            answered += 1
            if errors := low.validate(low.parse(text).value):
                wrong.append((record["id"], text[:200], errors))
    assert wrong == []
    if not tried:
        pytest.skip(f"no exchange of {target} with a schema was recorded")
    assert answered, "no answer was read"
