"""Strict tool declarations: the dialect of a tool's schema, and whether the provider must enforce the schema."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from toolcrib.spec import ToolSpec

STRICT = "-strict"


def strictness(spec: ToolSpec, dialect: str, own: Mapping[str, Any], strict_dialect: str) -> tuple[str, bool]:
    """The dialect of one tool's schema, and whether it is declared strict.

    A strict dialect is used only for a tool whose arguments it can express completely; a free-form map, for
    example, would have to be sent as JSON text. The tool's own extras for the provider decide where they set
    `strict`.
    """
    wish = own.get("strict")
    if wish is not None:
        return (strict_dialect if wish else dialect.removesuffix(STRICT)), bool(wish)
    if not dialect.endswith(STRICT):
        return dialect, False
    return (dialect, True) if spec.fits(dialect) else (dialect.removesuffix(STRICT), False)
