"""Agents that `toolcrib.toml` names: a run hands tasks to them, each with its own model, tools and limits."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cases import each
from tests.test_cli_config import Home
from toolcrib.assembly import assemble
from toolcrib.cli.named_agents import OuterRun, agents_of_run
from toolcrib.models import Scripted
from toolcrib.settings import SettingsError, join_settings, read_settings

RUN = ("run", "x", "-m", "scripted:answers.yaml", "--no-checkpoints", "--autonomy", "full")
MANAGER = """
- calls: [{name: new_task, arguments: {agent: reviewer, task: Look at a.txt}}]
- text: Reviewed.
"""
REVIEWER = """
- calls:
  - {name: read_file, arguments: {path: a.txt}}
  - {name: write_file, arguments: {path: a.txt, content: by the reviewer}}
- text: It is fine.
- text: Not reached.
"""
OWN_MODEL = "[agents.reviewer]\ndescription = 'Reviews.'\nmodel = 'scripted:reviewer.yaml'\n"


@pytest.fixture
def home(tmp_path: Path) -> Home:
    home = Home(tmp_path)
    (home.project / "answers.yaml").write_text(MANAGER)
    (home.project / "reviewer.yaml").write_text(REVIEWER)
    (home.project / "a.txt").write_text("by hand")
    return home


def results(home: Home, *options: str) -> tuple[dict[str, str], str]:
    """The results of the tools of a run and of its agents, by name, and what was said on stderr."""
    done = home.run(*RUN, "--json", *options)
    events = [json.loads(line) for line in done.stdout.splitlines()]
    ended = [event for event in events if event["kind"] == "call_finished"]
    return {event["tool"]: event["result"]["parts"][0]["text"] for event in ended}, done.stderr


def test_an_agent_has_its_own_model_tools_and_limits(home: Home) -> None:
    assert "new_task" not in home.tools()
    home.users.write_text(OWN_MODEL)
    assert home.shown("tools.new_task") == (True, f"{home.users}, line 1")
    assert home.shown("agents.reviewer") == ("scripted:reviewer.yaml: Reviews.", f"{home.users}, line 1")
    found, _ = results(home)
    assert found["new_task"] == "It is fine."
    assert (home.project / "a.txt").read_text() == "by the reviewer"

    home.users.write_text(f"{OWN_MODEL}tools = ['read_*', 'grpe']\n")
    found, said = results(home)
    assert found["read_file"] == "by the reviewer" and "Unknown tool" in found["write_file"]
    assert "line 4): the run has no tool 'grpe'; did you mean grep?" in said

    home.users.write_text(f"{OWN_MODEL}autonomy = 'read_only'\n")
    assert "not available" in results(home)[0]["write_file"]
    home.users.write_text(f"{OWN_MODEL}max_turns = 1\n")
    assert "the limit of 1 turn" in results(home)[0]["new_task"]
    home.users.write_text(f"{OWN_MODEL}[groups]\ndelegation = false\n")
    assert "Unknown tool" in results(home)[0]["new_task"]


def test_an_agent_may_do_no_more_than_the_run(home: Home) -> None:
    home.users.write_text(f"{OWN_MODEL}autonomy = 'full'\n")
    results(home, "--autonomy", "supervised")
    assert (home.project / "a.txt").read_text() == "by hand"


def test_an_agent_hands_out_tasks_where_its_tools_name_new_task_but_not_to_itself(home: Home) -> None:
    (home.project / "reviewer.yaml").write_text(
        "- calls: [{name: new_task, arguments: {agent: writer, task: Write}}]\n"
        "- calls: [{name: new_task, arguments: {agent: reviewer, task: Again}}]\n"
        "- text: Both.\n"
    )
    (home.project / "writer.yaml").write_text(
        "- calls: [{name: new_task, arguments: {agent: reviewer, task: Back}}]\n- text: Written.\n"
    )
    writer = "[agents.writer]\ndescription = 'Writes.'\nmodel = 'scripted:writer.yaml'\n"
    home.users.write_text(f"{OWN_MODEL}tools = ['new_task']\n{writer}")
    done = home.run(*RUN, "--json")
    for words in ("Written.", "waits for the result of this task already", "Both.", "Unknown tool"):
        assert words in done.stdout
    home.users.write_text(f"{OWN_MODEL}tools = ['new_task']\n{writer}[delegation]\nmax_depth = 1\n")
    assert "Max delegation depth reached (1)" in home.run(*RUN, "--json").stdout


def test_an_agent_that_cannot_be_used_is_left_out_with_the_reason(home: Home) -> None:
    home.users.write_text(
        "[agents.reviewer]\ndescription = 'R'\nmodel = 'opnai:x'\n"
        "[agents.paid]\ndescription = 'P'\nmodel = 'openai:gpt-5'\n"
        "[agents.lost]\ndescription = 'L'\ninstructions_file = 'agents/lost.md'\n"
    )
    found, said = results(home)
    assert 'agent: expected one of "helper"' in found["new_task"]
    assert f"reviewer is left out ({home.users}, line 1): model: unknown model 'opnai:x'" in said
    assert "paid is left out" in said and "--model" not in said.split("paid is left out")[1].split("\n")[0]
    assert "there is no file agents/lost.md" in said
    checked = home.run("config", "check")
    assert checked.returncode == 1
    for words in ("unknown model 'opnai:x'", "openai:gpt-5 lacks a key", "there is no file agents/lost.md"):
        assert words in checked.stdout
    home.users.write_text("[delegation]\nhelper = false\n[groups]\ndelegation = true\n")
    assert "not available" in results(home)[0]["new_task"], "there is no agent"


def test_the_instructions_of_an_agent_follow_those_on_the_workspace(tmp_path: Path) -> None:
    (tmp_path / "agents").mkdir()
    (tmp_path / "agents" / "b.md").write_text("You find one fault.")
    path = tmp_path / "toolcrib.toml"
    text = "[agents.a]\ndescription = 'A'\n[agents.b]\ndescription = 'B'\ninstructions_file = 'agents/b.md'\n"
    joined = join_settings(
        [read_settings(f"{text}[agents.c]\ndescription = 'C'\ninstructions = 'Sing.'", str(path))]
    )
    model = Scripted(lambda request: request.messages[0].text)
    outer = OuterRun(tmp_path, assemble([]), model, "", "Work well.", "In a folder.")
    agents = agents_of_run(outer, joined)
    assert {name: one.agent.run_sync("Go.").text for name, one in agents.items()} == {
        "helper": "Work well.",
        "a": "Work well.",
        "b": "In a folder.\n\nYou find one fault.",
        "c": "In a folder.\n\nSing.",
    }


def test_a_project_names_agents_but_not_what_they_cost(home: Home) -> None:
    home.projects.write_text(f"{OWN_MODEL}instructions_file = 'reviewer.md'\n")
    (home.projects.parent / "reviewer.md").write_text("You find two faults.")
    assert "new_task" not in home.tools(), "nobody trusted the file"
    shown = home.run("trust", "--yes").stdout
    assert ".toolcrib/reviewer.md" in shown and "    You find two faults." in shown
    _, said = results(home)
    assert "works with the model of the run, since your own settings do not allow projects the model" in said
    assert (home.project / "a.txt").read_text() == "by hand"

    home.users.write_text("[delegation]\nmodels = ['scripted:*']\n")
    assert results(home)[0]["new_task"] == "It is fine."
    (home.projects.parent / "reviewer.md").write_text("You find none.")
    assert "reviewer.md: it changed since you trusted it" in results(home)[1]

    home.projects.write_text(f"{OWN_MODEL}[delegation]\nmodels = ['*']\n")
    home.users.unlink()
    assert home.run("trust", "--yes").returncode == 0
    assert "do not allow projects the model" in results(home)[1]


def test_an_agent_of_the_user_stands_before_one_of_the_project() -> None:
    users = read_settings("[agents.a]\ndescription = 'mine'\n[delegation]\nmax_depth = 2\n")
    project = read_settings(
        "[agents.a]\ndescription = 'theirs'\n[agents.b]\ndescription = 'b'\n[delegation]\nmax_depth = 9\n",
        of_project=True,
    )
    joined = join_settings([project, users])
    assert [(one.name, one.settings.description) for one in joined.agents] == [("a", "mine"), ("b", "b")]
    assert joined.settings.delegation.max_depth == 2


MISTAKES = [
    ("[agents.a]\nmodel = 'x'", 1, "agents.a.description is missing: What it can be asked to do"),
    ("[agents.a]\ndescription = ''", 2, "agents.a.description must be a text that is not empty; got ''"),
    ("[agents.a]\ndescription = 'd'\nsystem_prompt = 'x'", 3, "unknown key 'system_prompt' in [agents.a]; did you mean instructions?"),
    ("[agents.a]\ndescription = 'd'\nallowed_tools = []", 3, "unknown key 'allowed_tools' in [agents.a]; did you mean tools?"),
    ("[agents.a]\ndescription = 'd'\nmax_turns = 0", 3, "agents.a.max_turns must be a number above 0; got 0"),
    ("[agents.a]\ndescription = 'd'\nmax_turns = 'x'", 3, "agents.a.max_turns must be a whole number; got 'x'"),
    ("[agents.a]\ndescription = 'd'\ntemperature = -1", 3, "agents.a.temperature must be at least 0; got -1"),
    ("[agents.a]\ndescription = 'd'\nautonomy = 'yolo'", 3, "agents.a.autonomy must be 'read_only'"),
    ("[agents.a]\ndescription = 'd'\ntools = ['[z-a]']", 3, "agents.a.tools: '[z-a]' cannot be read"),
    ("[agents.a]\ndescription = 'd'\ninstructions_file = '../x'", 3, "agents.a.instructions_file: expected a path below"),
    ("[agents.a]\ndescription = 'd'\ninstructions = 'x'\ninstructions_file = 'x'", 1, "agents.a: give instructions or"),
    ("[agents.'a b']\ndescription = 'd'", 1, "agents: the name 'a b' must have at most 64 characters"),
    ("[delegation]\nmax_depth = 11", 2, "delegation.max_depth must be at most 10; got 11"),
]  # fmt: skip


@each("text, line, words", MISTAKES)
def test_mistakes_are_named_with_their_line(text: str, line: int, words: str) -> None:
    with pytest.raises(SettingsError) as caught:
        read_settings(text)
    assert str(caught.value).startswith(f"toolcrib.toml, line {line}: {words}")


def test_the_terminal_says_whose_call_it_is(home: Home) -> None:
    home.users.write_text(OWN_MODEL)
    shown = home.run(*RUN).stdout
    assert "SUCCESS reviewer › read_file" in shown and "SUCCESS new_task" in shown


def test_a_refused_call_shows_lists_and_objects_as_json(home: Home) -> None:
    home.project.joinpath("answers.yaml").write_text(
        "- calls: [{name: read_file, arguments: {path: [a, b], limit: {least: 1, of: [2, {x: [y]}]}}}]\n- Done.\n"
    )
    shown = home.run(*RUN).stdout
    assert 'path=["a", "b"]  limit={"least": 1, "of": [2, {"x": ["y"]}]}' in shown


def test_a_run_that_only_reads_may_hand_out_tasks_that_only_read(home: Home) -> None:
    """A helper has at most its maker's rights, so what it may not change need not be asked about."""
    home.users.write_text(f"{OWN_MODEL}autonomy = 'full'\n")
    found, _ = results(home, "--autonomy", "read_only")
    assert found["new_task"] == "It is fine." and found["read_file"] == "by hand"
    assert "not available" in found["write_file"] or "only reading" in found["write_file"]
    assert (home.project / "a.txt").read_text() == "by hand"
