"""What is stored of a login: tokens with their absolute end, the client, the issuer. In a private file or the keyring.

Logins have a place of their own, apart from the secrets that tools may be given by reference: no model can name them.
Each is stored under a hash of server, issuer and client as they are configured, and names the issuer that it is bound
to: no token and no client of one issuer is ever sent to another.

One lock for each login, between tasks and processes, is held while a refresh token is spent, until the new one is
stored.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import os
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import asdict
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from toolcrib.call import FORMAT
from toolcrib.dataclass import dataclass, field
from toolcrib.mcp.client.oauth.clients import Client
from toolcrib.mcp.client.oauth.discovery import IssuerMetadata, canonical_url
from toolcrib.mcp.client.oauth.grants import TokenSet
from toolcrib.mcp.client.oauth.problems import OAuthError
from toolcrib.mcp.client.oauth.settings import OAuthSettings
from toolcrib.private_files import OPEN_FLAGS, close_locked, lock, state_folder
from toolcrib.secrets.secret_file import SecretFile
from toolcrib.secrets.stores import SecretError, SecretStore

if TYPE_CHECKING:
    from pydantic import TypeAdapter

__all__ = ["ChangeableStore", "Login", "LoginStore", "login_name"]

LOCK_RETRY = 0.02  # seconds between two tries to take the lock of a login


class ChangeableStore(SecretStore, Protocol):
    """A store of secrets that can be changed, such as `SecretFile` and `Keyring`."""

    def set(self, name: str, value: str) -> None: ...
    def remove(self, name: str) -> bool: ...


@dataclass(frozen=True, slots=True)
class Login:
    """A login at one MCP server. Without a token, `problem` says why a person has to log in again."""

    server_url: str
    resource: str
    issuer: IssuerMetadata
    client: Client
    token: TokenSet | None = None
    dpop_key: str = field(default="", repr=False)
    problem: str = ""
    wanted_scopes: tuple[str, ...] = ()

    def to_json(self) -> str:
        return json.dumps({"format": FORMAT, **asdict(self)})

    @classmethod
    def from_json(cls, text: str) -> Login | None:
        """The login in a stored text; None if it cannot be read, which is as if nobody had logged in."""
        try:
            data = json.loads(text)
            if data.pop("format") != FORMAT:
                return None
            return _adapter().validate_json(json.dumps(data), strict=True)
        except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
            return None


@cache
def _adapter() -> TypeAdapter[Login]:
    from pydantic import TypeAdapter

    return TypeAdapter(Login)


def login_name(server_url: str, settings: OAuthSettings, profile: str = "") -> str:
    """The name under which a login is stored. `profile` tells several logins at one server apart."""
    client = settings.client_id or settings.client_metadata_url
    parts = (canonical_url(server_url), settings.issuer, settings.grant, client, profile)
    return "mcp." + hashlib.sha256(json.dumps(parts).encode()).hexdigest()[:32]


class LoginStore:
    """Where logins are: `LoginStore.of_user()` is the user's file; `LoginStore(Keyring("toolcrib mcp"))` the keyring.

    `locks` is a folder for files that processes lock; they contain nothing.
    """

    def __init__(self, secrets: ChangeableStore, *, locks: Path | None = None) -> None:
        self._secrets = secrets
        self._locks = locks or state_folder() / "mcp-locks"

    @classmethod
    def of_user(cls, *, keyring: bool = False) -> LoginStore:
        """The logins of this user: in a file that only the user may read, or in the system's keyring."""
        if keyring:
            from toolcrib.secrets.system_keyring import Keyring

            return cls(Keyring("toolcrib mcp"))
        return cls(SecretFile(state_folder() / "mcp-logins.json"))

    async def read(self, name: str) -> Login | None:
        """A stored login; None if there is none. Raises OAuthError if the store cannot be used."""
        text = await self._use(self._secrets.get, name)
        return Login.from_json(text) if text else None

    async def write(self, name: str, login: Login) -> None:
        """Store a login in place of an earlier one. Raises OAuthError."""
        await self._use(self._secrets.set, name, login.to_json())

    async def remove(self, name: str) -> bool:
        """Remove a login. Returns whether there was one. Raises OAuthError."""
        return bool(await self._use(self._secrets.remove, name))

    async def _use(self, method: Any, *arguments: str) -> Any:
        try:
            # A keyring may ask its daemon, which may ask a person.
            return await asyncio.to_thread(method, *arguments)
        except SecretError as problem:
            raise OAuthError(f"logins cannot be read or stored: {problem}") from None

    @asynccontextmanager
    async def locked(self, name: str) -> AsyncGenerator[None]:
        """Hold the lock of one login, which other processes and threads wait for."""
        try:
            fd = await self._open_locked(name)
        except OSError as problem:
            raise OAuthError(f"{self._locks} cannot be used for locks: {problem.strerror}") from None
        try:
            yield
        finally:
            close_locked(fd)

    async def _open_locked(self, name: str) -> int:
        """As `open_locked` does. No thread waits: it would keep the program alive, and lock for a cancelled caller."""
        self._locks.mkdir(parents=True, exist_ok=True, mode=0o700)
        fd = os.open(self._locks / name, os.O_RDWR | os.O_CREAT | OPEN_FLAGS, 0o600)
        try:
            while not lock(fd, wait=False):  # noqa: ASYNC110 - no event says when it is free
                await asyncio.sleep(LOCK_RETRY)
        except BaseException:
            os.close(fd)
            raise
        return fd
