"""Autonomy "sandboxed": what the sandbox confines and a checkpoint can bring back runs unasked, all else asks."""

import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.cases import each
from toolcrib import Effect, Toolbox, ToolCall, tool
from toolcrib.access import Access, Confinement, Reach
from toolcrib.assembly import default_tools
from toolcrib.call import CallKey
from toolcrib.command.sandbox import (
    Bubblewrap,
    ExternalSandbox,
    Files,
    Landlock,
    Level,
    Network,
    NoSandbox,
    Sandbox,
    SandboxError,
    why_not_contained,
)
from toolcrib.facts import Facts
from toolcrib.prepared import Pending, Ready, Refused
from toolcrib.rules import read_rules
from toolcrib.toolbox import Autonomy, AutonomyPolicy, PolicyRequest, Verb
from toolcrib.toolbox.nested import BothPolicies
from toolcrib.tools import Workspace, WriteFile
from toolcrib.tools.backends.composite import CompositeBackend

KINDS = {Ready: "runs", Pending: "asks", Refused: "denied"}
RUN = "a run"
WIDER = {
    "bubblewrap": lambda root: Bubblewrap(root),
    "only reading": lambda root: Bubblewrap(root, Level(Files.READ_ONLY)),
    "network": lambda root: Bubblewrap(root, Level(network=Network.ON)),
    "a host": lambda root: Bubblewrap(root, Level(network=Network.ALLOWLIST, hosts=("pypi.org",))),
    "writes outside": lambda root: Bubblewrap(root, Level(writable=("/srv",))),
    "landlock": lambda root: Landlock(root),
    "declared": lambda root: ExternalSandbox("a container", Level()),
    "none works": lambda root: NoSandbox(wanted=False),
    "none wanted": lambda root: NoSandbox(),
}


def all_but(*names: str) -> Any:
    """What a checkpoint says that covers a workspace except for some names in it."""

    def covers(path: str) -> str | None:
        if ROOT not in (path, *map(str, Path(path).parents)):
            return "it lies outside the workspace"
        return next((f"{name} is left out" for name in names if f"{ROOT}/{name}" in f"{path}/"), None)

    return covers


ROOT = ""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    global ROOT
    root = tmp_path.resolve() / "project"
    (root / "src").mkdir(parents=True)
    (root / "build").mkdir()
    (root / "src" / "a.py").write_text("x = 1\n")
    (root / ".env").write_text("KEY=1\n")
    (root / "innocent").symlink_to(".env")
    ROOT = str(root)
    return root


@tool(effect=Effect.WRITE, secrets=())
def own_write(path: str) -> str:
    """A tool of the user's."""
    return path


@tool(effect=Effect.DESTRUCTIVE, secrets=())
def own_destroy(path: str) -> str:
    """Another one."""
    return path


@tool(effect=Effect.WRITE, secrets=(), accesses=lambda given: [Access(Reach.CONNECT, "shop.test:443")])
def order(what: str) -> str:
    """A tool that says that it reaches a host."""
    return what


def box_of(root: Path, autonomy: str, sandbox: str = "bubblewrap", rules: str = "") -> Toolbox:
    made: Sandbox = WIDER[sandbox](str(root))
    policy = read_rules(rules).policy(autonomy)
    return Toolbox([*default_tools(root, sandbox=made), own_write, own_destroy, order], policy=policy)


async def decided(box: Toolbox, covers: Any, name: str, **arguments: Any) -> str:
    with box.covered_by(RUN, covers):
        return KINDS[type(await box.prepare(ToolCall(name, arguments), key=CallKey(RUN, 1, 0)))]


COMMANDS = [
    # command, under supervised, under sandboxed
    ("ls src", "runs", "runs"),
    ('python3 -c \'open("x", "w")\'', "asks", "runs"),
    ("npm test && ./configure; make -j4 | tee log.txt", "asks", "runs"),
    ("rm -rf src", "asks", "runs"),
    ("cat /etc/hosts", "asks", "runs"),  # what the sandbox shows of the system is open to all commands
    ("curl https://shop.test/", "asks", "runs"),  # without network; what it needs is asked for when it fails
    ("rm -rf build", "asks", "asks"),  # left out of the checkpoint
    ("cp src/a.py /tmp/b", "asks", "asks"),  # outside
    ("cat .env", "asks", "asks"),
    ("python3 show.py .env", "asks", "asks"),
    ("cat innocent", "asks", "asks"),  # a link to .env
    ("deploy ghp_0123456789abcdefghijklmnopqrstuvwxyz", "asks", "asks"),
    ("rm -rf .git", "asks", "asks"),
    ("rm -rf /", "denied", "denied"),
    ("mkfs.ext4 /dev/sda1", "denied", "denied"),
]


@pytest.mark.promise(
    "policy.md",
    "a command that names a file to write outside the workspace, a file that the checkpoint does "
    "not cover, or a file that may hold secrets; a command that is given a secret",
)
@each(("command", "supervised", "sandboxed"), COMMANDS)
async def test_commands(folder: Path, command: str, supervised: str, sandboxed: str) -> None:
    covers = all_but("build")
    found = [
        await decided(box_of(folder, autonomy), covers, "shell", command=command)
        for autonomy in ("supervised", "sandboxed")
    ]
    assert found == [supervised, sandboxed]
    without = await decided(box_of(folder, "sandboxed"), None, "shell", command=command)
    assert without == supervised, "no checkpoint was taken"


@pytest.fixture
def outside_tmp(folder: Path) -> Iterator[Path]:
    """The same project in a folder that does not lie in /tmp."""
    global ROOT
    home = Path.home().resolve()
    if home.is_relative_to("/tmp") or not os.access(home, os.W_OK):
        pytest.skip("the home folder lies in /tmp, or cannot be written to")
    with tempfile.TemporaryDirectory(dir=home) as other:
        ROOT = shutil.copytree(folder, f"{other}/project", symlinks=True)
        yield Path(ROOT)


TEMPORARY = [
    ("npm test > /tmp/log 2>&1; tail /tmp/log", "runs"),
    ("make | tee /tmp/log", "runs"),
    ("cp src/a.py /var/tmp/b/../c", "runs"),
    ("rm -rf /tmp/x/*", "runs"),
    ("cp src/a.py /tmp/../etc/b", "asks"),
    ("cp src/a.py /tmpx", "asks"),
    ("cp src/a.py /tmp/a build/b", "asks"),
    ("cp .env /tmp/b", "asks"),
]


@pytest.mark.promise(
    "policy.md", "a command that writes below `/tmp` or `/var/tmp`, where bubblewrap gives commands"
)
@each(("command", "expected"), TEMPORARY)
async def test_what_lies_in_the_sandboxs_own_temporary_folder_needs_no_checkpoint(
    outside_tmp: Path, command: str, expected: str
) -> None:
    covers = all_but("build")
    assert await decided(box_of(outside_tmp, "sandboxed"), covers, "shell", command=command) == expected
    assert await decided(box_of(outside_tmp, "sandboxed"), None, "shell", command=command) == "asks"
    assert (
        await decided(box_of(outside_tmp, "sandboxed", "landlock"), covers, "shell", command=command)
        == "asks"
    )
    box = box_of(outside_tmp, "sandboxed", rules='[[rule]]\nask = true\npath = "/tmp/**"')
    if " /tmp/" in command:
        assert await decided(box, covers, "shell", command=command) == "asks"


def test_a_temporary_folder_that_commands_share_is_not_their_own(tmp_path: Path) -> None:
    assert Bubblewrap("/srv/a").own_temporary == ("/tmp", "/var/tmp")
    assert (
        Bubblewrap("/tmp/a").own_temporary
        == Bubblewrap("/srv/a", Level(writable=("/tmp/b",))).own_temporary
        == ("/var/tmp",)
    )
    assert Landlock("/srv/a").own_temporary == ()


def test_a_temporary_folder_that_is_a_link_is_the_one_it_leads_to(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "tmp" / "a").mkdir(parents=True)
    (tmp_path / "link").symlink_to("tmp")
    monkeypatch.setattr("toolcrib.command.sandbox.bubblewrap.TEMPORARY", (str(tmp_path / "link"),))
    assert Bubblewrap(str(tmp_path / "tmp" / "a")).own_temporary == ()
    wider = Level(writable=(str(tmp_path / "link" / "a"),))
    assert Bubblewrap("/srv/a", wider).own_temporary == ()
    assert Bubblewrap("/srv/a").own_temporary == (str(tmp_path / "link"),)


async def test_a_command_writes_to_a_temporary_folder_of_its_own(outside_tmp: Path) -> None:
    box = box_of(outside_tmp, "sandboxed")
    name = f"/tmp/{outside_tmp.parent.name}"
    with box.covered_by(RUN, all_but()):
        for number in range(2):
            call = ToolCall("shell", {"command": f"echo {number} >> {name}; cat {name}"})
            result = await box.call(call, key=CallKey(RUN, 1, number))
    assert result.text.split() == ["0", "1"]
    assert not os.path.exists(name)  # noqa: ASYNC240, PTH110 - one look at a local file


TOOLS = [
    ("read_file", {"path": "src/a.py"}, "runs"),
    ("read_file", {"path": ".env"}, "asks"),
    (
        "read_file",
        {"path": "/etc/passwd"},
        "denied",
    ),  # refused by the tool, before anybody is asked: it lies outside
    ("write_file", {"path": "src/b.py", "content": ""}, "runs"),
    ("edit_file", {"path": "src/a.py", "old": "x", "new": "y"}, "runs"),
    ("write_file", {"path": "build/b.py", "content": ""}, "asks"),
    ("write_file", {"path": ".env", "content": ""}, "asks"),
    ("write_file", {"path": "innocent", "content": ""}, "asks"),
    ("write_file", {"path": ".git/hooks/pre-commit", "content": ""}, "asks"),
    ("write_file", {"path": ".vscode/tasks.json", "content": ""}, "asks"),
    ("own_write", {"path": "src/a.py"}, "asks"),
    ("own_destroy", {"path": "src/a.py"}, "asks"),
    ("order", {"what": "tea"}, "asks"),
]


@pytest.mark.promise("policy.md", "on a file that the checkpoint covers")
@each(("name", "arguments", "expected"), TOOLS)
async def test_tools(folder: Path, name: str, arguments: dict[str, Any], expected: str) -> None:
    box = box_of(folder, "sandboxed")
    if name == "edit_file":
        spec = next(spec for spec in (await box.tool_list()).specs if spec.name == name)
        wanted = spec.input_schema["required"]
        arguments = dict(zip(wanted, arguments.values(), strict=True))
    assert await decided(box, all_but("build"), name, **arguments) == expected


@each(
    ("sandbox", "expected"),
    [(name, "runs" if name in ("bubblewrap", "only reading") else "asks") for name in WIDER],
)
async def test_a_command_runs_unasked_only_where_the_sandbox_holds(
    folder: Path, sandbox: str, expected: str
) -> None:
    box = box_of(folder, "sandboxed", sandbox)
    assert await decided(box, all_but(), "shell", command="python3 -c 1") == expected
    assert (why_not_contained(WIDER[sandbox](str(folder))) == "") == (expected == "runs")


RULES = [
    ('ask = true\ncommand = "npm *"', "npm test", "asks"),
    ('deny = true\ncommand = "npm *"', "npm test", "denied"),
    ('deny = true\npath = "src/**"', "python3 -c 1", "runs"),  # the sandbox hides what rules deny
    ('ask = true\npath = "src/**"', "touch src/a.py", "asks"),
    ('ask = true\ntool = "shell"', "python3 -c 1", "asks"),
    ('ask = true\nhost = "*"', "curl https://shop.test/", "asks"),
]


@pytest.mark.promise("policy.md", "what a rule asks about or denies, and `otherwise`")
@each(("rule", "command", "expected"), RULES)
async def test_rules_count_as_ever(folder: Path, rule: str, command: str, expected: str) -> None:
    box = box_of(folder, "sandboxed", rules=f"[[rule]]\n{rule}")
    assert await decided(box, all_but(), "shell", command=command) == expected


@pytest.mark.promise("policy.md", "what a rule asks about or denies, and `otherwise`")
async def test_otherwise_counts_as_ever(folder: Path) -> None:
    for word, expected in (("ask", "asks"), ("deny", "denied")):
        box = box_of(folder, "sandboxed", rules=f'otherwise = "{word}"')
        assert await decided(box, all_but(), "shell", command="python3 -c 1") == expected


# -- the policy alone, as a pure function

INSIDE = Confinement("/w", "a sandbox")
TARGETS = st.sampled_from(["a", "b/c", "out", "/w/a", "/etc/passwd", ".", "shop.test:443", "make"])
ACCESSES = st.lists(
    st.builds(
        Access,
        st.sampled_from(list(Reach)),
        TARGETS,
        free=st.booleans(),
        secret=st.booleans(),
        confined=st.sampled_from([None, INSIDE, INSIDE]),
    ),
    max_size=3,
)
COVERS = st.sampled_from([None, lambda path: None, lambda path: "left out" if path == "/w/out" else None])


class Reaching:
    """A prepared call, as far as a policy looks at it."""

    def __init__(self, accesses: list[Access] | None) -> None:
        self.accesses = None if accesses is None else tuple(accesses)
        self.arguments: dict[str, Any] = {}


def request(effect: Effect, accesses: list[Access] | None, covers: Any) -> PolicyRequest:
    prepared: Any = Reaching(accesses)
    return PolicyRequest(Facts("t", Effect.DESTRUCTIVE, frozenset()), effect, prepared, covers=covers)


@given(st.sampled_from(list(Effect)), st.none() | ACCESSES, COVERS)
def test_the_levels_are_ordered(effect: Effect, accesses: list[Access] | None, covers: Any) -> None:
    """No level runs unasked what a higher one would not, whatever a call reaches."""
    asked = request(effect, accesses, covers)
    order = [AutonomyPolicy(word).decide(asked).verb for word in Autonomy]
    assert order == sorted(order, key=[Verb.DENY, Verb.ASK, Verb.ALLOW].index)


@pytest.mark.promise("security.md", "what runs unasked is confined and can be undone")
@given(st.sampled_from([Effect.WRITE, Effect.DESTRUCTIVE]), ACCESSES, COVERS)
def test_what_runs_unasked_is_confined_and_covered(
    effect: Effect, accesses: list[Access], covers: Any
) -> None:
    asked = request(effect, accesses, covers)
    decision = AutonomyPolicy("sandboxed").decide(asked)
    if decision.verb is not Verb.ALLOW or AutonomyPolicy("supervised").decide(asked).verb is Verb.ALLOW:
        assert not decision.confined
        return
    assert decision.confined
    assert covers is not None
    assert all(access.free or access.confined == INSIDE for access in accesses)
    assert not any(access.secret for access in accesses)
    for access in accesses:
        if access.reach in (Reach.WRITE, Reach.DELETE) and access.target not in (".", "/"):
            assert covers(str(Path("/w", access.target))) is None


@pytest.mark.promise("policy.md", "the lowest one counts")
def test_the_lowest_level_counts_everywhere() -> None:
    for words, lowest in [
        (("full", "sandboxed"), "sandboxed"),
        (("sandboxed", "full"), "sandboxed"),
        (("sandboxed", "supervised"), "supervised"),
        (("supervised", "sandboxed"), "supervised"),
        (("read_only", "sandboxed"), "read_only"),
    ]:
        outer, inner = words
        assert read_rules(f'autonomy = "{outer}"').policy(inner).autonomy.autonomy == lowest
        assert read_rules("").policy(outer).restricted(autonomy=inner).autonomy.autonomy == lowest
        assert (
            Toolbox(autonomy=outer).restricted(autonomy=inner).policy.autonomy.autonomy == lowest  # type: ignore[arg-type,attr-defined]
        )


def test_a_nested_run_keeps_that_a_call_rests_on_its_confinement() -> None:
    asked = request(Effect.WRITE, [Access(Reach.WRITE, "a", confined=INSIDE)], lambda path: None)
    for own, outer in (("sandboxed", "full"), ("full", "sandboxed"), ("sandboxed", "sandboxed")):
        holder = type("Box", (), {"policy": AutonomyPolicy(outer)})()
        decision = BothPolicies(AutonomyPolicy(own), holder, Effect.DESTRUCTIVE).decide(asked)
        assert (decision.verb, decision.confined) == (Verb.ALLOW, True)


# -- while it runs


@pytest.mark.parametrize("level", [Level(network=Network.ON), Level(Files.OFF, Network.ON)])
async def test_a_level_that_was_widened_after_the_decision_runs_nothing(folder: Path, level: Level) -> None:
    workspace = Workspace(folder)

    async def widen(prepared: Ready, step: Any) -> Any:
        workspace.level = level
        return await step(prepared)

    for autonomy, ran in (("sandboxed", False), ("full", True)):
        tools = default_tools(workspace, sandbox=Bubblewrap(str(folder)))
        box = Toolbox(tools, policy=AutonomyPolicy(autonomy), around_execute=[widen])
        with box.covered_by(RUN, all_but()):
            result = await box.call("shell", {"command": "touch ran"}, key=CallKey(RUN, 1, 0))
        assert (folder / "ran").exists() == ran, result.text
        assert ("Nobody was asked" in result.text) != ran


class Vanishing(Bubblewrap):
    """bubblewrap that is removed from the machine while it is in use."""

    gone = False

    def check_available(self) -> None:
        if Vanishing.gone:
            raise SandboxError("bwrap is not installed")
        super().check_available()


@pytest.mark.promise(
    "policy.md",
    "A command that was allowed because of its sandbox does not run if the sandbox is gone when it starts.",
)
@pytest.mark.promise(
    "security.md",
    "A call that no checkpoint precedes asks; a command whose sandbox is gone when it starts is not run.",
)
async def test_a_sandbox_that_disappears_in_mid_run_leaves_the_command_unrun(folder: Path) -> None:
    asked: list[Any] = []
    tools = default_tools(folder, sandbox=Vanishing(str(folder)))
    box = Toolbox(tools, policy=AutonomyPolicy("sandboxed"), approver=asked.append)
    try:
        with box.covered_by(RUN, all_but()):
            for gone in (False, True):
                Vanishing.gone = gone
                name = "second" if gone else "first"
                result = await box.call("shell", {"command": f"touch {name}"}, key=CallKey(RUN, 1, gone))
                assert ("could not be confined" in result.text) == gone
    finally:
        Vanishing.gone = False
    assert asked == []
    assert (folder / "first").exists() and not (folder / "second").exists()


@pytest.mark.promise(
    "security.md",
    "A call that no checkpoint precedes asks; a command whose sandbox is gone when it starts is not run.",
)
async def test_a_checkpoint_that_is_gone_is_asked_about(folder: Path) -> None:
    asked: list[Any] = []
    box = box_of(folder, "sandboxed")
    box.approver = asked.append
    with box.covered_by(RUN, all_but()):
        prepared = await box.prepare(ToolCall("shell", {"command": "touch ran"}), key=CallKey(RUN, 1, 0))
    assert isinstance(prepared, Ready)
    result = await box.execute(prepared)
    assert (result.code, (folder / "ran").exists()) == ("nobody_to_ask", False)


async def test_a_folder_under_another_name_is_not_taken_for_the_one_that_is_covered(folder: Path) -> None:
    """Of several places at once, only the one that keeps its names is covered by their names."""
    place = f"{folder}/other"
    files = CompositeBackend({place: Workspace(folder / "build")}, default=Workspace(folder))
    box = Toolbox([WriteFile(files)], policy=AutonomyPolicy("sandboxed"))
    for path, expected in (("src/new", "runs"), (f"{place}/new", "asks")):
        assert await decided(box, all_but("build"), "write_file", path=path, content="") == expected
