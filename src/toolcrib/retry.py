"""How a call or a request that failed for the moment is tried again."""

from __future__ import annotations

from typing import Any

from toolcrib.dataclass import dataclass
from toolcrib.errors import ToolError

__all__ = ["Retry"]


@dataclass(frozen=True, slots=True)
class Retry:
    """How often a failed call of an idempotent tool is tried again, and with which delays.

    `attempts` counts the first one. The delay starts at `delay` seconds and grows by `factor` up to
    `max_delay`; up to the share `jitter` of it is taken off at random. A failure's own `retry_after` replaces
    the delay, up to `max_delay`. Tried again are a `ToolError(transient=True)` and the exceptions of `on`. All
    attempts share one deadline and one `ctx.idempotency_key`.
    """

    attempts: int = 3
    delay: float = 0.2
    factor: float = 2.0
    max_delay: float = 30.0
    jitter: float = 0.3
    on: tuple[type[BaseException], ...] = (ConnectionError, TimeoutError)
    declares_idempotent: bool = False

    def __post_init__(self) -> None:
        if not isinstance(self.attempts, int):
            raise TypeError(f"attempts must be a whole number, got {self.attempts!r}")
        if self.attempts < 1:
            raise ValueError(f"attempts counts the first one, so it is at least 1; got {self.attempts!r}")

    @classmethod
    def idempotent_transport(cls, attempts: int = 3, **named: Any) -> Retry:
        """Retry lost connections, and declare with it that running the tool twice is the same as once."""
        return cls(attempts=attempts, declares_idempotent=True, **named)

    def is_transient(self, error: BaseException) -> bool:
        return isinstance(error, self.on) or (isinstance(error, ToolError) and error.transient)

    def delay_after(self, attempt: int, error: BaseException, random: float) -> float:
        """Seconds to wait after the failed `attempt` (from 1); `random` is in [0, 1)."""
        asked = getattr(error, "retry_after", None)
        if isinstance(asked, int | float) and asked >= 0:
            return min(float(asked), self.max_delay)
        return min(self.delay * self.factor ** (attempt - 1), self.max_delay) * (1 - self.jitter * random)
