# ruff: noqa: E501 - tables read better in lines
"""Fills the placeholders of a command that people look up (`{{path/to/file}}`) with values that fit the sample folder."""

from __future__ import annotations

import re

PLACEHOLDER = re.compile(r"\{\{(.*?)\}\}")
CHOICE = re.compile(r"\[(-?[^\[\]|]*)\|([^\[\]]*)\]")
NUMBERS = re.compile(
    r"(?:n|x|y|count|number|num|width|height|lines?|size|depth|max|min|level|limit|offset|column|position|jobs|length|bytes"
    r"|seconds|minutes|delay|interval|timeout|duration|port|threads|processes|index|start|end|from|to|step|precision|first|last"
    r"|increment|integer|priority|rows|columns|spaces|percent\w*|quality|factor|days|hours|value)(?:\d|_\w+)?"
    r"|\w+_(?:count|number|size|length|width|height|depth|seconds|bytes|lines|limit|level)"
)
VALUES: tuple[tuple[str, str], ...] = (
    (
        r"(?:search_)?(?:pattern|string|text|word|term|query|keyword|regex|regular_expression|expression|needle)\w*",
        "line",
    ),
    (r"(?:search_)?(?:pattern|string|text|word|term|query|keyword|regex)s?\d?(?: .*)?", "line"),
    (r"user(?:name)?\d?|owner|login|user_name|group(?:_?name)?\d?|group\d", "root"),
    (r"p?pid\d?|process_id|process_ID|PID", "1"),
    (r"branch\w*|main|master|revision\w*|commit\w*|tag\w*|tree-ish|ref\w*|treeish|hash|sha", "HEAD"),
    (r"remote\w*", "origin"),
    (r"command\d?(?: .*)?|program\w*", "ls"),
    (r"package\w*|manual|page|topic", "bash"),
    (r"delimiter|separator|character|char|sep", ","),
    (r"variable\w*|env\w*|name\d?", "name"),
    (r"host\w*|server\w*|ip_address|address|domain\w*|ip", "localhost"),
    (r"url\w*", "https://example.com"),
    (r"locale|language|lang", "C"),
    (r"encoding|charset|from_encoding|to_encoding", "UTF-8"),
    (r"filesystem|fs_type|type", "ext4"),
    (r"goal|target|task", "all"),
    (r"make", "make"),
)


def filled(template: str, *, long: bool) -> str:
    """The command with short or long options and a value for every placeholder."""
    return PLACEHOLDER.sub(lambda found: _value(found[1], long), template)


def _value(inside: str, long: bool) -> str:
    choice = CHOICE.fullmatch(inside)
    if choice is not None:
        return choice[2] if long else choice[1]
    inside = CHOICE.sub("", inside) if "/" in inside else inside
    if "path/to" in inside or "/" in inside or "." in inside.strip("."):
        words = [word for word in inside.split() if word != "..."]
        return " ".join(words).split("|")[0]
    first = inside.removesuffix(" ...").split("|")[0]
    if NUMBERS.fullmatch(first):
        return "2"
    for pattern, value in VALUES:
        if re.fullmatch(pattern, first):
            return value
    return first
