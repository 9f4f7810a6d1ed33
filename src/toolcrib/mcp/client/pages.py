"""Reading a list of a server, which may be spread over pages."""

from __future__ import annotations

from typing import Any

from toolcrib.mcp.client.seams import RemoteConnection
from toolcrib.mcp.concealment import concealed
from toolcrib.visible import counted

__all__ = ["read_list"]

PAGES = 100
LONGEST_LIST = 32_000_000  # characters of all pages
TIMEOUT = 60.0  # seconds for one page


async def read_list(
    connection: RemoteConnection, method: str, key: str
) -> tuple[list[Any], dict[str, Any], list[str]]:
    """All pages of a list: its items, the first page's other fields, and problems, a sentence each.

    The items are without credentials that the server was given. A list that does not end, or that repeats a cursor, is
    cut.
    """
    items: list[Any] = []
    size = 0
    first: dict[str, Any] = {}
    seen: set[str] = set()
    cursor: str | None = None
    for page in range(PAGES):
        result = await connection.request(
            method, {"cursor": cursor} if cursor is not None else None, timeout=TIMEOUT
        )
        found = concealed(result.pop(key, None), connection.conceal, words=False)
        if page == 0:
            first = result
        if not isinstance(found, list):
            return items, first, [f"the answer to {method} has no list of {key}"]
        items += found
        size += len(str(found))
        if size > LONGEST_LIST:
            return items, first, [f"{method} is too long; read: {counted(len(items), 'item')}"]
        cursor = result.get("nextCursor")
        if not isinstance(cursor, str) or not cursor:
            return items, first, []
        if cursor in seen:
            return items, first, [f"the pages of {method} repeat; read: {counted(len(items), 'item')}"]
        seen.add(cursor)
    return items, first, [f"{method} has more than {PAGES} pages; read: {counted(len(items), 'item')}"]
