"""Judges a command again when its patterns and listings have become words, before it is started.

The names that a pattern matches were chosen by whoever wrote the files. So a proved command is judged again with them:
it must have the same row of the tables, no further option, and no path other than those that were judged.
"""

from __future__ import annotations

import posixpath
from collections.abc import Iterator, Sequence

from toolcrib.access import Access, Permits, Reach
from toolcrib.command.judge import paths
from toolcrib.command.judge.git_filters import git_folder
from toolcrib.command.judge.git_operands import git_paths
from toolcrib.command.judge.links import Links
from toolcrib.command.judge.recognise import Recognised, recognise
from toolcrib.command.not_proved import NotProved
from toolcrib.command.plan import Word


def objection_to_expanded(
    written: Sequence[Word], argv: Sequence[str], names: Sequence[str], root: str
) -> str | None:
    """Why a command must not run with the words that it became, or None.

    `names` are those of them that were unknown when the command was judged; `root` is the workspace's absolute path.
    """
    proved = _recognised(written)
    if proved is not None and proved.usage.inert:
        return None
    for name in names:
        if name.startswith("-"):
            return f"{argv[0]}: not run, because {name} would be read as an option"
    if proved is None:  # a person said yes to it, or it is one of xargs and find, which check their own names
        return objection_to_names(argv[0], names, root, contents=True)
    became = _recognised([Word((text,) if text else ()) for text in argv])
    if became is None or became.name != proved.name or became.usage != proved.usage:
        return f"{argv[0]}: not run, because a name that a pattern matched would change what it does"
    if (wrong := objection_to_names(argv[0], names, root, contents=proved.usage.contents)) is not None:
        return wrong
    before = {(touched.path, touched.access) for touched in proved.operands}
    may = {touched.access for touched in proved.operands}
    known = {path for name in names for path in _readings(name)}
    for path, access, _, contents, *_ in became.operands:
        stands_for = (path, access) in before or (path in known and access in may)
        wrong = paths.objection(paths.relative(path, root), contents=contents)
        if not stands_for or (wrong is not None and path in known):
            return (
                f"{argv[0]}: not run, because {wrong or f'it would use {path}, which was not judged before'}"
            )
    return None


def objection_to_printed(written: Sequence[Word], argv: Sequence[str]) -> str | None:
    """Why a command must not run with words that other commands printed, or None. A printed value of an option may look
    like another option."""
    proved = _recognised(written)
    if proved is None or proved.usage.inert:
        return None
    became = _recognised([Word((text,) if text else ()) for text in argv])
    if became is None or became.name != proved.name or became.usage != proved.usage:
        return f"{argv[0]}: not run, because what a command printed would change what it does"
    return None


def objection_to_listed(written: Sequence[Word], names: Sequence[str], folder: str) -> str | None:
    """Why a command must not be given names that a listing printed, or None. `folder`: where it runs, as absolute path.

    The judgement was that it reads files below that folder. So an absolute name has to lie there, too.
    """
    if (proved := _recognised(written)) is None or proved.usage.inert:
        return None
    below = posixpath.join(folder, proved.folder)
    for path in (path for name in names for path in _readings(name)):
        if path.startswith("/") and paths.relative(path, below) == path:
            name = written[0].spelled
            return f"{name}: not run, because {path} is outside of the folder that it runs in: write that path itself"
    return None


def objection_of_rules(argv: Sequence[str], folder: str, root: str, permits: Permits | None) -> str | None:
    """Why rules do not allow a command the paths that were only known when it ran, or None.

    `folder` is where it runs and `root` the workspace, as absolute paths. `permits` says whether rules allow an access
    without asking. The sandbox hides files that rules deny. It does not hide what git has stored of them, so for git a
    folder counts with all that lies below it.
    """
    known = None if permits is None else _recognised([Word((text,) if text else ()) for text in argv])
    if permits is None or known is None:
        return None  # there are no rules, or a person said yes to whatever the command is given
    of_git = known.name.startswith("git ")
    for path in (paths.relative(place, root) for place in _places(known, folder)):
        if not permits(Access(Reach.READ, path, subtree=of_git)):
            return f"{argv[0]}: not run, because rules do not allow it to read {path} unasked"
    return None


def _places(known: Recognised, folder: str) -> Iterator[str]:
    """The absolute paths that a command names. Git may mean one in the folder or at the top of the repository: both."""
    for one in known.operands:
        yield posixpath.normpath(posixpath.join(folder, one.path))
        if one.in_tree and (found := git_folder(posixpath.join(folder, known.folder))) is not None:
            yield posixpath.normpath(posixpath.join(found[0], one.in_tree))


def objection_to_links(argv: Sequence[str], links: Links) -> str | None:
    """Why a command that runs unasked must not be started, because of where its operands lead by now, or None."""
    known = _recognised([Word((text,) if text else ()) for text in argv])
    if known is None or not known.usage.runs_unasked:
        return None
    for touched in known.operands:
        if touched.opens:
            for _, wrong in links.objections(touched.path, contents=touched.contents):
                return f"{argv[0]}: not run, because {wrong}"
    return None


def _recognised(words: Sequence[Word]) -> Recognised | None:
    try:
        return recognise(list(words))
    except NotProved:
        return None


def objection_to_names(program: str, names: Sequence[str], root: str, *, contents: bool) -> str | None:
    """What is wrong with names, each taken for a path and for a path in a revision (`HEAD:path`)."""
    for name in names:
        for path in _readings(name):
            if (wrong := paths.objection(paths.relative(path, root), contents=contents)) is not None:
                return f"{program}: not run, because {wrong}"
    return None


def _readings(name: str) -> list[str]:
    """The paths that a name may stand for: itself, and what git would take it for.

    Where that cannot be told, the row of the git command refuses the name.
    """
    try:
        return [name, *(one.path for one in git_paths(name))]
    except NotProved:
        return [name]
