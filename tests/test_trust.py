"""Rules that lie in a project: they count once a person trusted just these, and only to narrow."""

from __future__ import annotations

import os
import pty
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from toolcrib.access import Access, Reach
from toolcrib.cli.main import main
from toolcrib.command.sandbox.files.placeholders import Placeholders
from toolcrib.errors import ToolcribError
from toolcrib.rules import Rule, RulePolicy
from toolcrib.rules.trust import TrustError, TrustStore, project_rules
from toolcrib.toolbox.policy import Verb

RULES = """
[[rule]]
name = "keys"
deny = true
path = "keys/**"
reason = "keys stay where they are"

[[rule]]
name = "anything goes"
allow = true
tool = "write_file"
"""


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in ("CONFIG", "STATE"):
        monkeypatch.setenv(f"XDG_{name}_HOME", str(tmp_path / name.lower()))
    folder = tmp_path / "project"
    (folder / ".toolcrib").mkdir(parents=True)
    (folder / ".toolcrib" / "policy.toml").write_text(RULES)
    monkeypatch.chdir(folder)
    return folder


def file_of(project: Path) -> Path:
    return project / ".toolcrib" / "policy.toml"


def explained(capsys: pytest.CaptureFixture[str], call: str, *more: str) -> tuple[str, str]:
    capsys.readouterr()
    assert main(["policy", "explain", call, *more]) == 0
    said = capsys.readouterr()
    return said.out.splitlines()[0], said.err


KEY = 'read_file {"path": "keys/a"}'
SAVE = 'write_file {"path": "a", "content": ""}'


@pytest.mark.promise(
    "policy.md",
    "Untrusted rules do not protect: rules that are not used forbid nothing. A line says so each time.",
)
@pytest.mark.promise(
    "policy.md",
    "No file in the workspace is an approval, and no file there is a rule until you trust it.",
)
def test_what_nobody_trusted_is_not_used_and_said(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    verdict, said = explained(capsys, KEY)
    assert verdict == "allow"
    assert said.count("\n") == 1
    assert "not used: nobody trusted it" in said
    assert "toolcrib trust ." in said


@pytest.mark.promise("policy.md", "They only restrict.")
def test_trusted_rules_narrow_and_allow_nothing(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["trust", "--yes"]) == 0
    shown = capsys.readouterr().out
    for words in (
        "deny  keys",
        "path: keys/**",
        "reason: keys stay",
        "not used, because a project may not allow anything",
    ):
        assert words in shown
    verdict, said = explained(capsys, KEY)
    assert verdict == "deny: keys stay where they are"
    assert "not used: anything goes" in said
    supervised = explained(capsys, SAVE, "--autonomy", "supervised")
    assert supervised[0] == "ask: it changes something"
    assert explained(capsys, SAVE, "--autonomy", "read_only")[0].startswith("deny")


@pytest.mark.promise("policy.md", "Only this content is trusted.")
def test_a_changed_file_is_not_trusted(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["trust", "--yes"]) == 0
    file_of(project).write_text(RULES.replace("keys/**", "kexs/**"))
    verdict, said = explained(capsys, KEY)
    assert verdict == "allow"
    assert "changed since you trusted it" in said
    assert main(["trust", "--list"]) == 0
    assert "changed since, and not used" in capsys.readouterr().out
    file_of(project).write_text(RULES)
    assert explained(capsys, KEY)[0].startswith("deny")
    assert main(["trust", "--revoke"]) == 0
    assert explained(capsys, KEY)[0] == "allow"
    assert main(["trust", "--revoke"]) == 1


@pytest.mark.promise("policy.md", "Only this content is trusted.")
def test_another_folder_with_the_same_rules_is_not_trusted(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["trust", "--yes"]) == 0
    other = project.with_name("other")
    (other / ".toolcrib").mkdir(parents=True)
    file_of(other).write_text(RULES)
    assert explained(capsys, KEY, "--workspace", str(other))[0] == "allow"
    link = project.with_name("link")
    link.symlink_to(project)
    assert explained(capsys, KEY, "--workspace", str(link))[0].startswith("deny"), "the same folder"


def test_the_rules_hold_in_runs_and_calls(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (project / "keys").mkdir()
    (project / "keys" / "a").write_text("secret stuff")
    assert main(["tools", "call", "read_file", '{"path": "keys/a"}']) == 0
    assert "not used: nobody trusted it" in capsys.readouterr().err
    assert main(["trust", "--yes"]) == 0
    assert main(["tools", "call", "read_file", '{"path": "keys/a"}', "--autonomy", "full"]) == 1
    script = project / "script.yaml"
    script.write_text("- calls: [{name: read_file, arguments: {path: keys/a}}]\n- text: Done.\n")
    capsys.readouterr()
    assert main(["run", "go", "--model", f"scripted:{script}", "--autonomy", "full"]) == 0
    said = capsys.readouterr()
    assert "secret stuff" not in said.out + said.err
    assert "keys stay where they are" in said.out + said.err


@pytest.mark.promise("policy.md", "Only this content is trusted.")
def test_what_was_trusted_is_not_changed_by_a_run(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["trust", "--yes"]) == 0
    call = 'write_file {"path": ".toolcrib/policy.toml", "content": ""}'
    assert explained(capsys, call, "--autonomy", "full")[0].startswith("deny: the project's rules")
    assert explained(capsys, SAVE, "--autonomy", "full")[0] == "allow"


def by_link(project: Path) -> None:
    file_of(project).rename(project / "real.toml")
    file_of(project).symlink_to(project / "real.toml")


def by_linked_folder(project: Path) -> None:
    (project / ".toolcrib").rename(project / "real")
    (project / ".toolcrib").symlink_to("real")


def by_pipe(project: Path) -> None:
    file_of(project).unlink()
    os.mkfifo(file_of(project))


ODD: dict[str, Callable[[Path], Any]] = {
    "a link": by_link,
    "a linked folder": by_linked_folder,
    "a hard link": lambda project: (project / "other.toml").hardlink_to(file_of(project)),
    "a pipe": by_pipe,
    "a folder": lambda project: (file_of(project).unlink(), file_of(project).mkdir()),
    "a device": lambda project: (file_of(project).unlink(), file_of(project).symlink_to("/dev/zero")),
    "huge": lambda project: file_of(project).write_text(RULES + "#" * 70_000),
    "no text": lambda project: file_of(project).write_bytes(b"\xff\xfe" + RULES.encode()),
    "no TOML": lambda project: file_of(project).write_text("deny everything"),
    "deep": lambda project: file_of(project).write_text("a = " + "[" * 30_000),
    "no rules": lambda project: file_of(project).write_text("[[rule]]\nallow = 5"),
    "a folder that is a file": lambda project: (
        file_of(project).unlink(),
        (project / ".toolcrib").rmdir(),
        (project / ".toolcrib").write_text("x"),
    ),
}


@pytest.mark.promise("policy.md", "Only an ordinary file.")
@pytest.mark.parametrize("change", ODD.values(), ids=ODD)
def test_odd_files_are_never_used(
    change: Callable[[Path], Any], project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    change(project)
    with pytest.raises(TrustError):
        project_rules(project)
    assert main(["trust", "--yes"]) == 2
    verdict, said = explained(capsys, KEY)
    assert verdict == "allow"
    lines = [line for line in said.splitlines() if "policy.toml" in line]
    assert len(lines) == 1 and "is not used: " in lines[0]


def test_without_a_file_nothing_is_said(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file_of(project).unlink()
    assert explained(capsys, KEY) == ("allow", "")
    release = Placeholders().hold([str(file_of(project))])  # as for a command of another process
    assert explained(capsys, KEY) == ("allow", "")
    release(None)  # type: ignore[arg-type] # it does not look at the launch
    (project / ".toolcrib").rmdir()
    assert explained(capsys, KEY) == ("allow", "")
    assert main(["trust"]) == 0
    assert "nothing to trust" in capsys.readouterr().out


def test_what_is_shown_hides_nothing(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file_of(project).write_text(
        '[[rule]]\ndeny = true\ntool = "x"\nreason = "a\\u001b[2Jb\\u202e\\nnew line"\n'
    )
    assert main(["trust", "--yes"]) == 0
    shown = capsys.readouterr().out
    assert "\x1b" not in shown
    assert "\u202e" not in shown
    assert "reason: a\\x1b[2Jb\\u202e⏎new line" in shown


def test_a_file_is_shown_in_the_lines_that_python_reads(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A line that Python reads as the end of a comment must not look like code."""
    (project / ".toolcrib" / "tools").mkdir()
    place = project / ".toolcrib" / "tools" / "a.py"
    for text in (
        "A = 1\r\n",
        "A = 1  #\u2028B = 2\x0cC = 3\x85D = 4\x0bE = 5\n",
    ):  # as a whole, then as a difference
        place.write_bytes(text.encode())
        assert main(["trust", "--yes"]) == 0
    assert "A = 1  #\\u2028B = 2\\x0cC = 3\\x85D = 4\\x0bE = 5\n" in capsys.readouterr().out


def test_exceptions_are_shown(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rule = '[[rule]]\ndeny = true\npath = "keys/**"\nexcept = { path = "keys/public", tool = "read_file" }\n'
    (project / ".toolcrib" / "policy.toml").write_text(rule)
    main(["trust"])
    shown = capsys.readouterr().out
    assert 'except: [{"tool": ["read_file"], "path": ["keys/public"]}]' in shown, shown


def test_nobody_at_a_terminal_trusts_nothing(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["trust"]) == 2
    assert "there is no terminal to ask on" in capsys.readouterr().err
    assert explained(capsys, KEY)[0] == "allow"


@pytest.mark.parametrize(
    ("typed", "code"), [("y\n", 0), ("n\n", 1), ("\n", 1), ("yes please\n", 1), ("\x04", 1)]
)
def test_a_person_is_asked(typed: str, code: int, project: Path, tmp_path: Path) -> None:
    ours, theirs = pty.openpty()
    child = subprocess.Popen(
        [sys.executable, "-m", "toolcrib", "trust"], stdin=theirs, stdout=theirs, stderr=theirs, cwd=project
    )
    os.close(theirs)
    try:
        said = b""
        while b"[y/N]" not in said:
            said += os.read(ours, 4096)
        os.write(ours, typed.encode())
        assert child.wait(60) == code
    finally:
        os.close(ours)
    assert b"keys/**" in said
    assert bool(TrustStore(tmp_path / "config" / "toolcrib" / "trusted.json").all()) is (code == 0)


def test_a_file_of_trust_that_others_may_write_trusts_nothing(
    project: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["trust", "--yes"]) == 0
    kept = tmp_path / "config" / "toolcrib" / "trusted.json"
    assert kept.stat().st_mode & 0o077 == 0
    kept.chmod(0o666)
    verdict, said = explained(capsys, KEY)
    assert verdict == "allow"
    assert "could be written by others" in said


def test_trust_given_side_by_side_is_kept(project: Path, tmp_path: Path) -> None:
    found = project_rules(project)
    assert found is not None
    path = tmp_path / "trusted.json"

    def add(number: int) -> None:
        from dataclasses import replace

        for turn in range(5):
            TrustStore(path).add(replace(found, project=f"/p{number}/{turn}"))

    threads = [threading.Thread(target=add, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(TrustStore(path).all()) == 20
    path.write_text('{"format": 1, "trusted": [{"project": 5}]}')
    path.chmod(0o600)
    with pytest.raises(ToolcribError):
        TrustStore(path).all()


def test_examples_of_trusted_rules_are_tried(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file_of(project).write_text(
        RULES + "\n[[rule]]\ndeny = true\npath = 'x'\nmatch = ['read_file {\"path\": \"y\"}']\n"
    )
    assert main(["trust", "--yes"]) == 0
    capsys.readouterr()
    assert main(["policy", "explain", KEY]) == 2
    assert "does not match it" in capsys.readouterr().err


@pytest.mark.promise("policy.md", "They only restrict.")
def test_narrowing_never_widens() -> None:
    users = RulePolicy("supervised", [Rule(verb=Verb.DENY, tools=("shell",))])
    narrowed = users.restricted([Rule(verb=Verb.ALLOW, tools=("shell",))], "full")
    assert narrowed.autonomy.autonomy.value == "supervised"
    assert [rule.verb for rule in narrowed.rules] == [Verb.DENY]
    assert Access(Reach.READ, "a").reach is Reach.READ
