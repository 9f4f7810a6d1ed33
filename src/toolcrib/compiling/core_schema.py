"""Pydantic's core schemas, made strict: what the arguments of a call are validated with."""

from __future__ import annotations

import re
from collections.abc import Callable, Generator, Iterable
from decimal import Decimal
from typing import Any, cast, get_args, get_origin, get_type_hints

from pydantic_core import (
    PydanticCustomError,
    PydanticKnownError,
    SchemaError,
    SchemaValidator,
    ValidationError,
    core_schema,
    from_json,
    to_json,
)

from toolcrib.compiling.python_input import BEFORE_VALIDATORS, JSON_READERS
from toolcrib.json_text.values import DECIMAL_TEXT, DURATION_TEXT, same_json

__all__ = [
    "core_schema_of",
    "exact_floats",
    "generators_as_lists",
    "has_reference",
    "has_type",
    "parts_of",
    "strict",
    "why_no_schema",
]

EXTRA_BEHAVIOUR = {"model-fields", "typed-dict", "dataclass-args"}
FIELDS = {"model-field", "typed-dict-field", "dataclass-field"}
# In the words of Pydantic, a type that it has no schema for, or no JSON Schema.
NO_JSON = re.compile(
    r"Unable to generate pydantic-core schema for (.+?)\. Set `arbitrary"
    r"|Cannot generate a JsonSchema for core_schema\.(?:IsInstanceSchema \((.+)\)|(\w+?)Schema\b)",
    re.DOTALL,
)
IS_NO_JSON = "cannot be written as JSON"
DECIMAL = re.compile(DECIMAL_TEXT)
DURATION = re.compile(DURATION_TEXT)
# Keys of a core schema that hold data or objects, never schemas.
NOT_SCHEMA = {
    "cls",
    "config",
    "default",
    "default_factory",
    "expected",
    "function",
    "metadata",
    "serialization",
}
# Keys of a core schema whose value maps names of users, which may be any (also "default"), to schemas.
BY_NAME = {"fields", "choices"}


def core_schema_of(hint: Any) -> Any:
    """Pydantic's core schema of a type of params. Raises what Pydantic raises, and TypeError for a Generator."""
    from pydantic import TypeAdapter

    adapter: Any = TypeAdapter(hint)
    if not isinstance(adapter.core_schema, dict):  # a name in it could not be resolved yet
        adapter.rebuild(force=True)
    if has_type(adapter.core_schema, "generator") and (steps := _generator_in(hint, set())):
        raise TypeError(f"{steps} cannot be read from JSON: write Iterable or list; the tool is given a list")
    return adapter.core_schema


def _generator_in(hint: Any, seen: set[type]) -> Any:
    """The first Generator in a type or in the types of its fields, or None. Pydantic takes one for an Iterable."""
    kind = get_origin(hint) or hint
    if kind is Generator:
        return hint
    parts = list(get_args(hint))
    if isinstance(kind, type) and kind not in seen:
        seen.add(kind)
        try:
            hints = get_type_hints(kind, include_extras=True).items()
            parts += [part for name, part in hints if not name.startswith("_")]  # those are no fields
        except Exception:  # it names a type that is only known to Pydantic
            pass
    return next(filter(None, (_generator_in(part, seen) for part in parts)), None)


def why_no_schema(problem: Exception) -> str:
    """Why a type has no schema, without what Pydantic says of its own settings and documentation."""
    text = str(problem)
    unknown = NO_JSON.match(text)
    if unknown is None:
        return text.partition("\n\nFor further information")[0]
    kind = next(filter(None, unknown.groups()))
    return (
        f"{kind} {IS_NO_JSON}: use texts, numbers, lists, dicts, dataclasses, TypedDicts or Pydantic models"
    )


def has_type(core: Any, kind: str) -> bool:
    """Whether a core schema has a part of this type."""
    own = isinstance(core, dict) and core.get("type") == kind
    return own or any(has_type(part, kind) for part in parts_of(core))


def parts_of(core: Any) -> Iterable[Any]:
    """The schemas, and lists of them, directly inside a core schema or such a list; no data, such as a default."""
    if isinstance(core, list | tuple):
        return core
    parts: list[Any] = []
    for key, item in core.items() if isinstance(core, dict) else ():
        if key in BY_NAME and isinstance(item, dict):
            parts += item.values()
        elif isinstance(item, (dict, list, tuple)) and key not in NOT_SCHEMA:
            parts.append(item)
    return parts


def _with_parts(core: Any, change: Callable[[Any], Any]) -> Any:
    """A core schema or a list of them in which each of `parts_of` is changed."""
    if isinstance(core, list):
        return [change(item) for item in core]
    if isinstance(core, tuple):  # tagged choices are (schema, label)
        return tuple(change(item) for item in core)
    if not isinstance(core, dict):
        return core
    return {
        key: {name: change(item) for name, item in value.items()}
        if key in BY_NAME and isinstance(value, dict)
        else value
        if key in NOT_SCHEMA
        else change(value)
        for key, value in core.items()
    }


def has_reference(core: Any) -> bool:
    """Whether a core schema has definitions that other parts of it refer to."""
    if isinstance(core, dict):
        return "ref" in core or "definitions" in core or any(has_reference(item) for item in core.values())
    return isinstance(core, list | tuple) and any(has_reference(item) for item in core)


def strict(core: Any) -> Any:
    """A core schema that drops nothing unknown, lets `X | None` be left out, and takes only finite numbers.

    What a type says itself (`extra="allow"`, a default, `allow_inf_nan=True`) stays as it says.
    """
    new = _strict(core)
    return _reading_json(new) if any(has_type(core, kind) for kind in BEFORE_VALIDATORS) else new


def _reading_json(core: Any) -> Any:
    """A core schema of which each part also takes what JSON has in the place of its Python type."""
    new = _with_parts(core, _reading_json)
    make = JSON_READERS.get(str(new.get("type"))) if isinstance(new, dict) else None
    return new if make is None else make(new)


def _strict(core: Any) -> Any:
    new = _with_parts(core, _strict)
    if not isinstance(new, dict):
        return new
    kind = new.get("type")
    if kind in EXTRA_BEHAVIOUR:
        # Pydantic writes "ignore" for what a TypedDict leaves open; only its config says what it meant.
        undecided = new.get("extra_behavior", "ignore") == "ignore"
        if undecided and "extra_fields_behavior" not in (new.get("config") or {}):
            new["extra_behavior"] = "forbid"
    elif kind in ("model", "dataclass"):
        behaviour = (new.get("config") or {}).get("extra_fields_behavior")
        if behaviour:
            new["schema"] = _with_extras(new.get("schema"), behaviour)
    elif kind in FIELDS:
        inner = new.get("schema")
        if isinstance(inner, dict) and inner.get("type") == "nullable":
            if kind == "typed-dict-field" and not new.get("required"):
                return new  # a key that may be missing stays missing
            new["schema"] = {"type": "default", "schema": inner, "default": None}
            if kind == "typed-dict-field":
                new["required"] = False
    elif kind in SPELLED:
        return SPELLED[kind](new)
    elif (keys := core.get("keys_schema", {})).get("type") in KEYS:
        new["keys_schema"] = _key(keys)
    elif _may_repeat(keys):
        return _with_distinct_keys(new)
    elif kind == "generator":  # of Iterable[X]: Pydantic would validate each item only when the tool reads it
        new["type"] = "list"
    elif kind == "time":
        new["microseconds_precision"] = "error"
    elif kind == "float" and "allow_inf_nan" not in new:
        new["allow_inf_nan"] = False
    return new


def _with_extras(core: Any, behaviour: str) -> Any:
    """The schema of a class's fields, with its config's rule for further ones; validators may wrap the fields."""
    if not isinstance(core, dict):
        return core
    if core.get("type") in EXTRA_BEHAVIOUR:
        return {**core, "extra_behavior": behaviour}
    if str(core.get("type")).startswith("function-"):
        return {**core, "schema": _with_extras(core.get("schema"), behaviour)}
    return core


def generators_as_lists(core: Any) -> Any:
    """A core schema with a list for each Iterable, whose items Pydantic would check only when they are read."""
    new = _with_parts(core, generators_as_lists)
    return {**new, "type": "list"} if isinstance(new, dict) and new.get("type") == "generator" else new


def exact_floats(core: Any) -> Any:
    """A core schema whose floats refuse an integer that no float can hold."""
    new = _with_parts(core, exact_floats)
    if not isinstance(new, dict) or new.get("type") != "float":
        return new

    def check(given: Any) -> Any:
        if type(given) is int and int(float(given)) != given:
            raise ValueError("a number of at most 15 digits")
        return given

    return core_schema.no_info_before_validator_function(check, cast("Any", new))


def _text_form(core: Any, form: re.Pattern[str], words: str) -> Any:
    """A type that is given as text of one form only; `words` say which."""
    read = SchemaValidator(core).validate_json

    def check(given: Any) -> Any:
        if not isinstance(given, str) or not form.fullmatch(given):
            raise ValueError(words)
        return read(to_json(given), strict=True)

    return _shown_as(core, check)


def _key(core: Any) -> Any:
    """A key that is a number or a boolean, in one spelling only: "1" and "01" would become the same key."""
    form, make = KEYS[core["type"]]
    error = PydanticKnownError(cast("Any", f"{core['type']}_parsing"))
    read = SchemaValidator(core).validate_python

    def check(given: Any) -> Any:
        if not form.fullmatch(given) or given == "-0":
            raise error
        try:
            key = make(given)
        except ValueError:
            raise error from None
        return read(key)

    made = _shown_as(core, check)
    made["metadata"]["key_type"] = core["type"]
    return made


def _may_repeat(keys: Any) -> bool:
    """Whether two texts may be read as the same key, by the core schema of a map's keys."""
    kind = keys.get("type")
    if kind in ("union", "nullable"):
        members = keys.get("choices") or [keys["schema"]]
        return any(_may_repeat(member[0] if isinstance(member, tuple) else member) for member in members)
    return kind not in ONE_SPELLING or any(keys.get(change) for change in CHANGES)


def _with_distinct_keys(core: Any) -> Any:
    """A map that refuses two spellings of one key; Pydantic would keep only the value of the last.

    Each key is a pair with its spelling until the map has been read. A function around the map could not do that: it
    would hand on Python's objects, of which strict validation takes fewer than of JSON.
    """
    keys = core["keys_schema"]
    try:
        explain = SchemaValidator(keys, None, False).validate_strings
        read = SchemaValidator({"type": "dict", "keys_schema": keys}, None, False).validate_json
    except SchemaError:  # it refers to a definition that is elsewhere
        return core

    def check_key(written: Any) -> Any:
        try:
            (key,) = read(to_json({written: None}), strict=True)  # of int | str, a key of JSON is the text
        except ValidationError:
            explain(written, strict=True)  # the same words, without the key in their path once more
            raise
        return written, key

    def check_map(read_map: Any) -> Any:
        distinct: dict[Any, str] = {}
        for written, key in read_map:
            if key in distinct:
                spellings = " and ".join(to_json(text).decode() for text in (distinct[key], written))
                raise ValueError(f"without two spellings of one key: {spellings} are the same")
            distinct[key] = written
        entries = [(key, value) for (_, key), value in read_map.items()]
        read_map.clear()  # and not made anew, as what makes a defaultdict or a Counter takes no such entries
        for key, value in entries:
            read_map[key] = value
        return read_map

    if keys["type"] == "function-plain":  # its metadata say already how JSON Schema shows it
        key = {**keys, "function": {"type": "no-info", "function": check_key}}
    else:
        key = _shown_as(keys, check_key)
        key["metadata"]["key_type"] = keys["type"]
    inner: Any = {**core, "keys_schema": key}
    return core_schema.no_info_after_validator_function(check_map, inner, ref=inner.pop("ref", None))


def _decimal(core: Any) -> Any:
    """A decimal as a JSON number, or as a text that is spelled like one; Pydantic takes "1_000" and " 1 " too."""
    read = SchemaValidator(core).validate_python

    def check(given: Any) -> Any:
        if type(given) not in (str, int, float) or (type(given) is str and not DECIMAL.fullmatch(given)):
            raise ValueError('a number, or a number as text such as "12.50"')
        return read(Decimal(repr(given) if type(given) is float else given))

    return _shown_as(core, check)


def _literal(core: Any) -> Any:
    """Literals that do not take true for 1, as Python and Pydantic do."""
    if not any(isinstance(item, int) for item in core["expected"]):
        return core

    def check(given: Any) -> Any:
        for item in core["expected"]:
            if same_json(getattr(item, "value", item), given):
                return item
        raise PydanticCustomError("literal_error", "one of the allowed values")

    return _shown_as(core, check)


def _enum(core: Any) -> Any:
    """An enum in which true is not the member of 1."""
    values = [member.value for member in core["members"]]
    if not any(isinstance(value, int) for value in values):
        return core

    def check(given: Any) -> Any:
        if type(given) is bool and not any(given is value for value in values):
            raise PydanticCustomError("enum", "one of the allowed values")
        return given

    ref = core.get("ref")
    inner = {key: value for key, value in core.items() if key != "ref"}
    return core_schema.no_info_before_validator_function(check, cast("Any", inner), ref=ref)


def _json(core: Any) -> Any:
    """JSON within a text. As in the arguments around it, no key, digit or infinity may be lost."""

    def check(given: Any) -> Any:
        from toolcrib.json_text.lenient_reader import read_strict_json

        try:
            from_json(given)
        except (ValueError, TypeError):  # Pydantic says what is wrong
            return given
        read_strict_json(given)
        return given

    return core_schema.no_info_before_validator_function(check, core)


def _path(core: Any) -> Any:
    """A path that is not empty: Python reads an empty one as the current folder."""
    if (
        core.get("schema", {}).get("type") != "str"
        or "path_validator" not in core["function"]["function"].__qualname__
    ):
        return core
    return {**core, "schema": {"min_length": 1, **core["schema"]}}


def _shown_as(core: Any, check: Any) -> Any:
    """A validator with the JSON Schema of a core schema, and with what its author says in a `Field`."""
    told: Any = core.get("metadata") or {}
    functions = [lambda _, handler: handler(core), *told.get("pydantic_js_functions", ())]
    shown: Any = {**told, "pydantic_js_functions": functions}
    return core_schema.no_info_plain_validator_function(check, metadata=shown)


def _float(text: str) -> float:
    from toolcrib.json_text.lenient_grammar import exact_number

    return float(exact_number(text))


# Types of keys that have one spelling each, unless something changes a text; all others may have several.
ONE_SPELLING = {None, "any", "str", "literal", "enum", "bytes", "date"}
CHANGES = ("strip_whitespace", "to_lower", "to_upper", "missing")
KEYS: dict[str, tuple[re.Pattern[str], Callable[[str], Any]]] = {
    "int": (re.compile(r"-?(0|[1-9][0-9]*)"), int),
    "float": (re.compile(r"-?(0|[1-9][0-9]{0,14})(\.[0-9]*[1-9])?"), _float),
    "decimal": (re.compile(r"-?(0|[1-9][0-9]*)(\.[0-9]*[1-9])?"), Decimal),
    "bool": (re.compile("true|false"), "true".__eq__),
}
SPELLED: dict[str, Callable[[Any], Any]] = {
    "date": lambda core: _text_form(
        core, re.compile(r"\d{4}-\d\d-\d\d"), "a date in the form 2024-12-31"
    ),  # Pydantic reads "2024" as seconds since 1970, even strictly
    "datetime": lambda core: _text_form(
        {**core, "microseconds_precision": "error"},
        re.compile(r"\d{4}-\d\d-\d\d[Tt _]\d.*"),
        "a date and time in the form 2024-12-31T23:59:59",
    ),
    "timedelta": lambda core: _text_form(
        {**core, "microseconds_precision": "error"},
        DURATION,
        "a duration in weeks, days, hours, minutes and seconds in the form P1DT2H30M",
    ),
    "decimal": _decimal,
    "literal": _literal,
    "enum": _enum,
    "json": _json,
    "function-after": _path,
}
