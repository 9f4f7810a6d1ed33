"""One command on another host: started, followed and ended by short scripts."""

from __future__ import annotations

import re
import secrets
import time
from collections.abc import Awaitable, Callable, Mapping
from shlex import quote
from typing import TYPE_CHECKING, Protocol

from toolcrib.command.launch.process import ProcessOutcome
from toolcrib.command.launch.process_tree import start_uncancelled
from toolcrib.command.launch.shell_words import SHELL_OPTIONS, ShellKind
from toolcrib.command.launch.terminal import relay_source
from toolcrib.command.remote import scripts
from toolcrib.visible import spelled_out

if TYPE_CHECKING:
    import asyncio

    from toolcrib.command.launch.output import BoundedOutput

__all__ = ["RemoteCommand", "RemoteInput", "ScriptOutput"]

HEAD = re.compile(rb"(\d{1,9}) (-|\d{1,3}) *(\d{1,9})")  # what an answer begins with
MAX_SAID = 300  # characters of what a transport says when it fails
PIECE = 4096  # bytes that a pipe takes as a whole or not at all
ATTEMPTS = 3  # of a poll whose transport fails
SCRIPT_TIMEOUT = 60.0  # seconds
WAIT_FOR_END = 20.0  # seconds after which a command that was ended is left to its lease


class ScriptOutput(Protocol):
    """What a transport gives back of one script."""

    @property
    def code(self) -> int: ...
    @property
    def stdout(self) -> bytes: ...
    @property
    def stderr(self) -> bytes: ...


Transport = Callable[[str, bytes], Awaitable[ScriptOutput]]


class RemoteCommand:
    """A command line for a shell of another host.

    `run` is the transport, which runs a script for `sh` with the given input; `folder` is where the command runs, as
    scripts name it. `variables` go in by the input of the first script, so that no list of processes shows them. With
    `takes_input`, `input` writes to the command.
    """

    def __init__(
        self,
        run: Transport,
        text: str,
        *,
        folder: str,
        kind: ShellKind,
        variables: Mapping[str, str],
        timeout: float | None,
        grace: float,
        terminal: bool = False,
        takes_input: bool = False,
        lease: int = scripts.LEASE,
    ) -> None:
        self.timeout = timeout
        self.terminal = terminal
        self._run = run
        self._text = text
        self._folder = folder
        self._kind: ShellKind = kind
        self._variables = variables
        self._grace = grace
        self._lease = lease
        self._name = secrets.token_hex(12)
        self.input = RemoteInput(run, self._name) if takes_input else None
        self._taken = self._dropped = 0
        self._ended: tuple[int, int] | None = None

    async def run(self, output: BoundedOutput, on_output: Callable[[BoundedOutput], None]) -> ProcessOutcome:
        """Runs it to its end, or ends it after its timeout, or when the calling task is cancelled.

        Raises OSError, with words for a model, if it cannot be started or its host cannot be reached any more.
        """
        import asyncio

        started = time.monotonic()
        following = asyncio.ensure_future(self._follow(self._begin(), output, on_output))
        in_time = False
        try:
            await asyncio.wait({following}, timeout=self.timeout)
            in_time = following.done()
        finally:
            if not following.done():
                await start_uncancelled(self._end(following))
            if self.input is not None:
                self.input.closed = True
        if in_time:
            following.result()
        code, left = self._ended or (None, 0)
        return ProcessOutcome(code if in_time else None, output, time.monotonic() - started, left)

    def _begin(self) -> str:
        return scripts.start(
            self._name, self._folder, input=self.input is not None, grace=self._grace, lease=self._lease
        )

    def _work(self) -> bytes:
        """The script that sets the variables and becomes the command."""
        exports = [f"export {name}={quote(value)}" for name, value in self._variables.items()]
        # bash where it is installed, as on this host; a leading blank keeps a shell from reading an option.
        fallback = "sh" if self._kind == "bash" else self._kind
        shell = [
            f"TOOLCRIB_SHELL={self._kind}",
            f'command -v "$TOOLCRIB_SHELL" >/dev/null 2>&1 || TOOLCRIB_SHELL={fallback}',
        ]
        # What a shell starts in the background ignores Ctrl-C; GNU's env can take that back.
        words = "exec $(env --default-signal=INT,QUIT echo env --default-signal=INT,QUIT 2>/dev/null)"
        if self.terminal:
            shell.append(
                "command -v python3 >/dev/null || { echo 'A terminal needs python3, and there is none.'; exit 127; }"
            )
            words += f" python3 -I -S -c {quote(relay_source())}"
        words += f' "$TOOLCRIB_SHELL" {" ".join(SHELL_OPTIONS[self._kind])} {quote(" " + self._text)}'
        return "\n".join([*exports, *shell, words]).encode()

    async def _follow(
        self, first: str, output: BoundedOutput, on_output: Callable[[BoundedOutput], None]
    ) -> None:
        """Takes output until the end of the command."""
        script, stdin = first, self._work()
        while True:
            answer = await self._run_script(script, stdin, again=not stdin)
            head, _, data = answer.partition(b"\n")
            if (read := HEAD.fullmatch(head)) is None or not 0 <= int(
                read[1]
            ) - self._taken <= scripts.PIECES:
                await self._run(scripts.stop(self._name, self._grace), b"")
                raise OSError("the other host gave an answer that means nothing, so the command was ended")
            taken, ended, left = read.groups()
            self._dropped, self._taken = self._taken, int(taken)
            if data:
                output.feed(data)
                on_output(output)
            if ended != b"-":
                self._ended = int(ended), int(left)
                return
            script, stdin = scripts.poll(self._name, self._taken, self._dropped), b""

    async def _end(self, following: asyncio.Future[None]) -> None:
        """Ends the command, while its last output is taken."""
        import asyncio

        try:
            async with asyncio.timeout(WAIT_FOR_END + self._grace):
                await self._run(scripts.stop(self._name, self._grace), b"")
                await following
        except (OSError, TimeoutError):
            following.cancel()  # the supervisor ends it when nobody polls
            await asyncio.wait({following})

    async def _run_script(self, script: str, stdin: bytes, *, again: bool) -> bytes:
        """Runs a script, and returns what it prints. With `again`, it is tried again if it fails. Raises OSError."""
        import asyncio

        for attempt in range(1, ATTEMPTS + 1):
            problem = ""
            try:
                async with asyncio.timeout(SCRIPT_TIMEOUT):
                    answer = await self._run(script, stdin)
            except TimeoutError:
                problem = "there was no answer"
            except OSError as failed:
                problem = failed.strerror or str(failed)
            else:
                if answer.code == 0:
                    return answer.stdout
                if answer.code == scripts.NO_FOLDER:
                    raise FileNotFoundError(f"there is no folder {self._folder}")
                if answer.code == scripts.GONE:
                    raise OSError("the other host does not know the command any more")
                said = answer.stderr.decode("utf-8", "replace").strip().splitlines()
                problem = spelled_out(said[-1][:MAX_SAID]) if said else f"exit code {answer.code}"
            if not again or attempt == ATTEMPTS:
                raise OSError(problem)
            await asyncio.sleep(0.5 * attempt)
        raise AssertionError("unreachable")


class RemoteInput:
    """The input of a command on another host."""

    def __init__(self, run: Transport, name: str) -> None:
        self._run = run
        self._name = name
        self.closed = False

    async def write(self, data: bytes, timeout: float) -> int:
        """Writes until all of it is taken or `timeout` seconds have passed; returns how many bytes were taken."""
        deadline = time.monotonic() + timeout
        taken = 0
        while taken < len(data) and (left := deadline - time.monotonic()) > 0:
            piece = data[taken : taken + PIECE]
            if (await self._run(scripts.write(self._name, left), piece)).code != 0:
                break
            taken += len(piece)
        return taken

    async def end(self) -> None:
        """Ends the input of the command."""
        self.closed = True
        await self._run(scripts.end_input(self._name), b"")
