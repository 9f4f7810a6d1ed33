"""Seed-OSS: Qwen3-Coder's tags in a section of their own, values without lines of their own."""

from __future__ import annotations

from dataclasses import replace

from toolcrib.codecs.text.format import TextFormat
from toolcrib.codecs.text.qwen3_coder import function_form

FORMATS: tuple[TextFormat, ...] = (
    replace(
        function_form("seed_oss", (r"seed-?oss", r"doubao"), "<seed:tool_call>"),
        parameter="<parameter={name}>{value}</parameter>\n",
        trims=True,
    ).format(),
)
