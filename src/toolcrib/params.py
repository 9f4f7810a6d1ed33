"""The one source of a tool's arguments: a Python type or a raw JSON Schema, behind one small protocol."""

from __future__ import annotations

import functools
import re
import sys
import typing
from collections.abc import Iterator, Mapping
from typing import Any, Protocol, get_args, get_origin

from toolcrib.errors import FieldError, ToolDefinitionError
from toolcrib.explain import field_errors

EXTRA_BEHAVIOUR = {"model-fields", "typed-dict", "dataclass-args"}
FIELDS = {"model-field", "typed-dict-field", "dataclass-field"}
DATES = {"date": re.compile(r"\d{4}-\d\d-\d\d"), "datetime": re.compile(r"\d{4}-\d\d-\d\d[Tt _]\d.*")}
DATE_FORMS = {"date": "2024-12-31", "datetime": "2024-12-31T23:59:59"}
NUMBER = re.compile(r"\s*[-+]?[0-9.]+(e[-+]?[0-9]+)?\s*", re.IGNORECASE)
DATA = {"default", "const", "enum", "examples"}  # keys of a JSON Schema that hold data
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


class Params(Protocol):
    """What the box needs of a params source. `schema` is the canonical JSON Schema of the arguments."""

    schema: dict[str, Any]

    def parse(self, text: str | bytes) -> Any:
        """The validated params of a JSON text, strictly; raises ValueError where it does not fit."""

    def explain(self, problem: ValueError, value: Any) -> tuple[FieldError, ...]:
        """Every failing place, for a problem that `parse` raised on the JSON text of `value`."""
        ...


class TypedParams:
    """Params from a Python type, validated by Pydantic in strict JSON mode; unknown fields are errors."""

    def __init__(self, core: Any, raw: Any, *, tool: str, kind: Any) -> None:
        from pydantic_core import SchemaValidator

        from toolcrib.schema import clean

        self._reserved: tuple[str, ...] = ()
        self._takes_anything = _mentions(core, "any")
        # Prebuilt validators of nested models would bring back what was tightened.
        self._validate = SchemaValidator(core, None, False).validate_json
        self.schema = clean(_slimmed(raw))
        self.schema.pop("description", None)  # a model's docstring is about the model; the tool has its own
        if self.schema.get("type") != "object":
            raise ToolDefinitionError(
                f"tool {tool!r}: params must be an object of named parameters, "
                f"got {self.schema.get('type') or kind!r}"
            )

    @classmethod
    def of_type(cls, kind: Any, *, tool: str, extras: Any = None) -> TypedParams:
        """Params of a model, dataclass or TypedDict; `extras` is the type of fields that are not named."""
        try:
            kind = modern(kind)
            core = _strictened(core_schema_of(kind))
            if extras is not None:
                core = {**core, "extra_behavior": "allow", "extras_schema": core_schema_of(extras)}
            raw = _schema_generator()().generate(core, mode="validation")
        except Exception as problem:
            raise ToolDefinitionError(f"tool {tool!r}: {_culprit(kind)}{problem}") from problem
        return cls(core, raw, tool=tool, kind=kind)

    @classmethod
    def of_fields(
        cls,
        fields: Mapping[str, tuple[Any, bool]],
        *,
        tool: str,
        extras: Any = None,
        reserved: tuple[str, ...] = (),
    ) -> TypedParams:
        """Params of named fields, each a (type, required): what a plain signature gives.

        Where other names may come, as `extras`, `reserved` ones may not.
        They stand in a TypedDict, whose keys may have any name, also `schema`, `copy` or `_x`. Where all
        types are plain ones, what was compiled for earlier tools serves again.
        """
        known = None if extras is not None else _from_plain(fields)
        if known is not None:
            return cls(*known, tool=tool, kind=dict)
        import typing_extensions

        hints = {
            name: hint if required else typing_extensions.NotRequired[hint]
            for name, (hint, required) in fields.items()
        }
        build: Any = typing_extensions.TypedDict
        made = build("Arguments", hints)
        made.__pydantic_config__ = {"extra": "forbid"}
        params = cls.of_type(made, tool=tool, extras=extras)
        params._reserved = reserved if extras is not None else ()
        return params

    def parse(self, text: str | bytes) -> Any:
        given = self._validate(text or "{}", strict=True)
        if self._takes_anything:  # only there NaN and Infinity pass, which are no JSON
            _json_reader()(text or "{}", allow_inf_nan=False)
        if self._reserved and any(name in given for name in self._reserved):
            raise ValueError("a name that is not the model's to give")
        return given

    def explain(self, problem: ValueError, value: Any) -> tuple[FieldError, ...]:
        from pydantic import ValidationError

        if self._reserved and isinstance(value, dict) and not isinstance(problem, ValidationError):
            return field_errors(
                self.schema, value, [((name,), "extra", "") for name in self._reserved if name in value]
            )
        if not isinstance(problem, ValidationError):
            return (FieldError("", "a JSON object", str(problem)),)
        kinds = {"missing": "missing", "extra_forbidden": "extra", "unexpected_keyword_argument": "extra"}
        failures = [
            (
                error["loc"],
                kinds.get(
                    error["type"], "rule" if error["type"] in ("value_error", "assertion_error") else "type"
                ),
                error["msg"].removeprefix("Value error, ").removeprefix("Assertion failed, "),
            )
            for error in problem.errors(include_url=False, include_context=False, include_input=False)
        ]
        if any(
            kind == "json_invalid" for kind in (error["type"] for error in problem.errors(include_url=False))
        ):
            return (FieldError("", "a JSON object", "text that is not JSON"),)
        return field_errors(self.schema, value, failures)


class SchemaParams:
    """Params from a raw JSON Schema, validated by jsonschema-rs; the value is the plain JSON data."""

    def __init__(self, raw: Mapping[str, Any], *, tool: str) -> None:
        from toolcrib.schema import clean

        try:
            self._validator = closed_validator(raw)
            self.schema = clean(raw)
        except Exception as problem:
            raise ToolDefinitionError(
                f"tool {tool!r}: its JSON Schema cannot be used: {problem}"
            ) from problem
        if self.schema.get("type", "object") != "object":
            raise ToolDefinitionError(
                f"tool {tool!r}: its JSON Schema must describe an object of named parameters, "
                f"got type {self.schema['type']!r}"
            )

    def parse(self, text: str | bytes) -> Any:
        from pydantic_core import from_json

        value = from_json(text or "{}", allow_inf_nan=False)
        self.validate(value)
        return value

    def validate(self, value: Any) -> None:
        """Raise ValueError when JSON data does not fit."""
        if not isinstance(value, dict):
            raise ValueError("the arguments must be a JSON object")
        if not self._validator.is_valid(value):
            raise ValueError("the arguments do not fit the schema")

    def explain(self, problem: ValueError, value: Any) -> tuple[FieldError, ...]:
        if not isinstance(value, dict):
            return (FieldError("", "a JSON object", str(problem)),)
        return field_errors(self.schema, value, list(self._failures(value)))

    def _failures(self, value: Any) -> Iterator[tuple[tuple[Any, ...], str, str]]:
        for error in self._validator.iter_errors(value):
            path = tuple(error.instance_path)
            kind = type(error.kind).__name__
            if kind.endswith("Required"):
                yield (*path, getattr(error.kind, "property", "")), "missing", ""
            elif kind.endswith(("AdditionalProperties", "UnevaluatedProperties")):
                for name in getattr(error.kind, "unexpected", ()):
                    yield (*path, name), "extra", ""
            else:
                yield path, "type", error.message


def closed_validator(schema: Mapping[str, Any]) -> Any:
    """A validator that knows its schema alone; what that refers to elsewhere is an error, never fetched.

    A foreign schema may name an address of the network or a file of this machine.
    """
    import jsonschema_rs

    own = dict(schema)
    if "$schema" in own:
        try:
            jsonschema_rs.validator_for({"$schema": own["$schema"]}, retriever=_never_fetched)
        except Exception:  # a meta-schema that only its author knows
            del own["$schema"]
    return jsonschema_rs.validator_for(own, retriever=_never_fetched)


def _never_fetched(address: str) -> Any:
    raise ValueError(f"{address} lies outside of the schema and is never fetched")


def make_params(kind: Any, *, tool: str) -> Params:
    """Params from whatever a declaration gave: a JSON Schema (a mapping) or a Python type."""
    if isinstance(kind, Mapping):
        return SchemaParams(kind, tool=tool)
    return TypedParams.of_type(kind, tool=tool)


def core_schema_of(hint: Any) -> Any:
    """Pydantic's core schema of a type; an exception of Pydantic's where there is none."""
    from pydantic import TypeAdapter

    adapter: Any = TypeAdapter(hint)
    if not isinstance(adapter.core_schema, dict):  # a name in it could not be resolved yet
        adapter.rebuild(force=True)
    return adapter.core_schema


def _from_plain(fields: Mapping[str, tuple[Any, bool]]) -> tuple[Any, Any] | None:
    """Core schema and JSON Schema of fields that need no definitions of their own; None where one does."""
    from pydantic_core import core_schema

    field: Any = core_schema.typed_dict_field
    cores: dict[str, Any] = {}
    properties: dict[str, Any] = {}
    for name, (hint, required) in fields.items():
        try:
            # Equal unions may differ in order, which shows: hence the words beside the type.
            plain = _plain_type(hint, repr(hint))
        except Exception:  # unhashable, or nothing that Pydantic knows: the long way says which
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
    raw: dict[str, Any] = {"type": "object", "properties": properties, "required": required_names}
    return core_schema.typed_dict_schema(cores, extra_behavior="forbid"), raw


@functools.lru_cache(maxsize=1024)
def _plain_type(hint: Any, words: str) -> tuple[Any, Any] | None:
    core = _strictened(core_schema_of(hint))
    return None if _has_reference(core) else (core, _schema_generator()().generate(core, mode="validation"))


@functools.cache
def _json_reader() -> Any:
    from pydantic_core import from_json

    return from_json


def _mentions(core: Any, kind: str) -> bool:
    """Whether a core schema has a part of this type."""
    if isinstance(core, dict):
        return core.get("type") == kind or any(
            _mentions(item, kind) for key, item in core.items() if key not in NOT_SCHEMA
        )
    return isinstance(core, list | tuple) and any(_mentions(item, kind) for item in core)


def _has_reference(core: Any) -> bool:
    if isinstance(core, dict):
        return "ref" in core or "definitions" in core or any(_has_reference(item) for item in core.values())
    return isinstance(core, list | tuple) and any(_has_reference(item) for item in core)


def _strictened(core: Any) -> Any:
    """A core schema in which nothing unknown is dropped, `X | None` may be left out, and numbers are finite.

    What a type says itself (`extra="allow"`, a default, `allow_inf_nan=True`) stays as it says.
    """
    if isinstance(core, list):
        return [_strictened(item) for item in core]
    if isinstance(core, tuple):  # tagged choices are (schema, label)
        return tuple(_strictened(item) for item in core)
    if not isinstance(core, dict):
        return core
    new = {key: value if key in NOT_SCHEMA else _strictened(value) for key, value in core.items()}
    kind = new.get("type")
    if kind in EXTRA_BEHAVIOUR:
        # Pydantic writes "ignore" for what a TypedDict leaves open; only its config says what it meant.
        silent = new.get("extra_behavior", "ignore") == "ignore"
        if silent and "extra_fields_behavior" not in (new.get("config") or {}):
            new["extra_behavior"] = "forbid"
    elif kind in ("model", "dataclass"):
        said = (new.get("config") or {}).get("extra_fields_behavior")
        inner = new.get("schema")
        if said and isinstance(inner, dict) and inner.get("type") in EXTRA_BEHAVIOUR:
            new["schema"] = {**inner, "extra_behavior": said}
    elif kind in FIELDS:
        inner = new.get("schema")
        if isinstance(inner, dict) and inner.get("type") == "nullable":
            if kind == "typed-dict-field" and not new.get("required"):
                return new  # a key that may be missing stays missing
            new["schema"] = {"type": "default", "schema": inner, "default": None}
            if kind == "typed-dict-field":
                new["required"] = False
    elif kind in DATES:
        return _dated(kind, new)
    elif kind in ("date", "datetime"):
        return {
            "type": "function-before",
            "function": {"type": "no-info", "function": _not_a_number},
            "schema": new,
        }
    elif kind == "float" and "allow_inf_nan" not in new:
        new["allow_inf_nan"] = False
    return new


def _dated(kind: str, core: Any) -> Any:
    """A date that is written as one: Pydantic reads "2024" as seconds since 1970, even strictly."""
    from pydantic_core import SchemaValidator, core_schema, to_json

    read = SchemaValidator(core).validate_json

    def check(given: Any) -> Any:
        if not isinstance(given, str) or not DATES[kind].fullmatch(given):
            raise ValueError(f"a {kind.replace('time', ' and time')} in the form {DATE_FORMS[kind]}")
        return read(to_json(given), strict=True)

    shown: Any = {"pydantic_js_functions": [lambda _, handler: handler(core)]}
    return core_schema.no_info_plain_validator_function(check, metadata=shown)


def _not_a_number(value: Any) -> Any:
    """Pydantic reads "2024" as seconds since 1970; who writes it means a year."""
    if isinstance(value, int | float) or (isinstance(value, str) and NUMBER.fullmatch(value)):
        raise ValueError("a date such as 2024-01-31, or a date and time such as 2024-01-31T10:00:00Z")
    return value


def _slimmed(schema: Any) -> Any:
    """A raw schema without what says nothing to a model: a null that is the default, and closedness.

    A parameter that may be left out and then is None needs no null beside its type; unknown fields are
    refused whether the schema says so or not.
    """
    if isinstance(schema, list):
        return [_slimmed(item) for item in schema]
    if not isinstance(schema, dict):
        return schema
    slim = {key: item if key in DATA else _slimmed(item) for key, item in schema.items()}
    if slim.get("additionalProperties") is False:
        del slim["additionalProperties"]
    properties = slim.get("properties")
    if isinstance(properties, dict):
        required = slim.get("required", ())
        for name, node in properties.items():
            if name not in required and isinstance(node, dict) and node.get("default", 0) is None:
                members = node.get("anyOf")
                if isinstance(members, list) and {"type": "null"} in members:
                    rest = [member for member in members if member != {"type": "null"}]
                    node = {key: item for key, item in node.items() if key not in ("anyOf", "default")}
                    properties[name] = {**rest[0], **node} if len(rest) == 1 else {**node, "anyOf": rest}
    return slim


@functools.cache
def _schema_generator() -> Any:
    """Pydantic's generator, with the table that it otherwise makes anew for every schema."""
    from pydantic.json_schema import GenerateJsonSchema

    methods: dict[str, str] = {}

    class Generator(GenerateJsonSchema):
        def build_schema_type_to_method(self) -> Any:
            if not methods:
                made = super().build_schema_type_to_method()
                methods.update({kind: method.__name__ for kind, method in made.items()})
                return made
            return {kind: getattr(self, name) for kind, name in methods.items()}

        def emit_warning(self, kind: Any, detail: str) -> None:
            """A default that no JSON can show is left out; there is nothing to warn of."""

    return Generator


def _culprit(kind: Any) -> str:
    """The first parameter whose type cannot be compiled alone, as a prefix for the message."""
    from pydantic.json_schema import GenerateJsonSchema

    from toolcrib.signature import unresolvable

    unknown = unresolvable(kind)
    if unknown:
        return f"parameter {unknown!r}: "
    for name, hint in typing.get_type_hints(kind, include_extras=True).items():
        while get_origin(hint) in (typing.Required, typing.NotRequired):
            hint = get_args(hint)[0]
        generator: Any = GenerateJsonSchema()
        try:
            generator.generate(core_schema_of(hint), mode="validation")
        except Exception:
            return f"parameter {name!r}: "
    return ""


def modern(hint: Any) -> Any:
    """A type in which every `typing.TypedDict` is one that Pydantic reads; only needed before Python 3.12."""
    if sys.version_info >= (3, 12):
        return hint
    if typing.is_typeddict(hint) and type(hint).__module__ == "typing":
        return _modern_typed_dict(hint)
    arguments = get_args(hint)
    if not arguments:
        return hint
    new = tuple(modern(item) if not isinstance(item, list) else item for item in arguments)
    if new == arguments:
        return hint
    origin = get_origin(hint)
    if origin is typing.Annotated:
        return typing.Annotated[(new[0], *hint.__metadata__)]  # type: ignore[unused-ignore]
    if hasattr(hint, "copy_with"):
        return hint.copy_with(new)
    if origin is typing.Union or getattr(origin, "__name__", "") == "UnionType":
        return typing.Union[new]  # noqa: UP007 - built at run time from a tuple
    return origin[new] if origin is not None else hint


def _modern_typed_dict(hint: Any) -> Any:
    import typing_extensions

    hints = typing.get_type_hints(hint, include_extras=True)
    fields: dict[str, Any] = {}
    for name, inner in hints.items():
        kind: Any = typing.Required if name in hint.__required_keys__ else typing.NotRequired
        while get_origin(inner) in (typing.Required, typing.NotRequired):
            # Where annotations are strings, only the resolved hint knows that the key is not required.
            kind, inner = get_origin(inner), get_args(inner)[0]
        fields[name] = kind[modern(inner)]
    build: Any = typing_extensions.TypedDict
    made = build(hint.__name__, fields)
    made.__doc__ = hint.__doc__
    made.__module__ = hint.__module__
    if config := getattr(hint, "__pydantic_config__", None):
        made.__pydantic_config__ = config
    return made
