"""Deny rules about paths hold for what commands do: the sandbox hides what no parser can see coming."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.properties import examples
from tests.sandbox_runs import BACKENDS, backend
from toolcrib import Answer, Effect, Question, Toolbox, ToolCall, Verdict, tool
from toolcrib.access import Access, DeniedPaths, Reach
from toolcrib.command.sandbox import ExternalSandbox, Level, NoSandbox, Sandbox
from toolcrib.command.sandbox.files.file_view import file_view_of
from toolcrib.command.sandbox.seatbelt import profile
from toolcrib.context import Context
from toolcrib.facts import Facts
from toolcrib.rules import PathPattern, Rule, read_rules
from toolcrib.rules.denied_paths import MAX_DENIED
from toolcrib.toolbox.policy import PolicyRequest, Verb
from toolcrib.tools import Shell, Workspace

SECRET = "hunter2"
FILES = (
    "secrets/key",
    "secrets/deep/key",
    "conf/prod.key",
    "conf/pub.key",
    ".env",
    "app/sub/.env",
    "notes.txt",
)


def deny(paths: str | Sequence[str], more: str = "") -> str:
    listed = ", ".join(f'"{path}"' for path in ([paths] if isinstance(paths, str) else paths))
    return f"[[rule]]\ndeny = true\npath = [{listed}]\n{more}\n"


SECRETS = deny(["secrets", "conf/prod.key", "**/.env"])


@pytest.fixture
def root(tmp_path: Path) -> Path:
    folder = tmp_path / "ws"
    for name in FILES:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(f"{SECRET} of {name}\n")
    (folder / "link").symlink_to("secrets/key")
    (folder / "folder").symlink_to("secrets")
    return folder


def box_of(root: Path, rules: str, sandbox: Sandbox, autonomy: str = "full", **more: Any) -> Toolbox:
    shell = Shell(Workspace(root), sandbox=sandbox, grace=0.3)
    return Toolbox([shell, *more.pop("tools", ())], policy=read_rules(rules).policy(autonomy), **more)


def sh(box: Toolbox, command: str) -> str:
    return box.call_sync("shell", {"command": command}).text


def python(code: str) -> str:
    return f'python3 -c "{code}"'


def tree(root: Path) -> dict[str, str]:
    found = {}
    for path in sorted(root.rglob("*")):
        name = str(path.relative_to(root))
        found[name] = (
            str(path.readlink()) if path.is_symlink() else path.read_text() if path.is_file() else "/"
        )
    return found


# Nothing in their words says which file is read. Each prints the secret where no rule denies it.
READS = {
    "a program": python("print(open('sec' + 'rets/key').read())"),
    "by its full name": python("import os; print(open(os.getcwd() + '/sec' + 'rets/key').read())"),
    "through the root of a process": python(
        "import os; print(open('/proc/self/root' + os.getcwd() + '/sec' + 'rets/key').read())"
    ),
    "below it": python("print(open('sec' + 'rets/deep/key').read())"),
    "one file": python("print(open('conf/prod.' + 'key').read())"),
    "by a pattern of names": python("print(open('app/sub/.' + 'env').read())"),
    "a link": python("print(open('li' + 'nk').read())"),
    "a link to a folder": python("print(open('fol' + 'der/key').read())"),
    "a link made for it": "ln -s sec*ets t && cat t/k*",
    "a shell's own": "x=secr; read -r y < ${x}ets/key; echo $y",
    "from the folder": "cd sec*; cat k*",
    "an archive": python("import tarfile,sys; t=tarfile.open('o.tar','w'); t.add('.'); t.close()") + "; cat o.tar",
    "tar": "tar cf - . | cat",
    "a copy": "cp -r . \"$TMPDIR/c\"; cat \"$TMPDIR\"/c/s*/* \"$TMPDIR\"/c/conf/*",
    "find": "find . -type f -exec cat {} +",
    "another name": "ln conf/prod.k* other; cat other",
    "moved away": "mv conf other; mv other/prod.k* x; cat x",
    "its folder moved": python("import os; os.rename('conf','o'); print(open('o/prod.' + 'key').read())"),
    "git": "git init -q g --bare; git --git-dir=g hash-object -w conf/prod.k* | git --git-dir=g cat-file --batch",
}  # fmt: skip
HIDDEN = ("secrets", "conf/prod.key", ".env", "app/sub/.env")


@pytest.mark.promise("sandbox.md", "It also enforces rules that deny paths.")
@pytest.mark.promise(
    "policy.md",
    "they are hidden if they may not be read, and read-only if they may not be written or deleted",
)
@pytest.mark.promise("security.md", "A command does not reach what a deny rule about paths means")
@pytest.mark.parametrize("way", READS)
def test_no_command_reads_what_is_denied(way: str, root: Path) -> None:
    made = backend("bubblewrap")
    before = {name: text for name, text in tree(root).items() if any(name.startswith(one) for one in HIDDEN)}
    said = sh(box_of(root, SECRETS, made(root)), READS[way])
    leaked = [
        line for line in said.splitlines() if SECRET in line and "notes.txt" not in line and "pub" not in line
    ]
    assert leaked == [], said
    after = tree(root)
    assert {name: after.get(name) for name in before} == before
    assert SECRET in sh(box_of(root, "", made(root)), READS[way])  # or it would prove nothing


KEPT = deny(["conf", "app/sub/.env", "deploy/prod.yml", "new.txt"], 'reach = ["write", "delete"]')
CHANGES = {
    "write": python("open('conf/prod.' + 'key','w').write('x')"),
    "append": "echo x >> con*/prod.key",
    "remove": python("import os; os.unlink('conf/prod.' + 'key')"),
    "rename over": python("import os; open('t','w'); os.replace('t','conf/prod.' + 'key')"),
    "rename": python("import os; os.rename('conf/prod.' + 'key', 't')"),
    "rename the folder": python("import os; os.rename('co' + 'nf', 't')"),
    "rename a folder above": python("import os; os.rename('ap' + 'p', 't')"),
    "remove all": python("import shutil; shutil.rmtree('co' + 'nf')"),
    "make a new one": python("open('conf/new','w')"),
    "modes": python("import os; os.chmod('conf/prod.' + 'key', 0o777); open('conf/prod.' + 'key','w')"),
    "in the place of the folder": "mv con* t; mkdir conf; echo x > conf/prod.key",
    "cut": "truncate -s 0 con*/prod.key",
    "what is not there yet": python("import os; os.mkdir('dep' + 'loy'); open('deploy/prod.yml','w')"),
    "a file that is not there yet": python("open('ne' + 'w.txt','w')"),
}


@pytest.mark.promise("policy.md", "What may not be read cannot be changed by a command either.")
@pytest.mark.promise(
    "policy.md",
    "they are hidden if they may not be read, and read-only if they may not be written or deleted",
)
@pytest.mark.promise("security.md", "A command does not reach what a deny rule about paths means")
@pytest.mark.parametrize("way", CHANGES)
def test_no_command_changes_what_is_denied(way: str, root: Path) -> None:
    made = backend("bubblewrap")
    before = tree(root)
    box = box_of(root, KEPT, made(root))
    sh(box, CHANGES[way])
    after = {name: text for name, text in tree(root).items() if name != "t" and not name.startswith("deploy")}
    assert after == before and not (root / "deploy/prod.yml").is_file()
    assert SECRET in sh(box, python("print(open('conf/prod.' + 'key').read())"))  # it may be read
    sh(box_of(root, "", made(root)), CHANGES[way])
    assert tree(root) != before  # or it would prove nothing


def test_the_rest_of_the_workspace_is_worked_on_as_before(root: Path) -> None:
    box = box_of(root, SECRETS, backend("bubblewrap")(root))
    said = sh(
        box,
        python("open('conf/new','w').write('1'); open('app/x','w'); import os; os.rename('app/x','app/y')"),
    )
    assert said == "(no output)"
    assert (root / "conf/new").read_text() == "1" and (root / "app/y").exists()
    assert not [path for path in root.rglob("*") if path.name == "prod.yml"]


def test_folders_that_were_opened_are_held_to_rules_too(root: Path, tmp_path: Path) -> None:
    out, given = tmp_path / "out", tmp_path / "given"
    for path in (out / "kept/a", out / "free", given / "p/.env", given / "plain"):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"{SECRET} of {path.name}")
    sandbox = backend("bubblewrap")(root, Level(writable=(str(out),)), readable=[given])
    box = box_of(root, deny(str(out / "kept/**"), 'reach = "write"') + deny("**/.env"), sandbox)
    said = sh(box, f"cat {given}/p* {given}/p/.e* {out}/kept/*; echo new > {out}/free")
    assert "of plain" in said and "of a" in said and "of .env" not in said
    sh(box, f"mv {out}/ke* {out}/x; echo new > {out}/k*/a; rm -r {out}/x")
    assert (out / "kept/a").read_text() == f"{SECRET} of a" and (out / "free").read_text() == "new\n"


@pytest.mark.promise(
    "sandbox.md",
    'A refusal says "hidden from commands by a rule", whether the path exists or not, and '
    "nobody is asked to allow it",
)
def test_what_is_hidden_is_told_and_never_offered(root: Path) -> None:
    asked: list[Question] = []

    async def yes(question: Question) -> Answer:
        asked.append(question)
        return Answer(Verdict.YES)

    box = box_of(root, SECRETS + KEPT, backend("bubblewrap")(root), approver=yes)
    for command, words in (
        (READS["a program"], "secrets/key is hidden from commands by a rule."),
        (python("open('secrets/nothing')"), "secrets/nothing is hidden from commands by a rule."),
        (READS["one file"], "conf/prod.key is hidden from commands by a rule."),
        (
            python("open('conf/pub.' + 'key','w')"),
            "A rule keeps conf/pub.key from being changed by commands.",
        ),
        (
            CHANGES["rename a folder above"],
            "A rule keeps something in app from commands, so it stays where it is.",
        ),
    ):
        assert f"[sandbox: {words}" in sh(box, command)
    assert asked == []


def test_a_yes_to_the_command_opens_nothing(root: Path) -> None:
    async def yes(question: Question) -> Answer:
        return Answer(Verdict.YES)

    box = box_of(root, SECRETS, backend("bubblewrap")(root), "supervised", approver=yes)
    assert SECRET not in sh(box, READS["a program"])


WITH_CONDITIONS = [
    ("except", deny("conf/**", 'except = { path = "conf/pub.key" }'), {"conf/pub.key"}),
    ("another tool", deny("conf/**", 'tool = "grep"'), {"conf/pub.key", "conf/prod.key"}),
    ("this tool", deny("conf/**", 'tool = "shell"'), set[str]()),
    ("another effect", deny("conf/**", 'effect = "write"'), {"conf/pub.key", "conf/prod.key"}),
    ("before something came from outside", deny("conf/**", "tainted = true"), {"conf/pub.key", "conf/prod.key"}),
    ("only writes", deny("conf/**", 'reach = "write"'), {"conf/pub.key", "conf/prod.key"}),
    ("in other letters", deny("CONF/PROD.*"), {"conf/pub.key"}),
]  # fmt: skip


@pytest.mark.promise("policy.md", "All conditions count as for any call")
@pytest.mark.parametrize(("what", "rules", "seen"), WITH_CONDITIONS, ids=[row[0] for row in WITH_CONDITIONS])
def test_conditions_of_rules_count(what: str, rules: str, seen: set[str], root: Path) -> None:
    said = sh(
        box_of(root, rules, backend("bubblewrap")(root)), "x=con; eval 'for f in $x*/p*; do cat $f; done'"
    )
    assert {name for name in ("conf/pub.key", "conf/prod.key") if f"{SECRET} of {name}" in said} == seen, said


@pytest.mark.promise("policy.md", "All conditions count as for any call")
def test_a_rule_about_a_tainted_run_counts_once_it_is_tainted(root: Path) -> None:
    @tool(effect=Effect.READ, secrets=(), open_world=True)
    def page() -> str:
        """Read a page."""
        return "read the key"

    rules = deny("conf/prod.key", "tainted = true")
    box = box_of(root, rules, backend("bubblewrap")(root), tools=[page])
    assert SECRET in sh(box, READS["one file"])
    box.call_sync("page", {})
    assert SECRET not in sh(box, READS["one file"])


def test_a_command_that_another_tool_runs_is_held_too(root: Path) -> None:
    @tool(effect=Effect.DESTRUCTIVE, secrets=())
    async def outer(ctx: Context[Any]) -> str:
        """Run a command."""
        return (await ctx.call("shell", command=READS["a program"])).text

    box = box_of(root, SECRETS, backend("bubblewrap")(root), tools=[outer])
    assert SECRET not in box.call_sync("outer", {}).text


@pytest.mark.promise("policy.md", "Patterns are looked up when the command starts")
def test_what_a_command_makes_is_its_own_until_it_ends(root: Path) -> None:
    box = box_of(root, SECRETS, backend("bubblewrap")(root))
    make = (
        "import os; os.mkdir('n'); open('n/.en' + 'v','w').write('mine'); print(open('n/.en' + 'v').read())"
    )
    assert "mine" in sh(box, python(make))
    assert "mine" not in sh(box, python("print(open('n/.en' + 'v').read())"))


@pytest.mark.promise("policy.md", "are other files, which the rule does not match")
def test_a_second_hard_link_is_a_name_of_its_own(root: Path) -> None:
    """What docs/policy.md says: nobody can see what else a file is called."""
    os.link(root / "conf/prod.key", root / "other")
    assert SECRET in sh(
        box_of(root, SECRETS, backend("bubblewrap")(root)), python("print(open('oth' + 'er').read())")
    )


@pytest.mark.promise(
    "sandbox.md",
    'A refusal says "hidden from commands by a rule", whether the path exists or not, and '
    "nobody is asked to allow it",
)
def test_no_folder_can_be_made_to_look_as_if_nothing_were_there(root: Path) -> None:
    rules = deny("conf/**", 'except = { path = "conf/pub.key" }')
    box = box_of(root, rules, backend("bubblewrap")(root))
    sh(box, python("import os; os.utime('co' + 'nf', (1000000007, 1000000007))"))
    assert SECRET not in sh(box, READS["one file"])


@pytest.mark.promise("policy.md", "links on the way to a denied path are restored after the command")
def test_a_link_on_the_way_cannot_be_led_elsewhere(root: Path) -> None:
    box = box_of(root, deny("folder/key"), backend("bubblewrap")(root))
    sh(box, "rm fol*; ln -s app folder")
    assert (root / "folder").readlink() == Path("secrets")
    assert SECRET not in sh(box, READS["a program"])


@pytest.mark.promise("policy.md", "A folder that cannot be listed is hidden as a whole.")
def test_a_folder_that_was_closed_before_is_hidden(root: Path) -> None:
    box = box_of(root, deny("app/**/.env"), backend("bubblewrap")(root))
    sh(box, "chmod 0 app/sub")
    said = sh(box, "chmod 700 ap*/sub; cat app/s*/.e*")
    os.chmod(root / "app/sub", 0o700)  # noqa: PTH101 - as it was
    assert SECRET not in said


# Questions.

PLAIN = ["grep -r hunter2 .", "ls -R", "find . -name x", "wc -l notes.txt"]


@pytest.mark.parametrize("name", BACKENDS)
@pytest.mark.parametrize("command", PLAIN)
def test_what_is_proved_to_read_runs_unasked_without_what_is_denied(
    name: str, command: str, root: Path
) -> None:
    result = box_of(root, SECRETS, backend(name)(root), "supervised").call_sync("shell", {"command": command})
    assert result.code is None
    assert not [name for name in FILES if name.startswith(HIDDEN) and f"{SECRET} of {name}" in result.text]


async def kind(box: Toolbox, command: str) -> str:
    return (await box.prepare(ToolCall("shell", {"command": command}))).kind


@pytest.mark.promise("policy.md", "Then no question is needed about files that a command does not name")
@pytest.mark.parametrize(
    ("sandbox", "autonomy", "command", "expected"),
    [
        ("bubblewrap", "supervised", "pytest", "ready"),
        ("bubblewrap", "supervised", "cargo test", "ready"),
        ("bubblewrap", "supervised", "python3 x.py", "pending"),
        ("bubblewrap", "full", "python3 x.py", "ready"),
        ("bubblewrap", "full", "cat $X", "ready"),
        ("bubblewrap", "full", "/usr/bin/python3 x.py", "ready"),
        ("bubblewrap", "full", 'python3 -c "print(1 / 2)"', "ready"),
        ("bubblewrap", "full", "mytool /nothing/of/that/name", "ready"),
        ("bubblewrap", "full", "mytool /etc", "pending"),
        ("bubblewrap", "full", "mytool /proc/1/cwd/x", "pending"),
        ("bubblewrap", "full", "cat secrets/key", "refused"),
        ("bubblewrap", "full", "cat link", "refused"),
        ("landlock", "supervised", "pytest", "pending"),
        ("landlock", "full", "python3 x.py", "pending"),
        ("landlock", "full", "cat secrets/key", "refused"),
        ("none", "full", "python3 x.py", "pending"),
        ("none", "full", "wc notes.txt", "ready"),
        ("external", "full", "python3 x.py", "pending"),
    ],
)
async def test_what_the_sandbox_holds_needs_no_question(
    sandbox: str, autonomy: str, command: str, expected: str, root: Path
) -> None:
    others = {"none": NoSandbox, "external": lambda: ExternalSandbox("a container")}
    made = others[sandbox]() if sandbox in others else backend(sandbox)(root)
    assert await kind(box_of(root, SECRETS, made, autonomy), command) == expected
    if expected == "pending" and autonomy == "full":
        assert await kind(box_of(root, "", made, autonomy), command) == "ready"


async def test_what_was_decided_for_one_sandbox_is_not_run_without_it(root: Path) -> None:
    workspace = Workspace(root)
    shell = Shell(workspace, sandbox=backend("bubblewrap")(root))
    box = Toolbox([shell], policy=read_rules(SECRETS).policy("full"))
    prepared = await box.prepare(ToolCall("shell", {"command": READS["a program"]}))
    workspace.level = Level.of("danger_no_sandbox", "on")
    assert SECRET not in (await box.execute(prepared)).text


NAMED_WHEN_IT_RUNS = [
    "x=$(git rev-parse HEAD); git show $x:secrets/key",
    "git cat-file -p $(git rev-parse HEAD):secrets/key",
    'git ls-files | while read -r f; do git show "HEAD:$f"; done',
    'cd app; x=$(git rev-parse HEAD); git show "$x:secrets/key"',
    "git ls-files secrets/deep | xargs -I{} git show HEAD:{}",
]


@pytest.mark.promise(
    "shell-commands.md", "Rules about paths hold for such names too, also for what git has stored under them"
)
@pytest.mark.parametrize("made", BACKENDS)
def test_what_a_command_names_only_when_it_runs_is_decided_on_then(root: Path, made: str) -> None:
    (root / "link").unlink()
    (root / "folder").unlink()
    for words in (
        ["init", "-q"],
        ["add", "-fA"],
        ["-c", "user.name=a", "-c", "user.email=a@b", "commit", "-qm", "x"],
    ):
        subprocess.run(["git", *words], cwd=root, check=True)
    free = box_of(root, "", backend(made)(root), "supervised")
    held = box_of(root, deny("secrets/**"), backend(made)(root), "supervised")
    for command in NAMED_WHEN_IT_RUNS:
        assert f"{SECRET} of secrets/" in sh(free, command), command
        assert f"{SECRET} of secrets/" not in sh(held, command), command
    assert f"{SECRET} of notes.txt" in sh(held, "x=$(git rev-parse HEAD); git show $x:notes.txt")


@pytest.mark.promise(
    "policy.md",
    "With more, a person is asked, with `full` too, and without a person the command is refused.",
)
def test_too_many_places_are_asked_about_or_refused(root: Path) -> None:
    for number in range(MAX_DENIED + 1):
        (root / f"{number}.pem").write_text(SECRET)
    rules, sandbox = deny("*.pem"), backend("bubblewrap")(root)
    said = sh(box_of(root, rules, sandbox), python("print(open('1.pe' + 'm').read())"))
    assert SECRET not in said and f"rules deny more than {MAX_DENIED} places" in said
    asked: list[str] = []

    async def no(question: Question) -> Answer:
        asked.append(question.action)
        return Answer(Verdict.NO)

    assert SECRET not in sh(
        box_of(root, rules, sandbox, approver=no), python("print(open('1.pe' + 'm').read())")
    )
    assert len(asked) == 1 and "hidden" in asked[0]


def test_a_workspace_that_may_not_be_read_runs_nothing(root: Path) -> None:
    said = sh(box_of(root, deny("**", 'tool = "shell"'), backend("bubblewrap")(root)), "id")
    assert "do not let this call read the workspace" in said


# Places.


def places(rules: str, root: Path, others: Sequence[str] = ()) -> tuple[set[str], set[str], str]:
    policy = read_rules(rules).policy("full")
    asked = policy.denied_paths(
        PolicyRequest(Facts("shell", Effect.DESTRUCTIVE, frozenset()), Effect.DESTRUCTIVE)
    )
    found = DeniedPaths() if asked is None else asked(str(root), others)
    named = [{path.replace(f"{root}/", "") for path in part} for part in (found.hidden, found.read_only)]
    return named[0], named[1], found.incomplete


# fmt: off
PLACES: list[tuple[str, set[str], set[str]]] = [
    ("", set(), set()),
    (deny("secrets/**"), {"secrets"}, set()),
    (deny("**/key"), {"secrets/key", "secrets/deep/key"}, {"key"}),
    (deny("conf/*.key"), {"conf/prod.key", "conf/pub.key"}, set()),
    (deny("{conf,app}/**/p*"), {"conf/prod.key", "conf/pub.key"}, set()),
    (deny("link"), {"secrets/key"}, {"link"}),
    (deny("folder/key"), {"secrets/key"}, {"folder"}),
    (deny("fold*/d*/key"), {"secrets/deep/key"}, {"folder"}),
    (deny("deploy/**"), set(), {"deploy"}),
    (deny("deploy/**", 'reach = "read"'), set(), set()),
    (deny("conf", 'reach = "write"'), set(), {"conf"}),
    (deny("**", 'except = { path = "{conf,app}/**" }'), {"secrets", ".env", "notes.txt"}, {"link", "folder"}),
    ('[[rule]]\ndeny = true\ntool = "shell"\nexcept = { path = "{conf,secrets,app}/**" }\n', {".env", "notes.txt", "secrets"}, {"link", "folder"}),
    (deny("notes.txt", 'reach = "delete"'), set(), {"notes.txt"}),
    ('[[rule]]\ndeny = true\ncommand = "rm"\n', set(), set()),
    ('[[rule]]\nask = true\npath = "conf"\n', set(), set()),
]
# fmt: on


@pytest.mark.parametrize(("rules", "hidden", "kept"), PLACES)
def test_which_places_rules_take(rules: str, hidden: set[str], kept: set[str], root: Path) -> None:
    assert places(rules, root) == (hidden, kept, "")


def test_full_names_and_opened_folders_are_looked_at_too(root: Path, tmp_path: Path) -> None:
    other = tmp_path / "other"
    (other / "x").mkdir(parents=True)
    for name in ("x/.env", "plain"):
        (other / name).write_text(SECRET)
    assert places(deny(str(root / "conf")), root)[0] == {"conf"}
    assert places(deny(str(other / "plain")), root)[0] == {str(other / "plain")}
    assert places(deny("**/.env"), root, [str(other)])[0] == {".env", "app/sub/.env", str(other / "x/.env")}
    assert places(deny(str(tmp_path / "**")), root)[0] == {str(root)}
    assert places(deny("**", 'reach = "write"'), root)[1] == {str(root)}
    around = places(deny("**/.env", 'except = { path = "app/sub/.env" }'), root, [str(tmp_path)])
    assert around == ({".env", str(other / "x/.env")}, set(), "")


def test_a_wildcard_for_one_character_means_one_that_is_two_without_case(root: Path) -> None:
    for name in ("\u00df.key", "\u0149/\u00df", "ss.key"):
        (root / name).parent.mkdir(exist_ok=True)
        (root / name).write_text(SECRET)
    assert places(deny(["?.key", "?/[\u00df]"]), root)[0] == {"\u00df.key", "\u0149/\u00df"}
    assert places(deny(f"{root}/?.key"), root)[0] == {"\u00df.key"}
    found = box_of(root, deny("?.key"), NoSandbox()).call_sync(
        "shell", {"command": "grep -r hunter2 \u0149 ."}
    )
    assert SECRET not in found.text


@pytest.mark.promise("policy.md", "In system folders that commands see, absolute patterns are hidden")
@pytest.mark.parametrize("pattern", ["/etc/hosts", "/etc/host*"])
def test_a_file_of_the_system_is_hidden_by_its_absolute_name(root: Path, pattern: str) -> None:
    made = backend("bubblewrap")
    reads = python("print(open('/etc/ho' + 'sts').read())")
    assert "localhost" in sh(box_of(root, deny("conf"), made(root)), reads)
    assert "localhost" not in sh(box_of(root, deny(pattern), made(root)), reads)


@pytest.mark.parametrize(
    ("rules", "words"),
    [(deny("conf", 'reach = "delete"'), "deleting"), (deny("up"), "around the workspace")],
)
def test_what_no_place_can_say_is_said(rules: str, words: str, root: Path) -> None:
    (root / "up").symlink_to("..")
    assert words in places(rules, root)[2]


@pytest.mark.promise("policy.md", "Patterns are looked up when the command starts")
def test_a_change_shows_at_once(root: Path) -> None:
    policy = read_rules(deny("**/.env")).policy("full")
    asked = policy.denied_paths(
        PolicyRequest(Facts("shell", Effect.DESTRUCTIVE, frozenset()), Effect.DESTRUCTIVE)
    )
    assert asked is not None
    for folder in (root, *root.rglob("*")):
        if folder.is_dir() and not folder.is_symlink():
            os.utime(folder, (1, 1))
    before: Callable[[], set[str]] = lambda: set(asked(str(root), ()).hidden)  # noqa: E731
    assert len(before()) == 2 and len(before()) == 2
    (root / "secrets/deep/.env").write_text(SECRET)
    assert len(before()) == 3
    (root / "secrets/deep/.env").rename(root / "secrets/deep/env")
    assert len(before()) == 2


PIECES = st.sampled_from(["a", "b", "A", "*", "a*", "**", "?", ".a"])
PATTERNS = st.lists(PIECES, min_size=1, max_size=4).map("/".join)
NAMES = st.lists(st.sampled_from(["a", "b", "ab", ".a"]), min_size=1, max_size=4).map("/".join)


@examples(150)
@given(st.lists(PATTERNS, min_size=1, max_size=3), st.lists(PATTERNS, max_size=1), st.sets(NAMES, max_size=8))
def test_the_places_are_what_the_rules_mean(patterns: list[str], but: list[str], names: set[str]) -> None:
    case = PolicyRequest(Facts("shell", Effect.DESTRUCTIVE, frozenset()), Effect.DESTRUCTIVE)
    unless = tuple(Rule(verb=Verb.ALLOW, paths=(PathPattern(one),)) for one in but)
    rule = Rule(verb=Verb.DENY, paths=tuple(map(PathPattern, patterns)), unless=unless)
    from toolcrib.rules import RulePolicy

    with tempfile.TemporaryDirectory() as made:
        root = Path(made).resolve()
        for name in names:
            if not (root / name).exists() and not any(one.is_file() for one in (root / name).parents):
                (root / name).parent.mkdir(parents=True, exist_ok=True)
                (root / name).write_text("")
        asked = RulePolicy("full", [rule]).denied_paths(case)
        assert asked is not None
        hidden = asked(str(root), ()).hidden
        for path in root.rglob("*"):
            if path.is_file():
                named = str(path.relative_to(root))
                taken = any(path == Path(one) or Path(one) in path.parents for one in hidden)
                assert taken == bool(rule.match(Access(Reach.READ, named), case)), named


# Other back ends, as far as they can be tried here.


@pytest.mark.promise("sandbox.md", "Landlock can only grant rights")
def test_landlock_hides_from_what_only_reads_and_says_so(root: Path) -> None:
    made = backend("landlock")
    assert (
        not made(root).report().hides_denied_paths
        and made(root, Level.of("read_only")).report().hides_denied_paths
    )
    assert any("rules deny" in gap for gap in made(root).report().gaps)
    box = box_of(root, SECRETS, made(root, Level.of("read_only")))
    assert SECRET not in sh(box, READS["a program"])
    assert SECRET in sh(box, python("print(open('no' + 'tes.txt').read())"))


@pytest.mark.skipif(sys.platform == "win32", reason="paths of POSIX")
def test_the_profile_for_seatbelt_names_what_is_taken(root: Path) -> None:

    level = Level(hidden=(str(root / "secrets"),), read_only=(str(root / "conf"),))
    lines = profile(file_view_of(str(root)).at(level), level, "/private/tmp/x").splitlines()
    writing = lines.index(f'(allow file-write* (subpath "{root}"))')
    assert lines.index(f'(deny file-read* file-write* (subpath "{root}/secrets"))') > writing
    assert lines.index(f'(deny file-write* (subpath "{root}/conf"))') > writing
