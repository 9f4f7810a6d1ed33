"""Lowers a canonical schema to a provider's dialect: the nearest form that it accepts, with the rest said in
descriptions.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any, Final

from toolcrib.dataclass import dataclass, field
from toolcrib.json_text.values import escape, kind_of
from toolcrib.schema.canonical import Loss, clean_and_tell
from toolcrib.schema.combine import meet
from toolcrib.schema.dialects import NAMING_ROOT, ROOT_REFUSED, Dialect, dialect_named
from toolcrib.schema.keywords import (
    ANNOTATIONS,
    KINDS,
    OF_TYPE,
    TYPED,
    Schema,
    ordered,
    types_of,
)
from toolcrib.schema.recursion import Definitions
from toolcrib.schema.roots import object_root
from toolcrib.schema.share import share
from toolcrib.schema.shorten import shorten
from toolcrib.schema.variants import disjoint, inferred, only, or_null, split
from toolcrib.schema.words import phrase, sentence, with_sentences

_LOOK_AROUND: Final = re.compile(r"\(\?<?[=!]|\\[1-9bB]")  # word boundaries too: engines know neither
_BESIDE_UNION: Final = frozenset({"description", "nullable", "anyOf"})
_ROOT_NAME: Final = "Root"


def to_dialect(schema: Mapping[str, Any], name: str) -> tuple[Schema, list[Loss]]:
    """The input schema of a tool in the dialect `name`, and the list of losses.

    Accepts any JSON Schema, ours or foreign. The root becomes an object; a construct that the provider rejects
    becomes the nearest one that it accepts; a removed constraint is said in the description of its node, and
    each loss is listed with its JSON pointer into `clean(schema)`. Validate arguments against the original, not
    this.

    Raises `ValueError` for an unknown dialect and `SchemaError` if the schema is not a mapping.

    >>> to_dialect({"type": "object", "properties": {"a": {"type": "string", "minLength": 3}}}, "gemini")[0]
    {'type': 'object', 'properties': {'a': {'type': 'string', 'description': 'At least 3 characters.'}}}
    """
    return lower_schema(schema, dialect_named(name))


def lower_schema(
    schema: Mapping[str, Any], dialect: Dialect, *, object_root: bool = True
) -> tuple[Schema, list[Loss]]:
    """`to_dialect` for a row that need not be among the dialects of tools. Without `object_root` the root may be any
    schema.
    """
    canonical, losses = clean_and_tell(schema)
    lowering = _Lowering(dialect, canonical, object_root)
    out = lowering.run()
    if dialect.references:
        out = share(out, siblings=dialect.ref_siblings)
    return out, list(dict.fromkeys([*losses, *lowering.losses]))


@dataclass(slots=True)
class _At:
    """The place of a node, and the sentences to be added to its description."""

    path: str
    left: int  # how many more references may be expanded on the way down
    root: bool = False
    exact: bool = False  # inside `not` and `if`, where a guess would have the opposite effect
    sentences: list[str] = field(default_factory=lambda: list[str]())

    def below(self, token: str, *, exact: bool = False) -> _At:
        return _At(f"{self.path}/{token}", self.left, exact=self.exact or exact)


class _Lowering:
    def __init__(self, dialect: Dialect, canonical: Schema, object_root: bool) -> None:
        self.dialect = dialect
        self._object_root = object_root
        self.losses: list[Loss] = []
        self.definitions = Definitions(canonical)
        self._root = {key: value for key, value in canonical.items() if key != "$defs"}
        self._root_keywords = dialect.root_keywords
        self._rewritten_root = False
        self._used: dict[str, str] = {}  # a reference that was kept, and the name that it now goes by

    def run(self) -> Schema:
        left = 2 if self.dialect.references else self.definitions.affordable_depth()
        at = _At("", left, root=self._object_root)
        root = self._root
        if self._object_root:
            root = object_root(root, self.definitions, at.sentences, self._lose_at(at))
        self._rewritten_root = root is not self._root
        if self._has_other_names(root):
            self._root_keywords, self._rewritten_root = NAMING_ROOT, True
        out = self._node(root, at)
        lowered: dict[str, Schema] = {}
        while missing := [ref for ref, name in self._used.items() if name and name not in lowered]:
            for ref in missing:
                name = self._used[ref]
                lowered[name] = self._node(self.definitions.target(ref), _At(f"/$defs/{name}", left))
        return {**out, "$defs": dict(sorted(lowered.items()))} if lowered else out

    def _has_other_names(self, root: Schema) -> bool:
        """Whether a codec replaces names of the root's properties."""
        legal = self.dialect.parameter_names
        return legal is not None and not all(map(legal.fullmatch, root.get("properties", ())))

    def _node(self, node: Schema, at: _At) -> Schema:
        if "$ref" in node:
            kept, node = self._reference(node, at)
            if kept:
                return node
        for step in _STEPS:
            node = step(self, node, at)
        description = with_sentences(node.get("description", ""), at.sentences)
        if description and self._takes("description", at):
            node = {**node, "description": description}
        return ordered(node)

    def _takes(self, keyword: str, at: _At) -> bool:
        if at.root and keyword in ROOT_REFUSED:
            return False
        allowed = self.dialect.keywords
        if at.root and self._root_keywords is not None:
            allowed = self._root_keywords
        return allowed is None or keyword in allowed

    def _lose_at(self, at: _At) -> Callable[[str, str, bool], None]:
        return lambda keyword, detail, narrows: self._lose(at, keyword, detail, narrows)

    def _lose(self, at: _At, keyword: str, detail: str, narrows: bool = False) -> None:
        self.losses.append(Loss(at.path, keyword, detail, narrows))

    def _drop(self, node: Schema, keyword: str, at: _At) -> Schema:
        said = sentence(keyword, node[keyword]) if keyword in KINDS else ""
        self._lose(at, keyword, said or "left out")
        # Where an object lists its fields, a model sends no others; the sentence would stand at every object.
        if said and not (
            keyword == "additionalProperties" and node[keyword] is False and node.get("properties")
        ):
            at.sentences.append(said)
        return {key: value for key, value in node.items() if key != keyword}

    # -- references -------------------------------------------------------------------------------------

    def _reference(self, node: Schema, at: _At) -> tuple[bool, Schema]:
        """The node with its reference kept (and then finished), or expanded by one level."""
        ref = node["$ref"]
        beside = {key: value for key, value in node.items() if key != "$ref"}
        plain = ANNOTATIONS.issuperset(beside)
        if self.dialect.references and (plain or at.left <= 0):
            for keyword in beside:
                if keyword not in ANNOTATIONS:
                    self._drop(beside, keyword, at)
            return True, self._kept(ref, beside, at)
        if at.left <= 0:
            self._lose(at, "$ref", "recursion cut")
            target = self.definitions.target(ref)
            kind = target.get("type") or inferred(target)
            stub: Schema = {} if kind is None else {"type": kind}
            said = beside.get("description") or target.get("description")
            at.sentences.append("Nested further in the same way.")
            return False, shorten({**stub, **({"description": said} if said else {})})
        at.left -= 1
        return False, self._expanded(ref, beside, at)

    def _expanded(self, ref: str, beside: Schema, at: _At) -> Schema:
        node = self._merged(self.definitions.target(ref), beside, at)
        # A definition may itself be no more than a reference.
        if "$ref" in node and at.left > 0:
            at.left -= 1
            return self._expanded(node["$ref"], {k: v for k, v in node.items() if k != "$ref"}, at)
        return {key: value for key, value in node.items() if key != "$ref"}

    def _kept(self, ref: str, beside: Schema, at: _At) -> Schema:
        if ref != "#":
            self._used[ref] = self.definitions.name(ref)
        elif self._rewritten_root:
            name = self._used[ref] = self.definitions.free_name(_ROOT_NAME)
            ref = f"#/$defs/{name}"
        kept = {key: value for key, value in beside.items() if key in ANNOTATIONS and self._takes(key, at)}
        for keyword in beside:
            if keyword in ANNOTATIONS and keyword not in kept:
                self._drop(beside, keyword, at)
        description = with_sentences(kept.pop("description", ""), at.sentences)
        if description:
            kept["description"] = description
        if kept and not self.dialect.ref_siblings:
            return {"anyOf": [{"$ref": ref}], **kept}
        return {"$ref": ref, **kept}

    def _merged(self, one: Schema, other: Schema, at: _At) -> Schema:
        """Merges two nodes; a constraint of `other` that cannot be merged into `one` is said in the description."""
        return meet(one, other, lambda keyword: self._drop(other, keyword, at))

    # -- steps: each takes a node and gives one that breaks one rule less -----------------------------------

    def _all_of(self, node: Schema, at: _At) -> Schema:
        if "allOf" not in node or (self.dialect.all_of and not at.root):
            return node
        out: Schema = {key: value for key, value in node.items() if key != "allOf"}
        for member in node["allOf"]:
            if "$ref" in member:
                member = self._member_expanded(member, at)
            # What the node itself says comes last, so that its own description wins.
            out = (
                self._merged(member, out, at)
                if ANNOTATIONS.issuperset(out)
                else self._merged(out, member, at)
            )
        if "description" in node:
            out["description"] = node["description"]
        return self._all_of(out, at) if "allOf" in out else out

    def _member_expanded(self, member: Schema, at: _At) -> Schema:
        """A member of an `allOf` with its reference replaced by the target; empty where recursion is cut."""
        if at.left <= 0:
            self._lose(at, "$ref", "recursion cut")
            return {}
        at.left -= 1
        return self._expanded(member["$ref"], {k: v for k, v in member.items() if k != "$ref"}, at)

    def _constant(self, node: Schema, at: _At) -> Schema:
        # Every provider and every local template reads `enum`; not all read `const`.
        if "const" not in node:
            return node
        return ordered(
            {**{key: value for key, value in node.items() if key != "const"}, "enum": [node["const"]]}
        )

    def _one_of(self, node: Schema, at: _At) -> Schema:
        if "oneOf" not in node or self.dialect.one_of:
            return node
        if "anyOf" in node:
            return self._drop(node, "oneOf", at)
        if not disjoint(node["oneOf"]):
            self._lose(at, "oneOf", "read as anyOf")
        return {"anyOf" if key == "oneOf" else key: value for key, value in node.items()}

    def _null(self, node: Schema, at: _At) -> Schema:
        if self.dialect.type_lists:
            return node
        types, out = types_of(node), dict(node)
        null = "null" in types
        if null:
            rest = [name for name in types if name != "null"]
            out["type"] = rest or ["string"]
            if not rest:
                at.sentences.append("Always null.")
        if "anyOf" in out:
            variants = [v for v in out["anyOf"] if v.get("type") != "null"]
            null = null or len(variants) < len(out["anyOf"])
            out["anyOf"] = variants
            if len(variants) == 1:
                rest_of = {key: value for key, value in out.items() if key not in ("anyOf", "enum", "type")}
                out = self._merged(variants[0], {**rest_of, **only(out, "enum", "type")}, at)
                if "$ref" in out:
                    _, out = self._reference(out, at)
                for step in (_Lowering._all_of, _Lowering._constant, _Lowering._one_of, _Lowering._null):
                    out = step(self, out, at)
        if "enum" in out and None in out["enum"]:
            out["enum"] = [value for value in out["enum"] if value is not None]
            null = null or not types
            if not out["enum"]:
                del out["enum"]
        if isinstance(out.get("type"), list):
            out = split(out)
        return {**out, "nullable": True} if null else out

    def _union(self, node: Schema, at: _At) -> Schema:
        if "anyOf" not in node or self.dialect.union_siblings:
            return node
        shared = {key: value for key, value in node.items() if key not in _BESIDE_UNION and key != "default"}
        if not shared:
            return node
        kept = {key: value for key, value in node.items() if key in _BESIDE_UNION or key == "default"}
        return {**kept, "anyOf": [self._merged(shared, variant, at) for variant in node["anyOf"]]}

    def _type(self, node: Schema, at: _At) -> Schema:
        if at.exact or "type" in node or "anyOf" in node or "oneOf" in node or "allOf" in node:
            return node
        if at.root:
            return {**node, "type": "object"}
        found = inferred(node)
        if found is None and not self.dialect.typed:
            return node
        if found is None and node.get("enum"):
            mixed = shorten({**node, "type": list(dict.fromkeys(map(kind_of, node["enum"])))})
            return mixed if self.dialect.type_lists else split(mixed)
        if found is None:
            return self._anything(node, at)
        # A keyword of one type lets other types through, which no model means to use.
        if self.dialect.typed or found in ("object", "array"):
            return shorten({**node, "type": [found, "null"] if None in node.get("enum", ()) else found})
        return node

    def _idle(self, node: Schema, at: _At) -> Schema:
        """The node without keywords that speak of other types than its own, which some providers refuse."""
        types = types_of(node)
        if not types or at.exact:
            return node
        told = frozenset().union(
            *(OF_TYPE.get("number" if name == "integer" else name, ()) for name in types)
        )
        idle = [keyword for keyword in node if keyword in TYPED and keyword not in told]
        return {key: value for key, value in node.items() if key not in idle} if idle else node

    def _anything(self, node: Schema, at: _At) -> Schema:
        typed = self.dialect.typed
        self._lose(at, "type", f"any value, said to be {' or '.join(typed)}", narrows=True)
        parts = shorten({"type": list(typed)})
        if "array" in typed:
            item = shorten({"type": [name for name in typed if name != "array"]})
            parts["items"] = item if self.dialect.type_lists else {**split(item), "nullable": True}
        return {**parts, **node} if self.dialect.type_lists else {**split(parts), "nullable": True, **node}

    def _enum(self, node: Schema, at: _At) -> Schema:
        values = node.get("enum")
        if values is None:
            return node
        limit = self.dialect.max_enum
        texts = all(isinstance(value, str) for value in values)
        if (
            not values
            or (limit is not None and len(values) > limit)
            or (self.dialect.string_enums and not texts)
        ):
            return self._drop(node, "enum", at)
        return node

    def _bounds(self, node: Schema, at: _At) -> Schema:
        if node.get("type") != "integer":
            return node
        for exclusive, inclusive, step in (
            ("exclusiveMinimum", "minimum", 1),
            ("exclusiveMaximum", "maximum", -1),
        ):
            bound = node.get(exclusive)
            if (
                bound is None
                or self._takes(exclusive, at)
                or not self._takes(inclusive, at)
                or bound != int(bound)
            ):
                continue
            closest = (max if step > 0 else min)(int(bound) + step, node.get(inclusive, int(bound) + step))
            node = {key: value for key, value in node.items() if key != exclusive} | {inclusive: closest}
        return node

    def _array(self, node: Schema, at: _At) -> Schema:
        prefix: list[Any] = node.get("prefixItems", [])
        rest = node.get("items", {})
        if prefix and not self._takes("prefixItems", at):
            node = self._drop(node, "prefixItems", at)
            longest = node.get("maxItems", len(prefix) + 1)
            further = [] if rest is False or longest <= len(prefix) else [rest]
            node = {**node, "items": _either([*prefix, *further])}
        if isinstance(rest, bool):
            # No provider takes `items: false`: no item may follow those of the prefix.
            longest = min(len(prefix), node.get("maxItems", len(prefix)))
            node = {**node, "items": node["items"] if node["items"] is not rest else {}, "maxItems": longest}
        if self.dialect.items and "array" in types_of(node) and "items" not in node:
            node = {**node, "items": {}}
        return node

    def _object(self, node: Schema, at: _At) -> Schema:
        if "object" not in types_of(node):
            return node
        properties: Schema = node.get("properties", {})
        gone = [name for name in node.get("required", ()) if name not in properties]
        if gone:
            # Refused by several, but whoever validates demands these names, so the model must know them.
            properties = {**properties, **{name: {} for name in gone}}
            node = {**node, "properties": properties}
        takes_maps = self._takes("additionalProperties", at)
        if "patternProperties" in node and takes_maps and not self._takes("patternProperties", at):
            node = self._without_patterns(node, at)
        if not self.dialect.closed or node.get("additionalProperties") is False:
            return node
        extra = node.get("additionalProperties", True)
        if properties or at.root:
            if extra is not True or "additionalProperties" in node:
                self._lose(at, "additionalProperties", "no other keys can be sent", narrows=True)
            return {**node, "additionalProperties": False}
        return self._map_as_text(node, at)

    def _without_patterns(self, node: Schema, at: _At) -> Schema:
        """An object whose keys match patterns, as one with free keys: what matched a pattern is still taken."""
        values = list(node["patternProperties"].values())
        node = self._drop(node, "patternProperties", at)
        extra = node.get("additionalProperties", True)
        if extra is True and not self.dialect.closed:
            return node
        if extra is False:
            at.sentences.append("No other keys.")
        return {**node, "additionalProperties": _either([*values, extra]) or True}

    def _map_as_text(self, node: Schema, at: _At) -> Schema:
        """Strict dialects cannot express a map, whose keys are unknown. The nearest form is the object as JSON
        text.
        """
        values = phrase(node.get("additionalProperties"))
        at.sentences.append(f"A JSON object, written as text; values: {values}.")
        self._lose(
            at, "additionalProperties", "free keys: sent as JSON text, better not strict", narrows=True
        )
        types = ["string" if name == "object" else name for name in types_of(node)]
        rest = {key: value for key, value in node.items() if key not in OF_TYPE["object"]}
        types = list(dict.fromkeys(types))
        return {**rest, "type": types[0] if len(types) == 1 else types}

    def _unsupported(self, node: Schema, at: _At) -> Schema:
        for keyword, value in list(node.items()):
            refused = not self._takes(keyword, at) and keyword != "description"
            if keyword == "format" and self.dialect.formats is not None:
                refused = refused or value not in self.dialect.formats
            if keyword == "pattern" and not self.dialect.look_around:
                refused = refused or _LOOK_AROUND.search(value) is not None
            if keyword in self.dialect.largest:
                refused = refused or value > self.dialect.largest[keyword]
            if keyword == "examples" and refused and not isinstance(value, list):
                node = {**node, "examples": [value]}
            if refused:
                node = self._drop(node, keyword, at)
        if not self._takes("description", at) and "description" in node:
            self._lose(at, "description", node["description"])
            node = {key: value for key, value in node.items() if key != "description"}
        return node

    def _children(self, node: Schema, at: _At) -> Schema:
        out = dict(node)
        for keyword, value in node.items():
            descend = _DESCEND.get(KINDS.get(keyword, ""))
            if descend is None:
                continue
            before = len(self.losses)
            out[keyword] = descend(self, value, at.below(keyword, exact=keyword in ("not", "if")))
            if keyword in _TURNED and len(self.losses) > before:
                out = self._without_turned(out, node, keyword, at)
        return out

    def _without_turned(self, out: Schema, node: Schema, keyword: str, at: _At) -> Schema:
        """The node without `keyword`, whose subschema was widened: kept, it would make the node narrower."""
        if keyword == "oneOf" and "anyOf" not in out:
            self._lose(at, keyword, "read as anyOf")
            return {"anyOf" if key == keyword else key: value for key, value in out.items()}
        for word in _TURNED[keyword]:
            if word in out:
                self._drop(node, word, at)
                out = {key: value for key, value in out.items() if key != word}
        return out

    def _required(self, node: Schema, at: _At) -> Schema:
        if not self.dialect.all_required or "properties" not in node:
            return node
        demanded = node.get("required", ())
        properties = {n: p if n in demanded else or_null(p) for n, p in node["properties"].items()}
        return {**node, "properties": properties, "required": list(properties)}


def _either(schemas: list[Any]) -> Schema:
    """A schema that accepts what any of the schemas accepts; {} where one of them accepts anything."""
    if any(schema is True or not schema for schema in schemas if schema is not False):
        return {}
    kept = [schema for schema in schemas if schema is not False]
    return shorten({"anyOf": kept}) if kept else {"not": {}}


def _descend_one(self: _Lowering, value: Any, at: _At) -> Any:
    return value if isinstance(value, bool) else self._node(value, at)


def _descend_list(self: _Lowering, value: Any, at: _At) -> Any:
    return [self._node(item, at.below(str(index))) for index, item in enumerate(value)]


def _descend_named(self: _Lowering, value: Any, at: _At) -> Any:
    return {name: self._node(item, at.below(escape(name))) for name, item in value.items()}


_DESCEND: Final[Mapping[str, Callable[[_Lowering, Any, _At], Any]]] = {
    "node": _descend_one,
    "nodes": _descend_list,
    "named": _descend_named,
}

# Keywords whose subschema, once it allows more, makes the node allow less; and what goes with each of them.
_TURNED: Final[Mapping[str, tuple[str, ...]]] = {
    "oneOf": ("oneOf",),
    "not": ("not",),
    "if": ("if", "then", "else"),
    "contains": ("maxContains",),
}

_STEPS: Final[tuple[Callable[[_Lowering, Schema, _At], Schema], ...]] = (
    _Lowering._all_of,
    _Lowering._constant,
    _Lowering._one_of,
    _Lowering._null,
    _Lowering._union,
    _Lowering._type,
    _Lowering._idle,
    _Lowering._enum,
    _Lowering._bounds,
    _Lowering._array,
    _Lowering._object,
    _Lowering._unsupported,
    _Lowering._children,
    _Lowering._required,
)
