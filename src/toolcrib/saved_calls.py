"""Prepared calls as JSON data, to be answered and executed later, perhaps by another process."""

from __future__ import annotations

from typing import Any

from toolcrib.call import FORMAT, CallKey, ToolCall
from toolcrib.fingerprint import fingerprint
from toolcrib.prepared import Pending, Prepared, Ready, Refused
from toolcrib.result import ToolResult

__all__ = ["prepared_from_json", "prepared_to_json"]


def prepared_to_json(prepared: Prepared) -> dict[str, Any]:
    """A prepared call as plain JSON data, with a format version; `Toolbox.restore` reads it back.

    The live tool is not part of it: another process resolves and validates the call again and
    refuses to run it if the fingerprint differs. A call that has its result already is saved with that, as
    Refused: a call that was denied or has run does not run when it is restored.
    """
    call, done = prepared.call, prepared.execution.result
    if isinstance(prepared, Refused):
        done = prepared.result
    data: dict[str, Any] = {
        "format": FORMAT,
        "kind": prepared.kind if done is None else Refused.kind,
        "key": list(prepared.key),
        "call": {"name": call.name, "arguments": call.arguments, "id": call.id, "extras": dict(call.extras)},
    }
    if call.problem:
        data["call"]["problem"] = call.problem
    if done is not None:
        return {**data, "result": done.to_dict()}
    assert not isinstance(prepared, Refused)
    data |= {
        "arguments": prepared.arguments,
        "effect": prepared.effect.label,
        "fingerprint": fingerprint_of(prepared),
    }
    if isinstance(prepared, Pending):
        question = prepared.question
        data |= {"reason": question.reason, "digest": question.digest, "strict": question.strict}
    return data


def fingerprint_of(prepared: Ready | Pending) -> str:
    """The fingerprint of a prepared call, worked out where nobody has needed it yet."""
    return prepared.fingerprint or fingerprint(prepared.tool.definition.identity, prepared.arguments)


def prepared_from_json(data: Any) -> tuple[ToolCall, CallKey, str, ToolResult | None]:
    """What `prepared_to_json` wrote: call, key, fingerprint, and the result of a refused one.

    ValueError, saying what was expected, for anything else.
    """
    found = data.get("format") if isinstance(data, dict) else type(data).__name__
    if found != FORMAT:
        raise ValueError(f"expected a prepared call of format {FORMAT}, got {found!r}")
    try:
        call = ToolCall(**data["call"])
        texts = (call.name, call.id, call.problem, *call.extras.keys())
        if not all(isinstance(text, str) for text in texts) or not isinstance(call.arguments, str | dict):
            raise TypeError("name, id and problem are texts, the arguments a text or an object")
        run, turn, index = data["key"]
        result = ToolResult.from_dict(data["result"]) if data["kind"] == "refused" else None
        return call, CallKey(str(run), int(turn), int(index)), str(data.get("fingerprint", "")), result
    except (AttributeError, KeyError, OverflowError, TypeError, ValueError) as problem:
        raise ValueError(f"the saved call is not whole: {problem}") from None
