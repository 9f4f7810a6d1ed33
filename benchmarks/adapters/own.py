"""What of toolcrib no peer has: file tools and checkpoints, rules, sandboxes, masking. Beside plain programs."""

import asyncio
import os
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar

from toolcrib import Effect, Toolbox, ToolCall, tool
from toolcrib.access import Access, Reach
from toolcrib.checkpoints import CheckpointLimits, Checkpoints
from toolcrib.command.launch.output import BoundedOutput
from toolcrib.command.launch.process import run_process
from toolcrib.command.sandbox import Bubblewrap, Landlock, Level, NoSandbox, Sandbox, choose, environment
from toolcrib.folder_handles import close_handle
from toolcrib.prepared import Lookups, Ready
from toolcrib.rules import read_rules
from toolcrib.rules.permissions import covering
from toolcrib.secrets import Redactor
from toolcrib.secrets.byte_search import aho_corasick_installed
from toolcrib.toolbox.policy import PolicyRequest
from toolcrib.tools import EditFile, GlobFiles, Grep, ReadFile, Shell, Workspace, WriteFile
from toolcrib.tools.confined_open import open_beneath


def file_tools(root: Path, *, ripgrep: bool = True) -> Callable[..., Any]:
    """A function that calls a file tool by name, along the whole path of a call; `fails` says that it must fail."""
    workspace = Workspace(root)
    box = Toolbox(
        [ReadFile(workspace), EditFile(workspace), Grep(workspace, ripgrep=ripgrep)], autonomy="full"
    )
    loop = asyncio.new_event_loop()

    def call(name: str, *, fails: bool = False, **arguments: Any) -> Any:
        result = loop.run_until_complete(box.call(name, arguments))
        assert result.is_error is fails, result.text[:400]
        return result

    return call


def opened_files(root: Path) -> dict[str, Callable[[str], object]]:
    """Ways to open a file of a workspace that lead nowhere else, and to close it."""
    kernel, portable = Workspace(root), Workspace(root, portable=True)
    handle = kernel.root.handle()

    def permitted(access: Access) -> bool:
        return True

    return {
        "confined: openat2": lambda path: close_handle(open_beneath(handle, path, os.O_RDONLY)),
        "confined: a walk": lambda path: close_handle(open_beneath(handle, path, os.O_RDONLY, portable=True)),
        "as a tool opens it: openat2": lambda path: kernel.open_file(path, permitted)[0].close(),
        "as a tool opens it: a walk": lambda path: portable.open_file(path, permitted)[0].close(),
    }


class Snapshots:
    """Checkpoints of a folder."""

    path = "checkpoint"
    who: ClassVar[dict[str, str]] = {}

    def __init__(self, root: Path) -> None:
        self.root = root
        limits = CheckpointLimits(tree_paths=100_000)
        self.kept = Checkpoints(root, store=root.parent / f"{root.name}-store", limits=limits)

    def store(self) -> None:
        self.kept.take("again")

    first = settle = store

    def before_putting_back(self) -> None:
        self.kept.take("before", then="person")
        self.kept.take("before")

    def put_back(self) -> None:
        self.kept.undo()


@tool(effect=Effect.WRITE, secrets=())
def send(text: str, channel: str) -> str:
    """Send a message."""
    return ""


PIPE = "a pipe of three programs into a file"
CALLS: dict[str, tuple[str, dict[str, Any]]] = {
    "read_file": ("read_file", {"path": "src/deep/down/module.py"}),
    "write_file": ("write_file", {"path": "src/deep/down/module.py", "content": "x"}),
    "glob": ("glob", {"pattern": "src/**/*.py"}),
    "git status": ("shell", {"command": "git status -s"}),
    PIPE: ("shell", {"command": "grep -rn needle src | sort | head -20 > out/found.txt"}),
    "python and make": ("shell", {"command": "python script.py --input data/a.csv && make all"}),
    "a function's call": ("send", {"text": "hello", "channel": "general"}),
}


def _rules(count: int) -> str:
    """As many rules, of the kinds that people write."""
    kinds = (
        'deny = true\npath = ["secrets{n}/**", "**/*.key{n}", ".env.{n}"]',
        'allow = true\ncommand = ["tool{n} *", "git log{n} *"]',
        'ask = true\npath = "generated{n}/**"\nreach = ["write", "delete"]',
        'deny = true\ntool = "send"\nargument = {{ channel = "private{n}*" }}',
        'allow = true\ntool = "write_file"\npath = "notes{n}/**"',
        'deny = true\ncommand = "danger{n} *"',
        'deny = true\nhost = "*.internal{n}.example"',
        'ask = true\ntool = "other{n}_*"\neffect = "destructive"',
    )
    written = [f'[[rule]]\nname = "rule{n}"\n' + kinds[n % len(kinds)].format(n=n) for n in range(count)]
    return "\n".join(written)


def decisions(root: Path, count: int) -> Iterator[tuple[str, str, Callable[[], object]]]:
    """Row, path and the deciding of each call by so many rules: alone, and with what the call reaches worked out."""
    policy = read_rules(_rules(count)).policy("supervised")
    workspace = Workspace(root)
    tools = [ReadFile(workspace), WriteFile(workspace), GlobFiles(workspace)]
    box = Toolbox([*tools, Shell(workspace, sandbox=NoSandbox()), send], autonomy="full")
    for row, (name, arguments) in CALLS.items():
        ready = asyncio.run(box.prepare(ToolCall(name, arguments)))
        assert isinstance(ready, Ready)
        case = PolicyRequest(ready.tool.definition.facts, ready.effect, ready)

        def anew(case: PolicyRequest = case, ready: Ready = ready) -> object:
            return policy.decide(replace(case, prepared=ready._replace(lookups=Lookups())))

        yield row, "the rules alone", lambda case=case: policy.decide(case)
        yield f"{row}, looked up and parsed anew", "the rules and what the call reaches", anew
        if row == "glob":
            permits = policy.permits(case, covering(case.accesses))
            found = Access(Reach.READ, "src/folder/file.py")
            yield "a file that a search finds", "the rules alone", lambda p=permits, f=found: p(f)


SANDBOXES: dict[str, Callable[[Path], Sandbox]] = {
    "none": lambda ws: NoSandbox(),
    "bubblewrap": Bubblewrap,
    "bubblewrap, read_only": lambda ws: Bubblewrap(ws, Level.of("read_only")),
    "bubblewrap, landlock=True": lambda ws: Bubblewrap(ws, landlock=True),
    "landlock": Landlock,
}


def _works(name: str) -> bool:
    from toolcrib.command.sandbox.choose import ORDER, why_not_working

    return name == "none" or any(
        row.name == name and sys.platform in row.platforms and not why_not_working(row) for row in ORDER
    )


async def _kept(sandbox: Sandbox, workspace: str) -> None:
    """By the launcher that the tools keep."""
    with sandbox.launch(["/bin/true"], cwd=workspace, env=environment(os.environ)) as launch:
        outcome = await run_process(
            launch.argv,
            cwd=workspace,
            env=launch.env,
            timeout=60,
            output=BoundedOutput(1000),
            pass_fds=launch.pass_fds,
            on_start=launch.started,
        )
        assert outcome.code == 0, sandbox.report().backend


def _own(sandbox: Sandbox, workspace: str) -> None:
    """By a launcher of its own, as `subprocess` has it."""
    with sandbox.launch(["/bin/true"], cwd=workspace, env=environment(os.environ)) as launch:
        process = subprocess.Popen(launch.argv, env=launch.env, cwd=launch.cwd, pass_fds=launch.pass_fds)
        launch.started()
        assert process.wait() == 0, sandbox.report().backend


def commands(rounds: int) -> Iterator[tuple[str, str, float]]:
    """Row, path and milliseconds on the clock of `true`, from before its launch to after its end, in turns."""
    loop = asyncio.new_event_loop()
    with tempfile.TemporaryDirectory() as place:
        made = {name: make(Path(place)) for name, make in SANDBOXES.items() if _works(name.partition(",")[0])}
        for number in range(rounds + 1):
            for name, sandbox in made.items():
                for path, work in (
                    (
                        "by the launcher that tools keep",
                        lambda s=sandbox: loop.run_until_complete(_kept(s, place)),
                    ),
                    ("by its own launcher", lambda s=sandbox: _own(s, place)),
                ):
                    begun = time.perf_counter()
                    work()
                    if number:
                        yield name, path, (time.perf_counter() - begun) * 1e3


WRITTEN_OUT = ["conf/prod.key", "conf/stage.key", "vault/keys", "deploy/keys/id", "home/.netrc"]
DENIED = {
    "no rule about paths": [],
    "5 paths written out": WRITTEN_OUT,
    "`**/.env`, 3 there": ["**/.env"],
    "`**/.env` and `**/*.pem`, 23 there": ["**/.env", "**/*.pem"],
}


def _with_secrets(root: Path) -> None:
    """10,000 files in 500 folders, some of which rules deny."""
    for folder in range(500):
        here = root / f"d{folder % 20}" / f"e{folder}"
        here.mkdir(parents=True)
        for number in range(20):
            (here / f"file{number}.py").touch()
        if folder < 20:
            (here / "cert.pem").touch()
        if folder < 3:
            (here / ".env").touch()
    for name in WRITTEN_OUT:
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).touch()
    for path, _, _ in os.walk(root):  # settled: as in a folder that nobody works in just now
        os.utime(path, (1, 1))
    time.sleep(4)


def denied_paths(rounds: int) -> Iterator[tuple[str, str, float]]:
    """The same for a call of the shell tool where rules deny paths of a workspace of 10,000 files."""
    with tempfile.TemporaryDirectory() as place:
        root = Path(place).resolve()
        _with_secrets(root)
        sandbox = choose(root)
        boxes = {}
        for name, paths in DENIED.items():
            listed = ", ".join(f'"{path}"' for path in paths)
            rules = read_rules(f"[[rule]]\ndeny = true\npath = [{listed}]\n" if paths else "")
            boxes[name] = Toolbox([Shell(Workspace(root), sandbox=sandbox)], policy=rules.policy("full"))
        for number in range(rounds + 1):
            for name, box in boxes.items():
                begun = time.perf_counter()
                result = box.call_sync("shell", {"command": "true"})
                assert result.code is None, result.text
                if number:
                    yield f"shell tool, {name}", sandbox.report().backend, (time.perf_counter() - begun) * 1e3


PIECE = 4096


def masking() -> Iterator[tuple[str, str, Callable[[str], object], Callable[[str], object] | None]]:
    """Row, path, and how a text is masked whole and as a stream, by the number of secrets and the way of looking."""
    chance = random.Random(2)
    ways = {"plain Python": False, **({"pyahocorasick": True} if aho_corasick_installed() else {})}
    for path, automaton in ways.items():
        for count in (1, 10, 50):
            values = {
                f"S{n}": chance.randbytes(24).hex()[:32] + chance.choice("+/=") + "Z" for n in range(count)
            }
            redactor = Redactor(values, patterns=(), automaton=automaton)

            def streamed(text: str, redactor: Redactor = redactor) -> None:
                stream = redactor.stream()
                for at in range(0, len(text), PIECE):
                    stream.feed(text[at : at + PIECE])
                stream.finish()

            yield f"{count} secret{'s' * (count > 1)}", path, redactor.redact_text, streamed
    yield "known formats alone", "plain Python", Redactor({}).redact_text, None
