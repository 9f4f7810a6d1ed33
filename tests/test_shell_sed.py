"""The reader of sed scripts, held to the sed that is installed: its `--sandbox` refuses a script that runs, reads or writes."""

from __future__ import annotations

import shutil
import subprocess
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolcrib.command.programs.sed import SedScript, read_script, read_words

SED = shutil.which("sed", path="/usr/bin:/bin") or ""
VERSION = (
    subprocess.run([SED, "--version"], capture_output=True, text=True, check=False).stdout if SED else ""
)
WITH_GNU_SED = pytest.mark.skipif("GNU sed" not in VERSION, reason="needs GNU sed")

PIECES = [
    *"abcdefgilnpqrstvwxyzDGHINPQRTW=:;;;{{}}!!//||,,\\\\\\[[]]^$#012+~&. \t\n\n\n", "\\\n", "\\n", "\\/", "\\c", "[^", "[]", "[[:alpha:]]",
    "[:", ":]", "[.", ".]", "[=", "/a/", "$!", "1,2", "0~3", "/a/,+2", "\\,a,", "\\xax", "s/a/b/", "s|a|b|", "s,[,],b,", "sxaxbx", "s\\a\\b\\",
    "s[a[b[", "y/ab/cd/", "y,a,b,", "/e", "/w f", "e\n", "e ls", "e\\\n", "1e", "w f", "W f", "r f", "R f", "a\\\n", "a\\", "i\\\n", "c x\n", "a foo",
    ":a", ": a", "ba", "b a", "ta;", "}#", "#e\n", "q5", "l 5", "v 4.2", "p;p", "{p}", "{p;}", "/I", "/M ", "\r\n", "\v", "\f", "\u00e4", "\u00a0",
]  # fmt: skip
SCRIPTS = st.lists(st.sampled_from(PIECES), max_size=14).map("".join)


def said(chunks: list[str]) -> subprocess.CompletedProcess[str]:
    """What sed says to scripts that may neither run a command nor read or write a file."""
    return subprocess.run(
        [SED, "--sandbox", "-n", *options(chunks), "/dev/null"],
        capture_output=True, text=True, errors="replace", check=False, timeout=10, env={"LC_ALL": "C.UTF-8"},
    )  # fmt: skip


def options(chunks: list[str]) -> list[str]:
    return [word for chunk in chunks for word in ("-e", chunk)]


def reaches_out(script: SedScript) -> bool:
    return bool(script.runs or script.runs_input or script.files)


@WITH_GNU_SED
@given(st.lists(SCRIPTS, min_size=1, max_size=3))
def test_a_script_that_is_said_to_edit_only_does_nothing_else(chunks: list[str]) -> None:
    done = said(chunks)
    script = read_words(["sed", "-n", *options(chunks), "/dev/null"])
    if "sandbox mode" in done.stderr:
        assert reaches_out(script) or not script.understood
    if done.returncode == 0 and script.understood:
        assert not reaches_out(script)


# Each makes the file `canary`.
MADE = [
    "e touch canary", "1!{e ls\n};$e\\\ntouch canary", "s/.*/touch canary/e", "s[one[touch canary[ g e", "sxonextouch canaryxe", "s\\one\\touch canary\\e",
    "s/[/]*one/touch canary/e", "\\xonexe touch canary", "w canary", "s/one/b/gwcanary", "2,+3W canary", "a\\ \ne touch canary", "y/e/e/;wcanary", "#e\nw canary",
    "/[[:alpha:]/]/{wcanary\n}", "a foo\\\nbar\nw canary", "i\\\\\nw canary",
]  # fmt: skip
QUIET = [
    "s/[^/]*$//;s|[|]|e|", "1a\\\ne touch canary", "/x/c\\e touch canary", "# e touch canary\\\np", "y/abc/e x/;:e", "s/e/w canary/", "$!{N;P;D}", ":a;N;$!ba;s/\\n/ /g",
    "s/a/b\\\nw canary/", "\\,e,!d", "/[]/]w canary/d", "s/[[:alpha:]]e/[/;1~2p", "1i\\\n\\  w canary\\\n  e touch canary",
]  # fmt: skip


@WITH_GNU_SED
def test_what_scripts_run_and_write_is_what_sed_does(tmp_path: Path) -> None:
    (tmp_path / "input").write_text("one\ntwo\n")
    wrong = []
    for script in [*MADE, *QUIET]:
        subprocess.run([SED, script, "input"], cwd=tmp_path, capture_output=True, check=False, timeout=10)
        made = [path.name for path in tmp_path.iterdir() if path.name != "input"]
        found = read_script(script)
        if made != (["canary"] if script in MADE else []) or (
            not reaches_out(found) if made else reaches_out(found)
        ):
            wrong.append((script, made, found))
        (tmp_path / "canary").unlink(missing_ok=True)
    assert wrong == []


def test_the_time_to_read_a_script_grows_with_its_length() -> None:
    for piece in (
        "s/a",
        "s/[",
        "a\\",
        "{",
        "1,2!",
        "s/a/b/w",
        "\\",
        "e;",
        ":a",
        "/[[:",
        "y,",
        "1~",
        "s" * 3,
        "#",
        "0 ",
    ):
        started = time.process_time()
        read_words(["sed", piece * (100_000 // len(piece))])
        assert time.process_time() - started < 2, piece
