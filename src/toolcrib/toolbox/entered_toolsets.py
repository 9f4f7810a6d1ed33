"""The lifespan of the toolsets in a toolbox."""

from __future__ import annotations

from contextlib import AsyncExitStack

from toolcrib.toolbox.registry import Registry

__all__ = ["EnteredToolsets"]


class EnteredToolsets:
    """The toolsets of a registry while they are entered; entered several times, they are left with the last."""

    def __init__(self, registry: Registry, times: int = 0) -> None:
        self._registry = registry
        self._times = times
        self._stack: AsyncExitStack | None = None

    def borrowed(self) -> EnteredToolsets:
        """The same toolsets for a box that shares them. The box that entered them also leaves them."""
        return EnteredToolsets(self._registry, self._times)

    async def enter(self) -> None:
        self._times += 1
        if self._times == 1 and self._registry.toolsets:
            async with AsyncExitStack() as stack:
                for toolset in self._registry.toolsets:
                    await stack.enter_async_context(toolset)
                self._stack = stack.pop_all()

    async def leave(self) -> None:
        self._times -= 1
        if self._times == 0 and self._stack is not None:
            stack, self._stack = self._stack, None
            await stack.aclose()
