# ruff: noqa: PTH102, PTH110, PTH101, PTH103, PTH104, PTH106, PTH108, PTH112, PTH116, PTH123, PTH208, PTH211 - paths are text and descriptors here
"""Run inside a sandbox: every attempt to get out of it that we know, once. Prints JSON, name to how it went.

Nothing here imports toolcrib, and nothing harms: where success would, the door is opened and shut again. What an
attempt says of itself counts only where nothing can be seen of it outside; `driver` looks there.
"""

from __future__ import annotations

import ctypes
import errno
import fcntl
import json
import mmap
import os
import resource
import signal
import socket
import stat
import struct
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from typing import Any

ESCAPED = "escaped"
GIVEN: dict[str, Any] = json.loads(sys.argv[1])
WS, OUT, HOME = GIVEN["ws"], GIVEN["outside"], GIVEN["home"]
PARENT, VICTIM = GIVEN["parent"], GIVEN["victim"]
X86 = os.uname().machine == "x86_64"
TRIED: dict[str, Callable[[], Any]] = {}
libc = ctypes.CDLL(None, use_errno=True)
libc.syscall.restype = ctypes.c_long


def attempt(step: Callable[[], Any]) -> Callable[[], Any]:
    TRIED[step.__name__] = step
    return step


def call(x86: int, arm: int, *arguments: Any) -> int:
    got = libc.syscall(ctypes.c_long(x86 if X86 else arm), *arguments)
    if got < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return int(got)


def write(path: str, text: str = "x", mode: str = "w") -> None:
    with open(path, mode) as file:
        file.write(text)


def read(path: str) -> bytes:
    with open(path, "rb") as file:
        return file.read(100_000)


def in_a_child(step: Callable[[], Any]) -> None:
    pid = os.fork()
    if pid == 0:
        try:
            step()
            os._exit(0)
        except OSError as problem:
            os._exit(problem.errno or 1)
        except BaseException:
            os._exit(1)
    code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    if code:
        raise OSError(code, "in a child")


def holds(path: str, text: str) -> None:
    if text.encode() not in read(path):
        raise OSError(errno.ENODATA, "not there")


# -- files outside


@attempt
def write_outside() -> None:
    write(OUT + "/written")


@attempt
def write_in_system_folder() -> None:
    os.close(os.open(GIVEN["system_file"], os.O_WRONLY))


@attempt
def overwrite_outside() -> None:
    write(OUT + "/overwritten", "x", "a")


@attempt
def truncate_outside() -> None:
    os.truncate(OUT + "/truncated", 0)


@attempt
def unlink_outside() -> None:
    os.unlink(OUT + "/unlinked")


@attempt
def chmod_outside() -> None:
    os.chmod(OUT + "/modes", 0o777)


@attempt
def touch_outside() -> None:
    os.utime(OUT + "/times", (1, 1))


@attempt
def set_attribute_outside() -> None:
    os.setxattr(OUT + "/attributes", "user.toolcrib", b"1")


@attempt
def link_secret_into_workspace() -> None:
    os.link(HOME + "/.ssh/id_rsa", WS + "/linked")
    holds(WS + "/linked", GIVEN["secret"])


@attempt
def rename_out_of_workspace() -> None:
    write(WS + "/moving")
    os.rename(WS + "/moving", OUT + "/moved")


@attempt
def write_through_a_link() -> None:
    os.symlink(OUT + "/through", WS + "/link")
    write(WS + "/link", "x", "a")


@attempt
def write_through_proc_root() -> None:
    write(f"/proc/{PARENT}/root{OUT}/by_root")


@attempt
def write_through_proc_cwd() -> None:
    write(f"/proc/{PARENT}/cwd/by_cwd")


@attempt
def write_shared_memory() -> None:
    write("/dev/shm/" + GIVEN["token"])


@attempt
def write_temporary_folder() -> None:
    write("/tmp/" + GIVEN["token"])


@attempt
def write_shell_startup() -> None:
    write(HOME + "/.bashrc", "x", "a")


@attempt
def write_by_dots() -> None:
    write(WS + "/mountpoint/../../outside/by_dots")


@attempt
def make_folder_outside() -> None:
    os.mkdir(OUT + "/folder-made")


@attempt
def remove_folder_outside() -> None:
    os.rmdir(OUT + "/folder-there")


@attempt
def make_link_outside() -> None:
    os.symlink("/", OUT + "/link-made")


@attempt
def exchange_with_outside() -> None:
    write(WS + "/exchanged", "mine")
    there, here = (OUT + "/exchanged").encode(), (WS + "/exchanged").encode()
    call(316, 276, ctypes.c_int(-100), here, ctypes.c_int(-100), there, ctypes.c_uint(2))


@attempt
def set_flags_outside() -> None:
    fd = os.open(OUT + "/flags", os.O_RDONLY)
    flags = bytearray(8)
    fcntl.ioctl(fd, 0x80086601, flags)
    flags[0] |= 0x40  # not to be dumped
    fcntl.ioctl(fd, 0x40086602, bytes(flags))


@attempt
def watch_secrets() -> None:
    fd = libc.inotify_init1(0)
    if fd < 0 or libc.inotify_add_watch(fd, (HOME + "/.ssh").encode(), 0x100) < 0:
        raise OSError(ctypes.get_errno(), "inotify")
    os.close(fd)


@attempt
def open_disk() -> None:
    disks = [f"/dev/{name}" for name in os.listdir("/sys/block") if os.path.exists(f"/dev/{name}")]
    os.close(os.open(disks[0], os.O_RDONLY))


# -- secrets


@attempt
def read_key() -> None:
    holds(HOME + "/.ssh/id_rsa", GIVEN["secret"])


@attempt
def read_key_by_descriptor_path() -> None:
    holds("/proc/self/root" + HOME + "/.ssh/id_rsa", GIVEN["secret"])


@attempt
def read_cloud_credentials() -> None:
    holds(HOME + "/.aws/credentials", GIVEN["secret"])


@attempt
def read_token_of_a_program() -> None:
    holds(HOME + "/.config/gh/hosts.yml", GIVEN["secret"])


@attempt
def read_shell_history() -> None:
    holds(HOME + "/.bash_history", GIVEN["secret"])


@attempt
def read_secret_that_no_table_knows() -> None:
    holds(HOME + "/notes/passwords.txt", GIVEN["secret"])


@attempt
def read_toolchain_credentials() -> None:
    holds(HOME + "/.cargo/credentials.toml", GIVEN["secret"])


@attempt
def list_secrets() -> None:
    if "id_rsa" not in os.listdir(HOME + "/.ssh"):
        raise OSError(errno.ENOENT, "empty")


@attempt
def see_that_a_secret_exists() -> None:
    os.stat(HOME + "/.ssh/id_rsa")


@attempt
def read_password_hashes() -> None:
    if not read("/etc/shadow"):
        raise OSError(errno.ENODATA, "empty")


@attempt
def read_own_environment() -> None:
    if GIVEN["marker"] not in os.environ:
        raise OSError(errno.ENODATA, "not there")


# -- files in the workspace that others obey


@attempt
def write_git_hook() -> None:
    write(WS + "/.git/hooks/pre-commit")


@attempt
def write_git_configuration() -> None:
    write(WS + "/.git/config", "[core]\n", "a")


@attempt
def rename_git_folder_away() -> None:
    os.rename(WS + "/renamed/.git", WS + "/renamed/away")
    os.makedirs(WS + "/renamed/.git/hooks")
    write(WS + "/renamed/.git/hooks/post-checkout")


@attempt
def replace_git_folder_by_a_link() -> None:
    os.rename(WS + "/replaced/.git", WS + "/replaced/away")
    os.symlink(OUT + "/git-elsewhere", WS + "/replaced/.git")


@attempt
def make_directory_environment() -> None:
    write(WS + "/.envrc")


@attempt
def make_editor_tasks() -> None:
    os.makedirs(WS + "/.vscode", exist_ok=True)
    write(WS + "/.vscode/tasks.json")


@attempt
def make_server_configuration() -> None:
    if os.path.isdir(WS + "/.mcp.json"):
        os.rmdir(WS + "/.mcp.json")
    write(WS + "/.mcp.json")


@attempt
def write_project_configuration() -> None:
    write(WS + "/.toolcrib/policy.toml", "x", "a")


@attempt
def remove_project_configuration() -> None:
    os.unlink(WS + "/.toolcrib/remove.toml")


@attempt
def write_nested_git_hook() -> None:
    write(WS + "/sub/.git/hooks/pre-commit")


@attempt
def write_project_configuration_by_another_name() -> None:
    os.link(WS + "/.toolcrib/linked.toml", WS + "/alias")
    write(WS + "/alias", "x", "a")


@attempt
def write_project_configuration_by_proc() -> None:
    fd = os.open(WS + "/.toolcrib/opened.toml", os.O_RDONLY)
    write(f"/proc/self/fd/{fd}", "x", "a")


@attempt
def plant_bare_repository() -> None:
    write(WS + "/HEAD", "ref: refs/heads/main\n")


@attempt
def make_set_user_id_file() -> None:
    write(WS + "/lent")
    os.chmod(WS + "/lent", 0o4755)


@attempt
def create_set_user_id_file() -> None:
    os.umask(0)
    os.close(os.open(WS + "/lent-at-once", os.O_CREAT | os.O_WRONLY, 0o4755))


@attempt
def run_monitor_of_a_hostile_repository() -> None:
    subprocess.run(["git", "-C", WS + "/hostile", "status"], capture_output=True, timeout=20)
    os.stat(WS + "/hostile-ran")


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


# -- sockets


def speak(family: int, kind: int, address: Any) -> None:
    with socket.socket(family, kind) as made:
        made.settimeout(2)
        made.connect(address)
        made.send(b"hello")


@attempt
def connect_to_this_machine() -> None:
    speak(socket.AF_INET, socket.SOCK_STREAM, ("127.0.0.1", GIVEN["tcp"]))


@attempt
def connect_to_this_machine_by_ipv6() -> None:
    speak(socket.AF_INET6, socket.SOCK_STREAM, ("::1", GIVEN["tcp6"]))


@attempt
def send_a_datagram() -> None:
    speak(socket.AF_INET, socket.SOCK_DGRAM, ("127.0.0.1", GIVEN["udp"]))


@attempt
def connect_to_daemon_socket() -> None:
    speak(socket.AF_UNIX, socket.SOCK_STREAM, GIVEN["unix"])


@attempt
def connect_to_daemon_socket_in_workspace() -> None:
    speak(socket.AF_UNIX, socket.SOCK_STREAM, GIVEN["unix_inside"])


@attempt
def connect_to_key_agent() -> None:
    speak(socket.AF_UNIX, socket.SOCK_STREAM, GIVEN["agent"])


@attempt
def connect_to_display() -> None:
    speak(socket.AF_UNIX, socket.SOCK_STREAM, GIVEN["display"])


@attempt
def connect_to_abstract_socket() -> None:
    speak(socket.AF_UNIX, socket.SOCK_STREAM, "\0" + GIVEN["abstract"])


LISTENING: list[socket.socket] = []


@attempt
def serve_on_this_machine() -> None:
    made = socket.create_server(("127.0.0.1", GIVEN["serve"]))
    LISTENING.append(made)
    made.settimeout(1)
    made.accept()[0].close()


@attempt
def open_icmp_socket() -> None:
    socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_ICMP).close()


@attempt
def open_netlink_socket() -> None:
    socket.socket(16, socket.SOCK_RAW, 0).close()


@attempt
def open_vsock_socket() -> None:
    socket.socket(40, socket.SOCK_STREAM).close()


@attempt
def open_packet_socket() -> None:
    socket.socket(17, socket.SOCK_RAW, 0).close()


@attempt
def open_ping_socket() -> None:
    socket.socket(socket.AF_INET, socket.SOCK_DGRAM, socket.IPPROTO_ICMP).close()


@attempt
def open_cipher_socket() -> None:
    socket.socket(38, socket.SOCK_SEQPACKET).close()


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


# -- outliving, flooding


# Only once the command itself is gone; not for ever.
AFTER_ALL = (
    f"for i in $(seq 400); do kill -0 {os.getpid()} || break; sleep 0.1; done; echo x >'{WS}/survived'"
)


@attempt
def outlive_the_command() -> None:
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            os.closerange(0, 64)
            os.execve("/bin/sh", ["sh", "-c", AFTER_ALL], {"PATH": "/usr/bin:/bin"})
        os._exit(0)
    os.wait()


@attempt
def start_very_many_processes() -> None:
    started = []
    try:
        for _ in range(GIVEN["processes"] * 3):
            pid = os.fork()
            if pid == 0:
                signal.pause()
                os._exit(0)
            started.append(pid)
    finally:
        for pid in started:
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)


@attempt
def take_very_much_memory() -> None:
    bytearray(GIVEN["memory"] * 2)


@attempt
def fill_shared_memory() -> None:
    path = "/dev/shm/full-" + GIVEN["token"]
    try:
        with open(path, "wb", buffering=0) as file:
            for _ in range(GIVEN["scratch"] // (1 << 20) + 1):
                if file.write(bytes(1 << 20)) < 1 << 20:
                    raise OSError(errno.ENOSPC, "full")
    finally:
        if os.path.exists(path):
            os.unlink(path)


@attempt
def write_a_very_large_file() -> None:
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    with open(WS + "/large", "wb") as file:
        file.seek(GIVEN["file_size"] + 10)
        file.write(b"x")
        file.flush()
    os.unlink(WS + "/large")


# -- what has to work


ABILITIES: dict[str, Callable[[], Any]] = {}


def ability(step: Callable[[], Any]) -> Callable[[], Any]:
    ABILITIES[step.__name__] = step
    return step


@ability
def write_in_workspace() -> None:
    write(WS + "/made")
    os.rename(WS + "/made", WS + "/kept")
    os.makedirs(WS + "/deep/deeper")
    os.chmod(WS + "/kept", 0o755)


@ability
def run_programs() -> None:
    for command in (["sh", "-c", "echo x"], [sys.executable, "-c", "print(1)"], ["git", "--version"]):
        subprocess.run(command, check=True, capture_output=True, timeout=20)


@ability
def substitute_processes() -> None:
    subprocess.run(["bash", "-c", "cat <(echo x) | grep -q x"], check=True, capture_output=True, timeout=20)


@ability
def commit() -> None:
    who = ["-c", "user.name=x", "-c", "user.email=x@x"]
    write(WS + "/mine/file")
    for words in (["add", "file"], [*who, "commit", "-qm", "x"], ["status"], ["checkout", "-qb", "other"]):
        subprocess.run(["git", "-C", WS + "/mine", *words], check=True, capture_output=True, timeout=20)


@ability
def make_temporary_files() -> None:
    with tempfile.NamedTemporaryFile() as file:
        file.write(b"x")


@ability
def use_threads_and_pairs() -> None:
    thread = threading.Thread(target=lambda: None)
    thread.start()
    thread.join()
    one, other = socket.socketpair()
    one.send(b"x")
    assert other.recv(1) == b"x"


@ability
def spawn() -> None:
    pid = os.posix_spawn("/bin/true", ["true"], os.environ)
    assert os.waitpid(pid, 0)[1] == 0


def tried(step: Callable[[], Any]) -> str:
    try:
        step()
    except OSError as problem:
        return f"refused: {errno.errorcode.get(problem.errno or 0, str(problem))}"
    except Exception as problem:
        return f"refused: {type(problem).__name__}: {str(problem)[:200]}"
    return ESCAPED


if __name__ == "__main__":
    results = {
        "abilities": {name: tried(step) for name, step in ABILITIES.items()},
        "attempts": {name: tried(step) for name, step in TRIED.items()},
    }
    sys.stdout.write("\n@@" + json.dumps(results) + "\n")
    sys.stdout.flush()
