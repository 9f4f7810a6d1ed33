"""What other systems take for an answer, show of arguments, and ask about: held against rules, terminal and data."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.cases import each
from tests.command_line import toolcrib
from tests.conformance.conftest import load_cases
from tests.test_cli_terminal import PROMPT, Pty
from toolcrib import Answer, Effect, Question, Toolbox, ToolCall, Verdict, tool
from toolcrib.call import CallKey
from toolcrib.cli.answers import is_unclear, read_answer
from toolcrib.cli.prompt import ASKED_AGAIN
from toolcrib.cli.question_text import question_lines
from toolcrib.cli.wording import arguments_as_pairs
from toolcrib.errors import ErrorCode
from toolcrib.mcp import elicitation
from toolcrib.prepared import Pending, Refused
from toolcrib.question import Lasting, Scope
from toolcrib.rules import ApprovalStore, read_rules
from toolcrib.toolbox.policy import Autonomy


def cases(relative: str, *starts: str) -> Any:
    found = [c for c in load_cases(f"cases/{relative}") if not starts or c["name"].startswith(starts)]
    return each("case", found, ids=[c["name"] for c in found])


def quoted(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)


EFFECTS = {
    "read_only": Effect.READ, "read": Effect.READ,
    "mutating": Effect.WRITE, "write": Effect.WRITE,
    "destructive": Effect.DESTRUCTIVE, "execute": Effect.DESTRUCTIVE,
}  # fmt: skip


def made(name: str, effect: Effect, ran: list[str] | None = None) -> Any:
    def act(**given: Any) -> str:
        if ran is not None:
            ran.append(name)
        return "done"

    return tool(act, name=name, effect=effect, secrets=(), inline=True)


# -- at a terminal

WRITE = ("tools", "call", "write_file", '{"path": "b.txt", "content": "x"}')
PIPED = "what comes through a pipe is no person's word, whatever it says: nobody is asked, and nothing runs"


@cases("zeroclaw/approval_answers.json", "cli_answer")
def test_what_is_typed(case: dict[str, Any], tmp_path: Path) -> None:
    given, decision = case["input"], case["expected"].get("decision", "no")
    if "stdin" in given and str(given.get("tty", "")).startswith("<"):
        done = toolcrib(tmp_path, *WRITE, stdin=given["stdin"])
        assert done.returncode == 1 and not (tmp_path / "b.txt").exists(), PIPED
        return
    line = given.get("line", given.get("tty", ""))
    assert read_answer(line).verdict.value == decision
    run = Pty(tmp_path, *WRITE)
    for _ in range(1 + ASKED_AGAIN if is_unclear(line) else 1):  # whoever is not understood is asked again
        run.until(PROMPT)
        run.send(line if line.endswith("\n") else f"{line}\x04\x04" if line else "\x04")
    assert run.end() == (0 if decision != "no" else 1)
    assert (tmp_path / "b.txt").exists() is (decision != "no")


@cases("zeroclaw/approval_answers.json", "replacement")
async def test_what_a_person_says_instead(case: dict[str, Any]) -> None:
    """A replacement is a no that the model is told of."""
    given, expected = case["input"], case["expected"]
    said = given.get("replacement", given.get("repeat", "") * given.get("times", 1))

    async def person(question: Question) -> Answer:
        return Answer(Verdict.NO, said)

    ran: list[str] = []
    result = await Toolbox([made("t", Effect.WRITE, ran)], approver=person).call("t")
    assert result.code is ErrorCode.REJECTED and ran == []
    told = result.text.partition("They say: ")[2]
    if "replacement" in expected:
        assert told.startswith(expected["replacement"])
    if "max_bytes" in expected:
        heard = Answer(Verdict.NO, said).message
        assert len(heard.encode()) <= expected["max_bytes"] and set(heard) == {expected["only_char"]}
        assert heard in told


def of_channel(said: str) -> Answer:
    """A channel's word as an answer: the words of theirs that clearly say yes, and no for all others."""
    word, _, rest = said.partition(":")
    verdict = {"approve": "yes", "approved": "yes", "allow": "yes", "yes": "yes", "always": "always"}.get(
        word
    )
    verdict = verdict or ("always" if word in ("always_approve", "approve_always", "allow_always") else "no")
    return Answer(Verdict(verdict), rest)


@cases("zeroclaw/approval_answers.json", "channel")
async def test_answers_from_elsewhere(case: dict[str, Any]) -> None:
    said, decision = case["input"]["channel_response"], case["expected"]["decision"]
    answer = of_channel(str(said))

    async def person(question: Question) -> Answer | None:
        return answer if said is not None else None

    ran: list[str] = []
    result = await Toolbox([made("t", Effect.WRITE, ran)], approver=person).call("t")
    verdict, _, instead = decision.partition(":")
    assert bool(ran) is (verdict in ("yes", "always"))
    if instead:
        assert result.code is ErrorCode.REJECTED and instead in result.text


# -- what is shown of arguments


LONG = 80  # characters of a value that they show; a card of ours shows half of that, a message all


@cases("zeroclaw/approval_args_summary.json")
def test_a_summary_of_arguments(case: dict[str, Any]) -> None:
    """On a card, and in what goes out to a client: no credentials, and a card has one line of a bounded size."""
    given, expected = case["input"], case["expected"]
    card = arguments_as_pairs(given)
    message = elicitation(Question(CallKey("r", 1, 0), "t", "run t", "why", given, "write", "f"))["message"]
    short = {text for text in _texts(given) if len(text) <= LONG}
    for piece in expected.get("contains", []):
        name, _, value = piece.rpartition(": ")
        if value.strip(".… ") or name:  # and no mere mark of what was cut
            assert all(name in text and value[:30].rstrip(":") in text for text in (card, message))
    for piece in expected.get("not_contains", []):
        assert piece not in card
        assert piece not in message or not any(piece in text for text in short)
    assert "\n" not in card and len(card) <= 2 * LONG * max(1, len(given))


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, dict | list):
        for inner in value.values() if isinstance(value, dict) else value:
            yield from _texts(inner)
    else:
        yield str(value)


@cases("zeroclaw/approval_args_summary.json")
def test_the_question_itself_shows_all(case: dict[str, Any]) -> None:
    """At the terminal, where nothing is stored, a person sees exactly what would run."""
    question = Question(CallKey("r", 1, 0), "t", "run t", "why", case["input"], "write", "f")
    lines = "\n".join(line for _, line in question_lines(question, sys.maxsize)[0])
    assert all(line in lines for text in _texts(case["input"]) for line in text.split("\n"))


# -- what needs an approval

LEVELS = {"Supervised": "supervised", "Full": "full", "ReadOnly": "read_only"}
READS = "tools that their defaults let run without asking are those that only read"
STRICTER = {
    "always": "an always covers the arguments that were shown, unless its scope says the whole tool",
}


def as_rules(profile: dict[str, Any]) -> str:
    """A profile of theirs as rules: `*` among what runs unasked is full autonomy's, and no rule."""
    level = LEVELS[profile["level"]]
    listed = [name for name in profile.get("auto_approve", []) if name != "*"]
    rules = [f"[[rule]]\nallow = true\ntool = {json.dumps(listed)}"] if listed else []
    if always := profile.get("always_ask"):
        rules.append(f"[[rule]]\nask = true\ntool = {json.dumps(always)}")
    if "*" in profile.get("auto_approve", []) and level == "supervised":
        level = "full"
    return "\n".join([f'autonomy = "{level}"', *rules])


@cases("zeroclaw/approval_requirement.json")
async def test_what_needs_an_approval(case: dict[str, Any], tmp_path: Path) -> None:
    given, needs = case["input"], case["expected"]["needs_approval"]
    profile, name = dict(given["profile"]), given["tool"]
    effect = Effect.WRITE
    if profile.get("auto_approve") == "<defaults>":  # READS
        profile["auto_approve"] = []
        effect = Effect.WRITE if needs else Effect.READ
    answers = {asked: Verdict(verdict) for asked, verdict in given["prior_decisions"]}

    async def person(question: Question) -> Answer | None:
        return Answer(answers.get(question.tool, Verdict.NO), by="ann", scope=Scope.TOOL)

    names = {name, *answers}
    box = Toolbox(
        [made(one, effect) for one in sorted(names)],
        policy=read_rules(as_rules(profile)).policy(),
        approver=person if given["mode"] == "interactive" or answers else None,
        approvals=ApprovalStore(tmp_path / "approvals.json"),
    )
    for number, (asked, _) in enumerate(given["prior_decisions"]):
        await box.call(ToolCall(asked, {"what": "before"}), key=CallKey("run", 1, number))
    prepared = await box.prepare(ToolCall(name, {"what": "now"}), key=CallKey("run", 2, 0))
    if profile["level"] == "ReadOnly":
        assert isinstance(prepared, Refused) is (effect is not Effect.READ) and not needs
        return
    assert isinstance(prepared, Pending) is needs
    if needs and isinstance(prepared, Pending):  # and where nobody is there, it does not run
        assert (await box.execute(prepared, None)).code is ErrorCode.NOBODY_TO_ASK


async def test_an_always_of_theirs_is_narrower_with_us_unless_it_says_otherwise() -> None:
    """STRICTER["always"]"""

    async def person(question: Question) -> Answer:
        return Answer(Verdict.ALWAYS)

    box = Toolbox([made("t", Effect.WRITE)], approver=person)
    await box.call(ToolCall("t", {"what": "before"}), key=CallKey("run", 1, 0))
    for arguments, kind in (({"what": "before"}, "ready"), ({"what": "now"}, "pending")):
        assert (await box.prepare(ToolCall("t", arguments), key=CallKey("run", 1, 1))).kind == kind


# -- gates and modes

GATES = {
    "always": 'ask = true\ntool = "*"',
    "mutating_and_above": 'ask = true\neffect = ["write", "destructive"]',
    "destructive_only": 'ask = true\neffect = "destructive"',
    "never": "",
}


@cases("entelix/approval_gate.json", "gate_")
async def test_a_gate_is_a_rule(case: dict[str, Any]) -> None:
    rule = GATES[case["input"]["gate"]]
    policy = read_rules(f"[[rule]]\n{rule}" if rule else "").policy("full")
    box = Toolbox([made("t", EFFECTS[case["input"]["effect"]])], policy=policy)
    prepared = await box.prepare(ToolCall("t"))
    assert isinstance(prepared, Pending) is case["expected"]["asks_approver"]


def said_by_approver(case: dict[str, Any]) -> str:
    given = case["input"]
    return str(given.get("approver", given.get("decision", "")))


APPROVED = [c for c in load_cases("cases/entelix/approval_gate.json") if said_by_approver(c)]


@pytest.mark.parametrize("case", APPROVED, ids=[c["name"] for c in APPROVED])
async def test_decisions_of_an_approver(case: dict[str, Any]) -> None:
    """Whatever is said of approvers and stored decisions: what did not get a clear yes does not run."""
    given, said = case["input"], said_by_approver(case).lower()
    answer = Answer(Verdict.NO, str(given.get("reason", ""))) if "reject" in said else None
    if answer is None and "approve" in said:
        answer = Answer(Verdict.YES)

    async def person(question: Question) -> Answer | None:
        return answer

    ran: list[str] = []
    name = str(given.get("tool", "t"))
    box = Toolbox([made(name, Effect.WRITE, ran)], approver=person)
    result = await box.call(name, given.get("arguments", {}))
    assert bool(ran) is (answer is not None and answer.allows)
    if answer is None:
        assert result.code is ErrorCode.NOBODY_TO_ASK and case["expected"].get("interrupted", True)
    elif not answer.allows:
        assert result.code is ErrorCode.REJECTED and answer.message in result.text


MODES = {
    "bypass": "full",
    "auto": "full",
    "act": "supervised",
    "supervised": "supervised",
    "plan": "read_only",
}
PROBES = {"allow": "ready", "ask": "pending", "deny": "refused"}


@cases("loopal/permission_modes.json")
async def test_modes_are_autonomies_over_rules(case: dict[str, Any]) -> None:
    given = case["input"]
    mode = given.get("agent_mode") if given.get("agent_mode") == "plan" else given.get("mode", "supervised")
    effect = EFFECTS[given["tool_permission"]]
    box = Toolbox([made("t", effect)], policy=read_rules("").policy(MODES[mode]))
    assert (await box.prepare(ToolCall("t"))).kind == PROBES[case["expected"]["decision"]]


# -- always, listed and revoked, as people wished for


async def test_what_lasts_is_listed_revoked_and_asked_again(tmp_path: Path) -> None:
    wished = [c for c in load_cases("cases/reports/wanted_behaviour.json") if "revoke" in c["name"]]
    asked: list[Question] = []

    async def person(question: Question) -> Answer:
        asked.append(question)
        return Answer(Verdict.ALWAYS, by="ann", lasting=Lasting.USER)

    store = ApprovalStore(tmp_path / "approvals.json")
    steps = wished[0]["input"]["steps"] if wished else ["always allow X", "list", "revoke X", "call X"]
    for step in steps:
        box = Toolbox([made("x", Effect.WRITE)], approver=person, approvals=store)
        if step.startswith("list"):
            assert [item.tool for item in store.all()] == ["x"]
        elif step.startswith("revoke"):
            assert store.revoke(store.all()[0].id)
        else:
            await box.call("x")
    assert len(asked) == 2


def test_autonomies_are_named_as_theirs() -> None:
    assert set(LEVELS.values()) == {*Autonomy} - {Autonomy.SANDBOXED}  # which they do not have
