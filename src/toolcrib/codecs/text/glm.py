"""`<arg_key>` and `<arg_value>` in a `<tool_call>` that begins with the name: GLM-4.5 and later, Hunyuan V3."""

from __future__ import annotations

import re

from toolcrib.codecs.text.format import TextFormat
from toolcrib.codecs.text.scanner import Into, Markers, Scanner, Steps
from toolcrib.codecs.text.tag_forms import TagForm
from toolcrib.codecs.text.tag_headers import Header
from toolcrib.codecs.text.tagged_parameters import tag_parser
from toolcrib.codecs.text.tags import ReadHeader, Tags

CALL, CALL_END = "<tool_call>", "</tool_call>"
KEY, KEY_END = "<arg_key>", "</arg_key>"
VALUE, VALUE_END = "<arg_value>", "</arg_value>"
SEPARATOR = "<tool_sep>"
WORDS = (CALL, CALL_END, KEY, KEY_END, VALUE, VALUE_END)

_NAME = re.compile(r"[^\s<>{}\\]+")
_KEY = re.compile(r"[^<>]+")
_SEPARATOR = Markers((SEPARATOR,))
_KEY_ENDS = Markers((KEY_END, VALUE))
_VALUE = Markers((VALUE,))


def name_header(separator: bool) -> ReadHeader:
    """Reads the tool's name, after which only a parameter or the end of the call can stand."""
    follows = (KEY, CALL_END, *((SEPARATOR,) if separator else ()))
    longest = max(map(len, follows))

    def read(scan: Scanner, into: Into) -> Steps[Header | None]:
        name: list[str] = []
        yield from scan.skip_space(into)
        yield from scan.take_while(_NAME, name.append)
        into("".join(name))
        yield from _skip_layout(scan, into)
        if not (yield from scan.peek()):
            return Header("".join(name), closed=False)
        if not (yield from scan.peek(longest)).startswith(follows):
            return None
        if separator:
            into((yield from scan.accept(_SEPARATOR)) or "")
        return Header("".join(name))

    return read


def key_header(scan: Scanner, into: Into) -> Steps[Header | None]:
    """Reads a parameter's name and the tag that begins its value."""
    key: list[str] = []
    yield from scan.take_while(_KEY, key.append)
    into("".join(key))
    found = yield from scan.accept(_KEY_ENDS)
    into(found or "")
    if found == KEY_END:
        yield from _skip_layout(scan, into)
        found = yield from scan.accept(_VALUE)
        into(found or "")
    return Header("".join(key).strip(), closed=found == VALUE)


def _skip_layout(scan: Scanner, into: Into) -> Steps[None]:
    """White space, and line breaks that some servers send escaped."""
    while True:
        yield from scan.skip_space(into)
        if (yield from scan.peek()) != "\\" or (yield from scan.peek(2)) != "\\n":
            return
        scan.skip(2, into)


def glm_form(name: str, models: tuple[str, ...], line: str = "\n", *, section: bool = False) -> TagForm:
    """A format of this family; `line` stands between its tags, `section` around all calls of a turn."""
    sections = {"<tool_calls>": "</tool_calls>"} if section else {}
    tags = Tags(
        sections=sections,
        call=CALL,
        call_end=CALL_END,
        call_header=name_header(section),
        parameter=KEY,
        parameter_end=VALUE_END,
        parameter_header=key_header,
        trim="none",
        untyped_json=not section,
    )
    separator = SEPARATOR if section else ""
    return TagForm(
        name=name,
        models=models,
        parse=tag_parser(tags),
        words=(*WORDS, *sections, *sections.values()),
        call=f"{CALL}{{name}}{separator}{line}{{parameters}}{CALL_END}",
        parameter=f"{KEY}{{name}}{KEY_END}{line}{VALUE}{{value}}{VALUE_END}{line}",
        around=f"<tool_calls>{line}{{calls}}{line}</tool_calls>" if section else "{calls}",
        each=not section,
        between=line,
        result="<tool_response>\n{text}\n</tool_response>",
        thinking=("<think>", "</think>\n"),
    )


FORMATS: tuple[TextFormat, ...] = (
    glm_form("glm47", (r"glm-?(?:4\.[7-9]|[5-9])",), "").format(),
    glm_form("glm4_moe", (r"glm-?4\.[56]",)).format(),
    glm_form("hunyuan_v3", (r"hunyuan-?(?:v3|3)", r"\bhy-?v?[34]"), section=True).format(),
)
