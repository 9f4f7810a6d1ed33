# ruff: noqa: SIM905 - tables of atoms read better in lines
"""What is judged plain is run by us and by a real bash: both must start the same programs, with the same
arguments, variables, inputs and outputs, and end with the same status.

Nothing real can run: PATH holds shims alone, which write down how they were started. By hand, for longer:

    python -m tests.test_shell_fuzz SEED COUNT
"""

from __future__ import annotations

import asyncio
import os
import random
import re
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path

import pytest

from tests.local_host import Local
from toolcrib.command.judge import judge
from toolcrib.command.judge.parse import parse
from toolcrib.command.launch import run_plan
from toolcrib.command.programs.table import SYNOPSES
from toolcrib.command.programs.wrappers import WRAPPERS

BASH = shutil.which("bash", path="/bin:/usr/bin:/usr/local/bin") or ""
BWRAP = shutil.which("bwrap", path="/bin:/usr/bin:/usr/local/bin") or ""
NAMES = sorted({name.split()[0] for name in SYNOPSES} | set(WRAPPERS) | {"["} - {"cd", ":", "exit"})
REAL = "echo true false test [".split()  # which a plan answers itself, as the programs do
BUILTINS = "echo printf pwd test true false kill type command builtin enable ["

# Written in the shell's own words only, so that a shim needs no other program. Log first, then print, last to what may be a pipe that nobody reads.
SHIM = r"""#!/bin/sh
name=${0##*/}
fd() { if [ ! -e /proc/self/fd/$1 ]; then printf closed; elif [ /proc/self/fd/$1 -ef /dev/null ]; then printf null;
  elif [ $1 = 2 ] && [ /proc/self/fd/2 -ef /proc/self/fd/1 ]; then printf same; else printf open; fi; }
given=
if [ -e /proc/self/fd/0 ]; then while IFS= read -r line || [ -n "$line" ]; do given="$given$line
"; done; fi
{ printf '%s\037' "$name" "$@"; printf '\036%s' "$given" "$(fd 0) $(fd 1) $(fd 2)" "$PWD" \
  "${LC_ALL-unset} ${TZ-unset} ${CI-unset} ${NO_COLOR-unset}"; printf '\035'; } > "$FUZZ_LOG/$$"
printf '%s!\n' "$name" >&2 2>/dev/null
printf '%s' "$name" >&1 2>/dev/null && printf ' %s' "$@" >&1 2>/dev/null && printf '\n' >&1 2>/dev/null
case $name in grep|diff|jq) exit 1;; sort) exit 2;; *) exit 0;; esac
"""

ATOMS = """ls cat echo grep sort head wc true false printf find|. sed|-n|1p awk|'{print|$1}' git|status cd|src cd
    pytest|-q make|test tr|a-z|A-Z cut|-d:|-f1 env xargs|-0|wc timeout|5 bash|-c nice uniq pwd : test|-f|a.txt [ ]
    -n -la -l -c -e -- - --color -n5 -5 a.txt b.txt src src/*.py src/?.py src/[ab].py a* *.txt foo 'a|b' "a|b" 'it'\\''s'
    a\\ b "$(echo|hi)" $(echo|a|b) $(echo|$(echo|c)) "x$(pwd)y" $'a\\tb' $'\\x41' '' "" é 'é' a=b --x=y a,b {a,b} {} {a
    {1..3} {03..1} {a,b}.txt src/{a,b}.py x{a,,b}y {a,b}{1..2} {-n,-c} {a..c} {*,a}.txt {c..A} {1..9..2} {a,{b,c}} "{a,b}" {a,"b"}
    {$x,a} "$?" ${?} x$? "s:$?" [|$?|-eq|0|] test|$?|=|1 {~,a} {,} {a,}= a={a,b} {a,b}>x {1,2}>x
    for|f|in|*.txt;|do|cat|"$f";|done for|f|in|src/*;|do|echo|"x$f";|done for|f|in|a*|none*;|do|ls|$f;|done
    for|f|in|a|b;|do|ls|$f;|done for|i|in|1|2 ;|do ;|done $f "$f" ${f} [|-f|a.txt|] [|a|=|b|] HEAD@{1} ~ ~/x x~ $x $HOME ${x} `pwd` \\$x \\` \\\\ \\' \\" \\; \\| \\& \\# # #|c a#b ! !x ? * [a] [a
    | || && ; & |& ;; ( ) { } \\n \\n\\n \\t <nl> \\<nl> && \\<nl> < > >> <<< 2>&1 1>&2 >&2 2>/dev/null >/dev/null
    &>/dev/null >&/dev/null </dev/null <|a.txt <|src/a.py <<<|x <<<|'a|b' 2>&- >&- <&- <&0 2>/dev/null|>&2 2> 1> 0<
    <<EOF\\nx|y\\nEOF\\n <<'EOF'\\n$x|`y`\\nEOF\\n <<-EOF\\n\\tx\\n\\tEOF\\n <<"E"\\n\\nE\\n <<E\\nE\\n
    LC_ALL=C TZ=UTC CI=1 NO_COLOR= FOO=x LC_ALL=$x LC_ALL='a' time then if fi do done for in case esac function coproc
    select until while [[ ]] (( )) 0 1 12 % ^ @ + , : . ./ / = += == =~ -eq $ $$ $? $! "$" "a$" "\\n" "a\\\\b" "\\$x" "!"
    /usr/bin/ls ./ls >|x <>x {fd}>x 3>&1 >&3 &>>x >x exec eval . source""".split()
LISTS = [
    "ls -la",
    "echo a b",
    "cat a.txt",
    "grep -n foo a.txt",
    "wc -l src/*.py",
    "sort -u",
    "head -n 5",
    "git log -1",
]


def written(atom: str) -> str:
    return atom.replace("|", " ") if atom.strip("|") else atom


def decoded(atom: str) -> str:
    return atom.replace("\\<nl>", "\\\n").replace("<nl>", "\n").replace("\\n", "\n").replace("\\t", "\t")


def soup(source: random.Random) -> str:
    """Atoms in a row, mostly apart."""
    text = ""
    for _ in range(source.randint(1, 8)):
        text += decoded(written(source.choice(ATOMS))) + source.choice(
            ["  ", " ", " ", " ", " ", "", "", "\n"]
        )
    return source.choice(LISTS) + " " + text if source.random() < 0.4 else text


def sensible(source: random.Random, depth: int = 0) -> str:
    """A list of commands as a model would write it."""
    text = simple(source, depth)
    for _ in range(source.randint(0, 3)):
        text += source.choice([" | ", "|", " && ", " || ", "; ", ";", "\n", " |\n", " && \\\n"]) + simple(
            source, depth
        )
    return text


def compound(source: random.Random, depth: int) -> str:
    """A loop, a statement, a group or a test."""
    kind = source.random()
    if kind < 0.5:
        return statement(source, depth)
    if kind < 0.7:
        test = source.choice(
            [
                "-f a.txt",
                "! -f a.txt",
                '-n "a b"',
                "-z ''",
                "a = b",
                "1 -lt 2",
                "-d src",
                "a != 'b c'",
                '"$f" = a',
            ]
        )
        return f"[ {test} ]" + source.choice(["", " ", " 2>/dev/null", " >&2"])
    name = source.choice(["f", "g", "i", "file_1"])
    words = " ".join(
        source.choice(["a", "b.txt", "'a b'", "src/a.py", "-n", "1", '"*"', "''", "é", f"$({LISTS[0]})"])
        for _ in range(source.randint(1, 3))
    )
    uses = [
        "$" + name,
        f'"${name}"',
        f'"x ${{{name}}} y"',
        f"${{{name}}}.py",
        f"'${name}'",
        f"\\${name}",
        f"$({LISTS[1]} ${name})",
    ]
    body = "; ".join(
        sensible(source, depth + 1)
        if source.random() < 0.3
        else f"{source.choice(LISTS)} {source.choice(uses)}"
        for _ in range(source.randint(1, 2))
    )
    shape = source.choice(
        ["for {} in {}; do {}; done", "for {} in {}\ndo\n  {}\ndone", "for {} in {} ;do {} ; done"]
    )
    return shape.format(name, words, body) + source.choice(["", " | cat", " 2>/dev/null", " < a.txt", " >&2"])


def statement(source: random.Random, depth: int) -> str:
    """`if`, `while`, `until`, `{ }` or `time`. The shims end a loop: no condition holds again and again."""
    condition, one, two = (sensible(source, depth + 1) for _ in range(3))
    if source.random() < 0.5:
        condition = source.choice(
            ["true", "false", "! true", "! grep a", "[ -f a.txt ]", "ls | grep x", "cat < no"]
        )
    shape = source.choice(
        ["if {0}; then {1}; fi", "if {0}; then {1}; else {2}; fi", "if {0}\nthen\n  {1}\nelse\n  {2}\nfi",
         "if {0}; then {1}; elif true; then {2}; fi", "if {0}; then {1}; elif false; then {2}; else {1}; fi",
         "while false; do {1}; done", "until true; do {1}; done", "while grep a; {0}; grep b; do {1}; done",
         "until {0}; ls; do {1}; done", "while ! ls\ndo {1}\ndone", "{{ {0}; }}", "{{ {0}; {1}; }}", "{{\n{0}\n}}",
         "time {0}", "! time {0}", "time ({0})", "{{ time {0}; }}", "time {{ {0}; }}", "if {0} then {1}; fi", "{{ {0} }}"]
    )  # fmt: skip
    after = source.choice(
        ["", "", " | cat", " 2>/dev/null", " 2>&1", " < a.txt", " >&2", " && ls", "; ls", " ls"]
    )
    return shape.format(condition, one, two) + after


def simple(source: random.Random, depth: int) -> str:
    if depth < 2 and source.random() < 0.1:
        return compound(source, depth)
    if depth < 2 and source.random() < 0.1:
        return f"({sensible(source, depth + 1)})" + source.choice(["", " 2>&1", " >/dev/null"])
    text = source.choice(["", "", "", "! ", "LC_ALL=C ", "CI=1 TZ=UTC ", "2>&1 ", "</dev/null "])
    text += source.choice(
        [*LISTS, "true", "false", "cd src", "cd ..", "cd nowhere", "pwd", ":", "test -f a.txt"]
    )
    for _ in range(source.randint(0, 3)):
        text += source.choice([" ", " ", " ", "  ", " \\\n"]) + word(source, depth)
    return text + source.choice(
        ["", "", " 2>/dev/null", " 2>&1", ">/dev/null", " >&2", " < a.txt", " <<< 'x y'", " # c"]
    )


def word(source: random.Random, depth: int) -> str:
    if depth < 2 and source.random() < 0.15:
        inner = f"$({sensible(source, depth + 1)})"
        return source.choice([f'"{inner}"', f'"a {inner} b"', inner, f"x{inner}y"])
    return source.choice(
        ["a", "'a b'", '"a b"', "a\\ b", "'$x'", '"a\\"b"', "a'b'\"c\"", "src/*.py", "no/*.x", "a?txt", "src/[ab].py", "''",
         "é", "$'a\\'b'", "$'\\x41\\n'", "'a'\\''b'", "-n", "--", "2", "a=b", '"*"', "\\*", "'a\nb'", '"a\\\nb"', "a#b"]
    )  # fmt: skip


def mutated(text: str, source: random.Random) -> str:
    for _ in range(source.randint(1, 3)):
        at = source.randint(0, len(text))
        text = (
            text[:at]
            + source.choice("\\\\''\"\"\n\t #&;|$`(){}!=<>*?[]~-0129a ")
            + text[at + source.randint(0, 2) :]
        )
    return text


def inputs(seed: int, count: int, seeds: list[str]) -> list[str]:
    source = random.Random(seed)
    found: list[str] = []
    for _ in range(count):
        kind = source.random()
        if kind < 0.35:
            text = soup(source)
        elif kind < 0.75 or not seeds:
            text = sensible(source)
        else:
            text = source.choice(seeds)
        found.append(mutated(text, source) if source.random() < 0.4 else text)
    return list(dict.fromkeys(found))


FAILURES = (b"No such file or directory", b"Not a directory", b"Bad file descriptor")


TIMES = re.compile(rb"\nreal\t[0-9m.]+s(?:\nuser\t.*\nsys\t.*)?\n")  # we cannot tell the second and third


def said(output: bytes) -> list[bytes]:
    """The lines that programs printed, without a shell's own complaints: they have other words."""
    failures = (
        b"No such file or directory",
        b"Not a directory",
        b"Bad file descriptor",
        b"ambiguous redirect",
    )
    output = TIMES.sub(b"", output)
    return sorted(line for line in output.split(b"\n") if not line.endswith(failures))


class Ground:
    """A folder of shims and one of files; bash in bubblewrap where there is one."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.bin, self.work = root / "bin", root / "work"
        self.bin.mkdir()
        (self.work / "src").mkdir(parents=True)
        for name, text in {
            "a.txt": "line one\nline two\n",
            "b.txt": "x",
            "src/a.py": "1\n",
            "src/b.py": "",
        }.items():
            (self.work / name).write_text(text)
        shim = self.bin / NAMES[0]
        shim.write_text(SHIM)
        shim.chmod(0o755)
        for name in NAMES[1:]:
            os.link(shim, self.bin / name)
        for name in REAL:
            (self.bin / name).unlink(missing_ok=True)
            (self.bin / name).symlink_to(f"/usr/bin/{name}")
        self.startup = root / "startup"
        self.startup.write_text(f"enable -n {BUILTINS}\n")
        self.folders = {str(self.work), str(self.work / "src")}
        self.log = root / "log"  # a file for each process: they write side by side
        self.log.mkdir()
        self.env = {"PATH": str(self.bin), "FUZZ_LOG": str(self.log), "LANG": "C.UTF-8"}
        self.inside = [BWRAP, "--ro-bind", "/", "/", "--bind", str(root), str(root), "--dev", "/dev", "--proc", "/proc",
                       "--unshare-all", "--die-with-parent", "--chdir", str(self.work), "--"] if BWRAP else []  # fmt: skip
        if self.inside and subprocess.run([*self.inside, BASH, "-c", "true"], capture_output=True).returncode:
            self.inside = []

    def files(self) -> list[str]:
        return sorted(str(path.relative_to(self.root)) for path in self.work.rglob("*"))

    def logged(self) -> list[str]:
        runs: list[str] = []
        for path in list(self.log.iterdir()):
            runs += path.read_text("utf-8", "surrogateescape").split("\035")[:-1]
            path.unlink()
        return sorted(map(self._comparable, runs))

    @staticmethod
    def _comparable(run: str) -> str:
        argv, given, *rest = run.split("\036")
        lines = b"\n".join(said(given.encode("utf-8", "surrogateescape")))
        return "\036".join([argv, lines.decode("utf-8", "surrogateescape"), *rest])

    def by_bash(self, command: str) -> tuple[object, ...]:
        done = subprocess.run(
            [*self.inside, BASH, "-c", command],
            cwd=self.work,
            env={**self.env, "BASH_ENV": str(self.startup)},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=20,
        )
        return self.logged(), done.returncode, said(done.stdout), self.files()

    async def by_plan(self, command: str, null: int) -> tuple[object, ...]:
        with (
            tempfile.TemporaryFile() as out,
            tempfile.TemporaryFile() as err,
        ):
            status = await run_plan(
                parse(command),
                Local(str(self.work)),
                env=self.env,
                stdin=null,
                stdout=out.fileno(),
                stderr=err.fileno(),
                timeout=20,
                harden_git=False,
            )
            out.seek(0)
            return self.logged(), status, said(out.read()), self.files()


def both(ground: Ground, command: str) -> tuple[tuple[object, ...], tuple[object, ...]]:
    theirs = ground.by_bash(command)
    with Path(os.devnull).open("rb") as null:
        return asyncio.run(ground.by_plan(command, null.fileno())), theirs


def left(ground: Ground, ran: tuple[object, ...]) -> bool:
    """Whether anything ran outside, or was kept from it."""
    runs, _, lines, _ = ran
    outside = any(run.split("\036")[3] not in ground.folders for run in runs)  # type: ignore[attr-defined]
    return outside or any(b"outside the workspace" in line for line in lines)  # type: ignore[attr-defined]


def agrees(ground: Ground, command: str, theirs: object) -> bool:
    """Whether another try ends as bash did: a program that writes to one that has ended may be ended by it."""
    if "|" not in command:
        return False
    tries = [both(ground, command) for _ in range(12)]
    return bool({repr(ours) for ours, _ in tries} & {repr(theirs), *(repr(by_bash) for _, by_bash in tries)})


def compare(
    seed: int, count: int, seeds: list[str], *, most: int | None = None
) -> tuple[Counter[str], list[str]]:
    """How many of each verdict there were, and every plain command that bash runs otherwise."""
    verdicts: Counter[str] = Counter()
    different: list[str] = []
    with tempfile.TemporaryDirectory() as folder:
        ground = Ground(Path(folder))
        for command in inputs(seed, count, seeds):
            verdict = judge(command).verdict
            verdicts[verdict] += 1
            if verdict != "plain" or (most is not None and verdicts["run"] >= most):
                continue
            if ("$(" in command or "`" in command) and set(command) & set("*?["):
                verdicts["left out"] += 1  # what a substitution prints is no pattern to us
                continue
            if "xargs" in command:
                verdicts["left out"] += 1  # the shim reads no names; test_shell_xargs.py compares them
                continue
            if re.search(r"while|until", command) and re.search(r"test|\[", command):
                verdicts["left out"] += 1  # it may not end
                continue
            verdicts["run"] += 1
            ours, theirs = both(ground, command)
            if "cd .." in command and (left(ground, theirs) or left(ground, ours)):
                verdicts["left out"] += 1  # where a cd failed, bash goes on to leave the folder and we do not
                continue
            if ours != theirs and not agrees(ground, command, theirs):
                different.append(f"{command!r}\n  bash {theirs}\n  ours {ours}")
    return verdicts, different


SEEDS = [
    "cat a.txt | sort | uniq -c | head -5", "cd src && ls", "ls\npwd\n", "grep -n 'it'\\''s' a.txt", "cat my\\ file.txt",
    "cat <<'EOF'\nhi $x\nEOF\n", "cat <<EOF | wc -l\nhi\nEOF\n", "echo \"$(ls | wc -l) files\"", "(cd src; pwd) 2>&1 | cat",
    "! grep foo a.txt || echo no", "LC_ALL=C sort < a.txt 2>/dev/null", "# list\nls", "wc -l src/*.py && false || echo b",
    "if grep -q x a.txt; then cat a.txt; else pwd; fi 2>&1 | head", "{ ls; pwd; } | wc -l", "time ls | wc -l",
    "for f in a b; do if [ -f $f.txt ]; then cat $f.txt; fi; done", "until ls; do pwd; done", "while false\ndo\nls\ndone",
    "echo a \\\n  b", "ls 2>&1 >/dev/null | cat", "echo $(echo a  b) \"$(echo c  d)\"", "cat <<< 'x y' | tr a-z A-Z",
    "false; echo $? \"$?\"; echo $?", "grep foo a.txt | sort; echo \"exit: $?\"", "if false; then ls; else echo $?; fi; echo $?",
    "(false; echo $?) | cat; echo $?", "! false; echo $?", "false || echo $?; echo $?", "while false; do ls; done; echo $?",
    "for f in *.txt; do cat \"$f\"; done", "for f in src/*.py a.txt b*.txt; do echo \"== $f\"; test -f \"$f\" && wc -l $f; done | sort",
    "for f in *.txt; do wc -l < \"$f\"; done", "for f in src/* a.txt none*; do echo \"$f: $(wc -l < \"$f\") $?\"; (cat; ls) < $f; done 2>&1 | sort",
    "for f in none*; do cat \"$f\"; echo $?; done", "for f in [ab].txt; do for g in src/*; do echo $f \"${g}\"; done; done 2>&1 | wc -l",
    "for f in *.txt\ndo\nif [ -s \"$f\" ]; then head -n 1 \"$f\"; else echo empty; fi\ndone > /dev/null", "cat \"$(for f in src/*.py; do echo $f; done)\"",
    "echo $(false; echo $?) $?", "for i in {1..3}; do test -f $i; echo $?; done", "cat {a,b}.txt src/{a,b}*.py; echo {3..-1}",
]  # fmt: skip


@pytest.mark.promise(
    "shell-commands.md",
    "then it is run as it was understood, by us, and not by a shell that could read it otherwise",
)
@pytest.mark.promise("security.md", "it runs as the plan that was proved, not through a shell")
@pytest.mark.slow
@pytest.mark.skipif(not BASH or not Path("/proc/self/fd").exists(), reason="needs bash and /proc")
@pytest.mark.parametrize("seed", [1, 2])
def test_bash_runs_what_was_proved_and_nothing_else(seed: int) -> None:
    verdicts, different = compare(seed, 1_500, SEEDS, most=150)
    assert verdicts["run"] >= 100, verdicts
    assert different == []


if __name__ == "__main__":
    found, wrong = compare(int(sys.argv[1]), int(sys.argv[2]), SEEDS)
    sys.stdout.write(f"{dict(found)} different: {len(wrong)}\n" + "\n".join(wrong[:20]) + "\n")
