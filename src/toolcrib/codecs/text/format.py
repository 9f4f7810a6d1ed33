"""What a text format is: how it is taught, read, and written into a conversation's history."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from toolcrib.call import ToolCall
from toolcrib.codecs.text.answer import Answer
from toolcrib.codecs.text.constraints import Constraint
from toolcrib.codecs.text.scanner import Scanner, Steps

if TYPE_CHECKING:
    from toolcrib.spec import ToolSpec

Tools = Mapping[str, Mapping[str, Any]]  # wire name to input schema; empty where the tools are not known
Parse = Callable[[Scanner, Answer, Tools], Steps[None]]


@dataclass(frozen=True, slots=True)
class ResultText:
    """One result as it is written into the history: the call's name and id on the wire, and a safe text.

    `text` holds none of the words that the format or a chat template gives a meaning to (see `safe.py`).
    """

    name: str
    id: str
    text: str
    is_error: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class TextFormat:
    """One way to write calls as text.

    `parse` reads the model's own turn to its end, beginning in a block of thinking if `answer.in_thinking`
    (`Prose` sees to that). `teach` gives the section of the prompt that declares the
    tools and the form of a call. `write_calls` gives the text of a turn's calls (their arguments are JSON
    text), `write_result` that of one result. `models` are patterns, searched in a model's name without
    regard to case. `reserved` are words of the format that a result must not hold, besides those that all
    formats share; `named_tags` says that the tools' names are tags, and so such words too. `thinking` are the
    marks around a model's thinking where it wants its own back with the calls that followed from it.
    `constraints` give the fields of a request body that hold a server to the form, by their kind
    ("structural_tag", "json_schema").
    """

    name: str
    parse: Parse
    teach: Callable[[Sequence[ToolSpec]], str]
    write_calls: Callable[[Sequence[ToolCall]], str]
    write_result: Callable[[ResultText], str]
    models: tuple[str, ...] = ()
    reserved: tuple[str, ...] = ()
    named_tags: bool = False
    thinking: tuple[str, str] | None = None
    constraints: Mapping[str, Constraint] = field(default_factory=dict)

    def reserved_with(self, tools: Iterable[str]) -> tuple[str, ...]:
        """The words that a result must not hold where these are the tools' names on the wire."""
        if not self.named_tags:
            return self.reserved
        return (*self.reserved, *(f"<{slash}{name}>" for name in sorted(tools) for slash in ("", "/")))
