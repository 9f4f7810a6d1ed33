"""The definitions that a canonical schema refers to, and the depth to which recursion can be expanded."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from toolcrib.schema.keywords import Schema, children

DEEPEST: Final = 3  # times that a recursive definition is written out inside itself, at most
MAX_NODES: Final = 3_000  # nodes that writing out may come to; recursion is cut earlier rather than exceed it


class Definitions:
    """The targets of a canonical schema's references: `#` is its root, `#/$defs/NAME` a definition."""

    def __init__(self, canonical: Mapping[str, Any]) -> None:
        self._named: Mapping[str, Schema] = canonical.get("$defs", {})
        self._root: Schema = {key: value for key, value in canonical.items() if key != "$defs"}
        self._shapes: dict[str, tuple[int, list[str]]] = {}
        self._sizes: dict[tuple[str, int], int] = {}

    def target(self, ref: str) -> Schema:
        return self._root if ref == "#" else self._named.get(self.name(ref), {})

    def name(self, ref: str) -> str:
        return ref.removeprefix("#/$defs/")

    def free_name(self, wished: str) -> str:
        """The name itself where no definition has it, else one like it."""
        return self.free_name(f"{wished}_") if wished in self._named else wished

    def affordable_depth(self) -> int:
        """The number of references that may be expanded on one path from the root so that the whole stays
        within `MAX_NODES`.
        """
        own, _ = self._shape("#")
        for depth in range(DEEPEST, 0, -1):
            if self._size("#", depth) <= max(MAX_NODES, 2 * own):
                return depth
        return 0

    def _size(self, ref: str, depth: int) -> int:
        known = self._sizes.get((ref, depth))
        if known is None:
            own, refs = self._shape(ref)
            below = sum(self._size(inner, depth - 1) for inner in refs) if depth > 0 else 0
            known = self._sizes[ref, depth] = own + below
        return known

    def _shape(self, ref: str) -> tuple[int, list[str]]:
        """The number of a definition's own nodes, and the references in it."""
        shape = self._shapes.get(ref)
        if shape is None:
            count, refs, stack = 0, list[str](), list[Mapping[str, Any]]([self.target(ref)])
            while stack:
                node = stack.pop()
                count += 1
                if isinstance(node.get("$ref"), str):
                    refs.append(node["$ref"])
                stack.extend(child for child in children(node) if isinstance(child, Mapping))
            shape = self._shapes[ref] = (count, refs)
        return shape
