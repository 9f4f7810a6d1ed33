#!/usr/bin/env python3
"""Set the project up and run one of its jobs; needs nothing but Python 3.11 or newer.

    python3 dev.py demo     set up, and watch an agent mend a project (no key, no network once set up)
    python3 dev.py test     set up, and run the tests (minutes; on two cores, if there are two)
    python3 dev.py slow     set up, and run the second step of the tests: load, how costs grow, escapes, docs
    python3 dev.py nightly  set up, and run all tests, with many new examples for every property, and those with PyTorch
    python3 dev.py torch    set up a second environment with PyTorch (1.2 GB), and hold a tiny model to constraints
    python3 dev.py soak     set up, and put a toolbox under load for an hour, or for as many seconds as you say
    python3 dev.py check    set up, and check format, lint and types
    python3 dev.py conformance  set up, and run MCP's own conformance suite on our server and our client
    python3 dev.py ci       check, test, slow, conformance: what CI runs, side by side where that is quicker
    python3 dev.py bench    measure toolcrib beside its peers
    python3 dev.py lock     write the lock file anew

What follows the job is handed to its command: `python3 dev.py test -k repair`. A test that is named by its path runs
whichever step it is of: `python3 dev.py test tests/test_docs.py`.
"""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

ROOT = Path(__file__).resolve().parent
LOCK = ROOT / "requirements" / "dev.txt"


def python_of(venv: Path) -> str:
    return str(venv / "bin" / "python")


def set_up() -> str:
    """A virtual environment with the locked packages and the project itself; made once, renewed when they change."""
    venv = ROOT / f".venv-{sys.version_info.major}.{sys.version_info.minor}"
    wanted = hashlib.sha256(LOCK.read_bytes() + (ROOT / "pyproject.toml").read_bytes()).hexdigest()
    mark = venv / "installed"
    if mark.is_file() and mark.read_text() == wanted:
        return python_of(venv)
    print(f"Setting up {venv.name} (about half a minute, once)...", file=sys.stderr, flush=True)
    try:
        run([sys.executable, "-m", "venv", "--clear", str(venv)])
    except subprocess.CalledProcessError:
        sys.exit(
            "Python's venv module does not work here; on Debian and Ubuntu install the package python3-venv."
        )
    pip = [python_of(venv), "-m", "pip", "--disable-pip-version-check", "install", "--quiet"]
    run([*pip, "--require-hashes", "--only-binary", ":all:", "-r", str(LOCK)])
    run([*pip, "--no-deps", "--editable", str(ROOT)])
    mark.write_text(wanted)
    return python_of(venv)


def run(command: list[str]) -> None:
    subprocess.run(command, cwd=ROOT, check=True)


def run_whole(command: list[str]) -> None:
    """Runs a command beside others: what it prints is printed at its end, in one piece."""
    begun = time.monotonic()
    done = subprocess.run(
        command, cwd=ROOT, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
    )
    title = f"\n== {' '.join(command[1:])}: {time.monotonic() - begun:.0f} s, exit code {done.returncode}\n"
    sys.stdout.write(title + done.stdout.decode(errors="replace"))
    sys.stdout.flush()
    done.check_returncode()


def run_together(*lanes: list[list[str]]) -> None:
    """Lanes side by side, the commands of each one after another; the first that failed is told when all have ended."""
    with ThreadPoolExecutor() as pool:
        started = [pool.submit(run_in_turn, lane) for lane in lanes]
    for lane in started:
        lane.result()


def run_in_turn(commands: list[list[str]]) -> None:
    for command in commands:
        run_whole(command)


def demo(python: str, rest: list[str]) -> None:
    run([python, "-m", "toolcrib", "demo", *rest])


def pytest(python: str, step: str, rest: list[str]) -> None:
    """The tests of a step, by a worker more than cores (many tests wait), at most four; or those that `rest` names."""
    if any(argument.startswith("tests/") for argument in rest):
        run([python, "-m", "pytest", *rest])
        return
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    several = cores > 1 and "--pdb" not in rest
    workers = ["-n", str(min(cores + 1, 4)), "--dist", "worksteal"] if several else []
    run([python, "-m", "pytest", "-m", step, *workers, *rest])


def test(python: str, rest: list[str]) -> None:
    pytest(python, "not slow", rest)


def slow(python: str, rest: list[str]) -> None:
    pytest(python, "slow", rest)


def nightly(python: str, rest: list[str]) -> None:
    torch(python, [])
    pytest(python, "slow or not slow", ["--hypothesis-profile=nightly", *rest])


def torch(python: str, rest: list[str]) -> None:
    """PyTorch is too large for the lock file: it has an environment of its own, with what else the tests need there."""
    venv = ROOT / ".venv-torch"
    if not (venv / "installed").is_file():
        run([sys.executable, "-m", "venv", "--clear", str(venv)])
        pip = [python_of(venv), "-m", "pip", "--disable-pip-version-check", "install", "--quiet"]
        run([*pip, "torch==2.13.0"])
        run([*pip, "transformers>=5,<6", "--editable", f"{ROOT}[guided]"])
        run([*pip, "--no-deps", "xgrammar>=0.2.8,<0.3", "apache-tvm-ffi"])  # its triton is for GPUs
        (venv / "installed").touch()
    os.environ["TOOLCRIB_TEST_TORCH"] = str(venv)
    run([python, "-m", "pytest", "tests/test_guided_torch.py", *rest])


def soak(python: str, rest: list[str]) -> None:
    os.environ["SOAK_SECONDS"] = rest[0] if rest else "3600"
    run([python, "-m", "pytest", "-s", "tests/soak", *rest[1:]])


def check(python: str, rest: list[str]) -> None:
    style(python)
    run_together([pyright(python)], [mypy(python), mypy_for_windows(python)])


def style(python: str) -> None:
    run([python, "-m", "ruff", "format", "--check", "."])
    run([python, "-m", "ruff", "check", "."])


def pyright(python: str) -> list[str]:
    return [python, "-m", "pyright", "--pythonpath", python]


def mypy(python: str) -> list[str]:
    return [python, "-m", "mypy"]


def mypy_for_windows(python: str) -> list[str]:
    return [python, "-m", "mypy", "--config-file", "mypy-windows.ini"]


def conformance(python: str, rest: list[str]) -> None:
    run([python, "-m", "tests.mcp_servers.conformance", *rest])


def ci(python: str, rest: list[str]) -> None:
    """What is likely to fail and quick to say so comes first, and ends the run. Then all tests run, of both
    steps, with MCP's conformance suite beside them.
    """
    style(python)
    with ThreadPoolExecutor() as pool:
        installing = pool.submit(run_whole, [python, "-m", "tests.mcp_servers.installs"])
        figures = pool.submit(install_figures, python)
        # The tests are compiled here, which each worker that runs them would do again.
        compiling = [python, "-m", "pytest", "--collect-only", "-qqq", "--no-summary"]
        run_together([pyright(python), mypy_for_windows(python)], [mypy(python), compiling])
        figures.result()
        installing.exception()  # the tests that need them say what is missing
        beside = pool.submit(run_whole, [python, "-m", "tests.mcp_servers.conformance"])
        pytest(python, "slow or not slow", rest)
    beside.result()


def install_figures(python: str) -> None:
    """Installs matplotlib (200 MB) for the pictures of the tool `python`."""
    venv = ROOT / ".venv-figures"
    os.environ["TOOLCRIB_TEST_MATPLOTLIB"] = str(venv)
    run([python, "-m", "venv", "--clear", "--without-pip", str(venv)])
    pip = [python, "-m", "pip", "--disable-pip-version-check", "--python", python_of(venv)]
    run_whole([*pip, "install", "--quiet", "--no-compile", "matplotlib"])


def bench(python: str, rest: list[str]) -> None:
    run([python, "benchmarks/run.py", *rest])


def lock(python: str, rest: list[str]) -> None:
    uv = [python, "-m", "uv", "pip", "compile", "--quiet", "--universal", "--generate-hashes", "--no-header"]
    extras = [
        "--group",
        "dev",
        "--all-extras",
        "--python-version",
        "3.11",
        "--no-emit-index-url",
        "--no-annotate",
    ]
    run([*uv, *extras, "pyproject.toml", "--no-emit-package", "toolcrib", "-o", str(LOCK)])


JOBS = {
    job.__name__: job for job in (demo, test, slow, nightly, torch, soak, check, conformance, ci, bench, lock)
}


def main() -> None:
    if sys.version_info < (3, 11):  # noqa: UP036 - it is run before anything is installed
        sys.exit(f"toolcrib needs Python 3.11 or newer; this is {sys.version.split()[0]}")
    if len(sys.argv) < 2 or sys.argv[1] not in JOBS:
        sys.exit(__doc__)
    if os.name != "posix":
        sys.exit("toolcrib runs on Linux and macOS; there is no support for Windows.")
    os.environ.pop(
        "PYTHONDONTWRITEBYTECODE", None
    )  # collecting the tests takes three times as long without it
    rest = sys.argv[2:]
    try:
        JOBS[sys.argv[1]](set_up(), rest[1:] if rest[:1] == ["--"] else rest)
    except subprocess.CalledProcessError as failed:
        sys.exit(failed.returncode)


if __name__ == "__main__":
    main()
