"""Transcript files that were cut, torn, written by hand or on a full disk; and conversations that go on from them."""

from __future__ import annotations

import errno
import itertools
import json
import os
import random
from collections.abc import Callable
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

import pytest

from tests.command_line import toolcrib
from toolcrib import Agent, Effect, tool
from toolcrib.agent import Reason, Run, TranscriptFile, read_transcript, scan_transcript
from toolcrib.call import CallKey, ToolCall
from toolcrib.events import Notice
from toolcrib.mending import NO_RESULT, mend
from toolcrib.messages import Message, Request, ResultPart, Usage, messages_to_json
from toolcrib.models import Scripted
from toolcrib.result import ToolResult


@tool(effect=Effect.READ, secrets=())
def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


def calls(*pairs: tuple[int, int]) -> dict[str, Any]:
    return {"calls": [{"name": "add", "arguments": {"a": a, "b": b}} for a, b in pairs]}


def agent_of(*turns: Any, **options: Any) -> Agent:
    return Agent(Scripted(list(turns)), [add], **options)


async def written(path: Path) -> list[Message]:
    """A conversation in a file, its results in the order of the calls; a run writes them as they come."""
    agent = agent_of(calls((1, 2), (3, 4), (5, 6)), calls((7, 8)), "Sums.", instructions="Be brief.")
    outcome = await agent.run("Add all.")
    file = TranscriptFile(path)
    file.conversation(outcome.messages)
    file.close()
    return outcome.messages


def texts_of(messages: list[Message]) -> list[str]:
    return [
        part.result.text for message in messages for part in message.parts if isinstance(part, ResultPart)
    ]


# -- instructions of a conversation that goes on


def systems(seen: list[Request]) -> list[list[str]]:
    return [[message.text for message in request.messages if message.role == "system"] for request in seen]


EARLIER = [Message.system("old"), Message.user("a"), Message.assistant("b")]


@pytest.mark.parametrize(
    ("instructions", "expected"),
    [("new", ["new"]), ("", ["old"]), (lambda: "made", ["made"]), (lambda: "", [])],
)
async def test_an_agents_own_instructions_count(instructions: Any, expected: list[str]) -> None:
    seen: list[Request] = []

    def answer(request: Request) -> Any:
        seen.append(Request(list(request.messages)))
        return calls((1, 2)) if len(seen) == 1 else "done"

    agent = Agent(Scripted(answer), [add], instructions=instructions)
    outcome = await agent.run("c", messages=EARLIER)
    assert systems(seen) == [expected, expected]
    assert [message.text for message in outcome.messages if message.role == "system"] == expected
    assert EARLIER[0].text == "old"


async def test_instructions_are_asked_for_once_a_turn() -> None:
    for earlier in ([], EARLIER):
        asked: list[int] = []

        async def instructions(asked: list[int] = asked) -> str:
            asked.append(1)
            return f"turn {len(asked)}"

        seen: list[list[str]] = []

        def answer(request: Request, seen: list[list[str]] = seen) -> Any:
            seen.append([message.text for message in request.messages if message.role == "system"])
            return calls((1, 2)) if len(seen) < 3 else "done"

        await Agent(Scripted(answer), [add], instructions=instructions).run("x", messages=earlier)
        assert seen == [["turn 1"], ["turn 2"], ["turn 3"]]
        assert len(asked) == 3


async def test_all_instructions_at_the_head_are_replaced_and_later_ones_stay() -> None:
    earlier = [Message.system("1"), Message.system("2"), Message.user("a"), Message.system("later")]
    outcome = await agent_of("x", instructions="new").run("b", messages=earlier)
    assert [message.text for message in outcome.messages] == ["new", "a", "later", "b", "x"]


async def test_a_hint_leaves_the_instructions_that_were_there() -> None:
    agent = agent_of("x", stats_hint=True)
    agent.toolbox.stats_hint = lambda: "hint"  # type: ignore[method-assign]
    outcome = await agent.run("c", messages=EARLIER)
    assert [message.text for message in outcome.messages][:3] == ["old", "hint", "a"]


async def test_instructions_that_are_no_text_are_refused() -> None:
    with pytest.raises(TypeError, match="instructions are a text, or a function"):
        agent_of(instructions=["Be brief."])
    with pytest.raises(TypeError, match="instructions: expected a text, got NoneType"):
        await agent_of("x", instructions=lambda: None).run("c")


async def test_replaced_instructions_are_in_the_file(tmp_path: Path) -> None:
    path = tmp_path / "t.jsonl"
    await written(path)
    file = TranscriptFile(path)
    outcome = await agent_of("On.", instructions="New.").run(
        "And?", messages=read_transcript(path), transcript=file
    )
    file.close()
    assert read_transcript(path) == outcome.messages
    assert [message.text for message in outcome.messages if message.role == "system"] == ["New."]


# -- conversations that are broken


async def test_a_run_goes_on_from_a_broken_conversation_and_says_so(caplog: pytest.LogCaptureFixture) -> None:
    broken = [Message.user("a"), Message.assistant(ToolCall("add", "{}", "1")), Message.user("b")]
    agent = agent_of("done")
    events = [event async for event in agent.stream("c", messages=broken)]
    notices = [event.message for event in events if isinstance(event, Notice)]
    [notice] = notices
    assert notice.startswith("the conversation: message 2: the call of add (1) has no result")
    assert "message 2: the call of add (1) has no result" in caplog.text
    outcome = await agent_of("done").run("c", messages=broken)
    assert mend(outcome.messages)[1] == []
    assert texts_of(outcome.messages) == [NO_RESULT]
    assert len(broken) == 3


# -- files


@pytest.mark.promise(
    "faults.md",
    "A transcript is readable up to its last whole line. A result in it is true; a call "
    "without one is answered as `outcome_unknown`.",
)
async def test_a_file_of_which_any_lines_are_torn_is_readable(tmp_path: Path) -> None:
    path = tmp_path / "t.jsonl"
    messages = await written(path)
    lines = path.read_bytes().splitlines(keepends=True)
    dice = random.Random(7)
    said = {
        json.dumps(part) for message in messages_to_json(messages)["messages"] for part in message["parts"]
    }
    for _ in range(300):
        torn = list(lines)
        for place in dice.sample(range(len(lines)), dice.randint(1, 3)):
            line = torn[place]
            torn[place] = dice.choice(
                [
                    line[: dice.randrange(len(line))] + dice.choice([b"\n", b""]),
                    b"\0" * 9 + b"\n",
                    b'{"role": "user", "content": "x"}\n',
                    b"",
                    line + line,
                    line.replace(b'"', b"", 1),
                    b"[1]\n",
                ]
            )
        path.write_bytes(b"".join(torn))
        reading = scan_transcript(path)
        assert mend(reading.mended)[1] == []
        assert reading.mended == read_transcript(path)
        for message in messages_to_json(reading.mended)["messages"]:
            for part in message["parts"]:
                if part["kind"] == "result" and part["call"]["arguments"]:
                    lost = part["result"].get("code") == "outcome_unknown"
                    assert lost or json.dumps(part) in said, "a result was given to another call"


async def test_a_result_whose_call_is_torn_is_not_given_to_another(tmp_path: Path) -> None:
    path = tmp_path / "t.jsonl"
    await written(path)
    lines = path.read_text().splitlines()
    second = next(n for n, line in enumerate(lines) if '"a": 7' in line)
    lines[second] = lines[second][:40]
    del lines[second - 1]  # the third result of the first calls: its place is free
    path.write_text("\n".join(lines) + "\n")
    reading = scan_transcript(path)
    assert texts_of(reading.mended) == ["3", "7", NO_RESULT, "15"]
    [*_, stand_in] = [call for message in reading.mended for call in message.calls]
    assert (stand_in.name, stand_in.arguments) == ("add", "")
    assert [str(problem).partition(";")[0] for problem in reading.problems] == [
        "line 4: the call of add (call_1_2) has no result",
        f"line {second}: not JSON",
        f"line {second + 1}: the call of this result is lost",
    ]


@pytest.mark.parametrize(
    ("lines", "texts", "problem"),
    [
        (['{"message": {"role": "user", "parts": [{"kind": "text", "text": "hi"}]}}'], ["hi"], ""),
        (['\ufeff{"format": 1}\r', '{"message": {"role": "user", "parts": [{"kind": "text", "text": "hi"}]}}\r'], ["hi"], ""),
        (['{"format": 1, "messages": [{"role": "user", "parts": [{"kind": "text", "text": "hi"}]}]}'], ["hi"], ""),
        (['{"format": 1}', '{"message": {"role": "user", "parts": "hi"}}'], [], "line 2: message.parts: expected list"),
        (['{"format": 1}', '{"head": 3}'], [], "line 2: messages: expected a list"),
        (['{"format": 1}', '{"usage": {"input_tokens": "x"}}'], [], "line 2: usage: expected an object of numbers"),
        (['{"format": 1}', '{"result": {"parts": [{"kind": "text", "text": "r"}]}, "index": 0}'], ["", ""], "line 2: the call of this result is lost"),
        (['{"format": 1}', "[" * 100_000], [], "line 2: not JSON"),
        (['{"format": 1}', '{"type": "log"}'], [], 'line 2: neither a message nor a result, but {"type": "log"}'),
    ],
)  # fmt: skip
def test_a_file_by_hand(tmp_path: Path, lines: list[str], texts: list[str], problem: str) -> None:
    path = tmp_path / "t.jsonl"
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    reading = scan_transcript(path)
    assert [message.text for message in reading.mended] == texts
    assert "; ".join(map(str, reading.problems)).startswith(problem)
    assert bool(reading.problems) is bool(problem)


def test_what_was_skipped_is_said(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    path = tmp_path / "t.jsonl"
    path.write_text('{"format": 1}\nnonsense\n{"message": {"role": "us')
    assert read_transcript(path) == []
    assert "t.jsonl: line 2: not JSON; the line is left out; line 3: the end is cut off" in caplog.text


def test_a_last_line_without_its_newline_is_kept(tmp_path: Path) -> None:
    path = tmp_path / "t.jsonl"
    for text in ("a", "b"):
        with closing(TranscriptFile(path)) as file:
            file.conversation([Message.user(text)])
        path.write_bytes(path.read_bytes()[:-1])
    assert [message.text for message in read_transcript(path)] == ["a", "b"]


@pytest.mark.parametrize("content", ["notes of mine", "notes\nof mine\n", '{"a": 1}\n', "x\n{"])
def test_another_file_is_not_written_over(tmp_path: Path, content: str) -> None:
    path = tmp_path / "notes.txt"
    path.write_text(content)
    with pytest.raises(ValueError, match=r"notes.txt is not a transcript"):
        TranscriptFile(path)
    assert path.read_text() == content


def test_a_whole_conversation_is_written_and_read(tmp_path: Path) -> None:
    call = ToolCall("add", {"a": 1}, "1", {"gemini": {"thoughtSignature": "s"}})
    result = ToolResult.of("3")
    conversation = [
        Message.user("a"),
        Message("assistant", [call], {"openai": {"x": 1}}, Usage(1, 2)),
        Message("tool", [ResultPart(call, result)]),
    ]
    file = TranscriptFile(tmp_path / "t.jsonl")
    file.conversation(conversation)
    file.close()
    assert messages_to_json(read_transcript(tmp_path / "t.jsonl")) == messages_to_json(conversation)


# -- a full disk


def full_after(count: int, monkeypatch: pytest.MonkeyPatch) -> Callable[[], None]:
    """Lets `count` writes succeed; the next writes half of what it is given, and then the disk is full."""
    real, left = os.write, [count]

    def write(descriptor: int, data: Any) -> int:
        left[0] -= 1
        if left[0] >= 0:
            return real(descriptor, data)
        if left[0] == -1:
            return real(descriptor, bytes(data)[: len(data) // 2])
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("toolcrib.agent.transcript.os.write", write)
    return monkeypatch.undo


@pytest.mark.promise(
    "faults.md",
    "A run whose transcript cannot be written ends with the reason `failed`, and raises. Each "
    "call in `outcome.messages` has its result, and `detail` says what the file lacks.",
)
async def test_a_full_disk_leaves_conversation_and_file_valid(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    failed = 0
    for count in range(12):
        path = tmp_path / f"{count}.jsonl"
        file = TranscriptFile(path)
        freed = full_after(count, monkeypatch)
        agent = agent_of(calls((1, 2), (3, 4), (5, 6)), calls((7, 8)), "Sums.", instructions="Be brief.")
        run = agent.start("Add all.", transcript=file)
        try:
            await run
        except OSError as problem:
            assert problem.errno == errno.ENOSPC
            failed += 1
        freed()
        file.close()
        assert run.outcome is not None
        assert (run.outcome.reason is Reason.FAILED) is (count < 9)
        assert mend(run.outcome.messages)[1] == []
        assert path.read_bytes().endswith(b"\n")
        reading = scan_transcript(path)
        assert all("has no result" in problem.text for problem in reading.problems)
        file = TranscriptFile(path)
        outcome = await agent_of("On.").run("Go on.", messages=reading.mended, transcript=file)
        file.close()
        assert outcome.text == "On."
        assert mend(read_transcript(path))[1] == []
    assert failed == 9


async def run_with(file: TranscriptFile) -> tuple[Run, list[str], list[str]]:
    """A run whose transcript may fail: its calls that were run, and its notices."""
    ran: list[str] = []

    @tool(effect=Effect.WRITE, secrets=())
    def put(name: str) -> str:
        """Put something somewhere."""
        ran.append(name)
        return f"put {name}"

    turns = [
        {"calls": [{"name": "put", "arguments": {"name": name}} for name in names]} for names in ("ab", "c")
    ]
    run = Agent(Scripted([*turns, "Done."]), [put], autonomy="full").start("Put.", transcript=file)
    with suppress(OSError, RuntimeError):
        await run
    assert run.outcome is not None
    assert mend(run.outcome.messages)[1] == []
    told = texts_of(run.outcome.messages)
    assert [text for text in told if text.startswith("put ")] == [f"put {name}" for name in ran]
    return run, ran, [event.message async for event in run if isinstance(event, Notice)]


@pytest.mark.promise(
    "faults.md", "What the transcript lacks is written before its next record, or when it is closed."
)
async def test_what_a_disk_that_was_full_for_a_moment_kept_from_the_file_is_written_later(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for count in range(8):
        file = TranscriptFile(tmp_path / f"{count}.jsonl")
        real, left = os.write, [count]

        def write(
            descriptor: int, data: Any, real: Callable[[int, Any], int] = real, left: list[int] = left
        ) -> int:
            left[0] -= 1
            if left[0] == -1:
                raise OSError(errno.EIO, "Input/output error")
            return real(descriptor, data)

        monkeypatch.setattr("toolcrib.agent.transcript.os.write", write)
        run, ran, notices = await run_with(file)
        monkeypatch.undo()
        file.close()
        assert run.outcome is not None
        failed = run.outcome.reason is Reason.FAILED
        assert failed or (ran == ["a", "b", "c"] and run.outcome.text == "Done.")
        assert all("Input/output error" in words for words in notices)
        assert ("Input/output error" in run.outcome.detail) is failed
        reading = scan_transcript(file.path)
        assert len(reading.mended) == len(run.outcome.messages)
        if failed:  # then the calls of a message that was not written were not run
            assert all("has no result" in problem.text for problem in reading.problems)
        else:
            assert reading.problems == []
            assert messages_to_json(reading.mended) == messages_to_json(run.outcome.messages)


@pytest.mark.promise(
    "faults.md",
    "A transcript that was removed is said. A record that could not be made, because a mask "
    "raised, is a line that says so.",
)
async def test_a_file_that_was_removed_is_said_and_not_written_on(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    file = TranscriptFile(tmp_path / "gone.jsonl")
    file.path.unlink()
    run, _, _ = await run_with(file)
    assert run.outcome is not None and run.outcome.reason is Reason.FAILED
    assert "a record is not in gone.jsonl: the file was removed" in run.outcome.detail
    file.close()
    assert "the file was removed" in caplog.text and not file.path.exists()


@pytest.mark.promise(
    "faults.md",
    "A transcript that was removed is said. A record that could not be made, because a mask "
    "raised, is a line that says so.",
)
async def test_a_mask_that_raises_leaves_a_line_that_says_so(tmp_path: Path) -> None:
    for fails_at in range(7):
        file = TranscriptFile(tmp_path / f"{fails_at}.jsonl")
        seen = itertools.count()

        def mask(record: Any, seen: Any = seen, fails_at: int = fails_at) -> Any:
            if next(seen) == fails_at:
                raise RuntimeError("sk-secret")
            return record

        file.mask = mask
        run, ran, notices = await run_with(file)
        file.close()
        assert run.outcome is not None
        assert any("is not in" in words for words in [*notices, run.outcome.detail])
        reading = scan_transcript(file.path)
        assert any("could not be written here: RuntimeError" in problem.text for problem in reading.problems)
        assert "sk-secret" not in file.path.read_text()
        assert mend(reading.mended)[1] == []
        known = [text for text in texts_of(reading.mended) if text.startswith("put ")]
        assert len(known) >= len(ran) - 1  # the result of one call at most is unknown, and never false
        assert set(known) <= {f"put {name}" for name in ran}


def test_the_key_of_a_result_may_lie_outside_of_the_calls(tmp_path: Path) -> None:
    file = TranscriptFile(tmp_path / "t.jsonl")
    file.result(CallKey("", 0, 5), ToolResult.of("x"))
    file.close()
    assert texts_of(read_transcript(tmp_path / "t.jsonl")) == ["x"]


# -- the commands


async def broken_file(folder: Path) -> bytes:
    path = folder / "t.jsonl"
    await written(path)
    lines = path.read_bytes().splitlines(keepends=True)
    del lines[5]
    path.write_bytes(b"".join([*lines[:-1], b"nonsense\n", lines[-1][:20]]))
    return path.read_bytes()


PROBLEMS = [
    "line 4: the call of add (call_1_1) has no result; it is answered as interrupted",
    "line 9: not JSON; the line is left out",
    "line 10: the end is cut off; the line is left out",
]


async def test_check_says_what_is_wrong_with_line_numbers(tmp_path: Path) -> None:
    await broken_file(tmp_path)
    done = toolcrib(tmp_path, "transcript", "check", "t.jsonl")
    assert (done.returncode, done.stderr) == (1, "")
    assert done.stdout.splitlines() == [*PROBLEMS, "t.jsonl: 6 messages; 3 problems"]
    told = json.loads(toolcrib(tmp_path, "transcript", "check", "t.jsonl", "--json").stdout)
    assert told["messages"] == 6
    assert [f"line {problem['line']}: {problem['text']}" for problem in told["problems"]] == PROBLEMS


async def test_mend_keeps_the_file_as_it_was(tmp_path: Path) -> None:
    path = tmp_path / "t.jsonl"
    before = await broken_file(tmp_path)
    path.chmod(0o640)
    whole = read_transcript(path)
    done = toolcrib(tmp_path, "transcript", "mend", "t.jsonl")
    assert (done.returncode, done.stderr.splitlines()) == (0, PROBLEMS)
    assert done.stdout == "mended: t.jsonl; the file as it was is t.jsonl.bak\n"
    assert (tmp_path / "t.jsonl.bak").read_bytes() == before
    assert messages_to_json(read_transcript(path)) == messages_to_json(whole)
    assert path.stat().st_mode & 0o777 == (tmp_path / "t.jsonl.bak").stat().st_mode & 0o777 == 0o640
    assert (
        toolcrib(tmp_path, "transcript", "check", "t.jsonl").stdout
        == "t.jsonl: 6 messages; nothing is wrong\n"
    )

    mended = path.read_bytes()
    again = toolcrib(tmp_path, "transcript", "mend", "t.jsonl")
    assert (again.returncode, again.stdout) == (0, "")
    assert path.read_bytes() == mended
    path.write_bytes(before)
    assert "t.jsonl.bak2" in toolcrib(tmp_path, "transcript", "mend", "t.jsonl").stdout
    assert (tmp_path / "t.jsonl.bak").read_bytes() == before
    assert not (tmp_path / "t.jsonl.bak3").exists()


async def test_mend_writes_over_another_file_only_when_told(tmp_path: Path) -> None:
    before = await broken_file(tmp_path)
    (tmp_path / "new.jsonl").write_text("mine")
    done = toolcrib(tmp_path, "transcript", "mend", "t.jsonl", "--output", "new.jsonl")
    assert done.returncode == 2 and "new.jsonl exists" in done.stderr
    assert (tmp_path / "new.jsonl").read_text() == "mine"
    done = toolcrib(tmp_path, "transcript", "mend", "t.jsonl", "--output", "./t.jsonl", "--force")
    assert done.returncode == 2 and "the file itself" in done.stderr
    done = toolcrib(tmp_path, "transcript", "mend", "t.jsonl", "--output", "gone/new.jsonl")
    assert done.returncode == 2 and "gone/new.jsonl cannot be written: No such file" in done.stderr
    done = toolcrib(tmp_path, "transcript", "mend", "t.jsonl", "--output", "new.jsonl", "--force")
    assert done.returncode == 0 and done.stdout == "mended: new.jsonl\n"
    assert (tmp_path / "t.jsonl").read_bytes() == before
    assert scan_transcript(tmp_path / "new.jsonl").problems == []


@pytest.mark.parametrize("command", ["check", "mend"])
def test_what_is_no_transcript_is_said(tmp_path: Path, command: str) -> None:
    (tmp_path / "notes.txt").write_text("my\nnotes\n")
    record = json.dumps({"message": {"role": "user", "parts": []}}) + "\n"
    (tmp_path / "other-encoding").write_bytes((record * 2).encode("utf-16"))
    for name, words in (
        ("notes.txt", "notes.txt is not a transcript; line 1: not JSON\n"),
        ("other-encoding", "other-encoding is not a transcript; line 1: not JSON\n"),
        ("gone", "cannot be read"),
        (".", "cannot be read"),
    ):
        done = toolcrib(tmp_path, "transcript", command, name)
        assert done.returncode == 2 and words in done.stderr, done
    assert (tmp_path / "notes.txt").read_text() == "my\nnotes\n"


def test_a_result_that_waited_is_replaced_by_the_one_that_came(tmp_path: Path) -> None:
    path = tmp_path / "t.jsonl"
    file = TranscriptFile(path)
    file.conversation([Message.assistant(ToolCall("add", "{}", "1"))])
    file.close()
    path.write_text(path.read_text().replace('"outcome_unknown"', '"waiting"'))
    file = TranscriptFile(path)
    file.result(CallKey("", 1, 0), ToolResult.of("3"))
    file.close()
    assert texts_of(read_transcript(path)) == ["3"]
    assert scan_transcript(path).problems == []


async def test_a_line_that_was_put_together_of_two_is_left_out(tmp_path: Path) -> None:
    path = tmp_path / "t.jsonl"
    await written(path)
    text = path.read_text()
    first, second = (text.index(f'"text": "{sum}"') for sum in (3, 7))
    begins, ends = text.index('"tool"', first), text.index('"parts"', second)
    path.write_text(text[:begins] + text[ends:])  # the result 3, with the call of the result 7
    placed = [
        (call.arguments, result.text)
        for message, after in itertools.pairwise(read_transcript(path))
        for call, result in zip(message.calls, after.results, strict=False)
    ]
    assert [text for arguments, text in placed if arguments in ({"a": 1, "b": 2}, {"a": 3, "b": 4})] == [
        NO_RESULT
    ] * 2
    assert ({"a": 7, "b": 8}, "15") in placed


async def test_a_new_file_has_the_conversation_that_goes_on_once(tmp_path: Path) -> None:
    earlier = [*EARLIER, Message.assistant(ToolCall("add", "{}", "1"))]
    with closing(TranscriptFile(tmp_path / "t.jsonl")) as file:
        outcome = await agent_of("On.", instructions="new").run("c", messages=earlier, transcript=file)
        assert read_transcript(tmp_path / "t.jsonl") == outcome.messages
        outcome = await agent_of("On.").run("d", messages=outcome.messages, transcript=file)
    assert read_transcript(tmp_path / "t.jsonl") == outcome.messages
