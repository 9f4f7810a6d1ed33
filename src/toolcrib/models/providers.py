"""The providers: a row each, with address, key variables and the model class for its format.

A key from the environment is sent only to the host of its own row.
"""

from __future__ import annotations

import os
from typing import NamedTuple
from urllib.parse import urlsplit

from toolcrib.dataclass import dataclass

# The classes of models, each in its own module that is imported when a model of it is made.
CLASSES = {
    "OpenAIChat": "openai",
    "OpenAIResponses": "openai_responses",
    "AnthropicMessages": "anthropic",
    "Gemini": "gemini",
    "GeminiInteractions": "gemini",
    "BedrockConverse": "bedrock",
    "BedrockMessages": "bedrock",
    "Cohere": "cohere",
    "Ollama": "ollama",
}
OPENAI_URL = "https://api.openai.com/v1"
AZURE_HOSTS = (".openai.azure.com", ".cognitiveservices.azure.com", ".services.ai.azure.com")
AZURE_PATH = "/openai/v1/"
AWS = "AWS_REGION, and AWS credentials where boto3 finds them or AWS_BEARER_TOKEN_BEDROCK"


class Missing(NamedTuple):
    """Something that a model certainly lacks, the variables that may hold it, and the option that gives it."""

    what: str
    variables: tuple[str, ...]
    option: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Provider:
    """One provider. `keys` are variables, of which the first that is set counts; none for local servers.

    `address` is a variable that may name another base URL. `own_defaults` says that the class finds address
    and key itself. `asks` says in words what is needed where that is no key in a variable.
    """

    cls: str = "OpenAIChat"
    base_url: str = ""
    keys: tuple[str, ...] = ()
    address: str = ""
    own_defaults: bool = False
    asks: str = ""

    @property
    def official(self) -> bool:
        """Whether the address is the provider's own on the internet, which requires a key."""
        return bool(self.keys) and self.base_url.startswith("https://")

    def key(self) -> str | None:
        """The key in the environment; None without one."""
        return next((value for name in self.keys if (value := os.environ.get(name))), None)

    def url(self) -> str:
        """The base URL: the environment's, if set, else the provider's own."""
        return (os.environ.get(self.address) if self.address else "") or self.base_url


# Addresses and variables as each provider's own documentation names them.
PROVIDERS: dict[str, Provider] = {
    "openai": Provider(
        cls="OpenAIResponses", base_url=OPENAI_URL, keys=("OPENAI_API_KEY",), address="OPENAI_BASE_URL"
    ),
    "openai-chat": Provider(base_url=OPENAI_URL, keys=("OPENAI_API_KEY",), address="OPENAI_BASE_URL"),
    "openai-responses": Provider(
        cls="OpenAIResponses", base_url=OPENAI_URL, keys=("OPENAI_API_KEY",), address="OPENAI_BASE_URL"
    ),
    "anthropic": Provider(
        cls="AnthropicMessages",
        base_url="https://api.anthropic.com",
        keys=("ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN"),
        address="ANTHROPIC_BASE_URL",
        own_defaults=True,
    ),
    "gemini": Provider(
        cls="Gemini",
        base_url="https://generativelanguage.googleapis.com",
        keys=("GEMINI_API_KEY", "GOOGLE_API_KEY"),
        address="GOOGLE_GEMINI_BASE_URL",
        own_defaults=True,
    ),
    "gemini-interactions": Provider(
        cls="GeminiInteractions",
        base_url="https://generativelanguage.googleapis.com",
        keys=("GEMINI_API_KEY", "GOOGLE_API_KEY"),
        address="GOOGLE_GEMINI_BASE_URL",
        own_defaults=True,
    ),
    "vertex": Provider(
        cls="Gemini",
        own_defaults=True,
        asks="GOOGLE_CLOUD_PROJECT, and Google Cloud's application default credentials",
    ),
    "bedrock": Provider(cls="BedrockConverse", own_defaults=True, asks=AWS),
    "bedrock-messages": Provider(cls="BedrockMessages", own_defaults=True, asks=AWS),
    "azure": Provider(keys=("AZURE_OPENAI_API_KEY",), address="AZURE_OPENAI_ENDPOINT"),
    "mistral": Provider(base_url="https://api.mistral.ai/v1", keys=("MISTRAL_API_KEY",)),
    "cohere": Provider(
        cls="Cohere",
        base_url="https://api.cohere.com",
        keys=("CO_API_KEY", "COHERE_API_KEY"),
        address="CO_API_URL",
        own_defaults=True,
    ),
    "deepseek": Provider(base_url="https://api.deepseek.com", keys=("DEEPSEEK_API_KEY",)),
    "xai": Provider(base_url="https://api.x.ai/v1", keys=("XAI_API_KEY",)),
    "groq": Provider(base_url="https://api.groq.com/openai/v1", keys=("GROQ_API_KEY",)),
    "moonshot": Provider(
        base_url="https://api.moonshot.ai/v1", keys=("MOONSHOT_API_KEY",), address="MOONSHOT_BASE_URL"
    ),
    "zai": Provider(base_url="https://api.z.ai/api/paas/v4", keys=("ZAI_API_KEY",), address="ZAI_BASE_URL"),
    "alibaba": Provider(
        base_url="https://dashscope-intl.aliyuncs.com/compatible-mode/v1",
        keys=("DASHSCOPE_API_KEY",),
        address="DASHSCOPE_BASE_URL",
    ),
    "minimax": Provider(
        base_url="https://api.minimax.io/v1", keys=("MINIMAX_API_KEY",), address="MINIMAX_BASE_URL"
    ),
    "openrouter": Provider(base_url="https://openrouter.ai/api/v1", keys=("OPENROUTER_API_KEY",)),
    "vercel": Provider(base_url="https://ai-gateway.vercel.sh/v1", keys=("AI_GATEWAY_API_KEY",)),
    "together": Provider(base_url="https://api.together.xyz/v1", keys=("TOGETHER_API_KEY",)),
    "fireworks": Provider(base_url="https://api.fireworks.ai/inference/v1", keys=("FIREWORKS_API_KEY",)),
    "cerebras": Provider(base_url="https://api.cerebras.ai/v1", keys=("CEREBRAS_API_KEY",)),
    "nvidia": Provider(base_url="https://integrate.api.nvidia.com/v1", keys=("NVIDIA_API_KEY",)),
    "huggingface": Provider(base_url="https://router.huggingface.co/v1", keys=("HF_TOKEN",)),
    "github": Provider(base_url="https://models.github.ai/inference", keys=("GITHUB_TOKEN",)),
    "sambanova": Provider(base_url="https://api.sambanova.ai/v1", keys=("SAMBANOVA_API_KEY",)),
    "litellm": Provider(
        base_url="http://localhost:4000/v1", keys=("LITELLM_API_KEY",), address="LITELLM_BASE_URL"
    ),
    "ollama": Provider(
        cls="Ollama", base_url="http://localhost:11434", address="OLLAMA_HOST", own_defaults=True
    ),
    "vllm": Provider(base_url="http://localhost:8000/v1", address="VLLM_BASE_URL"),
    "sglang": Provider(base_url="http://localhost:30000/v1", address="SGLANG_BASE_URL"),
    "llamacpp": Provider(base_url="http://localhost:8080/v1", address="LLAMACPP_BASE_URL"),
    "lmstudio": Provider(base_url="http://localhost:1234/v1", address="LMSTUDIO_BASE_URL"),
}
ALIASES = {
    "claude": "anthropic",
    "google": "gemini",
    "grok": "xai",
    "kimi": "moonshot",
    "glm": "zai",
    "qwen": "alibaba",
    "dashscope": "alibaba",
    "hf": "huggingface",
}


def provider_at(base_url: str) -> str:
    """The provider at an address: its name, or else host and port.

    >>> provider_at("https://api.groq.com/openai/v1"), provider_at("http://localhost:8000/v1")
    ('groq', 'localhost:8000')
    """
    host = host_of(base_url)
    if host.endswith(AZURE_HOSTS):
        return "openai"
    if host == "localhost:11434":  # the one port of a local server that nothing else is known to use
        return "ollama"
    return next(
        (name for name, row in PROVIDERS.items() if row.official and host_of(row.base_url) == host), host
    )


def key_variables(base_url: str) -> tuple[str, ...]:
    """The variables whose key may be sent to an address: those of the provider at that address.

    The address is the one that the provider's variable names, or else its own; scheme and host are compared.
    """
    for row in PROVIDERS.values():
        named = os.environ.get(row.address, "") if row.address else ""
        if row.keys and named and _origin(named) == _origin(base_url):
            return row.keys
    for row in PROVIDERS.values():
        if row.keys and row.base_url and _origin(row.base_url) == _origin(base_url):
            return row.keys
    return ()


def missing_key(base_url: str) -> Missing | None:
    """The key that an address certainly requires and the environment does not have."""
    official = any(row.official and _origin(row.base_url) == _origin(base_url) for row in PROVIDERS.values())
    variables = key_variables(base_url)
    if not variables or not (official or host_of(base_url).endswith(AZURE_HOSTS)) or key_for(base_url):
        return None
    return Missing("key", variables, "api_key")


def key_for(base_url: str) -> str | None:
    """The key in the environment for an address; None without one."""
    return next((value for name in key_variables(base_url) if (value := os.environ.get(name))), None)


def azure_url(endpoint: str) -> str:
    """The base URL of an Azure resource, whose endpoint is usually named without its path."""
    path = urlsplit(endpoint).path.strip("/")
    return endpoint if path else endpoint.rstrip("/") + AZURE_PATH


def host_of(base_url: str) -> str:
    """Host and port of a URL."""
    return urlsplit(base_url).netloc.rpartition("@")[2].lower()


def _origin(url: str) -> tuple[str, str]:
    return urlsplit(url).scheme, host_of(url)
