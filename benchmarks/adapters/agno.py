"""agno: a Function, the FunctionCall that its models run, and its agent."""

import json
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator
from typing import Any

import workload
from agno.models.base import Model
from agno.models.response import ModelResponse
from agno.tools.function import Function, FunctionCall

NAME = "agno"
PACKAGES = ("agno",)
IMPORTS = {
    "tool and Toolbox": "from agno.tools import tool; from agno.tools.function import Function",
    "agent": "from agno.agent import Agent; from agno.tools import tool",
}


def define(function: Callable[..., Any]) -> Function:
    made = Function.from_callable(function)
    made.process_entrypoint()
    return made


def use(made: Function) -> None:
    """Schema and validating wrapper are made with the tool; the schema is read out."""
    assert made.to_dict()


def calls(function: Callable[..., Any], kind: str) -> dict[str, Any]:
    made = define(function)

    async def call(raw: str) -> str:
        done = await FunctionCall(function=made, arguments=json.loads(raw)).aexecute()
        assert done.status == "success", done.error
        return str(done.result)

    note = ", inline" if kind == "sync" else ""
    return {f"FunctionCall.aexecute{note}": call}


def loop(function: Callable[..., Any], turns: int, mark: Callable[[], None]) -> Callable[[], Awaitable[None]]:
    from agno.agent import Agent

    class Fake(Model):
        def __init__(self) -> None:
            super().__init__(id="fake", name="fake", provider="fake")
            self.turn = 0

        async def ainvoke(self, *args: Any, **named: Any) -> ModelResponse:
            mark()
            self.turn += 1
            if self.turn > turns:
                return ModelResponse(role="assistant", content="done")
            call = {"name": function.__name__, "arguments": workload.FLAT}
            calls = [{"id": str(self.turn), "type": "function", "function": call}]
            return ModelResponse(role="assistant", tool_calls=calls)

        def invoke(self, *args: Any, **named: Any) -> ModelResponse:
            raise NotImplementedError

        def invoke_stream(self, *args: Any, **named: Any) -> Iterator[ModelResponse]:
            raise NotImplementedError

        def ainvoke_stream(self, *args: Any, **named: Any) -> AsyncIterator[ModelResponse]:
            raise NotImplementedError

        def _parse_provider_response(self, response: Any, **named: Any) -> ModelResponse:
            return response

        def _parse_provider_response_delta(self, response: Any) -> ModelResponse:
            return response

    async def run() -> None:
        agent = Agent(model=Fake(), tools=[function], telemetry=False)
        await agent.arun("go")

    return run


def text() -> dict[str, Any]:
    from agno.utils.tools import extract_tool_call_from_string
    from measures.text import Calls, Reader

    def write(calls: Calls) -> str:
        said = json.dumps({"name": calls[0][0], "arguments": calls[0][1]})
        return f"<tool_call>\n{said}\n</tool_call>"

    def read(pieces: Iterable[str]) -> Calls:
        said = json.loads(extract_tool_call_from_string("".join(pieces)))
        return [(said["name"], said["arguments"])]

    row = "one call in `<tool_call>`"
    return {"extract_tool_call_from_string, at once": Reader(row, write, read, many=False, piece=0)}


def definitions(functions: list[Callable[..., Any]]) -> list[dict[str, Any]]:
    specs = [define(function).to_dict() for function in functions]
    return [{key: spec.get(key) for key in ("name", "description", "parameters")} for spec in specs]
