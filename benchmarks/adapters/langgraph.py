"""langchain-core's tools, langgraph's ToolNode, and langchain's agent on top of them."""

import inspect
import json
from collections.abc import Awaitable, Callable, Iterable
from typing import Any

import workload
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, AIMessageChunk
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.tools import StructuredTool
from langchain_core.utils.function_calling import convert_to_openai_tool

NAME = "langchain / langgraph"
PACKAGES = (
    "langchain",
    "langchain-core",
    "langgraph",
    "langchain-openai",
    "langchain-anthropic",
    "openai",
    "anthropic",
)
IMPORTS = {
    "tool and Toolbox": "from langchain_core.tools import tool; from langgraph.prebuilt import ToolNode",
    "agent": "from langchain.agents import create_agent",
}


def define(function: Callable[..., Any]) -> StructuredTool:
    kind = "coroutine" if inspect.iscoroutinefunction(function) else "func"
    return StructuredTool.from_function(**{kind: function}, parse_docstring=True)


def use(tool: Any) -> None:
    assert convert_to_openai_tool(tool)
    tool.args_schema.model_validate_json(workload.ARGUMENTS)


def calls(function: Callable[..., Any], kind: str) -> dict[str, Any]:
    from langgraph.graph import END, START, MessagesState, StateGraph
    from langgraph.prebuilt import ToolNode

    tool = define(function)

    def call(raw: str) -> dict[str, Any]:
        return {"name": tool.name, "args": json.loads(raw), "id": "id", "type": "tool_call"}

    async def invoked(raw: str) -> str:
        return (await tool.ainvoke(call(raw))).content

    graph = StateGraph(MessagesState)
    graph.add_node("tools", ToolNode([tool]))
    graph.add_edge(START, "tools")
    graph.add_edge("tools", END)
    compiled = graph.compile()

    async def in_graph(raw: str) -> str:
        state = await compiled.ainvoke({"messages": [AIMessage("", tool_calls=[call(raw)])]})
        return state["messages"][-1].content

    return {"StructuredTool.ainvoke": invoked, "ToolNode in a graph": in_graph}


def loop(function: Callable[..., Any], turns: int, mark: Callable[[], None]) -> Callable[[], Awaitable[None]]:
    from langchain.agents import create_agent

    arguments = json.loads(workload.FLAT)

    class Fake(BaseChatModel):
        turn: int = 0

        @property
        def _llm_type(self) -> str:
            return "fake"

        def bind_tools(self, tools: Any, **named: Any) -> Any:
            return self

        def _generate(self, *args: Any, **named: Any) -> ChatResult:
            mark()
            self.turn += 1
            calls = [{"name": function.__name__, "args": arguments, "id": str(self.turn)}]
            message = AIMessage("done") if self.turn > turns else AIMessage("", tool_calls=calls)
            return ChatResult(generations=[ChatGeneration(message=message)])

        async def _agenerate(self, *args: Any, **named: Any) -> ChatResult:
            return self._generate()

    async def run() -> None:
        agent = create_agent(Fake(), [define(function)])
        await agent.ainvoke({"messages": [("user", "go")]}, {"recursion_limit": turns * 4})

    return run


def stream() -> dict[str, Any]:
    def make() -> Callable[[str], Any]:
        whole = AIMessageChunk("", tool_call_chunks=[{"name": "edit", "args": "", "id": "id", "index": 0}])

        def step(chunk: str) -> Any:
            nonlocal whole
            part = {"name": None, "args": chunk, "id": None, "index": 0}
            whole = whole + AIMessageChunk("", tool_call_chunks=[part])
            found = whole.tool_calls
            return found[0]["args"] if found else None

        return step

    return {"AIMessageChunk +=, tool_calls": make}


def answers() -> dict[str, dict[str, Any]]:
    import answer_streams
    from answer_streams import Calls, Memory
    from langchain_anthropic import ChatAnthropic
    from langchain_openai import ChatOpenAI

    memory = Memory()
    parameters = {"type": "object", "properties": {}}
    tools = [
        {"type": "function", "function": {"name": name, "description": name, "parameters": parameters}}
        for name in answer_streams.TOOLS
    ]
    openai = ChatOpenAI(model="m", api_key="none", http_client=memory.client(), use_responses_api=False)
    anthropic = ChatAnthropic(model="m", api_key="none")
    anthropic.__dict__["_client"] = answer_streams.anthropic_client(memory)  # it takes no client of ours

    def reader(model: Any) -> Any:
        bound = model.bind_tools(tools)

        def read(frames: list[bytes], step: Callable[[], None]) -> Calls:
            memory.frames = frames
            whole = None
            for chunk in bound.stream("go"):
                whole = chunk if whole is None else whole + chunk
                step()
            return [(call["name"], call["args"]) for call in whole.tool_calls]

        return read

    return {
        "chat": {"ChatOpenAI.stream, chunks added": reader(openai)},
        "messages": {"ChatAnthropic.stream, chunks added": reader(anthropic)},
    }


def text() -> dict[str, Any]:
    from langchain_core.output_parsers import JsonOutputParser
    from measures.text import Calls, Reader

    parser = JsonOutputParser()

    def write(calls: Calls) -> str:
        return json.dumps({"name": calls[0][0], "arguments": calls[0][1]})

    def streamed(pieces: Iterable[str]) -> Calls:
        said: Any = {}
        for value in parser.transform(iter(pieces)):
            said = value
        return [(said["name"], said["arguments"])]

    def whole(pieces: Iterable[str]) -> Calls:
        said = parser.parse("".join(pieces))
        return [(said["name"], said["arguments"])]

    row = "one call as JSON"
    return {
        "JsonOutputParser.transform, in pieces": Reader(row, write, streamed, many=False),
        "JsonOutputParser.parse, at once": Reader(row, write, whole, many=False, piece=0),
    }


def definitions(functions: list[Callable[..., Any]]) -> list[dict[str, Any]]:
    return [convert_to_openai_tool(define(function))["function"] for function in functions]


class Registry:
    def __init__(self, function: Callable[..., Any], count: int) -> None:
        self.tools = [
            StructuredTool.from_function(coroutine=function, name=f"tool_{number}") for number in range(count)
        ]

    def add(self) -> None:
        from langgraph.prebuilt import ToolNode

        self.node = ToolNode(self.tools)

    def look_up(self, name: str) -> Any:
        return self.node.tools_by_name[name]

    def list(self) -> int:
        return len([convert_to_openai_tool(tool) for tool in self.node.tools_by_name.values()])


registry = Registry
