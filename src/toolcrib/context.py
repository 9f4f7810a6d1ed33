"""What a running tool is handed: dependencies, the person's channel, cancellation, and the ways up."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Iterable
from typing import TYPE_CHECKING, Any, Generic, Protocol

from toolcrib.call import CallKey
from toolcrib.errors import Cancelled, ToolError

if TYPE_CHECKING:
    from toolcrib.access import Access, DeniedPaths
    from toolcrib.result import ToolResult

if TYPE_CHECKING:
    from typing_extensions import TypeVar

    Deps = TypeVar("Deps", default=Any)  # so that a bare `Context` is complete for a strict type checker
else:
    from typing import TypeVar  # typing_extensions takes milliseconds to import

    Deps = TypeVar("Deps")
T = TypeVar("T")


class Host(Protocol):
    """The side of the toolbox that a Context reaches; tools never see it."""

    def report(self, ctx: Context[Any], named: dict[str, Any]) -> None: ...
    async def ask(
        self,
        ctx: Context[Any],
        action: str,
        patterns: tuple[str, ...],
        *,
        reaches: tuple[Access, ...] | None,
        shown: str,
        person: bool,
        known: bool,
    ) -> None: ...
    def kept(self, ctx: Context[Any]) -> list[tuple[tuple[str, ...], float]]: ...
    def note(self, ctx: Context[Any], words: str) -> None: ...
    async def call(self, ctx: Context[Any], name: str, arguments: dict[str, Any]) -> ToolResult: ...
    def run(self, ctx: Context[Any], work: Coroutine[Any, Any, T]) -> T: ...


class Context(Generic[Deps]):
    """One call's view of the world; `Context[Deps]` types its `deps`.

    For a unit test of a tool, make one by hand: `Context(deps=...)` reports nowhere and may not ask or call.

    >>> ctx = Context(deps={"db": "sqlite"})
    >>> ctx.deps["db"], ctx.cancelled
    ('sqlite', False)
    """

    __slots__ = (
        "_cancelled",
        "_deadline",
        "_definition",
        "_host",
        "_idempotency_key",
        "_inner",
        "_loop",
        "_permits",
        "_waiting",
        "approved",
        "denied_paths",
        "deps",
        "key",
        "tool",
    )

    def __init__(
        self,
        deps: Deps = None,  # type: ignore[assignment]
        *,
        key: CallKey | None = None,
        tool: str = "",
        host: Host | None = None,
    ) -> None:
        self.deps = deps
        self.key = key if key is not None else CallKey("", 0, 0)
        self.tool = tool
        self._host = host
        self.approved = False  # a person said yes, to this call or before to such calls
        self._cancelled = False
        self._inner = 0
        self._deadline: Any = None
        self._definition: Any = None
        self._waiting: set[Any] = set()
        self._idempotency_key = ""
        self._loop: Any = None
        self._permits: Callable[[Access], bool] | None = None
        # Asked with the workspace and further folders, what deny rules take there; None where none does.
        self.denied_paths: Callable[[str, Iterable[str]], DeniedPaths] | None = None

    def report(
        self,
        *,
        tip: str | None = None,
        progress: float | None = None,
        params: dict[str, Any] | None = None,
        result: Any = None,
    ) -> None:
        """Tell the person, not the model: a line of text, how far it is (0 to 1), parameters, a preview.

        Cheap when nobody listens, safe from worker threads, and never delays the tool.
        """
        if self._host is not None:
            self._host.report(self, {"tip": tip, "progress": progress, "params": params, "result": result})

    @property
    def cancelled(self) -> bool:
        """Whether this call was cancelled or ran out of time; for loops in threads."""
        return self._cancelled

    def check_cancelled(self) -> None:
        """Raise `Cancelled` if the call was cancelled or ran out of time."""
        if self._cancelled:
            raise Cancelled(f"the call of {self.tool} was cancelled")

    def permits(self, access: Access) -> bool:
        """Whether rules let this call reach something: for what a tool only finds as it goes.

        True where no rule is about what it reaches, and without a toolbox.
        """
        return self._permits is None or self._permits(access)

    @property
    def idempotency_key(self) -> str:
        """The same for all attempts of one call, different for every other: for services that take one."""
        if not self._idempotency_key:
            from toolcrib.fingerprint import fingerprint

            self._idempotency_key = fingerprint(self.tool, list(self.key))[:32]
        return self._idempotency_key

    async def ask(
        self,
        action: str,
        patterns: Iterable[str] = (),
        *,
        reaches: Iterable[Access] | None = None,
        shown: str = "",
        person: bool = False,
        known: bool = False,
    ) -> None:
        """Ask for permission, in the middle of the work, through the same policy and the same person.

        `action` says what would be done, `patterns` what it would be done to, `reaches` the same for rules, and
        `shown` more of it to the person. Returns when it is allowed; raises ToolError, with the words for the
        model, when it is not. With `person`, rules and autonomy may refuse and not allow: only a person does,
        and "always" is remembered for exactly this; their time is not the tool's. With `known`, nobody is asked: only
        such an "always" counts.
        """
        reached = None if reaches is None else tuple(reaches)
        await self._reach().ask(
            self, action, tuple(patterns), reaches=reached, shown=shown, person=person, known=known
        )

    def kept(self) -> list[tuple[tuple[str, ...], float]]:
        """What "always" was said of with `person=True`: the patterns, and when (0.0: in this run).

        Whether it holds, `ask` with `known=True` says.
        """
        return [] if self._host is None else self._host.kept(self)

    def note(self, words: str) -> None:
        """Tell the person something of the whole run, in a line that stays."""
        if self._host is not None:
            self._host.note(self, words)

    async def call(self, name: str, /, **arguments: Any) -> ToolResult:
        """Call another tool along the same path: validated, decided, recorded."""
        return await self._reach().call(self, name, arguments)

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Wait, from a sync tool's worker thread, for `ctx.ask(...)`, `ctx.call(...)` or other async work."""
        return self._reach().run(self, work)

    def _reach(self) -> Host:
        if self._host is None:
            raise ToolError("This step needs a toolbox, and the tool was called without one.")
        return self._host

    def __repr__(self) -> str:
        return f"<Context {self.tool or 'detached'} {self.key}>"


class PartialContext(Context[Deps]):
    """What `on_partial` is handed: it can report, nothing else."""

    __slots__ = ()

    def _reach(self) -> Host:
        raise ToolError("Arguments are still streaming in: only report() is possible now.")
