"""The skills in folders, read anew only where their files changed."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from toolcrib.dataclass import dataclass
from toolcrib.errors import ToolError
from toolcrib.tools.skills.manifest import SkillError, SkillText, read_manifest
from toolcrib.tools.textfile import decode, detect

if TYPE_CHECKING:
    from toolcrib.tools.workspace import Workspace

MANIFEST = "SKILL.md"
MAX_BYTES = 100_000  # of a SKILL.md, or of another file of a skill
MAX_SKILLS = 200
MAX_FILES = 100  # that are listed of one skill
MAX_DEPTH = 4


@dataclass(frozen=True, slots=True)
class Skill:
    """A skill: what its SKILL.md says, and the folder that it is in."""

    text: SkillText
    root: Workspace

    @property
    def path(self) -> str:
        """The folder on this machine, for commands."""
        return self.root.root.path

    def read(self, file: str) -> str:
        """The text of a file of the skill. Raises ToolError."""
        data = self.root.read(file, MAX_BYTES)
        encoding = detect(data)
        if encoding is None:
            raise ToolError(f"{file} is not a text file.")
        return decode(file, data, encoding)

    def files(self) -> list[str]:
        """The other files of the skill, relative to its folder."""
        found: list[str] = []
        for folder in self.root.walk(
            ".", lambda path: path.count("/") < MAX_DEPTH, skip=(".git", "__pycache__")
        ):
            inside = "" if folder.path == "." else f"{folder.path}/"
            found += [f"{inside}{entry.name}" for entry in folder.entries if entry.kind == "file"]
            if len(found) > MAX_FILES:
                break
        return [path for path in sorted(found) if path != MANIFEST][:MAX_FILES]


class SkillFolders:
    """The skills in the subfolders of folders. Of two with one name, that of the earlier folder counts.

    A folder that does not exist has no skills; it may come to exist. Links are not followed out of a skill.
    """

    def __init__(self, folders: Iterable[str | os.PathLike[str]]) -> None:
        self.folders = tuple(Path(folder).expanduser().absolute() for folder in folders)
        self._known: dict[Path, tuple[tuple[int, int, int], Skill | SkillError]] = {}

    def load(self) -> tuple[dict[str, Skill], list[str]]:
        """The skills by name, sorted, and what is wrong with those that cannot be used."""
        skills: dict[str, Skill] = {}
        problems: list[str] = []
        for top in self.folders:
            for folder in _subfolders(top)[:MAX_SKILLS]:
                found = self._skill(folder)
                if isinstance(found, SkillError):
                    problems.append(f"skill {folder} was left out: {found}")
                elif found is not None and found.text.name not in skills:
                    skills[found.text.name] = found
        return {name: skills[name] for name in sorted(skills)}, problems

    def _skill(self, folder: Path) -> Skill | SkillError | None:
        from toolcrib.tools.workspace import Workspace

        try:
            status = (folder / MANIFEST).lstat()
        except OSError:
            return None
        state = (status.st_mtime_ns, status.st_size, status.st_ino)
        if folder in self._known and self._known[folder][0] == state:
            return self._known[folder][1]
        made: Skill | SkillError
        try:
            root = Workspace(folder)
            data = root.read(MANIFEST, MAX_BYTES)
            text = read_manifest(data.decode())
            made = Skill(text, root)
            if text.name != folder.name:
                made = SkillError(f"its name is {text.name!r}, which must be the name of its folder")
        except SkillError as problem:
            made = problem
        except UnicodeDecodeError:
            made = SkillError(f"{MANIFEST} is not UTF-8 text")
        except (ToolError, OSError) as problem:
            made = SkillError(str(problem))
        self._known[folder] = (state, made)
        return made


def _subfolders(top: Path) -> list[Path]:
    try:
        with os.scandir(top) as entries:
            return sorted(Path(entry.path) for entry in entries if entry.is_dir(follow_symlinks=False))
    except OSError:
        return []
