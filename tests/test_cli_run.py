"""`toolcrib run` as a person or a program runs it: text, JSON lines, signals, transcripts."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.command_line import toolcrib
from toolcrib.agent import Reason, read_transcript
from toolcrib.messages import Message, ResultPart
from toolcrib.models.providers import PROVIDERS

WORK = """
- text: I look at the folder first.
  calls:
    - {name: list_dir, arguments: {path: "."}}
    - {name: read_file, arguments: '{"path": "a.txt", "limit": "5"}'}
  usage: {input_tokens: 50, output_tokens: 5}
- text: Now I write.
  calls:
    - {name: write_file, arguments: {path: b.txt, content: "new\\n"}}
- text: All done.
  usage: {input_tokens: 1200, output_tokens: 34}
"""
LONG = """
- text: This takes long.
  calls:
    - {name: read_file, arguments: {path: a.txt}}
- calls:
    - {name: shell, arguments: {command: "echo started; echo $$ > pid; sleep 60.271828"}}
    - {name: read_file, arguments: {path: a.txt}}
- text: Never said.
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "a.txt").write_text("one\ntwo\n")
    (tmp_path / "work.yaml").write_text(WORK)
    (tmp_path / "long.yaml").write_text(LONG)
    return tmp_path


def is_valid(messages: list[Message]) -> bool:
    """Every message with calls is followed by one with a result for each."""
    for place, message in enumerate(messages):
        if not message.calls:
            continue
        answers = [part for part in messages[place + 1].parts if isinstance(part, ResultPart)]
        if [part.call.id for part in answers] != [call.id for call in message.calls]:
            return False
    return True


def test_text_is_plain_where_there_is_no_terminal(folder: Path) -> None:
    done = toolcrib(folder, "run", "look", "--model", "scripted:work.yaml", "--autonomy", "full")
    assert done.returncode == 0, done.stderr
    assert "\x1b" not in done.stdout and done.stderr.startswith("autonomy full (--autonomy); rules: none; ")
    lines = done.stdout.splitlines()
    assert lines.index("I look at the folder first.") < lines.index("Now I write.") < lines.index("All done.")
    assert sum(line.startswith("SUCCESS") for line in lines) == 3
    assert '  ! repaired: limit: read text as a number: "5" → 5' in lines
    assert "  +new" in lines
    assert "3 turns · 3 calls (1 repaired)" in done.stdout
    assert "1,289 tokens (1,250 in, 39 out) · cost unknown" in done.stdout
    assert (folder / "b.txt").read_text() == "new\n"


def test_a_command_that_failed_is_no_success(folder: Path) -> None:
    (folder / "exits.yaml").write_text(
        "- calls:\n    - {name: shell, arguments: {command: exit 128}}\n- text: Done.\n"
    )
    done = toolcrib(folder, "run", "x", "--model", "scripted:exits.yaml", "--autonomy", "full")
    assert done.returncode == 0
    assert "exit code 128 shell" in done.stdout and "SUCCESS" not in done.stdout
    assert "1 call (1 command failed)" in done.stdout


def test_json_is_one_event_a_line_and_nothing_else(folder: Path) -> None:
    done = toolcrib(
        folder, "run", "look", "--model", "scripted:work.yaml", "--json", "--autonomy", "supervised"
    )
    assert done.returncode == 0 and len(done.stderr.splitlines()) == 1
    events = [json.loads(line) for line in done.stdout.splitlines()]
    assert [event["seq"] for event in events] == list(range(len(events)))
    assert events[0]["kind"] == "run_started" and events[-1]["kind"] == "run_finished"
    finished = {event["tool"]: event["result"] for event in events if event["kind"] == "call_finished"}
    assert finished["write_file"]["code"] == "nobody_to_ask" and not finished["list_dir"]["is_error"]
    assert not (folder / "b.txt").exists()


def test_what_a_tool_prints_is_no_event(folder: Path) -> None:
    (folder / "noisy.py").write_text(
        "import os\nfrom toolcrib import Effect, tool\n\nprint('imported')\n\n\n"
        "@tool(effect=Effect.READ, secrets=())\ndef list_dir(path: str = '.', depth: int = 1) -> str:\n"
        "    print('looking')\n    os.system('echo listing')\n    return 'a.txt'\n"
    )
    done = toolcrib(folder, "run", "look", "--model", "scripted:work.yaml", "--from", "noisy", "--json")
    assert [json.loads(line)["kind"] for line in done.stdout.splitlines()][-1] == "run_finished"
    assert {"imported", "looking", "listing"} <= set(done.stderr.splitlines())


@pytest.mark.parametrize(
    ("verdict", "message", "code"), [("yes", "", None), ("always", "", None), ("no", "use c.txt", "rejected")]
)
def test_a_program_answers_questions_by_json_lines(
    folder: Path, verdict: str, message: str, code: str | None
) -> None:
    command = [
        sys.executable,
        "-m",
        "toolcrib",
        "run",
        "--autonomy",
        "supervised",
        "x",
        "-m",
        "scripted:work.yaml",
        "--json",
        "--answers",
    ]
    with subprocess.Popen(
        command, cwd=folder, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stdin is not None and process.stdout is not None and process.stderr is not None
        result = None
        for line in process.stdout:
            event = json.loads(line)
            if event["kind"] == "question_asked":
                print = event["question"]["fingerprint"]
                process.stdin.write('{"verdict": "yes"}\n{"fingerprint": "another", "verdict": "yes"}\n')
                process.stdin.write(
                    json.dumps({"fingerprint": print, "verdict": verdict, "message": message}) + "\n"
                )
                process.stdin.flush()
            if event["kind"] == "call_finished" and event["tool"] == "write_file":
                result = event["result"]
        assert process.wait(30) == 0
        said = process.stderr.read()
        assert "not an answer" in said
        assert "no question with the fingerprint another waits; ignored" in said
    assert result is not None and result.get("code") == code and message in json.dumps(result)
    assert (folder / "b.txt").exists() is (code is None)


def test_the_end_of_the_answers_is_nobody_to_ask(folder: Path) -> None:
    done = toolcrib(
        folder,
        "run",
        "x",
        "-m",
        "scripted:work.yaml",
        "--json",
        "--answers",
        "--autonomy",
        "supervised",
        stdin="",
    )
    assert done.returncode == 0 and "nobody_to_ask" in done.stdout


def test_what_a_pipe_says_is_no_answer_of_a_person(folder: Path) -> None:
    done = toolcrib(
        folder, "run", "x", "-m", "scripted:work.yaml", "--autonomy", "supervised", stdin="y\ny\n"
    )
    assert "nobody to ask" in done.stdout and "path: b.txt" in done.stdout
    assert not (folder / "b.txt").exists()


def test_a_model_that_lacks_its_key_is_not_asked(folder: Path) -> None:
    """Every provider that has a row: nothing begins, no SDK is imported, and the words name the variable."""
    lines: list[str] = []
    variables = {name for row in PROVIDERS.values() for name in (*row.keys, row.address) if name}
    bare = {
        k: v for k, v in os.environ.items() if k not in variables and not k.startswith(("TOOLCRIB_", "AWS_"))
    }
    for name, row in PROVIDERS.items():
        if row.base_url.startswith("http://"):
            continue  # a server of one's own
        env = {**bare, "HOME": str(folder)}
        if name == "azure":
            env[row.address] = "https://mine.openai.azure.com"
        done = toolcrib(folder, "run", "hi", "--model", f"{name}:m", env=env)
        wanted = {"vertex": "GOOGLE_CLOUD_PROJECT", "bedrock": "AWS_REGION", "bedrock-messages": "AWS_REGION"}
        variable = wanted.get(name) or row.keys[0]
        words = f"toolcrib: {name}:m lacks a {'key' if row.keys else 'project' if name == 'vertex' else 'region'}: set {variable}"
        if done.returncode != 2 or words not in done.stderr or "--model" not in done.stderr or done.stdout:
            lines.append(f"{name}: {done.returncode} {done.stderr}{done.stdout}")
    assert not lines, "\n".join(lines)


def test_a_list_goes_on_with_the_model_that_lacks_nothing(folder: Path) -> None:
    (folder / "s.yaml").write_text("- text: Done.\n")
    done = toolcrib(folder, "run", "hi", "--model", "anthropic:m,scripted:s.yaml", HOME=str(folder))
    assert done.returncode == 0
    assert "note: anthropic:m lacks a key: set ANTHROPIC_API_KEY or ANTHROPIC_AUTH_TOKEN" in done.stderr


def test_without_a_model_it_says_how_to_set_one_and_offers_the_demo(folder: Path) -> None:
    done = toolcrib(folder, "run", "x")
    assert done.returncode == 2 and done.stdout == ""
    for words in ("TOOLCRIB_MODEL", "OPENAI_API_KEY", "ANTHROPIC_API_KEY", "toolcrib demo"):
        assert words in done.stderr


ENDS = [
    (["--max-turns", "1"], 1, "limit of 1 turn"),
    (["--budget-tokens", "1"], 1, "55 of 1 tokens are used"),
    (["--budget-seconds", "0"], 1, "the budget of 0 seconds has passed"),
    (["--autonomy", "read_only"], 0, 'Tool "write_file" is not available now'),
]


@pytest.mark.parametrize(("options", "code", "said"), ENDS)
def test_every_end_has_its_reason_and_exit_code(
    folder: Path, options: list[str], code: int, said: str
) -> None:
    done = toolcrib(folder, "run", "x", "-m", "scripted:work.yaml", *options)
    assert done.returncode == code and said in done.stdout, done.stdout + done.stderr


def test_a_model_that_fails_is_not_finished(folder: Path) -> None:
    (folder / "short.yaml").write_text("- {error: the server is on fire}\n")
    done = toolcrib(folder, "run", "x", "-m", "scripted:short.yaml")
    assert done.returncode == 1 and "The model failed: the server is on fire" in done.stdout


USAGE = [
    (["run"], "the task is missing"),
    (["run", "count", "the", "saws"], "did you mean a task in quotes?"),
    (["run", "x", "-m", "nonsense"], "unknown model 'nonsense'"),
    (["run", "x", "-m", "scripted:none.yaml"], "none.yaml"),
    (["run", "x", "-m", "scripted:work.yaml", "-w", "nowhere"], "workspace"),
    (["run", "x", "-m", "scripted:work.yaml", "-f", "nowhere:x"], "no module is named 'nowhere'"),
    (["run", "x", "-m", "scripted:work.yaml", "--transcript", "a/b/c"], "transcript a/b/c cannot be written"),
    (
        ["run", "x", "-m", "scripted:work.yaml", "--transcript", "."],
        "--transcript .: expected a file, got a folder",
    ),
    (["run", "x", "-m", "scripted:work.yaml", "--transcript", "a.txt"], "--continue a.txt"),
    (["run", "x", "-m", "scripted:work.yaml", "--continue", "a.txt"], "not a transcript"),
    (
        ["run", "x", "-m", "scripted:work.yaml", "--continue", "none"],
        "--continue none: cannot be read: No such file or directory",
    ),
    (["run", "x", "-m", "scripted:work.yaml", "--answers"], "--answers needs --json"),
]


@pytest.mark.parametrize(("arguments", "said"), USAGE)
def test_what_cannot_begin_is_explained(folder: Path, arguments: list[str], said: str) -> None:
    done = toolcrib(folder, *arguments)
    assert done.returncode == 2 and said in done.stderr and "Traceback" not in done.stderr
    assert (folder / "a.txt").read_text() == "one\ntwo\n"


def test_own_tools_join_the_built_in_ones(folder: Path) -> None:
    (folder / "mine.py").write_text(
        "from toolcrib import Effect, tool\n\n"
        "@tool(effect=Effect.READ, secrets=())\n"
        "def read_file(path: str) -> str:\n    'Read it in another way.'\n    return f'my {path}'\n"
    )
    (folder / "own.yaml").write_text("- calls: [{name: read_file, arguments: {path: a.txt}}]\n- Done.\n")
    done = toolcrib(folder, "run", "x", "-m", "scripted:own.yaml", "--from", "mine")
    assert done.returncode == 0 and "my a.txt" in done.stdout


def test_output_that_is_too_long_can_be_read_in_pages(folder: Path) -> None:
    (folder / "big.yaml").write_text(
        '- calls: [{name: shell, arguments: {command: "seq 100000"}}]\n'
        '- {when: "which can be read in pages", text: It was cut.}\n- Done.\n'
    )
    done = toolcrib(
        folder, "run", "x", "-m", "scripted:big.yaml", "--autonomy", "full", "--transcript", "t.jsonl"
    )
    assert "It was cut." in done.stdout, done.stdout
    place = Path(done.stderr.split("long outputs are kept in ")[1].strip())
    (kept,) = place.iterdir()
    assert kept.read_text().startswith("1\n2\n") and place.stat().st_mode & 0o077 == 0
    assert folder not in kept.parents


def started(folder: Path, transcript: str, ready: Callable[[], bool]) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "toolcrib", "run", "x", "-m", "scripted:long.yaml"]
    process = subprocess.Popen(
        [*command, "--autonomy", "full", "--transcript", transcript],
        cwd=folder,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    deadline = time.monotonic() + 30
    while not ready() and process.poll() is None and time.monotonic() < deadline:
        time.sleep(0.02)
    assert ready(), process.communicate()
    return process


def is_running() -> bool:
    """Whether the long command is: by its words, for its number is another one inside a sandbox."""
    listed = subprocess.run(["ps", "-eo", "args"], capture_output=True, text=True, check=True).stdout
    return "sleep 60.271828" in listed.splitlines()


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_signal_ends_a_run_in_good_order(folder: Path, number: signal.Signals, code: int) -> None:
    pid = folder / "pid"
    process = started(folder, "t.jsonl", lambda: pid.exists() and bool(pid.read_text().strip()))
    process.send_signal(number)
    out, err = process.communicate(timeout=30)
    assert process.returncode == code
    assert [line.split()[0] for line in err.splitlines()] == ["autonomy", "2"]  # files that can be put back
    assert "Cancelled" in out and "cancelled before it finished" in out
    messages = read_transcript(folder / "t.jsonl")
    assert is_valid(messages)
    codes = [part.result.code for part in messages[-1].parts if isinstance(part, ResultPart)]
    assert codes == ["cancelled", "cancelled"]
    assert not is_running()


def test_a_killed_run_leaves_a_transcript_to_go_on_from(folder: Path) -> None:
    pid, path = folder / "pid", folder / "t.jsonl"
    process = started(folder, "t.jsonl", lambda: pid.exists() and bool(pid.read_text().strip()))
    process.kill()
    process.communicate(timeout=30)
    deadline = time.monotonic() + 10
    while sys.platform == "linux" and is_running() and time.monotonic() < deadline:
        time.sleep(0.02)
    assert sys.platform != "linux" or not is_running()  # the sandbox ends with whoever made it
    messages = read_transcript(path)
    assert is_valid(messages)
    assert [message.role for message in messages][-2:] == ["assistant", "tool"]
    codes = [part.result.code for part in messages[-1].parts if isinstance(part, ResultPart)]
    assert codes == ["outcome_unknown", "outcome_unknown"]

    with path.open("a") as file:
        file.write('{"message": {"role": "assis')  # as if the write itself had been cut off
    (folder / "on.yaml").write_text("- text: I go on.\n")
    done = toolcrib(folder, "run", "-m", "scripted:on.yaml", "--continue", "t.jsonl")
    assert done.returncode == 0, done.stderr
    continued = read_transcript(path)
    assert is_valid(continued) and continued[: len(messages)] == messages
    assert [message.text for message in continued[len(messages) :]] == ["Continue.", "I go on."]

    other = toolcrib(
        folder, "run", "more", "-m", "scripted:on.yaml", "--continue", "t.jsonl", "--transcript", "u.jsonl"
    )
    assert other.returncode == 0, other.stderr
    assert read_transcript(folder / "u.jsonl")[: len(continued)] == continued
    assert read_transcript(path) == continued


def test_a_reader_that_leaves_early_ends_the_run_quietly(folder: Path) -> None:
    command = f"{sys.executable} -m toolcrib run x -m scripted:long.yaml --autonomy full --json | head -n 1"
    done = subprocess.run(
        ["/bin/bash", "-c", f"set -o pipefail; {command}"],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=50,
        check=False,
    )
    assert done.returncode == 141 and len(done.stderr.splitlines()) == 1


def test_every_way_to_end_has_words() -> None:
    assert all(reason.words for reason in Reason)
