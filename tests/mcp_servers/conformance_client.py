"""The client that the official conformance suite tries: a toolset in a toolbox, as any user would have them.

The suite starts a server for each scenario and this program with the server's URL: `python -m
tests.mcp_servers.conformance_client URL`. The environment names the scenario and the revision, and has further data.
What a scenario does not say otherwise is answered by calling every tool with the least arguments that its schema takes.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
from collections.abc import Mapping
from typing import Any

from toolcrib import Answer, Question, Toolbox, Verdict
from toolcrib.mcp import McpServer, McpToolset
from toolcrib.mcp.client.requests import ServerRequests

NAME = "suite"
SECONDS = 100.0  # for one scenario
# What is called, where it is not every tool with the least arguments.
CALLS: dict[str, list[tuple[str, dict[str, Any]]]] = {
    "initialize": [],
    "tools_call": [("add_numbers", {"a": 5, "b": 3})],
    "json-schema-ref-no-deref": [],
}
# Requests about other things than tools.
REQUESTS: dict[str, list[tuple[str, dict[str, str]]]] = {
    "http-standard-headers": [
        ("resources/list", {}),
        ("resources/read", {"uri": "file:///path/to/file%20name.txt"}),
        ("prompts/list", {}),
        ("prompts/get", {"name": "test_prompt"}),
    ],
}


async def accept(question: Question) -> Answer:
    """A person who allows everything, and sends every form as it comes."""
    return Answer(Verdict.YES, values={})


async def run(scenario: str, url: str, context: Mapping[str, Any]) -> None:
    """Runs one scenario. Raises what a person would be told."""
    server = McpServer(name=NAME, url=url, transport="http", timeout=SECONDS)
    auth = None
    if scenario.startswith("auth/"):
        from tests.mcp_servers.conformance_auth import auth_of

        auth = auth_of(scenario, context)
    toolset = McpToolset([server], auth=auth, requests=lambda server: ServerRequests(server.name))
    async with Toolbox([toolset], approver=accept) as box:
        (status,) = await toolset.ready(SECONDS)
        if status.problem:
            raise RuntimeError(status.problem)
        for method, params in REQUESTS.get(scenario, ()):
            await (await toolset.server(NAME).connected()).request(method, params)
        for name, arguments in calls_of(scenario, toolset, context):
            result = await box.call(f"{NAME}__{name}", arguments)
            print(name, "error" if result.is_error else "ok", result.text[:200])


def calls_of(
    scenario: str, toolset: McpToolset, context: Mapping[str, Any]
) -> list[tuple[str, dict[str, Any]]]:
    """The calls of a scenario: those that its data ask for, those of the table, or one of every tool."""
    if "toolCalls" in context:
        return [(call["name"], call["arguments"]) for call in context["toolCalls"]]
    if scenario in CALLS:
        return CALLS[scenario]
    tools = toolset.server(NAME).tools()
    if scenario == "json-schema-2020-12-preservation":
        schemas = {tool.name: dict(tool.input_schema) for tool in tools}
        return [("json_schema_echo", {"schema": schemas["json_schema_2020_12_tool"]})]
    return [(tool.name, least(tool.input_schema)) for tool in tools]


def least(schema: Mapping[str, Any]) -> dict[str, Any]:
    """The least arguments that a simple schema takes."""
    values = {"string": "x", "integer": 1, "number": 1.5, "boolean": True, "array": [], "object": {}}
    properties = schema.get("properties", {})
    return {name: values[properties[name]["type"]] for name in schema.get("required", ())}


def main(url: str) -> int:
    """Runs the scenario that the environment names. Returns the exit code."""
    scenario = os.environ["MCP_CONFORMANCE_SCENARIO"]
    context = json.loads(os.environ.get("MCP_CONFORMANCE_CONTEXT") or "{}")
    asyncio.run(asyncio.wait_for(run(scenario, url, context), SECONDS))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
