"""What stands in an opening tag: the name of a tool or a parameter, as formats write it."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

from toolcrib.codecs.text.scanner import Into, Scanner, Steps

_IN_TAG = re.compile(r"[^<>\n]+")
_EQUALS = re.compile(r"""(?:"([^"]*)"|'([^']*)'|([^"'\s]\S*))\s*""")
_ATTRIBUTE = re.compile(r"""\s+(\w+)\s*=\s*(?:"([^"]*)"|'([^']*)'|([^\s"'/]+))""")
_ELEMENT = re.compile(r"\s*([^\s/]+)\s*")


@dataclass(frozen=True, slots=True)
class Header:
    """An opening tag: the name in it, whether the format says that its value is JSON, and whether it ends."""

    name: str
    as_json: bool | None = None
    closed: bool = True


def equals(text: str) -> Header | None:
    """`NAME` as in `<function=NAME>`."""
    match = _EQUALS.fullmatch(text)
    return Header(next(group for group in match.groups() if group is not None).strip()) if match else None


def attributes(text: str) -> Header | None:
    """` name="NAME"` as in `<invoke name="NAME">`, with `string="true"` or `"false"` beside it or not."""
    found: dict[str, str] = {}
    position = 0
    while match := _ATTRIBUTE.match(text, position):
        key, *values = match.groups()
        found.setdefault(key, next(value for value in values if value is not None))
        position = match.end()
    if "name" not in found or text[position:].strip():
        return None
    as_json = {"true": False, "false": True}.get(found.get("string", ""))
    return Header(found["name"].strip(), as_json)


def element(text: str) -> Header | None:
    """`NAME` as in `<NAME>`."""
    match = _ELEMENT.fullmatch(text)
    return Header(match[1]) if match else None


def read_header(scan: Scanner, read: Callable[[str], Header | None], into: Into) -> Steps[Header | None]:
    """The rest of an opening tag up to its `>`; None for what is no such tag. All that is read goes to `into`."""
    pieces: list[str] = []
    yield from scan.take_while(_IN_TAG, pieces.append)
    text = "".join(pieces)
    into(text)
    header = read(text)
    if (yield from scan.peek()) == ">":
        scan.skip(1, into)
        return header
    return None if header is None else Header(header.name, header.as_json, closed=False)


def tag(read: Callable[[str], Header | None]) -> Callable[[Scanner, Into], Steps[Header | None]]:
    """Reads the rest of an opening tag that is written like this."""
    return lambda scan, into: read_header(scan, read, into)
