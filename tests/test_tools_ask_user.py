"""Questions of a model to the user: through the approver, a terminal, a form, a program, or answered days later."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.cases import each
from toolcrib import Agent, Answer, Question, Toolbox, Verdict
from toolcrib.agent import Outcome
from toolcrib.cli.answers import answer_from, read_reply
from toolcrib.cli.question_text import input_lines, input_prompt
from toolcrib.events import QuestionAnswered, QuestionAsked
from toolcrib.mcp import answer_to, elicitation
from toolcrib.models import Scripted
from toolcrib.tools import AskUser

COLOURS = {"question": "Which colour?", "options": ["red", "blue"]}
NOBODY = "Nobody answered."


@each(
    "arguments, given, said",
    [
        (COLOURS, Answer(Verdict.YES, chosen=("blue",)), "The user chose: blue"),
        (
            COLOURS,
            Answer(Verdict.YES, "a dark one", chosen=("blue",)),
            "The user chose: blue\nThe user says: a dark one",
        ),
        (COLOURS, Answer(Verdict.YES, "green"), "The user says: green"),
        (COLOURS, Answer(Verdict.YES, chosen=("red", "blue")), "The user chose: red"),
        (
            {**COLOURS, "several": True},
            Answer(Verdict.YES, chosen=("red", "blue")),
            "The user chose: red; blue",
        ),
        ({"question": "Why?"}, Answer(Verdict.YES, "Because."), "The user says: Because."),
        (COLOURS, Answer(Verdict.YES, chosen=("pink",)), NOBODY),
        (COLOURS, "yes", NOBODY),
        (COLOURS, True, NOBODY),
        (COLOURS, None, NOBODY),
        (COLOURS, Answer(Verdict.NO), "The user does not want to answer this."),
        (COLOURS, Answer(Verdict.NO, "ask Bob"), "They say: ask Bob"),
    ],
)
def test_the_model_is_told_what_the_user_says(arguments: dict[str, Any], given: Any, said: str) -> None:
    asked: list[Question] = []

    def approver(question: Question) -> Any:
        asked.append(question)
        return given

    result = Toolbox([AskUser()], approver=approver).call_sync("ask_user", arguments)
    assert said in result.text and result.is_error == (
        not said.startswith("The user chose") and "says" not in said
    )
    (question,) = asked
    assert (question.kind, question.action, question.options) == (
        "input",
        arguments["question"],
        tuple(arguments.get("options", ())),
    )


def test_without_anybody_to_ask_the_model_is_told_so_at_once() -> None:
    result = Toolbox([AskUser()], autonomy="full").call_sync("ask_user", COLOURS)
    assert result.is_error and NOBODY in result.text


@each(
    "arguments, words",
    [
        ({"question": "  "}, "question is empty"),
        ({"question": "x", "options": ["a", "a"]}, "same"),
        ({"question": "x", "options": ["a", " "]}, "1 to 200"),
        ({"question": "x", "options": list("abcdefghijk")}, "options"),
        ({"options": ["a"]}, "question"),
    ],
)
def test_a_question_that_cannot_be_asked_is_refused(arguments: dict[str, Any], words: str) -> None:
    def approver(question: Question) -> str:
        raise AssertionError("nobody is asked")

    result = Toolbox([AskUser()], approver=approver).call_sync("ask_user", arguments)
    assert result.is_error and words in result.text


async def test_listeners_see_the_question_and_the_reply() -> None:
    box = Toolbox([AskUser()], approver=lambda question: Answer(Verdict.YES, by="ada", chosen=("red",)))
    log = box.events()
    await box.call("ask_user", COLOURS)
    box.unsubscribe(log)
    events = [event async for event in log]
    (asked,) = [event for event in events if isinstance(event, QuestionAsked)]
    (answered,) = [event for event in events if isinstance(event, QuestionAnswered)]
    assert asked.question.to_dict()["options"] == ["red", "blue"]
    assert (answered.verdict, answered.chosen, answered.by) == ("yes", ("red",), "ada")


ASKS = {
    "calls": [
        {"name": "ask_user", "arguments": COLOURS},
        {"name": "ask_user", "arguments": {"question": "Why?"}},
    ]
}


def agent(*turns: dict[str, Any]) -> Agent[None]:
    return Agent(Scripted(turns), [AskUser()], on_question="suspend", completion_tool=False)


@pytest.mark.parametrize("at_once", [True, False])
def test_a_run_waits_for_replies_in_another_process(at_once: bool) -> None:
    outcome = agent(ASKS).run_sync("Paint it")
    assert outcome.reason == "waiting" and [question.kind for question in outcome.questions] == [
        "input",
        "input",
    ]
    replies = {
        "Which colour?": {"verdict": "yes", "chosen": ["blue"]},
        "Why?": {"verdict": "yes", "message": "Old."},
    }

    def later(outcome: Outcome, count: int) -> Outcome:
        saved = json.loads(json.dumps(outcome.to_json()))
        given = {one.id: answer_from(replies[one.action], by="ada") for one in outcome.questions[:count]}
        return agent({"text": "Done."}).resume_sync(saved, given)

    if not at_once:
        outcome = later(outcome, 1)
        assert outcome.reason == "waiting" and len(outcome.questions) == 1
    outcome = later(outcome, 2)
    told = [
        part.result.text for message in outcome.messages for part in message.parts if hasattr(part, "result")
    ]
    assert outcome.reason == "answered" and told == ["The user chose: blue", "The user says: Old."]


QUESTION = Question(
    key=None,  # type: ignore[arg-type]
    tool="ask_user",
    action="Which colour?\nIt is for \x1b[31mthe door.",
    reason="the model asks",
    arguments={},
    effect="read",
    fingerprint="f",
    kind="input",
    options=("red", "blue"),
)


@each(
    "line, several, chosen, words",
    [
        ("2", False, ("blue",), ""),
        (" RED ", False, ("red",), ""),
        ("3", False, (), "3"),
        ("1 2", True, ("red", "blue"), ""),
        ("1,2", True, ("red", "blue"), ""),
        ("1 and 2", True, (), "1 and 2"),
        ("1 2", False, (), "1 2"),
        ("dark green", False, (), "dark green"),
        ("²", False, (), "²"),
    ],
)
def test_a_typed_line_is_a_choice_or_words(
    line: str, several: bool, chosen: tuple[str, ...], words: str
) -> None:
    reply = read_reply(line, QUESTION.options, several=several)
    assert (reply.verdict, reply.chosen, reply.message) == (Verdict.YES, chosen, words)
    assert not read_reply("", QUESTION.options, several=several).allows
    assert not read_reply(None, QUESTION.options, several=several).allows


def test_a_terminal_shows_the_question_with_its_options_and_no_control_characters() -> None:
    text = "\n".join(line for _, line in input_lines(QUESTION))
    assert "Which colour?" in text and "1. red" in text and "2. blue" in text and "\x1b" not in text
    assert "1-2" in input_prompt(QUESTION)


def test_a_form_offers_the_options_and_takes_words() -> None:
    from dataclasses import replace

    one, many = QUESTION, replace(QUESTION, several=True)
    form = elicitation(one)
    assert form["requestedSchema"]["properties"]["choice"]["enum"] == ["red", "blue"]
    assert answer_to(one, {"action": "accept", "content": {"choice": "blue"}}) == Answer(
        Verdict.YES, chosen=("blue",)
    )
    given = answer_to(one, {"action": "accept", "content": {"choice": "pink", "words": " none "}})
    assert given == Answer(Verdict.YES, "none")
    assert list(elicitation(many)["requestedSchema"]["properties"]) == ["option_1", "option_2", "words"]
    given = answer_to(many, {"action": "accept", "content": {"option_1": True, "option_2": True}})
    assert given is not None and given.chosen == ("red", "blue")
    for result, verdict in (
        ({"action": "accept", "content": {}}, Verdict.NO),
        ({"action": "decline"}, Verdict.NO),
    ):
        refused = answer_to(one, result)
        assert refused is not None and refused.verdict is verdict
    assert answer_to(one, {"action": "cancel"}) is None
