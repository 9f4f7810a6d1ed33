"""glob and grep: one contract for patterns, what is skipped, and an end to every search."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.cases import each
from tests.growth import growth
from toolcrib import Toolbox
from toolcrib.context import Context
from toolcrib.errors import Cancelled, ToolError
from toolcrib.glob_patterns import GlobError, GlobPattern
from toolcrib.tools import GlobFiles, GlobParams, Grep, GrepParams, Workspace, workspace_tools


def make(root: Path, files: dict[str, str | bytes]) -> Workspace:
    for path, content in files.items():
        target = root / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(content if isinstance(content, bytes) else content.encode())
    return Workspace(root)


def glob(ws: Workspace, pattern: str, **named: Any) -> list[str]:
    got = GlobFiles(ws).execute(GlobParams(pattern=pattern, **named), Context())
    return [] if got.startswith("[No files") else got.split("\n\n[")[0].splitlines()


def grep(ws: Workspace, pattern: str, **named: Any) -> str:
    return Grep(ws).execute(GrepParams(pattern=pattern, **named), Context())


# Patterns.


@each(
    ("pattern", "fits", "does_not"),
    [
        ("*.py", ["a.py", "x/a.py", ".x/a.py"], ["a.pyc", ".a.py"]),
        ("/*.py", ["a.py"], ["x/a.py"]),
        ("./a.py", ["a.py", "x/a.py"], ["b.py"]),
        ("x/*.py", ["x/a.py"], ["a.py", "y/x/a.py", "x/y/a.py"]),
        ("**/*.py", ["a.py", "x/y/a.py"], [".x/a.py", ".a.py"]),
        ("**", ["a", "x/y"], [".a", ".x/y", "x/.y"]),
        ("x/**", ["x/a", "x/y/z"], ["x", "y/x/a", "x/.a"]),
        ("x/", ["x/a", "x/y/z"], ["x"]),
        ("**/x/**/z", ["x/z", "a/x/b/c/z"], ["z", "x/y", "x/.h/z"]),
        (".x/**", [".x/a"], [".x/.a", "a"]),
        ("a?c", ["abc"], ["ac", "abbc", "a/c"]),
        ("?a", ["aa"], [".a"]),
        ("[!.]a", ["ba"], [".a"]),
        ("[a-c]x", ["bx"], ["dx", "-x"]),
        ("[]]x", ["]x"], ["x"]),
        ("[!]]x", ["ax"], ["]x"]),
        ("[z-a]", [], ["z", "a"]),
        ("[+--]x", ["+x", ",x", "-x"], [".x", "*x"]),
        ("[--0]x", ["-x", "0x"], [",x", "1x"]),
        ("[abc", ["[abc"], ["a"]),
        ("[id].tsx", ["[id].tsx", "i.tsx"], ["x.tsx"]),
        ("app/[id]/p.tsx", ["app/[id]/p.tsx"], ["app/x/p.tsx"]),
        (r"\*.py", ["*.py"], ["a.py"]),
        ("*.{ts,tsx}", ["a.ts", "x/a.tsx"], ["a.t"]),
        ("{src,test}/**/*.py", ["src/a.py", "test/x/a.py"], ["lib/a.py"]),
        ("{a,b{c,d}}", ["a", "bc", "bd"], ["b", "bcd"]),
        ("{a}", ["{a}"], ["a"]),
        ("a*b*c", ["abc", "axbxc", "abcbc"], ["ab", "cba"]),
        ("*a*a", ["aa", "xaxa"], ["a", "aab"]),
        ("a**b", ["ab", "axb"], ["a/b"]),
        ("*", ["a", ".x/a"], [".a"]),
        (".*", [".a", "x/.a"], ["a"]),
    ],
)
@pytest.mark.filterwarnings("error")
def test_patterns(pattern: str, fits: list[str], does_not: list[str]) -> None:
    compiled = GlobPattern(pattern)
    assert [path for path in fits if not compiled.matches(path)] == []
    assert [path for path in does_not if compiled.matches(path)] == []


@pytest.mark.parametrize(
    ("pattern", "words"),
    [
        ("../*.py", "invalid_pattern"),
        ("x/../y", "invalid_pattern"),
        ("{a,b}" * 7, "pattern_too_broad"),
        ("a" * 2000, "pattern_too_broad"),
    ],
)
def test_patterns_that_are_refused(pattern: str, words: str) -> None:
    with pytest.raises(GlobError, match=words):
        GlobPattern(pattern)


def reference(pattern: str, path: str) -> bool:
    """What a pattern of plain names, `*` and `**` means, said by trying everything."""

    def name(pattern: str, text: str) -> bool:
        if not pattern:
            return not text
        if pattern[0] == "*":
            return any(name(pattern[1:], text[cut:]) for cut in range(len(text) + 1))
        return bool(text) and text[0] == pattern[0] and name(pattern[1:], text[1:])

    def folders(patterns: list[str], parts: list[str]) -> bool:
        if not patterns:
            return not parts
        if patterns[0] == "**":
            hidden = next((index for index, part in enumerate(parts) if part.startswith(".")), len(parts))
            return any(folders(patterns[1:], parts[cut:]) for cut in range(hidden + 1))
        if not parts or (patterns[0].startswith("*") and parts[0].startswith(".")):
            return False
        return name(patterns[0], parts[0]) and folders(patterns[1:], parts[1:])

    below = "/*" if pattern.endswith("**") else ""
    return folders((pattern + below).split("/"), path.split("/"))


NAMES = st.text(alphabet="ab.", min_size=1, max_size=4).filter(lambda name: name.strip("."))
PIECES = st.one_of(
    st.just("**"),
    st.text(alphabet="ab.*", min_size=1, max_size=5).filter(lambda one: one.strip(".") and "**" not in one),
)


@given(st.lists(PIECES, min_size=2, max_size=5), st.lists(NAMES, min_size=1, max_size=5))
def test_matching_means_the_same_as_trying_everything(pieces: list[str], names: list[str]) -> None:
    pattern, path = "/".join(pieces), "/".join(names)
    assert GlobPattern(pattern).matches(path) == (reference(pattern, path) or pattern == path)


@pytest.mark.parametrize(
    ("pattern", "path"),
    [
        ("*a" * 60 + "b", "a" * 250),
        ("**/a/" * 60 + "b", "/".join("a" * 120)),
        ("?*" * 60 + "b", "a" * 250),
        ("[ab]*" * 40 + "c", "ab" * 120),
    ],
)
def test_no_pattern_takes_forever(pattern: str, path: str) -> None:
    assert not GlobPattern(pattern).matches(path)  # going back would take longer than the universe has


# glob.


def test_the_newest_come_first_and_the_rest_is_counted(tmp_path: Path) -> None:
    ws = make(tmp_path, {f"f{number}": "" for number in range(5)})
    for number in range(5):
        os.utime(tmp_path / f"f{number}", (1000 + number, 1000 + number))
    assert glob(ws, "*") == ["f4", "f3", "f2", "f1", "f0"]
    got = GlobFiles(ws).execute(GlobParams(pattern="*", limit=2), Context())
    assert got == "f4\nf3\n\n[The newest 2 of 5 files. Narrow pattern or path, or use offset=3 to read on.]"
    got = GlobFiles(ws).execute(GlobParams(pattern="*", limit=2, offset=3), Context())
    assert got == "f2\nf1\n\n[Files 3-4 of 5 files. Narrow pattern or path, or use offset=5 to read on.]"
    assert glob(ws, "*", offset=5) == ["f0"]
    assert "offset 6 is past the end" in glob(ws, "*", offset=6)[0]


def test_hidden_names_are_found_when_asked_for(tmp_path: Path) -> None:
    ws = make(tmp_path, {".a": "", ".x/b": "", "c": "", "node_modules/d": "", ".git/e": ""})
    assert glob(ws, "**/*") == ["c"]
    assert sorted(glob(ws, "*", include_hidden=True)) == [".a", ".x/b", "c"]
    assert sorted(glob(ws, "**/*", include_hidden=True)) == [".a", ".x/b", "c"]
    assert sorted(glob(ws, "*", include_hidden=True, include_ignored=True)) == [
        ".a", ".git/e", ".x/b", "c", "node_modules/d",
    ]  # fmt: skip


def test_all_files_that_say_what_is_ignored_count(tmp_path: Path) -> None:
    files = {
        ".gitignore": "*.log\n", ".ignore": "!a.log\n/data/\n", "a.log": "", "b.log": "", "data/x": "", "src/y": "", "src/local": "",
        "nested/c.log": "", "nested/z": "", "nested/.gitignore": "z\n",
    }  # fmt: skip
    ws = make(tmp_path, files)
    for repository in (tmp_path, tmp_path / "nested"):
        (repository / ".git" / "info").mkdir(parents=True)
    (tmp_path / ".git/info/exclude").write_text("local\n")
    # a repository within another one has rules of its own; .ignore files count for more than git's
    assert sorted(glob(ws, "*")) == ["a.log", "nested/c.log", "src/y"]
    assert sorted(glob(ws, "*", path="src")) == ["src/y"]


def test_ignore_files_count_in_folders_of_any_name(tmp_path: Path) -> None:
    for name in ("~", os.fsdecode(b"\xff"), "plain"):  # a model can write a path only to the last one
        (tmp_path / name).mkdir()
        (tmp_path / name / ".gitignore").write_text("*.log\n")
        (tmp_path / name / "a.log").write_text("x")
    assert glob(Workspace(tmp_path), "*") == []
    assert "a.log" not in grep(Workspace(tmp_path), "x", output="files")


def test_paths_are_relative_to_the_workspace_also_from_a_folder(tmp_path: Path) -> None:
    ws = make(tmp_path, {"src/a.py": "", "src/x/b.py": "", "c.py": ""})
    assert sorted(glob(ws, "*.py", path="src")) == ["src/a.py", "src/x/b.py"]
    assert glob(ws, "/*.py", path="src") == ["src/a.py"]
    assert glob(ws, "x/*", path=f"{tmp_path}/src") == ["src/x/b.py"]
    assert glob(ws, f"{tmp_path}/src/*.py") == ["src/a.py"] == glob(ws, f"{tmp_path}/src/*.py", path="src/x")
    assert sorted(glob(ws, f"{tmp_path}/**/*.py")) == ["c.py", "src/a.py", "src/x/b.py"]
    assert sorted(glob(ws, f"{tmp_path}/{{src,none}}/**/{{a,b}}.py")) == ["src/a.py", "src/x/b.py"]
    assert glob(ws, f"/{tmp_path}/.//src/*.py") == ["src/a.py"]
    assert glob(ws, f"{tmp_path}-other/*.py") == []
    assert glob(ws, "nothing/*.py") == [] and glob(ws, "*.rs") == []
    with pytest.raises(ToolError, match="There is no folder srk"):
        glob(ws, "*", path="srk")


IGNORED = {
    ".gitignore": "*.log\n/build/\n!keep.log\n# a comment\ndocs/*.tmp\n\\#odd\n",
    "a.log": "x",
    "keep.log": "x",
    "build/out.txt": "x",
    "src/build/in.txt": "x",
    "src/.gitignore": "local.txt\n!wanted.log\n",
    "src/local.txt": "x",
    "src/wanted.log": "x",
    "local.txt": "x",
    "docs/a.tmp": "x",
    "docs/deep/b.tmp": "x",
    "#odd": "x",
    "node_modules/pkg/index.js": "x",
    ".git/config": "x",
    ".venv/lib/a.py": "x",
}
SEEN = ["docs/deep/b.tmp", "keep.log", "local.txt", "src/build/in.txt", "src/wanted.log"]


def test_what_git_ignores_and_tools_fill_is_not_searched(tmp_path: Path) -> None:
    ws = make(tmp_path, IGNORED)
    assert sorted(glob(ws, "*")) == SEEN
    assert sorted(grep(ws, "^x$", output="files").splitlines()) == SEEN
    everything = glob(ws, "*", include_ignored=True)
    assert {"a.log", "node_modules/pkg/index.js", ".git/config"} <= set(everything)
    assert glob(ws, "node_modules/**/*.js") == ["node_modules/pkg/index.js"]
    assert glob(ws, "*", path="node_modules") == ["node_modules/pkg/index.js"]
    assert glob(ws, "*.log", path="src") == ["src/wanted.log"]


def test_linked_folders_are_not_entered(tmp_path: Path) -> None:
    ws = make(tmp_path, {"real/a.py": ""})
    (tmp_path / "again").symlink_to("real")
    (tmp_path / "real" / "up").symlink_to("..")
    assert glob(ws, "*.py") == ["real/a.py"]


def test_a_search_stops_when_cancelled(tmp_path: Path) -> None:
    ws = make(tmp_path, {"a": "x"})
    ctx: Context[None] = Context(tool="glob")
    ctx._cancelled = True
    for attempt in (
        lambda: GlobFiles(ws).execute(GlobParams(pattern="*"), ctx),
        lambda: Grep(ws).execute(GrepParams(pattern="x"), ctx),
    ):
        with pytest.raises(Cancelled):
            attempt()


def test_a_search_stops_in_the_middle_of_a_large_folder(tmp_path: Path) -> None:
    ws = make(tmp_path, {f"f{number}": "" for number in range(600)})
    looked: list[int] = []

    class Impatient(Context[None]):
        __slots__ = ()

        def check_cancelled(self) -> None:
            looked.append(1)
            if len(looked) == 2:
                raise Cancelled

    with pytest.raises(Cancelled):
        GlobFiles(ws).execute(GlobParams(pattern="*"), Impatient())


def test_a_search_for_names_has_an_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ws = make(tmp_path, {"a": ""})
    monkeypatch.setattr("toolcrib.tools.glob.SECONDS", -1.0)
    said = GlobFiles(ws).execute(GlobParams(pattern="*"), Context())
    assert "No files" in said and "Stopped after" in said


@pytest.mark.slow
@pytest.mark.parametrize(
    "pattern", ["*", "**/*.py", "{" + ",".join(f"**/x{n}*y" for n in range(64)) + "}", "**/" * 20 + "z"]
)
def test_a_search_for_names_grows_with_the_files(tmp_path: Path, pattern: str) -> None:
    ignored = "".join(f"out{number}/**/*.{number}\n" for number in range(400))

    def searching(count: int) -> Callable[[], object]:
        files = {f"d{number % 10}/f{number}.py": "" for number in range(count)}
        ws = make(tmp_path / str(count), {**files, ".gitignore": ignored})
        return lambda: GlobFiles(ws).execute(GlobParams(pattern=pattern), Context())

    assert growth(searching, 200, 2_000, 25) < 25


# grep.

FILES: dict[str, str | bytes] = {
    "src/a.py": "import os\n\ndef f():\n    return os.name\n",
    "src/b.ts": "import x from 'y'\r\nexport { x }\r\n",
    "notes.md": "Import this\n",
    "blob": b"import\0",
    "wide.txt": "\ufeffimport é\n".encode("utf-16-le"),
    "latin.txt": b"import \xe9\n",
}


def test_matches_come_below_their_file_with_numbers(tmp_path: Path) -> None:
    ws = make(tmp_path, FILES)
    assert grep(ws, "^import") == (
        "latin.txt\n  1: import é\n\nwide.txt\n  1: import é\n\n"
        "src/a.py\n  1: import os\n\nsrc/b.ts\n  1: import x from 'y'"
    )
    assert grep(ws, r"'y'$", path="src/b.ts") == "src/b.ts\n  1: import x from 'y'"
    assert grep(ws, "IMPORT", ignore_case=True, include="*.md") == "notes.md\n  1: Import this"
    assert grep(ws, "import", include="src/*.{py,ts}", output="files") == "src/a.py\nsrc/b.ts"
    assert grep(ws, "os|f", output="count", path="src") == "src/a.py: 3\nsrc/b.ts: 1"


def test_context_is_shown_once_and_gaps_are_marked(tmp_path: Path) -> None:
    ws = make(tmp_path, {"f": "".join(f"{number}\n" for number in range(1, 21))})
    shown = [
        line.strip() for line in grep(ws, "^(5|6|15)$", output={"before": 1, "after": 1}).splitlines()[1:]
    ]
    assert shown == ["4- 4", "5: 5", "6: 6", "7- 7", "--", "14- 14", "15: 15", "16- 16"]


def test_searches_have_an_end(tmp_path: Path) -> None:
    ws = make(tmp_path, {f"f{number:03}": "hit\n" * 10 for number in range(50)})
    content = grep(ws, "hit", limit=25)
    assert content.count(": hit") == 25
    assert content.endswith(
        "[Matching lines 1-25; there are more. Use offset=26 to read on, or narrow the search with path, include or type.]"
    )
    files = grep(ws, "hit", limit=25, output="files")
    assert len(files.split("\n\n[")[0].splitlines()) == 25 and "Files 1-25; there are more." in files


def test_long_lines_are_cut_around_the_match(tmp_path: Path) -> None:
    ws = make(tmp_path, {"f": "a" * 10_000 + "needle" + "b" * 10_000})
    got = grep(ws, "needle")
    assert "needle" in got and len(got) < 700 and "more characters]" in got


def test_files_that_are_too_large_are_named(tmp_path: Path) -> None:
    ws = make(tmp_path, {"large.txt": "x\n" * 3_000_000, "small.txt": "x\n"})
    got = grep(ws, "x")
    assert got.startswith("small.txt") and "Not searched because larger than 5 MB: large.txt." in got


@pytest.mark.parametrize(
    ("named", "words"),
    [
        ({"pattern": "("}, "not a valid regular expression"),
        ({"pattern": "foo("}, r"write foo\\\($"),
        ({"pattern": ""}, "empty"),
        ({"pattern": "a\nb"}, "set multiline|Set multiline"),
        ({"pattern": "x", "include": "../*"}, "invalid_pattern"),
    ],
)
def test_wrong_patterns_are_explained(tmp_path: Path, named: dict[str, str], words: str) -> None:
    problem = Grep(Workspace(tmp_path)).precheck(GrepParams(**named))  # type: ignore[arg-type]
    assert problem is not None and re.search(words, problem)


def test_a_pattern_that_never_ends_is_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("toolcrib.tools.grep_search.SECONDS", 1.0)
    ws = make(tmp_path, {"a": "x" * 60 + "\n"})
    assert "Stopped after 1 second;" in grep(ws, "(x+x+)+y")


def test_a_pattern_that_never_ends_is_ended_by_cancelling(tmp_path: Path) -> None:
    import threading

    ws = make(tmp_path, {"a": "x" * 60 + "\n"})
    ctx: Context[None] = Context(tool="grep")
    threading.Timer(0.5, lambda: setattr(ctx, "_cancelled", True)).start()
    with pytest.raises(Cancelled):
        Grep(ws).execute(GrepParams(pattern="(x+x+)+y"), ctx)


def test_nothing_found_is_said(tmp_path: Path) -> None:
    ws = make(tmp_path, FILES)
    assert grep(ws, "zebra") == "[No matches for 'zebra' in the workspace.]"
    assert grep(ws, "zebra", path="src", include="*.py") == "[No matches for 'zebra' in src (*.py).]"


@pytest.mark.slow
def test_time_grows_with_the_text(tmp_path: Path) -> None:
    def searching(lines: int) -> Callable[[], object]:
        ws = make(tmp_path / str(lines), {"f": "some text without it\n" * lines})
        return lambda: grep(ws, "needle")

    assert growth(searching, 20_000, 200_000, 60) < 60


def test_a_refused_pattern_is_shown_as_it_was_written(tmp_path: Path) -> None:
    box = Toolbox(workspace_tools(Workspace(tmp_path)))
    said = [
        box.call_sync(name, arguments).text
        for name, arguments in (
            ("glob", {"pattern": "../*"}),
            ("glob", {"pattern": "{a,b}" * 7}),
            ("grep", {"pattern": r"\d("}),
            ("grep", {"pattern": "x", "include": "../*"}),
            ("grep", {"pattern": "x", "type": "pyhton"}),
        )
    ]
    words = ["not allowed", "stand for more", r'pattern "\d("', 'include "../*"', 'type "pyhton"']
    assert [part for part, text in zip(words, said, strict=True) if part not in text] == []
