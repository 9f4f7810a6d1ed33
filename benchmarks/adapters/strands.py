"""strands-agents: its decorated tools, and its agent with a scripted model."""

import json
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import workload
from strands import Agent, tool
from strands.models import Model
from strands.tools.decorator import DecoratedFunctionTool
from strands.tools.registry import ToolRegistry

NAME = "strands-agents"
PACKAGES = ("strands-agents",)
IMPORTS = {
    "tool and Toolbox": "from strands import tool; from strands.tools.registry import ToolRegistry",
    "agent": "from strands import Agent, tool",
}


def define(function: Callable[..., Any]) -> DecoratedFunctionTool[..., Any]:
    return tool(function)


def use(made: DecoratedFunctionTool[..., Any]) -> None:
    """Schema and validating model are made with the tool; the schema is read out."""
    assert made.tool_spec


def calls(function: Callable[..., Any], kind: str) -> dict[str, Any]:
    made = define(function)

    async def call(raw: str) -> str:
        use_of_tool: Any = {"toolUseId": "id", "name": made.tool_name, "input": json.loads(raw)}
        result: Any = None
        async for event in made.stream(use_of_tool, {}):
            result = event
        told = result.tool_result
        assert told["status"] == "success", told
        return str(told["content"][0]["text"])

    return {"DecoratedFunctionTool.stream": call}


def loop(function: Callable[..., Any], turns: int, mark: Callable[[], None]) -> Callable[[], Awaitable[None]]:
    class Fake(Model):
        def __init__(self) -> None:
            self.turn = 0

        def update_config(self, **model_config: Any) -> None:
            raise NotImplementedError

        def get_config(self) -> dict[str, Any]:
            return {"model_id": "fake"}

        def structured_output(self, *args: Any, **named: Any) -> Any:
            raise NotImplementedError

        async def stream(self, *args: Any, **named: Any) -> AsyncIterator[dict[str, Any]]:
            mark()
            self.turn += 1
            yield {"messageStart": {"role": "assistant"}}
            if self.turn > turns:
                yield {"contentBlockStart": {"start": {}}}
                yield {"contentBlockDelta": {"delta": {"text": "done"}}}
            else:
                named_call = {"toolUseId": str(self.turn), "name": function.__name__}
                yield {"contentBlockStart": {"start": {"toolUse": named_call}}}
                yield {"contentBlockDelta": {"delta": {"toolUse": {"input": workload.FLAT}}}}
            yield {"contentBlockStop": {}}
            yield {"messageStop": {"stopReason": "end_turn" if self.turn > turns else "tool_use"}}

    async def run() -> None:
        agent = Agent(model=Fake(), tools=[define(function)], callback_handler=None)
        await agent.invoke_async("go")

    return run


def definitions(functions: list[Callable[..., Any]]) -> list[dict[str, Any]]:
    specs = [define(function).tool_spec for function in functions]
    return [
        {
            "name": spec["name"],
            "description": spec["description"],
            "parameters": spec["inputSchema"]["json"],
        }
        for spec in specs
    ]


class Registry:
    def __init__(self, function: Callable[..., Any], count: int) -> None:
        self.tools = [tool(function, name=f"tool_{number}") for number in range(count)]
        self.registry = ToolRegistry()

    def add(self) -> None:
        for made in self.tools:
            self.registry.register_tool(made)

    def look_up(self, name: str) -> Any:
        return self.registry.registry.get(name)

    def list(self) -> int:
        return len(self.registry.get_all_tool_specs())


registry = Registry
