"""The tool `python`: a session that keeps its variables, whatever the code does to it."""

from __future__ import annotations

import asyncio
import base64
import importlib.util
import json
import os
import re
import sys
import threading
import warnings
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.cases import each
from tests.growth import growth
from tests.properties import examples
from tests.sandbox_runs import backend
from tests.test_processes import commands_with
from toolcrib import Agent, Toolbox, ToolCall
from toolcrib.command.judge.python_code import commands_in_code
from toolcrib.command.python.session import SessionOutput
from toolcrib.command.sandbox import NoSandbox
from toolcrib.content import Image
from toolcrib.models import Scripted
from toolcrib.result import ToolResult
from toolcrib.rules import CommandPattern, Rule, RulePolicy
from toolcrib.toolbox.policy import Verb
from toolcrib.tools import Python, Workspace

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="commands are not run on Windows")


class Session:
    def __init__(self, place: Path, **options: Any) -> None:
        self.workspace = Workspace(place)
        tool = Python(self.workspace, grace=0.5, **options.pop("tool", {}))
        options = {"autonomy": "full", **options}
        self.box = Toolbox([tool], **options)

    async def __call__(self, code: str, **more: Any) -> ToolResult:
        return await self.box.call("python", {"code": code, **more})


@pytest.fixture
async def run(tmp_path: Path) -> AsyncIterator[Session]:
    made = Session(tmp_path)
    async with made.box:
        yield made


async def test_what_code_says_is_given_back_and_what_it_sets_stays(run: Session) -> None:
    cases: list[tuple[str, str]] = [
        ("x = 41\nprint('hi')\nx + 1", "hi\n42"),
        ("x", "41"),
        ("_", "41"),
        ("None", "(no output)"),
        ("def f(n):\n    return n * 2", "(no output)"),
        ("f(x)", "82"),
        (
            "import sys, subprocess\nsubprocess.run(['echo', 'sub']); sys.stderr.write('err\\n')",
            "sub\nerr\n4",
        ),
        ("__name__", "'__main__'"),
        ("'ä' * 3", "'äää'"),
        ("print('\\ud800')", "\\ud800"),
        ("import pickle; class_ = type('A', (), {}); pickle.loads(pickle.dumps(f)) is f", "True"),
    ]
    for code, said in cases:
        assert (await run(code)).text == said, code


async def test_what_goes_wrong_in_code_leaves_the_session_as_it_was(run: Session) -> None:
    await run("kept = 1")
    cases: list[tuple[str, str, str]] = [
        ("1 / 0", "ZeroDivisionError", 'File "<call'),
        ("def f(:", "SyntaxError", "def f(:"),
        ("raise SystemExit(4)", "SystemExit", "SystemExit: 4"),
        ("input()", "EOFError", "EOF when reading"),
        (
            "import os, warnings\nwith warnings.catch_warnings(action='ignore'):\n    if os.fork() == 0: raise SystemExit",
            "",
            "(no output)",
        ),
        ("os.close(1); os.close(2)", "", "(no output)"),
        ("1 / 0", "ZeroDivisionError", "division by zero"),
    ]
    for code, error, said in cases:
        result = await run(code)
        assert (result.structured["error"] or "") == error and said in result.text, result.text
        assert "driver" not in result.text and "ast.py" not in result.text
        assert (await run("kept")).text == "1"


async def test_a_timeout_interrupts_and_loses_nothing_if_the_code_stops(run: Session) -> None:
    cut = await run("import time\ndone = []\nwhile True: done.append(1); time.sleep(0.1)", timeout=1)
    assert cut.is_error and "variables are kept" in cut.text and "KeyboardInterrupt" in cut.text
    assert (await run("len(done) > 3")).text == "True"
    stuck = "while True:\n    try: time.sleep(1)\n    except BaseException: pass"
    lost = await run(stuck, timeout=1)
    assert "so the session was ended" in lost.text
    again = await run("'done' in globals()")
    assert again.text.startswith("False") and again.structured["restarted"]


@pytest.mark.parametrize(
    ("code", "said"),
    [
        ("import os; print('last words'); os._exit(3)", "exit code 3"),
        ("import ctypes; ctypes.string_at(0)", "SIGSEGV"),
    ],
    ids=["exit", "segfault"],
)
async def test_a_crash_is_reported_and_the_next_call_has_a_new_session(
    code: str, said: str, run: Session
) -> None:
    crashed = await run(code)
    assert (
        crashed.is_error
        and said in crashed.text
        and "variables and imports of this one are lost" in crashed.text
    )
    assert ("last words" in crashed.text) == ("last" in code)
    again = await run("1 + 1")
    assert again.text.startswith("2\n") and "this is a new session" in again.text


async def test_much_output_is_cut_and_memory_limited(run: Session) -> None:
    many = await run("print('x' * 5_000_000)\n'y' * 100_000")
    assert len(many.text) < 60_000 and many.full_output == ""
    full = await run("bytearray(10 ** 12)")
    assert full.structured["error"] == "MemoryError"
    outside = await run("open('/etc/toolcrib-test', 'w')")
    assert "[sandbox: " in outside.text and outside.structured["error"] == "OSError"
    assert (await run("open('made.txt', 'w').write('a')")).text == "1"


async def test_several_calls_of_a_turn_run_in_order(run: Session) -> None:
    calls = [
        ToolCall("python", {"code": f"seen = globals().get('seen', []) + [{n}]\nseen"}) for n in range(4)
    ]
    results = await run.box.call_turn(calls, run=run.box.run)
    assert [result.text for result in results] == ["[0]", "[0, 1]", "[0, 1, 2]", "[0, 1, 2, 3]"]


async def test_a_cancelled_call_is_interrupted_and_the_session_goes_on(run: Session) -> None:
    await run("import time; n = 7")
    task = asyncio.create_task(run("time.sleep(60)"))
    await asyncio.sleep(0.2)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert (await run("n", timeout=5)).text == "7"


async def test_the_session_ends_with_its_run(tmp_path: Path) -> None:
    tag = f"tag-{os.urandom(6).hex()}"
    code = f"import subprocess\nsubprocess.Popen(['sh', '-c', 'sleep 60; : {tag}'])\nt = 1"
    turns = [{"calls": [{"name": "python", "arguments": {"code": code}}]}]
    agent = Agent(Scripted([*turns, "Done."]), toolbox=Session(tmp_path).box)
    assert (await agent.run("Go.")).finished
    assert commands_with(tag) == []


async def test_code_is_decided_on_like_a_command_that_nobody_can_judge(tmp_path: Path) -> None:
    asked: list[Any] = []

    def person(question: Any) -> str:
        asked.append(question)
        return "no"

    rules = [Rule(verb=Verb.DENY, commands=(CommandPattern("git push *"),), reason="no pushing")]
    supervised = Session(tmp_path, autonomy="supervised", approver=person)
    ruled = Session(tmp_path, policy=RulePolicy("full", rules), approver=person)
    unwanted = Session(tmp_path, tool={"sandbox": NoSandbox(wanted=False)}, approver=person)
    assert (await supervised("1")).code == "rejected" and asked[-1].preview == "1"
    assert "no pushing" in (await ruled("import os; os.system('git push')")).text
    assert (await unwanted("1")).code == "rejected" and "no sandbox works here" in asked[-1].reason
    assert "no pushing" in (await ruled("from subprocess import run; run(['git', 'push', '-f'])")).text
    for code in ("", "\0", "import os; os.system('rm -rf /')"):
        assert (await Session(tmp_path)(code)).code == "precheck"


NO_PUSH_IN_CODE = [
    "import os; os.system('git push')", "import subprocess\nsubprocess.run(['git', 'push', '-f'])", "import subprocess as s; s.call(['git', 'push'])",
    "from subprocess import run as r; r(['git', 'push'])", "import os\nos.execlp('git', 'git', 'push')", "import os; os.system(f'git push {branch}')",
    "import os; os.system('git push ' + branch)", "import os; os.system('git push %s' % branch)", "import os; os.system('git push {}'.format(branch))",
    "import subprocess\ncmd = ['git', 'push', name]\nsubprocess.check_call(cmd)", "__import__('os').popen('ls && git push').read()",
    "import subprocess; subprocess.run(args='git push', shell=True)", "import asyncio\nawait asyncio.create_subprocess_exec('git', 'push')",
    "import subprocess; subprocess.Popen('git push'.split())", "import os; os.spawnlp(os.P_WAIT, 'git', 'git', 'push')", "import pty; pty.spawn(['git', 'push'])",
]  # fmt: skip
SPEAKS_OF_PUSH = [
    "s = 'git push now'", "print('git push')", "words = ['git', 'push']", "\"\"\"\ngit push\n\"\"\"", "db.run('git push')",
    "from os import system as f; g = f; g('git push')", "import subprocess\nsubprocess.run(['echo', '1'])\ntitle = 'git push now'", "f(git push)", "title = 'x'\n# x\n'git push it'",
    "import subprocess\nsubprocess.run(command)", "import os\nf = os.system", "import subprocess\nc = ['git']\nc += ['push']\nsubprocess.run(c)", "import subprocess\nc = ['git']\nc.append('push')\nsubprocess.run(c)",
    "import subprocess\nc = ['git', 'log']\nc[1] = 'push'\nsubprocess.run(c)", "import os\nx = 'ls'\nfor x in y: os.system(x)", "import os\nx = 'ls'\ndef f(x): os.system(x)", "import os\nx = 'ls'\n[os.system(x) for x in y]",
    "import os\nx = 'ls'\nx, z = y\nos.system(x)", "import os\nx = 'gi'\nx += 't'\nos.system(x + ' push')", "import subprocess\nsubprocess.run(**options)", "import os\nx = 'ls'\nwith a as x: os.system(x)",
    "from subprocess import run\npool.map(run, words)", "import os\ngetattr(os, name)(x)",
    "import os\nos.system(' '.join(words))", "f = lambda: subprocess.run([program, 'push'])", "x = 1 +",
]  # fmt: skip
OTHER_CODE = [
    "1 + 1", "git = 1\nx = git", "import os\nprint(os.listdir('.'))", "import subprocess\nsubprocess.run(['git', 'status', name], check=True)", "x = 'git'\nprint(f'{x} is a program')",
    "import pandas as pd\ndf = pd.read_csv('a.csv')\ndf[df.a > 3].groupby('b').mean()", "with open('a.txt', 'w') as f:\n    f.write('a b c')", "import os; os.system(f'ls {folder}')",
    "import os, platform\nprint(platform.system(), os.environ, os.path.join('a', 'b'), getattr(df, 'a'))", "df.system.mean()", "import asyncio\nasyncio.run(main())",
]  # fmt: skip


async def test_a_denied_command_is_denied_where_code_runs_it_and_asks_where_it_may_only_speak_of_it(
    tmp_path: Path,
) -> None:
    def no(question: Any) -> str:
        return "no"

    rules = [Rule(verb=Verb.DENY, commands=(CommandPattern("git push *"),), reason="no pushing")]
    ruled = Session(tmp_path, policy=RulePolicy("full", rules), approver=no)
    assert {code: (await ruled(code)).code for code in NO_PUSH_IN_CODE} == dict.fromkeys(
        NO_PUSH_IN_CODE, "denied"
    )
    asked = {code: (await ruled(code)).code for code in SPEAKS_OF_PUSH}
    assert asked == dict.fromkeys(SPEAKS_OF_PUSH, "rejected")
    ruled = Session(tmp_path, policy=RulePolicy("full", rules), approver=no)
    found = {code: (await ruled(code)).code for code in OTHER_CODE}
    assert {code: why for code, why in found.items() if why == "rejected"} == {}


@each(
    "code",
    [
        "x = ''' %s; 1;'''\n[exec(x)]\n",
        "import os\nx = ' %s; 1;' % 1\n[os.system(x)]\n",
        "import os\nx = ' %s; 1;'\ny = x + x\nz = y + y\n[os.system(z)]\n",
        "import a.a.a.a; [import b]\n",
    ],
)
def test_what_it_costs_to_read_code_grows_with_its_length(code: str) -> None:
    def reading(size: int) -> Callable[[], object]:
        before, repeated, after = re.split(r"[\[\]]", code)
        text = before.replace(" %s; 1;", " %s; 1;" * (size // 14)).replace(".a.a.a", ".a" * (size // 4))
        return lambda: commands_in_code(text + f"{repeated}\n" * (size // 28) + after)

    assert growth(reading, 10_000, 80_000, 20) < 20


def test_of_code_that_is_not_read_to_its_end_a_command_is_unknown() -> None:
    repeated = "x = '''" + "y = 1;" * 9_000 + "'''\n" + "exec(x)\n" * 5
    many = "import os\n" + "".join(f"os.system('echo {at}')\n" for at in range(250))
    for code in (repeated, many):
        commands = commands_in_code(code + "os.system('git push')\n")
        assert commands is not None and commands.run.endswith("${_}")


def test_warnings_about_code_are_not_the_callers() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert commands_in_code(r"import os; os.system('grep \d a')") == (r"grep \d a", r"grep \d a")


def test_reading_code_in_several_threads_silences_no_other_warnings() -> None:
    def read() -> None:
        for _ in range(300):
            commands_in_code("x = '\\d'\n" * 5)

    commands_in_code("1")
    before, interval = [*warnings.filters], sys.getswitchinterval()
    threads = [threading.Thread(target=read) for _ in range(6)]
    sys.setswitchinterval(1e-6)
    try:
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(30)
    finally:
        sys.setswitchinterval(interval)
    assert [*warnings.filters] == before


async def test_a_session_that_may_do_more_than_the_call_is_started_anew(tmp_path: Path) -> None:
    from toolcrib.command.sandbox import Files, Level

    run = Session(tmp_path)
    async with run.box:
        assert (await run("x = 1; open('a', 'w').close()")).text == "(no output)"
        run.workspace.level = Level(Files.READ_ONLY)
        narrow = await run("open('b', 'w')")
        assert narrow.structured["error"] == "OSError" and narrow.structured["restarted"]


async def test_a_contained_session_goes_on_from_call_to_call(tmp_path: Path) -> None:
    run = Session(tmp_path, autonomy="sandboxed")
    async with run.box:
        with run.box.covered_by(run.box.run, lambda path: None):
            results = [await run(code) for code in ("x = 1", "x", "x")]
        assert [(result.text, result.structured["restarted"]) for result in results[1:]] == [("1", False)] * 2


async def test_figures_come_back_as_pictures(tmp_path: Path) -> None:
    place = os.environ.get("TOOLCRIB_TEST_MATPLOTLIB", "")
    options: dict[str, Any] = {}
    if place:
        options = {
            "interpreter": f"{place}/bin/python",
            "sandbox": backend("bubblewrap")(tmp_path, readable=[place]),
        }
    elif importlib.util.find_spec("matplotlib") is None:
        if os.environ.get("CI"):
            pytest.fail("CI has to say in TOOLCRIB_TEST_MATPLOTLIB where matplotlib is installed")
        pytest.skip("matplotlib is not installed here; .ci/run installs it")
    run = Session(tmp_path, tool=options)
    async with run.box:
        code = "import matplotlib.pyplot as plt\nfor n in range(2):\n    plt.figure(); plt.plot([1, n])\nplt.show()"
        result = await run(code, timeout=120)
        pictures = [part for part in result.parts if isinstance(part, Image)]
        assert [picture.media_type for picture in pictures] == ["image/png"] * 2, result.text
        assert all(base64.b64decode(picture.data or "").startswith(b"\x89PNG") for picture in pictures)
        assert len((await run("1")).parts) == 1


def reply(**members: Any) -> bytes:
    """The body of a reply as the driver writes it, with other members."""
    return json.dumps({"number": 0, "value": None, "error": None, "figures": []} | members).encode()


# Code that finds the session's token may write what it likes in the place of a reply.
FORGES = """import json, sys
frame = sys._getframe()
while not hasattr(frame.f_locals.get("self"), "token"):
    frame = frame.f_back
session = frame.f_locals["self"]
def forge(body="", size=None, **members):
    body = body or json.dumps({"number": session.running, "value": None, "error": None, "figures": []} | members)
    head = f"{session.token} {len(body) if size is None else size}"
    session.write(b"\\0" + head.encode() + b"\\n" + body.encode())
"""
FORGED = {
    "a value that is no text": "forge(value=5)",
    "an error that is no text": "forge(error=['x'])",
    "figures that are none": "forge(figures=5)",
    "a figure that is no text": "forge(figures=[{}])",
    "more figures than there can be": "forge(figures=['iVBORw0KGgo='] * 6)",
    "no members": "forge('{}')",
    "another order": 'forge(\'{"error": null, "number": %d, "value": null, "figures": []}\' % session.running)',
    "deep": "forge('{\"number\":' + '[' * 100_000)",
    "no UTF-8": "forge('\\udc80'.encode('utf-8', 'surrogateescape').decode('latin-1'))",
    "larger than a reply": "forge('x', 900_000_000)",
}


async def test_what_code_writes_in_the_place_of_a_reply_is_none(run: Session) -> None:
    await run(FORGES)
    for case, code in FORGED.items():
        result = await run(f"{code}; 'in the end'")
        assert result.text.endswith("'in the end'"), case
        assert result.structured == {**result.structured, "error": None, "figures": 0}, case


async def test_what_code_gives_back_is_shown_without_control_characters(run: Session) -> None:
    shown = await run("type('A', (), {'__repr__': lambda self: 'a\\x1b[2Jb\\x07'})()")
    assert shown.text == "ab"
    raised = await run("raise type('\\x1b[2J\\n' + 'long' * 100, (Exception,), {})('')")
    assert len(raised.structured["error"]) == 200 and raised.structured["error"].isprintable()
    await run(FORGES)
    pictures = await run("forge(figures=['QUJD', 'iVBORw0KGgo=', 'no base64', '\u00e9'])")
    assert pictures.structured["figures"] == 1


@examples(100)
@given(
    pieces=st.lists(
        st.one_of(st.binary(max_size=12), st.just(b"\0"), st.just(b"\0token 1"), st.integers(0, 9)),
        max_size=8,
    ),
    size=st.integers(1, 9),
)
def test_replies_are_found_in_any_output_however_it_is_cut(pieces: list[bytes | int], size: int) -> None:
    replies: list[Any] = []
    output = SessionOutput("token", replies.append)
    stream = printed = b""
    for piece in pieces:
        if isinstance(piece, int):
            body = reply(number=piece)
            stream += b"\0token %d\n" % len(body) + body
        else:
            stream, printed = stream + piece, printed + piece
    stream += b"."
    for at in range(0, len(stream), size):
        output.feed(stream[at : at + size])
    numbers = [piece for piece in pieces if isinstance(piece, int)]
    if b"\0token 1" not in b"".join(piece for piece in pieces if isinstance(piece, bytes)):
        assert [reply["number"] for reply in replies] == numbers
        assert output.printed.head + output.printed.tail == printed + b"."
