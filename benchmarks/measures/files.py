"""What the file tools cost beside plain Python, which checks nothing, and beside ripgrep."""

import os
import re
import shutil
import statistics
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from adapters import own

from measures.processes import milliseconds, run

LINE = "    value = compute(first, second)  # number {}\n"
LINES, LARGE = 2_000, 100_000  # 100 kB; 5 MB
FILES, FOLDERS = 6_800, 340
PLAIN = {"peer": "python", "name": "plain Python"}
RIPGREP = {"peer": "ripgrep", "name": "ripgrep"}


def _lines(count: int) -> str:
    return "".join(LINE.format(number) for number in range(count))


def _grown(root: Path) -> None:
    """A tree like that of a middle-sized project; one file in 100 has what is searched for."""
    for number in range(FILES):
        folder = root / f"d{number % FOLDERS // 20}" / f"e{number % 20}"
        folder.mkdir(parents=True, exist_ok=True)
        text = "needle = found()\n" if number % 100 == 0 else ""
        (folder / f"file{number}.py").write_text(_lines(60) + text)


def _read_plainly(path: Path) -> str:
    return "".join(f"{number:>6}\t{line}" for number, line in enumerate(path.open(), 1))


def _edit_plainly(path: Path, old: str, new: str) -> None:
    text = path.read_text()
    if text.count(old) != 1:
        raise ValueError("not there once")
    beside = path.with_suffix(".new")
    beside.write_text(text.replace(old, new))
    beside.replace(path)


def _search_plainly(root: Path, expression: str) -> int:
    pattern, found = re.compile(expression), 0
    for folder, _, names in os.walk(root):
        for name in names:
            text = (Path(folder) / name).read_text()
            found += sum(bool(pattern.search(line)) for line in text.splitlines())
    return found


def _cases(root: Path) -> Iterator[tuple[str, str, dict[str, str], Callable[[], object], Any]]:
    """Row, path, who, the work, and what is done before each of its runs."""
    small, large, tree = root / "small.py", root / "large.py", root / "tree"
    small.write_text(_lines(LINES))
    _grown(tree)
    call = own.file_tools(root)

    def fresh() -> None:
        large.write_text(_lines(LARGE))
        call("read_file", path="large.py", offset=1, limit=1)

    nothing = lambda: None  # noqa: E731
    yield "read 2,000 lines", "lines numbered", PLAIN, lambda: _read_plainly(small), nothing
    yield "read 2,000 lines", "read_file", {}, lambda: call("read_file", path="small.py"), nothing
    exact = LINE.format(LARGE // 2)
    new = exact.replace("compute", "reckon")
    loose = "".join(LINE.format(number).lstrip() for number in (LARGE // 2, LARGE // 2 + 1))
    missing = exact.replace("compute(first", "reckon(third")
    row = "edit 5 MB, {}"
    for how, old in (("exact", exact), ("other spaces", loose), ("not there", missing)):
        if how == "exact":
            yield (
                row.format(how),
                "count, replace, rename",
                PLAIN,
                lambda: _edit_plainly(large, exact, new),
                fresh,
            )
        ends_well = how != "not there"
        yield (
            row.format(how),
            "edit_file",
            {},
            lambda o=old, w=ends_well: call(
                "edit_file", path="large.py", old_string=o, new_string=new, fails=not w
            ),
            fresh,
        )
    search, expression = "search 6,800 files", r"needle = \w+"
    if rg := shutil.which("rg"):
        argv = [rg, "--line-number", expression, "."]
        yield search, "rg", RIPGREP, lambda: run(argv, tree), nothing
        yield search, "grep, over ripgrep", {}, lambda: call("grep", pattern=expression, path="tree"), nothing
    plain = own.file_tools(root, ripgrep=False)
    yield search, "os.walk and re", PLAIN, lambda: _search_plainly(tree, expression), nothing
    row = f"{search}, no ripgrep"
    yield row, "grep", {}, lambda: plain("grep", pattern=expression, path="tree"), nothing


def measure(adapter: Any, options: dict[str, Any]) -> list[dict[str, Any]]:
    samples: list[dict[str, Any]] = []
    with tempfile.TemporaryDirectory() as place:
        root = Path(place).resolve()
        for row, path, who, work, before in _cases(root):
            spent = []
            for number in range(4 if options["quick"] else 8):
                before()
                found = milliseconds(work)
                if number:
                    spent.append(found)
            used, clock = (statistics.median(column) for column in zip(*spent, strict=True))
            samples.append(
                {"row": row, "path": path, "figures": {"ms on the clock": clock, "ms": used}, **who}
            )
        samples += _opened(root, 300 if options["quick"] else 2_000)
    return samples


def _opened(root: Path, times: int) -> list[dict[str, Any]]:
    """Microseconds to open a file so many folders down: as it is, after a check that races, and confined."""
    samples = []
    for depth in (1, 3, 8):
        path = "/".join([*(f"f{level}" for level in range(depth - 1)), "file.txt"])
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text("x")
        for label, who, opened in (
            ("os.open, nothing looked at", PLAIN, lambda p: os.close(os.open(f"{root}/{p}", os.O_RDONLY))),
            ("realpath, compared, os.open: races", PLAIN, lambda p: os.close(_checked(str(root), p))),
            *((how, {}, way) for how, way in own.opened_files(root).items()),
        ):
            spent = []
            for _ in range(5):
                used, _ = milliseconds(lambda p=path, o=opened: [o(p) for _ in range(times)])
                spent.append(used / times * 1e3)
            figures = {"µs": statistics.median(spent)}
            samples.append({"row": f"open a file, {depth} down", "path": label, "figures": figures, **who})
    return samples


def _checked(root: str, path: str) -> int:
    """Resolve, compare, open: what a rename between the steps walks around."""
    real = os.path.realpath(os.path.join(root, path))  # noqa: PTH118 - measured as it is written elsewhere
    if os.path.commonpath([root, real]) != root:
        raise PermissionError(path)
    return os.open(real, os.O_RDONLY)
