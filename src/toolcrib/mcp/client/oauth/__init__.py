"""Logging in to remote MCP servers: OAuth of the revisions 2025-11-25 and 2026-07-28.

`auth_for(server, store)` is what an HTTP client needs: it adds tokens, renews them ahead of their end, and answers 401
and 403; `stored_auth` gives it to a toolset. `login` and `logout` are what a person does once, `login_state` says how
things stand without asking anybody. Whose token a call has, where each user has one, is in `../identity.py`.

The SDK has such a flow of its own, `OAuthClientProvider`. Ours is another, not a wrapper, because these properties of
the SDK's flow are in its middle:

- It forgets when a token ends. After a restart an old token counts as valid, is refused, and a browser opens.
- It holds a lock while the request itself runs, so calls that answer with JSON run one after another.
- It opens a browser from within any request. A program without a person must get an error instead.
- Nothing stops two processes from spending the same refresh token, which ends the login of both.
- It compares and sends URLs after normalising them, and takes no tokens but Bearer ones.
- An exception within it ends the connection. Here a call that needs a login fails alone, with words.

| module | what it does |
| --- | --- |
| `settings.py` | what an operator may configure |
| `challenges.py` | reads 401 and 403 |
| `endpoints.py` | sends requests to metadata and token endpoints, through the network guard |
| `discovery.py` | finds the resource's and the authorization server's metadata, and checks them |
| `clients.py` | which client we are: registered by hand, a metadata document, or registered by ourselves |
| `grants.py` | asks the token endpoint; reads its answers; revokes |
| `dpop.py` | tokens that are bound to a key |
| `logins.py` | what is stored of a login, in a file or keyring, and its lock between processes |
| `tokens.py` | the token that counts now: renewed once for all tasks and processes |
| `http_auth.py` | the flow of one HTTP request |
| `browser.py` | a person logs in: loopback redirect, or a pasted address |
| `login.py` | what programs and the command line call |
"""

from typing import TYPE_CHECKING

from toolcrib.lazy_names import lazy_names

if TYPE_CHECKING:
    from toolcrib.mcp.client.oauth.browser import Authorizer, Callback, LoopbackAuthorizer, PasteAuthorizer
    from toolcrib.mcp.client.oauth.login import (
        LoginState,
        auth_for,
        login,
        login_state,
        logout,
        settings_of,
        stored_auth,
    )
    from toolcrib.mcp.client.oauth.logins import Login, LoginStore
    from toolcrib.mcp.client.oauth.problems import NeedsLogin, OAuthError
    from toolcrib.mcp.client.oauth.settings import OAuthSettings

__all__ = [
    "Authorizer",
    "Callback",
    "Login",
    "LoginState",
    "LoginStore",
    "LoopbackAuthorizer",
    "NeedsLogin",
    "OAuthError",
    "OAuthSettings",
    "PasteAuthorizer",
    "auth_for",
    "login",
    "login_state",
    "logout",
    "settings_of",
    "stored_auth",
]

__getattr__ = lazy_names(
    __name__,
    {
        "browser": ("Authorizer", "LoopbackAuthorizer", "PasteAuthorizer", "Callback"),
        "login": ("LoginState", "auth_for", "login", "login_state", "logout", "settings_of", "stored_auth"),
        "logins": ("Login", "LoginStore"),
        "problems": ("NeedsLogin", "OAuthError"),
        "settings": ("OAuthSettings",),
    },
)
