"""System calls by which a process confines itself, through ctypes: privileges, capabilities, Landlock, seccomp.

`launcher` loads this module too, in an interpreter without site packages. So it imports nothing of ours, and nothing
that loads slowly: `typing`, `signal` and `functools` load `re` and `enum`, which would double the launcher's start.
"""

from __future__ import annotations

import ctypes
import os
import struct

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

SET_PDEATHSIG, SET_DUMPABLE, SET_SECCOMP, CAPBSET_DROP, SET_CHILD_SUBREAPER, SET_NO_NEW_PRIVS, CAP_AMBIENT = (
    1, 4, 22, 24, 36, 38, 47,
)  # fmt: skip
SECCOMP_FILTER, AMBIENT_CLEAR = 2, 4
CAPABILITY_VERSION = 0x20080522
# The same numbers on every architecture.
LANDLOCK_CREATE, LANDLOCK_ADD, LANDLOCK_RESTRICT = 444, 445, 446
VERSION_ONLY, PATH_BENEATH = 1, 1


LIBC = ctypes.CDLL(None, use_errno=True)
LIBC.syscall.restype = ctypes.c_long


def prctl(option: int, value: int = 0) -> None:
    """Calls `prctl`. Raises OSError."""
    if LIBC.prctl(option, ctypes.c_ulong(value), ctypes.c_ulong(0), ctypes.c_ulong(0), ctypes.c_ulong(0)):
        raise _failed(f"prctl {option}")


def hide_own_process() -> None:
    """Keeps other processes of the same user from reading this process's environment, memory and descriptors (Linux).

    It also ends core dumps and debugging by the same user. It does not stop root.
    """
    import sys

    if sys.platform == "linux":
        prctl(SET_DUMPABLE, 0)


def drop_capabilities() -> None:
    """Drops every capability for good, also those that root would get back at exec."""
    for number in range(64):
        try:
            prctl(CAPBSET_DROP, number)
        except OSError:
            break  # past the last that this kernel knows, or not ours to drop: then there is none to lose
    prctl(CAP_AMBIENT, AMBIENT_CLEAR)
    if LIBC.capset(struct.pack("=Ii", CAPABILITY_VERSION, 0), b"\0" * 24):
        raise _failed("capset")


def no_new_privileges() -> None:
    prctl(SET_NO_NEW_PRIVS, 1)


class _Program(ctypes.Structure):
    _fields_ = [("length", ctypes.c_ushort), ("steps", ctypes.c_void_p)]


def apply_filter(steps: bytes) -> None:
    held = ctypes.create_string_buffer(steps, len(steps))
    program = _Program(len(steps) // 8, ctypes.cast(held, ctypes.c_void_p))
    zero = ctypes.c_ulong(0)
    if LIBC.prctl(SET_SECCOMP, ctypes.c_ulong(SECCOMP_FILTER), ctypes.byref(program), zero, zero):
        raise _failed("seccomp")


def landlock_abi() -> int:
    """The version of Landlock that this kernel has; raises OSError where there is none."""
    return _call(LANDLOCK_CREATE, None, ctypes.c_size_t(0), ctypes.c_uint32(VERSION_ONLY))


def landlock(handled: tuple[int, int, int], rules: Iterable[tuple[str, int]], files_only: int) -> None:
    """Confines this process to what the rules grant. `handled` are the rights on files, on TCP, and the scopes.

    `files_only` are the rights that a rule for a file may have. A path that does not exist is skipped.
    """
    abi = landlock_abi()
    attributes = struct.pack("=QQQ", *handled)[: 24 if abi >= 6 else 16 if abi >= 4 else 8]
    ruleset = _call(LANDLOCK_CREATE, attributes, ctypes.c_size_t(len(attributes)), ctypes.c_uint32(0))
    try:
        for path, rights in rules:
            try:
                fd = os.open(path, os.O_PATH | os.O_CLOEXEC)
            except OSError:
                continue
            try:
                granted = rights & handled[0]
                if os.fstat(fd).st_mode & 0o170000 != 0o040000:
                    granted &= files_only
                rule = struct.pack("=Qi", granted, fd)
                _call(
                    LANDLOCK_ADD, ctypes.c_int(ruleset), ctypes.c_int(PATH_BENEATH), rule, ctypes.c_uint32(0)
                )
            finally:
                os.close(fd)
        _call(LANDLOCK_RESTRICT, ctypes.c_int(ruleset), ctypes.c_uint32(0))
    finally:
        os.close(ruleset)


def _call(number: int, *arguments: Any) -> int:
    given = int(LIBC.syscall(ctypes.c_long(number), *arguments))
    if given < 0:
        raise _failed(f"system call {number}")
    return given


def _failed(what: str) -> OSError:
    code = ctypes.get_errno()
    return OSError(code, f"{what}: {os.strerror(code)}")
