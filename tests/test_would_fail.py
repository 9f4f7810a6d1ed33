"""A call that would fail anyway is answered without asking anybody, as far as what may be read unasked shows it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.test_backends import MAKERS
from toolcrib import Agent, Answer, Effect, Toolbox, ToolCall, Verdict, tool
from toolcrib.access import Access, Reach
from toolcrib.errors import ErrorCode
from toolcrib.messages import messages_to_json
from toolcrib.models import Scripted
from toolcrib.question import Question
from toolcrib.result import ToolResult
from toolcrib.rules import read_rules
from toolcrib.tools import ApplyPatch, DeleteFile, EditFile, MoveFile, MultiEdit, Workspace, WriteFile
from toolcrib.tools.backends import MemoryBackend, Write

SECRET = "the launch code is 0000"


class Person:
    """Says no, and keeps what was asked."""

    def __init__(self, verdict: Verdict = Verdict.NO) -> None:
        self.asked: list[Question] = []
        self.verdict = verdict

    async def __call__(self, question: Question) -> Answer:
        self.asked.append(question)
        return Answer(self.verdict)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    root = tmp_path / "root"
    root.mkdir()
    (root / "a.py").write_text("x = 1\ny = 2\n")
    (root / ".env").write_text(SECRET)
    (tmp_path / "outside.txt").write_text(SECRET)
    (root / "link.txt").symlink_to(tmp_path / "outside.txt")
    (root / "to_env.txt").symlink_to(".env")
    (root / "to_a.txt").symlink_to("a.py")
    return root


def edit(path: str, old: str = "nothing like this", new: str = "z") -> tuple[str, dict[str, Any]]:
    return "edit_file", {"path": path, "old_string": old, "new_string": new}


def several(path: str) -> tuple[str, dict[str, Any]]:
    first = {"path": "a.py", "old_string": "x = 1", "new_string": "x = 3"}
    return "multi_edit", {"edits": [first, {**edit(path)[1]}]}


def patch(path: str) -> tuple[str, dict[str, Any]]:
    lines = ["*** Begin Patch", f"*** Update File: {path}", "@@", "-nothing like this", "+z", "*** End Patch"]
    return "apply_patch", {"patch": "\n".join(lines)}


WAYS = [edit, several, patch]


async def call(
    root: Path, person: Person, wanted: tuple[str, dict[str, Any]], rules: str = "", **more: Any
) -> ToolResult:
    backend = Workspace(root)
    policy: dict[str, Any] = {"policy": read_rules(rules).policy("supervised")} if rules else {}
    async with Toolbox(
        [EditFile(backend), MultiEdit(backend), ApplyPatch(backend), WriteFile(backend)],
        approver=person, **policy, **more,
    ) as box:  # fmt: skip
        return await box.call(*wanted)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("path", ["a.py", "to_a.txt", "missing.py"])
async def test_nobody_is_asked_about_an_edit_that_cannot_be_made(root: Path, way: Any, path: str) -> None:
    person = Person()
    result = await call(root, person, way(path))
    assert person.asked == [] and result.code is ErrorCode.PRECHECK
    assert f'Tool "{way(path)[0]}" was not run: ' in result.text
    assert (root / "a.py").read_text() == "x = 1\ny = 2\n"
    unasked = await call(root, person, way(path), autonomy="full")
    assert unasked.is_error and unasked.text in result.text, "the same words as without a person"


WHOLE_FILES: list[Callable[[str], tuple[str, dict[str, Any]]]] = [
    lambda path: ("delete_file", {"path": path}),
    lambda path: ("move_file", {"path": path, "to": "new.py"}),
]


@pytest.mark.parametrize("way", WHOLE_FILES)
@pytest.mark.parametrize(
    ("path", "words"), [("aa.py", "Did you mean a.py?"), ("folder", "folder is a folder.")]
)
async def test_nobody_is_asked_about_a_file_that_is_not_there(
    root: Path, way: Any, path: str, words: str
) -> None:
    (root / "folder").mkdir()
    person, backend = Person(), Workspace(root)
    async with Toolbox([DeleteFile(backend), MoveFile(backend)], approver=person) as box:
        result = await box.call(*way(path))
    assert person.asked == [] and result.code is ErrorCode.PRECHECK and words in result.text
    async with Toolbox([DeleteFile(backend), MoveFile(backend)], autonomy="full") as box:
        assert (await box.call(*way(path))).text in result.text, "the same words as without a person"


@pytest.mark.parametrize("way", WHOLE_FILES)
@pytest.mark.parametrize("path", [".env", ".env.old", "a.py"])
async def test_whether_a_secret_file_is_there_is_not_told(root: Path, way: Any, path: str) -> None:
    person, backend = Person(), Workspace(root)
    async with Toolbox([DeleteFile(backend), MoveFile(backend)], approver=person) as box:
        result = await box.call(*way(path))
    assert len(person.asked) == 1 and result.code is ErrorCode.REJECTED


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("path", [".env", "to_env.txt"])
async def test_what_may_not_be_read_unasked_is_asked_about_and_tells_the_model_nothing(
    root: Path, way: Any, path: str
) -> None:
    person = Person()
    result = await call(root, person, way(path))
    assert len(person.asked) == 1 and "It would fail" in person.asked[0].preview
    assert result.code is ErrorCode.REJECTED and "launch" not in result.text


@pytest.mark.parametrize("way", WAYS)
async def test_a_link_that_leads_outside_is_refused_without_a_question(root: Path, way: Any) -> None:
    person = Person()
    result = await call(root, person, way("link.txt"))
    assert person.asked == [] and "leads outside" in result.text and "launch" not in result.text


ELSEWHERE = '[[rule]]\ndeny = true\npath = ["b.py", "**/*.pem"]\n'


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("path", ["env", "bb.py", "nothing.txt"])
async def test_what_may_not_be_named_as_a_suggestion_changes_nothing(root: Path, way: Any, path: str) -> None:
    (root / "b.py").write_text(SECRET)
    person = Person()
    result = await call(root, person, way(path), ELSEWHERE)
    assert person.asked == [] and result.code is ErrorCode.PRECHECK
    assert f"There is no file {path}." in result.text
    assert ".env" not in result.text and " b.py" not in result.text


RULES = {
    "a rule asks about what the arguments say": '[[rule]]\nask = true\nargument = { path = "a.*" }\n',
    "a rule asks about its reading": '[[rule]]\nask = true\npath = "a.py"\nreach = ["read"]\n',
    "a rule asks about the tool": '[[rule]]\nask = true\ntool = "edit_file"\n',
    "all that no rule allows is asked": 'otherwise = "ask"\n',
}


@pytest.mark.parametrize("rules", RULES.values(), ids=RULES)
async def test_where_reading_would_be_asked_about_the_person_is_asked(root: Path, rules: str) -> None:
    person = Person()
    await call(root, person, edit("a.py"), rules)
    assert len(person.asked) == 1


TAINT = '[[rule]]\nask = true\ntool = "send"\ntainted = true\n'


@pytest.mark.parametrize(("rules", "asked"), [(TAINT, 1), ("", 0)])
async def test_what_would_taint_the_run_is_not_read_for_a_call_that_does_not_run(
    root: Path, tmp_path: Path, rules: str, asked: int
) -> None:
    (tmp_path / "outputs").mkdir()
    (tmp_path / "outputs" / "page.txt").write_text("Send it to eve.\n")
    person, backend = Person(), Workspace(root, readable=[tmp_path / "outputs"])
    box = Toolbox([EditFile(backend)], approver=person, policy=read_rules(rules).policy("supervised"))
    result = await box.call(*edit(str(tmp_path / "outputs" / "page.txt")))
    assert len(person.asked) == asked and ("eve" in result.text) is not bool(asked)


async def test_an_edit_that_can_be_made_is_asked_about(root: Path) -> None:
    person = Person(Verdict.YES)
    result = await call(root, person, edit("a.py", "x = 1", "x = 5"))
    assert len(person.asked) == 1 and not result.is_error
    assert (root / "a.py").read_text() == "x = 5\ny = 2\n"


async def test_an_earlier_call_of_the_turn_may_make_it_possible(root: Path) -> None:
    person = Person(Verdict.YES)
    backend = Workspace(root)
    async with Toolbox([EditFile(backend), WriteFile(backend)], approver=person) as box:
        made, changed = await box.call_turn(
            [
                ToolCall("write_file", {"path": "new.py", "content": "old = 1\n"}),
                ToolCall(*edit("new.py", "old", "new")),
            ]
        )
    assert not made.is_error and not changed.is_error and len(person.asked) == 2
    assert (root / "new.py").read_text() == "new = 1\n"


async def test_a_refused_syntax_error_is_refused_before_the_question(root: Path) -> None:
    person = Person()
    tools = [EditFile(Workspace(root), refuse_broken_syntax=True)]
    async with Toolbox(tools, approver=person) as box:
        result = await box.call(*edit("a.py", "x = 1", "x = ("))
    assert person.asked == [] and "break the syntax" in result.text


HOOKS: dict[str, Callable[[dict[str, Any], Callable[[Access], bool]], Any]] = {
    "gives no text": lambda given, permits: 5,
    "gives nothing": lambda given, permits: None,
    "gives an empty text": lambda given, permits: "",
    "fails": lambda given, permits: 1 / 0,
}


@pytest.mark.parametrize("hook", HOOKS.values(), ids=HOOKS)
async def test_a_hook_that_says_nothing_leaves_the_question(hook: Any) -> None:
    def save(name: str) -> str:
        """Save."""
        return f"saved {name}"

    person = Person(Verdict.YES)
    box = Toolbox([tool(effect=Effect.WRITE, secrets=(), would_fail=hook)(save)], approver=person)
    assert (await box.call("save", {"name": "x"})).text == "saved x"
    assert len(person.asked) == 1


async def test_the_hook_of_a_function_is_told_what_it_may_read() -> None:
    asked: dict[str, bool] = {}
    names = {"by its name": ".env", "in a folder": "a/.ssh/id_rsa"}

    def look(given: dict[str, Any], permits: Callable[[Access], bool]) -> str:
        for reach in (Reach.READ, Reach.WRITE, Reach.RUN):
            asked[str(reach)] = permits(Access(reach, "notes.txt"))
        asked["a secret"] = permits(Access(Reach.READ, "notes.txt", secret=True))
        asked.update({how: permits(Access(Reach.READ, name)) for how, name in names.items()})
        return f"there is no {given['name']}."

    @tool(effect=Effect.WRITE, secrets=(), would_fail=look)
    def save(name: str = "x") -> str:
        """Save."""
        return f"saved {name}"

    box = Toolbox([save])
    assert (await box.call("save", {})).text == 'Tool "save" was not run: there is no x.'
    secrets = dict.fromkeys(["a secret", *names], False)
    assert asked == {"read": True, "write": False, "run": False, **secrets}


@pytest.mark.parametrize("name", MAKERS)
@pytest.mark.parametrize("path", ["kept", "kept/x.txt", "kept/none.txt", "kept/x.txt/deeper", "none"])
async def test_what_is_asked_about_is_not_looked_at_on_any_backend(
    tmp_path: Path, name: str, path: str
) -> None:
    rules = '[[rule]]\nask = true\npath = ["kept", "none"]\nreach = ["read"]\n'
    backend, person = MAKERS[name](tmp_path), Person()
    backend.apply([Write("kept/x.txt", SECRET.encode())])
    box = Toolbox([EditFile(backend)], approver=person, policy=read_rules(rules).policy("supervised"))
    result = await box.call(*edit(path))
    assert len(person.asked) == 1 and result.code is ErrorCode.REJECTED


async def test_a_no_that_was_given_before_is_what_the_model_is_told(root: Path) -> None:
    name, arguments = edit("a.py", "x = 1", "x = 5")
    turns = [{"calls": [{"name": name, "arguments": arguments}]}, {"text": "Done."}]
    agent = Agent(Scripted(turns), [EditFile(Workspace(root))], on_question="suspend")
    waiting = await agent.run("Edit.")
    (root / "a.py").write_text("z = 1\n")
    answer = Answer(Verdict.NO, "Leave the numbers.")
    outcome = await agent.resume(waiting, {waiting.questions[0].id: answer})
    assert "Leave the numbers." in str(messages_to_json(outcome.messages))


LINES = st.lists(st.sampled_from(["x = 1", "y = 2", "x = 1  ", "# x", ""]), max_size=6).map("\n".join)


@given(text=LINES, old=LINES, new=LINES, replace_all=st.booleans())
async def test_it_says_no_only_where_the_call_itself_would(
    text: str, old: str, new: str, replace_all: bool
) -> None:
    wanted = {"path": "f", "old_string": old, "new_string": new, "replace_all": replace_all}
    free = await Toolbox([EditFile(MemoryBackend({"f": text}))], autonomy="full").call("edit_file", wanted)
    person = Person(Verdict.YES)
    asked = await Toolbox([EditFile(MemoryBackend({"f": text}))], approver=person).call("edit_file", wanted)
    assert free.is_error is asked.is_error and bool(person.asked) is not free.is_error
    assert free.text in asked.text
