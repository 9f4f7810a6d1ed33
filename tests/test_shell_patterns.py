"""A pattern becomes the names that somebody chose for files. Whatever they are, a command that runs unasked stays what
it was judged to be.

By hand, for longer:

    python -m tests.test_shell_patterns SEED COUNT [loop|xargs|listing]
"""

from __future__ import annotations

import asyncio
import os
import random
import shlex
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from tests.local_host import Local, Recorder
from toolcrib.command.judge import judge
from toolcrib.command.judge.paths import objection
from toolcrib.command.launch import run_plan
from toolcrib.command.launch.plan_streams import Streams
from toolcrib.command.not_proved import NotProved
from toolcrib.command.plan import Plan, Word
from toolcrib.command.programs.options import listed_options, read_arguments
from toolcrib.command.programs.table import SYNOPSES, find_synopsis

READERS = sorted(
    name
    for name, row in SYNOPSES.items()
    if (row.runs_unasked or row.reading) and name not in ("cd", ":", "exit")
)
PREFIXES = ["x", "a", "src/x", "(", "!", "HEAD", "-", "--out", "+", "@", "1", "t", "s", "e", "./x", "B"]
# What the rest of a name may be, so that the whole is an option, a program text, an output, a revision, a secret.
ENDINGS = [
    "", "put=pwned", "opwned", "=1", "=FS", "1", "@", "HEAD", ":.env", "EAD:.env", "b.txt", "expire", "how", "tvf", "f",
    "e touch pwned", "w pwned", "EGIN{system(\"touch pwned\")}", "delete", "exec", ".env", ".key", ":x", "..y", "x", "y", "z",
]  # fmt: skip
LITERALS = ["a.txt", "README.md", "1", "x", "-", "--", "HEAD", "src", "n"]
ENV = {"PATH": "/usr/bin:/bin"}


def names_of_ls(work: Path) -> Callable[[Sequence[str], Streams], int | None]:
    """`ls` prints its names, which are read by what comes after it; no other program is started."""

    def answered(argv: Sequence[str], streams: Streams) -> int | None:
        if list(argv) != ["ls"] or streams[1] is None:
            return None
        os.write(streams[1], "\n".join(os.listdir(work)).encode())  # noqa: PTH208
        return 0

    return answered


async def started(plan: Plan | None, work: Path) -> list[list[str]]:
    """The programs that the plan of a plain command would start there, with their arguments."""
    assert plan is not None
    host = Recorder(str(work), names_of_ls(work))
    null = os.open(os.devnull, os.O_RDWR)
    try:
        await run_plan(plan, host, env=ENV, stdin=null, stdout=null, stderr=null, harden_git=False)
    finally:
        os.close(null)
    return host.started


def hostile_tree(source: random.Random, work: Path) -> set[str]:
    """Makes files whose names look like options, programs, outputs, revisions and secrets."""
    names = {source.choice(PREFIXES) + source.choice(ENDINGS) for _ in range(14)}
    names |= {f"-{source.choice(ENDINGS)}x", f"--{source.choice('aox')}.txt", "b.txt", "x.py"}
    names |= {name[2:] if name.startswith("./") else name for name in names}
    for name in names:
        path = work / name
        path.parent.mkdir(exist_ok=True)
        if "/" not in name.removeprefix("src/").removeprefix("./"):
            path.touch()
    return names


def command(source: random.Random) -> str:
    name = source.choice(READERS)
    options = [option for option in listed_options(SYNOPSES[name].options) if option != "#"]
    words = [name]
    for _ in range(source.randint(1, 4)):
        pattern = shlex.quote(source.choice(PREFIXES)) + source.choice(["*", "*", "?*", "*[x]*"])
        if source.random() < 0.2:
            pattern = source.choice(["*.txt", "*x", "*?d", "*[a]x", "*.py"])
        kind = source.random()
        if kind < 0.25 and options:
            words.append(source.choice(options))
        elif kind < 0.35 and options:
            option = source.choice(options)
            words.append(f"{option}={pattern}" if option.startswith("--") else f"{option}{pattern}")
        elif kind < 0.75:
            words.append(pattern)
        else:
            words.append(source.choice(LITERALS))
    return " ".join(words)


def loop(source: random.Random) -> str:
    """A command in a loop over a pattern, with the loop's name alone, in a longer word, or in an option."""
    pattern = shlex.quote(source.choice(PREFIXES)) + source.choice(["*", "?*", "*[x]*"])
    tried = source.choice(["", "", 'test -f "$f" && '])
    return f"for f in {pattern}; do {tried}{with_names(source)} ; done"


def with_names(source: random.Random) -> str:
    """A command with the names that `f` holds in some of its words."""
    words = command(source).split(" ")
    for at in range(1, len(words)):
        if source.random() < 0.6:
            form = source.choice(
                [
                    '"$f"',
                    '"$f"',
                    "$f",
                    "${f}",
                    '"x$f"',
                    '"$f.txt"',
                    '"src/$f"',
                    "--x=$f",
                    "-n$f",
                    "HEAD:$f",
                    '"$f$f"',
                ]
            )
            words[at] = form
    return " ".join(words)


def listing(source: random.Random) -> str:
    """A command that gets the names of all files in a variable, one by one or together."""
    body = with_names(source)
    shape = source.choice(
        [
            "for f in $(ls); do {} ; done",
            "ls | while read -r f; do {} ; done",
            "ls | sort | while IFS= read -r f; do {} ; done",
            "f=$(ls); {}",
            "x=$(ls); for f in $x; do {} ; done",
            'for x in $(ls); do f=$(echo "$x"); {} ; done',
            'ls | while read -r x; do for f in $x; do [[ -n "$f" ]] && {} ; done; done',
        ]
    )
    return shape.format(body)


def reader_of_names(source: random.Random) -> str:
    """A command that gets the names of all files from xargs."""
    words = [word for word in command(source).split(" ") if "*" not in word or source.random() < 0.2]
    options = source.choice(["", "", " -r", " -n1", " -n 3", " -d '\\n'", " -I{}", " -I{}", " -d '\\n' -n1"])
    if "-I" in options:
        marked = source.choice(
            ["{}", "{}", "src/{}", "x{}", "{}.txt", ".{}", "HEAD:{}", "-{}", "--x={}", "{}{}"]
        )
        words.insert(source.randint(1, len(words)), marked)
    before = source.choice(
        ["", "", "", "/usr/bin/", "command ", "env ", "LC_ALL=C ", "\\", "timeout 5 ", "command /bin/"]
    )
    return f"ls | {before}xargs{options} {' '.join(words)}"


def wrong_of(argv: list[str], text: str) -> str | None:
    """How what a command became differs from what it was judged to be, or None."""
    if argv[0].endswith("xargs"):
        return f"started {argv}, which takes names that nobody looked at"
    if argv[:4] == ["bash", "-p", "-c", 'type "$@"']:
        argv = ["type", *argv[5:]]
    name, row, at = find_synopsis(argv)
    if row.inert:
        return None
    literal = set(shlex.split(text))
    # One name, or one text of all names, may stand for a text, but not for an output or a program.
    one_word = " -n1" in text or " -I" in text or "$(ls)" in text or "while" in text
    words = [Word((word,) if word else ()) for word in argv[at:]]
    rows = [row]
    while (reading := rows[-1].reading) is not None:
        rows.append(reading)
    for row in [*rows[1:], rows[0]]:
        try:
            found = read_arguments(name, row, words)
            break
        except NotProved as stopped:
            reason = stopped.reason
    else:
        return f"became {argv}: {reason}"
    for option, value in found.values:
        touches = any(word[:1] == "-" and word.endswith(value.literal or "") for word in argv)
        if value.literal not in literal and not touches and not one_word:
            return f"became {argv}: {value.literal} is the value of {option}"
    repeats = {kind.rstrip("*") for kind in row.operands.split() if kind.endswith("*")} | {"read"}
    for word, kind in found.operands:
        if word.literal not in literal and kind not in repeats and not (one_word and kind in ("data", "ref")):
            return f"became {argv}: {word.literal} is taken for {kind}"
        if row.contents and kind == "read" and objection(word.literal or "") is not None:
            return f"became {argv}: shows {word.literal}"
    if not any(kind.endswith("*") for kind in row.operands.split()) and len(argv) > len(shlex.split(text)):
        return f"became {argv}"
    again = judge(shlex.join(argv))
    return None if again.verdict == "plain" else f"became {argv}: {again.reason}"


def look(
    seed: int, count: int, make: Callable[[random.Random], str] = command
) -> tuple[Counter[str], list[str]]:
    source = random.Random(seed)
    seen: Counter[str] = Counter()
    wrong: list[str] = []

    async def trees() -> None:
        for _ in range(max(count // 100, 1)):
            with tempfile.TemporaryDirectory() as folder:
                work = Path(folder)
                hostile_tree(source, work)
                for _ in range(100):
                    text = make(source)
                    found = judge(text)
                    seen[found.verdict] += 1
                    if found.verdict != "plain":
                        continue
                    for argv in await started(found.plan, work):
                        seen["started"] += 1
                        if (why := wrong_of(argv, text)) is not None:
                            wrong.append(f"{text!r} {why}")

    asyncio.run(trees())
    return seen, wrong


@pytest.mark.promise(
    "shell-commands.md",
    "What it matched, or what a listing printed, is judged again before the program starts",
)
def test_no_hostile_name_makes_a_command_something_else() -> None:
    seen, wrong = look(1, 4_000)
    assert wrong == []
    assert seen["plain"] > 400, seen
    assert seen["started"] > 200, seen


def test_no_hostile_name_makes_a_command_in_a_loop_something_else() -> None:
    seen, wrong = look(2, 4_000, loop)
    assert wrong == []
    assert seen["plain"] > 200, seen
    assert seen["started"] > 200, seen


def test_no_hostile_name_makes_a_command_of_xargs_something_else() -> None:
    seen, wrong = look(3, 4_000, reader_of_names)
    assert wrong == []
    assert seen["plain"] > 200, seen
    assert seen["started"] > 100, seen


def test_no_hostile_name_makes_a_command_that_gets_a_variable_something_else() -> None:
    seen, wrong = look(4, 4_000, listing)
    assert wrong == []
    assert seen["plain"] > 200, seen
    assert seen["started"] > 200, seen


# A pattern where one word belongs: the names after the first would be an option, a program, an output or a second file.
ONE_WORD = """awk -F x* 1 a.txt|awk -v x* 1 a.txt|find src -name d*|find src -newer d*|find src -path x* -print|find '('* -print
xxd -c src/*.py README.md|xxd src/*.py|uniq src/*.py|uniq -f x* a.txt|git rev-list -n --out*|git rev-list HEAD -n o*
git log -n x* HEAD|git log --author x*|git show -S x*|git diff -G x*|git branch --contains -n x* --sort x*
git tag -l --sort x*|git tag -n --points-at x*|git grep -e x* HEAD|git config --get x*|git describe --match x*
iconv -f x* a.txt|iconv -t x* -f utf8 a.txt|jq --arg x* .|jq --arg a x* . b.json|jq --indent x* . a.json|jq x* a.json
sort -k x* a.txt|sort -t x* a.txt|head -n x* a.txt|tail -c x* a.txt|cut -d x* -f 1 a.txt|cut -f x*|fold -w x* a
tr x* y|comm src/*|join src/*|cmp src/*|diff src/*|diff a.txt src/*|base64 src/*|base32 src/*|basenc --base16 src/*
split src/*|grep x* a.txt|grep -e x* a.txt|grep -A x* y a.txt|rg x*|rg -g x* y|rg -e x*|fd x*|ag x*
sed x* a.txt|sed -e x* a.txt|date -d x*|date x*|ps -p x*|nl -s x* a.txt|od -A x* a.txt|strings -n x* a|tree -L x*
ls -I x*|du -d x*|df -t x*|stat -c x* a|basename -s x* a|seq -s x* 3|shuf -n x* a.txt|fmt -w x* a|column -s x* a
test -f x*|[ -f x* ]|[ x* = y ]|[ a = x* ]|cd s*|unzip -l x*|zipinfo x*|tar -tf x*|id x*|timeout 5 uniq src/*
find src -exec grep x* {} +|find src -exec cat x* {} ';'|find src -print0 | xargs -0 grep x* y|nice -n x* ls
cargo test x*|go test -run x* ./...|pytest -k x*|pytest -p x*|git blame -L x* a.py""".replace("\n", "|").split("|")  # fmt: skip
MANY_WORDS = """cat src/*.py|wc -l src/*.py|grep -n foo src/*.py|ls -l src/*|head -n 3 src/*.py|rg foo src/*.py
git log --oneline src/*.py|git diff HEAD src/*|grep -r --include=*.py foo src|find src/* -name '*.py'|echo src/*
sort src/*.txt | uniq -c|awk '{print $1}' src/*.txt|sed -n 1,5p src/*.py|jq . src/*.js|pytest tests/test_*.py
file src/*|stat src/*|md5sum src/*|du -sh src/*|git tag -l 'v1*'|find src -name '*.py'|timeout 5 wc src/*""".replace(
    "\n", "|"
).split("|")


@pytest.mark.promise("shell-commands.md", "it is understood only where any number of files may stand")
def test_a_pattern_stands_only_where_any_number_of_words_may() -> None:
    # `|` between two programs was cut too: a pipe's halves are judged on their own.
    allowed = [text for text in ONE_WORD if "*" in text and judge(text).verdict == "plain"]
    assert allowed == []
    asks = [(text, found.reason) for text in MANY_WORDS if (found := judge(text)).verdict != "plain"]
    assert asks == []


@pytest.mark.promise(
    "shell-commands.md",
    "What it matched, or what a listing printed, is judged again before the program starts",
)
@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("awk 1 x*", "x=1"), ("git show HEAD*", "HEAD:.env"), ("git reflog exp*", "expire"), ("git reflog s*", "show"),
        ("cat src/*", "src/server.key"), ("wc -l $(ls)", "-x"), ("tar tf*", "tf"), ("ps a*", "auxe"),
    ],
)  # fmt: skip
async def test_what_a_pattern_became_is_judged_again_before_it_is_started(
    text: str, name: str, tmp_path: Path
) -> None:
    (tmp_path / "src").mkdir()
    (tmp_path / name).touch()
    found = judge(text)
    if found.verdict == "plain":
        assert [argv for argv in await started(found.plan, tmp_path) if name in argv] == []


LOOPS = [
    ('for f in *.txt; do cat "$f"; done', [["cat", "a b.txt"], ["cat", "c.txt"]]),
    ("for f in *.txt; do cat $f; done", [["cat", "c.txt"]]),  # what a shell would split is no name
    ('for f in *.txt; do printf = "= $f" $f; done', [["printf", "=", "= c.txt", "c.txt"]]),
    ('for f in none*; do cat "$f"; done', [["cat", "none*"]]),
    ("for f in none*; do cat $f; done", [["cat", "none*"]]),
    ('for f in x*; do wc "$f"; done', []),  # it would be shown, and may hold secrets
    ('for f in ?x*; do wc "$f"; done', []),
    ('for f in *.txt q*; do for g in y*; do cmp "$f" "$g"; done; done', [["cmp", one, "y-"] for one in ("a b.txt", "c.txt", "q.md")]),
]  # fmt: skip


@pytest.mark.promise(
    "shell-commands.md",
    "What it matched, or what a listing printed, is judged again before the program starts",
)
async def test_a_name_in_an_option_is_judged_again(tmp_path: Path) -> None:
    for name in ("{.env,a}", "a}"):
        (tmp_path / name).touch()
    text = """for f in *'}'; do rg -g"$f" x; done"""
    assert judge(text).verdict == "plain"
    assert await started(judge(text).plan, tmp_path) == [
        ["rg", "-ga}", "x"]
    ]  # the other chooses a file that may hold secrets


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ('for f in *.txt; do cat < "$f"; done', ["blank.txt", "c.txt"]), ("for f in *.txt; do cat < $f; done", ["c.txt"]),
        ('for f in x* *.txt; do cat < "$f"; done', ["blank.txt", "c.txt"]), ('for f in w* *.txt; do (cat) < "$f"; done', ["blank.txt", "c.txt"]),
        ('for f in s*; do cat < "$f/c.txt"; done', ["sub/c.txt"]), ('for f in *.txt; do echo "$(cat < "$f")"; done', ["blank.txt", "c.txt"]),
        ('for f in none*; do cat < "$f"; done', []),
    ],
)  # fmt: skip
async def test_a_loop_reads_only_what_it_may_show(text: str, shown: list[str], tmp_path: Path) -> None:
    work = tmp_path / "work"
    for name, place in {
        "a b.txt": "blank.txt",
        "c.txt": "c.txt",
        "x.pem": "x.pem",
        "sub/c.txt": "sub/c.txt",
        "s.env/c.txt": "secret",
    }.items():
        (work / name).parent.mkdir(parents=True, exist_ok=True)
        (work / name).write_text(f"{place}\n")
    (tmp_path / "outside").write_text("outside\n")
    (work / "way-out").symlink_to(tmp_path / "outside")
    found = judge(text)
    assert found.verdict == "plain" and found.plan is not None
    with (tmp_path / "out").open("wb") as out, Path(os.devnull).open("rb") as null:  # noqa: ASYNC230
        await run_plan(
            found.plan,
            Local(str(work)),
            env=ENV,
            stdin=null.fileno(),
            stdout=out.fileno(),
            stderr=null.fileno(),
        )
    assert (tmp_path / "out").read_text().split() == shown


@pytest.mark.promise("shell-commands.md", "a name that would be split without quotes stops its command")
@pytest.mark.parametrize(("text", "wanted"), LOOPS)
async def test_a_loop_over_a_pattern_hands_each_name_on_as_one_word(
    text: str, wanted: list[list[str]], tmp_path: Path
) -> None:
    for name in ("a b.txt", "c.txt", "x.pem", "-x-", "y-", "q.md"):
        (tmp_path / name).touch()
    plan = judge(text).plan
    assert judge(text).verdict == "plain" and plan is not None
    assert Plan.from_json(plan.to_json()) == plan and judge(str(plan)).verdict == "plain"
    assert await started(judge(text).plan, tmp_path) == wanted


if __name__ == "__main__":
    counts, faults = look(
        int(sys.argv[1]),
        int(sys.argv[2]),
        {"loop": loop, "xargs": reader_of_names, "listing": listing}.get("".join(sys.argv[3:]), command),
    )
    sys.stdout.write(f"{dict(counts)} wrong: {len(faults)}\n" + "\n".join(faults[:30]) + "\n")
