"""Questions of one turn that wait at the same time are put together, and each answer stays its own question's."""

import asyncio
import io
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from rich.cells import chop_cells
from rich.console import Console

from tests.cases import each
from tests.test_cli_terminal import Pty
from toolcrib import Answer, Effect, Question, Toolbox, ToolCall, Verdict, tool
from toolcrib.call import CallKey
from toolcrib.cli.console import ESCAPED
from toolcrib.cli.group_prompt import Kind, _kind_of, ask_together
from toolcrib.cli.prompt import ask_on
from toolcrib.tools import Workspace, workspace_tools

YES, NO = Answer(Verdict.YES), Answer(Verdict.NO, "not this one")


class Desk:
    """An approver that takes several questions at once, and answers by the name of the file."""

    def __init__(self, **answers: Any) -> None:
        self.answers = answers
        self.asked: list[list[Question]] = []

    def answer(self, question: Question) -> Any:
        return self.answers.get(Path(str(question.arguments.get("path"))).stem, YES)

    async def __call__(self, question: Question) -> Any:
        self.asked.append([question])
        return self.answer(question)

    async def ask_all(self, questions: tuple[Question, ...]) -> Any:
        self.asked.append(list(questions))
        return [self.answer(question) for question in questions]

    @property
    def counts(self) -> list[int]:
        return [len(group) for group in self.asked]


class Clerk:
    """An approver that is asked one by one."""

    def __init__(self) -> None:
        self.asked: list[Question] = []

    async def __call__(self, question: Question) -> Answer:
        self.asked.append(question)
        return YES


def writes(*names: str, content: str = "new\n") -> list[ToolCall]:
    return [
        ToolCall("write_file", {"path": name, "content": content}, str(number))
        for number, name in enumerate(names)
    ]


def files_in(folder: Path) -> list[str]:
    return [path.name for path in folder.iterdir()]


def box_in(folder: Path, approver: Any, **options: Any) -> Toolbox:
    return Toolbox(workspace_tools(Workspace(folder)), approver=approver, **options)


async def test_edits_of_one_turn_are_asked_together(tmp_path: Path) -> None:
    desk = Desk(b=NO, c=Answer(Verdict.YES, arguments={"path": "c.txt", "content": "a person's\n"}))
    results = await box_in(tmp_path, desk).call_turn(writes("a.txt", "b.txt", "c.txt", "d.txt"))
    assert desk.counts == [4]
    assert [question.arguments["path"] for question in desk.asked[0]] == ["a.txt", "b.txt", "c.txt", "d.txt"]
    assert all(question.preview for question in desk.asked[0])
    assert len({question.fingerprint for question in desk.asked[0]}) == 4
    assert [result.code for result in results] == [None, "rejected", None, None]
    assert "not this one" in results[1].text
    assert not (tmp_path / "b.txt").exists()
    assert (tmp_path / "c.txt").read_text() == "a person's\n"


async def test_an_approver_without_it_is_asked_one_by_one(tmp_path: Path) -> None:
    clerk = Clerk()
    await box_in(tmp_path, clerk).call_turn(writes("a.txt", "b.txt", "c.txt"))
    assert sorted(question.arguments["path"] for question in clerk.asked) == ["a.txt", "b.txt", "c.txt"]


async def test_one_question_is_asked_as_one(tmp_path: Path) -> None:
    desk = Desk()
    await box_in(tmp_path, desk).call_turn([*writes("a.txt"), ToolCall("list_dir", {"path": "."}, "l")])
    assert desk.counts == [1]


@pytest.mark.promise(
    "policy.md",
    "A call that has to wait for an earlier one of the turn, such as a second edit of the "
    "same file, is asked about after that.",
)
async def test_what_rests_on_an_earlier_call_is_asked_after_it(tmp_path: Path) -> None:
    desk = Desk()
    calls = writes("a.txt", "a.txt", "b.txt")
    calls[1] = ToolCall("write_file", {"path": "a.txt", "content": "newer\n"}, "again")
    await box_in(tmp_path, desk).call_turn(calls)
    assert desk.counts == [2, 1]
    assert "-new" in desk.asked[1][0].preview  # of what the first call wrote
    assert (tmp_path / "a.txt").read_text() == "newer\n"


@pytest.mark.promise("policy.md", "Each answer is bound to its own question")
async def test_an_always_for_one_is_no_answer_for_the_others(tmp_path: Path) -> None:
    desk = Desk(a=Answer(Verdict.ALWAYS), b=NO)
    box = box_in(tmp_path, desk)
    results = await box.call_turn(writes("a.txt", "b.txt"))
    assert [result.code for result in results] == [None, "rejected"]
    again = await box.call_turn(writes("a.txt", "b.txt"), turn=2)
    assert [result.code for result in again] == [None, "rejected"]
    assert desk.counts == [2, 1]  # the second time only about b.txt


@pytest.mark.promise("policy.md", "Each answer is bound to its own question")
async def test_a_yes_holds_for_what_was_shown_only(tmp_path: Path) -> None:
    """One of several files changes while the person looks: it is asked about again, the others run."""
    (tmp_path / "a.txt").write_text("old\n")

    class Slow(Desk):
        async def ask_all(self, questions: tuple[Question, ...]) -> Any:
            (tmp_path / "a.txt").write_text("changed meanwhile\n")
            return await super().ask_all(questions)

    desk = Slow()
    await box_in(tmp_path, desk).call_turn(writes("a.txt", "b.txt"))
    assert desk.counts == [2, 1]
    assert "-changed meanwhile" in desk.asked[1][0].preview


WRONG: list[Any] = [None, [], [YES], [YES, YES, YES], "yes", {"a": YES}, [None, "perhaps"]]


@pytest.mark.promise("policy.md", "A list of another length allows nothing.")
@each("given", [(given,) for given in WRONG])
async def test_answers_that_fit_no_question_allow_nothing(tmp_path: Path, given: Any) -> None:
    class Wrong(Desk):
        async def ask_all(self, questions: tuple[Question, ...]) -> Any:
            return given

    results = await box_in(tmp_path, Wrong()).call_turn(writes("a.txt", "b.txt"))
    assert {result.code for result in results} == {"nobody_to_ask"}
    assert files_in(tmp_path) == []


@pytest.mark.promise("policy.md", "No answer is a no.")
async def test_an_approver_that_fails_or_is_silent_allows_nothing(tmp_path: Path) -> None:
    class Broken(Desk):
        async def ask_all(self, questions: tuple[Question, ...]) -> Any:
            raise RuntimeError("no desk")

    class Silent(Desk):
        async def ask_all(self, questions: tuple[Question, ...]) -> Any:
            await asyncio.sleep(60)

    for desk in (Broken(), Silent()):
        box = box_in(tmp_path, desk, answer_timeout=0.05)
        results = await box.call_turn(writes("a.txt", "b.txt"))
        assert {result.code for result in results} == {"nobody_to_ask"}


async def test_a_sync_approver_may_take_several(tmp_path: Path) -> None:
    class Sync:
        counts: list[int] = []  # noqa: RUF012

        def __call__(self, question: Question) -> bool:
            return True

        def ask_all(self, questions: tuple[Question, ...]) -> list[bool]:
            self.counts.append(len(questions))
            return [True] * len(questions)

    await box_in(tmp_path, Sync()).call_turn(writes("a.txt", "b.txt"))
    assert Sync.counts == [2]


async def test_a_cancelled_turn_leaves_no_question_behind(tmp_path: Path) -> None:
    class Silent(Desk):
        reached = asyncio.Event()

        async def ask_all(self, questions: tuple[Question, ...]) -> Any:
            self.reached.set()
            await asyncio.Event().wait()

    desk = Silent()
    work = asyncio.create_task(box_in(tmp_path, desk).call_turn(writes("a.txt", "b.txt")))
    await desk.reached.wait()
    work.cancel()
    with pytest.raises(asyncio.CancelledError):
        await work
    assert files_in(tmp_path) == []


async def test_many_questions_of_slow_and_refused_calls() -> None:
    """Calls that are refused, that only read, and that ask, in any mix: everybody is answered."""

    @tool(effect=Effect.WRITE, secrets=(), resources=lambda given: [given["path"]])
    async def put(path: str) -> str:
        """Put something."""
        await asyncio.sleep(0)
        return path

    desk = Desk()
    names = [str(number % 7) for number in range(40)]
    calls = [
        ToolCall("put" if number % 5 else "nothing", {"path": name}, str(number))
        for number, name in enumerate(names)
    ]
    results = await Toolbox([put], approver=desk).call_turn(calls)
    assert [result.code for result in results] == [
        None if number % 5 else "unknown_tool" for number in range(40)
    ]
    assert sum(desk.counts) == 32 and max(desk.counts) > 1


# -- on the terminal

SCRIPT = """
turns:
  - calls:
      - {name: write_file, arguments: {path: src/a.txt, content: "one\\n"}}
      - {name: write_file, arguments: {path: src/b.txt, content: "two\\n"}}
      - {name: write_file, arguments: {path: src/deep/c.txt, content: "three\\n"}}
  - Done.
"""
GROUP = "none, and tell the model: "
ONE = " WORDS"
TYPED = [
    # what is typed at each prompt, which files are there then
    ([(GROUP, "a\n")], "abc"),
    ([(GROUP, "n use one file\n")], ""),
    ([(GROUP, "\n")], ""),
    ([(GROUP, "y\n"), (GROUP, "yes\n"), (GROUP, "yes\n")], ""),  # no clear answer is a no
    ([(GROUP, "d\n"), (GROUP, "a\n")], "abc"),
    ([(GROUP, "e\n"), (ONE, "y\n"), (ONE, "n\n"), (ONE, "y\n")], "ac"),
]


@each(("typed", "written"), TYPED)
def test_the_prompt_for_several(tmp_path_factory: Any, typed: list[tuple[str, str]], written: str) -> None:
    folder = tmp_path_factory.mktemp("w")
    (folder / "edits.yaml").write_text(SCRIPT)
    run = Pty(folder, "run", "x", "-m", "scripted:edits.yaml", "--autonomy", "supervised", columns=120)
    seen = ""
    for prompt, line in typed:
        seen = run.until(prompt)
        run.send(line)
        if line == "d\n":
            assert "+two" not in seen
            seen = run.until("Run them?")
            assert "+two" in seen and "+three" in seen
    first = typed[0][0]
    assert first == GROUP
    rest = run.until("Done.")
    run.end()
    assert "".join(sorted(path.stem for path in (folder / "src").rglob("*.txt"))) == written, rest


def question(number: int, **named: Any) -> Question:
    fields = {
        "arguments": {"path": f"{number}"},
        "effect": "write",
        "reason": "it changes something",
        **named,
    }
    return Question(CallKey("r", 1, number), "t", "run t", fingerprint=str(number), **fields)


ALONE = [
    ({}, False),
    ({"arguments": {"command": "ls"}}, False),
    ({"arguments": {"anything": 1}}, False),
    ({"strict": True}, True),
    ({"patterns": ("write /srv",)}, True),
    ({"preview": "it leads to .env\n+x"}, True),
    ({"arguments": {"path": f"{'x' * 200}/.bashrc", "content": "a"}, "preview": "+a"}, True),
]


@each(("named", "alone"), ALONE)
def test_what_a_person_must_look_at_by_itself_is_in_no_group(named: dict[str, Any], alone: bool) -> None:
    first, second = (_kind_of(question(number, **named), number) for number in (1, 2))
    assert isinstance(first, Kind)
    assert (first != second) == alone


HIDING = [
    # arguments beside the path, and what a person has to see of them
    ({"path": "c.txt", "to": "public/c.txt"}, "", "public/c.txt"),
    ({"path": "c.txt", "url": "https://elsewhere.test"}, "+one", "https://elsewhere.test"),
    ({"path": "c.txt", "content": "x"}, "", "content: x"),
    ({"path": "x" * 74 + "? run shell"}, "+one", None),
]


@each(("arguments", "preview", "wanted"), HIDING)
def test_no_call_hides_among_edits(
    monkeypatch: pytest.MonkeyPatch, arguments: dict[str, Any], preview: str, wanted: str | None
) -> None:
    async def no() -> str:
        return "n"

    monkeypatch.setattr("toolcrib.cli.group_prompt.read_line", no)
    monkeypatch.setattr("toolcrib.cli.prompt.read_line", no)
    shown = io.StringIO()
    console = Console(file=shown, width=80, highlight=False, markup=False, emoji=False)
    edits = [question(n, arguments={"path": f"{n}.txt", "content": ""}, preview="+one") for n in (1, 2)]
    other = [question(n, arguments=arguments, preview=preview) for n in (3, 4)]
    asyncio.run(ask_together(console, [*edits, *other]))
    rows = shown.getvalue().split("\n")
    assert wanted is None or any(wanted in row for row in rows), rows
    assert not any(row.startswith("? run shell") for row in rows), rows


def test_words_of_a_model_look_like_no_line_of_ours(monkeypatch: pytest.MonkeyPatch) -> None:
    async def nothing() -> str:
        return ""

    monkeypatch.setattr("toolcrib.cli.prompt.read_line", nothing)
    shown = io.StringIO()
    console = Console(file=shown, width=80, highlight=False, markup=False, emoji=False)
    asked = replace(
        question(1, options=("y" * 72 + " Run it? [y]es",)), kind="input", action="x" * 75 + " ? run shell"
    )
    asyncio.run(ask_on(console, asked))
    rows = shown.getvalue().split("\n")
    assert [row for row in rows if row.startswith(("? run shell", "Run it?"))] == []


FORGED = "? run shell  (read: it only looks)"
BESIDE = {
    "its reason": {"reason": "it reads " + "x" * 40 + " " * 30 + FORGED + ".env, which may hold secrets"},
    "the title of its tool": {"title": "x" * 60 + " " + FORGED},
    "tabs in an argument": {"arguments": {"text": "x" + "\t" * 9 + " " * 8 + FORGED}},
    "tabs in a preview": {"preview": "+" + "\t" * 10 + FORGED},
    "letters that the terminal has not": {"arguments": {"text": "\N{SNOWMAN}" * 12 + "x" + FORGED}},
    "a wide folder": {"folders": ("\N{CJK UNIFIED IDEOGRAPH-4E00}" * 12 + FORGED,)},
}


@pytest.mark.parametrize("named", BESIDE.values(), ids=BESIDE)
@pytest.mark.parametrize("count", [1, 2])
def test_nothing_in_a_question_begins_a_row_of_the_terminal(
    monkeypatch: pytest.MonkeyPatch, named: dict[str, Any], count: int
) -> None:
    async def nothing() -> str:
        return ""

    monkeypatch.setattr("toolcrib.cli.prompt.read_line", nothing)
    monkeypatch.setattr("toolcrib.cli.group_prompt.read_line", nothing)
    written = io.BytesIO()
    shown = io.TextIOWrapper(written, "ascii" if "\N{SNOWMAN}" in str(named) else "utf-8", ESCAPED)
    console = Console(file=shown, width=80, highlight=False, markup=False, emoji=False)
    asyncio.run(ask_together(console, [question(n, **named) for n in range(count)]))
    shown.flush()
    lines = written.getvalue().decode().split("\n")
    rows = [row for line in lines for row in chop_cells(line.expandtabs(), 80)]
    assert [row for row in rows if row.startswith(("? run shell", "run shell", "it only"))] == []


def test_the_lines_of_an_edit_are_counted_whatever_they_begin_with(monkeypatch: pytest.MonkeyPatch) -> None:
    async def nothing() -> str:
        return ""

    monkeypatch.setattr("toolcrib.cli.group_prompt.read_line", nothing)
    shown = io.StringIO()
    preview = "--- a.c\n+++ a.c\n@@ -1 +1,2 @@\n---- i;\n+++ i;\n+++ j;\n"
    edits = [question(n, arguments={"path": "a.c", "content": ""}, preview=preview) for n in (1, 2)]
    asyncio.run(ask_together(Console(file=shown, width=80), edits))
    assert shown.getvalue().count("+2 -1") == 2
