"""A tool's arguments from options: `--city Oslo --days 3`, read by the tool's own JSON Schema.

Text is turned into another JSON type only where the schema asks for it: 3 becomes a number for an integer. Text that
does not fit stays text, so that the call itself refuses or repairs it like any other.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from toolcrib.cli.console import Problem
from toolcrib.json_text.lenient_reader import read_strict_json
from toolcrib.json_text.values import kind_of
from toolcrib.schema.steps import resolve, step, variants

Schema = Mapping[str, Any]


def arguments_from(tokens: Sequence[str], schema: Schema) -> dict[str, Any]:
    """The arguments that options give, by the schema of the tool's params. Raises Problem for any other token.

    >>> schema = {"properties": {"days": {"type": "integer"}, "tags": {"type": "array", "items": {"type": "string"}}}}
    >>> arguments_from(["--days", "3", "--tags", "a", "--tags", "b"], schema)
    {'days': 3, 'tags': ['a', 'b']}
    """
    arguments: dict[str, Any] = {}
    queue = list(tokens)
    while queue:
        token = queue.pop(0)
        if not token.startswith("--") or token == "--":
            raise Problem(f"expected an option such as --name VALUE, or one JSON object; got {token!r}")
        written, equals, given = token[2:].partition("=")
        name, negated = _parameter(written, schema)
        node = step(schema, name, schema)
        value: Any
        if equals:
            value = _value(given, node, schema)
        elif negated:
            value = False
        elif "boolean" in _kinds(node, schema) and (not queue or queue[0] not in ("true", "false")):
            value = True
        elif queue:
            value = _value(queue.pop(0), node, schema)
        else:
            raise Problem(f"option --{written} needs a value")
        _put(arguments, name, value, node, schema)
    return arguments


def option_lines(schema: Schema) -> list[str]:
    """The options of a tool, a line each, for its --help."""
    lines: list[str] = []
    required = schema.get("required", ())
    for name, node in schema.get("properties", {}).items():
        kinds = _kinds(node, schema)
        option = f"--{name}" if "boolean" not in kinds else f"--{name}/--no-{name}"
        shape = "" if kinds == {"boolean"} else " " + _shape(node, kinds, schema)
        need = "required" if name in required else "optional"
        description = " ".join(str(node.get("description", "")).split()) if isinstance(node, Mapping) else ""
        lines.append(f"{option}{shape}  ({need})" + (f"  {description}" if description else ""))
    return lines


def _parameter(written: str, schema: Schema) -> tuple[str, bool]:
    """The parameter of an option, and whether the option is its --no- form."""
    names = schema.get("properties", {})
    for spelled in (written, written.replace("-", "_")):
        if spelled in names:
            return spelled, False
    if written.startswith("no-"):
        for spelled in (written[3:], written[3:].replace("-", "_")):
            if "boolean" in _kinds(names.get(spelled), schema):
                return spelled, True
    return written, False  # an unknown parameter: the call refuses it, and names those that exist


def _put(arguments: dict[str, Any], name: str, value: Any, node: Any, schema: Schema) -> None:
    takes_list = "array" in _kinds(node, schema)
    if takes_list and not isinstance(value, list):
        arguments[name] = [*arguments.get(name, ()), value]
    elif takes_list and name in arguments:
        arguments[name] = [*arguments[name], *value]
    elif name in arguments:
        raise Problem(f"option --{name} is given twice, and takes one value")
    else:
        arguments[name] = value


def _value(text: str, node: Any, schema: Schema) -> Any:
    """A value in the type that the schema asks for; text stays text wherever the schema allows text."""
    kinds = _kinds(node, schema)
    if "array" in kinds:
        items = step(node, 0, schema)
        if text.lstrip().startswith("[") and "string" not in _kinds(items, schema):
            return _read(text, kinds)
        return _value(text, items, schema) if not _takes_text(kinds) else text
    allowed = _allowed(node, schema)
    if text in allowed or _takes_text(kinds):
        return text
    return _read(text, kinds, allowed)


def _read(text: str, kinds: set[str], allowed: Sequence[Any] = ()) -> Any:
    try:
        value = read_strict_json(text)
    except ValueError:
        return text
    kind = kind_of(value)
    fits = value in allowed or not kinds or kind in kinds or (kind == "integer" and "number" in kinds)
    return value if fits or kind in ("object", "array") else text


def _takes_text(kinds: set[str]) -> bool:
    return "string" in kinds


def _kinds(node: Any, schema: Schema) -> set[str]:
    """The JSON types that a schema allows; empty if it does not say."""
    found: set[str] = set()
    for place in variants(resolve(node, schema), schema):
        found.update(_types(place) or map(kind_of, _stated(place)))
    return found


def _types(place: Schema) -> list[str]:
    given = place.get("type", [])
    return [given] if isinstance(given, str) else given


def _allowed(node: Any, schema: Schema) -> list[Any]:
    return [value for place in variants(resolve(node, schema), schema) for value in _stated(place)]


def _stated(place: Schema) -> Iterator[Any]:
    yield from place.get("enum", ())
    if "const" in place:
        yield place["const"]


def _shape(node: Any, kinds: set[str], schema: Schema) -> str:
    if "array" in kinds:
        items = step(node, 0, schema)
        return f"{_shape(items, _kinds(items, schema), schema)} (repeat for more)"
    if "object" in kinds:
        return "JSON"
    forms = variants(resolve(node, schema), schema)
    free = {kind for form in forms if not [*_stated(form)] for kind in _types(form)} - {"null", "boolean"}
    values = [str(value) for value in _allowed(node, schema) if value is not None]
    return "|".join([*map(str.upper, sorted(free)), *values]) or "VALUE"
