"""A text format as a row of templates: how calls, results, thinking and the declaration of tools are written.

The same templates say how an answer is read (`delimiters.py`). A format whose calls are of another grammar
brings two functions of its own: `read` and `write_call`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, Final

from toolcrib.call import ToolCall
from toolcrib.codecs.text.answer import AnswerBuilder
from toolcrib.codecs.text.arguments import Tools, Trim
from toolcrib.codecs.text.declarations import json_tools
from toolcrib.codecs.text.delimiters import Delimiters, delimiters_of, tagged_delimiters
from toolcrib.codecs.text.escaping import escape_json, escape_words
from toolcrib.codecs.text.scanner import Scanner, Steps
from toolcrib.codecs.wire_json import arguments_object
from toolcrib.dataclass import dataclass, field
from toolcrib.guided.merged import MakeConstraint, tagged_calls

if TYPE_CHECKING:
    from toolcrib.spec import ToolSpec

__all__ = ["Callee", "Form", "NamedIds", "Read", "ResultText", "Tools", "WriteCall", "safe_name"]

Read = Callable[["Form", Scanner, AnswerBuilder, Tools], Steps[None]]
WriteCall = Callable[["Form", ToolCall], str]
WriteParameter = Callable[["Form", str, Any], str]

PLACEHOLDER: Final = re.compile(r"\{([a-z]+)\}")
BREAKS_A_NAME: Final = re.compile(r"[<>\"\s\\]")
JSON_RESULT: Final = '<tool_response name="{name}"{failed}>\n{text}\n</tool_response>'
NO_ID: Final = (
    "what names the tool is not of the form {}NAME:NUMBER; write the call again with an id of that form"
)
NO_DELIMITERS: Final = (
    "text format {!r}: its templates do not say where a call begins; `call` needs {{call}}, or {{name}} and "
    "{{arguments}}, with something before it, and with `parameter` both need tags around {{name}} and {{value}}"
)
NOT_WITH_TAGS: Final = (
    "text format {!r}: `other_begins`, `other_ends` and `ignored_words` have no meaning with `parameter`; "
    "use `also_spelled` for other spellings of its tags"
)
LONGEST_SHOWN: Final = 200
EXAMPLE: Final = ToolCall("NAME", {"PARAMETER": "VALUE"})
TAGGED_EXAMPLE: Final = ToolCall("FUNCTION", {"PARAMETER_1": "VALUE", "PARAMETER_2": "A VALUE\nOF TWO LINES"})


def fill(template: str, **values: str) -> str:
    """A template with these placeholders filled in; braces around anything else stay.

    >>> fill('{"a": {name}}', name="x")
    '{"a": x}'
    """
    return PLACEHOLDER.sub(lambda match: values.get(match[1], match[0]), template)


def safe_name(name: str) -> str:
    """A tool's or parameter's name that cannot leave the tag in which it stands."""
    return BREAKS_A_NAME.sub("_", name)


@dataclass(frozen=True, slots=True)
class Callee:
    """The tool's name and the id of a call, or the problem because of which they cannot be read."""

    name: str
    id: str = ""
    problem: str = ""


@dataclass(frozen=True, slots=True)
class NamedIds:
    """Ids that hold the tool's name and a number: `functions.NAME:0`."""

    prefix: str

    def write(self, id: str, name: str, index: int | None) -> str:
        """The id of a call, as the model is to write it."""
        if self._pattern.fullmatch(id):
            return id
        return f"{self.prefix}{name}" if index is None else f"{self.prefix}{name}:{index}"

    def read(self, text: str) -> Callee:
        """The tool's name in an id."""
        if match := self._pattern.fullmatch(text):
            return Callee(match[1], text)
        if match := re.fullmatch(rf"(?:{re.escape(self.prefix)})?([\w-]+)", text):
            return Callee(match[1])
        return Callee(text[:LONGEST_SHOWN], problem=NO_ID.format(self.prefix) if text else "")

    @property
    def _pattern(self) -> re.Pattern[str]:
        return re.compile(rf"(?:{re.escape(self.prefix)})?([^\s:]+):(\d+)")


@dataclass(frozen=True, slots=True)
class ResultText:
    """One result as it is written into the history: the call's name and id on the wire, and its escaped text."""

    name: str
    id: str
    text: str
    is_error: bool = False


@dataclass(frozen=True, kw_only=True, eq=False)
class Form:
    """One text format, as templates: how calls, results and thinking are written, and how tools are declared.

    **Calls.** `call` is the template of one call. It holds either `{call}`, a JSON object with the name and the
    arguments under `keys` (without keys: `{NAME: arguments}`), or `{name}` and `{arguments}`: a JSON object,
    or `parameter` for each argument, a template with `{name}` and `{value}`. `{id}` is the call's id, and
    `ids` says that it holds the tool's name. `calls` stands around all calls of a turn, `between` between two.
    Around a `{name}` only tags (`<call>`) and capitals in brackets (`[CALL]`) are found again.

    **Results and thinking.** `result` holds `{name}`, `{id}`, `{text}`, and `{failed}`: the first of
    `error_marks`, or for an error the second. `thinking` stands around thinking that the model wants back.

    **Teaching.** `declaration` declares the tools: its `{tools}` are what `declare` makes of them. The
    `instruction`, an `example` of a call and the `rules` follow.

    **Reading.** What stands around the placeholders is looked for. The other fields say what models do besides:

    - `other_begins`, `other_ends`, `ignored_words`: words that begin calls, end them, or mean nothing.
    - `also_spelled`: other spellings of a part of the tags. `id_mark`: what stands before an id behind the name.
    - `unmarked`: an answer may begin with calls that nothing announces; `fenced`: in a code fence too.
    - `section_optional`: a call may stand outside of `calls`. `drops_text_between_calls`: other text in there
      is not shown.
    - `special_tokens`: no text holds the delimiters, so that a call goes up to its end, whatever stands in it.
    - `thinking_blocks`: what begins and ends thinking, besides the usual tags; a sentence with a colon at its end
      begins it only where the answer begins.
    - `calls_end_thinking`: calls end a block of thinking that is not closed.
    - `trim`: which line breaks around a value are layout. `untyped_json`: values that no schema describes are JSON.
    - `needs_arguments`: a JSON object without arguments is no call.
    - `also_reserved`: further words that a result must not hold. `tools_are_tags`: the tools' names are such words.

    **Another grammar.** `read` reads an answer, `write_call` gives the text for `{call}`, `write_parameter` that of
    a parameter, and `own_delimiters` are looked for in place of those of the templates.
    """

    name: str
    models: tuple[str, ...] = ()

    call: str
    calls: str = "{calls}"
    between: str = "\n"
    keys: tuple[str, ...] = ("name", "arguments")
    parameter: str = ""
    ids: NamedIds | None = None
    write_call: WriteCall | None = None
    write_parameter: WriteParameter | None = None

    result: str = JSON_RESULT
    error_marks: tuple[str, str] = ("", ' error="true"')
    thinking: tuple[str, str] | None = None

    declare: Callable[[Sequence[ToolSpec]], str] = json_tools
    declaration: str = "# Tools\n\nYou may call these tools:\n<tools>\n{tools}\n</tools>"
    instruction: str = "To call a tool, write exactly:"
    example: str = ""
    rules: str = ""

    other_begins: tuple[str, ...] = ()
    other_ends: tuple[str, ...] = ()
    id_mark: str = ""
    ignored_words: tuple[str, ...] = ()
    also_reserved: tuple[str, ...] = ()
    tools_are_tags: bool = False
    unmarked: bool = False
    fenced: bool = False
    needs_arguments: bool = False
    also_spelled: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    section_optional: bool = False
    drops_text_between_calls: bool = False
    special_tokens: bool = False
    calls_end_thinking: bool = False
    thinking_blocks: Mapping[str, str] = field(default_factory=dict)
    trim: Trim = "none"
    untyped_json: bool = False
    own_delimiters: Delimiters | None = None
    read: Read | None = None
    other_constraints: Mapping[str, MakeConstraint] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """ValueError where the templates do not say how an answer is read, or the fields contradict each other."""
        if self.parameter and (self.other_begins or self.other_ends or self.ignored_words):
            raise ValueError(NOT_WITH_TAGS.format(self.name))
        try:
            words = self.delimiters.words
        except (IndexError, ValueError):
            raise ValueError(NO_DELIMITERS.format(self.name)) from None
        if self.read is None and not words and not self.unmarked:
            raise ValueError(NO_DELIMITERS.format(self.name))

    # Reading

    @cached_property
    def delimiters(self) -> Delimiters:
        """The delimiters that the reader looks for."""
        if self.own_delimiters is not None:
            return self.own_delimiters
        if self.parameter:
            return tagged_delimiters(self.calls, self.call, self.parameter)
        return delimiters_of(self.calls, self.call, self.other_begins, self.other_ends, self.ignored_words)

    @cached_property
    def spellings(self) -> tuple[Delimiters, ...]:
        """The delimiters, and those of each other spelling."""
        return (
            self.delimiters,
            *(
                tagged_delimiters(
                    *(text.replace(part, spelling) for text in (self.calls, self.call, self.parameter))
                )
                for part, spellings in self.also_spelled.items()
                for spelling in spellings
            ),
        )

    @cached_property
    def reserved(self) -> tuple[str, ...]:
        """Words that a result must not hold, besides those of all formats."""
        words = (*(word.strip() for kin in self.spellings for word in kin.words), *self.also_reserved)
        return tuple(dict.fromkeys(words))

    def reserved_with(self, tools: Iterable[str]) -> tuple[str, ...]:
        """The reserved words, given the tools' names on the wire."""
        if not self.tools_are_tags:
            return self.reserved
        return (*self.reserved, *(f"<{slash}{name}>" for name in sorted(tools) for slash in ("", "/")))

    @property
    def arguments_needed(self) -> bool:
        """Whether a JSON object is a call only if it has arguments."""
        return self.unmarked or self.needs_arguments

    @property
    def says_which_are_strings(self) -> bool:
        """Whether a parameter's tag says that its value is a string."""
        return "{string}" in self.parameter

    def callee(self, text: str) -> Callee:
        """The tool's name and the call's id, from the header of a call."""
        return Callee(text) if self.ids is None else self.ids.read(text)

    # Writing

    def write_calls(self, calls: Sequence[ToolCall]) -> str:
        """The calls of a turn, as the model is to write them."""
        written = (self._call(call, index) for index, call in enumerate(calls))
        return fill(self.calls, calls=self.between.join(written))

    def _call(self, call: ToolCall, index: int) -> str:
        values = {"name": safe_name(call.name), "id": self._id(call.id, call.name, index)}
        if "{call}" in self.call:
            values["call"] = self.write_call(self, call) if self.write_call else self._object(call)
        else:
            values["arguments"] = self._arguments(arguments_object(call.arguments))
        return fill(self.call, **values)

    def _id(self, id: str, name: str, index: int | None) -> str:
        return id if self.ids is None else self.ids.write(id, safe_name(name), index)

    def _object(self, call: ToolCall) -> str:
        arguments = arguments_object(call.arguments)
        members = zip(self.keys, (call.name, arguments, call.id), strict=False)
        return escape_json(dict(members) if self.keys else {call.name: arguments}, self.reserved)

    def _arguments(self, arguments: Mapping[str, Any]) -> str:
        if not self.parameter:
            return escape_json(arguments, self.reserved)
        write = self.write_parameter or Form._parameter
        return "".join(write(self, name, value) for name, value in arguments.items())

    def _parameter(self, name: str, value: Any) -> str:
        string = "true" if isinstance(value, str) else "false"
        return fill(self.parameter, name=safe_name(name), string=string, value=self.value(value))

    def value(self, value: Any) -> str:
        """A value as it stands between its tags: a string as it is, any other as JSON."""
        if not isinstance(value, str):
            return escape_json(value, self.reserved)
        text = escape_words(value, self.reserved)
        trimmed = self.trim != "none" and "\n{value}\n" not in self.parameter
        if trimmed and (text.startswith(("\n", "\r")) or text.endswith(("\n", "\r"))):
            return f"\n{text}\n"  # else its own line breaks would count as layout
        return text

    def write_result(self, result: ResultText) -> str:
        """One result, as it stands in the user's next message."""
        return fill(
            self.result,
            name=safe_name(result.name),
            id=self._id(result.id, result.name, None),
            failed=self.error_marks[result.is_error],
            text=result.text,
        )

    def teach(self, specs: Sequence[ToolSpec]) -> str:
        """The section of the prompt that declares the tools and the form of a call."""
        declared = fill(self.declaration, tools=self.declare(specs))
        example = self.example or self.write_calls([TAGGED_EXAMPLE if self.parameter else EXAMPLE])
        return f"{declared}\n\n{self.instruction}\n{example}\n{self.rules or self._rules()}"

    def _rules(self) -> str:
        several = "in one list" if "[{calls}]" in self.calls else "one after the other, each in this form"
        return (
            f"Several calls stand {several}. After your calls, stop: "
            f"the results come {'in <tool_response> ' * (self.result == JSON_RESULT)}with the next message."
        )

    # Constraints

    @property
    def constraints(self) -> Mapping[str, MakeConstraint]:
        """The constraints that hold a server to the form, by their kind."""
        before, _, after = self.call.partition("{call}")
        if self.read is not None or "{call}" not in self.call or not before or len(self.keys) != 2:
            return self.other_constraints
        name, arguments = self.keys

        def tag(spec: ToolSpec) -> tuple[str, str]:
            return f'{before}{{"{name}": "{spec.name}", "{arguments}": ', f"}}{after}"

        return {**self.other_constraints, "structural_tag": partial(tagged_calls, tag, before.strip())}
