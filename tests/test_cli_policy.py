"""`toolcrib policy` and `toolcrib approvals`, as a person calls them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from toolcrib.cli.main import main
from toolcrib.question import Lasting, Scope
from toolcrib.rules.approvals import ApprovalStore
from toolcrib.toolbox.approval import Approval

RULES = """
[[rule]]
name = "docs"
allow = true
tool = "write_file"
path = "docs/**"
match = ['write_file {"path": "docs/a.md", "content": "x"}']
not_match = ['write_file {"path": "src/a.md", "content": "x"}']

[[rule]]
name = "keys"
deny = true
path = "keys/**"
reason = "keys stay where they are"
"""


@pytest.fixture
def rules(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "rules.toml"
    path.write_text(RULES)
    return path


def called(*arguments: str) -> int:
    return main([str(argument) for argument in arguments])


EXPLAINED = [
    ('write_file {"path": "docs/a", "content": ""}', "allow", "docs (rules.toml:2)"),
    ('write_file {"path": "src/a", "content": ""}', "ask: it changes something", "autonomy supervised"),
    (
        'write_file {"path": "keys/a", "content": ""}',
        "deny: keys stay where they are",
        "keys (rules.toml:10)",
    ),
    ('read_file {"path": "./keys/../keys/a"}', "deny: keys stay", "keys (rules.toml:10)"),
    ('read_file {"path": "a"}', "allow", "autonomy supervised"),
    ('grep {"pattern": "x"}', "allow", "autonomy supervised"),  # and leaves out what is denied
    ('grep {"pattern": "x", "path": "docs"}', "allow", "autonomy supervised"),
    (
        'write_file {"path": "config/toolcrib/policy.toml", "content": ""}',
        "deny: rules and app",
        "our own files",
    ),
    (
        'write_file {"path": "state/toolcrib/approvals.json", "content": ""}',
        "deny: rules and app",
        "our own files",
    ),
    ('shell {"command": "rm -r config/toolcrib"}', "deny: rules and app", "our own files"),
    (
        'read_file {"path": "config/toolcrib/secrets.json"}',
        "deny: rules, approvals and secrets",
        "our own files",
    ),
    (
        'grep {"pattern": "\\"KEY\\": \\"a", "path": "config/toolcrib"}',
        "deny: rules, approvals",
        "our own files",
    ),
    ('grep {"pattern": "KEY"}', "allow", "autonomy supervised"),  # and leaves them out
    ('write_file {"path": "rules.toml", "content": ""}', "deny: this run goes by it", "our own files"),
    (
        'edit_file {"path": "./RULES.toml", "old_string": "deny", "new_string": "allow"}',
        "deny: this run goes by it",
        "our own files",
    ),
]


def test_a_path_in_full_is_the_file_in_the_workspace(rules: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rules.write_text(f'[[rule]]\ndeny = true\npath = "{rules.parent}/keys/**"')
    for call in (
        ['write_file {"path": "keys/a", "content": ""}'],
        ["write_file", '{"path": "keys/a", "content": ""}'],
    ):
        assert called("policy", "explain", *call, "--policy", rules) == 0
        assert capsys.readouterr().out.startswith("deny")


@pytest.mark.promise(
    "policy.md", "the file tools cannot change it during the run, and neither can commands under bubblewrap"
)
@pytest.mark.parametrize("with_rules", [True, False])
def test_a_run_cannot_change_the_rules_that_it_is_held_to(
    rules: Path, capsys: pytest.CaptureFixture[str], with_rules: bool
) -> None:
    """Also where a person works in a folder above them, with all rights."""
    script = rules.parent / "write.yaml"
    call = "{name: write_file, arguments: {path: config/toolcrib/policy.toml, content: x}}"
    script.write_text(f"- calls:\n    - {call}\n- text: Done.\n")
    named = ("--policy", rules) if with_rules else ()
    called("run", "x", "-m", f"scripted:{script}", "--autonomy", "full", *named)
    assert "not allowed to run" in capsys.readouterr().out
    assert not (rules.parent / "config/toolcrib/policy.toml").exists()


@pytest.mark.promise("policy.md", "prints the decision about a call, who decides, and why")
@pytest.mark.parametrize(("call", "said", "by"), EXPLAINED)
def test_explain(rules: Path, capsys: pytest.CaptureFixture[str], call: str, said: str, by: str) -> None:
    assert called("policy", "explain", call, "--policy", str(rules)) == 0
    first, second, *_ = capsys.readouterr().out.splitlines()
    assert first.startswith(said)
    assert second == f"  decided by  {by}"


@pytest.mark.parametrize(
    ("call", "words"),
    [
        ("nothing {}", 'Unknown tool "nothing"'),
        ("read_file {}", "path"),
        ("read_file [1]", "a name and a JSON object"),
        ("", "a name and a JSON object"),
    ],
)
def test_a_call_that_cannot_be_made(
    rules: Path, capsys: pytest.CaptureFixture[str], call: str, words: str
) -> None:
    assert called("policy", "explain", call, "--policy", str(rules)) == 2
    assert words in capsys.readouterr().err


def test_marks_and_words_of_the_user_can_be_given(rules: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rules.write_text('[[rule]]\nask = true\ntainted = true\ntool = "write_file"\nunsaid = "path"')
    call = 'write_file {"path": "notes", "content": ""}'
    full = ("policy", "explain", call, "--policy", rules, "--autonomy", "full")
    for more, verb in (
        ((), "allow"),
        (("--tainted",), "ask"),
        (("--tainted", "--said", "Write notes."), "allow"),
    ):
        assert called(*full, *more) == 0
        assert capsys.readouterr().out.startswith(verb)
    line = {"name": "write_file", "arguments": {"path": "notes", "content": ""}, "decision": "deny"}
    calls = rules.parent / "calls.jsonl"
    calls.write_text(
        "\n".join(json.dumps(line | more) for more in ({"tainted": True}, {"tainted": True, "said": "notes"}))
    )
    assert called("policy", "test", calls, "--policy", rules, "--autonomy", "full") == 0
    shown = capsys.readouterr().out
    assert "line 1: deny -> ask" in shown and "line 2: deny -> allow" in shown


def test_what_its_tool_never_runs_is_denied(rules: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert called("policy", "explain", 'shell {"command": "rm -rf /"}', "--autonomy", "full") == 0
    said = capsys.readouterr().out
    assert said.startswith("deny") and "the tool itself" in said
    calls = rules.parent / "calls.jsonl"
    calls.write_text('{"name": "shell", "arguments": {"command": "rm -rf /"}, "decision": "allow"}\n')
    assert called("policy", "test", str(calls)) == 0
    assert "line 1: allow -> deny" in capsys.readouterr().out


def test_a_call_by_hand_goes_by_the_rules(rules: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert called("tools", "call", "--policy", rules, "read_file", "--path", "keys/a") == 1
    assert "keys stay where they are" in capsys.readouterr().err
    assert called("tools", "call", "write_file", "--path", "docs/a", "--content", "x", "--policy", rules) == 0
    assert (rules.parent / "docs/a").read_text() == "x"


def test_the_users_own_rules_are_found(rules: Path, capsys: pytest.CaptureFixture[str]) -> None:
    own = rules.parent / "config" / "toolcrib" / "policy.toml"
    own.parent.mkdir(parents=True)
    own.write_text(RULES)
    assert called("policy", "check") == 0
    assert "2 rules, 2 examples, all decided as they say" in capsys.readouterr().out
    called("policy", "explain", 'read_file {"path": "keys/a"}')
    assert capsys.readouterr().out.startswith("deny")


def test_a_rule_that_does_not_do_what_it_says(rules: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rules.write_text(RULES.replace("src/a.md", "docs/b.md"))
    assert called("policy", "check", "--policy", str(rules)) == 2
    assert "rules.toml, line 8: rule 'docs'" in capsys.readouterr().err


def test_recorded_calls_are_decided_anew(rules: Path, capsys: pytest.CaptureFixture[str]) -> None:
    calls = rules.parent / "calls.jsonl"
    lines = [
        {"name": "write_file", "arguments": {"path": "docs/a", "content": ""}, "decision": "ask"},
        {"call": {"name": "read_file", "arguments": {"path": "keys/a"}}, "decision": "deny"},
        {"tool": "read_file", "arguments": {"path": "b"}},
    ]
    calls.write_text("\n".join(json.dumps(line) for line in lines))
    assert called("policy", "test", str(calls), "--policy", str(rules)) == 0
    printed = capsys.readouterr().out
    assert (
        'line 1: ask -> allow  write_file {"path": "docs/a", "content": ""}  (docs (rules.toml:2))' in printed
    )
    assert printed.splitlines()[-1].startswith("2 allow, 0 ask, 1 deny; 1 decided differently")
    other = rules.parent / "other.toml"
    other.write_text("[[rule]]\nask = true\ntool = 'read_file'\n")
    assert called("policy", "test", str(calls), "--policy", str(rules), "--against", str(other)) == 0
    assert "line 3: ask -> allow" in capsys.readouterr().out
    calls.write_text("nonsense\n")
    assert called("policy", "test", str(calls), "--policy", str(rules)) == 2
    assert "line 1" in capsys.readouterr().err


def test_approvals_are_listed_and_revoked(rules: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert called("approvals", "list") == 0
    assert capsys.readouterr().out == "nothing is approved beyond a run\n"
    store = ApprovalStore(rules.parent / "state" / "toolcrib" / "approvals.json")
    kept = Approval("ab12", "shell", "i", Scope.PREFIX, Lasting.PROJECT, "/p", prefixes=(("git", "push"),), by="ann",
                    at=1e9, shown="git push *")  # fmt: skip
    store.add(kept)
    assert called("approvals", "list") == 0
    line = capsys.readouterr().out
    assert line.startswith("ab12  shell: git push *  in /p, approved 2001-09-0")
    assert line.endswith("by ann\n")
    assert called("approvals", "list", "--json") == 0
    assert json.loads(capsys.readouterr().out)[0]["scope"] == "prefix"
    assert called("approvals", "revoke", "nope") == 1
    assert called("approvals", "revoke", "ab12") == 0
    assert store.all() == []


def test_a_run_goes_by_the_rules(rules: Path, capsys: pytest.CaptureFixture[str]) -> None:
    script = rules.parent / "script.yaml"
    script.write_text(
        "- calls: [{name: write_file, arguments: {path: docs/a.md, content: hello}}, "
        "{name: read_file, arguments: {path: keys/a}}]\n- text: Done.\n"
    )
    assert called("run", "go", "--model", f"scripted:{script}", "--policy", str(rules)) == 0
    assert (rules.parent / "docs" / "a.md").read_text() == "hello"
    assert "keys stay where they are" in capsys.readouterr().out


def test_a_run_masks_the_users_secrets(
    rules: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from toolcrib.cli.user_files import secrets_path
    from toolcrib.secrets import SecretFile

    monkeypatch.setenv("HOME", str(rules.parent))
    SecretFile(secrets_path()).set("API_KEY", "hunter2-hunter3-xyz")
    (rules.parent / "a.txt").write_text("the key is hunter2-hunter3-xyz\n")
    script = rules.parent / "script.yaml"
    script.write_text("- calls: [{name: read_file, arguments: {path: a.txt}}]\n- text: Done.\n")
    transcript = rules.parent / "transcript.jsonl"
    assert called("run", "go", "--model", f"scripted:{script}", "--transcript", str(transcript)) == 0
    shown = capsys.readouterr().out
    assert "hunter2-hunter3-xyz" not in shown + transcript.read_text()
    assert "[secret API_KEY]" in transcript.read_text()


@pytest.mark.parametrize("command", [["policy", "check", "--policy"], ["tools", "check", "--from"]])
def test_a_file_that_is_given_without_its_option_is_told_the_option(
    command: list[str], rules: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    *words, option = command
    assert main([*words, str(rules)]) == 2
    assert f"did you mean {option}?" in capsys.readouterr().err


def test_the_settings_of_the_last_server_are_removed_with_their_file(
    rules: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    settings = rules.parent / ".toolcrib" / "toolcrib.toml"
    assert main(["mcp", "add", "--project", "clock", "--", "uvx", "mcp-clock"]) == 0
    assert main(["mcp", "add", "--project", "files", "--", "uvx", "mcp-files"]) == 0
    assert main(["mcp", "remove", "--project", "clock"]) == 0
    assert "files" in settings.read_text()
    assert main(["mcp", "remove", "--project", "files"]) == 0
    assert not settings.exists()
