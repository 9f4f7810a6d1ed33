"""Constraints: what an answer must look like, as plain data that no server owns."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, get_args

from toolcrib.dataclass import dataclass, field
from toolcrib.guided.json_schema import JsonSchema
from toolcrib.messages import ToolChoice

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from toolcrib.spec import ToolSpec

__all__ = ["Choice", "Constraint", "Grammar", "Regex", "Syntax", "Tag", "Tags", "ToolCalls"]

Syntax = Literal["gbnf", "ebnf", "lark"]


@dataclass(frozen=True, slots=True, init=False)
class Choice:
    """One of several texts, nothing around it. ValueError without any, for an empty one, and for one that repeats.

    >>> Choice("yes", "no").options
    ('yes', 'no')
    """

    options: tuple[str, ...]

    def __init__(self, *options: str) -> None:
        given: tuple[Any, ...] = options
        if not given:
            raise ValueError("Choice: expected at least one text, as in Choice('yes', 'no')")
        for option in given:
            if not isinstance(option, str) or not option:
                hint = ": write Choice(*options)" if isinstance(option, list | tuple) else ""
                raise ValueError(f"Choice: each option is a text that is not empty, got {option!r}{hint}")
            _check_text(option, "Choice")
        if len(set(given)) < len(given):
            raise ValueError(f"Choice: an option stands twice in {given!r}")
        object.__setattr__(self, "options", given)


@dataclass(frozen=True, slots=True)
class Regex:
    r"""A text that a regular expression matches as a whole.

    Only what every engine means the same by is taken: no look-around, no back reference, no word boundary; anchors
    at the ends alone, where they change nothing. `\d`, `\w` and `\s` are ASCII, `.` is any character but a newline.
    ValueError for any other pattern, and for repeats within repeats that count to more than a million characters.

    >>> Regex(r"\d{4}-\d{2}").pattern
    '\\d{4}-\\d{2}'
    """

    pattern: str

    def __post_init__(self) -> None:
        from toolcrib.guided.grammar_tree import check_size
        from toolcrib.guided.regex_tree import regex_tree

        check_size([regex_tree(self.pattern)], "Regex")


@dataclass(frozen=True, slots=True)
class Grammar:
    """A text of a context-free grammar.

    `syntax` is "gbnf" (llama.cpp), "ebnf" (as xgrammar reads it, nearly the same), or "lark": rules and terminals
    without `%ignore`, `%import`, priorities and templates, read as a context-free grammar without a lexer. `start` is
    the rule of the whole text; without it `root`, and `start` for Lark. ValueError where the grammar cannot be read.

    >>> Grammar('root ::= "a" root | "b"').start
    'root'
    """

    text: str
    syntax: Syntax = "gbnf"
    start: str = ""

    def __post_init__(self) -> None:
        from toolcrib.guided.grammar_text import read_grammar
        from toolcrib.guided.grammar_tree import check_size

        _check_text(self.text, "Grammar")
        if self.syntax not in get_args(Syntax):
            raise ValueError(
                f"Grammar: syntax is one of {', '.join(map(repr, get_args(Syntax)))}, got {self.syntax!r}"
            )
        if not self.start:
            object.__setattr__(self, "start", "start" if self.syntax == "lark" else "root")
        check_size(read_grammar(self.text, self.syntax, self.start).values(), "Grammar")


@dataclass(frozen=True, slots=True)
class ToolCalls:
    """An answer as one JSON object of `content` and `tool_calls`, each call of one of the tools.

    `choice` says whether a call must come, and of which tools; `parallel` whether several may. With `both` false,
    only `content` is required, and an answer without calls may leave `tool_calls` out. `most_items` and
    `most_characters` bound the arrays and strings of arguments that have no bound of their own, so that no model
    writes one without end; None for no bound.
    """

    tools: Sequence[ToolSpec]  # `tool.spec` of each
    choice: ToolChoice = field(default_factory=ToolChoice)
    parallel: bool = True
    both: bool = True
    most_items: int | None = None
    most_characters: int | None = None

    def __post_init__(self) -> None:
        from toolcrib.schema.given import listed_specs

        object.__setattr__(self, "tools", tuple(listed_specs(self.tools)))


def _check_text(text: Any, owner: str) -> None:
    """Raises ValueError for what is no text: half of a surrogate pair cannot be sent or written."""
    try:
        text.encode()
    except (AttributeError, UnicodeEncodeError):
        raise ValueError(f"{owner}: expected text, got {text!r:.60}") from None


@dataclass(frozen=True, slots=True)
class Tag:
    """A part of an answer: between the texts `begin` and `end` stands JSON that the schema allows."""

    begin: str
    schema: Mapping[str, Any]
    end: str


@dataclass(frozen=True, slots=True)
class Tags:
    """Free text in which a trigger, with which a tag's `begin` must start, begins one of the tags."""

    tags: tuple[Tag, ...]
    triggers: tuple[str, ...]
    at_least_one: bool = False
    several: bool = True

    def __post_init__(self) -> None:
        for tag in self.tags:
            if not tag.begin.startswith(self.triggers):
                raise ValueError(f"Tags: {tag.begin!r} begins with none of the triggers {self.triggers!r}")


Constraint = Choice | Regex | JsonSchema | Grammar | ToolCalls | Tags
"""What an answer must look like."""
