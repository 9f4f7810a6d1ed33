"""What the SDK and its HTTP client log of a connection: short lines and few, as the server decides how often and what.

The credentials of the connection are not in them: the HTTP client logs the address of each request.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Generator
from contextlib import contextmanager
from contextvars import ContextVar

from toolcrib.mcp.concealment import Conceal
from toolcrib.visible import on_one_line

__all__ = ["bounded_log"]

MOST_LINES = 20  # of one connection and level: lines for debugging do not use up those that are errors
LONGEST = 300  # characters of a line
LOGGERS = (
    "client",
    "httpx2",
    "mcp.client.sse",
    "mcp.client.streamable_http",
    "mcp.shared.jsonrpc_dispatcher",
)

_connection: ContextVar[tuple[Counter[int], Conceal] | None] = ContextVar("toolcrib_mcp_log", default=None)


@contextmanager
def bounded_log(lines: Counter[int], conceal: Conceal) -> Generator[None]:
    """Bound what is logged here and in the tasks that are started here; `lines` counts by level those of a connection.

    `conceal` takes the connection's credentials out of them. What other users of the SDK log stays as it is.
    """
    for name in LOGGERS:
        logging.getLogger(name).addFilter(_bounded)  # the same filter is added once
    before = _connection.set((lines, conceal))
    try:
        yield
    finally:
        _connection.reset(before)


def _bounded(record: logging.LogRecord) -> bool:
    connection = _connection.get()
    if connection is None:
        return True
    lines, conceal = connection
    lines[record.levelno] += 1
    number = lines[record.levelno]
    text = record.getMessage()
    if record.exc_info and record.exc_info[1] is not None:
        text = f"{text}: {record.exc_info[1]}"
    text = conceal(text)
    if number == MOST_LINES:
        level = record.levelname.lower()
        text = f"{on_one_line(text, LONGEST)} (more of this connection and the level {level} is not logged)"
    record.msg, record.args, record.exc_info = on_one_line(text, LONGEST + 60), (), None
    return number <= MOST_LINES
