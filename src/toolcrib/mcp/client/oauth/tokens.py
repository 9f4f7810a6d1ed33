"""The token of one MCP server that counts now, for all tasks and processes that use it.

| what happens | what is done |
| --- | --- |
| a token ends soon | it is refreshed once, whoever asks first; the others wait for that |
| another process refreshed it | the stored token is taken, no request is made |
| a server refuses a token with 401 | the same, then a login where nobody is needed, or an authorizer is there |
| a server wants more scopes with 403 | a login with the scopes of before and the new ones, once for each, a few times |
| the issuer refuses the refresh token | the login is marked: a person has to log in, nothing is tried again |
| the issuer cannot be reached | the old token is used until its end; then an error, and the login stays |

A token that comes with a new refresh token is stored before it is used, because the old refresh token is spent. Where
it cannot be stored, this process uses it, tries again to store it, and says so in the log.
"""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import Callable
from contextlib import AsyncExitStack
from typing import Protocol
from urllib.parse import urlsplit

from toolcrib.dataclass import dataclass, field, replace
from toolcrib.event_loops import to_its_end
from toolcrib.mcp.client.oauth.browser import Authorizer, authorization_code
from toolcrib.mcp.client.oauth.challenges import Challenge
from toolcrib.mcp.client.oauth.clients import Client, choose_client, configured_client
from toolcrib.mcp.client.oauth.discovery import Discovered, discover, same_issuer
from toolcrib.mcp.client.oauth.dpop import ALGORITHM, DpopKey
from toolcrib.mcp.client.oauth.endpoints import Endpoints, HttpFactory
from toolcrib.mcp.client.oauth.grants import TokenEndpoint, TokenRefused, TokenSet, workload_assertion
from toolcrib.mcp.client.oauth.logins import Login, LoginStore, login_name
from toolcrib.mcp.client.oauth.problems import NeedsLogin, OAuthError
from toolcrib.mcp.client.oauth.settings import OAuthSettings
from toolcrib.net.guard import HostResolver, system_resolver

__all__ = ["LoginMemory", "Protected", "TokenSource"]

MAX_WIDENED = 5  # logins with more scopes that a server gets while a program runs
BACK_OFF = 30.0  # seconds in which a login that failed before a person was asked is not tried again


class Protected(Protocol):
    """What is needed of a configured server: `McpServer` has it."""

    @property
    def name(self) -> str: ...
    @property
    def url(self) -> str: ...


@dataclass(slots=True)
class LoginMemory:
    """What the token sources of one login remember, so that they do not repeat what has failed."""

    login: Login | None = None
    unproved: str = ""  # the access token that was issued last, until the server accepts it
    gave_up: OAuthError | None = None  # why the login with a person failed, or the token that it gave
    gave_up_until: float = math.inf
    failed_until: float = 0.0
    failure: OAuthError | None = None
    unsaved: bool = False  # the login could not be stored
    widened: set[frozenset[str]] = field(default_factory=set[frozenset[str]])
    dpop: DpopKey | None = None


class TokenSource:
    """Gives, renews and replaces the token of one server. Safe for any number of tasks of one loop.

    `authorizer` lets a person log in when nothing else helps; without it that is `NeedsLogin`. `now` is the time in
    seconds since 1970. `http` makes the clients for the authorization server in place of guarded ones. `memories` holds
    the memory of each login by its key. Sources of a program share it, as each connection has a source of its own.
    """

    def __init__(
        self,
        server: Protected,
        settings: OAuthSettings,
        store: LoginStore,
        *,
        profile: str = "",
        authorizer: Authorizer | None = None,
        http: HttpFactory | None = None,
        resolver: HostResolver = system_resolver,
        now: Callable[[], float] = time.time,
        memories: dict[str, LoginMemory] | None = None,
    ) -> None:
        self.server = server
        self.settings = settings
        self.key = login_name(server.url, settings, profile)
        self.endpoints = Endpoints(server.url, issuer=settings.issuer, http=http, resolver=resolver)
        self._store = store
        self._authorizer = authorizer
        self._now = now
        self._fixed_port = urlsplit(settings.redirect_uri).port != 0
        self._lock = asyncio.Lock()
        self._memory = ({} if memories is None else memories).setdefault(self.key, LoginMemory())
        self._has_read = False  # whether this source has read the store; the shared memory may be old

    async def current(self) -> Login | None:
        """The login whose token to send; None if there is no usable token yet. Raises OAuthError."""
        login = self._memory.login
        if self._has_read and login is not None and login.token is not None:
            refreshing = self._lock.locked() and not login.token.expired(self._now())
            if refreshing or not login.token.due(self._now()):
                return login
        async with self._lock:
            login = await self._stored()
            if login is not None and login.token is not None and login.token.due(self._now()):
                login = await self._refreshed(login, login.token)
            if login is not None:
                self._dpop_key(login)  # raises if the key cannot be read
            return _with_another_token(login, None)

    def accepted(self, login: Login) -> None:
        """The server accepted a login's token."""
        if login.token is not None and login.token.access_token == self._memory.unproved:
            self._memory.unproved = ""

    def proof(self, login: Login, method: str, url: str) -> str:
        """A DPoP proof for a request with this login's token."""
        assert login.token is not None
        key = self._dpop_key(login)
        return "" if key is None else key.proof(method, url, self._now(), login.token.access_token)

    def take_nonce(self, login: Login, url: str, nonce: str) -> bool:
        """Remember a nonce for proofs. Returns whether it is new."""
        key = self._dpop_key(login)
        return key is not None and key.take_nonce(url, nonce)

    async def after_401(self, rejected: TokenSet | None, challenge: Challenge, *, renewed: bool) -> Login:
        """The login to repeat a request with, after a server refused a token or wanted one.

        `renewed` says that this request already had a renewed token. Raises NeedsLogin or OAuthError.
        """
        async with self._lock:
            login = await self._stored()
            other = _with_another_token(login, rejected)
            if other is not None and not self._due(other):
                return other
            if login is not None and login.token is not None and not renewed and not self._is_new(rejected):
                other = _with_another_token(await self._refreshed(login, login.token), rejected)
                if other is not None:
                    return other
                login = self._memory.login  # without a token it still has the issuer, and the reason
            return await self._new_login(login, challenge, (), rejected)

    async def after_403(self, used: TokenSet | None, challenge: Challenge) -> Login:
        """The same after a server wanted more scopes: those of before are asked for again, with the new ones."""
        async with self._lock:
            login = await self._stored()
            held = () if login is None or login.token is None else login.token.scopes
            other = _with_another_token(login, used)
            if other is not None and set(challenge.scopes) <= set(held):
                return other
            wanted = frozenset(challenge.scopes)
            if wanted in self._memory.widened:
                raise OAuthError(
                    f"{self.server.name} wants the scopes {' '.join(challenge.scopes) or '(it names none)'}, "
                    f"which the login did not get"
                )
            if not self.settings.interactive and self.settings.scopes:
                raise OAuthError(
                    f"{self.server.name} wants the scopes {' '.join(challenge.scopes) or '(it names none)'}, "
                    f"and its settings allow only {' '.join(self.settings.scopes)}"
                )
            if len(self._memory.widened) == MAX_WIDENED:
                raise OAuthError(
                    f"{self.server.name} wants more scopes again and again: no login was tried for "
                    f"{' '.join(challenge.scopes)}"
                )
            self._memory.widened.add(wanted)
            return await self._new_login(login, challenge, held, None)

    async def log_in(self, challenge: Challenge, scopes: tuple[str, ...] = ()) -> Login:
        """Log in anew, whatever is stored; `scopes` are asked for besides those that the server proposes."""
        async with self._lock:
            login = await self._stored()
            before = (*scopes, *(login.wanted_scopes if login else ()))
            self._memory = LoginMemory(login=login)
            return await self._new_login(login, challenge, before, None)

    async def log_out(self) -> bool | None:
        """Revoke and forget the login. None if there was none; else whether the issuer revoked the tokens."""
        async with self._lock, self._store.locked(self.key):
            login = await self._store.read(self.key)
            await self._store.remove(self.key)
            self._memory = LoginMemory()
            if login is None:
                return None
            if login.token is None:
                return False
            try:
                return await self._token_endpoint(login).revoke(login.token, self._now())
            except OAuthError:
                return False

    async def _stored(self) -> Login | None:
        """The stored login, which another process may have changed."""
        self._has_read = True
        if self._memory.unsaved and self._memory.login is not None:
            return await self._keep(self._memory.login)
        login = await self._store.read(self.key)
        if login != self._memory.login:
            self._memory.login = login
            if login is not None and login.token is not None:
                self._memory.gave_up = None
        return login

    async def _refreshed(self, login: Login, token: TokenSet) -> Login | None:
        """The login with a new token. The old one if the issuer cannot be reached before its end."""
        async with AsyncExitStack() as lock:
            await lock.enter_async_context(self._store.locked(self.key))
            latest = await self._stored()
            if latest is not None and latest.token is not None and latest.token != token:
                return latest  # another process was first
            if latest is None or latest.token is None:
                return None
            if not token.refresh_token:
                return await self._ended(latest) if token.expired(self._now()) else latest
            memory = self._memory
            if memory.failure is not None and self._now() < memory.failed_until:
                if token.expired(self._now()):
                    raise memory.failure
                return latest
            # A refresh token may work only once, and the answer has the next one: no cancellation may lose it, and
            # nobody else may begin before the new one is stored.
            return await to_its_end(self._renewed(latest, token, lock.pop_all()))

    async def _renewed(self, login: Login, token: TokenSet, lock: AsyncExitStack) -> Login:
        """Renews the token of a login, stores it and releases the lock.

        Returns the same login if that fails while its token holds.
        """
        async with lock:
            return await self._with_new_token(login, token)

    async def _with_new_token(self, login: Login, token: TokenSet) -> Login:
        try:
            fresh = await self._token_endpoint(login).refresh(token, self._now())
        except TokenRefused as problem:
            return await self._marked(login, problem)
        except OAuthError as problem:
            self._memory.failure, self._memory.failed_until = problem, self._now() + BACK_OFF
            if token.expired(self._now()):
                raise
            return login
        self._memory.unproved = fresh.access_token
        return await self._keep(replace(login, token=fresh, problem=""))

    async def _ended(self, login: Login) -> Login | None:
        """The login, marked as ended since its token cannot be refreshed; None for a program, which logs in anew."""
        if not self.settings.interactive:
            return None
        return await self._keep(replace(login, token=None, problem="the login has ended"))

    async def _marked(self, login: Login, refused: TokenRefused) -> Login:
        """The login without its tokens, so that nobody tries them again; without its client if that is unknown."""
        client = login.client
        if refused.code in ("invalid_client", "unauthorized_client") and client.registered:
            client = Client("")
        return await self._keep(replace(login, token=None, client=client, problem=str(refused)))

    async def _new_login(
        self, login: Login | None, challenge: Challenge, scopes: tuple[str, ...], rejected: TokenSet | None
    ) -> Login:
        if self.settings.interactive:
            return await self._login_by_person(login, challenge, scopes, rejected)
        if self._memory.failure is not None and self._now() < self._memory.failed_until:
            raise self._memory.failure
        if self._is_new(rejected):
            raise OAuthError(f"{self.server.name} refuses the token that was issued for it")
        try:
            return await self._login_by_program(login, challenge, scopes)
        except OAuthError as problem:
            self._memory.failure, self._memory.failed_until = problem, self._now() + BACK_OFF
            raise

    async def _login_by_person(
        self, login: Login | None, challenge: Challenge, scopes: tuple[str, ...], rejected: TokenSet | None
    ) -> Login:
        memory = self._memory
        if self._is_new(rejected) and self._authorizer is not None:
            memory.gave_up = OAuthError(f"{self.server.name} refuses the token that was issued for it")
            memory.gave_up_until = math.inf
        if memory.gave_up is not None and self._now() < memory.gave_up_until:
            raise memory.gave_up
        if self._authorizer is None:
            raise await self._needs_login(login, challenge, scopes)
        asks_again = self._now() + BACK_OFF
        try:
            discovered = await self._discovered(login, challenge)
            uri = self._redirect_uri(login)
            async with self._authorizer.opened(uri, fixed=self._fixed_port) as redirect:
                asked = self._scopes(discovered, challenge, scopes)
                known = (
                    login.client
                    if login and same_issuer(login.issuer.issuer, discovered.issuer.issuer)
                    else None
                )
                client = await choose_client(
                    self.endpoints, discovered.issuer, self.settings, redirect.uri, asked, known, self._now()
                )
                fresh = Login(self.server.url, discovered.resource, discovered.issuer, client)
                fresh = replace(fresh, dpop_key=self._new_dpop_key(discovered))
                asks_again = math.inf  # a person is asked now: not again if that fails
                code, verifier = await authorization_code(
                    redirect,
                    fresh.issuer,
                    client,
                    fresh.resource,
                    asked,
                    assume_pkce=self.settings.assume_pkce,
                )
                token = await self._token_endpoint(fresh).exchange_code(
                    code, verifier, redirect.uri, asked, self._now()
                )
        except OAuthError as problem:
            memory.gave_up, memory.gave_up_until = problem, asks_again
            raise
        return await self._adopt(replace(fresh, token=token))

    async def _login_by_program(
        self, login: Login | None, challenge: Challenge, scopes: tuple[str, ...]
    ) -> Login:
        discovered = await self._discovered(login, challenge)
        issuer = discovered.issuer
        if (
            login is not None
            and not self.settings.issuer
            and not same_issuer(login.issuer.issuer, issuer.issuer)
        ):
            raise OAuthError(
                f"{self.server.name} now names the authorization server {issuer.issuer} in place of "
                f"{login.issuer.issuer}: its credentials are not sent there. If that is right, set issuer in the "
                f"settings of the server, or log out"
            )
        client = configured_client(self.settings, issuer) or Client("")
        fresh = Login(self.server.url, discovered.resource, issuer, client)
        fresh = replace(fresh, dpop_key=self._new_dpop_key(discovered))
        asked = self._scopes(discovered, challenge, scopes)
        endpoint = self._token_endpoint(fresh)
        if self.settings.grant == "client_credentials":
            token = await endpoint.client_credentials(asked, self._now())
        else:
            assertion = await workload_assertion(self.settings, issuer.issuer, fresh.resource)
            token = await endpoint.jwt_bearer(assertion, asked, self._now())
        return await self._adopt(replace(fresh, token=token))

    async def _discovered(self, login: Login | None, challenge: Challenge) -> Discovered:
        bound_to = login.issuer.issuer if login is not None else ""
        return await discover(self.endpoints, self.server.url, challenge, self.settings, bound_to)

    def _scopes(
        self, discovered: Discovered, challenge: Challenge, before: tuple[str, ...]
    ) -> tuple[str, ...]:
        """What to ask for: what was granted or wanted before, what the operator or the server says, and a refresh."""
        said = self.settings.scopes or discovered.scopes or ()
        missing = challenge.scopes if challenge.wants_scopes else ()
        asked = list(dict.fromkeys((*before, *said, *missing)))
        offered = discovered.issuer.scopes or ()
        if (
            asked
            and self.settings.interactive
            and "offline_access" in offered
            and "offline_access" not in asked
        ):
            asked.append("offline_access")
        return tuple(asked)

    def _due(self, login: Login) -> bool:
        """Whether a login has no token, or one that should be renewed."""
        return login.token is None or login.token.due(self._now())

    def _is_new(self, rejected: TokenSet | None) -> bool:
        """Whether a refused token is one that we were just given: another one would be refused, too."""
        return rejected is not None and rejected.access_token == self._memory.unproved

    def _redirect_uri(self, login: Login | None) -> str:
        """The one of the settings; with any port, rather the one that our client is registered with."""
        known = login.client.redirect_uri if login is not None and login.client.registered else ""
        return known if known and not self._fixed_port else self.settings.redirect_uri

    async def _needs_login(
        self, login: Login | None, challenge: Challenge, scopes: tuple[str, ...]
    ) -> NeedsLogin:
        """The error that tells a person to log in. Scopes that the server wants are stored: `login` asks for them."""
        name = self.server.name
        why = f" ({login.problem})" if login is not None and login.problem else ""
        if challenge.wants_scopes:
            why = f" with the scopes {' '.join(challenge.scopes)}"
            if login is not None:
                wanted = tuple(dict.fromkeys((*scopes, *challenge.scopes)))
                await self._keep(replace(login, wanted_scopes=wanted))
        return NeedsLogin(f"the MCP server {name} needs a login{why}: run toolcrib mcp login {name}")

    async def _adopt(self, login: Login) -> Login:
        """Store a new login, then use it."""
        async with self._store.locked(self.key):
            await self._keep(login)
        assert login.token is not None
        self._memory.unproved = login.token.access_token
        self._memory.gave_up = self._memory.failure = None
        return login

    async def _keep(self, login: Login) -> Login:
        """Store a login. Where that fails it lives on in memory: the refresh token that is stored is spent by now."""
        self._memory.login, self._memory.unsaved = login, True
        try:
            await self._store.write(self.key, login)
        except OAuthError as problem:
            if login.token is None:
                raise
            import logging

            logging.getLogger("toolcrib").warning(
                "the login at the MCP server %r ends with this process: %s", self.server.name, problem
            )
        else:
            self._memory.unsaved = False
        return login

    def _token_endpoint(self, login: Login) -> TokenEndpoint:
        client = login.client
        if self.settings.client_id:  # the secret may have been replaced since
            client = replace(client, client_secret=self.settings.client_secret)
        return TokenEndpoint(
            self.endpoints, login.issuer, client, self.settings, login.resource, self._dpop_key(login)
        )

    def _new_dpop_key(self, discovered: Discovered) -> str:
        wanted = discovered.dpop if self.settings.dpop is None else self.settings.dpop
        if not wanted:
            return ""
        if ALGORITHM not in discovered.issuer.dpop:
            raise OAuthError(
                f"{discovered.issuer.issuer} does not issue tokens bound to a key with {ALGORITHM}"
            )
        return DpopKey.new().pem

    def _dpop_key(self, login: Login) -> DpopKey | None:
        if not login.dpop_key:
            return None
        if self._memory.dpop is None or self._memory.dpop.pem != login.dpop_key:
            try:
                self._memory.dpop = DpopKey(login.dpop_key)
            except ValueError:
                words = (
                    f"the key of the login at {self.server.name} cannot be read: log out, and log in again"
                )
                raise OAuthError(words) from None
        return self._memory.dpop


def _with_another_token(login: Login | None, refused: TokenSet | None) -> Login | None:
    """The login, if it has a token that is not the refused one."""
    if login is None or login.token is None:
        return None
    if refused is not None and login.token.access_token == refused.access_token:
        return None
    return login
