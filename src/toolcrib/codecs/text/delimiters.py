"""The delimiters of a text format, worked out from its templates: what the reader looks for.

`<tool_call>{name}<tool_sep>{arguments}</tool_call>` says all there is to know: a call begins at `<tool_call>`,
its name goes up to `<tool_sep>`, and it ends at `</tool_call>`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cached_property
from typing import Final, Literal

from toolcrib.codecs.text.scanner import Markers
from toolcrib.dataclass import dataclass, field

__all__ = ["Delimiters", "NameStyle", "around", "delimiters_of", "tagged_delimiters"]

# How a tag gives a name: `<function=NAME>`, `<invoke name="NAME">`, or `<tool_call>NAME`.
NameStyle = Literal["equals", "attribute", "plain"]

TOKEN: Final = re.compile(r"<[^<>{}]*>?|\[[A-Z_]+\]")
NAME_ATTRIBUTE: Final = ' name="'
FENCE: Final = "```"


@dataclass(frozen=True, kw_only=True, eq=False)
class Delimiters:
    """The delimiters around calls and inside them.

    `sections` maps what begins a group of calls to what ends it. `call` begins a call and `call_end` ends it;
    without `call` the calls are JSON objects that stand directly in a section. `separator` stands between a
    name and its arguments. `parameter` begins a parameter, `parameter_end` ends it, and `key_ends` stand
    between its name and its value where the name is in no tag. `others` may stand anywhere and mean nothing.
    """

    sections: Mapping[str, str] = field(default_factory=dict)
    section_ends: tuple[str, ...] = ()
    call: str = ""
    call_end: str = ""
    call_name: NameStyle = "plain"
    separator: str = ""
    parameter: str = ""
    parameter_end: str = ""
    parameter_name: NameStyle = "plain"
    key_ends: tuple[str, ...] = ()
    others: tuple[str, ...] = ()

    @cached_property
    def words(self) -> tuple[str, ...]:
        """All delimiters, each once."""
        inside = (
            self.call,
            self.separator,
            self.call_end,
            self.parameter,
            *self.key_ends,
            self.parameter_end,
        )
        words = (*self.section_ends, *self.sections, *inside, *self.others)
        return tuple(dict.fromkeys(word for word in words if word))

    @cached_property
    def all(self) -> Markers:
        """All delimiters, to look for."""
        return Markers(self.words)

    @cached_property
    def outer(self) -> Markers:
        """The delimiters that may stand between calls."""
        return Markers(word for word in (self.call, *self.sections, *self.section_ends) if word)

    @cached_property
    def in_call(self) -> Markers:
        """The delimiters that may stand between the parameters of a call."""
        return Markers((*self.outer.words, self.call_end, self.parameter))

    @cached_property
    def in_value(self) -> Markers:
        """The delimiters that may stand in a value or after it."""
        return Markers((*self.in_call.words, self.parameter_end))

    @cached_property
    def ends(self) -> Markers:
        """The delimiters that end a call, or all calls."""
        return Markers(word for word in (self.call_end, *self.section_ends) if word)

    @property
    def closers(self) -> tuple[str, ...]:
        """The delimiters that end a section, a call or a parameter."""
        return (*self.section_ends, self.call_end, self.parameter_end)

    def openings(self, *, section_optional: bool) -> tuple[str, ...]:
        """The delimiters that may begin calls in prose."""
        return (*self.sections, *((self.call,) if section_optional or not self.sections else ()))


def around(template: str, placeholder: str) -> tuple[str, str]:
    """The delimiters before and behind a placeholder: without white space, the bracket of a list or a fence."""
    before, _, after = template.partition(placeholder)
    opening, closing = before.strip(), after.strip().removeprefix("]").strip()
    if opening.endswith("[") and not opening[-2:-1].isalpha():
        opening = opening[:-1].strip()
    return opening, "" if closing == FENCE else closing


def delimiters_of(
    calls: str, call: str, begin: tuple[str, ...], end: tuple[str, ...], others: tuple[str, ...]
) -> Delimiters:
    """The delimiters of a format whose arguments are JSON: in an object with the name, or behind the name.

    `begin`, `end` and `others` are further words that begin calls, end them, or mean nothing.
    """
    if "{call}" in call:
        opening, closing = around(calls.replace("{calls}", call), "{call}")
        begins = (*((opening,) if opening else ()), *begin)
        ends = (*((closing,) if closing else ()), *end)
        sections = dict.fromkeys(begins, closing)
        return Delimiters(sections=sections, section_ends=ends, others=others)
    if "{arguments}" not in call:
        raise ValueError(call)
    opening, closing = around(calls, "{calls}")
    head, _, tail = call.partition("{arguments}")
    before = head.partition("{")[0]
    first, *rest = TOKEN.findall(head) or [before.strip()]
    begins = (*((opening,) if opening else ()), *begin)
    return Delimiters(
        sections=dict.fromkeys(begins, closing),
        section_ends=(*((closing,) if closing else ()), *end),
        call=first,
        call_name=_style(before),
        separator=rest[-1] if rest else "",
        call_end=next(iter(TOKEN.findall(tail)), ""),
        others=others,
    )


def tagged_delimiters(calls: str, call: str, parameter: str) -> Delimiters:
    """The delimiters of a format with a tag for each parameter."""
    before, _, after = calls.partition("{calls}")
    head, _, tail = call.partition("{arguments}")
    to_name, _, from_name = head.partition("{name}")
    *openings, begins_call = TOKEN.findall(before + to_name)
    ends_call, *closings = TOKEN.findall(tail + after)
    to_parameter, _, from_parameter = parameter.partition("{name}")
    between, _, to_end = from_parameter.partition("{value}")
    style = _style(to_parameter)
    call_style = _style(to_name)
    return Delimiters(
        sections={openings[0]: closings[-1]} if openings else {},
        section_ends=(closings[-1],) if openings else (),
        call=begins_call.removesuffix(NAME_ATTRIBUTE),
        call_end=ends_call,
        call_name=call_style,
        separator=from_name.strip() if call_style == "plain" else "",
        parameter=TOKEN.findall(to_parameter)[-1].removesuffix(NAME_ATTRIBUTE),
        parameter_end=TOKEN.findall(to_end)[0],
        parameter_name=style,
        key_ends=tuple(TOKEN.findall(between)) if style == "plain" else (),
    )


def _style(before: str) -> NameStyle:
    return "attribute" if before.endswith('"') else "equals" if before.endswith("=") else "plain"
