"""Finds out whether a command failed because of the sandbox: reads its output, and checks it against what it saw.

A message alone proves nothing, because "Permission denied" has many reasons. The sandbox refused the step if the step
would have been possible without it: the path is hidden or not writable, and this process could write there itself.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator

from toolcrib.command.sandbox.files.file_view import FileView, never_offered
from toolcrib.command.sandbox.files.paths import innermost, within, within_any
from toolcrib.command.sandbox.files.placeholders import is_placeholder
from toolcrib.command.sandbox.interface import Denial, Launch
from toolcrib.command.sandbox.level import Files, Level, Network, Permission
from toolcrib.command.sandbox.packages import with_companions

SOCKET = re.compile(r"\bsocket\b[^\n]*(?:\n[^\n]{0,300}){0,3}operation not permitted", re.IGNORECASE)
FORKED = re.compile(r"(?:fork_exec|os\.fork)\b[^\n]*\n(?:[^\n]{0,300}\n){0,3}BlockingIOError: \[Errno 11\]")
NUMBERS = re.compile(
    r"(?:to|host|//|connect)\s*\(?['\"]?(\d{1,3}(?:\.\d{1,3}){3})(?:(?::|['\"]?, | port )(\d{1,5}))?",
    re.IGNORECASE,
)
LINES = 400  # of the output, from its end
LINE = 2_000
WRITE_WORDS = (
    "read-only file system",
    "permission denied",
    "operation not permitted",
    "cross-device link",
    "device or resource busy",
    "could not create",
    "unable to create",
    "failed to create",
)
NOT_THE_SANDBOX = (
    "no such file",
    "file exists",
    "not a directory",
)  # a line with these words is no refusal, whatever else it says
PLACEHOLDER_WORDS = "is a directory"
BUSY = "resource busy"
READ_WORDS = (
    "permission denied",
    "no such file or directory",
    "operation not permitted",
    "cannot access",
    "enoent",
    "eacces",
    "couldn't open file",
)
NETWORK_WORDS = (
    "could not resolve host", "temporary failure in name resolution", "name or service not known",
    "network is unreachable",
    "network unreachable", "no address associated with hostname", "enotfound", "eai_again", "enetunreach",
    "unable to resolve host",
    "failed to lookup address", "nodename nor servname", "could not connect to server", "403 refused by the sandbox",
    "connection refused by the sandbox", "failed to establish a new connection",
    "refused by the sandbox", "couldn't connect to server", "failed to connect to",
)  # fmt: skip
# What the proxy of an allowlist answers, in the words of programs; without one, such answers are a server's own.
PROXY_WORDS = ("tunnel connection failed: 403", "response 403")
FORBIDDEN_WORDS = {
    "ptrace": "looking into other processes (ptrace)",
    "/var/run/docker.sock": "the Docker daemon",
    "docker daemon": "the Docker daemon",
    "unshare": "new namespaces",
    "must be superuser": "rights of root",
    "mount:": "mounting file systems",
    "dbus": "the message bus",
    "agent refused": "the key agent",
    "bad system call": "a forbidden system call",
    "io_uring": "io_uring",
    "cannot open netlink socket": "netlink sockets",
    "chroot:": "another root folder",
    "sysctl:": "settings of the kernel",
    "kernel buffer": "the kernel's log",
}
REFUSED_WORDS = (
    "operation not permitted",
    "permission denied",
    "cannot connect",
    "bad system call",
    "superuser",
    "not permitted",
)
FLOOD_WORDS = {
    r"(?:fork|clone|thread|spawn|process)\b.{0,200}Resource temporarily unavailable": "the number of processes",
    r"Cannot fork|can't start new thread": "the number of processes",
    r"File size limit exceeded|File too large": "the size of a file",
    r"[Cc]annot allocate memory|\bMemoryError\b": "the memory of a process",
    "used too much memory together": "the memory of all processes together",
    "ran too many processes": "the number of processes",
}
PATH = re.compile(
    r"['\"`‘“]([^'\"`’”\n/]{0,255}/[^'\"`’”\n]{1,1000})['\"`’”]|(?:^|[\s:=(])((?:/|\.[\w.-]{0,50}/)[^\s:'\",;)]{1,1000})"
)
# Exactly as strerror spells them. Other words for the same are taken for a failure of the program itself.
AS_THE_SYSTEM_SAYS = re.compile(r"Operation not permitted|Read-only file system|\bEPERM\b|\bEROFS\b")
READ_ONLY = ("Read-only file system", "EROFS")
QUOTED = re.compile(r"['\"`‘“][^'\"`’”\n]{1,255}['\"`’”]")
BY_A_FORBIDDEN_CALL = (-31, 159)  # SIGSYS, and as shells tell it
NOT_RUN = (2, 126, 127)  # used wrongly, not executable, not found: as shells tell it
BY_A_SHELL = re.compile(
    r"^[^\s:]{1,200}: (?:line )?\d{1,9}: (?:cannot (?:create|open) )?"
)  # the shell that says it, and the number of the line
ADDRESS = re.compile(
    r"(?:host|host:|host=|to|lookup|resolve|enotfound|eai_again|//)\s*['\"]?([a-z0-9][a-z0-9.-]{0,200}\.[a-z]{2,24})(?::(\d{1,5}))?",
    re.IGNORECASE,
)

INDEXED = re.compile(
    r"(?:looking in (?:indexes|links)|index(?: url)?|registry|request to|failed to fetch|"
    r"download(?:ing|ed)?(?: from)?)\b.{0,500}",
    re.IGNORECASE,
)
URL_HOST = re.compile(
    r"https?://(?:[^\s/@'\"]{0,200}@)?([a-z0-9][a-z0-9.-]{0,200}\.[a-z]{2,24}(?::\d{1,5})?)\b", re.IGNORECASE
)
PIPS_OWN = re.compile(r"pip\._vendor\..{0,500}: /simple/")


def find_denial(
    returncode: int | None,
    output: str,
    launch: Launch,
    *,
    view: Callable[[], FileView],
    level: Level,
    conceals: bool,
) -> Denial | None:
    """The refusal that made a command fail, or None. Of several in the output, the last one counts.

    `view` gives the files that the command saw; it is only called for a command that failed. `conceals` says that
    commands cannot see whether anything exists where something is hidden.
    """
    if launch.refused_hosts:
        host = launch.refused_hosts[-1]
        return Denial(
            "network",
            host,
            f"The sandbox refused a connection to {host}: it is not on the list of allowed hosts.",
            f"allow the host {with_companions(host)}",
            Permission("host", with_companions(host)),
        )
    if launch.refused_addresses:
        reason = launch.refused_addresses[-1]
        return Denial("network", reason.partition(" ")[0], f"The sandbox refused a connection: {reason}.")
    if launch.limits_met:
        return _limit_met(launch.limits_met[-1])
    if returncode == 0:
        return None
    seen = view()
    for line in output[-LINES * LINE :].splitlines()[: -LINES - 1 : -1]:
        found = _of_line(line[:LINE], launch, seen, level, conceals=conceals)
        if (
            found is not None
            and found.permission == Permission("network")
            and (host := _package_index(output))
        ):
            return _no_network(host, level)
        if found is not None:
            return found
    if level.network is not Network.ON and SOCKET.search(output[-LINE:]):
        return _no_network("", level)
    if FORKED.search(output[-LINE:]):
        return _limit_met("the number of processes")
    return _unnamed(returncode, output[-LINE:])


def _package_index(output: str) -> str:
    """The package index that a program says it asked, if it names exactly one."""
    said = {host for line in INDEXED.findall(output[-LINES * LINE :]) for host in URL_HOST.findall(line)}
    if not said and PIPS_OWN.search(output):
        return "pypi.org"  # what pip asks unless it says otherwise
    return said.pop() if len(said) == 1 else ""


def _unnamed(returncode: int | None, ending: str) -> Denial | None:
    """A denial for a message of the system that names nothing which could be checked; it offers no permission."""
    if returncode in BY_A_FORBIDDEN_CALL:
        return Denial("system", "a system call", "The sandbox does not allow a system call that it made.")
    for line in () if returncode in NOT_RUN else reversed(ending.splitlines()):
        said = AS_THE_SYSTEM_SAYS.search(line)
        # The workspace is no read-only file system, so the message is about some other place.
        if said is not None and (said[0] in READ_ONLY or not (PATH.search(line) or QUOTED.search(line))):
            words = f"The sandbox may have refused a step that is not named: {said[0]}."
            return Denial("system", "a step that is not named", words)
    return None


def _no_network(host: str, level: Level) -> Denial:
    """The denial of a connection. It offers the host, or the whole network if a listed host was not reached."""
    target = host or "the network"
    permission = Permission("host", with_companions(host)) if host else Permission("network")
    if level.allows(permission):
        permission = Permission("network")
    return Denial(
        "network",
        target,
        f"The sandbox allows no connection to {target}.",
        f"allow the host {permission.target}" if permission.kind == "host" else "allow the network",
        permission,
    )


def _of_line(line: str, launch: Launch, view: FileView, level: Level, *, conceals: bool) -> Denial | None:
    low = line.lower()
    if any(word in low for word in (*WRITE_WORDS, *READ_WORDS, PLACEHOLDER_WORDS)):
        for path in _paths(line, launch.cwd):
            denial = _of_path(path, low, view, level, conceals=conceals)
            if denial is not None:
                return denial
    words = (*NETWORK_WORDS, *(PROXY_WORDS if level.network is Network.ALLOWLIST else ()))
    if level.network is not Network.ON and any(_stands_alone(low, word) for word in words):
        found = ADDRESS.search(line) or NUMBERS.search(line)
        host = ":".join(part for part in found.groups() if part) if found else ""
        return _no_network(host, level)
    if any(word in low for word in REFUSED_WORDS):
        for word, what in FORBIDDEN_WORDS.items():
            if word in low:
                return Denial("system", what, f"The sandbox does not allow {what}.")
    for pattern, what in FLOOD_WORDS.items():
        if re.search(pattern, line):
            return _limit_met(what)
    return None


def _stands_alone(low: str, word: str) -> bool:
    """Whether words stand in a line by themselves: "enotfound" is also a part of "FileNotFoundError"."""
    at = low.find(word)
    while at >= 0:
        if not (low[at - 1 : at].isalpha() or low[at + len(word) : at + len(word) + 1].isalpha()):
            return True
        at = low.find(word, at + 1)
    return False


def _limit_met(what: str) -> Denial:
    return Denial("limit", what, f"The sandbox limits {what}.", f"raise the limit of {what}")


def _of_path(path: str, low: str, view: FileView, level: Level, *, conceals: bool) -> Denial | None:
    """The denial that a line about a path tells of. `low` is the line in lower case."""
    writing = not any(word in low for word in NOT_THE_SANDBOX) and any(word in low for word in WRITE_WORDS)
    # A protected path that does not exist is a placeholder folder for commands.
    writing = writing or (path in view.protected and PLACEHOLDER_WORDS in low and not _is_folder(path))
    if (by_rule := _by_rule(path, low, view, writing=writing)) is not None:
        return by_rule
    if BUSY in low and any(place != path and within(place, path) for place in view.protected):
        said = f"The sandbox keeps the folder {path}, because it holds files that other programs obey"
        return Denial("write", path, f"{said}; what else was in it may be gone.")
    if writing and view.protects(path) and level.files is Files.WORKSPACE_WRITE:
        return Denial(
            "write",
            path,
            f"The sandbox protects {path}: other programs obey what stands in it.",
        )
    if view.hides(path):
        # Commands have a temporary folder of their own, in which files are missing for ordinary reasons.
        conceals = conceals and innermost(path, view.hidden) not in ("/tmp", "/var/tmp")
        if conceals or os.path.lexists(path):
            # The same words whether the path exists or not, because a command may print any name.
            real = os.path.realpath(path)
            permission = None if never_offered(real, view, writing=False) else Permission("read", real)
            message = f"The sandbox hides {path} from commands."
            exists = _is_file_or_folder(path)
            return Denial("read", path, message, f"allow reading {path}", permission, exists)
        if writing and _could_write(path):
            return _write_refused(path, low, view)
        return None
    writable = within(path, view.workspace) and level.files is Files.WORKSPACE_WRITE
    writable = writable or within_any(os.path.realpath(path), level.writable)
    if writing and not writable and _could_write(path):
        return _write_refused(path, low, view)
    return None


def _by_rule(path: str, low: str, view: FileView, *, writing: bool) -> Denial | None:
    """A denial by a deny rule, which nobody is asked to lift. The same words whether the path exists or not."""
    # For a path that is hidden anyway, nothing is said about where a link leads.
    real = path if view.hides(path) else os.path.realpath(path)
    if within_any(real, view.denied):
        return Denial("read", path, f"{path} is hidden from commands by a rule.")
    if writing and any(within_any(one, view.read_only) for one in (path, real)):
        return Denial("write", path, f"A rule keeps {path} from being changed by commands.")
    if BUSY in low and any(within(place, real) for place in (*view.denied, *view.read_only)):
        return Denial(
            "write", path, f"A rule keeps something in {path} from commands, so it stays where it is."
        )
    return None


def _is_folder(path: str) -> bool:
    return os.path.isdir(path) and not is_placeholder(path)


def _write_refused(path: str, low: str, view: FileView) -> Denial:
    # A file can be created empty beforehand. For a folder that is to be created, the outer folder has to be opened.
    creates_folder = "directory" in low.partition(path.lower())[0]
    permission = _write_permission(os.path.dirname(path) if creates_folder else path, view)
    message = f"The sandbox does not allow writing to {path}."
    return Denial("write", path, message, f"allow writing to {path}", permission)


def _is_file_or_folder(path: str) -> bool:
    return os.path.isfile(path) or os.path.isdir(path)


def _write_permission(path: str, view: FileView) -> Permission | None:
    """The permission to write that a person may be asked for. None for secrets, for files that programs obey, and for
    sockets and devices."""
    real = os.path.realpath(path)
    if os.path.lexists(real) and not _is_file_or_folder(real):
        return None
    return None if never_offered(real, view, writing=True) else Permission("write", real)


def _could_write(path: str) -> bool:
    """Whether this process, which has no sandbox, could write there. If not, the failure is an ordinary one."""
    if os.path.lexists(path) and os.access(path, os.W_OK):
        return True
    return os.access(os.path.dirname(path) or "/", os.W_OK)


def _paths(line: str, cwd: str) -> Iterator[str]:
    """The texts in a line that look like paths, made absolute. The last one is first: a message mostly is about it."""
    line = BY_A_SHELL.sub(": ", line)
    found = [match[1] or match[2] for match in PATH.finditer(line)]
    for text in reversed(found[-8:]):
        if not text.startswith("~"):
            yield os.path.normpath(os.path.join(cwd, text.rstrip("/") or "/"))
    bare = re.findall(r"['\"`‘]([^'\"`’/\n]{1,200})['\"`’]|: ([\w./-]{1,200}): ", line)
    for quoted, plain in bare[-4:]:
        yield os.path.normpath(os.path.join(cwd, quoted or plain))
