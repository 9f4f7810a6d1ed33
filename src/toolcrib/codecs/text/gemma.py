"""FunctionGemma and Gemma 4: calls, declarations and results in a notation of their own."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from toolcrib.call import ToolCall
from toolcrib.codecs.text.format import ResultText, TextFormat
from toolcrib.codecs.text.quoted_members import Members
from toolcrib.codecs.text.tag_forms import NAME_BREAKERS
from toolcrib.codecs.text.teaching import call_arguments

if TYPE_CHECKING:
    from toolcrib.spec import ToolSpec

FUNCTION_GEMMA = Members(
    begin="<start_function_call>",
    end="<end_function_call>",
    quote="<escape>",
    turn_over="<start_function_response>",
)
GEMMA_4 = Members(
    begin="<|tool_call>",
    end="<tool_call|>",
    quote='<|"|>',
    turn_over="<|tool_response>",
    thinking={"<|channel>thought\n": "<channel|>", "<|channel>": "<channel|>"},
)


def _shouted(schema: Any) -> Any:
    """A schema with the names of types in capitals, as the families were trained on."""
    if isinstance(schema, Mapping):
        return {
            key: value.upper() if key == "type" and isinstance(value, str) else _shouted(value)
            for key, value in schema.items()
        }
    return [_shouted(item) for item in schema] if isinstance(schema, list) else schema


def _format(
    name: str, models: tuple[str, ...], members: Members, declared: tuple[str, str], answered: tuple[str, str]
) -> TextFormat:
    """A format of this notation; `declared` and `answered` stand around a declaration and a result."""

    def write_calls(calls: Sequence[ToolCall]) -> str:
        return "".join(
            f"{members.begin}call:{NAME_BREAKERS.sub('_', call.name)}"
            f"{members.written(call_arguments(call))}{members.end}"
            for call in calls
        )

    def write_result(result: ResultText) -> str:
        said = {"error" if result.is_error else "value": result.text}
        return (
            f"{answered[0]}response:{NAME_BREAKERS.sub('_', result.name)}{members.written(said)}{answered[1]}"
        )

    def teach(specs: Sequence[ToolSpec]) -> str:
        tools = "\n".join(
            f"{declared[0]}declaration:{spec.name}"
            f"{members.written({'description': spec.description, 'parameters': _shouted(spec.input_schema)})}"
            f"{declared[1]}"
            for spec in specs
        )
        return (
            f"You can call these functions:\n{tools}\n\n"
            f"To call a function, write exactly:\n{write_calls([ToolCall('NAME', {'PARAMETER': 'VALUE'})])}\n"
            f"Strings stand between {members.quote} and {members.quote}, as they are; numbers, true, false and null "
            "as they are; objects as {key:value,...}, lists as [value,...]. Several calls stand one after the "
            "other. After your calls, stop: the results come with the next message."
        )

    return TextFormat(
        name=name,
        parse=members.parse,
        teach=teach,
        write_calls=write_calls,
        write_result=write_result,
        models=models,
        reserved=(*members.words, *declared, *answered),
    )


FORMATS: tuple[TextFormat, ...] = (
    _format(
        "functiongemma",
        (r"function-?gemma",),
        FUNCTION_GEMMA,
        ("<start_function_declaration>", "<end_function_declaration>"),
        ("<start_function_response>", "<end_function_response>"),
    ),
    _format(
        "gemma4",
        (r"gemma-?[4-9]",),
        GEMMA_4,
        ("<|tool>", "<tool|>"),
        ("<|tool_response>", "<tool_response|>"),
    ),
)
