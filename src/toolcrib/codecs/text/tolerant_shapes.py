"""What a block of the tolerant reader says once it was read whole: JSON in many shapes, and shortened lines."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from toolcrib.codecs.text.call_objects import DECLARATION, NO_JSON
from toolcrib.codecs.text.parameter_values import Place, read_value
from toolcrib.codecs.wire_json import as_list, as_str, compact
from toolcrib.json_text.lenient_grammar import Unreadable
from toolcrib.json_text.lenient_reader import read_json

NAME_KEYS: Final = ("name", "tool_name", "tool", "function_name")
ARGUMENT_KEYS: Final = ("arguments", "parameters", "args", "input", "params", "tool_input")
ID_KEYS: Final = ("id", "tool_call_id", "call_id")
LIST_KEYS: Final = ("tool_calls", "toolcalls")
INNER_KEYS: Final = ("function", "function_call", "tool_call")
SCHEMA_KEYS: Final = frozenset({"description", "parameters", "input_schema", "inputSchema"})
NAME: Final = r"[A-Za-z_][\w.:-]{0,127}"

NO_CALL = "what was written for the call is none; write it again as one JSON object with name and arguments"
TWO_CALLS = "the call names two tools; write one call for each"
TWO_ARGUMENTS = (
    "the call has its arguments twice, under different keys; write it again with the right ones alone"
)
NO_SINGLE_PARAMETER = (
    "the call gives one value, and the tool has not exactly one parameter that it could be; "
    "write it again as one JSON object with name and arguments"
)


@dataclass(frozen=True, slots=True)
class Shape:
    """A call as some shape says it; `problem` where it can never be run."""

    name: str
    arguments: str = "{}"
    id: str = ""
    problem: str = ""


def calls_in(value: Any) -> list[Shape]:
    """The calls that a JSON value in a call's tag says; what is none is a call with a problem."""
    for key in LIST_KEYS:
        if isinstance(value, dict) and isinstance(value.get(key), list):
            clash = any(name in value for name in NAME_KEYS)
            return [Shape("", problem=TWO_CALLS)] if clash else calls_in(value[key])
    if isinstance(value, list):
        return [_call_in(item) for item in value]
    return [_call_in(value)]


def _call_in(value: Any) -> Shape:
    if not isinstance(value, dict):
        return Shape("", problem=NO_CALL)
    outer = _first(value, NAME_KEYS, str)
    id = as_str(_first(value, ID_KEYS, str))
    inner = _first(value, INNER_KEYS, dict)
    if inner is not None:
        return Shape(outer, problem=TWO_CALLS) if outer else _flat_call(inner, as_str(inner.get("name")), id)
    return _flat_call(value, outer or as_str(value.get("function")), id)


def _flat_call(value: Mapping[str, Any], name: str | None, id: str) -> Shape:
    name = (name or "").strip()
    if is_declaration(value):
        return Shape(name, id=id, problem=DECLARATION)
    given = [value[key] for key in ARGUMENT_KEYS if key in value]
    if not name:
        return Shape("", compact(given[0]) if given else "{}", id, NO_CALL)
    if len(given) > 1:
        return Shape(name, id=id, problem=TWO_ARGUMENTS)
    if not given and set(value) - {*NAME_KEYS, *ID_KEYS, "function", "type", "index"}:
        return Shape(name, id=id, problem=NO_CALL)
    return Shape(name, as_text(given[0] if given else None), id)


def is_declaration(value: Mapping[str, Any]) -> bool:
    """Whether an object declares a tool: it has a schema or a description, and no arguments."""
    if any(key in value for key in ("arguments", "args", "input")):
        return False
    if any(key in value for key in ("description", "input_schema", "inputSchema")):
        return True
    schema = value.get("parameters")
    return (
        isinstance(schema, dict)
        and schema.get("type") == "object"
        and isinstance(schema.get("properties"), dict)
    )


def as_text(arguments: Any) -> str:
    """Arguments as JSON text; those that came as text are that text."""
    if arguments is None:
        return "{}"
    return (arguments.strip() or "{}") if isinstance(arguments, str) else compact(arguments)


def _first(value: Mapping[str, Any], keys: tuple[str, ...], kind: type) -> Any:
    return next((value[key] for key in keys if isinstance(value.get(key), kind)), None)


def envelope(value: Any, known: Mapping[str, Any]) -> list[Shape]:
    """The calls of a whole answer that is JSON; empty where it is anything but calls.

    `{"tool_calls": [...]}` says what it is; an object with name and arguments counts only for a known tool.
    """
    marked = isinstance(value, dict) and any(isinstance(value.get(key), list) for key in LIST_KEYS)
    marked = marked or (isinstance(value, dict) and isinstance(value.get("function_call"), dict))
    if marked and set(value) - {*LIST_KEYS, "function_call", "content", "role", "reasoning_content"}:
        return []
    for item in _items(value):
        item = item if isinstance(item, dict) else {}
        inner = _first(item, INNER_KEYS, dict) or item
        if not (any(key in inner for key in ARGUMENT_KEYS) and isinstance(inner.get("name"), str)):
            return []
        if set(inner) - {"name", *ARGUMENT_KEYS, *ID_KEYS, "type", "index"}:
            return []
    shapes = calls_in(value)
    if any(shape.problem or not (shape.name in known or (marked and not known)) for shape in shapes):
        return []
    return shapes


def _items(value: Any) -> list[Any]:
    if isinstance(value, dict):
        for key in LIST_KEYS:
            if isinstance(value.get(key), list):
                return list(value[key])
    return value if isinstance(value, list) else [value]


def declared_call(value: Any) -> Shape | None:
    """The call in `<tools>`, where tools are declared: an object of exactly a name and arguments."""
    if not isinstance(value, dict) or set(value) - {"id"} != {"name", "arguments"}:
        return None
    shape = _call_in(value)
    return None if shape.problem or not isinstance(value["arguments"], dict | str) else shape


# Shortened lines: what stands after the tool's name, and how it is read.

_PAIR: Final = re.compile(
    r"""\s*(?:,\s*)?([A-Za-z_][\w.-]*)\s*=\s*("(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*'|[^\s,"'/>)]+)""", re.DOTALL
)
_LINE: Final = re.compile(r"([A-Za-z_][\w.-]*)\s*[:>]\s?(.*)")
_PATH: Final = re.compile(r"/([A-Za-z_][\w.-]*)>")
_ARG: Final = re.compile(r"<arg_key>(.*?)</arg_key>\s*<arg_value>(.*?)(?:</arg_value>|\Z)", re.DOTALL)
_CODE: Final = re.compile(r"<code>(.*?)</code>", re.DOTALL)
_PERL: Final = re.compile(
    r"""\{\s*tool\s*=>\s*(["'])([^"']+)\1\s*,\s*args\s*=>\s*\{(.*)\}\s*\}\s*\Z""", re.DOTALL
)
_FLAG: Final = re.compile(
    r"""--([A-Za-z_][\w-]*)\s+("(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*'|[^\s"',}]+),?\s*""", re.DOTALL
)


def pairs_in(text: str) -> dict[str, str] | None:
    """`key="value"` pairs and nothing else."""
    return _all_of(_PAIR, text.strip())


def perl_call(text: str) -> tuple[str, dict[str, str]] | None:
    """`{tool => "name", args => { --key "value" }}`."""
    found = _PERL.match(text.strip())
    if found is None:
        return None
    members = _all_of(_FLAG, found[3].strip())
    return None if members is None else (found[2], members)


def lines_in(text: str) -> dict[str, str] | None:
    """Lines of `key: value`, and nothing else."""
    found: dict[str, str] = {}
    for line in text.strip().splitlines():
        match = _LINE.fullmatch(line.strip())
        if match is None or match[1] in found:
            return None
        found[match[1]] = match[2].strip()
    return found or None


def short_members(text: str, schema: Mapping[str, Any]) -> dict[str, str] | None:
    """The members that stand after a tool's name in a shortened call; None where they cannot be told."""
    text = text.strip()
    if text.startswith("<arg_key>"):
        return {key.strip(): value for key, value in _ARG.findall(text)}
    if text.startswith("<code>"):
        return lines_in("\n".join(_CODE.findall(text)))
    if text.startswith("(") and text.endswith(")"):
        return pairs_in(text[1:-1]) if text[1:-1].strip() else {}
    path = _PATH.match(text)
    if path is not None:
        return {path[1]: text[path.end() :].strip()}
    if text.startswith(">"):
        return _after_arrow(text[1:], schema)
    return pairs_in(text.removesuffix(">").rstrip().removesuffix("/"))


def _after_arrow(text: str, schema: Mapping[str, Any]) -> dict[str, str] | None:
    if text.startswith("\n") and (members := lines_in(text)) is not None:
        return members
    name = single_parameter(schema)
    return None if name is None else {name: text.strip()}


def single_parameter(schema: Mapping[str, Any]) -> str | None:
    """The one parameter that a value without a name can be: the only one, or the only one required."""
    properties = schema.get("properties")
    names = list(properties) if isinstance(properties, dict) else []
    required = [name for name in as_list(schema.get("required")) if name in names]
    return names[0] if len(names) == 1 else required[0] if len(required) == 1 else None


def _all_of(pattern: re.Pattern[str], text: str) -> dict[str, str] | None:
    found: dict[str, str] = {}
    at = 0
    while at < len(text):
        match = pattern.match(text, at)
        if match is None or match[1] in found:
            return None
        found[match[1]] = _unquoted(match[2])
        at = match.end()
    return found


def _unquoted(text: str) -> str:
    if text[:1] == '"':
        try:
            return str(json.loads(text, strict=False))
        except ValueError:
            return text[1:-1]
    return text[1:-1].replace("\\'", "'") if text[:1] == "'" else text


def typed(members: Mapping[str, str], place: Place) -> str:
    """Members as JSON text, each read as the schema says."""
    return compact({key: read_value(text, place.member(key).kinds) for key, text in members.items()})


# The text of a JSON value


def readable(text: str) -> bool:
    """Whether a text is JSON with one reading."""
    try:
        json.loads(text)
    except (ValueError, RecursionError):
        try:
            read_json(text)
        except Unreadable:
            return False
    return True


def read_shapes(text: str) -> list[Shape]:
    """The calls that one JSON value says; one with the problem `NO_JSON` where it cannot be read."""
    try:
        value: Any = read_json(text).value
    except Unreadable:
        perl = perl_call(text)
        if perl is None:
            return [Shape(name_in(text), problem=NO_JSON)]
        return [Shape(perl[0], json.dumps(perl[1], ensure_ascii=False))]
    return calls_in(value)


NAME_IN: Final = re.compile(r"""["']name["']\s*:\s*["']([\w.:-]{1,128})["']""")


def name_in(text: str) -> str:
    """The tool that a broken call names, for the words that answer it."""
    match = NAME_IN.search(text)
    return match[1] if match else ""


def as_name(text: str) -> str:
    try:
        name = json.loads(text)
    except ValueError:
        return ""
    return name.strip() if isinstance(name, str) else ""
