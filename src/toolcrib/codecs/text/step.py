"""Step 3: `<steptml:invoke>` between special tokens. Step 3.5 writes Qwen3-Coder's tags."""

from __future__ import annotations

from toolcrib.codecs.text.format import TextFormat
from toolcrib.codecs.text.tag_forms import TagForm
from toolcrib.codecs.text.tag_headers import attributes, tag
from toolcrib.codecs.text.tagged_parameters import tag_parser
from toolcrib.codecs.text.tags import Tags

SECTION, SECTION_END = "<｜tool_calls_begin｜>", "<｜tool_calls_end｜>"
CALL, CALL_END = "<｜tool_call_begin｜>", "<｜tool_call_end｜>"
SEPARATOR = "<｜tool_sep｜>"

TAGS = Tags(
    sections={SECTION: SECTION_END},
    call="<steptml:invoke",
    call_end="</steptml:invoke>",
    call_header=tag(attributes),
    parameter="<steptml:parameter",
    parameter_end="</steptml:parameter>",
    parameter_header=tag(attributes),
    silent=True,
)

FORMATS: tuple[TextFormat, ...] = (
    TagForm(
        name="step3",
        models=(r"step-?3\b",),
        parse=tag_parser(TAGS),
        words=(SECTION, SECTION_END, CALL, CALL_END, SEPARATOR, *TAGS.words),
        call=f'{CALL}function{SEPARATOR}<steptml:invoke name="{{name}}">{{parameters}}</steptml:invoke>{CALL_END}',
        parameter='<steptml:parameter name="{name}">{value}</steptml:parameter>',
        around=f"{SECTION}{{calls}}{SECTION_END}",
        between="",
        trims=True,
        result="<tool_response>\n{text}\n</tool_response>",
    ).format(),
)
