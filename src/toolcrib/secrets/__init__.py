"""Secrets: kept in stores, named by references in calls, revealed at the last moment, masked wherever they return."""

from .patterns import PATTERNS, Pattern
from .redact import Redacted, Redactor, UnfitSecret, unfit
from .references import Reference, Revealed, check, references, reveal
from .stores import Command, Environment, Keyring, SecretError, SecretFile, SecretStore, Stores
from .stream import RedactedStream
from .variables import as_variables

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
