"""A list of which each item is validated by itself: the good ones are kept, the others are asked for again alone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Generic

from toolcrib.agent.output_var import Out
from toolcrib.dataclass import dataclass, field
from toolcrib.errors import FieldError

if TYPE_CHECKING:
    from toolcrib.compiling.params import Params

__all__ = ["ItemParams", "ItemsSoFar", "OutputItem"]


@dataclass(frozen=True, slots=True)
class OutputItem(Generic[Out]):
    """One item of a list as it was finished: its `value`, or what is wrong with it. `raw` is what the model wrote.

    `attempt` counts the answers that were begun, from 1: a list that is asked for again as a whole begins with item 0
    again; of an `itemwise` list only the items come again that did not fit.
    """

    index: int
    attempt: int
    raw: Any
    problem: str = ""
    _value: Any = field(default=None, repr=False)

    @property
    def value(self) -> Out:
        """The validated item. Raises ValueError with the problem where it does not fit."""
        if self.problem:
            raise ValueError(self.problem)
        value: Out = self._value
        return value


class ItemParams:
    """Params of a list whose items are looked at later; the model is told the whole schema."""

    def __init__(self, params: Params, name: str) -> None:
        self._params = params
        self._name = name
        self.schema = params.schema
        self.unsaid: Mapping[str, Sequence[str]] = params.unsaid
        self.written_digits = params.written_digits

    def parse(self, text: str | bytes) -> Any:
        """The list as JSON data. ValueError where there is none."""
        from pydantic_core import from_json

        value = from_json(text or "{}", allow_inf_nan=False)
        if isinstance(value, dict) and list(value) == [self._name] and isinstance(value[self._name], list):
            return value
        return self._params.parse(text)

    def explain(self, problem: ValueError, value: Any) -> tuple[FieldError, ...]:
        """The error for JSON data that is no list."""
        return self._params.explain(problem, value)


class ItemsSoFar:
    """The items of one run: those that fit, and what is wrong with the others, by their index."""

    def __init__(self) -> None:
        self.good: dict[int, Any] = {}
        self._raw: dict[int, Any] = {}  # of the good ones, as the model wrote them
        self.problems: dict[int, str] = {}
        self.answers = 0

    def take(self, raw: Sequence[Any], read: Any) -> None:
        """Take an answer in: the whole list, or the items that were asked for again, in their order."""
        places = sorted(self.problems) if self.answers else range(len(raw))
        self.answers += 1
        for place, item in zip(places, raw, strict=False):
            found = read(place, self.answers, item)
            if found.problem:
                self.problems[place] = found.problem
            else:
                self.good[place], self._raw[place] = found.value, item
                self.problems.pop(place, None)

    def to_dict(self) -> dict[str, Any]:
        """The items as plain JSON data."""
        good = {str(place): raw for place, raw in self._raw.items()}
        return {
            "answers": self.answers,
            "good": good,
            "problems": {str(k): v for k, v in self.problems.items()},
        }

    def restore(self, data: Mapping[str, Any], read: Any) -> None:
        """Take what `to_dict` gave, in another process; each item is validated again."""
        self.answers = int(data["answers"])
        self.problems = {int(place): str(problem) for place, problem in data["problems"].items()}
        for place, raw in data["good"].items():
            self.good[int(place)], self._raw[int(place)] = read(int(place), 0, raw).value, raw

    @property
    def values(self) -> list[Any]:
        """The items that fit, in their order."""
        return [self.good[place] for place in sorted(self.good)]

    def words(self) -> str:
        """What is wrong, for the model."""
        count = len(self.problems)
        lines = [f"{count} of {count + len(self.good)} items do not fit; the others are taken."]
        for place, problem in sorted(self.problems.items()):
            lines.append(f"item {place}:")
            lines += [f"  {line}" for line in problem.splitlines()[1:-1]] or [f"  {problem}"]
        again = "this item" if count == 1 else f"these {count} items"
        lines.append(f"Send a list of {again} alone, corrected, in this order.")
        return "\n".join(lines)
