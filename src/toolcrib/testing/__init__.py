"""For your own tests: models without a provider, and checks that every tool and codec should pass."""

from toolcrib.models.replay import Replay
from toolcrib.models.scripted import Scripted
from toolcrib.testing.codecs import check_codec
from toolcrib.testing.report import Finding, Report
from toolcrib.testing.tools import check_tool

__all__ = ["Finding", "Replay", "Report", "Scripted", "check_codec", "check_tool"]
