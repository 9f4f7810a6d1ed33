# ruff: noqa: SIM905 - tables of atoms read better in lines
"""What is judged to read only is run by a real bash with the real programs: it must change nothing, run nothing
of the workspace, and show neither variables nor what lies outside.

By hand, for longer:

    python -m tests.test_shell_touch SEED COUNT
"""

from __future__ import annotations

import random
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path

import pytest

from toolcrib.command.judge import judge
from toolcrib.command.launch.environment import SET_ENV_VARS
from toolcrib.command.programs.options import listed_options
from toolcrib.command.programs.searching import FIND_WORDS
from toolcrib.command.programs.table import SYNOPSES

BASH = shutil.which("bash", path="/bin:/usr/bin:/usr/local/bin") or ""
BWRAP = shutil.which("bwrap", path="/bin:/usr/bin:/usr/local/bin") or ""
TOLD = "a-variable-that-nobody-may-see"
OUTSIDE = "what-lies-outside"
SYSTEM = [
    word
    for name in ("usr", "etc", "bin", "lib", "lib64", "sbin")
    if (path := Path("/", name)).exists()
    for word in (
        ["--symlink", str(path.readlink()), str(path)]
        if path.is_symlink()
        else ["--ro-bind", str(path), str(path)]
    )
]
READERS = sorted(
    name
    for name, form in SYNOPSES.items()
    if ((form.effect == "read" and form.runs_unasked) or form.reading)
    and shutil.which(name.split()[0])
    and name not in ("yes", "sleep", "man")
)
ATOMS = """a.txt b.txt src src/a.py . - -- -1 1 2 e I F x.tar x.tgz ./evil.sh evil.sh list @list pwned -o -opwned p w|pwned s/a/b/ s/a/b/e
    s/l/touch|pwned/e s/l/x/w|pwned 1e|touch|pwned e|touch|pwned r|list $p {print} {print>"pwned"} BEGIN{system("touch|pwned")}
    BEGIN{print|ENVIRON["TOLD"]} if(1)/(/;print|"x">"pwned";1/1 /[]/],/{print|"x">"pwned"}|{y=1/1} env $ENV .x .[] input -n -e -f -i -s -r -x
    --output=pwned --files0-from=list --to-command=./evil.sh --compress-program=./evil.sh -exec -delete {} ; + -print0 -name * aux axe auxe auxeww
    HEAD master HEAD:a.txt HEAD~1 --all -p --stat --ext-diff --textconv -O./evil.sh +%s -s|now 0101 a=b x=/outside/secret /outside/secret ../secret
    1,2p /l/p /l/w|pwned 1~2p y/a/b/ {} , ! ( ) '' é a|b -z --help --version -c -C -t -T""".split()
SED = r"""1 $ /l/ /[\t|]/ ! , { } ; ; <NL> <NL> \ a i c a\ i\ c\ a|x i\x p w|pwned e e|touch|pwned r|list s/l/x/ s/[\t]//
    s/[\]/w|pwned/ s/[/]/w|pwned/ s/x/y/w|pwned :a b t ba ta b|a w|pwned} } :a; y/a/b/ q N $! ~2 x text""".split()
ROOTS = ["a.txt", "src", ".", "1e touch pwned", 'BEGIN{system("touch pwned")}', "env", "-x"]
AWK = """{ } ( ) [ ] / ; , > < | & ! ~ $1 x y i 1 2 = == + - * % ? : " print printf if while for(;;) else in do return " x " /a/ /[]/ /[^]]/ /[/]/ /\\// /(/
    "pwned" "touch|pwned" > "pwned" | BEGIN END next function|f(x) length gsub( ++ -- && || \n /l/""".split()

MILLER = """--icsv --ojson -n -I --from a.txt --prepipe ./evil.sh --load e.mlr cat head -n 1 then sort -f x tee pwned split -g x put filter join
    -f -s -q a.txt list src /outside/secret -j case nothing""".split()
EXPRESSION = """$x = 1 ; . "pwned" "a\\" system("touch|pwned") exec("./evil.sh") ENV["TOLD"] print > tee > emit > | dump strlen($x) if ( ) { }
    filter true $* @y func|f(x) return "\" system(\"touch|pwned\") \\" # "\\\\\" ;""".split()


def told(word: str) -> str:
    return "'" + word.replace("|", " ").replace("'", "'\\''") + "'"


def options_of(name: str, source: random.Random) -> str:
    listed = listed_options(SYNOPSES[name].options)
    option = source.choice([*listed, "-x"])
    kind = listed.get(option)
    if kind in ("data", "read", "write"):
        value = told(source.choice(ATOMS))
        return f"{option}={value}" if option.startswith("--") else f"{option} {value}"
    return option.replace("#", "-3")


def one(source: random.Random, name: str) -> str:
    words = [name]
    if name == "mlr":
        expression = told(" ".join(source.choice(EXPRESSION) for _ in range(source.randint(1, 6))))
        choices = [*MILLER, f"put {expression}", f"filter {expression} then cat"]
        return " ".join([name, *(source.choice(choices) for _ in range(source.randint(1, 6)))])
    if name in ("awk", "mawk", "gawk") and source.random() < 0.8:
        words.append(told(" ".join(source.choice(AWK) for _ in range(source.randint(1, 14)))))
    if name == "sed" and source.random() < 0.6:
        script = "".join(source.choice(SED) for _ in range(source.randint(1, 8)))
        words.append(told(script.replace("<NL>", "\n")) + " a.txt")
    words += [
        options_of(name, source) if source.random() < 0.5 else told(source.choice(ATOMS))
        for _ in range(source.randint(0, 4))
    ]
    return " ".join(words)


def command(source: random.Random) -> str:
    kind = source.random()
    name = (
        source.choice(["awk", "sed", "jq", "tar", "sort", "ps", "mlr"])
        if source.random() < 0.4
        else source.choice(READERS)
    )
    if name not in SYNOPSES and not (name == "mlr" and shutil.which(name)):
        name = "sed"
    if kind < 0.6:
        return one(source, name)
    words = [
        told(source.choice(ROOTS)),
        *(
            source.choice([*FIND_WORDS, "-maxdepth 1", "-type f", "-name x"])
            for _ in range(source.randint(0, 2))
        ),
    ]
    find = "find " + " ".join(told(word) if word in "!()," else word for word in words)
    if kind < 0.75:
        inner = one(source, name).split(" ")
        inner.insert(source.randint(1, len(inner)), "{}")
        return f"{find} -exec {' '.join(inner)} " + source.choice(["\\;", "+"])
    if kind < 0.9:
        return f"{find} -print0 | xargs -0 {one(source, name)}"
    wrapper = source.choice(
        [
            "timeout 5",
            "nice -n 5",
            "/usr/bin/time",
            "/usr/bin/time -f x",
            "/usr/bin/time -o pwned",
            "stdbuf -oL",
            "env LC_ALL=C",
            "bash -c",
        ]
    )
    return f"{wrapper} {told(one(source, name)) if wrapper == 'bash -c' else one(source, name)}"


class Ground:
    """A workspace with traps in it, in a sandbox where it may be written to."""

    def __init__(self, root: Path) -> None:
        self.work, outside = root / "work", root / "outside"
        self.work.mkdir()
        outside.mkdir()
        (outside / "secret").write_text(OUTSIDE)
        (root / "secret").write_text(OUTSIDE)
        (self.work / "src").mkdir()
        for name, text in {
            "a.txt": "line one\nline two\n],\n", "b.txt": "x\n", "src/a.py": "1\n", "list": "/outside/secret\0-o\0pwned\0",
            ".mlrrc": "load e.mlr\n", "e.mlr": 'system("touch pwned")\n', "evil.sh": "#!/bin/sh\ntouch /ground/work/pwned\ncat\n", "env": "-o\0pwned\0",
        }.items():  # fmt: skip
            (self.work / name).write_text(text)
        (self.work / "evil.sh").chmod(0o755)
        for root_name in ROOTS[3:5]:
            (self.work / root_name).mkdir()
            (self.work / root_name / "f").write_text("a\n")
        for archive, how in (("x.tar", "cf"), ("x.tgz", "czf")):
            subprocess.run(["tar", how, archive, "a.txt"], cwd=self.work, check=True)
        self.git()
        self.inside = [
            BWRAP, *SYSTEM, "--bind", str(root), "/ground", "--ro-bind", str(outside), "/outside", "--tmpfs", "/tmp", "--dev", "/dev", "--proc", "/proc", "--unshare-all", "--die-with-parent",
            "--chdir", "/ground/work", "--", BASH, "-c",
        ]  # fmt: skip

    def git(self) -> None:
        named = ["git", "-c", "user.name=a", "-c", "user.email=a@b", "-c", "init.defaultBranch=master"]
        for args in (["init", "-q"], ["add", "a.txt", "src"], ["commit", "-qm", "one"]):
            subprocess.run([*named, *args], cwd=self.work, check=True, capture_output=True)

    def state(self) -> dict[str, tuple[int, bytes]]:
        return {
            str(path.relative_to(self.work)): (
                path.stat().st_mode,
                path.read_bytes() if path.is_file() else b"",
            )
            for path in sorted(self.work.rglob("*"))
            if path.name != "index"  # git status may refresh it
        }

    def run(self, text: str) -> bytes:
        try:
            env = {
                **SET_ENV_VARS,
                "PATH": "/usr/bin:/bin",
                "TOLD": TOLD,
                "HOME": "/nonexistent",
                "LANG": "C.UTF-8",
            }
            done = subprocess.run(
                [*self.inside, text], env=env, stdin=subprocess.DEVNULL, capture_output=True, timeout=10
            )
        except subprocess.TimeoutExpired:
            return b""
        return done.stdout + done.stderr


def wrong_of(ground: Ground, text: str, before: dict[str, tuple[int, bytes]]) -> str | None:
    said = ground.run(text)
    if TOLD.encode() in said:
        return "shows variables"
    if OUTSIDE.encode() in said:
        return "shows what lies outside"
    after = ground.state()
    if after != before:
        changed = sorted(name for name in after.keys() | before.keys() if after.get(name) != before.get(name))
        return f"changes {changed}"
    return None


def look(seed: int, count: int, most: int | None = None) -> tuple[Counter[str], list[str]]:
    """How many of each verdict there were, and every command judged to read only that did more."""
    source = random.Random(seed)
    verdicts: Counter[str] = Counter()
    wrong: list[str] = []
    seen: set[str] = set()
    with tempfile.TemporaryDirectory() as folder:
        ground = Ground(Path(folder))
        before = ground.state()
        for _ in range(count):
            text = command(source)
            found = judge(text)
            verdicts[found.verdict] += 1
            if found.verdict != "plain" or found.effect != "read" or text in seen:
                continue
            seen.add(text)
            if most is not None and verdicts["run"] >= most:
                break
            verdicts["run"] += 1
            if (why := wrong_of(ground, text, before)) is not None:
                wrong.append(f"{text!r} {why}")
                before = ground.state()
    return verdicts, wrong


def works() -> bool:
    if not BASH or not BWRAP or not Path("/proc/self/fd").exists():
        return False
    asked = [BWRAP, *SYSTEM, "--dev", "/dev", "--proc", "/proc", "--unshare-all", "--", BASH, "-c", ":"]
    return subprocess.run(asked, capture_output=True).returncode == 0


@pytest.mark.promise(
    "shell-commands.md",
    "every word has one reading, every program and option is on its list, every path is in "
    "the workspace or a fact of the machine (`/etc/os-release`, `/proc/cpuinfo`), and it only reads or runs the project's own checks",
)
@pytest.mark.promise("security.md", "a command that runs unasked was proved")
@pytest.mark.skipif(not works(), reason="needs bash and bubblewrap")
def test_what_only_reads_changes_nothing_and_shows_nothing_else() -> None:
    verdicts, wrong = look(1, 3_000, most=120)
    assert verdicts["run"] >= 100, verdicts
    assert wrong == []


@pytest.mark.skipif(not works(), reason="needs bash and bubblewrap")
@pytest.mark.parametrize(
    "text",
    ["tar I ./evil.sh -tf x.tar", "find env -print0 | xargs -0 sort < list", "/usr/bin/printf x > pwned", "awk 'BEGIN{print ENVIRON[\"TOLD\"]}'",
     "cat /outside/secret", "sed -n '1e touch pwned' a.txt"],
)  # fmt: skip
def test_it_would_be_seen(text: str, tmp_path: Path) -> None:
    ground = Ground(tmp_path)
    assert wrong_of(ground, text, ground.state()) is not None


if __name__ == "__main__":
    found, faults = look(int(sys.argv[1]), int(sys.argv[2]))
    sys.stdout.write(f"{dict(found)} wrong: {len(faults)}\n" + "\n".join(faults[:30]) + "\n")
