"""What is in force, as a person sees it: by the real command, in a home of its own."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

import pytest

from tests.command_line import toolcrib
from tests.test_cli_terminal import Pty

WRITES = """
- calls:
    - {name: write_file, arguments: {path: a, content: x}}
    - {name: list_dir, arguments: {}}
    - {name: list_dir, arguments: {}}
- Done.
"""


class Home:
    """A workspace, and a home folder beside it."""

    def __init__(self, root: Path) -> None:
        self.settings, self.ws = root / "home/.config/toolcrib", root / "ws"
        self.settings.mkdir(parents=True)
        self.ws.mkdir()
        self.env = {"PATH": os.environ["PATH"], "HOME": str(root / "home")}
        (self.ws / "writes.yaml").write_text(WRITES)

    def rules(self, text: str) -> None:
        (self.settings / "policy.toml").write_text(text)

    def project(self, text: str) -> None:
        (self.ws / ".toolcrib").mkdir()
        (self.ws / ".toolcrib/policy.toml").write_text(text)
        assert self("trust", "--yes").returncode == 0

    def __call__(self, *arguments: str, stdin: str = "") -> subprocess.CompletedProcess[str]:
        return toolcrib(self.ws, *arguments, stdin=stdin, env=self.env)

    def run(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        return self("run", "x", "-m", "scripted:writes.yaml", *arguments)


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home(tmp_path)


SUPERVISED = ("--autonomy", "supervised")
AUTONOMY = [
    ("full", "", "read_only", "read_only", "--autonomy, while policy.toml says full"),
    ("full", "", "", "full", "policy.toml"),
    ("read_only", "", "full", "read_only", "policy.toml, while --autonomy says full"),
    ("", "read_only", "full", "read_only", "the project, while --autonomy says full"),
    ("", "full", "supervised", "supervised", "--autonomy, while the project says full"),
    ("", "", "full", "full", "--autonomy"),
]


@pytest.mark.parametrize(("file", "project", "flag", "word", "why"), AUTONOMY)
def test_the_lowest_autonomy_counts_and_is_said(
    home: Home, file: str, project: str, flag: str, word: str, why: str
) -> None:
    if file:
        home.rules(f'autonomy = "{file}"')
    if project:
        home.project(f'autonomy = "{project}"')
    flags = ["--autonomy", flag] if flag else []
    done = home.run(*flags)
    assert done.stderr.startswith(f"autonomy {word} ({why}); rules: ")
    assert (home.ws / "a").exists() is (word == "full")
    called = home("tools", "call", "write_file", "--path", "b", "--content", "x", *flags)
    assert (home.ws / "b").exists() is (word == "full")
    assert (f"autonomy {word} ({why})" in called.stderr) is (why not in ("--autonomy", "the default"))
    explained = home("policy", "explain", 'write_file {"path": "a", "content": ""}', *flags).stdout
    assert f"  autonomy    {word} ({why})\n" in explained
    assert explained.startswith({"read_only": "deny", "supervised": "ask", "full": "allow"}[word])


def test_a_run_begins_with_what_is_in_force(home: Home) -> None:
    home.rules('[[rule]]\ndeny = true\npath = "keys"\n[[limit]]\ncalls = 1\ntool = "list_dir"')
    home.project("[[rule]]\nask = true\ntool = 'glob'\n[[limit]]\ncalls = 0\ntool = 'grep'")
    done = home.run("--sandbox", "read_only", "--json")
    line = done.stderr.splitlines()[-1]
    assert (
        "rules: ~/.config/toolcrib/policy.toml (1 rule, 1 limit), .toolcrib/policy.toml of the project"
        in line
    )
    assert line.endswith("; no kept approvals") and "read_only, network off" in line
    assert done.stdout.startswith('{"kind": "run_started"')
    assert home("tools", "call", "grep", "--pattern", "x").stderr.endswith("grep: error (rate_limited)\n")


def test_limits_of_the_file_count_and_what_did_not_run_is_counted(home: Home) -> None:
    home.rules('[[limit]]\ncalls = 1\ntool = "list_dir"')
    done = home.run("--autonomy", "read_only")
    assert done.returncode == 0
    assert 'Tool "list_dir" was not run: at most 1 call of list_dir in a run' in done.stdout
    assert 'Tool "write_file" is not available now; nothing was run.' in done.stdout
    assert "Finished, but 2 of 3 calls did not run.\n2 turns · 3 calls (2 not run)" in done.stdout


def test_a_question_waits_as_long_as_it_is_told(home: Home) -> None:
    terminal = Pty(
        home.ws,
        "run",
        "x",
        "-m",
        "scripted:writes.yaml",
        "--answer-timeout",
        "0.5",
        *SUPERVISED,
        env=home.env,
    )
    terminal.until("[y]es")
    terminal.until("nobody could be asked")
    terminal.until("Finished, but 1 of 3 calls did not run.")
    assert terminal.end() == 0


EXAMPLES = """
[[rule]]
allow = true
tool = "fetch"
host = "example.org"
match = ['fetch {"url": "https://example.org/"}']
not_match = ['fetch {"url": "https://example.com/"}']

[[rule]]
deny = true
tool = "count"
match = ['count {"item": "saw"}']
"""
STORE = """
from toolcrib import Effect, tool

@tool(effect=Effect.READ, secrets=())
def count(item: str) -> str:
    "Count."
    return "3"
"""


def test_examples_of_tools_that_are_not_there_break_no_run(home: Home) -> None:
    home.rules(EXAMPLES)
    (home.ws / "store.py").write_text(STORE)
    done = home.run()
    notes = [line for line in done.stderr.splitlines() if "example" in line]
    assert done.returncode == 0 and len(notes) == 1
    assert "3 examples of tools that do not exist now (fetch, count) were not tried" in notes[0]
    assert home("tools", "call", "list_dir").returncode == 0
    checked = home("policy", "check")
    assert checked.returncode == 0
    assert 'not tried, because there is no such tool now: line 6: fetch {"url": ' in checked.stdout
    assert checked.stdout.endswith("2 rules, 3 examples, 3 not tried\n")
    # fetch may not go there, but the rule is about it all the same
    for host in ("example.org", "elsewhere.example"):
        whole = home("policy", "check", "--from", "store", "--allow-host", host)
        assert (whole.returncode, whole.stdout.rpartition(": ")[2]) == (
            0,
            "2 rules, 3 examples, all decided as they say\n",
        )
    explained = home(
        "policy", "explain", 'fetch {"url": "https://example.org/"}', "--allow-host", "example.org"
    )
    assert explained.stdout.startswith("allow\n")


def test_a_slip_in_an_example_is_an_error(home: Home) -> None:
    home.rules(EXAMPLES.replace('"item"', '"itm"'))
    (home.ws / "store.py").write_text(STORE)
    done = home("policy", "check", "--from", "store")
    assert done.returncode == 2 and "line 12: example 'count" in done.stderr


def test_a_rule_about_no_tool_is_said(home: Home) -> None:
    home.rules('[[rule]]\nname = "r"\ndeny = true\ntool = "read_fil"\n[[rule]]\nask = true\ntool = "fetch"')
    said = "deny rule r (policy.toml:1): no tool is called read_fil; did you mean read_file?"
    checked, run = home("policy", "check"), home.run()
    assert checked.returncode == run.returncode == 0
    assert checked.stdout.startswith(f"warning: {said}\n") and f"note: {said}\n" in run.stderr
    assert checked.stdout.count("warning") == 1  # fetch is known, if not there


FORESEEN = [
    (
        'write_file {"path": ".git/config", "content": ""}',
        "ask: other programs obey",
        "the policy  allows it",
    ),
    (
        'write_file {"path": "/etc/passwd", "content": ""}',
        "deny: /etc/passwd lies outside",
        "the policy  allows it",
    ),
    (
        'write_file {"path": "out/passwd", "content": ""}',
        "deny: out/passwd leads outside",
        "the policy  allows it",
    ),
    ('read_file {"path": "../x"}', "deny: ../x lies outside", "the policy  allows it"),
    ('shell {"command": "ls", "workdir": "/etc"}', "deny: /etc lies outside", "the policy  allows it"),
    ('write_file {"path": "a", "content": ""}', "allow\n", "decided by  autonomy full"),
    ('write_file {"path": "keys/a", "content": ""}', "deny: stay", "decided by  keys (policy.toml:1)"),
    ('read_file {"path": ".//a/../b"}', "allow\n", "reaches     read b\n"),
    ('grep {"pattern": "x"}', "allow\n", "reaches     read all of the workspace\n"),
    (
        'shell {"command": "rm -rf f"}',
        "allow\n",
        "run rm -rf f\n  reaches     delete f and all below\n  auto",
    ),
    ('shell {"command": "mv a b"}', "allow\n", "reaches     delete a\n  reaches     write b\n  autonomy"),
    ('shell {"command": "make a b"}', "allow\n", "  may reach   a, b (rules that deny look at these, too)\n"),
]


@pytest.mark.parametrize(("call", "first", "more"), FORESEEN)
def test_explain_says_what_would_really_happen(home: Home, call: str, first: str, more: str) -> None:
    home.rules('[[rule]]\nname = "keys"\ndeny = true\npath = "keys"\nreason = "stay"')
    (home.ws / "out").symlink_to("/etc")
    done = home("policy", "explain", call, "--autonomy", "full")
    assert done.returncode == 0 and done.stdout.startswith(first), done.stdout
    assert more in done.stdout and "././" not in done.stdout


def test_explain_goes_by_the_sandbox_and_by_what_is_approved(home: Home) -> None:
    call = ("policy", "explain", 'shell {"command": "pytest -q"}')
    assert home(*call).stdout.startswith("allow\n")
    assert home(*call, "--sandbox", "danger_no_sandbox").stdout.startswith("ask: ")
    run = Pty(home.ws, "run", "x", "-m", "scripted:writes.yaml", *SUPERVISED, env=home.env)
    run.until("[y]es")
    run.send("a project\n")
    run.until("Finished.")
    run.end()
    kept = home("policy", "explain", 'write_file {"path": "a", "content": "x"}', *SUPERVISED).stdout
    assert kept.startswith("allow\n  decided by  an approval that you kept: toolcrib approvals list\n")
    assert "  the policy  asks: it changes something (autonomy supervised)" in kept
    assert "; 1 kept approval counts" in home.run().stderr


DOCTOR = [
    (
        "autonomy = 'full'\n[[rule]]\ndeny = true\npath = 'x'",
        0,
        "policy.toml: 1 rule, 0 examples, autonomy full",
    ),
    ("junk", 1, "! your rules: "),
    ("[[rule]]\nallow = true", 1, "policy.toml, line 1: "),
    (
        "[[rule]]\ndeny = true\npath = 'x'\nmatch = ['read_file {\"path\": \"y\"}']",
        1,
        "policy.toml, line 4: ",
    ),
    (EXAMPLES, 0, "3 not tried, because their tools do not exist now"),
]


@pytest.mark.parametrize(("text", "code", "said"), DOCTOR)
def test_doctor_looks_at_the_rules(home: Home, text: str, code: int, said: str) -> None:
    home.rules(text)
    done = home("doctor")
    assert done.returncode == code and said in done.stdout, done.stdout


def test_doctor_names_what_else_counts(home: Home) -> None:
    home.project("[[rule]]\ndeny = true\npath = 'x'\n[[rule]]\nallow = true\ntool = 'write_file'")
    assert home("secrets", "set", "API_KEY", stdin="hunter2-hunter3").returncode == 0
    assert home.run("--audit").returncode == 0
    said = home("doctor").stdout
    for words in (
        "policy.toml does not exist",
        ".toolcrib/policy.toml: 2 rules, trusted, 1 not used",
        "no kept approvals",
        "secrets              1 name\n",
        "lines, all hold",
    ):
        assert words in said, words
    assert "hunter2" not in said and "API_KEY" not in said
    (home.ws / ".cursor").mkdir()
    (home.ws / ".cursor/mcp.json").write_text('{"mcpServers": {"a": {"command": 5}}}')
    assert home("trust", "--yes").returncode == 0
    noted = home("doctor")
    assert (noted.stdout + noted.stderr).count("MCP server a was left out") == 1
    (home.ws / ".toolcrib/policy.toml").write_text("# other\n")
    log = Path(home.env["HOME"]) / ".local/state/toolcrib/audit.jsonl"
    log.write_text(log.read_text().replace("write_file", "read_file"))
    broken = home("doctor")
    assert "changed since you trusted them, and not used" in broken.stdout
    assert broken.returncode == 1 and "does not hold" in broken.stdout


@pytest.mark.parametrize(
    "command",
    [
        "config check",
        "trust",
        "mcp list",
        "mcp test",
        "tools list",
        "doctor",
        "run x -m scripted:writes.yaml",
    ],
)
def test_settings_at_the_top_of_a_project_are_not_passed_over_in_silence(home: Home, command: str) -> None:
    (home.ws / "toolcrib.toml").write_text('[mcp.servers.time]\ncommand = ["uvx", "mcp-server-time"]\n')
    done = home(*command.split())
    said = done.stdout + done.stderr
    assert said.count("is not read: move it to .toolcrib/toolcrib.toml") == 1, said


@pytest.mark.parametrize("group", ["", "tools", "policy", "approvals", "secrets", "audit"])
def test_no_sentence_of_the_help_is_cut(home: Home, group: str) -> None:
    said = home(*[group][: bool(group)], "-h").stdout
    assert not [line for line in said.splitlines() if line.endswith("...") and not line.startswith("Usage")]
    if not group:
        listed = re.findall(r"^  (\S+)", said.partition("Commands:\n")[2], re.MULTILINE)
        assert listed[:3] == ["run", "extract", "undo"]


@pytest.mark.parametrize("typed", [["X", "v-alue"], ["X=v-alue"], ["X", "--v-alue"], ["--", "X", "-v-alue"]])
def test_a_secret_on_the_command_line_is_neither_kept_nor_repeated(home: Home, typed: list[str]) -> None:
    done = home("secrets", "set", *typed, stdin="other-value")
    assert done.returncode == 2 and "v-alue" not in done.stderr and "Nothing was kept" in done.stderr
    assert home("secrets", "list").stdout == ""


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (
            [],
            "asked before a file is changed; the project's own tests run unasked, because the sandbox confines them.",
        ),
        (["--sandbox", "danger_no_sandbox"], "asked before a file is changed or a command is run."),
    ],
)
def test_the_demo_says_what_it_asks_about(home: Home, options: list[str], said: str) -> None:
    terminal = Pty(home.ws, "demo", *options, columns=200, env=home.env)
    terminal.until(said)
    terminal.until("Run it?" if options else "ZeroDivisionError")
    terminal.process.terminate()
    terminal.end()
