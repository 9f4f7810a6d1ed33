"""Command lines read before they run: what one does, whether that is proved, and the plan it is run as."""

from toolcrib.shell.judge import Judgement, judge
from toolcrib.shell.local import Local
from toolcrib.shell.parts import Part
from toolcrib.shell.paths import Operand
from toolcrib.shell.plan import Plan
from toolcrib.shell.prefix import covered, prefixes
from toolcrib.shell.run import Child, Host, run_plan

__all__ = [
    "Child", "Host", "Judgement", "Local", "Operand", "Part", "Plan", "covered", "judge", "prefixes", "run_plan",
]  # fmt: skip
