# ruff: noqa: PTH102, PTH110, PTH101, PTH103, PTH104, PTH106, PTH108, PTH112, PTH116, PTH208, PTH211 - paths are text and descriptors here
"""Attempts on files: outside the workspace, secrets, and files in it that others obey."""

from __future__ import annotations

import ctypes
import errno
import fcntl
import os
import struct
import subprocess

from .trying import (
    GIVEN,
    HOME,
    OUT,
    PARENT,
    WS,
    attempt,
    call,
    holds,
    libc,
    read,
    write,
)

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
def set_generation_outside() -> None:
    fd = os.open(OUT + "/flags", os.O_RDONLY)
    fcntl.ioctl(fd, 0x40087602, struct.pack("=q", 4242))


@attempt
def make_folder_by_a_mount_point() -> None:
    """`earlier` put a link into the place of a folder of a cache in which a mount point is made."""
    os.mkdir(HOME + "/.gradle/read-only/modules-2")


@attempt
def write_by_a_mount_point() -> None:
    """`earlier` put a link into the place of a temporary file on which an opened file is mounted."""
    write(GIVEN["opened"])


@attempt
def read_token_in_a_folder_that_was_shut() -> None:
    """`earlier` took the rights from a folder of a toolchain, so that its secrets could not be looked for."""
    os.chmod(HOME + "/.conda", 0o700)
    holds(HOME + "/.conda/aau_token", GIVEN["secret"])


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
def read_token_in_settings_of_git() -> None:
    holds(HOME + "/.gitconfig", GIVEN["secret"])


@attempt
def read_credentials_of_a_package_manager() -> None:
    holds(HOME + "/.local/share/uv/credentials/credentials.toml", GIVEN["secret"])


@attempt
def write_git_hook_behind_a_link() -> None:
    write(WS + "/tied/hooks/pre-commit")


@attempt
def add_a_step_to_a_rebase() -> None:
    os.makedirs(WS + "/tied/.git/rebase-merge")
    write(WS + "/tied/.git/rebase-merge/git-rebase-todo", "exec ./program\n")


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
