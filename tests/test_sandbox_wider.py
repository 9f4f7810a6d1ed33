"""What a sandbox refused, offered to the person: exactly that much more, and nobody else may give it."""

from __future__ import annotations

import json
import os
import shlex
import tempfile
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from tests.sandbox_runs import BACKENDS, backend
from toolcrib import Toolbox
from toolcrib.audit import AuditLog
from toolcrib.call import CallKey
from toolcrib.command.sandbox import Level, Permission, Sandbox
from toolcrib.events import Event, Notice
from toolcrib.question import Answer, Lasting, Question, Scope, Verdict
from toolcrib.rules import ApprovalStore, read_rules
from toolcrib.tools import Process, Shell, Workspace

YES, NO = Answer(Verdict.YES), Answer(Verdict.NO, "write to build/ instead")
ALWAYS = Answer(Verdict.ALWAYS)


@dataclass
class Person:
    """Answers in turn, the last answer again and again; keeps what was asked."""

    answers: list[Answer]
    asked: list[Question] = field(default_factory=list)

    async def __call__(self, question: Question) -> Answer | None:
        self.asked.append(question)
        return self.answers[min(len(self.asked), len(self.answers)) - 1]


@pytest.fixture
def outside(tmp_path: Path) -> Path:
    made = tmp_path / "outside"
    made.mkdir()
    (made / "there").write_text("old\n")
    return made


@pytest.fixture
def ws(tmp_path: Path) -> Workspace:
    (tmp_path / "ws").mkdir()
    return Workspace(tmp_path / "ws")


@pytest.fixture(params=list(BACKENDS))
def sandbox(request: pytest.FixtureRequest, ws: Workspace, outside: Path, tmp_path: Path) -> Sandbox:
    """What lies outside can be seen and not written to; `hidden` cannot be seen."""
    (tmp_path / "hidden").mkdir()
    (tmp_path / "hidden" / "notes").write_text("what is hidden\n")
    made: Sandbox = backend(request.param)(ws.root.path, readable=[outside])
    return made


@pytest.fixture
def box_of(ws: Workspace, sandbox: Sandbox) -> Callable[..., Toolbox]:
    def make(approver: Person | None = None, **options: object) -> Toolbox:
        options.setdefault("autonomy", "full")
        return Toolbox([Shell(ws, sandbox=sandbox)], approver=approver, **options)  # type: ignore[arg-type]

    return make


def sh(box: Toolbox, command: str) -> str:
    return box.call_sync("shell", {"command": command}).text


def printing(said: str) -> str:
    """A command that prints a text and fails; echo would be answered without starting a program."""
    return f"python3 -c {shlex.quote(f'import sys; sys.exit(print({said!r}) or 6)')}"


@pytest.mark.promise("sandbox.md", "with exactly one permission more")
@pytest.mark.promise("policy.md", "you are asked for exactly that much more")
def test_a_yes_gives_exactly_that_path_and_runs_it_again(
    box_of: Callable[..., Toolbox], outside: Path, ws: Workspace
) -> None:
    person = Person([YES])
    command = f"echo ran >> count; echo new > {outside}/there && echo done"
    said = sh(box_of(person), command)
    assert (outside / "there").read_text() == "new\n"
    assert (Path(ws.root.path) / "count").read_text() == "ran\nran\n"
    assert said.startswith("done") and "The user allowed it, and the command was run again" in said
    (question,) = person.asked
    assert question.action == f"let commands write to {outside}/there"
    assert (
        question.patterns[0] == f"write {outside}/there"
        and "beside: files workspace_write" in question.patterns[1]
    )
    assert command in question.preview and "run again from its start" in question.preview
    assert "not your command's fault" not in said


async def test_a_background_command_is_offered_the_same(
    ws: Workspace, sandbox: Sandbox, outside: Path, tmp_path: Path
) -> None:
    """At its start, where it fails at once, and else when its end is read: once, by the same question."""
    person = Person([YES, NO])
    tools = [Shell(ws, sandbox=sandbox), Process(ws)]
    async with Toolbox(tools, autonomy="full", approver=person) as box:
        command = f"echo ran >> count; echo new > {outside}/there && echo done"
        begun = await box.call("shell", {"command": command, "run_in_background": True})
        assert "The user allowed it, and the command was run again from its start" in begun.text
        assert "Started in the background as process echo-2" in begun.text
        await box.call("process", {"process_id": "echo-2", "block": True})
        assert (outside / "there").read_text() == "new\n"
        (question,) = person.asked
        assert question.action == f"let commands write to {outside}/there"
        assert command in question.preview and "run again from its start" in question.preview

        (outside / "other").write_text("other\n")
        late = f"sleep 0.8; echo new > {outside}/other"
        await box.call("shell", {"command": late, "run_in_background": True})
        ended = await box.call("process", {"process_id": "sleep-3", "block": True})
        assert "rejected" in ended.text and "write to build/ instead" in ended.text
        again = await box.call("process", {"process_id": "sleep-3"})
        assert "write to build/ instead" in again.text and len(person.asked) == 2

        person.answers = [YES]
        await box.call("shell", {"command": late, "run_in_background": True})
        allowed = await box.call("process", {"process_id": "sleep-4", "block": True})
        assert "runs again from its start, as process sleep-5" in allowed.text
        await box.call("process", {"process_id": "sleep-5", "block": True})
        assert (outside / "other").read_text() == "new\n" and len(person.asked) == 3


@pytest.mark.promise("sandbox.md", "with exactly one permission more")
def test_the_neighbour_of_what_was_allowed_stays_shut(box_of: Callable[..., Toolbox], outside: Path) -> None:
    (outside / "other").write_text("other\n")
    person = Person([YES, NO])
    said = sh(box_of(person), f"echo new > {outside}/there && echo new > {outside}/other")
    assert (outside / "there").read_text() == "new\n" and (outside / "other").read_text() == "other\n"
    assert [question.patterns[0] for question in person.asked] == [
        f"write {outside}/there",
        f"write {outside}/other",
    ]
    assert "rejected" in said and "write to build/ instead" in said


@pytest.mark.promise(
    "sandbox.md", "it is created empty before the command, and removed after it if it is still empty"
)
def test_a_file_that_is_not_there_may_be_made_and_nothing_beside_it(
    box_of: Callable[..., Toolbox], outside: Path
) -> None:
    person = Person([YES, NO])
    sh(box_of(person), f"echo new > {outside}/made && echo x > {outside}/beside")
    assert (outside / "made").read_text() == "new\n" and not (outside / "beside").exists()


@pytest.mark.promise(
    "sandbox.md", "it is created empty before the command, and removed after it if it is still empty"
)
def test_a_file_that_was_allowed_and_not_made_is_not_left_behind(
    box_of: Callable[..., Toolbox], outside: Path
) -> None:
    command = f"[ -e once ] || {{ touch once; echo x > {outside}/made; }}"
    sh(box_of(Person([YES])), command)
    assert not (outside / "made").exists()


def test_what_is_hidden_can_be_shown(
    box_of: Callable[..., Toolbox], tmp_path: Path, sandbox: Sandbox
) -> None:
    person = Person([YES])
    notes = tmp_path / "hidden" / "notes"
    assert "what is hidden" in sh(box_of(person), f"cat {notes}")
    assert person.asked[0].action == f"let commands read {notes}"
    (notes.parent / "others").write_text("not asked for")
    assert "not asked for" not in sh(box_of(Person([YES, NO])), f"cat {notes.parent}/others {notes}")


def test_what_was_shown_once_leaves_nothing_in_its_place(ws: Workspace) -> None:
    """Right in /tmp too, where commands have a folder of their own."""
    with tempfile.NamedTemporaryFile("w", dir="/tmp", prefix="toolcrib-test-") as file:
        file.write("what is hidden")
        file.flush()
        for name in BACKENDS:
            person = Person([YES, NO])
            box = Toolbox([Shell(ws, sandbox=backend(name)(ws.root.path))], autonomy="full", approver=person)
            assert "what is hidden" in sh(box, f"cat {file.name}")
            assert "rejected" in sh(box, f"cat {file.name}") and len(person.asked) == 2


@pytest.mark.promise(
    "sandbox.md", "If nobody can be asked, or the answer is no, the model is told which of the two it was."
)
def test_no_gives_nothing_and_the_words_go_to_the_model(
    box_of: Callable[..., Toolbox], outside: Path
) -> None:
    said = sh(box_of(Person([NO])), f"echo before; echo new > {outside}/there")
    assert (outside / "there").read_text() == "old\n"
    assert said.startswith("before") and "They say: write to build/ instead" in said


@pytest.mark.promise(
    "sandbox.md", "If nobody can be asked, or the answer is no, the model is told which of the two it was."
)
@pytest.mark.promise("sandbox.md", "Only a person widens a sandbox.")
@pytest.mark.promise("policy.md", "With `person_only=True` rules and autonomy may refuse and not allow")
@pytest.mark.parametrize("rules", ["", '[[rule]]\nallow = true\ntool = "shell"\nreach = "run"\n'])
def test_neither_autonomy_nor_a_rule_widens_and_nobody_is_not_a_no(
    box_of: Callable[..., Toolbox], outside: Path, rules: str
) -> None:
    policy = read_rules(rules).policy("full") if rules else None
    said = sh(box_of(policy=policy), f"echo new > {outside}/there")
    assert (outside / "there").read_text() == "old\n"
    assert "nobody could be asked" in said and "rejected" not in said


@pytest.mark.promise("sandbox.md", "A deny rule on the path or host refuses it, and then nobody is asked.")
def test_a_rule_that_denies_a_path_wins_and_nobody_is_asked(
    box_of: Callable[..., Toolbox], outside: Path
) -> None:
    person = Person([YES])
    # A command whose words do not say where it writes, so that the rule does not meet it before.
    box = box_of(person)
    command = f"python3 -c \"open('{outside}' + '/there', 'w')\""
    policy = read_rules(f'[[rule]]\ndeny = true\npath = "{outside}"\nreason = "not there"\n').policy("full")
    box.policy = policy
    said = sh(box, command)
    assert [q for q in person.asked if q.action.startswith("let commands")] == []
    # Either the sandbox hides it, or nobody is asked to open it.
    assert (outside / "there").read_text() == "old\n" and ("by a rule" in said or "not there" in said)


@pytest.mark.promise(
    "sandbox.md", '"Always" is remembered for that permission together with the level that was in force.'
)
def test_always_is_said_of_the_permission_and_not_of_the_command(
    box_of: Callable[..., Toolbox], outside: Path, ws: Workspace
) -> None:
    person = Person([ALWAYS])
    box = box_of(person)
    sh(box, f"echo one > {outside}/there")
    sh(box, f"echo ran >> count; echo two >> {outside}/there")
    assert (outside / "there").read_text() == "one\ntwo\n" and len(person.asked) == 1
    assert (Path(ws.root.path) / "count").read_text() == "ran\n"  # it had the permission from its start


def test_the_audit_log_says_who_allowed_what(
    box_of: Callable[..., Toolbox], outside: Path, tmp_path: Path
) -> None:
    log = AuditLog(tmp_path / "audit" / "log.jsonl", key=b"k" * 32)
    person = Person([Answer(Verdict.YES, by="ann"), NO])
    box = box_of(person, audit=log)
    sh(box, f"echo new > {outside}/there && echo new > {outside}/other")
    log.flush()
    lines = [json.loads(line) for line in log.path.read_text().splitlines()]
    steps = [line for line in lines if line["event"] == "step"]
    assert [(step["outcome"], step["arguments"]) for step in steps] == [
        ("allowed", f"let commands write to {outside}/there"),
        ("not allowed", f"let commands write to {outside}/other"),
    ]
    assert steps[0]["why"] == "approved by ann" and "They say" in steps[1]["why"]
    assert log.check().broken is None


def test_yes_is_said_once(box_of: Callable[..., Toolbox], outside: Path) -> None:
    person = Person([YES, NO])
    box = box_of(person)
    sh(box, f"echo one > {outside}/there")
    sh(box, f"echo two > {outside}/there")
    assert (outside / "there").read_text() == "one\n" and len(person.asked) == 2


@pytest.mark.promise("sandbox.md", 'No other "always", however wide, includes it.')
def test_always_for_every_call_of_the_tool_widens_nothing(
    box_of: Callable[..., Toolbox], outside: Path, tmp_path: Path
) -> None:
    """The widest answer there is, kept for the user, stands for no permission; nor does one for another."""
    everything = Answer(Verdict.ALWAYS, scope=Scope.TOOL, lasting=Lasting.USER)
    store = ApprovalStore(tmp_path / "approvals.json")
    person = Person([everything, NO])
    box = box_of(person, autonomy="supervised", approvals=store)
    sh(box, f"echo one > {outside}/there")
    assert [question.action for question in person.asked] == [
        "run shell",
        f"let commands write to {outside}/there",
    ]
    assert (outside / "there").read_text() == "old\n"
    person = Person([everything, NO])
    sh(box_of(person), f"echo one > {outside}/there && echo two > {outside}/two")
    assert len(person.asked) == 2 and not (outside / "two").exists()


def test_what_a_user_allowed_for_good_holds_in_another_process(
    box_of: Callable[..., Toolbox], outside: Path, tmp_path: Path
) -> None:
    store = ApprovalStore(tmp_path / "approvals.json")
    forever = Answer(Verdict.ALWAYS, lasting=Lasting.USER)
    sh(box_of(Person([forever]), approvals=store), f"echo one > {outside}/there")
    box = box_of(approvals=ApprovalStore(tmp_path / "approvals.json"))
    sh(box, f"echo two > {outside}/there")
    assert (outside / "there").read_text() == "two\n"
    (kept,) = store.all()
    assert kept.shown == f"let commands write to {outside}/there"
    assert store.revoke(kept.id)
    sh(box, f"echo three > {outside}/there")
    assert (outside / "there").read_text() == "two\n"


def test_what_was_allowed_before_is_known_before_the_first_command(
    box_of: Callable[..., Toolbox], outside: Path, ws: Workspace, tmp_path: Path
) -> None:
    store = ApprovalStore(tmp_path / "approvals.json")
    forever = Answer(Verdict.ALWAYS, lasting=Lasting.USER)
    sh(box_of(Person([forever]), approvals=store), f"echo one > {outside}/there")
    said: list[str] = []

    def listen(event: Event) -> None:
        said.extend([event.message] if isinstance(event, Notice) else [])

    box = box_of(approvals=store)
    listening = box.subscribe(listen)
    for turn, word in enumerate(("two", "three")):
        arguments = {"command": f"echo ran >> count; echo {word} > {outside}/there"}
        told = box.run_sync(box.call("shell", arguments, key=CallKey("run", turn, 0))).text
        assert "again" not in told and (outside / "there").read_text() == f"{word}\n"
    listening.flush(5.0)
    assert (Path(ws.root.path) / "count").read_text() == "ran\nran\n"
    assert len(said) == 1, "once in a run"
    assert f"commands may also write to {outside}/there, as you allowed on 2" in said[0]


@pytest.mark.promise(
    "sandbox.md", '"Always" is remembered for that permission together with the level that was in force.'
)
def test_what_was_allowed_beside_one_level_does_not_widen_another(
    ws: Workspace, outside: Path, tmp_path: Path
) -> None:
    store = ApprovalStore(tmp_path / "approvals.json")
    for name in BACKENDS:
        for level in (Level(), Level.of("read_only"), Level.of("workspace_write", "on")):
            made = backend(name)(ws.root.path, level, readable=[outside])
            forever = Person([Answer(Verdict.ALWAYS, lasting=Lasting.USER)])
            shell = Shell(ws, sandbox=made)
            box = Toolbox([shell], autonomy="full", approver=forever, approvals=store)
            sh(box, f"echo {level.files} > {outside}/there")
            assert len(forever.asked) == 1 and str(level.files) in forever.asked[0].patterns[1]
            sh(box, f"echo again > {outside}/there")
            assert len(forever.asked) == 1 and (outside / "there").read_text() == "again\n"
        for approval in store.all():
            store.revoke(approval.id)


def test_what_was_allowed_and_is_no_more_stops_no_command(
    box_of: Callable[..., Toolbox], outside: Path, tmp_path: Path
) -> None:
    """A folder that is gone, a file that became a pipe: the permission is left, and the next command runs."""
    store = ApprovalStore(tmp_path / "approvals.json")
    forever = Answer(Verdict.ALWAYS, lasting=Lasting.USER)
    sh(box_of(Person([forever]), approvals=store), f"echo one > {outside}/there")
    (outside / "there").unlink()
    os.mkfifo(outside / "there")
    assert sh(box_of(approvals=store), "echo fine") == "fine"
    (outside / "there").unlink()
    outside.rename(tmp_path / "moved")
    assert sh(box_of(approvals=store), "echo fine").startswith("fine")


@pytest.mark.promise("sandbox.md", "Never offered: known places of secrets, files that other programs obey")
@pytest.mark.parametrize("path", [".git/hooks/pre-commit", ".envrc", "~/.ssh/id_trial", "~/.bashrc"])
def test_what_would_be_a_way_out_is_not_offered(ws: Workspace, tmp_path: Path, path: str) -> None:
    """Secrets, and what other programs obey: to open these is the operator's, in so many words."""
    home = tmp_path / "home"
    (home / ".ssh").mkdir(parents=True)
    (home / ".ssh" / "id_trial").write_text("secret")
    (home / ".bashrc").write_text("")
    (Path(ws.root.path) / ".git" / "hooks").mkdir(parents=True)
    for name in BACKENDS:
        made = backend(name)(ws.root.path, home=str(home), readable=[home / ".bashrc"])
        person = Person([YES])
        box = Toolbox([Shell(ws, sandbox=made)], autonomy="full", approver=person)
        place = path.replace("~", str(home))
        said = sh(box, f"cat {place}; echo x >> {place}")
        assert person.asked == [] and "secret" not in said
    assert (home / ".bashrc").read_text() == "" and not (Path(ws.root.path) / ".envrc").exists()


@pytest.mark.promise("sandbox.md", "Never offered: known places of secrets, files that other programs obey")
@pytest.mark.parametrize(
    "command",
    [
        "echo x > {0}/repository/.git/hooks/pre-commit",
        "echo x > {0}/repository/.envrc",
        "mkdir {0}/repository/src",  # would open the folder around it, with the repository's own
        "echo x > /usr/toolcrib-test",
        "mkdir /etc/toolcrib-test",
    ],
)
def test_neither_is_what_others_obey_elsewhere(ws: Workspace, outside: Path, command: str) -> None:
    (outside / "repository" / ".git" / "hooks").mkdir(parents=True)
    for name in BACKENDS:
        person = Person([YES])
        made = backend(name)(ws.root.path, readable=[outside])
        box = Toolbox([Shell(ws, sandbox=made)], autonomy="full", approver=person)
        assert "exit code" in sh(box, command.format(outside)) and person.asked == []


def test_a_folder_is_opened_where_one_is_to_be_made_in_it(
    box_of: Callable[..., Toolbox], outside: Path
) -> None:
    person = Person([YES])
    sh(box_of(person), f"mkdir {outside}/made && echo x > {outside}/made/file")
    assert (outside / "made" / "file").read_text() == "x\n"
    assert "with all below it" in person.asked[0].preview


def test_a_path_that_became_a_link_is_not_followed(ws: Workspace, outside: Path, tmp_path: Path) -> None:
    level = Level(writable=(str(outside / "there"),))
    (outside / "there").unlink()
    (tmp_path / "elsewhere").write_text("as it was")
    (outside / "there").symlink_to(tmp_path / "elsewhere")
    for name in BACKENDS:
        made = backend(name)(ws.root.path, level, readable=[outside, tmp_path / "elsewhere"])
        sh(Toolbox([Shell(ws, sandbox=made)], autonomy="full"), f"echo x > {outside}/there")
    assert (tmp_path / "elsewhere").read_text() == "as it was"


@pytest.mark.promise("sandbox.md", "A folder means everything below it, but secrets in it stay hidden.")
def test_what_is_secret_below_a_folder_that_was_opened_stays_hidden(ws: Workspace, tmp_path: Path) -> None:
    home = tmp_path / "home"
    (home / ".ssh").mkdir(parents=True)
    (home / ".ssh" / "id_trial").write_text("the key")
    (home / "notes").write_text("a note")
    for name in BACKENDS:
        level = Level(readable=(str(home),))
        made = backend(name)(ws.root.path, level, home=str(home))
        said = sh(
            Toolbox([Shell(ws, sandbox=made)], autonomy="full"), f"cat {home}/notes {home}/.ssh/id_trial"
        )
        assert "a note" in said and "the key" not in said


@pytest.mark.promise("policy.md", "you are asked for exactly that much more")
@pytest.mark.parametrize(
    ("more", "level"),
    [
        (Permission("host", "a.example:443"), Level.of("workspace_write", "allowlist", ["a.example:443"])),
        (Permission("network"), Level.of("workspace_write", "on")),
        (Permission("write", "/a"), Level(writable=("/a",))),
        (Permission("read", "/a"), Level(readable=("/a",))),
    ],
)
def test_a_level_and_exactly_one_permission_more(more: Permission, level: Level) -> None:
    assert Level().with_permission(more) == level and level.allows(more) and not Level().allows(more)
    assert level.with_permission(more) == level


def test_the_network_includes_its_hosts() -> None:
    everybody = Level.of("workspace_write", "on")
    assert everybody.allows(Permission("host", "a.example"))
    few = Level.of("workspace_write", "allowlist", ["a.example"])
    assert few.with_permission(Permission("host", "b.example")).hosts == ("a.example", "b.example")
    assert few.with_permission(Permission("network")) == everybody


@pytest.mark.promise("sandbox.md", "with exactly one permission more")
def test_one_host_more_is_reached_and_no_other(ws: Workspace) -> None:
    """The name leads nowhere here: what counts is who says no, the list or the resolver."""
    made = backend("bubblewrap")(ws.root.path)
    person = Person([YES, NO])
    box = Toolbox([Shell(ws, sandbox=made)], autonomy="full", approver=person)
    refused = "curl: (6) Could not resolve host: a.example"
    said = sh(box, f'echo "$https_proxy"; [ -n "$https_proxy" ] || {{ echo \'{refused}\'; exit 6; }}')
    assert person.asked[0].action == "let commands connect to a.example"
    assert said.startswith("http://127.0.0.1:") and "exit code" not in said


@pytest.mark.parametrize(
    ("said", "asked"),
    [
        ("curl: (7) Failed to connect to 10.0.0.5 port 80 after 0 ms: x", "connect to 10.0.0.5:80"),
        ("curl: (7) Failed to connect to 999.0.0.5 port 80 after 0 ms: x", "use the whole network"),
        ("curl: (6) Could not resolve host: intranet", "use the whole network"),
        (
            "fatal: unable to access 'https://a.example/x': Could not resolve host: a.example",
            "connect to a.example",
        ),
    ],
)
def test_what_was_to_be_reached_is_named_as_narrowly_as_it_was_said(
    ws: Workspace, said: str, asked: str
) -> None:
    person = Person([NO])
    box = Toolbox([Shell(ws, sandbox=backend("bubblewrap")(ws.root.path))], autonomy="full", approver=person)
    sh(box, printing(said))
    assert person.asked[0].action == f"let commands {asked}"


@pytest.mark.parametrize(
    ("command", "path"),
    [
        ("touch a", "a"),
        ("echo x > a", "a"),
        ("echo x > sub/a", "sub/a"),
        ("rm sub/b", "sub/b"),
        ("sh -c 'echo x > sub/b'", "sub/b"),
        ("python3 -c \"open('sub/b', 'w')\"", "sub/b"),
    ],
)
def test_what_was_to_be_written_is_named(ws: Workspace, command: str, path: str) -> None:
    (Path(ws.root.path) / "sub").mkdir()
    (Path(ws.root.path) / "sub" / "b").touch()
    for name in BACKENDS:
        person = Person([NO])
        made = backend(name)(ws.root.path, Level.of("read_only"))
        sh(Toolbox([Shell(ws, sandbox=made)], autonomy="full", approver=person), command)
        assert [asked.action for asked in person.asked] == [f"let commands write to {ws.root.path}/{path}"]


@pytest.mark.promise("sandbox.md", "only the whole network can be allowed, and the question says that")
def test_where_a_sandbox_knows_no_list_the_whole_network_is_asked_for(ws: Workspace) -> None:
    made = backend("landlock")(ws.root.path)
    person = Person([NO])
    box = Toolbox([Shell(ws, sandbox=made)], autonomy="full", approver=person)
    sh(box, printing("curl: (6) Could not resolve host: a.example"))
    (question,) = person.asked
    assert question.action == "let commands use the whole network"
    assert "services of this machine too" in question.preview
    person.asked.clear()
    box.policy = read_rules('[[rule]]\ndeny = true\nhost = "a.example"\n').policy("full")
    sh(box, "printf 'curl: (6) Could not resolve host: %s.%s\\n' a example; exit 6")
    assert [asked for asked in person.asked if asked.action.startswith("let commands")] == []
