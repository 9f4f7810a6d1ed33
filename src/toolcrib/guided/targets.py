"""The servers that a constraint can be lowered for, a row each: what each takes, and what it promises.

A row says where it was last checked. A server that moves is a change of its row and of nothing else.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from types import MappingProxyType
from typing import Any, Final

from toolcrib.dataclass import dataclass
from toolcrib.guided import wire
from toolcrib.guided.limits import anthropic_limits, anthropic_names, openai_limits
from toolcrib.guided.lowered import Guarantee, RungName
from toolcrib.guided.weak import CAPITALS, INTEGERS, PATTERNS, UNDOCUMENTED, Weak

__all__ = ["TARGETS", "Rung", "ServerTarget", "target_for", "target_named"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Rung:
    """One way in which a server is sent a schema.

    `dialect` is a row of `ANSWER_DIALECTS`, "" where no schema is sent; `any_root` says that the root may be anything.
    `weak` are keywords that are sent, with why they are not promised; `portable` writes patterns as every engine
    reads them, and `drop_patterns` leaves out the others. `limits` says what of a schema is too much, and `names` which
    name of a field is refused; "" for nothing. `must_not_narrow` refuses a schema of which the dialect would allow
    fewer values.
    """

    name: RungName
    write: Callable[[wire.SentSchema], dict[str, Any]]
    guarantee: Guarantee = "enforced"
    dialect: str = ""
    any_root: bool = False
    weak: tuple[Weak, ...] = ()
    portable: bool = False
    drop_patterns: bool = False
    limits: Callable[[Mapping[str, Any]], str] | None = None
    names: Callable[[Mapping[str, Any]], str] | None = None
    must_not_narrow: bool = True
    not_with: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerTarget:
    """One server. `rungs` are its ways for schemas, the best first; text is below the last of each.

    `choice`, `regex` and `grammar` write the fields for texts, where the server takes them; `grammar_syntax` is "gbnf"
    or "lark". `custom_tool` writes those of a tool whose input is text of a grammar. `bias` is the field for the
    number of tokens, where `logit_bias` is taken. `promises` is false where nobody knows what the server does.
    """

    name: str
    title: str
    source: str
    rungs: tuple[Rung, ...] = ()
    choice: Callable[[tuple[str, ...]], dict[str, Any]] | None = None
    regex: Callable[[str], dict[str, Any]] | None = None
    grammar: Callable[[str], dict[str, Any]] | None = None
    grammar_syntax: str = "gbnf"
    left_recursion: bool = True
    custom_tool: Callable[[str, str, str], dict[str, Any]] | None = None
    tags: Callable[..., dict[str, Any]] | None = None
    tag_dialect: str = "xgrammar"  # which compiles the tags of every server that takes them
    bias: str = ""
    texts_not_with: tuple[str, ...] = ()
    promises: bool = True


def _schema(write: Callable[[wire.SentSchema], dict[str, Any]], dialect: str, **more: Any) -> Rung:
    return Rung(name="native", write=write, dialect=dialect, **more)


def _forced(write: Callable[[wire.SentSchema], dict[str, Any]], dialect: str, **more: Any) -> Rung:
    return Rung(
        name="forced tool", write=write, dialect=dialect, guarantee="prompted", must_not_narrow=False, **more
    )


def _json(write: Callable[[], dict[str, Any]], **more: Any) -> Rung:
    return Rung(name="JSON mode", write=lambda _: write(), guarantee="JSON only", **more)


_OPENAI: Final = partial(Rung, dialect="openai-strict", limits=openai_limits)
_CLAUDE: Final = partial(Rung, dialect="anthropic-strict", limits=anthropic_limits, weak=CAPITALS)
_CLAUDE_TOOL: Final = partial(_CLAUDE, name="strict tool", names=anthropic_names, not_with=("thinking",))
_LLAMACPP: Final[Mapping[str, Any]] = {
    "any_root": True,
    "weak": INTEGERS,
    "portable": True,
    "drop_patterns": True,
}
_XGRAMMAR: Final[Mapping[str, Any]] = {"any_root": True, "weak": PATTERNS, "portable": True}

_ROWS: Final = (
    ServerTarget(
        name="openai.chat",
        title="OpenAI, Chat Completions",
        source="openai 3.54 (ResponseFormatJSONSchema, ChatCompletionCustomToolParam); structured outputs guide",
        rungs=(
            _OPENAI(name="native", write=wire.chat_schema),
            _OPENAI(name="strict tool", write=wire.chat_strict_tool, not_with=("parallel calls",)),
            _forced(wire.chat_tool, "openai"),
            _json(wire.chat_json),
        ),
        custom_tool=wire.chat_custom_tool,
        bias="max_completion_tokens",
    ),
    ServerTarget(
        name="openai.responses",
        title="OpenAI, Responses",
        source="openai 3.54 (ResponseFormatTextJSONSchemaConfigParam, CustomToolParam); structured outputs guide",
        rungs=(
            _OPENAI(name="native", write=wire.responses_schema),
            _OPENAI(name="strict tool", write=wire.responses_strict_tool, not_with=("parallel calls",)),
            _forced(wire.responses_tool, "openai"),
            _json(wire.responses_json),
        ),
        custom_tool=wire.responses_custom_tool,
    ),
    ServerTarget(
        name="anthropic",
        title="Anthropic, Messages",
        source="anthropic 2.12 (OutputConfigParam, lib/_parse/_transform.py); structured outputs page, 2026-09",
        rungs=(
            _CLAUDE(name="native", write=wire.anthropic_schema, not_with=("citations", "prefill")),
            _CLAUDE_TOOL(write=wire.anthropic_strict_tool),
            _forced(wire.anthropic_tool, "anthropic", names=anthropic_names, not_with=("thinking",)),
        ),
    ),
    ServerTarget(
        name="gemini",
        title="Gemini, generateContent",
        source="google-genai 3.4 (response_json_schema, FunctionCallingConfig)",
        rungs=(
            _schema(wire.gemini_schema, "gemini"),
            Rung(name="strict tool", write=wire.gemini_tool, dialect="gemini"),
            _json(wire.gemini_json),
        ),
    ),
    ServerTarget(
        name="bedrock",
        title="Amazon Bedrock, Converse",
        source="botocore 1.44 (OutputConfig, ToolSpecification.strict); the subset is Claude's",
        rungs=(
            _CLAUDE(name="native", write=wire.bedrock_schema, not_with=("citations",)),
            _CLAUDE_TOOL(write=wire.bedrock_strict_tool),
            _forced(wire.bedrock_tool, "bedrock", names=anthropic_names, not_with=("thinking",)),
        ),
    ),
    ServerTarget(
        name="mistral",
        title="Mistral",
        source="mistralai 3.7 (JSONSchema.schema_definition, alias `schema`); custom structured outputs page",
        rungs=(
            _schema(wire.chat_schema, "openai-strict", weak=UNDOCUMENTED),
            _forced(wire.mistral_tool, "openai"),
            _json(wire.chat_json),
        ),
    ),
    ServerTarget(
        name="cohere",
        title="Cohere v2",
        source="cohere 7.3 (JsonObjectResponseFormatV2); structured outputs page",
        rungs=(
            _schema(wire.cohere_schema, "cohere", not_with=("tools", "documents")),
            Rung(name="strict tool", write=wire.cohere_strict_tool, dialect="cohere"),
            _json(wire.chat_json, not_with=("tools", "documents")),
        ),
    ),
    ServerTarget(
        name="ollama",
        title="Ollama",
        source="ollama-python 0.6 (`format`); it hands the schema to llama.cpp",
        rungs=(
            _schema(wire.ollama_schema, "llamacpp", **_LLAMACPP),
            _json(wire.ollama_json),
        ),
    ),
    ServerTarget(
        name="vllm",
        title="vLLM 0.12 and later",
        source="vLLM 0.33 (StructuredOutputsParams); xgrammar, else llguidance, else outlines",
        rungs=(
            _schema(wire.vllm_schema, "xgrammar", **_XGRAMMAR),
            _json(wire.vllm_json),
        ),
        choice=wire.vllm_choice,
        regex=wire.vllm_regex,
        grammar=wire.vllm_grammar,
        tags=wire.structural_tag,
        bias="max_tokens",
    ),
    ServerTarget(
        name="vllm-old",
        title="vLLM before 0.12",
        source="vLLM 0.11: `guided_*` fields, which later servers ignore without an error",
        rungs=(
            _schema(lambda sent: {"guided_json": sent.schema}, "xgrammar", **_XGRAMMAR),
            _json(wire.chat_json),
        ),
        choice=lambda options: {"guided_choice": [*options]},
        regex=lambda pattern: {"guided_regex": pattern},
        grammar=lambda text: {"guided_grammar": text},
        bias="max_tokens",
    ),
    ServerTarget(
        name="sglang",
        title="SGLang",
        source="sglang 0.5.23 (entrypoints/openai/protocol.py); xgrammar by default",
        rungs=(
            _schema(wire.chat_schema_plain, "xgrammar", **_XGRAMMAR),
            _json(wire.chat_json),
        ),
        regex=wire.sglang_regex,
        grammar=wire.sglang_grammar,
        tags=wire.structural_tag,
        bias="max_tokens",
    ),
    ServerTarget(
        name="llamacpp",
        title="llama.cpp server",
        source="llama.cpp tools/server/README.md, common/json-schema-to-grammar.cpp",
        rungs=(
            _schema(wire.chat_schema_plain, "llamacpp", **_LLAMACPP),
            _json(wire.chat_json),
        ),
        grammar=wire.llamacpp_grammar,
        left_recursion=False,
        bias="max_tokens",
        texts_not_with=("tools",),
    ),
    ServerTarget(
        name="tgi",
        title="Text Generation Inference",
        source="text-generation-inference router (GrammarType); maintenance only since 2026-01",
        rungs=(
            _schema(
                wire.tgi_schema, "outlines", any_root=True, weak=PATTERNS, portable=True, not_with=("tools",)
            ),
        ),
        regex=wire.tgi_regex,
        texts_not_with=("tools",),
    ),
    ServerTarget(
        name="trtllm",
        title="TensorRT-LLM, trtllm-serve",
        source="tensorrt_llm/serve/openai_protocol.py (ResponseFormat); needs guided_decoding_backend: xgrammar",
        rungs=(
            _schema(wire.trtllm_schema, "xgrammar", **_XGRAMMAR),
            _json(wire.chat_json),
        ),
        regex=wire.trtllm_regex,
        grammar=wire.trtllm_grammar,
    ),
    ServerTarget(
        name="lmstudio",
        title="LM Studio",
        source="lmstudio.ai/docs, structured output: llama.cpp for GGUF, outlines for MLX",
        rungs=(_schema(wire.chat_schema, "outlines", any_root=True, weak=PATTERNS, portable=True),),
    ),
    ServerTarget(
        name="chat",
        title="an unknown server of Chat Completions",
        source="nothing is known: it may ignore the fields, so the prompt says it too",
        rungs=(
            Rung(
                name="native",
                write=wire.chat_schema,
                dialect="openai-strict",
                guarantee="prompted",
            ),
            Rung(
                name="native",
                write=wire.chat_schema_plain,
                dialect="openai",
                guarantee="prompted",
                must_not_narrow=False,
            ),
            _json(wire.chat_json),
        ),
        tags=wire.structural_tag,
        promises=False,
    ),
    ServerTarget(
        name="chat-json",
        title="a server with JSON mode alone: DeepSeek, GLM, MiniMax, most of Qwen",
        source="their API pages: response_format json_object",
        rungs=(_json(wire.chat_json),),
    ),
    ServerTarget(
        name="local",
        title="a local model, by LocalGuide",
        source="llguidance 1.9",
        rungs=(_schema(wire.local_schema, "llguidance", any_root=True),),
        regex=wire.local_regex,
        grammar=wire.local_grammar,
        grammar_syntax="lark",
        tags=wire.local_tags,
        tag_dialect="llguidance",
    ),
    ServerTarget(
        name="local-xgrammar",
        title="a local model, by LocalGuide over xgrammar",
        source="xgrammar 0.2.8, where tested against llguidance",
        rungs=(_schema(wire.local_schema, "xgrammar", **_XGRAMMAR),),
        regex=wire.local_regex,
        grammar=wire.llamacpp_grammar,
        tags=wire.structural_tag,
    ),
    ServerTarget(name="text", title="a model that only writes text", source="the prompt alone"),
)

TARGETS: Final[Mapping[str, ServerTarget]] = MappingProxyType({row.name: row for row in _ROWS})
"""All servers that a constraint can be lowered for, by their names."""

# {wire format (a row of `codecs/catalog.py`): target of the provider whose format it is}
_OF_FORMAT: Final = {
    "openai_responses": "openai.responses",
    "anthropic_messages": "anthropic",
    "gemini": "gemini",
    "bedrock_converse": "bedrock",
    "cohere": "cohere",
    "ollama": "ollama",
}
# {provider of Chat Completions (a row of `models/providers.py`): its target}
_OF_CHAT: Final = {
    "openai": "openai.chat",
    "azure": "openai.chat",
    "mistral": "mistral",
    "vllm": "vllm",
    "sglang": "sglang",
    "llamacpp": "llamacpp",
    "lmstudio": "lmstudio",
    "deepseek": "chat-json",
    "zai": "chat-json",
    "minimax": "chat-json",
    "alibaba": "chat-json",
}


def target_named(name: str) -> ServerTarget:
    """The row of that name; a `ValueError` that lists the known ones where there is none."""
    row = TARGETS.get(name)
    if row is None:
        raise ValueError(f"no target is called {name!r}; there are {', '.join(TARGETS)}")
    return row


def target_for(format: str, provider: str) -> str:
    """The target of a wire format (`Codec.name`) at a provider; "chat" and "text" where nothing more is known.

    >>> target_for("openai_chat", "vllm"), target_for("anthropic_messages", "anthropic")
    ('vllm', 'anthropic')
    """
    if format == "openai_chat":
        return _OF_CHAT.get(provider, "chat")
    return _OF_FORMAT.get(format, "text")
