"""What a run answers with: a type, and further checks of its answers."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Iterable, Mapping, Sequence
from functools import lru_cache
from types import GenericAlias
from typing import TYPE_CHECKING, Any, Generic, Literal, TypeAlias, TypeVar, get_args, overload

from toolcrib.agent.output_var import Out

if TYPE_CHECKING:
    from typing_extensions import TypeForm

    from toolcrib.guided import Choice, Grammar, JsonSchema, Regex

__all__ = [
    "RETRIES",
    "RUNGS",
    "TEXT",
    "Out",
    "OutputSpec",
    "OutputType",
    "Rung",
    "Validator",
    "as_output_type",
]

T = TypeVar("T")
T1 = TypeVar("T1")
T2 = TypeVar("T2")
T3 = TypeVar("T3")

RETRIES = 2

Rung = Literal["native", "strict tool", "forced tool", "tool", "JSON mode", "text"]
"""How a model is asked for a typed answer; each of these is on more servers than the one before.

"native": the server holds the text of the answer to the schema. "strict tool": the answer is a call, whose arguments
the server holds to the schema. "forced tool": the model must call. "tool": it is asked to call. "JSON mode": text that
the server holds to JSON, with the schema in the instructions. "text": text, with the schema in the instructions.
"""
RUNGS: tuple[Rung, ...] = get_args(Rung)

Validator: TypeAlias = Callable[..., Any]
"""A function of the value, or of the value and a `Context`, sync or async. It raises ToolError or ValueError with words
for the model; what it returns takes the value's place, and None leaves the value as it is."""


class OutputType(Generic[Out]):
    """What a run answers with, and how hard it is tried.

    Args:
        types: What params may be: a Pydantic model, dataclass, TypedDict, union, list, enum, Literal or number; a JSON
            Schema as a mapping; a `Choice`, `Regex`, `Grammar` or `JsonSchema`; or a function, sync or async, that is
            called with the answer's fields as a tool is, and whose result is the output. Several are alternatives, of
            which the model says which one it gives.
        validators: Functions that check the value further, in their order. A sync one must not take long.
        retries: How often a wrong answer is sent back to the model with what is wrong about it.
        retry_tokens: No wrong answer is sent back when answers that were asked for again have used so many tokens.
        itemwise: Of a list, the items that fit are kept, and only the others are sent back; those that do not fit then
            are left out, and stand in `outcome.item_problems`.
        rung: How the model is asked at best (see `Rung`); None for the best way that its server has.
        description: What the answer is, for the model; the docstring of the type without it.

    TypeError for what no schema can be made of: when the first run begins, or by `check()`.

    >>> from pydantic import BaseModel
    >>> class Invoice(BaseModel):
    ...     number: str
    ...     total: float
    >>> OutputType(Invoice, retries=1).check().schema["required"]
    ['number', 'total']
    """

    @overload
    def __init__(
        self: OutputType[str],
        type: Choice | Regex | Grammar,
        /,
        *,
        validators: Iterable[Validator] = (),
        retries: int = RETRIES,
        retry_tokens: int | None = None,
        itemwise: bool = False,
        rung: Rung | None = None,
        description: str = "",
    ) -> None: ...
    @overload
    def __init__(
        self: OutputType[Any],
        type: Mapping[str, Any] | JsonSchema,
        /,
        *,
        validators: Iterable[Validator] = (),
        retries: int = RETRIES,
        retry_tokens: int | None = None,
        itemwise: bool = False,
        rung: Rung | None = None,
        description: str = "",
    ) -> None: ...
    @overload
    def __init__(
        self,
        type: TypeForm[Out],
        /,
        *,
        validators: Iterable[Validator] = (),
        retries: int = RETRIES,
        retry_tokens: int | None = None,
        itemwise: bool = False,
        rung: Rung | None = None,
        description: str = "",
    ) -> None: ...
    @overload
    def __init__(
        self,
        type: Callable[..., Coroutine[Any, Any, Out]],
        /,
        *,
        validators: Iterable[Validator] = (),
        retries: int = RETRIES,
        retry_tokens: int | None = None,
        itemwise: bool = False,
        rung: Rung | None = None,
        description: str = "",
    ) -> None: ...
    @overload
    def __init__(
        self,
        type: Callable[..., Out],
        /,
        *,
        validators: Iterable[Validator] = (),
        retries: int = RETRIES,
        retry_tokens: int | None = None,
        itemwise: bool = False,
        rung: Rung | None = None,
        description: str = "",
    ) -> None: ...
    @overload
    def __init__(
        self: OutputType[T1 | T2],
        type: TypeForm[T1],
        type_2: TypeForm[T2],
        /,
        *,
        validators: Iterable[Validator] = (),
        retries: int = RETRIES,
        retry_tokens: int | None = None,
        itemwise: bool = False,
        rung: Rung | None = None,
        description: str = "",
    ) -> None: ...
    @overload
    def __init__(
        self: OutputType[T1 | T2 | T3],
        type: TypeForm[T1],
        type_2: TypeForm[T2],
        type_3: TypeForm[T3],
        /,
        *,
        validators: Iterable[Validator] = (),
        retries: int = RETRIES,
        retry_tokens: int | None = None,
        itemwise: bool = False,
        rung: Rung | None = None,
        description: str = "",
    ) -> None: ...
    @overload
    def __init__(
        self: OutputType[Any],
        *types: Any,
        validators: Iterable[Validator] = (),
        retries: int = RETRIES,
        retry_tokens: int | None = None,
        itemwise: bool = False,
        rung: Rung | None = None,
        description: str = "",
    ) -> None: ...
    def __init__(
        self,
        *types: Any,
        validators: Iterable[Validator] = (),
        retries: int = RETRIES,
        retry_tokens: int | None = None,
        itemwise: bool = False,
        rung: Rung | None = None,
        description: str = "",
    ) -> None:
        if not types:
            raise TypeError("an OutputType needs a type, as in OutputType(Invoice)")
        if text := next((one for one in types if isinstance(one, str)), None):
            raise TypeError(f"an output is a type, such as Invoice or list[int]; got the text {text[:80]!r}")
        if isinstance(retries, bool) or not isinstance(retries, int) or retries < 0:
            raise TypeError(f"retries must be a whole number from 0, got {retries!r}")
        if retry_tokens is not None and (not isinstance(retry_tokens, int) or retry_tokens < 0):
            raise TypeError(f"retry_tokens must be a whole number from 0, or None, got {retry_tokens!r}")
        if rung is not None and rung not in RUNGS:
            raise TypeError(f"rung must be one of {', '.join(map(repr, RUNGS))}, or None, got {rung!r}")
        self.types = types
        self.validators = tuple(validators)
        for validator in self.validators:
            if not callable(validator):
                raise TypeError(f"validators are functions of the value, got {validator!r}")
        self.retries = retries
        self.retry_tokens = retry_tokens
        self.itemwise = itemwise
        self.rung = rung
        self.description = description
        self._shape: Any = None

    def __repr__(self) -> str:
        names = (getattr(kind, "__name__", None) or repr(kind) for kind in self.types)
        return f"OutputType({', '.join(names)})"

    @property
    def is_text(self) -> bool:
        """Whether any text is an answer."""
        return self.types == (str,) and not self.validators

    def check(self) -> Any:
        """Compile it now: its `schema` is the JSON Schema that a model is given. TypeError where there is none."""
        if self._shape is None:
            from toolcrib.agent.output_shape import OutputShape

            self._shape = OutputShape(self)
        return self._shape


OutputSpec: TypeAlias = "TypeForm[Out] | OutputType[Out] | Sequence[type[Out]]"
"""What `output=` takes: a type, an OutputType, or a list of types as alternatives."""

TEXT: OutputType[str] = OutputType(str)
"""The output of an agent that answers with text."""


def as_output_type(given: Any) -> OutputType[Any]:
    """The OutputType of what `output=` was given."""
    if isinstance(given, OutputType):
        return given
    if isinstance(given, type | GenericAlias):
        return _of_one(given)
    return OutputType(*given) if isinstance(given, list | tuple) else OutputType(given)


@lru_cache(maxsize=128)
def _of_one(kind: Any) -> OutputType[Any]:
    """The OutputType of a type, the same each time, so that it is compiled once."""
    return OutputType(kind)
