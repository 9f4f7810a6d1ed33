"""The filter of system calls: what each verdict is, and that pairs of sockets lead to nobody else."""

from __future__ import annotations

import socket
import struct
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.cases import each
from tests.sandbox_runs import BACKENDS, backend, run
from toolcrib.command.sandbox.process import seccomp

# -- the filter, run by a machine of the test's own


def verdict(steps: bytes, arch: int, number: int, *arguments: int) -> int:
    """What classic BPF returns for a system call."""
    data = struct.pack("<IIQ6Q", number, arch, 0, *(*arguments, 0, 0, 0, 0, 0, 0)[:6])
    code = list(struct.iter_unpack("=HBBI", steps))
    at = accumulator = 0
    for _ in range(len(code)):
        kind, yes, no, value = code[at]
        at += 1
        if kind == seccomp.LOAD:
            (accumulator,) = struct.unpack_from("<I", data, value)
        elif kind == seccomp.AND:
            accumulator &= value
        elif kind == seccomp.RETURN:
            return value
        else:
            holds = {
                seccomp.EQUAL: accumulator == value,
                seccomp.ANY_BIT: bool(accumulator & value),
                seccomp.AT_LEAST: accumulator >= value,
            }[kind]
            at += yes if holds else no
    raise AssertionError("the filter does not end")


X86, ARM = 0xC000003E, 0xC00000B7
REFUSE, LACKS = seccomp.ERRNO | 1, seccomp.ERRNO | 38


@each(
    ("machine", "arch", "number", "arguments", "expected"),
    [
        ("x86_64", X86, 0, (), seccomp.ALLOW),  # read
        ("x86_64", ARM, 0, (), seccomp.KILL),
        ("aarch64", 0x40000028, 63, (), seccomp.KILL),  # 32-bit
        ("aarch64", ARM, 63, (), seccomp.ALLOW),
        ("x86_64", X86, 0x40000000, (), LACKS),  # x32
        ("x86_64", X86, 101, (), REFUSE),
        ("aarch64", ARM, 117, (), REFUSE),
        ("x86_64", X86, 435, (), LACKS),  # clone3
        ("x86_64", X86, 56, (17,), seccomp.ALLOW),
        ("x86_64", X86, 56, (0x10000011,), REFUSE),
        ("aarch64", ARM, 220, (0x20000000,), REFUSE),
        ("x86_64", X86, 41, (1, 1), REFUSE),
        ("x86_64", X86, 41, (2, 1), REFUSE),
        ("x86_64", X86, 41, (16, 3), REFUSE),
        ("x86_64", X86, 53, (1, 1), seccomp.ALLOW),  # socketpair
        ("x86_64", X86, 53, (1, 0x80801), seccomp.ALLOW),
        ("x86_64", X86, 53, (1, 5), seccomp.ALLOW),
        ("x86_64", X86, 53, (1, 2), REFUSE),  # datagrams, which can be sent to any address
        ("x86_64", X86, 53, (1, 0x80002), REFUSE),
        ("x86_64", X86, 53, (0x1_0000_0001, 0x1_0000_0002), REFUSE),
        ("x86_64", X86, 53, (1, 3), REFUSE),  # raw ones, which the kernel takes for datagrams
        ("aarch64", ARM, 199, (1, 2), REFUSE),
        ("x86_64", X86, 53, (2, 1), REFUSE),
        ("x86_64", X86, 16, (0, 0x5412), REFUSE),
        ("x86_64", X86, 16, (0, 0x1_0000_5412), REFUSE),  # the kernel looks at the low word only
        ("x86_64", X86, 16, (0, 0x541B), seccomp.ALLOW),
        ("x86_64", X86, 16, (0, 0x541C), REFUSE),  # TIOCLINUX
        ("x86_64", X86, 16, (0, 0x40086602), REFUSE),  # flags of a file
        ("x86_64", X86, 16, (0, 0x40087602), REFUSE),  # its generation
        ("x86_64", X86, 16, (0, 0x50009401), REFUSE),  # a snapshot of btrfs
        ("x86_64", X86, 16, (0, 0x40049409), seccomp.ALLOW),  # a copy that shares its blocks (FICLONE)
        ("x86_64", X86, 29, (1, 1, 0), REFUSE),  # shmget
        ("aarch64", ARM, 180, (), REFUSE),  # mq_open
        ("x86_64", X86, 294, (), LACKS),  # inotify_init1
        ("x86_64", X86, 188, (), seccomp.ERRNO | 95),  # setxattr
        ("x86_64", X86, 203, (0, 8), seccomp.ALLOW),  # sched_setaffinity
        ("x86_64", X86, 203, (1234, 8), REFUSE),
        ("aarch64", ARM, 30, (1, 1234, 0), REFUSE),  # ioprio_set
        ("x86_64", X86, 90, (0, 0o755), seccomp.ALLOW),
        ("x86_64", X86, 90, (0, 0o4755), REFUSE),
        ("aarch64", ARM, 53, (0, 0, 0o2755), REFUSE),
        ("x86_64", X86, 257, (0, 0, 0o100, 0o4644), REFUSE),
        ("x86_64", X86, 62, (0xFFFFFFFF, 0), REFUSE),
        ("x86_64", X86, 62, (1234, 9), seccomp.ALLOW),
        ("x86_64", X86, 302, (0, 7), seccomp.ALLOW),
        ("x86_64", X86, 302, (1234, 7), REFUSE),
        ("aarch64", ARM, 140, (0, 1234, 5), REFUSE),
    ],
)
def test_what_the_filter_says(
    machine: str, arch: int, number: int, arguments: tuple[int, ...], expected: int
) -> None:
    assert verdict(seccomp.program(seccomp.SyscallFilter(), machine), arch, number, *arguments) == expected


@pytest.mark.promise("sandbox.md", "A pair of datagram sockets is refused")
@pytest.mark.parametrize(
    ("allowed", "arguments", "expected"),
    [
        (seccomp.SyscallFilter(internet=True), (2, 1), seccomp.ALLOW),
        (seccomp.SyscallFilter(internet=True), (10, 0x80802), seccomp.ALLOW),
        (seccomp.SyscallFilter(internet=True), (2, 3), REFUSE),  # raw
        (seccomp.SyscallFilter(internet=True), (2, 0x80003), REFUSE),
        (seccomp.SyscallFilter(internet=True), (1, 1), REFUSE),
        (seccomp.SyscallFilter(unix=True), (1, 1), seccomp.ALLOW),
        (seccomp.SyscallFilter(unix=True), (2, 1), REFUSE),
        (seccomp.SyscallFilter(unix=True, internet=True), (40, 1), REFUSE),
    ],
)
def test_which_sockets_pass(
    allowed: seccomp.SyscallFilter, arguments: tuple[int, int], expected: int
) -> None:
    assert verdict(seccomp.program(allowed, "x86_64"), X86, 41, *arguments) == expected


# -- sockets


@pytest.fixture(params=list(BACKENDS))
def kind(request: pytest.FixtureRequest) -> type[Any]:
    return backend(request.param)


@pytest.mark.promise("sandbox.md", "A pair of datagram sockets is refused")
def test_a_connected_pair_of_sockets_leads_to_nobody_else(kind: type[Any], tmp_path: Path) -> None:
    tried = """
import socket
path = "daemon.sock"
for sort in (socket.SOCK_STREAM, socket.SOCK_SEQPACKET):
    for leave in (False, True):
        one, other = socket.socketpair(socket.AF_UNIX, sort)
        if leave:
            other.close()
        for step in (one.connect, lambda to: one.sendto(b"x", to), lambda to: one.sendmsg([b"x"], [], 0, to)):
            try:
                step(path)
            except OSError:
                pass
try:
    socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
except PermissionError:
    print("refused")
"""
    ws = tmp_path
    unix: Any = socket.AF_UNIX
    for sort in (socket.SOCK_STREAM, socket.SOCK_SEQPACKET, socket.SOCK_DGRAM):
        with socket.socket(unix, sort) as daemon:
            daemon.bind(f"{ws}/daemon.sock")
            if sort != socket.SOCK_DGRAM:
                daemon.listen()
            daemon.setblocking(False)
            done = run(kind(ws), [sys.executable, "-c", tried], ws)
            assert done.said == "refused\n"
            with pytest.raises(BlockingIOError):
                daemon.recv(1) if sort == socket.SOCK_DGRAM else daemon.accept()
        (ws / "daemon.sock").unlink()
