"""The requests about resources, prompts and completions, answered from a user's objects."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Any

import mcp_types as types
from mcp.server.lowlevel.server import Server
from mcp.server.subscriptions import InMemorySubscriptionBus, ResourceUpdated
from mcp.shared.exceptions import MCPError

from toolcrib.mcp.server.clients import Clients, RequestContext
from toolcrib.mcp.server.listing import BadCursor, page_of
from toolcrib.mcp.server.offers import Complete, Prompts, Resources, Wire

__all__ = ["Offered"]

MAX_SUBSCRIPTIONS = 1_000  # resources that one connection may watch
MAX_COMPLETIONS = 100  # as the protocol says

Run = Callable[
    [RequestContext, types.InputResponseRequestParams, Callable[[], Awaitable[Any]]], Awaitable[Any]
]
"""Runs work as a call of the client of a request: the result of the work, or what it asks the client."""


class Offered:
    """Registers the requests for what there is."""

    def __init__(
        self,
        server: Server[Any],
        run: Run,
        clients: Clients,
        bus: InMemorySubscriptionBus,
        page_size: int,
        resources: Resources | None,
        prompts: Prompts | None,
        complete: Complete | None,
    ) -> None:
        self._run, self._clients, self._bus, self._page_size = run, clients, bus, page_size
        self._resources, self._prompts, self._complete = resources, prompts, complete
        add = server.add_request_handler
        if resources is not None:
            add("resources/list", types.PaginatedRequestParams, self._list_resources)
            add("resources/templates/list", types.PaginatedRequestParams, self._list_templates)
            add("resources/read", types.ReadResourceRequestParams, self._read)
            add("resources/subscribe", types.SubscribeRequestParams, self._subscribe)
            add("resources/unsubscribe", types.UnsubscribeRequestParams, self._unsubscribe)
        if prompts is not None:
            add("prompts/list", types.PaginatedRequestParams, self._list_prompts)
            add("prompts/get", types.GetPromptRequestParams, self._get)
        if complete is not None:
            add("completion/complete", types.CompleteRequestParams, self._completions)

    async def resource_updated(self, uri: str) -> None:
        """Tell those who watch a resource that it is another now."""
        await self._bus.publish(ResourceUpdated(uri))
        for connection in self._clients.watching(uri):
            await connection.send_resource_updated(uri)

    async def _list_resources(
        self, ctx: RequestContext, params: types.PaginatedRequestParams
    ) -> dict[str, Any]:
        assert self._resources is not None
        return self._page("resources", await self._resources.list(), params, "uri")

    async def _list_templates(
        self, ctx: RequestContext, params: types.PaginatedRequestParams
    ) -> dict[str, Any]:
        assert self._resources is not None
        return self._page("resourceTemplates", await self._resources.templates(), params, "uriTemplate")

    async def _list_prompts(
        self, ctx: RequestContext, params: types.PaginatedRequestParams
    ) -> dict[str, Any]:
        assert self._prompts is not None
        return self._page("prompts", await self._prompts.list(), params, "name")

    def _page(
        self, kind: str, items: Sequence[Wire], params: types.PaginatedRequestParams, key: str
    ) -> dict[str, Any]:
        try:
            in_order = sorted(items, key=lambda item: str(item[key]))
            page, cursor = page_of(in_order, self._page_size, params.cursor, key)
        except BadCursor as problem:
            raise MCPError(types.INVALID_PARAMS, str(problem)) from None
        data: dict[str, Any] = {"resultType": "complete", kind: list(page), **_FRESH}
        return data if cursor is None else {**data, "nextCursor": cursor}

    async def _read(self, ctx: RequestContext, params: types.ReadResourceRequestParams) -> Any:
        resources, uri = self._resources, str(params.uri)
        assert resources is not None
        contents = await self._run(ctx, params, lambda: resources.read(uri))
        if isinstance(contents, types.InputRequiredResult):
            return contents
        if not contents:
            raise MCPError(types.INVALID_PARAMS, "Resource not found", data={"uri": uri})
        return {"resultType": "complete", "contents": list(contents), **_FRESH}

    async def _get(self, ctx: RequestContext, params: types.GetPromptRequestParams) -> Any:
        prompts, name, arguments = self._prompts, params.name, params.arguments or {}
        assert prompts is not None
        try:
            prompt = await self._run(ctx, params, lambda: prompts.get(name, arguments))
        except ValueError as problem:
            raise MCPError(types.INVALID_PARAMS, str(problem)) from None
        if isinstance(prompt, types.InputRequiredResult):
            return prompt
        if prompt is None:
            raise MCPError(types.INVALID_PARAMS, "Unknown prompt", data={"name": name})
        return {"resultType": "complete", **prompt}

    async def _completions(self, ctx: RequestContext, params: types.CompleteRequestParams) -> dict[str, Any]:
        assert self._complete is not None
        reference = params.ref.model_dump(mode="json", by_alias=True, exclude_none=True)
        others = (params.context.arguments if params.context is not None else None) or {}
        found = list(await self._complete(reference, params.argument.name, params.argument.value, others))
        completion = {
            "values": found[:MAX_COMPLETIONS],
            "total": len(found),
            "hasMore": len(found) > MAX_COMPLETIONS,
        }
        return {"resultType": "complete", "completion": completion}

    async def _subscribe(
        self, ctx: RequestContext, params: types.SubscribeRequestParams
    ) -> types.EmptyResult:
        if not self._clients.watch(ctx, str(params.uri), MAX_SUBSCRIPTIONS):
            raise MCPError(
                types.INTERNAL_ERROR, f"A client may watch {MAX_SUBSCRIPTIONS:,} resources at most"
            )
        return types.EmptyResult()

    async def _unsubscribe(
        self, ctx: RequestContext, params: types.UnsubscribeRequestParams
    ) -> types.EmptyResult:
        self._clients.unwatch(ctx, str(params.uri))
        return types.EmptyResult()


_FRESH: dict[str, Any] = {"ttlMs": 0, "cacheScope": "private"}
