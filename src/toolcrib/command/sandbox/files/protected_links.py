"""Where protected paths of a workspace lead through links: the links and what they lead to are protected as well.

The same holds for the files that links inside of a protected folder lead to, such as `.git/hooks/pre-commit`.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Iterable, Iterator

from toolcrib.command.sandbox.files.executed_files import PROTECTED, PUT_BACK
from toolcrib.command.sandbox.files.folder_walk import FolderListings
from toolcrib.command.sandbox.files.paths import between, names_in, within

MAX_STEPS = 400  # from name to name and from link to link
MAX_INSIDE = 1_000  # names in a protected folder that are looked at
BY_FIRST_NAME: dict[str, list[str]] = {}
for _path in (*PROTECTED, *PUT_BACK):
    BY_FIRST_NAME.setdefault(_path.partition("/")[0], []).append(_path)


def led_to_by_links(root: str) -> list[str]:
    """The links of a workspace that stand for files which other programs execute, and what they lead to in it."""
    links: dict[str, None] = {}
    named = [
        f"{root}/{path}" for name in BY_FIRST_NAME.keys() & names_in(root) for path in BY_FIRST_NAME[name]
    ]
    found = without_links(root, named, links)
    return [*links, *(path for path in found if path not in named)] if links else []


def without_links(
    root: str, paths: Iterable[str], links: dict[str, None], listings: FolderListings | None = None
) -> dict[str, None]:
    """Where paths of the workspace lead, as paths without links; adds the links on the way to `links`."""
    listings = listings or FolderListings()
    at_the_top = names_in(root)
    found: dict[str, None] = {}
    for path in paths:
        there = path[len(root) + 1 :].partition("/")[0] in at_the_top
        for place in _behind_links(root, path, links) if there else (path,):
            found[place] = None
            found |= dict.fromkeys(_files_led_to_from(root, place, links, listings) if there else ())
    return found


def entries_inside(folder: str) -> Iterator[os.DirEntry[str]]:
    """The entries below a protected folder, the outermost first; none for a file. Git's `objects` are left out."""
    todo = deque([folder])
    count = 0
    while todo:
        try:
            with os.scandir(todo.popleft()) as entries:
                for entry in entries:
                    count += 1
                    if count > MAX_INSIDE:
                        return
                    yield entry
                    if entry.name != "objects" and entry.is_dir(follow_symlinks=False):
                        todo.append(entry.path)
        except OSError:
            continue


def _links_inside(folder: str, listings: FolderListings) -> Iterator[str]:
    """The links in a protected folder, as `entries_inside` finds them."""
    todo = deque([folder])
    count = 0
    while todo and count <= MAX_INSIDE:
        try:
            listing = listings.of(todo.popleft())
        except OSError:
            continue
        count += listing.count
        yield from listing.links
        todo += (path for path in listing.folders if not path.endswith("/objects"))


def _files_led_to_from(
    root: str, folder: str, links: dict[str, None], listings: FolderListings
) -> Iterator[str]:
    """The files of the workspace that links in a protected folder lead to, or may lead to once they exist.

    A folder that such a link leads to is left as it is: it may be any part of the project.
    """
    for link in _links_inside(folder, listings):
        if not os.path.isdir(link):
            yield from _behind_links(root, link, links)


def _behind_links(root: str, path: str, links: dict[str, None]) -> list[str]:
    """Where one path leads; nothing, where that is outside of the workspace, or the workspace itself."""
    if not any(os.path.islink(part) for part in (*between(root, path), path)):
        return [path]
    at, todo = root, path[len(root) + 1 :].split("/")
    for _ in range(MAX_STEPS):
        if not todo:
            return [at] if within(at, root) and at != root else []
        name, *todo = todo
        at = os.path.dirname(at) if name == ".." else os.path.normpath(os.path.join(at, name))
        if os.path.islink(at):
            if within(at, root):
                links[at] = None
            leads = os.readlink(at)
            todo = [*leads.split("/"), *todo]
            at = "/" if leads.startswith("/") else os.path.dirname(at)
    return []
