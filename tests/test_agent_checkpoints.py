"""An agent with checkpoints: what it takes when, and that its run can be undone with its conversation."""

import asyncio
import errno
import sys
from pathlib import Path

import pytest

from toolcrib import Agent, Context, Effect, tool
from toolcrib.agent import TranscriptFile, read_transcript
from toolcrib.checkpoints import Checkpoints
from toolcrib.checkpoints.content import ContentStore
from toolcrib.events import CheckpointTaken, Event, Notice, StatusChanged
from toolcrib.models import Scripted
from toolcrib.rules import ApprovalStore

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="modes and links of POSIX")


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "work").mkdir()
    (tmp_path / "work" / "a").write_text("first")
    return tmp_path / "work"


def checkpoints(root: Path) -> Checkpoints:
    return Checkpoints(root, store=root.parent / "store")


def agent_on(root: Path, *turns: object, kept: Checkpoints | None = None) -> Agent:
    @tool(effect=Effect.WRITE, secrets=())
    def put(name: str, text: str) -> str:
        """Write a file."""
        (root / name).write_text(text)
        return "written"

    @tool(effect=Effect.READ, secrets=())
    def look(name: str) -> str:
        """Look at a file; meanwhile somebody else writes into it."""
        (root / name).write_text("by a person")
        return "looked"

    @tool(effect=Effect.WRITE, secrets=())
    async def hang(ctx: Context) -> str:
        """Write, and never end."""
        (root / "a").write_text("half")
        ctx.report(tip="half")
        await asyncio.sleep(60)
        return "never"

    return Agent(
        Scripted(list(turns)), [put, look, hang], autonomy="full", checkpoints=kept or checkpoints(root)
    )


def call(name: str, /, **arguments: object) -> dict[str, object]:
    return {"calls": [{"name": name, "arguments": arguments}]}


async def events_of(agent: Agent) -> list[Event]:
    return [event async for event in agent.stream("go")]


async def test_a_run_is_undone_with_its_conversation(root: Path) -> None:
    agent = agent_on(
        root, call("put", name="a", text="x"), call("put", name="b", text="y"), "Done.", "Otherwise."
    )
    transcript = TranscriptFile(root.parent / "t.jsonl")
    outcome = await agent.run("go", transcript=transcript)
    transcript.close()
    undone = checkpoints(root).undo()
    assert (root / "a").read_text() == "first"
    assert not (root / "b").exists()
    stood = undone.to.conversation
    assert stood is not None
    assert (stood.run, stood.messages, Path(stood.transcript).name) == (outcome.run, 1, "t.jsonl")
    assert [message.text for message in outcome.messages[: stood.messages]] == ["go"]
    assert read_transcript(root.parent / "t.jsonl") == outcome.messages
    assert f'{{"checkpoint": {undone.to.id}}}' in (root.parent / "t.jsonl").read_text()

    second = next(one for one in checkpoints(root).list() if one.label.startswith("turn 2"))
    assert second.conversation is not None
    assert len(outcome.messages[: second.conversation.messages]) == 3
    on = await agent.run("go on", messages=outcome.messages[: stood.messages])
    assert on.finished


@pytest.mark.promise(
    "undo.md", "A checkpoint is taken before each turn of the model that may change something"
)
async def test_only_turns_that_may_change_something_take_checkpoints(root: Path) -> None:
    agent = agent_on(
        root, call("look", name="a"), call("put", name="a", text="x"), call("look", name="a"), "Done."
    )
    taken = [event for event in await events_of(agent) if isinstance(event, CheckpointTaken)]
    assert [(event.turn, event.label) for event in taken] == [(2, "turn 2: put")]
    assert [one.then for one in checkpoints(root).list()] == ["run", "person"]


async def test_what_a_person_changes_between_two_turns_is_kept(root: Path) -> None:
    agent = agent_on(
        root, call("put", name="a", text="1"), call("put", name="b", text="1"), call("look", name="a"),
        call("put", name="b", text="2"), "Done.",
    )  # fmt: skip
    assert (await agent.run("go")).finished
    undone = checkpoints(root).undo()
    assert (root / "a").read_text() == "by a person"
    assert not (root / "b").exists()
    assert undone.kept.keys() == {"a"}


async def test_a_cancelled_turn_can_be_undone(root: Path) -> None:
    run = agent_on(root, call("hang")).start("go")
    async for event in run:
        if isinstance(event, StatusChanged) and event.tip == "half":
            break
    run.cancel()
    assert (await run).reason == "cancelled"
    assert checkpoints(root).list()[-1].then == "person"
    checkpoints(root).undo()
    assert (root / "a").read_text() == "first"


@pytest.mark.promise(
    "undo.md", "does not end the run: a `Notice` says so, and `covers` says it of every path"
)
async def test_a_checkpoint_that_cannot_be_taken_ends_no_run_and_is_said(root: Path) -> None:
    (root.parent / "store").write_text("a file in place of the folder")
    kept = checkpoints(root)
    agent = agent_on(root, call("put", name="a", text="x"), "Done.", kept=kept)
    events = await events_of(agent)
    assert (root / "a").read_text() == "x"
    notices = [event.message for event in events if isinstance(event, Notice)]
    assert any("this turn cannot be undone" in notice for notice in notices)
    assert "no checkpoint could be taken" in str(kept.covers("a"))


async def test_files_that_a_checkpoint_lacks_because_the_disk_is_full_are_said(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A checkpoint was taken, and nobody was told that it holds nothing."""

    def store(contents: ContentStore, fd: int, size: int) -> tuple[str, int]:
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(ContentStore, "store", store)
        events = await events_of(agent_on(root, call("put", name="a", text="x"), "Done."))
    notices = [event.message for event in events if isinstance(event, Notice)]
    assert notices == ["the disk is full: the checkpoint lacks 1 file, whose changes cannot be undone"]
    events = await events_of(agent_on(root, call("put", name="a", text="y"), "Done."))
    assert not any(isinstance(event, Notice) for event in events)


async def test_an_agent_within_a_call_belongs_to_the_turn_of_the_outer_one(root: Path) -> None:
    kept = checkpoints(root)
    inner = agent_on(root, call("put", name="b", text="inner"), "Done.", kept=kept)
    helper = inner.as_tool("helper", "Writes b.")
    outer = Agent(Scripted([call("helper", task="go"), "Done."]), [helper], autonomy="full", checkpoints=kept)
    outcome = await outer.run("go")
    assert (root / "b").read_text() == "inner"
    assert [one.run for one in kept.list()] == [outcome.run, ""]
    assert checkpoints(root).undo().to.run == outcome.run
    assert not (root / "b").exists()


def test_something_else_than_checkpoints_is_refused() -> None:
    with pytest.raises(TypeError, match="checkpoints must be a Checkpoints"):
        Agent(Scripted([]), checkpoints="store")  # type: ignore[arg-type]


@pytest.mark.promise("policy.md", "an `Agent` with the checkpoints of a workspace refuses one in there")
def test_approvals_are_not_stored_where_a_run_may_change_them(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(root / "state"))
    (tmp_path / "link").symlink_to(root)

    def agent(place: Path) -> Agent:
        store = ApprovalStore(place)
        return Agent(Scripted(["Done."]), approvals=store, checkpoints=checkpoints(root))

    for inside in (root / "approvals.json", root / "deep/approvals.json", tmp_path / "link/approvals.json"):
        with pytest.raises(ValueError, match="approvals must be stored outside of the workspace"):
            agent(inside)
    for outside in (tmp_path / "approvals.json", tmp_path / "work2/a.json", root / "state/toolcrib/a.json"):
        agent(outside)
