"""Mistral's formats: `[TOOL_CALLS]` and a JSON list, or since version 11 each call as `name[ARGS]{...}`."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

from toolcrib.call import ToolCall
from toolcrib.codecs.text.answer import CUT_OFF, Answer
from toolcrib.codecs.text.escaping import escape_markers_in_json
from toolcrib.codecs.text.format import ResultText, TextFormat, Tools
from toolcrib.codecs.text.json_blocks import BlockReader, Blocks
from toolcrib.codecs.text.json_calls import NO_JSON
from toolcrib.codecs.text.prose import Prose
from toolcrib.codecs.text.scanner import Scanner, Steps
from toolcrib.codecs.text.teaching import call_arguments, call_arguments_text, json_tool_list

if TYPE_CHECKING:
    from toolcrib.spec import ToolSpec

CALLS, ARGS, CALL_ID = "[TOOL_CALLS]", "[ARGS]", "[CALL_ID]"
BLOCKS = Blocks(begin=(CALLS,), end=("</s>",))
NO_HERMES = r"^(?!.*hermes).*"  # which is tuned to a form of its own
NAME_RUN = re.compile(r"[^\s\[\]{}()<>\"'`,;:=]+")
ID_RUN = re.compile(r"[\w-]+")


def parse(scan: Scanner, answer: Answer, tools: Tools) -> Steps[None]:
    """Read an answer in either form."""
    reader = BlockReader(BLOCKS, scan, answer)
    prose = Prose(scan, answer, BLOCKS.stops)
    while (marker := (yield from prose.until_marker())) is not None:
        if marker != CALLS:
            continue
        if (yield from scan.mark()) in ("[", "{"):
            yield from reader.block()
        else:
            yield from _named(scan, answer)


def _named(scan: Scanner, answer: Answer) -> Steps[None]:
    """`name{...}`, `name[ARGS]{...}` or `name[CALL_ID]id[ARGS]{...}`."""
    name: list[str] = []
    id: list[str] = []
    start = scan.offset
    yield from scan.take_while(NAME_RUN, name.append)
    if (yield from scan.accept((CALL_ID,))):
        yield from scan.take_while(ID_RUN, id.append)
    yield from scan.accept((ARGS,))
    yield from scan.skip_space()
    if name and (yield from scan.peek()) == "{":
        answer.open_call("".join(name), "".join(id))
        if (yield from scan.json_value(answer.arguments, BLOCKS.stops)):
            answer.close_call()
        else:
            answer.fail_call(CUT_OFF if scan.ended else NO_JSON)
            answer.doubt_what_follows()
        return
    cut_off = scan.ended and scan.at_end
    yield from scan.until(())
    answer.open_call("".join(name) if cut_off else "", "".join(id))
    answer.arguments("" if cut_off else scan.since(start))
    answer.fail_call(CUT_OFF if cut_off else NO_JSON)


def _taught(form: str) -> str:
    return (
        "[AVAILABLE_TOOLS]{tools}[/AVAILABLE_TOOLS]\n\n"
        f"To call a tool, write exactly:\n{form}\n"
        "After your calls, stop: the results come as [TOOL_RESULTS] with the next message."
    )


def _teach_list(specs: Sequence[ToolSpec]) -> str:
    form = '[TOOL_CALLS][{"name": "NAME", "arguments": {"PARAMETER": "VALUE"}}]\nSeveral calls stand in one list.'
    return _taught(form).replace("{tools}", json_tool_list(specs), 1)


def _teach_named(specs: Sequence[ToolSpec]) -> str:
    form = '[TOOL_CALLS]NAME[ARGS]{"PARAMETER": "VALUE"}\nSeveral calls stand one after the other.'
    return _taught(form).replace("{tools}", json_tool_list(specs), 1)


def _write_list(calls: Sequence[ToolCall]) -> str:
    said = [{"name": call.name, "arguments": call_arguments(call), "id": call.id} for call in calls]
    return CALLS + escape_markers_in_json(json.dumps(said, ensure_ascii=False, default=str))


def _write_named(calls: Sequence[ToolCall]) -> str:
    return "".join(f"{CALLS}{call.name}{ARGS}{call_arguments_text(call)}" for call in calls)


def _write_result(result: ResultText) -> str:
    said = {"call_id": result.id, "name": result.name}
    failed = {"error": True} if result.is_error else {}
    return f"[TOOL_RESULTS]{json.dumps(said | failed)}\n{result.text}[/TOOL_RESULTS]"


FORMATS = (
    TextFormat(
        name="mistral_pre_v11",
        parse=parse,
        teach=_teach_list,
        write_calls=_write_list,
        write_result=_write_result,
        models=(rf"{NO_HERMES}(mistral-7b|mixtral|mistral-nemo|mistral-large.*2407|ministral.*2410)",),
    ),
    TextFormat(
        name="mistral",
        parse=parse,
        teach=_teach_named,
        write_calls=_write_named,
        write_result=_write_result,
        models=(rf"{NO_HERMES}(mistral|ministral|magistral|devstral|codestral|pixtral)",),
    ),
)
