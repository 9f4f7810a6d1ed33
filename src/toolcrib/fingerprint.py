"""The fingerprint that binds an approval to exactly one tool and its arguments."""

from __future__ import annotations

import json
from typing import Any

__all__ = ["fingerprint"]

CANONICAL = json.JSONEncoder(sort_keys=True, separators=(",", ":"), ensure_ascii=False, default=str).encode


def fingerprint(tool_identity: str, arguments: Any) -> str:
    """The sha256 of a tool's identity and the canonical JSON of its validated arguments."""
    import hashlib

    return hashlib.sha256(
        f"{tool_identity}\n{CANONICAL(arguments)}".encode("utf-8", "surrogatepass")
    ).hexdigest()
