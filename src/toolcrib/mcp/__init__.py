"""The Model Context Protocol: the parts that need no connection."""

from toolcrib.mcp.elicitation import answer_to, elicitation, elicited

__all__ = ["answer_to", "elicitation", "elicited"]
