# ruff: noqa: PTH123, PTH208 - paths are text and descriptors here
"""Attempts on other processes, and on what they share that is no file."""

from __future__ import annotations

import ctypes
import errno
import fcntl
import os
import resource
import signal
import time

from .trying import (
    GIVEN,
    HOME,
    PARENT,
    VICTIM,
    attempt,
    call,
    holds,
    libc,
    read,
)

# -- other processes


@attempt
def read_environment_of_parent() -> None:
    holds(f"/proc/{PARENT}/environ", GIVEN["marker"])


@attempt
def read_environment_of_anybody() -> None:
    for name in os.listdir("/proc"):
        if name.isdigit() and int(name) != os.getpid():
            try:
                if GIVEN["marker"].encode() in read(f"/proc/{name}/environ"):
                    return
            except OSError:
                continue
    raise OSError(errno.ENODATA, "not there")


@attempt
def read_command_line_of_parent() -> None:
    holds(f"/proc/{PARENT}/cmdline", "driver")


@attempt
def open_memory_of_parent() -> None:
    os.close(os.open(f"/proc/{PARENT}/mem", os.O_RDONLY))


@attempt
def list_descriptors_of_parent() -> None:
    os.listdir(f"/proc/{PARENT}/fd")


@attempt
def read_secret_through_parent() -> None:
    holds(f"/proc/{PARENT}/root{HOME}/.ssh/id_rsa", GIVEN["secret"])


@attempt
def change_parents_out_of_memory_score() -> None:
    os.close(os.open(f"/proc/{PARENT}/oom_score_adj", os.O_RDWR))


@attempt
def trace_parent() -> None:
    call(101, 117, ctypes.c_long(16), ctypes.c_long(PARENT), None, None)
    for _ in range(400):
        try:
            call(101, 117, ctypes.c_long(17), ctypes.c_long(PARENT), None, None)
            return
        except OSError:
            time.sleep(0.005)


@attempt
def read_parents_memory() -> None:
    class Part(ctypes.Structure):
        _fields_ = [("base", ctypes.c_void_p), ("size", ctypes.c_size_t)]

    room = ctypes.create_string_buffer(8)
    here, there = Part(ctypes.addressof(room), 8), Part(GIVEN["address"], 8)
    one, none = ctypes.c_ulong(1), ctypes.c_ulong(0)
    call(310, 270, ctypes.c_long(PARENT), ctypes.byref(here), one, ctypes.byref(there), one, none)


@attempt
def take_parents_descriptor() -> None:
    pidfd = call(434, 434, ctypes.c_int(PARENT), ctypes.c_uint(0))
    os.close(call(438, 438, ctypes.c_int(pidfd), ctypes.c_int(0), ctypes.c_uint(0)))


@attempt
def take_descriptor_of_launcher() -> None:
    """Over one of them, the launcher takes requests to start commands that nothing confines."""
    pidfd = call(434, 434, ctypes.c_int(GIVEN["launcher"]), ctypes.c_uint(0))
    for number in range(3, 63):
        try:
            os.close(call(438, 438, ctypes.c_int(pidfd), ctypes.c_int(number), ctypes.c_uint(0)))
            return
        except OSError as problem:
            if problem.errno != errno.EBADF:
                raise
    raise OSError(errno.EBADF, "no descriptor")


@attempt
def open_memory_of_launcher() -> None:
    os.close(os.open(f"/proc/{GIVEN['launcher']}/mem", os.O_RDONLY))


@attempt
def signal_parent() -> None:
    os.kill(PARENT, 0)


@attempt
def end_another_process() -> None:
    os.kill(VICTIM[0], signal.SIGKILL)


@attempt
def limit_another_process() -> None:
    resource.prlimit(VICTIM[1], resource.RLIMIT_NOFILE, (77, 77))


@attempt
def slow_down_another_process() -> None:
    os.setpriority(os.PRIO_PROCESS, VICTIM[1], 19)


@attempt
def signal_parent_by_descriptor() -> None:
    pidfd = call(434, 434, ctypes.c_int(PARENT), ctypes.c_uint(0))
    call(424, 424, ctypes.c_int(pidfd), ctypes.c_int(0), None, ctypes.c_uint(0))


@attempt
def end_another_process_by_owning_a_pipe() -> None:
    reading, writing = os.pipe()
    fcntl.fcntl(reading, fcntl.F_SETOWN, VICTIM[2])
    fcntl.fcntl(reading, 10, signal.SIGKILL)  # F_SETSIG
    fcntl.fcntl(reading, fcntl.F_SETFL, os.O_ASYNC)
    os.write(writing, b"x")


@attempt
def pin_another_process() -> None:
    os.sched_setaffinity(VICTIM[1], {0})


@attempt
def reschedule_another_process() -> None:
    os.sched_setscheduler(VICTIM[1], os.SCHED_BATCH, os.sched_param(0))


@attempt
def slow_down_the_disk_of_another_process() -> None:
    call(251, 30, ctypes.c_int(1), ctypes.c_int(VICTIM[1]), ctypes.c_int((2 << 13) | 7))


@attempt
def compare_parents_descriptors() -> None:
    one = ctypes.c_ulong(1)
    call(312, 272, ctypes.c_int(PARENT), ctypes.c_int(os.getpid()), ctypes.c_int(0), one, one)


@attempt
def open_namespace_of_parent() -> None:
    os.close(os.open(f"/proc/{PARENT}/ns/mnt", os.O_RDONLY))


@attempt
def read_shared_memory_of_another() -> None:
    libc.shmat.restype = ctypes.c_void_p
    segment = libc.shmget(GIVEN["segment"], 0, 0)
    at = libc.shmat(segment, None, 0o10000) if segment >= 0 else None
    if at in (None, ctypes.c_void_p(-1).value):
        raise OSError(ctypes.get_errno(), "shm")
    if ctypes.string_at(at, 32) != GIVEN["secret"].encode():
        raise OSError(errno.ENODATA, "not there")


@attempt
def read_message_queue_of_another() -> None:
    os.close(call(240, 180, GIVEN["token"].encode(), ctypes.c_int(0), ctypes.c_int(0), None))


@attempt
def write_to_another_terminal() -> None:
    with open(GIVEN["terminal"], "wb", buffering=0) as file:
        file.write(b"typed\n")
