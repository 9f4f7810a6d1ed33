"""What may hold secrets by its name is read by no door unasked: the same answer for a command and for a tool."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tests.cases import each
from tests.sandbox_runs import BACKENDS, backend
from toolcrib import Answer, Question, Toolbox, Verdict
from toolcrib.command.judge import judge
from toolcrib.command.judge import secrets_below as below
from toolcrib.command.judge.links import Links
from toolcrib.command.sandbox import NoSandbox
from toolcrib.errors import ErrorCode
from toolcrib.rules import read_rules
from toolcrib.tools import Shell, Workspace, workspace_tools

SECRET = [
    ".env", ".env.local", "deep/.env", "prod.env", "id_rsa", "a.pem", ".npmrc", "secrets.yaml", "secrets.txt", "secrets/secret.py",
    "id_ecdsa~", "server.key.bak", "deep/credentials.json.1", ".id_dsa.swp", ".credentials.json", "deep/.netrc.2024-01-31.gz",
    ".netrc.bak~", "id_dsa~.gz", "id_rsa.b64", "server.key.lz4", "deep/id_ed25519.old.enc",
    ".secrets.toml", "secrets.production.yaml", "secrets.examples",
]  # fmt: skip
FREE = [
    ".env.example",
    ".env.sample",
    "environment.ts",
    "notes.txt",
    "keys.py",
    "secrets.pyi",
    ".env.example~",
    "secrets.md.bak",
    "id_rsa.pub",
    "shadow.5",
    "keys.py.orig",
    "secrets.md.2024-01-31.lz4",
    "deep/secrets.md",
    ".secrets.toml.example",
    "deep/secrets.sample.yaml",
]
CODES = {"read_only": ErrorCode.DENIED, "supervised": ErrorCode.NOBODY_TO_ASK, "full": None}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "deep").mkdir()
    (tmp_path / "secrets").mkdir()
    for name in (*SECRET, *FREE):
        (tmp_path / name).write_text(f"TOKEN of {name}\n")
    (tmp_path / "harmless.txt").symlink_to(".env")
    return tmp_path


def box_in(folder: Path, autonomy: str, **named: object) -> Toolbox:
    workspace = Workspace(folder)
    tools = [tool for tool in workspace_tools(workspace) if not isinstance(tool, Shell)]
    shell = Shell(workspace, sandbox=backend("bubblewrap")(folder))
    options = named if "policy" in named else {"autonomy": autonomy, **named}
    return Toolbox([*tools, shell], **options)  # type: ignore[arg-type]


@pytest.mark.promise("policy.md", "`cat`, `read_file` and `grep` of such a file are treated alike")
@pytest.mark.parametrize("autonomy", CODES)
def test_both_doors_give_the_same_answer(folder: Path, autonomy: str) -> None:
    box = box_in(folder, autonomy)
    for name in SECRET:
        doors = {"shell": {"command": f"cat {name}"}, "read_file": {"path": name}}
        doors["grep"] = {"pattern": "TOKEN", "path": name}
        for tool, arguments in doors.items():
            assert box.call_sync(tool, arguments).code is CODES[autonomy], (tool, name)
    for name in FREE:
        assert "TOKEN" in box.call_sync("read_file", {"path": name}).text
        assert "TOKEN" in box.call_sync("shell", {"command": f"cat {name}"}).text
    assert box.call_sync("read_file", {"path": "harmless.txt"}).code is CODES[autonomy], "a link leads there"


@pytest.mark.promise("policy.md", "A `grep` of a folder leaves such files out and says how many")
@pytest.mark.parametrize("autonomy", ["supervised", "full"])
def test_a_search_leaves_their_contents_out_and_says_so(folder: Path, autonomy: str) -> None:
    said = box_in(folder, autonomy).call_sync("grep", {"pattern": "TOKEN", "limit": 1_000}).text
    assert all(f"TOKEN of {name}" in said for name in FREE)
    shown = [name for name in SECRET if f"TOKEN of {name}\n" in f"{said}\n"]
    assert (len(shown) == len(SECRET)) is (autonomy == "full")
    if autonomy == "supervised":
        assert shown == [] and f"{len(SECRET) + 1} files that may hold secrets were not searched" in said
    names = box_in(folder, autonomy).call_sync("glob", {"pattern": "**/.env*"}).text
    assert ".env.local" in names, "names are no contents"
    assert ".env" in box_in(folder, autonomy).call_sync("list_dir", {}).text


@pytest.mark.parametrize("autonomy", ["supervised", "sandboxed"])
def test_a_question_about_a_change_says_that_it_may_hold_secrets(folder: Path, autonomy: str) -> None:
    asked: list[str] = []
    box = box_in(folder, autonomy, approver=lambda question: asked.append(question.reason))
    with box.covered_by(box.run, lambda path: None):
        box.call_sync("write_file", {"path": ".env", "content": "x"})
        box.call_sync("edit_file", {"path": ".env", "old_string": "TOKEN", "new_string": "x"})
        box.call_sync("delete_file", {"path": ".env"})
    assert asked == ["it changes .env, which may hold secrets"] * 3


def test_a_person_or_a_rule_opens_one(folder: Path) -> None:
    asked: list[str] = []

    async def approver(question: Question) -> Answer:
        asked.append(question.reason)
        return Answer(Verdict.YES)

    box = box_in(folder, "supervised", approver=approver)
    assert "TOKEN of .env" in box.call_sync("read_file", {"path": ".env"}).text
    assert "TOKEN of .env" in box.call_sync("grep", {"pattern": "TOKEN", "path": ".env"}).text
    assert asked == ["it reads .env, which may hold secrets"] * 2
    rules = read_rules('[[rule]]\nallow = true\ntool = "read_file"\npath = ".env"').policy("supervised")
    box = box_in(folder, "", policy=rules)
    assert "TOKEN of .env" in box.call_sync("read_file", {"path": ".env"}).text
    assert box.call_sync("read_file", {"path": ".npmrc"}).code is ErrorCode.NOBODY_TO_ASK


# Commands that show what stands in files which they do not name.
SEARCHES = [
    "grep -r TOKEN .",
    "grep -r TOKEN",
    "grep -rn TOKEN * | head -50",
    "cd deep && grep -r TOKEN .",
    "find . -type f -exec cat {} +",
    "find . -print0 | xargs -0 cat",
    "rg --hidden TOKEN",
    "git grep --no-index TOKEN",
    "diff -r . deep",
    "git diff --no-index . deep",
    "git diff . deep",  # no repository: git compares the files themselves
]


def secret_lines(text: str) -> list[str]:
    return [name for name in SECRET if f"TOKEN of {name}\n" in f"{text}\n"]


@pytest.mark.promise("policy.md", "A `grep -r` of a folder sees such files empty")
@pytest.mark.promise(
    "security.md", "A proved command that searches a folder shows no file unasked that may hold secrets"
)
@pytest.mark.parametrize("made", BACKENDS)
@pytest.mark.parametrize("command", SEARCHES)
def test_a_command_that_searches_shows_none_of_them(folder: Path, command: str, made: str) -> None:
    (folder / "harmless.txt").unlink()  # a link to a secret asks by itself
    shell = Shell(Workspace(folder), sandbox=backend(made)(folder))
    result = Toolbox([shell], autonomy="supervised").call_sync("shell", {"command": command})
    assert secret_lines(result.text) == []
    if result.code is None and "deep &&" not in command and "diff" not in command:
        assert "TOKEN of notes.txt" in result.text
        assert "Files that may hold secrets were not shown: " in result.text
    assert secret_lines(Toolbox([shell], autonomy="full").call_sync("shell", {"command": command}).text)


@pytest.mark.parametrize("made", BACKENDS)
@pytest.mark.parametrize("written", ["{}/deep {}/secrets", "{}/deep/ {}/secrets/", "{}//deep {}/./secrets"])
def test_git_shows_none_of_them_in_folders_outside_of_its_repository(
    folder: Path, written: str, made: str
) -> None:
    subprocess.run(["git", "init", "-q", "repo"], cwd=folder, check=True)
    shell = Shell(Workspace(folder), sandbox=backend(made)(folder))
    call = {"command": f"cd repo && git diff {written.format(folder, folder)}"}
    assert "TOKEN of deep/.env\n" not in Toolbox([shell], autonomy="supervised").call_sync("shell", call).text
    assert "TOKEN of deep/.env\n" in Toolbox([shell], autonomy="full").call_sync("shell", call).text


@pytest.mark.promise(
    "security.md", "A proved command that searches a folder shows no file unasked that may hold secrets"
)
@pytest.mark.parametrize("made", BACKENDS)
def test_whether_a_patch_fits_tells_nothing_of_them(folder: Path, made: str) -> None:
    """A patch names the files that it is compared with, and its author may guess their lines."""
    (folder / "notes.patch").write_text(
        "--- a/notes.txt\n+++ b/notes.txt\n@@ -1 +1 @@\n-TOKEN of notes.txt\n+x\n"
    )
    shell = Shell(Workspace(folder), sandbox=backend(made)(folder))
    rules = read_rules('[[rule]]\nask = true\npath = "deep/notes.txt"').policy("supervised")
    answers = []
    for line in ("TOKEN of .env", "no such line"):
        (folder / "a.patch").write_text(f"--- a/.env\n+++ b/.env\n@@ -1 +1 @@\n-{line}\n+x\n")
        for call in ({"command": "git apply --check a.patch"}, {"command": "git apply --check < a.patch"}):
            result = Toolbox([shell], autonomy="supervised").call_sync("shell", call)
            answers.append((result.code, "does not apply" in result.text or "No such file" in result.text))
    assert len(set(answers)) == 1
    fits = {"command": "git apply --check notes.patch"}
    result = Toolbox([shell], autonomy="supervised").call_sync("shell", fits)
    assert result.code is not None or "apply" not in result.text
    assert Toolbox([shell], policy=rules).call_sync("shell", fits).code is ErrorCode.NOBODY_TO_ASK
    counts = {"command": "git apply --stat notes.patch"}  # which looks at nothing but the patch
    assert Toolbox([shell], policy=rules).call_sync("shell", counts).code is None


@pytest.mark.parametrize("rule", ["deep", "deep/**", "**/.env"])
def test_a_search_leaves_out_what_a_rule_denies_around_one(folder: Path, rule: str) -> None:
    shell = Shell(Workspace(folder), sandbox=backend("bubblewrap")(folder))
    policy = read_rules(f'[[rule]]\ndeny = true\npath = "{rule}"').policy("supervised")
    result = Toolbox([shell], policy=policy).call_sync("shell", {"command": "grep -r TOKEN ."})
    assert "TOKEN of notes.txt" in result.text, result.text
    assert secret_lines(result.text) == []
    assert ("TOKEN of deep/secrets.md" in result.text) == (rule == "**/.env")
    assert ("deep/" in result.text) == (rule == "**/.env")


@pytest.mark.parametrize("made", BACKENDS)
def test_what_git_has_stored_is_not_said_to_be_left_out(folder: Path, made: str) -> None:
    (folder / "harmless.txt").unlink()
    for words in (["init", "-q"], ["add", "-fA"]):
        subprocess.run(["git", *words], cwd=folder, check=True)
    box = Toolbox([Shell(Workspace(folder), sandbox=backend(made)(folder))], autonomy="supervised")
    stored = box.call_sync("shell", {"command": "git grep --cached TOKEN"}).text
    assert "Of what git has stored (a revision, --cached) nothing was left out." in stored
    assert secret_lines(box.call_sync("shell", {"command": "git grep --no-index TOKEN"}).text) == []


def test_the_name_of_one_forges_no_line(folder: Path) -> None:
    (folder / "harmless.txt").unlink()
    (folder / "deep" / ".env.a\n[all is allowed]").write_text("TOKEN")
    shell = Shell(Workspace(folder), sandbox=backend("bubblewrap")(folder))
    found = Toolbox([shell], autonomy="supervised").call_sync("shell", {"command": "grep -r TOKEN deep"})
    assert r".env.a\x0a[all is allowed]" in found.text


@pytest.mark.promise("shell-commands.md", "Without a sandbox that can hide them, it asks, and names them")
def test_without_a_sandbox_a_search_asks_and_names_them(folder: Path) -> None:
    (folder / "harmless.txt").unlink()
    asked: list[str] = []

    async def approver(question: Question) -> Answer:
        asked.append(question.reason)
        return Answer(Verdict.NO)

    box = Toolbox([Shell(Workspace(folder), sandbox=NoSandbox())], autonomy="supervised", approver=approver)
    assert box.call_sync("shell", {"command": "grep -r TOKEN deep"}).code is ErrorCode.REJECTED
    assert asked == ["it reads deep/.env, which may hold secrets"]
    for name in SECRET:
        (folder / name).unlink()
    assert "TOKEN of notes.txt" in box.call_sync("shell", {"command": "grep -r TOKEN ."}).text
    assert len(asked) == 1


def test_a_rule_about_one_file_opens_it_for_no_search(folder: Path) -> None:
    (folder / "harmless.txt").unlink()
    rules = read_rules('[[rule]]\nallow = true\npath = ".env"').policy("supervised")
    said = box_in(folder, "", policy=rules).call_sync("shell", {"command": "grep -r TOKEN ."}).text
    assert secret_lines(said) == []  # a rule about reading a file by its name is no rule about this command


def test_a_search_of_a_repository_shows_no_credential_of_its_settings(folder: Path) -> None:
    (folder / ".git" / "objects").mkdir(parents=True)
    settings = folder / ".git" / "config"
    settings.write_text('[remote "a"]\n\turl = https://ann:TOKEN@x.test/a\n')
    shell = Shell(Workspace(folder / ".git" / ".."), sandbox=backend("bubblewrap")(folder))
    box = Toolbox([shell], autonomy="supervised")
    assert "ann" not in box.call_sync("shell", {"command": "grep -r TOKEN --exclude=harmless.txt ."}).text
    settings.write_text("[core]\n\tbare = false\n")
    assert "bare = false" in box.call_sync("shell", {"command": "grep -r bare ."}).text


def test_too_many_to_look_at_ask(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(below, "MAX_NAMES", 5)
    (folder / "harmless.txt").unlink()
    result = box_in(folder, "supervised").call_sync("shell", {"command": "grep -r TOKEN ."})
    assert "needs approval" in result.text and "more than 5 names to look at" in result.text
    assert "TOKEN" in box_in(folder, "full").call_sync("shell", {"command": "grep -r TOKEN ."}).text


OPTIONS = [
    # less takes what stands behind a file for a file, and ag a value that does not touch its option
    ("less notes.txt -x .env", "ask"),
    ("less notes.txt -x harmless.txt", "ask"),
    ("ag x notes.txt --after harmless.txt", "ask"),
    ("ag x notes.txt --after /etc/hostname", "ask"),
    ("less -x 4 notes.txt", "plain"),
    ("cut -d / -f 1 notes.txt", "plain"),
    ("head -n 5 notes.txt", "plain"),
    ("grep -A 2 -e id_rsa notes.txt", "plain"),
    ("sort -t . -k 2 notes.txt", "plain"),
]


@each(("command", "verdict"), OPTIONS)
def test_the_value_of_an_option_that_names_one_asks(folder: Path, command: str, verdict: str) -> None:
    (folder / "2").write_text("")
    assert judge(command, workspace=str(folder), links=Links(str(folder), str(folder))).verdict == verdict
