"""Commands that were thought up to get past the judge, those that are destructive, and those that must not ask.

One a line in `shell_commands/`; ␤ stands for a newline, `## …` begins a kind.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.cases import each
from toolcrib.command.judge import judge


def written(name: str) -> list[Any]:
    lines = (Path(__file__).parent / "shell_commands" / f"{name}.txt").read_text("utf-8").split("\n")
    return [line.replace("␤", "\n") for line in lines if line.strip() and not line.startswith("## ")]


@pytest.mark.promise("shell-commands.md", "what they miss still asks, because it is not plain")
@pytest.mark.promise(
    "shell-commands.md",
    "every word has one reading, every program and option is on its list, every path is in "
    "the workspace or a fact of the machine (`/etc/os-release`, `/proc/cpuinfo`), and it only reads or runs the project's own checks",
)
@pytest.mark.promise("security.md", "a command that runs unasked was proved")
@each("command", written("must_not_run_unasked"))
def test_a_bypass_is_not_plain(command: str) -> None:
    assert judge(command).verdict != "plain"


@pytest.mark.promise(
    "shell-commands.md", "it would destroy the host, or holds signs that a person cannot see"
)
@pytest.mark.promise("security.md", "what would destroy the machine is refused under both")
@each("command", written("destructive"))
def test_destructive_commands_are_denied(command: str) -> None:
    assert judge(command).destroys


PADDED = {
    "words": "rm -rf " + "a " * 600 + "/ &", "commands": ":;" * 600 + "rm -rf / &", "lines": ":\n" * 4_000 + "rm -rf /",
    "not parsed": ":;" * 50_000 + "rm -rf /", "launchers": "nice " * 600 + "rm -rf / &", "loop": f"for i in {'a ' * 600}/; do rm -rf $i; done",
    "variables": "".join(f"a{number}=b;" for number in range(600)) + "x=rm; $x -rf / &", "braces": "rm -rf " + "{a,b}{a,b} " * 300 + "/",
}  # fmt: skip


@pytest.mark.parametrize("command", PADDED.values(), ids=PADDED)
def test_a_destructive_command_is_denied_behind_much_else(command: str) -> None:
    assert judge(command).destroys


@each("command", written("harmless"))
def test_what_is_harmless_does_not_ask(command: str) -> None:
    found = judge(command)
    assert (found.verdict, found.reason) == ("plain", "")


def test_checks_and_builds_count_as_running_the_projects_code() -> None:
    lines = (Path(__file__).parent / "shell_commands" / "harmless.txt").read_text("utf-8")
    checks = lines.partition("## builds and checks of the project\n")[2].partition("\n## ")[0].splitlines()
    assert len(checks) > 40
    assert [text for text in checks if judge(text).effect != "exec"] == []


@each("command", written("not_destructive"))
def test_what_only_resembles_a_destructive_command_is_not_denied(command: str) -> None:
    assert judge(command).verdict != "deny"


@pytest.mark.promise(
    "shell-commands.md", "it would destroy the host, or holds signs that a person cannot see"
)
@each(
    "sign",
    [*range(9), *range(11, 32), *range(127, 161), 0xAD, 0x34F, 0x61C, 0x115F, 0x1160, 0x1680, 0x17B4, 0x180B, 0x180E,
     *range(0x2000, 0x2010), *range(0x2028, 0x2030), *range(0x205F, 0x2070), 0x2800, 0x3000, 0x3164, 0xD800, 0xDFFF,
     0xE000, 0xFE00, 0xFE0F, 0xFEFF, 0xFFA0, 0x1D159, 0x1D173, 0xE0001, 0xE0020, 0xE0100, 0xF0000, 0x10FFFF],
)  # fmt: skip
def test_signs_that_cannot_be_seen_are_never_plain(sign: int) -> None:
    for command in ("ls%s x", "ls a%sb", 'echo "a%sb"', "%sls", "ls;%stouch x"):
        assert judge(command.replace("%s", chr(sign))).verdict != "plain"


LONG = {
    "longer than a person reads": "ls " + "a" * 10_001, "commands": "ls;" * 60, "groups": "(" * 60 + "ls" + ")" * 60,
    "substitutions": "echo " + "$(echo " * 50 + "a" + ")" * 50, "scripts": "bash -c " * 8 + "ls",
    "folders": "cd a; " * 12 + "ls", "rounds": f"for i in {' '.join('a' * 30)}; do ls; done",
    "loops": "for i in a b c d; do " * 5 + "ls;" + "done;" * 5, "padding": "ls" + "\t" * 70 + "; ls",
}  # fmt: skip


@pytest.mark.parametrize("command", LONG.values(), ids=LONG)
def test_what_is_too_much_to_review_asks(command: str) -> None:
    assert judge(command).verdict == "ask"


@pytest.mark.parametrize("name", [".ｅnv", "．．/x", "․․/x", "／etc/passwd", "ｉd_rsa", ".ssh／id_rsa"])
def test_names_that_look_like_others_ask(name: str) -> None:
    assert judge(f"cat {name}").verdict == "ask"
