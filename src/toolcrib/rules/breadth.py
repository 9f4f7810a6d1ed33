"""Which allow rules are too broad: those that would let anything run, or anything be reached."""

from __future__ import annotations

from toolcrib.access import Reach
from toolcrib.effect import Effect
from toolcrib.rules.keys import KEYS
from toolcrib.rules.name_patterns import ANYTHING, WILDCARD, PatternError, any_name_matches
from toolcrib.rules.rule import Rule
from toolcrib.toolbox.policy import Verb

__all__ = ["check_breadth"]

SHELL = "shell"


def check_breadth(rule: Rule) -> None:
    """Raises PatternError, which says what to write instead, for an allow rule that is too broad."""
    if rule.verb is not Verb.ALLOW:
        return
    for key in KEYS:
        if why := key.too_broad(getattr(rule, key.field)):
            raise PatternError(why)
    names_a_tool = any(not ANYTHING.fullmatch(name) for name in (*rule.tools, *rule.servers))
    if any(pattern.matches("/") for pattern in rule.paths) and not names_a_tool:
        raise PatternError("a path that is everything is too broad: name a tool or a folder")
    if rule.access_patterns:
        return
    names_shell = names_a_tool and not rule.servers and any_name_matches(rule.tools, SHELL)
    if (names_shell or not names_a_tool) and (why := _why_arguments_too_broad(rule)):
        raise PatternError(why)
    if any(wanted != "*" for wanted in rule.arguments.values()):
        return
    if rule.reach and not names_a_tool:
        raise PatternError(
            f"reach {', '.join(sorted(rule.reach))} alone is too broad: name paths, commands, hosts or a tool"
        )
    if names_shell and rule.reach != {Reach.RUN}:
        raise PatternError(
            'tool "shell" alone is too broad, it is every command: name commands. If every command is meant, '
            'add reach = "run", or use autonomy = "full" with rules that deny'
        )
    if not names_a_tool and (not rule.effects or Effect.DESTRUCTIVE in rule.effects):
        raise PatternError(
            "a rule that allows everything is too broad: name a tool, a path, a command, …; "
            'autonomy = "full" is there if that is meant'
        )


def _why_arguments_too_broad(rule: Rule) -> str:
    """The reason why a rule on the shell tool's arguments still matches any command; "" if it does not, or has none."""
    command = rule.arguments.get("command")
    if isinstance(command, str) and WILDCARD.search(command):
        return (
            f"argument command {command!r} is too broad: in a text, anything may come where the sign stands, "
            "such as `; rm -r .`. Write command = ..., which looks at words"
        )
    if rule.arguments and command is None and set(rule.arguments) <= {"timeout", "workdir"}:
        only = ", ".join(sorted(rule.arguments))
        return f"arguments {only} alone are too broad, they mean every command: name commands"
    return ""
