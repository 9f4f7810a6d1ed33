"""`toolcrib schema lower` as a person runs it: what a server is sent, what it guarantees, and what is lost."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.command_line import toolcrib
from toolcrib.guided import TARGETS

SCHEMA = {
    "type": "object",
    "properties": {"code": {"type": "string", "maxLength": 4}, "map": {"type": "object"}},
}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "answer.json").write_text(json.dumps(SCHEMA))
    (tmp_path / "sum.gbnf").write_text('root ::= [0-9]+ ("+" [0-9]+)*')
    (tmp_path / "list.json").write_text("[1]")
    return tmp_path


def test_one_server_is_shown_with_what_is_lost(folder: Path) -> None:
    done = toolcrib(folder, "schema", "lower", "--target", "vllm", "answer.json")
    assert done.returncode == 0, done.stderr
    assert "guarantee  enforced in part" in done.stdout
    assert "/properties/code: maxLength: At most 4 characters." in done.stdout
    assert json.loads(done.stdout.partition("fields\n")[2])["structured_outputs"]["json"]["type"] == "object"
    data = json.loads(
        toolcrib(folder, "schema", "lower", "-t", "openai.chat", "answer.json", "--json").stdout
    )
    assert (data["rung"], data["guarantee"], data["tool"]) == ("forced tool", "prompted", "answer")
    assert data["blockers"][0].startswith("native: /properties/map")


def test_all_servers_are_listed_without_a_target(folder: Path) -> None:
    done = toolcrib(folder, "schema", "lower", "sum.gbnf")
    assert [line.split()[0] for line in done.stdout.splitlines()] == [*TARGETS]
    both = toolcrib(folder, "schema", "lower", "--choice", "a", "--choice", "b", "--json")
    assert {row["target"] for row in json.loads(both.stdout)} == set(TARGETS)


WRONG = [
    (("answer.json", "-t", "nobody"), "there is no target 'nobody'"),
    (("missing.json",), "missing.json: No such file"),
    (("list.json",), "a JSON Schema is an object, got list"),
    ((), "give one of FILE, --choice and --regex, not none"),
    (("answer.json", "--regex", "a"), "not FILE and --regex"),
    (("--regex", "(?=a)"), "looks ahead"),
]


def test_what_cannot_be_lowered_is_refused_in_words(folder: Path) -> None:
    for arguments, words in WRONG:
        done = toolcrib(folder, "schema", "lower", *arguments)
        assert done.returncode == 2 and words in done.stderr and not done.stdout, (arguments, done)
    assert "no JSON" in toolcrib(folder, "schema", "lower", "-", stdin="{").stderr
