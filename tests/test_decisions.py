"""Decisions: what is sent to each server and read back, by the SDKs' own types where they are; chat models instead."""

from __future__ import annotations

import asyncio
import json
import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from openai.types import Decision
from openai.types.decision_create_params import DecisionCreateParams
from pydantic import TypeAdapter

from tests.cases import each
from tests.test_fuzz_codecs import JUNK, paths, put
from tests.test_model_http import as_json, serving
from toolcrib.agent import NotFinished
from toolcrib.codecs import OpenAIChatCodec
from toolcrib.content import Image
from toolcrib.decisions import (
    ChoiceQuestion,
    DecisionModel,
    DecisionReviewer,
    Predicate,
    ScoreQuestion,
    decide,
    decide_sync,
    resolve_decision_model,
)
from toolcrib.decisions.wire import FORMATS, read_decisions
from toolcrib.extraction import choose, classify
from toolcrib.messages import Message
from toolcrib.models import ModelError, Scripted
from toolcrib.models.openai import OpenAIChat

QUESTIONS = {
    "refund": Predicate("The customer wants money back", "they ask for a refund", "anything else"),
    "team": ChoiceQuestion("Who answers?", {"billing": "money", "support": ""}),
    "urgency": ScoreQuestion("How urgent is it?", ["can wait", "this week", "now"]),
}
NAMED = {  # as System One and Gemini answer
    "refund": {"type": "noul", "noul": 0.9},
    "team": {
        "type": "choice",
        "choice": "billing",
        "confidence": 0.8,
        "probabilities": {"billing": 0.8, "support": 0.2},
    },
    "urgency": {
        "type": "score",
        "score": 1.7,
        "confidence": 0.7,
        "probabilities": {"0": 0.1, "1": 0.1, "2": 0.8},
        "legend": {"0": "can wait", "1": "this week", "2": "now"},
    },
}
LISTED = [  # as OpenAI answers
    {"type": "predicate", "name": "refund", "probability": 0.9},
    {
        "type": "choice",
        "name": "team",
        "choice": "billing",
        "confidence": 0.8,
        "probabilities": [
            {"value": "billing", "probability": 0.8},
            {"value": "support", "probability": 0.2},
        ],
    },
    {
        "type": "score",
        "name": None,
        "score": 1.7,
        "confidence": 0.7,
        "probabilities": [
            {"label": "can wait", "probability": 0.1, "value": 0},
            {"label": "this week", "probability": 0.1, "value": 1},
            {"label": "now", "probability": 0.8, "value": 2},
        ],
    },
]
USAGE = {
    "input_tokens": 120,
    "input_tokens_details": {"cached_tokens": 20, "cache_write_tokens": 0},
    "output_tokens": 3,
    "output_tokens_details": {"reasoning_tokens": 0},
    "total_tokens": 123,
}
BODIES = {
    "openai-decisions": {"answers": LISTED, "model": "m-1", "usage": USAGE},
    "gemini-decisions": {"answers": NAMED, "usage": {"total_input_tokens": 120, "total_output_tokens": 3}},
    "systemone": {"answers": NAMED, "model": "m-1", "usage": {"input_tokens": 120, "output_tokens": 3}},
}


@each("server", BODIES)
def test_all_questions_go_in_one_request_and_come_back_with_calibrated_probabilities(server: str) -> None:
    async def ask() -> None:
        async with serving(as_json(BODIES[server])) as peer:
            model = DecisionModel(
                "m", server, base_url=f"http://127.0.0.1:{peer.port}/v1", api_key="a-key-of-ours"
            )
            async with model:
                found = await decide(model, "Give me my money back now!", QUESTIONS)
        sent = json.loads(peer.bodies[0])
        assert peer.connections == len(peer.bodies) == 1
        path = "/v1/systemone" if server == "systemone" else "/v1/decisions"
        assert peer.heads[0].startswith(f"POST {path} ")
        assert "a-key-of-ours" in peer.heads[0]
        assert sent["model"] == ("models/m" if server == "gemini-decisions" else "m")
        assert sent["state" if server == "systemone" else "input"] == "Give me my money back now!"
        if server == "openai-decisions":
            TypeAdapter(DecisionCreateParams).validate_python(sent, strict=True, extra="forbid")
            Decision.model_validate(BODIES[server])
        else:
            assert sent["questions"] == {
                "refund": {
                    "type": "noul",
                    "instructions": "The customer wants money back",
                    "criteria": {"true": "they ask for a refund", "false": "anything else"},
                },
                "team": {
                    "type": "choice",
                    "instructions": "Who answers?",
                    "criteria": {"billing": "money", "support": ""},
                },
                "urgency": {
                    "type": "score",
                    "instructions": "How urgent is it?",
                    "criteria": ["can wait", "this week", "now"],
                },
            }
        refund, team, urgency = (found[name] for name in QUESTIONS)
        assert all(one.calibrated and not one.problem for one in (refund, team, urgency))
        assert (refund.value, refund.probability) == (True, 0.9)
        assert (team.value, team.probability) == ("billing", 0.8)
        assert urgency.value == 1.7
        assert urgency.probabilities == {"can wait": 0.1, "this week": 0.1, "now": 0.8}
        assert (found.usage.input_tokens, found.usage.output_tokens) == (120, 3)

    asyncio.run(ask())


def test_a_conversation_is_sent_as_each_server_takes_it() -> None:
    messages = [Message.system("Be fair."), Message.user("Hi"), Message.assistant("Hello.")]
    sent = FORMATS["openai"].body("m", messages, QUESTIONS)
    TypeAdapter(DecisionCreateParams).validate_python(sent, strict=True, extra="forbid")
    assert [(item["role"], item["content"]) for item in sent["input"]] == [
        ("system", "Be fair."),
        ("user", "Hi"),
        ("assistant", "Hello."),
    ]
    text = "system: Be fair.\n\nuser: Hi\n\nassistant: Hello."
    assert FORMATS["gemini"].body("m", messages, QUESTIONS)["input"] == text
    assert FORMATS["systemone"].body("m", messages, QUESTIONS)["state"] == text
    assert FORMATS["systemone"].body("m", {"lead": [1]}, QUESTIONS)["state"] == {"lead": [1]}
    with pytest.raises(TypeError, match="decides on texts only"):
        FORMATS["systemone"].body("m", [Message.user(Image.of(b"GIF89a"))], QUESTIONS)


JSON = st.recursive(
    st.none() | st.booleans() | st.floats() | st.integers() | st.text(max_size=9),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(
        st.sampled_from(["type", "noul", "probability", "choice", "score", "probabilities", "value", "label", "team"])
        | st.text(max_size=9), inner, max_size=4),
    max_leaves=12,
)  # fmt: skip


@given(st.sampled_from(sorted(FORMATS)), JSON, st.data())
def test_whatever_a_server_answers_each_question_has_a_sound_answer_or_a_problem(
    form: str, junk: Any, data: Any
) -> None:
    answers: Any = data.draw(JSON | st.fixed_dictionaries(dict.fromkeys(QUESTIONS, JSON)) | st.lists(JSON))
    found = read_decisions(FORMATS[form], {"answers": answers, "usage": junk, "model": junk}, QUESTIONS)
    assert found.answers.keys() == QUESTIONS.keys()
    for name, answer in found.answers.items():
        assert (answer.value is None) == bool(answer.problem)
        assert all(math.isfinite(value) and 0 <= value <= 1 for value in answer.probabilities.values())
        if name == "team" and answer.value is not None:
            assert answer.value in ("billing", "support")


@each("server", list(BODIES))
def test_a_wrong_value_anywhere_is_a_problem_of_its_question(server: str) -> None:
    form = server.removesuffix("-decisions")
    for path in paths(BODIES[server]):
        for junk in (*JUNK, -5, -0.5, "9" * 5_000):
            found = read_decisions(FORMATS[form], put(BODIES[server], path, junk), QUESTIONS)
            assert found.answers.keys() == QUESTIONS.keys()
            counts = (found.usage.input_tokens, found.usage.output_tokens, found.usage.cache_read_tokens)
            assert all(0 <= count < 10**12 for count in counts), (path, junk)


@each("cost", [-1.0, math.nan, math.inf, 10**400, True, "1", None])
def test_no_server_gives_a_budget_back(cost: Any) -> None:
    body = {**BODIES["systemone"], "usage": {"input_tokens": 5, "output_tokens": 10**400, "cost": cost}}
    usage = read_decisions(FORMATS["systemone"], body, QUESTIONS).usage
    assert (usage.cost, usage.input_tokens, usage.output_tokens) == (None, 5, 0)
    chat = {"choices": [{"message": {"content": "x"}, "finish_reason": "stop"}]}
    chat["usage"] = {"prompt_tokens": 5, "completion_tokens": 10**400, "cost": cost}  # type: ignore[assignment]
    read = OpenAIChatCodec("openrouter").response(chat).usage
    assert (read.cost, read.input_tokens, read.output_tokens) == (None, 5, 0)


def test_a_question_that_the_model_declines_leaves_the_others() -> None:
    body = {"answers": [{"type": "refusal", "name": "refund"}, *LISTED[1:]]}
    found = read_decisions(FORMATS["openai"], body, QUESTIONS)
    assert found["refund"].value is None and "declined" in found["refund"].problem
    assert found["team"].value == "billing"
    short = read_decisions(FORMATS["openai"], {"answers": LISTED[:1]}, QUESTIONS)
    assert "no answer" in short["team"].problem
    other = read_decisions(FORMATS["openai"], {"answers": [LISTED[1]]}, QUESTIONS)
    assert other["refund"].problem  # an answer to another question is no answer


def test_errors_say_what_a_person_can_do_and_hold_no_key() -> None:
    async def ask() -> None:
        refusal = as_json({"error": {"message": "no such model, a-key-of-ours"}}, status=404)
        async with serving(refusal) as peer:
            url = f"http://127.0.0.1:{peer.port}/v1"
            model = DecisionModel("m", "openai-decisions", base_url=url, api_key="a-key-of-ours")
            async with model:
                with pytest.raises(
                    ModelError, match="openai-decisions:m answered 404: no such model"
                ) as told:
                    await decide(model, "x", QUESTIONS)
        assert "a-key-of-ours" not in str(told.value)
        async with serving(as_json({"object": "list"})) as peer:
            model = DecisionModel("m", base_url=f"http://127.0.0.1:{peer.port}/v1")
            async with model:
                with pytest.raises(ModelError, match="expected answers to the questions"):
                    await decide(model, "x", QUESTIONS)

    asyncio.run(ask())


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: Predicate(" "), "must be a text"),
        (lambda: ChoiceQuestion("?", "ab"), "must be texts"),
        (lambda: ChoiceQuestion("?", ["a"]), "2 to 255 different options, got 1"),
        (lambda: ChoiceQuestion("?", ["a", "a"]), "different options"),
        (lambda: ScoreQuestion("?", ["a", ""]), "must be texts"),
        (lambda: DecisionModel("m", "nobody"), "known are openai-decisions"),
        (lambda: decide_sync(DecisionModel("m"), "x", {}), "1 to 400 questions, got 0"),
        (
            lambda: decide_sync(DecisionModel("m"), "x", {"q": ScoreQuestion("?", map(str, range(11)))}),
            "'q' has 11 levels; this server takes 10",
        ),
    ],
)  # fmt: skip
def test_what_cannot_be_asked_is_said_before_anything_is_sent(make: Any, words: str) -> None:
    with pytest.raises((TypeError, ValueError), match=words):
        make()


def test_a_name_says_which_server_decides(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "k" * 20)
    made = resolve_decision_model("openai-decisions:gpt-6-luna")
    assert made is not None and made.name == "openai-decisions:gpt-6-luna"
    assert made._headers() == {"authorization": "Bearer " + "k" * 20}
    # a key from the environment goes nowhere but to its own server
    assert DecisionModel("m", "openai-decisions", base_url="http://127.0.0.1:1/v1")._headers() == {}
    assert resolve_decision_model("openai:gpt-5") is None
    monkeypatch.delenv("OPENAI_API_KEY")
    with pytest.raises(ModelError, match="no key for openai-decisions:m: set OPENAI_API_KEY"):
        decide_sync("openai-decisions:m", "x", QUESTIONS)


def test_a_chat_model_answers_without_probabilities_and_says_so() -> None:
    # each question is asked by itself, in any order, so one script has to fit all
    model = Scripted(["true"])
    found = decide_sync(model, "Give me my money back!", {"refund": QUESTIONS["refund"]})
    answer = found["refund"]
    assert (answer.value, answer.probability, answer.calibrated) == (True, None, False)
    level = decide_sync(Scripted(["now"]), "x", {"urgency": QUESTIONS["urgency"]})["urgency"]
    assert (level.value, dict(level.probabilities)) == (2.0, {})
    silent = decide_sync(Scripted(["neither", "of", "them"]), "x", {"team": QUESTIONS["team"]})["team"]
    assert silent.value is None and silent.problem


def test_the_probabilities_of_a_chat_models_tokens_are_not_called_calibrated() -> None:
    def chat(word: str, others: dict[str, float]) -> Any:
        top = [{"token": name, "logprob": math.log(value)} for name, value in others.items()]
        return as_json({
            "choices": [{
                "index": 0,
                "message": {"role": "assistant", "content": word},
                "finish_reason": "stop",
                "logprobs": {"content": [{"token": word, "logprob": math.log(others[word]), "top_logprobs": top}]},
            }],
            "usage": {"prompt_tokens": 10, "completion_tokens": 1, "total_tokens": 11},
        })  # fmt: skip

    async def ask() -> None:
        async with serving(chat("billing", {"billing": 0.6, "support": 0.3, "Well": 0.1})) as peer:
            model = OpenAIChat("m", base_url=f"http://127.0.0.1:{peer.port}/v1", provider="vllm", api_key="k")
            async with model:
                found = await decide(model, "x", {"team": QUESTIONS["team"]})
        answer = found["team"]
        assert (answer.value, answer.calibrated) == ("billing", False)
        assert answer.probability == pytest.approx(2 / 3)
        assert answer.missing == pytest.approx(0.1)
        assert found.usage.input_tokens == 10

    asyncio.run(ask())


def test_labels_and_choices_of_an_extraction_are_decided_where_the_model_decides() -> None:
    async def ask(answer: dict[str, Any]) -> Any:
        async with serving(as_json({"answers": {"label": {"type": "choice", **answer}}})) as peer:
            model = DecisionModel("m", base_url=f"http://127.0.0.1:{peer.port}/v1")
            async with model:
                found = await classify(model, "You charged me twice.", {"billing": "money", "support": ""})
                thing = await choose(model, "You charged me twice.", {"billing": 1, "support": 2})
        assert json.loads(peer.bodies[0])["questions"]["label"]["criteria"] == {
            "billing": "money",
            "support": "",
        }
        return found, thing

    found, thing = asyncio.run(ask({"choice": "billing", "probabilities": {"billing": 0.8, "support": 0.2}}))
    assert (found.label, found.probability, found.calibrated, thing) == ("billing", 0.8, True, 1)
    assert found.outcome.output == "billing"
    with pytest.raises(NotFinished, match=r"did not answer: .*cannot be read"):
        asyncio.run(ask({"choice": "nobody", "probabilities": {}}))
    with pytest.raises(NotFinished, match="the model failed"):
        asyncio.run(
            classify(DecisionModel("m", base_url="http://127.0.0.1:1", max_retries=0), "x", ["a", "b"])
        )


def test_a_decision_model_is_no_agents_model() -> None:
    from toolcrib import Agent

    outcome = Agent(DecisionModel("m"), []).run_sync("Hello")
    assert outcome.reason == "model_error" and "a decision model writes no text" in outcome.detail


def test_a_reviewer_says_yes_from_its_threshold_on() -> None:
    from toolcrib import Agent, Effect, tool

    ran: list[str] = []

    @tool(effect=Effect.WRITE, secrets=())
    def save(text: str) -> str:
        """Save a text."""
        ran.append(text)
        return "saved"

    async def ask(probability: float) -> dict[str, Any]:
        body = {"answers": {"wanted": {"type": "noul", "noul": probability}}}
        async with serving(as_json(body)) as peer:
            model = DecisionModel("m", base_url=f"http://127.0.0.1:{peer.port}/v1")
            async with model:
                script = [{"calls": [{"name": "save", "arguments": {"text": "a"}}]}, {"text": "Done."}]
                agent = Agent(Scripted(script), [save], reviewer=DecisionReviewer(model))
                await agent.run("Save the text a.")
        sent: dict[str, Any] = json.loads(peer.bodies[0])["state"]
        return sent

    sent = asyncio.run(ask(0.96))
    assert ran == ["a"]
    assert sent["user_wrote"] == ["Save the text a."] and '"save"' in sent["call"]
    asyncio.run(ask(0.94))
    assert ran == ["a"]  # the person was asked, and there is none
