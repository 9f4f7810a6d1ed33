"""What a docstring says of a tool and of its parameters."""

from __future__ import annotations

import re

__all__ = ["parse_docstring"]

STYLES = (
    ("\nArgs:\n", "GOOGLE"),
    ("\nAttributes:\n", "GOOGLE"),
    ("\nParameters\n---", "NUMPYDOC"),
    ("\n:param ", "REST"),
)
# What makes the library do more than give the text back: a line that may begin a section or name a parameter, in any
# style; a summary without an empty line after it; spaces around lines, and more than one empty line.
NOT_PROSE = re.compile(r"^[:@]|^\.\.|:$|--|\A[^\n]*\n[^\n]|^[^\S\n]|[^\S\n]$|\n{3}", re.MULTILINE)


def parse_docstring(doc: str) -> tuple[str, dict[str, str]]:
    """The description and the parameters of a Google, NumPy or Sphinx docstring."""
    if not doc:
        return "", {}
    if (":" not in doc and "---" not in doc) or not NOT_PROSE.search(doc):
        return doc.strip(), {}
    import docstring_parser

    # Left to itself the library parses in every style and takes the richest: thrice the time.
    style = next((style for mark, style in STYLES if mark in doc), "AUTO")
    try:
        parsed = docstring_parser.parse(doc, docstring_parser.DocstringStyle[style])
    except docstring_parser.ParseError:
        return doc.strip(), {}
    described = {p.arg_name.lstrip("*"): " ".join((p.description or "").split()) for p in parsed.params}
    words = [parsed.short_description or "", parsed.long_description or ""]
    return "\n\n".join(part.strip() for part in words if part.strip()), described
