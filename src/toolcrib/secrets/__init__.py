"""Secrets: kept in stores, named by references in calls, revealed at the last moment, and masked wherever they come
back.

| what | where |
| --- | --- |
| where secrets are kept | `stores.py`, `secret_file.py`, `system_keyring.py`, `secret_command.py` |
| references in arguments, also of shell commands | `references.py`, `variables.py` |
| masks known values | `redact.py`, `stream.py`, `secret_finder.py`, `encodings.py`, `decodings.py`, `byte_search.py` |
| masks tokens in known formats | `patterns.py`, `pattern_search.py` |
| the secrets of a toolbox, in calls, results and events | `masking.py`, `events.py` |
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from toolcrib.lazy_names import lazy_names

if TYPE_CHECKING:
    from toolcrib.secrets.patterns import PATTERNS, TokenPattern
    from toolcrib.secrets.redact import Redacted, Redactor, UnfitSecret, why_unusable
    from toolcrib.secrets.references import (
        Revealed,
        SecretReference,
        check_references,
        find_references,
        reveal,
    )
    from toolcrib.secrets.secret_command import SecretCommand
    from toolcrib.secrets.secret_file import SecretFile
    from toolcrib.secrets.stores import Environment, SecretError, SecretStore, Stores
    from toolcrib.secrets.stream import RedactedStream
    from toolcrib.secrets.system_keyring import Keyring
    from toolcrib.secrets.variables import as_variables

__all__ = [
    "PATTERNS",
    "Environment",
    "Keyring",
    "Redacted",
    "RedactedStream",
    "Redactor",
    "Revealed",
    "SecretCommand",
    "SecretError",
    "SecretFile",
    "SecretReference",
    "SecretStore",
    "Stores",
    "TokenPattern",
    "UnfitSecret",
    "as_variables",
    "check_references",
    "find_references",
    "reveal",
    "why_unusable",
]

# Who needs one part, such as the formats of tokens, does not wait for the others.
__getattr__ = lazy_names(
    __name__,
    {
        "system_keyring": ("Keyring",),
        "patterns": ("PATTERNS", "TokenPattern"),
        "redact": ("Redacted", "Redactor", "UnfitSecret", "why_unusable"),
        "references": ("Revealed", "SecretReference", "check_references", "find_references", "reveal"),
        "secret_command": ("SecretCommand",),
        "secret_file": ("SecretFile",),
        "stores": ("Environment", "SecretError", "SecretStore", "Stores"),
        "stream": ("RedactedStream",),
        "variables": ("as_variables",),
    },
)
