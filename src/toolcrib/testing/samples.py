"""Makes arguments from a JSON Schema, valid and invalid ones; the same seed gives the same arguments."""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping
from typing import Any

from toolcrib.schema.steps import resolve, variants

__all__ = ["invalid_samples", "samples"]

Schema = Mapping[str, Any]

MAX_DEPTH = 5  # levels of optional values in optional values
MAX_TRIES = 20  # per sample, for schemas with keywords that the generator does not know
WORDS = ("a", "alpha", "notes.txt", "two words", "Zürich ✓", "123", "line one\nline two", "{}", "x" * 40)
FORMATS: dict[str, tuple[str, ...]] = {
    "date": ("2026-02-28", "1999-12-31"),
    "time": ("12:30:00Z", "00:00:00Z"),
    "date-time": ("2026-02-28T12:30:00Z", "1999-12-31T23:59:59+02:00"),
    "duration": ("P1D", "PT90S"),
    "email": ("someone@example.com",),
    "uuid": ("6f1c7a54-3c1e-4d5a-9b7e-0a1b2c3d4e5f",),
    "uri": ("https://example.com/a?b=c",),
    "hostname": ("example.com",),
    "ipv4": ("192.0.2.1",),
    "ipv6": ("2001:db8::1",),
    "path": ("notes.txt", "."),
    "binary": ("aGVsbG8=",),
    "base64": ("aGVsbG8=",),
    "regex": ("a+b",),
}
# Tried for a pattern: making a text for any regular expression is not worth its code here.
PATTERNED = (
    "a",
    "A",
    "0",
    "abc",
    "ABC",
    "123",
    "1.5",
    "-2",
    "abc-123",
    "a_b",
    "2026-02-28",
    "#00ff00",
    "+49301234",
)
WRONG: tuple[Any, ...] = ({"unexpected": []}, ["unexpected", {}], 12.5, "unexpected", True)


def samples(schema: Schema, count: int, seed: int = 0) -> Iterator[dict[str, Any]]:
    """Up to `count` different arguments that fit a schema, the simplest first; none where no value can fit.

    >>> next(samples({"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}, 1))
    {'n': 0}
    """
    import json

    from toolcrib.schema.validator import offline_validator

    valid = offline_validator(schema)
    chance = random.Random(seed)
    seen: set[str] = set()
    for attempt in range(count * MAX_TRIES):
        if len(seen) >= count:
            return
        made = _Maker(schema, chance, plain=attempt == 0).value(schema, 0)
        if not isinstance(made, dict) or not valid.is_valid(made):
            continue
        text = json.dumps(made, sort_keys=True)
        if text not in seen:
            seen.add(text)
            yield made


def invalid_samples(schema: Schema, arguments: Mapping[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Arguments that no longer fit, each with the name of the parameter that is wrong."""
    from toolcrib.schema.validator import offline_validator

    valid = offline_validator(schema)
    properties: Mapping[str, Any] = schema.get("properties", {})
    for name in schema.get("required", ()):
        yield name, {key: value for key, value in arguments.items() if key != name}
    for name in properties:
        for wrong in WRONG:
            changed = {**arguments, name: wrong}
            if not valid.is_valid(changed):
                yield name, changed
                break
    if schema.get("additionalProperties") is False:
        yield "no_such_parameter", {**arguments, "no_such_parameter": "x"}


class _Maker:
    """Makes one value; `plain` takes the first choice everywhere and leaves out optional parameters."""

    def __init__(self, root: Schema, chance: random.Random, *, plain: bool) -> None:
        self.root = root
        self.chance = chance
        self.plain = plain

    def value(self, node: Any, depth: int) -> Any:
        node = resolve(node, self.root)
        if not isinstance(node, Mapping):
            return {}
        for keyword in ("examples", "enum"):
            if node.get(keyword) and (keyword == "enum" or self.chance.random() < 0.5):
                return self._one_of(node[keyword])
        if "const" in node:
            return node["const"]
        for keyword in ("anyOf", "oneOf"):
            if node.get(keyword):
                base = {key: item for key, item in node.items() if key != keyword}
                chosen = resolve(self._one_of(node[keyword]), self.root)
                return self.value({**base, **chosen} if isinstance(chosen, Mapping) else base, depth)
        if node.get("allOf"):
            merged: dict[str, Any] = {}
            for place in variants(node, self.root):
                merged |= {key: item for key, item in place.items() if key != "allOf"}
            return self.value(merged, depth)
        kind = node.get("type")
        if isinstance(kind, list):
            kind = self._one_of(kind)
        make = _MAKERS.get(kind if isinstance(kind, str) else "object" if "properties" in node else "string")
        return make(self, node, depth) if make is not None else None

    def object(self, node: Schema, depth: int) -> dict[str, Any]:
        required = node.get("required", ())
        made: dict[str, Any] = {}
        for name, inner in node.get("properties", {}).items():
            wanted = not self.plain and depth < MAX_DEPTH and self.chance.random() < 0.5
            if name in required or wanted:
                made[name] = self.value(inner, depth + 1)
        extra = node.get("additionalProperties")
        while len(made) < node.get("minProperties", 0):
            made[f"key{len(made)}"] = self.value(extra if isinstance(extra, Mapping) else {}, depth + 1)
        return made

    def array(self, node: Schema, depth: int) -> list[Any]:
        least = int(node.get("minItems", 0))
        most = int(node.get("maxItems", least + 2))
        count = (
            least
            if self.plain or depth >= MAX_DEPTH
            else self.chance.randint(least, max(least, min(most, least + 2)))
        )
        prefix: list[Any] = list(node.get("prefixItems", ()))
        made = [self.value(item, depth + 1) for item in prefix[: max(count, len(prefix))]]
        return made + [self.value(node.get("items", {}), depth + 1) for _ in range(count - len(made))]

    def string(self, node: Schema, depth: int) -> str:
        if node.get("format") in FORMATS:
            return str(self._one_of(FORMATS[node["format"]]))
        if node.get("pattern"):
            return str(self._matching(node["pattern"]))
        text = str(self._one_of(WORDS))
        least, most = int(node.get("minLength", 0)), node.get("maxLength")
        text += "x" * max(0, least - len(text))
        return text if most is None else text[: int(most)]

    def integer(self, node: Schema, depth: int) -> int:
        low, high = self._bounds(node, 1)
        step = int(node.get("multipleOf", 1)) or 1
        number = int(low if self.plain else self.chance.randint(int(low), int(max(low, high))))
        return min(-(-number // step) * step, int(high))

    def number(self, node: Schema, depth: int) -> float:
        if node.get("multipleOf"):
            return self.integer({**node, "multipleOf": max(1, round(node["multipleOf"]))}, depth)
        low, high = self._bounds(node, 0)
        inside = node.get("exclusiveMinimum") is not None or node.get("exclusiveMaximum") is not None
        share = 0.5 if inside else 0.0 if self.plain else self.chance.random()
        return float(round(low + (high - low) * share, 3))

    def _bounds(self, node: Schema, beyond: int) -> tuple[Any, Any]:
        low, high = node.get("minimum"), node.get("maximum")
        if node.get("exclusiveMinimum") is not None:
            low = node["exclusiveMinimum"] + beyond
        if node.get("exclusiveMaximum") is not None:
            high = node["exclusiveMaximum"] - beyond
        if low is None:
            low = 0 if high is None or high >= 0 else high - 10
        return low, high if high is not None else low + 10

    def _matching(self, pattern: str) -> str:
        import re

        try:
            fitting = [text for text in (*PATTERNED, *WORDS) if re.search(pattern, text)]
        except re.error:
            fitting = []
        return str(self._one_of(fitting)) if fitting else ""

    def _one_of(self, choices: Any) -> Any:
        return choices[0] if self.plain else self.chance.choice(list(choices))


_MAKERS: dict[str, Any] = {
    "object": _Maker.object,
    "array": _Maker.array,
    "string": _Maker.string,
    "integer": _Maker.integer,
    "number": _Maker.number,
    "boolean": lambda maker, node, depth: maker._one_of((True, False)),
    "null": lambda maker, node, depth: None,
}
