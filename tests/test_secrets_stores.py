"""Stores: where values come from, and what is refused before a value is read."""

from __future__ import annotations

import os
import stat
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from toolcrib.secrets import Environment, Keyring, SecretCommand, SecretError, SecretFile, Stores


def test_the_environment_gives_named_variables_and_those_with_a_prefix() -> None:
    environ = {"HOME": "/h", "API_KEY": "a", "MY_DB": "d", "MY_": "x", "MY_9": "y"}
    store = Environment(["API_KEY", "ABSENT"], prefix="MY_", environ=environ)
    assert list(store.names()) == ["API_KEY", "DB"]
    assert [store.get(name) for name in ("API_KEY", "DB", "HOME", "ABSENT", "9", "")] == [
        "a",
        "d",
        *[None] * 4,
    ]
    assert list(Environment(environ=environ).names()) == []


def test_a_file_is_written_for_us_alone(tmp_path: Path) -> None:
    store = SecretFile(tmp_path / "new" / "secrets.json")
    assert list(store.names()) == [] and store.get("A") is None
    store.set("A", "ä\n1")
    store.set("B", "2")
    store.set("A", "3")
    assert stat.S_IMODE(store.path.stat().st_mode) == 0o600
    assert (list(store.names()), store.get("A")) == (["A", "B"], "3")
    assert store.remove("A") and not store.remove("A")
    assert list(SecretFile(store.path).names()) == ["B"]
    assert {path.name for path in store.path.parent.iterdir()} == {"secrets.json", ".secrets.json.lock"}


def test_writers_at_once_lose_nothing(tmp_path: Path) -> None:
    path = tmp_path / "secrets.json"

    def write(writer: int) -> None:
        for number in range(20):
            SecretFile(path).set(f"A_{writer}_{number}", "value")

    writers = [threading.Thread(target=write, args=(writer,)) for writer in range(4)]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()
    assert len(SecretFile(path).names()) == 80


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o660, 0o620, 0o601, 0o777])
def test_a_file_that_others_reach_is_not_used(tmp_path: Path, mode: int) -> None:
    store = SecretFile(tmp_path / "secrets.json")
    store.set("A", "hidden-value")
    store.path.chmod(mode)
    for use in (store.names, lambda: store.get("A"), lambda: store.set("B", "x"), lambda: store.remove("A")):
        with pytest.raises(
            SecretError, match=rf"others may read or change it \(mode 0{mode:o}\); run chmod 600"
        ) as told:
            use()
        assert "hidden" not in str(told.value)


def test_links_folders_pipes_and_open_folders_are_not_used(tmp_path: Path) -> None:
    real = SecretFile(tmp_path / "real.json")
    real.set("A", "1")
    link = tmp_path / "link.json"
    link.symlink_to(real.path)
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe, 0o600)
    for path in (link, pipe, tmp_path):
        with pytest.raises(SecretError):
            SecretFile(path).names()
    shared = tmp_path / "shared"
    shared.mkdir()
    store = SecretFile(shared / "s.json")
    store.set("A", "1")
    shared.chmod(0o777)
    with pytest.raises(SecretError, match="everybody may write to its folder"):
        store.get("A")
    shared.chmod(0o1777)
    assert store.get("A") == "1"


@pytest.mark.parametrize("text", ["", "[]", '{"A": 1}', "{", "\xff"])
def test_a_file_of_another_shape_is_named_without_its_content(tmp_path: Path, text: str) -> None:
    path = tmp_path / "s.json"
    path.write_text(text, encoding="latin-1")
    path.chmod(0o600)
    with pytest.raises(SecretError, match="expected a JSON object of names and strings"):
        SecretFile(path).names()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a file away")
def test_a_file_of_somebody_else_is_not_used(tmp_path: Path) -> None:
    store = SecretFile(tmp_path / "s.json")
    store.set("A", "1")
    os.chown(store.path, 12345, -1)
    with pytest.raises(SecretError, match="belongs to another user"):
        store.get("A")


@pytest.mark.parametrize("name", ["", "1A", "a b", "a/b", "-x", "é", "A" * 65, "A\n", "a:b"])
def test_names_are_plain(tmp_path: Path, name: str) -> None:
    with pytest.raises(ValueError, match="a secret's name is"):
        SecretFile(tmp_path / "s.json").set(name, "x")
    with pytest.raises(ValueError, match="a secret's name is"):
        SecretCommand(["x"], [name])


def python(program: str) -> list[str]:
    return [sys.executable, "-c", program, "{name}"]


def test_a_command_prints_the_value() -> None:
    store = SecretCommand(python("import sys; print('value of', sys.argv[1])"), ["A", "B-1"])
    assert list(store.names()) == ["A", "B-1"]
    assert (store.get("B-1"), store.get("C")) == ("value of B-1", None)


@pytest.mark.parametrize(
    ("argv", "words"),
    [
        (["/nowhere/to/be/found"], "cannot be started"),
        (python("import sys; print('hidden'); sys.exit(3)"), "gave no value for 'A': exit code 3"),
        (python("import sys; sys.stdout.buffer.write(b'\\xff')"), "gave no text"),
        (python("import time; time.sleep(60)"), "gave no value within 0.3 s"),
        (python("import os, time; os.close(1); time.sleep(60)"), "gave no value within 0.3 s"),
        (python("while True: print('hidden' * 1000)"), "gave more than 1048576 bytes"),
    ],
)
def test_a_command_that_fails_says_so_without_its_output(argv: list[str], words: str) -> None:
    with pytest.raises(SecretError, match=words) as told:
        SecretCommand(argv, ["A"], deadline=0.3 if "within" in words else 10).get("A")
    assert "hidden" not in str(told.value)


def test_a_command_leaves_no_process_behind(tmp_path: Path) -> None:
    mark = tmp_path / "pid"
    child = f"import os,time; open({str(mark)!r},'w').write(str(os.getpid())); time.sleep(60)"
    program = f"import subprocess,sys; subprocess.Popen([sys.executable,'-c',{child!r}]).wait()"
    with pytest.raises(SecretError, match="within"):
        SecretCommand(python(program), ["A"], deadline=2).get("A")
    pid = int(mark.read_text())
    for _ in range(100):
        try:
            os.kill(pid, 0)
            if sys.platform == "linux" and ") Z" in Path(f"/proc/{pid}/stat").read_text():
                return  # ended, and waits for whoever adopted it
        except (ProcessLookupError, FileNotFoundError):
            return
        time.sleep(0.02)
    pytest.fail("the child of the command is still there")


def test_a_command_is_words_and_not_a_shells_line() -> None:
    with pytest.raises(TypeError, match="a list of words"):
        SecretCommand("pass show x", ["A"])


def test_a_chain_asks_one_store_after_the_other(tmp_path: Path) -> None:
    file = SecretFile(tmp_path / "s.json")
    file.set("A", "file")
    file.set("B", "file")
    both = Stores(Environment(["A"], environ={"A": "environment"}), file)
    assert (both.get("A"), both.get("B"), both.get("C")) == ("environment", "file", None)
    assert list(both.names()) == ["A", "B"]


@pytest.fixture
def keyring_of_ours() -> Iterator[dict[tuple[str, str], str]]:
    """A keyring of the test's own, in the place of the system's."""
    keyring = pytest.importorskip("keyring")
    backend = pytest.importorskip("keyring.backend")
    errors = pytest.importorskip("keyring.errors")
    kept: dict[tuple[str, str], str] = {}

    class Ours(backend.KeyringBackend):  # type: ignore[misc, name-defined]
        priority = 1

        def get_password(self, service: str, username: str) -> str | None:
            return kept.get((service, username))

        def set_password(self, service: str, username: str, password: str) -> None:
            kept[service, username] = password

        def delete_password(self, service: str, username: str) -> None:
            if (service, username) not in kept:
                raise errors.PasswordDeleteError
            del kept[service, username]

    before = keyring.get_keyring()
    keyring.set_keyring(Ours())
    yield kept
    keyring.set_keyring(before)


def test_the_keyring_keeps_values_and_a_list_of_names(keyring_of_ours: dict[tuple[str, str], str]) -> None:
    store = Keyring("ours")
    assert list(store.names()) == []
    store.set("A", "1")
    store.set("B", "2")
    assert (list(store.names()), store.get("B"), store.get("C")) == (["A", "B"], "2", None)
    assert store.remove("A") and not store.remove("A")
    assert list(store.names()) == ["B"]
    assert {service for service, _ in keyring_of_ours} == {"ours"}
    assert Keyring("theirs").get("B") is None


def test_a_keyring_that_is_locked_or_absent_says_so() -> None:
    keyring = pytest.importorskip("keyring")
    fail = pytest.importorskip("keyring.backends.fail")
    before = keyring.get_keyring()
    keyring.set_keyring(fail.Keyring())
    try:
        with pytest.raises(SecretError, match="the system keyring cannot be used: NoKeyringError"):
            Keyring().names()
    finally:
        keyring.set_keyring(before)
