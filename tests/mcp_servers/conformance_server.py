"""A toolbox with what the official MCP conformance suite asks a server for, served by `McpFace` over HTTP.

    python -m tests.mcp_servers.conformance_server

prints its address, and serves until its standard input ends.
"""

from __future__ import annotations

import asyncio
import json
import os
import socket
import sys
from collections.abc import Mapping, Sequence
from typing import Any

from toolcrib import Context, Effect, Toolbox, ToolError, tool
from toolcrib.content import Audio, Image, Text
from toolcrib.mcp.server import McpFace, McpPeer, peer_of_call, serve_http

PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8DwHwAFBQIAX8jx0gAAAABJRU5ErkJggg=="
SOUND = "UklGRiQAAABXQVZFZm10IBAAAAABAAEARKwAAIhYAQACABAAZGF0YQAAAAA="
FIXED: dict[str, Any] = {"effect": Effect.READ, "secrets": ()}


def peer() -> McpPeer:
    """The client that called."""
    found = peer_of_call()
    assert found is not None
    return found


def form(**properties: dict[str, Any]) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "required": list(properties)}


def elicit(message: str, schema: dict[str, Any]) -> dict[str, Any]:
    return {"method": "elicitation/create", "params": {"message": message, "requestedSchema": schema}}


def sample(prompt: str, most: int = 100) -> dict[str, Any]:
    words = {"role": "user", "content": {"type": "text", "text": prompt}}
    return {"method": "sampling/createMessage", "params": {"messages": [words], "maxTokens": most}}


def resource(uri: str, media_type: str, text: str) -> Text:
    own = {"uri": uri, "mimeType": media_type}
    return Text(f"[resource {uri}]\n{text}", {"mcp": {"resource": own}})


# -- results of each kind


@tool(**FIXED)
def test_simple_text() -> str:
    """Give a text."""
    return "This is a simple text response for testing."


@tool(**FIXED)
def test_image_content() -> Image:
    """Give a picture."""
    return Image(PIXEL, "", "image/png")


@tool(**FIXED)
def test_audio_content() -> Audio:
    """Give a sound."""
    return Audio(SOUND, "", "audio/wav")


@tool(**FIXED)
def test_embedded_resource() -> Text:
    """Give a resource."""
    return resource("test://embedded-resource", "text/plain", "This is an embedded resource content.")


@tool(**FIXED)
def test_multiple_content_types() -> list[Any]:
    """Give a text, a picture and a resource."""
    data = json.dumps({"test": "data", "value": 123})
    return [
        Text("Multiple content types test:"),
        Image(PIXEL, "", "image/png"),
        resource("test://mixed-content-resource", "application/json", data),
    ]


@tool(**FIXED)
def test_error_handling() -> str:
    """Fail."""
    raise ToolError("This tool intentionally returns an error for testing")


# -- what the client is told while a tool runs


@tool(**FIXED)
async def test_tool_with_logging() -> str:
    """Send log messages."""
    for words in ("Tool execution started", "Tool processing data", "Tool execution completed"):
        await peer().log("info", words)
        await asyncio.sleep(0.05)
    return "Logged three messages."


@tool(**FIXED)
async def test_tool_with_progress(*, ctx: Context) -> str:
    """Report progress."""
    for part in (0.0, 0.5, 1.0):
        ctx.report(progress=part)
        await asyncio.sleep(0.05)
    return "Reported progress."


# -- what the client is asked


@tool(**FIXED)
async def test_sampling(prompt: str) -> str:
    """Ask the client's model."""
    reply = (await peer().ask({"reply": sample(prompt)}))["reply"]
    return f"LLM response: {reply['content']['text']}"


@tool(**FIXED)
async def test_elicitation(message: str) -> str:
    """Ask the client's user."""
    about = "User's {}"
    wanted = form(
        username={"type": "string", "description": about.format("response")},
        email={"type": "string", "description": about.format("email address")},
    )
    return f"User response: {json.dumps(await peer().elicit(message, wanted))}"


@tool(**FIXED)
async def test_elicitation_sep1034_defaults() -> str:
    """Ask with a default for each kind of field."""
    wanted = form(
        name={"type": "string", "default": "John Doe"},
        age={"type": "integer", "default": 30},
        score={"type": "number", "default": 95.5},
        status={"type": "string", "enum": ["active", "inactive", "pending"], "default": "active"},
        verified={"type": "boolean", "default": True},
    )
    return completed(await peer().elicit("Is this right?", {**wanted, "required": []}))


@tool(**FIXED)
async def test_elicitation_sep1330_enums() -> str:
    """Ask with each kind of choice."""
    options, short = ["option1", "option2", "option3"], ["opt1", "opt2", "opt3"]
    first = [
        {"const": f"value{n}", "title": f"{word} Option"}
        for n, word in enumerate(("First", "Second", "Third"), 1)
    ]
    choices = [
        {"const": f"value{n}", "title": f"{word} Choice"}
        for n, word in enumerate(("First", "Second", "Third"), 1)
    ]
    wanted = form(
        untitledSingle={"type": "string", "enum": options},
        titledSingle={"type": "string", "oneOf": first},
        legacyEnum={
            "type": "string",
            "enum": short,
            "enumNames": ["Option One", "Option Two", "Option Three"],
        },
        untitledMulti={"type": "array", "items": {"type": "string", "enum": options}},
        titledMulti={"type": "array", "items": {"anyOf": choices}},
    )
    return completed(await peer().elicit("Choose.", {**wanted, "required": []}))


def completed(result: dict[str, Any]) -> str:
    return (
        f"Elicitation completed: action={result['action']}, content={json.dumps(result.get('content', {}))}"
    )


NAME = form(name={"type": "string"})


async def name_of_user(question: str = "What is your name?") -> str:
    answer = (await peer().ask({"user_name": elicit(question, NAME)}))["user_name"]
    return str(answer.get("content", {}).get("name", "nobody"))


@tool(**FIXED)
async def test_input_required_result_elicitation() -> str:
    """Ask for a name."""
    return f"Hello, {await name_of_user()}!"


@tool(**FIXED)
async def test_input_required_result_sampling() -> str:
    """Ask the client's model."""
    asked = {"capital_question": sample("What is the capital of France?")}
    return str((await peer().ask(asked))["capital_question"]["content"]["text"])


@tool(**FIXED)
async def test_input_required_result_list_roots() -> str:
    """Ask for the client's folders."""
    roots = (await peer().ask({"client_roots": {"method": "roots/list", "params": {}}}))["client_roots"]
    return f"Roots: {', '.join(root['uri'] for root in roots['roots'])}"


@tool(**FIXED)
async def test_input_required_result_request_state() -> str:
    """Ask, and take the answer with the state."""
    await peer().ask({"confirm": elicit("Please confirm", form(ok={"type": "boolean"}))})
    return "state-ok"


@tool(**FIXED)
async def test_input_required_result_tampered_state() -> str:
    """Ask; a state that was tampered with is refused."""
    await peer().ask({"confirm": elicit("Please confirm", form(ok={"type": "boolean"}))})
    return "state-ok"


@tool(**FIXED)
async def test_input_required_result_multiple_inputs() -> str:
    """Ask for three things at once."""
    answers = await peer().ask(
        {
            "user_name": elicit("What is your name?", NAME),
            "greeting": sample("Generate a greeting", 50),
            "client_roots": {"method": "roots/list", "params": {}},
        }
    )
    return json.dumps(answers)


@tool(**FIXED)
async def test_input_required_result_multi_round() -> str:
    """Ask twice."""
    first = (await peer().ask({"step1": elicit("Step 1: What is your name?", NAME)}))["step1"]
    color = elicit("Step 2: What is your favorite color?", form(color={"type": "string"}))
    second = (await peer().ask({"step2": color}))["step2"]
    return json.dumps([first, second])


@tool(**FIXED)
async def test_input_required_result_capabilities() -> str:
    """Ask for what the client can give."""
    able, asked = peer().abilities, {}
    if able.forms:
        asked["user_name"] = elicit("What is your name?", NAME)
    if able.sampling:
        asked["greeting"] = sample("Generate a greeting", 50)
    return json.dumps(await peer().ask(asked)) if asked else "The client can give nothing."


@tool(**FIXED)
async def test_missing_capability() -> str:
    """Ask the client's model, for which the client has to be able."""
    return str((await peer().ask({"reply": sample("Hello")}))["reply"]["content"])


# -- streams, changes, headers


@tool(**FIXED)
async def test_reconnection() -> str:
    """End the stream of the call in its middle."""
    await peer().end_stream()
    await asyncio.sleep(0.1)
    return "Reconnected."


@tool(**FIXED)
async def test_logging_tool() -> str:
    """Send a log message."""
    await peer().log("info", "A log message")
    return "Logged."


SERVED: list[McpFace] = []


@tool(**FIXED)
async def test_trigger_tool_change() -> str:
    """Change the list of tools."""
    [served] = SERVED
    names = await served.toolbox.names()
    if changed.facts.name in names:
        served.toolbox.remove(changed.facts.name)
    else:
        served.toolbox.add(changed)
    await served.tools_changed()
    return "Changed."


@tool(**FIXED)
async def test_trigger_prompt_change() -> str:
    """Say that the list of prompts changed."""
    await SERVED[0].prompts_changed()
    return "Changed."


@tool(
    **FIXED,
    params={
        "type": "object",
        "properties": {"region": {"type": "string", "x-mcp-header": "Region"}, "query": {"type": "string"}},
        "required": ["region"],
    },
)
def test_x_mcp_header(arguments: dict[str, Any]) -> str:
    """Take an argument that is repeated in a header."""
    return json.dumps(arguments)


def _changed() -> str:
    """A tool that comes and goes."""
    return "Here."


changed = tool(_changed, name="test_changed", **FIXED)


# -- tasks


@tool(**FIXED)
def greet(name: str) -> str:
    """Greet somebody, at once."""
    return f"Hello, {name}!"


@tool(**FIXED)
async def slow_compute(seconds: float, label: str = "") -> str:
    """Take a while."""
    await asyncio.sleep(seconds)
    return f"Computed {label} for {seconds} seconds."


@tool(**FIXED)
async def failing_job() -> str:
    """Fail after a while."""
    await asyncio.sleep(0.2)
    raise ToolError("The job failed.")


@tool(**FIXED)
async def protocol_error_job() -> str:
    """Crash."""
    raise RuntimeError("a crash for the test")


@tool(**FIXED)
async def confirm_delete(filename: str) -> str:
    """Ask before a file is deleted."""
    answer = await peer().elicit(f"Delete {filename}?", form(confirm={"type": "boolean"}))
    return f"Deleted {filename}: {answer.get('content', {}).get('confirm', False)}"


@tool(**FIXED)
async def multi_input() -> str:
    """Ask for two things at the same time."""
    wanted = {"type": "object", "properties": {"name": {"type": "string"}, "confirm": {"type": "boolean"}}}
    return json.dumps(await peer().ask({"one": elicit("One?", wanted), "two": elicit("Two?", wanted)}))


@tool(**FIXED)
async def test_tool_with_task() -> str:
    """Ask, and work for a while then."""
    name = await name_of_user()
    await asyncio.sleep(0.8)
    return f"Worked for {name}."


# -- schemas


FOCAL = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "type": "object",
    "$defs": {
        "address": {
            "$anchor": "addressDef",
            "type": "object",
            "properties": {"street": {"type": "string"}, "city": {"type": "string"}},
        }
    },
    "properties": {
        "name": {"type": "string"},
        "address": {"$ref": "#/$defs/address"},
        "contactMethod": {"type": "string", "enum": ["phone", "email"]},
        "phone": {"type": "string"},
        "email": {"type": "string"},
    },
    "allOf": [{"anyOf": [{"required": ["phone"]}, {"required": ["email"]}]}],
    "if": {"properties": {"contactMethod": {"const": "phone"}}, "required": ["contactMethod"]},
    "then": {"required": ["phone"]},
    "else": {"required": ["email"]},
    "additionalProperties": False,
}


@tool(**FIXED, params=FOCAL)
def json_schema_2020_12_tool(arguments: dict[str, Any]) -> str:
    """Tool with JSON Schema 2020-12 features"""
    return json.dumps(arguments)


# -- resources and prompts


class TestResources:
    """The resources that the suite reads."""

    async def list(self) -> Sequence[Mapping[str, Any]]:
        described = [
            ("test://static-text", "Static Text Resource", "A static text resource for testing", "text/plain"),
            ("test://static-binary", "Static Binary Resource", "A picture for testing", "image/png"),
            ("test://watched-resource", "Watched Resource", "A resource to subscribe to", "text/plain"),
        ]  # fmt: skip
        keys = ("uri", "name", "description", "mimeType")
        return [dict(zip(keys, row, strict=True)) for row in described]

    async def templates(self) -> Sequence[Mapping[str, Any]]:
        uri, about = "test://template/{id}/data", "A resource template with parameter substitution"
        return [{"uriTemplate": uri, "name": "Resource Template", "description": about, "mimeType": "application/json"}]  # fmt: skip

    async def read(self, uri: str) -> Sequence[Mapping[str, Any]] | None:
        text = {
            "test://static-text": "This is the content of the static text resource.",
            "test://watched-resource": "Watched resource content",
        }
        if uri in text:
            return [{"uri": uri, "mimeType": "text/plain", "text": text[uri]}]
        if uri == "test://static-binary":
            return [{"uri": uri, "mimeType": "image/png", "blob": PIXEL}]
        before, after = "test://template/", "/data"
        if uri.startswith(before) and uri.endswith(after):
            name = uri[len(before) : -len(after)]
            data = {"id": name, "templateTest": True, "data": f"Data for ID: {name}"}
            return [{"uri": uri, "mimeType": "application/json", "text": json.dumps(data)}]
        return None


def said(content: Any) -> dict[str, Any]:
    return {
        "role": "user",
        "content": {"type": "text", "text": content} if isinstance(content, str) else content,
    }


class TestPrompts:
    """The prompts that the suite gets."""

    async def list(self) -> Sequence[Mapping[str, Any]]:
        def argument(name: str, about: str) -> dict[str, Any]:
            return {"name": name, "description": about, "required": True}

        arguments: dict[str, list[dict[str, Any]]] = {
            "test_simple_prompt": [],
            "test_prompt_with_arguments": [
                argument("arg1", "First test argument"),
                argument("arg2", "Second test argument"),
            ],
            "test_prompt_with_embedded_resource": [argument("resourceUri", "URI of the resource to embed")],
            "test_prompt_with_image": [],
            "test_input_required_result_prompt": [],
        }
        return [
            {"name": name, "description": f"A prompt for the test: {name}", "arguments": wanted}
            for name, wanted in arguments.items()
        ]

    async def get(self, name: str, arguments: Mapping[str, str]) -> Mapping[str, Any] | None:
        if name == "test_simple_prompt":
            return {"messages": [said("This is a simple prompt for testing.")]}
        if name == "test_prompt_with_arguments":
            shown = ", ".join(f"{key}='{arguments.get(key, '')}'" for key in ("arg1", "arg2"))
            return {"messages": [said(f"Prompt with arguments: {shown}")]}
        if name == "test_prompt_with_embedded_resource":
            own = {"uri": arguments.get("resourceUri", ""), "mimeType": "text/plain"}
            content = {
                "type": "resource",
                "resource": {**own, "text": "Embedded resource content for testing."},
            }
            return {"messages": [said(content), said("Please process the embedded resource above.")]}
        if name == "test_prompt_with_image":
            picture = {"type": "image", "data": PIXEL, "mimeType": "image/png"}
            return {"messages": [said(picture), said("Please analyze the image above.")]}
        if name == "test_input_required_result_prompt":
            asked = elicit("What context should the prompt use?", form(context={"type": "string"}))
            answer = (await peer().ask({"user_context": asked}))["user_context"]
            return {"messages": [said(f"Context: {answer.get('content', {}).get('context', '')}")]}
        return None


async def complete(
    reference: Mapping[str, Any], argument: str, typed: str, others: Mapping[str, str]
) -> list[str]:
    return [word for word in ("paris", "park", "party") if word.startswith(typed)]


def face() -> McpFace:
    """The toolbox as a server."""
    tools = [one for one in globals().values() if hasattr(one, "facts") and one is not changed]
    made = McpFace(
        Toolbox(tools),
        name="conformance",
        tasks={
            "slow_compute": "optional",
            "failing_job": "required",
            "protocol_error_job": "required",
            "confirm_delete": "optional",
            "multi_input": "optional",
        },
        task_after=0.4,
        resources=TestResources(),
        prompts=TestPrompts(),
        complete=complete,
    )
    SERVED[:] = [made]
    return made


async def main() -> None:
    sock = socket.create_server(("127.0.0.1", 0))
    stop = asyncio.Event()
    print(f"http://localhost:{sock.getsockname()[1]}/mcp", flush=True)
    asyncio.get_running_loop().add_reader(0, lambda: os.read(0, 4096) or stop.set())
    await serve_http(face(), sock, stop=stop)


if __name__ == "__main__":
    sys.exit(asyncio.run(main()))
