"""Commands in the background, as a model handles them: reading, waiting, typing, stopping, and their end with the run."""

from __future__ import annotations

import asyncio
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import AsyncIterator
from pathlib import Path
from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.commands_elsewhere import commands_elsewhere, commands_with
from tests.properties import examples
from toolcrib import Agent, Answer, Toolbox, ToolCall, Verdict
from toolcrib.command.background import ProcessOutput, process_output
from toolcrib.command.background.process_output import whole_characters
from toolcrib.command.background.processes import MAX_RUNNING
from toolcrib.command.background.typed_line import unfinished
from toolcrib.command.launch import BoundedOutput, ShellKind, terminal_relay
from toolcrib.command.launch.terminal_screen import TerminalScreen, text_of_terminal
from toolcrib.command.sandbox import NoSandbox
from toolcrib.events import Event, ProcessEnded, ProcessPrinted, ProcessStarted
from toolcrib.models import Scripted
from toolcrib.question import Lasting
from toolcrib.result import ToolResult
from toolcrib.rules import ApprovalStore, CommandPattern, RulePolicy
from toolcrib.rules.rule import Rule
from toolcrib.secrets import Environment
from toolcrib.toolbox.policy import Verb
from toolcrib.tools import Workspace, workspace_tools

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="commands are not run on Windows")


class Talk:
    """A toolbox on a workspace, and what a model would do with it in one run."""

    def __init__(
        self, place: Path, *, elsewhere: bool = False, kind: ShellKind = "bash", **options: Any
    ) -> None:
        self.events: list[Event] = []
        tools = commands_elsewhere(place) if elsewhere else workspace_tools(Workspace(place), shell_kind=kind)
        options = {"autonomy": "full", **options}
        self.box = Toolbox(tools, **options)

    async def __call__(self, name: str, **arguments: Any) -> ToolResult:
        return await self.box.call(name, arguments)

    async def start(self, command: str, **more: Any) -> str:
        result = await self("shell", command=command, run_in_background=True, **more)
        assert not result.is_error, result.text
        return str(result.structured["process_id"])


@pytest.fixture
async def talk(tmp_path: Path) -> AsyncIterator[Talk]:
    made = Talk(tmp_path)
    async with made.box:
        yield made


NEEDS_ZSH = (pytest.mark.slow, pytest.mark.skipif(not shutil.which("zsh"), reason="zsh is not installed"))


@pytest.fixture(params=["here", "elsewhere", pytest.param("zsh", marks=NEEDS_ZSH)])
async def anywhere(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Talk]:
    """The contract of commands, wherever the files are."""
    made = Talk(
        tmp_path, elsewhere=request.param == "elsewhere", kind="zsh" if request.param == "zsh" else "bash"
    )
    async with made.box:
        yield made


async def test_a_process_is_read_bit_by_bit_and_its_end_is_data(anywhere: Talk) -> None:
    id = await anywhere.start("echo one; read line; echo got $line; exit 3")
    assert id == "echo-1"
    answer = await anywhere("process_write", process_id=id, text="two\n")
    assert answer.text.startswith("got two")
    ended = await anywhere("process", process_id=id, block=True)
    said = ended.structured
    assert (said["running"], said["exit_code"], said["signal"]) == (False, 3, None)
    assert "ended: exit code 3" in ended.text
    again = await anywhere("process", process_id=id, offset=0)
    assert again.text.startswith("one\ngot two\n") and again.structured["end"] == len("one\ngot two\n")
    assert "has ended" in (await anywhere("process_write", process_id=id, text="x")).text
    listed = await anywhere("process_list")
    assert "exit code 3" in listed.text and '"unread":0' in listed.text


async def test_waiting_ends_with_what_was_asked_for(anywhere: Talk) -> None:
    id = await anywhere.start("sleep 0.8; echo Listening on 8080; sleep 30")
    looked = await anywhere("process", process_id=id, timeout=0)
    assert looked.text.startswith("(no new output)") and looked.structured["running"]
    begun = time.monotonic()
    seen = await anywhere("process", process_id=id, until=r"Listening on \d+", timeout=20)
    assert seen.structured["matched"] is True and time.monotonic() - begun < 15
    plain = await anywhere("process", process_id=id, until="never", timeout=0)
    assert plain.structured["matched"] is False and "no line matched 'never'" in plain.text
    assert (
        "no valid regular expression" in (await anywhere("process", process_id=id, until="(", timeout=0)).text
    )
    stopped = await anywhere("process", process_id=id, stop=True)
    assert "ended: stopped" in stopped.text and stopped.structured["exit_code"] is None
    assert "no background process 'x-9'" in (await anywhere("process", process_id="x-9")).text


async def test_a_wait_does_not_hold_up_other_calls_of_its_turn(talk: Talk) -> None:
    id = await talk.start("until [ -e go ]; do sleep 0.05; done; echo went")
    waits = ToolCall("process", {"process_id": id, "block": True, "timeout": 20})
    lets_go = ToolCall("shell", {"command": "touch go"})
    waited, _ = await talk.box.call_turn([waits, lets_go], run=talk.box.run)
    assert waited.text.startswith("went") and not waited.structured["running"]


def test_a_terminal_has_its_size_when_its_command_starts() -> None:
    relay = [sys.executable, "-I", "-S", str(terminal_relay.__file__), "stty", "size"]
    at_once = [subprocess.Popen(relay, stdin=subprocess.PIPE, stdout=subprocess.PIPE) for _ in range(40)]
    assert {one.communicate(timeout=30)[0].strip() for one in at_once} == {b"24 100"}


MISBEHAVING = {
    "ignores SIGTERM": "trap '' TERM; echo up; while :; do sleep 0.1; done",
    "detaches twice": "(setsid env -i sh -c 'sleep 61 & sleep 61' &) ; echo up; sleep 61",
    "closes its output": "echo up; exec >&- 2>&-; sleep 61",
    "never reads": "echo up; sleep 61",
    "ends no line": "printf up; sleep 61",
    "prints bytes": r"printf 'up\377\376\000\033[31mred'; sleep 61",
    "starts many": "echo up; for i in $(seq 200); do sleep 61 & done; wait",
}


SLOW_ELSEWHERE = ("ignores SIGTERM", "never reads", "ends no line", "prints bytes")


@pytest.mark.parametrize(
    ("kind", "elsewhere"),
    [
        pytest.param(kind, there, marks=pytest.mark.slow if there and kind in SLOW_ELSEWHERE else ())
        for kind in MISBEHAVING
        for there in (False, True)
    ],
)
async def test_whatever_a_process_does_it_can_be_read_and_ends_with_the_run(
    kind: str, elsewhere: bool, tmp_path: Path
) -> None:
    talk, tag = Talk(tmp_path, elsewhere=elsewhere), f"tag-{os.urandom(6).hex()}"
    async with talk.box:
        id = await talk.start(f"{MISBEHAVING[kind]}; : {tag}", env={"TAG": tag})
        said = await talk("process", process_id=id, offset=0, until="up", timeout=20)
        assert said.text.startswith("up")
        if kind == "never reads":
            more = await talk("process_write", process_id=id, text="x" * 100_000, timeout=1)
            assert "does not read its input now" in more.text
        if kind == "closes its output":
            assert said.structured["running"]
    assert commands_with(tag) == []


async def test_a_flood_is_kept_by_its_ends_and_loses_no_byte_unsaid(
    anywhere: Talk, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(process_output, "MAX_FILE", 1 << 20)
    id = await anywhere.start("head -c 9000000 /dev/zero | tr '\\0' 'x'; echo; echo END", timeout=60)
    ended = await anywhere("process", process_id=id, block=True, timeout=60)
    total = ended.structured["total"]
    assert total == 9_000_005
    last = await anywhere("process", process_id=id, offset=total - 5)
    assert last.text.startswith("\nEND")
    searched = await anywhere("process", process_id=id, offset=0, until="^E.D", timeout=20)
    assert searched.structured["matched"] is True
    lost = await anywhere("process", process_id=id, offset=2_000_000)
    assert "bytes before it are no longer kept" in lost.text
    assert lost.structured["start"] == total - (1 << 20)


async def test_ctrl_c_ends_a_command_also_where_we_are_not_interrupted_by_it(talk: Talk) -> None:
    before = signal.signal(
        signal.SIGINT, signal.SIG_IGN
    )  # as a shell starts what it puts into the background
    try:
        ended = await talk("shell", command="kill -INT $$; echo survived", terminal=True)
    finally:
        signal.signal(signal.SIGINT, before)
    assert "survived" not in ended.text and re.search("exit code 130|SIGINT", ended.text), ended.text


async def test_a_terminal_program_is_driven_by_text_and_keys(anywhere: Talk) -> None:
    python = await anywhere.start(f"{sys.executable} -q", terminal=True)
    await anywhere("process", process_id=python, until=">>>", offset=0)
    assert "\n42\n" in (await anywhere("process_write", process_id=python, text="6 * 7\n")).text
    assert "\n42\n" in (await anywhere("process_write", process_id=python, keys=["up", "enter"])).text
    await anywhere("process_write", process_id=python, text="while True: pass\n\n", timeout=1)
    await anywhere("process_write", process_id=python, keys=["ctrl-c"])
    broken = await anywhere("process", process_id=python, until="KeyboardInterrupt", offset=0)
    assert broken.structured["matched"] is True
    await anywhere("process_write", process_id=python, text="exit(7)\n")
    ended = await anywhere("process", process_id=python, block=True)
    assert ended.structured["exit_code"] == 7
    sized = await anywhere("shell", command="test -t 0 && stty size", terminal=True)
    assert sized.text == "24 100"


@pytest.mark.parametrize(
    ("switched", "sent"), [("", "033 [ A"), (r"\033[?1h", "033 O A"), (r"\033[?1h\033[?1l", "033 [ A")]
)
async def test_keys_are_sent_as_the_program_asked_for_them(talk: Talk, switched: str, sent: str) -> None:
    command = f"stty raw -echo; printf '{switched}READY'; head -c 3 | od -An -c | tr -s ' '"
    id = await talk.start(command, terminal=True)
    await talk("process", process_id=id, until="READY", offset=0)
    assert sent in (await talk("process_write", process_id=id, keys=["up"])).text


@pytest.mark.slow
async def test_programs_that_draw_on_the_screen_are_read_as_a_person_sees_them(
    talk: Talk, tmp_path: Path
) -> None:
    pytest.importorskip("pyte")
    (tmp_path / "long.txt").write_text("".join(f"line {number}\n" for number in range(100)))
    (tmp_path / "add.py").write_text("x = 1\ny = x + 1\nprint(y)\n")

    async def press(id: str, *keys: str, text: str = "") -> str:
        return (await talk("process_write", process_id=id, text=text, keys=list(keys))).text

    debugger = await talk.start(f"{sys.executable} -m pdb add.py", terminal=True)
    await talk("process", process_id=debugger, until="Pdb", offset=0)
    await press(debugger, text="next\n")
    stepped = await press(debugger, text="p x + 41\n")
    assert "\n42\n" in stepped and "the screen of its terminal" not in stepped
    if shutil.which("less"):
        pager = await talk.start("less long.txt", terminal=True)
        await talk("process", process_id=pager, until="long.txt", offset=0)
        page = await press(pager, text=" ")
        assert page.startswith("line 23\nline 24\n") and "\nline 45\n" in page and "line 46" not in page
        assert "this is the screen of its terminal; the cursor is in line 24" in page
        assert (await talk("process", process_id=pager, timeout=0)).text.startswith("line 23\nline 24\n")
        await press(pager, text="q")
    if shutil.which("vim"):
        editor = await talk.start("vim -u NONE long.txt", terminal=True)
        await talk("process", process_id=editor, until="100 lines", offset=0)
        typed = await press(editor, text="ddonew text")
        assert typed.startswith("line 1\nnew text\nline 2\n")
        await press(editor, "escape", text="")
        await press(editor, "enter", text=":wq")
        assert (tmp_path / "long.txt").read_text().startswith("line 1\nnew text\nline 2\n")
    drawn = await talk("shell", command=r"printf '\033[2J\033[3;5Hhere\033[1;1Htop\n'", terminal=True)
    assert drawn.text == "top\n\n    here"


def test_output_that_takes_long_to_draw_holds_nobody_up() -> None:
    """A digit after another was looked at once for each digit, and a mark on a letter costs more with each that is there."""
    pytest.importorskip("pyte")
    outputs = {
        "digits": b"\x1b[" + b"1" * 40_000,
        "marks": b"\x1b[Ha" + "\u0301".encode() * 30_000 + b"\r\nend",
    }
    shown: dict[str, str] = {}
    for name, data in outputs.items():
        begun = time.monotonic()
        output = BoundedOutput(1 << 20)
        output.feed(data)
        shown[name] = text_of_terminal(output)
        screen = TerminalScreen()
        screen.feed(data)
        assert time.monotonic() - begun < 6, name
    assert (
        shown["marks"].endswith("end") and len(shown["marks"]) > 30_000
    )  # it was not drawn, and is all there
    assert screen.text().endswith("end")


async def test_keys_need_a_terminal_but_for_the_end_of_the_input(anywhere: Talk) -> None:
    id = await anywhere.start("cat; echo over", env={"ASKED": "1"})
    assert "runs without a terminal" in (await anywhere("process_write", process_id=id, keys=["up"])).text
    assert (await anywhere("process_write", process_id=id, text="a", keys=["enter"])).text.startswith("a")
    over = await anywhere("process_write", process_id=id, keys=["ctrl-d"])
    assert over.text.startswith("over")
    assert "nothing to type" in (await anywhere("process_write", process_id=id)).text


async def test_a_proved_command_has_no_input(talk: Talk) -> None:
    proved = await talk.start("sleep 20")
    assert "has no input" in (await talk("process_write", process_id=proved, text="x")).text


async def test_only_so_many_run_at_once(talk: Talk) -> None:
    ids = [await talk.start("sleep 30", timeout=60) for _ in range(2)]
    rest = [talk("shell", command="sleep 30", run_in_background=True) for _ in range(MAX_RUNNING - 2)]
    await asyncio.gather(*rest)
    full = await talk("shell", command="sleep 30", run_in_background=True)
    assert full.is_error and f"{MAX_RUNNING} background processes are running" in full.text
    await talk("process", process_id=ids[0], stop=True)
    assert not (await talk("shell", command="true", run_in_background=True)).is_error


def test_processes_and_sessions_are_reached_from_every_loop(tmp_path: Path) -> None:
    box = Talk(tmp_path).box
    assert not box.call_sync(
        "shell", {"command": "cat", "run_in_background": True, "env": {"A": "1"}}
    ).is_error
    assert not box.call_sync("python", {"code": "x = 1"}).is_error

    async def elsewhere() -> None:
        written = await box.call("process_write", {"process_id": "cat-1", "text": "a\n"})
        assert written.text.startswith("a\n")
        assert (await box.call("python", {"code": "x"})).text == "1"
        assert not (await box.call("shell", {"command": "sleep 50", "run_in_background": True})).is_error

    asyncio.run(elsewhere())
    assert "ended: stopped" in box.call_sync("process", {"process_id": "sleep-2"}).text  # with its loop
    assert box.call_sync("python", {"code": "x"}).text == "1"
    asyncio.run(box.aclose())
    assert box.call_sync("process_list", {}).text == "[]"


# -- the run


def agent_of(place: Path, *turns: Any, **options: Any) -> Agent:
    return Agent(Scripted([*turns, "Done."]), toolbox=Talk(place, **options).box)


def calls(name: str, **arguments: Any) -> dict[str, Any]:
    return {"calls": [{"name": name, "arguments": arguments}]}


async def test_the_model_is_told_that_a_process_ended_and_the_person_too(tmp_path: Path) -> None:
    start = calls("shell", command="sleep 0.7; exit 5", run_in_background=True, description="the build")
    agent = agent_of(tmp_path, start, calls("shell", command="sleep 1"))
    run = agent.start("Go.")
    events = [event async for event in run]
    outcome = await run
    told = [message.text for message in outcome.messages if message.role == "user"]
    assert told[1:] == [
        "[The background process sleep-1 has ended: exit code 5. "
        "process(process_id='sleep-1') reads what it printed.]"
    ]
    (started,) = (event for event in events if isinstance(event, ProcessStarted))
    (ended,) = (event for event in events if isinstance(event, ProcessEnded))
    assert (started.process_id, started.description) == ("sleep-1", "the build")
    assert (ended.exit_code, ended.stopped) == (5, False)


@pytest.mark.slow
async def test_what_a_process_prints_is_shown_while_it_runs_without_secrets(tmp_path: Path) -> None:
    store = Environment(["KEY"], environ={"KEY": "s3cr3t-v4lue"})
    command = "echo up; for i in $(seq 3000); do echo $i; done; sleep 1.3; printf 'x s3cr3t-v4'; sleep 60"
    start = calls("shell", command=command, run_in_background=True)
    agent = agent_of(tmp_path, start, calls("shell", command="sleep 2.7"), secrets=store)
    run = agent.start("Go.")
    printed = [event async for event in run if isinstance(event, ProcessPrinted)]
    await run
    assert 2 <= len(printed) <= 5  # once a second at most
    assert printed[0].total > 10_000 and len(printed[0].text) <= 2_000 and "\n3000" in printed[0].text
    assert not any("s3cr3t" in event.text for event in printed)  # it may go on as the secret


@pytest.mark.parametrize("how", ["answers", "is cancelled"])
async def test_processes_end_with_their_run(how: str, tmp_path: Path) -> None:
    tag = f"tag-{os.urandom(6).hex()}"
    start = calls("shell", command=f"sleep 60; : {tag}", run_in_background=True)
    agent = agent_of(tmp_path, start, calls("shell", command="sleep 0.1" if how == "answers" else "sleep 40"))
    run = agent.start("Go.")
    seen: list[Event] = []
    async for event in run:
        seen.append(event)
        if how == "is cancelled" and isinstance(event, ProcessStarted):
            run.cancel()
    await run
    assert any(isinstance(event, ProcessEnded) and event.stopped for event in seen)
    assert commands_with(tag) == []


async def test_the_processes_of_a_run_within_a_call_are_its_own(tmp_path: Path) -> None:
    start = calls("shell", command="sleep 60", run_in_background=True)
    helper = agent_of(tmp_path, start, calls("process_list"))
    tool = helper.as_tool("helper", "Helps.")
    box = Toolbox([tool, *workspace_tools(Workspace(tmp_path))], autonomy="full")
    outer = Agent(Scripted([start, calls("helper", task="Go."), calls("process_list"), "Done."]), toolbox=box)
    outcome = await outer.run("Go.")
    (inner,) = outcome.nested
    for messages in (inner.messages, outcome.messages):
        listed = [result.text for message in messages for result in message.results][-1]
        assert listed.count('"process_id"') == 1 and '"running"' in listed


async def test_a_background_command_is_judged_as_any_other(tmp_path: Path) -> None:
    asked: list[Any] = []

    async def person(question: Any) -> str:
        asked.append(question)
        return "no"

    async with Talk(tmp_path, autonomy="supervised", approver=person).box as box:
        for command in ("ls", "make install"):
            await box.call("shell", {"command": command, "run_in_background": True})
        await box.call("shell", {"command": "ls", "env": {"LD_PRELOAD": "x.so"}})
        await box.call("shell", {"command": "ls", "env": {"NO_COLOR": "1"}})
        await box.call("shell", {"command": "ls", "terminal": True})
        denied = await box.call("shell", {"command": "$X", "env": {"X": "rm -rf /"}})
    assert [question.arguments["command"] for question in asked] == ["make install", "ls", "ls"]
    assert "in the background" in asked[0].preview and "LD_PRELOAD" in asked[1].reason
    assert "never will be" in denied.text


async def test_what_is_typed_is_no_way_around_rules(tmp_path: Path) -> None:
    rules = [Rule(verb=Verb.DENY, commands=(CommandPattern("git push *"),), reason="no pushing")]
    asked: list[Any] = []

    def person(question: Any) -> str:
        asked.append(question)
        return "yes"

    box = Talk(tmp_path, policy=RulePolicy("full", rules), approver=person).box
    async with box:

        async def typed(**arguments: Any) -> ToolResult:
            return await box.call("process_write", {"process_id": "bash-1", "timeout": 1, **arguments})

        await box.call("shell", {"command": "bash -i", "run_in_background": True, "terminal": True})
        for refused in (
            {"text": "git push\n"},
            {"text": "echo $(git push)\n"},
            {"text": "import os; os.system('git push')", "keys": ["enter"]},
            {"text": "rm -rf /\n"},
        ):
            assert (await typed(**refused)).is_error, refused
        assert not (await typed(text="git pu")).is_error
        assert "no pushing" in (await typed(text="sh\n")).text
        assert not (await typed(keys=["ctrl-c"])).is_error
        for begun in (  # none of them begins a new command
            {"text": "git pu", "keys": ["ctrl-d"]},
            {"text": "git pu\\\n"},
            {"text": "git pu\\", "keys": ["enter"]},
            {"text": "git pu\\\nxx", "keys": ["ctrl-u"]},
            {"text": "echo \"`: 'it' # '`\"; git pu", "keys": ["ctrl-d", "ctrl-u"]},
        ):
            assert not (await typed(**begun)).is_error
            assert "no pushing" in (await typed(text="sh\n")).text, begun
            assert not (await typed(keys=["ctrl-c"])).is_error
        asked.clear()
        assert not (await typed(text="echo fi", keys=["tab", "backspace"])).is_error
        assert not (await typed(text="x\n")).is_error  # nobody knows what the line is, so it is asked about
        assert [question.action for question in asked][
            -1
        ] == "type the rest of a line into bash-1, which runs bash -i"
        asked.clear()
        assert "\n3\n" in (await typed(text="echo $((1 + 2))\n")).text
        assert len(asked) == 1


async def test_a_quote_that_is_left_open_asks_no_further_questions(tmp_path: Path) -> None:
    """What is typed into an interpreter is no shell's: each line is one question, until two lines make a command."""
    rules = [Rule(verb=Verb.DENY, commands=(CommandPattern("git push *"),), reason="no pushing")]
    lines = ["I don't know", "fn f(s: &'a str) {", "  g(s)", "1 << 3", "'(a b)", "it goes on", "and on"]
    for policy in (RulePolicy("full", rules), RulePolicy("supervised", rules), RulePolicy("supervised")):
        asked: list[Any] = []

        def person(question: Any, asked: list[Any] = asked) -> str:
            asked.append(question)
            return "yes"

        box = Talk(tmp_path, policy=policy, approver=person).box
        async with box:
            started = await box.call(
                "shell", {"command": "python3 -c 'import sys; sys.stdin.read()'", "run_in_background": True}
            )
            id = started.structured["process_id"]
            asked.clear()
            for count, line in enumerate(lines, start=1):
                text = f"{line}\n"
                assert not (
                    await box.call("process_write", {"process_id": id, "text": text, "timeout": 0})
                ).is_error
                assert len(asked) == count, line
            for text, denied in (("git pu", False), ("sh\n", policy.rules != ())):
                done = await box.call("process_write", {"process_id": id, "text": text, "timeout": 0})
                assert ("no pushing" in done.text) == denied


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ("cat <<E\nit's\nE\n", ""),
        ("cat <<E\nit's\n", "cat <<E\nit's\n"),
        ('cat <<\'E F\' <<-"G"\n(\nE F\n"\n\tG\nls', "ls"),
        ("cat <<-E | wc\n\tE\n", ""),
        ("echo $(cat <<E\n'\nE\n", "echo $(cat <<E\n'\nE\n"),
        ("echo $(cat <<E\n'\nE\n)\n", ""),
        ("cat <<< '<<E'\n", ""),
        ("echo '<<E'\n", ""),
        ("echo $((1 << E))\n", ""),
        ("x << 3\n", ""),
        ("# <<E\n", ""),
        ("cat <<\\E\n$(\nE", "cat <<\\E\n$(\nE"),
    ],
)
def test_a_here_document_ends_with_its_line(text: str, left: str) -> None:
    assert unfinished(text) == left


def test_what_is_typed_is_one_command_until_a_shell_runs_it(tmp_path: Path) -> None:
    """A real shell runs what counts as finished, and nothing of what does not."""
    pieces = [
        "echo",
        " ",
        "a",
        "\\\n",
        "\\",
        "'",
        '"',
        "`",
        "$(",
        "(",
        ")",
        "${x:-",
        "}",
        "$'",
        "# b",
        "\n",
        "\n",
        "; ",
        "cat <<E\n",
        "<<-'E' ",
        "E\n",
    ]
    random = Random(7)
    for _ in range(400):
        text = "".join(random.choices(pieces, k=random.randint(1, 9))) + "\n"
        ends = text + "touch ran\n"
        (tmp_path / "ran").unlink(missing_ok=True)
        subprocess.run(["bash", "--norc"], input=ends.encode(), cwd=tmp_path, capture_output=True, timeout=20)
        if (tmp_path / "ran").exists():
            continue  # then the last line stood by itself
        broken = subprocess.run(["bash", "-n"], input=text.encode(), capture_output=True, timeout=20)
        if any(
            end in broken.stderr for end in (b"unexpected EOF", b"unexpected end of file", b"by end-of-file")
        ):
            assert unfinished(text), text


async def test_variables_are_set_and_odd_ones_refused(anywhere: Talk) -> None:
    assert (await anywhere("shell", command="echo $A", env={"A": "1 '2'"})).text == "1 '2'"
    for env, said in (
        ({"A B": "1"}, "cannot be the name"),
        ({"TOOLCRIB_X": "1"}, "are taken"),
        ({"A": "\0"}, "NUL"),
        ({"A": "x" * 40_000}, "longer than"),
    ):
        result = await anywhere("shell", command="true", env=env)
        assert result.is_error and said in result.text, result.text


# -- output by offsets


@examples(100)
@given(
    pieces=st.lists(st.binary(max_size=40), max_size=12),
    reads=st.lists(st.tuples(st.integers(0, 12), st.integers(1, 50)), max_size=12),
)
def test_no_byte_is_read_twice_or_lost(pieces: list[bytes], reads: list[tuple[int, int]]) -> None:
    output, cursor, got = ProcessOutput(), 0, b""
    whole = b"".join(pieces)
    for number, piece in enumerate(pieces):
        output.feed(piece)
        for at, limit in reads:
            if at == number:
                start, data = output.read(cursor, limit)
                assert start == cursor
                cursor, got = cursor + len(data), got + data
    while cursor < output.total:
        start, data = output.read(cursor, 7)
        assert start == cursor and data
        cursor, got = cursor + len(data), got + data
    output.close()
    assert got == whole


@examples(100)
@given(
    sizes=st.lists(st.integers(0, 400), max_size=12), file=st.integers(0, 600), offset=st.integers(0, 3000)
)
def test_what_is_no_longer_kept_is_said_by_where_a_reading_begins(
    sizes: list[int], file: int, offset: int
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(process_output, "MAX_FILE", file)
        patch.setattr(process_output, "MAX_MEMORY", 200)
        output, whole = ProcessOutput(), b""
        for size in sizes:
            piece = bytes(byte % 251 for byte in range(len(whole), len(whole) + size))
            output.feed(piece)
            whole += piece
        start, data = output.read(offset, 64)
        assert start >= min(offset, len(whole)) and data == whole[start : start + len(data)]
        assert (
            start == min(offset, len(whole)) or offset >= file
        )  # only what stands between file and memory is lost
        assert data or start >= len(whole)
        output.close()


@examples(100)
@given(text=st.text(max_size=30), cut=st.integers(0, 90))
def test_a_reading_never_ends_within_a_character(text: str, cut: int) -> None:
    data = text.encode()[:cut]
    kept = whole_characters(data)
    assert data.startswith(kept) and len(data) - len(kept) < 33
    kept.decode()


async def test_an_always_for_what_is_typed_holds_for_that_process_alone(tmp_path: Path) -> None:
    asked: list[str] = []
    offered: dict[str, tuple[Lasting, ...]] = {}

    async def approver(question: Any) -> Answer:
        asked.append(question.tool)
        offered[question.tool] = question.lastings
        return Answer(Verdict.ALWAYS, lasting=Lasting.USER)

    store = ApprovalStore(tmp_path / "approvals.json")
    for command in ("cat", "cat -u"):
        asked.clear()
        tools = workspace_tools(Workspace(tmp_path), sandbox=NoSandbox())
        async with Toolbox(tools, approver=approver, approvals=store, project="p") as box:
            await box.call("shell", {"command": f"{command} >&1 | tee x", "run_in_background": True})
            for _ in range(2):
                await box.call("process_write", {"process_id": "cat-1", "text": "y\n", "timeout": 0})
        assert asked == ["shell", "process_write"], "cat-1 of another run is another process"
        assert offered == {"shell": tuple(Lasting), "process_write": (Lasting.RUN,)}
