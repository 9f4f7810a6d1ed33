"""Content blocks of the Model Context Protocol as parts of a result, and back."""

from __future__ import annotations

import base64
from typing import Any

import pytest

from tests.cases import each
from toolcrib import ToolResult
from toolcrib.content import Audio, File, Image, Json, Part, Text
from toolcrib.mcp.content import MAX_BLOCKS, MAX_MEDIA, blocks_of, call_result, part_of, received

PNG = base64.b64encode(b"\x89PNG\r\n\x1a\n0000").decode()
WAV = base64.b64encode(b"RIFF0000WAVE").decode()


def text(words: str, **more: Any) -> dict[str, Any]:
    return {"type": "text", "text": words, **more}


def resource(**fields: Any) -> dict[str, Any]:
    return {"type": "resource", "resource": {"uri": "memo://a", **fields}}


def encoded(words: bytes) -> str:
    return base64.b64encode(words).decode()


# a block, and the part that a model is shown: its kind and its words
BLOCKS: list[tuple[str, Any, type[Any], str]] = [
    ("text", text("hello"), Text, "hello"),
    ("image", {"type": "image", "data": PNG, "mimeType": "image/png"}, Image, "[image image/png]"),
    ("audio", {"type": "audio", "data": WAV, "mimeType": "audio/wav"}, Audio, "[audio audio/wav]"),
    (
        "a wrong type of an image",
        {"type": "image", "data": PNG, "mimeType": "text/x"},
        Image,
        "[image image/png]",
    ),
    (
        "an image that is no base64",
        {"type": "image", "data": "#", "mimeType": "image/png"},
        Text,
        "no base64",
    ),
    (
        "an SVG",
        {"type": "image", "data": encoded(b"<svg/>"), "mimeType": "image/svg+xml"},
        Text,
        "image/svg+xml that",
    ),
    (
        "a GIF said to be a PNG",
        {"type": "image", "data": encoded(b"GIF89a."), "mimeType": "image/png"},
        Image,
        "image/gif",
    ),
    ("an image of a wrong type", {"type": "image", "data": 3}, Text, "cannot be shown: image"),
    ("resource with text", resource(text="hi"), Text, "[resource memo://a]\nhi"),
    (
        "resource with text in a blob",
        resource(blob=encoded(b"hi"), mimeType="text/css"),
        Text,
        "[resource memo://a]\nhi",
    ),
    (
        "resource with a picture",
        resource(blob=PNG, mimeType="image/png"),
        Image,
        "[image image/png memo://a]",
    ),
    ("resource with a PDF", resource(blob=encoded(b"%PDF-"), mimeType="application/pdf"), File, "[file app"),
    ("resource with bytes", resource(blob=PNG, mimeType="application/zip"), Text, "bytes of application/zip"),
    ("resource with text that is none", resource(blob=PNG, mimeType="text/css"), Text, "cannot be shown"),
    ("resource without contents", resource(), Text, "cannot be shown: resource"),
    (
        "link",
        {"type": "resource_link", "uri": "memo://b", "name": "b", "mimeType": "text/css", "size": 1234},
        Text,
        '[link to the resource memo://b "b" (text/css, 1,234 bytes)]',
    ),
    ("an escape in a URI", {"type": "resource_link", "uri": "a\n\x1b[2J", "name": ""}, Text, "a⏎\\x1b[2J"),
    ("an unknown type", {"type": "hologram", "data": "x"}, Text, "cannot be shown: hologram"),
    ("no type", {"text": "x"}, Text, "without a type"),
    ("a type that is no text", {"type": ["text"]}, Text, "without a type"),
    ("no object", "words", Text, "without a type"),
    ("a text that is none", {"type": "text", "text": 3}, Text, "cannot be shown: text"),
]


@each("name, block, kind, words", BLOCKS)
def test_every_block_becomes_a_part(name: str, block: Any, kind: type[Any], words: str) -> None:
    part = part_of(block)
    assert type(part) is kind and words in part.as_text()


def shown(raw: Any, **named: Any) -> str:
    return received(raw, **named).result.text


DATA = {"rows": [{"id": 1, "name": "ann"}, {"id": 2, "name": "bob"}]}
COMPACT = '{"rows":[{"id":1,"name":"ann"},{"id":2,"name":"bob"}]}'
PRETTY = '{\n  "rows": [{"id": 1, "name": "ann"}, {"id": 2, "name": "bob"}]\n}'
# texts, structured content, whether there is an output schema, and what the model reads
EITHER: list[tuple[str, list[str], Any, bool, str]] = [
    ("no structured content", ["words"], None, True, "words"),
    ("structured content alone", [], DATA, False, COMPACT),
    ("the same as JSON", [PRETTY], DATA, True, COMPACT),
    ("the same as JSON, without a schema", [PRETTY], DATA, False, COMPACT),
    ("the same in other words", ["1: ann, 2: bob"], DATA, True, "1: ann, 2: bob"),
    ("a summary of data with a schema", ["2 people were found."], DATA, True, COMPACT),
    ("a summary of data without a schema", ["2 people were found."], DATA, False, "2 people were found."),
    ("a wrapped text", ["hello"], {"result": "hello"}, True, "hello"),
    ("a wrapped list, a block for each item", ["1", "[2]"], {"result": [1, [2]]}, True, '{"result":[1,[2]]}'),
    ("a number", ["3"], 3, True, "3"),
    ("a list", ["[1, 2]"], [1, 2], True, "[1,2]"),
    ("a falsy value", ["0"], 0, True, "0"),
]


@each("name, texts, structured, schema, words", EITHER)
def test_the_model_is_told_the_text_or_the_data(
    name: str, texts: list[str], structured: Any, schema: bool, words: str
) -> None:
    raw = {"content": [text(one) for one in texts], "structuredContent": structured}
    got = received(raw, output_schema=schema).result
    assert got.text == words and got.structured == structured


def test_media_stay_beside_structured_content() -> None:
    image = {"type": "image", "data": PNG, "mimeType": "image/png"}
    raw = {"content": [text(PRETTY), image, resource(text="hi")], "structuredContent": DATA}
    assert [part.as_text() for part in received(raw, output_schema=True).result.parts] == [
        COMPACT,
        "[image image/png]",
        "[resource memo://a]\nhi",
    ]


def test_an_error_is_told_in_its_words_even_with_structured_content() -> None:
    got = received({"content": [text("no such row")], "structuredContent": DATA, "isError": True}).result
    assert got.is_error and got.text == "no such row"


def test_what_is_for_the_user_alone_is_not_for_the_model() -> None:
    for_user = {"audience": ["user"]}
    raw = {"content": [text("the invoice", annotations=for_user), text("paid"), text("both", annotations={"audience": ["user", "assistant"]})]}  # fmt: skip
    got = received(raw)
    assert "the invoice" not in got.result.text and got.result.text.startswith(
        "paid\nboth\n[The tool gave 1 part"
    )
    assert [part.as_text() for part in got.for_person] == ["the invoice"]
    again = call_result(got.result)["content"]
    assert again[-1] == text("the invoice", annotations=for_user)


def test_blocks_of_low_priority_go_first_where_there_is_too_much() -> None:
    blocks = [text(letter * 100, annotations={"priority": n / 10}) for n, letter in enumerate("abcdefgh")]
    words = shown({"content": blocks}, budget=650)
    assert "a" * 100 not in words and "b" * 100 not in words and "c" * 100 in words and "h" * 100 in words
    assert "2 content blocks of low priority" in words
    assert shown({"content": blocks}, budget=5_000).count("\n") == 7


def test_floods_are_bounded() -> None:
    many = received({"content": [text("x")] * (MAX_BLOCKS + 5)}).result
    assert len(many.parts) == MAX_BLOCKS + 1 and "5 more content blocks" in many.text
    large = {"type": "image", "data": PNG[:12] + "A" * (MAX_MEDIA - 8), "mimeType": "image/png"}
    assert "9,000,003 bytes are too much" in shown({"content": [large]})
    fitting = {**large, "data": PNG[:12] + "A" * (MAX_MEDIA - 12)}
    parts = received({"content": [fitting] * 4}).result.parts
    assert [type(part) for part in parts] == [Image, Image, Text, Text]


@pytest.mark.parametrize("raw", [{}, None, [], {"content": "x"}, {"content": [None]}, {"content": {"a": 1}}])
def test_what_is_no_result_is_told_all_the_same(raw: Any) -> None:
    assert shown(raw)


ROUND: list[Part] = [
    Text("hello"),
    Image(PNG, media_type="image/png"),
    Audio(WAV, media_type="audio/wav"),
    part_of(resource(text="hi", mimeType="text/css")),
    part_of(resource(blob=PNG, mimeType="image/png")),
    part_of({"type": "resource_link", "uri": "memo://b", "name": "b", "annotations": {"priority": 0.2}}),
]


def test_parts_become_the_blocks_that_they_came_from() -> None:
    blocks = blocks_of(ROUND)
    assert [part_of(block) for block in blocks] == ROUND
    assert blocks[3] == resource(mimeType="text/css", text="hi")
    assert part_of(resource(blob=encoded(b"hi"), mimeType="text/css")) == ROUND[3]
    assert blocks[5]["uri"] == "memo://b" and blocks[5]["annotations"] == {"priority": 0.2}
    assert blocks_of([Json({"a": 1}), Image(url="https://a.example/b.png")]) == [
        text('{"a":1}'),
        {"type": "resource_link", "uri": "https://a.example/b.png", "name": "https://a.example/b.png"},
    ]


def test_a_result_of_ours_as_the_protocol_has_it() -> None:
    assert call_result(ToolResult("hi")) == {"content": [text("hi")], "isError": False}
    assert call_result(ToolResult("3", structured=3))["structuredContent"] == 3
    assert call_result(ToolResult("3", structured=3), any_json=False)["structuredContent"] == {"result": 3}
    failed = call_result(ToolResult("no", is_error=True, structured={"a": 1}))
    assert failed["isError"] is True and "structuredContent" not in failed


def test_our_blocks_are_what_the_protocol_has() -> None:
    types = pytest.importorskip("mcp_types")
    result = ToolResult(tuple(ROUND), structured={"a": 1})
    read = types.CallToolResult.model_validate(call_result(result), by_name=False)
    assert [block.type for block in read.content] == [
        "text",
        "image",
        "audio",
        "resource",
        "resource",
        "resource_link",
    ]
    assert received(read).result.parts == result.parts


def test_the_user_interface_of_a_result_is_kept_beside_it() -> None:
    meta = {"ui": {"resourceUri": "ui://clock/app.html"}}
    got = received({"content": [text("12:00")], "_meta": meta}).result
    assert got.text == "12:00" and got.extras == {"mcp": {"meta": meta}}
    assert ToolResult.from_dict(got.to_dict()).extras == got.extras
