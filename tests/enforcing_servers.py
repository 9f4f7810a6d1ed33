"""Servers that hold answers to constraints as vLLM, SGLang and llama.cpp do, compiled by llguidance: nothing else can pass.

Each reads the fields that the real one reads, refuses what the real one refuses (400), ignores what it ignores, and
answers with what a model of random logits writes under the mask.
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from functools import cache
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any

import llguidance

from tests.vocabularies import byte_vocabulary
from toolcrib.guided.local.llguidance_engine import tokenizer_of

Grammar = str | None  # in llguidance's own form; None where nothing is held
VLLM_KINDS = ("json", "regex", "choice", "grammar", "json_object", "structural_tag")


class BadRequest(Exception):
    """What a server answers with the status 400."""


def _compiled(kind: str, given: Any) -> str:
    matcher = llguidance.LLMatcher
    if kind == "json":
        schema = given if isinstance(given, dict) else json.loads(given)
        return matcher.grammar_from_json_schema(schema, overrides={"whitespace_flexible": False})
    if kind == "regex":
        return matcher.grammar_from_regex(given)
    return llguidance.grammar_from(kind, given)


def vllm(body: dict[str, Any]) -> Grammar:
    """`structured_outputs` with exactly one kind; `response_format`; the old `guided_*` are ignored."""
    held = body.get("structured_outputs")
    if held is None:
        return _response_format(body)
    given = {kind: held[kind] for kind in VLLM_KINDS if held.get(kind) is not None}
    if len(given) != 1 or set(held) - {*VLLM_KINDS, "whitespace_pattern"}:
        raise BadRequest("You must use one kind of structured outputs constraint")
    ((kind, value),) = given.items()
    if kind == "choice":
        return _compiled("choice", json.dumps(value))
    if kind == "json_object":
        return _compiled("json", {"type": "object"})
    return _compiled("gbnf" if kind == "grammar" else kind, value)


def vllm_old(body: dict[str, Any]) -> Grammar:
    for kind, name in (("json", "guided_json"), ("regex", "guided_regex"), ("gbnf", "guided_grammar")):
        if name in body:
            return _compiled(kind, body[name])
    choice = body.get("guided_choice")
    return _compiled("choice", json.dumps(choice)) if choice else _response_format(body)


def sglang(body: dict[str, Any]) -> Grammar:
    """`regex` or `ebnf` beside the messages, or `response_format`."""
    given = [name for name in ("regex", "ebnf") if body.get(name)]
    if len(given) > 1:
        raise BadRequest("Only one of regex, json_schema, or ebnf can be set.")
    if given:
        return _compiled("regex" if given[0] == "regex" else "gbnf", body[given[0]])
    return _response_format(body)


def llamacpp(body: dict[str, Any]) -> Grammar:
    """`grammar` (GBNF), never beside tools, or `response_format`."""
    if body.get("grammar") and body.get("tools"):
        raise BadRequest("Cannot use custom grammar constraints with tools.")
    if body.get("grammar"):
        if '"' in body["grammar"].partition("::=")[0] or "_" in body["grammar"].partition("::=")[0]:
            raise BadRequest("failed to parse grammar")
        return _compiled("gbnf", body["grammar"])
    return _response_format(body)


def trtllm(body: dict[str, Any]) -> Grammar:
    format = body.get("response_format") or {"type": "text"}
    kinds = {"json": ("json", "schema"), "regex": ("regex", "regex"), "ebnf": ("gbnf", "ebnf")}
    if format["type"] in kinds:
        kind, field = kinds[format["type"]]
        return _compiled(kind, format[field])
    return _response_format(body)


def _response_format(body: dict[str, Any]) -> Grammar:
    format = body.get("response_format") or {"type": "text"}
    if format["type"] == "text":
        return None
    if format["type"] == "json_object":
        return _compiled("json", format.get("schema") or {"type": "object"})
    if format["type"] == "json_schema":
        return _compiled("json", format["json_schema"]["schema"])
    raise BadRequest(f"unknown response_format {format['type']}")


SERVERS: dict[str, Callable[[dict[str, Any]], Grammar]] = {
    "vllm": vllm,
    "vllm-old": vllm_old,
    "sglang": sglang,
    "llamacpp": llamacpp,
    "trtllm": trtllm,
}


@cache
def _tokenizer() -> Any:
    return tokenizer_of(byte_vocabulary(), llguidance)


def written(grammar: Grammar, chance: random.Random) -> str:
    """What a model of random logits writes under a grammar; quotes and closing brackets are likelier, so that it ends."""
    if grammar is None:
        return "I would rather talk about the weather."
    matcher = llguidance.LLMatcher(_tokenizer(), grammar, log_level=0)
    if matcher.is_error():
        raise BadRequest(matcher.get_error())
    out = bytearray()
    while len(out) < 20_000:
        mask = matcher.compute_bitmask()
        allowed = [number for number in range(257) if mask[number >> 3] >> (number & 7) & 1]
        likely = [byte for byte in b'"]}' if byte in allowed]
        token = chance.choice(likely if likely and chance.random() < 0.3 else allowed)
        if token == 256:
            return out.decode()
        assert matcher.consume_token(token), matcher.get_error()
        out.append(token)
    raise BadRequest("the answer did not end")


class EnforcingServer:
    """One server on loopback: `with EnforcingServer("vllm") as url`."""

    def __init__(self, name: str) -> None:
        read, chance = SERVERS[name], random.Random(name)

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                try:
                    message = {"role": "assistant", "content": written(read(body), chance)}
                    answer = {
                        "id": "1",
                        "object": "chat.completion",
                        "choices": [{"index": 0, "finish_reason": "stop", "message": message}],
                    }
                    status = 200
                except BadRequest as problem:
                    status, answer = 400, {"error": {"message": str(problem), "code": 400}}
                data = json.dumps(answer).encode()
                self.send_response(status)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)

            def log_message(self, *_: Any) -> None:
                """Say nothing."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)

    def __enter__(self) -> str:
        self._thread = Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
        self._thread.start()
        return f"http://127.0.0.1:{self._server.server_address[1]}/v1"

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()
