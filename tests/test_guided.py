"""Constraints lowered for every server: the fields, what they guarantee, and how answers are read and checked."""

from __future__ import annotations

import json
import time
from typing import Any, Literal

import pytest
from pydantic import BaseModel, Field

from tests.cases import each
from toolcrib.call import ToolCall
from toolcrib.guided import (
    TARGETS,
    Choice,
    Grammar,
    JsonSchema,
    Lowered,
    Regex,
    ToolCalls,
    Unusable,
    bias_choice,
    lower,
    rungs_of,
)
from toolcrib.guided.targets import target_for
from toolcrib.messages import Message, Response

POINT: dict[str, Any] = {
    "type": "object",
    "properties": {"x": {"type": "integer"}, "tag": {"type": "string"}},
    "required": ["x"],
    "additionalProperties": False,
}
NULLABLE_TAG = {
    "type": "object",
    "properties": {"x": {"type": "integer"}, "tag": {"type": ["string", "null"]}},
    "required": ["x", "tag"],
    "additionalProperties": False,
}
MAP = {"type": "object", "additionalProperties": {"type": "integer"}}
TREE = 'root ::= "(" root ")" | "x"'


class Invoice(BaseModel):
    number: str = Field(pattern="^[A-Z]{2}[0-9]+$")
    total: float = Field(ge=0)
    kind: Literal["bill", "credit"] = "bill"
    lines: list[str] = Field(default=[], max_length=20)


def test_a_schema_in_the_words_of_each_server() -> None:
    def sent(target: str) -> Any:
        return dict(lower(POINT, target).fields)

    held = {"name": "answer", "schema": NULLABLE_TAG, "strict": True}
    plain = {"name": "answer", "schema": POINT}
    assert sent("openai.chat") == {"response_format": {"type": "json_schema", "json_schema": held}}
    assert sent("mistral") == sent("openai.chat")
    assert sent("openai.responses") == {"text": {"format": {"type": "json_schema", **held}}}
    assert sent("anthropic") == {"output_config": {"format": {"type": "json_schema", "schema": POINT}}}
    assert sent("gemini") == {
        "generationConfig": {"responseMimeType": "application/json", "responseJsonSchema": POINT}
    }
    structure = sent("bedrock")["outputConfig"]["textFormat"]["structure"]["jsonSchema"]
    assert (structure["name"], json.loads(structure["schema"])) == ("answer", POINT)
    assert sent("ollama") == {"format": POINT}
    assert sent("vllm") == {"structured_outputs": {"json": POINT}}
    assert sent("vllm-old") == {"guided_json": POINT}
    assert sent("sglang") == {"response_format": {"type": "json_schema", "json_schema": plain}}
    assert sent("trtllm") == {"response_format": {"type": "json", "schema": POINT}}
    assert sent("text") == {} and json.dumps(POINT, separators=(",", ":")) in lower(POINT, "text").prompt


# target, constraint, fields, guarantee
TEXTS = [
    ("vllm", Choice("a.b", "c"), {"structured_outputs": {"choice": ["a.b", "c"]}}, "enforced"),
    ("vllm-old", Choice("a.b", "c"), {"guided_choice": ["a.b", "c"]}, "enforced"),
    ("sglang", Choice("a.b", "c"), {"regex": r"a\.b|c"}, "enforced"),
    ("llamacpp", Choice('a"b', "c\n"), {"grammar": 'root ::= "a\\"b" | "c\\n"\n'}, "enforced"),
    ("trtllm", Regex(r"\d+"), {"response_format": {"type": "regex", "regex": "[0-9]+"}}, "enforced"),
    ("llamacpp", Regex(r"\d{2,3}[^a-c]"), {"grammar": "root ::= [0-9]{2,3} [^a-c]\n"}, "enforced"),
    ("sglang", Grammar(TREE), {"ebnf": 'root ::= "(" root ")" | "x"\n'}, "enforced"),
    ("local", Grammar(TREE), {"lark": 'start: "(" start ")" | "x"\n'}, "enforced"),
    ("tgi", Grammar(TREE), {}, "prompted"),
    ("text", Regex("a+"), {}, "prompted"),
    (
        "gemini",
        Regex("a+"),
        {
            "generationConfig": {
                "responseMimeType": "application/json",
                "responseJsonSchema": {
                    "type": "object",
                    "properties": {"value": {"type": "string", "description": "Matches ^(a+)$."}},
                    "required": ["value"],
                    "additionalProperties": False,
                },
            }
        },
        "JSON only",
    ),
    ("ollama", Choice("a", "b"), {"format": {"type": "string", "enum": ["a", "b"]}}, "enforced"),
    ("chat-json", Choice("a", "b"), {"response_format": {"type": "json_object"}}, "JSON only"),
]


@each(("target", "constraint", "fields", "guarantee"), TEXTS)
def test_a_text_in_the_narrowest_kind_that_the_server_takes(
    target: str, constraint: Any, fields: Any, guarantee: str
) -> None:
    low = lower(constraint, target)
    assert (dict(low.fields), low.guarantee) == (fields, guarantee)
    assert bool(low.prompt) == (guarantee in ("prompted", "JSON only"))


def test_openai_takes_grammars_as_the_input_of_a_custom_tool() -> None:
    low = lower(Regex(r"\d+"), "openai.responses")
    assert low.fields["tools"] == [
        {
            "type": "custom",
            "name": "answer",
            "format": {"type": "grammar", "syntax": "regex", "definition": "[0-9]+"},
        }
    ]
    assert low.parse(Message.assistant(ToolCall(low.tool, "42"))).value == "42"
    format = lower(Grammar(TREE), "openai.chat").fields["tools"][0]["custom"]["format"]
    assert format == {
        "type": "grammar",
        "grammar": {"syntax": "lark", "definition": 'start: "(" start ")" | "x"\n'},
    }


def test_nothing_claims_more_than_the_server_promises() -> None:
    bounded = {
        **POINT,
        "properties": {**POINT["properties"], "tag": {"type": "string", "maxLength": 3, "enum": ["Ab"]}},
    }
    guarantees = {name: lower(bounded, name) for name in TARGETS}
    assert guarantees["llamacpp"].guarantee == "enforced"
    assert guarantees["anthropic"].guarantee == "enforced in part"
    assert {(loss.path, loss.keyword) for loss in guarantees["anthropic"].losses} >= {
        ("/properties/tag", "enum"),
        ("/properties/tag", "maxLength"),
    }
    assert [(loss.path, loss.keyword) for loss in guarantees["vllm"].losses] == [
        ("/properties/tag", "maxLength")
    ]
    assert {name for name, low in guarantees.items() if low.guarantee == "prompted"} == {"chat", "text"}
    assert guarantees["chat-json"].guarantee == "JSON only"


# target, schema of the field `v`, keywords that are lost, pattern that is sent
WEAK: list[tuple[str, dict[str, Any], list[str], str | None]] = [
    ("llamacpp", {"type": "integer", "minimum": 1}, [], None),
    ("llamacpp", {"type": "number", "minimum": 1}, ["minimum"], None),
    ("ollama", {"type": "string", "pattern": r"^\d+$"}, [], "^([0-9]+)$"),
    ("llamacpp", {"type": "string", "pattern": r"\d+"}, ["pattern"], None),
    ("llamacpp", {"type": "string", "pattern": "^.+$"}, ["pattern"], None),
    ("vllm", {"type": "string", "pattern": "^[a-c]{2}$"}, [], "^([a-c]{2})$"),
    ("vllm", {"type": "string", "pattern": "^a|b$"}, ["pattern"], "^a|b$"),
    ("vllm", {"type": "string", "pattern": r"^[^\d]$"}, ["pattern"], "^([^0-9])$"),
    ("vllm", {"type": "string", "pattern": r"^a(?=b)$"}, ["pattern"], None),
    ("vllm", {"type": "array", "items": {"type": "string"}, "uniqueItems": True}, ["uniqueItems"], None),
    ("mistral", {"type": "integer", "minimum": 1}, ["minimum"], None),
    ("vllm", {"pattern": "^a$"}, ["pattern"], "^(a)$"),
    ("mistral", {"type": "string", "format": "date"}, ["format"], None),
    ("local", {"type": "string", "format": "date"}, ["format"], None),
    ("openai.chat", {"type": "string", "format": "date-time"}, ["format"], None),
    ("local", {"type": "string", "format": "uuid"}, [], None),
    ("anthropic", {"enum": ["A", "b"]}, ["enum"], None),
    ("anthropic", {"enum": ["1", "2"]}, [], None),
    ("openai.chat", {"type": "string", "pattern": r"\bword"}, ["pattern"], None),
    ("local", {"type": "string", "pattern": "b.+"}, [], "b.+"),
    ("local", {"type": "array", "uniqueItems": True, "items": {}}, ["uniqueItems"], None),
]


@each(("target", "field", "lost", "pattern"), WEAK)
def test_keywords_that_a_server_does_not_hold_to_are_losses(
    target: str, field: dict[str, Any], lost: list[str], pattern: str | None
) -> None:
    schema = {"type": "object", "properties": {"v": field}, "required": ["v"], "additionalProperties": False}
    low = lower(schema, target)
    assert [loss.keyword for loss in low.losses] == lost
    assert all(loss.path.startswith("/properties/v") for loss in low.losses)
    assert low.guarantee == ("enforced in part" if lost else "enforced")
    assert low.schema is not None and low.schema["properties"]["v"].get("pattern") == pattern


def test_the_ladder_goes_down_when_lowering_and_after_a_refusal() -> None:
    low: Lowered | None = lower(MAP, "openai.chat")
    assert low is not None and low.rung == "forced tool" and low.guarantee == "prompted"
    assert [said.partition(":")[0] for said in low.blockers] == ["native", "strict tool"]
    seen = []
    low = lower(POINT, "openai.chat")
    while low is not None:
        seen.append(low.rung)
        low = low.next_rung("400: schema too complex")
    assert seen == ["native", "strict tool", "forced tool", "JSON mode", "text"]
    second = lower(POINT, "anthropic").next_rung("400: compiled grammar is too large")
    assert second is not None and second.blockers == ("native: 400: compiled grammar is too large",)
    many = {"type": "object", "properties": {f"p{n}": {"type": "string"} for n in range(25)}}
    assert lower(many, "anthropic").rung == "forced tool"
    # a tool's input may not have such names there, a native answer may
    refused = {"type": "object", "properties": {f"字段{at}": {"type": "string"} for at in range(30)}}
    for target in ("anthropic", "bedrock"):
        assert lower(refused, target).rung == "text"
        native = lower({"type": "object", "properties": {"城市": {"type": "string"}}}, target)
        below = native.next_rung("400: it is refused")
        assert native.rung == "native" and below is not None and below.rung == "text"
        assert [said.partition(":")[0] for said in below.blockers] == ["native", "strict tool", "forced tool"]
    assert "25 optional properties" in lower(many, "anthropic").blockers[0]
    with pytest.raises(ValueError, match="no rung 'strict tool'"):
        lower(POINT, "vllm", rung="strict tool")
    with pytest.raises(ValueError, match="there are openai"):
        lower(POINT, "nobody")


# constraint, target, answer, value
ANSWERS: list[tuple[Any, str, Any, Any]] = [
    (POINT, "openai.chat", '{"x": 1, "tag": null}', {"x": 1}),
    (POINT, "text", 'Sure:\n```json\n{"x": 1,}\n```', {"x": 1}),
    ({"type": "array", "items": {"type": "integer"}}, "openai.chat", '{"value": [1, 2]}', [1, 2]),
    ({"type": "array", "items": {"type": "integer"}}, "vllm", "[1, 2]", [1, 2]),
    ({"type": "array", "items": {"type": "integer"}}, "text", "[1, 2,]", [1, 2]),
    ({"type": "array", "items": {"type": "integer"}}, "text", '["1"]', [1]),
    ({"type": "integer"}, "text", " 7 ", 7),
    ({"type": ["string", "null"]}, "gemini", '{"value": null}', None),
    ({"type": "object", "properties": {"value": {"type": "string"}}}, "anthropic", '{"value": "v"}', {"value": "v"}),
    (Choice("yes", "no"), "anthropic", '{"value": "yes"}', "yes"),
    (Choice("yes", "no"), "text", ' "Yes" ', "yes"),
    (Choice("yes", "no"), "text", "maybe", "maybe"),
    (Choice("yes", "no"), "vllm", "no", "no"),
    (Choice("yes", "no"), "ollama", '"no"', "no"),
    (Choice("1", "2"), "ollama", '"2"', "2"),
    (Choice("1", "2"), "chat-json", '{"value": "2"}', "2"),
    (Choice("1", "2"), "chat-json", "2", "2"),
    (Choice("no", "no, never"), "text", "No, never", "no, never"),
    ({"type": "array", "items": {"type": "integer"}}, "text", '{"value": [1]}', [1]),
    ({"type": "array", "items": {"type": "integer"}}, "openai.chat", "[1]", [1]),
    (Regex(r"\d+"), "anthropic", '{"value": "7"}', "7"),
    (Choice('say "a"', "b"), "text", 'say "a"', 'say "a"'),
    (Regex(r"\d+"), "text", "```\n42\n```", "42"),
    (Grammar(TREE), "text", " ((x)) ", "((x))"),
    (POINT, "chat-json", '{"x": "1"}', {"x": 1}),
]  # fmt: skip


@each(("constraint", "target", "answer", "value"), ANSWERS)
def test_an_answer_is_unwrapped_and_repaired(constraint: Any, target: str, answer: Any, value: Any) -> None:
    assert lower(constraint, target).parse(answer).value == value


def test_a_name_is_one_that_servers_take() -> None:
    schema = JsonSchema(POINT, name="Überweisung [EUR]")
    assert (
        lower(schema, "openai.chat").fields["response_format"]["json_schema"]["name"] == "_berweisung__EUR_"
    )
    assert lower(schema, "openai.chat", rung="forced tool").tool == "_berweisung__EUR_"


def test_the_fields_go_into_a_body_object_by_object() -> None:
    body = {"generationConfig": {"temperature": 0}, "tools": [{"a": 1}]}
    whole = lower(POINT, "gemini").into(body)
    assert whole["generationConfig"]["temperature"] == 0 and whole["tools"] == [{"a": 1}]
    assert whole["generationConfig"]["responseJsonSchema"] == POINT
    assert [*lower(POINT, "gemini", rung="strict tool").into(body)["tools"][1]] == ["functionDeclarations"]
    assert body == {"generationConfig": {"temperature": 0}, "tools": [{"a": 1}]}


def test_an_answer_comes_as_a_call_where_a_tool_is_forced() -> None:
    low = lower(MAP, "openai.chat")
    message = Message.assistant("Here it is.", ToolCall(low.tool, '{"a": 1}'))
    assert low.parse(Response(message)).value == {"a": 1}
    with pytest.raises(Unusable, match="one call of the tool answer, got none"):
        low.parse(Message.assistant(ToolCall("other", "{}")))
    for text, words in [
        ("", "The answer is empty"),
        ("no", "The answer is not JSON. Answer with one JSON value."),
        ('{"a": 1', "The answer ends before it is complete"),
        ('{"a": 1} {"a": 2}', "The answer holds several different JSON values"),
    ]:
        with pytest.raises(Unusable, match=words):
            low.parse(text)


def test_what_is_checked_is_the_constraint_as_it_was_given() -> None:
    low = lower(JsonSchema(Invoice), "openai.chat")
    assert low.validate({"number": "AB1", "total": 1.5}) == ()
    wrong = low.validate({"number": "1", "total": -1, "lines": [1]})
    assert sorted(error.path for error in wrong) == ["lines[0]", "number", "total"]
    assert JsonSchema(Invoice).to_python({"number": "AB1", "total": 1}) == Invoice(number="AB1", total=1)
    (error,) = lower(Choice("yes", "no"), "text").validate("maybe")
    assert error.allowed == ("yes", "no")
    assert lower(Regex("a+"), "text").validate("ab")
    (error,) = lower(Grammar(TREE), "text").validate("((x)")
    assert "ends too early" in error.got
    assert "at character 1" in lower(Grammar(TREE), "text").validate("(y)")[0].got


def test_a_hostile_answer_costs_no_more_than_its_length() -> None:
    begun = time.process_time()
    assert lower(Regex("(a|a)*b"), "text").validate("a" * 50_000)
    assert lower(Regex("(a*)*c"), "text").validate("a" * 50_000)
    assert lower(Grammar('root ::= [a-z]{0,9000} "!"'), "text").validate("a" * 5_000 + "?")
    assert time.process_time() - begun < 2


# Too large for Rust's engine, so that our own checks it.
LARGE: dict[str, tuple[str, str, str]] = {
    # pattern, a text that it matches, and one that it does not
    "repeats of a repeat": ("(a{0,1000}){0,1000}", "a" * 2_000, "a" * 2_000 + "c"),
    "three of them": ("((a{1,90}){0,90}){0,900}", "a" * 2_000, "a" * 2_000 + "c"),
    "a long text in a repeat": ("(a{1000}){900}|b", "b", "a" * 5_000),
    "many long texts": (
        f"({'a' * 400}){{800}}|{'|'.join('a' * n for n in range(1, 400))}",
        "a" * 399,
        "a" * 401,
    ),
    "gaps between counts": ("((ab){2,3}){0,30000}|((ab){7}){0,30000}", "ab" * 14, "ab" * 1),
}


@each("pattern, fits, does_not", list(LARGE.values()), ids=list(LARGE))
def test_a_large_pattern_is_checked_in_time(pattern: str, fits: str, does_not: str) -> None:
    begun = time.process_time()
    low = lower(Regex(pattern), "text")
    assert not low.validate(fits) and low.validate(does_not)
    assert time.process_time() - begun < 5


@each("repeat", ["([ab]{0})*", "([ab]*){0}", "(([a] | [b]){0}){2,}", "(([ab]{0,3}){2}){0}"])
def test_a_repeat_of_nothing_is_nothing(repeat: str) -> None:
    low = lower(Grammar(f'root ::= {repeat} "c"'), "text")
    assert not low.validate("c") and low.validate("abc")


def test_a_recursive_root_that_is_no_object_is_wrapped_soundly() -> None:
    nested = {"anyOf": [{"type": "integer"}, {"type": "array", "items": {"$ref": "#"}}]}
    low = lower(nested, "openai.chat")
    assert low.schema is not None and low.wrapped and low.rung == "native"
    assert JsonSchema(low.schema).fits({"value": [1, [2, [3]]]})
    assert not JsonSchema(low.schema).fits({"value": [1, ["2"]]})
    assert low.parse('{"value": [1, [2]]}').value == [1, [2]]


@each("target", lambda: [*TARGETS])
def test_every_rung_of_every_server_ends_at_text(target: str) -> None:
    for constraint in (POINT, MAP, Choice("a", "b"), Regex("a+"), Grammar(TREE)):
        rungs = rungs_of(constraint, target)
        assert rungs[-1].rung == "text" and rungs[-1].fields == {}
        assert rungs[-1].next_rung() is None
        assert all(rung.next_rung() is not None for rung in rungs[:-1])
        assert all(low.prompt for low in rungs if low.guarantee in ("prompted", "JSON only") and not low.tool)


def test_a_bias_is_no_guarantee_and_needs_first_tokens_that_differ() -> None:
    low = bias_choice(Choice("yes", "no"), "vllm", lambda text: [*text.encode()])
    assert low.fields == {"logit_bias": {"121": 100, "110": 100}, "max_tokens": 1}
    assert (low.guarantee, low.rung) == ("biased", "bias")
    assert [low.parse(text).value for text in ("y", "no", " n")] == ["yes", "no", "no"]
    assert low.validate(low.parse("maybe").value)
    with pytest.raises(ValueError, match="begin with the same token"):
        bias_choice(Choice("yes", "yet"), "vllm", lambda text: [*text.encode()])
    with pytest.raises(ValueError, match="takes no logit_bias"):
        bias_choice(Choice("yes", "no"), "anthropic", lambda text: [*text.encode()])


def test_the_target_of_a_format_at_a_provider() -> None:
    known = [
        ("openai_chat", "openai"),
        ("openai_chat", "vllm"),
        ("openai_chat", "host:1"),
        ("gemini", "gemini"),
        ("x", "y"),
    ]
    assert [target_for(*pair) for pair in known] == ["openai.chat", "vllm", "chat", "gemini", "text"]


WRONG: list[tuple[Any, str]] = [
    (lambda: Choice(), "at least one"),
    (lambda: Choice("a", "a"), "stands twice"),
    (lambda: Choice("a", ""), "not empty"),
    (lambda: Regex("a(?=b)"), "looks ahead"),
    (lambda: Regex(r"(a)\1"), "refers back"),
    (lambda: Regex("(?i)a"), "flags"),
    (lambda: Regex("["), "no regular expression"),
    (lambda: Regex("(((ab){1000}){1000}){1000}"), "count to more than 1,000,000 characters"),
    (
        lambda: Grammar('start: (("ab"~9000) "c")~9000', "lark"),
        "count to more than 1,000,000 characters",
    ),
    (lambda: Grammar("root ::= a"), "'a' is used but not defined"),
    (lambda: Grammar('a ::= "x"'), "no rule 'root'"),
    (lambda: Grammar('root ::= "x" )'), "expected a rule"),
    (lambda: Grammar('root ::= ("x"'), r"expected '\)'"),
    (lambda: Grammar('start: "a"\n%ignore " "', "lark"), "line 2.*directive"),
    (lambda: Grammar("x", "bnf"), "syntax is one of"),  # type: ignore[arg-type]
    (lambda: JsonSchema({"type": "nonsense"}), "no JSON Schema"),
    (lambda: JsonSchema(object()), "gives no JSON Schema"),
    (lambda: lower("yes", "vllm"), r"got str 'yes'. Texts are given as Choice"),
    (lambda: lower(Choice, "vllm"), "got the class Choice"),
    (lambda: ToolCalls("search"), r"\[search.spec, count.spec\]"),  # type: ignore[arg-type]
    (lambda: Choice("\ud800"), "expected text"),
    (lambda: Grammar('root ::= "\ud800"'), "expected text"),
    (lambda: lower(POINT, "vllm").parse(None), "got NoneType"),  # type: ignore[arg-type]
]


@each(("make", "words"), WRONG, ids=[words for _, words in WRONG])
def test_what_is_no_constraint_is_refused_in_words(make: Any, words: str) -> None:
    with pytest.raises((ValueError, TypeError), match=words):
        make()
