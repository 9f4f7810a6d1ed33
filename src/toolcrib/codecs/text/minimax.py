"""MiniMax: M1 writes JSON lines, M2 `<invoke>`, M3 an element for each value behind a mark of its own."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from toolcrib.codecs.text.escaping import escape_markers_in_json
from toolcrib.codecs.text.format import TextFormat
from toolcrib.codecs.text.invoke import invoke_form
from toolcrib.codecs.text.json_blocks import Blocks
from toolcrib.codecs.text.json_formats import Row
from toolcrib.codecs.text.nested_elements import MARK, TAGS, ElementReader
from toolcrib.codecs.text.tag_forms import NAME_BREAKERS, TagForm
from toolcrib.codecs.text.tagged_parameters import tag_parser

M1 = Row(
    name="minimax_m1",
    blocks=Blocks(begin=("<tool_calls>",), end=("</tool_calls>",)),
    models=(r"minimax-?m1", r"minimax-?text"),
    before="<tool_calls>\n",
    after="\n</tool_calls>",
)

M2 = invoke_form(
    "minimax_m2",
    (r"minimax",),
    "minimax:tool_call",
    trim="wrapped",
    thinking=("<think>\n", "\n</think>\n\n"),
    result="<response>{text}</response>",
)


class ElementForm(TagForm):
    """M3's form: an element for each value, however deep it stands."""

    def _parameter(self, name: str, value: Any) -> str:
        try:
            return self._element(name, value) + "\n"
        except RecursionError:  # deeper than a model would write
            return self._element(name, escape_markers_in_json(value, self.words)) + "\n"

    def _element(self, name: str, value: Any) -> str:
        tag = NAME_BREAKERS.sub("_", name)
        if isinstance(value, Mapping):
            inner = "".join(self._element(str(key), item) for key, item in value.items())
        elif isinstance(value, list):
            inner = "".join(self._element("item", item) for item in value)
        else:
            inner = self.text_of(value)
        return f"{MARK}<{tag}>{inner}{MARK}</{tag}>"


M3 = ElementForm(
    thinking=("<think>\n", "\n</think>\n\n"),
    name="minimax_m3",
    models=(r"minimax-?m-?[3-9]",),
    parse=tag_parser(TAGS, ElementReader),
    words=(MARK,),
    trims=True,
    call=f'{MARK}<invoke name="{{name}}">\n{{parameters}}{MARK}</invoke>',
    parameter="",
    around=f"{MARK}<tool_call>\n{{calls}}\n{MARK}</tool_call>",
    result="<response>{text}</response>",
    rule=(
        f"Each tag begins with {MARK}. A string is written as it is, an object as elements with the names of its "
        "keys, a list as `item` elements, any other value as JSON."
    ),
)

FORMATS: tuple[TextFormat, ...] = (M3.format(), M1.format(), M2.format())
