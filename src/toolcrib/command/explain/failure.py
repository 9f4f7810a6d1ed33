"""Why a command failed: a refusal that the sandbox recognises, or a connection that failed without a message.

A command may hide that it reached nobody: by its options, behind a pipe, or by what comes after `||`. The sandbox knows
that it allows no connection, but not whether the command tried one. So the model is told that this may be the reason.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from toolcrib.command.judge import Judgement
from toolcrib.command.launch.process import ProcessOutcome
from toolcrib.command.launch.run_command import Finished
from toolcrib.command.programs.traits import traits_of
from toolcrib.command.programs.wrappers import WRAPPERS
from toolcrib.command.sandbox import Denial, Launch, Network, Permission, Sandbox

MAX_READ = 20_000  # bytes from the end of the output that are searched
URL = re.compile(
    r"https?://(?:[^\s/@'\"]{0,200}@)?(\[[0-9a-f:.]{2,45}\]|[a-z0-9][a-z0-9.-]{0,200})(?::(\d{1,5}))?", re.I
)
URL_WORD = re.compile(r"https?://\S+", re.I)
CONNECTION_FAILED = re.compile(
    r"could ?n[o']t (?:resolve|connect)|failed to connect|connection refused|connectionrefusederror|econnrefused|"
    r"name resolution|name or service not known|network is unreachable|operation not permitted",
    re.I,
)


def explain_failure(
    finished: Finished, sandbox: Sandbox, judgement: Judgement, command: str
) -> Denial | None:
    """What the sandbox refused, or may have refused, to a command that was run; None if nothing points to it."""
    launch, outcome = finished.launch, finished.outcome
    if launch is None:
        return None
    output = outcome.output.ending(MAX_READ)
    denial = sandbox.explain(outcome.code, output, launch)
    return denial or _silent_network_failure(judgement, command, outcome, output, sandbox, launch)


def _silent_network_failure(
    judgement: Judgement, command: str, outcome: ProcessOutcome, output: str, sandbox: Sandbox, launch: Launch
) -> Denial | None:
    """The connection that a command may have failed to make without saying so."""
    if sandbox.level.network is not Network.OFF or outcome.code is None or not sandbox.report().confines:
        return None
    if outcome.code == 0 and any(traits_of(name).network for name in _programs(judgement)):
        # As if the command had failed: what comes after a failure may have hidden it.
        denial = sandbox.explain(1, output, launch)
        if denial is not None and denial.kind == "network":
            return denial
    failed = bool(CONNECTION_FAILED.search(output))
    fetching = [(name, words) for name, words in _fetching(judgement, command) if URL.search(words)]
    if fetching:
        return _of_fetchers(judgement, command, fetching, outcome.code, output, failed)
    # A failure to reach a service of this machine. No other one can be told from a program's own failure.
    hosts = [host for host in _hosts(command) if _is_loopback(host)]
    if outcome.code and failed and hosts and not _starts_background(command):
        return _may_be_refused(hosts, tried=True)
    return None


def _of_fetchers(
    judgement: Judgement, command: str, fetching: list[tuple[str, str]], code: int, output: str, failed: bool
) -> Denial | None:
    failed = failed or any(code in traits_of(name).no_connection for name, _ in fetching)
    first = bool(judgement.parts) and _program(judgement.parts[0].argv) == fetching[0][0]
    hosts = [host for _, words in fetching for host in _hosts(words)]
    printed, background = bool(output.strip()), _starts_background(command)
    if not failed and any(map(_is_loopback, hosts)) and (printed or background):
        return None  # the answer of a service that the command started itself
    if not failed and not first and (printed or code or "||" in command):
        return None  # the program was perhaps not even started
    if failed and background and any(map(_is_loopback, hosts)):
        return None
    return _may_be_refused(hosts, tried=failed or first)


def _may_be_refused(hosts: list[str], *, tried: bool) -> Denial:
    host, *others = dict.fromkeys(hosts)
    message = (
        f"That nothing came from {' or '.join([host, *others][:4])} may have been the sandbox: "
        "it allows no connection to the network."
    )
    if others or not tried:
        return Denial("network", host, message)
    return Denial("network", host, message, f"allow the host {host}", Permission("host", host))


def _fetching(judgement: Judgement, command: str) -> Iterator[tuple[str, str]]:
    """The programs that fetch, each with its arguments."""
    if not judgement.parts:
        yield from ((name, command) for name in judgement.programs if _fetches(name))
    for part in judgement.parts:
        if _fetches(name := _program(part.argv)):
            yield name, " ".join(part.argv[1:])


def _fetches(name: str) -> bool:
    """Whether a program fetches the URLs among its arguments."""
    return bool(traits_of(name).no_connection)


def _programs(judgement: Judgement) -> list[str]:
    return [_program(part.argv) for part in judgement.parts] or list(judgement.programs)


def _program(argv: Sequence[str]) -> str:
    """The name of the program that is run, also behind `timeout 5` and the like."""
    names = [word.rpartition("/")[2] for word in argv[:6]]
    if names and names[0] in WRAPPERS:
        return next((name for name in names if traits_of(name).network), names[0])
    return names[0] if names else ""


def _hosts(text: str) -> list[str]:
    return list(dict.fromkeys(_host(*found) for found in URL.findall(text)))


def _host(name: str, port: str) -> str:
    name = name.lower().rstrip(".")
    return f"{name}:{port}" if port and port not in ("80", "443") else name


def _is_loopback(host: str) -> bool:
    return re.match(r"(?:localhost|127\.[\d.]+|\[::1\]|0\.0\.0\.0)(?::|$)", host) is not None


def _starts_background(command: str) -> bool:
    """Whether a command starts something in the background, which may be what it connects to."""
    return "&" in re.sub(r"&&|[<>]&|&>", "", URL_WORD.sub("", command))
