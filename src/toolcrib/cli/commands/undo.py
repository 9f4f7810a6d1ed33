"""`toolcrib undo`: the files of a folder go back to a checkpoint."""

from __future__ import annotations

from contextlib import closing
from json import dumps
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from toolcrib.agent import TranscriptFile, scan_transcript
from toolcrib.checkpoints import CheckpointError
from toolcrib.cli.console import DONE, NOT_DONE, Problem, out, say
from toolcrib.cli.options import AsJson, WorkspaceFolder
from toolcrib.cli.undo_text import (
    ago,
    checkpoint_data,
    checkpoint_line,
    checkpoints_to_go_to,
    restoration_data,
    restoration_lines,
)
from toolcrib.cli.user_files import checkpoints_of
from toolcrib.visible import on_one_line

if TYPE_CHECKING:
    from toolcrib.checkpoints import Checkpoint, Checkpoints, Restoration

Listed = Annotated[bool, typer.Option("--list", help="List the checkpoints, newest first.")]
To = Annotated[
    int | None,
    typer.Option("--to", metavar="N", help="Go to this checkpoint, not to the one before the last run."),
]
Preview = Annotated[bool, typer.Option("--preview", help="Say what would be done, and change nothing.")]
Diff = Annotated[bool, typer.Option("--diff", help="Show the changes of each file, too.")]
Redo = Annotated[bool, typer.Option("--redo", help="Take back the last undo.")]
ConversationFile = Annotated[
    Path | None,
    typer.Option(
        "--conversation", metavar="NEW", help="Write the conversation as it was then to this file, for run --continue."
    ),
]  # fmt: skip


def command(
    workspace: WorkspaceFolder = Path(),
    list_: Listed = False,
    to: To = None,
    preview: Preview = False,
    diff: Diff = False,
    redo: Redo = False,
    conversation: ConversationFile = None,
    json: AsJson = False,
) -> int:
    """Without options, everything is undone that the last run changed in the files of the folder, by tools, commands
    and background processes; again, the run before it. What you changed yourself since then stays, and is named. So is
    what no checkpoint covers: ignored and large files, .git, other folders, the network.

    The present state is stored first: --redo takes an undo back.
    """
    if redo and to is not None:
        raise Problem("--redo takes back the last undo, --to N goes to a checkpoint: give one of them")
    if list_ and (redo or to is not None or conversation is not None):
        raise Problem("--list only lists the checkpoints: give it alone")
    checkpoints = checkpoints_of(workspace)
    try:
        if list_:
            return _list(checkpoints, json=json)
        if preview:
            done = checkpoints.preview_redo() if redo else checkpoints.preview_undo(to)
        else:
            done = checkpoints.redo() if redo else checkpoints.undo(to)
        if json:
            data = restoration_data(done, checkpoints, preview=preview, diffs=diff)
            out(dumps(data, ensure_ascii=True, indent=2))
        else:
            _show(done, checkpoints, would="would go" if preview else "went", diffs=diff)
        if conversation is not None and not preview:
            _write_conversation(done.to, conversation)
    except CheckpointError as problem:
        raise Problem(str(problem), code=NOT_DONE) from problem
    if done.checkpoint is not None and not redo and not json:
        say("`toolcrib undo --redo` takes this back")
    return DONE


def _list(checkpoints: Checkpoints, *, json: bool) -> int:
    known = checkpoints.list()
    if json:
        out(dumps([checkpoint_data(*pair) for pair in checkpoints_to_go_to(known)], indent=2))
        return DONE
    if not known:
        say("there is no checkpoint of this folder yet: toolcrib run takes them")
    for one, changed in checkpoints_to_go_to(known):
        out(checkpoint_line(one, changed))
    return DONE


def _show(done: Restoration, checkpoints: Checkpoints, *, would: str, diffs: bool) -> None:
    there = f"checkpoint {done.to.id} ({on_one_line(done.to.label, 60)}, {ago(done.to.time)})"
    if done.changes:
        out(f"the files {would} back to {there}:" if would == "went" else f"the files {would} to {there}:")
    else:
        out(f"nothing to do: no file that can be put back differs from {there}")
    for line in restoration_lines(done, checkpoints, diffs=diffs):
        out(line)


def _write_conversation(checkpoint: Checkpoint, path: Path) -> None:
    """The messages up to the checkpoint, as a transcript of their own."""
    stood = checkpoint.conversation
    if stood is None or not stood.transcript:
        raise Problem(
            f"checkpoint {checkpoint.id} has no transcript: the run was made without --transcript",
            code=NOT_DONE,
        )
    if path.exists():
        raise Problem(f"{path} exists; name another file", code=NOT_DONE)
    try:
        messages = scan_transcript(Path(stood.transcript)).mended[: stood.messages]
        with closing(TranscriptFile(path)) as transcript:
            transcript.conversation(messages)
    except (OSError, ValueError) as problem:
        raise Problem(f"the conversation cannot be written: {problem}", code=NOT_DONE) from problem
    say(f"the conversation as it was then: {path}; go on with toolcrib run --continue {path}")
