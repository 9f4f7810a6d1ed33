"""A refusal by the sandbox is told from an ordinary failure, in what real programs say of both."""

from __future__ import annotations

import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from tests.sandbox_runs import BACKENDS, backend, run
from toolcrib.command.sandbox import Launch


@pytest.fixture(params=list(BACKENDS))
def kind(request: pytest.FixtureRequest) -> type[Any]:
    return backend(request.param)


@pytest.fixture
def ws(tmp_path: Path) -> Path:
    made = tmp_path / "ws"
    made.mkdir()
    return made


REFUSED = [
    ("touch {out}/x", "write", "{out}/x"),
    ("echo x > {out}/x", "write", "{out}/x"),
    ("{python} -c \"open('{out}/x', 'w')\"", "write", "{out}/x"),
    ("mkdir {out}/folder/", "write", "{out}/folder"),
    ("cat {home}/.ssh/id_rsa", "read", "{home}/.ssh/id_rsa"),
    ("ls {home}/notes", "read", "{home}/notes"),
    ("{python} -c \"import socket; socket.create_connection(('192.0.2.1', 9), 1)\"", "network", None),
    ("echo 'curl: (6) Could not resolve host: nowhere.example'; exit 6", "network", "nowhere.example"),
    ("unshare -U true", "system", "new namespaces"),
    ("cp f {out}/x", "write", "{out}/x"),
    ("mv {out}/there .", "write", "{out}/there"),
    ("rm -r {out}/folder-there", "write", "{out}/folder-there"),
    ("ln -s f {out}/link", "write", "{out}/link"),
    ("tee {out}/x <f", "write", "{out}/x"),
    ("dd if=f of={out}/x", "write", "{out}/x"),
    ("truncate -s 0 {out}/there", "write", "{out}/there"),
    ("tar cf {out}/x.tar f", "write", "{out}/x.tar"),
    ("{python} -c \"import shutil; shutil.copy('f', '{out}/x')\"", "write", "{out}/x"),
    ("{python} -c \"import os; os.rename('f', '{out}/x')\"", "write", None),
    ("{python} -m venv {out}/venv", "write", None),
    ("node -e \"require('fs').writeFileSync('{out}/x', 'x')\"", "write", "{out}/x"),
    ("node -e \"require('fs').readFileSync('{home}/.ssh/id_rsa')\"", "read", "{home}/.ssh/id_rsa"),
    ("git init {out}/repository", "write", None),
    ("git config --file {out}/configuration a.b c", "write", None),
    ("cc -o {out}/a -x c - <<<'int main(){}'", "write", None),
    ("head {home}/.ssh/id_rsa", "read", "{home}/.ssh/id_rsa"),
    ("curl -sS file://{home}/.ssh/id_rsa", "read", "{home}/.ssh/id_rsa"),
    ("curl -sS http://host.example/", "network", None),
    ("git ls-remote https://host.example/x.git", "network", "host.example"),
    ("{python} -m pip download --retries 1 --no-cache-dir nothing-here", "network", None),
    ("node -e \"require('http').get('http://host.example/')\"", "network", None),
    ("chroot / true", "system", None),
]  # fmt: skip
ORDINARY = [
    "exit 1",
    "cat nonesuch",
    "ls /nonesuch",
    "touch /nonesuch/x",
    "grep x nonesuch",
    "false || { echo 'AssertionError: permission denied is what the test expects'; exit 1; }",
    "echo 'error: read-only file system'; exit 1",
    "mkdir made; chmod 0 made; exit 2",
    "{python} -c 'raise ValueError(1)'",
    "true",
    "{python} -c \"open('nonesuch')\"",  # "enotfound" is in FileNotFoundError
    "{python} -c 'import nonesuch'",
    "{python} nonesuch.py",
    "node -e 'throw 1'",
    "node nonesuch.js",
    "git init -q made; git -C made log",
    "git -C nonesuch status",
    "curl -sS file:///nonesuch",
    "cp nonesuch x",
    "mkdir f",
    "cd f",
    "./f",
    "nonesuch-command",
    "kill 99999999",
    "echo 'npm ERR! ERESOLVE unable to resolve dependency tree'; exit 1",
    "echo 'java.lang.OutOfMemoryError: Java heap space'; exit 1",
    "echo 'expected status 200, got response 403'; exit 1",
    "echo \"E   PermissionError: [Errno 13] Permission denied: 'data.txt'\"; exit 1",
    "echo 'database is locked: [Errno 11] Resource temporarily unavailable'; exit 1",
    "echo 'the operation not permitted by the policy of the test'; exit 1",
]


@pytest.fixture
def house(tmp_path: Path, ws: Path) -> dict[str, str]:
    home, out = tmp_path / "home", tmp_path / "out"
    for folder in (home / ".ssh", home / "notes", out):
        folder.mkdir(parents=True)
    (home / ".ssh" / "id_rsa").write_text("secret")
    return {"home": str(home), "out": str(out)}


def _filled(command: str, house: dict[str, str]) -> str:
    for name, value in {**house, "python": sys.executable}.items():
        command = command.replace("{" + name + "}", value)
    return command


@pytest.mark.promise("sandbox.md", "`explain` tells a refusal from an ordinary failure")
@pytest.mark.parametrize(("command", "what", "target"), REFUSED)
def test_a_refusal_is_recognised(
    kind: type[Any], ws: Path, house: dict[str, str], command: str, what: str, target: str | None
) -> None:
    _can_run(command)
    (ws / "f").write_text("x")
    (Path(house["out"]) / "there").write_text("x")
    (Path(house["out"]) / "folder-there").mkdir()
    sandbox = kind(ws, home=house["home"], readable=[house["out"]])
    done = run(sandbox, f"export HOME={house['home']}; {_filled(command, house)}", ws)
    assert done.denial is not None, done.said
    assert done.denial.kind == what, (done.denial, done.said)
    if target is not None:
        assert done.denial.target == target.format(**house)
    assert done.denial.message.startswith("The sandbox ") and (done.denial.remedy or what == "system")


@pytest.mark.promise("sandbox.md", "`explain` tells a refusal from an ordinary failure")
@pytest.mark.parametrize("command", ORDINARY)
def test_an_ordinary_failure_is_not_blamed_on_the_sandbox(
    kind: type[Any], ws: Path, house: dict[str, str], command: str
) -> None:
    _can_run(command)
    (ws / "f").write_text("x")
    sandbox = kind(ws, home=house["home"])
    done = run(sandbox, f"export HOME={house['home']}; {_filled(command, house)}", ws)
    assert done.denial is None, (done.denial, done.said)


def _can_run(command: str) -> None:
    program = command.split()[0]
    if program in ("node", "curl", "cc") and shutil.which(program) is None:
        pytest.skip(f"{program} is not installed")


@pytest.mark.parametrize(
    ("code", "said", "told"),
    [
        (1, "sh: 1: cannot set it: Operation not permitted", True),
        (101, "cargo failed: Read-only file system when writing", True),
        (1, "error: EPERM", True),
        (159, "", True),
        (-31, "", True),
        (0, "x: Operation not permitted", False),
        (127, "Operation not permitted", False),
        (1, "chown: changing ownership of 'f': Operation not permitted", False),
        (1, "the operation is not permitted", False),
    ],
)
def test_what_names_no_path_is_told_without_an_offer(
    kind: type[Any], ws: Path, code: int, said: str, told: bool
) -> None:
    denial = kind(ws).explain(code, said, Launch([], {}, str(ws)))
    assert (denial is not None) == told
    assert denial is None or (denial.kind == "system" and denial.permission is None and not denial.remedy)


def test_what_is_covered_by_a_mask_is_told_as_protected(ws: Path) -> None:
    done = run(backend("bubblewrap")(ws), "echo x >.envrc", ws)
    assert done.denial is not None and done.denial.target == str(ws / ".envrc")


@pytest.mark.parametrize(
    "command", ["git config user.name Ann", "git remote add here .", "rm .git/config", "mv .git/config saved"]
)
def test_settings_of_git_that_cannot_be_replaced_are_told_as_protected(ws: Path, command: str) -> None:
    subprocess.run(["git", "init", "-q", ws], check=True)
    done = run(backend("bubblewrap")(ws), command, ws)
    assert done.denial is not None and done.denial.target == str(ws / ".git/config"), done.said
    assert "other programs obey what stands in it" in done.denial.message


@pytest.mark.parametrize("depth", ["ws", "a/ws", "a/b/c/ws"])
def test_what_is_written_beside_a_workspace_is_not_lost_unsaid(tmp_path: Path, depth: str) -> None:
    (tmp_path / depth).mkdir(parents=True)
    done = run(backend("bubblewrap")(tmp_path / depth), "echo x >../f", tmp_path / depth)
    beside = (tmp_path / depth).parent / "f"
    assert done.code != 0 and done.denial is not None and done.denial.target == str(beside)
    more = done.denial.permission
    assert more is not None
    sandbox = backend("bubblewrap")(tmp_path / depth)
    assert run(sandbox.at(sandbox.level.with_permission(more)), "echo x >../f", tmp_path / depth).code == 0
    assert beside.read_text() == "x\n"


INDEXES = [
    ("after connection broken by 'NewConnectionError('<pip._vendor.urllib3.connection.HTTPSConnection object at 0x7f>: "
     "Failed to establish a new connection: [Errno -3] Temporary failure in name resolution')': /simple/requests/",
     "pypi.org, files.pythonhosted.org"),
    ("Looking in indexes: https://user:pw@mirror.example/simple\nWARNING: <pip._vendor.urllib3 at 0x7f>: Failed to "
     "establish a new connection: [Errno -2] Name or service not known')': /simple/requests/", "mirror.example"),
    ("HTTPSConnectionPool(host='pypi.org', port=443): Max retries exceeded (Failed to establish a new connection)",
     "pypi.org, files.pythonhosted.org"),
    ("npm error code ENOTFOUND\nnpm error request to https://registry.npmjs.org/x failed, reason: getaddrinfo EAI_AGAIN "
     "registry.npmjs.org", "registry.npmjs.org"),
    ("npm error errno EAI_AGAIN\nnpm error network request to https://npm.example/x failed", "npm.example"),
    ("warning: spurious network error: [6] Could not resolve hostname (Could not resolve host: index.crates.io)",
     "index.crates.io, static.crates.io"),
    ("Temporary failure in name resolution", ""),
]  # fmt: skip


@pytest.mark.promise("sandbox.md", "An index of packages is offered by its name")
@pytest.mark.parametrize(("said", "host"), INDEXES)
def test_an_index_of_packages_is_offered_by_its_name(ws: Path, said: str, host: str) -> None:
    denial = backend("bubblewrap")(ws).explain(1, said, Launch([], {}, str(ws)))
    assert denial is not None and denial.permission is not None
    assert (denial.permission.kind, denial.permission.target) == (("host", host) if host else ("network", ""))


@pytest.mark.parametrize("word", ["shm_open ", "openpty ", "SemLock ", "x.bind(y) "])
def test_one_long_line_is_looked_at_in_linear_time(ws: Path, word: str) -> None:
    sandbox = backend("landlock")(ws)
    begun = time.process_time()
    assert sandbox.explain(1, word * 7_000, Launch([], {}, str(ws))) is None
    assert time.process_time() - begun < 1


LACKING = {
    "{python} -c 'import multiprocessing; multiprocessing.Lock()'": "/dev/shm",
    "{python} -c 'from multiprocessing.shared_memory import SharedMemory; SharedMemory(create=True, size=9)'": "/dev/shm",
    "{python} -c 'import pty; pty.fork()'": "/dev/ptmx",
    "{python} -c 'import socketserver; socketserver.TCPServer((\"127.0.0.1\", 0), None)'": "loopback",
    'node -e \'require("net").createServer().listen(0, "127.0.0.1")\'': "loopback",
    "echo 'Could not determine a usable local IP for this machine.'; exit 1": "loopback",
    "mkdir /tmp/locks-of-a-tool": "TMPDIR",
}


@pytest.mark.promise("sandbox.md", "what Landlock cannot give is told, with how to install what can")
@pytest.mark.parametrize("command", LACKING)
def test_what_landlock_cannot_give_is_told_and_not_asked_about(
    ws: Path, house: dict[str, str], command: str
) -> None:
    _can_run(command)
    done = run(backend("landlock")(ws, home=house["home"]), _filled(command, house), ws)
    assert done.denial is not None and LACKING[command] in done.denial.message, done.said
    assert "ubblewrap" in done.denial.message and done.denial.permission is None
