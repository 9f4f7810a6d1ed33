"""The audit log: every decision and call leaves its lines, and whatever is done to them shows."""

from __future__ import annotations

import getpass
import json
import os
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.properties import examples
from toolcrib import Answer, Effect, Toolbox, Verdict, tool
from toolcrib.audit import AuditError, AuditLog, read_key, verify
from toolcrib.audit.chain import Chain
from toolcrib.cli.main import main
from toolcrib.secrets import Environment

KEY = b"k" * 32


@tool(effect=Effect.WRITE, secrets=())
def save(path: str, text: str = "") -> str:
    "Save."
    if path == "bad":
        raise RuntimeError("disk on fire")
    return f"saved {path}"


async def yes(question: Any) -> Answer:
    return Answer(Verdict.YES, by="ann")


def lines(log: AuditLog) -> list[dict[str, Any]]:
    log.flush()
    return [json.loads(line) for line in log.path.read_text().splitlines()]


@pytest.mark.promise("security.md", "What happened can be shown")
async def test_every_call_leaves_its_lines(tmp_path: Path) -> None:
    log = AuditLog(tmp_path / "audit.jsonl", key=KEY, actor="bob", clock=lambda: 1000.0)
    box = Toolbox([save], approver=yes, audit=log)
    await box.call("save", {"path": "a", "text": "t"})
    await box.call("save", {"path": "bad"})
    await box.call("save", {"pth": "a"})
    await box.call("nothing", {})
    noted = lines(log)
    assert [(item["event"], item["tool"], item.get("outcome", "")) for item in noted] == [
        ("decided", "save", ""),
        ("ended", "save", "ok"),
        ("decided", "save", ""),
        ("ended", "save", "failed"),
        ("refused", "save", "invalid_arguments"),
        ("refused", "nothing", "unknown_tool"),
    ]
    first = noted[0]
    assert (first["by"], first["why"], first["effect"], first["at"]) == (
        "bob",
        "approved by ann",
        "write",
        1000.0,
    )
    assert first["arguments"] == '{"path": "a", "text": "t"}'
    assert len(first["fingerprint"]) == 64
    assert log.check().ok


async def test_what_a_rule_decided_is_noted(tmp_path: Path) -> None:
    from toolcrib.rules import read_rules

    log = AuditLog(tmp_path / "a.jsonl", key=KEY)
    policy = read_rules('[[rule]]\nname = "all"\nallow = true\ntool = "save"').policy()
    await Toolbox([save], policy=policy, audit=log).call("save", {"path": "a"})
    assert lines(log)[0]["why"] == "all (rules:1)"


async def test_secrets_are_masked_before_they_are_written(tmp_path: Path) -> None:
    log = AuditLog(tmp_path / "a.jsonl", key=KEY, mask=lambda text: text.replace("hunter2", "[secret]"))
    await Toolbox([save], autonomy="full", audit=log).call("save", {"path": "hunter2", "text": "x" * 2000})
    log.flush()
    assert "hunter2" not in log.path.read_text()
    assert len(lines(log)[0]["arguments"]) == 501


@pytest.mark.parametrize(("length", "times"), [(40, 1), (3_000, 2), (3_000, 40), (20_000, 1), (20_000, 3)])
async def test_a_secret_is_masked_however_long_it_is_and_however_often_it_stands_there(
    length: int, times: int, tmp_path: Path
) -> None:
    key = "".join(f"{number:x}-" for number in range(length))[:length]
    log = AuditLog(tmp_path / "a.jsonl", key=KEY)
    box = Toolbox([save], autonomy="full", audit=log, secrets=Environment(("BIG",), environ={"BIG": key}))
    await box.call("save", {"path": "x", "text": f"begin {' '.join([key] * times)} end"})
    await box.call("nothing", {"pth": key * times})
    log.flush()
    text = log.path.read_text()
    assert "begin" in text or times * length > 32_000
    assert not any(key[at : at + 16] in text for at in range(0, length - 16, 7))


async def test_a_log_goes_on_where_it_ended(tmp_path: Path) -> None:
    log = AuditLog(tmp_path / "a.jsonl", key=KEY)
    for _ in range(3):
        log = AuditLog(log.path, key=KEY)
        await Toolbox([save], autonomy="full", audit=log).call("save", {"path": "a"})
        log.flush()
    assert AuditLog(log.path, key=KEY).check().lines == 6
    assert [item["n"] for item in lines(log)] == list(range(6))


def written(count: int = 6) -> list[str]:
    chain = Chain(KEY)
    return [chain.sealed({"event": "x", "value": number}) for number in range(count)]


TAMPERED = {
    "a word changed": (lambda log: [*log[:2], log[2].replace('"value":2', '"value":9'), *log[3:]], 3),
    "a line dropped": (lambda log: [*log[:2], *log[3:]], 3),
    "two lines swapped": (lambda log: [*log[:2], log[3], log[2], *log[4:]], 3),
    "a line said twice": (lambda log: [*log[:3], *log[2:]], 4),
    "the beginning cut off": (lambda log: log[1:], 1),
    "the end cut off": (lambda log: log[:-1], 6),
    "a foreign line": (lambda log: [*log, "{}"], 7),
    "no line": (lambda log: [*log, "nonsense"], 7),
    "a key repeated": (lambda log: [*log[:2], log[2].replace("{", '{"value":9,', 1), *log[3:]], 3),
    "all of it": (lambda log: [], 1),
    "the last line break cut off": (lambda log: [*(f"{line}\n" for line in log[:-1]), log[-1]], 6),
    "text for the terminal as a number": (lambda log: [*log, '{"n":"\\u001b[2J","seal":""}'], 7),
    "a number of many digits": (lambda log: [*log, '{"n":%s,"seal":""}' % ("9" * 4000)], 7),
}


@pytest.mark.promise("security.md", "changes to it show")
@pytest.mark.parametrize(("change", "line"), TAMPERED.values(), ids=TAMPERED)
def test_what_was_done_to_a_log_shows(change: Any, line: int) -> None:
    log = written()
    chain = Chain(KEY)
    for number in range(6):
        chain.sealed({"event": "x", "value": number})
    head = (chain.count, chain.seal)
    assert verify(log, KEY, head=head).ok
    broken = verify(change(log), KEY, head=head).broken
    assert broken is not None
    assert broken.line == line
    assert broken.what.isprintable() and len(broken.what) < 100


def test_another_key_does_not_verify() -> None:
    assert not verify(written(), b"x" * 32).ok


def test_the_key_of_today_does_not_seal_yesterday() -> None:
    """Whoever takes over the process has the key of the next line and none before it."""
    chain = Chain(KEY)
    for number in range(3):
        chain.sealed({"value": number})
    forged = Chain(chain.key)
    assert not verify([forged.sealed({"value": number}) for number in range(3)], KEY).ok


@pytest.mark.promise("security.md", "changes to it show")
@given(st.binary(min_size=1, max_size=3), st.integers(0, 10_000))
@examples(200)
def test_any_change_of_bytes_shows(put: bytes, at: int) -> None:
    whole = "\n".join(written(3)).encode()
    place = at % len(whole)
    spoiled = whole[:place] + put + whole[place + len(put) :]
    found = verify(
        spoiled.decode("utf-8", "replace").split("\n"), KEY, head=(3, verify(written(3), KEY).seal)
    )
    assert found.ok is (spoiled == whole)


@pytest.mark.parametrize("at", range(4))
def test_an_empty_line_shows(tmp_path: Path, at: int) -> None:
    log = AuditLog(tmp_path / "a.jsonl", key=KEY)
    for number in range(3):
        log.note({"number": number})
    lines = log.path.read_text().splitlines(keepends=True)
    log.path.write_text("".join([*lines[:at], "\n", *lines[at:]]))
    assert not log.check().ok
    text = log.path.read_text()
    with pytest.raises(AuditError):
        log.note({"number": 3})
    assert log.path.read_text() == text


async def test_a_log_that_cannot_be_written_stops_the_call(tmp_path: Path) -> None:
    log = AuditLog(tmp_path / "no" / "a.jsonl", key=KEY)
    (tmp_path / "no").write_text("a file where a folder should be")
    ran: list[str] = []

    @tool(effect=Effect.WRITE, secrets=())
    def touch() -> str:
        "Touch."
        ran.append("touch")
        return "done"

    result = await Toolbox([touch], autonomy="full", audit=log).call("touch", {})
    assert result.is_error
    assert ran == []
    assert str(tmp_path) not in result.text


async def test_or_goes_on_loudly_where_that_was_chosen(tmp_path: Path) -> None:
    said: list[str] = []
    (tmp_path / "no").write_text("")
    log = AuditLog(tmp_path / "no" / "a.jsonl", key=KEY, on_failure="go_on", complain=said.append)
    assert not (await Toolbox([save], autonomy="full", audit=log).call("save", {"path": "a"})).is_error
    assert said
    assert "unrecorded" in said[0]


@pytest.mark.promise(
    "faults.md", "A call that the audit log cannot note is not run, and the log does not claim it."
)
async def test_a_full_disk_stops_the_call_and_leaves_the_log_whole(tmp_path: Path) -> None:
    import resource

    log = AuditLog(tmp_path / "a.jsonl", key=KEY)
    box = Toolbox([save], autonomy="full", audit=log)
    await box.call("save", {"path": "a"})
    log.flush()
    size = log.path.stat().st_size
    import signal

    before, handler = resource.getrlimit(resource.RLIMIT_FSIZE), signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size + 20, before[1]))
    try:
        assert (await box.call("save", {"path": "b"})).is_error
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
        signal.signal(signal.SIGXFSZ, handler)
    assert not (await box.call("save", {"path": "c"})).is_error
    assert log.check().ok
    assert [json.loads(item["arguments"])["path"] for item in lines(log) if item["event"] == "decided"] == [
        "a",
        "c",
    ]


async def test_a_log_that_was_changed_is_not_gone_on_with(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    log = AuditLog(path, key=KEY)
    await Toolbox([save], autonomy="full", audit=log).call("save", {"path": "a"})
    log.flush()
    path.write_text(path.read_text().replace('"ok"', '"no"'))
    result = await Toolbox([save], autonomy="full", audit=AuditLog(path, key=KEY)).call("save", {"path": "b"})
    assert result.is_error
    path.unlink()
    result = await Toolbox([save], autonomy="full", audit=AuditLog(path, key=KEY)).call("save", {"path": "b"})
    assert result.is_error, "the head says that there was a log"


def test_a_line_that_a_crash_cut_is_dropped(tmp_path: Path) -> None:
    log = AuditLog(tmp_path / "a.jsonl", key=KEY)
    log.note({"event": "one"})
    with log.path.open("a") as file:
        file.write('{"event":"tw')
    again = AuditLog(log.path, key=KEY)
    again.note({"event": "three"})
    assert [item["event"] for item in lines(log)] == ["one", "three"]
    assert again.check().ok


def cut_end(data: bytes) -> bytes:
    return data[:-1]


ENDS: dict[str, tuple[Callable[[bytes], bytes], bool]] = {
    "the last line break cut off": (cut_end, False),
    "the end of the last line cut off": (lambda data: data[:-9], False),
    "the beginning of a line behind it": (lambda data: data + data[:9], True),
    "a whole line without its end behind it": (lambda data: data + cut_end(next_line(data)), True),
    "half a surrogate pair": (lambda data: data.replace(b"?", b"\xff"), False),
}


def next_line(data: bytes) -> bytes:
    chain = Chain(KEY)
    for line in data.decode().splitlines():
        chain.sealed({key: value for key, value in json.loads(line).items() if key not in ("n", "seal")})
    return f"{chain.sealed({'event': 'next'})}\n".encode()


@pytest.mark.promise("security.md", "changes to it show")
@pytest.mark.parametrize(("change", "goes_on"), ENDS.values(), ids=ENDS)
@pytest.mark.parametrize("fresh", [True, False], ids=["opened anew", "already open"])
def test_a_line_is_dropped_only_if_the_head_does_not_count_it(
    change: Callable[[bytes], bytes], goes_on: bool, fresh: bool, tmp_path: Path
) -> None:
    log = AuditLog(tmp_path / "a.jsonl", key=KEY)
    for event in ("one?", "two?", "three?"):
        log.note({"event": event})
    log.flush()
    changed = change(log.path.read_bytes())
    log.path.write_bytes(changed)
    used = AuditLog(log.path, key=KEY) if fresh else log
    assert not AuditLog(log.path, key=KEY).check().ok
    assert not verify(changed.decode("utf-8", "surrogateescape").splitlines(keepends=True), KEY).ok
    if goes_on:
        used.note({"event": "four"})
        assert [item["event"] for item in lines(used)] == ["one?", "two?", "three?", "four"]
        assert used.check().ok
        return
    with pytest.raises(AuditError):
        used.note({"event": "four"})
    assert log.path.read_bytes() == changed, "nothing is taken from a log that does not hold"


def test_what_is_no_log_is_read_in_pieces(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    import tracemalloc

    path = tmp_path / "a.jsonl"
    path.touch()
    os.truncate(path, 3 * 10**8)  # one line without an end
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    for command in ("verify", "show"):
        tracemalloc.start()
        try:
            assert main(["audit", command, str(path), *(["-n", "1"] if command == "show" else [])])
            assert tracemalloc.get_traced_memory()[1] < 100_000_000
        finally:
            tracemalloc.stop()
        assert "not a line of this log" in "".join(capsys.readouterr())
    with pytest.raises(AuditError, match="longer than"):
        AuditLog(tmp_path / "b.jsonl", key=KEY).note({"event": "x" * 10_000_001})


def test_a_tampered_log_paints_nothing_on_the_terminal(
    tmp_path: Path, audited: Callable[..., int], capsys: pytest.CaptureFixture[str]
) -> None:
    assert audited() == 0
    path = tmp_path / "toolcrib" / "audit.jsonl"
    for line in ('{"n":"\\u001b[2J","seal":""}', "\x1b[2J", '{"event":"\\u001b[2J","at":1,"tool":"x"}'):
        path.write_text(f"{path.read_text()}{line}\n")
    capsys.readouterr()
    for arguments in (["verify"], ["show"], ["show", "--json"]):
        assert main(["audit", *arguments])
        assert "\x1b" not in "".join(capsys.readouterr())


def test_keys_are_their_owners_alone(tmp_path: Path) -> None:
    key = read_key(tmp_path / "key")
    assert len(key) == 32
    assert read_key(tmp_path / "key") == key
    assert (tmp_path / "key").stat().st_mode & 0o077 == 0
    (tmp_path / "key").chmod(0o644)
    with pytest.raises(AuditError, match="can be read by others"):
        read_key(tmp_path / "key")
    (tmp_path / "link").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(OSError):
        read_key(tmp_path / "link")


@pytest.fixture
def audited(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., int]:
    """Runs a script with `--audit` in a folder of its own; the log lies in `toolcrib/` there."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))

    def run(calls: str = "{name: list_dir, arguments: {}}", *options: str) -> int:
        script = tmp_path / "script.yaml"
        script.write_text(f"- calls: [{calls}]\n- text: Done.\n")
        named = ["--model", f"scripted:{script}", "--workspace", str(tmp_path), "--audit", *options]
        code = main(["run", "go", *named])
        for thread in [thread for thread in threading.enumerate() if "toolcrib-audit" in thread.name]:
            thread.join(10)  # the line after a call is written at the latest when the program ends
        return code

    return run


def test_the_commands(
    tmp_path: Path, audited: Callable[..., int], capsys: pytest.CaptureFixture[str]
) -> None:
    for command in ("verify", "show"):
        assert main(["audit", command]) == 2
        assert "there is no log at" in capsys.readouterr().err
    assert main(["audit", "verify", str(tmp_path / "aduit.jsonl")]) == 2
    for folder in (".", str(tmp_path)):
        capsys.readouterr()
        assert main(["audit", "show", folder]) == 2
        assert f"{folder} is a folder; expected the file of an audit log" in capsys.readouterr().err
    assert audited() == 0
    capsys.readouterr()
    assert main(["audit", "verify"]) == 0
    assert "2 lines hold" in capsys.readouterr().out
    assert main(["audit", "show"]) == 0
    shown = capsys.readouterr()
    assert "decided  list_dir" in shown.out and f"for {getpass.getuser()}" in shown.out
    assert "ended    list_dir  ok" in shown.out and shown.err == ""
    path = tmp_path / "toolcrib" / "audit.jsonl"
    path.write_text(path.read_text().replace("list_dir", "read_file", 1))
    assert main(["audit", "verify"]) == 1
    assert "line 1: it was changed" in capsys.readouterr().out
    assert main(["audit", "show"]) == 2
    shown = capsys.readouterr()
    assert "decided  read_file" in shown.out
    assert "does not hold" in shown.err and "line 1" in shown.err
    path.unlink()
    path.with_name("audit.jsonl.head").unlink()
    assert main(["audit", "verify"]) == 2


def test_what_was_refused_is_shown_without_credentials(
    audited: Callable[..., int], capsys: pytest.CaptureFixture[str]
) -> None:
    long = "x" * 2_000
    arguments = "{path: a.txt, content: hello, password: hunter22, more: %s}"
    assert audited("{name: write_file, arguments: {path: a.txt, content: hello}}") == 0
    assert audited("{name: write_file, arguments: %s}" % (arguments % long)) == 0
    capsys.readouterr()
    main(["audit", "show"])
    shown = capsys.readouterr().out
    refused = [line for line in shown.splitlines() if "refused" in line]
    assert len(refused) == 2 and all('"path": "a.txt"' in line for line in refused)
    assert all(f"for {getpass.getuser()}" in line and len(line) < 300 for line in refused)
    assert "nobody_to_ask" in refused[0] and "hunter22" not in shown and "(hidden" in refused[1]


@pytest.mark.parametrize("broken", ["changed", "without its head", "gone", "a folder"])
def test_a_run_whose_log_is_broken_does_not_begin(
    broken: str, tmp_path: Path, audited: Callable[..., int], capsys: pytest.CaptureFixture[str]
) -> None:
    assert audited() == 0
    path = tmp_path / "toolcrib" / "audit.jsonl"
    text = path.read_text()
    match broken:
        case "changed":
            path.write_text(text.replace("list_dir", "read_file", 1))
        case "without its head":
            path.with_name("audit.jsonl.head").unlink()
        case "gone":
            path.unlink()
        case _:
            path.unlink()
            path.mkdir()
    capsys.readouterr()
    assert audited("{name: list_dir, arguments: {}}", "--json") == 2
    told = capsys.readouterr()
    *_, in_force, problem = told.err.strip().splitlines()
    assert told.out == "" and in_force.startswith("autonomy ") and "audit.jsonl" in problem


async def test_or_says_once_that_nothing_is_recorded(tmp_path: Path) -> None:
    said: list[str] = []
    (tmp_path / "no").write_text("")
    log = AuditLog(tmp_path / "no" / "a.jsonl", key=KEY, on_failure="go_on", complain=said.append)
    log.ready()
    box = Toolbox([save], autonomy="full", audit=log)
    for path in ("a", "b"):
        assert not (await box.call("save", {"path": path})).is_error
    log.flush()
    assert len(said) == 1 and "NOT RECORDED" in said[0]
