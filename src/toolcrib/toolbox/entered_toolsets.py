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
        """Enter the toolsets, the first time. Raises what a toolset raises."""
        self._times += 1
        if self._times == 1 and self._registry.toolsets:
            from toolcrib.toolbox.foreign import ForeignCall

            async with AsyncExitStack() as stack:
                for toolset in self._registry.toolsets:
                    entering = stack.enter_async_context(toolset)
                    await ForeignCall(entering, None, self._registry.grace)
                self._stack = stack.pop_all()

    async def leave(self) -> None:
        """Leave the toolsets, the last time. A toolset that fails or hangs is logged."""
        self._times -= 1
        if self._times == 0 and self._stack is not None:
            from toolcrib.toolbox.foreign import ForeignCall

            stack, self._stack = self._stack, None
            grace = self._registry.grace
            try:
                await ForeignCall(stack.aclose(), grace, grace)
            except Exception:
                import logging

                logging.getLogger("toolcrib").exception("leaving a toolset failed")
