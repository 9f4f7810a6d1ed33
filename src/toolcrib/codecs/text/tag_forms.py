"""How formats with a tag for each parameter are taught, and how their calls and results stand in the history."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from toolcrib.call import ToolCall
from toolcrib.codecs.text.escaping import SPECIAL, escape_markers_in_json
from toolcrib.codecs.text.format import Parse, ResultText, TextFormat
from toolcrib.codecs.text.teaching import call_arguments, json_tools

if TYPE_CHECKING:
    from toolcrib.spec import ToolSpec

NAME_BREAKERS = re.compile(r"[<>\"\s]")
PLAIN_RULE = "Write a string as it is, without quotes or escapes, on several lines if need be; any other value as JSON."


@lru_cache(maxsize=128)
def _breakers(words: tuple[str, ...]) -> re.Pattern[str]:
    own = (f"{re.escape(word[0])}(?={re.escape(word[1:])})" for word in words)
    return re.compile("|".join([SPECIAL, *own]))


def plain_text(text: str, words: tuple[str, ...]) -> str:
    """A model's own string in which none of these words, nor a special token, means anything.

    >>> plain_text("a<b></parameter>", ("</parameter>",))
    'a<b>&lt;/parameter>'
    """
    return _breakers(words).sub(
        lambda match: ("&lt;" if match[0][0] == "<" else f"&#{ord(match[0][0])};") + match[0][1:], text
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class TagForm:
    """One format as it is written. Templates hold `{name}`, `{value}` and so on.

    `around` stands around all calls of a turn, or around each if `each`. `string` in the template of a
    parameter becomes "true" or "false". `words` are the markers of the format. `trims` says that line breaks
    at the ends of a value are layout, though the templates write none.
    """

    name: str
    models: tuple[str, ...]
    parse: Parse
    words: tuple[str, ...]
    call: str
    parameter: str
    around: str = "{calls}"
    each: bool = False
    between: str = "\n"
    result: str = "<tool_response>\n{text}\n</tool_response>"
    declare: Callable[[Sequence[ToolSpec]], str] = json_tools
    declared: str = "# Tools\n\nYou may call these functions:\n<tools>\n{tools}\n</tools>"
    rule: str = PLAIN_RULE
    thinking: tuple[str, str] | None = None
    trims: bool = False

    def write(self, calls: Iterable[tuple[str, Mapping[str, Any]]]) -> str:
        """Calls, by name and arguments, as the model is to write them."""
        written = [
            self.call.format(
                name=NAME_BREAKERS.sub("_", name),
                parameters="".join(self._parameter(key, value) for key, value in arguments.items()),
            )
            for name, arguments in calls
        ]
        if self.each:
            written = [self.around.format(calls=one) for one in written]
        together = self.between.join(written)
        return together if self.each else self.around.format(calls=together)

    def _parameter(self, name: str, value: Any) -> str:
        string = "true" if isinstance(value, str) else "false"
        return self.parameter.format(
            name=NAME_BREAKERS.sub("_", name), value=self.text_of(value), string=string
        )

    def text_of(self, value: Any) -> str:
        """A value as it stands between its tags."""
        if not isinstance(value, str):
            return escape_markers_in_json(value, self.words)
        text = plain_text(value, self.words)
        lines = self.trims and (text.startswith(("\n", "\r")) or text.endswith(("\n", "\r")))
        return f"\n{text}\n" if lines else text  # else its own line breaks would count as layout

    def teach(self, specs: Sequence[ToolSpec]) -> str:
        example = self.write([("FUNCTION", {"PARAMETER_1": "VALUE", "PARAMETER_2": "A VALUE\nOF TWO LINES"})])
        several = "repeat the whole form" if self.each else "repeat what stands inside the outermost tags"
        return (
            f"{self.declared.format(tools=self.declare(specs))}\n\n"
            f"To call a function, write exactly:\n{example}\n"
            f"{self.rule} For several calls {several}. "
            "After your calls, stop: the results come with the next message."
        )

    def write_calls(self, calls: Sequence[ToolCall]) -> str:
        return self.write([(call.name, call_arguments(call)) for call in calls])

    def write_result(self, result: ResultText) -> str:
        return self.result.format(name=NAME_BREAKERS.sub("_", result.name), id=result.id, text=result.text)

    def format(self) -> TextFormat:
        return TextFormat(
            name=self.name,
            parse=self.parse,
            teach=self.teach,
            write_calls=self.write_calls,
            write_result=self.write_result,
            models=self.models,
            reserved=self.words,
            thinking=self.thinking,
        )
