"""What the words of a command say beside what they prove: failures of the network that nobody told, ends of a history.

A command may hide that it reached nobody: by its options, behind a pipe, or by what comes after `||`. Its sandbox knows
that it allows no connection, not whether one was tried, so this is said as something that may be.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from toolcrib.command.launch.process import Outcome
from toolcrib.command.sandbox import Denial, Launch, Network, Permission, Sandbox
from toolcrib.question import Doubt

if TYPE_CHECKING:
    from toolcrib.shell import Judgement

SAID = 20_000  # bytes from the end of the output that are looked through
# What fetches the URLs on its command line, and the exit codes by which it says that it reached nobody.
FETCHERS = {
    "curl": {5, 6, 7, 28, 35, 56},
    "wget": {4},
    "wget2": {4},
    "http": {1},
    "https": {1},
    "aria2c": {2, 6, 19},
}
URL = re.compile(
    r"https?://(?:[^\s/@'\"]{0,200}@)?(\[[0-9a-f:.]{2,45}\]|[a-z0-9][a-z0-9.-]{0,200})(?::(\d{1,5}))?", re.I
)
FAILED = re.compile(
    r"could ?n[o']t (?:resolve|connect)|failed to connect|connection refused|connectionrefusederror|econnrefused|"
    r"name resolution|name or service not known|network is unreachable|operation not permitted",
    re.I,
)
SPEAKERS = {
    *FETCHERS,
    "git",
    "pip",
    "pip3",
    "npm",
    "npx",
    "pnpm",
    "yarn",
    "cargo",
    "uv",
    "go",
    "gem",
    "bundle",
    "composer",
}
BEFORE = ("timeout", "env", "nice", "time", "nohup", "stdbuf", "command", "exec")
URL_WORD = re.compile(r"https?://\S+", re.I)
REMOVERS = {"rm", "rmdir", "mv", "unlink", "shred"}
LOOSELY = re.compile(
    r"""(?:^|[\s/'"=])\.(?:git|g?\*|\[[!^]\.\]\*)(?:/(?:objects|refs|\*))?/?(?=$|[\s'";&|)])"""
)
HISTORY = ("objects", "refs", "HEAD", "packed-refs", "logs", "*")
ENDS_HISTORY = "it removes or overwrites the repository itself, and with it all that was not pushed"


def quiet(
    judgement: Judgement, command: str, outcome: Outcome, sandbox: Sandbox, launch: Launch | None
) -> Denial | None:
    """The connection that a command may have failed to make where it did not say so; None where nothing says that."""
    if (
        launch is None
        or sandbox.level.network is not Network.OFF
        or outcome.code is None
        or not sandbox.report().confines
    ):
        return None
    said = outcome.output.ending(SAID)
    if outcome.code == 0 and any(name in SPEAKERS for name in _programs(judgement)):
        # What it would be if its failure were not hidden by what came after it.
        denial = sandbox.explain(1, said, launch)
        if denial is not None and denial.kind == "network":
            return denial
    failed = bool(FAILED.search(said))
    fetching = [(name, words) for name, words in _fetching(judgement, command) if URL.search(words)]
    if fetching:
        return _of_fetchers(judgement, command, fetching, outcome.code, said, failed)
    # A service of this machine: elsewhere no program is told apart from a failure of its own.
    hosts = [host for host in _hosts(command) if _is_own(host)]
    if outcome.code and failed and hosts and not _serves(command):
        return _may_be(hosts, tried=True)
    return None


def _of_fetchers(
    judgement: Judgement, command: str, fetching: list[tuple[str, str]], code: int, said: str, failed: bool
) -> Denial | None:
    failed = failed or any(code in FETCHERS[name] for name, _ in fetching)
    first = bool(judgement.parts) and _program(judgement.parts[0].argv) == fetching[0][0]
    hosts = [host for _, words in fetching for host in _hosts(words)]
    if not failed and any(map(_is_own, hosts)) and (said.strip() or _serves(command)):
        return None  # of a service that the command started itself
    if not failed and not first and (said.strip() or code or "||" in command):
        return None  # perhaps it was not even started
    if failed and _serves(command) and any(map(_is_own, hosts)):
        return None
    return _may_be(hosts, tried=failed or first)


def _fetching(judgement: Judgement, command: str) -> Iterator[tuple[str, str]]:
    """Programs that fetch, each with its words."""
    if not judgement.parts:
        yield from ((name, command) for name in judgement.programs if name in FETCHERS)
    for part in judgement.parts:
        if (name := _program(part.argv)) in FETCHERS:
            yield name, " ".join(part.argv[1:])


def _programs(judgement: Judgement) -> list[str]:
    return [_program(part.argv) for part in judgement.parts] or list(judgement.programs)


def _program(argv: Sequence[str]) -> str:
    """The name of what is run, also behind `timeout 5` and the like."""
    names = [word.rpartition("/")[2] for word in argv[:6]]
    if names and names[0] in BEFORE:
        return next((name for name in names if name in SPEAKERS), names[0])
    return names[0] if names else ""


def _hosts(text: str) -> list[str]:
    return list(dict.fromkeys(_host(*found) for found in URL.findall(text)))


def _serves(command: str) -> bool:
    """Whether a command leaves something running in the background, which may be what it speaks to."""
    return "&" in re.sub(r"&&|[<>]&|&>", "", URL_WORD.sub("", command))


def _may_be(hosts: list[str], *, tried: bool) -> Denial:
    host, *others = dict.fromkeys(hosts)
    words = f"That nothing came from {' or '.join([host, *others][:4])} may have been the sandbox: "
    words += "it allows no connection to the network."
    if others or not tried:
        return Denial("network", host, words)
    return Denial("network", host, words, f"allow the host {host}", Permission("host", host))


def _host(name: str, port: str) -> str:
    name = name.lower().rstrip(".")
    return f"{name}:{port}" if port and port not in ("80", "443") else name


def _is_own(host: str) -> bool:
    return re.match(r"(?:localhost|127\.[\d.]+|\[::1\]|0\.0\.0\.0)(?::|$)", host) is not None


def ends_history(judgement: Judgement, command: str) -> Doubt | None:
    """The doubt about a command whose words say that it removes a repository's `.git`: no autonomy is meant so."""
    removes = not judgement.parts and REMOVERS & {*judgement.programs} and LOOSELY.search(command)
    named = (
        _is_history(operand.path, operand.access, _program(part.argv))
        for part in judgement.parts
        for operand in part.operands
    )
    return Doubt(ENDS_HISTORY, must_ask=True) if removes or any(named) else None


def _is_history(path: str, access: str, program: str) -> bool:
    *above, name = path.rstrip("/").split("/")
    if above and above[-1] == ".git" and name in HISTORY:
        return access in ("delete", "write")
    return access == "delete" and (name == ".git" or (path == "." and program == "rm"))
