"""Hides values that are credentials by the name of their parameter."""

from __future__ import annotations

import functools
import json
import re
from itertools import pairwise
from typing import Any
from unicodedata import category, normalize

from toolcrib.visible import on_one_line

__all__ = [
    "arguments_on_one_line",
    "foreign_credential",
    "is_credential",
    "names_credential",
    "without_credentials",
]

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
# Those whose values may be numbers.
NUMBERS = frozenset(
    {"password", "passwd", "passphrase", "passcode", "pwd", "pin", "otp", "totp", "cvv", "cvc"}
)
# Words for a credential in other languages.
ELSEWHERE = (
    "Passwort", "Kennwort", "Geheimzahl", "mot de passe", "code secret", "contraseña",
    "clave secreta", "senha", "palavra passe", "wachtwoord", "lösenord", "passord",
    "adgangskode", "salasana", "hasło", "heslo", "jelszó", "şifre", "lozinka", "geslo",
    "mật khẩu", "kata sandi", "пароль", "парола", "κωδικός πρόσβασης", "密码", "密碼", "口令",
    "验证码", "驗證碼", "パスワード", "暗証番号", "認証コード", "비밀번호", "인증번호",
    "\u0643\u0644\u0645\u0629 \u0627\u0644\u0645\u0631\u0648\u0631",
    "\u0643\u0644\u0645\u0629 \u0627\u0644\u0633\u0631",
    "\u0631\u0645\u0632 \u0639\u0628\u0648\u0631", "\u05e1\u05d9\u05e1\u05de\u05d4",
    "पासवर्ड", "รหัสผ่าน",
)  # fmt: skip
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
    if isinstance(value, str):
        hidden = value and not value.startswith("<secret_ref:") and is_credential(name)
    else:
        hidden = (
            isinstance(value, int) and not isinstance(value, bool) and not NUMBERS.isdisjoint(_words(name))
        )
    return f"(hidden, {len(str(value)):,} characters)" if hidden else value


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
    if foreign_credential(name):
        return True
    words = _words(name)
    keys = any(one in KINDS_OF_KEY and other in ("key", "keys") for one, other in pairwise(words))
    return keys or not CREDENTIALS.isdisjoint(words) or any(word.endswith(RUN_TOGETHER) for word in words)


def foreign_credential(text: str) -> str:
    """The first word for a credential in another language that a name or a text holds, or ""."""
    plain = re.sub(r"[\W_]+", " ", CAMEL.sub("_", _without_accents(text))).lower()
    found = _elsewhere().search(plain)
    return found[0] if found else ""


def _words(name: str) -> list[str]:
    """The words of a name; none where it only tells something about a credential."""
    plain = CAMEL.sub("_", name if name.isascii() else _without_accents(name)).lower()
    words = [word for word in re.split(r"[^a-z0-9]+", plain) if word]
    about = not words or words[-1] in ABOUT_CREDENTIALS or words[0] in ("max", "min", "num")
    return [] if about else words


def _without_accents(text: str) -> str:
    """A text without accents, and its wide letters as ordinary ones."""
    if text.isascii():
        return text
    return "".join(char for char in normalize("NFKD", text) if category(char) != "Mn")


@functools.cache
def _elsewhere() -> re.Pattern[str]:
    """An expression for `ELSEWHERE`; a short word counts only where it stands by itself."""
    words = [_without_accents(word).lower() for word in ELSEWHERE]
    return re.compile(
        "|".join(rf"\b{word}\b" if word.isascii() and len(word) < 7 else word for word in words)
    )
