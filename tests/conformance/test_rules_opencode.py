"""OpenCode's permissions, where the last rule that means a call decides: rules, hidden tools, answers, saved approvals.

Its `*` crosses `/`, as our `**` does. `external_directory` is a path outside the workspace; `edit` is every tool
that changes files. A list of rules that is joined or unfolded (`fromConfig`, `merge`) is its program's own.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from tests.cases import each
from tests.conformance.conftest import load_cases
from tests.conformance.rules_of_others import STRICTNESS, any_tool, ordered, shell_in, verdict
from toolcrib import Effect, Toolbox, ToolCall
from toolcrib.access import Reach
from toolcrib.command.judge import judge
from toolcrib.errors import ErrorCode, ToolError
from toolcrib.facts import Facts
from toolcrib.question import Answer, Lasting, Verdict
from toolcrib.rules import ApprovalStore, CommandPattern, PathPattern, Rule, RulePolicy
from toolcrib.rules.name_patterns import any_name_matches
from toolcrib.toolbox.policy import Verb
from toolcrib.tools import Workspace

VERBS = {"allow": Verb.ALLOW, "ask": Verb.ASK, "deny": Verb.DENY}
TOOLS = {"bash": ("shell",), "edit": ("edit", "write", "apply_patch")}
OF_PATHS = {"edit": Reach.WRITE, "read": Reach.READ, "external_directory": Reach.READ}
SETS_APART = {"*", "", "anything"}  # patterns of tools that reach neither files nor commands
RUINOUS = "a command that would ruin the machine never runs, whatever the rules say"
ASKS_EACH_TIME = "an ask rule asks each time; what may be remembered is what no rule speaks about"


def home(text: str) -> str:
    return (
        text.replace("{HOME}", "/home/given").replace("$HOME", "/home/given").replace("~/", "/home/given/", 1)
    )


def rule_of(permission: str, pattern: str, action: str) -> list[Rule]:
    """One of their rules; a wildcard permission with a pattern is one for commands, one for paths, one for others."""
    pattern = home(pattern)
    verb = VERBS[action]
    tools = TOOLS.get(permission, (permission,))
    if pattern in ("*", "**"):
        return [Rule(verb=verb, tools=tools)]
    made = []
    if permission in ("bash", "*"):
        made.append(Rule(verb=verb, tools=("shell",), commands=(command_of(pattern),)))
    if permission in OF_PATHS or permission == "*":
        made.append(Rule(verb=verb, tools=tools, paths=(path_of(pattern),)))
    return made or [Rule(verb=verb, tools=tools, arguments={"what": pattern})]


def command_of(pattern: str) -> CommandPattern:
    """`rm *` is any `rm`; `rm*` is any program or word that begins so."""
    open_word = pattern.endswith("*") and not pattern.endswith(" *")
    return CommandPattern(f"{pattern} *" if open_word else pattern)


def path_of(pattern: str) -> PathPattern:
    return PathPattern(pattern + "*" if pattern.endswith("/*") else pattern)


def rules_of(rulesets: Iterable[Any]) -> list[Rule]:
    """All rules of some sets, the last first, as ours."""
    listed: list[dict[str, str]] = []
    for given in rulesets:
        if isinstance(given, list):
            listed += given
        elif "merge" in given:
            listed += [rule for part in given["merge"] for rule in part]
        else:
            for permission, what in given["config"].items():
                patterns = {"*": what} if isinstance(what, str) else what
                listed += [{"permission": permission, "pattern": p, "action": a} for p, a in patterns.items()]
    made = [rule_of(one["permission"], one["pattern"], one["action"]) for one in reversed(listed)]
    return list(ordered([one for rules in made for one in rules]))


def box_for(
    permission: str, policy: Any, folder: Path, patterns: list[str], **named: Any
) -> tuple[Toolbox, str, Any]:
    if permission == "bash":
        return (
            Toolbox([shell_in(folder)], policy=policy, **named),
            "shell",
            {"command": " && ".join(patterns)},
        )
    name = TOOLS.get(permission, (permission,))[0]
    path = home(patterns[0]) if permission in OF_PATHS else ""
    reach = OF_PATHS.get(permission, Reach.WRITE)
    effect = Effect.READ if reach is Reach.READ else Effect.WRITE
    tool = any_tool(name, effect, path=path, reach=reach)
    return Toolbox([tool], policy=policy, **named), name, {"what": patterns[0]}


def of_api(file: str, *apis: str) -> Any:
    cases = [
        case for case in load_cases(f"cases/opencode/{file}.json") if case["input"].get("api", "") in apis
    ]
    return each("case", [pytest.param(case, id=case["name"]) for case in cases])


@of_api("permission", "evaluate", "ask")
async def test_decisions(case: dict[str, Any], tmp_path: Path) -> None:
    given = case["input"]
    rulesets = given.get("rulesets") or [given.get("rules", [])]
    patterns = given.get("patterns") or [given["pattern"]]
    policy = RulePolicy("full", rules_of(rulesets), otherwise="ask")
    box, name, arguments = box_for(given["permission"], policy, tmp_path, patterns)
    ours = await verdict(box, name, arguments)
    if ours != case["expected"]:
        assert STRICTNESS.index(ours) > STRICTNESS.index(case["expected"])
        assert name == "shell" and judge(arguments["command"]).verdict == "deny", RUINOUS


@of_api("permission", "is_tool_hidden", "hidden_count")
def test_hidden_tools(case: dict[str, Any]) -> None:
    given = case["input"]
    policy = RulePolicy("full", rules_of([given["rules"]]), otherwise="ask")

    def hidden(name: str) -> bool:
        ours = {"bash": "shell"}.get(name, name)
        return not policy.shows(Facts(ours, Effect.READ if name == "read" else Effect.WRITE, frozenset()))

    if given["api"] == "hidden_count":
        assert sum(map(hidden, given["tools"])) == case["expected"]
    else:
        assert hidden(given["tool"]) == case["expected"]


ANSWERS = {"once": Verdict.YES, "always": Verdict.ALWAYS, "reject": Verdict.NO}
OTHERS_STAND = "a no is about the one question; the others of the run are asked by themselves"


@of_api("permission", "reply", "dispose")
async def test_answers(case: dict[str, Any], tmp_path: Path) -> None:
    given, expected = case["input"], case["expected"]
    reply = given.get("reply")
    store = ApprovalStore(tmp_path / "state" / "approvals.json")

    async def approver(question: Any) -> Answer | None:
        if reply is None:  # nobody is there any more
            return None
        return Answer(ANSWERS[reply["reply"]], message=reply.get("message", ""), lasting=Lasting.USER)

    at = given.get("reply_to") or 0
    if not isinstance(at, int) or at >= len(given["pending"]):
        return  # an answer to a question that is not there is bound to no call
    pending = given["pending"][at]
    patterns = [f"touch {word}" for word in pending["patterns"]]  # what is proved plain is asked by nobody
    box, name, arguments = box_for(
        pending["permission"],
        RulePolicy("supervised"),
        tmp_path,
        patterns,
        approver=approver,
        approvals=store,
    )
    prepared = await box.prepare(ToolCall(name, arguments))
    assert prepared.kind == "pending", prepared
    result = await box.call(name, arguments)
    refused = result.code in (ErrorCode.REJECTED, ErrorCode.NOBODY_TO_ASK)
    assert refused == bool(expected.get("rejected")), result.text
    assert expected.get("error_contains", "") in result.text
    if "later" in expected:
        again, name, arguments = box_for(
            pending["permission"], RulePolicy("supervised"), tmp_path, patterns, approvals=store
        )
        later = "allow" if [f"touch {w}" for w in expected["later"]["patterns"]] == patterns else "ask"
        assert await verdict(again, name, arguments) == expected["later"]["result"] == later


V2 = load_cases("cases/opencode/permission_v2.json")


@pytest.mark.parametrize("case", [pytest.param(c, id=c["name"]) for c in V2 if "ask" in c["input"]])
async def test_saved_approvals(case: dict[str, Any], tmp_path: Path) -> None:
    given, expected, asked = case["input"], case["expected"], case["input"]["ask"]
    listed = [*given.get("rules", []), *given.get("agent_rules", {}).get(asked.get("agent"), [])]
    theirs = [{"permission": r["action"], "pattern": r["resource"], "action": r["effect"]} for r in listed]
    policy = RulePolicy("full", rules_of([theirs]), otherwise="ask")
    store = ApprovalStore(tmp_path / "state" / "approvals.json")
    saved = given.get("saved", [])

    async def always(question: Any) -> Answer:
        return Answer(Verdict.ALWAYS, lasting=Lasting.USER)

    for one in [
        *saved,
        *([{"action": asked["action"], "resource": asked["resources"][0]}] if "reply" in given else []),
    ]:
        before = RulePolicy("full", otherwise="ask")
        box, name, arguments = box_for(
            one["action"], before, tmp_path, [one["resource"]], approver=always, approvals=store
        )
        await box.call(name, arguments)
        assert store.all()
    box, name, arguments = box_for(asked["action"], policy, tmp_path, asked["resources"], approvals=store)
    wanted = expected if isinstance(expected, str) else "allow"
    if given.get("reply") in ("once", "reject"):
        return
    assert await verdict(box, name, arguments) == wanted
    if isinstance(expected, dict) and expected.get("removable"):
        assert all(store.revoke(approval.id) for approval in store.all())
        fresh, name, arguments = box_for(
            asked["action"], policy, tmp_path, asked["resources"], approvals=store
        )
        assert await verdict(fresh, name, arguments) == "ask"


# -- patterns

BY_WINDOWS = "paths here have / between their pieces"


@of_api("wildcard", "match")
def test_wildcards(case: dict[str, Any]) -> None:
    text, pattern = case["input"]["text"], case["input"]["pattern"]
    if "\\" in text + pattern or case["input"].get("platform") == "windows":
        return  # BY_WINDOWS
    if " " in pattern or " " in text:
        assert command_of(pattern).matches(text.split()) == case["expected"]
    else:
        assert any_name_matches((pattern,), text) == case["expected"]


@of_api("wildcard", "most_specific_rule", "command_rules")
async def test_the_most_specific_rule(case: dict[str, Any], tmp_path: Path) -> None:
    """There the longest pattern decides, and an option may stand anywhere: `**` with us."""
    given = case["input"]
    text = given["text"] if "text" in given else " ".join([given["head"], *given["tail"]])
    rules = []
    for pattern, action in sorted(
        given["rules"].items(), key=lambda item: (-len(item[0].split()), -len(item[0]))
    ):
        if pattern == "*":
            rules.append(Rule(verb=VERBS[action], tools=("shell",)))
            continue
        words = (
            pattern.replace(" *", " ** ", 1).split()
            if pattern.count(" *") and not pattern.endswith(" *")
            else pattern.split()
        )
        shown = " ".join(words)
        commands = tuple(CommandPattern(f"{one.strip()} *") for one in (shown, shown.removesuffix("*")))
        rules.append(Rule(verb=VERBS[action], tools=("shell",), commands=commands))
    policy = RulePolicy("full", ordered(rules), otherwise="ask")
    ours = await verdict(Toolbox([shell_in(tmp_path)], policy=policy), "shell", {"command": text})
    wanted = case["expected"] or "ask"  # nothing said: asked
    assert STRICTNESS.index(ours) >= STRICTNESS.index(wanted)
    if ours != wanted:
        assert judge(text).verdict == "deny"


# -- where a path leads


@pytest.mark.parametrize("file", ["external_directory", "mutation_path_resolution"])
async def test_what_lies_outside(file: str, tmp_path: Path) -> None:
    """There it asks for the folder; here the tools refuse, and a command asks."""
    root = tmp_path / "project"
    root.mkdir()
    (tmp_path / "outside").mkdir()
    (root / "hello.txt").write_text("x")
    workspace = Workspace(root)
    names = {
        "project": root,
        "root": root,
        "cwd": root,
        "parent": tmp_path,
        "outside": tmp_path / "outside",
        "tmp": tmp_path,
    }
    for case in load_cases(f"cases/opencode/{file}.json"):
        given, expected = case["input"], case["expected"]
        path = given.get("target") or given.get("path") or ""
        if given.get("platform") == "windows" or "\\" in path or not path:
            continue
        for name, place in names.items():
            path = path.replace(f"{{{name}}}", str(place))
        outside = bool(expected.get("asks") or expected.get("external"))
        try:
            shown = workspace.place(path).shown
        except ToolError:
            shown = None
        if shown is not None and not outside and "resource" in expected:
            assert shown == expected["resource"], case["name"]
        links = given.get("link") or given.get("symlink") or "link" in case["name"]
        if not links and "error" not in str(expected):
            assert (shown is None) == outside, case["name"]
        ours = await verdict(Toolbox([shell_in(root)]), "shell", {"command": f"cat '{path}'"})
        assert (ours != "allow") == outside or links or "error" in str(expected), case["name"]
