"""What git reads because a project's `.git` names it: a command that would read elsewhere is asked about."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from toolcrib.command.judge import judge
from toolcrib.command.judge.links import Links

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


ELSEWHERE = {
    "another worktree": settings("[core]\n\tworktree = ../../elsewhere\n"),
    "another worktree by its whole path": settings('[Core] WorkTree = "/etc"\n'),
    "another worktree in an included file": included,
    "a .git that is a file": git_file,
    "a .git that is a link": git_link,
    "a commondir": lambda project: (project / ".git" / "commondir").write_text("../../elsewhere/.git\n"),
    "objects of another": lambda project: (project / ".git" / "objects" / "info" / "alternates").write_text(
        "../../../elsewhere/.git/objects\n"
    ),
    "revisions to ignore": settings("[blame]\n\tignoreRevsFile = .env\n"),
    "objects to skip": settings("[fsck]\n\tskipList = ~/.ssh/id_rsa\n"),
    "attributes": settings("[core]\n\tattributesFile = .env\n"),
    "what is not understood": settings('[core]\n\tworktree = "a\\tb"\n'),
}


@pytest.mark.parametrize("plant", ELSEWHERE.values(), ids=ELSEWHERE)
def test_what_git_would_read_elsewhere_is_asked_about(plant: Callable[[Path], object], project: Path) -> None:
    assert set(verdicts(project).values()) == {"plain"}
    plant(project)
    assert set(verdicts(project).values()) == {"ask"}


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
