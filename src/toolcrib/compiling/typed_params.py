"""Params from a Python type, validated by Pydantic."""

from __future__ import annotations

import functools
import typing
from collections.abc import Mapping, Sequence
from typing import Any, Final, get_args, get_origin

from pydantic_core import SchemaValidator, ValidationError, core_schema, from_json, to_json

from toolcrib.compiling.core_schema import (
    core_schema_of,
    exact_floats,
    has_reference,
    has_type,
    strict,
    why_no_schema,
)
from toolcrib.compiling.key_count import key_counter, may_have_more_keys
from toolcrib.compiling.plain_types import plain_type
from toolcrib.compiling.signature import unresolvable
from toolcrib.compiling.slim import slim
from toolcrib.compiling.typed_dicts import modern
from toolcrib.compiling.unsaid import UNSAID, tell
from toolcrib.errors import FieldError, ToolDefinitionError
from toolcrib.json_text.values import has_decimal_text
from toolcrib.schema.canonical import clean

__all__ = ["TypedParams"]

# What is left out of a text to look at its numbers: all but digits, points, exponents, signs and separators.
OTHERS = bytes(byte for byte in range(256) if chr(byte) not in "0123456789.eE-,:")
PARTED = bytes.maketrans(b":E", b",e")  # with one separator for all
# With one digit for all and for points, to see at once whether there is a long number at all, and where.
ALIKE = bytes.maketrans(b"123456789.E", b"0000000000e")
LONG = b"0" * 16  # a float holds 15 digits
TINY = b"0e-0"  # 1e-400 is read as 0
NONE: Final[list[bytes]] = []


class TypedParams:
    """Params from a Python type, validated by Pydantic in strict JSON mode; unknown fields are errors."""

    def __init__(self, core: Any, raw: Any, *, tool: str, kind: Any) -> None:
        self._reserved: tuple[str, ...] = ()
        self._core = core if has_type(core, "float") else None
        self._validate_long: Any = None
        # Prebuilt validators of nested models would bring back what was tightened.
        self._validate = SchemaValidator(core, None, False).validate_json
        raw = slim(raw)
        named = raw.get("properties", {})
        self.unsaid: Mapping[str, Sequence[str]] = {
            name: node[UNSAID] for name, node in named.items() if UNSAID in node
        }
        self.schema = clean(tell(raw) if UNSAID in repr(raw) else raw)
        self.written_digits = has_decimal_text(self.schema)
        self._count_keys = None if self.written_digits else key_counter(core)
        # Where no number and no name needs a closer look, counting the keys is enough to see that none stood twice.
        self._count_alone = None if self._core is not None else self._count_keys
        self.schema.pop("description", None)  # a model's docstring is about the model; the tool has its own
        if self.schema.get("type") != "object":
            raise ToolDefinitionError(
                f"tool {tool!r}: params must be an object of named parameters, "
                f"got {self.schema.get('type') or kind!r}"
            )

    @classmethod
    def of_type(cls, kind: Any, *, tool: str, extras: str = "") -> TypedParams:
        """Params of a model, dataclass or TypedDict; its field `extras` has the type of all that are not named."""
        from toolcrib.compiling.json_schema import json_schema_of

        try:
            kind = modern(kind)
            core = strict(core_schema_of(kind))
            if extras:
                core = _field_as_extras(core, extras)
            raw = json_schema_of(core)
        except Exception as problem:
            raise ToolDefinitionError(f"tool {tool!r}: {_culprit(kind)}{why_no_schema(problem)}") from problem
        return cls(core, raw, tool=tool, kind=kind)

    @classmethod
    def of_fields(
        cls,
        fields: Mapping[str, tuple[Any, bool]],
        *,
        tool: str,
        extras: str = "",
        reserved: tuple[str, ...] = (),
    ) -> TypedParams:
        """Params of named fields, each given as (type, required), as a plain signature has them.

        The field `extras` has the type of further arguments of any name; `reserved` names are refused among those.
        The fields stand in a TypedDict, whose keys may have any name, also `schema`, `copy` or `_x`. If all
        types are plain ones, their compiled parts are reused between tools.
        """
        reused = None if extras else _plain_fields(fields)
        if reused is not None:
            return cls(*reused, tool=tool, kind=dict)
        import typing_extensions

        hints = {
            name: hint if required else typing_extensions.NotRequired[hint]
            for name, (hint, required) in fields.items()
        }
        build: Any = typing_extensions.TypedDict
        made = build("Arguments", hints)
        made.__pydantic_config__ = {"extra": "forbid"}
        params = cls.of_type(made, tool=tool, extras=extras)
        if extras and reserved:
            params._reserved, params._count_alone = reserved, None
        return params

    def parse(self, text: str | bytes) -> Any:
        given = self._validate(text or "{}", strict=True)
        count = self._count_alone
        if (
            count is not None
            and type(text) is str
            and "\\" not in text  # with escapes, there is probably a long string
            and text.count(":") == count(given)  # a colon in a string makes it more
        ):
            return given
        return self._looked_through(text, given)

    def _looked_through(self, text: str | bytes, given: Any) -> Any:
        """The params that were read from a text, after a closer look at its numbers and names. Raises ValueError."""
        tiny, long, integers, colons = False, NONE, False, -1  # numbers that a float may not hold
        if self._core is not None:
            numbers = (text.encode() if isinstance(text, str) else text).translate(None, OTHERS)
            alike = numbers.translate(ALIKE)
            colons = alike.count(b":")  # here there are fewer characters to look at
            tiny = alike.find(TINY) >= 0  # `in` takes three times as long: it first reads bytes as a number
            if alike.find(LONG) >= 0:
                found = _long_numbers(numbers, alike)
                long = [number for number in found if not number.isdigit()]
                integers = len(long) < len(found)
        if isinstance(text, str) and text:
            plain = (
                not tiny and (not long or _are_exact(long)) and self._has_no_key_twice(text, colons, given)
            )
            if not plain:
                from toolcrib.json_text.lenient_reader import reading_loses_nothing

                if not reading_loses_nothing(text, written_digits=self.written_digits):
                    raise ValueError("the text may say more than was read")
        if integers:
            given = self._exact_floats()(text, strict=True)
        if self._reserved and any(name in given for name in self._reserved):
            raise ValueError("a name that is not the model's to give")
        return given

    def _has_no_key_twice(self, text: str, colons: int, given: Any) -> bool:
        """Whether counting shows that no key stands twice in a text, which has so many colons if they were counted."""
        if self._count_keys is None:
            return False
        count = self._count_keys(given)
        return colons == count or not may_have_more_keys(text, count)

    def _exact_floats(self) -> Any:
        """The validator that refuses an integer for a float which cannot hold it; made when one is that long."""
        if self._validate_long is None:
            self._validate_long = SchemaValidator(exact_floats(self._core), None, False).validate_json
        return self._validate_long

    def explain(self, problem: ValueError, value: Any) -> tuple[FieldError, ...]:
        from toolcrib.compiling.failures import failure
        from toolcrib.field_errors import Failure, field_errors

        if self._reserved and isinstance(value, dict) and not isinstance(problem, ValidationError):
            reserved = (Failure((name,), "extra") for name in self._reserved if name in value)
            return field_errors(self.schema, value, reserved)
        if not isinstance(problem, ValidationError):
            return (FieldError("", "a JSON object", str(problem)),)
        errors = problem.errors(include_url=False, include_input=False)
        if any(error["type"] == "json_invalid" and not error["loc"] for error in errors):
            return (FieldError("", "a JSON object", "text that is not JSON"),)
        return field_errors(self.schema, value, map(failure, errors))


def _long_numbers(numbers: bytes, alike: bytes) -> list[bytes]:
    """What looks like a number of more digits than a float may hold, without its sign.

    `numbers` is a text without `OTHERS`, `alike` the same as `ALIKE` makes it.
    """
    parted = numbers.translate(PARTED) + b","
    find, size = parted.find, len(LONG)
    found: list[bytes] = []
    at = 0
    for before in map(len, alike.split(LONG)[:-1]):  # each part ends where digits begin
        at += before
        found.append(parted[at : find(b",", at + size)])
        at += size
    return found


def _are_exact(numbers: list[bytes]) -> bool:
    """Whether floats hold these numbers with all their digits, as far as that shows at once."""
    text = b"[%b]" % b",".join(numbers)
    try:
        return to_json(from_json(text)) == text
    except ValueError:
        return False


def _field_as_extras(core: Any, name: str) -> Any:
    """The core schema of a TypedDict in which one field is replaced by all keys that are not named."""
    if core["type"] == "definitions":
        return {**core, "schema": _field_as_extras(core["schema"], name)}
    fields = dict(core["fields"])
    return {
        **core,
        "fields": fields,
        "extra_behavior": "allow",
        "extras_schema": fields.pop(name)["schema"],
    }


def _plain_fields(fields: Mapping[str, tuple[Any, bool]]) -> tuple[Any, Any] | None:
    """Core schema and JSON Schema of fields whose types need no definitions; None if any type needs one."""
    field: Any = core_schema.typed_dict_field
    cores: dict[str, Any] = {}
    properties: dict[str, Any] = {}
    for name, (hint, required) in fields.items():
        try:
            # Equal unions may differ in order, which shows in the schema: the written type is part of the key.
            plain = _plain_type(hint, repr(hint))
        except Exception:  # unhashable, or unknown to Pydantic: `of_type` says which
            return None
        if plain is None:
            return None
        core, schema = plain
        nullable = required and core["type"] == "nullable"
        if nullable:
            core, schema = {"type": "default", "schema": core, "default": None}, {**schema, "default": None}
        cores[name] = field(core, required=required and not nullable)
        properties[name] = schema
    required_names = [name for name, made in cores.items() if made["required"]]
    raw: dict[str, Any] = {
        "type": "object",
        "properties": properties,
        "required": required_names,
        "additionalProperties": False,
    }
    return core_schema.typed_dict_schema(cores, extra_behavior="forbid"), raw


@functools.lru_cache(maxsize=1024)
def _plain_type(hint: Any, written: str) -> tuple[Any, Any] | None:
    """The strict core schema and the JSON Schema of a type; None if it needs definitions."""
    if (plain := plain_type(hint)) is not None:
        return strict(plain[0]), plain[1]
    from toolcrib.compiling.json_schema import json_schema_of

    core = strict(core_schema_of(hint))
    return None if has_reference(core) else (core, json_schema_of(core))


def _culprit(kind: Any) -> str:
    """The first parameter whose type cannot be compiled alone, as a prefix for the message."""
    from toolcrib.compiling.json_schema import json_schema_of

    unknown = unresolvable(kind)
    if unknown:
        return f"parameter {unknown!r}: "
    try:
        hints = typing.get_type_hints(kind, include_extras=True)
    except (TypeError, NameError):  # a text in the place of a type, or a type variable
        return ""
    for name, hint in hints.items():
        while get_origin(hint) in (typing.Required, typing.NotRequired):
            hint = get_args(hint)[0]
        try:
            json_schema_of(core_schema_of(hint))
        except Exception:
            return f"parameter {name!r}: "
    return ""
