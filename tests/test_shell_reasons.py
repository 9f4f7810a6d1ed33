"""Why a command is asked about: words that a person understands, in one line, and each thing on the card once."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.sandbox_runs import backend
from toolcrib import Answer, Question, Toolbox, Verdict
from toolcrib.cli.question_text import question_lines
from toolcrib.command.judge import judge
from toolcrib.command.judge.reasons import why
from toolcrib.secrets import Environment
from toolcrib.tools import Shell, Workspace

WHY = {
    "ls": "", "sed -i s/a/b/ f": "sed -i changes files", "sed -i.bak s/a/b/ f": "sed -i changes files", "sort -o x a": "sort -o writes a file",
    "cat .env": "it reads .env, which may hold secrets", "cp a .env": "it writes .env, which may hold secrets",
    "cat /etc/passwd": "it reads /etc/passwd, which is outside the workspace", "cat ../x": "it reads ../x, which may lead outside the workspace",
    "foo --bar": "what foo does is not known", "git frobnicate": "what git frobnicate does is not known", "ls --frob": "what ls --frob does is not known",
    "mkdir a": "mkdir changes files", "curl -s http://a.example": "curl uses the network", "pip install x": "pip install runs other code",
    "echo x > f": "it writes f", "./run.sh": "it runs ./run.sh, a program given by its path", "bash x.sh": "bash runs a script", "sudo ls": "sudo runs it as another user",
    "docker run x": "docker run runs a container", "mkdir a && git commit -m x": "mkdir changes files; git commit changes files",
    "mkdir a && git commit -m x && foo": "mkdir changes files; git commit changes files (and 1 more)",
    "for i in $(ls); do rm $i; done": "what it does is only known when it runs (rm: arguments that are only known when it runs)",
    "f=.env; cat $f": "it reads .env, which may hold secrets",
    "case $i in a) ls;; esac": "it could not be read to the end (a case statement); it runs ls",
    "echo $X | sh": "it could not be read to the end (a variable); it runs echo, sh", "a\u202eb": "the command contains an invisible character (U+202E)",
}  # fmt: skip


@pytest.mark.parametrize(("command", "said"), WHY.items())
def test_a_reason_says_what_a_command_does(command: str, said: str) -> None:
    assert why(judge(command)) == said


@pytest.mark.promise("shell-commands.md", "anything else, with the reason in one line")
@given(st.text(max_size=80) | st.lists(st.sampled_from([*" ;|&\n'\"$<>", *WHY]), max_size=6).map("".join))
def test_whatever_asks_has_a_reason_in_one_line(command: str) -> None:
    judgement = judge(command)
    said = why(judgement)
    assert bool(said) is (judgement.verdict != "plain") and "\n" not in said and len(said) < 700


def asked_about(folder: Path, command: str, **named: object) -> Question:
    asked: list[Question] = []

    async def approver(question: Question) -> Answer:
        asked.append(question)
        return Answer(Verdict.NO)

    shell = Shell(Workspace(folder), sandbox=backend("bubblewrap")(folder))
    box = Toolbox([shell], approver=approver, **named)  # type: ignore[arg-type]
    box.call_sync("shell", {"command": command})
    (question,) = asked
    return question


@pytest.mark.parametrize(
    ("command", "reason"),
    [
        ('printf %s "<secret_ref:API_KEY>"', "it hands over the secret API_KEY"),
        ("curl -H <secret_ref:API_KEY> http://a", "it hands over the secret API_KEY; curl uses the network"),
        (
            "echo '<secret_ref:API_KEY> <secret_ref:B>' | cat",
            "it hands over the secret API_KEY; it hands over the secret B",
        ),
    ],
)
def test_a_secret_is_named_as_the_reason(tmp_path: Path, command: str, reason: str) -> None:
    secrets = Environment(
        ["API_KEY", "B"], environ={"API_KEY": "correct horse battery", "B": "staple staple"}
    )
    question = asked_about(tmp_path, command, secrets=secrets)
    assert question.reason == reason and "<secret_ref:API_KEY>" in question.arguments["command"]


@pytest.mark.parametrize(
    "command", ["mkdir one-of-a-kind", "sed -i s/one-of-a-kind/b/ f", "for i in 1; do one-of-a-kind $i; done"]
)
def test_a_card_says_a_command_once(tmp_path: Path, command: str) -> None:
    lines = [line for _, line in question_lines(asked_about(tmp_path, command))[0]]
    assert sum(command in line for line in lines) == 1
    assert "it can destroy something" not in lines[0]
    assert any("sandbox: " in line for line in lines) and any("in ." in line for line in lines)


def test_what_cannot_be_seen_is_spelled_out_beside_it(tmp_path: Path) -> None:
    preview = asked_about(tmp_path, "mkdir a\u00a0b").preview
    assert "spelled out: mkdir a\\xa0b" in preview
