"""The markers of a format that has a tag for each parameter."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from toolcrib.codecs.text.argument_writer import Trim
from toolcrib.codecs.text.prose import THINKING
from toolcrib.codecs.text.scanner import Into, Scanner, Steps
from toolcrib.codecs.text.tag_headers import Header

ReadHeader = Callable[[Scanner, Into], Steps[Header | None]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Tags:
    """The markers of one format.

    `sections` are the markers around one call or several; without any, or if `bare`, calls stand by
    themselves. `call` and `parameter` begin an opening tag, of which `call_header` and `parameter_header`
    read the rest. What else stands in a section is text, or nothing if it is `silent`. `untyped_json` reads
    JSON where no schema says what is meant, `unwraps` takes arguments out of a parameter that holds them all.
    """

    sections: Mapping[str, str] = field(default_factory=dict)
    call: str
    call_end: str
    call_header: ReadHeader
    parameter: str
    parameter_end: str
    parameter_header: ReadHeader
    bare: bool = False
    silent: bool = False
    trim: Trim = "wrapped"
    untyped_json: bool = False
    unwraps: bool = False
    thinking: Mapping[str, str] = field(default_factory=lambda: THINKING)

    @property
    def words(self) -> tuple[str, ...]:
        """All markers."""
        around = (*self.sections, *self.sections.values())
        return (*around, self.call, self.call_end, self.parameter, self.parameter_end)
