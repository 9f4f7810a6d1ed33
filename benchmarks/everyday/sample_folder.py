# ruff: noqa: E501 - tables read better in lines
"""The folder that a command is run on: texts, tables, data, archives, images, programs, and small projects in a git repository."""

from __future__ import annotations

import base64
import os
import re
import shutil
import subprocess
from pathlib import Path

TEXT = 'line one\nanother line, with words\nname value 2\n\ngettext("last line");\n'
PIXEL = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)
FILES = {
    "README.md": "# Sample\n\nA line.\n",
    "a.txt": TEXT,
    "b.txt": "line one\nother\n",
    "src/main.py": '"""A module."""\n\n\ndef main() -> None:\n    print("line")\n',
    "src/__init__.py": "",
    "tests/test_main.py": "def test_line() -> None:\n    assert True\n",
    "main.c": "int main(void) { return 0; }\n",
    "Makefile": "all:\n\t@echo line\ntest:\n\t@echo line\nbuild:\n\t@echo line\n",
    "package.json": '{"name": "sample", "version": "1.0.0", "scripts": {"test": "echo line", "build": "echo line"}}\n',
    "pyproject.toml": '[project]\nname = "sample"\nversion = "1"\n',
    "go.mod": "module sample\n",
    "main.go": "package main\n\n// Run does nothing.\nfunc main() {}\n",
    "Cargo.toml": '[package]\nname = "sample"\nversion = "0.1.0"\n',
    "src/main.rs": "fn main() {}\n",
    "data.json": '{"name": "line", "items": [1, 2]}\n',
    "data.csv": "id,name,value,first name,a,b\n1,line,1,x,1,2\n2,other,2,y,3,4\n",
    "data.yaml": "name: line\nitems: [1, 2]\n",
}
BY_SUFFIX: dict[str, str | bytes] = {
    "json": FILES["data.json"],
    "csv": FILES["data.csv"],
    "go": FILES["main.go"],
    "cpp": FILES["main.c"],
    "cc": FILES["main.c"],
    "rs": FILES["src/main.rs"],
    "js": "console.log('line');\n",
    "ts": "console.log('line');\n",
    "java": "class Main {}\n",
    "md": FILES["README.md"],
    "dc": "1 2 + p\n",
    "bc": "1 + 2\n",
    "pot": 'msgid ""\nmsgstr ""\n\nmsgid "line"\nmsgstr ""\n',
    "pc": "Name: a\nDescription: a\nVersion: 1\n",
    **dict.fromkeys(
        (
            "txt",
            "log",
            "conf",
            "ini",
            "cfg",
            "ext",
            "lst",
            "rb",
            "pl",
            "awk",
            "sed",
            "jl",
            "hs",
            "css",
            "sql",
        ),
        TEXT,
    ),
    "tsv": "name\tvalue\nline\t1\n",
    "yaml": FILES["data.yaml"],
    "yml": FILES["data.yaml"],
    "xml": "<?xml version='1.0'?>\n<root><name>line</name></root>\n",
    "html": "<html><body><p>line</p></body></html>\n",
    "toml": FILES["pyproject.toml"],
    "py": FILES["src/main.py"],
    "c": FILES["main.c"],
    "sh": "#!/bin/sh\necho line\n",
    "png": PIXEL,
    "patch": "--- a.txt\n+++ a.txt\n@@ -1 +1 @@\n-line one\n+line 1\n",
    "diff": "--- a.txt\n+++ a.txt\n@@ -1 +1 @@\n-line one\n+line 1\n",
    "po": 'msgid ""\nmsgstr "Content-Type: text/plain; charset=UTF-8\\n"\n\nmsgid "line"\nmsgstr "Zeile"\n',
    "dot": "digraph { a -> b }\n",
    "gv": "digraph { a -> b }\n",
}
# How an archive or compressed file is made from a.txt.
MADE = {
    "gz": "gzip -c a.txt > {}", "bz2": "bzip2 -c a.txt > {}", "xz": "xz -c a.txt > {}", "zst": "zstd -qc a.txt > {}",
    "lzma": "xz --format=lzma -c a.txt > {}", "lz4": "lz4 -qc a.txt > {}", "Z": "gzip -c a.txt > {}", "tar": "tar cf {} a.txt",
    "tar.gz": "tar czf {} a.txt", "tgz": "tar czf {} a.txt", "tar.bz2": "tar cjf {} a.txt", "tar.xz": "tar cJf {} a.txt",
    "zip": "zip -q {} a.txt", "jar": "zip -q {} a.txt", "7z": "7z a -bd {} a.txt", "o": "gcc -c main.c -o {}",
    "so": "gcc -shared -fPIC main.c -o {}", "a": "gcc -c main.c -o /tmp/m.o && ar rc {} /tmp/m.o", "cpio": "echo a.txt | cpio -o > {}",
    "jpg": "convert -size 8x8 xc:red {}", "jpeg": "convert -size 8x8 xc:red {}", "gif": "convert -size 8x8 xc:red {}",
    "pdf": "convert -size 8x8 xc:red {}", "db": "sqlite3 {} 'create table t(a)'", "sqlite": "sqlite3 {} 'create table t(a)'",
    "deb": "cp /var/cache/apt/archives/*.deb {}", "lz": "lzip -c a.txt > {}", "lzo": "lzop -c a.txt > {}", "br": "brotli -c a.txt > {}",
    "iso": "genisoimage -quiet -o {} a.txt", "bz": "bzip2 -c a.txt > {}", "elf": "gcc main.c -o {}", "out": "gcc main.c -o {}",
    "class": "printf x > {}", "bundle": "git bundle create {} HEAD", "apk": "zip -q {} a.txt", "whl": "zip -q {} a.txt",
    "mo": "printf 'msgid \"a\"\\nmsgstr \"b\"\\n' | msgfmt - -o {}",
}  # fmt: skip
BINARIES = {
    "objdump", "readelf", "nm", "ldd", "strip", "size", "addr2line", "gdb", "strings", "objcopy", "elfedit", "sprof", "pldd", "gprof",
    "ltrace", "chrt", "eu-readelf", "patchelf", "dwp", "c++filt",
}  # fmt: skip
COMPRESSED = {
    "zcat": "gz", "zless": "gz", "zmore": "gz", "zgrep": "gz", "zegrep": "gz", "zfgrep": "gz", "zdiff": "gz", "zcmp": "gz", "gunzip": "gz",
    "bzcat": "bz2", "bzgrep": "bz2", "bzless": "bz2", "bzmore": "bz2", "bunzip2": "bz2", "xzcat": "xz", "xzgrep": "xz", "xzless": "xz",
    "xzmore": "xz", "xzdiff": "xz", "unxz": "xz", "zstdcat": "zst", "zstdgrep": "zst", "zstdless": "zst", "lz4cat": "lz4", "unzip": "zip",
    "zipinfo": "zip", "zipgrep": "zip", "zipnote": "zip", "ar": "a", "ranlib": "a", "lzcat": "lzma", "lzless": "lzma", "lzmore": "lzma",
    "lzgrep": "lzma", "sqlite3": "db", "funzip": "zip", "7z": "7z", "7za": "7z", "7zr": "7z", "identify": "png", "convert": "png",
    "bzfgrep": "bz2", "bzegrep": "bz2", "xzfgrep": "xz", "xzegrep": "xz", "xzcmp": "xz", "bzdiff": "bz2", "bzcmp": "bz2",
}  # fmt: skip
PATH = re.compile(r"(?<![\w/.-])(?:\./)?path/to/[\w.,@+-]+(?:/[\w.@+-]+)*/?")
# A name alone, with an ending that tells what it is, and not where a command puts something.
NAME = re.compile(
    r"(?<![\w/.*~-])(?<!> )(?<!>)(?<!-o )(?<!--output )(?<!--output=)[A-Za-z]\w*\.[A-Za-z][A-Za-z0-9.]*(?![\w/*(])"
)
MADE_BY_IT = re.compile(r"output|destination|target|new|result|dest|out\b")
FOLDER = re.compile(r"director(?:y|ies)|folder|repo|project|parent|root|source_dir")


def make(root: Path) -> None:
    """Makes the sample folder, with a git repository of two commits in it."""
    root.mkdir(parents=True)
    for name, text in FILES.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    git = ["git", "-c", "user.name=a", "-c", "user.email=a@b", "-c", "init.defaultBranch=master"]
    for args in (
        ["init", "-q"], ["add", "."], ["commit", "-qm", "one line"], ["tag", "v1"], ["branch", "other"],
        ["remote", "add", "origin", "https://example.com/a.git"],
    ):  # fmt: skip
        subprocess.run([*git, *args], cwd=root, check=True, capture_output=True)
    (root / "a.txt").write_text(TEXT + "changed line\n")
    subprocess.run([*git, "commit", "-qam", "another line"], cwd=root, check=True, capture_output=True)
    (root / "c.txt").write_text("staged line\n")
    subprocess.run([*git, "add", "c.txt"], cwd=root, check=True, capture_output=True)
    (root / "b.txt").write_text("line one\nchanged\n")


def place(root: Path, text: str, program: str) -> list[Path]:
    """Makes the files that a command names as `path/to/…` or `name.txt`, of a kind that fits their names and the program.
    Returns those that do not lie below `path`."""
    alone: list[Path] = []
    for name in NAME.findall(text):
        if (
            not (root / name).exists()
            and name.rpartition(".")[2] in {*MADE, *BY_SUFFIX}
            and not MADE_BY_IT.search(name)
        ):
            _write(root, root / name, program)
            alone.append(root / name)
    for found in PATH.findall(text):
        path = root / found
        last = path.name
        if path.exists() or (MADE_BY_IT.search(last) and "director" not in last):
            path.parent.mkdir(parents=True, exist_ok=True)
            continue
        if found.endswith("/") or (FOLDER.search(last) and "file" not in last and "." not in last):
            path.mkdir(parents=True, exist_ok=True)
            (path / "a.txt").write_text(TEXT)
            (path / "b.txt").write_text(TEXT)
            (path / "a.py").write_text("x = 1\n")
            continue
        path.parent.mkdir(parents=True, exist_ok=True)
        _write(root, path, program)
    return alone


def _write(root: Path, path: Path, program: str) -> None:
    suffix = next(
        (s for s in (".".join(path.name.split(".")[-2:]), path.suffix[1:]) if s in MADE or s in BY_SUFFIX), ""
    )
    if not suffix and program in BINARIES:
        shutil.copy2("/bin/true", path)
    elif not suffix and program in COMPRESSED:
        suffix = COMPRESSED[program]
    if suffix in MADE:
        subprocess.run(MADE[suffix].format(path), shell=True, cwd=root, capture_output=True)
    if not path.exists():
        content = BY_SUFFIX.get(suffix, TEXT)
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
    if suffix == "sh":
        path.chmod(0o755)


def state(root: Path) -> dict[str, tuple[int, int, int, int]]:
    """What a folder holds: of each name its mode, size, times of change. What is merely read stays the same."""
    found: dict[str, tuple[int, int, int, int]] = {}
    waiting = [str(root)]
    while waiting:
        with os.scandir(waiting.pop()) as entries:
            for entry in entries:
                was = entry.stat(follow_symlinks=False)
                folder = entry.is_dir(follow_symlinks=False)
                found[entry.path] = (
                    was.st_mode,
                    0 if folder else was.st_size,
                    was.st_mtime_ns,
                    was.st_ctime_ns,
                )
                if folder:
                    waiting.append(entry.path)
    return found
