"""The examples of rules: calls that a rule must match, and calls that it must not."""

from __future__ import annotations

import json

from toolcrib.call import ToolCall
from toolcrib.dataclass import dataclass
from toolcrib.errors import ToolcribError
from toolcrib.rules.match import NO
from toolcrib.rules.rule import Rule
from toolcrib.toolbox.policy import PolicyRequest, Verb

__all__ = ["Example", "MissingTool", "RuleError", "call_from"]


class RuleError(ToolcribError, ValueError):
    """A file of rules that cannot be used; the message names file, line and rule."""


class MissingTool(ToolcribError):
    """An example calls a tool that does not exist here; such an example is not tried."""


@dataclass(frozen=True, slots=True)
class Example:
    """A call, as its author wrote it in a line of the file, and whether the rule must match it."""

    rule: Rule
    line: int
    text: str
    must_match: bool

    def problem(self, request: PolicyRequest) -> str:
        """The problem if the rule does not do with the call what its example says; "" if it does."""
        if _matches(self.rule, request) is self.must_match:
            return ""
        return (
            "is listed under match, but the rule does not match it"
            if self.must_match
            else "is listed under not_match, but the rule matches it"
        )


def call_from(text: str) -> ToolCall:
    """A call written as `NAME {"argument": "value"}`; RuleError for anything else."""
    name, _, arguments = text.strip().partition(" ")
    try:
        given = json.loads(arguments or "{}")
    except ValueError:
        given = None
    if not name or name.startswith("{") or not isinstance(given, dict):
        raise RuleError('a call is written as a name and a JSON object: shell {"command": "ls"}')
    return ToolCall(name, given)


def _matches(rule: Rule, request: PolicyRequest) -> bool:
    """Whether a rule has anything to do with a call."""
    accesses = request.accesses
    if rule.verb is not Verb.ALLOW:
        return rule.match_call(request, accesses) is not NO
    if not rule.counts_for(request) or rule.may_be_excepted(request, accesses):
        return False
    if not rule.names_accesses or accesses is None:
        return True
    return any(rule.match(access, request) is not NO for access in accesses)
