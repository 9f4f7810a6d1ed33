# ruff: noqa: SIM905 - tables of pieces read better in lines
"""Variables, `exit`, `[[ … ]]` and loops over what is printed: run by us and by a real bash, they must do the same.

By hand, for longer:

    python -m tests.test_shell_variables SEED COUNT
"""

from __future__ import annotations

import os
import random
import sys
import tempfile
from collections import Counter
from pathlib import Path

import pytest

from tests.local_host import Local
from tests.test_shell_fuzz import BASH, Ground, agrees, both, mutated
from toolcrib.command.judge import judge
from toolcrib.command.launch import run_plan
from toolcrib.command.plan import Plan

NAMES = "x y f FILE".split()
VALUES = """1 a.txt 'a b' "" '' src -n "*" "$(git ls-files)" $(ls) $(true) $(false) $? "$?" $(echo a; exit 3) `pwd` a=b 'x;ls' time cd ls exit
    "$x" $x $y.py "${f}" "$FILE/b" $(ls $x) $(y=2; echo "$y") "a$x" $(nproc) : [ ] ! é \\$x '$x' ~ a* {a,b} $'a\\tb' if""".split()
USES = """$x "$x" ${x} "${x}" $y "$y" x$x.py "-$x" '$x' "$f" $f $FILE "$x$y" "$x $f" src/$x ${x}time $x=1 "${FILE}" a.txt $(echo $x) "$(ls "$y")"
    "$?" $? \\$x "\\$x" {$x,a} $x* "$x"*""".split()
CONDITIONS = """-f|a.txt -f|"$x" -n|$x -z|"$x" $x|=|1 "$x"|==|a.txt $x|!=|$y -d|src ! -f|none ! $x|=|1 $x a -n "a|b"|=|"a|b" 1|-lt|2 $x|-eq|1 $?|-eq|0
    "$f"|=|a.txt a|==|a* -e|*.txt -n|"$(git|ls-files)" "$(echo|a)"|=|a $(echo|a|b)|=|"a|b" a|-nt|b -a|a.txt a|-a|b -n|$x|-a|-n|$y 010|-eq|8 =|=|= -f|=|-f
    ( a ) a|<|b !|! a|b|c [ ] ]] "" -v|x -o|x ~|=|~ a|=~|b a|&&|b -f|a.txt|&&|!|-d|src
    a|=|b|¦¦|c !|a|==|b|&&|c -n|$x|¦¦|-z|$y a|&&|b|¦¦|c -n|"$x"|&&|$(ls)|=|a !|a|¦¦|!|"" a|&&|! a|&&|(|b|)""".split()
PROGRAMS = "echo|ls|cat|grep a|wc -l|head -n 1|git log|true|false|:|pwd|sort|test -f".split("|")


def text(source: random.Random, depth: int = 0, loops: tuple[str, ...] = ()) -> str:
    made = statement(source, depth, loops)
    for _ in range(source.choice([0, 1, 1, 2, 3])):
        glue = source.choice(["; ", "; ", "; ", ";", "\n", " && ", " || ", " | "])
        made += glue + statement(source, depth, loops)
    return made


def statement(source: random.Random, depth: int, loops: tuple[str, ...]) -> str:
    kind = source.random()
    if kind < 0.3:
        before = source.choice(["", "", "", "", "! ", "time "])
        after = source.choice(["", "", "", "", " >&2", " a", " # c"])
        return f"{before}{source.choice(NAMES)}={source.choice(VALUES)}{after}"
    if kind < 0.36:
        return "exit" + source.choice(["", " 3", " 0", " $?", " $x", ' "$y"', " 300", " a", " 1 2"])
    if kind < 0.46:
        condition = source.choice(CONDITIONS).replace("|", " ").replace("¦", "|")
        return source.choice(["[ {} ]", "[[ {} ]]", "[[ {} ]]", "[[ {} ]]", "! [[ {} ]]"]).format(
            condition
        ) + (source.choice(["", "", " 2>/dev/null", " a"]))
    if kind < 0.66 and depth < 3:
        return compound(source, depth, loops)
    words = " ".join(source.choice(USES) for _ in range(source.randint(0, 2)))
    program = source.choice([*PROGRAMS, *PROGRAMS, "$x", "${x}", "env " + source.choice(PROGRAMS)])
    end = source.choice(["", "", "", "", " 2>/dev/null", " < a.txt", ' <<< "$x"'])
    return f"{program} {words}".rstrip() + end


def compound(source: random.Random, depth: int, loops: tuple[str, ...]) -> str:
    name = source.choice([*NAMES, "g", "line"])
    one, two = (text(source, depth + 1, (*loops, name)) for _ in range(2))
    over = source.choice(
        ["a b", "$(ls)", "$x", "*.txt", "$(git ls-files)", '"$x"', "$(echo a b; exit 2)", "1"]
    )
    shape = source.choice(
        ["({one})", "{{ {one}; }}", "if {two}; then {one}; fi", "if {two}; then {one}; else {two}; fi",
         "for {name} in {over}; do {one}; done", "for {name} in {over}; do {use}; {one}; done", "while false; do {one}; done",
         "ls | while read -r {name}; do {use}; {one}; done", "while read {name}; do {use}; done < a.txt", "bash -c 'x=1; exit 4'",
         "printf '%s' a b | while IFS= read -r {name}; do {use}; done", "while read -r {name}; do {one}; done < b.txt",
         "cat a.txt | while IFS= read {name}; do {use}; {two}; done"]
    )  # fmt: skip
    use = source.choice(['echo "${}"', "ls ${}", 'wc -l "${}"', 'echo "[${}]" $x']).format(name)
    return shape.format(one=one, two=two, name=name, over=over, use=use) + source.choice(
        ["", "", "", " 2>&1", " < a.txt"]
    )


def compare(seed: int, count: int, *, most: int | None = None) -> tuple[Counter[str], list[str]]:
    """How many of each verdict there were, and every plain command that bash runs otherwise."""
    source = random.Random(seed)
    verdicts: Counter[str] = Counter()
    different: list[str] = []
    with tempfile.TemporaryDirectory() as folder:
        ground = Ground(Path(folder))
        (ground.work / "lines.txt").write_text("one\n  two \nthree\\\nfour\n")
        made = [text(source) for _ in range(count)]
        made = [mutated(one, source) if source.random() < 0.2 else one for one in made]
        for command in dict.fromkeys(made):
            verdict = judge(command).verdict
            verdicts[verdict] += 1
            if verdict != "plain" or (most is not None and verdicts["run"] >= most):
                continue
            verdicts["run"] += 1
            ours, theirs = both(ground, command)
            if ours != theirs and not agrees(ground, command, theirs):
                different.append(f"{command!r}\n  bash {theirs}\n  ours {ours}")
    return verdicts, different


async def said(text: str, work: Path, **env: str) -> tuple[int, str]:
    """The status of a plain command, and all that it and its programs print."""
    plan = judge(text).plan
    assert judge(text).verdict == "plain" and plan is not None
    assert Plan.from_json(plan.to_json()) == plan
    assert judge(str(plan)).verdict == "plain"  # what a person is shown means the same
    null = os.open(os.devnull, os.O_RDWR)
    env = {"PATH": "/usr/bin:/bin", "LANG": "C.UTF-8", **env}
    try:
        with tempfile.TemporaryFile() as out:
            both = {"stdout": out.fileno(), "stderr": out.fileno()}
            status = await run_plan(plan, Local(str(work)), env=env, timeout=20, stdin=null, **both)
            out.seek(0)
            return status, out.read().decode()
    finally:
        os.close(null)


RUNS = [
    ("x=a.txt; cat $x; cat \"$x\" | wc -l", (0, "one\n1\n")),
    ("x=$(ls); echo $x", (0, "a.txt b c.txt\n")),
    ("x=$(cat none); echo \"$?\"", (0, "cat: none: No such file or directory\n1\n")),
    ("false; rc=$?; echo no; exit $rc", (1, "no\n")),
    ("for f in a; do n=$f.txt; cat $n; exit 3; done; echo never", (3, "one\n")),
    ("(exit 3); echo $?; { exit 4; }; echo never", (4, "3\n")),
    ("ls | while read -r f; do echo \"<$f>\"; done", (0, "<a.txt>\n<b c.txt>\n")),
    ("printf ' a\\n' | while IFS= read -r x; do echo \"[$x]\"; done", (0, "[ a]\n")),
    ("printf ' a\\nb' | while read x; do echo \"[$x]\"; done", (0, "[a]\n")),
    ("[[ -f a.txt ]] && echo yes; [[ a == b ]] || echo no", (0, "yes\nno\n")),
    # What bash does otherwise, or what cannot be done as it was judged, stops with a reason.
    ("printf 'a\\\\\\n' | while read x; do echo $x; done", (1, "read: not run, because a line of its input has a backslash: write read -r\n")),
    ("ONE=1; echo $ONE", (1, "ONE=: not run, because programs get a variable of that name\n")),
    ("ls | while read -r f; do cat $f; done", (1, "one\ncat: b: No such file or directory\ncat: c.txt: No such file or directory\n")),
]  # fmt: skip


@pytest.mark.promise("shell-commands.md", "a variable that was set before, in the same list")
@pytest.mark.parametrize(("text", "wanted"), RUNS)
async def test_what_variables_hold_is_known_or_looked_at(
    text: str, wanted: tuple[int, str], tmp_path: Path
) -> None:
    (tmp_path / "a.txt").write_text("one\n")
    (tmp_path / "b c.txt").write_text("two\n")
    assert await said(text, tmp_path, ONE="2") == wanted


@pytest.mark.parametrize(
    "text",
    [
        'ls | while read -r f; do cat "$f"; done',
        'for f in $(ls); do cat "$f"; done',
        "x=$(ls); cat $x",
        'x=$(ls); for f in $x; do wc -l < "$f"; done',
    ],
)
async def test_no_name_that_a_variable_holds_shows_a_secret(text: str, tmp_path: Path) -> None:
    (tmp_path / "id_rsa").write_text("PRIVATE")
    (tmp_path / "-n").write_text("option")
    if judge(text).verdict == "plain":
        assert "PRIVATE" not in (await said(text, tmp_path))[1]


@pytest.mark.slow
@pytest.mark.skipif(not BASH or not Path("/proc/self/fd").exists(), reason="needs bash and /proc")
@pytest.mark.parametrize("seed", [1, 2])
def test_bash_gives_variables_the_same_values(seed: int) -> None:
    verdicts, different = compare(seed, 3_000, most=150)
    assert verdicts["run"] >= 100, verdicts
    assert different == []


if __name__ == "__main__":
    found, wrong = compare(int(sys.argv[1]), int(sys.argv[2]))
    sys.stdout.write(f"{dict(found)} different: {len(wrong)}\n" + "\n".join(wrong[:20]) + "\n")
