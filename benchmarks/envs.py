"""One virtual environment a peer or program, built when it is missing or its versions changed."""

import hashlib
import json
import os
import subprocess
import sys
import tomllib
import venv
from pathlib import Path

HERE = Path(__file__).resolve().parent
CHECKOUT = HERE.parent
ENVS = HERE / ".envs"
TABLE = tomllib.loads((HERE / "versions.toml").read_text("utf-8"))
PEERS = tuple(TABLE["peers"])
CONTENTS = TABLE["peers"] | TABLE["programs"]


class BuildFailed(Exception):
    """An environment could not be built; the message is the end of what the installer said."""


def python_of(peer: str) -> Path:
    """The interpreter of a peer's or program's environment, which is built first if need be. Raises BuildFailed."""
    folder = ENVS / peer
    python = folder / "bin" / "python"
    wanted = [item.format(checkout=CHECKOUT) for item in CONTENTS[peer]] + TABLE["floor"]
    stamp, mark = folder / "built.txt", _mark(peer, wanted)
    if stamp.exists() and stamp.read_text("utf-8") == mark:
        return python
    print(f"building the environment of {peer} ...", file=sys.stderr, flush=True)
    venv.create(folder, clear=True, with_pip=True)
    _run([str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *wanted])
    stamp.write_text(mark, "utf-8")
    return python


def tokenizer() -> Path | None:
    """The folder in which node finds gpt-tokenizer; None where node or the package cannot be had."""
    folder = ENVS / "node"
    package, version = next(iter(TABLE["node"].items()))
    manifest = folder / "node_modules" / package / "package.json"
    if manifest.exists() and json.loads(manifest.read_text("utf-8"))["version"] == version:
        return folder
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "package.json").write_text("{}", "utf-8")
    try:
        _run(["npm", "install", "--silent", "--no-audit", "--no-fund", f"{package}@{version}"], cwd=folder)
    except (BuildFailed, OSError) as problem:
        print(f"tokens are not counted: {problem}", file=sys.stderr)
        return None
    return folder


def clean_environment() -> dict[str, str]:
    """Our own, without what changes how Python starts or what a peer reports to whom."""
    kept = {key: value for key, value in os.environ.items() if not key.startswith("PYTHON")}
    quiet = {
        "OPENAI_AGENTS_DISABLE_TRACING": "1",
        "OPENAI_API_KEY": "none",
        "AGNO_TELEMETRY": "false",
        "FASTMCP_CHECK_FOR_UPDATES": "off",
        "LANGSMITH_TRACING": "false",
        "ANONYMIZED_TELEMETRY": "false",
    }
    return kept | quiet


def _mark(peer: str, wanted: list[str]) -> str:
    """What the environment was built from; toolcrib's own dependencies count too."""
    parts = [sys.version, *wanted]
    if any("{checkout}" in item for item in CONTENTS[peer]):
        project = tomllib.loads((CHECKOUT / "pyproject.toml").read_text("utf-8"))["project"]
        parts += project["dependencies"]
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()


def _run(command: list[str], cwd: Path | None = None) -> None:
    done = subprocess.run(command, cwd=cwd, capture_output=True, text=True, timeout=900, check=False)
    if done.returncode:
        raise BuildFailed((done.stderr or done.stdout).strip()[-800:])
