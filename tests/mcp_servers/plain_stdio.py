"""A server over stdio in plain Python, without the SDK: it starts in a moment, and does odd things when it is told to.

Its tool, `do` or as `TOOL_NAME` says, takes what to do: "env" gives its environment, "children" starts processes that try to outlive it and gives
their ids, "chat" writes to stdout and stderr what is no message, "large" gives a text of `size` letters, "sample" and "elicit" ask the client something, "exit" ends it. "request" shows what it would send to a service,
"file" gives the same as the bytes of a file. The method that `FAILS_AT` names answers with an error.
"""

from __future__ import annotations

import base64
import json
import os
import subprocess
import sys
from typing import Any

NULL = subprocess.DEVNULL
SLEEP = "import time; time.sleep(600)"
TELLS = (
    f" of {os.environ['TELLS_API_KEY']}" if "TELLS_API_KEY" in os.environ else ""
)  # in all that it says of itself
TOOL = os.environ.get("TOOL_NAME", "do")
INFO = {"name": f"plain{TELLS}", "version": "1"}


def main() -> None:
    print("ready", file=sys.stderr)
    for line in sys.stdin:
        message = json.loads(line)
        if "id" not in message:
            continue
        method = message["method"]
        fails = method == os.environ.get("FAILS_AT")
        answer = None if fails else answer_to(method, message.get("params") or {})
        error = {"code": -32603 if fails else -32601, "message": f"no {method}{TELLS}"}
        reply = {"result": answer} if answer is not None else {"error": error}
        send({"jsonrpc": "2.0", "id": message["id"], **reply})


def send(message: dict[str, Any]) -> None:
    sys.stdout.write(json.dumps(message) + "\n")
    sys.stdout.flush()


def answer_to(method: str, params: dict[str, Any]) -> dict[str, Any] | None:
    if method == "initialize":
        more: dict[str, Any] = {"resources": {}, "prompts": {}} if TELLS else {}
        return {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}, **more}, "serverInfo": INFO}
    if method == "tools/list":
        where = {"type": "string", "description": f"Where{TELLS}", "default": TELLS}
        schema = {"type": "object", "properties": {"where": where} if TELLS else {}}
        return {"tools": [{"name": TOOL, "description": f"Do{TELLS}", "inputSchema": schema}]}
    if TELLS and method == "resources/list":
        return {"resources": [{"uri": "postgres://a", "name": "a"}]}
    if TELLS and method == "resources/read":
        return {"contents": [{"uri": params["uri"], "text": f"Read{TELLS}"}]}
    if TELLS and method == "prompts/get":
        return {"messages": [{"role": "user", "content": {"type": "text", "text": f"Say{TELLS}"}}]}
    if method == "ping":
        return {}
    if method == "tools/call":
        assert params["name"] == TOOL
        if params["arguments"]["what"] == "file":
            blob = base64.b64encode(shown_request().encode()).decode()
            resource = {"uri": "file:///a", "mimeType": "text/plain", "blob": blob}
            return {"content": [{"type": "resource", "resource": resource}]}
        return {"content": [{"type": "text", "text": done(**params["arguments"])}]}
    return None


def shown_request() -> str:
    """A request to a service, as a program shows one that failed."""
    key = os.environ.get("TELLS_API_KEY", "")
    basic = base64.b64encode(f"me:{key}".encode()).decode()
    return json.dumps(
        {"authorization": f"Basic {basic}", "url": f"https://me:{key.replace('-', '%2D')}@a.example"}
    )


def done(what: str, size: int = 0) -> str:
    if what == "request":
        return shown_request()
    if what == "env":
        return json.dumps(dict(os.environ))
    if what == "children":
        plain = subprocess.Popen([sys.executable, "-c", SLEEP])
        apart = subprocess.Popen(
            [sys.executable, "-c", SLEEP], start_new_session=True, stdin=NULL, stdout=NULL, stderr=NULL
        )
        return json.dumps([os.getpid(), plain.pid, apart.pid])
    if what == "chat":
        print("Listening on port 80\x1b[2J", flush=True)
        print('{"level": "info", "id": 3}', flush=True)
        sys.stdout.buffer.write(b"\xff\xfe\n")
        print("something went wrong", file=sys.stderr)
        return "chatted"
    if what in ("sample", "elicit"):
        asked = {"role": "user", "content": {"type": "text", "text": f"Who{TELLS}?"}}
        fields = {
            "type": "object",
            "properties": {"postgres": {"type": "boolean", "title": f"Is it{TELLS}?"}},
        }
        sampling = {"messages": [asked], "systemPrompt": f"You know{TELLS}", "maxTokens": 9}
        elicitation = {"message": f"Is it{TELLS}?", "requestedSchema": fields}
        kind, params = (
            ("sampling/createMessage", sampling) if what == "sample" else ("elicitation/create", elicitation)
        )
        send({"jsonrpc": "2.0", "id": what, "method": kind, "params": params})
        answer = json.loads(sys.stdin.readline())["result"]
        return f"answered: {'postgres' in answer.get('content', ())}"
    if what == "large":
        return "x" * size
    os._exit(7)


if __name__ == "__main__":
    main()
