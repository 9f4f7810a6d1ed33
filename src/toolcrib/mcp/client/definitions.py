"""What a server says of one of its tools, read tolerantly: what is wrong in it costs that one thing, with a warning."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

from toolcrib.dataclass import dataclass, field
from toolcrib.visible import INVISIBLE, on_one_line

__all__ = ["RemoteDefinition", "read_definition", "read_definitions", "visible_text"]

HINTS = ("readOnlyHint", "destructiveHint", "idempotentHint", "openWorldHint")
MAX_PROBLEMS = 50  # of one list that are told
MAX_TOOLS = 10_000  # of one server
MAX_SCHEMA = 100_000  # characters; the largest of 500 tools of public servers has 9,000
MAX_META = 20_000  # characters
ONLY_AS_TASK = {"taskSupport": "required"}
JOINERS = "\u200c\u200d"  # parts of emoji, and of words in several scripts
SHOWN = 80  # characters of a foreign name in a warning


@dataclass(frozen=True, slots=True, eq=False)
class RemoteDefinition:
    """A tool as its server defines it.

    `name` is the name on the wire. `input_schema` always has the type "object". `output_schema` is None if there is
    none that can be used. `annotations` has the hints that are booleans. `meta` is the `_meta` of the definition.
    `task` says that a server of revision 2025-11-25 takes its calls only as tasks.
    """

    server: str
    name: str
    title: str = ""
    description: str = ""
    input_schema: Mapping[str, Any] = field(default_factory=lambda: {"type": "object"})
    output_schema: Mapping[str, Any] | None = None
    annotations: Mapping[str, bool] = field(default_factory=dict)
    meta: Mapping[str, Any] = field(default_factory=dict)
    task: bool = False

    @property
    def for_model(self) -> bool:
        """Whether a model may be shown it; some are for the user interface of a result alone (MCP Apps)."""
        ui = self.meta.get("ui")
        visibility = ui.get("visibility") if isinstance(ui, Mapping) else None
        return not isinstance(visibility, list) or "model" in visibility

    def to_dict(self) -> dict[str, Any]:
        """The definition in the protocol's own form, to be stored."""
        data: dict[str, Any] = {"name": self.name, "inputSchema": self.input_schema}
        if self.title:
            data["title"] = self.title
        if self.description:
            data["description"] = self.description
        if self.output_schema is not None:
            data["outputSchema"] = self.output_schema
        if self.annotations:
            data["annotations"] = dict(self.annotations)
        if self.meta:
            data["_meta"] = self.meta
        if self.task:
            data["execution"] = ONLY_AS_TASK
        return data


def read_definitions(server: str, listed: Any) -> tuple[list[RemoteDefinition], list[str]]:
    """The tools of a `tools/list` result's `tools`, and the problems that were found, a sentence each.

    What is not a tool is left out. Of two tools with one name, the first counts.
    """
    if not isinstance(listed, list):
        return [], [f"its list of tools is not a list, but {_kind(listed)}"]
    definitions: dict[str, RemoteDefinition] = {}
    problems: list[str] = []
    for raw in listed[:MAX_TOOLS]:
        definition = read_definition(server, raw, problems)
        if definition is None:
            continue
        if definition.name in definitions:
            problems.append(f"two tools are named {_shown(definition.name)}; the first one counts")
            continue
        definitions[definition.name] = definition
    if len(listed) > MAX_TOOLS:
        problems.append(f"it lists {len(listed)} tools; the first {MAX_TOOLS} count")
    if (more := len(problems) - MAX_PROBLEMS) > 0:
        problems[MAX_PROBLEMS:] = [f"{more} more problems"]
    return list(definitions.values()), problems


def visible_text(text: str) -> str:
    """A text without the characters that a person does not see, except those that join emoji and letters."""
    if text.isascii() and text.isprintable():
        return text

    def kept(match: re.Match[str]) -> str:
        start, end = match.span()
        joins = match[0] in JOINERS and start > 0 and end < len(text)
        return match[0] if joins and not text[start - 1].isascii() and not text[end].isascii() else ""

    return INVISIBLE.sub(kept, text)


def read_definition(server: str, raw: Any, problems: list[str]) -> RemoteDefinition | None:
    """One tool, or None for what is no tool. Adds what is wrong with it to `problems`."""
    if not isinstance(raw, Mapping):
        problems.append(f"a tool was left out: it is {_kind(raw)}, not an object")
        return None
    name = raw.get("name")
    if not isinstance(name, str) or not name:
        problems.append("a tool was left out: it has no name")
        return None
    noted: list[str] = []
    read: RemoteDefinition | None = None
    schema = _input_schema(raw.get("inputSchema"), noted)
    if schema is not None:
        annotations = raw.get("annotations")
        if annotations is not None and not isinstance(annotations, Mapping):
            noted.append(f"its annotations are {_kind(annotations)}, not an object")
            annotations = None
        hints = dict(_hints(annotations or {}, noted))
        title = _text(raw, "title", noted) or _text(annotations or {}, "title", noted)
        meta, execution = raw.get("_meta"), raw.get("execution")
        read = RemoteDefinition(
            server=server,
            name=name,
            title=title,
            description=_text(raw, "description", noted),
            input_schema=schema,
            output_schema=_output_schema(raw.get("outputSchema"), noted),
            annotations=hints,
            meta=_meta(meta, noted),
            task=isinstance(execution, Mapping) and execution.items() >= ONLY_AS_TASK.items(),
        )
    problems += [f"tool {_shown(name)}: {problem}" for problem in noted]
    return read


def _input_schema(schema: Any, noted: list[str]) -> dict[str, Any] | None:
    """The schema with the type "object"; None if it describes something else than named parameters."""
    if schema is None:
        noted.append("it has no inputSchema, so any arguments are sent")
        return {"type": "object"}
    if not isinstance(schema, Mapping):
        noted.append(f"its inputSchema is {_kind(schema)}, not an object, so any arguments are sent")
        return {"type": "object"}
    size = len(json.dumps(schema))
    if size > MAX_SCHEMA:
        noted.append(f"it was left out: its inputSchema has {size:,} characters, more than {MAX_SCHEMA:,}")
        return None
    if hidden := _hidden_name(schema):
        noted.append(f"it was left out: its inputSchema has {hidden}")
        return None
    kind = schema.get("type")
    if kind == "object":
        return dict(schema)
    if kind is None or (isinstance(kind, list) and "object" in kind):
        if kind is None:
            noted.append('its inputSchema lacks "type": "object", which was added')
        return {**schema, "type": "object"}
    noted.append(f'it was left out: its inputSchema has the type {_shown(str(kind))}, not "object"')
    return None


def _output_schema(schema: Any, noted: list[str]) -> dict[str, Any] | None:
    """The schema of results. Whether it compiles is looked at when the tool is first used."""
    if schema is None:
        return None
    if not isinstance(schema, Mapping):
        noted.append(f"its outputSchema is {_kind(schema)}, not an object; results are not checked")
        return None
    size = len(json.dumps(schema))
    if size > MAX_SCHEMA:
        noted.append(
            f"its outputSchema has {size:,} characters, more than {MAX_SCHEMA:,}; results are not checked"
        )
        return None
    if hidden := _hidden_name(schema):
        noted.append(f"its outputSchema has {hidden}; results are not checked")
        return None
    return dict(schema)


def _hidden_name(schema: Any) -> str:
    """The first name in a schema that has characters which a person does not see, in words; "" if there is none.

    A name cannot be shown without them, since the server would not know it then.
    """
    waiting = [schema]
    while waiting:
        item = waiting.pop()
        if isinstance(item, Mapping):
            for name in item:
                if visible_text(name) != name:
                    return f"a name with characters that nobody sees: {_shown(name)}"
            waiting += item.values()
        elif isinstance(item, list):
            waiting += item
    return ""


def _meta(meta: Any, noted: list[str]) -> dict[str, Any]:
    if not isinstance(meta, Mapping):
        return {}
    size = len(json.dumps(meta))
    if size > MAX_META:
        noted.append(f"its _meta has {size:,} characters, more than {MAX_META:,}, and was left out")
        return {}
    return dict(meta)


def _hints(annotations: Mapping[str, Any], noted: list[str]) -> Iterator[tuple[str, bool]]:
    for hint in HINTS:
        value = annotations.get(hint)
        if isinstance(value, bool):
            yield hint, value
        elif value is not None:
            noted.append(f"its {hint} is {_kind(value)}, not true or false, and does not count")


def _text(raw: Mapping[str, Any], key: str, noted: list[str]) -> str:
    value = raw.get(key)
    if value is None or isinstance(value, str):
        return value or ""
    noted.append(f"its {key} is {_kind(value)}, not a text, and was left out")
    return ""


def _shown(text: str) -> str:
    return repr(on_one_line(text[:SHOWN]))


def _kind(value: Any) -> str:
    """The JSON type of a value, in words."""
    kinds = {dict: "an object", list: "a list", str: "a text", bool: "a boolean", type(None): "null"}
    return kinds.get(type(value), "a number")
