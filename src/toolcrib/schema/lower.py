"""Lowers a canonical schema to a provider's dialect: the nearest form that it accepts, with the rest said in
descriptions.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from toolcrib.json_text.values import escape, kind_of
from toolcrib.schema.canonical import Loss, clean_and_tell
from toolcrib.schema.combine import meet
from toolcrib.schema.dialects import ROOT_REFUSED, Dialect, dialect_named
from toolcrib.schema.keywords import (
    ANNOTATIONS,
    KINDS,
    OF_TYPE,
    Schema,
    ordered,
    types_of,
)
from toolcrib.schema.recursion import Definitions
from toolcrib.schema.roots import object_root
from toolcrib.schema.shorten import shorten
from toolcrib.schema.variants import disjoint, inferred, only, or_null, split
from toolcrib.schema.words import phrase, sentence, with_sentences

_LOOK_AROUND: Final = re.compile(r"\(\?<?[=!]|\\[1-9]")
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
    dialect = dialect_named(name)
    canonical, losses = clean_and_tell(schema)
    lowering = _Lowering(dialect, canonical)
    out = lowering.run()
    return out, list(dict.fromkeys([*losses, *lowering.losses]))


@dataclass(slots=True)
class _At:
    """The place of a node, and the sentences to be added to its description."""

    path: str
    left: int  # how many more references may be expanded on the way down
    root: bool = False
    told: list[str] = field(default_factory=lambda: list[str]())


class _Lowering:
    def __init__(self, dialect: Dialect, canonical: Schema) -> None:
        self.dialect = dialect
        self.losses: list[Loss] = []
        self.definitions = Definitions(canonical)
        self._root = {key: value for key, value in canonical.items() if key != "$defs"}
        self._rewritten_root = False
        self._used: dict[str, str] = {}  # a reference that was kept, and the name that it now goes by

    def run(self) -> Schema:
        left = 2 if self.dialect.references else self.definitions.affordable_depth()
        at = _At("", left, root=True)
        root = object_root(self._root, self.definitions, at.told, self._lose_at(at))
        self._rewritten_root = root is not self._root
        out = self._node(root, at)
        lowered: dict[str, Schema] = {}
        while missing := [ref for ref, name in self._used.items() if name and name not in lowered]:
            for ref in missing:
                name = self._used[ref]
                lowered[name] = self._node(self.definitions.target(ref), _At(f"/$defs/{name}", left))
        return {**out, "$defs": dict(sorted(lowered.items()))} if lowered else out

    def _node(self, node: Schema, at: _At) -> Schema:
        if "$ref" in node:
            kept, node = self._reference(node, at)
            if kept:
                return node
        for step in _STEPS:
            node = step(self, node, at)
        description = with_sentences(node.get("description", ""), at.told)
        if description and self._takes("description", at):
            node = {**node, "description": description}
        return ordered(node)

    def _takes(self, keyword: str, at: _At) -> bool:
        if at.root and keyword in ROOT_REFUSED:
            return False
        allowed = self.dialect.keywords
        if at.root and self.dialect.root_keywords is not None:
            allowed = self.dialect.root_keywords
        return allowed is None or keyword in allowed

    def _lose_at(self, at: _At) -> Callable[[str, str], None]:
        return lambda keyword, detail: self.losses.append(Loss(at.path, keyword, detail))

    def _drop(self, node: Schema, keyword: str, at: _At) -> Schema:
        said = sentence(keyword, node[keyword]) if keyword in KINDS else ""
        self.losses.append(Loss(at.path, keyword, said or "left out"))
        if said:
            at.told.append(said)
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
            self.losses.append(Loss(at.path, "$ref", "recursion cut"))
            target = self.definitions.target(ref)
            stub: Schema = {"type": types_of(target)[0] if types_of(target) else "object"}
            said = beside.get("description") or target.get("description")
            at.told.append("Nested further in the same way.")
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
            self._used[ref], ref = _ROOT_NAME, f"#/$defs/{_ROOT_NAME}"
        kept = {key: value for key, value in beside.items() if key in ANNOTATIONS and self._takes(key, at)}
        for keyword in beside:
            if keyword in ANNOTATIONS and keyword not in kept:
                self._drop(beside, keyword, at)
        description = with_sentences(kept.pop("description", ""), at.told)
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
            self.losses.append(Loss(at.path, "$ref", "recursion cut"))
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
            self.losses.append(Loss(at.path, "oneOf", "read as anyOf"))
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
                at.told.append("Always null.")
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
        if "type" in node or "anyOf" in node or "oneOf" in node or "allOf" in node:
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
            return shorten({**node, "type": found})
        return node

    def _anything(self, node: Schema, at: _At) -> Schema:
        self.losses.append(Loss(at.path, "type", f"any value, said to be {' or '.join(self.dialect.typed)}"))
        if self.dialect.type_lists:
            filled = {k: v for name in self.dialect.typed for k, v in _FILLED.get(name, {}).items()}
            return {**filled, **node, "type": list(self.dialect.typed)}
        variants = [{"type": name, **_FILLED.get(name, {})} for name in self.dialect.typed]
        return {**node, "anyOf": variants, "nullable": True}

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
        if "prefixItems" in node and not self._takes("prefixItems", at):
            members: list[Any] = node["prefixItems"]
            rest = node.get("items")
            node = self._drop(node, "prefixItems", at)
            kinds = [*members, *([rest] if isinstance(rest, Mapping) else [])]
            node = {**node, "items": shorten({"anyOf": kinds})}
            if rest is False:
                node["maxItems"] = min(len(members), node.get("maxItems", len(members)))
        if isinstance(node.get("items"), bool):
            node = {**node, "items": {}, "maxItems": 0}
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
        if not self.dialect.closed or node.get("additionalProperties") is False:
            return node
        extra = node.get("additionalProperties", True)
        if properties or at.root:
            if extra is not True or "additionalProperties" in node:
                self.losses.append(Loss(at.path, "additionalProperties", "no other keys can be sent"))
            return {**node, "additionalProperties": False}
        return self._map_as_text(node, at)

    def _map_as_text(self, node: Schema, at: _At) -> Schema:
        """Strict dialects cannot express a map, whose keys are unknown. The nearest form is the object as JSON
        text.
        """
        values = phrase(node.get("additionalProperties"))
        at.told.append(f"A JSON object, written as text; values: {values}.")
        self.losses.append(
            Loss(at.path, "additionalProperties", "free keys: sent as JSON text, better not strict")
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
            self.losses.append(Loss(at.path, "description", node["description"]))
            node = {key: value for key, value in node.items() if key != "description"}
        return node

    def _children(self, node: Schema, at: _At) -> Schema:
        out = dict(node)
        for keyword, value in node.items():
            descend = _DESCEND.get(KINDS.get(keyword, ""))
            if descend is not None:
                out[keyword] = descend(self, value, f"{at.path}/{keyword}", at.left)
        return out

    def _required(self, node: Schema, at: _At) -> Schema:
        if not self.dialect.all_required or "properties" not in node:
            return node
        demanded = node.get("required", ())
        properties = {n: p if n in demanded else or_null(p) for n, p in node["properties"].items()}
        return {**node, "properties": properties, "required": list(properties)}


def _descend_one(self: _Lowering, value: Any, path: str, left: int) -> Any:
    return value if isinstance(value, bool) else self._node(value, _At(path, left))


def _descend_list(self: _Lowering, value: Any, path: str, left: int) -> Any:
    return [self._node(item, _At(f"{path}/{index}", left)) for index, item in enumerate(value)]


def _descend_named(self: _Lowering, value: Any, path: str, left: int) -> Any:
    return {name: self._node(item, _At(f"{path}/{escape(name)}", left)) for name, item in value.items()}


_DESCEND: Final[Mapping[str, Callable[[_Lowering, Any, str, int], Any]]] = {
    "node": _descend_one,
    "nodes": _descend_list,
    "named": _descend_named,
}

_FILLED: Final[Mapping[str, Schema]] = {"object": {"properties": {}}, "array": {"items": {"type": "string"}}}

_STEPS: Final[tuple[Callable[[_Lowering, Schema, _At], Schema], ...]] = (
    _Lowering._all_of,
    _Lowering._constant,
    _Lowering._one_of,
    _Lowering._null,
    _Lowering._union,
    _Lowering._type,
    _Lowering._enum,
    _Lowering._bounds,
    _Lowering._array,
    _Lowering._object,
    _Lowering._unsupported,
    _Lowering._children,
    _Lowering._required,
)
