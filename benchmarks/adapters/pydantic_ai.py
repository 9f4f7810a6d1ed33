"""pydantic-ai: the tool manager that its agent calls, and the toolset below it."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import workload
from pydantic_ai import Agent, RunContext, Tool, UsageLimits
from pydantic_ai.messages import ModelResponse, TextPart, ToolCallPart, ToolReturnPart
from pydantic_ai.models import Model
from pydantic_ai.tool_manager import ToolManager
from pydantic_ai.toolsets import FunctionToolset
from pydantic_ai.usage import RequestUsage, RunUsage
from pydantic_core import from_json

NAME = "pydantic-ai"
PACKAGES = ("pydantic-ai-slim", "openai", "anthropic")
IMPORTS = {
    "tool and Toolbox": "from pydantic_ai import Tool, FunctionToolset",
    "agent": "from pydantic_ai import Agent",
}


class Fake(Model):
    """Answers with what it was given; counts no tokens, unlike FunctionModel."""

    def __init__(self, answer: Callable[[], Any] = lambda: TextPart("done")) -> None:
        super().__init__()
        self.answer = answer

    async def request(
        self, messages: Any, model_settings: Any, model_request_parameters: Any
    ) -> ModelResponse:
        return ModelResponse(parts=[self.answer()], usage=RequestUsage(input_tokens=100, output_tokens=10))

    @property
    def model_name(self) -> str:
        return "fake"

    @property
    def system(self) -> str:
        return "fake"


def _context() -> RunContext[None]:
    return RunContext(deps=None, model=Fake(), usage=RunUsage(), run_step=1)


def calls(function: Callable[..., Any], kind: str) -> dict[str, Any]:
    name = function.__name__
    manager = asyncio.run(ToolManager(FunctionToolset([function])).for_run_step(_context()))

    async def managed(raw: str) -> str:
        result = await manager.handle_call(ToolCallPart(name, raw, "id"))
        return ToolReturnPart(name, result, "id").model_response_str()

    toolset, context = FunctionToolset([function]), _context()
    tool = asyncio.run(toolset.get_tools(context))[name]

    async def bare(raw: str) -> str:
        given = tool.args_validator.validate_json(raw)
        result = await toolset.call_tool(name, given, context, tool)
        return ToolReturnPart(name, result, "id").model_response_str()

    return {"ToolManager.handle_call": managed, "toolset.call_tool": bare}


def loop(function: Callable[..., Any], turns: int, mark: Callable[[], None]) -> Callable[[], Awaitable[None]]:
    async def run() -> None:
        turn = 0

        def answer() -> Any:
            nonlocal turn
            mark()
            turn += 1
            return (
                TextPart("done")
                if turn > turns
                else ToolCallPart(function.__name__, workload.FLAT, str(turn))
            )

        agent = Agent(Fake(answer), tools=[function])
        await agent.run("go", usage_limits=UsageLimits(request_limit=None))

    return run


def stream() -> dict[str, Any]:
    from pydantic_ai._parts_manager import ModelResponsePartsManager
    from pydantic_ai.models import ModelRequestParameters

    def make() -> Callable[[str], Any]:
        manager = ModelResponsePartsManager(ModelRequestParameters())
        manager.handle_tool_call_delta(vendor_part_id=0, tool_name="edit", args="", tool_call_id="id")

        def step(chunk: str) -> Any:
            manager.handle_tool_call_delta(vendor_part_id=0, args=chunk)
            return from_json(manager.get_parts()[0].args or "{}", allow_partial="trailing-strings")

        return step

    return {"parts manager, from_json of its parts": make}


def answers() -> dict[str, dict[str, Any]]:
    import answer_streams
    from answer_streams import Calls, Memory
    from pydantic_ai.direct import model_request_stream
    from pydantic_ai.messages import ModelRequest
    from pydantic_ai.models.anthropic import AnthropicModel
    from pydantic_ai.models.openai import OpenAIChatModel
    from pydantic_ai.providers.anthropic import AnthropicProvider
    from pydantic_ai.providers.openai import OpenAIProvider

    memory, loop = Memory(), asyncio.new_event_loop()
    openai = answer_streams.openai_client(memory, use_async=True)
    anthropic = answer_streams.anthropic_client(memory, use_async=True)
    asked = [ModelRequest.user_text_prompt("go")]

    def reader(model: Any) -> Any:
        async def answered(step: Callable[[], None]) -> Calls:
            async with model_request_stream(model, asked) as stream:
                async for _ in stream:
                    step()
                parts = stream.get().parts
            return [(part.tool_name, part.args) for part in parts if isinstance(part, ToolCallPart)]

        def read(frames: list[bytes], step: Callable[[], None]) -> Calls:
            memory.frames = frames
            return loop.run_until_complete(answered(step))

        return read

    return {
        "chat": {
            "OpenAIChatModel, model_request_stream": reader(
                OpenAIChatModel("m", provider=OpenAIProvider(openai_client=openai))
            )
        },
        "messages": {
            "AnthropicModel, model_request_stream": reader(
                AnthropicModel("m", provider=AnthropicProvider(anthropic_client=anthropic))
            )
        },
    }


def typed() -> dict[str, dict[str, Any]]:
    from pydantic_ai.models.openai import OpenAIChatModel
    from pydantic_ai.providers.openai import OpenAIProvider
    from typed_answers import TEXT, Invoice, Served

    served = Served()
    model = OpenAIChatModel("m", provider=OpenAIProvider(openai_client=served.client()))
    agent = Agent(model, output_type=Invoice)

    async def once() -> Any:
        return (await agent.run(TEXT)).output

    async def streamed() -> Any:
        last = None
        async with agent.run_stream(TEXT) as result:
            async for item in result.stream_output(debounce_by=None):
                last = item
        return last

    return {
        "whole": {"Agent.run": (once, served)},
        "streamed": {"run_stream, stream_output": (streamed, served)},
    }


define = Tool


def use(tool: Any) -> None:
    assert tool.tool_def
    tool.function_schema.validator.validate_json(workload.ARGUMENTS)


def definitions(functions: list[Callable[..., Any]]) -> list[dict[str, Any]]:
    specs = [Tool(function).tool_def for function in functions]
    return [
        {"name": spec.name, "description": spec.description, "parameters": spec.parameters_json_schema}
        for spec in specs
    ]


class Registry:
    def __init__(self, function: Callable[..., Any], count: int) -> None:
        self.tools = [Tool(function, name=f"tool_{number}") for number in range(count)]
        self.toolset: FunctionToolset[None] = FunctionToolset()

    def add(self) -> None:
        for tool in self.tools:
            self.toolset.add_tool(tool)

    def look_up(self, name: str) -> Any:
        return self.toolset.tools[name]

    async def list(self) -> int:
        manager = await ToolManager(self.toolset).for_run_step(_context())
        return len(manager.tool_defs)


registry = Registry
