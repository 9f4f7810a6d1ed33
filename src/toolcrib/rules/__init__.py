"""Rules: a policy that people write down, in TOML or in Python.

| what | where |
| --- | --- |
| reading a file, a rule's table, examples | `rule_file.py`, `rule_table.py`, `examples.py`; `toml_*.py` |
| the keys of a rule, a row each | `keys.py` |
| patterns | `name_patterns.py`, `path_patterns.py`, `command_patterns.py`, `host_patterns.py`, `argument_patterns.py` |
| one rule; what may not be allowed | `rule.py`; `breadth.py`, `broad_commands.py` |
| the decision of many rules | `policy.py`, over `rule_index.py` |
| what a running call may reach | `permissions.py`, and for a sandbox `denied_paths.py` |
| approvals, trust in a project's rules, limits | `approvals.py`, `trust.py`, `limits.py` |

To add a key to rules: a field in `Rule` (`rule.py`) and a row in `KEYS` (`keys.py`, which says what the row holds),
then `python docs/tables.py` for the table in docs/policy.md.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from toolcrib.lazy_names import lazy_names

if TYPE_CHECKING:
    from toolcrib.rules.approvals import ApprovalStore
    from toolcrib.rules.command_patterns import CommandPattern
    from toolcrib.rules.examples import MissingTool, RuleError
    from toolcrib.rules.limits import Limit, RateLimits
    from toolcrib.rules.name_patterns import PatternError
    from toolcrib.rules.path_patterns import PathPattern
    from toolcrib.rules.policy import Explanation, RulePolicy
    from toolcrib.rules.rule import Rule
    from toolcrib.rules.rule_file import RuleFile, load_rules, read_rules


__all__ = [
    "ApprovalStore",
    "CommandPattern",
    "Explanation",
    "Limit",
    "MissingTool",
    "PathPattern",
    "PatternError",
    "RateLimits",
    "Rule",
    "RuleError",
    "RuleFile",
    "RulePolicy",
    "load_rules",
    "read_rules",
]

__getattr__ = lazy_names(
    __name__,
    {
        "approvals": ("ApprovalStore",),
        "command_patterns": ("CommandPattern",),
        "examples": (
            "MissingTool",
            "RuleError",
        ),
        "limits": (
            "Limit",
            "RateLimits",
        ),
        "name_patterns": ("PatternError",),
        "path_patterns": ("PathPattern",),
        "policy": (
            "Explanation",
            "RulePolicy",
        ),
        "rule": ("Rule",),
        "rule_file": (
            "RuleFile",
            "load_rules",
            "read_rules",
        ),
    },
)
