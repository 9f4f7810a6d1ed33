"""Local guides: whatever a model would sample, what is written is what the constraint says."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from tests.guided_constraints import BEGIN, CONSTRAINTS, TOOLS
from tests.properties import is_nightly
from tests.vocabularies import byte_vocabulary, trained_vocabulary
from toolcrib.guided import Choice, Regex, ToolCalls, lower
from toolcrib.guided.local import GuideError, GuideSession, LocalGuide, Vocabulary
from toolcrib.messages import ToolChoice
from toolcrib.spec import ToolSpec


def sampled(guide: LocalGuide, vocabulary: Vocabulary, chance: random.Random, begin: bytes = b"") -> bytes:
    """One answer of a model that finds every token equally likely; strings of it are cut off by a likelier quote."""
    session, written = guide.session(), list[int]()
    for token in vocabulary.split(begin):
        assert session.accept(token)
        written.append(token)
    for _ in range(5_000):
        allowed = session.allowed_tokens()
        cut = chance.random() < 0.2
        quotes = [t for t in allowed if vocabulary.tokens[t].startswith(b'"')] if cut else []
        token = chance.choice(quotes or allowed)
        assert session.accept(token)
        if token in vocabulary.ends:
            assert session.finished
            return b"".join(vocabulary.tokens[number] for number in written)
        written.append(token)
    raise AssertionError("an answer without end")


def valid(name: str, vocabulary: Vocabulary, number: int) -> int:
    """How many of so many answers are what the constraint says."""
    guide = LocalGuide(CONSTRAINTS[name], vocabulary)
    chance = random.Random(name)
    begin = BEGIN.encode() if name == "tags" else b""
    found = 0
    for _ in range(number):
        text = sampled(guide, vocabulary, chance, begin).decode()
        found += not guide.lowered.validate(guide.lowered.parse(text).value)
    return found


@pytest.mark.parametrize("name", CONSTRAINTS)
def test_random_answers_are_what_the_constraint_says(name: str) -> None:
    assert valid(name, byte_vocabulary(), 15) == 15


@pytest.mark.parametrize("name", ["choice", "regex", "sql", "sum", "greedy"])
def test_validation_and_the_engine_agree_on_texts_that_are_nearly_right(name: str) -> None:
    vocabulary, chance = byte_vocabulary(), random.Random(name)
    guide = LocalGuide(CONSTRAINTS[name], vocabulary)
    right = 0
    for _ in range(60):
        text = [*sampled(guide, vocabulary, chance)]
        at, kind = chance.randrange(len(text)), chance.randrange(4)
        other = chance.choice([*text, *b"ab1+( )"])
        changed = {0: text, 1: text[:at] + text[at + 1 :], 2: [*text[:at], other, *text[at:]]}.get(
            kind, [*text[:at], other, *text[at + 1 :]]
        )
        session = guide.session()
        taken = all(of(session, changed)) and session.complete
        wrong = guide.lowered.validate(bytes(changed).decode("utf-8", errors="replace"))
        assert taken is not bool(wrong), bytes(changed)
        right += taken
    assert 10 < right < 60


@pytest.mark.slow
@pytest.mark.parametrize("name", CONSTRAINTS)
@pytest.mark.parametrize("vocabulary", [byte_vocabulary, trained_vocabulary])
def test_all_of_many_random_answers_are_valid(name: str, vocabulary: Any) -> None:
    count = 1_000 if is_nightly() else 250
    assert valid(name, vocabulary(), count) == count


def letters(*tokens: bytes) -> Vocabulary:
    return Vocabulary([*tokens, b""], end=len(tokens))


def of(session: GuideSession, tokens: Sequence[int]) -> list[bool]:
    return [session.accept(token) for token in tokens]


def test_a_session_says_what_may_come_and_goes_back() -> None:
    vocabulary = letters(b"y", b"es", b"e", b"up", b"no")
    session = LocalGuide(Choice("yes", "yup", "no"), vocabulary).session()
    assert (session.allowed_tokens(), session.complete, session.finished) == ([0, 4], False, False)
    assert not session.accept(3), "a token that may not come"
    assert session.accept(0)
    assert session.allowed_tokens() == [1, 2, 3]
    other = session.fork()
    assert of(other, [3]) == [True] and other.finished
    assert session.allowed_tokens() == [1, 2, 3], "a fork goes on by itself"
    assert of(session, [1, 5, 0]) == [True, True, False]
    assert session.finished and session.allowed_tokens() == [5] and session.forced() == []
    session.rollback(2)
    assert session.allowed_tokens() == [1, 2, 3]
    session.rollback(1)
    assert session.accept(4) and session.complete
    with pytest.raises(GuideError):
        session.rollback(9)


def test_what_must_come_is_forced() -> None:
    vocabulary = byte_vocabulary()
    session = LocalGuide(Choice("approved", "approximate"), vocabulary).session()
    assert bytes(session.forced()) == b"appro"
    assert of(session, session.forced()) == [True] * 5
    assert len(session.mask()) * 8 >= vocabulary.size


def test_special_tokens_are_never_written() -> None:
    vocabulary = Vocabulary([b"a", b"b", b"<pad>", b""], end=3, special=(2,))
    session = LocalGuide(Regex("[a-z<>]*"), vocabulary).session()
    assert session.allowed_tokens() == [0, 1, 3]


def test_a_vocabulary_that_lacks_what_must_come_is_said() -> None:
    session = LocalGuide(Choice("yes"), letters(b"y", b"e")).session()
    assert of(session, [0, 1]) == [True, True]
    with pytest.raises(GuideError, match="NoExtension"):
        session.mask()


def test_json_is_compact_or_has_a_bounded_space() -> None:
    vocabulary = byte_vocabulary()
    schema = {"type": "array", "items": {"type": "null"}, "minItems": 1}
    compact = LocalGuide(schema, vocabulary, compact=True).session()
    assert compact.accept(ord("[")) and not compact.accept(ord(" "))
    spaced = LocalGuide(schema, vocabulary).session()
    assert spaced.accept(ord("["))
    assert [spaced.accept(ord(" ")) for _ in range(9)] == [True] * 8 + [False]


def test_a_tool_that_an_engine_cannot_compile_does_not_fail_the_others() -> None:
    hard = {"type": "object", "properties": {"p": {"type": "integer", "multipleOf": 1e-20}}}
    tools = (TOOLS[0], ToolSpec("hard", "Hard.", hard))
    guide = LocalGuide(ToolCalls(tools, ToolChoice("required")), byte_vocabulary(), compact=True)
    assert [loss.path for loss in guide.lowered.losses] == ["/$defs/hard"]
    assert guide.lowered.guarantee == "enforced in part"
    session = guide.session()
    for name, held in [("search", False), ("hard", True)]:
        text = f'{{"content":"","tool_calls":[{{"name":"{name}","arguments":{{"x":1}}}}]}}'
        assert all(of(session.fork(), [*text.encode()])) is held
    with pytest.raises(GuideError, match="cannot compile"):
        LocalGuide(hard, byte_vocabulary())
    broken = ToolSpec("broken", "Broken.", {"type": "object", "properties": {"p": {"pattern": "["}}})
    low = lower(ToolCalls((TOOLS[0], broken)), "vllm")
    assert low.guarantee == "enforced in part" and "/$defs/broken" in [loss.path for loss in low.losses]
    assert low.validate({"content": "", "tool_calls": [{"name": "broken", "arguments": {"p": 1}}]}) == ()


def test_what_is_no_vocabulary_or_backend_is_refused_in_words() -> None:
    with pytest.raises(TypeError, match="expected a Vocabulary"):
        LocalGuide(Choice("a"), object())
    with pytest.raises(ValueError, match="'llguidance' or 'xgrammar'"):
        LocalGuide(Choice("a"), byte_vocabulary(), backend="other")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="no id of its 2 tokens"):
        Vocabulary([b"a", b""], end=2)


def test_calls_in_merged_tools_have_their_name_first_and_bounds_where_none_are() -> None:
    from toolcrib.guided.merged import merged_schema

    free = {"type": "object", "properties": {"list": {"type": "array", "items": {"type": "string"}}}}
    made = merged_schema(ToolCalls((ToolSpec("f", "", free), *TOOLS), most_items=4, most_characters=9))
    assert [*made["$defs"]] == ["f", "search", "walk", "walk.Node"]
    held = made["$defs"]["f"]["properties"]["list"]
    assert (held["maxItems"], held["items"]["maxLength"]) == (4, 9)
    assert made["$defs"]["search"]["properties"]["query"]["maxLength"] == 12, "a bound of its own stays"
    assert made["$defs"]["walk"]["properties"]["next"] == {"$ref": "#/$defs/walk.Node"}
    (first, *_) = made["properties"]["tool_calls"]["items"]["anyOf"]
    assert [*first["properties"]] == ["name", "arguments"]
    auto = ToolCalls(TOOLS, both=False, parallel=False)
    assert merged_schema(auto)["required"] == ["content"]
    assert merged_schema(auto)["properties"]["tool_calls"]["maxItems"] == 1
    none = merged_schema(replace(auto, choice=ToolChoice("none")))
    assert none["properties"]["tool_calls"] == {"type": "array", "maxItems": 0}
