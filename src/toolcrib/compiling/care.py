"""Which arguments go through `decode_with_care` although they fit the schema of their tool."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Mapping
from typing import Any

from toolcrib.parameter_names import WRAPPERS

__all__ = ["needs_care"]


def needs_care(schema: Mapping[str, Any], tool: str) -> Callable[[str], Any] | None:
    """A search for signs of such arguments in their JSON, or None for a tool that has no such arguments.

    Signs are an empty text, which a format may not allow, and the name of a wrapper, which would be an unknown field.
    """
    properties, required = schema["properties"], schema.get("required", ())
    optional = [repr(node) for name, node in properties.items() if name not in required]
    empty = any("'format'" in node or "'$ref'" in node for node in optional)
    if not properties or schema.get("additionalProperties") is False:
        return _signs(True, False).search if empty else None
    search, own = _signs(empty, True).search, f'"{tool}"'
    return lambda text: own in text or search(text)


@functools.cache  # an expression for each tool would be most of the time that compiling takes
def _signs(empty: bool, wrappers: bool) -> re.Pattern[str]:
    """An expression for the asked kinds of signs."""
    signs = ['""'] if empty else []
    if wrappers:
        signs += (f'"{re.escape(name)}"' for name in sorted(WRAPPERS))
        signs.append(r"\\u00[0-7]")  # an escaped letter: it may be one of such a name, or of the tool's
    return re.compile("|".join(signs))
