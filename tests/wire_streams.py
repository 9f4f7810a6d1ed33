"""One rich stream and one rich answer of every wire format: what the tests spoil, repeat and cut."""

from __future__ import annotations

import json
from typing import Any

from tests.bedrock_wire import STREAM

Event = dict[str, Any]
A, B = '{"city": "Zürich 😀", "days": 3}', '{"q": ["\\"a\\"", {"b": null}]}'


def chat(delta: Event, **choice: Any) -> Event:
    return {
        "id": "c1",
        "model": "m",
        "choices": [{"index": 0, "delta": delta, "finish_reason": None, **choice}],
    }


def chat_call(index: int, arguments: str, **fields: Any) -> Event:
    name = {"name": fields.pop("name")} if "name" in fields else {}
    return chat({"tool_calls": [{"index": index, **fields, "function": {**name, "arguments": arguments}}]})


LOGPROB = {"token": "Hi", "logprob": -0.5, "top_logprobs": [{"token": "Ho", "logprob": -1.5}]}
CHAT_USAGE = {
    "prompt_tokens": 9, "completion_tokens": 5, "cost": 0.01, "prompt_tokens_details": {"cached_tokens": 4},
    "completion_tokens_details": {"reasoning_tokens": 2},
}  # fmt: skip
CHAT = [
    chat({"role": "assistant", "reasoning_content": "I th"}),
    chat({"reasoning_details": [{"type": "reasoning.text", "text": "ink", "signature": "s", "index": 0}]}),
    chat({"content": "Hi"}, logprobs={"content": [LOGPROB]}),
    chat(
        {
            "content": [{"type": "text", "text": "é"}],
            "images": [{"image_url": {"url": "data:image/png;base64,AA=="}}],
        }
    ),
    chat_call(0, "", id="call_1", type="function", name="weather"),
    chat_call(0, A[:9]),
    chat_call(1, B[:3], id="call_2", name="find", extra_content={"google": {"thought_signature": "t"}}),
    chat_call(0, A[9:]),
    chat_call(1, B[3:]),
    chat({"refusal": None, "audio": {"data": "AA==", "transcript": "Hi"}}, finish_reason="tool_calls"),
    {"id": "c1", "choices": [], "usage": CHAT_USAGE},
]


def item(kind: str, index: int, **fields: Any) -> Event:
    return {"type": f"response.{kind}", "output_index": index, **fields}


THOUGHT = {
    "type": "reasoning",
    "id": "rs_1",
    "summary": [{"type": "summary_text", "text": "so"}],
    "encrypted_content": "e",
}
CALLED = [
    {"type": "function_call", "id": "fc_1", "call_id": "call_1", "name": "weather", "arguments": A},
    {"type": "function_call", "id": "fc_2", "call_id": "call_2", "name": "find", "arguments": B},
]  # fmt: skip
SPOKEN = {"type": "message", "id": "m_1", "role": "assistant", "content": [
    {"type": "output_text", "text": "Hié", "annotations": [{"type": "url_citation"}], "logprobs": [LOGPROB]},
    {"type": "refusal", "refusal": "no"},
]}  # fmt: skip
SEARCHED = {
    "type": "web_search_call",
    "id": "ws_1",
    "status": "completed",
    "action": {"type": "search", "query": "q"},
}
RESPONSES_ANSWER = {
    "id": "r_1", "object": "response", "status": "completed", "model": "m",
    "output": [THOUGHT, SEARCHED, SPOKEN, *CALLED],
    "usage": {"input_tokens": 9, "output_tokens": 5, "input_tokens_details": {"cached_tokens": 4}},
}  # fmt: skip
RESPONSES = [
    {"type": "response.created", "response": {"id": "r_1", "status": "in_progress", "output": []}},
    item("output_item.added", 0, item={**THOUGHT, "summary": []}),
    item("reasoning_summary_text.delta", 0, item_id="rs_1", summary_index=0, delta="so"),
    item("output_item.done", 0, item=THOUGHT),
    item("output_item.done", 1, item=SEARCHED),
    item("output_item.added", 2, item={**SPOKEN, "content": []}),
    item("output_text.delta", 2, item_id="m_1", content_index=0, delta="Hi"),
    item("output_text.delta", 2, item_id="m_1", content_index=0, delta="é"),
    item("refusal.delta", 2, item_id="m_1", content_index=1, delta="no"),
    item("output_item.done", 2, item=SPOKEN),
    item("output_item.added", 3, item={**CALLED[0], "arguments": ""}),
    item("output_item.added", 4, item={**CALLED[1], "arguments": ""}),
    item("function_call_arguments.delta", 3, item_id="fc_1", delta=A[:9]),
    item("function_call_arguments.delta", 4, item_id="fc_2", delta=B),
    item("function_call_arguments.delta", 3, item_id="fc_1", delta=A[9:]),
    item("function_call_arguments.done", 3, item_id="fc_1", arguments=A),
    item("output_item.done", 3, item=CALLED[0]),
    item("output_item.done", 4, item=CALLED[1]),
    {"type": "response.completed", "response": RESPONSES_ANSWER},
]


def block(kind: str, index: int, **fields: Any) -> Event:
    return {"type": f"content_block_{kind}", "index": index, **fields}


ANTHROPIC_CONTENT: list[Event] = [
    {"type": "thinking", "thinking": "so", "signature": "sig"},
    {"type": "redacted_thinking", "data": "AA=="},
    {"type": "text", "text": "Hié", "citations": [{"type": "char_location", "cited_text": "x"}]},
    {"type": "server_tool_use", "id": "srv_1", "name": "web_search", "input": {"query": "q"}},
    {
        "type": "web_search_tool_result",
        "tool_use_id": "srv_1",
        "content": [{"type": "web_search_result", "url": "u"}],
    },
    {"type": "tool_use", "id": "toolu_1", "name": "weather", "input": json.loads(A)},
    {"type": "tool_use", "id": "toolu_2", "name": "find", "input": json.loads(B)},
]
ANTHROPIC_USAGE = {
    "input_tokens": 9,
    "output_tokens": 5,
    "cache_read_input_tokens": 4,
    "cache_creation_input_tokens": 2,
}
ANTHROPIC = [
    {
        "type": "message_start",
        "message": {"id": "msg_1", "model": "m", "content": [], "usage": ANTHROPIC_USAGE},
    },
    block("start", 0, content_block={"type": "thinking", "thinking": "", "signature": ""}),
    block("delta", 0, delta={"type": "thinking_delta", "thinking": "so"}),
    block("delta", 0, delta={"type": "signature_delta", "signature": "sig"}),
    block("stop", 0),
    block("start", 1, content_block={"type": "text", "text": ""}),
    {"type": "ping"},
    block("delta", 1, delta={"type": "text_delta", "text": "Hi"}),
    block(
        "delta",
        1,
        delta={"type": "citations_delta", "citation": {"type": "char_location", "cited_text": "x"}},
    ),
    block("delta", 1, delta={"type": "text_delta", "text": "é"}),
    block("stop", 1),
    block("start", 2, content_block={**ANTHROPIC_CONTENT[3], "input": {}}),
    block("delta", 2, delta={"type": "input_json_delta", "partial_json": '{"query": "q"}'}),
    block("stop", 2),
    block("start", 3, content_block=ANTHROPIC_CONTENT[4]),
    block("stop", 3),
    block("start", 4, content_block={**ANTHROPIC_CONTENT[5], "input": {}}),
    block("delta", 4, delta={"type": "input_json_delta", "partial_json": A[:9]}),
    block("delta", 4, delta={"type": "input_json_delta", "partial_json": A[9:]}),
    block("stop", 4),
    block("start", 5, content_block={**ANTHROPIC_CONTENT[6], "input": {}}),
    block("delta", 5, delta={"type": "input_json_delta", "partial_json": B}),
    block("stop", 5),
    {
        "type": "message_delta",
        "delta": {"stop_reason": "tool_use", "stop_sequence": None},
        "usage": ANTHROPIC_USAGE,
    },
    {"type": "message_stop"},
]


def candidate(*parts: Event, **fields: Any) -> Event:
    return {
        "candidates": [{"content": {"role": "model", "parts": [*parts]}, "index": 0, **fields}],
        "modelVersion": "m",
    }


GEMINI: list[Event] = [
    candidate({"text": "so", "thought": True}),
    candidate({"text": "Hi"}, {"text": "é", "thoughtSignature": "AA=="}),
    candidate({"executableCode": {"language": "PYTHON", "code": "1"}}, {"codeExecutionResult": {"output": "1"}}),
    candidate({"inlineData": {"mimeType": "image/png", "data": "AA=="}}, {"fileData": {"fileUri": "u"}}),
    candidate({"functionCall": {"name": "weather", "args": json.loads(A), "id": "c1"}, "thoughtSignature": "AA=="}),
    candidate({"functionCall": {"name": "find", "willContinue": True}}),
    candidate({"functionCall": {"partialArgs": [{"jsonPath": "$.q[0]", "stringValue": '"a', "willContinue": True}],
                                "willContinue": True}}),
    candidate({"functionCall": {"partialArgs": [{"jsonPath": "$.q[0]", "stringValue": '"'},
                                                {"jsonPath": "$.q[1].b", "nullValue": None}], "willContinue": True}}),
    candidate({"functionCall": {}}),
    candidate(
        finishReason="STOP",
        groundingMetadata={"webSearchQueries": ["q"]},
        logprobsResult={"chosenCandidates": [{"token": "Hi", "logProbability": -0.5}],
                        "topCandidates": [{"candidates": [{"token": "Hi", "logProbability": -0.5}]}]},
    ) | {"usageMetadata": {"promptTokenCount": 9, "candidatesTokenCount": 5, "thoughtsTokenCount": 2}},
]  # fmt: skip


def step(kind: str, index: int, **fields: Any) -> Event:
    return {"event_type": f"step.{kind}", "index": index, **fields}


INTERACTION_STEPS: list[Event] = [
    {"type": "thought", "signature": "s", "summary": [{"type": "text", "text": "so"}]},
    {"type": "google_search_call", "id": "s1", "arguments": {"queries": ["q"]}},
    {"type": "model_output", "content": [{"type": "text", "text": "Hié", "annotations": [{"url": "u"}]},
                                         {"type": "image", "data": "AA==", "mime_type": "image/png"}]},
    {"type": "function_call", "id": "c1", "name": "weather", "arguments": json.loads(A)},
]  # fmt: skip
INTERACTION_END = {"id": "i", "status": "requires_action", "model": "m",
                   "usage": {"total_input_tokens": 9, "total_output_tokens": 5, "total_thought_tokens": 2}}  # fmt: skip
INTERACTION: list[Event] = [
    {"event_type": "interaction.created", "interaction": {"id": "i", "status": "in_progress"}},
    step("start", 0, step={"type": "thought"}),
    step("delta", 0, delta={"type": "thought_summary", "content": {"type": "text", "text": "so"}}),
    step("delta", 0, delta={"type": "thought_signature", "signature": "s"}),
    step("stop", 0),
    step("start", 1, step=INTERACTION_STEPS[1]),
    step("stop", 1),
    step("start", 2, step={"type": "function_call", "id": "c1", "name": "weather"}),
    step("delta", 2, delta={"type": "arguments_delta", "arguments": A[:9]}),
    step("start", 3, step={"type": "model_output"}),
    step("delta", 3, delta={"type": "text", "text": "Hi"}),
    step("delta", 2, delta={"type": "arguments_delta", "arguments": A[9:]}),
    step("delta", 3, delta={"type": "text", "text": "é"}),
    step("delta", 3, delta={"type": "text_annotation_delta", "annotations": [{"url": "u"}]}),
    step("stop", 3),
    step("stop", 2),
    {"event_type": "interaction.completed", "interaction": INTERACTION_END},
]


def cohere(kind: str, index: int | None = None, **message: Any) -> Event:
    return {"type": kind, "delta": {"message": message}, **({} if index is None else {"index": index})}


def cohere_call(index: int, name: str) -> Event:
    call = {"id": f"c{index}", "type": "function", "function": {"name": name, "arguments": ""}}
    return cohere("tool-call-start", index, tool_calls=call)


def cohere_piece(index: int, arguments: str) -> Event:
    return cohere("tool-call-delta", index, tool_calls={"function": {"arguments": arguments}})


COHERE_USAGE = {"billed_units": {"input_tokens": 8}, "tokens": {"input_tokens": 9.0, "output_tokens": 5.0}}
CITED = {"start": 0, "end": 2, "text": "Hi", "sources": [{"type": "tool", "id": "x"}]}
COHERE = [
    {"id": "x", **cohere("message-start", role="assistant", content=[], tool_plan="", tool_calls=[], citations=[])},
    cohere("tool-plan-delta", tool_plan="I look."),
    cohere("content-start", 0, content={"type": "thinking", "thinking": ""}),
    cohere("content-delta", 0, content={"thinking": "so"}),
    {"type": "content-end", "index": 0},
    cohere("content-start", 1, content={"type": "text", "text": ""}),
    cohere("content-delta", 1, content={"text": "Hié"}) | {"logprobs": {"text": "Hi", "logprobs": [-0.5]}},
    cohere("citation-start", 0, citations=CITED),
    {"type": "citation-end", "index": 0},
    {"type": "content-end", "index": 1},
    cohere_call(0, "weather"), cohere_piece(0, A[:9]), cohere_call(1, "find"), cohere_piece(0, A[9:]),
    cohere_piece(1, B),
    {"type": "tool-call-end", "index": 0}, {"type": "tool-call-end", "index": 1},
    {"type": "message-end", "delta": {"finish_reason": "TOOL_CALL", "usage": COHERE_USAGE}},
]  # fmt: skip


def ollama(done: bool = False, **message: Any) -> Event:
    return {"model": "m", "message": {"role": "assistant", "content": "", **message}, "done": done}


OLLAMA = [
    ollama(thinking="so"),
    ollama(content="Hié", logprobs=[LOGPROB]) | {"logprobs": [LOGPROB]},
    ollama(images=["AA=="]),
    ollama(tool_calls=[{"function": {"index": 0, "name": "weather", "arguments": json.loads(A)}}]),
    ollama(tool_calls=[{"id": "c2", "function": {"name": "find", "arguments": B}}]),
    ollama(True) | {"done_reason": "stop", "prompt_eval_count": 9, "eval_count": 5},
]
STREAMS: dict[str, list[Event]] = {
    "openai_chat": CHAT,
    "openai_responses": RESPONSES,
    "anthropic_messages": ANTHROPIC,
    "gemini": GEMINI,
    "gemini_interactions": INTERACTION,
    "bedrock_converse": STREAM,
    "cohere": COHERE,
    "ollama": OLLAMA,
}
GEMINI_PARTS = [part for at in (1, 2, 4) for part in GEMINI[at]["candidates"][0]["content"]["parts"]]
BODIES: dict[str, Event] = {
    "openai_chat": {"id": "c1", "model": "m", "usage": CHAT_USAGE, "choices": [{
        "index": 0, "finish_reason": "tool_calls", "logprobs": {"content": [LOGPROB]}, "message": {
            "role": "assistant", "content": "Hié", "refusal": None, "reasoning_content": "so",
            "annotations": [{"type": "url_citation"}], "audio": {"id": "a", "data": "AA==", "transcript": "x"},
            "tool_calls": [{"id": "call_1", "type": "function", "function": {"name": "weather", "arguments": A}},
                           {"id": "call_2", "type": "custom", "custom": {"name": "find", "input": "x"}}]}}]},
    "openai_responses": RESPONSES_ANSWER,
    "anthropic_messages": {"type": "message", "id": "msg_1", "role": "assistant", "model": "m",
                           "usage": ANTHROPIC_USAGE, "content": ANTHROPIC_CONTENT, "stop_reason": "tool_use"},
    "gemini": {**GEMINI[-1], **candidate(*GEMINI_PARTS, finishReason="STOP")},
    "gemini_interactions": {**INTERACTION_END, "steps": INTERACTION_STEPS},
    "bedrock_converse": {"output": {"message": {"role": "assistant", "content": [
        {"reasoningContent": {"reasoningText": {"text": "so", "signature": "c2ln"}}}, {"text": "Hié"},
        {"toolUse": {"toolUseId": "a", "name": "weather", "input": json.loads(A)}},
        {"citationsContent": {"content": [{"text": "x"}], "citations": [{"title": "t"}]}}]}},
        "stopReason": "tool_use", "usage": {"inputTokens": 9, "outputTokens": 5, "cacheReadInputTokens": 4}},
    "cohere": {"id": "x", "finish_reason": "TOOL_CALL", "usage": COHERE_USAGE, "message": {
        "role": "assistant", "tool_plan": "I look.", "citations": [CITED],
        "content": [{"type": "thinking", "thinking": "so"}, {"type": "text", "text": "Hié"}],
        "tool_calls": [{"id": "c0", "type": "function", "function": {"name": "weather", "arguments": A}}]}},
    "ollama": {**OLLAMA[-1], "message": {"role": "assistant", "content": "Hié", "thinking": "so", "images": ["AA=="],
               "tool_calls": [{"function": {"name": "weather", "arguments": json.loads(A)}}]}},
}  # fmt: skip
