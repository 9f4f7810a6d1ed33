"""The fingerprint that binds an approval to exactly one tool and its arguments."""

from __future__ import annotations

from typing import Any

from toolcrib.json_text.encoder import json_encoder

__all__ = ["fingerprint"]

CANONICAL = json_encoder(ascii_only=False, sort_keys=True, separators=(",", ":"))


def fingerprint(tool_identity: str, arguments: Any) -> str:
    """The sha256 of a tool's identity and the canonical JSON of its validated arguments."""
    import hashlib

    return hashlib.sha256(
        f"{tool_identity}\n{CANONICAL(arguments)}".encode("utf-8", "surrogatepass")
    ).hexdigest()
