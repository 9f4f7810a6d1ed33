"""The Model Context Protocol: what of it needs no connection."""

from toolcrib.mcp.elicitation import answer_to, elicitation, elicited

__all__ = ["answer_to", "elicitation", "elicited"]
