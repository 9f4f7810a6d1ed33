"""Extraction without an agent: one value, items, many sources, labels with probabilities, quotes."""

import asyncio
import enum
import json
import math
from collections import deque
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel

from tests.cases import each
from toolcrib import Image, Message
from toolcrib.agent import NotFinished, OutputType, Reason
from toolcrib.codecs import OpenAIChatCodec
from toolcrib.codecs.codec import ModelError
from toolcrib.content import File
from toolcrib.extraction import (
    Extracted,
    Maybe,
    Quote,
    choose,
    choose_sync,
    classify,
    classify_sync,
    extract,
    extract_items,
    extract_many,
    extract_many_sync,
    extract_stream,
    extract_sync,
    file_source,
)
from toolcrib.extraction.probabilities import label_probabilities
from toolcrib.messages import Request, Response, TokenLogprob, Usage
from toolcrib.models import Scripted

PDF = b"%PDF-1.4 and so on"
PNG = b"\x89PNG\r\n\x1a\n and so on"


class Invoice(BaseModel):
    number: str
    total: float


class Fact(BaseModel):
    what: str
    proof: Quote


def answer(**fields: Any) -> dict[str, Any]:
    return {"calls": [{"name": "attempt_completion", "arguments": fields}], "usage": Usage(10, 5)}


def test_one_value_with_the_usage_of_all_attempts_and_nothing_hidden() -> None:
    model = Scripted([answer(number=7), answer(number="7", total=2)])
    outcome = extract_sync(model, Invoice, "Invoice 7: 2 euros")
    assert outcome.output == Invoice(number="7", total=2)
    assert (outcome.attempts, outcome.usage.total_tokens) == (2, 30)
    assert [message.role for message in outcome.messages] == [
        "system", "user", "assistant", "tool", "assistant", "tool",
    ]  # fmt: skip
    assert outcome.messages[1].text == "Invoice 7: 2 euros"


def test_sources_are_texts_messages_files_pictures_and_documents(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("from a file")
    (tmp_path / "a.pdf").write_bytes(PDF)
    (tmp_path / "a.png").write_bytes(PNG)
    seen: list[list[Message]] = []

    def script(request: Request) -> Any:
        seen.append(list(request.messages))
        return answer(number="7", total=2)

    source = ["look", tmp_path / "a.txt", tmp_path / "a.pdf", tmp_path / "a.png", Image.of(PNG)]
    extract_sync(Scripted(script), Invoice, source, instructions="Read.")
    assert [type(part).__name__ for part in seen[0][1].parts] == ["Text", "Text", "File", "Image", "Image"]
    extract_sync(Scripted(script), Invoice, [Message.user("a"), Message.assistant("b"), Message.user("c")])
    assert [message.text for message in seen[1][1:]] == ["a", "b", "c"]


@pytest.mark.parametrize("source", [3, [], [3], Message.assistant("a"), None])
def test_what_is_no_source_is_refused(source: Any) -> None:
    with pytest.raises(TypeError):
        extract_sync(Scripted([]), Invoice, source)


@pytest.mark.parametrize("source", ["", " \n", ["", ""], [Message.user("")]])
def test_nobody_is_asked_about_nothing(source: Any) -> None:
    with pytest.raises(ValueError, match="nothing to read"):
        extract_sync(Scripted([answer(number="7", total=2)]), Invoice, source)


def test_a_file_that_cannot_be_read_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "a.bin").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(ValueError, match="no text in UTF-8"):
        file_source(tmp_path / "a.bin")
    with pytest.raises(OSError, match="nothing"):
        file_source(tmp_path / "nothing")
    with pytest.raises(ValueError, match="PDF document"):
        file_source(_write(tmp_path / "b.pdf", PDF), as_text=True)
    assert isinstance(file_source(tmp_path / "b.pdf")[0], File)


def _write(path: Path, data: bytes) -> Path:
    path.write_bytes(data)
    return path


@pytest.mark.parametrize(
    ("turn", "reason"),
    [
        ({"text": "No.", "stop_reason": "refusal"}, Reason.REFUSED),
        ({"error": "overloaded"}, Reason.MODEL_ERROR),
        ("no value", Reason.INVALID_OUTPUT),
    ],
)
def test_without_a_value_it_says_why(turn: Any, reason: Reason) -> None:
    with pytest.raises(NotFinished) as failed:
        extract_sync(Scripted([turn] * 5), Invoice, "x")
    assert failed.value.outcome.reason is reason


def test_the_value_so_far_and_then_the_whole() -> None:
    async def stream() -> list[Any]:
        model = Scripted([answer(number="seven", total=2)], chunk_size=3, delay=1e-9)
        return [
            (dict(partial.value), partial.outcome) async for partial in extract_stream(model, Invoice, "x")
        ]

    seen = asyncio.run(stream())
    assert seen[0][0] != seen[-1][0] == {"number": "seven", "total": 2}
    assert seen[-1][1].output == Invoice(number="seven", total=2)
    assert all(outcome is None for _, outcome in seen[:-1])


def test_items_one_by_one() -> None:
    bad, good = {"number": 1, "total": 1}, {"number": "1", "total": 1}

    async def stream() -> list[Any]:
        model = Scripted([answer(result=[good, bad]), answer(result=[good])], chunk_size=9)
        return [(item.index, item.problem == "") async for item in extract_items(model, Invoice, "x")]

    assert asyncio.run(stream()) == [(0, True), (1, False), (1, True)]


def reader(request: Request) -> Any:
    """Reads "N euros" out of the last message."""
    text = request.messages[-1].text if request.messages[-1].role == "user" else "0"
    if text == "broken":
        raise ModelError("no answer")
    return answer(number=text, total=len(text))


def test_many_sources_side_by_side_each_failure_by_itself() -> None:
    told: list[tuple[int, int | None]] = []
    found = extract_many_sync(
        Scripted(reader),
        Invoice,
        ["a", "broken", "ccc"],
        on_progress=lambda done, of, _: told.append((done, of)),
    )
    assert [one.index for one in found] == [0, 1, 2]
    assert [one.ok for one in found] == [True, False, True]
    assert found[2].output == Invoice(number="ccc", total=3)
    assert "no answer" in found[1].problem
    with pytest.raises(NotFinished):
        found[1].output  # noqa: B018
    assert told == [(1, 3), (2, 3), (3, 3)]


def test_many_are_taken_only_as_fast_as_they_are_worked_on() -> None:
    at_once = most = taken = 0

    class Slow(Scripted):
        async def stream(self, request: Request) -> Any:
            nonlocal at_once, most
            at_once += 1
            most = max(most, at_once)
            for _ in range(5):
                await asyncio.sleep(0)
            at_once -= 1
            async for chunk in super().stream(request):
                yield chunk

    async def sources() -> AsyncIterator[str]:
        nonlocal taken
        for number in range(20):
            taken += 1
            yield str(number)

    async def first_of_them() -> list[int]:
        found = extract_many(Slow(reader), Invoice, sources(), concurrency=3)
        indexes = [(await anext(found)).index for _ in range(4)]
        await found.aclose()  # type: ignore[attr-defined]
        return indexes

    indexes = asyncio.run(first_of_them())
    assert len(set(indexes)) == 4
    assert most == 3
    assert taken < 12


def test_an_extraction_of_many_goes_on_where_it_was_broken_off(tmp_path: Path) -> None:
    file, asked = tmp_path / "found.jsonl", []

    def counting(request: Request) -> Any:
        asked.append(request.messages[-1].text)
        return reader(request)

    first = extract_many_sync(Scripted(counting), Invoice, {"x": "a", "y": "broken"}, resume=file)
    assert [one.ok for one in first] == [True, False]
    file.write_bytes(
        file.read_bytes() + b'{"format": 1, "mark": "cut'
    )  # as when the process ended while it wrote
    asked.clear()
    again = extract_many_sync(Scripted(counting), Invoice, {"y": "broken", "x": "a", "z": "bb"}, resume=file)
    assert [(one.key, one.ok, one.resumed) for one in again] == [
        ("y", False, False), ("x", True, True), ("z", True, False),
    ]  # fmt: skip
    assert sorted(asked) == ["bb", "broken"]
    assert again[1].output == Invoice(number="a", total=1)
    assert again[1].usage.total_tokens == 15
    asked.clear()
    extract_many_sync(Scripted(counting), OutputType({"type": "object"}), {"x": "a"}, resume=file)
    assert asked == ["a"]  # for another type it is asked for again


def test_no_more_of_a_source_is_read_than_may_be() -> None:
    [found] = extract_many_sync(Scripted(reader), Invoice, [Path("/dev/zero")])
    assert found.problem == "zero has more than 50,000,000 bytes"


def test_a_source_that_cannot_be_read_is_one_failure(tmp_path: Path) -> None:
    found = extract_many_sync(Scripted(reader), Invoice, [tmp_path / "nothing", "a"])
    assert [one.ok for one in found] == [False, True]
    with pytest.raises(ValueError, match="cannot be read: No such file"):
        found[0].output  # noqa: B018


def token(text: str, probability: float, **others: float) -> TokenLogprob:
    top = {text: probability, **others}
    return TokenLogprob(
        text, math.log(probability), tuple((other, math.log(share)) for other, share in top.items())
    )


LABELS = ["spam", "ham", "spoon"]


@pytest.mark.parametrize(
    ("tokens", "written", "expected", "missing"),
    [
        ([token("ham", 0.7, spam=0.2)], "ham", {"ham": 0.7, "spam": 0.2}, 0.1),
        ([token("sp", 0.8, ham=0.1), token("am", 0.5, oon=0.4)], "spam", {"spam": 0.4, "ham": 0.1, "spoon": 0.32}, 0.18),
        ([token('{"result":"', 1.0), token("h", 0.9, sp=0.1), token("am", 1.0), token('"}', 1.0)], "ham", {"ham": 0.9}, 0.1),
        ([token(' "', 1.0), token('ham"', 0.6, **{'spam"': 0.3})], "ham", {"ham": 0.6, "spam": 0.3}, 0.1),
        ([token("nothing of it", 1.0)], "ham", {}, 0.0),
        ([], "ham", {}, 0.0),
    ],
)  # fmt: skip
def test_probabilities_are_sums_over_tokens(
    tokens: list[TokenLogprob], written: str, expected: dict[str, float], missing: float
) -> None:
    found, rest = label_probabilities(tokens, LABELS, written)
    assert {label: round(share, 6) for label, share in found.items() if share} == expected
    assert round(rest, 6) == missing


class WithLogprobs(Scripted):
    """A model whose server gives log-probabilities, or refuses to."""

    target = "vllm"

    def __init__(self, turns: Any, *, refuses: bool = False) -> None:
        super().__init__(turns)
        self.codec, self.refuses = OpenAIChatCodec("vllm"), refuses
        self.asked: list[int | None] = []

    async def stream(self, request: Request) -> Any:
        self.asked.append(request.top_logprobs)
        if self.refuses and request.logprobs:
            raise ModelError("logprobs are not supported with reasoning models", status=400)
        async for chunk in super().stream(request):
            if isinstance(chunk, Response):
                chunk.logprobs = (token("ham", 0.75, spam=0.25),)
            yield chunk


def test_a_label_with_probabilities_where_there_are_some() -> None:
    model = WithLogprobs(["ham"])
    found = classify_sync(model, "Hello", {"spam": "adverts", "ham": "the rest"})
    assert (found.label, found.probability, model.asked) == ("ham", 0.75, [20])
    assert found.probabilities == {"ham": 0.75, "spam": 0.25}
    assert "- spam: adverts" in found.outcome.messages[0].text
    model = WithLogprobs(["ham"])
    model.target = "chat"  # a server of which nothing is known: a call would have no probabilities
    found = classify_sync(model, "Hello", ["spam", "ham"])
    assert (found.probability, found.outcome.rung) == (0.75, "text")
    assert "exactly one of these" in found.outcome.messages[0].text
    refusing = WithLogprobs(["ham"], refuses=True)
    found = classify_sync(refusing, "Hello", ["spam", "ham"])
    assert (found.label, refusing.asked) == ("ham", [20, None])


def test_a_label_that_is_none_of_them_is_asked_for_again() -> None:
    class Kind(enum.Enum):
        SPAM = "spam"
        HAM = "ham"

    found = asyncio.run(classify(Scripted([answer(result="eggs"), answer(result="ham")]), "x", Kind))
    assert (found.label, found.probability, found.outcome.attempts) == ("ham", None, 2)
    with pytest.raises(TypeError, match="labels are several"):
        classify_sync(Scripted([]), "x", "spam")


def test_one_of_several_things() -> None:
    assert choose_sync(Scripted(["large"]), "x", {"small": 1, "large": 2}) == 2
    assert asyncio.run(choose(Scripted(["sorted"]), "x", [sorted, reversed])) is sorted
    with pytest.raises(ValueError, match="two things"):
        choose_sync(Scripted([]), "x", [len, len])


SOURCE = "The  total of the invoice is “12.50”\neuros – due in May."


@pytest.mark.parametrize(
    ("quote", "found"),
    [
        ("total of the invoice", True),
        ('is "12.50" euros - due', True),
        ("total is 12.50", False),
        ("Total of the invoice", False),
    ],
)
def test_a_quote_has_to_stand_in_the_source(quote: str, found: bool) -> None:
    model = Scripted([answer(what="total", proof=quote), answer(what="total", proof="due in May")])
    outcome = extract_sync(model, Fact, SOURCE)
    assert outcome.output.proof == (quote if found else "due in May")
    if not found:
        told = outcome.messages[3].results[0].text
        assert told.splitlines()[1].startswith("- proof: expected words copied from the source")
    begin, end = outcome.output.proof.find_in(SOURCE) or (0, 0)
    assert SOURCE[begin:end].split()[0] == outcome.output.proof.split()[0]


class Remark(BaseModel):
    words: Quote
    reply: "Remark | None" = None


def nested_remark(words: str, depth: int) -> str:
    return '{"words": "the", "reply": ' * depth + json.dumps({"words": words}) + "}" * depth


class OpenRemark(BaseModel, extra="allow"):
    words: str
    __pydantic_extra__: dict[str, Quote]


INVENTED: dict[str, tuple[Any, str]] = {
    "a field of any name": (OpenRemark, '{"words": "the", "more": "invented"}'),
    "nothing but space": (Remark, '{"words": " \\n"}'),
    "nothing but a soft hyphen": (Remark, '{"words": "\\u00ad"}'),
    "a name in an object": (dict[Quote, int], '{"invented": 1}'),
    "a name within": (list[dict[str, dict[Quote, int]]], '[{"x": {"invented": 1}}]'),
    "deep within": (Remark, nested_remark("invented", 150)),
    "a queue": (dict[str, deque[Quote]], '{"a": ["invented"]}'),
}


@each("output, answer", list(INVENTED.values()), ids=list(INVENTED))
def test_no_quote_is_too_small_or_too_deep_to_be_checked(output: Any, answer: str) -> None:
    with pytest.raises(NotFinished, match=r"copied from the source|reply\.reply"):
        extract_sync(Scripted(lambda request: answer), output, "the source")
    deep = extract_sync(Scripted([nested_remark("source", 150)]), Remark, "the source").output
    assert deep.words == "the"


class Part(BaseModel):
    words: Quote
    parts: "list[Part]" = []
    whole: "Part | None" = None

    def model_post_init(self, _: Any) -> None:
        for part in self.parts:
            part.whole = self


def test_quotes_are_checked_in_values_that_know_what_they_stand_in() -> None:
    answers = [json.dumps({"words": "the", "parts": [{"words": words}]}) for words in ("invented", "source")]
    outcome = extract_sync(Scripted(answers), Part, "the source")
    assert outcome.output.parts[0].words == "source"
    assert outcome.output.parts[0].whole is outcome.output


@pytest.mark.parametrize("rung", ["forced tool", "text"])
def test_what_a_model_is_told_of_its_own_quote_is_no_source(rung: Any) -> None:
    made_up = {"what": "x", "proof": "made up by the model"}
    turn: Any = answer(**made_up) if rung == "forced tool" else json.dumps(made_up)
    with pytest.raises(NotFinished):
        extract_sync(Scripted([turn] * 3), OutputType(Fact, rung=rung), SOURCE)


def test_maybe_is_a_value_or_why_there_is_none() -> None:
    turns = [answer(value=None), answer(why_not="no price is named")]
    outcome = extract_sync(Scripted(turns), Maybe[float], "x")
    assert (outcome.output.value, outcome.output.why_not, outcome.attempts) == (None, "no price is named", 2)
    assert extract_sync(Scripted([answer(value=2)]), Maybe[float], "x").output.value == 2


def test_options_reach_the_request_and_others_are_refused() -> None:
    requests: list[Request] = []

    def script(request: Request) -> Any:
        requests.append(request)
        return answer(number="7", total=2)

    extract_sync(
        Scripted(script), Invoice, "x", stop=["END"], logit_bias={"5": 1.0}, top_logprobs=3, max_tokens=9,
        temperature=0.0, messages=[Message.user("before")],
    )  # fmt: skip
    (request,) = requests
    assert (request.stop, request.logit_bias, request.logprobs, request.top_logprobs) == (
        ("END",),
        {"5": 1.0},
        True,
        3,
    )
    assert request.messages[1].text == "before"
    with pytest.raises(TypeError, match="no option 'tools'"):
        extract_sync(Scripted([]), Invoice, "x", tools=[])  # type: ignore[call-arg]


def test_in_an_event_loop_the_sync_twin_says_what_to_do() -> None:
    async def inside() -> None:
        with pytest.raises(RuntimeError, match="without _sync"):
            extract_sync(Scripted([]), Invoice, "x")
        assert (await extract(Scripted([answer(number="1", total=1)]), Invoice, "x")).output.number == "1"

    asyncio.run(inside())
    assert Extracted(0).ok
