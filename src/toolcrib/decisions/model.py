"""Decision models: servers that answer typed questions with calibrated probabilities, over plain HTTP."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from typing import Any, NoReturn

from toolcrib.codecs.codec import Features, ModelError
from toolcrib.codecs.openai_chat_answer import read_error
from toolcrib.codecs.wire_json import compact
from toolcrib.dataclass import dataclass
from toolcrib.decisions.questions import ChoiceQuestion, DecisionQuestion, Decisions, ScoreQuestion
from toolcrib.decisions.wire import FORMATS, Context, read_decisions
from toolcrib.messages import Message, Request, Response
from toolcrib.models.http import HttpTransport
from toolcrib.models.providers import OPENAI_URL, Missing, host_of

__all__ = ["DecisionModel", "resolve_decision_model"]

MOST_QUESTIONS = 400


@dataclass(frozen=True, slots=True)
class _Server:
    """Where decisions are asked for. A key is sent nowhere but to the host of its row or of `address`."""

    format: str
    base_url: str
    keys: tuple[str, ...] = ()
    address: str = ""
    header: str = "authorization"


SERVERS = {
    "openai-decisions": _Server("openai", OPENAI_URL, ("OPENAI_API_KEY",), "OPENAI_BASE_URL"),
    "gemini-decisions": _Server(
        "gemini",
        "https://generativelanguage.googleapis.com/v1beta",
        ("GEMINI_API_KEY", "GOOGLE_API_KEY"),
        "GOOGLE_GEMINI_BASE_URL",
        "x-goog-api-key",
    ),
    "typesafe": _Server(
        "systemone", "https://api.typesafe.ai/v1", ("TYPESAFE_API_KEY",), "TYPESAFE_BASE_URL"
    ),
    "openrouter-decisions": _Server(
        "systemone", "https://openrouter.ai/api/v1", ("OPENROUTER_API_KEY",), "OPENROUTER_BASE_URL"
    ),
    "systemone": _Server("systemone", "http://localhost:11434/v1", (), "SYSTEMONE_BASE_URL"),
}


class DecisionModel(HttpTransport):
    """A model that answers typed questions with calibrated probabilities.

    `server` is one of `openai-decisions`, `gemini-decisions`, `typesafe`, `openrouter-decisions`, and `systemone` for
    any server of /v1/systemone: Ollama's by default, llama.cpp's or vLLM's by `base_url`, which ends with the version
    (`http://localhost:8080/v1`). `api_key` and `base_url` come from the server's variables (OPENAI_API_KEY and
    OPENAI_BASE_URL, say) when they are not given; a key from the environment goes nowhere but to its own server.

    >>> DecisionModel("gpt-6-luna", "openai-decisions", api_key="never shown")
    DecisionModel('gpt-6-luna', provider='openai-decisions')
    """

    def __init__(
        self,
        model: str,
        server: str = "systemone",
        *,
        base_url: str | None = None,
        api_key: str | None = None,
        timeout: float | None = None,
        max_retries: int | None = None,
        deadline: float | None = None,
    ) -> None:
        row = SERVERS.get(server)
        if row is None:
            raise ValueError(f"unknown server of decisions {server!r}; known are {', '.join(SERVERS)}")
        named = (os.environ.get(row.address) if row.address else "") or row.base_url
        address = base_url or named
        trusted = host_of(address) in (host_of(named), host_of(row.base_url))
        known = next((key for name in row.keys if (key := os.environ.get(name))), None) if trusted else None
        super().__init__(
            model,
            _DecisionCodec(server, row.format),
            base_url=address,
            api_key=api_key or known,
            timeout=timeout,
            max_retries=max_retries,
            deadline=deadline,
        )
        self._server = row
        self.format = FORMATS[row.format]

    async def decide(self, context: Context, questions: Mapping[str, DecisionQuestion]) -> Decisions:
        """Answers the questions about the context, in one request. Raises ModelError.

        ValueError for more questions, options or levels than the server takes.
        """
        _check(questions, self.format.most_options, self.format.most_levels)
        asked = Request([], extras={"context": context, "questions": questions})
        body = json.loads((await self.respond(asked)).message.text)
        return read_decisions(self.format, body, questions)

    def _url(self, *, stream: bool) -> str:
        return self.base_url + self.format.path

    def _headers(self) -> dict[str, str]:
        if not self._api_key or self._server.header == "authorization":
            return super()._headers()
        return {self._server.header: self._api_key}

    def missing(self) -> Missing | None:
        official = self._server.keys and host_of(self.base_url) == host_of(self._server.base_url)
        return Missing("key", self._server.keys, "api_key") if official and not self._api_key else None


class _DecisionCodec:
    """Carries questions and answers through a transport: the answer's JSON is the text of the message."""

    features = Features()

    def __init__(self, provider: str, format: str) -> None:
        self.name = f"{format}_decisions"
        self.provider = provider
        self._format = FORMATS[format]

    def request(self, request: Request, *, model: str, stream: bool) -> dict[str, Any]:
        if "questions" not in request.extras:
            raise ModelError(
                "a decision model writes no text and calls no tools: ask it by `decide` or `classify`"
            )
        return self._format.body(model, request.extras["context"], request.extras["questions"])

    def response(self, body: dict[str, Any], request: Request | None = None) -> Response:
        if not isinstance(body.get("answers"), list | dict):
            raise ModelError(f"expected answers to the questions, got {compact(body)[:200]}")
        return Response(Message.assistant(compact(body)))

    def decoder(self, request: Request | None = None) -> NoReturn:
        raise ModelError("decisions come whole: there is nothing to stream")

    def error(self, body: Any, status: int | None = None, retry_after: float | None = None) -> ModelError:
        return read_error(body, status, retry_after)


def _check(questions: Mapping[str, DecisionQuestion], most_options: int, most_levels: int) -> None:
    if not 1 <= len(questions) <= MOST_QUESTIONS:
        raise ValueError(f"one request has 1 to {MOST_QUESTIONS} questions, got {len(questions)}")
    for name, question in questions.items():
        if isinstance(question, ChoiceQuestion) and len(question.options) > most_options:
            raise ValueError(
                f"question {name!r} has {len(question.options)} options; this server takes {most_options}"
            )
        if isinstance(question, ScoreQuestion) and len(question.levels) > most_levels:
            raise ValueError(
                f"question {name!r} has {len(question.levels)} levels; this server takes {most_levels}"
            )


def resolve_decision_model(spec: str) -> DecisionModel | None:
    """The decision model that `SERVER:NAME` names; None if SERVER is no server of decisions.

    >>> resolve_decision_model("systemone:kev-4b")
    DecisionModel('kev-4b', provider='systemone')
    """
    server, colon, name = spec.partition(":")
    return DecisionModel(name, server) if colon and name and server in SERVERS else None
