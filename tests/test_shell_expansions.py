# ruff: noqa: SIM905 - tables of pieces read better in lines
"""Brace expansions, loops over patterns and `$?` become the words that bash makes of them, among hostile file names.

By hand, for longer:

    python -m tests.test_shell_expansions SEED COUNT
"""

from __future__ import annotations

import asyncio
import os
import random
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.local_host import Recorder
from toolcrib.command.judge import judge
from toolcrib.command.launch import run_plan
from toolcrib.command.launch.plan_streams import Streams

BASH = shutil.which("bash", path="/bin:/usr/bin:/usr/local/bin") or ""
ENV = {"PATH": "/usr/bin:/bin", "LANG": "C.UTF-8"}
NAMES = [
    "a.txt", "b.txt", "a b.txt", "x\ny.txt", "$(touch pwned)", "it's.txt", 'q".txt', "a1", "a2", "{a,b}.txt", "[a].txt", "~", "*", "?",
    "a\\b.txt", "é.txt", ".h.txt", "src/a.py", "src/b.py", "1", "2", "=1", "a=b", " a.txt", "a.txt ", "\n", "...", "#c", "!b", "a;b", "a&b",
]  # fmt: skip
PIECES = """a b 1 3 -1 05 .. , { } {a,b} {1..3} {3..1} {-1..1} {01..3} {1..05} {a..c} {a..C} {Z..a} {a,{b,c}} {a} {} {,} {a,} {,a} * .txt src/
*.py ? \\, \\{ \\} {1..3..2} {a..e..2} {1..99999999} {-exec,x} ~ {~,a} = $? "$?" $ - -- {a,b a,b} {1..a} {1.5..2} {a,'b'} {a,"b"} % @ + :
{0..-0} {00..-1} {-01..1} {+1..3} {a..a} {1..1} _ ./ # {#,a} ! {!,a} {a,b}{c,d} {a,b,} {a,,b} {..} {,..} {a..} {..a} {a,1..3} 'a,b' "x" [ab] [a-c] [!b] [^a-z] [0-9] [z-a] [!]""".split()
OVER = [
    "*.txt",
    "src/*",
    "a*",
    "none*",
    "[ab].txt",
    "?",
    "src/*.py a*",
    "*[12]",
    "[a-c].txt",
    "[!b].txt",
    "*[^0-1]",
    "[!a-z]*",
    "{a,b}*",
    "*.txt {1,2}",
    "'a b' *.txt",
    "{1..3}",
    "x{a,b} c",
    '""',
]


def word(source: random.Random) -> str:
    return "".join(source.choice(PIECES) for _ in range(source.choice([1, 1, 2, 2, 3, 4])))


def simple(source: random.Random, loops: Sequence[str]) -> str:
    if loops and source.random() < 0.5:
        forms = [
            'echo "$%s"',
            'ls "$%s" $?',
            'echo "= ${%s}."',
            'ls -- "$%s"',
            'ls "src/$%s"',
            "echo \"$%s\" '$x' *.txt",
            'echo "$%s" {a,b}*',
        ]
        return source.choice(forms) % source.choice(loops)
    return source.choice(
        [
            "true",
            "false",
            ":",
            "echo $?",
            'echo "x$?" a',
            "true < nofile",
            "false < a.txt",
            "echo $? < nofile",
            f"echo {word(source)}",
        ]
    )


def several(source: random.Random, depth: int = 0, loops: tuple[str, ...] = ()) -> str:
    text = statement(source, depth, loops)
    for _ in range(source.choice([0, 0, 1, 2])):
        text += source.choice(["; ", " && ", " || ", "\n"]) + statement(source, depth, loops)
    return text


def statement(source: random.Random, depth: int, loops: tuple[str, ...]) -> str:
    if depth > 2 or source.random() < 0.5:
        return source.choice(["", "", "! "]) + simple(source, loops)
    one, two, three = (several(source, depth + 1, loops) for _ in range(3))
    name = source.choice("fgi")
    body = several(source, depth + 1, (*loops, name))
    shape = source.choice(
        ["({0})", "{{ {0}; }}", "if {0}; then {1}; fi", "if {0}; then {1}; else {2}; fi", "while {0}; false; do {1}; done",
         *["for {3} in {4}; do {5}; done"] * 4]
    )  # fmt: skip
    return shape.format(one, two, three, name, source.choice(OVER), body) + source.choice(
        ["", "", " < nofile", " < a.txt"]
    )


def status_of(argv: Sequence[str], streams: Streams) -> int | None:
    return {"true": 0, "false": 1}.get(argv[0])


async def by_plan(text: str, work: str) -> list[list[str]]:
    plan = judge(text).plan
    assert plan is not None
    host = Recorder(work, status_of)
    null = os.open(os.devnull, os.O_RDWR)
    try:
        await run_plan(plan, host, env=ENV, stdin=null, stdout=null, stderr=null, timeout=20)
    finally:
        os.close(null)
    return host.started


def by_bash(texts: Sequence[str], work: str) -> list[list[list[str]]]:
    """What each text starts. One bash runs all of them, each in a subshell."""
    script = "".join(
        f'{name}() {{ builtin printf \'%s\\0\' "$#" {name} "$@"; }}\n' for name in ("printf", "ls")
    )
    script += "\n".join(f"(eval {shlex.quote(text)}) </dev/null; builtin printf 'END\\0'" for text in texts)
    with tempfile.NamedTemporaryFile("w", encoding="utf-8") as file:  # too long for an argument
        file.write(script)
        file.flush()
        done = subprocess.run([BASH, file.name], cwd=work, env=ENV, capture_output=True, timeout=120)
    found: list[list[list[str]]] = []
    for printed in done.stdout.decode().split("END\0")[:-1]:
        words, started = printed.split("\0")[:-1], list[list[str]]()
        while words:
            count = int(words[0]) + 2
            started.append(words[1:count])
            words = words[count:]
        found.append(started)
    return found


def compare(seed: int, count: int) -> tuple[int, list[str]]:
    """How many plain commands were compared, and those that bash runs otherwise."""
    source = random.Random(seed)
    made = [several(source) if source.random() < 0.4 else f"echo {word(source)}" for _ in range(count)]
    made = [text.replace("echo ", "printf = ") for text in made]  # a plan does not start echo
    plain = [text for text in dict.fromkeys(made) if judge(text).verdict == "plain"]
    different: list[str] = []
    with tempfile.TemporaryDirectory() as work:
        for name in NAMES:
            path = Path(work, name)
            path.parent.mkdir(exist_ok=True)
            path.touch()

        async def ours() -> list[list[list[str]]]:
            return [await by_plan(text, work) for text in plain]

        for text, one, other in zip(plain, asyncio.run(ours()), by_bash(plain, work), strict=True):
            if one != other:
                different.append(f"{text!r}\n  ours {one}\n  bash {other}")
        assert sorted(os.listdir(work)) == sorted({name.split("/")[0] for name in NAMES})  # noqa: PTH208
    return len(plain), different


@pytest.mark.promise(
    "shell-commands.md",
    "then it is run as it was understood, by us, and not by a shell that could read it otherwise",
)
@pytest.mark.skipif(not BASH, reason="needs bash")
@pytest.mark.parametrize("seed", [1, 2])
def test_words_are_those_that_bash_makes(seed: int) -> None:
    compared, different = compare(seed, 800)
    assert different == []
    assert compared > 150


if __name__ == "__main__":
    number, wrong = compare(int(sys.argv[1]), int(sys.argv[2]))
    sys.stdout.write(f"{number} different: {len(wrong)}\n" + "\n".join(wrong[:20]) + "\n")
