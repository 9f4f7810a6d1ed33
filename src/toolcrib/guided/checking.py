"""Checks a value against a constraint as it was given, whatever a server was sent of it."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from toolcrib.errors import FieldError
from toolcrib.guided.constraints import Choice, Grammar, Regex, Tags, ToolCalls
from toolcrib.guided.json_schema import JsonSchema

__all__ = ["check"]

SHOWN = 80  # characters of a wrong text that are shown


def check(constraint: Any, value: Any) -> tuple[FieldError, ...]:
    """What is wrong with a value by a constraint; empty if it fits."""
    if isinstance(constraint, JsonSchema):
        return constraint.validate(value)
    if isinstance(constraint, ToolCalls):
        from toolcrib.guided.merged import merged_schema, without_broken

        return JsonSchema(merged_schema(without_broken(constraint)[0], bounded=False)).validate(value)
    if not isinstance(value, str):
        return (FieldError("", "a text", _shown(value)),)
    if isinstance(constraint, Choice):
        if value in constraint.options:
            return ()
        return (FieldError("", "one of the options", _shown(value), constraint.options),)
    if isinstance(constraint, Regex):
        if _matches(constraint.pattern, value):
            return ()
        return (FieldError("", f"a text that matches {constraint.pattern} as a whole", _shown(value)),)
    if isinstance(constraint, Grammar):
        return _check_grammar(constraint, value)
    assert isinstance(constraint, Tags)
    return _check_tags(constraint, value)


def _matches(pattern: str, text: str) -> bool:
    """Whether a pattern matches a whole text. Python's own engine could take exponential time, since it backtracks."""
    from toolcrib.guided.regex_tree import regex_tree

    known = _linear(pattern)
    if known is not None:
        return bool(known.isinstance_python(text))
    from toolcrib.guided.recognise import first_wrong

    return first_wrong({"root": regex_tree(pattern)}, "root", text) is None


@lru_cache(maxsize=64)
def _linear(pattern: str) -> Any:
    """Rust's engine for a pattern; None where the pattern is too large for it."""
    from pydantic_core import SchemaError, SchemaValidator, core_schema

    from toolcrib.guided.regex_tree import regex_text, regex_tree

    whole = f"^({regex_text(regex_tree(pattern))})$"
    try:
        return SchemaValidator(core_schema.str_schema(pattern=whole, regex_engine="rust-regex", strict=True))
    except SchemaError:
        return None


def _check_grammar(constraint: Grammar, value: str) -> tuple[FieldError, ...]:
    from toolcrib.guided.grammar_text import read_grammar
    from toolcrib.guided.recognise import first_wrong

    rules = read_grammar(constraint.text, constraint.syntax, constraint.start)
    at = first_wrong(rules, constraint.start, value)
    if at is None:
        return ()
    got = f"{_shown(value[at:])} at character {at}" if at < len(value) else "a text that ends too early"
    return (FieldError("", "a text of the grammar", got),)


def _check_tags(constraint: Tags, value: str) -> tuple[FieldError, ...]:
    """Each tag in the text, from trigger to trigger."""
    from toolcrib.json_text.lenient_reader import read_strict_json

    errors: list[FieldError] = []
    found, at = 0, 0
    while (start := _next_trigger(constraint, value, at)) >= 0:
        tag = next((tag for tag in constraint.tags if value.startswith(tag.begin, start)), None)
        if tag is None:
            errors.append(FieldError("", "a known tag", _shown(value[start:])))
            at = start + 1
            continue
        inside = start + len(tag.begin)
        end = value.find(tag.end, inside)
        content = _json_before(value, tag.end, inside, read_strict_json)
        if content is None:
            errors.append(FieldError("", f"JSON, then {tag.end!r}", _shown(value[inside:])))
            at = inside if end < 0 else end
            continue
        found += 1
        errors += JsonSchema(tag.schema).validate(content[0])
        at = content[1]
    if constraint.at_least_one and not found:
        errors.append(FieldError("", "at least one tag", "none"))
    if found > 1 and not constraint.several:
        errors.append(FieldError("", "at most one tag", f"{found}"))
    return tuple(errors)


def _json_before(value: str, end: str, start: int, read: Any) -> tuple[Any, int] | None:
    """The JSON from a place to one of the marks after it, which may also stand in a string; and where it ends."""
    at = value.find(end, start)
    while at >= 0:
        try:
            return read(value[start:at]), at + len(end)
        except ValueError:
            at = value.find(end, at + 1)
    return None


def _next_trigger(constraint: Tags, value: str, at: int) -> int:
    places = [place for trigger in constraint.triggers if (place := value.find(trigger, at)) >= 0]
    return min(places, default=-1)


def _shown(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= SHOWN else f"{text[:SHOWN]}…"
