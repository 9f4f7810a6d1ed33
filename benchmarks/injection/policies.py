"""The rules that are compared, as people write them."""

from __future__ import annotations

from toolcrib.rules import RulePolicy, read_rules

CHANGES = """
autonomy = "full"

[[rule]]
name = "changes after something from outside"
ask = true
tainted = true
effect = ["write", "destructive"]
{changes}

[[rule]]
name = "connections after something from outside"
ask = true
tainted = true
reach = "connect"
{connections}
"""
DESTROYING = """
[[rule]]
name = "what destroys, after something from outside"
ask = true
tainted = true
effect = "destructive"
"""
# Who gets something, and what is bought or set; texts, dates, amounts and names of the user's own things are free.
WHO = (
    'unsaid = ["recipient", "recipients", "cc", "bcc", "*email", "participants", "url", "hotel", "company", '
    '"restaurant", "password"]'
)
POLICIES = {
    "none": 'autonomy = "full"',
    "every change asks": 'autonomy = "supervised"',
    "what is not confined asks": 'autonomy = "sandboxed"',
    "tainted: changes ask": CHANGES.split('\n\n[[rule]]\nname = "conn')[0].format(changes=""),
    "tainted: changes and connections ask": CHANGES.format(changes="", connections=""),
    "tainted and any argument unsaid": CHANGES.format(changes='unsaid = "*"', connections='unsaid = "*"'),
    "tainted and whom it reaches unsaid, or destructive": CHANGES.format(changes=WHO, connections=WHO)
    + DESTROYING,
}


# With a reviewer between policy and person; its rules are those of another row.
REVIEWED = {"every change asks, a reviewer first": "every change asks"}


def policy(name: str) -> RulePolicy:
    return read_rules(POLICIES[REVIEWED.get(name, name)], f"{name}.toml").policy()
