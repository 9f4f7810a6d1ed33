"""Makes an MCP elicitation of a question, and an answer of its result. Nothing is sent here.

The specification of 2025-06-18 wants a message, and a schema that is a flat object of primitives. The result says what
the person did:

| action  | content                        | answer                                     |
| ------- | ------------------------------ | ------------------------------------------ |
| accept  | as the schema says             | its decision                               |
| accept  | anything else, or none         | no                                         |
| decline | whatever                       | no                                         |
| cancel  | whatever                       | None: nobody decided, and nothing runs     |
| other   | whatever                       | no                                         |
"""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from toolcrib.credentials import without_credentials
from toolcrib.dataclass import replace
from toolcrib.forms import form_schema
from toolcrib.json_text.lenient_reader import read_strict_json
from toolcrib.question import Answer, Lasting, Question, Scope, Verdict
from toolcrib.toolbox.policy import Approver
from toolcrib.visible import escape_invisible, on_one_line

__all__ = ["answer_to", "elicitation", "elicited"]

Send = Callable[[dict[str, Any]], Awaitable[Mapping[str, Any]]]

MAX_MESSAGE = 4_000  # characters of a message to the model

# decision: verdict, scope, how it reads
DECISIONS: dict[str, tuple[Verdict, Scope, str]] = {
    "yes": (Verdict.YES, Scope.ARGUMENTS, "Yes, run it"),
    "no": (Verdict.NO, Scope.ARGUMENTS, "No"),
    "always": (Verdict.ALWAYS, Scope.ARGUMENTS, "Always, with exactly these arguments"),
    "always_prefix": (Verdict.ALWAYS, Scope.PREFIX, "Always, for commands that begin with: {prefixes}"),
    "always_folder": (Verdict.ALWAYS, Scope.FOLDER, "Always, for files below: {folders}"),
}
LASTING = {Lasting.RUN: "in this run", Lasting.PROJECT: "in this project", Lasting.USER: "everywhere"}


def elicitation(question: Question) -> dict[str, Any]:
    """The params of an `elicitation/create` request that asks a question.

    The message shows all that would run, with invisible characters escaped. Only values that are credentials by the
    name of their parameter are hidden, because such requests must not contain them.
    """
    if question.kind == "input":
        return _input_request(question)
    offered = _offered(question)
    properties: dict[str, Any] = {
        "decision": {
            "type": "string",
            "title": "Run it?",
            "enum": list(offered),
            "enumNames": [_label(question, name) for name in offered],
        },
        "message": {
            "type": "string",
            "title": "If not, what the model is told",
            "maxLength": MAX_MESSAGE,
        },
        "arguments": {
            "type": "string",
            "title": "Other arguments to run it with",
            "description": "A JSON object in place of the arguments above; empty to leave them.",
        },
    }
    if "always" in offered and len(question.lastings) > 1:
        properties["lasting"] = {
            "type": "string",
            "title": "How long always holds",
            "enum": [lasting.value for lasting in question.lastings],
            "enumNames": [LASTING[lasting] for lasting in question.lastings],
        }
    schema = {"type": "object", "properties": properties, "required": ["decision"]}
    return {"message": _message(question), "requestedSchema": schema}


def answer_to(question: Question, result: Any, *, by: str = "") -> Answer | None:
    """The answer in the result of an elicitation. Whatever is not clearly a yes is a no.

    Only `cancel` gives None: nobody decided. `by` names the person who answered. Raises nothing.
    """
    action = result.get("action") if isinstance(result, Mapping) else None
    if action == "cancel":
        return None
    content = result.get("content") if isinstance(result, Mapping) else None
    refused = Answer(Verdict.NO, by=by)
    if action != "accept" or not isinstance(content, Mapping):
        return refused
    if question.kind == "input":
        return _input_reply(question, content, by)
    decision, lasting = content.get("decision"), content.get("lasting") or Lasting.RUN.value
    words, other = content.get("message") or "", content.get("arguments") or ""
    texts = all(isinstance(text, str) for text in (decision, lasting, words, other))
    if not texts or decision not in _offered(question) or lasting not in list(Lasting):
        return refused
    verdict, scope, _ = DECISIONS[decision]
    if verdict is Verdict.NO:
        return Answer(verdict, words[:MAX_MESSAGE].strip(), by)
    arguments = None
    if other.strip():
        try:
            arguments = read_strict_json(other)
        except ValueError:
            return refused
        if not isinstance(arguments, dict):
            return refused
    answer = Answer(verdict, "", by, scope, Lasting(lasting), None, arguments)
    return replace(answer, lasting=answer.lasting_among(question.lastings))


def _input_request(question: Question) -> dict[str, Any]:
    """A request for input. Where several options may be chosen, each is a property of its own: the schema is flat.

    The message of a remote server's question names the server as the user does.
    """
    message = escape_invisible(question.action)
    if question.source:
        address = f"\nThe address: {on_one_line(question.url)}" if question.url else ""
        message = f"{on_one_line(question.reason)}:\n  | {_indented(question.action)}{address}"
    if question.form:
        return {"message": message, "requestedSchema": form_schema(question.form)}
    words = {
        "type": "string",
        "title": "In your own words" if question.options else "Your answer",
        "maxLength": MAX_MESSAGE,
    }
    properties: dict[str, Any] = {}
    options = question.options
    if question.several:
        for number, option in enumerate(question.options, 1):
            properties[f"option_{number}"] = {
                "type": "boolean",
                "title": on_one_line(option),
                "default": False,
            }
    elif question.options:
        choice = {"type": "string", "title": "Your choice", "enum": list(options)}
        if (shown := [on_one_line(option) for option in options]) != list(options):
            choice["enumNames"] = shown
        properties["choice"] = choice
    properties["words"] = words
    required = [] if question.options else ["words"]
    schema = {"type": "object", "properties": properties, "required": required}
    return {"message": message, "requestedSchema": schema}


def _input_reply(question: Question, content: Mapping[str, Any], by: str) -> Answer:
    """The reply in the content of a request for input; a NO where it says nothing."""
    if question.form:
        return Answer(Verdict.YES, by=by, values=dict(content))
    words = content.get("words")
    message = words[:MAX_MESSAGE].strip() if isinstance(words, str) else ""
    options = question.options
    if question.several:
        chosen = tuple(one for n, one in enumerate(options, 1) if content.get(f"option_{n}") is True)
    else:
        chosen = tuple(one for one in options if one == content.get("choice"))
    return Answer(Verdict.YES if chosen or message else Verdict.NO, message, by, chosen=chosen)


def elicited(send: Send, *, by: str = "") -> Approver:
    """An approver that asks by elicitation. `send` sends a request with the given params and returns its result."""

    async def ask(question: Question) -> Answer | None:
        return answer_to(question, await send(elicitation(question)), by=by)

    return ask


def _offered(question: Question) -> tuple[str, ...]:
    """The possible decisions: "always" only if it would be remembered."""
    if question.strict:
        return ("yes", "no")
    offered = {"always_prefix": question.prefixes, "always_folder": question.folders}
    return tuple(name for name in DECISIONS if offered.get(name, True))


def _label(question: Question, decision: str) -> str:
    prefixes = ", ".join(" ".join(prefix) + " *" for prefix in question.prefixes)
    folders = ", ".join(f"{folder}/**" for folder in question.folders)
    return DECISIONS[decision][2].format(prefixes=on_one_line(prefixes), folders=on_one_line(folders))


def _message(question: Question) -> str:
    """What would run, every argument, repairs, and what would change. Continuation lines are indented."""
    lines = [f"{on_one_line(question.heading)}  ({question.effect}: {on_one_line(question.reason)})"]
    arguments = without_credentials(question.arguments)
    given = arguments if isinstance(arguments, dict) else {"arguments": arguments}
    for name, value in given.items():
        text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)
        lines.append(f"{on_one_line(str(name))}: {_indented(text)}")
    lines += [on_one_line(pattern) for pattern in question.patterns]
    if question.edits:
        lines += [f"repaired: {on_one_line(str(edit))}" for edit in question.edits]
    if question.preview:
        lines.append(f"what it does: {_indented(question.preview)}")
    return "\n".join(lines)


def _indented(text: str) -> str:
    return escape_invisible(text).replace("\n", "\n  | ")
