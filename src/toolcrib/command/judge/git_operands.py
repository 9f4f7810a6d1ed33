"""The paths in an operand of git: a path, a pattern of paths, or a path in a revision or in the index.

git reads patterns itself, and takes `*` for slashes too. A path in a revision begins at the top of the repository.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from toolcrib.command.not_proved import NotProved

# Leaves out what it names, so that git takes all else.
EXCLUDES = re.compile(r":(?:[!^]|\((?:[a-z]+,)*exclude(?:,[a-z]+)*\))")
STAGE = re.compile(r":(?:[0-3]:)?")
MAGIC = re.compile(r":(?![0-3]:|[A-Za-z0-9_.])")
SIGNS = re.compile(r"[*?\[\\]")
RANGE = re.compile(r"\.\.\.?")


class GitPath(NamedTuple):
    """A path that git may read. For a pattern, `path` is the folder below which git looks for matches."""

    path: str
    in_tree: bool = (
        False  # whether git looks for it from the top of the repository, not only from its own folder
    )
    is_pattern: bool = False


def git_paths(text: str) -> list[GitPath]:
    """The paths that git may read an operand as. Raises NotProved for signs that change what a path means.

    >>> [one.path for one in git_paths("HEAD:a.txt")], git_paths("src/*.py")[0].path, git_paths(":0:id_rsa")[0].in_tree
    (['a.txt'], 'src', True)
    """
    if EXCLUDES.match(text):
        return [GitPath(".", is_pattern=True)]
    if MAGIC.match(text):
        raise NotProved(f"git: a path with signs that change what it means ({text})")
    if text.startswith(":"):
        return [_path(STAGE.sub("", text, count=1), in_tree=True)]
    if text.startswith(("/", "./")) or ":" not in text:
        return [_path(text)]
    # HEAD^{/fix: it}:a.txt and HEAD:a.txt..HEAD:b.txt: any colon may be the one before a path.
    pieces = [text, *RANGE.split(text)]
    after = dict.fromkeys(piece[at + 1 :] for piece in pieces for at, sign in enumerate(piece) if sign == ":")
    return [_path(one, in_tree=True) for one in after]


def _path(text: str, *, in_tree: bool = False) -> GitPath:
    if (sign := SIGNS.search(text)) is None:
        return GitPath(text or ".", in_tree)
    folder = text[: sign.start()].rpartition("/")[0]
    return GitPath(folder or ("/" if text.startswith("/") else "."), in_tree, is_pattern=True)
