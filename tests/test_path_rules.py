"""Rules about paths bind what is opened: links, searches, races; the built-in tools through a toolbox."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.sandbox_runs import backend
from toolcrib import Context, Effect, Toolbox, ToolCall, tool
from toolcrib.access import Access, Reach
from toolcrib.command.sandbox import ExternalSandbox, NoSandbox
from toolcrib.errors import ErrorCode
from toolcrib.prepared import Pending, Ready
from toolcrib.question import Answer, Question, Verdict
from toolcrib.result import ToolResult
from toolcrib.rules import read_rules
from toolcrib.tools import EditFile, GlobFiles, Grep, ListDir, Python, ReadFile, Shell, Workspace, WriteFile

KEYS = """
[[rule]]
name = "keys"
deny = true
path = "keys/**"
reason = "keys stay where they are"
"""
NO_READING = KEYS.replace('path = "keys/**"', 'path = ["keys/**", "*.env"]\nreach = ["read"]')
PLACES = {
    "link.txt": "keys/a.key",
    "up.txt": "src/../keys/a.key",
    "folder": "keys",
    "twice": "link.txt",
    "harmless": "src/a.py",
    "new.key": "keys/new.key",
    "nowhere": "keys/missing.key",
}


@pytest.fixture(params=[False, True], ids=["kernel", "portable"])
def ws(request: pytest.FixtureRequest, tmp_path: Path) -> Workspace:
    root = tmp_path / "root"
    for path, text in {
        "keys/a.key": "the key",
        "src/a.py": "plain",
        "src/deep/b.py": "plain deep",
        "src/deep/b.env": "the key",
    }.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(text)
    for name, target in PLACES.items():
        (root / name).symlink_to(target)
    (root / "absolute.txt").symlink_to(root / "keys/a.key")
    return Workspace(root, portable=request.param)


def box(
    ws: Workspace, rules: str = KEYS, autonomy: str = "full", answer: Callable[[Question], Any] | None = None
) -> Toolbox:
    async def approver(question: Question) -> Answer | None:
        return answer(question) if answer is not None else None

    tools = [make(ws) for make in (ReadFile, WriteFile, EditFile, GlobFiles, Grep, ListDir)]
    shell = Shell(ws, sandbox=NoSandbox())
    return Toolbox([*tools, shell], policy=read_rules(rules).policy(autonomy), approver=approver)


def call(box: Toolbox, name: str, **arguments: Any) -> ToolResult:
    return box.call_sync(name, arguments)


LINKED = ["link.txt", "up.txt", "folder/a.key", "twice", "absolute.txt", "folder/../link.txt", "nowhere"]


@pytest.mark.promise("policy.md", "A deny rule that matches one of them denies")
@pytest.mark.parametrize("path", [*LINKED, "keys/a.key", "KEYS/a.key", "src/../keys/a.key", "./keys//a.key"])
@pytest.mark.parametrize(
    ("name", "more"),
    [
        ("read_file", {}),
        ("write_file", {"content": "x"}),
        ("edit_file", {"old_string": "key", "new_string": "x"}),
        ("grep", {"pattern": "key"}),
        ("list_dir", {}),
        ("glob", {"pattern": "*"}),
    ],
)
def test_a_link_to_what_is_denied_is_denied(
    ws: Workspace, name: str, more: dict[str, str], path: str
) -> None:
    told = call(box(ws), name, path=path, **more)
    assert told.code is ErrorCode.DENIED and "keys stay" in told.text
    assert "the key" not in told.text and (Path(ws.root.path) / "keys/a.key").read_text() == "the key"


@pytest.mark.promise(
    "policy.md",
    "Operands of commands are looked up in the same way, and once more when a proved command starts",
)
@pytest.mark.parametrize(
    "command", ["cat link.txt", "cat folder/a.key", "head src/../twice", "rm -r folder/"]
)
def test_so_is_an_operand_of_a_command(ws: Workspace, command: str) -> None:
    assert call(box(ws), "shell", command=command).code is ErrorCode.DENIED


@pytest.mark.promise("policy.md", "is the same whether or not the file exists")
@pytest.mark.parametrize("name", ["read_file", "list_dir", "grep", "glob", "write_file", "edit_file"])
def test_the_words_of_a_denial_do_not_tell_what_exists(ws: Workspace, name: str) -> None:
    rules = KEYS + '[[rule]]\nname = "src"\ndeny = true\npath = "src/**"\nreason = "nor this"\n'
    (Path(ws.root.path) / "keys/leads").symlink_to("../src/a.py")
    more = {
        "grep": {"pattern": "x"},
        "glob": {"pattern": "*"},
        "write_file": {"content": ""},
        "edit_file": {"old_string": "a", "new_string": "b"},
    }.get(name, {})
    for order in (rules, "".join(f"[[rule]]{rule}" for rule in reversed(rules.split("[[rule]]")[1:]))):
        said = {
            call(box(ws, order), name, path=path, **more).text
            for path in ("keys/a.key", "keys/none.key", "keys/none/deep", "keys/leads", "keys")
        }
        assert len(said) == 1


@pytest.mark.promise("policy.md", "an allow rule must match both")
def test_a_link_to_what_is_allowed_needs_both_to_be_allowed(ws: Workspace) -> None:
    rules = '[[rule]]\nallow = true\ntool = "write_file"\npath = ["src/**", "harmless"]\n'
    (Path(ws.root.path) / "src/out").symlink_to("../keys/a.key")
    (Path(ws.root.path) / "other").symlink_to("src/a.py")
    written = {
        path: call(box(ws, rules, "supervised"), "write_file", path=path, content="new").code
        for path in ("harmless", "src/out", "other")
    }
    assert written == {"harmless": None, "src/out": ErrorCode.NOBODY_TO_ASK, "other": ErrorCode.NOBODY_TO_ASK}
    assert (Path(ws.root.path) / "src/a.py").read_text() == "new"


@pytest.mark.promise("policy.md", "a link that has changed meanwhile is not followed")
@pytest.mark.promise("security.md", "What a rule about paths decided on is what a file tool opens.")
async def test_a_link_that_changes_after_the_decision_is_not_followed(ws: Workspace) -> None:
    root, it = Path(ws.root.path), box(ws)
    for name, more in (
        ("read_file", {}),
        ("write_file", {"content": "x"}),
        ("edit_file", {"old_string": "key", "new_string": "x"}),
    ):
        _relink(root / "harmless", "src/a.py")
        prepared = await it.prepare(ToolCall(name, {"path": "harmless", **more}))
        assert isinstance(prepared, Ready)
        _relink(root / "harmless", "keys/a.key")
        told = await it.execute(prepared)
        assert told.is_error and "when it was decided on" in told.text
    assert (root / "keys/a.key").read_text() == "the key"


@pytest.mark.promise("policy.md", "an approval holds for the real path")
async def test_a_yes_is_for_where_a_link_led_when_it_was_given(ws: Workspace) -> None:
    root = Path(ws.root.path)
    it = box(ws, "", "supervised")
    call_ = ToolCall("write_file", {"path": "harmless", "content": "x"})
    first = await it.prepare(call_)
    _relink(root / "harmless", "src/deep/b.py")
    assert isinstance(first, Pending)
    told = await it.execute(first, Answer(Verdict.YES))
    assert told.is_error and (root / "src/deep/b.py").read_text() == "plain deep"
    asked: list[Question] = []
    it = box(ws, "", "supervised", lambda question: asked.append(question) or Answer(Verdict.ALWAYS))
    for target in ("src/a.py", "src/a.py", "src/deep/b.py"):
        _relink(root / "harmless", target)
        assert not (await it.call(call_)).is_error
    assert len(asked) == 2


@pytest.mark.parametrize(
    ("name", "more"),
    [("write_file", {"content": "x"}), ("edit_file", {"old_string": "plain", "new_string": "x"})],
)
def test_a_person_is_shown_where_a_link_leads(ws: Workspace, name: str, more: dict[str, str]) -> None:
    asked: list[Question] = []
    it = box(ws, "", "supervised", lambda question: asked.append(question))
    call(it, name, path="harmless", **more)
    assert "harmless -> src/a.py" in asked[0].preview


def _relink(path: Path, target: str) -> None:
    path.unlink()
    path.symlink_to(target)


# -- searches leave out what rules withhold


@pytest.mark.promise("security.md", "Searches and listings leave out what rules withhold.")
@pytest.mark.parametrize(
    ("name", "given", "shown", "hidden"),
    [
        ("glob", {"pattern": "**/*"}, "src/a.py", ["keys", "a.key", "b.env", "link.txt", "twice"]),
        ("glob", {"pattern": "*.key"}, "No files", ["keys", "a.key"]),
        ("glob", {"pattern": "*", "path": "src"}, "src/deep/b.py", ["b.env"]),
        ("grep", {"pattern": "plain|the"}, "plain deep", ["the key", "a.key", "b.env", "link"]),
        ("grep", {"pattern": "key", "output": "count"}, "No matches", ["a.key", "b.env"]),
        ("grep", {"pattern": "key", "include": "*.key"}, "No matches", ["a.key: "]),
        ("list_dir", {"path": ".", "depth": 5}, "a.py", ["keys", "a.key", "b.env", "link.txt", "folder@"]),
        ("list_dir", {"path": "src/deep"}, "b.py", ["b.env"]),
    ],
)
def test_what_is_withheld_is_left_out_and_said(
    ws: Workspace, name: str, given: dict[str, Any], shown: str, hidden: list[str]
) -> None:
    for autonomy in ("read_only", "supervised"):
        told = call(box(ws, NO_READING, autonomy), name, **given)
        assert not told.is_error and shown in told.text and "left out: rules" in told.text
        asked_for = given.get("include") or given.get("pattern", "")
        assert [word for word in hidden if word in told.text.replace(asked_for, "")] == []


@pytest.mark.promise("policy.md", "They say how many files or folders they left out, and no names.")
def test_how_many_are_withheld_tells_of_no_name(ws: Workspace) -> None:
    it = box(ws, NO_READING)
    said = {
        call(it, "glob", pattern=pattern).text.partition("fit ")[2].partition(". ")[2]
        for pattern in ("a.key", "z.key", "b.e*", "nothing")
    }
    assert len(said) == 1
    for pattern in ("keys/a.*", "keys/z.*", "keys/deep/z.*"):
        assert "1 file or folder was left out" in call(it, "glob", pattern=pattern).text
    assert call(it, "glob", pattern="*", path="keys").code is ErrorCode.DENIED


def test_suggestions_name_nothing_that_is_withheld(ws: Workspace) -> None:
    told = call(box(ws, NO_READING), "read_file", path="src/deep/b.p")
    assert "b.py" in told.text and "b.env" not in told.text


def test_without_rules_a_link_in_a_search_is_followed(ws: Workspace) -> None:
    assert "link.txt" in call(box(ws, ""), "grep", pattern="the key").text


def test_a_link_into_what_is_withheld_does_not_lead_a_search_there(ws: Workspace) -> None:
    (Path(ws.root.path) / "src/deep/door").symlink_to("../../keys/a.key")
    told = call(box(ws, NO_READING), "grep", pattern="the", path="src/deep").text
    assert "the key" not in told and "2 files or folders were left out" in told


SPELLINGS = [
    "cat {root}/keys/a.key", "cat /{root}/keys/a.key", "cat ~/root/keys/a.key", "cat ~/root/src/../keys/a.key", "cat ~/root/k*/a.key",
    "cat < ~/root/keys/a.key", "echo x > ~/root/keys/new", "cd ~/root/keys && cat a.key", "(cd ~/root/keys; cat a.key)",
    "grep -r key ~/root", "tar cf - ~/root/keys", "env -C ~/root/keys cat a.key", "cat /proc/self/cwd/keys/a.key",
    "python3 -c 'print(1)' ~/root/keys/a.key",
]  # fmt: skip


@pytest.mark.parametrize("verb", ["ask", "deny"])
@pytest.mark.parametrize("command", SPELLINGS)
def test_a_path_of_the_workspace_is_known_by_its_other_names(
    ws: Workspace, monkeypatch: pytest.MonkeyPatch, command: str, verb: str
) -> None:
    monkeypatch.setenv("HOME", str(Path(ws.root.path).parent))
    rules = read_rules(f'[[rule]]\n{verb} = true\npath = "keys/**"\n').policy("full")
    given = {"command": command.format(root=ws.root.path)}
    for sandbox in (NoSandbox(), *([] if verb == "deny" else [ExternalSandbox("a container"), None])):
        made = Toolbox([Shell(ws, sandbox=sandbox)], policy=rules)
        result = made.call_sync("shell", given)
        assert result.code in (ErrorCode.NOBODY_TO_ASK, ErrorCode.DENIED) and "the key" not in result.text
    assert not (Path(ws.root.path) / "keys/new").exists()


def test_so_it_is_in_code(ws: Workspace) -> None:
    rules = read_rules('[[rule]]\nask = true\npath = "keys/**"\n').policy("full")
    made = Toolbox([Python(ws, sandbox=backend("bubblewrap")(Path(ws.root.path)))], policy=rules)
    for name, code in (("keys/a.key", ErrorCode.NOBODY_TO_ASK), ("src/a.py", None)):
        text = f"print(open({f'{ws.root.path}/{name}'!r}).read())"
        assert made.call_sync("python", {"code": text}).code is code


@pytest.mark.parametrize(
    "command", ["cat ~/root/src/a.py", "grep -r plain ~/root/src", "cat {root}/src/a.py"]
)
def test_what_a_rule_is_not_about_stays_as_it_was(
    ws: Workspace, monkeypatch: pytest.MonkeyPatch, command: str
) -> None:
    monkeypatch.setenv("HOME", str(Path(ws.root.path).parent))
    rules = read_rules('[[rule]]\nask = true\npath = "keys/**"\n').policy("full")
    made = Toolbox([Shell(ws, sandbox=backend("bubblewrap")(Path(ws.root.path)))], policy=rules)
    assert made.call_sync("shell", {"command": command.format(root=ws.root.path)}).code is None


@pytest.mark.promise("policy.md", "an ask rule does, if the search could reach what it matches")
def test_a_search_that_a_rule_wants_a_question_for_asks(ws: Workspace) -> None:
    rules = '[[rule]]\nask = true\npath = "keys/**"\n'
    for name, given in (("glob", {"pattern": "*"}), ("grep", {"pattern": "x"}), ("list_dir", {})):
        assert call(box(ws, rules), name, **given).code is ErrorCode.NOBODY_TO_ASK
        assert call(box(ws, rules), name, path="src", **given).code is None
    for pattern in ("[!K]eys/*", "k\\eys/*", "k[[:alpha:]]ys/*", "[z-a]eys/*", "keys/"):
        for name, given in (("glob", {"pattern": pattern}), ("grep", {"pattern": "x", "include": pattern})):
            assert call(box(ws, rules), name, **given).code is ErrorCode.NOBODY_TO_ASK
        assert call(box(ws, rules), "shell", command=f"cat {pattern}").code is ErrorCode.NOBODY_TO_ASK
    yes = box(ws, rules, answer=lambda _: Answer(Verdict.YES))
    assert "the key" in call(yes, "grep", pattern="the key").text


def test_exceptions_are_shown(ws: Workspace) -> None:
    rules = NO_READING.replace("reason", 'except = [{ path = "keys/public/**" }]\nreason')
    (Path(ws.root.path) / "keys/public").mkdir()
    (Path(ws.root.path) / "keys/public/known.pub").write_text("public")
    told = call(box(ws, rules), "list_dir", path="keys").text
    assert "public" in told and "a.key" not in told


def test_a_gitignore_that_may_not_be_read_is_not_read(ws: Workspace) -> None:
    (Path(ws.root.path) / ".gitignore").write_text("*.py\n")
    rules = '[[rule]]\ndeny = true\npath = ".gitignore"\n'
    assert "a.py" not in call(box(ws, ""), "glob", pattern="*.py").text.replace("*.py", "")
    assert "a.py" in call(box(ws, rules), "glob", pattern="*.py").text


def test_a_tool_that_does_not_leave_out_asks(ws: Workspace) -> None:
    def reaches(_: Any) -> list[Access]:
        return [Access(Reach.DELETE, ".", subtree=True)]

    @tool(effect=Effect.DESTRUCTIVE, secrets=(), accesses=reaches)
    def delete() -> str:
        """Delete everything."""
        return "gone"

    it = Toolbox([delete], policy=read_rules(KEYS).policy("full"))
    assert it.call_sync("delete", {}).code is ErrorCode.NOBODY_TO_ASK


def test_a_tool_of_ones_own_can_ask_what_it_may_read() -> None:
    @tool(
        effect=Effect.READ,
        secrets=(),
        accesses=lambda _: [Access(Reach.READ, ".", subtree=True, filtered=True)],
    )
    def names(ctx: Context[Any]) -> str:
        """Names."""
        known = ["src/a.py", "keys/a.key", "KEYS/b.key", "src/ke\u200bys"]
        return " ".join(name for name in known if ctx.permits(Access(Reach.READ, name)))

    told = Toolbox([names], policy=read_rules(KEYS).policy()).call_sync("names", {})
    assert told.text == "src/a.py src/ke\u200bys"
    assert "keys/a.key" in Toolbox([names]).call_sync("names", {}).text
    assert Context().permits(Access(Reach.WRITE, "anything"))


def test_what_was_not_decided_on_may_not_be_written() -> None:
    seen: dict[str, bool] = {}

    @tool(effect=Effect.WRITE, secrets=(), accesses=lambda given: [Access(Reach.WRITE, given["path"])])
    def save(path: str, ctx: Context[Any]) -> str:
        """Save."""
        for other in (path, path.upper(), f"{path}/below", "elsewhere"):
            seen[other] = ctx.permits(Access(Reach.WRITE, other))
        seen["read"] = ctx.permits(Access(Reach.READ, "elsewhere"))
        return ""

    for rules in ("", KEYS):
        Toolbox([save], policy=read_rules(rules).policy("full")).call_sync("save", {"path": "a"})
    assert seen == {"a": True, "A": True, "a/below": False, "elsewhere": False, "read": True}


# -- look-alikes and special files


@pytest.mark.promise(
    "policy.md",
    "Paths are compared without regard to case and to Unicode composition, and `..` is resolved first",
)
@pytest.mark.promise(
    "security.md", "case, letters composed otherwise and characters that nobody sees make no other name"
)
@pytest.mark.parametrize(
    ("pattern", "path", "same"),
    [
        ("caf\u00e9/**", "cafe\u0301/x", True),
        (".git/**", ".g\u200cit/x", True),
        (".git/**", ".GIT/x", True),
        (".git/**", "\ufeff.git/x", True),
        ("stra\u00dfe/**", "STRASSE/x", True),
        ("?.key", "\u00df.key", True),  # one character, which is two without case
        ("[\u00df]?/x", "\u00df\u0149/x", True),
        ("??.key", "a\u200c.key", True),
        ("?.key", "ss.key", False),
        ("strasse/?.key", "Stra\u00dfe/\u00df.key", True),  # each piece as it is one
        ("?/ss/?", "\u00df/\u00df/\u00df", True),
        ("strasse/??.key", "stra\u00dfe/s.key", False),
        (".git/**", "\uff0egit/x", False),  # another name on every file system
        (".git/**", ".git\u00a0/x", False),
    ],
)
def test_names_that_a_file_system_may_take_for_the_same(
    ws: Workspace, pattern: str, path: str, same: bool
) -> None:
    told = call(box(ws, f'[[rule]]\ndeny = true\npath = "{pattern}"\n'), "read_file", path=path)
    assert (told.code is ErrorCode.DENIED) is same


def test_what_is_allowed_is_so_in_every_form_of_a_name(ws: Workspace) -> None:
    """`\u00df` is one character, or two without case: neither pattern allows what the other one may mean."""
    rules = 'otherwise = "deny"\n[[rule]]\nallow = true\ntool = "read_file"\npath = "{}.key"\n'
    Path(ws.root.path, "\u00df.key").write_text("sharp")
    for pattern, runs in (("*", True), ("\u00df", True), ("?", False), ("??", False), ("ss", False)):
        told = call(box(ws, rules.format(pattern)), "read_file", path="\u00df.key")
        assert (told.code is None) is runs, pattern


@pytest.mark.parametrize("name", ["read_file", "edit_file", "write_file", "grep", "glob", "list_dir"])
@pytest.mark.parametrize(
    "kind", ["fifo", "socket", "/proc/self/root", "/proc/self/environ", "/dev/zero", "/proc/self/fd/0"]
)
def test_special_files_lead_nowhere(
    ws: Workspace, name: str, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = Path(ws.root.path)
    odd = root / "odd"
    if kind == "fifo":
        os.mkfifo(odd)
    elif kind == "socket":
        monkeypatch.chdir(root)
        server = socket.socket(socket.AF_UNIX)
        server.bind("odd")
        server.close()
    else:
        odd.symlink_to(kind)
    before = odd.lstat()
    given = {
        "write_file": {"content": "x"},
        "edit_file": {"old_string": "a", "new_string": "b"},
        "grep": {"pattern": "."},
        "glob": {"pattern": "*"},
    }.get(name, {})
    for rules in ("", KEYS):
        told = call(box(ws, rules), name, path="odd", **given)
        assert told.is_error or told.text.startswith("[No ")
        below = call(box(ws, rules), name, path="odd/etc/hostname", **given)
        assert below.is_error
    assert odd.lstat().st_ino == before.st_ino


# -- races: another process swaps a harmless link for one that leads to what is denied

SWAP = """
import os, sys
folder, name = sys.argv[1:]
os.chdir(folder)
print("ready", flush=True)
while os.getppid() > 1:
    for target in ("src", "keys"):
        os.symlink(target, name + ".new")
        os.replace(name + ".new", name)
"""
MOVE = """
import os, sys
folder, _ = sys.argv[1:]
os.chdir(folder)
print("ready", flush=True)
while os.getppid() > 1:
    os.rename("src", "away")
    os.symlink("keys", "src")
    try:
        os.unlink("src")
        os.rename("away", "src")
    except OSError:  # a write made the folder anew
        sys.exit()
"""


@pytest.fixture(params=[SWAP, MOVE], ids=["link swapped", "parent renamed"])
def racing(request: pytest.FixtureRequest, ws: Workspace) -> Iterator[Workspace]:
    root = Path(ws.root.path)
    (root / "keys/a.py").write_text("the key")
    (root / "src/deep/b.env").unlink()
    (root / "way").symlink_to("src")
    process = subprocess.Popen(
        [sys.executable, "-c", request.param, str(root), "way"], stdout=subprocess.PIPE
    )
    assert process.stdout is not None
    process.stdout.readline()
    try:
        yield ws
    finally:
        process.kill()
        process.wait()
        process.stdout.close()


RACES = 150


@pytest.mark.promise("security.md", "What a rule about paths decided on is what a file tool opens.")
def test_a_raced_link_never_leads_to_what_is_denied(racing: Workspace) -> None:
    it = box(racing, KEYS)
    given = [
        ("read_file", {"path": "way/a.py"}),
        ("read_file", {"path": "src/a.py"}),
        ("write_file", {"path": "way/a.py", "content": "plain"}),
        ("write_file", {"path": "src/a.py", "content": "plain"}),
        ("edit_file", {"path": "src/a.py", "old_string": "the key", "new_string": "plain"}),
        ("grep", {"path": "way", "pattern": "key"}),
        ("grep", {"path": ".", "pattern": "the key"}),
        ("glob", {"path": "src", "pattern": "a.key"}),
        ("list_dir", {"path": "src"}),
        ("list_dir", {"path": ".", "depth": 3}),
    ]
    for number in range(RACES):
        name, arguments = given[number % len(given)]
        told = it.call_sync(name, arguments).text
        assert "the key" not in told.replace("'the key'", "").replace("old_string", "")
        assert "a.key" not in told.replace("fit a.key", "")
    assert (Path(racing.root.path) / "keys/a.py").read_text() == "the key"
