"""The skills in folders, read anew only where their files changed, or as their files were when they were trusted."""

from __future__ import annotations

import os
import posixpath
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from pathlib import Path

from toolcrib.dataclass import dataclass
from toolcrib.errors import ToolError
from toolcrib.tools.skills.manifest import SkillError, SkillText, read_manifest
from toolcrib.tools.text_encoding import decode, detect

MANIFEST = "SKILL.md"
MAX_BYTES = 100_000  # of a SKILL.md, or of another file of a skill
MAX_SKILLS = 200
MAX_FILES = 100  # files that are listed of one skill
MAX_DEPTH = 4


@dataclass(frozen=True, slots=True)
class SkillFiles:
    """The files of a folder of skills, or of one skill, by their paths in it. Later changes on disk do not count."""

    folder: Path
    files: Mapping[str, bytes]

    @property
    def path(self) -> str:
        return str(self.folder)

    def read(self, file: str) -> bytes:
        folder = self.folder.as_posix()  # the paths of `files` have slashes on every system
        data = self.files.get(posixpath.relpath(posixpath.join(folder, Path(file).as_posix()), folder))
        if data is None:
            raise ToolError(f"There is no file {file}.")
        return data

    def listed(self) -> list[str]:
        return sorted(self.files)

    def skills(self) -> Iterator[tuple[Path, Skill | SkillError]]:
        """The skills in its subfolders, and what is wrong with those that cannot be used."""
        by_name: dict[str, dict[str, bytes]] = {}
        for path, data in sorted(self.files.items()):
            name, _, inside = path.partition("/")
            by_name.setdefault(name, {})[inside] = data
        for name, files in by_name.items():
            if MANIFEST in files:
                folder = self.folder / name
                yield folder, _read_skill(folder, partial(SkillFiles, folder, files))


class SkillOnDisk:
    """The folder of a skill, read whenever it is asked for."""

    def __init__(self, folder: Path) -> None:
        from toolcrib.tools.workspace import Workspace

        self._root = Workspace(folder)

    @property
    def path(self) -> str:
        return self._root.root.path

    def read(self, file: str) -> bytes:
        return self._root.read(file, MAX_BYTES)

    def listed(self) -> list[str]:
        found: list[str] = []
        for folder in self._root.walk(
            ".", lambda path: path.count("/") < MAX_DEPTH, skip=(".git", "__pycache__")
        ):
            inside = "" if folder.path == "." else f"{folder.path}/"
            found += [f"{inside}{entry.name}" for entry in folder.entries if entry.kind == "file"]
            if len(found) > MAX_FILES:
                break
        return sorted(found)


@dataclass(frozen=True, slots=True)
class Skill:
    """A skill: what its SKILL.md says, and the folder that it is in."""

    text: SkillText
    place: SkillFiles | SkillOnDisk

    @property
    def path(self) -> str:
        """The folder on this machine, for commands."""
        return self.place.path

    def read(self, file: str) -> str:
        """The text of a file of the skill. Raises ToolError."""
        data = self.place.read(file)
        encoding = detect(data)
        if encoding is None:
            raise ToolError(f"{file} is not a text file.")
        return decode(file, data, encoding)

    def files(self) -> list[str]:
        """The other files of the skill, relative to its folder."""
        return [path for path in self.place.listed() if path != MANIFEST][:MAX_FILES]


class SkillFolders:
    """The skills in the subfolders of folders. Of two with one name, that of the earlier folder counts.

    A folder that does not exist has no skills; it may come to exist. Links are not followed out of a skill. A folder
    that is given as `SkillFiles` keeps its skills as they are.
    """

    def __init__(self, folders: Iterable[str | os.PathLike[str] | SkillFiles]) -> None:
        self.folders = tuple(
            tuple(folder.skills()) if isinstance(folder, SkillFiles) else Path(folder).expanduser().absolute()
            for folder in folders
        )
        self._known: dict[Path, tuple[tuple[int, int, int], Skill | SkillError]] = {}

    def load(self) -> tuple[dict[str, Skill], list[str]]:
        """The skills by name, sorted, and what is wrong with those that cannot be used."""
        skills: dict[str, Skill] = {}
        problems: list[str] = []
        for top in self.folders:
            for folder, found in self._on_disk(top) if isinstance(top, Path) else top:
                if isinstance(found, SkillError):
                    problems.append(f"skill {folder} was left out: {found}")
                elif found.text.name not in skills:
                    skills[found.text.name] = found
        return {name: skills[name] for name in sorted(skills)}, problems

    def _on_disk(self, top: Path) -> Iterator[tuple[Path, Skill | SkillError]]:
        for folder in _subfolders(top)[:MAX_SKILLS]:
            try:
                status = (folder / MANIFEST).lstat()
            except OSError:
                continue
            state = (status.st_mtime_ns, status.st_size, status.st_ino)
            if folder not in self._known or self._known[folder][0] != state:
                self._known[folder] = (state, _read_skill(folder, partial(SkillOnDisk, folder)))
            yield folder, self._known[folder][1]


def _read_skill(folder: Path, open_place: Callable[[], SkillFiles | SkillOnDisk]) -> Skill | SkillError:
    """The skill in a folder, or what is wrong with it."""
    try:
        place = open_place()
        text = read_manifest(place.read(MANIFEST).decode())
    except SkillError as problem:
        return problem
    except UnicodeDecodeError:
        return SkillError(f"{MANIFEST} is not UTF-8 text")
    except (ToolError, OSError) as problem:
        return SkillError(str(problem))
    if text.name != folder.name:
        return SkillError(f"its name is {text.name!r}, which must be the name of its folder")
    return Skill(text, place)


def _subfolders(top: Path) -> list[Path]:
    try:
        with os.scandir(top) as entries:
            return sorted(Path(entry.path) for entry in entries if entry.is_dir(follow_symlinks=False))
    except OSError:
        return []
