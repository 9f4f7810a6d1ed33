"""Change sets where only commands reach the files: contents are sent beside their targets, then a script renames them.

The script compares versions before it changes anything, and leaves a note of the steps that are still to be made, so
that the next change set can finish what was killed in the middle. The note lies among the files and is run as a script:
it is signed with a key of this side, so that no file of a project and no file that a tool writes is taken for one.
"""

from __future__ import annotations

import hmac
import posixpath
import secrets
from collections.abc import Iterator, Sequence
from shlex import quote
from typing import Protocol

from toolcrib.access import Access
from toolcrib.dataclass import dataclass
from toolcrib.errors import ToolError
from toolcrib.tools.backends import refusals
from toolcrib.tools.backends.protocol import ABSENT, Change, CommandOutput, FileStatus, Move, Permits, Write

REFUSED = 83  # the exit code of a script that found another version
UNFINISHED = ".toolcrib-changes"  # a signature, and the rest of a change set that is being made, as a script
MAX_NOTE = 1_000_000  # bytes of it
FOLDERS = r"""made=
make() { [ -d "$1" ] || { make "${1%/*}"; mkdir -- "$1" && made="$1
$made"; }; }
unmake() { printf '%s' "$made" | while IFS= read -r f; do rmdir -- "$f"; done 2>/dev/null; }"""


@dataclass(frozen=True, slots=True)
class FoundPath:
    """Where a path leads, and what is there."""

    shown: str
    real: str
    status: FileStatus | None
    has_folder: bool = True  # its folder exists


class ScriptedFiles(Protocol):
    """What a change set needs of a `CommandBackend`."""

    def script(self, script: str, stdin: bytes = b"") -> CommandOutput: ...
    def checked(self, shown: str, output: CommandOutput) -> CommandOutput: ...
    def find(self, path: str) -> FoundPath: ...
    def missing(self, found: FoundPath, permits: Permits, wanted: str = "file") -> ToolError: ...


@dataclass(slots=True)
class ScriptedStep:
    shown: str
    real: str
    exists: bool
    temporary: str  # beside the target, or where its folder is still missing, in the root
    backup: str
    prepared: bool = False


class ScriptedChanges:
    """One change set of a CommandBackend: contents are sent beside their targets, then a script renames them."""

    def __init__(self, backend: ScriptedFiles, permits: Permits) -> None:
        self.backend = backend
        self.permits = permits
        self.steps: list[ScriptedStep] = []
        self.checks: list[str] = []
        self.key: bytes | None = None  # with which the note is signed; None for a set without a note
        self.note = ""

    def make(self, changes: Sequence[Change]) -> tuple[bool, ...]:
        script = self.backend.script
        self._finish_earlier()
        new = [self._plan(change) for change in changes]
        try:
            steps = iter(self.steps)
            for change in changes:
                step = next(steps)
                if isinstance(change, Write):
                    self._send(step, change.data, step)
                elif isinstance(change, Move):
                    target = next(steps)
                    if change.data is not None:
                        self._send(target, change.data, step)
            output = script("\n".join(self._commands(changes)))
            if (
                output.code not in (0, REFUSED)
                and self.note
                and script(f"[ -f {UNFINISHED} ] || exit 1\n{self.note}").code == 0
            ):
                return tuple(new)  # the script was killed in the middle
            self.backend.checked(self.steps[0].shown, output)
        except BaseException:
            left = " ".join(quote("./" + step.temporary) for step in self.steps if step.prepared)
            if left:
                script(f"rm -f -- {left}")
            raise
        return tuple(new)

    def _finish_earlier(self) -> None:
        """Finishes a set that was killed in the middle. A file that was not signed by this side is left alone."""
        key = _key()
        found = self.backend.script(
            f"[ ! -e {UNFINISHED} ] || {{ [ -f {UNFINISHED} ] && head -c {MAX_NOTE} < {UNFINISHED}; }}"
        )
        signature, _, note = found.stdout.partition(b"\n")
        if found.code == 0 and not found.stdout:
            self.key = key
        elif key is not None and hmac.compare_digest(signature, _signature(key, note)):
            self.key = key
            self.backend.script(note.decode())

    def _plan(self, change: Change) -> bool:
        found: list[ScriptedStep] = []
        for path, reaches in refusals.reaches_of(change):
            seen = self.backend.find(path)
            if not all(self.permits(Access(reach, seen.real)) for reach in reaches):
                raise refusals.not_permitted(seen.shown)
            if seen.status is not None and seen.status.kind != "file":
                raise refusals.is_folder(seen.shown)
            if any(step.real == seen.real for step in self.steps):
                raise refusals.named_twice(seen.shown)
            if seen.real == ".":
                raise refusals.is_folder(seen.shown)
            if path == refusals.source_of(change):
                if seen.status is None:
                    raise self.backend.missing(seen, self.permits)
                self._refuse_link(seen)
            beside = seen.real if seen.has_folder else ""
            step = ScriptedStep(
                seen.shown, seen.real, seen.status is not None, _temporary(beside), _temporary(beside)
            )
            self.steps.append(step)
            found.append(step)
        self._expect(found[0], change.expect)
        if isinstance(change, Move):
            self._expect(found[1], ABSENT)
            return True
        return isinstance(change, Write) and not found[0].exists

    def _refuse_link(self, found: FoundPath) -> None:
        if self.backend.script(f"[ -L {quote('./' + found.shown)} ]").code == 0:
            raise ToolError(f"{found.shown} is a symlink. Only files can be moved or deleted.")

    def _expect(self, step: ScriptedStep, version: str | None) -> None:
        """Adds the comparison to the script, and says at once what is known to be wrong."""
        path = quote("./" + step.real)
        if version is None:
            return
        if version == ABSENT:
            if step.exists:
                refusals.check_version(step.shown, ABSENT, "")
            self.checks.append(
                f"[ ! -e {path} ] || refuse {quote(f'{step.shown} exists already; nothing was changed.')}"
            )
            return
        if not step.exists:
            refusals.check_version(step.shown, version, ABSENT)
        words = quote(refusals.changed(step.shown).message)
        self.checks.append(f'[ "$(sha256sum < {path})" = "{version}  -" ] || refuse {words}')

    def _send(self, step: ScriptedStep, data: bytes, like: ScriptedStep) -> None:
        """Writes a new content beside its target, with the mode of the file that it replaces."""
        step.prepared = True
        new, old = quote("./" + step.temporary), quote("./" + like.real)
        output = self.backend.script(
            f"[ ! -e {old} ] || [ -w {old} ] || {{ echo 'it is marked read-only' >&2; exit 1; }}\n"
            f"[ ! -e {old} ] || cp -p -- {old} {new} || exit 1\n"
            f"cat > {new} && [ $(wc -c < {new}) -eq {len(data)} ]",
            data,
        )
        self.backend.checked(step.shown, output)

    def _commands(self, changes: Sequence[Change]) -> Iterator[str]:
        """The script: checks, backups, the note of what is left to do, and the steps, each with how to take it back."""
        yield FOLDERS
        yield "refuse() { printf '%s' \"$1\" >&2; exit 83; }"
        yield from self.checks
        steps = iter(self.steps)
        for change in changes:
            step = next(steps)
            if isinstance(change, Move):
                target = next(steps)
                if not target.prepared:
                    target.prepared = True
                    yield _second_name(step.real, target.temporary)
        for step in self.steps:
            if step.exists:
                yield _second_name(step.real, step.backup)
        ordered = sorted(self.steps, key=lambda step: not step.prepared)
        finish = [_forward(step) for step in ordered]
        clean = "rm -f -- " + " ".join(quote("./" + step.backup) for step in self.steps)
        forget = ""
        if self.key is not None and all(step.real != UNFINISHED for step in self.steps):
            forget = f"rm -f {UNFINISHED}; "
            self.note = "\n".join([*finish, clean, forget])
            signed = quote(f"{_signature(self.key, self.note.encode()).decode()}\n{self.note}")
            new = _temporary("")  # a name that no link of a project has
            yield f"printf '%s' {signed} > {new} && mv -f {new} {UNFINISHED} || {{ rm -f {new}; exit 1; }}"
        for number, step in enumerate(ordered):
            undo = "; ".join(_back(done) for done in reversed(ordered[: number + 1]))
            folder = quote(posixpath.dirname("./" + step.real))
            yield f"make {folder} && {_forward(step)} || {{ {undo}; {forget}unmake; exit 1; }}"
        yield clean
        yield forget


def _key() -> bytes | None:
    """The key of this user on this machine; None where none can be kept: then no note is made."""
    from toolcrib.audit.key import read_key
    from toolcrib.audit.log_file import AuditError
    from toolcrib.private_files import state_folder

    try:
        return read_key(state_folder() / "changes" / "key")
    except (AuditError, OSError, RuntimeError):
        return None


def _signature(key: bytes, note: bytes) -> bytes:
    return hmac.digest(key, note, "sha256").hex().encode()


def _second_name(real: str, new: str) -> str:
    old, other = quote("./" + real), quote("./" + new)
    return f"ln -- {old} {other} 2>/dev/null || cp -p -- {old} {other} || exit 1"


def _forward(step: ScriptedStep) -> str:
    """The step, which may be made again."""
    path = quote("./" + step.real)
    if not step.prepared:
        return f"rm -f -- {path}"
    new, folder = quote("./" + step.temporary), quote(posixpath.dirname("./" + step.real))
    return f"{{ [ ! -e {new} ] || {{ mkdir -p -- {folder} && mv -f -- {new} {path}; }}; }}"


def _back(step: ScriptedStep) -> str:
    path = quote("./" + step.real)
    return f"mv -f -- {quote('./' + step.backup)} {path}" if step.exists else f"rm -f -- {path}"


def _temporary(real: str) -> str:
    return posixpath.join(posixpath.dirname(real), f".toolcrib-{secrets.token_hex(8)}.tmp")
