"""Which files with secrets a command cannot read, outside home folders and in what is shown of them."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.growth import cpu_seconds
from tests.sandbox_runs import BACKENDS, backend, run
from toolcrib.command.sandbox import Level
from toolcrib.command.sandbox.files import secret_files
from toolcrib.command.sandbox.files.file_view import file_view_of
from toolcrib.command.sandbox.files.placeholders import TIME_OF_A_PLACEHOLDER
from toolcrib.command.sandbox.files.shown_settings import cleaned

SECRET = "hunter2-canary"
USER = 54_322  # an id that nobody has


KEPT = {".gitconfig": "name = Ann", ".cargo/config.toml": "retry = 3", ".conda/.condarc": "- defaults"}


@pytest.fixture(params=list(BACKENDS))
def kind(request: pytest.FixtureRequest) -> type[Any]:
    return backend(request.param)


@pytest.fixture
def ws(tmp_path: Path) -> Path:
    made = tmp_path / "ws"
    made.mkdir()
    return made


SETTINGS = {
    ".gitconfig": f"[user]\n\tname = Ann\n[http]\n\textraHeader = Authorization: Bearer {SECRET}\n",
    ".config/git/config": f'[url "https://ann:{SECRET}@example.org/"]\n\tinsteadOf = https://example.org/\n',
    ".cargo/config.toml": f'[net]\nretry = 3\n[registries.own]\ntoken = "{SECRET}"\n',
    ".conda/.condarc": f"channels:\n  - https://conda.example.org/t/{SECRET}/main\n  - defaults\n",
    ".local/share/uv/credentials/credentials.toml": f'password = "{SECRET}"\n',
    "miniconda3/.condarc": f"proxy_servers:\n  https: http://ann:{SECRET}@proxy:3128\n",
}


@pytest.mark.promise(
    "sandbox.md",
    "the lines that hold one are taken out of what a command sees, or the file is hidden if "
    "one goes on over several lines",
)
def test_settings_of_the_home_folder_are_shown_without_their_credentials(
    kind: type[Any], ws: Path, tmp_path: Path
) -> None:
    home = tmp_path / "home"
    for name, text in SETTINGS.items():
        (home / name).parent.mkdir(parents=True, exist_ok=True)
        (home / name).write_text(text)
    (home / ".cargo/env").write_text("export PATH\n")
    # Landlock can only hide a file, and cargo and conda stop at settings that they cannot read.
    whole = {
        name for name in SETTINGS if "git" not in name and "uv" not in name and kind is BACKENDS["landlock"]
    }
    for name in SETTINGS:
        said = run(kind(ws, home=str(home)), f"cat {home}/{name} {home}/.cargo/env", ws).said
        assert (SECRET in said) == (name in whole) and "export PATH" in said, name
        if kind is BACKENDS["bubblewrap"]:
            assert not (kept := KEPT.get(name)) or kept in said
    assert all((home / name).read_text() == text for name, text in SETTINGS.items())


def test_git_works_where_its_settings_hold_a_credential(kind: type[Any], ws: Path, tmp_path: Path) -> None:
    home = tmp_path / "home"
    (home / "dotfiles").mkdir(parents=True)
    (home / "dotfiles/git").write_text("[user]\n\temail = ann@example.org\n" + SETTINGS[".gitconfig"])
    (home / ".gitconfig").symlink_to("dotfiles/git")
    command = (
        f"export HOME={home}; git init -q r && cd r && git commit -q --allow-empty -m x && git config --list"
    )
    done = run(kind(ws, home=str(home)), f"{command}; cat {home}/dotfiles/git", ws)
    assert SECRET not in done.said
    if kind is BACKENDS["landlock"]:  # bubblewrap shows no links of a home folder
        assert "user.name=Ann" in done.said


def test_settings_without_a_credential_are_shown_as_they_are(
    kind: type[Any], ws: Path, tmp_path: Path
) -> None:
    home = tmp_path / "home"
    home.mkdir()
    text = "[user]\n\tname = Ann\n\tsigningKey = ABCD\n[credential]\n\thelper = store\n"
    (home / ".gitconfig").write_text(text)
    assert run(kind(ws, home=str(home)), f"cat {home}/.gitconfig", ws).said == text


def test_a_credential_that_comes_later_is_taken_out_of_the_next_command(
    kind: type[Any], ws: Path, tmp_path: Path
) -> None:
    home = tmp_path / "home"
    home.mkdir()
    (home / ".gitconfig").write_text("[user]\n\tname = Ann\n")
    sandbox = kind(ws, home=str(home))
    assert "Ann" in run(sandbox, f"cat {home}/.gitconfig", ws).said
    (home / ".gitconfig").write_text(SETTINGS[".gitconfig"])
    assert SECRET not in run(sandbox, f"cat {home}/.gitconfig", ws).said


def test_settings_that_are_opened_by_name_are_shown_whole(kind: type[Any], ws: Path, tmp_path: Path) -> None:
    home = tmp_path / "home"
    home.mkdir()
    path = home / ".gitconfig"
    path.write_text(SETTINGS[".gitconfig"])
    for sandbox in (
        kind(ws, home=str(home), readable=[path]),
        kind(ws, Level(readable=(str(path),)), home=str(home)),
    ):
        assert SECRET in run(sandbox, f"cat {path}", ws).said


@pytest.mark.promise("sandbox.md", "`.env` files, `.ssh` and the like below `/opt`")
def test_environment_files_of_other_projects_are_hidden(
    kind: type[Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    srv = tmp_path / "srv"
    hidden = (
        "other/.env",
        "other/app/.env.production",
        "other/app/.ssh/key",
        "other/.git-credentials",
        "other/id_rsa.bak",
    )
    shown = ("other/.env.example~", "other/app/main.py", "mine/readme")
    own = ("mine/.env", "mine/sub/.env")
    for name in (*hidden, *shown, *own):
        (srv / name).parent.mkdir(parents=True, exist_ok=True)
        (srv / name).write_text(f"{SECRET}\n")
    monkeypatch.setattr(secret_files, "FOLDERS", (str(srv),))
    for name, texts in (("hidden", hidden), ("shown", (*shown, *own))):
        said = run(kind(srv / "mine", readable=[srv]), f"cd {srv}; cat {' '.join(texts)}", srv / "mine").said
        assert said.count(SECRET) == (0 if name == "hidden" else len(texts)), said


def test_a_long_name_of_numbers_takes_no_time_to_judge() -> None:
    """Commands may make such names, and each launch looks at those beside the workspace."""
    cases = {
        "id_rsa": True,
        "id_rsa - Copy (2)": True,
        "Copy of id_rsa": True,
        ".netrc.2024-01-31T10:20:30Z.bak~": True,
        ".ssh-keys": False,
        "id_rsa.pub": False,
        ".env" + ".1" * 120: True,
        "a" + "-1" * 120 + "x": False,
        "id_rsa" + "-1" * 120 + "x": False,
        "a" + ".1" * 125: False,
    }
    start = cpu_seconds()
    for _ in range(10):
        assert {name: secret_files.holds_secrets(name) for name in cases} == cases
    assert cpu_seconds() - start < 1


def test_the_time_of_a_placeholder_shows_no_secret(kind: type[Any], ws: Path, tmp_path: Path) -> None:
    key = tmp_path / "home/.ssh/id"
    key.parent.mkdir(parents=True)
    key.write_text(SECRET)
    sandbox = kind(ws, home=str(tmp_path / "home"), readable=[tmp_path])
    run(sandbox, f"touch -d @{TIME_OF_A_PLACEHOLDER} {key.parent} {key.parent.parent}", ws)
    assert SECRET not in run(sandbox, f"cat {key}", ws).said


def test_what_cannot_be_looked_into_is_hidden(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A command may take the rights from its user's own files (Landlock), and a later one may give them back."""
    home, srv = tmp_path / "home", tmp_path / "srv"
    shut = (home / ".conda", srv / "other", home / ".gitconfig")
    for folder in (*shut[:2], tmp_path / "ws"):
        folder.mkdir(parents=True)
    (home / ".conda/aau_token").write_text(SECRET)
    (home / ".gitconfig").write_text(SETTINGS[".gitconfig"])
    monkeypatch.setattr(secret_files, "FOLDERS", (str(srv),))
    for path in shut:
        path.chmod(0)
    try:
        view = as_another_user(tmp_path, lambda: file_view_of(str(tmp_path / "ws"), home=str(home)).hidden)
    finally:
        for path in shut:
            path.chmod(0o700)
    assert {str(home / ".conda/aau_token"), str(srv / "other"), str(home / ".gitconfig")} <= view


def as_another_user(place: Path, look: Callable[[], Sequence[str]]) -> set[str]:
    """What it gives to a user whom rights limit, who owns everything below a place."""
    if os.geteuid() != 0:
        return set(look())
    for path in (place, *place.rglob("*")):
        os.chown(path, USER, USER)
    around = [folder for folder in place.parents if folder.stat().st_mode & 0o005 != 0o005]
    modes = [folder.stat().st_mode for folder in around]
    for folder in around:
        folder.chmod(0o755)
    try:
        os.seteuid(USER)
        try:
            return set(look())
        finally:
            os.seteuid(0)
    finally:
        for folder, mode in zip(around, modes, strict=True):
            folder.chmod(mode)


@pytest.mark.promise("sandbox.md", "`.env` files, `.ssh` and the like below `/opt`")
def test_the_search_ends(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(secret_files, "MAX_FOLDERS", 5)
    monkeypatch.setattr(secret_files, "MAX_SECONDS", 30.0)
    for number in range(20):
        (tmp_path / f"{number:02}").mkdir()
        (tmp_path / f"{number:02}" / ".env").touch()
    monkeypatch.setattr(secret_files, "FOLDERS", (str(tmp_path),))
    assert len(secret_files.secret_files_elsewhere()) == 4


@pytest.mark.promise(
    "sandbox.md",
    "the lines that hold one are taken out of what a command sees, or the file is hidden if "
    "one goes on over several lines",
)
@pytest.mark.parametrize(
    ("text", "left"),
    [
        ("[core]\n\teditor = vim\n", None),
        ("[url 'https://a:b@h/']\n\tinsteadOf = https://h/\n", "[hidden-1]\n\tinsteadOf = https://h/\n"),
        ('token = """\nabc\n"""\n', ""),
        ("password:\n  abc\n", ""),
        ("[http]\n\textraHeader = \\\n\tX: y\n", ""),
        ('[http]\nproxy = "ann:abc@proxy:1"\n', "[http]\n"),
        ("//r.example.org/:_authToken=abc\nregistry=https://x/\n", "registry=https://x/\n"),
        ('[registry]\nglobal-credential-providers = ["cargo:token"]\n', None),
        ("[remote 'o']\n\turl = git@example.org:a/b.git\n\turl = ssh://git@example.org/a\n", None),
        ("[credential]\n\thelper = !f() { echo password=abc; }; f\n", "[credential]\n"),
    ],
)
def test_which_lines_are_taken_out(text: str, left: str | None) -> None:
    assert cleaned(text.encode()) == (None if left is None else left.encode())
