"""Programs that run another one: where in their arguments it begins, or what its script is.

Only exact forms are known. `Inner` says at which word the other command begins; a shell's script is read like
a command of its own; whatever else one of these is given asks.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

SHELLS = {"sh", "bash", "dash", "zsh", "ksh", "ash"}
# With -e or -u a script would stop where its plan goes on.
SCRIPT_OPTIONS = re.compile(r"-[lx]*c[lx]*")

# The options of each, as regular expressions; one that takes a value is followed by it.
WRAPPERS: dict[str, tuple[str, str, int]] = {
    # name: options without a value, options with one, operands before the command
    "timeout": (r"-v|--verbose|--foreground|--preserve-status|--(?:signal|kill-after)=\w+", r"-s|-k", 1),
    "nice": (r"-n-?\d+|-\d+|--adjustment=-?\d+", r"-n", 0),
    "ionice": (r"-c\d|-n\d|-t", r"-c|-n", 0),
    "nohup": (r"(?!)", r"(?!)", 0),
    "setsid": (r"-w|--wait", r"(?!)", 0),
    "stdbuf": (r"-[ioe][L0-9]\w*|--(?:input|output|error)=\w+", r"-i|-o|-e", 0),
    "env": (r"(?!)", r"(?!)", 0),
    "command": (r"(?!)", r"(?!)", 0),
    "builtin": (r"(?!)", r"(?!)", 0),
    "exec": (r"(?!)", r"(?!)", 0),
    "sudo": (r"-[nEHSkbi]+|--non-interactive", r"-u|-g", 0),
    "doas": (r"-n", r"-u", 0),
    "busybox": (r"(?!)", r"(?!)", 0),
    "chrt": (r"-[bfior]", r"(?!)", 1),
    "taskset": (r"-c", r"(?!)", 1),
    "time": (r"-[pv]", r"-f", 0),
    "watch": (r"-[dtgbcexp]+", r"-n", 0),
    "xargs": (r"-0|-r|-t|-0r|-r0|--null|--no-run-if-empty|-[nPL]\d+|-I\S+", r"-n|-P|-L|-d|-I|-a", 0),
    "unbuffer": (r"-p", r"(?!)", 0),
    "fakeroot": (r"(?!)", r"(?!)", 0),
    "proot": (r"(?!)", r"(?!)", 0),
    "strace": (r"-[fqty]+", r"-e|-o|-p", 0),
    "flock": (r"-[nxsw]", r"-w", 1),
    "parallel": (r"(?!)", r"-j", 0),
    "su": (r"-|-l|--login", r"(?!)", 99),
}  # fmt: skip
# Those that change nothing about the command but its time, its priority or its buffers.
HARMLESS = {"timeout", "nice", "stdbuf", "time", "ionice"}
ASSIGNMENT = re.compile(r"([A-Za-z_][A-Za-z0-9_]*)=(.*)", re.DOTALL)


def inner_at(argv: Sequence[str]) -> int | None:
    """Where the command begins that a wrapper runs; None if this is no wrapper, or not a known form of it.

    >>> inner_at(["timeout", "-k", "5", "10", "pytest"])
    4
    """
    name = argv[0].rpartition("/")[2]
    if name not in WRAPPERS:
        return None
    flags, valued, operands = WRAPPERS[name]
    at = 1
    while at < len(argv) and argv[at].startswith("-") and len(argv[at]) > 1:
        if argv[at] == "--":
            at += 1
            break
        if re.fullmatch(valued, argv[at]):
            at += 2
        elif re.fullmatch(flags, argv[at]):
            at += 1
        else:
            return None
    if name in ("env", "sudo"):
        while at < len(argv) and ASSIGNMENT.fullmatch(argv[at]):
            at += 1
    at += operands
    return at if at < len(argv) else None


def script_of(argv: Sequence[str]) -> str | None:
    """The script of `bash -c '…'`, where nothing but it is given.

    >>> script_of(["bash", "-lc", "git status"])
    'git status'
    """
    if argv[0].rpartition("/")[2] not in SHELLS or len(argv) != 3:
        return None
    return argv[2] if SCRIPT_OPTIONS.fullmatch(argv[1]) and not argv[2].startswith("-") else None
