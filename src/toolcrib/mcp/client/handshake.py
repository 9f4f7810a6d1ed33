"""The session of a connection, and how it agrees with the server on a revision of the protocol."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from typing import Any

from toolcrib.mcp.concealment import Conceal

__all__ = ["Wire", "negotiate", "new_session"]


class Wire:
    """The SDK's dispatcher with five additions.

    It takes credentials out of the server's errors. It repairs a sloppy server's answers in the handshake. It records
    the stamp of the session's requests, so that ours carry it, too. It drops notifications that cannot be read, for
    each of which the SDK would log a traceback. And it says when the connection has ended.
    """

    def __init__(self, inner: Any, warn: Callable[[str], None], conceal: Conceal) -> None:
        self.ended = asyncio.Event()
        self.protocol = "2025-11-25"
        self._inner = inner
        self._warn = warn
        self._conceal = conceal
        self._stamp: dict[str, Any] = {}

    @property
    def on_stream_exception(self) -> Any:
        return self._inner.on_stream_exception

    async def run(self, on_request: Any, on_notify: Any, *more: Any, **named: Any) -> None:
        from mcp_types.methods import parse_server_notification

        async def readable(context: Any, method: str, params: Mapping[str, Any] | None) -> None:
            try:
                parse_server_notification(method, self.protocol, params)
            except KeyError:
                pass  # not one of the protocol's core
            except ValueError:
                shown = self._conceal(method)[:80]
                self._warn(f"it sends notifications that cannot be read, such as {shown!r}; ignored")
                return
            await on_notify(context, method, params)

        try:
            await self._inner.run(on_request, readable, *more, **named)
        finally:
            self.ended.set()

    async def notify(self, method: str, params: Mapping[str, Any] | None, opts: Any = None) -> None:
        await self._inner.notify(method, params, opts)

    async def send_raw_request(
        self, method: str, params: Mapping[str, Any] | None, opts: Any = None
    ) -> dict[str, Any]:
        from mcp import MCPError

        if method == "server/discover":
            meta = (params or {}).get("_meta") or {}
            self._stamp = {
                key: value for key, value in meta.items() if key.startswith("io.modelcontextprotocol/")
            }
        try:
            answer: dict[str, Any] = await self._inner.send_raw_request(method, params, opts)
        except MCPError as problem:
            raise MCPError(problem.code, self._conceal(problem.message), problem.data) from None
        if method in ("initialize", "server/discover"):
            answer = _repaired(answer)
        return answer

    def stamp(self, version: str, method: str, params: dict[str, Any], opts: dict[str, Any]) -> None:
        """Add what each request of the stateless revisions carries, in its `_meta` and its HTTP headers."""
        from mcp.shared.inbound import (
            MCP_METHOD_HEADER,
            MCP_NAME_HEADER,
            MCP_PROTOCOL_VERSION_HEADER,
            NAME_BEARING_METHODS,
            encode_header_value,
        )
        from mcp_types import PROTOCOL_VERSION_META_KEY

        meta = {**self._stamp, PROTOCOL_VERSION_META_KEY: version}
        params["_meta"] = {**params.get("_meta", {}), **meta}
        headers = opts.setdefault("headers", {})
        headers[MCP_PROTOCOL_VERSION_HEADER] = version
        headers[MCP_METHOD_HEADER] = method
        key = NAME_BEARING_METHODS.get(method, "taskId" if method.startswith("tasks/") else "")
        if isinstance(name := params.get(key), str):
            headers[MCP_NAME_HEADER] = encode_header_value(name)


def new_session(
    read: Any,
    write: Any,
    options: Mapping[str, Any],
    tell: Any,
    warn: Callable[[str], None],
    conceal: Conceal,
) -> tuple[Any, Wire, dict[str, Any]]:
    """A session over two streams, its wire, and the results that extensions claim, by their `resultType`.

    `options` are those of `RequestHandlers.client_options`.
    """
    from mcp import ClientSession
    from mcp.shared.jsonrpc_dispatcher import JSONRPCDispatcher
    from mcp_types import Implementation

    import toolcrib

    given = dict(options)
    extensions = given.pop("extensions", None) or ()
    claims = {extension.identifier: tuple(extension.claims()) for extension in extensions}
    bindings = [binding for extension in extensions for binding in extension.notifications()]
    dispatcher = JSONRPCDispatcher(read, write)
    wire = Wire(dispatcher, warn, conceal)
    session = ClientSession(
        dispatcher=wire,
        message_handler=tell,
        client_info=Implementation(name="toolcrib", version=toolcrib.__version__),
        extensions={extension.identifier: extension.settings() for extension in extensions} or None,
        result_claims={identifier: claimed for identifier, claimed in claims.items() if claimed} or None,
        notification_bindings=bindings or None,
        **given,
    )
    dispatcher.on_stream_exception = _ignored
    return session, wire, {claim.result_type: claim for claimed in claims.values() for claim in claimed}


async def _ignored(problem: Exception) -> None:
    """Does nothing: the transport itself reports what it cannot read."""


async def negotiate(session: Any, era: str) -> None:
    """Agree on a revision: the stateless one if the server answers `server/discover`, else by the older handshake.

    Raises what the server or the connection fails with.
    """
    from mcp import MCPError
    from mcp_types import UNSUPPORTED_PROTOCOL_VERSION

    if era != "legacy":
        try:
            await session.discover()
            return
        except MCPError as problem:
            if problem.code == UNSUPPORTED_PROTOCOL_VERSION and not _takes_older(problem.data):
                raise
        except (RuntimeError, ValueError):  # no answer to that request, or no revision in common
            pass
    try:
        await session.initialize()
    except MCPError as problem:
        # A server that was slow to start may have read the first request after we stopped waiting for its answer.
        if problem.code != UNSUPPORTED_PROTOCOL_VERSION:
            raise
        await session.discover()


def _takes_older(data: Any) -> bool:
    """Whether a server that refused a revision says that it speaks one of the older ones, or says nothing."""
    from mcp_types.version import HANDSHAKE_PROTOCOL_VERSIONS

    supported = data.get("supported") if isinstance(data, Mapping) else None
    return not isinstance(supported, list) or any(item in HANDSHAKE_PROTOCOL_VERSIONS for item in supported)


def _repaired(answer: Any) -> dict[str, Any]:
    """The answer of a handshake, without what would make the SDK give up the server for a detail."""
    data = dict(answer) if isinstance(answer, Mapping) else {}
    info = data.get("serverInfo")
    if "protocolVersion" in data or info is not None:
        known = info if isinstance(info, Mapping) else {}
        texts = {key: known[key] for key in ("name", "version", "title") if isinstance(known.get(key), str)}
        data["serverInfo"] = {"name": "", "version": "", **texts}
    capabilities = data.get("capabilities")
    known = capabilities if isinstance(capabilities, Mapping) else {}
    data["capabilities"] = {
        key: value if isinstance(value, Mapping) else {}
        for key, value in known.items()
        if value is not None and value is not False
    }
    if not isinstance(data.get("instructions", ""), str):
        del data["instructions"]
    return data
