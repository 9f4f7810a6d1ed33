"""Git outside the sandbox runs nothing that a command left behind: real git, real sandboxes, a file as payload."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tests.cases import each
from tests.sandbox_copy import copy_sandbox
from tests.sandbox_runs import BACKENDS, Done, backend, ended, run
from toolcrib import Toolbox
from toolcrib.assembly import default_tools
from toolcrib.command.sandbox.files.git_config import known_lines, without_programs
from toolcrib.command.sandbox.files.git_unfinished import UNFINISHED
from toolcrib.errors import ErrorCode

pytestmark = pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed")

# Both change one file, the second one twice.
TWO_BRANCHES = (
    "git checkout -q -b t && echo a > f && git add f && git {me} commit -qm a && git checkout -q -b o HEAD~1 && "
    "for n in 1 2; do echo $n > f && git add f && git {me} commit -qm $n; done"
)
ME = "-c user.name=a -c user.email=a@b"
# Each is tried without a sandbox first: there the payload has to run, or the attempt proves nothing.
# {p} is the payload, a program; what follows `::` is what the operator does.
ATTEMPTS = {
    "commondir": (
        "mkdir evil && cp -r .git/objects .git/refs evil/ && cp .git/config evil/config && "
        "printf '[core]\\n\\tfsmonitor = {p}\\n' >> evil/config && echo ../evil > .git/commondir",
        "git status",
    ),
    "commondir of a nested one": (
        "mkdir e && cp -r nested/.git/objects nested/.git/refs e/ && cp nested/.git/config e/config && "
        "printf '[core]\\n\\tfsmonitor = {p}\\n' >> e/config && echo ../../e > nested/.git/commondir",
        "cd nested && git status",
    ),
    "a new one that is added": (
        "mkdir m && cd m && git init -q . && git {me} commit -q --allow-empty -m x && "
        "git config core.fsmonitor {p} && cd .. && git add m",
        "git status",
    ),
    "deep, and where nobody looks": (
        "mkdir -p node_modules/a/b/c/d/e/f/m && cd node_modules/a/b/c/d/e/f/m && git init -q . && "
        "git {me} commit -q --allow-empty -m x && git config core.fsmonitor {p}",
        "cd node_modules/a/b/c/d/e/f/m && git status",
    ),
    "bare": (
        "mkdir -p b/objects/x b/refs/x && echo 'ref: refs/heads/x' > b/HEAD && "
        "printf '[core]\\nrepositoryformatversion=0\\nbare=false\\nworktree=.\\nfsmonitor={p}\\n' > b/config",
        "cd b && git status",
    ),
    "bare by commondir": (
        "git init -q e && git -C e config core.fsmonitor {p} && mkdir b && echo 'ref: refs/heads/x' > b/HEAD && "
        "mv e/.git e/g && echo ../e/g > b/commondir && echo 'gitdir: b' > .gitx && mkdir c && "
        "echo 'gitdir: ../b' > c/.git",
        "cd c && git status",
    ),
    "hidden among objects": (
        "git init -q e && git -C e config core.fsmonitor {p} && mv e/.git .git/objects/zz && "
        "mkdir c && echo 'gitdir: ../.git/objects/zz' > c/.git",
        "cd c && git status",
    ),
    "a link to what lies among objects": (
        "git init -q e && git -C e config core.fsmonitor {p} && mv e/.git .git/objects/zz && "
        "mkdir c && ln -s ../.git/objects/zz c/.git",
        "cd c && git status",
    ),
    "a link of a folder to what lies among objects": (
        "git init -q e && git -C e config core.fsmonitor {p} && git -C e config core.worktree . && "
        "mv e/.git .git/objects/zz && ln -s .git/objects/zz c",
        "cd c && git status",
    ),
    "two links of folders to what lies among objects": (
        "git init -q e && git -C e config core.fsmonitor {p} && git -C e config core.worktree . && "
        "mv e/.git nested/.git/logs/zz && ln -s $PWD/nested/.git/ g && ln -s g/logs/zz c",
        "cd c && git status",
    ),
    "an old file of a remote": (
        "mkdir -p nested/.git/remotes && echo \"URL: ext::{p}\" > nested/.git/remotes/origin",
        "cd nested && git -c protocol.ext.allow=always fetch",
    ),
    "an older file of a remote": (
        "mkdir -p .git/branches && echo \"ext::{p}\" > .git/branches/origin",
        "git -c protocol.ext.allow=always fetch origin",
    ),
    "a file behind a link": (
        "git init -q e && git -C e config core.fsmonitor {p} && mv e/.git e/g && mkdir c && "
        "echo 'gitdir: ../e/g' > c/x && ln -s x c/.git",
        "cd c && git status",
    ),
    "hooks": (
        "git init -q m && cp {p} m/.git/hooks/post-index-change && echo x > m/f && chmod +x m/.git/hooks/*",
        "cd m && git add f",
    ),
    "hooks by a link": (
        "git init -q m && echo x > m/f && mkdir h && cp {p} h/post-index-change && rm -rf m/.git/hooks && "
        "ln -s ../../h m/.git/hooks",
        "cd m && git add f",
    ),
    "hooks elsewhere": (
        "git init -q m && echo x > m/f && mkdir h && cp {p} h/post-index-change && git -C m config core.hooksPath ../h",
        "cd m && git add f",
    ),
    "an included file": (
        "git init -q m && printf '[core]\\n\\tfsmonitor = {p}\\n' > m/.git/x && git -C m config include.path x",
        "cd m && git status",
    ),
    "config.worktree": (
        "git init -q m && git -C m config extensions.worktreeConfig true && "
        "git -C m config --worktree core.fsmonitor {p}",
        "cd m && git status",
    ),
    "config.worktree of a nested one that is there": (
        "printf '[core]\\n\\tfsmonitor = {p}\\n' > nested/.git/config.worktree",
        "cd nested && git status",
    ),
    "a worktree's own settings": (
        "cd nested && git worktree add -q ../w && cd ../w && git config --worktree core.fsmonitor {p}",
        "cd w && git status",
    ),
    "a setting on the line of its section": (
        "git init -q m && printf '[core] fsmonitor = {p}\\n' >> m/.git/config",
        "cd m && git status",
    ),
    "a setting over two lines": (
        "git init -q m && printf '[user]\\n\\tname = \\\\\\n[core]\\n[core]\\nfsmonitor=\\\\\\n{p}\\n' >> m/.git/config",
        "cd m && git status",
    ),
    "a setting after a mark of bytes": (
        "git init -q m && printf '\\357\\273\\277[CORE]FSMONITOR={p}\\n' | cat - m/.git/config > x && mv x m/.git/config",
        "cd m && git status",
    ),
    "a filter": (
        "git init -q m && cd m && echo '* filter=x' > .gitattributes && echo x > f && git config filter.x.clean {p}",
        "cd m && git add f",
    ),
    "a text conversion": (
        "git init -q m && cd m && echo '* diff=x' > .git/info/attributes && echo x > f && git add f && "
        "git config diff.x.textconv {p} && echo y > f",
        "cd m && git diff",
    ),
    "an alias": ("git init -q m && git -C m config alias.st '!{p}'", "cd m && git st"),
    "ssh": (
        "git init -q m && git -C m config core.sshCommand {p} && git -C m remote add o ssh://a.invalid/x",
        "cd m && git fetch o",
    ),
    "a program at the other end": (
        "git init -q m && git -C m remote add o .. && git -C m config remote.o.uploadpack {p}",
        "cd m && git fetch o",
    ),
    "a source of missing objects that is an option": (
        "git clone -q nested m && cd m && echo x > f && git add f && git {me} commit -qm x && "
        "rm -f .git/objects/58/7be6b4c3f93f93c489c0111bba5596147a26cb && "
        "printf '[remote \"--upload-pack={p}\"]\npromisor = true\n' >> .git/config",
        "cd m && git show",
    ),
    "a source of missing objects by an extension": (
        "git clone -q nested m && cd m && echo x > f && git add f && git {me} commit -qm x && "
        "rm -f .git/objects/58/7be6b4c3f93f93c489c0111bba5596147a26cb && git config core.repositoryformatversion 1 && "
        "printf '[extensions]\npartialClone = --upload-pack={p}\n' >> .git/config",
        "cd m && git show",
    ),
    "one of several remotes that is an option": (
        "git clone -q nested m && cd m && printf '[remote \"\\-\\-upload-pack={p}\"]\nurl = x\n' >> .git/config",
        "cd m && git fetch --all",
    ),
    "a helper in quotes": (
        "git init -q m && printf '[remote \"o\"]\n\turl = e\"x\"t::{p}\n' >> m/.git/config",
        "cd m && git -c protocol.ext.allow=always fetch o",
    ),
    "a step of a rebase": (
        "mkdir .git/rebase-merge && git rev-parse HEAD | tee .git/rebase-merge/onto > .git/rebase-merge/orig-head && "
        "git symbolic-ref HEAD > .git/rebase-merge/head-name && touch .git/rebase-merge/interactive && "
        "printf 'noop\\n\\t x  {p}\\n' > .git/rebase-merge/git-rebase-todo",
        "git rebase --continue",
    ),
    "a step of a rebase that a command stopped": (
        "cd nested && git commit -q --allow-empty -m second && "
        "GIT_SEQUENCE_EDITOR='printf \"edit HEAD\\nexec {p}\\n\" >' git rebase -q -i HEAD~1",
        "cd nested && git rebase --continue",
    ),
    "the strategy of a stopped rebase": (
        f"cd nested && {TWO_BRANCHES}; git {{me}} rebase -q t; echo ../../x > .git/rebase-merge/strategy; "
        "mkdir git-merge-.. && ln -s {p} x && echo c > f && git add f",
        "cd nested && export GIT_EDITOR=true && git rebase --continue",
    ),
    "an option of a stopped rebase that writes a file": (
        f"cd nested && {TWO_BRANCHES}; git {{me}} rebase -q --apply t; "
        "echo \"'--build-fake-ancestor={p}.out'\" > .git/rebase-apply/apply-opt; echo 1 > f && git add f",
        "cd nested && git rebase --continue; test ! -e {p}.out || {p}",
    ),
    "the strategy of a stopped series of picks": (
        f"cd nested && {TWO_BRANCHES}; git checkout -q t; git {{me}} cherry-pick o~1 o; "
        "printf '[options]\\n\\tstrategy = ../../x\\n' > .git/sequencer/opts; "
        "mkdir git-merge-.. && ln -s {p} x && echo c > f && git add f",
        "cd nested && export GIT_EDITOR=true && git cherry-pick --continue",
    ),
    "the strategy of picks by a link": (
        f"cd nested && {TWO_BRANCHES}; git checkout -q t; git {{me}} cherry-pick o~1 o; mv .git/sequencer s; "
        "ln -s ../s .git/sequencer; printf '[options] strategy = ../../x\\n' > s/opts; "
        "mkdir git-merge-.. && ln -s {p} x && echo c > f && git add f",
        "cd nested && export GIT_EDITOR=true && git cherry-pick --continue",
    ),
    "steps of a rebase by a link": (
        "cd nested && mkdir r && git rev-parse HEAD | tee r/onto > r/orig-head && ln -s ../r .git/rebase-merge && "
        "git symbolic-ref HEAD > r/head-name && touch r/interactive && echo 'exec {p}' > r/git-rebase-todo",
        "cd nested && git rebase --continue",
    ),
}  # fmt: skip


@pytest.fixture
def ws(tmp_path: Path) -> Path:
    made = tmp_path / "out" / "ws"
    (made / "nested").mkdir(parents=True)
    for folder in (made, made / "nested"):
        git(folder, "git init -q . && git config user.name me && git config user.email a@b && "
                    "git commit -q --allow-empty -m first")  # fmt: skip
    git(made / "nested", "git config extensions.worktreeConfig true")
    return made


def git(folder: Path, command: str) -> subprocess.CompletedProcess[str]:
    """What an operator does, with nobody else's settings."""
    env = {"PATH": os.environ["PATH"], "HOME": str(folder), "GIT_CONFIG_NOSYSTEM": "1", "GIT_PAGER": "cat",
           "GIT_TERMINAL_PROMPT": "0", "GIT_CONFIG_GLOBAL": "/dev/null"}  # fmt: skip
    return subprocess.run(
        ["bash", "-c", command], cwd=folder, env=env, capture_output=True, text=True, timeout=30, check=False
    )


def payload(folder: Path) -> tuple[Path, Path]:
    """A program that leaves a mark beside itself, whoever runs it and wherever."""
    folder.mkdir()
    mark, program = folder / "mark", folder / "program"
    program.write_text(f"#!/bin/sh\ntouch {mark}\nexit 1\n")
    program.chmod(0o755)
    return program, mark


@pytest.mark.parametrize("name", ATTEMPTS)
def test_the_attempts_prove_something(ws: Path, tmp_path: Path, name: str) -> None:
    program, mark = payload(tmp_path / "payload")
    command, then = ATTEMPTS[name]
    done = git(ws, command.replace("{p}", str(program)).replace("{me}", ME))
    assert done.returncode == 0, done.stderr
    mark.unlink(missing_ok=True)
    git(ws, then.replace("{p}", str(program)))
    assert mark.exists()


@pytest.mark.promise(
    "sandbox.md",
    "Hooks that can be executed, a `commondir` that leads to other settings, and a `.git` "
    "that leads out of the workspace are renamed to `*.disabled`.",
)
@pytest.mark.promise(
    "sandbox.md",
    "Of a rebase that was stopped (`rebase-merge`), steps that run a program (`exec`) are taken out",
)
@pytest.mark.promise("sandbox.md", "only those stay that are known to run nothing and to lead nowhere")
@pytest.mark.parametrize("kind", list(BACKENDS))
@pytest.mark.parametrize("name", ATTEMPTS)
def test_git_outside_runs_nothing_that_a_command_left(ws: Path, tmp_path: Path, kind: str, name: str) -> None:
    program, mark = payload(tmp_path / "payload")
    command, then = ATTEMPTS[name]
    made: Any = backend(kind)(ws, readable=[program.parent])
    done = run(made, command.replace("{p}", str(program)).replace("{me}", ME), ws)
    mark.unlink(missing_ok=True)
    git(ws, then.replace("{p}", str(program)))
    assert not mark.exists()
    assert done.git_changes or done.code != 0, done.said
    # What was there is as it was: it can be worked with.
    for folder in (ws, ws / "nested"):
        assert git(folder, "git fsck && git log --oneline").stdout.endswith("first\n")


# What two commands write, one while the other runs: {what makes it: what git would run it for}.
TWICE = {
    "git init -q m && git -C m config core.fsmonitor {p}": "cd m && git status",
    "git init -q m && cp {p} m/.git/hooks/post-index-change && echo x > m/f": "cd m && git add f",
    "git clone -q nested m && mkdir m/.git/rebase-merge && cd m/.git/rebase-merge && git rev-parse HEAD > onto && "
    "cp onto orig-head && git symbolic-ref HEAD > head-name && touch interactive && "
    "echo 'exec {p}' > git-rebase-todo": "cd m && git rebase --continue",
    "git init -q e && git -C e config core.fsmonitor {p} && mv e/.git {p}.git && mkdir m && "
    "echo 'gitdir: {p}.git' > m/.git": "cd m && git status",
}


@pytest.mark.parametrize("kind", list(BACKENDS))
@pytest.mark.parametrize("command", TWICE)
def test_what_another_command_has_just_written_is_not_known_from_before(
    ws: Path, tmp_path: Path, kind: str, command: str
) -> None:
    program, mark = payload(tmp_path / "payload")
    made: Any = backend(kind)(ws, readable=[program.parent])
    write = command.replace("{p}", str(program))
    git(ws, write)
    with tempfile.TemporaryDirectory() as place:
        (ws / "m").rename(f"{place}/m")
        first = ended(made, "true", ws)
        shutil.copytree(f"{place}/m", ws / "m", symlinks=True)
        second = ended(made, "true", ws)
        first.close()
        shutil.rmtree(ws / "m")
        shutil.copytree(f"{place}/m", ws / "m", symlinks=True)
        second.close()
    mark.unlink(missing_ok=True)
    git(ws, TWICE[command])
    assert not mark.exists() and second.git_changes


ORDINARY = [
    "git init -q m && cd m && git config user.name x && git config user.email x@y && echo x > f && git add f && "
    "git commit -q -m x && git branch other && git checkout -q other && git tag t && git gc -q",
    "git clone -q nested copy && cd copy && git checkout -q -b other && git branch --set-upstream-to origin/master",
    "git clone -q --bare nested copy.git && git clone -q copy.git again && cd again && git push -q origin HEAD:x",
    "git clone -q --mirror nested copy.git",
    "git worktree add -q w && cd w && echo x > f && git add f && git commit -q -m x && cd .. && git worktree remove w",
    "git worktree add -q w",
    "cd nested && git worktree add -q ../w && cd ../w && git status",
    "git init -q super && cd super && git -c protocol.file.allow=always submodule --quiet add ../nested sub && "
    "git commit -q -m x && git submodule status",
    "cd nested && echo x > f && git add f && git commit -q -m x && git repack -q -a -d && git reflog expire --all",
    "git init -q m && cd m && git config core.autocrlf input && git remote add origin https://example.org/x.git && "
    "git sparse-checkout set a",
    "echo x > HEAD.txt; mkdir -p a/objects a/refs; echo x > a/config; echo x > config; mkdir hooks; touch hooks/x",
]  # fmt: skip


@pytest.mark.parametrize("kind", list(BACKENDS))
@pytest.mark.parametrize("command", ORDINARY)
def test_ordinary_work_goes_on(ws: Path, kind: str, command: str) -> None:
    who = "export GIT_AUTHOR_NAME=a GIT_AUTHOR_EMAIL=a@b GIT_COMMITTER_NAME=a GIT_COMMITTER_EMAIL=a@b; "
    done = run(backend(kind)(ws), who + command, ws)
    assert done.code == 0, done.said
    assert done.git_changes == [] and done.restored == []
    again = run(backend(kind)(ws), "git status && git -C nested log --oneline", ws)
    assert again.code == 0 and again.git_changes == [], again.said


@pytest.mark.parametrize("kind", list(BACKENDS))
def test_git_has_nothing_to_complain_of_in_the_workspaces_own_repository(ws: Path, kind: str) -> None:
    git(ws, "git checkout -q -b other; touch x; git add x nested; git commit -q -m x; git checkout -q -")
    done = run(backend(kind)(ws), "git pull -q . other && git status --short && git checkout -q --detach", ws)
    assert (done.code, done.said) == (0, "")


@pytest.mark.parametrize("kind", list(BACKENDS))
def test_a_rebase_with_a_conflict_goes_on_in_the_next_command(ws: Path, kind: str) -> None:
    steps = (
        "export GIT_EDITOR=true; cd nested; echo a > f; git add f; git commit -qm a; git branch other; echo b > f; "
        "git commit -qam b; git checkout -q other; echo c > f; git commit -qam c; echo d > g; git add g; "
        "git commit -qm d; git rebase master; test -s .git/rebase-merge/git-rebase-todo",
        "export GIT_EDITOR=true; cd nested; echo c > f; git add f; git rebase --continue",
    )
    for step in steps:
        done = run(backend(kind)(ws), step, ws)
        assert (done.code, done.git_changes) == (0, []), done.said
    assert git(ws / "nested", "git log --format=%s").stdout.split() == ["d", "c", "b", "a", "first"]


@pytest.mark.promise(
    "sandbox.md",
    "Of a rebase that was stopped (`rebase-merge`), steps that run a program (`exec`) are taken out",
)
@pytest.mark.parametrize("kind", list(BACKENDS))
def test_steps_of_a_users_own_rebase_stay(ws: Path, kind: str) -> None:
    todo = ws / "nested/.git/rebase-merge/git-rebase-todo"
    todo.parent.mkdir()
    todo.write_text("pick abc # x\nexec make test\n")
    done = run(backend(kind)(ws), "sed -i 1d nested/.git/rebase-merge/git-rebase-todo", ws)
    assert done.git_changes == [] and todo.read_text() == "exec make test\n"


@pytest.mark.parametrize(
    ("words", "stays"),
    [
        ("", True),
        ("'--whitespace=fix' '-C1' '-p2' '--directory=a b' '--reject'", True),
        (r"'--exclude=it'\''s' '--include=a'\!'b c' '-p1'", True),
        ("'--build-fake-ancestor=x'", False),
        (r"'--exclude=it'\''' '--build-fake-ancestor=x'", False),
        (r"'--exclude=a'\x'b'", False),
        ("'--whitespace=fix' '--build-fake-anc' 'x'", False),
        ("'--include='\\''x' '--build-fake-ancestor=x'", False),
        ("-p1 --unsafe-paths", False),
    ],
)
def test_which_options_of_apply_stay(words: str, stays: bool) -> None:
    data = f"{words}\n".encode()
    assert UNFINISHED["rebase-apply/apply-opt"](data, set()) == (data if stays else b"")
    assert UNFINISHED["rebase-apply/apply-opt"](data, {data.strip()}) == data


@pytest.mark.promise("sandbox.md", "What any repository of the workspace contained before the command stays")
@pytest.mark.parametrize("kind", list(BACKENDS))
def test_what_the_user_set_up_stays(ws: Path, kind: str) -> None:
    hook = ws / "nested/.git/hooks/pre-commit"
    hook.parent.mkdir(exist_ok=True)
    hook.write_text("#!/bin/sh\n")
    hook.chmod(0o755)
    git(ws / "nested", "git config filter.lfs.clean 'git-lfs clean' && git config alias.co checkout")
    before = (ws / "nested/.git/config").read_text()
    done = run(backend(kind)(ws), "echo x > f; cp -r nested moved", ws)
    assert done.git_changes == []
    for folder in ("nested", "moved"):
        assert (ws / folder / ".git/hooks/pre-commit").exists()
        assert (ws / folder / ".git/config").read_text() == before


@pytest.mark.promise("sandbox.md", "The model and you are told about each removal.")
def test_what_was_taken_out_is_named(ws: Path) -> None:
    done: Done = run(backend("bubblewrap")(ws), "git init -q m && git -C m config core.pager x", ws)
    assert done.git_changes == [
        f"git would have obeyed {ws}/m/.git/config outside the sandbox (core.pager): that was taken out of it."
    ]
    assert "pager" not in (ws / "m/.git/config").read_text()
    assert git(ws / "m", "git config core.bare").stdout == "false\n"


@pytest.mark.parametrize("kind", list(BACKENDS))
def test_what_a_person_set_up_while_a_command_ran_is_not_lost(ws: Path, kind: str) -> None:
    config = ws / "new/.git/config"
    git(ws, "git init -q new; chmod 600 new/.git/config")
    before = config.read_bytes()
    launch = ended(backend(kind)(ws, protected=[]), "git -C new config core.pager x", ws)
    git(ws / "new", "git remote add origin https://example.org/x.git")
    launch.close()
    assert config.read_bytes() == before and "config.disabled" in launch.git_changes[0]
    assert b"example.org" in (ws / "new/.git/config.disabled").read_bytes()
    assert (ws / "new/.git/config.disabled").stat().st_mode & 0o777 == 0o600


@pytest.mark.promise("sandbox.md", "you are told afterwards if the workspace's own repository is gone")
@pytest.mark.parametrize("kind", list(BACKENDS))
def test_a_history_that_a_command_removed_is_told(ws: Path, kind: str) -> None:
    done = run(backend(kind)(ws), "rm -rf ./.git", ws)
    assert (ws / ".git/config").exists()
    assert done.git_changes[0].startswith(f"{ws}/.git is no repository any more")
    if kind == "bubblewrap":
        assert done.denial is not None and "sandbox" in done.denial.message


def test_what_is_there_already_is_kept_by_the_kernel(ws: Path) -> None:
    (ws / "nested/.git/config.worktree").write_text("[user]\n\tname = x\n")
    (ws / ".git/objects/info/alternates").write_text(f"{ws}/nested/.git/objects\n")
    done = run(
        backend("bubblewrap")(ws),
        "echo >> nested/.git/config.worktree; echo >> .git/objects/info/alternates; git log --oneline; "
        f"echo x > f && git add f && git {ME} commit -q -m second && git gc -q && echo done",
        ws,
    )
    assert (
        done.said.count("Read-only file system") == 2
        and done.said.endswith("done\n")
        and not done.git_changes
    )


# -- tools that write files


@pytest.mark.parametrize(
    ("path", "asks"),
    [
        ("HEAD", True),
        ("b/HEAD", True),
        ("b/commondir", True),
        ("m/.git", True),
        (".git", True),
        ("there/config", True),
        ("there/objects/x", True),
        ("there/refs/heads/x", True),
        ("there/hooks/pre-commit", True),
        ("there/worktrees/w/config.worktree", True),
        ("there/readme", False),
        ("config", False),
        ("objects/x", False),
        ("src/refs/x", False),
        ("header", False),
        ("src/HEAD.py", False),
        ("hooks/x", False),
    ],
)
def test_a_file_that_makes_a_repository_is_written_with_a_yes_only(
    tmp_path: Path, path: str, asks: bool
) -> None:
    (tmp_path / "there").mkdir()
    (tmp_path / "there/HEAD").write_text("ref: refs/heads/x")
    box = Toolbox(builtin=default_tools(tmp_path), autonomy="full")
    got = box.call_sync("write_file", {"path": path, "content": "x"})
    assert got.code == (ErrorCode.NOBODY_TO_ASK if asks else None)
    assert (tmp_path / path).exists() is (not asks or path == "there/HEAD")


# -- configurations

WORDS = ["[core]", "[CORE]", '[a "b"]', "[core]fsmonitor=x", "[", "fsmonitor = x", "bare = true", "name = x \\",
         'name = "x', "# c", "; c \\", "", "\t", "[include]", "path = x", "[user]", "name", "\r", "x\0y", '[user "', "]",
         "[core.x]", '[filter "x"]', "clean = x", "alias.x = y", "\ufeff[core]", '"', "[remote \"o\"]", "url = a::b"]  # fmt: skip


@given(st.lists(st.sampled_from(WORDS), max_size=8), st.sampled_from(["\n", "\r\n"]))
@example(["[user]", "name", "x\0y"], "\r\n")
def test_what_stays_says_the_same_to_git(
    tmp_path_factory: pytest.TempPathFactory, words: list[str], end: str
) -> None:
    data = end.join(words).encode()
    kept, gone = without_programs(data, set(), lambda place: False)
    assert without_programs(kept, set(), lambda place: False) == (kept, [])
    assert without_programs(data, known_lines(kept), lambda place: False)[0] == kept
    assert (kept == data) == (not gone)
    path = tmp_path_factory.getbasetemp() / "config"
    path.write_bytes(kept)
    done = subprocess.run(
        ["git", "config", "--no-includes", "--file", str(path), "--list", "--name-only"],
        capture_output=True, text=True, cwd=path.parent, check=False,
    )  # fmt: skip
    names = set(done.stdout.splitlines())
    assert done.returncode == 0, (kept, done.stderr)
    assert {name for name in names if not name.startswith("user.")} <= {"core.bare"}, kept


@pytest.mark.promise("sandbox.md", "only those stay that are known to run nothing and to lead nowhere")
@pytest.mark.parametrize(
    ("text", "stays"),
    [
        ("[user]\n\tname = a # b\n", True),
        ('[branch "x"]\n\tremote = origin\n\tmerge = refs/heads/x\n', True),
        ('[branch "x"]\n\tmergeoptions = -s evil\n', False),
        ('[remote "o"]\n\turl = ext::sh -c x\n', False),
        ('[remote "o"]\n\turl = "ext::sh -c x"\n', False),
        ('[remote "o"]\n\turl = git@example.org:x/y\n\tfetch = +refs/heads/*:refs/remotes/o/*\n', True),
        ("[remote]\n\tpushdefault = origin\n", True),
        ("[remote]\n\tpushdefault = ext::sh -c x\n", False),
        ('[remote "o"]\n\turl = e"x"t::sh -c x\n', False),
        ('[remote "o"]\n\tpromisor = true\n\tpartialclonefilter = blob:none\n', True),
        ('[remote "--upload-pack=x"]\n\tpromisor = true\n', False),
        ('[remote "e\\xt::sh -c x"]\n\tpromisor = true\n', False),
        ("[remote.--upload-pack]\n\tpromisor = true\n", False),
        ("[extensions]\n\tpartialclone = origin\n", True),
        ("[extensions]\n\tpartialclone = --upload-pack=x\n", False),
        ('[submodule "s"]\n\tupdate = !x\n', False),
        ('[submodule "s"]\n\tupdate = merge\n\tactive = true\n', True),
        ("[core]\n\tworktree = ../inside\n", True),
        ("[core]\n\tworktree = /elsewhere\n", False),
        ("[core]\n\tfsmonitor = false\n", True),
        ("[core]\n\tsshcommand = x\n", False),
        ("[gpg]\n\tprogram = x\n", False),
        ('[credential "u"]\n\thelper = x\n', False),
        ("[uploadpack]\n\tpackObjectsHook = x\n", False),
        ('[includeIf "gitdir:x"]\n\tpath = x\n', False),
        ("[sequence]\n\teditor = x\n", False),
        ("[something new]\n\tx = y\n", False),
    ],
)
def test_what_may_stay(text: str, stays: bool) -> None:
    kept, gone = without_programs(text.encode(), set(), lambda place: place == "../inside")
    assert (not gone and kept == text.encode()) is stays


SHUT = """
import os, sys
os.setgroups([]), os.setgid(54322), os.setuid(54322)
from toolcrib.command.sandbox import Launch
from toolcrib.command.sandbox.files.git_repositories import GitRepositories
folder = sys.argv[1]
os.umask(0)
os.makedirs(f"{folder}/was", 0o777)
os.chmod(f"{folder}/was", 0o311)
(after,) = GitRepositories().watch([folder])
os.makedirs(f"{folder}/m/.git/objects"), os.makedirs(f"{folder}/m/.git/refs")
open(f"{folder}/m/.git/HEAD", "w").close()
open(f"{folder}/m/.git/config", "w").write("[core]\\n\\tpager = x\\n")
os.makedirs(f"{folder}/m/.git/hooks")
os.close(os.open(f"{folder}/m/.git/hooks/pre-commit", os.O_CREAT, 0o755))
for place in ("/m/.git/hooks", "/m/.git", "/m"):
    os.chmod(folder + place, int(sys.argv[2], 8))
launch = Launch([], {}, folder)
after(launch)
assert len(launch.git_changes) == 2, launch.git_changes
assert "core.pager): that was taken out" in launch.git_changes[0], launch.git_changes
assert "pre-commit.disabled" in launch.git_changes[1], launch.git_changes
assert os.stat(f"{folder}/was").st_mode & 0o777 == 0o311
"""


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() != 0, reason="only root can be another user")
@each("mode", ["311", "500", "100", "0"])
def test_a_folder_that_a_command_shut_is_looked_into(mode: str) -> None:
    with tempfile.TemporaryDirectory(dir="/var/lib") as place:
        Path(place).chmod(0o755)
        folder = Path(place, "ws")
        folder.mkdir()
        os.chown(folder, 54_322, 54_322)
        lib = Path(place, "lib")
        copy_sandbox(lib)
        done = subprocess.run(
            ["/usr/bin/python3", "-B", "-c", SHUT, str(folder), mode],
            env={"PYTHONPATH": str(lib)}, capture_output=True, text=True, cwd="/", check=False,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr


def test_a_folders_name_says_nothing_of_its_own(ws: Path) -> None:
    done = run(
        backend("bubblewrap")(ws),
        'd=$\'m\\n\\x1b[2Jx\\xff\'; git init -q "$d" && git -C "$d" config core.pager x',
        ws,
    )
    (words,) = done.git_changes
    assert words.isprintable() and words.encode()


@pytest.mark.promise(
    "sandbox.md",
    "Hooks that can be executed, a `commondir` that leads to other settings, and a `.git` "
    "that leads out of the workspace are renamed to `*.disabled`.",
)
def test_very_many_hooks_are_set_aside_as_a_whole(ws: Path) -> None:
    done = run(
        backend("bubblewrap")(ws),
        "git init -q m && cd m/.git/hooks && for n in $(seq 300); do echo x > a$n; done && echo x > pre-commit && chmod +x *",
        ws,
    )
    assert len(done.git_changes) == 1 and not (ws / "m/.git/hooks/pre-commit").exists()
