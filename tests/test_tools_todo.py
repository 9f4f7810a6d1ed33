"""The plan of the work: the model is told how far it is, the person is shown all of its steps."""

from __future__ import annotations

from toolcrib import Toolbox
from toolcrib.events import StatusChanged
from toolcrib.tools import TodoWrite

STEPS = [
    {"content": "Read the code", "status": "completed"},
    {"content": "Write a test", "status": "in_progress"},
    {"content": "Mend it"},
    {"content": "Ask Ada", "status": "cancelled"},
]


async def test_the_person_is_shown_the_plan_and_the_model_where_it_stands() -> None:
    box = Toolbox([TodoWrite()], autonomy="read_only")
    log = box.events()
    result = await box.call("todo_write", {"todos": STEPS})
    assert result.text == "The plan is shown: 1 of 3 done. In progress: Write a test"
    box.unsubscribe(log)
    shown = [event async for event in log if isinstance(event, StatusChanged)]
    (status,) = [event for event in shown if event.progress]
    assert status.tip == "1 of 3 done: Write a test"
    assert status.result["output"].splitlines() == [
        "[x] Read the code",
        "[>] Write a test",
        "[ ] Mend it",
        "[-] Ask Ada",
    ]
    assert status.result["todos"][2] == {"content": "Mend it", "status": "pending"}


def test_a_plan_may_be_empty_finished_or_wait_for_its_next_step() -> None:
    box = Toolbox([TodoWrite()])

    def said(*steps: tuple[str, str]) -> str:
        todos = [{"content": content, "status": status} for content, status in steps]
        return box.call_sync("todo_write", {"todos": todos}).text

    assert said() == "The plan is shown: no steps. Nothing is left to do."
    assert said(("a", "completed")) == "The plan is shown: 1 of 1 done. Nothing is left to do."
    assert said(("a", "completed"), ("b\nc", "pending")) == "The plan is shown: 1 of 2 done. Next: b⏎c"


def test_a_wrong_step_is_named() -> None:
    box = Toolbox([TodoWrite()])
    result = box.call_sync("todo_write", {"todos": [{"content": "a"}, {"content": "", "status": "finished"}]})
    assert result.is_error and "todos[1].content" in result.text and "todos[1].status" in result.text
    assert "in_progress" in result.text
