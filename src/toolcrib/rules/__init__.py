"""Rules: a policy that people write down, in Python or in TOML."""

from toolcrib.rules.approvals import ApprovalStore
from toolcrib.rules.file import NotThere, RuleError, RuleFile, load_rules, read_rules
from toolcrib.rules.limits import Limit, RateLimits
from toolcrib.rules.patterns import CommandPattern, PathPattern, PatternError
from toolcrib.rules.policy import Explanation, Rule, RulePolicy

__all__ = [
    "ApprovalStore",
    "CommandPattern",
    "Explanation",
    "Limit",
    "NotThere",
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
