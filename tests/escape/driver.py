# ruff: noqa: PTH101, PTH102, PTH103, PTH108, PTH109, PTH114, PTH116, PTH123, PTH208, PTH211 - paths are text and descriptors here
"""Sets the stage outside, runs the attempts under one back end, and looks what became of them outside.

    python driver.py BACKEND BASE START      prints JSON: {"attempts": {...}, "abilities": {...}}

START is "cold" or "warm": by a launcher of its own, or by the warm one. Stands alone but for `toolcrib.command.sandbox`
and `attempts`, so that it can be run as another user. Only loopback is listened on; the processes that attempts are
made against are its own.
"""

from __future__ import annotations

import asyncio
import ctypes
import fcntl
import json
import os
import secrets
import selectors
import shutil
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from typing import IO, Any

from toolcrib.command.sandbox import (
    Bubblewrap,
    Landlock,
    Launch,
    Level,
    Limits,
    NoSandbox,
    Sandbox,
    environment,
)
from toolcrib.command.sandbox.process.warm_launcher import start_warm

ESCAPED = "escaped"
MARKER = "ESCAPE_MARKER"
START = "import runpy, sys; sys.path.insert(0, sys.argv.pop(1)); runpy.run_module(sys.argv.pop(1), None, '__main__')"
LIMITS = Limits(processes=40, memory=512 << 20, together=4 << 30, file_size=32 << 20, scratch=24 << 20)
BACKENDS: dict[str, Callable[[str, str, str], Sandbox]] = {
    "none": lambda ws, home, opened: NoSandbox(),
    "landlock": lambda ws, home, opened: Landlock(ws, Level(readable=(opened,)), home=home, limits=LIMITS),
    "bubblewrap": lambda ws, home, opened: Bubblewrap(
        ws, Level(readable=(opened,)), home=home, limits=LIMITS
    ),
    "bubblewrap+landlock": lambda ws, home, opened: Bubblewrap(
        ws, Level(readable=(opened,)), home=home, limits=LIMITS, landlock=True
    ),
}


class Stage:
    """The folders, listeners and processes that attempts are made against."""

    def __init__(self, base: str) -> None:
        self.base = os.path.realpath(base)
        self.token = f"toolcrib-escape-{secrets.token_hex(8)}"
        self.ws, self.outside, self.home = (f"{self.base}/{name}" for name in ("ws", "outside", "home"))
        self.secret = secrets.token_hex(16)
        self.met: set[str] = set()
        self._folders()
        self._sockets()
        self._shared()
        self.memory = ctypes.create_string_buffer(b"in memory")
        self.victims = [subprocess.Popen(["sleep", "300"]) for _ in range(3)]

    def _folders(self) -> None:
        for folder in (
            *(
                self.outside,
                f"{self.outside}/git-elsewhere",
                f"{self.home}/.ssh",
                f"{self.home}/.aws",
                f"{self.home}/.gnupg",
            ),
            *(
                f"{self.home}/.config/gh",
                f"{self.home}/notes",
                f"{self.home}/.cargo/bin",
                f"{self.home}/.gradle/caches/modules-2",
                f"{self.home}/.conda",
                f"{self.ws}/.toolcrib",
            ),
            *(f"{self.ws}/sub/.git/hooks", f"{self.ws}/mountpoint"),
        ):
            os.makedirs(folder)
        for name in (
            ".ssh/id_rsa",
            ".aws/credentials",
            ".config/gh/hosts.yml",
            ".bash_history",
            "notes/passwords.txt",
        ):
            self._file(f"{self.home}/{name}", self.secret)
        self._file(f"{self.home}/.cargo/credentials.toml", self.secret)
        self._file(f"{self.home}/.conda/aau_token", self.secret)
        self.opened = f"/tmp/{self.token}-opened"
        self._file(self.opened, "before")
        self._file(
            f"{self.home}/.gitconfig", f"[http]\n\textraHeader = Authorization: Bearer {self.secret}\n"
        )
        os.makedirs(f"{self.home}/.local/share/uv/credentials")
        self._file(f"{self.home}/.local/share/uv/credentials/credentials.toml", self.secret)
        for name in (
            "overwritten",
            "truncated",
            "unlinked",
            "modes",
            "times",
            "attributes",
            "through",
            "exchanged",
            "flags",
        ):
            self._file(f"{self.outside}/{name}", "before")
        os.mkdir(f"{self.outside}/folder-there")
        os.chmod(f"{self.outside}/modes", 0o600)
        self._file(f"{self.home}/.bashrc", "before")
        self._file(f"{self.ws}/.toolcrib/linked.toml", "before")
        self._file(f"{self.ws}/.toolcrib/opened.toml", "before")
        self._file(f"{self.ws}/.toolcrib/policy.toml", "before")
        self._file(f"{self.ws}/.toolcrib/remove.toml", "before")
        plain = {"PATH": os.environ["PATH"], "HOME": self.home, "GIT_CONFIG_NOSYSTEM": "1"}
        for folder in (
            self.ws,
            *(f"{self.ws}/{name}" for name in ("mine", "hostile", "renamed", "replaced", "tied")),
        ):
            subprocess.run(["git", "init", "-q", folder], check=True, capture_output=True, env=plain)
        shutil.rmtree(f"{self.ws}/tied/.git/hooks")
        os.mkdir(f"{self.ws}/tied/hooks")
        os.symlink("../hooks", f"{self.ws}/tied/.git/hooks")
        monitor = [
            "git",
            "-C",
            f"{self.ws}/hostile",
            "config",
            "core.fsmonitor",
            f"touch '{self.ws}/hostile-ran'; false",
        ]
        subprocess.run(monitor, check=True, capture_output=True, env=plain)

    def _file(self, path: str, text: str) -> None:
        with open(path, "w") as file:
            file.write(text)

    def _sockets(self) -> None:
        unix: Any = socket.AF_UNIX
        self.listeners = {
            "connect_to_this_machine": socket.create_server(("127.0.0.1", 0)),
            "connect_to_this_machine_by_ipv6": socket.create_server(("::1", 0), family=socket.AF_INET6),
            "connect_to_daemon_socket": _bound(unix, socket.SOCK_STREAM, f"{self.base}/daemon.sock"),
            "connect_to_daemon_socket_in_workspace": _bound(unix, socket.SOCK_STREAM, f"{self.ws}/d.sock"),
            "connect_to_key_agent": _bound(unix, socket.SOCK_STREAM, f"{self.home}/.gnupg/S.agent"),
            "connect_to_display": _bound(unix, socket.SOCK_STREAM, f"/tmp/{self.token}-X"),
            "connect_to_abstract_socket": _bound(unix, socket.SOCK_STREAM, f"\0{self.token}"),
            **{name: _bound(unix, socket.SOCK_DGRAM, path) for name, path in self._datagrams().items()},
            "send_a_datagram": _bound(socket.AF_INET, socket.SOCK_DGRAM, ("127.0.0.1", 0)),
        }
        with socket.create_server(("127.0.0.1", 0)) as free:
            self.serve = free.getsockname()[1]
        self.running = True
        self.threads = [threading.Thread(target=self._accept), threading.Thread(target=self._call)]
        for thread in self.threads:
            thread.start()

    def _datagrams(self) -> dict[str, str]:
        """Where daemons take datagrams. `/run/lock` is everybody's; where there is none, it is tried elsewhere."""
        run = "/run/lock" if os.access("/run/lock", os.W_OK) else self.base
        return {
            "send_to_daemon_socket_by_a_pair": f"{self.base}/datagrams.sock",
            "send_to_daemon_socket_in_workspace_by_a_pair": f"{self.ws}/datagrams.sock",
            "send_to_daemon_socket_below_run_by_a_pair": f"{run}/{self.token}.sock",
            "connect_a_pair_to_daemon_socket": f"{self.base}/connected.sock",
            "send_to_daemon_socket_by_a_raw_pair": f"{self.base}/raw.sock",
            "send_to_abstract_socket_by_a_pair": f"\0{self.token}-datagrams",
            "send_to_daemon_socket_by_a_message_of_a_pair": f"{self.base}/message.sock",
        }

    def _shared(self) -> None:
        """What processes share that is no file: a segment of memory, a queue, a terminal."""
        libc = ctypes.CDLL(None, use_errno=True)
        libc.shmat.restype = ctypes.c_void_p
        self.key = secrets.randbelow(1 << 30) + 1
        self.segment = libc.shmget(self.key, 4096, 0o1600)
        at = libc.shmat(self.segment, None, 0)
        ctypes.memmove(at, self.secret.encode(), len(self.secret))
        self.queue = libc.mq_open(f"/{self.token}".encode(), os.O_RDWR | os.O_CREAT, 0o600, None)
        self.terminal, self.theirs = os.openpty()
        os.set_blocking(self.terminal, False)
        self.libc = libc
        self.pipe = f"{self.outside}/pipe"
        os.mkfifo(self.pipe)
        self.reading = os.open(self.pipe, os.O_RDONLY | os.O_NONBLOCK)

    def _accept(self) -> None:
        with selectors.DefaultSelector() as waiting:
            for name, listener in self.listeners.items():
                waiting.register(listener, selectors.EVENT_READ, name)
            while self.running:
                for key, _ in waiting.select(0.1):
                    listener: Any = key.fileobj
                    self.met.add(key.data)
                    if listener.type == socket.SOCK_DGRAM:
                        listener.recv(64)
                    else:
                        listener.accept()[0].close()

    def _call(self) -> None:
        """Look whether somebody serves here who should not be able to."""
        while self.running:
            with suppress(OSError), socket.create_connection(("127.0.0.1", self.serve), 0.5):
                self.met.add("serve_on_this_machine")
            time.sleep(0.05)

    def given(self) -> dict[str, Any]:
        port = {
            name: made.getsockname()[1]
            for name, made in self.listeners.items()
            if made.family != socket.AF_UNIX
        }
        return {
            "ws": self.ws, "outside": self.outside, "home": self.home, "secret": self.secret, "marker": MARKER,
            "token": self.token, "parent": os.getpid(), "victim": [process.pid for process in self.victims],
            "address": ctypes.addressof(self.memory), "tcp": port["connect_to_this_machine"],
            "tcp6": port["connect_to_this_machine_by_ipv6"], "udp": port["send_a_datagram"], "serve": self.serve,
            "unix": f"{self.base}/daemon.sock", "unix_inside": f"{self.ws}/d.sock", "abstract": self.token,
            "datagrams": self._datagrams()["send_to_daemon_socket_by_a_pair"],
            "datagrams_inside": self._datagrams()["send_to_daemon_socket_in_workspace_by_a_pair"],
            "datagrams_run": self._datagrams()["send_to_daemon_socket_below_run_by_a_pair"],
            "datagrams_connected": self._datagrams()["connect_a_pair_to_daemon_socket"],
            "datagrams_raw": self._datagrams()["send_to_daemon_socket_by_a_raw_pair"],
            "datagrams_message": self._datagrams()["send_to_daemon_socket_by_a_message_of_a_pair"], "pipe": self.pipe,
            "agent": f"{self.home}/.gnupg/S.agent", "display": f"/tmp/{self.token}-X",
            "segment": self.key, "terminal": os.ttyname(self.theirs), "scratch": LIMITS.scratch,
            "processes": LIMITS.processes, "memory": LIMITS.memory, "file_size": LIMITS.file_size,
            "opened": self.opened, "system_file": f"{self.base}/lib/escape/attempts.py",
        }  # fmt: skip

    def effects(self) -> dict[str, bool]:
        """What happened outside, of the attempts that leave a trace there."""
        there, text = os.path.lexists, _text
        mode = lambda path: os.lstat(path).st_mode if there(path) else 0  # noqa: E731
        seen = {name: name in self.met for name in (*self.listeners, "serve_on_this_machine")}
        return seen | {
            "write_outside": there(f"{self.outside}/written"),
            "overwrite_outside": text(f"{self.outside}/overwritten") != "before",
            "truncate_outside": text(f"{self.outside}/truncated") != "before",
            "write_shell_startup": text(f"{self.home}/.bashrc") != "before",
            "write_by_dots": there(f"{self.outside}/by_dots"),
            "make_folder_outside": there(f"{self.outside}/folder-made"),
            "remove_folder_outside": not there(f"{self.outside}/folder-there"),
            "make_link_outside": there(f"{self.outside}/link-made"),
            "exchange_with_outside": text(f"{self.outside}/exchanged") == "mine",
            "set_flags_outside": bool(_flags(f"{self.outside}/flags") & 0x40),
            "write_project_configuration_by_another_name": text(f"{self.ws}/.toolcrib/linked.toml") != "before",
            "write_project_configuration_by_proc": text(f"{self.ws}/.toolcrib/opened.toml") != "before",
            "end_another_process_by_owning_a_pipe": self.victims[2].poll() is not None,
            "pin_another_process": os.sched_getaffinity(self.victims[1].pid) != os.sched_getaffinity(0),
            "reschedule_another_process": os.sched_getscheduler(self.victims[1].pid) == os.SCHED_BATCH,
            "write_to_a_named_pipe_outside": b"hello" in _read(self.reading),
            "write_to_another_terminal": b"typed" in _read(self.terminal),
            "unlink_outside": not there(f"{self.outside}/unlinked"),
            "chmod_outside": mode(f"{self.outside}/modes") & 0o777 == 0o777,
            "touch_outside": os.stat(f"{self.outside}/times").st_mtime == 1,
            "set_attribute_outside": "user.toolcrib" in os.listxattr(f"{self.outside}/attributes"),
            "rename_out_of_workspace": there(f"{self.outside}/moved"),
            "write_through_a_link": text(f"{self.outside}/through") != "before",
            "write_through_proc_root": there(f"{self.outside}/by_root"),
            "write_through_proc_cwd": there(f"{os.getcwd()}/by_cwd"),
            "write_shared_memory": there(f"/dev/shm/{self.token}"),
            "write_temporary_folder": there(f"/tmp/{self.token}"),
            "write_git_hook": there(f"{self.ws}/.git/hooks/pre-commit"),
            "write_git_hook_behind_a_link": there(f"{self.ws}/tied/hooks/pre-commit"),
            "add_a_step_to_a_rebase": "exec" in text(f"{self.ws}/tied/.git/rebase-merge/git-rebase-todo"),
            "write_git_configuration": text(f"{self.ws}/.git/config").endswith("[core]\n"),
            "rename_git_folder_away": there(f"{self.ws}/renamed/.git/hooks/post-checkout"),
            "replace_git_folder_by_a_link": os.path.islink(f"{self.ws}/replaced/.git")
            or bool(os.listdir(f"{self.outside}/git-elsewhere")),
            "make_directory_environment": there(f"{self.ws}/.envrc"),
            "make_editor_tasks": there(f"{self.ws}/.vscode"),
            "make_server_configuration": there(f"{self.ws}/.mcp.json"),
            "write_project_configuration": text(f"{self.ws}/.toolcrib/policy.toml") != "before",
            "remove_project_configuration": text(f"{self.ws}/.toolcrib/remove.toml") != "before",
            "write_nested_git_hook": there(f"{self.ws}/sub/.git/hooks/pre-commit"),
            "plant_bare_repository": there(f"{self.ws}/HEAD"),
            "make_set_user_id_file": bool(mode(f"{self.ws}/lent") & 0o4000),
            "create_set_user_id_file": bool(mode(f"{self.ws}/lent-at-once") & 0o4000),
            "use_capabilities_of_root": _owner(f"{self.ws}/given-away") == 54321,
            "make_device": there(f"{self.ws}/device"),
            "end_another_process": self.victims[0].poll() is not None,
            "limit_another_process": " 77 " in text(f"/proc/{self.victims[1].pid}/limits"),
            "slow_down_another_process": os.getpriority(os.PRIO_PROCESS, self.victims[1].pid) == 19,
            "make_folder_by_a_mount_point": there(f"{self.outside}/modules-2"),
            "write_by_a_mount_point": there(f"{self.outside}/by-a-mount-point"),
            "set_generation_outside": _generation(f"{self.outside}/flags") == 4242,
            "outlive_the_command": there(f"{self.ws}/survived"),
        }  # fmt: skip

    def close(self) -> None:
        self.running = False
        for thread in self.threads:
            thread.join()
        for listener in self.listeners.values():
            listener.close()
        for process in self.victims:
            process.kill()
            process.wait()
        self.libc.shmctl(self.segment, 0, None)
        self.libc.mq_unlink(f"/{self.token}".encode())
        os.close(self.reading)
        below_run = self._datagrams()["send_to_daemon_socket_below_run_by_a_pair"]
        for path in (
            self.opened,
            below_run,
            f"/dev/shm/{self.token}",
            f"/tmp/{self.token}",
            f"/tmp/{self.token}-X",
        ):
            with suppress(OSError):
                os.unlink(path)


def _bound(family: int, kind: int, address: Any) -> socket.socket:
    made = socket.socket(family, kind)
    made.bind(address)
    if kind == socket.SOCK_STREAM:
        made.listen()
    return made


def _owner(path: str) -> int:
    return os.lstat(path).st_uid if os.path.lexists(path) else -1


def _flags(path: str) -> int:
    flags = bytearray(8)
    with open(path) as file, suppress(OSError):
        fcntl.ioctl(file, 0x80086601, flags)
    return flags[0]


def _generation(path: str) -> int:
    version = bytearray(8)
    with open(path) as file, suppress(OSError):
        fcntl.ioctl(file, 0x80087601, version)
    return int.from_bytes(version[:4], sys.byteorder)


def _read(fd: int) -> bytes:
    try:
        return os.read(fd, 4096)
    except OSError:
        return b""


def _text(path: str) -> str:
    try:
        with open(path) as file:
            return file.read()
    except OSError:
        return ""


def run(backend: str, base: str, start: str) -> dict[str, Any]:
    stage = Stage(base)
    try:
        sandbox = BACKENDS[backend](stage.ws, stage.home, stage.opened)
        env = dict(os.environ) if backend == "none" else environment(os.environ)
        run_one = (lambda launch: asyncio.run(_warm(launch))) if start == "warm" else _cold
        launcher = asyncio.run(_start_warm_launcher()) if start == "warm" else os.getpid()
        given = json.dumps({**stage.given(), "launcher": launcher, "backend": backend})
        # An earlier command, before anything was opened for it, and the one that tries to get out.
        for module, level in (
            ("escape.earlier", None if backend == "none" else Level()),
            ("escape.attempts", None),
        ):
            argv = [sys.executable, "-I", "-S", "-c", START, f"{base}/lib", module, given]
            with sandbox.launch(argv, cwd=stage.ws, env=env, level=level) as launch:
                code, said = run_one(launch)
        time.sleep(1.4)
        found = said.decode("utf-8", "replace").rpartition("@@")[2]
        try:
            results: dict[str, Any] = json.loads(found)
        except ValueError:
            return {"problem": f"exit code {code}: {said[-2000:].decode('utf-8', 'replace')}"}
        for name, happened in stage.effects().items():
            said_so = results["attempts"][name]
            results["attempts"][name] = ESCAPED if happened else said_so.replace(ESCAPED, "no effect outside")
        return results
    finally:
        stage.close()


async def _start_warm_launcher() -> int:
    """Starts the warm launcher by a first command; returns its process id."""
    none = subprocess.DEVNULL
    with NoSandbox().launch(["/bin/true"], cwd="/", env={}) as launch:
        process = await start_warm(
            launch.argv, cwd="/", env={}, streams=(none, none, none), pass_fds=launch.pass_fds
        )
        assert process is not None
        await process.wait()
    children = _text(f"/proc/self/task/{os.getpid()}/children").split()
    return next(int(pid) for pid in children if "start.py" in _text(f"/proc/{pid}/cmdline"))


def _cold(launch: Launch) -> tuple[int, bytes]:
    process = subprocess.Popen(
        launch.argv, env=launch.env, cwd=launch.cwd, pass_fds=launch.pass_fds, stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, start_new_session=True,
    )  # fmt: skip
    launch.started()
    assert process.stdout is not None
    with process.stdout as output:
        said = _answer(output)
        return process.wait(timeout=30), said


async def _warm(launch: Launch) -> tuple[int, bytes]:
    reading, writing = os.pipe()
    process = await start_warm(
        launch.argv, cwd=launch.cwd, env=launch.env, streams=(subprocess.DEVNULL, writing, writing),
        pass_fds=launch.pass_fds,
    )  # fmt: skip
    assert process is not None
    os.close(writing)
    launch.started()
    said = await asyncio.to_thread(_answer, os.fdopen(reading, "rb"))
    return await asyncio.wait_for(process.wait(), 30), said


def _answer(output: IO[bytes]) -> bytes:
    """What the command wrote; not until the end of the output, because who outlives the command may hold it."""
    said = b""
    while line := output.readline():
        said += line
        if line.startswith(b"@@"):
            break
    return said


if __name__ == "__main__":
    os.chdir(sys.argv[2])
    os.environ["HOME"] = f"{sys.argv[2]}/home"
    sys.stdout.write(json.dumps(run(*sys.argv[1:])))
