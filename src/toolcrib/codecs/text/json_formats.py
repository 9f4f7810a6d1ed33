"""The formats whose calls are JSON, a row each."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from toolcrib.call import ToolCall
from toolcrib.codecs.text.format import TextFormat, Written
from toolcrib.codecs.text.json_blocks import Blocks
from toolcrib.codecs.text.safe import guarded_json
from toolcrib.codecs.text.teaching import call_arguments, json_tools

if TYPE_CHECKING:
    from toolcrib.tool import ToolSpec


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
        return self.form([guarded_json(self.call_object(call.name, call_arguments(call))) for call in calls])

    def write_result(self, result: Written) -> str:
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

    def format(self) -> TextFormat:
        return TextFormat(
            name=self.name,
            parse=self.blocks.parse,
            teach=self.teach,
            write_calls=self.write_calls,
            write_result=self.write_result,
            models=self.models,
            guards=(*self.blocks.begin, *self.blocks.end),
        )


TOOL_CALL = Blocks(begin=("<tool_call>",), end=("</tool_call>",))

ROWS = (
    Row(
        name="hermes",
        blocks=TOOL_CALL,
        models=(r"hermes", r"qwen-?2", r"qwen-?3", r"qwq"),
        before="<tool_call>\n",
        after="\n</tool_call>",
    ),
)

FORMATS: tuple[TextFormat, ...] = tuple(row.format() for row in ROWS)
