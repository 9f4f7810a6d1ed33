"""What a command may have met and did not say: the network that was not there, and a repository that would be gone."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.sandbox_runs import BACKENDS, backend
from toolcrib import Toolbox
from toolcrib.errors import ErrorCode
from toolcrib.question import Answer, Verdict
from toolcrib.tools import Shell, Workspace

MAY = "may have been the sandbox"
ALLOWS = "The sandbox allows no connection"
HOST = "let commands connect to "
# The command, the words that the model hears, what a person is offered.
QUIET = [
    ("curl -s http://x.example/a", MAY, HOST + "x.example"),
    ("curl -s https://x.example:8443/a | head -3", MAY, HOST + "x.example:8443"),
    ("curl -fsS http://x.example/ | head -3", ALLOWS, HOST + "x.example"),
    ("curl -sS http://x.example/ || true", ALLOWS, HOST + "x.example"),
    ("curl -s http://x.example/ >f 2>/dev/null; echo done", MAY, HOST + "x.example"),
    ("timeout 5 curl -s http://x.example/", MAY, HOST + "x.example"),
    ("body=$(curl -s http://x.example/); [ -n \"$body\" ]; exit 7", MAY, HOST + "x.example"),
    ("curl -s http://127.0.0.1:9/", MAY, HOST + "127.0.0.1:9"),
    ("wget -q http://x.example/", MAY, HOST + "x.example"),
    ("cd . && curl -s http://x.example/ | cat", MAY, None),
    ("curl -s http://x.example/ http://y.example/", MAY, None),
    ("git ls-remote https://x.example/a 2>&1 | tail -1", ALLOWS, HOST + "x.example"),
    ("{python} -c \"import urllib.request as u; u.urlopen('http://127.0.0.1:9/')\"", None, HOST),
]  # fmt: skip
LOUD = [
    "curl --version",
    "curl -s file://$PWD/nonesuch",
    "curl -s file:///etc/hostname",
    "echo curl http://x.example/ > f; grep curl f",
    "grep -q curl nonesuch",
    "echo 'see http://x.example/'; false",
    "[ -f f ] || true || curl -s http://x.example/",
    "{python} -m http.server 8123 -b 127.0.0.1 >/dev/null 2>&1 & sleep 1; curl -s http://127.0.0.1:8123/ >/dev/null; kill %1",
    "test -f nonesuch && curl -s http://x.example/; echo no",
    "echo 'connection refused'; exit 1",
    "wget --version >/dev/null",
    "exit 7",
]  # fmt: skip


def boxed(folder: Path, kind: str, asked: list[Any]) -> Toolbox:
    async def approver(question: Any) -> Answer:
        asked.append(question)
        return Answer(Verdict.NO)

    sandbox = backend(kind)(folder)
    return Toolbox([Shell(Workspace(folder), sandbox=sandbox)], autonomy="full", approver=approver)


@pytest.mark.promise("sandbox.md", "the model is told that it *may* have been the sandbox")
@pytest.mark.parametrize("kind", list(BACKENDS))
@pytest.mark.parametrize(("command", "words", "offer"), QUIET)
def test_a_quiet_failure_of_the_network_is_told(
    tmp_path: Path, kind: str, command: str, words: str | None, offer: str | None
) -> None:
    _can_run(command)
    asked: list[Any] = []
    said = boxed(tmp_path, kind, asked).call_sync(
        "shell", {"command": command.replace("{python}", sys.executable)}
    )
    if words is not None:
        assert words in said.text
    if kind == "landlock" and offer is not None:
        offer = "let commands use the whole network"  # it knows no list of hosts
    assert bool(asked) is (offer is not None)
    assert offer is None or asked[0].action.startswith(offer)


@pytest.mark.parametrize("kind", list(BACKENDS))
@pytest.mark.parametrize("command", LOUD)
def test_what_had_nothing_to_do_with_the_network_is_not_blamed_on_it(
    tmp_path: Path, kind: str, command: str
) -> None:
    _can_run(command)
    asked: list[Any] = []
    said = boxed(tmp_path, kind, asked).call_sync(
        "shell", {"command": command.replace("{python}", sys.executable)}
    )
    if "http.server" in command and kind == "landlock":
        return  # it knows no network of a command's own
    assert "sandbox" not in said.text and asked == []


def _can_run(command: str) -> None:
    for program in ("curl", "wget", "git"):
        if program in command and shutil.which(program) is None:
            pytest.skip(f"{program} is not installed")


@pytest.mark.promise("sandbox.md", "asks a person, whatever autonomy and rules allow")
@pytest.mark.parametrize(
    ("command", "asks"),
    [
        ("rm -rf ./* .git", True),
        ("rm -rf .git", True),
        ("rm -rf nested/.git/", True),
        ("cd nested && rm -rf .git/objects", True),
        ("bash -c 'rm -rf .git'", True),
        ("mv .git elsewhere", True),
        ("find .git -delete", True),
        ("rm -rf {ws}", True),
        ("rm -rf .*", True),
        ("rm -rf \"$PWD/.git\"", True),
        # not understood
        ("rm -rf --unknown .git", True),
        ("rm -rf -Z ./.git/", True),
        ("rm -rf -Z .[g]it", True),
        ("rm -rf .gi?", True),
        ("rm -rf .{git,x}", True),
        ("r\\m -rf -Z .g\\it", True),
        ("rm -rf $(cat list) .git", True),
        ("git status && rm -rf -Z .git", True),
        ("cd .git && rm -rf -Z objects", True),
        ("echo .git | xargs rm -rf", True),
        ("find . -name .git -exec rm -rf {} +", True),
        ("busybox rm -rf .git", True),
        ("env -i rm -rf .git", True),
        ("bash -c 'rm -rf .git $x'", True),
        ("python3 -c 'import shutil; shutil.rmtree(\".git\")'", True),
        ("cp -Z x .git/HEAD", True),
        ("rsync -a --delete nested/ .git/", True),
        ("rm -rf -Z build", False),
        ("rm -f -Z .git/index.lock", False),
        ("cat .gitignore; rm -Z x", False),
        ("grep -r \"$x\" .git", False),
        ("rm -f .gitignore; rm -rf *", False),
        ("find . -name '*.pyc' -delete", False),
        ("rm -rf .git-old build", False),
        ("rm -f .git/index.lock", False),
        ("git rm -r --cached .github", False),
        ("git commit -m 'rm .git'", False),
    ],
)  # fmt: skip
def test_a_command_that_says_it_ends_a_history_asks_whatever_is_allowed(
    tmp_path: Path, command: str, asks: bool
) -> None:
    (tmp_path / "ws/.git").mkdir(parents=True)
    (tmp_path / "ws/.git/kept").touch()
    (tmp_path / "ws/nested").mkdir()
    sandbox = backend("bubblewrap")(tmp_path / "ws")
    box = Toolbox([Shell(Workspace(tmp_path / "ws"), sandbox=sandbox)], autonomy="full")
    got = box.call_sync("shell", {"command": command.replace("{ws}", str(tmp_path / "ws"))})
    assert (got.code == ErrorCode.NOBODY_TO_ASK) is asks, got.text
    assert (tmp_path / "ws/.git/kept").exists()


@pytest.mark.promise("sandbox.md", "The model and you are told about each removal.")
def test_what_was_taken_out_is_told_to_the_model_and_to_the_person(tmp_path: Path) -> None:
    got = boxed(tmp_path, "bubblewrap", []).call_sync(
        "shell", {"command": "git init -q m && git -C m config core.pager x"}
    )
    assert (
        "git would have obeyed m/.git/config outside the sandbox (core.pager): that was taken out" in got.text
    )
