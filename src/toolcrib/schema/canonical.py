"""One pass from any JSON Schema to the canonical one that everything else is made from."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from toolcrib.dataclass import dataclass, field
from toolcrib.json_text.values import escape
from toolcrib.schema.combine import merge
from toolcrib.schema.given import why_no_schema
from toolcrib.schema.keywords import KINDS, NAMED, NODE, NODES, NOISE, Schema, accepts_null
from toolcrib.schema.legacy import modern
from toolcrib.schema.references import References, Resource
from toolcrib.schema.shorten import nullable, shorten
from toolcrib.schema.values import PLAIN

MAX_REPEATED: Final = 10_000  # nodes that inlining may add to a document; beyond, large parts stay references
MAX_DEPTH: Final = 100  # levels of nesting as written; what lies deeper is not shown
MAX_INLINED_DEPTH: Final = 50  # levels that inlining may reach; beyond, a reference stays
_SIZES: Final = (2_048, 512, 128, 32, 8, 1)  # largest part that is still inlined, tried until the whole fits
_ROUNDS: Final = 5

_BOOLEAN_STANDS: Final = frozenset(
    ("additionalProperties", "unevaluatedProperties", "unevaluatedItems", "items")
)  # where true and false are the usual way to write a schema


class SchemaError(ValueError):
    """What was given as a JSON Schema is not a JSON object."""


@dataclass(frozen=True, slots=True)
class Loss:
    """What a schema says that its rewritten form does not: place (JSON pointer), keyword and value.

    Most losses allow more values than the schema does. One that `narrows` allows fewer: free keys, "anything" or
    recursion became something smaller, for a dialect that has no words for them.
    """

    path: str
    keyword: str
    detail: str
    narrows: bool = field(default=False, repr=False)


def clean(schema: Mapping[str, Any]) -> Schema:
    """The canonical form of a JSON Schema: references inlined, noise stripped, the shortest equal wording.

    References are resolved wherever they stand; only recursion leaves one, into the root's `$defs` or as
    `#`, and so do parts whose inlining would add more than 10,000 nodes. Works for drafts 4 to 2020-12 and
    for what is not quite JSON Schema: what cannot be understood is left out. The input is not changed; the
    result may share parts with it and with itself, so treat it as immutable.

    Raises `SchemaError`, a `ValueError`, if the schema is not a mapping.

    >>> clean({"$ref": "#/$defs/A", "$defs": {"A": {"type": "object", "title": "A"}}})
    {'type': 'object', 'properties': {}}
    """
    return clean_and_tell(schema)[0]


def clean_and_tell(schema: Mapping[str, Any]) -> tuple[Schema, list[Loss]]:
    """`clean`, together with the parts of the schema that could not be understood."""
    if not isinstance(schema, Mapping):
        raise SchemaError(why_no_schema(schema))
    cleaning = _Cleaning(schema, None)
    out = cleaning.run()
    losses = cleaning.losses
    if cleaning.repeated <= MAX_REPEATED and not cleaning.unsettled:
        return out, losses
    # A second round measures what the first one made, so that cleaning a clean schema changes nothing.
    before: Mapping[str, Any] = schema
    for _ in range(_ROUNDS):
        out = _bounded(before)
        if out == before:
            break
        before = out
    return out, losses


def _bounded(schema: Mapping[str, Any]) -> Schema:
    out: Schema = {}
    for largest in (None, *_SIZES):
        cleaning = _Cleaning(schema, largest)
        out = cleaning.run()
        if cleaning.repeated <= MAX_REPEATED:
            break
    return out


_Path = tuple[Any, str | int] | None  # where a node stands: its parent's path and the last token of its own


@dataclass(slots=True)
class _Part:
    """A referenced schema, cleaned once and reused for every reference to it."""

    schema: Schema
    size: int
    height: int


class _Cleaning:
    """The state of one pass: which reference targets are done, which are in progress, and which must stay
    references.
    """

    def __init__(self, root: Mapping[str, Any], largest: int | None) -> None:
        self.references = References(root)
        self.largest = largest
        self.losses: list[Loss] = []
        self.repeated = 0
        self.unsettled = False
        self._root = root
        self._parts: dict[int, _Part] = {}
        self._open: set[int] = set()
        self._names: dict[int, str] = {}  # targets that stay references
        self._taken: set[str] = set()
        self._waiting: list[tuple[Any, Resource, str]] = []  # targets met too deep to clean on the spot
        self._size = 0
        self._visited = 0
        self._deepest = 0

    def run(self) -> Schema:
        root, home = self._start()
        out = self._node(root, home, None, 0)
        size = self._size
        while self._waiting:
            target, home, token = self._waiting.pop()
            self._part(target, home, ((None, "$defs"), token), 0)
        defs = {name: self._parts[key].schema for key, name in self._names.items() if name}
        size += sum(self._parts[key].size for key, name in self._names.items() if name)
        self.repeated = size - self._visited
        followed: set[str] = set()
        while out.get("$ref", "#") not in ("#", *followed):
            # The root must be an object itself, not a reference to one.
            followed.add(out["$ref"])
            name = out["$ref"].removeprefix("#/$defs/")
            self.unsettled = True
            out = self._merged(defs[name], {key: value for key, value in out.items() if key != "$ref"})
        if "$ref" in out:
            self._lose(None, "$ref", "refers to nothing but itself")
            self.unsettled = True
            out = {key: value for key, value in out.items() if key != "$ref"}
        if defs:
            out = {**out, "$defs": dict(sorted(defs.items()))}
        return out

    def _start(self) -> tuple[Mapping[str, Any], Resource]:
        """The schema to start with: the target, where the document is nothing but a reference."""
        root: Mapping[str, Any] = self._root
        home = self.references.root
        self._names[id(root)] = ""
        while isinstance(root.get("$ref"), str) and all(key in NOISE for key in root if key != "$ref"):
            found = self.references.resolve(root["$ref"], home)
            if found is None or not isinstance(found[0], Mapping) or id(found[0]) in self._names:
                break
            root, home = found
            self._names[id(root)] = ""
        return root, home

    def _lose(self, path: _Path, keyword: str, detail: str) -> None:
        tokens: list[str] = []
        while path is not None:
            path, token = path
            tokens.append("/" + escape(str(token)))
        self.losses.append(Loss("".join(reversed(tokens)), keyword, detail))

    # -- one node ---------------------------------------------------------------------------------------

    def _node(self, raw: Any, home: Resource, path: _Path, depth: int) -> Schema:
        self._size += 1
        self._visited += 1
        if depth > self._deepest:
            self._deepest = depth
        if type(raw) is not dict and not isinstance(raw, Mapping):
            return {"not": {}} if raw is False else {}
        if depth > MAX_DEPTH:
            self._lose(path, "", f"nested deeper than {MAX_DEPTH} levels")
            return {}
        home = self.references.enter(raw, home)
        raw = modern(raw)
        out: Schema = {}
        for keyword, value in raw.items():
            plain = PLAIN.get(keyword)
            if plain is not None:
                read = plain(value)
                if read is not None:
                    out[keyword] = read
                continue
            kind = KINDS.get(keyword)
            if kind == NAMED:
                if isinstance(value, Mapping):
                    out[keyword] = self._named(value, home, (path, keyword), depth + 1)
            elif kind == NODES:
                if isinstance(value, list) and value:
                    out[keyword] = self._nodes(value, home, (path, keyword), depth + 1)
            elif kind == NODE:
                if isinstance(value, bool) and keyword in _BOOLEAN_STANDS:
                    out[keyword] = {} if keyword == "items" and value else value
                elif isinstance(value, (Mapping, bool)):
                    out[keyword] = self._node(value, home, (path, keyword), depth + 1)
            elif keyword not in NOISE and isinstance(keyword, str):
                out[keyword] = value
        null = out.pop("nullable", False) is True
        reference = out.pop("$ref", None)
        out = shorten(out) if reference is None else self._refer(reference, out, home, path, depth)
        return shorten(_let_null_in(out)) if null else out

    def _nodes(self, value: list[Any], home: Resource, path: _Path, depth: int) -> list[Schema]:
        return [self._node(item, home, (path, index), depth) for index, item in enumerate(value)]

    def _named(self, value: Mapping[str, Any], home: Resource, path: _Path, depth: int) -> Schema:
        return {
            name: self._node(item, home, (path, name), depth)
            for name, item in value.items()
            if isinstance(name, str)
        }

    # -- references -------------------------------------------------------------------------------------

    def _refer(self, reference: str, beside: Schema, home: Resource, path: _Path, depth: int) -> Schema:
        found = self.references.resolve(reference, home)
        if found is None:
            self._lose(path, "$ref", f"nothing stands at {reference}")
            return shorten(beside)
        target, home = found
        if not isinstance(target, Mapping):
            base: Schema = {} if target else {"not": {}}
        else:
            token = reference.rsplit("/", 1)[-1].rsplit("#", 1)[-1]
            base = self._inline(target, home, token, path, depth)
        return self._merged(base, beside)

    def _merged(self, base: Schema, beside: Schema) -> Schema:
        merged = merge(base, beside)
        return shorten({"allOf": [base], **beside} if merged is None else merged)

    def _inline(
        self, target: Mapping[str, Any], home: Resource, token: str, path: _Path, depth: int
    ) -> Schema:
        key = id(target)
        stays = self._names.get(key) is not None or key in self._open
        part = self._parts.get(key)
        if not stays and part is None:
            if depth > MAX_INLINED_DEPTH:
                self._waiting.append((target, home, token))
                return self._keep(key, token)
            part = self._part(target, home, path, depth)
            stays = key in self._names
            if not stays and not self._too_large(part, depth):
                return part.schema  # _part has counted it
            self._size -= part.size
        if part is not None and not stays and not self._too_large(part, depth):
            self._size += part.size
            self._deepest = max(self._deepest, depth + part.height)
            return part.schema
        return self._keep(key, token)

    def _too_large(self, part: _Part, depth: int) -> bool:
        return depth > 0 and (
            (self.largest is not None and part.size > self.largest)
            or depth + part.height > MAX_DEPTH - MAX_INLINED_DEPTH // 2
        )

    def _part(self, target: Mapping[str, Any], home: Resource, path: _Path, depth: int) -> _Part:
        key = id(target)
        part = self._parts.get(key)
        if part is not None:
            return part
        size, deepest = self._size, self._deepest
        self._size, self._deepest = 0, depth
        self._open.add(key)
        schema = self._node(target, home, path, depth)
        self._open.discard(key)
        name = self._names.get(key)
        if name is not None and schema.get("$ref") == _reference(name):
            # Nothing but itself: a definition that says nothing.
            self._lose(path, "$ref", "refers to nothing but itself")
            self.unsettled = True
            schema = {keyword: value for keyword, value in schema.items() if keyword != "$ref"}
        part = self._parts[key] = _Part(schema, self._size, self._deepest - depth)
        self._size += size
        self._deepest = max(self._deepest, deepest)
        return part

    def _keep(self, key: int, token: str) -> Schema:
        if key not in self._names:
            plain = (
                "".join(char if char.isalnum() or char in "_.-" else "_" for char in token) or "Definition"
            )
            name, number = plain, 1
            while name in self._taken:
                number += 1
                name = f"{plain}_{number}"
            self._taken.add(name)
            self._names[key] = name
        return {"$ref": _reference(self._names[key])}


def _reference(name: str) -> str:
    return f"#/$defs/{name}" if name else "#"


def _let_null_in(node: Schema) -> Schema:
    """Rewrites OpenAPI 3.0's `nullable` as JSON Schema."""
    if accepts_null(node) or not node:
        return node
    widened = nullable(node)
    if widened is not None:
        return widened
    if "anyOf" in node and not {"type", "enum", "const", "$ref", "allOf", "oneOf", "not", "if"} & node.keys():
        return {**node, "anyOf": [*node["anyOf"], {"type": "null"}]}
    said: Schema = {key: node[key] for key in ("description", "default", "examples") if key in node}
    inner = {key: value for key, value in node.items() if key not in said}
    return {**said, "anyOf": [inner, {"type": "null"}]} if inner else node
