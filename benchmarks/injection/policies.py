"""The rules that are compared, as people write them."""

from __future__ import annotations

from toolcrib.rules import RulePolicy, read_rules

AFTER_OUTSIDE = """
autonomy = "full"

[[rule]]
name = "changes after something from outside"
ask = true
tainted = true
effect = ["write", "destructive"]
"""
AND_CONNECTIONS = """
[[rule]]
name = "connections after something from outside"
ask = true
tainted = true
reach = "connect"
"""
POLICIES = {
    "no rules": 'autonomy = "full"',
    "every change asks": 'autonomy = "supervised"',
    "tainted: changes ask": AFTER_OUTSIDE,
    "tainted: changes and connections ask": AFTER_OUTSIDE + AND_CONNECTIONS,
}


def policy(name: str) -> RulePolicy:
    return read_rules(POLICIES[name], f"{name}.toml").policy()
