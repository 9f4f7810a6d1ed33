"""xargs gets names, is not run itself, and starts nothing with a name that its command was not judged for."""

from __future__ import annotations

import os
import random
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.local_host import Local
from toolcrib.command.judge import judge
from toolcrib.command.judge.links import Links
from toolcrib.command.launch import run_plan
from toolcrib.command.programs.xargs import words_of_input, xargs_form

ENV = {"PATH": "/usr/bin:/bin", "LANG": "C.UTF-8", "HOME": "/nonexistent"}
XARGS = shutil.which("xargs", path=ENV["PATH"]) or ""
IS_GNU = bool(XARGS) and b"GNU" in subprocess.run([XARGS, "--version"], capture_output=True).stdout
PIECES = [
    "a",
    "b.txt",
    " ",
    "\n",
    "\t",
    "'",
    '"',
    "\\",
    "\r",
    "\v",
    "é",
    "x y",
    "'q w'",
    '"z"',
    "\\ ",
    "\n\n",
    "-n",
    "\\\n",
]
FORMS = [
    ["xargs"], ["xargs", "-r"], ["xargs", "-n", "2"], ["xargs", "-n1"], ["xargs", "-I{}"], ["xargs", "-I", "QQ"],
    ["xargs", "-d", "\\n"], ["xargs", "-d\n"], ["xargs", "-r", "-n2"], ["xargs", "-d", "\\n", "-I{}"],
    ["xargs", "-d", "\\0"], ["xargs", "-d\\0", "-I{}"],
]  # fmt: skip


@pytest.mark.skipif(not IS_GNU, reason="needs GNU xargs")
def test_words_are_those_of_gnu_xargs() -> None:
    source = random.Random(1)
    different, compared = [], 0
    for _ in range(400):
        options = source.choice(FORMS)
        pieces = [*PIECES, "\0", "\0"] if any("0" in option for option in options) else PIECES
        text = "".join(source.choice(pieces) for _ in range(source.randint(0, 9)))
        mark = "QQ" if "QQ" in options else "{}"
        command = [f"x{mark}y", mark] if any("-I" in option for option in options) else ["c"]
        form = xargs_form([*options, "program", *command])
        assert form is not None
        try:
            ours = [
                words[1:]
                for words, _ in form.commands([*options, "program", *command], words_of_input(text, form))
            ]
        except ValueError:
            continue  # asked too much of: nothing runs
        compared += 1
        shim = ["sh", "-c", 'printf "%s\\0" "$#" "$@"', "sh"]
        done = subprocess.run(
            [XARGS, *options[1:], *shim, *command], input=text.encode(), capture_output=True, env=ENV
        )
        printed, theirs = done.stdout.decode().split("\0")[:-1], []
        while printed:
            count = int(printed[0]) + 1
            theirs.append(printed[1:count])
            printed = printed[count:]
        if ours != theirs:
            different.append((text, options, ours, theirs))
    assert different == []
    assert compared > 200


async def ran(text: str, work: Path) -> tuple[int, str]:
    found = judge(text)
    assert found.verdict == "plain" and found.plan is not None, found.reason
    with (work.parent / "out").open("wb") as out, Path(os.devnull).open("rb") as null:  # noqa: ASYNC230
        status = await run_plan(
            found.plan,
            Local(str(work)),
            env=ENV,
            stdin=null.fileno(),
            stdout=out.fileno(),
            stderr=out.fileno(),
            timeout=20,
        )
    return status, (work.parent / "out").read_text()


@pytest.fixture
def work(tmp_path: Path) -> Path:
    folder = tmp_path / "work"
    (folder / "sub").mkdir(parents=True)
    (folder / "a.txt").write_text("shown\n")
    (folder / "sub" / "b.txt").write_text("also shown\n")
    (tmp_path / "outside").write_text("not to be shown\n")
    return folder


HOSTILE = {
    "an option": ("-n", "ls | xargs cat"), "an option of a line": ("--help", "ls | xargs -I{} cat {}"),
    "a secret": ("key.pem", "ls | xargs cat"), "a secret in a line": ("x.env", "ls | xargs -n1 cat"),
    "a part of a secret": ("v", "ls | xargs -I{} cat .en{}"), "a secret in quotes": ('"key".pem', "ls | xargs cat"),
    "a secret behind a backslash": ("\\.env", "ls | xargs cat"), "a quote": ("it's", "ls | xargs cat"),
    "a way out": ("x\n..", "ls | xargs -I{} cat {}/outside"), "an assignment": ("FS=x", "ls | xargs -n1 awk 1 a.txt"),
    "a revision": ("HEAD:.env", "ls | xargs git log --oneline"),
}  # fmt: skip


@pytest.mark.promise(
    "shell-commands.md",
    "What it matched, or what a listing printed, is judged again before the program starts",
)
@pytest.mark.parametrize(("name", "text"), HOSTILE.values(), ids=HOSTILE)
async def test_nothing_runs_with_a_name_that_it_was_not_judged_for(name: str, text: str, work: Path) -> None:
    for secret in {name, "key.pem", ".env"} if "secret" not in name and "/" not in name else {name}:
        (work / secret).write_text("not to be shown\n")
    status, printed = await ran(text, work)
    assert status
    assert "not run" in printed
    assert "shown" not in printed


@pytest.mark.parametrize("text", ["ls | xargs nm", "ls | xargs -I{} nm {}", "strings *a.txt"])
async def test_a_name_that_stands_for_a_list_of_arguments_is_handed_to_nobody(text: str, work: Path) -> None:
    (work / "@a.txt").touch()
    status, printed = await ran(text, work)
    assert status
    assert "not run" in printed
    assert "shown" not in printed


@pytest.fixture
def repository(work: Path) -> Path:
    subprocess.run(["git", "init", "-q", str(work)], check=True)
    return work


NUL_HOSTILE = {
    "an option": ("-n", "cat"), "a secret": ("key.pem", "cat"), "a secret in a line": ("x.env", "-I{} cat {}"),
    "an assignment": ("FS=x", "-n1 awk 1 a.txt"), "a list of arguments": ("@a.txt", "-n1 nm"),
}  # fmt: skip


@pytest.mark.parametrize(("name", "text"), NUL_HOSTILE.values(), ids=NUL_HOSTILE)
async def test_a_name_that_a_nul_ends_is_looked_at_too(name: str, text: str, repository: Path) -> None:
    (repository / name).write_text("not to be shown\n")
    status, printed = await ran(f"git ls-files -oz | xargs -0 {text}", repository)
    assert status
    assert "not run" in printed
    assert "shown" not in printed


async def test_a_link_that_leads_out_stops_the_command(work: Path) -> None:
    (work / "way-out").symlink_to(work.parent / "outside")
    _, printed = await ran("ls | xargs -n1 cat", work)
    assert "not to be shown" not in printed
    assert "way-out" in printed


async def test_names_are_handed_on_and_the_status_is_that_of_xargs(work: Path) -> None:
    assert await ran("find . -name '*.txt' | sort | xargs cat", work) == (0, "shown\nalso shown\n")
    assert await ran("ls sub | xargs -I{} cat sub/{}", work) == (0, "also shown\n")
    assert (await ran("ls | xargs -n1 head -n1 nothere", work))[0] == 123
    assert await ran("ls | grep nothing | xargs -r echo x", work) == (0, "")
    assert await ran("ls | grep nothing | xargs echo x", work) == (0, "x\n")
    assert await ran("ls | grep nothing | xargs cat", work) == (0, "")  # it reads nothing of ours


@pytest.mark.parametrize("options", ["", "-n 1"])
async def test_names_that_a_nul_ends_are_kept_whole(options: str, repository: Path) -> None:
    (repository / "two words\nand a line").write_text("whole\n")
    for lister, printed in {
        "git ls-files -oz": "shown\nalso shown\nwhole\n",
        "find . -maxdepth 1 -type f -print0 | sort -z": "shown\nwhole\n",
        "grep -rlZ shown sub": "also shown\n",
    }.items():
        assert await ran(f"{lister} | xargs -r0 {options} cat", repository) == (0, printed), lister


@pytest.mark.parametrize("search", [
    "grep -ril x .", "grep -r -l x .", "grep -lr x .", "grep --include=*.txt -rL x .", "rg -il x", "rg -g '*.py' -l x",
    "rg --files-with-matches x", "git grep -l x", "git grep --name-only x", "git grep -iL x",
])  # fmt: skip
def test_a_search_prints_names_whatever_the_order_of_its_options(search: str) -> None:
    for command in (f"{search} | xargs wc -l", f"wc -l $({search})"):
        assert judge(command).verdict == "plain", command


@pytest.mark.parametrize("search", [
    "grep -r x .", "grep -rel x", "grep -r -e x -- -l", "rg -L x", "rg x -l -c", "git grep -n x", "grep -lc x a",
    "grep -r -e -l .", "grep -rhe -l .", "grep -rh --regexp -l .", "rg -e -l x", "git grep -e -l", "grep -r -f -l .",
])  # fmt: skip
def test_a_search_that_prints_lines_prints_no_names(search: str) -> None:
    assert judge(f"{search} | xargs cat").verdict == "ask"


async def test_more_commands_than_anybody_reads_are_not_started(work: Path) -> None:
    for number in range(1_001):
        (work / f"n{number}").touch()
    status, printed = await ran("ls | xargs -n1 echo", work)
    assert (status, "more than 1,000" in printed) == (1, True)


def test_a_find_is_read_as_find_reads_it() -> None:
    """The value of a test is no action: xargs itself would hand on names that nobody looked at."""
    assert "xargs -0" not in str(judge("find . -type f -name -print0 | xargs -0 cat").plan)
    assert "-print0" not in str(judge("find . -name -print | xargs cat").plan)


@pytest.mark.parametrize("negated", [r"! \( -type f \)", r"-not \( -type f -o -name x \)"])
def test_links_among_what_a_find_gives_are_looked_up(negated: str, tmp_path: Path) -> None:
    (tmp_path / "l").symlink_to("/etc/passwd")
    links = Links(str(tmp_path), str(tmp_path))
    for command in (f"find . {negated} -exec cat {{}} +", f"find . {negated} -print0 | xargs -0 cat"):
        assert judge(command, workspace=str(tmp_path), links=links).verdict == "ask", command


@pytest.mark.parametrize(
    "command", ["ls | sort list | xargs cat", "cat $(ls | sort list)", "grep -rh . $(ls | grep . list)"]
)
async def test_a_listing_does_not_lead_out_of_the_folder_that_a_command_was_judged_in(
    command: str, tmp_path: Path
) -> None:
    (tmp_path / "sub").mkdir()
    (tmp_path / "kept").write_text("KEPT\n")
    (tmp_path / "sub" / "list").write_text(f"{os.path.realpath(tmp_path)}/kept\n")  # noqa: ASYNC240
    found = judge(f"cd sub && {command}")
    plan = found.plan
    assert found.verdict == "plain" and plan is not None
    with (tmp_path / "out").open("w+b") as out, Path(os.devnull).open("rb") as null:  # noqa: ASYNC230
        where = out.fileno()
        await run_plan(plan, Local(str(tmp_path)), env=ENV, stdin=null.fileno(), stdout=where, stderr=where)
    said = (tmp_path / "out").read_text()
    assert "KEPT" not in said and "is outside of the folder that it runs in" in said


def test_links_to_their_own_folder_do_not_hold_up_a_judgement(tmp_path: Path) -> None:
    for number in range(9):
        (tmp_path / f"l{number}").symlink_to(".")
    links = Links(str(tmp_path), str(tmp_path))
    found = judge(f"cat {'l*/' * 12}zz*.py", workspace=str(tmp_path), links=links)
    assert found.verdict == "ask" and "too many files" in found.reason
