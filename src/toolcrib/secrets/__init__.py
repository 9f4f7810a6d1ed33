"""Secrets: kept in stores, named by references in calls, revealed at the last moment, masked wherever they return."""

from toolcrib.secrets.patterns import PATTERNS, TokenPattern
from toolcrib.secrets.redact import Redacted, Redactor, UnfitSecret, unfit
from toolcrib.secrets.references import Revealed, SecretReference, check, references, reveal
from toolcrib.secrets.stores import (
    Environment,
    Keyring,
    SecretCommand,
    SecretError,
    SecretFile,
    SecretStore,
    Stores,
)
from toolcrib.secrets.stream import RedactedStream
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
    "check",
    "references",
    "reveal",
    "unfit",
]
