"""The loop: model, calls, results, again."""

from __future__ import annotations

from typing import TYPE_CHECKING

from toolcrib.lazy_names import lazy_names

if TYPE_CHECKING:
    from toolcrib.agent.agent import Agent, RunOptions
    from toolcrib.agent.clear_results import ClearOldResults
    from toolcrib.agent.completion import attempt_completion
    from toolcrib.agent.model_reviewer import ModelReviewer
    from toolcrib.agent.outcome import Budget, NotFinished, Outcome, Reason
    from toolcrib.agent.output_items import OutputItem
    from toolcrib.agent.output_stream import PartialOutput
    from toolcrib.agent.output_type import OutputType
    from toolcrib.agent.run import Run
    from toolcrib.agent.saved_run import Answers
    from toolcrib.agent.transcript import TranscriptFile
    from toolcrib.agent.transcript_reading import (
        TranscriptProblem,
        TranscriptReading,
        read_transcript,
        scan_transcript,
    )

__all__ = [
    "Agent",
    "Answers",
    "Budget",
    "ClearOldResults",
    "ModelReviewer",
    "NotFinished",
    "Outcome",
    "OutputItem",
    "OutputType",
    "PartialOutput",
    "Reason",
    "Run",
    "RunOptions",
    "TranscriptFile",
    "TranscriptProblem",
    "TranscriptReading",
    "attempt_completion",
    "read_transcript",
    "scan_transcript",
]

__getattr__ = lazy_names(
    __name__,
    {
        "agent": (
            "Agent",
            "RunOptions",
        ),
        "clear_results": ("ClearOldResults",),
        "completion": ("attempt_completion",),
        "model_reviewer": ("ModelReviewer",),
        "outcome": (
            "Budget",
            "NotFinished",
            "Outcome",
            "Reason",
        ),
        "output_items": ("OutputItem",),
        "output_stream": ("PartialOutput",),
        "output_type": ("OutputType",),
        "run": ("Run",),
        "saved_run": ("Answers",),
        "transcript": ("TranscriptFile",),
        "transcript_reading": (
            "TranscriptProblem",
            "TranscriptReading",
            "read_transcript",
            "scan_transcript",
        ),
    },
)
