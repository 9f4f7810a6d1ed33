"""`<invoke name="NAME">` with `<parameter name="NAME">` in it: Anthropic's form and the families of its kind."""

from __future__ import annotations

from toolcrib.codecs.text.argument_writer import Trim
from toolcrib.codecs.text.format import TextFormat
from toolcrib.codecs.text.tag_forms import PLAIN_RULE, TagForm
from toolcrib.codecs.text.tag_headers import attributes, tag
from toolcrib.codecs.text.tagged_parameters import tag_parser
from toolcrib.codecs.text.tags import Tags


def invoke_tags(section: str, prefix: str, *, typed: bool, bare: bool, trim: Trim) -> Tags:
    """The tags of this family with a prefix to their names."""
    return Tags(
        sections={f"<{section}>": f"</{section}>"},
        call=f"<{prefix}invoke",
        call_end=f"</{prefix}invoke>",
        call_header=tag(attributes),
        parameter=f"<{prefix}parameter",
        parameter_end=f"</{prefix}parameter>",
        parameter_header=tag(attributes),
        bare=bare,
        trim=trim,
        unwraps=typed,
    )


def invoke_form(
    name: str,
    models: tuple[str, ...],
    section: str,
    *,
    prefix: str = "",
    variants: tuple[str, ...] = (),
    typed: bool = False,
    bare: bool = False,
    trim: Trim = "none",
    result: str,
    rule: str = PLAIN_RULE,
    thinking: tuple[str, str] | None = None,
) -> TagForm:
    """A format of this family: the name of its section's tag, and what stands before the name of each tag.

    `variants` are other ways in which models write the prefix, the section's included. `typed` parameters say
    with `string="true"` or `"false"` whether their value is text or JSON.
    """
    opening, closing = f"<{prefix}{section}>", f"</{prefix}{section}>"
    tags, *others = (
        invoke_tags(f"{before}{section}", before, typed=typed, bare=bare, trim=trim)
        for before in (prefix, *variants)
    )
    said = ' string="{string}"' if typed else ""
    return TagForm(
        name=name,
        models=models,
        parse=tag_parser(tags, others=others),
        words=tuple(word for kin in (tags, *others) for word in kin.words),
        call=f'{tags.call} name="{{name}}">\n{{parameters}}{tags.call_end}',
        parameter=f'{tags.parameter} name="{{name}}"{said}>{{value}}{tags.parameter_end}\n',
        around=f"{opening}\n{{calls}}\n{closing}",
        result=result,
        rule=rule,
        thinking=thinking,
        trims=trim != "none",
    )


FORMATS: tuple[TextFormat, ...] = (
    invoke_form(
        "invoke",
        (r"claude",),
        "function_calls",
        bare=True,
        result='<function_results name="{name}">\n{text}\n</function_results>',
    ).format(),
)
