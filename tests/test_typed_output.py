"""Typed answers of an agent: any type, wrong answers told back, bounded, beside tools, approvals and suspension."""

import asyncio
import enum
import json
from dataclasses import dataclass
from typing import Any, Literal, TypedDict

import pytest
from pydantic import BaseModel, Field, ValidationError

from tests.cases import each as each_of
from toolcrib import Agent, Context, Effect, Toolbox, ToolDefinitionError, ToolError, tool
from toolcrib.agent import NotFinished, OutputType, Reason
from toolcrib.agent.output_ladder import refuses_the_form
from toolcrib.codecs import AnthropicMessagesCodec, OpenAIChatCodec, OpenAIResponsesCodec
from toolcrib.codecs.codec import ModelError
from toolcrib.codecs.text import TextCodec
from toolcrib.guided import Choice, Grammar, JsonSchema, Regex
from toolcrib.messages import Request, Usage
from toolcrib.models import AnthropicMessages, Scripted
from toolcrib.toolbox import AutonomyPolicy


def each(names: str, **cases: Any) -> Any:
    """Named cases of one test."""
    return each_of(names, list(cases.values()), list(cases))


class Line(BaseModel):
    text: str
    amount: float


class Invoice(BaseModel):
    """An invoice as it was sent."""

    number: str
    total: float
    lines: list[Line] = []


@dataclass
class Point:
    x: int
    y: int = 0


class Plan(TypedDict):
    steps: list[str]


class Colour(enum.Enum):
    RED = "red"
    BLUE = "blue"


@tool(effect=Effect.READ, secrets=())
def look(path: str) -> str:
    """Look at a file."""
    return f"{path} says 12.50"


async def book(city: str, nights: int = 1) -> str:
    """Book a hotel.

    Args:
        city: Where.
    """
    return f"{nights} in {city}"


def answer(**fields: Any) -> dict[str, Any]:
    return {"calls": [{"name": "attempt_completion", "arguments": fields}]}


def run(model: Any, output: Any, **options: Any) -> Any:
    return asyncio.run(Agent(model, output=output, **options).run("go"))


SCHEMA = {"type": "array", "items": {"$ref": "#/$defs/n"}, "$defs": {"n": {"type": "integer"}}}


@each(
    "output, fields, value",
    a_model=(Invoice, {"number": "7", "total": 1.5}, Invoice(number="7", total=1.5)),
    a_dataclass=(Point, {"x": 1}, Point(1)),
    a_typed_dict=(Plan, {"steps": ["a"]}, {"steps": ["a"]}),
    a_number=(int, {"result": 3}, 3),
    a_list=(list[Line], {"result": [{"text": "a", "amount": 1}]}, [Line(text="a", amount=1)]),
    a_literal=(Literal["yes", "no"], {"result": "no"}, "no"),
    an_enum=(Colour, {"result": "blue"}, Colour.BLUE),
    a_union=(Line | Point, {"result": {"x": 2}}, Point(2)),
    nothing=(Line | None, {}, None),
    a_map=(dict[str, int], {"result": {"a": 1}}, {"a": 1}),
    alternatives=(
        [Line, Point], {"result": {"kind": "Point", "value": {"x": 2}}}, Point(2)
    ),
    a_function=(OutputType(book), {"city": "Rome"}, "1 in Rome"),
    a_function_beside_a_type=(
        OutputType(book, Line), {"result": {"kind": "book", "value": {"city": "Rome", "nights": 2}}}, "2 in Rome"
    ),
    a_sync_function=(OutputType(lambda: 3), {}, 3),
    an_object_schema=({"type": "object", "properties": {"a": {"type": "integer"}}}, {"a": 1}, {"a": 1}),
    another_schema=(SCHEMA, {"result": [1, 2]}, [1, 2]),
)  # fmt: skip
def test_any_type_is_an_output(output: Any, fields: dict[str, Any], value: Any) -> None:
    outcome = run(Scripted([answer(**fields)]), output)
    assert (outcome.reason, outcome.output, outcome.attempts, outcome.rung) == (
        Reason.COMPLETED,
        value,
        1,
        "forced tool",
    )


@each(
    "output, text, value",
    a_fence=(Invoice, 'Here:\n```json\n{"number": "7", "total": 2,}\n```', Invoice(number="7", total=2)),
    no_wrapper=(list[int], "[1, 2]", [1, 2]),
    a_bare_number=(int, "5", 5),
)
def test_text_that_fits_is_an_answer_too(output: Any, text: str, value: Any) -> None:
    assert run(Scripted([text]), output).output == value


def test_a_wrong_answer_is_told_back_field_by_field() -> None:
    model = Scripted([answer(total="much"), answer(number="7", total=12.5)])
    outcome = run(model, Invoice)
    told = outcome.messages[2].results[0].text
    assert told.splitlines()[1:3] == [
        "- number: expected string, got nothing",
        '- total: expected number, got string "much"',
    ]
    assert (outcome.output.total, outcome.attempts) == (12.5, 2)


def test_wrong_text_is_told_back_in_the_same_words() -> None:
    requests: list[Request] = []

    def script(request: Request) -> str:
        requests.append(request)
        return '{"number": 7}' if len(requests) == 1 else '{"number": "7", "total": 1}'

    outcome = run(Scripted(script), OutputType(Invoice, rung="text"))
    assert outcome.output == Invoice(number="7", total=1)
    assert outcome.rung == "text"
    assert '"total"' in requests[0].messages[0].text  # the schema stands in the instructions, for all to see
    assert not requests[0].tools
    assert outcome.messages[0].role == "system"
    words = outcome.messages[-2].text.splitlines()
    assert words[0] == "The answer does not fit what was asked for."
    assert "- total: expected number, got nothing" in words


@each(
    "output, attempts",
    as_often_as_told=(OutputType(int, retries=1), 2),
    never=(OutputType(int, retries=0), 1),
    by_default=(OutputType(int), 3),
)
def test_wrong_answers_are_sent_back_only_so_often(output: Any, attempts: int) -> None:
    outcome = run(Scripted([answer(result="x")] * 9), output)
    assert (outcome.reason, outcome.attempts, outcome.turns) == (Reason.INVALID_OUTPUT, attempts, attempts)
    assert "result: expected integer" in outcome.detail
    assert not outcome.has_output
    with pytest.raises(NotFinished, match="no answer of the right form"):
        outcome.output  # noqa: B018


def test_answers_that_are_asked_again_have_tokens_of_their_own() -> None:
    turn = {**answer(result="x"), "usage": Usage(80, 20)}
    outcome = run(Scripted([turn] * 9), OutputType(int, retries=9, retry_tokens=150))
    assert (outcome.reason, outcome.turns) == (Reason.INVALID_OUTPUT, 3)
    assert "200 of 150 tokens" in outcome.detail
    assert outcome.usage.total_tokens == 300  # all attempts count


@each(
    "turn",
    cut_off_text={"text": '{"result": 1', "stop_reason": "length"},
    a_call_that_was_cut_off={
        "calls": [{"name": "attempt_completion", "arguments": '{"resu'}], "stop_reason": "length"
    },
    a_refusal={"text": "I cannot help with that.", "stop_reason": "refusal"},
)  # fmt: skip
def test_what_a_model_cannot_mend_is_not_asked_again(turn: dict[str, Any]) -> None:
    outcome = run(Scripted([turn, answer(result=1)]), int)
    assert (outcome.reason, outcome.turns, outcome.has_output) == (Reason.REFUSED, 1, False)


async def never_negative(invoice: Invoice) -> None:
    await asyncio.sleep(0)
    if invoice.total < 0:
        raise ToolError("The total is never negative. Look again.")


def known(invoice: Invoice, ctx: Context[set[str]]) -> Invoice:
    if invoice.number not in ctx.deps:
        raise ValueError(f"there is no invoice {invoice.number}")
    return invoice.model_copy(update={"total": round(invoice.total)})


def test_validators_refuse_in_their_own_words_and_may_change_the_value() -> None:
    turns = [answer(number="7", total=-1), answer(number="8", total=1), answer(number="7", total=1.2)]
    output = OutputType(Invoice, validators=[never_negative, known], retries=3)
    outcome = run(Scripted(turns), output, deps={"7"})
    told = [message.results[0].text for message in outcome.messages if message.role == "tool"]
    assert told[:2] == [
        "The total is never negative. Look again.",
        "The answer was refused: there is no invoice 8",
    ]
    assert outcome.output == Invoice(number="7", total=1)


def test_a_validator_names_no_python_type_to_the_model() -> None:
    def as_point(fields: dict[str, Any]) -> Any:
        try:
            return Line.model_validate(fields)
        except ValidationError as problem:
            raise problem

    output: OutputType[Any] = OutputType({"type": "object"}, validators=[as_point])
    outcome = run(Scripted([answer(text="a"), answer(text="a", amount=2)]), output)
    assert outcome.messages[2].results[0].text == "The answer was refused: amount: Field required"
    assert outcome.output == Line(text="a", amount=2)


def test_it_works_beside_tools_and_for_one_run_alone() -> None:
    turns = [{"calls": [{"name": "look", "arguments": {"path": "a"}}]}, answer(result=12)]
    agent = Agent(Scripted([*turns, "It says 12.50.", answer(x=1)]), [look])

    async def both() -> tuple[int, str, Point]:
        typed = await agent.run("How much?", output=int)
        plain = await agent.run("What does it say?", messages=typed.messages)
        point = await agent.run("Where?", output=Point, messages=plain.messages)
        return typed.output, plain.output, point.output

    assert asyncio.run(both()) == (12, "It says 12.50.", Point(1))


def test_another_policy_counts_for_a_typed_run_that_goes_on() -> None:
    @tool(effect=Effect.WRITE, secrets=(), open_world=False)
    def save() -> str:
        """Save, and let nothing be saved any more."""
        agent.toolbox.policy = AutonomyPolicy("supervised")
        return "saved"

    calls = [{"calls": [{"name": "save", "arguments": {}}]}] * 2
    agent = Agent(Scripted([*calls, {"text": '{"x": 1}'}]), [save], autonomy="full", output=Point)
    outcome = agent.run_sync("go")
    results = [result.text for message in outcome.messages for result in message.results]
    assert (outcome.output, results[0]) == (Point(1), "saved")
    assert "needs approval" in results[1]


def test_the_answer_has_to_come_by_call_where_other_tools_are_called_too() -> None:
    requests: list[Request] = []
    last: list[str] = []

    def script(request: Request) -> Any:
        requests.append(request)
        last.append(request.messages[-1].text)
        return "I am done." if len(requests) == 1 else answer(result=1)

    assert run(Scripted(script), int, tools=[look]).output == 1
    assert [request.tool_choice.mode for request in requests] == ["required", "required"]
    assert "attempt_completion" in last[1]


def test_a_server_that_refuses_one_way_is_asked_another_way_and_that_is_remembered() -> None:
    modes: list[str] = []

    class Refusing(Scripted):
        async def stream(self, request: Request) -> Any:
            modes.append(request.tool_choice.mode)
            if request.tool_choice.mode == "required":
                raise ModelError("tool_choice: forced tools are not allowed with thinking", status=400)
            async for chunk in super().stream(request):
                yield chunk

    agent = Agent(Refusing([answer(result=1), answer(result=2)]), output=int)
    assert [agent.run_sync("go").output, agent.run_sync("go").output] == [1, 2]
    assert modes == ["required", "auto", "auto"]


ABOUT_THE_FORM = (
    "Invalid parameter: 'response_format' of type 'json_schema' is not supported with this model.",
    "Invalid schema for response_format 'answer': In context=(), 'additionalProperties' is required to be false.",
    "Invalid schema for function 'attempt_completion': None is not of type 'string'.",
    "Unknown parameter: 'response_format'.",
    "Unrecognized request argument supplied: functions",
    "Unrecognized request arguments supplied: tool_choice, tools",
    "output_config: Extra inputs are not permitted",
    "output_format: Extra inputs are not permitted",
    "Thinking may not be enabled when tool_choice forces tool use.",
    "tools.0.custom.strict: Extra inputs are not permitted",
    "output_config.format.schema: For 'object' type, 'additionalProperties' must be explicitly set to false",
    "The compiled grammar is too large, which would cause performance issues.",
    "Function calling with a response mime type: 'application/json' is unsupported",
    "Function calling is not enabled for models/gemma-3-27b-it",
    "Invalid JSON payload received. Unknown name \"responseJsonSchema\" at 'generation_config': Cannot find field.",
    "JSON mode is not enabled for models/gemma-3-27b-it",
    "Unable to submit request because controlled generation is not supported",
    "A schema in GenerationConfig in the request exceeds the maximum allowed nesting depth.",
    "registry.ollama.ai/library/gemma:2b does not support tools",
    'invalid format: expected "json" or a JSON schema',
    "No endpoints found that support tool use.",
    '"auto" tool choice requires --enable-auto-tool-choice and --tool-call-parser to be set',
    "tools param requires --jinja flag",
    "This model doesn't support tool use.",
    "This model doesn't support the toolConfig.toolChoice.any field.",
    "`tools` is not supported with this model",
    "Tool calling is not supported by this model.",
    "'response_format.type' must be 'json_schema' or 'text'",
    "Failed to parse grammar",
    "This response_format type is unavailable now",
    "unknown field `guided_json`",
    "Structured outputs are not supported by this deployment.",
)
ABOUT_SOMETHING_ELSE = (
    "An assistant message with 'tool_calls' must be followed by tool messages responding to each 'tool_call_id'.",
    "Invalid parameter: messages with role 'tool' must be a response to a preceeding message with 'tool_calls'.",
    "messages.2: `tool_use` ids were found without `tool_result` blocks immediately after: toolu_1.",
    "messages.0.content.1: unexpected `tool_use_id` found in `tool_result` blocks: toolu_1.",
    "tools: Tool names must be unique.",
    "tools.0.custom.name: String should match pattern '^[a-zA-Z0-9_-]{1,128}$'",
    "Invalid 'tools[0].function.name': string does not match pattern. Expected a string that matches '^[a-z]+$'.",
    "Invalid 'tools': array too long. Expected an array with maximum length 128.",
    "Invalid schema for function 'get_weather': None is not of type 'string'.",
    "Please ensure that function call turn comes immediately after a user turn or after a function response turn.",
    "Please ensure that the number of function response parts is equal to the number of function call parts.",
    "Function '0c3a': Not found for account 'x'",
    "Invalid 'messages[3].tool_calls[0].function.arguments': expected a string",
    "Expected toolResult blocks at messages.2.content for the following Ids: tooluse_1",
    "Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead.",
    "Unsupported parameter: 'temperature' is not supported with this model.",
    "Unknown parameter: 'reasoning'.",
    "metadata.team: Extra inputs are not permitted",
    "Invalid image format. Supported formats: png, jpeg",
    "Unsupported file format",
    "Your credit balance is too low to access the API.",
    "The model `gpt-9` does not exist or you do not have access to it.",
    "Incorrect API key format",
)


def test_only_an_error_about_the_form_of_an_answer_leads_to_another_way_to_ask() -> None:
    def refuses(words: str) -> bool:
        return refuses_the_form(ModelError(words, status=400))

    assert [words for words in ABOUT_THE_FORM if not refuses(words)] == []
    assert [words for words in ABOUT_SOMETHING_ELSE if refuses(words)] == []


def test_a_way_to_ask_is_remembered_only_where_the_server_took_it() -> None:
    modes: list[str] = []

    class Down(Scripted):
        broken = True

        async def stream(self, request: Request) -> Any:
            modes.append(request.tool_choice.mode)
            if self.broken:
                raise ModelError("this deployment does not support tools today", status=400)
            async for chunk in super().stream(request):
                yield chunk

    model = Down([answer(result=1)])
    agent = Agent(model, output=int)
    assert agent.run_sync("go").reason is Reason.MODEL_ERROR
    model.broken, modes[:] = False, []
    assert agent.run_sync("go").output == 1
    assert modes == ["required"]


def test_an_error_about_something_else_ends_the_run() -> None:
    class Broken(Scripted):
        async def stream(self, request: Request) -> Any:
            raise ModelError("the model does not exist", status=400)
            yield

    assert run(Broken([]), int).reason is Reason.MODEL_ERROR


def test_a_typed_run_waits_for_a_person_and_goes_on_in_another_process() -> None:
    @tool(effect=Effect.WRITE, secrets=())
    def pay(amount: int) -> str:
        """Pay."""
        return "paid"

    first = Agent(
        Scripted(
            [answer(result="x"), {"calls": [{"name": "pay", "arguments": {"amount": 3}}]}], name="model"
        ),
        [pay],
        output=int,
        on_question="suspend",
    )
    waiting = asyncio.run(first.run("go"))
    assert (waiting.reason, waiting.has_output) == (Reason.WAITING, False)
    saved = waiting.to_json()
    second = Agent(Scripted([answer(result=3)]), [pay], output=int, on_question="suspend")
    outcome = second.resume_sync(saved, {waiting.questions[0].id: True})
    assert (outcome.output, outcome.attempts) == (3, 2)  # the wrong one came before the process ended


@each(
    "make",
    no_type=lambda: OutputType(),
    wrong_bound=lambda: OutputType(int, retries=-1),
    a_rung_that_is_none=lambda: OutputType(int, rung="nativ"),  # type: ignore[call-overload]
    no_schema=lambda: Agent(Scripted([]), output=OutputType(asyncio.Event)),
    not_a_validator=lambda: OutputType(int, validators=[3]),  # type: ignore[list-item]
)
def test_what_cannot_be_an_output_is_refused_at_once(make: Any) -> None:
    with pytest.raises(TypeError):
        make()


def test_a_value_in_the_place_of_its_type_is_said_to_be_no_output() -> None:
    words = r"^OutputType\(5\) cannot be the output of a run: 5 cannot be written as JSON: use .* models$"
    with pytest.raises(ToolDefinitionError, match=words):
        Agent(Scripted([]), output=5)  # type: ignore[arg-type]


def test_a_tool_of_ones_own_cannot_have_the_name_of_the_answer() -> None:
    @tool(effect=Effect.READ, secrets=(), name="attempt_completion")
    def own(text: str) -> str:
        """End."""
        return text

    with pytest.raises(TypeError, match="attempt_completion"):
        Agent(Scripted([]), [own], output=int)
    assert issubclass(ToolDefinitionError, TypeError)


class Native(Scripted):
    """A scripted model of a server that takes schemas, whose requests are kept as that server gets them."""

    def __init__(self, turns: Any, codec: Any, target: str, refuses: str = "") -> None:
        super().__init__(turns)
        self.codec, self.target, self.refuses = codec, target, refuses
        self.bodies: list[dict[str, Any]] = []

    async def stream(self, request: Request) -> Any:
        body = self.codec.request(request, model="m", stream=False)
        self.bodies.append(body)
        if self.refuses and self.refuses in body:
            raise ModelError(f"Unsupported parameter: {self.refuses}", status=400)
        async for chunk in super().stream(request):
            yield chunk


TOTAL = '{"number": "7", "total": 2, "lines": []}'


@each(
    "codec, target, field",
    openai=(OpenAIChatCodec("openai"), "openai.chat", "response_format"),
    responses=(OpenAIResponsesCodec(), "openai.responses", "text"),
    anthropic=(AnthropicMessagesCodec(), "anthropic", "output_config"),
    vllm=(OpenAIChatCodec("vllm"), "vllm", "structured_outputs"),
)
def test_a_server_that_takes_a_schema_holds_the_text_to_it(codec: Any, target: str, field: str) -> None:
    model = Native([TOTAL], codec, target)
    outcome = run(model, Invoice)
    assert (outcome.output.total, outcome.rung, outcome.reason) == (2, "native", Reason.ANSWERED)
    assert outcome.guarantee in ("enforced", "enforced in part")
    (body,) = model.bodies
    assert field in body
    assert "tools" not in body  # attempt_completion would be a second way


def test_the_ladder_goes_down_to_a_strict_call_and_to_text() -> None:
    strict = Native(
        [TOTAL, answer(number="7", total=2)], OpenAIChatCodec("openai"), "openai.chat", "response_format"
    )
    outcome = run(strict, Invoice, tools=[look])
    assert (outcome.rung, outcome.attempts) == ("strict tool", 1)
    declared = {tool["function"]["name"]: tool["function"] for tool in strict.bodies[1]["tools"]}
    assert declared["attempt_completion"]["strict"] is True
    assert strict.bodies[1]["tool_choice"] == "required"


def test_a_strict_call_has_names_that_its_server_takes() -> None:
    class City(BaseModel):
        name: str = Field(alias="城市")

    codec = AnthropicMessagesCodec()
    model = Native([answer(城市="Bern")], codec, "anthropic")
    outcome = run(model, OutputType(City, rung="strict tool"))
    assert (outcome.output.name, outcome.rung, outcome.guarantee) == ("Bern", "strict tool", "enforced")
    (tool,) = model.bodies[0]["tools"]
    assert tool["strict"] is True and all(name.isascii() for name in tool["input_schema"]["properties"])


@each(
    "target, beside_tools, rung",
    both=("openai.chat", True, "native"),
    not_beside_tools=("vllm", True, "forced tool"),
    alone=("vllm", False, "native"),
    unknown=("chat", False, "forced tool"),
)
def test_the_best_way_depends_on_the_server_and_on_other_tools(
    target: str, beside_tools: bool, rung: str
) -> None:
    turns = [TOTAL if rung == "native" else answer(number="7", total=2)]
    model = Native(turns, OpenAIChatCodec(target.partition(".")[0]), target)
    assert run(model, Invoice, tools=[look] if beside_tools else []).rung == rung


def test_constraints_are_outputs() -> None:
    choice = OutputType(Choice("yes", "no"))
    model = Native(["no"], OpenAIChatCodec("vllm"), "vllm")
    assert run(model, choice).output == "no"
    assert model.bodies[0]["structured_outputs"] == {"choice": ["yes", "no"]}
    plate = OutputType(Regex("[A-Z]{2}-[0-9]{3}"))
    outcome = run(Scripted([answer(result="AB-12"), answer(result="AB-123")]), plate)
    assert (outcome.output, outcome.attempts) == ("AB-123", 2)
    assert "pattern" in plate.check().schema["properties"]["result"]
    assert run(Scripted([answer(a=[1])]), JsonSchema({"type": "object"})).output == {"a": [1]}
    pair = OutputType(Grammar('root ::= "(" root ")" | "x"'))
    outcome = run(Scripted([answer(result="((x)"), answer(result="(x)")]), pair)
    assert (outcome.output, outcome.attempts) == ("(x)", 2)
    assert "root ::=" in pair.check().schema["properties"]["result"]["description"]
    openai = run(Native(['{"result": "(x)"}'], OpenAIChatCodec("openai"), "openai.chat"), pair)
    assert (openai.output, openai.guarantee) == (
        "(x)",
        "prompted",
    )  # the schema says no more than that it is a text
    vllm = run(Native(["(x)"], OpenAIChatCodec("vllm"), "vllm"), pair)
    assert (vllm.output, vllm.guarantee, vllm.rung) == ("(x)", "enforced", "native")


def test_extras_of_a_model_do_not_undo_the_schema() -> None:
    body = {"output_config": {"effort": "low"}}
    request = Request([], extras={"anthropic": {"output_config": {"format": {"type": "json_schema"}}}})
    sent = AnthropicMessages("claude", api_key="k", body=body)._request(request, stream=False)
    assert sent["output_config"] == {"format": {"type": "json_schema"}, "effort": "low"}


def test_a_function_is_called_once_for_an_answer() -> None:
    called: list[str] = []

    async def send(to: str) -> str:
        called.append(to)
        await asyncio.sleep(0)
        return f"sent to {to}"

    both = {"calls": [*answer(to="ann")["calls"], *answer(to="bob")["calls"]]}
    outcome = run(Scripted([both]), OutputType(send), early_start=True)
    assert (called, outcome.output) == (["ann"], "sent to ann")
    assert "given already" in outcome.messages[-1].results[1].text


def test_a_rung_that_a_server_does_not_have_is_an_error_that_says_which_there_are() -> None:
    agent = Agent(Scripted([answer(result=1)]), output=OutputType(int, rung="strict tool"))
    with pytest.raises(TypeError, match="'forced tool'"):
        asyncio.run(agent.run("go"))


def test_an_assertion_of_a_validator_is_told_in_its_words() -> None:
    def positive(value: int) -> None:
        assert value > 0, "it has to be positive"

    outcome = run(Scripted([answer(result=-1), answer(result=1)]), OutputType(int, validators=[positive]))
    assert "it has to be positive" in outcome.messages[2].results[0].text


def test_a_model_that_writes_its_calls_as_text_answers_too() -> None:
    codec = TextCodec(OpenAIChatCodec("here"), "hermes")

    class Writer:
        name = "writer"
        target = "text"

        def __init__(self) -> None:
            self.codec = codec
            self.said = [
                '{"name": "look", "arguments": {"path": "a"}}',
                '{"name": "attempt_completion", "arguments": {"result": 12}}',
            ]

        async def stream(self, request: Request) -> Any:
            codec.request(request, model="m", stream=False)
            text = f"<tool_call>\n{self.said.pop(0)}\n</tool_call>"
            choice = {"message": {"role": "assistant", "content": text}, "finish_reason": "stop"}
            yield codec.response({"choices": [choice]}, request)

    outcome = run(Writer(), int, tools=[look])
    assert (outcome.output, outcome.rung, outcome.turns) == (12, "forced tool", 2)


def test_a_typed_agent_is_a_tool_of_another_and_a_delegate() -> None:
    helper = Agent(Scripted([answer(number="7", total=2)]), output=Invoice)
    ask = helper.as_tool("read_invoice", "Reads an invoice.")
    outer = Scripted(
        [{"calls": [{"name": "read_invoice", "arguments": {"task": "x"}}]}, answer(result="done")]
    )
    outcome = run(outer, Literal["done"], tools=[ask], autonomy="full")
    assert outcome.messages[2].results[0].text == '{"number":"7","total":2.0,"lines":[]}'
    assert outcome.nested[0].output == Invoice(number="7", total=2)


def test_items_that_fitted_before_a_run_waited_still_count() -> None:
    @tool(effect=Effect.WRITE, secrets=())
    def pay(amount: int) -> str:
        """Pay."""
        return "paid"

    options: dict[str, Any] = {"on_question": "suspend", "output": OutputType(list[Line], itemwise=True)}
    good, bad = {"text": "a", "amount": 1}, {"text": "b", "amount": "x"}
    first = Agent(
        Scripted([answer(result=[good, bad]), {"calls": [{"name": "pay", "arguments": {"amount": 3}}]}]),
        [pay],
        **options,
    )
    waiting = asyncio.run(first.run("go"))
    saved = json.loads(json.dumps(waiting.to_json()))
    second = Agent(Scripted([answer(result=[{"text": "b", "amount": 2}])]), [pay], **options)
    outcome = second.resume_sync(saved, {waiting.questions[0].id: True})
    assert [line.amount for line in outcome.output] == [1, 2]


def test_tools_that_change_between_typed_runs_are_not_called_any_more() -> None:
    def named(word: str) -> Any:
        @tool(effect=Effect.READ, secrets=(), name="inner")
        async def inner() -> str:
            """Say a word."""
            return word

        return inner

    @tool(effect=Effect.READ, secrets=())
    async def outer(ctx: Context) -> str:
        """Call another tool."""
        return (await ctx.call("inner")).text

    def answers(request: Request) -> Any:
        return "3" if request.messages[-1].results else {"calls": [{"name": "outer"}]}

    box = Toolbox([named("old"), outer])
    agent = Agent(Scripted(answers), toolbox=box)

    def told() -> str:
        outcome = agent.run_sync("Call it.", output=int)
        return outcome.messages[-2].results[0].text

    assert told() == "old"
    box.add(named("new"), override=True)
    assert told() == "new"
    box.remove("inner")
    assert told().startswith('Unknown tool "inner"')


async def test_the_completion_of_a_typed_run_stays_in_it() -> None:
    box = Toolbox([look])
    call = {"calls": [{"name": "attempt_completion", "arguments": {"result": 3}}]}
    assert (await Agent(Scripted([call]), toolbox=box).run("Go.", output=int)).output == 3
    assert (await box.call("attempt_completion", {"result": "in words"})).text == "in words"
