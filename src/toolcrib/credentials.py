"""Hides values that are credentials by the name of their parameter."""

from __future__ import annotations

import json
import re
from itertools import pairwise
from typing import Any

from toolcrib.visible import on_one_line

__all__ = ["arguments_on_one_line", "is_credential", "names_credential", "without_credentials"]

# Words in the names of parameters whose value is a credential.
CREDENTIALS = frozenset(
    {
        "password", "passwd", "passphrase", "passcode", "pwd", "secret", "secrets", "token", "tokens", "apikey",
        "credential", "credentials", "bearer", "auth", "authorization", "authorisation", "cookie", "cookies", "jwt",
        "pin", "otp", "totp", "cvv", "cvc", "pass", "passkey",
    }
)  # fmt: skip
KINDS_OF_KEY = frozenset(
    {"api", "private", "access", "signing", "encryption", "account", "ssh", "gpg", "master"}
)
# Words at the end of names that only tell something about a credential, such as `token_count`.
ABOUT_CREDENTIALS = frozenset(
    {
        "count", "limit", "name", "names", "path", "file", "dir", "folder", "url", "uri", "id", "type", "kind", "mode",
        "method", "policy", "length", "size", "max", "min", "expires", "expiry", "ttl", "scheme", "required", "enabled",
    }
)  # fmt: skip
# Ends of words that are run together with what stands before them: `pgpassword`, `authtoken`.
RUN_TOGETHER = (
    "password",
    "passwd",
    "passphrase",
    "passcode",
    "secret",
    "credential",
    "credentials",
    "apikey",
    "token",
)
CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")  # dbPassword, JWTToken


def without_credentials(value: Any, name: str = "") -> Any:
    """JSON data in which the texts under the names of credentials are hidden.

    >>> without_credentials({"user": "ann", "login": {"api_key": "abc"}, "max_tokens": 5})
    {'user': 'ann', 'login': {'api_key': '(hidden, 3 characters)'}, 'max_tokens': 5}
    """
    if isinstance(value, dict):
        return {key: without_credentials(item, str(key)) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [without_credentials(item, name) for item in value]
    hidden = isinstance(value, str) and value and not value.startswith("<secret_ref:") and is_credential(name)
    return f"(hidden, {len(value):,} characters)" if hidden else value


def arguments_on_one_line(arguments: Any, limit: int = 200) -> str:
    """Arguments as JSON on one line, without credentials, cut after `limit` characters."""
    return on_one_line(json.dumps(without_credentials(arguments), ensure_ascii=False, default=str), limit)


def names_credential(variable: str) -> bool:
    """Whether the name of a variable of the environment says that its value is a credential; in doubt it does.

    >>> [name for name in ("STRIPE_KEY", "GH_TOKEN", "PGPASSWORD", "NODE_ENV") if names_credential(name)]
    ['STRIPE_KEY', 'GH_TOKEN', 'PGPASSWORD']
    """
    words = re.split(r"[^a-z0-9]+", variable.lower())
    return any(word in CREDENTIALS or word.endswith((*RUN_TOGETHER, "key", "keys")) for word in words)


def is_credential(name: str) -> bool:
    """Whether a name says that its value is a credential."""
    words = [word for word in re.split(r"[^a-z0-9]+", CAMEL.sub("_", name).lower()) if word]
    if not words or words[-1] in ABOUT_CREDENTIALS or words[0] in ("max", "min", "num"):
        return False
    keys = any(one in KINDS_OF_KEY and other in ("key", "keys") for one, other in pairwise(words))
    return keys or not CREDENTIALS.isdisjoint(words) or any(word.endswith(RUN_TOGETHER) for word in words)
