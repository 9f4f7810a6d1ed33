"""The loop: model, calls, results, again."""

from __future__ import annotations

from toolcrib.agent.agent import Agent, RunOptions
from toolcrib.agent.completion import attempt_completion
from toolcrib.agent.outcome import Budget, Outcome, Reason
from toolcrib.agent.run import Run
from toolcrib.agent.transcript import TranscriptFile, read_transcript

__all__ = [
    "Agent",
    "Budget",
    "Outcome",
    "Reason",
    "Run",
    "RunOptions",
    "TranscriptFile",
    "attempt_completion",
    "read_transcript",
]
