"""What a server's error says: its body, when to try again, where it points, without the key that it echoes."""

from __future__ import annotations

import math
import time
from collections.abc import Mapping
from email.utils import parsedate_to_datetime
from typing import Any
from urllib.parse import urlsplit

__all__ = ["SHORTEST_KEY", "body_of", "seconds_to_wait", "where_it_points", "without_key"]

SHORTEST_KEY = 8  # characters; what is shorter is a placeholder, and may be a word


def without_key(words: str, key: str) -> str:
    """The words without a key, also where its end was cut off."""
    start = key[: max(SHORTEST_KEY, len(key) // 2)]
    while (place := words.find(start)) >= 0:
        end = place + len(start)
        for letter in key[len(start) :]:
            if words[end : end + 1] != letter:
                break
            end += 1
        words = f"{words[:place]}[key]{words[end:]}"
    return words


def where_it_points(status: int, headers: Mapping[str, str]) -> str:
    """A hint about a redirect, which is not followed."""
    try:
        target = urlsplit(headers.get("location", ""))
    except ValueError:  # brackets that are no address
        return ""
    if not 300 <= status < 400 or not target.hostname:
        return ""
    place = f"{target.scheme}://{target.netloc.rpartition('@')[2]}"
    return f"it points to {place}, which is not followed: set base_url to where the server is"


def body_of(problem: Exception) -> Any:
    """What an exception of an SDK has of the server's answer."""
    body = getattr(problem, "body", None)
    return body if body else getattr(problem, "message", "") or str(problem)


def seconds_to_wait(headers: Mapping[str, str]) -> float | None:
    """The seconds to wait, from a header with seconds or a date; a date is compared with the server's own clock."""
    for name, divisor in (("retry-after-ms", 1000.0), ("retry-after", 1.0)):
        try:
            seconds = float(headers[name]) / divisor
        except (KeyError, ValueError):
            continue
        if math.isfinite(seconds):
            return max(0.0, seconds)
    until, now = (_moment(headers.get(name, "")) for name in ("retry-after", "date"))
    return None if until is None else max(0.0, until - (time.time() if now is None else now))


def _moment(date: str) -> float | None:
    """The Unix time of an HTTP date."""
    try:
        return parsedate_to_datetime(date).timestamp()
    except (TypeError, ValueError, IndexError, OverflowError):
        return None
