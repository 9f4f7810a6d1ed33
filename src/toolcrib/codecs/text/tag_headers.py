"""Reads the beginning of a tagged call or parameter: the name that its tag gives."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from toolcrib.codecs.text.delimiters import Delimiters
from toolcrib.codecs.text.scanner import Into, Scanner, Steps, markers_of

__all__ = ["Header", "call_header", "parameter_header", "read_tag"]

IN_TAG: Final = re.compile(r"[^<>\n]+")
EQUALS: Final = re.compile(r"""(?:"([^"]*)"|'([^']*)'|([^"'\s]\S*))\s*""")
ATTRIBUTE: Final = re.compile(r"""\s+(\w+)\s*=\s*(?:"([^"]*)"|'([^']*)'|([^\s"'/]+))""")
PLAIN_NAME: Final = re.compile(r"[^\s<>{}\\]+")
PLAIN_KEY: Final = re.compile(r"[^<>]+")


@dataclass(frozen=True, slots=True)
class Header:
    """The name in a tag, whether the format says that the value is JSON or a string, and whether the tag ends."""

    name: str
    as_json: bool | None = None
    closed: bool = True


def equals(text: str) -> Header | None:
    """The name in `<function=NAME>`, of which the text is what follows the `=`."""
    match = EQUALS.fullmatch(text)
    return Header(next(group for group in match.groups() if group is not None).strip()) if match else None


def attributes(text: str) -> Header | None:
    """The name in `<invoke name="NAME">`; `string="true"` or `"false"` beside it says whether the value is a string."""
    found: dict[str, str] = {}
    position = 0
    while match := ATTRIBUTE.match(text, position):
        key, *values = match.groups()
        found.setdefault(key, next(value for value in values if value is not None))
        position = match.end()
    if "name" not in found or text[position:].strip():
        return None
    as_json = {"true": False, "false": True}.get(found.get("string", ""))
    return Header(found["name"].strip(), as_json)


NAME_IN_TAG: Final = {"equals": equals, "attribute": attributes}


def call_header(delimiters: Delimiters, scan: Scanner, into: Into) -> Steps[Header | None]:
    """The rest of a tag that begins a call; None where it is no such tag. What is read goes to `into` too."""
    if delimiters.call_name == "plain":
        return (yield from _plain_name(delimiters, scan, into))
    return (yield from read_tag(scan, NAME_IN_TAG[delimiters.call_name], into))


def parameter_header(delimiters: Delimiters, scan: Scanner, into: Into) -> Steps[Header | None]:
    """The rest of a tag that begins a parameter; None where it is no such tag. What is read goes to `into` too."""
    if delimiters.parameter_name == "plain":
        return (yield from _plain_key(delimiters, scan, into))
    return (yield from read_tag(scan, NAME_IN_TAG[delimiters.parameter_name], into))


def read_tag(scan: Scanner, read: Callable[[str], Header | None], into: Into) -> Steps[Header | None]:
    """The rest of an opening tag up to its `>`, as `read` understands it."""
    pieces: list[str] = []
    yield from scan.take_while(IN_TAG, pieces.append)
    text = "".join(pieces)
    into(text)
    header = read(text)
    if (yield from scan.peek()) == ">":
        scan.skip(1, into)
        return header
    return None if header is None else Header(header.name, header.as_json, closed=False)


def _plain_name(delimiters: Delimiters, scan: Scanner, into: Into) -> Steps[Header | None]:
    """A name in no tag, behind which only a parameter or the end of the call can stand."""
    follows = tuple(filter(None, (delimiters.parameter, delimiters.call_end, delimiters.separator)))
    name: list[str] = []
    yield from scan.skip_space(into)
    yield from scan.take_while(PLAIN_NAME, name.append)
    into("".join(name))
    yield from _skip_layout(scan, into)
    if not (yield from scan.peek()):
        return Header("".join(name), closed=False)
    if not (yield from scan.peek(max(map(len, follows)))).startswith(follows):
        return None
    if delimiters.separator:
        into((yield from scan.accept((delimiters.separator,))) or "")
    return Header("".join(name))


def _plain_key(delimiters: Delimiters, scan: Scanner, into: Into) -> Steps[Header | None]:
    """A parameter's name in an element of its own, and the tag that begins its value."""
    *_, value = delimiters.key_ends
    key: list[str] = []
    yield from scan.take_while(PLAIN_KEY, key.append)
    into("".join(key))
    found = yield from scan.accept(markers_of(delimiters.key_ends))
    into(found or "")
    if found is not None and found != value:
        yield from _skip_layout(scan, into)
        found = yield from scan.accept((value,))
        into(found or "")
    return Header("".join(key).strip(), closed=found == value)


def _skip_layout(scan: Scanner, into: Into) -> Steps[None]:
    """White space, and line breaks that some servers send escaped."""
    while True:
        yield from scan.skip_space(into)
        if (yield from scan.peek()) != "\\" or (yield from scan.peek(2)) != "\\n":
            return
        scan.skip(2, into)
