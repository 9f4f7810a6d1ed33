"""Local guided decoding: a session that says, token by token, what a model may write next.

`pip install "toolcrib[guided]"` brings llguidance, which needs neither PyTorch nor NumPy.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from toolcrib.lazy_names import lazy_names

if TYPE_CHECKING:
    from toolcrib.guided.local.engine import GuideError
    from toolcrib.guided.local.guide import GuideSession, LocalGuide
    from toolcrib.guided.local.processors import TransformersGuide, VllmGuide, vllm_logits_processor
    from toolcrib.guided.local.vocabulary import Vocabulary

__all__ = [
    "GuideError",
    "GuideSession",
    "LocalGuide",
    "TransformersGuide",
    "VllmGuide",
    "Vocabulary",
    "vllm_logits_processor",
]

__getattr__ = lazy_names(
    __name__,
    {
        "engine": ("GuideError",),
        "guide": ("GuideSession", "LocalGuide"),
        "processors": ("TransformersGuide", "VllmGuide", "vllm_logits_processor"),
        "vocabulary": ("Vocabulary",),
    },
)
