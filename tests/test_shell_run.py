"""A plan runs without a shell, ends as bash would, and leaves nothing behind."""

from __future__ import annotations

import asyncio
import os
import shutil
import subprocess
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import pytest

from tests.local_host import Local
from toolcrib.command.judge import Plan, judge
from toolcrib.command.judge.parse import parse
from toolcrib.command.launch import PlanProcess, run_plan
from toolcrib.command.launch.git_options import hardened
from toolcrib.command.launch.plan_streams import Streams

ENV = {"PATH": "/usr/bin:/bin", "LANG": "C.UTF-8", "HOME": "/nonexistent"}
BASH = shutil.which("bash", path="/bin:/usr/bin:/usr/local/bin") or ""
Run = Callable[..., "asyncio.Future[tuple[int, str, str]]"]


@pytest.fixture
def work(tmp_path: Path) -> Path:
    folder = tmp_path / "work"
    (folder / "sub").mkdir(parents=True)
    (folder / "a.txt").write_text("one\ntwo\nthree\n")
    (folder / "sub" / "b.c").write_text("b\n")
    (folder / "sub" / ".hidden").write_text("")
    (folder / "way-out").symlink_to(tmp_path)
    (tmp_path / "outside").write_text("outside\n")
    return folder


async def run(
    plan: Plan, work: Path, timeout: float = 20, env: Mapping[str, str] = ENV, **more: bool
) -> tuple[int, str, str]:
    out, err = work.parent / "out", work.parent / "err"
    with out.open("wb") as to, err.open("wb") as errors, Path(os.devnull).open("rb") as null:  # noqa: ASYNC230
        status = await run_plan(
            plan,
            Local(str(work)),
            env=env,
            stdin=null.fileno(),
            stdout=to.fileno(),
            stderr=errors.fileno(),
            timeout=timeout,
            **more,
        )
    return status, out.read_text(), err.read_text()


SAME_AS_BASH = [
    "echo a b | tr a-z A-Z", "false", "! false", "true && echo yes || echo no", "false && echo yes || echo no", "false; echo on",
    "cat < a.txt | head -2 | tail -1", "cat nothere || echo missing", "ls nothere 2>/dev/null", "ls nothere 2>&1 >/dev/null | wc -l", "echo x >&2",
    "cd sub && ls", "cd sub; cd ..; ls", "(cd sub && ls); ls", "cd nowhere || echo stayed", "cd sub | cat; ls", "echo sub/*.c no/*.c a.t?t",
    "echo \"$(cat a.txt | wc -l)\" $(cat a.txt)", "echo \"$(printf 'a\\n\\n')\" x$(echo 1 2)y", "cat <<'EOF'\n$x `y`\nEOF", "cat <<< 'a b' | wc -c", "cat a.txt - - sub/b.c - <<'EOF'\nx\nEOF\nls", "cat - <<EOF && ls - \nx\nEOF",
    "nosuchprogram; echo $(nosuchprogram2)z", "yes | head -1", "test -f a.txt && echo there", "printf '%s|' a '' 'b c'", "sh -c 'exit 3' | true",
    "true | sh -c 'exit 3'", "(sh -c 'kill -9 $$') 2>/dev/null || echo killed", "echo $'t\\tx' 'q\"q' \\*", "LC_ALL=C sort -r a.txt", "cat a.txt sub/b.c | sort | uniq -c | wc -l", "cat < nothere", "true < . && echo opened",
    "cat >&- a.txt", "(echo a; echo b >&2) 2>&1 | sort", ":", "echo ''", "cat <&0", "diff <(sort a.txt) <(sort -r a.txt)", "cat <(echo a; cat <(echo b)) a.txt", "head -1 <(yes)", "echo x | cat <(cat)",
    "comm -12 <(sort a.txt) <(echo two) | wc -l", "cat <(ls nothere) 2>&1", "(cd sub && cat <(ls))", "timeout 5 grep -f <(echo two) a.txt",
    "echo $(cat <(echo in))", "/usr/bin/env | wc -l >/dev/null", "cd -- sub && cat b.c",
    "ls *.txt | xargs wc -l", "ls a.txt | xargs cat nothere; echo $?", "ls sub | xargs -I{} cat sub/{} | wc -c", "ls | grep no | xargs -r cat; echo $?",
    "ls a.txt | xargs nosuchprogram; echo $?", "find sub -name '*.c' | xargs -n1 cat && ls | xargs -n 2 echo >/dev/null",
]  # fmt: skip


def by_bash(command: str, work: Path) -> subprocess.CompletedProcess[bytes]:
    argv = [BASH, "-c", command]
    return subprocess.run(argv, cwd=work, env=ENV, stdin=subprocess.DEVNULL, capture_output=True)


@pytest.mark.skipif(not BASH, reason="needs bash")
@pytest.mark.parametrize("command", SAME_AS_BASH)
async def test_the_same_output_and_status_as_bash(command: str, work: Path) -> None:
    theirs = by_bash(command, work)
    status, out, err = await run(parse(command), work)
    assert (status, out) == (theirs.returncode, theirs.stdout.decode())
    assert bool(err) == bool(theirs.stderr) or b"Killed" in theirs.stderr  # which bash alone says


async def test_a_stored_plan_runs_as_well(work: Path) -> None:
    plan = Plan.from_json(parse("cd sub && cat b.c | wc -l").to_json())
    assert (await run(plan, work))[:2] == (0, "1\n")


@pytest.mark.parametrize(
    "data", [{}, {"version": 2, "steps": []}, {"version": 1, "steps": [{}]}, {"version": 1}]
)
def test_what_is_no_plan_is_not_read(data: dict[str, object]) -> None:
    with pytest.raises(ValueError, match="plan"):
        Plan.from_json(data)


async def test_time_that_is_up_ends_all_of_it(work: Path) -> None:
    with pytest.raises(TimeoutError):
        await run(parse("sleep 987.125 | cat | (sleep 987.125; echo no) | cat"), work, timeout=0.3)
    assert not left_over("987.125")


async def test_a_cancelled_run_leaves_nothing(work: Path) -> None:
    task = asyncio.ensure_future(run(parse("echo $(sleep 987.25)"), work))
    while not left_over("987.25"):
        assert not task.done()
        await asyncio.sleep(0.01)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert not left_over("987.25")


def left_over(mark: str) -> list[str]:
    shown = subprocess.run(["ps", "-eo", "stat,args"], capture_output=True, text=True).stdout
    return [line for line in shown.splitlines() if f"sleep {mark}" in line and not line.startswith("Z")]


def descriptors() -> int:
    return len(list(Path("/dev/fd").iterdir()))


async def test_no_descriptor_is_left_open(work: Path) -> None:
    await run(parse("ls | cat"), work)
    before = descriptors()
    for command in SAME_AS_BASH:
        await run(parse(command), work)
    assert descriptors() <= before


@pytest.mark.promise("shell-commands.md", "a `cd` that would leave the workspace fails")
@pytest.mark.parametrize("command", ["cat < way-out/outside", "cd way-out && ls", "cd .. && ls", "cat < ../outside", "cd /etc && ls", "cat < /etc/hosts"])  # fmt: skip
async def test_redirections_and_cd_do_not_leave_the_root(command: str, work: Path) -> None:
    status, out, err = await run(parse(command), work)
    assert status
    assert out == ""
    assert err


@pytest.mark.skipif(not BASH, reason="needs bash")
async def test_a_cd_by_an_absolute_path_and_the_way_back_are_those_of_bash(work: Path) -> None:
    root = str(work)
    for command in (
        f"cd {root}/sub && cat ../a.txt b.c",
        f'cd sub && cd "{root}" && ls sub',
        "cd sub && ls .. | sort",
        "cd sub && find .. -name '*.txt' -exec cat {} +",
        "cd sub && find .. -name '*.txt' | xargs wc -l",
    ):
        plan = judge(command, workspace=root).plan
        assert plan is not None and judge(command, workspace=root).verdict == "plain", command
        theirs = by_bash(command, work)
        assert (await run(plan, work))[:2] == (theirs.returncode, theirs.stdout.decode()), command
        assert theirs.stdout, command


async def test_no_way_back_leads_from_behind_a_link(work: Path) -> None:
    plan = judge("cd way-out && cat ../outside").plan
    assert plan is not None
    status, out, err = await run(plan, work)
    assert status and out == "" and err


async def test_patterns_do_not_look_outside(work: Path) -> None:
    assert (await run(parse("echo way-out/out* sub/b* sub/.h*"), work))[
        1
    ] == "way-out/out* sub/b.c sub/.hidden\n"


@pytest.mark.parametrize("command", ["wc -c x*.txt", 'for f in x*.txt; do wc -c "$f"; done', "cat */*.c"])
async def test_a_pattern_that_matches_too_many_names_runs_nothing(
    command: str, work: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("toolcrib.command.launch.expand.MAX_NAMES", 3)
    for number in range(4):
        (work / f"x{number}.txt").touch()
        (work / f"d{number}").mkdir()
    plan = judge(command).plan
    assert plan is not None
    status, out, err = await run(plan, work)
    assert (status, out) == (1, "")
    assert "matches more than 3 names: write a narrower pattern, or find … | xargs …" in err
    (work / "x3.txt").unlink()
    (work / "d3").rmdir()
    (work / "d2").rmdir()
    assert (await run(plan, work))[0] == 0


@pytest.mark.parametrize(
    "command",
    ['echo "$(yes)"', "echo $(cat /dev/zero)", "yes | xargs echo", "ls $(find sub | grep . b*.txt)"],
)
async def test_what_is_printed_without_an_end_is_not_collected(command: str, work: Path) -> None:
    (work / "bb.txt").write_text("a.txt\n" * 200_000)
    status, out, err = await run(parse(command), work, timeout=10)
    assert (status, out) == (1, "") and "more than 1,048,576 bytes were printed" in err


async def test_files_are_written_only_below_the_root(work: Path) -> None:
    assert (await run(parse("echo x > sub/new && echo y >> sub/new"), work))[0] == 0
    assert (work / "sub" / "new").read_text() == "x\ny\n"
    assert (await run(parse("echo x > way-out/outside"), work))[0] == 1
    assert (work.parent / "outside").read_text() == "outside\n"


class Recording(Local):
    """A host that notes what it is asked to start."""

    def __init__(self, root: str) -> None:
        super().__init__(root)
        self.started: list[tuple[list[str], dict[str, str]]] = []

    async def spawn(
        self,
        argv: Sequence[str],
        *,
        folder: str,
        env: Mapping[str, str],
        streams: Streams,
        inherited: Sequence[int],
    ) -> PlanProcess:
        self.started.append((list(argv), dict(env)))
        return await super().spawn(["true"], folder=folder, env=env, streams=streams, inherited=inherited)


async def test_programs_get_what_they_were_proved_with_and_nothing_of_ours(work: Path) -> None:
    host = Recording(str(work))
    with Path(os.devnull).open("r+b") as null:  # noqa: ASYNC230
        fd = null.fileno()
        await run_plan(
            parse("TZ=UTC ls 'a b' && git status"), host, env={"A": "1"}, stdin=fd, stdout=fd, stderr=fd
        )
    assert host.started[0] == (["ls", "a b"], {"A": "1", "TZ": "UTC"})
    assert host.started[1][0][0] == "git"
    assert "core.hooksPath=/dev/null" in host.started[1][0]


@pytest.mark.promise(
    "shell-commands.md",
    "git runs with its hooks, pagers, file monitors, external diffs, text converters, "
    "editors, credential helpers, transports",
)
def test_git_is_hardened_behind_wrappers_too() -> None:
    assert "core.fsmonitor=false" in hardened(["timeout", "5", "nice", "git", "status"])
    assert hardened(["timeout", "5", "ls"]) == ["timeout", "5", "ls"]
    assert hardened(["timeout", "5", "ack", "x"])[2:] == ["ack", "--noenv", "x"]
    assert hardened(["npm", "ls"]) == ["npm", "--logs-max=0", "ls"]
    assert hardened(["timeout", "5", "npx", "pytest"]) == ["timeout", "5", "npx", "--no-install", "pytest"]
    assert hardened(["git", "diff", "HEAD"])[-3:] == ["--no-ext-diff", "--no-textconv", "HEAD"]


GIT = shutil.which("git", path="/bin:/usr/bin:/usr/local/bin") or ""


@pytest.mark.promise(
    "shell-commands.md",
    "git runs with its hooks, pagers, file monitors, external diffs, text converters, "
    "editors, credential helpers, transports",
)
@pytest.mark.skipif(not GIT, reason="needs git")
@pytest.mark.parametrize(
    ("setting", "command"),
    [
        ("core.fsmonitor", "git status"), ("core.pager", "git log -1"), ("diff.external", "git diff"), ("diff.x.command", "git diff"),
        ("diff.x.textconv", "git diff"), ("diff.x.textconv", "git log -p"), ("diff.x.textconv", "git show"), ("diff.x.textconv", "git blame a.x"),
        ("gpg.program", "git log --format=%G? --show-notes -1"), ("core.hooksPath", "git status"), ("core.fsmonitor", "timeout 5 git diff"),
        ("diff.x.textconv", "git stash list -p"), ("diff.x.textconv", "git reflog -p"), ("diff.x.textconv", "git reflog show -p"),
        ("diff.x.textconv", "git stash show -p"), ("diff.external", "git stash show -p"), ("diff.x.textconv", "git log -S 2"),
        ("diff.x.textconv", "cd sub && git log -p"), ("core.fsmonitor", "git ls-files -o"), ("alias.status", "git status"),
    ],
)  # fmt: skip
async def test_git_runs_no_program_of_the_repository(setting: str, command: str, tmp_path: Path) -> None:
    work, fired = repository(tmp_path, setting)
    await run(parse(command), work)
    assert not fired.exists()


@pytest.mark.skipif(not GIT, reason="needs git")
@pytest.mark.parametrize(
    ("setting", "command"),
    [("core.fsmonitor", "git status"), ("diff.external", "git diff"), ("diff.x.textconv", "git log -p"),
     ("core.fsmonitor", "timeout 5 git diff")],
)  # fmt: skip
async def test_without_hardening_it_would(setting: str, command: str, tmp_path: Path) -> None:
    work, fired = repository(tmp_path, setting)
    await run(parse(command), work, harden_git=False)
    assert fired.exists()


@pytest.mark.promise("shell-commands.md", "a partial clone would fetch what is missing")
@pytest.mark.skipif(not GIT, reason="needs git")
@pytest.mark.parametrize("harden", [True, False])
@pytest.mark.parametrize("scheme", ["ext", "file", "evil"])
async def test_git_fetches_nothing_that_is_missing(scheme: str, harden: bool, tmp_path: Path) -> None:
    """A clone with parts missing would ask its origin for them, by whatever program the configuration names."""
    work, fired = repository(tmp_path, "alias.unused")
    make_partial(work, scheme, tmp_path / "evil.sh")
    (tmp_path / "git-remote-evil").symlink_to(tmp_path / "evil.sh")
    env = {**ENV, "PATH": f"{ENV['PATH']}:{tmp_path}"}
    for command in ("git show HEAD:a.x", "timeout 5 git -C . show HEAD:a.x"):
        await run(parse(command), work, harden_git=harden, env=env)
    assert fired.exists() is not harden


@pytest.mark.skipif(not GIT, reason="needs git")
@pytest.mark.parametrize("harden", [True, False])
async def test_git_makes_no_merge_again_to_show_it(harden: bool, tmp_path: Path) -> None:
    """With `log.diffMerges=remerge`, `-m` would run the program that settings name for merges."""
    work, fired = repository(tmp_path, "merge.x.driver")
    (work / ".git" / "info").mkdir(exist_ok=True)
    (work / ".git" / "info" / "attributes").write_text("*.x merge=x\n")

    def git(*args: str) -> None:
        subprocess.run([GIT, "-c", "user.name=a", "-c", "user.email=a@b", *args], cwd=work, check=True)

    for branch, text in (("one", "7\n"), ("two", "8\n")):
        git("checkout", "-qfb", branch, "stash^")
        (work / "a.x").write_text(text)
        git("commit", "-qam", branch)
    git("merge", "-q", "-s", "ours", "-m", "both", "one")
    git("config", "log.diffMerges", "remerge")
    await run(parse("git show -m"), work, harden_git=harden)
    assert fired.exists() is not harden


@pytest.mark.skipif(not GIT, reason="needs git")
@pytest.mark.parametrize("command", ["git status", "timeout 5 git status -s"])
async def test_git_status_leaves_the_index_as_it_is(command: str, tmp_path: Path) -> None:
    work, _ = repository(tmp_path, "alias.unused")
    index = work / ".git" / "index"
    os.utime(work / "sub" / "b.x", (1, 1))
    before = index.read_bytes()
    await run(parse(command), work)
    assert index.read_bytes() == before


@pytest.mark.skipif(not GIT, reason="needs git")
async def test_what_a_command_prints_becomes_no_option(work: Path) -> None:
    """To git, `--min-parents` takes a value that touches it alone, and the word behind it is an option."""
    await run(parse("git init -q"), work)
    (work / "text").write_text("--output=a.txt\n")
    for command in (
        'git log --min-parents "$(cat text)"',
        'x=$(cat text); git log --min-parents "$x"',
        'cat text | while read -r x; do git log --min-parents "$x"; done',
    ):
        assert judge(command).verdict == "plain"
        found = await run(judge(command).plan, work)
        assert (work / "a.txt").read_text() == "one\ntwo\nthree\n"
        assert "not run, because what a command printed" in found[2]


def make_partial(work: Path, scheme: str, evil: Path) -> None:
    origin = {
        "ext": {"url": f"ext::{evil} x"},
        "file": {"url": str(work), "uploadpack": str(evil)},
        "evil": {"url": "evil::x"},
    }[scheme]
    for name, value in {
        "core.repositoryformatversion": "1", "extensions.partialClone": "origin", "remote.origin.promisor": "true",
        f"protocol.{scheme}.allow": "always", **{f"remote.origin.{key}": value for key, value in origin.items()},
    }.items():  # fmt: skip
        subprocess.run([GIT, "config", name, value], cwd=work, check=True, capture_output=True)
    asked = [GIT, "rev-parse", "HEAD:a.x"]
    blob = subprocess.run(asked, cwd=work, check=True, capture_output=True, text=True).stdout.strip()
    (work / ".git" / "objects" / blob[:2] / blob[2:]).unlink()


def repository(tmp_path: Path, setting: str) -> tuple[Path, Path]:
    """One whose configuration names a program for a setting; the file appears when that runs."""
    work = tmp_path / "work"
    (work / "sub").mkdir(parents=True)
    fired = tmp_path / "fired"
    evil = tmp_path / "evil.sh"
    evil.write_text(f'#!/bin/sh\n: > {fired}\ncat "$1" 2>/dev/null\n')
    evil.chmod(0o755)

    def git(*args: str) -> None:
        own = {**ENV, "HOME": str(tmp_path), "GIT_CONFIG_NOSYSTEM": "1"}
        named = ("-c", "user.name=a", "-c", "user.email=a@b")
        subprocess.run([GIT, *named, *args], cwd=work, env=own, check=True, capture_output=True)

    git("init", "-q")
    (work / "a.x").write_text("1\n")
    (work / "sub" / "b.x").write_text("1\n")
    (work / ".gitattributes").write_text("*.x diff=x\n")
    git("add", ".")
    git("commit", "-qm", "one")
    (work / "a.x").write_text("3\n")
    git("stash")
    (work / "a.x").write_text("2\n")
    git("config", setting, f"!{evil}" if setting.startswith("alias") else str(evil))
    if setting == "gpg.program":
        git("config", "log.showSignature", "true")
    return work, fired


async def test_what_is_plain_is_run_as_it_was_unwrapped(work: Path) -> None:
    found = judge("bash -lc 'cat a.txt | wc -l'")
    assert found.plan is not None
    host = Recording(str(work))
    with Path(os.devnull).open("r+b") as null:  # noqa: ASYNC230
        fd = null.fileno()
        await run_plan(found.plan, host, env=ENV, stdin=fd, stdout=fd, stderr=fd)
    assert sorted(argv for argv, _ in host.started) == [["cat", "a.txt"], ["wc", "-l"]]


@pytest.mark.promise(
    "shell-commands.md",
    "What it matched, or what a listing printed, is judged again before the program starts",
)
@pytest.mark.parametrize(
    ("command", "name", "said"),
    [("cat sub/*", "sub/server.key", "may hold secrets"), ("wc -l $(git ls-files)", "-x", "read as an option"),
     ("cat $(ls)", ".npmrc", "may hold secrets")],
)  # fmt: skip
async def test_names_that_come_up_are_looked_at(command: str, name: str, said: str, tmp_path: Path) -> None:
    work = tmp_path / "work"
    (work / "sub").mkdir(parents=True)
    (work / name).write_text("not to be shown\n")
    (work / "fake").mkdir()
    listing = f"#!/bin/sh\necho {name}\n"
    for program in ("git", "ls"):
        (work / "fake" / program).write_text(listing)
        (work / "fake" / program).chmod(0o755)
    with (tmp_path / "out").open("wb") as out, Path(os.devnull).open("rb") as null:  # noqa: ASYNC230
        env = {**ENV, "PATH": f"{work / 'fake'}:{ENV['PATH']}"}
        fd = out.fileno()
        status = await run_plan(
            parse(command), Local(str(work)), env=env, stdin=null.fileno(), stdout=fd, stderr=fd
        )
    printed = (tmp_path / "out").read_text()
    assert status == 1
    assert said in printed
    assert "not to be shown" not in printed


async def test_a_complaint_into_a_full_pipe_does_not_hold_us_up(work: Path) -> None:
    with pytest.raises(TimeoutError):
        await run(parse("(yes >&2 | nosuchprogram; nosuchprogram) 2>&1 | sleep 987.5"), work, timeout=1)
    assert not left_over("987.5")


async def test_a_loop_and_a_test_run_as_in_bash(work: Path) -> None:
    text = 'for f in a.txt nothere; do [ -f "$f" ] && wc -l < "$f"; done || echo "none: $(cat sub/b.c)"'
    assert (await run(parse(text), work))[:2] == (0, "3\nnone: b\n")


@pytest.mark.promise("shell-commands.md", "`ack` gets no options from files of the folder")
@pytest.mark.skipif(shutil.which("ack", path=ENV["PATH"]) is None, reason="needs ack")
async def test_ack_obeys_no_options_of_the_folder(work: Path) -> None:
    (work.parent / "list").write_text(f"{work.parent}/outside\n")
    (work / ".ackrc").write_text(f"--files-from={work.parent}/list\n")
    status, out, err = await run(parse("ack '^outside$'"), work)
    assert (status, out, err) == (1, "", "")
