"""Puts back files of a workspace that a command must not change, where the sandbox cannot prevent the change.

Before a command their state is recorded; after it they are compared and restored, and what did not exist is removed.
While the command runs, its change takes effect. Another command may run on, and put a link into the place of a folder
at any moment: so no name is used but in an open folder that was reached without following a link.
"""

from __future__ import annotations

import os
import secrets
import stat
from collections.abc import Generator, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress

from toolcrib.command.sandbox.files.executed_files import PUT_BACK
from toolcrib.command.sandbox.files.paths import between, names_in, within, within_any
from toolcrib.command.sandbox.files.removal import give_rights, remove_tree_in, set_folder_mode
from toolcrib.command.sandbox.files.running_records import RunningRecords
from toolcrib.command.sandbox.interface import Launch
from toolcrib.dataclass import dataclass, replace
from toolcrib.folder_handles import NOFOLLOW, READ_FILE, READ_FOLDER, THROUGH_FOLDER

# Of a protected path, the bytes of a file and the number of files whose content is recorded. What is larger or comes
# later is compared by its stamp, and set aside if it changed.
MAX_FILE = 4 << 20
MAX_FILES = 2_000
MAX_NAMES = 20_000  # of a protected path; what comes later is left as it is
MAX_ASIDE = 5  # of a protected path, that are set aside one by one
LOOKED_INTO = os.R_OK | os.X_OK
USUAL_MODE = 0o755
NOT_RECORDED = "its content was not recorded"
NOT_REMOVED = "it cannot be removed"


@dataclass(frozen=True, slots=True)
class SavedFile:
    """The recorded state of a path. `data` is the content of a file or the target of a link; else None, and `stamp`
    changes with any change.
    """

    kind: int
    mode: int
    data: bytes | None
    stamp: tuple[int, int, int]


class ProtectedFiles:
    """The recorded state of several paths below a root, which lead through no link (`FileView` resolves them).

    `running` are the records of commands that run in the same folders.
    """

    def __init__(self, root: str, paths: Iterable[str], running: RunningRecords | None = None) -> None:
        self.root = root
        self.paths = tuple(dict.fromkeys(paths))
        self._running = RunningRecords() if running is None else running
        self._accepted: dict[str, SavedFile | None] = {}
        with self._running.lock:
            self.before = recorded(root, self.paths)
            shut = not os.access(root, LOOKED_INTO)
            for path in self.paths:
                if shut or _may_be_unseen(root, path) or _has_shut_folders(self.before.get(path, {})):
                    with _passable(root, path):
                        self.before[path] = _whole_tree(root, path)
            self._running.add(self)

    def restore(self, launch: Launch) -> None:
        """Restores what changed, and adds those paths to `launch.restored`.

        What cannot be written again, because the disk is full or it was not recorded, is set aside: nobody obeys it
        then.
        """
        with self._running.lock:
            self._restore(launch)

    def _restore(self, launch: Launch) -> None:
        now = recorded(self.root, self.paths)
        shut = not os.access(self.root, LOOKED_INTO)
        for path in self.paths:
            before, after = self._before(path, now.get(path, {})), now.get(path, {})
            if before == after and not (shut or _may_be_unseen(self.root, path)):
                continue
            for later in self._running.later_than(self):
                later._correct(path, before)
            try:
                self._put_back(path, before, launch)
            except OSError as problem:  # the other paths are put back all the same
                launch.not_restored.append(set_aside(self.root, path, problem.strerror or str(problem)))

    def accept(self, path: str, data: bytes | None) -> None:
        """Records what a tool has just written to a file (None: it removed it) as the state before the command."""
        if not self._may_put_back(path):
            return
        with suppress(OSError):
            mode = 0 if data is None else stat.S_IMODE(os.lstat(path).st_mode)
            self._accepted[path] = None if data is None else SavedFile(stat.S_IFREG, mode, data, (0, 0, 0))

    def _may_put_back(self, path: str) -> bool:
        """Whether a file is put back: it lies in a protected path, or has a name that is put back in every folder."""
        below = path.removeprefix(self.root) + "/"
        return within_any(path, self.paths) or any(f"/{name}/" in below for name in PUT_BACK)

    def _before(self, path: str, after: Mapping[str, SavedFile]) -> dict[str, SavedFile]:
        """The state that a path gets back: what was recorded, with the changes that were accepted since."""
        before = dict(self.before.get(path, {}))
        for name, state in self._accepted.items():
            if not within(name, path):
                continue
            if state is None:
                before.pop(name, None)
                continue
            before[name] = state
            for folder in (path, *between(path, name)) if name != path else ():
                made = SavedFile(stat.S_IFDIR, USUAL_MODE, None, (0, 0, 0))
                before.setdefault(folder, after.get(folder, made))
        return before

    def _correct(self, path: str, state: Mapping[str, SavedFile]) -> None:
        """Records `state`, to which an earlier command puts a path back, as what was there before this command, too."""
        for own in self.paths:
            if within(own, path):
                right = {name: saved for name, saved in state.items() if within(name, own)}
            elif within(path, own):
                right = {
                    name: saved for name, saved in self.before.get(own, {}).items() if not within(name, path)
                }
                right |= state
            else:
                continue
            self.before[own] = right

    def _put_back(self, path: str, before: Mapping[str, SavedFile], launch: Launch) -> None:
        with _passable(self.root, path):
            if not _without_links_above(self.root, path) and _whole_tree(self.root, path) == before:
                return
            if before:
                _real_folders(self.root, path)
            _give_rights_inside(self.root, path)
            failed = _remove_added(self.root, path, before) if len(before) < MAX_NAMES else {}
            after = dict(_tree(self.root, path))
            changed = [name for name, saved in sorted(before.items()) if after.get(name) != saved]
            # Folders get their modes when all is written in them.
            for do in (_restore, _restore_mode):
                for name in changed if do is _restore else reversed(changed):
                    if problem := do(self.root, name, before[name]):
                        failed[name] = problem
            if len(failed) > MAX_ASIDE:
                failed = {path: next(iter(failed.values()))}
            launch.not_restored += [set_aside(self.root, name, problem) for name, problem in failed.items()]
            if not failed:
                launch.restored.append(path)


def recorded(root: str, paths: Iterable[str]) -> dict[str, dict[str, SavedFile]]:
    """The state of those of the paths that exist, each with everything below it. Absolute, or relative to the root."""
    at_the_top = names_in(root)
    found: dict[str, dict[str, SavedFile]] = {}
    start = f"{root}/"
    for path in paths:
        below = path.removeprefix(start)
        there = below.partition("/")[0] in at_the_top or below.startswith("/")
        if there and (state := dict(_tree(root, os.path.join(root, below)))):
            found[path] = state
    return found


@contextmanager
def _opened(root: str, folder: str) -> Generator[int]:
    """Opens a folder below the root without following a link. Raises OSError."""
    inside = within(folder, root)
    fd = os.open(root if inside else folder, THROUGH_FOLDER & ~NOFOLLOW)
    try:
        for name in filter(None, folder[len(root) :].split("/") if inside else ()):
            below = os.open(name, THROUGH_FOLDER, dir_fd=fd)
            os.close(fd)
            fd = below
        yield fd
    finally:
        os.close(fd)


@contextmanager
def _place(root: str, path: str) -> Generator[tuple[int, str]]:
    """Opens the folder that a path lies in; gives its handle and the last name of the path."""
    folder, _, name = path.rpartition("/")
    with _opened(root, folder) as fd:
        yield fd, name


def _kind(fd: int, name: str) -> int:
    """The kind of what has a name in a folder; 0 for nothing."""
    try:
        return stat.S_IFMT(os.lstat(name, dir_fd=fd).st_mode)
    except OSError:
        return 0


def _may_be_unseen(root: str, path: str) -> bool:
    """Whether something may lie at the path, through a link that stands for one of its folders or in a shut folder."""
    for part in between(root, path):
        try:
            mode = os.lstat(part).st_mode
        except OSError:
            return False
        if stat.S_ISLNK(mode):
            return os.path.lexists(path)
        if stat.S_ISDIR(mode) and not os.access(part, LOOKED_INTO):
            return True
    return False


@contextmanager
def _passable(root: str, path: str) -> Generator[None]:
    """Gives the folders above a path the rights that a command may have taken from them, for as long as it is open."""
    modes: dict[str, int] = {}
    try:
        for part in (root, *between(root, path)):
            with suppress(OSError), _place(root, part) as (fd, name):
                _give_rights(fd, name, part, modes)
        yield
    finally:
        _set_modes(root, modes)


def _give_rights_inside(root: str, path: str) -> dict[str, int]:
    """Gives all folders in a path the rights to be listed and changed; returns the modes of those that lacked one."""
    modes: dict[str, int] = {}
    todo = [path]
    while todo:
        place = todo.pop()
        with suppress(OSError), _place(root, place) as (fd, name):
            if _kind(fd, name) == stat.S_IFDIR:
                _give_rights(fd, name, place, modes)
                todo += (f"{place}/{inner}" for inner in _names(fd, name))
    return modes


def _give_rights(fd: int, name: str, path: str, modes: dict[str, int]) -> None:
    """Gives a folder the rights to be listed and changed; notes its mode if it lacked one. Raises OSError."""
    mode = stat.S_IMODE(os.lstat(name, dir_fd=fd).st_mode)
    give_rights(fd, name)
    if mode & 0o700 != 0o700:
        modes[path] = mode


def _set_modes(root: str, modes: dict[str, int]) -> None:
    """Sets the modes of folders, inner ones first."""
    for path, mode in reversed(modes.items()):
        with suppress(OSError), _place(root, path) as (fd, name):
            set_folder_mode(fd, name, mode)


def _without_links_above(root: str, path: str) -> bool:
    """Removes a link that stands for a folder of the path. It led through none before the command."""
    found = False
    for part in between(root, path):
        with suppress(OSError), _place(root, part) as (fd, name):
            if _kind(fd, name) == stat.S_IFLNK:
                found = True
                os.unlink(name, dir_fd=fd)
    return found


def _real_folders(root: str, path: str) -> None:
    """Replaces whatever a command put in the place of a path's folders with folders."""
    for part in between(root, path):
        with _place(root, part) as (fd, name):
            if _kind(fd, name) not in (0, stat.S_IFDIR):
                os.unlink(name, dir_fd=fd)
            if not _kind(fd, name):
                os.mkdir(name, dir_fd=fd)


def _remove_added(root: str, path: str, before: Mapping[str, SavedFile]) -> dict[str, str]:
    """Removes what is in a path and was not there before, however much it is; returns {what is still there: why}."""
    failed: dict[str, str] = {}
    todo = [path]
    while todo:
        place = todo.pop()
        with suppress(OSError), _place(root, place) as (fd, name):
            if place in before:
                todo += (f"{place}/{inner}" for inner in _names(fd, name))
            elif not _remove(fd, name):
                failed[place] = NOT_REMOVED
    return failed


def _names(fd: int, name: str) -> list[str]:
    """The names in a folder that has a name in another; none where it is no folder or cannot be listed."""
    try:
        folder = os.open(name, READ_FOLDER, dir_fd=fd)
    except OSError:
        return []
    try:
        return os.listdir(folder)
    finally:
        os.close(folder)


def _has_shut_folders(state: Mapping[str, SavedFile]) -> bool:
    return any(stat.S_ISDIR(saved.kind) and saved.mode & 0o500 != 0o500 for saved in state.values())


def _whole_tree(root: str, path: str) -> dict[str, SavedFile]:
    """The state of a path, also of what lies in shut folders. They are opened for that, and then shut again."""
    state = dict(_tree(root, path))
    if not _has_shut_folders(state):
        return state
    modes = _give_rights_inside(root, path)
    try:
        state = dict(_tree(root, path))
    finally:
        _set_modes(root, modes)
    return {name: replace(saved, mode=modes.get(name, saved.mode)) for name, saved in state.items()}


def _tree(root: str, path: str) -> Iterator[tuple[str, SavedFile]]:
    todo: dict[str, list[str]] = {}  # names by their folders, so that each folder is opened once
    folder, _, name = path.rpartition("/")
    todo[folder] = [name]
    count = 0
    while todo and count < MAX_NAMES:
        folder = next(reversed(todo))
        names = todo.pop(folder)
        with suppress(OSError), _opened(root, folder) as fd:
            for name in names:
                count += 1
                if count > MAX_NAMES:
                    return
                saved = _saved(fd, name, content=count <= MAX_FILES)
                if saved is None:
                    continue
                yield f"{folder}/{name}", saved
                if stat.S_ISDIR(saved.kind) and (inner := sorted(_names(fd, name))):
                    todo[f"{folder}/{name}"] = inner


def _saved(folder: int, name: str, *, content: bool) -> SavedFile | None:
    try:
        status = os.lstat(name, dir_fd=folder)
    except OSError:
        return None
    kind, mode = stat.S_IFMT(status.st_mode), stat.S_IMODE(status.st_mode)
    data: bytes | None = None
    try:
        if stat.S_ISLNK(kind):
            data = os.fsencode(os.readlink(name, dir_fd=folder))
        elif stat.S_ISREG(kind) and status.st_size <= MAX_FILE and content:
            fd = os.open(name, READ_FILE, dir_fd=folder)
            with open(fd, "rb") as file:
                if stat.S_ISREG(os.fstat(fd).st_mode):
                    data = file.read(MAX_FILE)
    except OSError:
        pass
    stamped = data is None and not stat.S_ISDIR(kind)
    return SavedFile(
        kind, mode, data, (status.st_ino, status.st_size, status.st_ctime_ns) if stamped else (0, 0, 0)
    )


def _remove(fd: int, name: str) -> bool:
    """Removes a name in a folder, and says whether it is gone."""
    try:
        if _kind(fd, name) == stat.S_IFDIR:
            remove_tree_in(fd, name)
        else:
            os.unlink(name, dir_fd=fd)
    except OSError:
        pass
    return not _kind(fd, name)


def _restore(root: str, path: str, saved: SavedFile) -> str:
    """Restores a path: writes a new file beside it and renames that, so that no link of a command is followed.

    A folder is only made. Returns why that failed, or "".
    """
    try:
        with _place(root, path) as (fd, name):
            if stat.S_ISDIR(saved.kind):
                if _kind(fd, name) != stat.S_IFDIR:
                    _remove(fd, name)
                    os.mkdir(name, dir_fd=fd)
            elif saved.data is None:
                return NOT_RECORDED
            else:
                _restore_file(fd, name, saved, saved.data)
    except OSError as problem:
        return problem.strerror or str(problem)
    return ""


def _restore_mode(root: str, path: str, saved: SavedFile) -> str:
    """Restores the mode of a folder; a file has it already. Returns why that failed, or ""."""
    try:
        if stat.S_ISDIR(saved.kind):
            with _place(root, path) as (fd, name):
                set_folder_mode(fd, name, saved.mode)
    except OSError as problem:
        return problem.strerror or str(problem)
    return ""


def _restore_file(fd: int, name: str, saved: SavedFile, data: bytes) -> None:
    if _kind(fd, name) == stat.S_IFDIR:
        _remove(fd, name)
    beside = f"{name}.toolcrib-{secrets.token_hex(8)}"
    try:
        if stat.S_ISLNK(saved.kind):
            os.symlink(os.fsdecode(data), beside, dir_fd=fd)
        else:
            new = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, saved.mode, dir_fd=fd)
            with open(new, "wb") as file:
                file.write(data)
                file.flush()
                os.fchmod(new, saved.mode)
        os.replace(beside, name, src_dir_fd=fd, dst_dir_fd=fd)
    except OSError:
        _remove(fd, beside)
        raise


def set_aside(root: str, path: str, problem: str) -> str:
    """Renames a changed path that could not be restored; returns a sentence about it."""
    aside = f"{path}.disabled-{secrets.token_hex(4)}"
    words = f"{path} may not be changed by commands, and could not be put back ({problem})"
    try:
        with _place(root, path) as (fd, name):
            os.rename(name, aside.rpartition("/")[2], src_dir_fd=fd, dst_dir_fd=fd)
    except FileNotFoundError:
        return f"{words}: it is gone."
    except OSError:
        return f"{words}: CHECK IT before you use it."
    return f"{words}: what is left of it is {aside}."
