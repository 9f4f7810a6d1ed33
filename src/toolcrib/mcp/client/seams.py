"""What the parts of the client are to each other: the protocols between a connection, its server and a call.

A toolset has a handle for each server (`RemoteServer`), a handle has at most one connection (`RemoteConnection`), and a
call of a tool is made by `call_remote` in `calling.py`. What a server asks of us while a call runs goes to the
`RequestHandlers` of its handle.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Protocol

from toolcrib.mcp.concealment import Conceal

__all__ = [
    "CalledTool",
    "RemoteConnection",
    "RemoteServer",
    "RequestHandlers",
    "ServerTimeouts",
]

OnProgress = Callable[[float, float | None, str | None], Awaitable[None]]
"""Takes the progress, the total if it is known, and a message: as the SDK's `ProgressFnT`."""


class RequestHandlers(Protocol):
    """What a server may ask of us, or tell us, outside the answer to a request. One object for each server."""

    def client_options(self) -> dict[str, Any]:
        """Keyword arguments for the SDK's `Client`: callbacks for what is allowed, and extensions.

        The options are `elicitation_callback`, `sampling_callback`, `sampling_capabilities`, `list_roots_callback`,
        `logging_callback`, `log_level` and `extensions`, each only where it is wanted: a capability that is not
        given is not announced to the server.
        """
        ...


class RemoteConnection(Protocol):
    """An open connection to a server. Its methods may be awaited from any task of its loop."""

    @property
    def modern(self) -> bool:
        """Whether the server speaks a stateless revision, 2026-07-28 or later."""
        ...

    async def call_tool(
        self,
        name: str,
        arguments: Mapping[str, Any],
        *,
        meta: Mapping[str, Any] | None = None,
        headers: Mapping[str, str] | None = None,
        on_progress: OnProgress | None = None,
        timeout: float | None = None,
        input_responses: Mapping[str, Any] | None = None,
        request_state: str | None = None,
        task: bool = False,
    ) -> Any:
        """Send one `tools/call` and give its result, also where that is not the end.

        A complete result is JSON data in the form of the wire, as the server wrote it. An `InputRequiredResult` and the
        result of an extension are the SDK's models. A cancelled call is cancelled on the server. Without `timeout` it
        waits. With `task`, it is sent as a task where a server of revision 2025-11-25 takes tasks.

        Raises:
            mcp.MCPError: The server answered with an error.
            ConnectionLost: The connection broke after the request was sent.
            ServerUnavailable: Nothing was sent.
        """
        ...

    async def request(
        self,
        method: str,
        params: Mapping[str, Any] | None = None,
        *,
        headers: Mapping[str, str] | None = None,
        timeout: float | None = None,
    ) -> dict[str, Any]:
        """Send any other request and give its result as JSON data. Raises what `call_tool` raises."""
        ...

    @property
    def conceal(self) -> Conceal: ...

    def check_alive(self) -> None:
        """Look whether the server still answers, after a call that gave no result in time. Nobody waits for that."""
        ...


class CalledTool(Protocol):
    """What a call needs of the definition of its tool, as the server gave it."""

    @property
    def server(self) -> str: ...
    @property
    def name(self) -> str: ...
    @property
    def output_schema(self) -> Mapping[str, Any] | None: ...
    @property
    def meta(self) -> Mapping[str, Any]: ...
    @property
    def task(self) -> bool: ...


class ServerTimeouts(Protocol):
    """What a call needs of the configuration of its server."""

    @property
    def name(self) -> str: ...
    @property
    def timeout(self) -> float:
        """Seconds that a call may take without progress."""
        ...

    @property
    def max_timeout(self) -> float:
        """Seconds that a call may take at all, however much progress it reports."""
        ...


class RemoteServer(Protocol):
    """One server of a toolset, started or not."""

    @property
    def config(self) -> ServerTimeouts: ...
    @property
    def requests(self) -> RequestHandlers | None: ...
    @property
    def headers(self) -> Mapping[str, str] | None:
        """HTTP headers of every request of a call, for whom it is made; None if that is not said."""
        ...

    async def connected(self) -> RemoteConnection:
        """The open connection; the server is started first if need be. Raises ServerUnavailable."""
        ...
