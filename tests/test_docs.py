"""What the pages say is so: their programs run, show what stands below them, and their tables are whole.

A page's ```python blocks run in order, in one namespace, in an empty folder without a network; a ```text block
right after one is what it prints. Blocks that begin with `# name.py` or `# name.yaml` are also files of that folder.
```console blocks run their `$ ` lines there too. In what is shown, `...` stands for anything.
"""

from __future__ import annotations

import contextlib
import io
import logging
import os
import re
import shlex
import socket
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType

import pytest

import toolcrib
from tests.cases import each
from tests.command_line import toolcrib as toolcrib_command
from toolcrib.agent import Reason
from toolcrib.errors import ErrorCode
from toolcrib.json_text.lenient_grammar import FIXES
from toolcrib.models.providers import PROVIDERS
from toolcrib.repair import EDITS
from toolcrib.schema import DIALECTS

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[1]
PAGES = [
    ROOT / "README.md",
    ROOT / "CHANGELOG.md",
    ROOT / "ARCHITECTURE.md",
    *sorted((ROOT / "docs").rglob("*.md")),
]
CLOUDS = (
    "AWS_REGION",
    "AWS_PROFILE",
    "AWS_BEARER_TOKEN_BEDROCK",
    "GOOGLE_CLOUD_PROJECT",
    "GOOGLE_CLOUD_LOCATION",
)
RUN_BY_OTHERS = {"benchmarks.md"}  # its figures come from a machine, not from a page
FENCE = re.compile(r"^( *)```(\S*)([^\n]*)\n(.*?)^\1```$", re.MULTILINE | re.DOTALL)
FILE = re.compile(r"# (\S+\.(?:py|yaml))\n")


@dataclass
class Block:
    """One fenced block of a page, with what stands between it and the one before."""

    language: str
    note: str
    text: str
    line: int
    gap: str


def blocks_of(page: Path) -> list[Block]:
    source = page.read_text(encoding="utf-8")
    found: list[Block] = []
    end = 0
    for match in FENCE.finditer(source):
        line = source.count("\n", 0, match.start()) + 1
        found.append(Block(match[2], match[3].strip(), match[4], line, source[end : match.start()].strip()))
        end = match.end()
    return found


def fits(output: str, shown: str) -> bool:
    """Whether an output is what a page shows; `...` stands for anything, also for lines."""
    pattern = ".*".join(re.escape(piece) for piece in "\n".join(trimmed(shown)).split("..."))
    return re.fullmatch(pattern, "\n".join(trimmed(output)), re.DOTALL) is not None


def trimmed(text: str) -> list[str]:
    return [line.rstrip() for line in text.strip("\n").split("\n")]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """An empty folder to stand in, with no model configured and no network beyond this machine."""
    own = (name for row in PROVIDERS.values() for name in (*row.keys, row.address) if name)
    for name in ("TOOLCRIB_MODEL", "TOOLCRIB_PRICES", *CLOUDS, *own):
        monkeypatch.delenv(name, raising=False)
    connect = socket.socket.connect

    def near(self: socket.socket, address: object) -> None:
        if self.family in (socket.AF_INET, socket.AF_INET6) and str(address[0]) not in ("127.0.0.1", "::1"):  # type: ignore[index]
            raise AssertionError(f"a page reached for the network: {address}")
        connect(self, address)  # type: ignore[arg-type]

    monkeypatch.setattr(socket.socket, "connect", near)
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    log = logging.getLogger("toolcrib")
    handlers = list(log.handlers)
    yield tmp_path
    log.handlers = handlers
    for name in [path.stem for path in tmp_path.glob("*.py")]:
        sys.modules.pop(name, None)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_what_a_page_shows_happens(page: Path, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if page.name in RUN_BY_OTHERS:
        return
    module = ModuleType("page")
    monkeypatch.setitem(sys.modules, "page", module)
    printed: str | None = None
    for block in blocks_of(page):
        where = f"{page.name}, line {block.line}"
        if name := FILE.match(block.text):
            (folder / name[1]).write_text(block.text, encoding="utf-8")
        if block.language == "python" and not block.note:
            printed = run_python(block, module, where)
        elif block.language == "text" and printed is not None and not block.gap:
            assert fits(printed, block.text), f"{where}: shown\n{block.text}\nprinted\n{printed}"
            printed = None
        elif block.language == "console":
            for command, shown in commands_of(block.text):
                output = run_command(command, folder, where)
                assert fits(output, shown), f"{where}: $ {command}\nshown\n{shown}\nprinted\n{output}"


def run_python(block: Block, module: ModuleType, where: str) -> str:
    code = compile("\n" * block.line + block.text, where, "exec")
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        exec(code, module.__dict__)
    return out.getvalue()


def commands_of(text: str) -> Iterator[tuple[str, str]]:
    for piece in re.split(r"^\$ ", text, flags=re.MULTILINE)[1:]:
        command, _, shown = piece.partition("\n")
        while command.endswith("\\"):
            more, _, shown = shown.partition("\n")
            command = f"{command[:-1]} {more.removeprefix('>').strip()}"
        yield command, shown


def run_command(command: str, folder: Path, where: str) -> str:
    """What a command of ours prints on a terminal."""
    assert command.split()[0] == "toolcrib", f"{where}: only toolcrib's own commands are run"
    environment = {**os.environ, "COLUMNS": "110", "NO_COLOR": "1", "TERM": "dumb"}
    for name in ("XDG_CONFIG_HOME", "XDG_STATE_HOME"):  # a page does not reach our own settings
        environment[name] = str(folder.with_name(f"{folder.name}-{name.lower()}"))
    done = toolcrib_command(folder, *shlex.split(command)[1:], env=environment, as_on_terminal=True)
    assert done.returncode in (0, 1), f"{where}: $ {command} gave {done.returncode}\n{done.stdout}"
    return done.stdout


def test_every_program_is_run() -> None:
    notes = [(page.name, block.line, block.note) for page in PAGES for block in blocks_of(page) if block.note]
    assert notes == []


def table_of(page: str, name: str) -> str:
    """The generated block between `<!-- name -->` and `<!-- /name -->`."""
    text = (ROOT / "docs" / page).read_text(encoding="utf-8")
    found = re.search(rf"<!-- {name} -->\n(.*?)<!-- /{name} -->", text, re.DOTALL)
    assert found is not None, f"{page} has no block {name}"
    return found[1].strip()


def first_cells(table: str) -> list[str]:
    return [line.split("|")[1].strip().strip("`") for line in table.splitlines()[2:]]


@pytest.mark.parametrize(
    ("page", "name", "known"),
    [
        ("errors.md", "codes", list(ErrorCode)),
        ("agent.md", "reasons", list(Reason)),
        ("repair.md", "edits", list(EDITS)),
        ("repair.md", "fixes", list(FIXES)),
    ],
)
def test_a_table_names_all_that_there_is(page: str, name: str, known: list[str]) -> None:
    assert first_cells(table_of(page, name)) == [str(item) for item in known]


def dialect_table() -> str:
    """docs/schemas.md's table, from the rows themselves."""
    names = ("dialect", "recursion", "unions", "null", "objects", "arrays", "keywords")
    head = f"| {' | '.join(names)} |\n| {' | '.join('---' for _ in names)} |"
    rows = [
        f"| `{row.name}` "
        f"| {'stays a reference' if row.references else 'cut to a finite depth'} "
        f"| anyOf{', oneOf' if row.one_of else ''}{', allOf' if row.all_of else ''} "
        f"| {'a type' if row.type_lists else '`nullable: true`'} "
        f"| {'closed' if row.closed else 'as declared'}{', all required' if row.all_required else ''} "
        f"| {'need `items`' if row.items else 'as declared'} "
        f"| {'all' if row.keywords is None else ', '.join(sorted(row.keywords))} |"
        for row in DIALECTS.values()
    ]
    return "\n".join([head, *rows])


def test_the_table_of_dialects_is_the_one_in_the_code() -> None:
    assert table_of("schemas.md", "dialects") == dialect_table()


def test_every_public_name_is_explained_somewhere() -> None:
    text = "".join(page.read_text(encoding="utf-8") for page in PAGES)
    assert [name for name in toolcrib.__all__ if not re.search(rf"\b{name}\b", text)] == []


def test_the_plan_of_the_house_names_files_that_are_there() -> None:
    text = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8")
    for name in re.findall(r"`(\w+\.py)`", text):
        assert list((ROOT / "src" / "toolcrib").rglob(name)), f"{name} is not there"


@each("page", PAGES, ids=lambda page: page.name)
def test_links_lead_somewhere(page: Path) -> None:
    text = FENCE.sub("", page.read_text(encoding="utf-8"))
    for target in re.findall(r"\]\(([^)\s]+)\)", text):
        if target.startswith(("http://", "https://", "mailto:")):
            continue
        path, _, anchor = target.partition("#")
        file = (page.parent / path).resolve() if path else page
        assert file.exists() or file.name in RUN_BY_OTHERS, f"{page.name}: {target}"
        if anchor and file.exists():
            assert anchor in anchors_of(file), f"{page.name}: {target}"


def anchors_of(page: Path) -> set[str]:
    headings = re.findall(r"^#+ (.+)$", FENCE.sub("", page.read_text(encoding="utf-8")), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}
