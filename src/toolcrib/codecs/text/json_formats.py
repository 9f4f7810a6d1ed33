"""The formats whose calls are JSON, a row each."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from toolcrib.call import ToolCall
from toolcrib.codecs.text.constraints import Constraint, structural_tag
from toolcrib.codecs.text.escaping import escape_markers_in_json
from toolcrib.codecs.text.format import ResultText, TextFormat
from toolcrib.codecs.text.json_blocks import Blocks
from toolcrib.codecs.text.teaching import call_arguments, json_tools

if TYPE_CHECKING:
    from toolcrib.spec import ToolSpec


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One format: where its calls stand, and how one is written.

    `call` is the object with the keys that the family was trained on; `listed` puts the calls of a turn into
    one list. `before` and `after` are what is written around them, `result` what stands around a result.
    """

    name: str
    blocks: Blocks
    models: tuple[str, ...] = ()
    before: str = ""
    after: str = ""
    listed: bool = False
    name_key: str = "name"
    arguments_key: str = "arguments"
    between: str = "\n"
    declare: Callable[[Sequence[ToolSpec]], str] = json_tools
    result: str = "tool_response"

    @property
    def reserved(self) -> tuple[str, ...]:
        """The format's markers."""
        return tuple(dict.fromkeys(word.strip() for word in self.blocks.stops))

    def call_object(self, name: str, arguments: Any, id: str = "") -> dict[str, Any]:
        if self.blocks.keyed:
            return {name: arguments}
        return {self.name_key: name, self.arguments_key: arguments}

    def form(self, calls: Sequence[str]) -> str:
        """Calls, each a JSON text, as the model is to write them."""
        if self.listed:
            return f"{self.before}[{', '.join(calls)}]{self.after}"
        return self.between.join(f"{self.before}{call}{self.after}" for call in calls)

    def write_calls(self, calls: Sequence[ToolCall]) -> str:
        said = (self.call_object(call.name, call_arguments(call)) for call in calls)
        return self.form([escape_markers_in_json(call, self.reserved) for call in said])

    def write_result(self, result: ResultText) -> str:
        failed = ' error="true"' if result.is_error else ""
        return f'<{self.result} name="{result.name}"{failed}>\n{result.text}\n</{self.result}>'

    def teach(self, specs: Sequence[ToolSpec]) -> str:
        example = json.dumps(self.call_object("NAME", {"PARAMETER": "VALUE"}))
        several = "in one list" if self.listed else "one after the other, each in this form"
        return (
            "# Tools\n\nYou may call these tools:\n<tools>\n"
            f"{self.declare(specs)}\n</tools>\n\n"
            f"To call a tool, write exactly:\n{self.form([example])}\n"
            f"Several calls stand {several}. After your calls, stop: "
            f"the results come in <{self.result}> with the next message."
        )

    def tag(self, spec: ToolSpec) -> tuple[str, str]:
        """What stands before and after the arguments of a tool's call."""
        before, after = self.before, self.after
        return f'{before}{{"{self.name_key}": "{spec.name}", "{self.arguments_key}": ', f"}}{after}"

    def format(self) -> TextFormat:
        constraints: dict[str, Constraint] = {}
        if self.before and not self.listed:
            trigger = self.before.strip()
            constraints["structural_tag"] = partial(structural_tag, self.tag, trigger)
        return TextFormat(
            constraints=constraints,
            name=self.name,
            parse=self.blocks.parse,
            teach=self.teach,
            write_calls=self.write_calls,
            write_result=self.write_result,
            models=self.models,
            reserved=self.reserved,
        )


TOOL_CALL = Blocks(begin=("<tool_call>",), end=("</tool_call>",))

COMMAND_R = Blocks(
    begin=("<|START_ACTION|>",),
    end=("<|END_ACTION|>",),
    noise=("<|START_TEXT|>", "<|END_TEXT|>", "<|START_RESPONSE|>", "<|END_RESPONSE|>"),
)
COMMAND_R_PLUS = Blocks(begin=("Action:\n```json", "Action: ```json", "Action:```json"))


# In this order a model's name is looked for: what a family is tuned for goes before what it was made from.
ROWS = (
    Row(
        name="hermes",
        blocks=TOOL_CALL,
        models=(r"hermes", r"qwen-?2", r"qwen-?3", r"qwq", r"smollm3"),
        before="<tool_call>\n",
        after="\n</tool_call>",
    ),
    Row(
        name="xlam",
        blocks=Blocks(
            begin=("<tool_call>", "[TOOL_CALLS]"),
            end=("</tool_call>", "[/TOOL_CALLS]"),
            bare=True,
            fenced=True,
            needs_arguments=True,
        ),
        models=(r"xlam",),
        listed=True,
    ),
    Row(
        name="nemotron_v2",
        blocks=Blocks(begin=("<TOOLCALL>",), end=("</TOOLCALL>",), noise=("<SPECIAL_12>",)),
        models=(r"nemotron",),
        before="<TOOLCALL>",
        after="</TOOLCALL>",
        listed=True,
    ),
    Row(
        name="firefunction_v2",
        blocks=Blocks(begin=(" functools[", "functools[")),  # so that quotes before it are seen
        models=(r"firefunction",),
        before=" functools",
        listed=True,
    ),
    Row(
        name="granite4",
        blocks=TOOL_CALL,
        models=(r"granite-?4",),
        before="<tool_call>\n",
        after="\n</tool_call>",
    ),
    Row(
        name="granite_20b_fc",
        blocks=Blocks(begin=("<function_call>",), end=("</function_call>", "<|endoftext|>")),
        models=(r"granite-20b.*function",),
        before="<function_call> ",
    ),
    Row(
        name="granite",
        blocks=Blocks(
            begin=("<|tool_call|>", "<tool_call>"),
            end=("</tool_call>", "<|end_of_text|>"),
            bare=True,
            needs_arguments=True,
        ),
        models=(r"granite",),
        before="<|tool_call|>",
        listed=True,
    ),
    Row(
        name="internlm2",
        blocks=Blocks(
            begin=("<|action_start|><|plugin|>", "<|action_start|> <|plugin|>"), end=("<|action_end|>",)
        ),
        models=(r"internlm",),
        before="<|action_start|><|plugin|>",
        after="<|action_end|>",
        arguments_key="parameters",
    ),
    Row(
        name="jamba",
        blocks=Blocks(begin=("<tool_calls>",), end=("</tool_calls>",)),
        models=(r"jamba",),
        before="<tool_calls>",
        after="</tool_calls>",
        listed=True,
    ),
    Row(
        name="hunyuan_a13b",
        blocks=Blocks(begin=("<tool_calls>",), end=("</tool_calls>",), noise=("<answer>", "</answer>")),
        models=(r"hunyuan",),
        before="<tool_calls>",
        after="</tool_calls>",
        listed=True,
    ),
    Row(
        name="apriel",
        blocks=Blocks(
            begin=("<tool_calls>",), end=("</tool_calls>",), noise=("[BEGIN FINAL RESPONSE]", "<|end|>")
        ),
        models=(r"apriel",),
        before="<tool_calls>",
        after="</tool_calls>",
        listed=True,
    ),
    Row(
        name="longcat",
        blocks=Blocks(begin=("<longcat_tool_call>",), end=("</longcat_tool_call>",)),
        models=(r"longcat",),
        before="<longcat_tool_call>\n",
        after="\n</longcat_tool_call>",
    ),
    Row(
        name="apertus",
        blocks=Blocks(begin=("<|tools_prefix|>",), end=("<|tools_suffix|>",), keyed=True),
        models=(r"apertus",),
        before="<|tools_prefix|>",
        after="<|tools_suffix|>",
        listed=True,
    ),
    Row(
        name="phi4_mini_json",
        blocks=Blocks(begin=("functools[", "<|tool_call|>"), end=("<|/tool_call|>", "<|end|>")),
        models=(r"phi-?4-mini",),
        before="functools",
        listed=True,
    ),
    Row(
        name="command_r_plus",
        blocks=COMMAND_R_PLUS,
        models=(r"command-r-plus", r"command-r-v01"),
        before="Action:\n```json\n",
        after="\n```",
        name_key="tool_name",
        arguments_key="parameters",
        listed=True,
    ),
    Row(
        name="command_r7b",
        blocks=COMMAND_R,
        models=(r"command-r-?7b", r"command-a"),
        before="<|START_ACTION|>",
        after="<|END_ACTION|>",
        name_key="tool_name",
        arguments_key="parameters",
        listed=True,
    ),
    Row(
        name="command_r",
        blocks=COMMAND_R,
        models=(r"command-r", r"c4ai-command"),
        before="<|START_ACTION|>",
        after="<|END_ACTION|>",
        name_key="tool_name",
        arguments_key="parameters",
        listed=True,
    ),
    Row(
        name="gigachat3",
        blocks=Blocks(
            begin=("<|function_call|>", "function call<|role_sep|>"),
            end=("</s>",),
            noise=("<|message_sep|>", "assistant<|role_sep|>"),
            needs_arguments=True,
        ),
        models=(r"gigachat",),
        before="<|function_call|>",
    ),
    Row(
        name="ernie45",
        blocks=Blocks(begin=("<tool_call>",), end=("</tool_call>",), noise=("<response>", "</response>")),
        models=(r"ernie",),
        before="<tool_call>\n",
        after="\n</tool_call>",
    ),
    Row(
        name="reka_edge",
        blocks=TOOL_CALL,
        models=(r"reka",),
        before="<tool_call>\n",
        after="\n</tool_call>",
    ),
    Row(
        name="json_array",
        blocks=Blocks(bare=True, needs_arguments=True),
        arguments_key="parameters",
        listed=True,
    ),
    Row(name="generic_json", blocks=Blocks(bare=True, fenced=True, needs_arguments=True)),
    Row(
        name="llama3_json",
        blocks=Blocks(
            begin=("<|python_tag|>",), noise=("<|eom_id|>", "<|eot_id|>"), bare=True, needs_arguments=True
        ),
        models=(r"llama-?3",),
        arguments_key="parameters",
        between="; ",
    ),
)

FORMATS: tuple[TextFormat, ...] = tuple(row.format() for row in ROWS)
