"""`<function=NAME>` with `<parameter=NAME>` in it: Qwen3-Coder, and the families that took it over."""

from __future__ import annotations

from toolcrib.codecs.text.format import TextFormat
from toolcrib.codecs.text.tag_forms import TagForm
from toolcrib.codecs.text.tag_headers import equals, tag
from toolcrib.codecs.text.tagged_parameters import tag_parser
from toolcrib.codecs.text.tags import Tags


def function_tags(opening: str, closing: str) -> Tags:
    """The tags of this family in a section with these markers."""
    return Tags(
        sections={opening: closing},
        call="<function=",
        call_end="</function>",
        call_header=tag(equals),
        parameter="<parameter=",
        parameter_end="</parameter>",
        parameter_header=tag(equals),
        bare=True,
        trim="lines",
    )


def function_form(name: str, models: tuple[str, ...], opening: str = "<tool_call>") -> TagForm:
    """A format of this family; `opening` is the marker of its sections."""
    closing = opening.replace("<", "</")
    tags = function_tags(opening, closing)
    return TagForm(
        name=name,
        models=models,
        parse=tag_parser(tags),
        words=tags.words,
        call="<function={name}>\n{parameters}</function>",
        parameter="<parameter={name}>\n{value}\n</parameter>\n",
        around=f"{opening}\n{{calls}}\n{closing}",
        each=True,
    )


FORMATS: tuple[TextFormat, ...] = tuple(
    function_form(name, models).format()
    for name, models in (
        ("qwen3_coder_xml", (r"qwen-?3-?coder", r"qwen-?3-?next-?coder", r"qwen-?3\.[5-9]")),
        ("nemotron3", (r"nemotron-?(?:nano-?|super-?|ultra-?)?3", r"nemotron-3")),
        ("step3p5", (r"step-?3[.p-]?[5-9]",)),
    )
)
