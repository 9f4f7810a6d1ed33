"""Approvals as objects: what exactly was approved, for how long, by whom; and what it rests on is looked at again."""

from __future__ import annotations

import asyncio
import json
import shlex
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule
from pydantic import BaseModel, Field

from tests.properties import examples
from toolcrib import Agent, Answer, Context, Effect, Question, Tool, Toolbox, ToolCall, Verdict, tool
from toolcrib.access import Access, Reach
from toolcrib.assembly import default_tools
from toolcrib.errors import ErrorCode, ToolcribError
from toolcrib.models import Scripted
from toolcrib.prepared import Pending
from toolcrib.question import Lasting, Preview, Scope
from toolcrib.rules import ApprovalStore
from toolcrib.saved_calls import prepared_to_json
from toolcrib.secrets import Environment


def reaches(given: dict[str, Any]) -> list[Access]:
    argv = tuple(shlex.split(given["command"]))
    return [Access(Reach.RUN, given["command"], argv=argv, prefix=argv[:2] if argv[0] == "git" else ())]


@tool(effect=Effect.WRITE, secrets=(), accesses=reaches)
def run(command: str) -> str:
    "Run a command."
    return f"ran {command}"


@tool(effect=Effect.WRITE, secrets=())
def save(path: str, text: str = "") -> str:
    "Save."
    return f"saved {path}"


class Person:
    """Answers every question with the same words, and keeps the questions."""

    def __init__(self, **answer: Any) -> None:
        self.answer = Answer(**{"verdict": Verdict.YES, "by": "ann", **answer})
        self.asked: list[Question] = []
        self.meanwhile: Callable[[], None] = lambda: None

    async def __call__(self, question: Question) -> Answer:
        self.asked.append(question)
        self.meanwhile()
        return self.answer


def box_of(person: Person, **named: Any) -> Toolbox:
    return Toolbox([run, save], approver=person, **named)


async def told(box: Toolbox, command: str) -> str:
    return (await box.call("run", {"command": command})).text


class SyncDesk:
    def __init__(self, given: Any) -> None:
        self.given = given

    def __call__(self, question: Question) -> Any:
        return self.given


async def later(given: Any) -> Any:
    await asyncio.sleep(0)
    return given


APPROVERS: dict[str, Callable[[Any], Any]] = {
    "an async function": lambda given: lambda question: later(given),
    "an object that is async": lambda given: Person(
        verdict=Answer(Verdict.YES if given is True else given).verdict
    ),
    "a sync function": lambda given: lambda question: given,
    "an object that is sync": SyncDesk,
}


@pytest.mark.parametrize("given", [True, "yes", "no", Verdict.ALWAYS, Answer(Verdict.NO)], ids=str)
@pytest.mark.parametrize("form", APPROVERS)
async def test_an_approver_may_be_sync_or_async(form: str, given: Any) -> None:
    given = given.verdict if form == "an object that is async" and isinstance(given, Answer) else given
    result = await Toolbox([save], approver=APPROVERS[form](given)).call("save", {"path": "a"})
    verdict = given.verdict if isinstance(given, Answer) else given
    assert (result.text == "saved a") == (verdict != "no")


async def test_a_sync_approver_does_not_block_the_loop() -> None:
    pressed = threading.Event()

    def approve(question: Question) -> bool:
        return pressed.wait(10)

    async def press() -> None:
        pressed.set()

    result, _ = await asyncio.gather(Toolbox([save], approver=approve).call("save", {"path": "a"}), press())
    assert result.text == "saved a"


async def test_a_sync_approver_that_is_silent_is_nobody_after_the_time_for_an_answer() -> None:
    pressed = threading.Event()
    box = Toolbox([save], approver=lambda question: pressed.wait(10), answer_timeout=0.01)
    assert (await box.call("save", {"path": "a"})).code is ErrorCode.NOBODY_TO_ASK
    pressed.set()


COVERED = {
    # scope: (first call, others with whether they are asked about too)
    Scope.ARGUMENTS: ("git push", {"git push": False, "git push --force": True, "git pull": True}),
    Scope.PREFIX: ("git push", {"git push --force": False, "git push origin main": False, "git pull": True}),
    Scope.TOOL: ("git push", {"git pull": False, "rm -r /": False}),
}


@pytest.mark.promise("policy.md", 'What is remembered by "always" is `scope`')
@pytest.mark.parametrize("scope", COVERED)
async def test_always_is_said_of_something(scope: Scope) -> None:
    first, others = COVERED[scope]
    person = Person(verdict=Verdict.ALWAYS, scope=scope)
    box = box_of(person)
    await told(box, first)
    for command, asks in others.items():
        before = len(person.asked)
        person.answer = Answer(Verdict.YES)
        await told(box, command)
        assert (len(person.asked) > before) is asks, command
    before = len(person.asked)
    await box.call("save", {"path": "x"})
    assert len(person.asked) == before + 1, "another tool was not approved"


def writes(given: dict[str, Any]) -> list[Access]:
    return [Access(Reach(given["reach"]), given["path"], real="link" in given["path"])]


@tool(effect=Effect.WRITE, secrets=(), accesses=writes, approval_ignores=["patience"])
def edit(path: str, text: str = "", patience: int = 1, reach: str = "write") -> str:
    "Edit a file."
    return f"edited {path}"


OFFERED = {"src/a.py": "src", "src/deep/a.py": "src/deep", "a.py": "", "/etc/passwd": "", ".git/config": "", "src/.env": "", "src/link": ""}  # fmt: skip
BELOW_SRC = {
    "src/b.py": True, "src/deep/c.py": True, "srcs/b.py": False, "b.py": False, "src/.env": False,
    "src/.git/config": False, "/src/b.py": False, "src/link": False, "src": False,
}  # fmt: skip


@pytest.mark.promise("policy.md", 'What is remembered by "always" is `scope`')
async def test_always_may_be_said_of_the_files_below_a_folder() -> None:
    for path, folder in OFFERED.items():
        person = Person(verdict=Verdict.NO)
        await Toolbox([edit], approver=person).call("edit", {"path": path})
        assert person.asked[0].folders == ((folder,) if folder else ()), path
    for path, covered in BELOW_SRC.items():
        person = Person(verdict=Verdict.ALWAYS, scope=Scope.FOLDER)
        box = Toolbox([edit], approver=person)
        await box.call("edit", {"path": "src/a.py", "text": "x"})
        await box.call("edit", {"path": path, "text": "y"})
        assert (len(person.asked) == 1) is covered, path
    person = Person(verdict=Verdict.ALWAYS, scope=Scope.FOLDER)
    box = Toolbox([edit, save], approver=person)
    await box.call("edit", {"path": "src/a.py"})
    await box.call("edit", {"path": "src/a.py", "reach": "delete"})
    await box.call("save", {"path": "src/a.py"})
    assert len(person.asked) == 3, "to delete, or another tool, is another thing"


async def test_always_for_a_folder_does_not_cover_files_that_the_tool_itself_asks_about(
    tmp_path: Path,
) -> None:
    (tmp_path / "src").mkdir()
    person = Person(verdict=Verdict.ALWAYS, scope=Scope.FOLDER)
    box = Toolbox(default_tools(tmp_path), approver=person)
    for path in ("src/a.py", "src/b.py", "src/HEAD", "src/c.py"):
        assert not (await box.call("write_file", {"path": path, "content": "x"})).is_error
    assert [question.folders for question in person.asked] == [("src",), ()]


async def test_always_for_a_folder_that_was_said_of_writing_does_not_cover_what_destroys() -> None:
    def written(given: dict[str, Any]) -> list[Access]:
        return [Access(Reach.WRITE, given["path"])]

    def worst(given: dict[str, Any]) -> Effect:
        return Effect.DESTRUCTIVE if given.get("empty") else Effect.WRITE

    @tool(effect=Effect.DESTRUCTIVE, secrets=(), accesses=written, effect_for=worst)
    def change(path: str, empty: bool = False) -> str:
        "Change a file."
        return path

    person = Person(verdict=Verdict.ALWAYS, scope=Scope.FOLDER)
    box = Toolbox([change], approver=person)
    for given in ({"path": "src/a"}, {"path": "src/b"}, {"path": "src/b", "empty": True}):
        await box.call("change", given)
    assert [question.folders for question in person.asked] == [("src",), ()]


async def test_always_for_a_folder_does_not_cover_what_the_tool_asks_about_in_a_run_that_waits(
    tmp_path: Path,
) -> None:
    (tmp_path / "src").mkdir()
    turns: list[Any] = [
        {"calls": [{"name": "write_file", "arguments": {"path": path, "content": "x"}}]}
        for path in ("src/a.py", "src/HEAD")
    ]
    agent = Agent(Scripted([*turns, {"text": "Done."}]), default_tools(tmp_path), on_question="suspend")
    waiting = await agent.run("Write.")
    answer = Answer(Verdict.ALWAYS, scope=Scope.FOLDER)
    outcome = await agent.resume(waiting, {waiting.questions[0].id: answer})
    assert [question.arguments["path"] for question in outcome.questions] == ["src/HEAD"]
    assert not (tmp_path / "src/HEAD").exists()


@pytest.mark.parametrize("scope", [Scope.FOLDER, Scope.PREFIX])
async def test_always_with_arguments_of_the_person_covers_no_folder_and_no_command_that_was_not_shown(
    scope: Scope,
) -> None:
    given: list[dict[str, Any]] = [{"path": "src/a.py"}, {"path": "docs/a.md"}, {"path": "docs/b.md"}]
    name = "edit"
    if scope is Scope.PREFIX:
        name, given = "run", [{"command": f"git {words}"} for words in ("status", "push", "push --force")]
    person = Person(verdict=Verdict.ALWAYS, scope=scope, arguments=given[1])
    box = Toolbox([edit, run], approver=person)
    await box.call(name, given[0])
    person.answer = Answer(Verdict.NO)
    assert not (await box.call(name, given[1])).is_error, "what the person gave is covered"
    assert (await box.call(name, given[2])).code is ErrorCode.REJECTED


async def test_a_default_that_stands_in_the_schema_alone_is_an_argument_of_its_own() -> None:
    class Params(BaseModel):
        path: str
        force: bool | None = Field(None, json_schema_extra={"default": True})

    class Remove(Tool[Params, str], name="remove", effect=Effect.DESTRUCTIVE, secrets=()):
        "Remove."

        def execute(self, params: Params, ctx: Context[Any]) -> str:
            return params.path

    person = Person(verdict=Verdict.ALWAYS)
    box = Toolbox([Remove], approver=person)
    for given in ({"path": "a"}, {"path": "a", "force": True}):
        await box.call("remove", given)
    assert len(person.asked) == 2


async def test_always_for_these_arguments_does_not_depend_on_defaults_and_on_what_the_tool_ignores() -> None:
    person = Person(verdict=Verdict.ALWAYS)
    box = Toolbox([edit], approver=person)
    await box.call("edit", {"path": "a", "patience": 5})
    for same in ({"path": "a"}, {"path": "a", "text": "", "patience": 9}, {"path": "a", "reach": "write"}):
        await box.call("edit", same)
    assert len(person.asked) == 1
    await box.call("edit", {"path": "a", "text": "x"})
    assert len(person.asked) == 2
    with pytest.raises(TypeError, match="approval_ignores names"):
        tool(effect=Effect.READ, secrets=(), approval_ignores=["zz"], name="t")(lambda a: a)


async def test_always_for_a_command_holds_with_another_timeout_and_with_its_default_folder(
    tmp_path: Path,
) -> None:
    person = Person(verdict=Verdict.ALWAYS)
    shell = next(one for one in default_tools(tmp_path) if one.facts.name == "shell")
    box = Toolbox([shell], approver=person)
    command = "python3 -c 'print(1)'"
    for arguments in ({}, {"timeout": 5}, {"workdir": "."}, {"timeout": 7, "workdir": "."}):
        await box.call("shell", {"command": command, **arguments})
    assert len(person.asked) == 1
    (tmp_path / "sub").mkdir()
    await box.call("shell", {"command": command, "workdir": "sub"})
    assert len(person.asked) == 2


@pytest.mark.promise("policy.md", 'What is remembered by "always" is `scope`')
async def test_a_prefix_is_offered_only_where_it_is_safe() -> None:
    person = Person(verdict=Verdict.ALWAYS, scope=Scope.PREFIX)
    box = box_of(person)
    await told(box, "git status")
    await told(box, "python evil.py")
    assert [question.prefixes for question in person.asked] == [(("git", "status"),), ()]
    await told(box, "python evil.py")
    assert len(person.asked) == 2, "without a prefix it was said of these arguments"
    await told(box, "python other.py")
    assert len(person.asked) == 3


@pytest.mark.promise("policy.md", "For how long is `lasting`")
async def test_always_ends_with_its_run_unless_it_is_said_to_last(tmp_path: Path) -> None:
    store = ApprovalStore(tmp_path / "approvals.json")
    for lasting, asked_again in ((Lasting.RUN, True), (Lasting.PROJECT, False), (Lasting.USER, False)):
        person = Person(verdict=Verdict.ALWAYS, lasting=lasting)
        await told(box_of(person, approvals=store, project=tmp_path / "one"), f"git {lasting}")
        await told(box_of(person, approvals=store, project=tmp_path / "one"), f"git {lasting}")
        assert (len(person.asked) == 2) is asked_again
    person = Person()
    other = box_of(person, approvals=store, project=tmp_path / "two")
    await told(other, "git project")
    await told(other, "git user")
    assert [question.arguments["command"] for question in person.asked] == ["git project"]
    assert [(item.lasting, item.by, item.shown) for item in store.all()] == [
        (Lasting.PROJECT, "ann", '{"command": "git project"}'),
        (Lasting.USER, "ann", '{"command": "git user"}'),
    ]


async def test_an_approval_expires_and_can_be_revoked(tmp_path: Path) -> None:
    now = [1000.0]
    store = ApprovalStore(tmp_path / "a.json", clock=lambda: now[0])
    person = Person(verdict=Verdict.ALWAYS, lasting=Lasting.USER, expires=2000.0)
    box = box_of(person, approvals=store, clock=lambda: now[0])
    await told(box, "git push")
    await told(box, "git push")
    assert len(person.asked) == 1
    now[0] = 2001.0
    await told(box, "git push")
    assert len(person.asked) == 2
    person.answer = Answer(Verdict.ALWAYS, lasting=Lasting.USER)
    await told(box, "git fetch")
    kept = store.all()
    assert store.revoke(kept[0].id)
    assert not store.revoke("nothing")
    before = len(person.asked)
    await told(box, "git fetch")
    assert len(person.asked) == before + 1


@pytest.mark.promise("policy.md", "A tool whose description or schema changed is another tool.")
async def test_a_tool_that_changed_is_another_tool(tmp_path: Path) -> None:
    store = ApprovalStore(tmp_path / "a.json")
    person = Person(verdict=Verdict.ALWAYS, lasting=Lasting.USER, scope=Scope.TOOL)
    await told(box_of(person, approvals=store), "git push")

    @tool(effect=Effect.WRITE, secrets=(), name="run")
    def other(command: str) -> str:
        "Run a command as somebody else."
        return "ran"

    box = Toolbox([other], approver=person, approvals=store)
    await box.call("run", {"command": "git push"})
    assert len(person.asked) == 2


async def test_a_file_that_others_may_write_grants_nothing(tmp_path: Path) -> None:
    store = ApprovalStore(tmp_path / "a.json")
    person = Person(verdict=Verdict.ALWAYS, lasting=Lasting.USER)
    await told(box_of(person, approvals=store), "git push")
    assert store.path.stat().st_mode & 0o077 == 0
    store.path.chmod(0o666)
    with pytest.raises(ToolcribError, match="could be written by others"):
        store.all()
    await told(box_of(person, approvals=store), "git push")
    assert len(person.asked) == 2


@pytest.mark.parametrize(
    "text", ["", "[]", "{}", '{"format": 1, "approvals": [{}]}', '{"format": 99, "approvals": []}']
)
async def test_a_file_that_cannot_be_read_grants_nothing(tmp_path: Path, text: str) -> None:
    store = ApprovalStore(tmp_path / "a.json")
    store.path.write_text(text)
    store.path.chmod(0o600)
    with pytest.raises(ToolcribError):
        store.all()
    person = Person()
    assert await told(box_of(person, approvals=store), "git push") == "ran git push"
    assert len(person.asked) == 1


async def test_a_person_may_approve_other_arguments() -> None:
    person = Person(arguments={"command": "git push --dry-run"})
    result = await box_of(person).call("run", {"command": "git push"})
    assert result.text.startswith("ran git push --dry-run")
    assert "A person approved the call with other arguments than yours" in result.text
    assert not result.is_error


@pytest.mark.promise("policy.md", "They are validated and decided on anew")
async def test_other_arguments_are_validated_and_decided_on() -> None:
    from toolcrib.rules import read_rules

    policy = read_rules('[[rule]]\ndeny = true\ncommand = "rm *"').policy()
    person = Person(arguments={"command": "rm -r x"})
    result = await box_of(person, policy=policy).call("run", {"command": "git push"})
    assert result.code is ErrorCode.DENIED


async def test_a_persons_mistake_is_theirs_to_mend() -> None:
    person = Person(arguments={"comand": "ls"})
    result = await box_of(person).call("run", {"command": "git push"})
    assert [question.reason.count("cannot be used (- command:") for question in person.asked] == [0, 1, 1]
    assert person.asked[-1].reason.endswith("; asked because: it changes something")
    assert result.code is ErrorCode.REJECTED and "comand" not in result.text and "Correct" not in result.text

    def mend() -> None:
        if len(person.asked) == 2:
            person.answer = Answer(Verdict.YES, arguments={"command": "git push --dry-run"})

    person = Person(arguments={"command": 5})
    person.meanwhile = mend
    assert "ran git push --dry-run" in await told(box_of(person), "git push")
    assert len(person.asked) == 2


@tool(effect=Effect.WRITE, secrets=())
def login(user: str, password: str, note: str = "") -> str:
    "Log in."
    return f"hello {user}"


@pytest.mark.promise("policy.md", "without secrets and without what stands under the name of a credential")
async def test_what_a_person_wrote_in_confidence_is_not_told_to_the_model() -> None:
    async def store(question: Question) -> Answer:
        mine = {"user": "bob", "password": "pppppp", "note": "x" * 1_990 + "S3CRETVALUE" * 9}
        return Answer(Verdict.YES, arguments=mine)

    box = Toolbox([login], approver=store, secrets=Environment(["KEY"], environ={"KEY": "S3CRETVALUE" * 9}))
    text = (await box.call("login", {"user": "ann", "password": ""})).text
    assert "hello bob" in text and '"password": "(hidden, 6 characters)"' in text
    assert "pppppp" not in text and "S3CRET" not in text


async def test_always_with_other_arguments_is_said_of_those() -> None:
    person = Person(verdict=Verdict.ALWAYS, arguments={"command": "git fetch"})
    box = box_of(person)
    await told(box, "git push")
    person.answer = Answer(Verdict.NO)
    assert await told(box, "git fetch") == "ran git fetch"
    assert "rejected" in await told(box, "git push")


async def test_always_with_arguments_that_need_no_answer_approves_nothing_else() -> None:
    """What was asked about must not be remembered as approved when a person let something else run."""
    from toolcrib.rules import read_rules

    policy = read_rules('[[rule]]\nallow = true\ncommand = "git fetch"').policy()
    for scope in Scope:
        person = Person(verdict=Verdict.ALWAYS, scope=scope, arguments={"command": "git fetch"})
        box = box_of(person, policy=policy)
        assert "ran git fetch" in await told(box, "git push")
        person.answer = Answer(Verdict.NO)
        assert "rejected" in await told(box, "git push"), scope


# -- what a question shows, and what it rests on


def overwriting(target: Path) -> Any:
    def preview(given: dict[str, Any]) -> Preview:
        held = target.read_text() if target.exists() else ""
        return Preview(f"-{held}\n+{given['text']}", digest=f"held {held}")

    @tool(effect=Effect.WRITE, secrets=(), preview=preview)
    def overwrite(text: str) -> str:
        "Overwrite."
        target.write_text(text)
        return "done"

    return overwrite


@pytest.mark.promise("policy.md", "What is shown is the exact thing")
async def test_a_person_sees_what_would_change(tmp_path: Path) -> None:
    target = tmp_path / "a.txt"
    target.write_text("old")
    person = Person()
    box = Toolbox([overwriting(target)], approver=person)
    assert (await box.call("overwrite", {"text": "new"})).text == "done"
    assert person.asked[0].preview == "-old\n+new"
    assert "old" not in json.dumps([question.arguments for question in person.asked])


@pytest.mark.promise(
    "policy.md", "if what it rests on changed while the person thought, they are asked again"
)
@pytest.mark.promise("security.md", "An approval is of the exact thing")
async def test_what_changed_meanwhile_is_asked_again(tmp_path: Path) -> None:
    target = tmp_path / "a.txt"
    target.write_text("old")
    person = Person()
    changes = iter(["changed"])
    person.meanwhile = lambda: (text := next(changes, "")) and target.write_text(text) and None
    box = Toolbox([overwriting(target)], approver=person)
    assert (await box.call("overwrite", {"text": "new"})).text == "done"
    assert len(person.asked) == 2
    assert person.asked[-1].preview == "-changed\n+new"


async def test_what_never_stops_changing_is_not_run(tmp_path: Path) -> None:
    target = tmp_path / "a.txt"
    person = Person()
    person.meanwhile = lambda: (
        target.write_text(target.read_text() + "x" if target.exists() else "x") and None
    )
    box = Toolbox([overwriting(target)], approver=person)
    result = await box.call("overwrite", {"text": "new"})
    assert result.code is ErrorCode.TOOL_CHANGED
    assert "changed while it waited" in result.text
    assert len(person.asked) == 3
    assert "new" not in target.read_text()


async def test_an_answer_from_elsewhere_is_checked_too(tmp_path: Path) -> None:
    """A question that was stored: the answer comes to `execute`, and what it rests on is looked at again."""
    target = tmp_path / "a.txt"
    target.write_text("old")
    box = Toolbox([overwriting(target)])
    prepared = await box.prepare(ToolCall("overwrite", {"text": "new"}))
    assert isinstance(prepared, Pending)
    prepared = await box.preview(prepared)
    target.write_text("changed")
    result = await box.execute(prepared, Answer(Verdict.YES))
    assert result.code is ErrorCode.TOOL_CHANGED
    assert target.read_text() == "changed"


@pytest.mark.promise("policy.md", "Nothing is read or changed before.")
async def test_nothing_is_read_for_a_call_that_is_denied(tmp_path: Path) -> None:
    target = tmp_path / "a.txt"
    read: list[str] = []

    def preview(given: dict[str, Any]) -> Preview:
        read.append(str(target))
        return Preview("", "")

    @tool(effect=Effect.WRITE, secrets=(), preview=preview)
    def overwrite(text: str) -> str:
        "Overwrite."
        return "done"

    await Toolbox([overwrite], autonomy="read_only").call("overwrite", {"text": "x"})
    assert read == []


@pytest.mark.parametrize(
    ("given", "means"),
    [
        (
            {"verdict": "always", "scope": "prefix", "lasting": "user"},
            (Verdict.ALWAYS, Scope.PREFIX, Lasting.USER),
        ),
        ({"verdict": "yes", "scope": "everything"}, (Verdict.YES, Scope.ARGUMENTS, Lasting.RUN)),
        ({"verdict": "maybe", "lasting": None}, (Verdict.NO, Scope.ARGUMENTS, Lasting.RUN)),
    ],
)
def test_unknown_words_count_as_the_narrowest(given: dict[str, Any], means: tuple[Any, ...]) -> None:
    answer = Answer(**given)
    assert (answer.verdict, answer.scope, answer.lasting) == means


COMMANDS = ["git push", "git push --force", "git pull", "rm x", "python a.py"]


class Approving(RuleBasedStateMachine):
    """Whatever is approved, expires and is revoked: a call runs unasked only if what was approved says so."""

    def __init__(self) -> None:
        super().__init__()
        import tempfile

        self.folder = tempfile.TemporaryDirectory()
        self.now = 1000.0
        self.store = ApprovalStore(Path(self.folder.name) / "a.json", clock=lambda: self.now)
        self.person = Person()
        self.box = box_of(self.person, approvals=self.store, project=Path("/p"), clock=lambda: self.now)
        self.model: list[tuple[Scope, str, float, str]] = []  # what was said, until when, its id in the store

    def covered(self, command: str) -> bool:
        argv = shlex.split(command)
        for scope, said, until, _ in self.model:
            if until <= self.now:
                continue
            words = shlex.split(said)
            prefix = scope is Scope.PREFIX and words[0] == "git" and argv[:2] == words[:2]
            same = said == command and (
                scope in (Scope.ARGUMENTS, Scope.FOLDER) or words[0] != "git" or scope is Scope.PREFIX
            )
            if scope is Scope.TOOL or prefix or same:
                return True
        return False

    @rule(
        command=st.sampled_from(COMMANDS),
        scope=st.sampled_from(list(Scope)),
        lasting=st.sampled_from(list(Lasting)),
        seconds=st.sampled_from([None, 50.0]),
        verdict=st.sampled_from(list(Verdict)),
    )
    def call(
        self, command: str, scope: Scope, lasting: Lasting, seconds: float | None, verdict: Verdict
    ) -> None:
        expires = None if seconds is None else self.now + seconds
        self.person.answer = Answer(verdict, scope=scope, lasting=lasting, expires=expires)
        known, ids = self.covered(command), {item.id for item in self.store.all()}
        before = len(self.person.asked)
        result = self.box.call_sync("run", {"command": command})
        assert (len(self.person.asked) == before) is known
        assert result.is_error is (not known and verdict is Verdict.NO)
        if not known and verdict is Verdict.ALWAYS:
            new = next((item.id for item in self.store.all() if item.id not in ids), "")
            self.model.append((scope, command, expires or 1e18, new))

    @rule()
    def wait(self) -> None:
        self.now += 60.0

    @precondition(lambda self: any(item[3] for item in self.model))
    @rule(data=st.data())
    def revoke(self, data: st.DataObject) -> None:
        stored = [item for item in self.model if item[3]]
        item = data.draw(st.sampled_from(stored))
        self.store.revoke(item[3])
        self.model.remove(item)

    @invariant()
    def the_file_is_ours(self) -> None:
        if self.store.path.exists():
            assert self.store.path.stat().st_mode & 0o077 == 0

    def teardown(self) -> None:
        self.folder.cleanup()


TestApproving = Approving.TestCase
TestApproving.settings = examples(25, stateful_step_count=15)


# -- questions that are put elsewhere


@pytest.mark.promise("security.md", "it is looked at again after the wait, also in another process")
async def test_a_question_answered_in_another_process_rests_on_what_was_shown(tmp_path: Path) -> None:
    target = tmp_path / "a.txt"
    for meanwhile, code in (("old", None), ("changed", ErrorCode.TOOL_CHANGED)):
        target.write_text("old")
        pending = await (box := Toolbox([overwriting(target)])).prepare(
            ToolCall("overwrite", {"text": "new"})
        )
        assert isinstance(pending, Pending)
        pending = await box.preview(pending)
        assert pending.question.preview == "-old\n+new"
        stored = json.loads(json.dumps(prepared_to_json(pending)))
        target.write_text(meanwhile)
        other = Toolbox([overwriting(target)])
        result = await other.execute(await other.restore(stored), Answer(Verdict.YES))
        assert result.code is code
        assert target.read_text() == ("new" if code is None else meanwhile)


@pytest.mark.promise("policy.md", "what was denied stays denied wherever it is stored")
@pytest.mark.parametrize(
    ("answer", "code", "files"),
    [
        (Answer(Verdict.NO, "not that"), ErrorCode.REJECTED, []),
        (None, ErrorCode.NOBODY_TO_ASK, []),
        (Answer(Verdict.YES), None, ["once"]),
    ],
)
async def test_a_call_that_has_its_result_keeps_it_wherever_it_is_stored(
    answer: Answer | None, code: ErrorCode | None, files: list[str]
) -> None:
    """What was denied stays denied, what ran does not run again: on a second answer, on resume, in another box."""
    ran: list[str] = []

    @tool(effect=Effect.WRITE, secrets=())
    def once(what: str) -> str:
        "Do it."
        ran.append(what)
        return "done"

    box = Toolbox([once])
    pending = await box.prepare(ToolCall("once", {"what": "once"}))
    first = await box.execute(pending, answer)
    assert (await box.execute(pending, Answer(Verdict.YES))) == first
    stored = json.loads(json.dumps(prepared_to_json(pending)))
    for other in (box, Toolbox([once])):
        again = await other.execute(await other.restore(stored), Answer(Verdict.YES))
        assert (again.code, again.text) == (code, first.text)
    assert ran == files


@pytest.mark.parametrize(
    ("said", "told"),
    [
        ("use\x07 tabs\x1b[31m\x00 instead", "use tabs[31m instead"),
        ("one\n\ttwo", "one\n\ttwo"),
        ("é" * 70_000, "é" * 32_768),
        ("\ud800 half", "? half"),
    ],
)
async def test_what_a_person_says_reaches_the_model_clean_and_of_a_size(said: str, told: str) -> None:
    answer = Answer(Verdict.NO, said)
    assert answer.message == told
    result = await box_of(Person(verdict=Verdict.NO, message=said)).call("save", {"path": "a"})
    assert told in result.text


async def test_a_person_sees_where_a_path_leads(tmp_path: Path) -> None:
    """Also without a preview of the tool's own: the name may be of a link."""
    (tmp_path / "real").mkdir()
    (tmp_path / "real" / "x.txt").write_text("a")
    (tmp_path / "link").symlink_to("real")
    person = Person(verdict=Verdict.NO)
    box = Toolbox(builtin=default_tools(tmp_path), approver=person)
    for name, arguments in (
        ("write_file", {"path": "link/x.txt", "content": "new"}),
        ("edit_file", {"path": "link/x.txt", "old_string": "a", "new_string": "b"}),
    ):
        await box.call(name, arguments)
        assert person.asked[-1].tool == name and "real/x.txt" in person.asked[-1].preview
    await box.call("write_file", {"path": "real/x.txt", "content": "new"})
    assert "leads to" not in person.asked[-1].preview


@pytest.mark.promise("security.md", "The model can neither approve nor see what a person was shown.")
@pytest.mark.parametrize("there", [True, False])
async def test_a_rejected_call_tells_the_model_nothing(tmp_path: Path, there: bool) -> None:
    """What a question showed of the world, the model does not learn from a no: of what it may not read unasked."""
    if there:
        (tmp_path / ".env").write_text("a secret")
    for answer in (Answer(Verdict.NO), None):

        async def person(question: Question, answer: Answer | None = answer) -> Answer | None:
            return answer

        box = Toolbox(builtin=default_tools(tmp_path), approver=person)
        for name, arguments in (
            ("write_file", {"path": ".env", "content": "new"}),
            ("edit_file", {"path": ".env", "old_string": "a secret", "new_string": "b"}),
            ("edit_file", {"path": ".env", "old_string": "another", "new_string": "b"}),
            ("shell", {"command": "rm .env"}),
        ):
            code = "rejected" if answer else "nobody_to_ask"
            assert (await box.call(name, arguments)).text == TOLD[code].format(name)


TOLD = {
    "rejected": 'The user rejected this call of tool "{}"; nothing was run. '
    "Ask what they would prefer, or go on without it.",
    "nobody_to_ask": 'Tool "{}" needs approval and nobody could be asked, so it was not run. '
    "No person has refused it; go on without it, or finish and say that approval is needed.",
}
