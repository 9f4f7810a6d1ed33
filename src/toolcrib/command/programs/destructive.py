"""Destructive commands: programs that can delete the system, erase a disk or stop the machine, with the check of each.

The rows stand at the end. `toolcrib.command.judge.destructive` looks for such commands wherever they stand in a text.
"""

from __future__ import annotations

import functools
import posixpath
import re
from collections.abc import Callable, Sequence
from fnmatch import fnmatchcase

from toolcrib.command.programs.traits import known_name

Check = Callable[[list[str]], str | None]  # of an argv, its name bare: what it would destroy

HOME = "~"
MAX_PATTERN = 200  # characters; a longer pattern is not compared with the names of SYSTEM and programs
SYSTEM = {
    "/", "/bin", "/boot", "/dev", "/etc", "/home", "/lib", "/lib32", "/lib64", "/libx32", "/opt", "/proc", "/root",
    "/run", "/sbin", "/srv", "/sys", "/usr", "/usr/bin", "/usr/lib", "/usr/lib64", "/usr/sbin", "/usr/local",
    "/usr/share", "/usr/include", "/var", "/var/lib", "/var/log", "/Applications", "/Library", "/System", "/Users",
    "/Volumes", "/private", "/private/etc", "/private/var", "/cygdrive/c", "/mnt/c", "C:", "C:/",
}  # fmt: skip
DEVICE = re.compile(
    r"/dev/(?:r?disk|[shv]d|xvd|nvme|mmcblk|md|dm-|mapper/|loop|k?mem$|port$)|/proc/sysrq-trigger", re.I
)
# Tests of find that leave most of a tree alone.
NARROWED = {
    "-name", "-iname", "-path", "-regex", "-newer", "-mtime", "-mmin", "-size", "-user", "-empty", "-perm",
}  # fmt: skip
MAX_KNOWN = 32_768  # more different words than the longest text that is looked at has
REMOVERS = re.compile(r"\b(?:rm|shred|unlink)\b")


def is_vital(path: str) -> bool:
    """Whether a path is a folder of the system, a home, or everything in one, in any notation."""
    return _is_vital(path) if len(path) <= MAX_PATTERN else _is_vital.__wrapped__(path)


@functools.lru_cache(MAX_KNOWN)  # each word of a command is asked about at each place where another may begin
def _is_vital(path: str) -> bool:
    text = path.replace("\\", "/") if re.match(r"[A-Za-z]:\\", path) else path
    if text.startswith("~"):
        user, _, rest = text[1:].partition("/")
        text = f"{HOME}/{rest}" if not re.search(r"[^\w.-]", user) else text
    if re.fullmatch(r"(?:\./)*[*.]+", text) and "*" in text:
        return False  # all that is in the workspace: a person may mean that
    text = re.sub(r"(?:/(?:\*|\.\*|\.\[!?\.?\]\*|\.\?\*|\{\*,\.\*\}))+$", "/", text)
    if text.startswith(HOME):
        return posixpath.normpath(text).rstrip("/") in (HOME, ".") or posixpath.normpath(text).startswith(
            ".."
        )
    if not text.startswith("/"):
        plain = posixpath.normpath(text) if text else "x"
        return text.upper().rstrip("/") in ("C:",) or (
            plain in (".", "..") or set(plain.split("/")) == {".."}
        )
    plain = "/" + posixpath.normpath(text).lstrip("/")
    if plain in SYSTEM or re.fullmatch(r"/(?:home|Users)/[^/]+", plain):
        return True
    patterned = len(plain) < MAX_PATTERN and any(sign in plain for sign in "*?[")
    return patterned and any(fnmatchcase(place, plain) for place in SYSTEM)


def program(argv: Sequence[str]) -> str:
    """The name of the program without its folder. An unknown variable in it counts as empty, as most are."""
    return known_name(argv[0].lower().replace("\ufffd", ""))


def overwrites_device(path: str) -> bool:
    return bool(DEVICE.match(posixpath.normpath(path)))


def check_of(name: str) -> Check | None:
    """The check of a program that may destroy something, by its bare name."""
    if name in _BY_NAME:
        return _BY_NAME[name]
    return next((check for pattern, check in _BY_PATTERN if fnmatchcase(name, pattern)), None)


def destroyed_by(argv: Sequence[str]) -> str | None:
    """What a command with known arguments would destroy, or None."""
    name = program(argv)
    if len(name) < MAX_PATTERN and any(sign in name for sign in "*?["):
        name = next((known for known in ("rm", *STOP_MACHINE.split()) if fnmatchcase(known, name)), name)
    check = check_of(name)
    return check([name, *argv[1:]]) if check is not None else None


def _flags(argv: Sequence[str], letters: str, *longs: str) -> bool:
    """Whether an option is given: in a cluster, in full, or abbreviated."""
    for word in argv[1:]:
        if (
            word.startswith("--")
            and len(word) > 3
            and any(long.startswith(word.split("=")[0]) for long in longs)
        ):
            return True
        if re.fullmatch(r"-[A-Za-z]+", word) and set(word[1:]) & set(letters):
            return True
    return False


def _targets(argv: Sequence[str]) -> list[str]:
    return [word for word in argv[1:] if not word.startswith("-")]


def _rm(argv: list[str]) -> str | None:
    targets = [target for target in _targets(argv) if is_vital(target)]
    everything = [target for target in targets if target.endswith("*") and target.startswith("/")]
    if targets and (_flags(argv, "rR", "--recursive") or _flags(argv, "", "--no-preserve-root")):
        return f"deletes {targets[0]}"
    return f"deletes {everything[0]}" if everything else None


def _owner(argv: list[str]) -> str | None:
    targets = [target for target in _targets(argv)[1:] or _targets(argv) if is_vital(target)]
    targets = [target for target in targets if target.startswith(("/", HOME))]
    return f"changes all of {targets[0]}" if targets and _flags(argv, "R", "--recursive") else None


def searched(argv: Sequence[str]) -> list[str]:
    """The folders of the system or homes that a find looks through as a whole, without a test that leaves most out."""
    roots = [word for word in argv[1:] if is_vital(word) and word.startswith(("/", HOME))]
    return [] if NARROWED & set(argv) else roots


def _find(argv: list[str]) -> str | None:
    roots = searched(argv)
    runs = next((at for at, word in enumerate(argv) if word in ("-exec", "-execdir", "-ok")), len(argv))
    removes = "-delete" in argv or REMOVERS.search(" ".join(argv[runs + 1 :])) is not None
    return f"deletes {roots[0]}" if roots and removes else None


def _dd(argv: list[str]) -> str | None:
    for word in argv[1:]:
        if word.startswith("of=") and overwrites_device(word[3:]):
            return f"overwrites {word[3:]}"
    return None


def _moves(argv: list[str]) -> str | None:
    targets = _targets(argv)
    into = [argv[at + 1] for at, word in enumerate(argv[:-1]) if word in ("-t", "--target-directory")]
    for target in [*targets[-1:], *into]:
        if overwrites_device(target):
            return f"overwrites {target}"
    lost = [target for target in targets[:-1] if is_vital(target) and target.startswith(("/", HOME))]
    return f"moves {lost[0]} away" if lost and program(argv) == "mv" else None


def _onto_devices(argv: list[str]) -> str | None:
    hit = next((target for target in _targets(argv) if overwrites_device(target)), None)
    return f"overwrites {hit}" if hit else None


def _rsync(argv: list[str]) -> str | None:
    targets = _targets(argv)
    wipes = _flags(argv, "", "--delete", "--delete-before", "--delete-after")
    return (
        f"empties {targets[-1]}"
        if wipes and targets and is_vital(targets[-1]) and targets[-1] != "."
        else None
    )


def _kill(argv: list[str]) -> str | None:
    """`kill -1 5` sends the signal 1; after a signal or --, -1 means every process."""
    return "kills every process" if "-1" in argv[2:] else None


def _kills_all(argv: list[str]) -> str | None:
    return "kills every process"


def _stops_machine(argv: list[str]) -> str | None:
    return None if {"--help", "--version"} & set(argv[1:]) else f"{argv[0]} stops the machine"


def _init(argv: list[str]) -> str | None:
    return "init stops the machine" if set(argv[1:2]) & {"0", "6"} else None


def _systemctl(argv: list[str]) -> str | None:
    stopping = ("poweroff", "reboot", "halt", "kexec", "emergency", "rescue", "soft-reboot")
    given = set(argv[1:])
    return "systemctl stops the machine" if any({n, f"{n}.target"} & given for n in stopping) else None


def _erases_disk(*needed: str) -> Check:
    """The check of a program that erases disks if it gets any arguments and, if there are `needed` words, one of these."""

    def check(argv: list[str]) -> str | None:
        given = set(argv[1:])
        asks_only = not given or {"--help", "--version", "-V"} & given
        return None if asks_only or (needed and not given & set(needed)) else f"{argv[0]} erases a disk"

    return check


STOP_MACHINE = "shutdown reboot halt poweroff"
# To add a destructive command, add its name to the row of its check, or a row. A name may be a pattern.
ROWS: tuple[tuple[str, Check], ...] = (
    ("rm", _rm),
    ("find", _find),
    ("chmod chown chgrp chattr setfacl", _owner),
    ("dd", _dd),
    ("mv cp install", _moves),
    ("rsync", _rsync),
    ("tee shred truncate parted cryptsetup", _onto_devices),
    ("kill", _kill),
    ("killall5", _kills_all),
    (STOP_MACHINE, _stops_machine),
    ("init telinit", _init),
    ("systemctl", _systemctl),
    ("mkfs mkfs.* mke2fs mkswap wipefs blkdiscard sgdisk sfdisk newfs newfs_*", _erases_disk()),
    ("pvremove vgremove lvremove", _erases_disk()),
    ("zpool", _erases_disk("destroy")),
    ("diskutil", _erases_disk("eraseDisk", "eraseVolume", "zeroDisk", "secureErase")),
    ("badblocks", _erases_disk("-w")),
    ("nvme", _erases_disk("format", "sanitize")),
    ("hdparm", _erases_disk("--security-erase", "--security-erase-enhanced")),
    ("mdadm", _erases_disk("--zero-superblock")),
)
_BY_NAME = {name: check for names, check in ROWS for name in names.split() if "*" not in name}
_BY_PATTERN = [(name, check) for names, check in ROWS for name in names.split() if "*" in name]
