# ruff: noqa: PTH102, PTH106, PTH208 - paths are text and descriptors here
"""Attempts on the kernel, its settings and its rarer calls; nothing is changed by them."""

from __future__ import annotations

import ctypes
import errno
import fcntl
import mmap
import os
import signal
import socket
import stat
import struct

from .trying import (
    GIVEN,
    WS,
    X86,
    attempt,
    call,
    in_a_child,
    libc,
    write,
)

# -- the kernel


def open_to_write(*paths: str) -> None:
    """One of them, nothing written."""
    last: OSError | None = None
    for path in paths:
        try:
            os.close(os.open(path, os.O_WRONLY))
            return
        except OSError as problem:
            last = problem
    raise last or OSError(errno.ENOENT, "none there")


def below_control_groups(name: str) -> list[str]:
    place = "/sys/fs/cgroup"
    return [f"{place}/{name}", *(f"{place}/{group}/{name}" for group in sorted(os.listdir(place)))]


@attempt
def open_module_loader() -> None:
    open_to_write("/proc/sys/kernel/modprobe")


@attempt
def register_binary_format() -> None:
    open_to_write("/proc/sys/fs/binfmt_misc/register")


@attempt
def open_event_helper() -> None:
    open_to_write("/sys/kernel/uevent_helper")


@attempt
def open_event_of_a_device() -> None:
    open_to_write("/sys/class/mem/null/uevent")


@attempt
def leave_control_group() -> None:
    open_to_write(*below_control_groups("cgroup.procs"))


@attempt
def open_release_agent() -> None:
    open_to_write(*below_control_groups("release_agent"))


@attempt
def make_control_group() -> None:
    for place in below_control_groups(GIVEN["token"]):
        try:
            os.mkdir(place)
        except OSError:
            continue
        os.rmdir(place)
        return
    raise OSError(errno.EROFS, "nowhere")


@attempt
def open_kernel_memory() -> None:
    os.close(os.open("/proc/kcore", os.O_RDONLY))


@attempt
def read_kernel_log() -> None:
    if libc.klogctl(10, None, 0) < 0:
        raise OSError(ctypes.get_errno(), "syslog")


@attempt
def open_kernel_log() -> None:
    os.close(os.open("/dev/kmsg", os.O_RDONLY | os.O_NONBLOCK))


@attempt
def open_file_system_context() -> None:
    os.close(call(430, 430, b"tmpfs", ctypes.c_uint(0)))


@attempt
def copy_the_tree_of_mounts() -> None:
    os.close(call(428, 428, ctypes.c_int(-100), b"/", ctypes.c_uint(1)))


@attempt
def clone3_into_new_namespaces() -> None:
    def step() -> None:
        wanted = struct.pack("=11Q", 0x10000000, 0, 0, 0, signal.SIGCHLD, 0, 0, 0, 0, 0, 0)
        pid = call(435, 435, wanted, ctypes.c_size_t(len(wanted)))
        if pid == 0:
            os._exit(0)
        os.waitpid(pid, 0)

    in_a_child(step)


@attempt
def become_another_user() -> None:
    in_a_child(lambda: os.setuid(54321))


@attempt
def call_by_the_32_bit_table() -> None:
    if not X86:
        raise OSError(errno.ENOSYS, "another processor")
    page = mmap.mmap(-1, 4096, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
    page.write(
        b"\x53\xb8\x14\x00\x00\x00\xcd\x80\x5b\xc3"
    )  # push rbx; mov eax, 20 (getpid); int 0x80; pop; ret
    ask = ctypes.CFUNCTYPE(ctypes.c_int)(ctypes.addressof(ctypes.c_char.from_buffer(page)))

    def step() -> None:
        if ask() != os.getpid():
            raise OSError(errno.ENOSYS, "no such table")

    in_a_child(step)


@attempt
def call_by_the_x32_table() -> None:
    if call(0x40000000 + 39, 172) != os.getpid():
        raise OSError(errno.ENOSYS, "no such table")


@attempt
def write_core_pattern() -> None:
    os.close(os.open("/proc/sys/kernel/core_pattern", os.O_RDWR))


@attempt
def open_system_request() -> None:
    os.close(os.open("/proc/sysrq-trigger", os.O_WRONLY))


@attempt
def open_kernel_setting_below_sys() -> None:
    os.close(os.open("/sys/kernel/mm/transparent_hugepage/enabled", os.O_WRONLY))


@attempt
def make_user_namespace() -> None:
    in_a_child(lambda: call(272, 97, ctypes.c_ulong(0x10000000)))


@attempt
def clone_into_new_namespaces() -> None:
    def step() -> None:
        pid = call(56, 220, ctypes.c_ulong(0x10000000 | signal.SIGCHLD), None, None, None, None)
        if pid == 0:
            os._exit(0)
        os.waitpid(pid, 0)

    in_a_child(step)


@attempt
def mount_something() -> None:
    if libc.mount(b"none", f"{WS}/mountpoint".encode(), b"tmpfs", 0, None):
        raise OSError(ctypes.get_errno(), "mount")
    libc.umount(f"{WS}/mountpoint".encode())


@attempt
def change_root() -> None:
    in_a_child(lambda: os.chroot(WS))


@attempt
def gain_privileges_at_exec() -> None:
    if libc.prctl(39, 0, 0, 0, 0) == 1:
        raise OSError(errno.EPERM, "no new privileges")


@attempt
def use_capabilities_of_root() -> None:
    write(WS + "/given-away")
    os.chown(WS + "/given-away", 54321, 54321)


@attempt
def make_device() -> None:
    os.mknod(WS + "/device", stat.S_IFCHR | 0o600, os.makedev(1, 1))


@attempt
def set_host_name() -> None:
    name = socket.gethostname().encode()
    call(170, 161, name, ctypes.c_size_t(len(name)))


@attempt
def set_up_io_uring() -> None:
    os.close(call(425, 425, ctypes.c_uint(4), ctypes.create_string_buffer(120)))


@attempt
def use_key_store() -> None:
    call(250, 219, ctypes.c_long(0), ctypes.c_long(-3), ctypes.c_long(0))


@attempt
def load_bpf() -> None:
    class Map(ctypes.Structure):
        _fields_ = [(name, ctypes.c_uint32) for name in ("kind", "key", "value", "entries")]

    os.close(call(321, 280, ctypes.c_int(0), ctypes.byref(Map(2, 4, 4, 1)), ctypes.c_uint(16)))


@attempt
def measure_others() -> None:
    event = ctypes.create_string_buffer(128)
    event[0:8] = (1).to_bytes(4, "little") + (112).to_bytes(4, "little")
    event[40] = b"\x60"  # not the kernel, not the hypervisor
    os.close(call(298, 241, event, ctypes.c_int(0), ctypes.c_int(-1), ctypes.c_int(-1), ctypes.c_ulong(0)))


@attempt
def handle_page_faults() -> None:
    os.close(call(323, 282, ctypes.c_int(1)))


@attempt
def open_by_handle() -> None:
    handle = ctypes.create_string_buffer((128).to_bytes(4, "little") + bytes(132))
    mount = ctypes.c_int()
    where = f"{WS}".encode()
    call(303, 264, ctypes.c_int(-100), where, handle, ctypes.byref(mount), ctypes.c_int(0))


@attempt
def type_into_the_terminal() -> None:
    _, outer = os.openpty()
    in_a_child(lambda: _type(outer))


def _type(terminal: int) -> None:
    os.setsid()
    fcntl.ioctl(terminal, 0x540E, 0)
    fcntl.ioctl(terminal, 0x5412, b"x")
