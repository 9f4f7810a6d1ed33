"""Writes an object that stands in a schema several times once, as a definition, where that is shorter."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any, Final

from toolcrib.dataclass import dataclass, field
from toolcrib.schema.keywords import KINDS, NAMED, NODE, NODES, Schema

__all__ = ["share"]

SAVED: Final = 60  # characters that a definition must save, since it is also one more thing to follow
REFERENCE: Final = len('{"$ref":"#/$defs/"}')


@dataclass(slots=True, eq=False)
class _Shape:
    """A node that stands at one place or several; `parents` are the shapes around it, once for each place in them."""

    node: Schema
    name: str
    size: int
    parents: list[_Shape] = field(default_factory=list["_Shape"])
    places: int = 0
    definition: str = ""


def share(schema: Schema, *, siblings: bool) -> Schema:
    """The same schema, with repeated objects among its `$defs`. It accepts the same values.

    `siblings`: a description may stand beside a `$ref`, so that objects with different descriptions are shared too.
    """
    sharing = _Sharing(siblings, set(schema.get("$defs", ())))
    root = sharing.shape(schema, "root")
    sharing.decide(root)
    if not any(shape.definition for shape in sharing.shapes.values()):
        return schema
    out = sharing.written(schema, root)
    shared = {
        shape.definition: sharing.written(shape.node, shape)
        for shape in sharing.shapes.values()
        if shape.definition
    }
    return {**out, "$defs": dict(sorted({**out.get("$defs", {}), **shared}.items()))}


class _Sharing:
    def __init__(self, siblings: bool, taken: set[str]) -> None:
        self._siblings = siblings
        self._taken = taken
        self.shapes: dict[Any, _Shape] = {}
        self._of_node: dict[int, _Shape] = {}  # the nodes live as long as the schema that is shared

    def shape(self, node: Schema, name: str) -> _Shape:
        """The shape of a node, and of all nodes in it; equal nodes have the same."""
        inner = [(token, child, self.shape(child, _name(token, name))) for token, child in _children(node)]
        places = {id(child) for _, child, _ in inner}
        bare = self._bare(node)
        own = json.dumps(_without(bare, places), sort_keys=True, ensure_ascii=False)
        key = (own, *((token, id(shape), str(self._beside(child))) for token, child, shape in inner))
        known = self.shapes.get(key)
        if known is None:
            size = len(own) + sum(shape.size + len(str(self._beside(child))) for _, child, shape in inner)
            known = self.shapes[key] = _Shape(bare, name, size)
            for _, _, shape in inner:
                shape.parents.append(known)
        self._of_node[id(node)] = known
        return known

    def decide(self, root: _Shape) -> None:
        """Name the shapes that are worth a definition, the largest first: what is in them counts once from then on."""
        root.places = 1
        for shape in sorted(self.shapes.values(), key=lambda shape: -shape.size):
            if shape is root:
                continue
            shape.places = sum(1 if parent.definition else parent.places for parent in shape.parents)
            each = REFERENCE + len(shape.name)
            saved = (shape.places - 1) * shape.size - (shape.places + 1) * each
            if shape.node.get("properties") and saved >= SAVED:
                shape.definition = self._free(shape.name)

    def _free(self, name: str) -> str:
        found, number = name, 2
        while found in self._taken:
            found, number = f"{name}{number}", number + 1
        self._taken.add(found)
        return found

    def written(self, node: Any, shape: _Shape) -> Any:
        """A node, with references in the place of what is shared in it."""
        out = dict(node)
        for word, value in node.items():
            kind = NAMED if word == "$defs" else KINDS.get(word)
            if kind == NODE and isinstance(value, dict):
                out[word] = self._placed(value)
            elif kind == NODES:
                out[word] = [self._placed(item) for item in value]
            elif kind == NAMED:
                out[word] = {name: self._placed(item) for name, item in value.items()}
        return out

    def _placed(self, node: Any) -> Any:
        if not isinstance(node, dict):
            return node
        shape = self._of_node[id(node)]
        if not shape.definition:
            return self.written(node, shape)
        return {"$ref": f"#/$defs/{shape.definition}", **self._beside(node)}

    def _bare(self, node: Schema) -> Schema:
        return {word: value for word, value in node.items() if word not in self._beside(node)}

    def _beside(self, node: Schema) -> Schema:
        """The keywords of a node that are written beside a reference to it."""
        return {"description": node["description"]} if self._siblings and "description" in node else {}


def _children(node: Mapping[str, Any]) -> Iterator[tuple[str, Schema]]:
    """The subschemas of a node, each with its place."""
    for word, value in node.items():
        kind = NAMED if word == "$defs" else KINDS.get(word)
        if kind == NODE and isinstance(value, dict):
            yield word, value
        elif kind == NODES:
            yield from ((f"{word}/{at}", item) for at, item in enumerate(value) if isinstance(item, dict))
        elif kind == NAMED:
            yield from ((f"{word}/{name}", item) for name, item in value.items() if isinstance(item, dict))


def _without(value: Any, places: set[int]) -> Any:
    """A keyword's value without the subschemas in it, which are compared by their shapes."""
    if isinstance(value, dict):
        return 0 if id(value) in places else {name: _without(item, places) for name, item in value.items()}
    return [_without(item, places) for item in value] if isinstance(value, list) else value


def _name(token: str, outer: str) -> str:
    """What a definition is called: the name of the property that it stands in, also as an item or an alternative."""
    word, _, name = token.partition("/")
    plain = "".join(char for char in name if char.isascii() and (char.isalnum() or char in "_-"))[:40]
    return plain if word == "properties" and plain else outer
