"""Secrets: kept in stores, named by references in calls, revealed at the last moment, masked wherever they return."""

from toolcrib.secrets.patterns import PATTERNS, Pattern
from toolcrib.secrets.redact import Redacted, Redactor, UnfitSecret, unfit
from toolcrib.secrets.references import Reference, Revealed, check, references, reveal
from toolcrib.secrets.stores import (
    Command,
    Environment,
    Keyring,
    SecretError,
    SecretFile,
    SecretStore,
    Stores,
)
from toolcrib.secrets.stream import RedactedStream
from toolcrib.secrets.variables import as_variables

__all__ = [
    "PATTERNS",
    "Command",
    "Environment",
    "Keyring",
    "Pattern",
    "Redacted",
    "RedactedStream",
    "Redactor",
    "Reference",
    "Revealed",
    "SecretError",
    "SecretFile",
    "SecretStore",
    "Stores",
    "UnfitSecret",
    "as_variables",
    "check",
    "references",
    "reveal",
    "unfit",
]
