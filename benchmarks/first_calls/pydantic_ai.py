"""FunctionToolset.call_tool."""

import asyncio

from pydantic_ai import FunctionToolset, RunContext
from pydantic_ai.models.test import TestModel
from pydantic_ai.usage import RunUsage


async def add(a: int, b: int = 0) -> int:
    "Add two numbers."
    return a + b


async def main():
    toolset, context = FunctionToolset([add]), RunContext(deps=None, model=TestModel(), usage=RunUsage())
    tool = (await toolset.get_tools(context))["add"]
    given = tool.args_validator.validate_json('{"a": 1, "b": 2}')
    assert await toolset.call_tool("add", given, context, tool) == 3


asyncio.run(main())
