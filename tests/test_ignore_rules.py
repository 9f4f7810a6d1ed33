"""Ignore files mean what git makes of them: each pattern is put to `git check-ignore`, and to a search."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from toolcrib.checkpoints import Checkpoints
from toolcrib.context import Context
from toolcrib.ignore_rules import MAX_LOOKED_AT, IgnoreRules, read_ignore_file
from toolcrib.tools import GlobFiles, GlobParams, Workspace

GIT = shutil.which("git")
needs_git = pytest.mark.skipif(
    GIT is None, reason="git is not installed: ignore rules are not compared with it"
)

PATHS = [
    "a", "b", "ab", "a b", "a ", "a.log", "b.log", "#a", "!a", "a]b", "é", "x.é", "-", "a-b", "[a", "a\\b", "A", "A.log",
    "a/b", "a/a", "a/b/c", "a/b/c/d.log", "b/a", "b/a/c", "b/x/a", "c/a/b", "doc/frotz/x", "doc/x", "build/out", "x/build/out",
    "foo/bar/baz", "foo/bar", "foo/x/bar", "foo/x/y/bar", "x/foo/bar", "foo/barx/y", "7", "x7", "x/7/y", "*", "?", "a*b", ".h", ".h/x",
]  # fmt: skip
LINES = [
    "a", "/a", "a/", "/a/", "a/b", "*/a", "**/a", "a/**", "a/**/b", "**", "/**", "**/", "**/a/**", "*", "*/", "/*", "!*/", "a*", "*a",
    "*.log", "!a.log", "!b.log", "/*.log", "a/*.log", "a/**/*.log", "#a", r"\#a", "!a", r"\!a", "a ", r"a\ ", "a  ", r"a\  ", "a\t",
    "a b", "[ab]", "[!a]", "[^a]", "[a-b]", "[b-a]", "[]-a]", "[!]a-]", "[a", "[[]a", "a[]]b", r"[\]]", "[[:digit:]]", "x[[:digit:]]",
    "[[:nope:]]", "[[:alpha:]-z]*", "?", "a?b", "é", "?.é", "x.?", "x.??", "[é]", r"\a", "a\\", r"a\\b", "a**b", "f**/bar", "foo/**bar",
    "foo/**/bar", "foo/**/**/bar", "foo**bar", "//a", "a//b", "a//", "./a", "../a", "/", "!", " a", "build", "/build", "build/", "!build/",
    "foo/*", "!foo/bar", "foo/b*/", r"\*", r"\?", r"a\*b", "[*]", "doc/frotz/", "**/foo/bar", "a\r", "\ufeffa", "a\x0bb", ".*", "!.h",
    "[a-", "[a-]", "[--a]", "[+--]", "[^-]", "[a/]b", "a[/]b", "a?b", "foo[/]bar", "[[:upper:]]*", "[!/]*", "**a", "a**", "**/**", "x/**/y/",
]  # fmt: skip


@pytest.mark.parametrize(
    ("line", "path"),
    [
        ("*a" * 60 + "b", "a" * 250),
        ("**/a/" * 60 + "b", "/".join("a" * 120)),
        ("?*" * 60 + "b", "a" * 250),
        ("x/" + "[ab]*" * 40 + "c", "x/" + "ab" * 120),
        ("a**/" * 60 + "b", "a" * 100 + "/" + "a/" * 100),
    ],
)
def test_no_line_takes_forever(line: str, path: str) -> None:
    assert not IgnoreRules(tuple(read_ignore_file(".", line.encode()))).ignores(path, False)


LONG = {  # of files with `b` and `sub/a` as rules where they count: what is left of PLACES
    "more comments than rules": b"# text\n" * 2_000 + b"b\nsub/a\n",
    "more than is looked at": b"b\nsub/a\n" + b"# text\n" * 20_000,
    "a line that is cut": b"b\nsub/a\n" + b"#" * (MAX_LOOKED_AT - 11) + b"\na/no-such-folder\n",
    "a rule behind what is looked at": b"b\nsub/a\n" + b"# text\n" * 20_000 + b"*\n",
}
PLACES = ["a/x", "b", "sub/a", "sub/c"]


@pytest.mark.parametrize("data", LONG.values(), ids=LONG)
def test_searches_and_checkpoints_read_a_long_ignore_file_alike(tmp_path: Path, data: bytes) -> None:
    root = tmp_path / "work"
    for path in PLACES:
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_bytes(b"x" * 70_000)  # a small file is covered although it is ignored
    (root / ".gitignore").write_bytes(data)
    taken = Checkpoints(root, store=tmp_path / "store")
    taken.take("before")
    found = GlobFiles(Workspace(root)).execute(GlobParams(pattern="*"), Context()).split()
    assert sorted(found) == [path for path in PLACES if taken.covers(path) is None] == ["a/x", "sub/c"]


def by_git(root: Path, lines: bytes, paths: list[str]) -> set[str]:
    """What git ignores of the paths, which are all files that exist."""
    (root / ".gitignore").write_bytes(lines)
    asked = subprocess.run(
        [GIT or "git", "-c", "core.excludesFile=/dev/null", "check-ignore", "--stdin", "-z", "--no-index"],
        input="\0".join(paths).encode(), capture_output=True, cwd=root, check=False, timeout=60,
    )  # fmt: skip
    assert asked.returncode in (0, 1), asked.stderr
    return {path.decode() for path in asked.stdout.split(b"\0") if path}


def by_us(lines: bytes, paths: list[str]) -> set[str]:
    """The same: a path below a folder that is ignored is ignored."""
    rules = IgnoreRules(tuple(read_ignore_file(".", lines)))
    found: set[str] = set()
    for path in paths:
        parts = path.split("/")
        above = ("/".join(parts[:depth]) for depth in range(1, len(parts)))
        if any(rules.ignores(folder, True) for folder in above) or rules.ignores(path, False):
            found.add(path)
    return found


@pytest.fixture(scope="module")
def repository(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("repository")
    subprocess.run([GIT or "git", "init", "-q", str(root)], check=True, timeout=60)
    return root


@needs_git
def test_each_line_means_what_git_makes_of_it(repository: Path) -> None:
    wrong = {}
    for line in [*LINES, *(f"*\n{line}" for line in LINES if line.startswith("!"))]:
        data = line.encode() + b"\n"
        git, ours = by_git(repository, data, PATHS), by_us(data, PATHS)
        if git != ours:
            wrong[line] = f"only git {sorted(git - ours)}, only ours {sorted(ours - git)}"
    assert not wrong


names = st.text(alphabet="abé.-[]", min_size=1, max_size=3).filter(lambda name: name.strip("."))
lines = st.lists(
    st.text(alphabet="ab*?[]!^-/\\é. #", min_size=1, max_size=9).filter(
        lambda line: "//" not in line
    )  # behind `a**` git takes an empty name for one: b**//**a is for b/a
    | st.sampled_from(LINES),
    min_size=1,
    max_size=6,
)


@needs_git
@settings(max_examples=25)
@given(lines, st.lists(st.lists(names, min_size=1, max_size=4), min_size=1, max_size=25))
def test_any_lines_mean_what_git_makes_of_them(
    repository: Path, lines: list[str], paths: list[list[str]]
) -> None:
    data = "\n".join(lines).encode()
    asked = sorted({path for parts in paths if not (path := "/".join(parts)).startswith(".git")})
    assert by_us(data, asked) == by_git(repository, data, asked)
