"""Command lines read before they run: what one does, whether that is proved, and the plan it is run as."""

from toolcrib.command.judge.judgement import Judgement, judge
from toolcrib.command.judge.parts import JudgedCommand
from toolcrib.command.judge.paths import Operand
from toolcrib.command.judge.remember import covered, prefixes
from toolcrib.command.plan import Plan

__all__ = ["JudgedCommand", "Judgement", "Operand", "Plan", "covered", "judge", "prefixes"]
