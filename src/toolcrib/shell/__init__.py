"""Command lines read before they run: what one does, whether that is proved, and the plan it is run as."""

from toolcrib.shell.judge import Judgement, judge
from toolcrib.shell.parts import Part
from toolcrib.shell.paths import Operand
from toolcrib.shell.plan import Plan
from toolcrib.shell.prefix import covered, prefixes

__all__ = ["Judgement", "Operand", "Part", "Plan", "covered", "judge", "prefixes"]
