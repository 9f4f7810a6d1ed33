"""The fields of a lowered constraint are those of the installed SDKs' own types: nothing unknown, nothing missing."""

from __future__ import annotations

from typing import Any

import botocore.session
import pytest
from anthropic.types import OutputConfigParam, ToolChoiceToolParam, ToolParam
from botocore.validate import ParamValidator
from openai.types.chat import (
    ChatCompletionCustomToolParam,
    ChatCompletionFunctionToolParam,
    ChatCompletionNamedToolChoiceCustomParam,
    ChatCompletionNamedToolChoiceParam,
)
from openai.types.responses import (
    CustomToolParam,
    FunctionToolParam,
    ResponseTextConfigParam,
    ToolChoiceCustomParam,
    ToolChoiceFunctionParam,
)
from openai.types.shared_params import ResponseFormatJSONObject, ResponseFormatJSONSchema
from pydantic import TypeAdapter

from tests.cases import each
from toolcrib.guided import JsonSchema, Regex, lower

POINT = JsonSchema(
    {"type": "object", "properties": {"x": {"type": "integer"}}, "required": ["x"]}, "point", "A point."
)
DIGITS = Regex("[0-9]+")
FIRST_TOOL = ("tools", 0)

# constraint, target, rung, where in the fields, the SDK's type of it
PLACES: list[tuple[Any, str, Any, tuple[Any, ...], Any]] = [
    (POINT, "openai.chat", "native", ("response_format",), ResponseFormatJSONSchema),
    (POINT, "openai.chat", "strict tool", FIRST_TOOL, ChatCompletionFunctionToolParam),
    (POINT, "openai.chat", "forced tool", ("tool_choice",), ChatCompletionNamedToolChoiceParam),
    (POINT, "openai.chat", "JSON mode", ("response_format",), ResponseFormatJSONObject),
    (DIGITS, "openai.chat", "native", FIRST_TOOL, ChatCompletionCustomToolParam),
    (DIGITS, "openai.chat", "native", ("tool_choice",), ChatCompletionNamedToolChoiceCustomParam),
    (POINT, "openai.responses", "native", ("text",), ResponseTextConfigParam),
    (POINT, "openai.responses", "strict tool", FIRST_TOOL, FunctionToolParam),
    (POINT, "openai.responses", "forced tool", ("tool_choice",), ToolChoiceFunctionParam),
    (POINT, "openai.responses", "JSON mode", ("text",), ResponseTextConfigParam),
    (DIGITS, "openai.responses", "native", FIRST_TOOL, CustomToolParam),
    (DIGITS, "openai.responses", "native", ("tool_choice",), ToolChoiceCustomParam),
    (POINT, "anthropic", "native", ("output_config",), OutputConfigParam),
    (POINT, "anthropic", "strict tool", FIRST_TOOL, ToolParam),
    (POINT, "anthropic", "forced tool", ("tool_choice",), ToolChoiceToolParam),
]


@each(("constraint", "target", "rung", "place", "kind"), PLACES)
def test_a_field_is_of_the_sdk_s_own_type(
    constraint: Any, target: str, rung: Any, place: tuple[Any, ...], kind: Any
) -> None:
    value: Any = lower(constraint, target, rung=rung).fields
    for step in place:
        value = value[step]
    assert TypeAdapter(kind).validate_python(value) == value


@pytest.mark.parametrize("rung", ["native", "strict tool", "forced tool"])
def test_what_bedrock_is_sent_is_of_its_own_shape(rung: Any) -> None:
    session = botocore.session.get_session()
    shape = session.get_service_model("bedrock-runtime").operation_model("Converse").input_shape
    body = lower(POINT, "bedrock", rung=rung).into({"modelId": "m"})
    report = ParamValidator().validate(body, shape)
    assert not report.has_errors(), report.generate_report()
