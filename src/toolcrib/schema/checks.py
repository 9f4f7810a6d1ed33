"""How often a validator would apply a schema to a value and to its parts, counted before it does so.

A validator tries each branch of a schema anew. A small schema of a stranger whose branches lead to the same definition
again and again, or that nests `unevaluatedProperties`, would keep it busy for years, and nothing can interrupt it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from toolcrib.schema.references import OLD_DRAFTS, References, Resource

__all__ = ["Checks"]

HARMLESS = 2_000  # parts of a schema, each counted once for each way that leads to it
REPEATED = 3  # times that a validator applies the parts of a schema with one of these keywords
REPEATING = ("unevaluatedItems", "unevaluatedProperties")
DYNAMIC = ("$dynamicRef", "$recursiveRef")
REFERENCES = ("$ref", *DYNAMIC)
DYNAMIC_ANCHORS = {"$dynamicAnchor", "$recursiveAnchor"}
PUBLISHED = ("http://json-schema.org/", "https://json-schema.org/")  # schemas that a validator has with it
# What the schemas of a keyword are applied to. In older drafts `items` may be a list, and `dependencies` names.
TO_VALUE = ("allOf", "anyOf", "oneOf", "not", "if", "then", "else")
TO_MEMBERS = ("additionalProperties", "unevaluatedProperties")
TO_ITEMS = ("items", "additionalItems", "unevaluatedItems", "contains")
IF_PRESENT = ("dependentSchemas", "dependencies")


class Checks:
    """Counts how often a schema and its parts are applied. It may count more than a validator does, and not less."""

    __slots__ = ("_dynamic", "_harmless", "_parts", "_references", "_root", "is_quick")

    def __init__(self, schema: Mapping[str, Any]) -> None:
        text = repr(schema)
        # Each part is applied to a value once.
        self.is_quick = self._harmless = not any(repr(word) in text for word in (*REFERENCES, *REPEATING))
        if self._harmless:
            return
        self._references = References(schema)
        self._dynamic = [node for node in _objects(schema) if not DYNAMIC_ANCHORS.isdisjoint(node)]
        self._parts: dict[tuple[int, str], _Part] = {}
        self._root = self._part(schema, self._references.root)
        self._root.unknown = _mixes_drafts(schema)
        few, recursive = self._walk()
        self._harmless = few and not recursive
        #: `is_valid` needs no count: the validator remembers what a recursive definition said of a part of a value.
        self.is_quick = few and not (recursive and any(repr(word) in text for word in (*DYNAMIC, *REPEATING)))

    def more_than(self, most: int, value: Any) -> bool:
        """Whether more than `most` applications are needed to check a value, or an unknown number of them."""
        if self._harmless:
            return False
        waiting: list[_Step] = [(self._root, value)]
        count = 0
        while waiting:
            part, value = waiting.pop()
            self._read(part)
            count += 1
            waiting += part.steps(value) * part.times
            if part.unknown or count + len(waiting) > most:
                return True
        return False

    def _walk(self) -> tuple[bool, bool]:
        """Whether few ways lead through the schema, none of them twice through one part, and whether some would."""
        ways: list[Iterator[_Part]] = [iter([self._root])]
        way: list[_Part] = []
        count, recursive = 0, False
        while ways:
            part = next(ways[-1], None)
            if part is None:
                ways.pop()
                if way:
                    way.pop().is_open = False
                continue
            self._read(part)
            count += 1
            if part.unknown or count > HARMLESS:
                return False, recursive
            if part.is_open:
                recursive = True
                continue
            part.is_open = True
            way.append(part)
            ways.append(iter(part.children() * part.times))
        return True, recursive

    def _part(self, node: Mapping[str, Any], home: Resource) -> _Part:
        key = id(node), home.uri
        if key not in self._parts:
            self._parts[key] = _Part(node, home)
        return self._parts[key]

    def _read(self, part: _Part) -> None:
        """Find the parts of a part. Each is read when it is first applied: a schema may contain itself."""
        if part.is_read:
            return
        part.is_read = True
        home = self._references.enter(part.node, part.home)
        for keyword, inside in part.node.items():
            if keyword in REFERENCES:
                self._refer(part, keyword, inside, home)
            elif keyword in REPEATING:
                part.times = REPEATED
            if isinstance(inside, list):
                children = [self._part(child, home) for child in inside if isinstance(child, Mapping)]
                if keyword in TO_VALUE:
                    part.in_place += children
                elif keyword in ("prefixItems", "items"):
                    part.items += children
            elif isinstance(inside, Mapping):
                if keyword in TO_VALUE:
                    part.in_place.append(self._part(inside, home))
                elif keyword in TO_MEMBERS:
                    part.members.append(self._part(inside, home))
                elif keyword in TO_ITEMS:
                    part.items.append(self._part(inside, home))
                elif keyword == "propertyNames":
                    part.names.append(self._part(inside, home))
                elif keyword in ("properties", "patternProperties", *IF_PRESENT):
                    self._read_named(part, keyword, inside, home)

    def _read_named(self, part: _Part, keyword: str, inside: Mapping[str, Any], home: Resource) -> None:
        named = {
            name: self._part(child, home) for name, child in inside.items() if isinstance(child, Mapping)
        }
        if keyword == "properties":
            part.named = named
        elif keyword == "patternProperties":
            part.matching = [(_matcher(pattern), child) for pattern, child in named.items()]
        else:
            part.if_present += named.items()

    def _refer(self, part: _Part, keyword: str, reference: Any, home: Resource) -> None:
        """Add what a reference leads to. A dynamic one may lead to each dynamic anchor."""
        target = self._references.resolve(reference, home) if isinstance(reference, str) else None
        if target is not None and isinstance(target[0], Mapping):
            part.in_place.append(self._part(*target))
        elif target is None and (self._dynamic or not str(reference).startswith(PUBLISHED)):
            part.unknown = True
        if keyword != "$ref":
            part.in_place += [self._part(node, self._references.root) for node in self._dynamic]


class _Part:
    """A schema within a schema, with what is applied where it is: to the same value, or to members or items of it."""

    __slots__ = (
        "home", "if_present", "in_place", "is_open", "is_read", "items", "matching", "members", "named", "names",
        "node", "times", "unknown",
    )  # fmt: skip

    def __init__(self, node: Mapping[str, Any], home: Resource) -> None:
        self.node = node
        self.home = home
        self.is_open = self.is_read = self.unknown = False
        self.times = 1
        self.in_place: list[_Part] = []
        self.named: dict[str, _Part] = {}
        self.matching: list[tuple[Callable[[str], bool], _Part]] = []
        self.members: list[_Part] = []
        self.names: list[_Part] = []
        self.items: list[_Part] = []
        self.if_present: list[tuple[str, _Part]] = []

    def children(self) -> list[_Part]:
        """What may be applied because this is applied, whatever the value is."""
        found = [*self.in_place, *self.named.values(), *self.members, *self.names, *self.items]
        return found + [child for _, child in (*self.matching, *self.if_present)]

    def steps(self, value: Any) -> list[_Step]:
        """What is applied because this is applied to a value."""
        found = [(child, value) for child in self.in_place]
        if isinstance(value, dict):
            named = self.named
            for name, member in value.items():
                if name in named:
                    found.append((named[name], member))
                else:
                    found += [(child, member) for child in self.members]
                found += [(child, name) for child in self.names]
                found += [(child, member) for matches, child in self.matching if matches(name)]
            found += [(child, value) for name, child in self.if_present if name in value]
        elif isinstance(value, list):
            found += [(child, item) for item in value for child in self.items]
        return found


_Step = tuple[_Part, Any]


def _matcher(pattern: str) -> Callable[[str], bool]:
    """Whether a name matches a pattern, as the validator sees it: it takes bounded time there."""
    import jsonschema_rs

    matches: Callable[[str], bool] = jsonschema_rs.validator_for({"pattern": pattern}).is_valid
    return matches


def _mixes_drafts(schema: Mapping[str, Any]) -> bool:
    """Whether parts with identifiers of their own may be of another draft, which reads references differently."""
    inner = [node for node in _objects(schema) if node is not schema]
    uris = [node["$schema"] for node in inner if isinstance(node.get("$schema"), str)]
    drafts = {_draft(uri) for uri in (schema.get("$schema", ""), *uris)}
    return len(drafts) > 1 and any(
        isinstance(node.get(name), str) for node in inner for name in ("$id", "id")
    )


def _draft(uri: object) -> str:
    """Which draft a `$schema` names, of those that read references and identifiers differently; "" for later ones."""
    return next((name for name in OLD_DRAFTS if name in str(uri)), "")


def _objects(schema: Any) -> Iterator[Mapping[str, Any]]:
    waiting: list[Any] = [schema]
    while waiting:
        node = waiting.pop()
        if isinstance(node, Mapping):
            yield node
            waiting += node.values()
        elif isinstance(node, list):
            waiting += node
