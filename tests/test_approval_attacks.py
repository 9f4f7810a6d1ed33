"""Approvers, previews and answers that misbehave: a call runs once, after a yes to just this, or not at all."""

from __future__ import annotations

import asyncio
import json
import logging
import threading
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from toolcrib import Answer, Effect, Toolbox, ToolCall, Verdict, tool
from toolcrib.call import CallKey
from toolcrib.errors import ErrorCode
from toolcrib.prepared import Pending, Ready
from toolcrib.question import Lasting, Preview
from toolcrib.rules import ApprovalStore, Limit, RateLimits
from toolcrib.saved_calls import prepared_to_json
from toolcrib.toolbox import preview as previews

ran: list[str] = []


@tool(effect=Effect.WRITE, secrets=())
async def save(text: str = "") -> str:
    "Save."
    ran.append(text)
    await asyncio.sleep(0.01)
    return "saved"


@pytest.fixture(autouse=True)
def nothing_ran() -> None:
    ran.clear()


async def yes(question: Any) -> Answer:
    return Answer(Verdict.YES)


async def pending_of(box: Toolbox, **arguments: Any) -> Pending:
    prepared = await box.prepare(ToolCall("save", arguments))
    assert isinstance(prepared, Pending)
    return prepared


# -- previews


def fails(given: Any) -> Any:
    raise RuntimeError("no preview today")


def ends_the_program(given: Any) -> Any:
    raise SystemExit(3)


PREVIEWS = {
    "raises": fails,
    "ends the program": ends_the_program,
    "gives nothing": lambda given: None,
    "gives nonsense": lambda given: 5,
    "gives a preview of nonsense": lambda given: Preview(5),  # type: ignore[arg-type]
}


@pytest.mark.parametrize("preview", PREVIEWS.values(), ids=PREVIEWS)
async def test_a_person_is_asked_without_a_preview(preview: Any) -> None:
    asked: list[str] = []

    async def approver(question: Any) -> Answer:
        asked.append(question.preview)
        return Answer(Verdict.YES)

    made = tool(effect=Effect.WRITE, secrets=(), preview=preview)(_write)
    assert (await Toolbox([made], approver=approver).call("_write", {})).text == "written"
    assert asked == [""]


async def test_a_preview_that_never_ends_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(previews, "PREVIEW_TIME", 0.05)
    release = threading.Event()
    asked: list[str] = []

    async def approver(question: Any) -> Answer:
        asked.append(question.preview)
        return Answer(Verdict.NO)

    def preview(given: Any) -> Preview:
        release.wait(60)
        return Preview("at last")

    made = tool(effect=Effect.WRITE, secrets=(), preview=preview)(_write)
    try:
        result = await Toolbox([made], approver=approver).call("_write", {})
    finally:
        release.set()
    assert result.code is ErrorCode.REJECTED
    assert asked == ["(what it would do could not be shown in time)"]


async def test_a_preview_that_hangs_after_the_yes_is_asked_about_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    release, times = threading.Event(), [0]
    asked: list[str] = []

    async def approver(question: Any) -> Answer:
        asked.append(question.preview)
        return Answer(Verdict.YES if len(asked) == 1 else Verdict.NO)

    def preview(given: Any) -> Preview:
        times[0] += 1
        if times[0] > 1:
            release.wait(60)
        return Preview("shown", "digest")

    made = tool(effect=Effect.WRITE, secrets=(), preview=preview)(_write)
    monkeypatch.setattr(previews, "PREVIEW_TIME", 0.3)
    try:
        result = await Toolbox([made], approver=approver).call("_write", {})
    finally:
        release.set()
    assert asked == ["shown", "(what it would do could not be shown in time)"]
    assert result.code is ErrorCode.REJECTED
    assert ran == []


def _write() -> str:
    "Write."
    ran.append("written")
    return "written"


# -- approvers


async def raises(question: Any) -> Answer:
    raise RuntimeError("the approver broke")


def gives(answer: Any) -> Any:
    async def approver(question: Any) -> Any:
        return answer

    return approver


NO_ANSWERS: dict[str, tuple[Any, ErrorCode]] = {
    "raises": (raises, ErrorCode.NOBODY_TO_ASK),
    "nothing": (gives(None), ErrorCode.NOBODY_TO_ASK),
    "a word": (gives("yes, do"), ErrorCode.NOBODY_TO_ASK),
    "truth": (gives(1), ErrorCode.NOBODY_TO_ASK),
    "an answer's data": (gives({"verdict": "yes"}), ErrorCode.NOBODY_TO_ASK),
    "the class": (gives(Answer), ErrorCode.NOBODY_TO_ASK),
    "an unknown verdict": (gives(Answer("maybe")), ErrorCode.REJECTED),  # type: ignore[arg-type]
    "a true verdict": (gives(Answer(True)), ErrorCode.REJECTED),  # type: ignore[arg-type]
    "a no with odd words": (gives(Answer(Verdict.NO, message=5)), ErrorCode.REJECTED),  # type: ignore[arg-type]
    "other arguments that are none": (
        gives(Answer(Verdict.YES, arguments=["rm"])),  # type: ignore[arg-type]
        ErrorCode.REJECTED,
    ),
}


@pytest.mark.promise("policy.md", "No answer is a no.")
@pytest.mark.parametrize(("approver", "code"), NO_ANSWERS.values(), ids=NO_ANSWERS)
async def test_what_is_no_yes_is_a_no(approver: Any, code: ErrorCode) -> None:
    result = await Toolbox([save], approver=approver).call("save", {"text": "x"})
    assert result.code is code
    assert ran == []


@pytest.mark.parametrize("expires", ["tomorrow", True, [1], float("nan"), -1.0])
@pytest.mark.parametrize("lasting", Lasting)
async def test_an_expiry_that_is_no_time_has_passed(expires: Any, lasting: Lasting, tmp_path: Path) -> None:
    asked: list[Any] = []

    async def approver(question: Any) -> Answer:
        asked.append(question)
        return Answer(Verdict.ALWAYS, expires=expires, lasting=lasting)

    store = ApprovalStore(tmp_path / "a.json")
    box = Toolbox([save], approver=approver, approvals=store, project=tmp_path)
    for _ in range(2):
        assert (await box.call("save", {"text": "x"})).text == "saved"
    assert len(asked) == 2
    assert store.all() == []


async def test_an_approval_that_cannot_be_kept_holds_for_this_call(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "file").write_text("")
    store = ApprovalStore(tmp_path / "file" / "a.json")
    asked: list[Any] = []

    async def approver(question: Any) -> Answer:
        asked.append(question)
        return Answer(Verdict.ALWAYS, lasting=Lasting.USER)

    box = Toolbox([save], approver=approver, approvals=store)
    with caplog.at_level(logging.ERROR, "toolcrib"):
        for _ in range(2):
            assert (await box.call("save", {"text": "x"})).text == "saved"
    assert len(asked) == 2
    assert "an approval could not be kept" in caplog.text


# -- answers that come twice, late, or for something else


async def test_an_answer_that_comes_twice_runs_once() -> None:
    box = Toolbox([save])
    prepared = await pending_of(box, text="x")
    results = await asyncio.gather(*(box.execute(prepared, Answer(Verdict.YES)) for _ in range(5)))
    assert ran == ["x"]
    assert all(result is results[0] for result in results)
    assert await box.execute(prepared, Answer(Verdict.YES)) is results[0]
    assert ran == ["x"]


async def test_a_saved_question_that_is_restored_twice_runs_once() -> None:
    box = Toolbox([save])
    pending = await pending_of(box, text="x")
    saved = json.loads(json.dumps(prepared_to_json(pending)))
    other = Toolbox([save])
    for one in (box, other):  # where it was asked, and where it was not
        ran.clear()
        twice = [await one.restore(saved), await one.restore(saved)]
        together = [
            one.execute(prepared, Answer(Verdict.YES)) for prepared in (*twice, await one.restore(saved))
        ]
        results = await asyncio.gather(*together)
        assert ran == ["x"] and len({result.text for result in results}) == 1
    ran.clear()
    assert (await box.execute(pending, Answer(Verdict.YES))).text == results[0].text
    assert ran == []
    refused = await pending_of(box, text="y")
    saved = json.loads(json.dumps(prepared_to_json(refused)))
    await box.execute(refused, Answer(Verdict.NO))
    assert (await box.execute(await box.restore(saved), Answer(Verdict.YES))).is_error
    assert ran == []


def test_answers_from_several_threads_run_once() -> None:
    box = Toolbox([save])
    for turn in range(20):
        prepared = asyncio.run(pending_of(box, text=str(turn)))
        start = threading.Barrier(4)

        def work(prepared: Pending = prepared, start: threading.Barrier = start) -> None:
            start.wait()
            asyncio.run(answer(prepared))

        async def answer(prepared: Pending) -> None:
            await box.execute(prepared, Answer(Verdict.YES))

        threads = [threading.Thread(target=work) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(60)
            assert not thread.is_alive()
    assert ran == [str(turn) for turn in range(20)]


@pytest.mark.promise("security.md", "A call that was denied is not run on a resume or a retry either.")
async def test_no_then_yes_does_not_run() -> None:
    box = Toolbox([save])
    prepared = await pending_of(box, text="x")
    assert (await box.execute(prepared, Answer(Verdict.NO))).code is ErrorCode.REJECTED
    assert (await box.execute(prepared, Answer(Verdict.YES))).code is ErrorCode.REJECTED
    assert ran == []


@pytest.mark.promise("security.md", "A call that was denied is not run on a resume or a retry either.")
async def test_what_was_denied_stays_denied_when_it_is_saved_and_resumed() -> None:
    box = Toolbox([save])
    prepared = await pending_of(box, text="x")
    await box.execute(prepared, Answer(Verdict.NO))
    again = await Toolbox([save]).restore(prepared_to_json(prepared))
    assert (await box.execute(again, Answer(Verdict.YES))).code is ErrorCode.REJECTED
    assert ran == []


async def test_what_ran_does_not_run_again_when_it_is_saved_and_resumed() -> None:
    box = Toolbox([save], autonomy="full")
    prepared = await box.prepare(ToolCall("save", {"text": "x"}))
    await box.execute(prepared)
    again = await box.restore(prepared_to_json(prepared))
    assert (await box.execute(again)).text == "saved"
    assert ran == ["x"]


async def test_an_answer_after_a_cancel_is_late() -> None:
    asked = asyncio.Event()

    async def approver(question: Any) -> Answer:
        asked.set()
        await asyncio.sleep(60)
        return Answer(Verdict.YES)

    box = Toolbox([save], approver=approver)
    prepared = await pending_of(box, text="x")
    waiting = asyncio.create_task(box.settle(prepared))
    await asked.wait()
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    assert (await box.execute(prepared, Answer(Verdict.YES))).code is ErrorCode.CANCELLED
    assert ran == []


async def test_a_cancel_while_an_answer_is_checked_leaves_nobody_waiting() -> None:
    looking, release = asyncio.Event(), threading.Event()
    loop = asyncio.get_running_loop()

    def preview(given: Any) -> Preview:
        loop.call_soon_threadsafe(looking.set)
        release.wait(60)
        return Preview("shown", "digest")

    made = tool(effect=Effect.WRITE, secrets=(), preview=preview)(_write)
    box = Toolbox([made])
    prepared = await box.prepare(ToolCall("_write", {}))
    assert isinstance(prepared, Pending)
    prepared = replace(prepared, question=replace(prepared.question, digest="digest"))
    first = asyncio.create_task(box.execute(prepared, Answer(Verdict.YES)))
    await looking.wait()
    second = asyncio.create_task(box.execute(prepared, Answer(Verdict.YES)))
    await asyncio.sleep(0)
    first.cancel()
    with pytest.raises(asyncio.CancelledError):
        await first
    release.set()
    assert (await asyncio.wait_for(second, 30)).code is ErrorCode.CANCELLED
    assert ran == []


async def test_an_answer_to_another_question_does_not_fit(tmp_path: Path) -> None:
    """A saved call whose arguments were exchanged is not what was asked about."""
    box = Toolbox([save])
    data = prepared_to_json(await pending_of(box, text="harmless"))
    other = prepared_to_json(await pending_of(box, text="harmful"))
    data["call"] = other["call"]
    restored = await box.restore(data)
    assert (await box.execute(restored, Answer(Verdict.YES))).code is ErrorCode.TOOL_CHANGED
    assert ran == []


async def test_a_tool_that_changed_meanwhile_is_not_run() -> None:
    box = Toolbox([save])
    data = prepared_to_json(await pending_of(box, text="x"))

    @tool(effect=Effect.WRITE, secrets=(), name="save")
    async def other(text: str = "") -> str:
        "Save, and send it elsewhere."
        ran.append("other")
        return "sent"

    changed = Toolbox([other])
    assert (await changed.execute(await changed.restore(data), Answer(Verdict.YES))).is_error
    prepared = await pending_of(box, text="x")
    box.add(other, override=True)
    assert (await box.execute(prepared, Answer(Verdict.YES))).code is ErrorCode.TOOL_CHANGED
    assert ran == []


async def test_an_approval_that_expired_before_the_call_was_run_does_not_count() -> None:
    now = [1000.0]

    async def approver(question: Any) -> Answer:
        return Answer(Verdict.ALWAYS, expires=2000.0)

    box = Toolbox([save], approver=approver, clock=lambda: now[0])
    await box.call("save", {"text": "x"})
    prepared = await box.prepare(ToolCall("save", {"text": "x"}))
    assert type(prepared) is Ready
    now[0] = 3000.0
    assert (await box.execute(prepared)).is_error
    assert ran == ["x"]


# -- limits


@pytest.mark.promise("policy.md", "If two calls run side by side, one of them gets the last place.")
async def test_the_last_place_is_taken_once() -> None:
    box = Toolbox([save], autonomy="full", limits=RateLimits([Limit(1, seconds=60), Limit(1)]))
    results = await asyncio.gather(*(box.call("save", {"text": str(n)}) for n in range(20)))
    assert [result.code for result in results].count(ErrorCode.RATE_LIMITED) == 19
    assert len(ran) == 1


@pytest.mark.promise("policy.md", "If two calls run side by side, one of them gets the last place.")
def test_the_last_place_is_taken_once_by_threads() -> None:
    limits = RateLimits([Limit(100, seconds=60)])
    taken: list[str] = []
    start = threading.Barrier(8)

    def work() -> None:
        start.wait()
        taken.extend(limits.take("r", "x") for _ in range(50))

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert taken.count("") == 100


@pytest.mark.promise("policy.md", "Calls that were refused, denied, invalid or not recorded do not count.")
async def test_what_was_not_run_counts_for_no_limit() -> None:
    answers = [Answer(Verdict.NO), None, Answer(Verdict.YES)]

    async def approver(question: Any) -> Answer | None:
        return answers.pop(0)

    box = Toolbox([save], approver=approver, limits=RateLimits([Limit(1)]))
    assert (await box.call("save", {"txt": 1})).code is ErrorCode.INVALID_ARGUMENTS
    codes = [(await box.call("save", {"text": "x"})).code for _ in range(3)]
    assert codes == [ErrorCode.REJECTED, ErrorCode.NOBODY_TO_ASK, None]
    prepared = await box.prepare(ToolCall("save", {"text": "y"}), key=CallKey("other", 0, 0))
    del prepared
    assert ran == ["x"]


@pytest.mark.promise("policy.md", "Calls made by a tool count for the run of that tool.")
async def test_what_a_tool_calls_counts_to_its_run() -> None:
    from toolcrib import Context

    @tool(effect=Effect.WRITE, secrets=())
    async def outer(ctx: Context) -> str:
        "Call on."
        return ",".join([(await ctx.call("save", text=str(n))).code or "ok" for n in range(3)])

    box = Toolbox([save, outer], autonomy="full", limits=RateLimits([Limit(3, ("save", "outer"))]))
    assert (await box.call("outer", {})).text == "ok,ok,rate_limited"
    assert ran == ["0", "1"]


async def test_one_answer_is_not_anothers(tmp_path: Path) -> None:
    box = Toolbox([save])
    one, two = await pending_of(box, text="one"), await pending_of(box, text="two")
    two = replace(two, question=one.question)
    await box.execute(two, Answer(Verdict.ALWAYS))
    assert isinstance(await box.prepare(ToolCall("save", {"text": "one"})), Pending), (
        "it was said of the other"
    )
    assert isinstance(await box.prepare(ToolCall("save", {"text": "three"})), Pending)


@pytest.mark.parametrize("autonomy", ["supervised", "full"])
@pytest.mark.parametrize("command", ["ls", "touch a; touch b", "echo $(date) | cat"])
async def test_one_command_is_one_question(autonomy: str, command: str, tmp_path: Path) -> None:
    """Without a sandbox both the policy and the tool itself want a yes."""
    from toolcrib.command.sandbox import NoSandbox
    from toolcrib.tools import Workspace
    from toolcrib.tools.shell import Shell

    asked: list[Any] = []

    async def approver(question: Any) -> Answer:
        asked.append(question.action)
        return Answer(Verdict.YES)

    box = Toolbox(
        [Shell(Workspace(tmp_path), sandbox=NoSandbox(wanted=False))], autonomy=autonomy, approver=approver
    )
    assert not (await box.call("shell", {"command": command})).is_error
    assert len(asked) == 1
