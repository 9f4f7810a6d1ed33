"""Programs that run another one: where in their arguments it begins. To add a wrapper, add a row.

Only exact forms are known: a wrapper that is given anything else asks.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from toolcrib.dataclass import dataclass


@dataclass(frozen=True, slots=True)
class Wrapper:
    """What may stand before the command that a program runs.

    `flags` and `valued` are regular expressions of options without and with a value; `operands` are words of its own,
    which must look like `operand`: another one is the command for some versions.
    `harmless`: it changes nothing about the command but its time, its priority or its buffers. `adds_words`: the
    command gets further arguments from its input.
    """

    flags: str = r"(?!)"
    valued: str = r"(?!)"
    operands: int = 0
    operand: str = r".*"
    harmless: bool = False
    adds_words: bool = False


WRAPPERS: dict[str, Wrapper] = {
    "timeout": Wrapper(r"-v|--verbose|--foreground|--preserve-status|--(?:signal|kill-after)=\w+|-[ks]\w+", r"-s|-k|--signal|--kill-after", 1, r"[\d.]+[smhd]?|inf(?:inity)?", harmless=True),
    "nice": Wrapper(r"-n-?\d+|-\d+|--adjustment=-?\d+", r"-n|--adjustment", harmless=True),
    "ionice": Wrapper(r"-c\d|-n\d|-t|--(?:class|classdata)=\w+|--ignore", r"-c|-n|--class|--classdata", harmless=True),
    "stdbuf": Wrapper(r"-[ioe][L0-9]\w*|--(?:input|output|error)=\w+", r"-i|-o|-e|--input|--output|--error", harmless=True),
    "time": Wrapper(r"-[pv]", r"-f", harmless=True),
    "nohup": Wrapper(),
    "setsid": Wrapper(r"-w|--wait|-f|--fork", harmless=True),
    "env": Wrapper(r"-i|-|-0|--ignore-environment|--unset=\w+|-v|--debug", r"-u|--unset"),
    "command": Wrapper(r"-p"),
    "builtin": Wrapper(),
    "exec": Wrapper(r"-[cl]+", r"-a"),
    "sudo": Wrapper(r"-[nEHSkbi]+|--non-interactive", r"-u|-g"),
    "doas": Wrapper(r"-n", r"-u"),
    "su": Wrapper(r"-|-l|--login", operands=99),
    "busybox": Wrapper(),
    "chrt": Wrapper(r"-[bfior]", operands=1),
    "taskset": Wrapper(r"-c", operands=1),
    "watch": Wrapper(r"-[dtgbcexp]+|--(?:differences|no-title|chgexit|color|errexit|exec|precise|beep|no-wrap)|-n[\d.]+|--interval=[\d.]+",
                     r"-n|--interval", harmless=True),
    "unbuffer": Wrapper(r"-p"),
    "setarch": Wrapper(r"-[RvFXBILSTZ]|--addr-no-randomize|--verbose", operands=1, operand=r"linux(?:32|64)|i[3-6]86|x86_64|uname26"
                       r"|aarch64|arm\w*|ppc\w*|s390x?|riscv\w*|mips\w*", harmless=True),
    "prlimit": Wrapper(r"-[cdefilmnqrstuvxy][\d:]+|--(?:core|data|nice|fsize|memlock|rss|nofile|nproc|stack|cpu|as)=[\d:]+", harmless=True),
    "fakeroot": Wrapper(),
    "proot": Wrapper(),
    "strace": Wrapper(r"-[fqty]+", r"-e|-o|-p"),
    "flock": Wrapper(r"-[nxsw]", r"-w", 1),
    "xargs": Wrapper(r"-0|-r|-t|-0r|-r0|--null|--no-run-if-empty|-[nPL]\d+|-I\S+", r"-n|-P|-L|-d|-I|-a", adds_words=True),
    "parallel": Wrapper(valued=r"-j", adds_words=True),
}  # fmt: skip
ASSIGNMENT = re.compile(r"([A-Za-z_][A-Za-z0-9_]*)=(.*)", re.DOTALL)


def inner_at(argv: Sequence[str]) -> int | None:
    """Where the command begins that a wrapper runs; None if this is no wrapper, or not a known form of it.

    >>> inner_at(["timeout", "-k", "5", "10", "pytest"])
    4
    """
    name = argv[0].rpartition("/")[2]
    if name not in WRAPPERS:
        return None
    wrapper = WRAPPERS[name]
    at = 1
    while at < len(argv) and (
        (argv[at].startswith("-") and len(argv[at]) > 1) or re.fullmatch(wrapper.flags, argv[at])
    ):
        if argv[at] == "--":
            at += 1
            break
        if re.fullmatch(wrapper.valued, argv[at]):
            if re.match(r"--?[A-Za-z]", argv[at + 1] if at + 1 < len(argv) else ""):
                return None  # an option, where that one takes no value
            at += 2
        elif re.fullmatch(wrapper.flags, argv[at]):
            at += 1
        else:
            return None
    if name in ("env", "sudo"):
        while at < len(argv) and ASSIGNMENT.fullmatch(argv[at]):
            at += 1
    if not all(re.fullmatch(wrapper.operand, word) for word in argv[at : at + wrapper.operands]):
        return None
    at += wrapper.operands
    return at if at < len(argv) else None
