"""The first phase of a call's path, without effects: resolve, decode, validate, decide, precheck."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from toolcrib.call import CallKey, ToolCall
from toolcrib.effect import Effect
from toolcrib.errors import ErrorCode
from toolcrib.fingerprint import fingerprint
from toolcrib.prepared import Pending, Prepared, Ready, Refused, ResolvedTool
from toolcrib.question import Question
from toolcrib.toolbox import model_messages
from toolcrib.toolbox.approvals import prefixes_of
from toolcrib.toolbox.policy import BY_EFFECT, AutonomyPolicy, Decision, PolicyRequest, Verb, accesses_of
from toolcrib.toolbox.provenance import NOTHING, Provenance

if TYPE_CHECKING:
    from toolcrib.compiling.definition import Definition
    from toolcrib.repair import Edit
    from toolcrib.result import ToolResult
    from toolcrib.toolbox.tool_list import ToolList


# Looked up once: an enum's members are slow to reach on 3.11.
ASK, DENY, READ, WRITE = Verb.ASK, Verb.DENY, Effect.READ, Effect.WRITE

BLANK = ("", "b''", ".")  # what an empty string looks like as text, bytes and path
NOT_THERE = object()

Arguments = tuple[Any, Any, "tuple[Edit, ...]"]
"""Decoded arguments: the validated params, their JSON form (text or data), and the repairs they needed."""


def decode(name: str, raw: Any, definition: Definition, tool_list: ToolList | None) -> Arguments | ToolResult:
    """Validated params of what the model wrote, repaired only where strict validation fails; or the refusal."""
    params = definition.params
    turn_schema = (
        tool_list.turn_schemas.get(name) if tool_list is not None and tool_list.turn_schemas else None
    )
    if type(raw) is str and turn_schema is None:
        try:
            given = params.parse(raw)
        except (ValueError, TypeError):  # the latter for half a surrogate pair in the text
            pass
        else:
            names = definition.optional_text
            plain = not names or not _has_blank(given, names, raw)
            if plain and (definition.facts.effect is READ or not _repeats_a_key(raw)):
                return given, raw, ()
    return _decode_with_care(name, raw, definition, turn_schema)


def _repeats_a_key(text: str) -> bool:
    """Whether an object in the text gives one key two values: which is meant, nobody knows."""
    import json

    from toolcrib.json_text.values import same_json

    def look(pairs: list[tuple[str, Any]]) -> None:
        seen: dict[str, Any] = {}
        for key, value in pairs:
            if not same_json(seen.setdefault(key, value), value):
                raise _Repeated

    try:
        json.loads(text or "{}", object_pairs_hook=look)
    except _Repeated:
        return True
    return False


class _Repeated(Exception):
    pass


def _has_blank(given: Any, names: tuple[str, ...], raw: str) -> bool:
    """Whether an optional parameter may have come as an empty string, which means that it is absent."""
    for name in names:
        value = given.get(name) if type(given) is dict else getattr(given, name, NOT_THERE)
        if value is NOT_THERE:  # it goes by another name in Python: look at the text
            return '""' in raw
        if value is not None and str(value) in BLANK:
            return True
    return False


def _decode_with_care(
    name: str, raw: Any, definition: Definition, turn_schema: Any
) -> Arguments | ToolResult:
    """The slow way: empty optionals dropped, then strict, then repaired and strict once more."""
    from pydantic_core import from_json, to_json

    from toolcrib.repair import Unrepairable, drop_empty_optionals, repair

    params = definition.params
    schema = (turn_schema or params).schema

    def validated(value: Any) -> Any:
        text = to_json(value, inf_nan_mode="constants")
        given = params.parse(text)
        if turn_schema is not None:
            turn_schema.validate(value)
        return given

    try:
        value = from_json(raw or "{}", allow_inf_nan=False) if isinstance(raw, str | bytes) else raw
        clear = definition.facts.effect is READ or not isinstance(raw, str) or not _repeats_a_key(raw)
        if isinstance(value, dict) and clear:
            value = drop_empty_optionals(value, schema)
            return validated(value), value, ()
    except (ValueError, TypeError, RecursionError):
        pass
    repaired = repair(raw, schema)
    if isinstance(repaired, Unrepairable):
        return model_messages.unreadable_arguments(name, repaired.reason)
    if other := _meant_for(repaired.edits, name):
        return model_messages.unreadable_arguments(
            name, f"They are wrapped in a call of another tool, {other}."
        )
    value = repaired.value
    if isinstance(value, dict):
        value = drop_empty_optionals(value, schema)
    try:
        return validated(value), value, repaired.edits
    except (ValueError, RecursionError) as problem:
        fields = params.explain(problem, value) if isinstance(problem, ValueError) else ()
        if turn_schema is not None and not any(field.path for field in fields):
            fields = turn_schema.explain(problem, value)
        return model_messages.invalid_arguments(name, fields)


def _meant_for(edits: tuple[Edit, ...], name: str) -> str:
    """The tool that a wrapper around the arguments names, if it is not the one that was called."""
    for edit in edits:
        if edit.kind == "unwrapped" and isinstance(edit.before, dict):
            named = edit.before.get("name") or name
            return "" if named == name else str(named)
    return ""


def call_effect(bound: ResolvedTool, params: Any) -> Effect:
    """The effect of this call: what the tool says of its params, never more than it declared."""
    declared: Effect = bound.definition.facts.effect
    try:
        said = bound.definition.effect_for(bound.tool, params)
        return min(said, declared) if isinstance(said, Effect) else declared
    except Exception:
        import logging

        logging.getLogger("toolcrib").exception("effect_for of tool %s failed", bound.entry.name)
        return declared


def prechecked(bound: ResolvedTool, params: Any, name: str) -> ToolResult | None:
    """The tool's own refusal, or None."""
    reason = bound.definition.precheck(bound.tool, params)
    return model_messages.precheck(name, reason) if reason else None


def needs_question(decision: Decision, effect: Effect, edits: tuple[Edit, ...]) -> str:
    """Why a person must be asked, or "": a policy's ASK, or repaired syntax of a call that changes something."""
    if decision.verb is ASK:
        return decision.reason
    if effect is not READ and any(edit.is_syntax for edit in edits):
        return "its arguments were not valid JSON and had to be repaired"
    return ""


def doubted(bound: ResolvedTool, params: Any, reason: str) -> str:
    """Why a person must be asked, with what the tool says of the call; a tool that cannot tell asks."""
    try:
        said = bound.definition.hooks["doubt"](bound.tool, params)
        if said is None or not (reason or said.must_ask):
            return reason
        if reason in BY_EFFECT:
            reason = "" if said.reason else reason
        return f"{reason}: {said.reason}" if reason else said.reason or "its tool wants a person to decide"
    except Exception:
        import logging

        logging.getLogger("toolcrib").exception("doubt of tool %s failed", bound.entry.name)
        return reason or "its tool could not say whether it is harmless"


def judged(
    call: ToolCall,
    key: CallKey,
    bound: ResolvedTool,
    arguments: Arguments,
    policy: Any,
    approvals: Any,
    origin: Provenance = NOTHING,
) -> Prepared:
    """Decide, precheck, and make of it Ready, Pending or Refused."""
    params, json, edits = arguments
    definition = bound.definition
    if definition.unavailable is not None and (why := definition.unavailable(bound.tool)):
        return Refused(call, key, model_messages.denied(call.name, why))
    effect = definition.facts.effect if definition.effect_for is None else call_effect(bound, params)
    ready = Ready(call, key, json, effect, edits, "", bound, params)
    if type(policy) is AutonomyPolicy and (
        not policy.looks or effect > WRITE or "accesses" not in definition.hooks
    ):
        decision = policy.by_effect[effect]
    else:
        decision = policy.decide(
            PolicyRequest(definition.facts, effect, ready, taint=origin.taint, user_texts=origin.user_texts)
        )
        ready.why = decision.rule
    asks = decision.verb is ASK
    if not asks and decision.verb is DENY:
        return Refused(call, key, model_messages.denied(call.name, decision.reason))
    if definition.precheck is not None and (refusal := prechecked(bound, params, call.name)) is not None:
        return Refused(call, key, refusal)
    reason = needs_question(decision, effect, edits) if asks or edits else ""
    if "doubt" in definition.hooks:
        reason = doubted(bound, params, reason)
    if not reason:
        return ready
    identity = bound.definition.identity
    # An answer is about what a name leads to, not about what it may lead to later.
    leads = [access.target for access in accesses_of(ready) or () if access.real]
    mark = fingerprint(identity, [*leads, ready.arguments] if leads else ready.arguments)

    def reached() -> Any:
        return accesses_of(ready)

    if not decision.strict and approvals.covers(key.run, bound.entry, mark, identity, reached):
        ready.fingerprint = mark
        ready.approved = True
        ready.why = "approved before"
        return ready
    pending = Pending(
        call,
        key,
        ready.arguments,
        effect,
        edits,
        mark,
        bound,
        params,
        question=Question(
            key=key,
            tool=call.name,
            action=f"run {call.name}",
            reason=reason,
            arguments=ready.arguments,
            effect=effect.label,
            fingerprint=mark,
            edits=edits,
            prefixes=() if decision.strict else prefixes_of(reached()),
            strict=decision.strict,
        ),
    )
    pending.accesses = ready.accesses
    return pending


def is_invalid(prepared: Prepared) -> bool:
    return isinstance(prepared, Refused) and prepared.result.code is ErrorCode.INVALID_ARGUMENTS
