"""The files whose code a command runs: an answer to a question holds for their contents, as it does for a diff."""

from __future__ import annotations

import hashlib
import os
import posixpath
import re
import stat
from collections.abc import Iterable, Mapping

from toolcrib.access import Access, Reach
from toolcrib.command.judge.find_commands import UNKNOWN, find_commands
from toolcrib.command.programs.traits import traits_of
from toolcrib.dataclass import dataclass, replace
from toolcrib.folder_handles import CLOEXEC, NONBLOCK
from toolcrib.visible import spelled_out

__all__ = ["CodeFile", "digest_of", "files_of_code", "places_of_code", "shown_code", "with_code"]

MAX_FILES = 50
MAX_WORDS = 500
MAX_SHOWN = 3  # files
MAX_BYTES = 1 << 24  # of one file
SHOWN_LINES = 40
SHOWN_CHARACTERS = 4_000
SHOWN_BYTES = 4 * SHOWN_CHARACTERS + 4
# What these run stands in a file that their arguments do not name.
IMPLIED = {
    "make": ("GNUmakefile", "makefile", "Makefile"), "gmake": ("GNUmakefile", "makefile", "Makefile"),
    **dict.fromkeys(("npm", "pnpm", "yarn", "bun"), ("package.json",)), "just": ("justfile", ".justfile", "Justfile"),
    "tox": ("tox.ini",), "nox": ("noxfile.py",), "invoke": ("tasks.py",), "inv": ("tasks.py",), "rake": ("Rakefile",),
    "task": ("Taskfile.yml", "Taskfile.yaml"),
}  # fmt: skip
WORDS = re.compile(r"[\s;|&()<>{}\"'`=,$]+")


@dataclass(frozen=True, slots=True)
class CodeFile:
    """A file whose code a command runs: what it begins with, and a digest of all of it."""

    begins: bytes
    digest: str


def files_of_code(command: str, folder: str) -> dict[str, CodeFile]:
    """{path: file} of the files that a command names, if it runs code that stands in files; else {}.

    `folder` is where the command starts.
    """
    found: dict[str, CodeFile] = {}
    for place in places_of_code(command, folder):
        if len(found) < MAX_FILES and (data := _contents(place)) is not None:
            found[posixpath.relpath(place, folder)] = CodeFile(
                data[:SHOWN_BYTES], hashlib.sha256(data).hexdigest()
            )
    return found


def places_of_code(command: str, folder: str) -> list[str]:
    """The paths that a command names, if it runs code that stands in files; else none.

    Which of its words is the script is not always known (`$SHELL run.sh`, `cat run.sh | sh`), so that each counts.
    """
    words: list[str] = []
    folders = [folder]
    of_text = WORDS.split(command, MAX_WORDS)
    for argv in (one.argv for one in find_commands(command) if one.argv):
        name = argv[0].rpartition("/")[2]
        if name in ("cd", "pushd") and len(argv) > 1 and UNKNOWN not in argv[-1]:
            folders.append(posixpath.normpath(posixpath.join(folders[-1], argv[-1])))
        traits = traits_of(name)
        if UNKNOWN in argv[0] or "/" in argv[0] or traits.runs or traits.as_its_command:
            words += of_text
            of_text = []
        words += IMPLIED.get(name, ())
    return list(
        dict.fromkeys(posixpath.join(at, word) for word in words[:MAX_WORDS] if word for at in folders)
    )


def digest_of(files: Mapping[str, CodeFile]) -> str:
    """One text for the contents of all files; "" for none."""
    whole = hashlib.sha256()
    for path, file in sorted(files.items()):
        whole.update(f"{path}\0{file.digest}\n".encode("utf-8", "surrogatepass"))
    return whole.hexdigest() if files else ""


def with_code(accesses: Iterable[Access], files: Mapping[str, CodeFile]) -> tuple[Access, ...]:
    """The accesses, of which each command holds a digest of the files whose code would run."""
    code = digest_of(files)
    return tuple(
        replace(access, code=code) if code and access.reach is Reach.RUN and not access.hint else access
        for access in accesses
    )


def shown_code(files: Mapping[str, CodeFile]) -> list[str]:
    """Lines for a person: the beginning of each file that is text."""
    lines: list[str] = []
    for path, file in list(files.items())[:MAX_SHOWN]:
        text = file.begins.decode("utf-8", "replace")
        if "\0" in text:
            continue
        shown = text[:SHOWN_CHARACTERS].split("\n")[:SHOWN_LINES]
        cut = "" if len("\n".join(shown)) >= len(text.rstrip("\n")) else f" (the first {len(shown)} lines)"
        lines += [f"{spelled_out(path)} holds{cut}:", *(f"  | {spelled_out(line)}" for line in shown)]
    return lines


def _contents(path: str) -> bytes | None:
    """What is in a regular file; None for anything else."""
    try:
        fd = os.open(path, os.O_RDONLY | CLOEXEC | NONBLOCK)
    except (OSError, ValueError):
        return None
    try:
        if not stat.S_ISREG(os.fstat(fd).st_mode):
            return None
        with open(fd, "rb", closefd=False) as file:
            return file.read(MAX_BYTES)
    except OSError:
        return None
    finally:
        os.close(fd)
