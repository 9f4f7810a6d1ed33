"""OpenAI Responses: the rules of its format, one a test."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given

from tests.properties import examples
from tests.test_codec_properties import NAME, conversations, dialogues
from toolcrib.call import ToolCall
from toolcrib.codecs import AnthropicMessagesCodec, ModelError, OpenAIChatCodec
from toolcrib.codecs.openai_responses import OpenAIResponsesCodec
from toolcrib.content import Audio, File, Image, Json, Text
from toolcrib.messages import (
    Message,
    Opaque,
    Reasoning,
    Request,
    Response,
    ResultPart,
    TokenLogprob,
    ToolChoice,
    Usage,
    messages_from_json,
    messages_to_json,
)
from toolcrib.result import ToolResult
from toolcrib.spec import ToolSpec

CODEC = OpenAIResponsesCodec()
SPECS = [
    ToolSpec(name, f"Does {name}.", {"type": "object", "properties": {"a": {"type": "integer"}}})
    for name in ("f", "g", "h")
]
THOUGHT = {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "gAAAA"}
CALL = {
    "type": "function_call",
    "id": "fc_1",
    "call_id": "call_1",
    "name": "f",
    "arguments": '{"a":1}',
    "status": "completed",
}
SAID = {
    "type": "message",
    "id": "msg_1",
    "role": "assistant",
    "status": "completed",
    "phase": "commentary",
    "content": [{"type": "output_text", "text": "Let me look.", "annotations": []}],
}


def body(*messages: Message, model: str = "m", **fields: Any) -> dict[str, Any]:
    return CODEC.request(Request([*messages], **fields), model=model, stream=False)


def items(*messages: Message, **fields: Any) -> list[dict[str, Any]]:
    return list(body(*messages, **fields)["input"])


def answered(*output: dict[str, Any], **fields: Any) -> Response:
    return CODEC.response({"id": "resp_1", "status": "completed", "output": [*output], **fields})


def going_on(answer: Response, **own: Any) -> list[dict[str, Any]]:
    """The items of an answer as they go back, with the results of its calls."""
    results = Message("tool", [ResultPart(call, ToolResult.of("ok")) for call in answer.message.calls])
    return items(Message.user("Hi"), answer.message, results, extras={"openai": own} if own else {})[1:]


# What is sent.


def test_a_conversation_opens_with_its_instructions() -> None:
    sent = body(Message.system("Be brief."), Message.system("Be kind."), Message.user("Hi"))
    assert sent == {
        "model": "m",
        "instructions": "Be brief.\n\nBe kind.",
        "input": [{"role": "user", "content": "Hi"}],
    }


def test_later_instructions_stand_where_they_were_given() -> None:
    assert items(Message.user("Hi"), Message.system("Now in French.")) == [
        {"role": "user", "content": "Hi"},
        {"role": "system", "content": "Now in French."},
    ]


def test_instructions_of_the_request_do_not_replace_those_of_the_conversation() -> None:
    sent = body(Message.system("Be brief."), Message.user("Hi"), extras={"openai": {"instructions": "x"}})
    assert sent["instructions"] == "x"
    assert sent["input"][0] == {"role": "system", "content": "Be brief."}


def test_other_servers_get_their_instructions_as_an_item() -> None:
    request = Request([Message.system("Be brief."), Message.user("Hi")])
    sent = OpenAIResponsesCodec("xai").request(request, model="grok", stream=True)
    assert sent["input"][0] == {"role": "system", "content": "Be brief."}
    assert "instructions" not in sent
    assert sent["stream"] is True


def test_a_role_of_the_provider_and_marks_on_parts_pass_through() -> None:
    developer = Message("system", [Text("Be brief.")], {"openai": {"role": "developer"}})
    marked = Text("Long.", {"openai": {"prompt_cache_breakpoint": {"mode": "explicit"}}})
    assert items(developer, Message("user", [marked])) == [
        {"role": "developer", "content": "Be brief."},
        {
            "role": "user",
            "content": [
                {"type": "input_text", "text": "Long.", "prompt_cache_breakpoint": {"mode": "explicit"}}
            ],
        },
    ]


MEDIA = [
    (
        Image(data="AAAA", media_type="image/png"),
        {"type": "input_image", "image_url": "data:image/png;base64,AAAA"},
    ),
    (Image(url="https://x/a.png"), {"type": "input_image", "image_url": "https://x/a.png"}),
    (
        Image(extras={"openai": {"file_id": "file-1", "detail": "low"}}),
        {"type": "input_image", "file_id": "file-1", "detail": "low"},
    ),
    (
        File(data="AAAA", media_type="application/pdf"),
        {"type": "input_file", "filename": "file.pdf", "file_data": "data:application/pdf;base64,AAAA"},
    ),
    (
        File(data="AAAA", media_type="text/x", name="a.x"),
        {"type": "input_file", "filename": "a.x", "file_data": "data:text/x;base64,AAAA"},
    ),
    (File(url="https://x/a.pdf"), {"type": "input_file", "file_url": "https://x/a.pdf"}),
    (File(extras={"openai": {"file_id": "file-1"}}), {"type": "input_file", "file_id": "file-1"}),
    (Audio(data="AAAA", media_type="audio/wav"), {"type": "input_text", "text": "[audio audio/wav]"}),
]


@pytest.mark.parametrize(("part", "block"), MEDIA)
def test_media_go_to_the_model_in_messages_and_in_results(part: Any, block: dict[str, Any]) -> None:
    call = ToolCall("f", "{}", "call_1")
    result = ToolResult((Text("Seen:"), part))
    user, _, output = items(
        Message.user("Look", part), Message("assistant", [call]), Message("tool", [ResultPart(call, result)])
    )
    if block["type"] == "input_text":
        assert user["content"] == f"Look\n{block['text']}"
        assert output["output"] == f"Seen:\n{block['text']}"
    else:
        assert user["content"] == [{"type": "input_text", "text": "Look"}, block]
        assert output["output"] == [{"type": "input_text", "text": "Seen:"}, block]


def test_calls_and_results_of_another_provider() -> None:
    long = "toolu_" + "x" * 70
    first, second = ToolCall("mcp:f", {"a": 1}, long), ToolCall("g", '{"a', "toolu_2")
    sent = items(
        Message.user("Hi"),
        Message(
            "assistant", [Reasoning("Hm.", {"anthropic": {"signature": "s"}}), Text("Well."), first, second]
        ),
        Message("tool", [ResultPart(second, ToolResult.of("no", code=None))]),
    )
    said, called, broken, unanswered, output = sent[1:]
    assert said == {"role": "assistant", "content": "Well."}
    assert called["arguments"] == '{"a":1}'
    assert called["name"].startswith("mcp_f_")
    assert called["call_id"] == unanswered["call_id"]
    assert len(called["call_id"]) <= 64
    assert "id" not in called
    assert broken["arguments"] == '{"INVALID_JSON":"{\\"a"}'
    assert output == {"type": "function_call_output", "call_id": "toolu_2", "output": "no"}


@pytest.mark.parametrize(
    ("given", "sent"), [("", "{}"), ("[]", "[]"), ('{"a": 1}', '{"a": 1}'), ({}, "{}"), (" ", "{}")]
)
def test_arguments_are_text_that_can_be_read(given: Any, sent: str) -> None:
    assert items(Message("assistant", [ToolCall("f", given, "c")]))[0]["arguments"] == sent


def test_json_results_are_text() -> None:
    call = ToolCall("f", "{}", "c")
    result = ResultPart(call, ToolResult((Json({"a": [1]}),)))
    assert items(Message("assistant", [call]), Message("tool", [result]))[1]["output"] == '{"a":[1]}'


@pytest.mark.parametrize("nothing", [[], [Message.user("")], [Message("assistant", [Text("")])]])
def test_a_request_says_something(nothing: list[Message]) -> None:
    assert items(*nothing) == [{"role": "user", "content": "Continue."}]


# Tools.

F, G = ({"type": "function", "name": name} for name in "fg")
CHOICES = [
    (ToolChoice(), None),
    (ToolChoice("none"), "none"),
    (ToolChoice("required"), "required"),
    (ToolChoice("required", ("f",)), F),
    (ToolChoice("auto", ("f",)), {"type": "allowed_tools", "mode": "auto", "tools": [F]}),
    (ToolChoice("required", ("f", "g")), {"type": "allowed_tools", "mode": "required", "tools": [F, G]}),
    (ToolChoice("none", ("f",)), "none"),
]


@pytest.mark.parametrize(("choice", "wire"), CHOICES)
def test_tool_choice(choice: ToolChoice, wire: Any) -> None:
    sent = body(Message.user("Hi"), tools=SPECS, tool_choice=choice)
    assert sent.get("tool_choice") == wire
    assert [tool["name"] for tool in sent["tools"]] == ["f", "g", "h"]


@pytest.mark.parametrize(
    ("choice", "wire", "names"),
    [
        (ToolChoice("auto", ("f", "g")), None, ["f", "g"]),
        (ToolChoice("required", ("f", "g")), "required", ["f", "g"]),
        (ToolChoice("required", ("f",)), F, ["f"]),
    ],
)
def test_other_servers_get_fewer_tools_for_a_set(choice: ToolChoice, wire: Any, names: list[str]) -> None:
    request = Request([Message.user("Hi")], SPECS, choice)
    sent = OpenAIResponsesCodec("lmstudio").request(request, model="m", stream=False)
    assert sent.get("tool_choice") == wire
    assert [tool["name"] for tool in sent["tools"]] == names


def test_strict_is_always_said() -> None:
    wanted = ToolSpec(
        "w", "", SPECS[0].input_schema, extras={"openai": {"strict": True, "defer_loading": True}}
    )
    first, second = body(Message.user("Hi"), tools=[SPECS[0], wanted])["tools"]
    assert first["strict"] is False
    assert second["strict"] is True
    assert second["defer_loading"] is True
    assert second["parameters"]["required"] == ["a"]
    assert second["parameters"]["additionalProperties"] is False
    strict = OpenAIResponsesCodec(dialect="openai-strict")
    sent = strict.request(Request([Message.user("Hi")], SPECS), model="m", stream=False)
    assert all(tool["strict"] is True for tool in sent["tools"])


def test_strictness_never_narrows_what_a_tool_takes() -> None:
    words = {"type": "object", "additionalProperties": {"type": "integer"}}
    free = ToolSpec("free", "", {"type": "object", "properties": {"words": words}, "required": ["words"]})
    codec = OpenAIResponsesCodec(dialect="openai-strict")
    tool = codec.request(Request([Message.user("Hi")], [free]), model="m", stream=False)["tools"][0]
    assert tool["strict"] is False
    assert tool["parameters"]["properties"]["words"]["type"] == "object"


def test_a_tool_of_free_text() -> None:
    grammar = {"type": "grammar", "syntax": "regex", "definition": ".*"}
    sql = ToolSpec(
        "sql", "Runs SQL.", {"type": "object"}, extras={"openai": {"type": "custom", "format": grammar}}
    )
    sent = body(Message.user("Hi"), tools=[sql], tool_choice=ToolChoice("required", ("sql",)))
    assert sent["tools"] == [{"type": "custom", "name": "sql", "description": "Runs SQL.", "format": grammar}]
    assert sent["tool_choice"] == {"type": "custom", "name": "sql"}


def test_tools_of_the_provider_join_ours() -> None:
    search = {"type": "web_search"}
    alone = body(
        Message.user("Hi"), tool_choice=ToolChoice("required"), extras={"openai": {"tools": [search]}}
    )
    assert alone["tools"] == [search]
    assert alone["tool_choice"] == "required"
    both = body(
        Message.user("Hi"), tools=SPECS[:1], parallel_calls=False, extras={"openai": {"tools": [search]}}
    )
    assert [tool["type"] for tool in both["tools"]] == ["function", "web_search"]
    assert both["parallel_tool_calls"] is False


def test_settings() -> None:
    sent = body(
        Message.user("Hi"), max_tokens=50, temperature=0.5, stop=("x",), logit_bias={"1": 5}, top_logprobs=3
    )
    assert sent == {
        "model": "m",
        "input": [{"role": "user", "content": "Hi"}],
        "max_output_tokens": 50,
        "temperature": 0.5,
        "top_logprobs": 3,
        "include": ["message.output_text.logprobs"],
    }
    assert not CODEC.features.stop
    assert not CODEC.features.logit_bias


THOUGHTS = "reasoning.encrypted_content"
STATELESS = [
    ("gpt-5.4", {"store": False}, [THOUGHTS]),
    ("o4-mini", {"store": False}, [THOUGHTS]),
    ("my-deployment", {"store": False, "reasoning": {"effort": "high"}}, [THOUGHTS]),
    (
        "gpt-5.4",
        {"store": False, "include": ["file_search_call.results"]},
        ["file_search_call.results", THOUGHTS],
    ),
    ("gpt-5.4", {"store": False, "include": [THOUGHTS]}, [THOUGHTS]),
    ("gpt-4.1", {"store": False}, None),
    ("gpt-5-chat-latest", {"store": False}, None),
    ("gpt-5.4", {"store": True}, None),
    ("gpt-5.4", {}, None),
]


@pytest.mark.parametrize(("model", "own", "include"), STATELESS)
def test_thinking_is_asked_for_where_only_we_keep_it(model: str, own: dict[str, Any], include: Any) -> None:
    assert body(Message.user("Hi"), model=model, extras={"openai": own}).get("include") == include


@examples(200)
@given(conversation=conversations | dialogues())
def test_any_conversation_gives_a_valid_body(conversation: list[Message]) -> None:
    before = messages_to_json(conversation)
    sent = body(*conversation, tools=SPECS)
    waiting: set[str] = set()
    seen: set[str] = set()
    for item in sent["input"]:
        if item.get("type") == "function_call_output":
            assert isinstance(item["output"], str) or item["output"]
            waiting.remove(item["call_id"])
        elif item.get("type") == "function_call":
            assert NAME.fullmatch(item["name"])
            json.loads(item["arguments"])
            assert 0 < len(item["call_id"]) <= 64
            assert item["call_id"] not in seen
            seen.add(item["call_id"])
            waiting.add(item["call_id"])
        else:
            assert not waiting or item["role"] == "assistant", "a call was left unanswered"
            assert item["content"]
    assert not waiting
    assert sent["input"]
    assert sent == body(*conversation, tools=SPECS)
    assert messages_to_json(conversation) == before


# What comes back, and goes back again.


def test_an_answer_and_its_way_back() -> None:
    answer = answered(THOUGHT, SAID, CALL, model="gpt-5.4-2026")
    thought, said, call = answer.message.parts
    assert isinstance(thought, Reasoning)
    assert isinstance(said, Text)
    assert (said.text, answer.stop_reason, answer.raw_stop_reason) == (
        "Let me look.",
        "tool_calls",
        "completed",
    )
    assert isinstance(call, ToolCall)
    assert (call.name, call.arguments, call.id) == ("f", '{"a":1}', "call_1")
    assert answer.message.extras["openai_responses"] == {"response_id": "resp_1"}
    output = {"type": "function_call_output", "call_id": "call_1", "output": "ok"}
    assert going_on(answer) == [THOUGHT, SAID, CALL, output]


def test_a_saved_conversation_goes_on_as_well() -> None:
    answer = answered(THOUGHT, SAID, CALL)
    [message] = messages_from_json(messages_to_json([answer.message]))
    assert items(Message.user("Hi"), message)[1:4] == [THOUGHT, SAID, CALL]


def test_what_the_server_does_not_keep_is_not_referred_to() -> None:
    bare = {"type": "reasoning", "id": "rs_0", "summary": [{"type": "summary_text", "text": "Hm."}]}
    open_thought = {"type": "reasoning", "id": "rs_2", "content": [{"type": "reasoning_text", "text": "Hm."}]}
    sent = going_on(answered(bare, THOUGHT, open_thought, SAID, CALL), store=False)
    assert sent[:2] == [THOUGHT, open_thought]
    assert sent[2] == {"role": "assistant", "content": "Let me look.", "phase": "commentary"}
    assert sent[3] == {"type": "function_call", "call_id": "call_1", "name": "f", "arguments": '{"a":1}'}


def test_calls_made_by_code_keep_their_caller() -> None:
    caller = {"type": "program", "caller_id": "call_p"}
    program = {"type": "program", "id": "cm_1", "call_id": "call_p", "code": "x", "fingerprint": "gAA"}
    call = {**CALL, "caller": caller, "namespace": "crm"}
    sent = going_on(answered(program, call))
    assert sent[:2] == [program, call]
    assert sent[2] == {
        "type": "function_call_output",
        "call_id": "call_1",
        "output": "ok",
        "caller": caller,
        "namespace": "crm",
    }


def test_calls_of_free_text() -> None:
    item = {
        "type": "custom_tool_call",
        "id": "ctc_1",
        "call_id": "call_1",
        "name": "sql",
        "input": "SELECT 1",
    }
    answer = answered(item)
    assert answer.message.calls[0].arguments == "SELECT 1"
    output = {"type": "custom_tool_call_output", "call_id": "call_1", "output": "ok"}
    assert going_on(answer) == [item, output]


PATCHER = ToolSpec(
    "patcher",
    "Patches.",
    {"type": "object", "properties": {"patch": {"type": "string"}}},
    extras={"openai": {"type": "apply_patch"}},
)
UPDATE = {"type": "update_file", "path": "f", "diff": "@@\n-a\n+b\n"}
PATCH_CALL = {
    "type": "apply_patch_call",
    "id": "apc_1",
    "call_id": "call_1",
    "status": "completed",
    "operation": UPDATE,
}


def test_a_tool_of_the_providers_is_declared_by_its_type_and_called_by_items_of_its_own() -> None:
    sent = body(Message.user("Hi"), tools=[PATCHER], tool_choice=ToolChoice("required", ("patcher",)))
    assert sent["tools"] == [{"type": "apply_patch"}] and sent["tool_choice"] == {"type": "apply_patch"}
    allowed = body(Message.user("Hi"), tools=[PATCHER, *SPECS], tool_choice=ToolChoice("auto", ("patcher",)))
    assert allowed["tool_choice"]["tools"] == [{"type": "apply_patch"}]
    answer = CODEC.response({"output": [PATCH_CALL], "status": "completed"}, Request([], [PATCHER]))
    (call,) = answer.message.calls
    assert (call.name, call.id, answer.stop_reason) == ("patcher", "call_1", "tool_calls")
    assert call.arguments == "*** Begin Patch\n*** Update File: f\n@@\n-a\n+b\n*** End Patch"
    output = {"type": "apply_patch_call_output", "call_id": "call_1", "status": "completed", "output": "ok"}
    assert going_on(answer) == [PATCH_CALL, output]
    unstored = {name: value for name, value in PATCH_CALL.items() if name != "id"}
    assert [item for item in going_on(answer, store=False) if item["type"] == "apply_patch_call"] == [
        unstored
    ]
    failed = Message("tool", [ResultPart(call, ToolResult((Text("no"),), is_error=True))])
    assert items(answer.message, failed)[-1]["status"] == "failed"
    # Another provider, and Chat Completions of the same, are offered a function.
    for codec in (OpenAIResponsesCodec("xai"), OpenAIChatCodec()):
        (tool,) = codec.request(Request([], [PATCHER]), model="m", stream=False)["tools"]
        assert tool["type"] == "function"


@pytest.mark.parametrize(
    ("operation", "status", "text"),
    [
        (
            {"type": "create_file", "path": "n", "diff": "+x"},
            "completed",
            "*** Add File: n\n+x\n*** End Patch",
        ),
        ({"type": "delete_file", "path": "n"}, "completed", "*** Delete File: n\n*** End Patch"),
        # Cut off: a patch without its end, which the tool refuses.
        ({**UPDATE, "diff": "@@\n-a"}, "in_progress", "*** Update File: f\n@@\n-a"),
    ],
)
def test_operations_of_native_patches(operation: dict[str, Any], status: str, text: str) -> None:
    answer = answered({**PATCH_CALL, "operation": operation, "status": status})
    assert answer.message.calls[0].arguments == f"*** Begin Patch\n{text}"


@pytest.mark.parametrize(
    "operation", [None, "x", {}, {"type": "update_file", "path": "f\n*** Delete File: g"}]
)
def test_operations_that_are_none_are_no_patches(operation: Any) -> None:
    (call,) = answered({**PATCH_CALL, "operation": operation}).message.calls
    assert not str(call.arguments).startswith("***")


SERVER_SIDE = [
    {"type": "web_search_call", "id": "ws_1", "status": "completed", "action": {"type": "search"}},
    {"type": "code_interpreter_call", "id": "ci_1", "code": "1", "outputs": None, "status": "completed"},
    {"type": "file_search_call", "id": "fs_1", "queries": ["a"], "results": None, "status": "completed"},
    {"type": "mcp_call", "id": "mcp_1", "name": "x", "arguments": "{}", "output": "y", "server_label": "z"},
    {"type": "mcp_approval_request", "id": "mcpr_1", "name": "x", "arguments": "{}", "server_label": "z"},
    {
        "type": "computer_call",
        "id": "cu_1",
        "call_id": "c",
        "action": {"type": "wait"},
        "status": "completed",
    },
    {"type": "shell_call", "id": "sh_1", "call_id": "c", "action": {"commands": ["ls"]}},
    {"type": "tool_search_call", "id": "ts_1", "call_id": None, "arguments": {}, "execution": "server"},
    {"type": "image_generation_call", "id": "ig_1", "status": "failed", "result": None},
    {"type": "compaction", "id": "cmp_1", "encrypted_content": "gAA"},
    {"type": "message", "id": "msg_0", "role": "assistant", "status": "completed", "content": []},
    {"type": "yet_to_be_invented", "id": "x"},
]


@pytest.mark.parametrize("item", SERVER_SIDE, ids=lambda item: item["type"])
def test_items_of_the_server_are_kept_in_their_place(item: dict[str, Any]) -> None:
    answer = answered(item, SAID)
    assert answer.message.parts[0] == Opaque("openai", item)
    assert not answer.message.calls
    assert going_on(answer) == [item, SAID]


def test_a_person_may_answer_an_item_of_the_server() -> None:
    approval = {"type": "mcp_approval_response", "approval_request_id": "mcpr_1", "approve": True}
    assert items(Message("user", [Text("Yes."), Opaque("openai", approval), Opaque("anthropic", {})])) == [
        {"role": "user", "content": "Yes."},
        approval,
    ]


@pytest.mark.parametrize(
    ("fields", "made", "image"),
    [
        ({"output_format": "webp"}, "AAAA", Image("AAAA", media_type="image/webp")),
        ({"output_format": "svg"}, "AAAA", Image("AAAA", media_type="image/svg+xml")),
        ({}, "/9j/4AA", Image("/9j/4AA", media_type="image/jpeg")),
        ({}, "iVBORw0", Image("iVBORw0", media_type="image/png")),
        ({}, "https://x/a.png", Image(url="https://x/a.png")),
    ],
)
def test_pictures_of_the_model_are_parts_and_go_back_once(
    fields: dict[str, Any], made: str, image: Image
) -> None:
    item = {"type": "image_generation_call", "id": "ig_1", "status": "completed", "result": made, **fields}
    answer = answered(item, SAID)
    [found] = [part for part in answer.message.parts if isinstance(part, Image)]
    assert (found.data, found.url, found.media_type) == (image.data, image.url, image.media_type)
    assert going_on(answer) == [item, SAID]


def test_marks_on_texts_go_back_and_probabilities_are_handed_out() -> None:
    mark = {"type": "url_citation", "url": "https://x", "start_index": 0, "end_index": 2}
    token = {"token": "Hi", "logprob": -0.5, "bytes": [72], "top_logprobs": [{"token": "Ho", "logprob": -1}]}
    block = {"type": "output_text", "text": "Hi", "annotations": [mark], "logprobs": [token]}
    answer = answered({**SAID, "content": [block]})
    assert answer.logprobs == (TokenLogprob("Hi", -0.5, (("Ho", -1.0),)),)
    assert going_on(answer) == [{**SAID, "content": [{k: v for k, v in block.items() if k != "logprobs"}]}]


def test_a_refusal() -> None:
    item = {**SAID, "content": [{"type": "refusal", "refusal": "No."}]}
    answer = answered(item)
    assert (answer.message.text, answer.stop_reason) == ("No.", "refusal")
    assert going_on(answer) == [item]


def test_several_texts_of_one_message_stay_one() -> None:
    blocks = [{"type": "output_text", "text": text, "annotations": []} for text in ("a", "b")]
    one, other = {**SAID, "content": blocks}, {**SAID, "id": "msg_2", "phase": "final_answer"}
    answer = answered(one, other)
    assert answer.message.text == "abLet me look."
    assert going_on(answer) == [one, other]


@pytest.mark.parametrize("codec", [OpenAIChatCodec(), AnthropicMessagesCodec()], ids=lambda codec: codec.name)
def test_another_format_gets_nothing_of_this_one(codec: Any) -> None:
    answer = answered(THOUGHT, SAID, CALL).message
    plain = Message("assistant", [Text("Let me look."), ToolCall("f", '{"a":1}', "call_1")])
    sent = [codec.request(Request([Message.user("Hi"), m]), model="m", stream=False) for m in (answer, plain)]
    assert sent[0] == sent[1]


def test_nothing_of_chat_completions_comes_here() -> None:
    call = {"id": "call_1", "type": "custom", "custom": {"name": "sql", "input": "SELECT 1"}}
    message = {"role": "assistant", "content": None, "reasoning_content": "Hm.", "tool_calls": [call]}
    answer = OpenAIChatCodec().response({"choices": [{"message": message, "finish_reason": "tool_calls"}]})
    assert items(Message.user("Hi"), answer.message)[1] == {
        "type": "custom_tool_call",
        "call_id": "call_1",
        "name": "sql",
        "input": "SELECT 1",
    }


@pytest.mark.parametrize("own", [{"previous_response_id": "resp_1"}, {"conversation": "conv_1"}])
def test_results_of_calls_that_the_server_keeps(own: dict[str, Any]) -> None:
    call = answered({**CALL, "caller": {"type": "direct"}}).message.calls[0]
    sent = body(Message("tool", [ResultPart(call, ToolResult.of("ok"))]), extras={"openai": own})
    assert sent["input"] == [
        {
            "type": "function_call_output",
            "call_id": "call_1",
            "output": "ok",
            "caller": {"type": "direct"},
        }
    ]
    assert sent | own == sent


def cut_by(reason: str) -> dict[str, Any]:
    return {"status": "incomplete", "incomplete_details": {"reason": reason}}


STOPS = [
    ({"status": "completed"}, [SAID], "end", "completed"),
    ({"status": "completed"}, [SAID, CALL], "tool_calls", "completed"),
    (cut_by("max_output_tokens"), [CALL], "length", "max_output_tokens"),
    (cut_by("content_filter"), [SAID], "filter", "content_filter"),
    (cut_by("steered"), [SAID], "other", "steered"),
    ({"status": "incomplete"}, [SAID], "other", "incomplete"),
    ({"status": None}, [SAID], "end", ""),
]


@pytest.mark.parametrize(("fields", "output", "reason", "raw"), STOPS)
def test_why_an_answer_stopped(fields: dict[str, Any], output: Any, reason: str, raw: str) -> None:
    response = CODEC.response({"output": output, **fields})
    assert (response.stop_reason, response.raw_stop_reason) == (reason, raw)


def test_usage() -> None:
    usage = {
        "input_tokens": 100,
        "input_tokens_details": {"cached_tokens": 60, "cache_write_tokens": 30},
        "output_tokens": 20,
        "output_tokens_details": {"reasoning_tokens": 15},
        "total_tokens": 120,
    }
    assert answered(SAID, usage=usage).usage == Usage(100, 20, 60, 30, 15)


@pytest.mark.parametrize(
    ("wire", "words", "retryable"),
    [
        ({"error": {"message": "No such model.", "code": "model_not_found"}}, "No such model.", False),
        (
            {"status": "failed", "output": [], "error": {"code": "server_error", "message": "Sorry."}},
            "Sorry.",
            True,
        ),
        ({"status": "failed", "output": []}, "failed", True),
        ({"status": "cancelled", "output": [SAID]}, "cancelled", False),
        ({"status": "queued", "output": []}, "queued", False),
        ({"choices": []}, "not a response", True),
        ({}, "not a response", True),
    ],
)
def test_what_is_no_answer(wire: dict[str, Any], words: str, retryable: bool) -> None:
    with pytest.raises(ModelError, match=words) as raised:
        CODEC.response(wire)
    assert raised.value.retryable is retryable


def test_an_output_schema_that_was_given_is_sent_to_openai_alone() -> None:
    schema = {"type": "array", "items": {"type": "integer"}}
    told = ToolSpec("told", "", {"type": "object"}, output_schema=schema, tells_output=True)
    inferred = ToolSpec("inferred", "", {"type": "object"}, output_schema=schema)
    first, second = body(Message.user("Hi"), tools=[told, inferred])["tools"]
    assert first["output_schema"] == schema
    assert "output_schema" not in second
    other = OpenAIResponsesCodec("xai").request(
        Request([Message.user("Hi")], [told]), model="m", stream=False
    )
    assert "output_schema" not in other["tools"][0]
