"""FunctionCall.aexecute."""

import asyncio
import json

from agno.tools import tool
from agno.tools.function import FunctionCall


@tool
async def add(a: int, b: int = 0) -> int:
    "Add two numbers."
    return a + b


call = FunctionCall(function=add, arguments=json.loads('{"a": 1, "b": 2}'))
assert asyncio.run(call.aexecute()).result == 3
