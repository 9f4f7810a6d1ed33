"""What git reads because a project's `.git` names it: a command that would read elsewhere is asked about."""

from __future__ import annotations

import shutil
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from toolcrib.command.judge import judge
from toolcrib.command.judge.links import Links
from toolcrib.command.launch.git_options import hardened

pytestmark = pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed")
READS = ["git diff", "git log -1 -p", "git status --short", "git blame a.txt", "git grep x", "git fsck"]


def git(folder: Path, *words: str) -> None:
    named = ["git", "-c", "user.name=a", "-c", "user.email=a@b", "-c", "protocol.file.allow=always"]
    subprocess.run([*named, *words], cwd=folder, check=True, capture_output=True)


def repository(folder: Path) -> Path:
    folder.mkdir(parents=True)
    git(folder, "init", "-q")
    (folder / "a.txt").write_text("x\n")
    git(folder, "add", ".")
    git(folder, "commit", "-qm", "one")
    return folder


@pytest.fixture
def project(tmp_path: Path) -> Path:
    repository(tmp_path / "elsewhere")
    made = repository(tmp_path.resolve() / "project")
    (made / ".env").write_text("KEY=of ours\n")
    (made / "revs").write_text("# none\n")
    return made


def verdicts(folder: Path, commands: list[str] = READS) -> dict[str, str]:
    links = Links(str(folder), str(folder))
    return {one: judge(one, workspace=str(folder), links=links).verdict for one in commands}


def settings(text: str) -> Callable[[Path], None]:
    def write(project: Path) -> None:
        with (project / ".git" / "config").open("a") as file:
            file.write(text)

    return write


def git_file(project: Path) -> None:
    shutil.rmtree(project / ".git")
    (project / ".git").write_text("gitdir: ../elsewhere/.git\n")


def git_link(project: Path) -> None:
    shutil.rmtree(project / ".git")
    (project / ".git").symlink_to("../elsewhere/.git")


def included(project: Path) -> None:
    settings("[include]\n\tpath = more\n")(project)
    (project / ".git" / "more").write_text("[core] worktree = ../../elsewhere\n")


def link(name: str, to: str) -> Callable[[Path], None]:
    def plant(project: Path) -> None:
        place = project / ".git" / name
        if place.is_dir():
            shutil.rmtree(place)
        place.unlink(missing_ok=True)
        place.parent.mkdir(exist_ok=True)
        place.symlink_to(to)

    return plant


def lent_twice(project: Path) -> None:
    (repository(project / "mid") / ".git" / "objects" / "info" / "alternates").write_text(
        "../../../../elsewhere/.git/objects\n"
    )
    (project / ".git" / "objects" / "info" / "alternates").write_text("../../mid/.git/objects\n")


def lent(line: str) -> Callable[[Path], object]:
    return lambda project: (project / ".git" / "objects" / "info" / "alternates").write_text(f"{line}\n")


ELSEWHERE = {
    "another worktree": settings("[core]\n\tworktree = ../../elsewhere\n"),
    "another worktree by its whole path": settings('[Core] WorkTree = "/etc"\n'),
    "another worktree in an included file": included,
    "a .git that is a file": git_file,
    "a .git that is a link": git_link,
    "a commondir": lambda project: (project / ".git" / "commondir").write_text("../../elsewhere/.git\n"),
    "objects of another": lent("../../../elsewhere/.git/objects"),
    "objects of another, quoted": lent('"\\056./../../elsewhere/.git/objects"'),
    "objects of another by one in it": lent_twice,
    "objects by a link": link("objects", "../../elsewhere/.git/objects"),
    "a log by a link": link("BISECT_LOG", "../.env"),
    "packed references by a link": link("packed-refs", "/etc/hostname"),
    "a link in a folder": link("info/attributes", "../../.env"),
    "a link to a folder with a link": link("rebase-merge", "../logs"),
    "revisions to ignore": settings("[blame]\n\tignoreRevsFile = .env\n"),
    "objects to skip": settings("[fsck]\n\tskipList = ~/.ssh/id_rsa\n"),
    "attributes": settings("[core]\n\tattributesFile = .env\n"),
    "what is not understood": settings('[core]\n\tworktree = "a\\tb"\n'),
}


@pytest.mark.parametrize("plant", ELSEWHERE.values(), ids=ELSEWHERE)
def test_what_git_would_read_elsewhere_is_asked_about(plant: Callable[[Path], object], project: Path) -> None:
    assert set(verdicts(project).values()) == {"plain"}
    (project / "logs").mkdir()
    (project / "logs" / "done").symlink_to("../.env")
    plant(project)
    assert set(verdicts(project).values()) == {"ask"}


# What looks like a repository in a folder of the project, and is passed over by git, or leads where it does not seem to.
INNER = {
    "an empty folder": lambda inner: (inner / ".git").mkdir(),
    "a folder without objects": lambda inner: shutil.copytree(
        inner.parent / ".git", inner / ".git", ignore=shutil.ignore_patterns("objects")
    ),
    "a HEAD that is none": lambda inner: (
        shutil.copytree(inner.parent / ".git", inner / ".git"),
        (inner / ".git" / "HEAD").write_text("nothing\n"),
        (inner / ".git" / "config").write_text(""),
    ),
    "a name with a blank at its end": lambda inner: (
        shutil.copytree(inner.parent / ".git", inner / "g "),
        shutil.copytree(inner.parent / ".git", inner / "g"),
        (inner / "g" / "config").write_text(""),
        (inner / ".git").write_text("gitdir: g \n"),
    ),
    "a name that ends early": lambda inner: (inner / ".git").write_bytes(b"gitdir: ../.git\0x\n"),
}


@pytest.mark.parametrize("plant", INNER.values(), ids=INNER)
def test_the_settings_that_git_obeys_are_found(plant: Callable[[Path], object], project: Path) -> None:
    settings('[filter "x"]\n\tclean = false\n[core]\n\tattributesFile = .env\n')(project)
    (project / "sub").mkdir()
    plant(project / "sub")
    for command in ("git status", "git log -p"):
        links = Links(str(project), str(project / "sub"))
        assert judge(command, workspace=str(project / "sub"), links=links).verdict == "ask"


# Folders that git takes for a repository without a worktree. `git diff` of two paths compares the files themselves there.
WITHOUT_WORKTREE = {
    "the folder of a repository": lambda project: project / ".git",
    "a folder in it": lambda project: project / ".git" / "refs",
    "a bare one": lambda project: (git(project, "init", "-q", "--bare", "bare"), project / "bare")[1],
    "one of a commondir": lambda project: (
        (project / "c").mkdir(),
        (project / "c" / "HEAD").write_text("ref: refs/heads/main\n"),
        (project / "c" / "commondir").write_text("../.git\n"),
        project / "c",
    )[-1],
}


@pytest.mark.parametrize("made", WITHOUT_WORKTREE.values(), ids=WITHOUT_WORKTREE)
def test_a_repository_without_a_worktree_is_asked_about(made: Callable[[Path], Path], project: Path) -> None:
    place = made(project).relative_to(project)
    (project / "sub").mkdir()
    (project / "sub" / "HEAD").write_text("no repository\n")
    ask = [
        f"cd {place} && git diff {project} {project}/sub",
        f"git -C {place} status",
        f"cd {place} && git log -p",
    ]
    assert set(verdicts(project, ask).values()) == {"ask"}
    assert set(verdicts(project, [f"ls {place}", "cd sub && git diff", "git diff sub"]).values()) == {"plain"}


def test_settings_are_read_in_linear_time(project: Path) -> None:
    settings("[lfs" + " " * 20_000)(project)
    begun = time.process_time()
    verdicts(project, ["git status"])
    assert time.process_time() - begun < 1


FOLDERS = [
    "git diff -C sub",
    "git blame -C sub/a.txt",
    "timeout 5 git diff -C sub",
    "git -C sub -C in status",
    "git -C sub -C in -C . diff -C sub",
]


def test_the_folder_that_git_works_in_is_found(project: Path) -> None:
    repository(project / "sub")
    inner = repository(project / "sub" / "in")
    assert set(verdicts(project, FOLDERS).values()) == {"plain"}
    for named in (project, inner):
        settings('[filter "x"]\n\tclean = false\n')(named)
    assert set(verdicts(project, FOLDERS).values()) == {"ask"}
    assert verdicts(project, ["git -C sub status"]) == {"git -C sub status": "plain"}


def test_a_search_of_submodules_asks_and_no_setting_makes_it_one(project: Path) -> None:
    command = "git grep --recurse-submodules x"
    assert verdicts(project, [command]) == {command: "ask"}
    assert "submodule.recurse=false" in hardened(["git", "grep", "x"])


def test_worktrees_and_submodules_and_folders_of_a_repository_ask_no_more_than_before(
    project: Path, tmp_path: Path
) -> None:
    settings("[blame]\n\tignoreRevsFile = revs\n")(project)
    assert set(verdicts(project).values()) == {"plain"}
    git(project, "worktree", "add", "-q", "../tree")
    assert set(verdicts(tmp_path.resolve() / "tree").values()) == {"plain"}
    git(project, "submodule", "--quiet", "add", str(tmp_path / "elsewhere"), "sub")
    assert set(verdicts(project / "sub").values()) == {"plain"}
    assert verdicts(project, ["git -C sub log"]) == {"git -C sub log": "plain"}
    (project / "src").mkdir()
    assert set(verdicts(project / "src").values()) == {"plain"}


SECRET_IN_GIT = [
    "git show HEAD:id_rsa", "git show :id_rsa", "git show :0:id_rsa", "git cat-file -p :0:id_rsa", "git show 'HEAD^{/a: b}:id_rsa'",
    "git diff HEAD:id_rsa..HEAD:a.txt", "git grep . ':(top)id_rsa'", "git grep . -- ':(icase)ID_RSA'", "git grep --no-index . ':(literal)id_rsa'",
    "git show HEAD^{commit}:./id_rsa", "git diff a.txt:b:id_rsa",
]  # fmt: skip


def test_a_secret_is_seen_however_git_names_it(project: Path) -> None:
    assert [one for one in SECRET_IN_GIT if judge(one).verdict == "plain"] == []
    more = [
        "git show HEAD:a.txt",
        "git show 'HEAD@{2026-01-01 10:30:00}:a.txt'",
        "git diff -- . ':!a.txt'",
        "git log -- '*.py'",
    ]
    assert [one for one in more if judge(one).verdict != "plain"] == []


@pytest.mark.parametrize(
    "pattern", ["*", "*rsa", "id_rs?", "[i]d_rsa", "id_rs\\a", ":!a.txt", "de*rsa", ":(exclude)a.txt"]
)
def test_a_pattern_that_git_reads_counts_as_all_in_its_folder(pattern: str, project: Path) -> None:
    """git takes `*` for slashes too, so that what it finds is not what names in one folder say."""
    assert judge(f"git grep . -- '{pattern}'").shows == (".",)
    assert judge(f"git grep . -- 'sub/{pattern}'").shows == ("sub",) or pattern.startswith(":")
    if pattern == "de*rsa":
        assert judge("git grep . -- de*rsa").shows == (".",), "the shell hands it on where nothing matches"


def test_a_path_in_a_revision_begins_at_the_top_of_its_repository(project: Path) -> None:
    (project / "sub").mkdir()
    links = Links(str(project), str(project))
    for command in (
        "cd sub && git show HEAD:kept/x",
        "git -C sub show HEAD:kept/x",
        "cd sub; git cat-file -p :0:kept/x",
    ):
        found = judge(command, workspace=str(project), links=links)
        assert "kept/x" in {one.path for one in found.operands}, command
    within = Links(str(project / "sub"), str(project / "sub"))
    found = judge("git show HEAD:sub/kept/x", workspace=str(project / "sub"), links=within)
    assert "kept/x" in {one.path for one in found.operands}
