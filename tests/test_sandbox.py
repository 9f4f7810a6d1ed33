"""What sandboxes promise beside what the escape suite tries: levels, words, what is put back, what is chosen."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.sandbox_runs import BACKENDS, backend, run
from toolcrib.command.sandbox import (
    Bubblewrap,
    ExternalSandbox,
    Landlock,
    Level,
    Limits,
    NoSandbox,
    Sandbox,
    SandboxError,
    SandboxReport,
    Seatbelt,
    Strength,
    choose,
    environment,
)
from toolcrib.command.sandbox.choose import SandboxBackend
from toolcrib.command.sandbox.files.file_view import file_view_of
from toolcrib.command.sandbox.seatbelt import profile

linux = pytest.mark.skipif(sys.platform != "linux", reason="Linux only")


@pytest.fixture(params=list(BACKENDS))
def kind(request: pytest.FixtureRequest) -> type[Any]:
    return backend(request.param)


@pytest.fixture
def ws(tmp_path: Path) -> Path:
    made = tmp_path / "ws"
    made.mkdir()
    return made


# -- levels


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        (("everything",), "files: expected read_only, workspace_write or danger_no_sandbox, got everything"),
        (("off",), "files: expected .* got off"),
        (("read_only", "maybe"), "network: expected off, allowlist or on, got maybe"),
        (("read_only", "allowlist"), "no hosts are listed"),
        (("read_only", "off", ["a.b"]), "hosts are listed, and network is off"),
    ],
)
def test_a_level_that_is_none_is_refused(words: tuple[Any, ...], problem: str) -> None:
    with pytest.raises(ValueError, match=problem):
        Level.of(*words)


@pytest.mark.promise("sandbox.md", "commands change nothing but temporary files")
def test_read_only_writes_nothing_but_temporary_files(kind: type[Any], ws: Path) -> None:
    sandbox = kind(ws, Level.of("read_only"))
    done = run(sandbox, 'echo x >"$TMPDIR/t" && cat "$TMPDIR/t"; echo x >file', ws)
    assert done.said.startswith("x\n") and done.code != 0 and not (ws / "file").exists()
    assert done.denial is not None and (done.denial.kind, done.denial.target) == ("write", str(ws / "file"))


@pytest.mark.promise("sandbox.md", "A single command can be given less than its sandbox allows")
def test_a_command_may_be_given_less_but_not_more(kind: type[Any], ws: Path) -> None:
    sandbox = kind(ws)
    assert run(sandbox, "echo x >file", ws, level=Level.of("read_only")).code != 0
    for wider in (Level.of("workspace_write", "on"), Level.of("danger_no_sandbox")):
        with pytest.raises(SandboxError, match="more than its sandbox was made for"):
            sandbox.launch(["true"], cwd=str(ws), env={}, level=wider)


@pytest.mark.parametrize("make", [Bubblewrap, Landlock, Seatbelt])
def test_what_confines_does_not_pretend_for_the_loud_word(make: type[Any], ws: Path) -> None:
    with pytest.raises(SandboxError, match="use NoSandbox"):
        make(ws, Level.of("danger_no_sandbox"))
    with pytest.raises(SandboxError, match="workspace is /"):
        make("/")


@pytest.mark.promise("sandbox.md", "A temporary folder of its own")
def test_temporary_files_stay_from_one_command_to_the_next(kind: type[Any], ws: Path) -> None:
    sandbox = kind(ws)
    run(sandbox, 'echo kept >"$TMPDIR/t"', ws)
    assert run(sandbox, 'cat "$TMPDIR/t"', ws).said == "kept\n"
    place = Path(sandbox.scratch.path())
    assert (place / "t").exists() and place.stat().st_mode & 0o077 == 0
    del sandbox
    assert not place.exists()


def test_readable_folders_can_be_read_and_not_written(kind: type[Any], ws: Path, tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.mkdir()
    (other / "data").write_text("data\n")
    assert run(kind(ws), f"cat {other}/data", ws).code != 0
    opened = kind(ws, readable=[other])
    assert run(opened, f"cat {other}/data", ws).said == "data\n"
    assert run(opened, f"echo x >{other}/data", ws).code != 0
    assert (other / "data").read_text() == "data\n"


def test_a_link_in_the_place_of_an_opened_path_opens_nothing(
    kind: type[Any], ws: Path, tmp_path: Path
) -> None:
    """A permission for a path of the workspace counts in later runs, and a command may have put a link there."""
    (tmp_path / "outside").mkdir()
    (ws / "out").symlink_to("../outside")
    level = replace(Level.of("read_only"), writable=(str(ws / "out"),))
    run(
        kind(ws, level, readable=[tmp_path / "outside"]),
        f"echo x > out/file; echo x > {tmp_path}/outside/file",
        ws,
    )
    assert list((tmp_path / "outside").iterdir()) == []


def test_secrets_of_everyday_programs_in_a_home_are_hidden(tmp_path: Path) -> None:
    home = tmp_path / "home"
    names = [
        ".authinfo", ".authinfo.gpg", ".viminfo", ".local/share/atuin/key", ".local/state/nvim/shada/main.shada",
        ".var/app/org.mozilla.firefox/logins.json", "snap/firefox/common/logins.json",
    ]  # fmt: skip
    for name in names:
        (home / name).parent.mkdir(parents=True, exist_ok=True)
        (home / name).write_text("secret")
    done = run(backend("bubblewrap")(home, home=str(home)), f"cat {' '.join(names)}", home)
    assert "secret" not in done.said


def test_a_home_that_is_the_workspace_keeps_its_secrets(tmp_path: Path) -> None:
    home = tmp_path / "home"
    (home / ".ssh").mkdir(parents=True)
    (home / ".ssh" / "id").write_text("secret")
    (home / ".netrc").write_text("secret")
    (home / ".bashrc").write_text("before")
    sandbox = backend("bubblewrap")(home, home=str(home))
    done = run(sandbox, "cat .ssh/id .netrc; echo x >.bashrc; echo x >file", home)
    assert "secret" not in done.said and (home / ".bashrc").read_text() == "before"
    assert (home / "file").exists()
    with pytest.raises(SandboxError, match="take a smaller workspace"):
        backend("landlock")(home, home=str(home)).launch(["true"], cwd=str(home), env={})


# -- protected files


def test_masks_of_absent_files_leave_nothing_behind(ws: Path) -> None:
    sandbox = backend("bubblewrap")(ws)
    assert ".envrc" in run(sandbox, "ls -a", ws).said
    assert list(ws.iterdir()) == []


def test_masks_stay_as_long_as_any_command_needs_them(ws: Path) -> None:
    sandbox = backend("bubblewrap")(ws)
    slow = threading.Thread(target=run, args=(sandbox, "touch begun; sleep 1.5; echo x >.envrc", ws))
    slow.start()
    while not (ws / "begun").exists():
        assert slow.is_alive()
    run(sandbox, "true", ws)
    slow.join()
    assert sorted(path.name for path in ws.iterdir()) == ["begun"]


@pytest.mark.promise("sandbox.md", "`launch.restored` names the protected files that were put back.")
@pytest.mark.promise(
    "sandbox.md",
    "put back: restored after the command, or removed if the command created them, and you "
    "and the model are told.",
)
def test_landlock_puts_back_what_a_command_changed_and_says_so(ws: Path) -> None:
    (ws / ".git" / "hooks").mkdir(parents=True)
    hook = ws / ".git" / "hooks" / "pre-commit"
    hook.write_text("mine")
    hook.chmod(0o755)
    (ws / ".git" / "config").write_text("[core]\n")
    done = run(
        backend("landlock")(ws),
        "echo evil >.git/hooks/pre-commit; chmod 600 .git/hooks/pre-commit; rm .git/config; "
        "mkdir .vscode; echo x >file",
        ws,
    )
    assert done.code == 0 and (ws / "file").exists()
    assert {Path(path).name for path in done.restored} == {"hooks", "config", ".vscode"}
    assert hook.read_text() == "mine" and hook.stat().st_mode & 0o777 == 0o755
    assert (ws / ".git" / "config").read_text() == "[core]\n" and not (ws / ".vscode").exists()


def test_putting_back_follows_no_link_that_a_command_made(ws: Path, tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    (elsewhere / "hooks").mkdir(parents=True)
    (ws / ".git" / "hooks").mkdir(parents=True)
    (ws / ".git" / "hooks" / "pre-commit").write_text("mine")
    done = run(backend("landlock")(ws), f"mv .git away; ln -s {elsewhere} .git", ws)
    assert done.restored
    assert list((elsewhere / "hooks").iterdir()) == []
    assert (ws / ".git" / "hooks" / "pre-commit").read_text() == "mine" and not (ws / ".git").is_symlink()


def test_protected_paths_that_are_links_do_not_stop_commands(
    kind: type[Any], ws: Path, tmp_path: Path
) -> None:
    (tmp_path / "settings").mkdir()
    (ws / ".vscode").symlink_to(tmp_path / "settings")
    done = run(kind(ws), "rm .vscode; echo x >file", ws)
    assert done.code == 0, done.said
    assert (ws / ".vscode").is_symlink() and (ws / "file").exists()


# -- processes


def test_all_processes_of_a_command_end_with_it(kind: type[Any], ws: Path) -> None:
    daemon = "(setsid setsid env -i /bin/sleep 271.8281 >/dev/null 2>&1 &)"
    evil = f"{daemon}; nohup sleep 271.8281 >/dev/null 2>&1 & echo up"
    assert "up" in run(kind(ws), evil, ws).said
    listed = subprocess.run(["ps", "-eo", "args"], capture_output=True, text=True, check=True).stdout
    assert "271.8281" not in listed


def test_waiting_takes_no_other_childs_end(kind: type[Any], ws: Path) -> None:
    mine = subprocess.Popen(["sh", "-c", "exit 3"])
    run(kind(ws), "true", ws)
    assert mine.wait() == 3


@pytest.mark.parametrize(
    ("command", "codes"), [("exit 7", {7}), ("kill -9 $$", {-9, 137}), ("nonesuch", {127})]
)
def test_exit_codes_come_through(kind: type[Any], ws: Path, command: str, codes: set[int]) -> None:
    assert run(kind(ws), command, ws).code in codes


def test_descriptors_of_ours_do_not_reach_a_command(kind: type[Any], ws: Path) -> None:
    with (ws / "held").open("w") as held:
        os.set_inheritable(held.fileno(), True)
        look = "import os\nfor n in range(3, 64):\n try: os.fstat(n); print(n)\n except OSError: pass"
        done = run(kind(ws), [sys.executable, "-c", look], ws)
    assert done.said == ""


@pytest.mark.parametrize(
    ("program", "code", "said"),
    [
        ("nonesuch-program", 127, "nonesuch-program: command not found\n"),
        ("./missing", 127, "./missing: command not found\n"),
        ("./no-interpreter", 127, "not found"),
        ("./not-executable", 126, "ermission denied"),
        ("./fine", 0, "fine\n"),
    ],
)
def test_a_program_that_cannot_be_run_is_told_as_a_shell_does(
    kind: type[Any], ws: Path, program: str, code: int, said: str
) -> None:
    for name, mode, text in (
        ("no-interpreter", 0o755, "#!/nonesuch/interpreter\n"),
        ("not-executable", 0o644, ""),
        ("fine", 0o755, "#!/bin/sh\necho fine\n"),
    ):
        (ws / name).write_text(text)
        (ws / name).chmod(mode)
    done = run(kind(ws), [program, "-x"], ws)
    assert done.code == code and said in done.said and "prlimit" not in done.said, done.said


def test_a_program_of_an_earlier_command_runs_where_it_was_put(ws: Path) -> None:
    """The /tmp of commands is not the one of this process, which sees no such program."""
    sandbox = backend("bubblewrap")(ws)
    run(sandbox, "printf '#!/bin/sh\\necho made\\n' > /tmp/program && chmod +x /tmp/program", ws)
    assert run(sandbox, ["/tmp/program"], ws).said == "made\n"


# -- limits


@pytest.mark.parametrize(
    ("limits", "command", "words"),
    [
        (Limits(file_size=1 << 20), "head -c 2000000 /dev/zero >large", "size of a file"),
        (Limits(memory=200 << 20), "{python} -c 'bytearray(400 << 20)'", "memory of a process"),
    ],
)
def test_floods_are_stopped_and_told(
    kind: type[Any], ws: Path, limits: Limits, command: str, words: str
) -> None:
    done = run(kind(ws, limits=limits), command.format(python=sys.executable), ws)
    assert done.code != 0 and done.denial is not None, done.said
    assert done.denial.kind == "limit" and words in done.denial.target


# -- macOS, as text


def test_the_profile_of_macos_allows_what_is_named_and_no_more(ws: Path, tmp_path: Path) -> None:
    home = tmp_path / 'a "home"'
    (home / ".ssh").mkdir(parents=True)
    view = file_view_of(str(ws), home=str(home))
    text = profile(view, Level(), "/private/tmp/t")
    lines = text.splitlines()
    assert lines[:2] == ["(version 1)", "(deny default)"]
    assert text.count("(") == text.count(")")
    assert f'(allow file-write* (subpath "{ws}"))' in lines
    assert f'(subpath "{tmp_path}/a \\"home\\"")' in text
    (denied,) = (number for number, line in enumerate(lines) if line.startswith("(deny file-write* "))
    assert f'(subpath "{ws}/.envrc")' in lines[denied]
    assert denied > lines.index(f'(allow file-write* (subpath "{ws}"))')  # the last rule that matches counts
    assert "network" not in text
    assert "(allow network* system-socket)" in profile(view, Level.of("read_only", "on"), "/t")
    assert f'(allow file-write* (subpath "{ws}"))' not in profile(view, Level.of("read_only"), "/t")


def test_a_path_that_would_break_the_profile_is_refused(tmp_path: Path) -> None:
    odd = tmp_path / 'x")\n(allow default'
    odd.mkdir()
    with pytest.raises(SandboxError, match="line break"):
        profile(file_view_of(str(odd)), Level(), "/t")


# -- choosing


class Leaky(NoSandbox):
    """Says that it confines, and does not."""

    def __init__(self, workspace: str, *rest: Any, **named: Any) -> None:
        super().__init__()

    def report(self) -> SandboxReport:
        held = Strength.ENFORCED
        return SandboxReport("leaky", held, held, held, held, held)


class Broken(NoSandbox):
    def __init__(self, workspace: str, *rest: Any, **named: Any) -> None:
        super().__init__()

    def launch(self, *given: Any, **named: Any) -> Any:
        raise SandboxError("setting up uid map: Permission denied")


LEAKY = SandboxBackend("leaky", Leaky, ("linux", "darwin"), "mend leaky")
BROKEN = SandboxBackend("broken", Broken, ("linux", "darwin"), "mend broken")


@pytest.mark.promise("sandbox.md", "`choose` takes the first back end of the table below that *holds*.")
def test_what_only_says_that_it_confines_is_not_chosen(ws: Path) -> None:
    chosen = choose(ws, order=[LEAKY, BROKEN])
    assert isinstance(chosen, NoSandbox) and not chosen.wanted
    report = chosen.report()
    assert not report.confines and report.fix == "mend leaky; or mend broken"
    leaky, broken = report.why_not_better
    for words in (
        "wrote outside",
        "read a secret",
        "reached a service",
        "socket of a daemon",
        "protected file",
    ):
        assert words in leaky
    assert broken == "broken: setting up uid map: Permission denied"
    assert any("NOTHING limits commands" in line for line in report.lines())


@pytest.mark.promise("sandbox.md", "`choose` takes the first back end of the table below that *holds*.")
def test_the_next_one_that_holds_is_chosen_and_says_why(ws: Path) -> None:
    backend("landlock")
    row = SandboxBackend("landlock", Landlock, ("linux",), "")
    chosen = choose(ws, order=[BROKEN, row])
    assert isinstance(chosen, Landlock)
    why = "broken: setting up uid map: Permission denied. To use it: mend broken"
    assert chosen.report().why_not_better == (why,)


def test_an_allowlist_is_not_quietly_dropped(ws: Path) -> None:
    row = SandboxBackend("landlock", Landlock, ("linux",), "")
    with pytest.raises(SandboxError, match="allowlist of hosts"):
        choose(ws, Level.of("workspace_write", "allowlist", ["example.org"]), order=[BROKEN, row])


def test_none_is_only_had_by_its_loud_word(ws: Path) -> None:
    chosen = choose(ws, Level.of("danger_no_sandbox"))
    assert isinstance(chosen, NoSandbox) and chosen.wanted


def test_an_outer_sandbox_is_declared_in_words(ws: Path) -> None:
    chosen = choose(ws, external="a container without a network, thrown away after the run")
    assert isinstance(chosen, ExternalSandbox)
    report = chosen.report()
    assert report.confines and report.fs_write is Strength.PARTIAL and "not checked" in report.gaps[0]
    with pytest.raises(ValueError, match="what: expected words"):
        ExternalSandbox("  ")


@pytest.mark.parametrize("sandbox", [NoSandbox(), ExternalSandbox("a machine of its own")])
def test_without_walls_of_ours_a_command_is_what_it_is(sandbox: Sandbox, ws: Path) -> None:
    with sandbox.launch(["echo", "x"], cwd=str(ws), env={"A": "b"}) as launch:
        assert launch.env == {"A": "b"}
    assert run(sandbox, 'echo "$PWD"; exit 3', ws).code == 3
    for command, code, said in (("kill -KILL $$", -9, ""), ("exec no-such-program", 127, "not found")):
        done = run(sandbox, command, ws)
        assert done.code == code and said in done.said
    assert sandbox.explain(1, "cat: /etc/shadow: Permission denied", launch) is None


# -- the environment, and our own process


@pytest.mark.promise("sandbox.md", "A few variables")
def test_only_named_variables_pass() -> None:
    ours = dict.fromkeys(
        ["PATH", "HOME", "LC_TIME", "CI", "AWS_SECRET_ACCESS_KEY", "GITHUB_TOKEN", "LD_PRELOAD", "PYTHONPATH",
         "NODE_OPTIONS", "BASH_ENV", "GIT_DIR", "SSH_AUTH_SOCK", "DBUS_SESSION_BUS_ADDRESS", "KEPT"], "x"
    )  # fmt: skip
    made = environment(ours, passed=["KEPT"], added={"GIVEN": "1"})
    assert {name for name in made if not name.startswith("GIT_")} == {
        "PATH",
        "HOME",
        "LC_TIME",
        "CI",
        "KEPT",
        "GIVEN",
    }
    assert made.get("GIT_DIR") is None and made["GIT_CONFIG_COUNT"] == "4"


@pytest.mark.promise(
    "sandbox.md",
    "`hide_own_process()` keeps other processes of the same user from reading the memory and "
    "the environment of your process",
)
@linux
def test_our_own_process_can_be_hidden() -> None:
    code = (
        "import ctypes; from toolcrib.command.sandbox import hide_own_process; hide_own_process();"
        "print(ctypes.CDLL(None).prctl(3, 0, 0, 0, 0))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "0"
