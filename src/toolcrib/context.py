"""What a running tool is handed: its dependencies, reports to the person, cancellation, questions, other tools."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Iterable, Sequence
from typing import TYPE_CHECKING, Any, Generic, Protocol

from toolcrib.call import CallKey
from toolcrib.errors import Cancelled, ToolError
from toolcrib.fingerprint import fingerprint

if TYPE_CHECKING:
    from toolcrib.access import Access, DeniedPaths
    from toolcrib.events import Event
    from toolcrib.question import Answer, InputRequest
    from toolcrib.result import ToolResult

__all__ = ["Context", "Host", "PartialContext"]

if TYPE_CHECKING:
    from typing_extensions import TypeVar

    Deps = TypeVar("Deps", default=Any)  # so that strict type checkers take a bare `Context`
else:
    from typing import TypeVar  # typing_extensions takes milliseconds to import

    Deps = TypeVar("Deps")
T = TypeVar("T")
Named = tuple[str, dict[str, Any]]  # a call: the name of its tool, and its arguments


class Host(Protocol):
    """What a Context needs of the toolbox. Tools never see it."""

    def report(self, ctx: Context[Any], named: dict[str, Any]) -> None: ...
    def ask(
        self, ctx: Context[Any], action: str, patterns: tuple[str, ...], *, accesses: tuple[Access, ...] | None,
        details: str, person_only: bool, remembered_only: bool,
    ) -> Coroutine[Any, Any, None]: ...  # fmt: skip
    async def ask_user(
        self, ctx: Context[Any], text: str, options: Iterable[str], several: bool
    ) -> Answer: ...
    async def ask_inputs(
        self, ctx: Context[Any], requests: Sequence[InputRequest]
    ) -> list[Answer | None]: ...
    def saved_state(self, ctx: Context[Any]) -> Any: ...
    def save_state(self, ctx: Context[Any], state: Any) -> None: ...
    def remembered_approvals(self, ctx: Context[Any]) -> list[tuple[tuple[str, ...], float]]: ...
    def note(self, ctx: Context[Any], words: str) -> None: ...
    async def call(self, ctx: Context[Any], name: str, arguments: dict[str, Any]) -> ToolResult: ...
    async def call_all(self, ctx: Context[Any], calls: list[Named], from_model: bool) -> list[ToolResult]: ...
    def run(self, ctx: Context[Any], work: Coroutine[Any, Any, T]) -> T: ...
    def suspends(self, ctx: Context[Any]) -> bool: ...
    def account(self, ctx: Context[Any]) -> Any: ...
    def nested_run(self, ctx: Context[Any], box: Any, *, outlives: bool = False) -> Any: ...
    def of_run(self, ctx: Context[Any], make: Callable[[Callable[[Event], None]], T]) -> T: ...


class Context(Generic[Deps]):
    """What one call of a tool may use; `Context[Deps]` gives the type of its `deps`.

    For a unit test of a tool make a context by hand: `Context(deps=...)` reports to nobody and cannot ask or call.

    >>> ctx = Context(deps={"db": "sqlite"})
    >>> ctx.deps["db"], ctx.cancelled
    ('sqlite', False)
    """

    __slots__ = (
        "_asked", "_cancelled", "_deadline", "_definition", "_host", "_idempotency_key", "_inner", "_loop", "_permits",
        "_waiting", "_why_denied", "approved", "denied_paths", "deps", "key", "must_be_confined", "tool",
    )  # fmt: skip

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
        self.must_be_confined = False  # nobody was asked, because its accesses are confined
        self._cancelled = False
        self._inner = 0
        self._asked: tuple[Any, ...] = ()  # a call fails if one of them was not awaited
        self._deadline: Any = None
        self._definition: Any = None
        self._waiting: set[Any] = set()
        self._idempotency_key = ""
        self._loop: Any = None
        self._permits: Callable[[Access], bool] | None = None
        self._why_denied: Callable[[Access], str] | None = None
        # Finds what deny rules take away in the workspace and in further folders; None if no rule denies paths.
        self.denied_paths: Callable[[str, Iterable[str]], DeniedPaths] | None = None

    def report(
        self,
        *,
        tip: str | None = None,
        progress: float | None = None,
        params: dict[str, Any] | None = None,
        result: Any = None,
    ) -> None:
        """Tell the person, not the model: a line of text, the progress (0 to 1), parameters, a result so far.

        Cheap when nobody listens, safe in worker threads, and never delays the tool.
        """
        if self._host is not None:
            self._host.report(self, {"tip": tip, "progress": progress, "params": params, "result": result})

    @property
    def cancelled(self) -> bool:
        """Whether this call was cancelled or ran out of time. A loop in a thread looks at this."""
        return self._cancelled

    def check_cancelled(self) -> None:
        """Raise `Cancelled` if the call was cancelled or ran out of time."""
        if self._cancelled:
            raise Cancelled(f"the call of {self.tool} was cancelled")

    def permits(self, access: Access) -> bool:
        """Whether the policy's rules let this call reach a file, command or host that the tool found on its way.

        True without rules that look at accesses, and without a toolbox.
        """
        return self._permits is None or self._permits(access)

    def why_denied(self, access: Access) -> str:
        """The reason, in its author's words, of the deny rule that keeps an access from this call; "" without any."""
        return "" if self._why_denied is None else self._why_denied(access)

    @property
    def idempotency_key(self) -> str:
        """A key for services that take one: the same for all attempts of one call, different for every other call."""
        if not self._idempotency_key:
            self._idempotency_key = fingerprint(self.tool, list(self.key))[:32]
        return self._idempotency_key

    def ask(
        self,
        action: str,
        patterns: Iterable[str] = (),
        *,
        accesses: Iterable[Access] | None = None,
        details: str = "",
        person_only: bool = False,
        remembered_only: bool = False,
    ) -> Coroutine[Any, Any, None]:
        """Ask for permission in the middle of the work, by await: the policy decides, and a person where it says so.

        `action` says what would be done, `patterns` to what, `accesses` the same for rules; the person is also
        shown `details`. The time that they take does not count for the tool. Returns if it is allowed; raises
        ToolError, with words for the model, if it is not. In a call that a person approved, only rules ask about
        accesses that are all `free`.

        With `person_only`, rules and autonomy can refuse but not allow: a person has to. An "always" is then
        remembered for exactly this question. With `remembered_only`, nobody is asked: only such a remembered
        "always" allows.
        """
        asked = self._connected().ask(
            self, action, tuple(patterns), accesses=None if accesses is None else tuple(accesses),
            details=details, person_only=person_only, remembered_only=remembered_only,
        )  # fmt: skip
        self._asked = (*self._asked, asked)
        return asked

    async def ask_user(self, text: str, options: Iterable[str] = (), *, several: bool = False) -> Answer:
        """Ask the user for words or a choice of `options`: the answer's `chosen` and `message` have the reply.

        The time that they take does not count for the tool. ToolError if nobody can be asked or they decline.
        """
        return await self._connected().ask_user(self, text, options, several)

    def remembered_approvals(self) -> list[tuple[tuple[str, ...], float]]:
        """The patterns that a person allowed with "always" in `ask(person_only=True)`, and when; 0.0 means in this run.

        An approval may have expired or been overruled: `ask` with `remembered_only` says whether it holds.
        """
        return [] if self._host is None else self._host.remembered_approvals(self)

    def note(self, words: str) -> None:
        """Tell the person, in a line that stays, something that concerns the whole run."""
        if self._host is not None:
            self._host.note(self, words)

    async def call(self, name: str, /, **arguments: Any) -> ToolResult:
        """Call another tool: its call is validated, decided on and recorded like every other."""
        return await self._connected().call(self, name, arguments)

    async def call_all(self, calls: Iterable[Named], *, from_model: bool = False) -> list[ToolResult]:
        """Call several tools. Those that only read run side by side; the others wait for each other, as in a turn.

        `from_model`: a model chose them. They may be of the tools that it is shown, and count in the run's budget.
        """
        return await self._connected().call_all(self, list(calls), from_model)

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Wait, from a sync tool's worker thread, for `ctx.ask(...)`, `ctx.call(...)` or other async work."""
        try:
            host = self._connected()
        except ToolError:
            work.close()
            raise
        return host.run(self, work)

    def nested_run(self, box: Any) -> Any:
        """The place of an agent's run within this call; `agent.run(task, within=ctx)` takes it."""
        return self._connected().nested_run(self, box)

    def of_run(self, make: Callable[[Callable[[Event], None]], T]) -> T:
        """An object that belongs to the run of this call: `make(emit)` makes it at the first use; the run closes it.

        `emit` sends an event of the run. See `toolcrib.toolbox.owned` for what the object may have.
        """
        return self._connected().of_run(self, make)

    def _connected(self) -> Host:
        if self._host is None:
            raise ToolError(
                "This step needs a toolbox, and the tool was called without one, or its call is over."
            )
        return self._host

    def __repr__(self) -> str:
        return f"<Context {self.tool or 'detached'} {self.key}>"


class PartialContext(Context[Deps]):
    """What `on_partial` is handed: it can report, nothing else."""

    __slots__ = ()

    def _connected(self) -> Host:
        raise ToolError("Arguments are still streaming in: only report() is possible now.")
