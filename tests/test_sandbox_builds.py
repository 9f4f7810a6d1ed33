"""Real builds in the sandbox: they pass unasked without a network, and one question opens the index that they need."""

from __future__ import annotations

import asyncio
import shutil
import subprocess
import threading
import zipfile
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from tests.build_projects import Project, build, projects
from tests.sandbox_runs import backend, run

WITHOUT_NETWORK = [one for one in projects() if not one.network]


@pytest.mark.slow
@pytest.mark.parametrize("project", WITHOUT_NETWORK, ids=lambda project: project.name)
def test_a_project_builds_in_the_sandbox_unasked(project: Project) -> None:
    make = backend("bubblewrap")
    if missing := project.missing():
        pytest.skip(f"not installed here: {', '.join(missing)}")
    built = asyncio.run(build(project, make))
    assert (built.failed, built.questions) == ("", [])


@pytest.fixture
def index(tmp_path: Path) -> Iterator[int]:
    """A package index on loopback with one package; its port."""
    files = tmp_path / "index"
    (files / "simple" / "tiny").mkdir(parents=True)
    wheel = files / "tiny-1.0-py3-none-any.whl"
    with zipfile.ZipFile(wheel, "w") as made:
        made.writestr("tiny.py", "value = 42\n")
        made.writestr("tiny-1.0.dist-info/METADATA", "Metadata-Version: 2.1\nName: tiny\nVersion: 1.0\n")
        made.writestr(
            "tiny-1.0.dist-info/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
        )
        made.writestr("tiny-1.0.dist-info/RECORD", "")
    (files / "simple" / "tiny" / "index.html").write_text(f'<a href="/{wheel.name}">{wheel.name}</a>')
    with ThreadingHTTPServer(("127.0.0.1", 0), partial(_Quiet, directory=str(files))) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield server.server_address[1]
        server.shutdown()
        thread.join()


class _Quiet(SimpleHTTPRequestHandler):
    def log_message(self, format: str, *args: object) -> None:
        pass


async def _to_loopback(host: str, port: int) -> list[str]:
    return ["127.0.0.1"]


@pytest.mark.slow
def test_one_question_opens_the_index_for_all_installs_of_a_run(index: int) -> None:
    make = partial(backend("bubblewrap"), resolve=_to_loopback)
    install = ".venv/bin/pip install --no-cache-dir --force-reinstall -r requirements.txt"
    lines = f"--index-url http://packages.test:{index}/simple\n--trusted-host packages.test\ntiny\n"
    project = Project(
        "installs",
        run=[
            "python3 -m venv .venv",
            install,
            install,
            ".venv/bin/python -c 'import tiny; assert tiny.value == 42'",
        ],
        files={"requirements.txt": lines},
    )
    built = asyncio.run(build(project, make))
    assert (built.failed, built.questions) == ("", [f"let commands connect to packages.test:{index}"])


def _repository(path: Path) -> None:
    for words in (
        "init -q -b main",
        "-c user.name=a -c user.email=a@b.test commit -q --allow-empty -m first",
    ):
        subprocess.run(["git", "-C", str(path), *words.split()], check=True, capture_output=True)


def test_a_worktree_shows_its_repository_and_a_forged_one_shows_nothing(tmp_path: Path) -> None:
    whole, worktree, forged = tmp_path / "whole", tmp_path / "worktree", tmp_path / "forged"
    whole.mkdir()
    forged.mkdir()
    _repository(whole)
    subprocess.run(["git", "-C", str(whole), "worktree", "add", "-q", str(worktree)], check=True)
    shown = run(backend("bubblewrap")(worktree), "git log --format=%s", worktree)
    written = run(backend("bubblewrap")(worktree), f"echo x >> {whole}/.git/config", worktree)
    (forged / ".git").write_bytes((worktree / ".git").read_bytes())
    hidden = run(backend("bubblewrap")(forged), f"git log; ls {whole}/.git", forged)
    assert (shown.said, written.code != 0, hidden.code != 0) == ("first\n", True, True), hidden.said


def test_caches_of_a_home_folder_last_from_command_to_command_and_stay_in_the_sandbox(tmp_path: Path) -> None:
    home, ws = tmp_path / "home", tmp_path / "ws"
    for folder in (home / ".cache", ws):
        folder.mkdir(parents=True)
    (home / ".cache" / "own").write_text("of the user")
    sandbox = backend("bubblewrap")(ws, home=str(home))
    command = f"cd {home}/.cache && ls && echo made > made"
    assert [run(sandbox, command, ws).said for _ in range(2)] == ["", "made\n"]
    # A link in it leads nowhere outside, also for the next command.
    run(sandbox, f"cd {home}/.cache && rm made && ln -s {home}/.cache/own made; ln -s / {home}/.npm/root", ws)
    assert run(sandbox, f"cat {home}/.cache/made; echo x > {home}/.npm/root{home}/outside", ws).code
    assert sorted(path.name for path in home.rglob("*")) == [".cache", "own"]


def test_builds_under_landlock_are_led_to_caches_of_their_own(tmp_path: Path) -> None:
    home, ws = tmp_path / "home", tmp_path / "ws"
    for folder in (home / ".cache", ws):
        folder.mkdir(parents=True)
    (home / ".cache" / "own").write_text("of the user")
    sandbox = backend("landlock")(ws, home=str(home))
    command = (
        'mkdir -p "$XDG_CACHE_HOME" "$npm_config_cache" && cd "$XDG_CACHE_HOME" && ls && echo made > made'
    )
    assert [run(sandbox, command, ws).said for _ in range(2)] == ["", "made\n"]
    assert "-Djava.io.tmpdir=/" in run(sandbox, "echo $JAVA_TOOL_OPTIONS", ws).said


def test_node_tells_its_memory_under_landlock_and_keeps_its_options(tmp_path: Path) -> None:
    if not shutil.which("node"):
        pytest.skip("not installed here: node")
    sandbox = partial(run, backend("landlock")(tmp_path), cwd=tmp_path)
    (tmp_path / "own.cjs").write_text("globalThis.own = 'own'")
    (tmp_path / "memory.cjs").write_text(
        "const told = process.memoryUsage();"
        "const { isMainThread, Worker } = require('node:worker_threads');"
        "console.log(told.rss > 0, told.heapUsed > 0, process.memoryUsage.rss() > 0, globalThis.own);"
        "if (isMainThread) new Worker(__filename);"
    )
    assert sandbox("node memory.cjs").said == "true true true undefined\n" * 2
    options = {"NODE_OPTIONS": f"--require {tmp_path}/own.cjs"}
    assert sandbox("node memory.cjs", added=options).said == "true true true own\n" * 2


def test_node_starts_under_its_own_permission_model_in_landlock(tmp_path: Path) -> None:
    if not shutil.which("node"):
        pytest.skip("not installed here: node")
    options = subprocess.run(["node", "--help"], capture_output=True, text=True).stdout
    flag = next((flag for flag in ("--permission", "--experimental-permission") if f"{flag} " in options), "")
    if not flag:
        pytest.skip("this node has no permission model")
    (tmp_path / "program.cjs").write_text("console.log('ran')")
    done = run(
        backend("landlock")(tmp_path), f"node {flag} --allow-fs-read={tmp_path}/* program.cjs", tmp_path
    )
    assert done.code == 0 and "ran\n" in done.said, done.said
