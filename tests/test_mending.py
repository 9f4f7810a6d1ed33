"""Any conversation is mended by stated rules, said in notes; a valid one comes back as it is."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.growth import growth
from tests.properties import examples
from toolcrib.call import ToolCall
from toolcrib.content import Image, Json, Text
from toolcrib.mending import NO_RESULT, mend
from toolcrib.messages import (
    Message,
    Opaque,
    Reasoning,
    Request,
    ResultPart,
    messages_from_json,
    messages_to_json,
)
from toolcrib.models import ModelError, OpenAIChat
from toolcrib.result import ToolResult

# -- messages by hand


@pytest.mark.parametrize("parts", ["hi", ["hi"], ("hi",), [Text("hi")]])
def test_text_is_a_part_of_a_message(parts: Any) -> None:
    for role in ("system", "user", "assistant"):
        assert Message(role, parts).parts == (Text("hi"),)
    assert Message.assistant("hi") == Message("assistant", [Text("hi")])


def test_a_text_is_the_result_of_a_call() -> None:
    assert ResultPart(ToolCall("f"), "42").result == ToolResult.of("42")  # type: ignore[arg-type]


CALL = ToolCall("f", "{}", "call_1")
WRONG: list[tuple[Any, str]] = [
    (
        lambda: Message("user", [{"type": "text", "text": "hi"}]),  # type: ignore[list-item]
        "role 'user': expected a text or a part .* dict",
    ),
    (lambda: Message("user", None), "expected a list of parts, or a text, got NoneType"),  # type: ignore[arg-type]
    (lambda: Message("user", Text("hi")), "expected a list of parts, or a text, got Text"),  # type: ignore[arg-type]
    (lambda: Message.user(3), "got int 3"),  # type: ignore[arg-type]
    (lambda: Message.assistant(None), "got NoneType"),  # type: ignore[arg-type]
    (lambda: Message.system(None), "the text of a Text must be a str"),  # type: ignore[arg-type]
    (lambda: Message.assistant(Reasoning(None)), "the text of a Reasoning"),  # type: ignore[arg-type]
    (lambda: Message("tool", [ToolResult.of("x")]), "which call it answers"),  # type: ignore[list-item]
    (lambda: ResultPart("call_1", ToolResult.of("x")), "the ToolCall that the result answers"),  # type: ignore[arg-type]
    (lambda: ResultPart(CALL, {"content": "x"}), "expected a ToolResult"),  # type: ignore[arg-type]
    (lambda: ResultPart(CALL, ToolResult((3,))), "a result: expected a text or a part"),  # type: ignore[arg-type]
]


@pytest.mark.parametrize(("make", "words"), WRONG, ids=[words for _, words in WRONG])
def test_what_is_no_part_is_refused_in_words(make: Any, words: str) -> None:
    with pytest.raises(TypeError, match=words):
        make()


def test_an_unknown_role_is_refused_with_those_that_are_known() -> None:
    with pytest.raises(ValueError, match="'system', 'user', 'assistant', 'tool', got str 'developer'"):
        Message("developer", "hi")  # type: ignore[arg-type]


# -- saved conversations


@pytest.mark.parametrize(
    ("data", "words"),
    [
        ([], "format 1, got list"),
        ({"format": 1}, "messages: expected a list, got NoneType"),
        ({"format": 1, "messages": ["hi"]}, r"messages\[0\]: expected an object, got str 'hi'"),
        (
            {"format": 1, "messages": [{"role": "user", "content": "hi"}]},
            r"messages\[0\].parts: expected list, got none among 'role', 'content'",
        ),
        ({"format": 1, "messages": [{"role": "bot", "parts": []}]}, r"messages\[0\]: role: expected one of"),
        ({"format": 1, "messages": [{"role": "user", "parts": ["hi"]}]}, r"parts\[0\]: expected an object"),
        ({"format": 1, "messages": [{"role": "user", "parts": [{}]}]}, r"parts\[0\].kind: expected str"),
        (
            {"format": 1, "messages": [{"role": "user", "parts": [{"kind": "text", "text": None}]}]},
            r"parts\[0\]: content: the text of a Text must be a str",
        ),
        (
            {"format": 1, "messages": [{"role": "user", "parts": [{"kind": "video"}]}]},
            "unknown kind of content part 'video'",
        ),
        (
            {"format": 1, "messages": [{"role": "assistant", "parts": [{"kind": "call"}]}]},
            r"parts\[0\].name: expected str, got none among 'kind'",
        ),
        (
            {
                "format": 1,
                "messages": [
                    {"role": "tool", "parts": [{"kind": "result", "call": {"name": "f"}, "result": 3}]}
                ],
            },
            r"parts\[0\].result: expected dict, got int 3",
        ),
        (
            {
                "format": 1,
                "messages": [
                    {
                        "role": "tool",
                        "parts": [{"kind": "result", "call": {"name": "f"}, "result": {"parts": ["x"]}}],
                    }
                ],
            },
            r"parts\[0\].result",
        ),
    ],
)
def test_what_is_no_saved_conversation_is_a_value_error_that_says_where(data: Any, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        messages_from_json(data)


values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.sampled_from(["", "user", "text", "call", "result", "x"]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                ["role", "parts", "kind", "text", "call", "result", "name", "id", "extras", "code", "url"]
            ),
            inner,
            max_size=5,
        )
    ),
    max_leaves=10,
)


@examples(150)
@given(st.lists(values, max_size=2))
def test_reading_a_saved_conversation_raises_nothing_but_value_errors(messages: list[Any]) -> None:
    try:
        messages_from_json({"format": 1, "messages": messages})
    except ValueError:
        pass


def test_a_results_extras_are_saved_too() -> None:
    result = ToolResult((Text("x"),), extras={"bedrock": {"cachePoint": {"type": "default"}}})
    [back] = messages_from_json(
        json.loads(json.dumps(messages_to_json([Message("tool", [ResultPart(CALL, result)])])))
    )
    assert back.results[0].extras == result.extras


# -- the rules


def a(id: str = "", name: str = "f") -> Message:
    return Message.assistant(ToolCall(name, "{}", id))


def r(id: str = "", text: str = "r", name: str = "f") -> Message:
    return Message("tool", [ResultPart(ToolCall(name, "{}", id), ToolResult.of(text))])


def told(messages: list[Message]) -> list[str]:
    """One word a message: the role, with the ids of calls and the texts of results."""
    return [
        " ".join(
            [message.role]
            + [part.id for part in message.parts if isinstance(part, ToolCall)]
            + [
                part.result.text if part.result.code is None else "?"
                for part in message.parts
                if isinstance(part, ResultPart)
            ]
            + ([message.text] if message.role != "tool" and message.text else [])
        )
        for message in messages
    ]


U = Message.user("u")
MENDED: list[tuple[str, list[Message], list[str], list[str]]] = [
    ("valid", [U, a("1"), r("1")], ["user u", "assistant 1", "tool r"], []),
    ("nothing", [], [], []),
    ("an open call at the end", [a("1")], ["assistant 1", "tool ?"], ["no result"]),
    ("an open call in the middle", [a("1"), U], ["assistant 1", "tool ?", "user u"], ["no result"]),
    ("a user between", [a("1"), U, r("1")], ["assistant 1", "tool r", "user u"], ["stood apart"]),
    ("a late result", [a("1"), a("2"), r("2"), r("1", "s")], ["assistant 1", "tool s", "assistant 2", "tool r"], ["stood apart"]),
    ("a result of no call", [U, r("9")], ["user u", "assistant 9", "tool r"], ["answers no open call"]),
    ("a result twice", [a("1"), r("1"), r("1")], ["assistant 1", "tool r"], ["stood there twice"]),
    ("two results of one call", [a("1"), r("1"), r("1", "s")], ["assistant 1", "tool r", "assistant 1", "tool s"], ["answers no open call"]),
    ("a message a result", [Message.assistant(ToolCall("f", "", "1"), ToolCall("f", "", "2")), r("2", "s"), r("1")], ["assistant 1 2", "tool r s"], []),
    ("no ids", [Message.assistant(ToolCall("f"), ToolCall("g")), r(name="g", text="s"), r()], ["assistant  ", "tool r s"], []),
    ("ids used again", [a("1"), r("1"), a("1"), r("1", "s")], ["assistant 1", "tool r", "assistant 1", "tool s"], []),
    ("results at the user's", [a("1"), Message("user", [*r("1").parts, Text("u")])], ["assistant 1", "tool r", "user u"], []),
    ("a result at the assistant's", [Message("assistant", [*a("1").parts, *r("1").parts])], ["assistant 1", "tool r"], []),
    ("a call at the user's", [Message("user", [*a("1").parts, Text("u")]), r("1")], ["assistant 1", "tool r", "user u"], ["became the assistant's", "apart"]),
    ("text of a tool", [a("1"), Message("tool", [Text("42")])], ["assistant 1", "tool 42"], ["became the result"]),
    ("text of no tool", [U, Message("tool", [Text("42")])], ["user u", "assistant ", "tool 42"], ["became the result", "no open call"]),
    ("an empty tool message", [U, Message("tool")], ["user u"], []),
    ("two assistants", [Message.assistant("x"), Message.assistant("y")], ["assistant x", "assistant y"], []),
]  # fmt: skip


@pytest.mark.parametrize(
    ("given_", "mended", "notes"), [case[1:] for case in MENDED], ids=[case[0] for case in MENDED]
)
def test_a_conversation_is_mended_by_rules(
    given_: list[Message], mended: list[str], notes: list[str]
) -> None:
    before = messages_to_json(given_)
    found, said = mend(given_)
    assert told(found) == mended
    assert len(said) == len(notes)
    for note, words in zip(said, notes, strict=True):
        assert words in str(note)
    assert messages_to_json(given_) == before


def test_a_valid_conversation_is_the_same_object() -> None:
    conversation = [U, a("1"), r("1"), Message.assistant("done")]
    assert mend(conversation)[0] is conversation


def test_an_open_call_is_of_unknown_outcome() -> None:
    result = mend([a("1")])[0][1].results[0]
    assert (result.text, result.code) == (NO_RESULT, "outcome_unknown")


def test_a_message_does_not_change_and_another_is_made_of_it() -> None:
    message = Message("user")
    with pytest.raises(AttributeError):
        message.parts.append("later")  # type: ignore[attr-defined]
    assert replace(message, parts=["later"]) == Message.user("later")
    with pytest.raises(TypeError, match=r"expected a text or a part"):
        replace(message, parts=[{"type": "text"}])


ids = st.sampled_from(["", "1", "2", "null"])
calls = st.builds(ToolCall, st.sampled_from(["f", "g", ""]), st.just("{}"), ids)
results = st.sampled_from([ToolResult.of("x"), ToolResult.of("y"), ToolResult()])
parts = st.one_of(
    st.sampled_from(
        [Text("t"), Json([1]), Image(data="AAAA"), Reasoning("hm"), Opaque("openai", {"type": "x"})]
    ),
    calls,
    st.builds(ResultPart, calls, results),
)
roles = st.sampled_from(["system", "user", "assistant", "tool"])
conversations = st.lists(st.builds(Message, roles, st.lists(parts, max_size=4)), max_size=7)


@examples(300)
@given(conversations)
def test_what_was_mended_is_valid_and_says_all_that_was_said(conversation: list[Message]) -> None:
    mended, _ = mend(conversation)
    assert mend(mended) == (mended, [])
    assert mend(mended)[0] is mended
    assert mend(conversation)[0] == mended
    wanted = [call.name for message in mended for call in message.calls]
    assert wanted.count("f") >= sum(call.name == "f" for message in conversation for call in message.calls)
    for kind in (Json, Image, Reasoning, Opaque):
        found = [part for message in conversation for part in message.parts if isinstance(part, kind)]
        kept = [part for message in mended for part in message.parts if isinstance(part, kind)]
        kept += [
            part
            for message in mended
            for result in message.results
            for part in result.parts
            if isinstance(part, kind)
        ]
        assert len(found) == len(kept)
    back = messages_from_json(json.loads(json.dumps(messages_to_json(mended))))
    assert mend(back)[0] is back


@examples(100)
@given(conversations, conversations)
def test_the_beginning_of_a_mended_conversation_stays_the_same(
    before: list[Message], after: list[Message]
) -> None:
    mended, _ = mend(before)
    answered = [*mended, Message.user("go on")]
    longer, _ = mend([*answered, *(message for message in after if message.role != "tool")])
    assert longer[: len(answered)] == answered


@pytest.mark.slow
def test_mending_is_linear() -> None:
    def mending(size: int) -> Any:
        wrong = [message for n in range(size) for message in (r("1"), a(str(n)), U, r(str(n)), r())]
        return lambda: mend(wrong)

    assert growth(mending, 500, 4000, 40) < 40


# -- what is told


async def test_what_was_mended_or_left_out_is_said_once(caplog: pytest.LogCaptureFixture) -> None:
    model = OpenAIChat("m", base_url="http://127.0.0.1:9", api_key="k", max_retries=0)
    broken = [U, a("1"), Message("user", [Text("go on"), Opaque("anthropic", {"type": "web_search"})])]
    for _ in range(2):
        with pytest.raises(ModelError):
            await model.respond(Request(broken))
    await model.aclose()
    [record] = [record for record in caplog.records if record.name == "toolcrib"]
    assert "message 2: the call of f (1) has no result; it is answered as interrupted" in record.message
    assert "an item of anthropic (web_search) is not sent to 127.0.0.1:9" in record.message
