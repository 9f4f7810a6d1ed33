"""Every example runs as its first lines say, without a key and without a network."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import urllib.error
import urllib.parse
import urllib.request
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.slow

EXAMPLES = Path(__file__).parents[1] / "examples"
SHOWN = {
    "weather_agent.py": [
        "the model is scripted",
        "[get_weather {'city': 'Oslo', 'days': 2}]",
        "[get_weather: success, 1 argument repaired]",
        '"celsius":4',
        "[answered]",
    ],
    "served_toolbox.py": [
        "delete_note: destroys\nlist_notes: reads",
        'the person is asked: run delete_note "Delete a note"',
        "They say: keep that one",
        "<- Left: today.",
    ],
    "database_agent.py": [
        'expected one of "customers", "orders", got string "sales"',
        '[{"total":120.5},{"total":80.0},{"total":14.25}]',
        "{'table': 'returns'}\n    [{\"order_id\":2}]",
    ],
    "text_model.py": [
        "I look at both.\n[count: 3 saws]",
        "[count: There is nothing called 'drils'. There are: saws, drills, planes.]",
        "[count: 0 drills]",
        "out of stock; of saws there are 3.\n[answered]",
        "To call a tool, write exactly:\n<tool_call>",
    ],
    "local_decoder.py": [
        'a schema (enforced): {"subject":"',
        "a choice (enforced): re",
        "a grammar (enforced): SELECT ",
    ],
    "delegating_manager.py": [
        "[waiting] write_report {'name': '2023.txt', 'text': 'All went well.'}",
        "[waiting] delete_report {'name': '2021.txt'}: it can destroy something",
        "[answered] The archive is in order.",
        "  [answered] There are 2021 and 2022.",
        "    [answered] 2021.txt is gone.",
        "left: 2022.txt, 2023.txt",
    ],
    "unattended.py": [
        "[shell: done] 3 orders.csv",
        "[read_file: denied]",
        "names of customers stay here",
        "[shell: denied]",
        "[write_file: done]",
        "[mail: denied]",
        "[mail: done] sent to ann@example.org, signed with [secret MAIL_KEY]",
        "[mail: rate_limited]",
        "[answered]",
        "lines, whole",
    ],
    "telemetry.py": [
        "Three.\ninvoke_agent: in 1850, cached 900, out 25, reason answered",
        "\n  chat scripted: in 900, out 20, finished ('tool_calls',)",
        "\n  execute_tool count: attempts at most 3, retries 1",
        "\n  chat scripted: in 950, cached 900, out 5, finished ('end',)",
        "gen_ai.client.operation.duration execute_tool : 1",
        "gen_ai.client.operation.time_to_first_chunk chat : 2",
        "gen_ai.client.token.usage chat input: 2",
    ],
    "fallback.py": [
        "I throw the old ones aw\n[void: the connection to here:faint failed: ",
        "; asking scripted]\n[throw_away: The blunt saws are gone.]",
        "[answered; thrown away: blunt saws]",
    ],
    "coding_agent.py": [
        "[shell: success] FAILED (failures=2)",
        "[edit_file: success] Edited amounts.py at line 15.",
        "[shell: success] OK",
        "an undo would change amounts.py",
    ],
    "operations_agent.py": [
        "* python3-1 runs in the background: the importer",
        "[a line matched 'watching inbox']",
        "* python3-1 ended: exit code 1",
        "ValueError: could not convert string to float: '8O.00'",
        "[{'order': '2', 'total': '8O.00'}]",
        "* python3-2 ended: stopped with the run",
        "the model was told: [The background process python3-1 has ended: exit code 1.",
        "[answered]",
    ],
    "invoices_to_sqlite.py": [
        "A-17, 55.00 EUR, 2 attempts\n   it was told: The lines make 25.00",
        "in the table: ('A-17', 3, 55.0)\nin the table: ('B-3', 4, 9.0)",
    ],
    "classifier.py": [
        "order (order 97%, complaint 0%, other 2%)\n   asked by 'native': enforced",
        "complaint? a person looks at it",
    ],
    "mcp_agent.py": [
        "tools: deliveries__next_delivery, orders__place, stock__count, stock__list_tools",
        "  orders: started, protocol 2026-07-28, 1 tool(s)",
        "[deliveries__next_delivery: success]",
        "? run orders__place {'tool': 'chisel', 'number': 2}: it can destroy something",
        "[orders__place: success]Done (ordered: 2 x chisel). They come on Thursday.",
        "[answered]",
    ],
    "partial_arguments.py": [
        "… In the crib the tools are kept,\n",
        "… let the morning's work begin.\n  (complete: now it is written)\nsuccess: Wrote The crib.txt",
    ],
}
"""What each program must print, in this order."""


def environment() -> dict[str, str]:
    """Ours, without a model, and as a terminal of a known width."""
    own = {name: value for name, value in os.environ.items() if name != "TOOLCRIB_MODEL"}
    return {**own, "COLUMNS": "100", "NO_COLOR": "1"}


def run(arguments: list[str], folder: Path) -> str:
    command = [sys.executable, *arguments]
    done = subprocess.run(
        command,
        cwd=folder,
        env=environment(),
        capture_output=True,
        text=True,
        timeout=120,
        stdin=subprocess.DEVNULL,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_every_example_is_tested() -> None:
    assert {path.name for path in EXAMPLES.glob("*.py")} == {*SHOWN, "web_approval.py", "project_tools.py"}


@pytest.mark.parametrize("name", SHOWN)
def test_a_program_shows_what_it_is_about(name: str, tmp_path: Path) -> None:
    output = run([str(EXAMPLES / name)], tmp_path)
    at = 0
    for text in SHOWN[name]:
        at = output.find(text, at)
        assert at >= 0, f"{text!r} is missing, or not in its place, in\n{output}"
    assert not list(tmp_path.iterdir()), "an example leaves nothing behind"


class Page:
    """The program `web_approval.py` as a process of its own, on a database that outlasts it."""

    def __init__(self, folder: Path) -> None:
        self.process = subprocess.Popen(
            [sys.executable, str(EXAMPLES / "web_approval.py"), str(folder / "runs.db"), "0"],
            cwd=folder,
            env=environment(),
            stdout=subprocess.PIPE,
            text=True,
        )
        assert self.process.stdout is not None
        self.address = self.process.stdout.readline().split(": ", 1)[1].strip()

    def __enter__(self) -> Page:
        return self

    def __exit__(self, *exc: object) -> None:
        self.process.kill()
        self.process.communicate()

    def get(self, path: str = "") -> str:
        with urllib.request.urlopen(self.address + path, timeout=30) as answer:
            return str(answer.read().decode())

    def questions(self) -> list[dict[str, Any]]:
        return list(json.loads(self.get("/questions")))

    def post(self, path: str, **form: str) -> dict[str, Any] | int:
        """What it answers; the status of what it refuses."""
        try:
            data = urllib.parse.urlencode(form).encode()
            with urllib.request.urlopen(self.address + path, data, 30) as answer:
                return dict(json.loads(answer.read()))
        except urllib.error.HTTPError as refused:
            return refused.code


def test_a_question_is_answered_in_another_process_than_the_one_that_asked(tmp_path: Path) -> None:
    report = tmp_path / "reports" / "2023.txt"
    no = {"verdict": "no", "message": "The auditors want it."}
    with Page(tmp_path) as page:
        for _ in range(2):
            started = page.post("/runs")
            assert isinstance(started, dict)
            assert started["reason"] == "waiting"
        first, second = page.questions()
        assert (first["tool"], first["arguments"]) == ("delete_report", {"name": "2023.txt"})
        assert "&quot;2023.txt&quot;" in page.get()
        address = page.address
    with Page(tmp_path) as page:  # the machine was restarted
        assert page.address.rsplit("/", 1)[1] == address.rsplit("/", 1)[1]
        assert page.questions() == [first, second]
        where = f"/runs/{first['run']}"
        assert page.post(where, question=second["id"], **no) == 409  # of another run
        assert page.post(where, question=first["id"], verdict="perhaps") == 400
        ended = page.post(where, question=first["id"], **no)
        assert isinstance(ended, dict)
        assert (ended["run"], ended["reason"]) == (first["run"], "answered")
        assert "They say: The auditors want it." in ended["text"]
        assert report.exists()
        assert page.post(where, question=first["id"], verdict="yes") == 409  # it was answered
        ended = page.post(f"/runs/{second['run']}", question=second["id"], verdict="yes")
        assert isinstance(ended, dict)
        assert ended["text"] == "I have tidied up: Deleted 2023.txt."
        assert not report.exists()
        assert page.questions() == []
        page.address = page.address.rsplit("/", 1)[0]  # nobody is let in without the word
        assert page.post("/runs") == 404
        with pytest.raises(urllib.error.HTTPError):
            page.get("/questions")


def test_the_tools_of_a_project_are_found_and_called(tmp_path: Path) -> None:
    (tmp_path / "project_tools.py").write_text((EXAMPLES / "project_tools.py").read_text())
    listed = run(["-m", "toolcrib", "tools", "list", "--from", "project_tools"], tmp_path)
    assert "next_version" in listed
    assert "add_release" in listed
    call = ["-m", "toolcrib", "tools", "call", "--from", "project_tools"]
    assert run([*call, "next_version", "--version", "1.4.2", "--part", "minor"], tmp_path).strip() == "1.5.0"
    arguments = json.dumps(
        {"version": "1.5.0", "notes": "Tools can be named."}
    )  # one value for a list: repaired
    assert "Added 1.5.0" in run([*call, "--autonomy", "full", "add_release", arguments], tmp_path)
    assert "- Tools can be named." in (tmp_path / "CHANGELOG.md").read_text()
