"""The OpenAI Agents SDK; streaming is that of the openai package below it."""

from collections.abc import Awaitable, Callable
from typing import Any

import workload
from agents import Agent, FunctionTool, Runner, Usage, function_tool
from agents.models.interface import Model
from agents.tool import invoke_function_tool
from agents.tool_context import ToolContext
from openai.types.responses import ResponseFunctionToolCall, ResponseOutputMessage, ResponseOutputText

NAME = "openai-agents"
PACKAGES = ("openai-agents", "openai", "anthropic")
IMPORTS = {
    "tool and Toolbox": "from agents import function_tool, FunctionTool",
    "agent": "from agents import Agent, Runner",
}


def define(function: Callable[..., Any]) -> FunctionTool:
    return function_tool(function)


def use(tool: FunctionTool) -> None:
    """Its schema and validator are made with the tool; what is validated is so inside on_invoke_tool."""
    assert tool.params_json_schema


def calls(function: Callable[..., Any], kind: str) -> dict[str, Any]:
    tool = define(function)

    def context(raw: str) -> ToolContext[None]:
        return ToolContext(None, tool_name=tool.name, tool_call_id="id", tool_arguments=raw)

    async def invoked(raw: str) -> str:
        return str(await tool.on_invoke_tool(context(raw), raw))

    async def by_runner(raw: str) -> str:
        return str(await invoke_function_tool(function_tool=tool, context=context(raw), arguments=raw))

    return {"FunctionTool.on_invoke_tool": invoked, "invoke_function_tool": by_runner}


def bodies() -> dict[str, Any]:
    from agents.models.chatcmpl_converter import Converter

    def after(turns: int) -> Callable[[], Any]:
        items: list[Any] = [{"role": "user", "content": "go"}]
        for turn in range(turns):
            text = {"type": "output_text", "text": f"I look it up, {turn}.", "annotations": []}
            message = {"type": "message", "role": "assistant", "status": "completed", "content": [text]}
            items.append({**message, "id": f"msg_{turn}"})
            call = {"type": "function_call", "name": "get_weather", "arguments": workload.FLAT}
            items.append({**call, "call_id": f"call_{turn}"})
            output = '{"city":"Rio","days":7}'
            items.append({"type": "function_call_output", "call_id": f"call_{turn}", "output": output})
        return lambda: Converter.items_to_messages(items)

    return {"Converter.items_to_messages": after}


def loop(function: Callable[..., Any], turns: int, mark: Callable[[], None]) -> Callable[[], Awaitable[None]]:
    from agents import ModelResponse, set_tracing_disabled

    set_tracing_disabled(True)

    class Fake(Model):
        turn = 0

        async def get_response(self, *args: Any, **named: Any) -> ModelResponse:
            mark()
            self.turn += 1
            return ModelResponse(
                [self.answer()], Usage(requests=1, input_tokens=100, output_tokens=10, total_tokens=110), None
            )

        def answer(self) -> Any:
            if self.turn <= turns:
                return ResponseFunctionToolCall(
                    arguments=workload.FLAT,
                    call_id=str(self.turn),
                    name=function.__name__,
                    type="function_call",
                )
            text = ResponseOutputText(text="done", type="output_text", annotations=[])
            return ResponseOutputMessage(
                id="m", content=[text], role="assistant", status="completed", type="message"
            )

        def stream_response(self, *args: Any, **named: Any) -> Any:
            raise NotImplementedError

    async def run() -> None:
        await Runner.run(Agent("a", tools=[define(function)], model=Fake()), "go", max_turns=turns + 10)

    return run


def stream() -> dict[str, Any]:
    from openai.lib.streaming.chat import ChatCompletionStreamState
    from openai.types.chat import ChatCompletionChunk

    function = {"name": "edit", "strict": True, "parameters": {"type": "object"}}
    head = {"id": "c", "created": 0, "model": "m", "object": "chat.completion.chunk"}

    def chunk_of(call: dict[str, Any]) -> ChatCompletionChunk:
        choice = {"index": 0, "delta": {"tool_calls": [{"index": 0, **call}]}, "finish_reason": None}
        return ChatCompletionChunk.model_validate({**head, "choices": [choice]})

    def make() -> Callable[[str], Any]:
        state: Any = ChatCompletionStreamState(input_tools=[{"type": "function", "function": function}])
        begun = {"id": "id", "type": "function", "function": {"name": "edit", "arguments": ""}}
        state.handle_chunk(chunk_of(begun))

        def step(chunk: str) -> Any:
            list(state.handle_chunk(chunk_of({"function": {"arguments": chunk}})))
            calls = state.current_completion_snapshot.choices[0].message.tool_calls
            return calls[0].function.parsed_arguments

        return step

    return {"openai ChatCompletionStreamState, strict tool": make}


def answers() -> dict[str, dict[str, Any]]:
    """The providers' own SDKs, on which the agents of this SDK and others stand."""
    import answer_streams
    from answer_streams import Calls, Memory

    memory = Memory()
    openai, anthropic = answer_streams.openai_client(memory), answer_streams.anthropic_client(memory)
    asked: Any = [{"role": "user", "content": "go"}]

    def chat(frames: list[bytes], step: Callable[[], None]) -> Calls:
        memory.frames = frames
        with openai.chat.completions.stream(model="m", messages=asked) as stream:
            for _ in stream:
                step()
            calls = stream.get_final_completion().choices[0].message.tool_calls
        return [(call.function.name, call.function.arguments) for call in calls]

    def chunks_alone(frames: list[bytes], step: Callable[[], None]) -> Calls:
        memory.frames = frames
        found: list[tuple[str, list[str]]] = []
        for chunk in openai.chat.completions.create(model="m", messages=asked, stream=True):
            for call in chunk.choices[0].delta.tool_calls or ():
                if call.index == len(found):
                    found.append((call.function.name, []))
                found[call.index][1].append(call.function.arguments or "")
            step()
        return [(name, "".join(pieces)) for name, pieces in found]

    def messages(frames: list[bytes], step: Callable[[], None]) -> Calls:
        memory.frames = frames
        with anthropic.messages.stream(model="m", max_tokens=9, messages=asked) as stream:
            for _ in stream:
                step()
            blocks = stream.get_final_message().content
        return [(block.name, block.input) for block in blocks if block.type == "tool_use"]

    return {
        "chat": {
            "openai, chat.completions.stream": chat,
            "openai, chunks of create, joined by hand": chunks_alone,
        },
        "messages": {"anthropic, messages.stream": messages},
    }


def definitions(functions: list[Callable[..., Any]]) -> list[dict[str, Any]]:
    tools = [define(function) for function in functions]
    return [
        {"name": tool.name, "description": tool.description, "parameters": tool.params_json_schema}
        for tool in tools
    ]


class Registry:
    """A list of tools is all there is; an agent lists those that are enabled."""

    def __init__(self, function: Callable[..., Any], count: int) -> None:
        from agents import RunContextWrapper

        self.tools = [function_tool(function, name_override=f"tool_{number}") for number in range(count)]
        self.agent: Agent[None] = Agent("a", tools=[])
        self.context = RunContextWrapper(None)

    def add(self) -> None:
        for tool in self.tools:
            self.agent.tools.append(tool)

    async def list(self) -> int:
        return len(await self.agent.get_all_tools(self.context))


registry = Registry
