"""Shortened calls: what models write behind a tool's name in place of JSON, such as `shell>ls` or `f(a="b")`."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any, Final

from toolcrib.codecs.wire_json import as_list

__all__ = ["arrow_call", "members_of", "name_in"]

NAME_IN: Final = re.compile(r"""["']name["']\s*:\s*["']([\w.:-]{1,128})["']""")
PAIR: Final = re.compile(
    r"""\s*(?:,\s*)?([A-Za-z_][\w.-]*)\s*=\s*("(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*'|[^\s,"'/>)]+)""", re.DOTALL
)
LINE: Final = re.compile(r"([A-Za-z_][\w.-]*)\s*[:>]\s?(.*)")
PATH: Final = re.compile(r"/([A-Za-z_][\w.-]*)>")
CODE: Final = re.compile(r"<code>(.*?)</code>", re.DOTALL)
ARROW_CALL: Final = re.compile(
    r"""\{\s*tool\s*=>\s*(["'])([^"']+)\1\s*,\s*args\s*=>\s*\{(.*)\}\s*\}\s*\Z""", re.DOTALL
)
FLAG: Final = re.compile(
    r"""--([A-Za-z_][\w-]*)\s+("(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*'|[^\s"',}]+),?\s*""", re.DOTALL
)


def _pairs(text: str) -> dict[str, str] | None:
    """`key="value"` pairs and nothing else."""
    return _all_of(PAIR, text.strip())


def arrow_call(text: str) -> dict[str, Any] | None:
    """The call in `{tool => "name", args => { --key "value" }}`."""
    found = ARROW_CALL.match(text.strip())
    if found is None:
        return None
    members = _all_of(FLAG, found[3].strip())
    return None if members is None else {"name": found[2], "arguments": members}


def _lines(text: str) -> dict[str, str] | None:
    """Lines of `key: value`, and nothing else."""
    found: dict[str, str] = {}
    for line in text.strip().splitlines():
        match = LINE.fullmatch(line.strip())
        if match is None or match[1] in found:
            return None
        found[match[1]] = match[2].strip()
    return found or None


def members_of(text: str, schema: Mapping[str, Any]) -> dict[str, str] | None:
    """The arguments behind the tool's name in a shortened call; None where they cannot be recognised."""
    text = text.strip()
    if text.startswith("<code>"):
        return _lines("\n".join(CODE.findall(text)))
    if text.startswith("(") and text.endswith(")"):
        return _pairs(text[1:-1]) if text[1:-1].strip() else {}
    path = PATH.match(text)
    if path is not None:
        return {path[1]: text[path.end() :].strip()}
    if text.startswith(">"):
        return _after_arrow(text[1:], schema)
    return _pairs(text.removesuffix(">").rstrip().removesuffix("/"))


def _after_arrow(text: str, schema: Mapping[str, Any]) -> dict[str, str] | None:
    if text.startswith("\n") and (members := _lines(text)) is not None:
        return members
    name = _single_parameter(schema)
    return None if name is None else {name: text.strip()}


def _single_parameter(schema: Mapping[str, Any]) -> str | None:
    """The only parameter, or the only required one: a value without a name belongs to it."""
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


def name_in(text: str) -> str:
    """The tool that a broken call names, so that the answer can name it too."""
    match = NAME_IN.search(text)
    return match[1] if match else ""
