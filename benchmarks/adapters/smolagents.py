"""smolagents: sync tools only, run where they are called; nested models are not understood, only passed on."""

import json
from collections.abc import Awaitable, Callable, Iterable
from typing import Any

import workload
from smolagents import ChatMessage, MessageRole, Model, ToolCallingAgent, tool
from smolagents.models import (
    ChatMessageToolCall,
    ChatMessageToolCallFunction,
    get_tool_json_schema,
)
from smolagents.monitoring import LogLevel

NAME = "smolagents"
PACKAGES = ("smolagents", "openai")
IMPORTS = {
    "tool and Toolbox": "from smolagents import Tool, tool",
    "agent": "from smolagents import ToolCallingAgent",
}


class Fake(Model):
    def __init__(self, answer: Callable[[], Any]) -> None:
        super().__init__(model_id="fake")
        self.answer = answer

    def generate(self, *args: Any, **named: Any) -> ChatMessage:
        name, arguments, number = self.answer()
        function = ChatMessageToolCallFunction(name=name, arguments=arguments)
        call = ChatMessageToolCall(function=function, id=str(number), type="function")
        return ChatMessage(role=MessageRole.ASSISTANT, content="", tool_calls=[call])


def define(function: Callable[..., Any]) -> Any:
    return tool(function)


def use(made: Any) -> None:
    assert get_tool_json_schema(made)


def calls(function: Callable[..., Any], kind: str) -> dict[str, Any]:
    if kind in ("async", "slow"):
        return {}
    function = {"nested": workload.place_order_sync, "file": workload.write_file_sync}.get(kind, function)
    made = define(function)
    agent = ToolCallingAgent([made], Fake(lambda: None), verbosity_level=LogLevel.OFF)

    async def call(raw: str) -> str:
        return str(agent.execute_tool_call(made.name, json.loads(raw)))

    return {"ToolCallingAgent.execute_tool_call, inline": call}


def loop(function: Callable[..., Any], turns: int, mark: Callable[[], None]) -> Callable[[], Awaitable[None]]:
    arguments = json.loads(workload.FLAT)

    async def run() -> None:
        turn = 0

        def answer() -> Any:
            nonlocal turn
            mark()
            turn += 1
            if turn > turns:
                return "final_answer", {"answer": "done"}, turn
            return "get_weather_sync", arguments, turn

        agent = ToolCallingAgent(
            [define(workload.get_weather_sync)],
            Fake(answer),
            max_steps=turns + 10,
            verbosity_level=LogLevel.OFF,
        )
        agent.run("go")

    return run


def answers() -> dict[str, dict[str, Any]]:
    from answer_streams import Calls, Memory
    from smolagents import OpenAIModel
    from smolagents.models import agglomerate_stream_deltas

    memory = Memory()
    model = OpenAIModel("m", api_key="none", client_kwargs={"http_client": memory.client()})
    asked = [ChatMessage(role=MessageRole.USER, content="go")]

    def read(frames: list[bytes], step: Callable[[], None]) -> Calls:
        memory.frames = frames
        deltas = []
        for delta in model.generate_stream(asked):
            deltas.append(delta)
            step()
        calls = agglomerate_stream_deltas(deltas).tool_calls or []
        return [(call.function.name, call.function.arguments) for call in calls]

    return {"chat": {"OpenAIModel.generate_stream, deltas agglomerated once": read}}


def text() -> dict[str, Any]:
    from measures.text import Calls, Reader
    from smolagents.models import get_tool_call_from_text

    def write(calls: Calls) -> str:
        return json.dumps({"name": calls[0][0], "arguments": calls[0][1]})

    def read(pieces: Iterable[str]) -> Calls:
        call = get_tool_call_from_text("".join(pieces), "name", "arguments")
        return [(call.function.name, call.function.arguments)]

    return {"get_tool_call_from_text, at once": Reader("one call as JSON", write, read, many=False, piece=0)}


def definitions(functions: list[Callable[..., Any]]) -> list[dict[str, Any]]:
    return [get_tool_json_schema(define(function))["function"] for function in functions]
