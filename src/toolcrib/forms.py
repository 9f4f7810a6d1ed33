"""Forms: what a person is asked to fill in, as a flat list of fields, and the check of what they gave.

A form is read from the restricted JSON Schema that the Model Context Protocol allows: an object whose properties are
texts, numbers, booleans, choices and lists of choices, each with an optional default.

>>> form = read_form({"type": "object", "properties": {"age": {"type": "integer", "minimum": 0}}, "required": ["age"]})
>>> form_values(form, {"age": "42"})
{'age': 42}
>>> form_problems(form, {"age": -1})
['age: expected a whole number from 0 on, got -1']
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from datetime import date, datetime
from typing import Any, Literal, TypeAlias
from urllib.parse import urlsplit

from toolcrib.dataclass import dataclass
from toolcrib.visible import on_one_line

__all__ = [
    "Form",
    "FormField",
    "expected",
    "field_value",
    "form_problems",
    "form_schema",
    "form_values",
    "read_form",
]

MAX_FIELDS = 50
MAX_OPTIONS = 500
MAX_TEXT = 20_000  # characters of a value

Kind = Literal["text", "number", "integer", "boolean", "choice", "choices"]
FORMATS = ("email", "uri", "date", "date-time")
WHOLE = re.compile(r"[+-]?\d+")
EMAIL = re.compile(r"[^@\s]+@[^@\s]+\Z")


@dataclass(frozen=True, slots=True)
class FormField:
    """One field of a form.

    Attributes:
        name: The key of its value.
        kind: "text", "number", "integer", "boolean", "choice" (one of `options`) or "choices" (several of them).
        title: What a person is shown in the place of the name.
        description: What it is for.
        required: A value must be given.
        default: The value without one; None where there is no default.
        options: The values to choose from, each with its label.
        format: For a text: "email", "uri", "date" or "date-time"; else empty.
        least: The smallest number, length of a text or count of choices; None without a limit.
        most: The largest one.
    """

    name: str
    kind: Kind
    title: str = ""
    description: str = ""
    required: bool = False
    default: Any = None
    options: tuple[tuple[str, str], ...] = ()
    format: str = ""
    least: float | None = None
    most: float | None = None

    @property
    def label(self) -> str:
        """The title, or the name without one."""
        return self.title or self.name


Form: TypeAlias = tuple[FormField, ...]


def read_form(schema: Any) -> Form:
    """The form that a schema describes. Raises ValueError, in words for its author, for any other schema.

    A default that does not fit its own field counts as none.
    """
    properties = schema.get("properties", {}) if isinstance(schema, Mapping) else None
    if not isinstance(properties, Mapping) or schema.get("type", "object") != "object":
        raise ValueError("a form is an object schema with properties")
    if len(properties) > MAX_FIELDS:
        raise ValueError(f"a form has at most {MAX_FIELDS} fields, got {len(properties):,}")
    required = schema.get("required")
    wanted = set(filter(_is_text, required)) if isinstance(required, list) else set()
    return tuple(_field(str(name), given, str(name) in wanted) for name, given in properties.items())


def _field(name: str, given: Any, required: bool) -> FormField:
    if not isinstance(given, Mapping):
        raise ValueError(f"field {on_one_line(name, 60)!r}: expected a schema")
    kind, options = _kind(name, given)
    limits = {"text": ("minLength", "maxLength"), "choices": ("minItems", "maxItems")}
    least, most = (_limit(given.get(key)) for key in limits.get(kind, ("minimum", "maximum")))
    format = given.get("format")
    field = FormField(
        name,
        kind,
        title=_words(given.get("title")),
        description=_words(given.get("description")),
        required=required,
        options=options,
        format=format if kind == "text" and format in FORMATS else "",
        least=least,
        most=most,
    )
    default = given.get("default")
    if default is None:
        return field
    try:
        value = field_value(field, default)
    except ValueError:
        return field
    return FormField(*(value if key == "default" else getattr(field, key) for key in FormField.__slots__))


def _kind(name: str, given: Mapping[str, Any]) -> tuple[Kind, tuple[tuple[str, str], ...]]:
    type_ = given.get("type")
    if type_ == "array":
        return "choices", _options(name, given.get("items"), "anyOf")
    if type_ == "string" and ("enum" in given or "oneOf" in given):
        return "choice", _options(name, given, "oneOf")
    kinds: dict[Any, Kind] = {
        "string": "text",
        "number": "number",
        "integer": "integer",
        "boolean": "boolean",
    }
    kind = kinds.get(type_) if isinstance(type_, str) else None
    if kind is None:
        raise ValueError(
            f"field {on_one_line(name, 60)!r}: expected a text, number, boolean or choice, "
            f"got {on_one_line(str(type_), 60)}"
        )
    return kind, ()


def _options(name: str, given: Any, union: str) -> tuple[tuple[str, str], ...]:
    """Options with their labels: an `enum`, perhaps with `enumNames`, or a list of `const` and `title`."""
    values, labels = None, None
    if isinstance(given, Mapping):
        values, labels = given.get("enum"), given.get("enumNames")
        if isinstance(entries := given.get(union), list) and all(isinstance(one, Mapping) for one in entries):
            values = [entry.get("const") for entry in entries]
            labels = [entry.get("title") for entry in entries]
    if not isinstance(values, list) or not values or not all(map(_is_text, values)):
        raise ValueError(f"field {on_one_line(name, 60)!r}: expected a list of texts to choose from")
    if len(values) > MAX_OPTIONS:
        raise ValueError(f"field {on_one_line(name, 60)!r}: at most {MAX_OPTIONS} options are possible")
    named = labels if isinstance(labels, list) and len(labels) == len(values) else [None] * len(values)
    return tuple((value, _words(label) or value) for value, label in zip(values, named, strict=True))


def form_schema(form: Form) -> dict[str, Any]:
    """The form as a JSON Schema, from which `read_form` reads it again."""
    schema = {"type": "object", "properties": {field.name: _schema(field) for field in form}}
    required = [field.name for field in form if field.required]
    return {**schema, "required": required} if required else schema


def _schema(field: FormField) -> dict[str, Any]:
    titled = [{"const": value, "title": label} for value, label in field.options]
    plain = all(value == label for value, label in field.options)
    values = {"enum": [value for value, _ in field.options]}
    kinds: dict[str, dict[str, Any]] = {
        "text": {"type": "string", **({"format": field.format} if field.format else {})},
        "choice": {"type": "string", **(values if plain else {"oneOf": titled})},
        "choices": {"type": "array", "items": {"type": "string", **values} if plain else {"anyOf": titled}},
    }
    own = kinds.get(field.kind, {"type": field.kind})
    limits = {"text": ("minLength", "maxLength"), "choices": ("minItems", "maxItems")}
    low, high = limits.get(field.kind, ("minimum", "maximum"))
    more = {
        "title": field.title or None,
        "description": field.description or None,
        low: _number(field.least),
        high: _number(field.most),
        "default": field.default,
    }
    return {**own, **{key: value for key, value in more.items() if value is not None}}


# -- what a person gave


def form_values(form: Form, given: Mapping[str, Any]) -> dict[str, Any]:
    """The values of a form, with defaults where none is given. Raises ValueError with all problems, a line each."""
    values, problems = _checked(form, given)
    if problems:
        raise ValueError("\n".join(problems))
    return values


def form_problems(form: Form, given: Mapping[str, Any]) -> list[str]:
    """What is wrong with the values that a person gave, a line for each field; empty if nothing is."""
    return _checked(form, given)[1]


def _checked(form: Form, given: Mapping[str, Any]) -> tuple[dict[str, Any], list[str]]:
    values: dict[str, Any] = {}
    problems: list[str] = []
    for field in form:
        value = given.get(field.name)
        value = field.default if value is None else value
        if value is None:
            if field.required:
                problems.append(f"{on_one_line(field.name, 60)}: a value is required: {expected(field)}")
            continue
        try:
            values[field.name] = field_value(field, value)
        except ValueError as problem:
            problems.append(str(problem))
    known = {field.name for field in form}
    problems += [
        f"{on_one_line(str(name), 60)}: the form has no such field" for name in given if name not in known
    ]
    return values, problems


def field_value(field: FormField, given: Any) -> Any:
    """The value that a person means by what they typed or gave. Raises ValueError with what is expected."""
    try:
        return READERS[field.kind](field, given)
    except (ValueError, OverflowError):
        got = on_one_line(str(given), 60)
        raise ValueError(f"{on_one_line(field.name, 60)}: expected {expected(field)}, got {got}") from None


def expected(field: FormField) -> str:
    """What a field expects, in a few words."""
    least, most = _number(field.least), _number(field.most)
    range_ = f" from {least} to {most}" if least is not None and most is not None else ""
    range_ = range_ or (
        f" from {least} on" if least is not None else f" up to {most}" if most is not None else ""
    )
    if field.kind in ("choice", "choices"):
        labels = ", ".join(on_one_line(label, 60) for _, label in field.options[:20])
        more = ", …" if len(field.options) > 20 else ""
        count = f" ({range_.strip()} of them)" if range_ and field.kind == "choices" else ""
        return f"{'one' if field.kind == 'choice' else 'any'} of: {labels}{more}{count}"
    if field.kind == "text":
        what = {"email": "an email address", "uri": "a URL", "date": "a date such as 2026-01-31",
                "date-time": "a time such as 2026-01-31T12:00:00Z"}.get(field.format, "a text")  # fmt: skip
        return f"{what} of{range_} characters" if range_ else what
    return {"boolean": "yes or no", "integer": f"a whole number{range_}"}.get(field.kind, f"a number{range_}")


def _read_text(field: FormField, given: Any) -> str:
    if not isinstance(given, str) or len(given) > MAX_TEXT:
        raise ValueError
    _in_range(field, len(given))
    if field.format == "email" and not EMAIL.match(given):
        raise ValueError
    if field.format == "uri" and not urlsplit(given).scheme:
        raise ValueError
    if field.format == "date":
        return date.fromisoformat(given).isoformat()
    if field.format == "date-time":
        datetime.fromisoformat(given)
    return given


def _read_number(field: FormField, given: Any) -> float | int:
    if isinstance(given, bool) or not isinstance(given, int | float | str):
        raise ValueError
    number: float | int = _typed_number(given) if isinstance(given, str) else given
    if not math.isfinite(number):
        raise ValueError
    _in_range(field, number)
    return number


def _typed_number(given: str) -> float | int:
    """The number that a person typed. A long one, such as that of an account, has more digits than a float keeps."""
    number = int(given) if WHOLE.fullmatch(given.strip()) else float(given)
    return int(number) if number == int(number) else number


def _read_integer(field: FormField, given: Any) -> int:
    number = _read_number(field, given)
    if number != int(number):
        raise ValueError
    return int(number)


def _read_boolean(field: FormField, given: Any) -> bool:
    word = given.strip().lower() if isinstance(given, str) else given
    if word is True or word in ("y", "yes", "true"):
        return True
    if word is False or word in ("n", "no", "false"):
        return False
    raise ValueError


def _read_choice(field: FormField, given: Any) -> str:
    for value, _ in field.options:
        if value == given:
            return value
    for value, label in field.options:
        if isinstance(given, str) and given.strip().casefold() in (label.casefold(), value.casefold()):
            return value
    raise ValueError


def _read_choices(field: FormField, given: Any) -> list[str]:
    if isinstance(given, str):
        given = _parted(field, given)
    if not isinstance(given, list | tuple):
        raise ValueError
    chosen = list(dict.fromkeys(_read_choice(field, one) for one in given))
    _in_range(field, len(chosen))
    return chosen


def _parted(field: FormField, given: str) -> list[str]:
    """The choices in a text, with commas between them. An option may have commas itself."""
    pieces, parts = given.split(","), list[str]()
    names = {name.strip().casefold() for option in field.options for name in option}
    most = 1 + max(name.count(",") for name in names)
    while pieces:
        joined = (",".join(pieces[:count]).strip() for count in range(min(len(pieces), most), 0, -1))
        part = next((words for words in joined if words.casefold() in names), pieces[0].strip())
        del pieces[: part.count(",") + 1]
        parts += [part] if part else []
    return parts


READERS: dict[str, Callable[[FormField, Any], Any]] = {
    "text": _read_text,
    "number": _read_number,
    "integer": _read_integer,
    "boolean": _read_boolean,
    "choice": _read_choice,
    "choices": _read_choices,
}


def _in_range(field: FormField, number: float) -> None:
    low, high = field.least, field.most
    if (low is not None and number < low) or (high is not None and number > high):
        raise ValueError


def _limit(given: Any) -> float | None:
    """A limit from a schema; None for one that is no finite number, or too large for a float."""
    try:
        known = isinstance(given, int | float) and not isinstance(given, bool) and math.isfinite(given)
    except OverflowError:
        return None
    return given if known else None


def _number(limit: float | None) -> float | int | None:
    return int(limit) if limit is not None and limit == int(limit) else limit


def _words(given: Any) -> str:
    return given if isinstance(given, str) else ""


def _is_text(given: Any) -> bool:
    return isinstance(given, str)
