"""Every name that toolcrib gives to OpenTelemetry: spans, attributes, metrics.

The names in `gen_ai`, `error` and `server` are those of the semantic conventions for generative AI as of version 1.41,
which are still in development. The names in `toolcrib` are our own.
"""

from __future__ import annotations

__all__ = ["DURATION_BUCKETS", "FIRST_CHUNK_BUCKETS", "LIBRARY", "PROVIDERS", "TOKEN_BUCKETS"]

LIBRARY = "toolcrib"

OPERATION = "gen_ai.operation.name"
INVOKE_AGENT, CHAT, EXECUTE_TOOL = "invoke_agent", "chat", "execute_tool"

AGENT_NAME = "gen_ai.agent.name"
PROVIDER = "gen_ai.provider.name"
REQUEST_MODEL = "gen_ai.request.model"
REQUEST_MAX_TOKENS = "gen_ai.request.max_tokens"
REQUEST_TEMPERATURE = "gen_ai.request.temperature"
REQUEST_STREAM = "gen_ai.request.stream"
RESPONSE_MODEL = "gen_ai.response.model"
FINISH_REASONS = "gen_ai.response.finish_reasons"
FIRST_CHUNK = "gen_ai.response.time_to_first_chunk"
INPUT_TOKENS = "gen_ai.usage.input_tokens"
OUTPUT_TOKENS = "gen_ai.usage.output_tokens"
CACHE_READ_TOKENS = "gen_ai.usage.cache_read.input_tokens"
CACHE_WRITE_TOKENS = "gen_ai.usage.cache_creation.input_tokens"
REASONING_TOKENS = "gen_ai.usage.reasoning.output_tokens"
INPUT_MESSAGES = "gen_ai.input.messages"
OUTPUT_MESSAGES = "gen_ai.output.messages"
TOOL_NAME = "gen_ai.tool.name"
TOOL_TYPE = "gen_ai.tool.type"
TOOL_CALL_ID = "gen_ai.tool.call.id"
TOOL_DESCRIPTION = "gen_ai.tool.description"
TOOL_ARGUMENTS = "gen_ai.tool.call.arguments"
TOOL_RESULT = "gen_ai.tool.call.result"
ERROR = "error.type"
SERVER_ADDRESS, SERVER_PORT = "server.address", "server.port"

# Our own attributes of a run, a request and a call.
RUN = "toolcrib.run"
RUN_REASON = "toolcrib.run.reason"
RUN_TURNS = "toolcrib.run.turns"
COST = "toolcrib.usage.cost"
REQUEST_RETRIES = "toolcrib.request.retries"
CALL_KEY = "toolcrib.call.key"
CALL_REPAIRS = "toolcrib.call.repairs"
CALL_RETRIES = "toolcrib.call.retries"
TOOL_EFFECT = "toolcrib.tool.effect"
TOOL_IDEMPOTENT = "toolcrib.tool.idempotent"
TOOL_OPEN_WORLD = "toolcrib.tool.open_world"
TOOL_VERSION = "toolcrib.tool.version"
TOOL_CATEGORY = "toolcrib.tool.category"
TOOL_TAGS = "toolcrib.tool.tags"
TOOL_RETRY_ATTEMPTS = "toolcrib.tool.retry.attempts"
TOOL_RETRY_DELAY = "toolcrib.tool.retry.delay"
TOOL_RETRY_MAX_DELAY = "toolcrib.tool.retry.max_delay"
TOOL_RETRY_ON = "toolcrib.tool.retry.on"

RETRY_EVENT = "toolcrib.retry"  # an event of a request's or a call's span: an attempt that failed
RETRY_ATTEMPT, RETRY_DELAY = "attempt", "delay"

# Metrics, and the buckets that the conventions ask for.
DURATION_METRIC = "gen_ai.client.operation.duration"
TOKENS_METRIC = "gen_ai.client.token.usage"
FIRST_CHUNK_METRIC = "gen_ai.client.operation.time_to_first_chunk"
TOKEN_TYPE = "gen_ai.token.type"
INPUT, OUTPUT = "input", "output"
DURATION_BUCKETS = tuple(0.01 * 2**step for step in range(14))
TOKEN_BUCKETS = tuple(4.0**step for step in range(14))
FIRST_CHUNK_BUCKETS = (
    0.001, 0.005, 0.01, 0.02, 0.04, 0.06, 0.08, 0.1, 0.25, 0.5, 0.75, 1.0, 2.5, 5.0, 7.5, 10.0,
)  # fmt: skip

# The names of providers in the conventions, where ours are others.
PROVIDERS = {
    "bedrock": "aws.bedrock",
    "gemini": "gcp.gemini",
    "gemini_interactions": "gcp.gemini",
    "mistral": "mistral_ai",
    "xai": "x_ai",
}
