"""A message of the protocol, read from its JSON."""

from __future__ import annotations

import re
from typing import Any

__all__ = ["read_message"]

# An escaped half of a character; what could be taken for one is matched before it.
HALF = re.compile(
    rb"\\\\|\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|(\\u[dD][89a-fA-F][0-9a-fA-F]{2})"
)


def read_message(text: bytes) -> tuple[Any, bytes] | None:
    """The SDK's message and the text that it was read from; None for what is no message.

    Bytes that are no UTF-8 and halves of characters, as of a text that was cut in one, are replaced.
    """
    from mcp_types import jsonrpc_message_adapter

    try:
        return jsonrpc_message_adapter.validate_json(text, by_name=False), text
    except ValueError:
        pass
    mended = HALF.sub(
        lambda found: rb"\ufffd" if found[1] else found[0], text.decode("utf-8", "replace").encode()
    )
    try:
        return jsonrpc_message_adapter.validate_json(mended, by_name=False), mended
    except ValueError:
        return None
