"""Resolves `$ref` within one document, without network or disk."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from urllib.parse import unquote, urldefrag, urljoin

from toolcrib.dataclass import dataclass
from toolcrib.json_text.values import step_into
from toolcrib.schema.keywords import children

OLD_DRAFTS = (
    "draft-03",
    "draft-04",
    "draft-06",
    "draft-07",
)  # nothing beside a `$ref` counts, no `$id` either


@dataclass(slots=True, eq=False)
class Resource:
    """A base for references: the document, or a subschema with an `$id` of its own."""

    uri: str
    node: Mapping[str, Any]


class References:
    """Resolves references within `root`; the index of `$id`s and anchors is built at first use."""

    __slots__ = ("_anchors", "_found", "_id", "_indexed", "_ref_stands_alone", "_resources", "root")

    def __init__(self, root: Mapping[str, Any]) -> None:
        draft = str(root.get("$schema", ""))
        self._id = "id" if any(name in draft for name in ("draft-03", "draft-04")) else "$id"
        self._ref_stands_alone = any(name in draft for name in OLD_DRAFTS)
        self.root = Resource(self._uri(root, ""), root)
        self._resources: dict[str, Resource] = {self.root.uri: self.root, "": self.root}
        self._anchors: dict[tuple[int, str], tuple[Any, Resource]] = {}
        self._indexed = False
        self._found: dict[str, tuple[Any, Resource] | None] = {}

    def enter(self, node: Mapping[str, Any], home: Resource) -> Resource:
        """The resource that the references inside `node` are relative to."""
        if self._id not in node or node is home.node or (self._ref_stands_alone and "$ref" in node):
            return home
        uri = self._uri(node, home.uri)
        return home if uri == home.uri else Resource(uri, node)

    def resolve(self, ref: str, home: Resource) -> tuple[Any, Resource] | None:
        """The schema that `ref` points to and its resource; None where there is none."""
        if home is not self.root:
            return self._look_up(ref, home)
        if ref not in self._found:
            self._found[ref] = self._look_up(ref, home)
        return self._found[ref]

    def _look_up(self, ref: str, home: Resource) -> tuple[Any, Resource] | None:
        try:
            document, fragment = urldefrag(ref)
        except ValueError:
            return None  # no URI at all, such as "//["
        if document:
            self._index()
            try:
                found = self._resources.get(urljoin(home.uri, document))
            except ValueError:
                return None
            if found is None:
                return None
            home = found
        if not fragment:
            return home.node, home
        if not fragment.startswith("/"):
            self._index()
            return self._anchors.get((id(home.node), unquote(fragment)))
        return self._pointer(unquote(fragment), home) or self._pointer(fragment, home)

    def _pointer(self, pointer: str, home: Resource) -> tuple[Any, Resource] | None:
        at: Any = home.node
        for token in pointer.split("/")[1:]:
            try:
                at = step_into(at, token)
            except LookupError:
                return None
            if isinstance(at, Mapping):
                home = self.enter(at, home)
        return (at, home) if isinstance(at, (Mapping, bool)) else None

    def _uri(self, node: Mapping[str, Any], base: str) -> str:
        written = node.get(self._id)
        if not isinstance(written, str) or written.startswith("#"):
            return base
        try:
            return urldefrag(urljoin(base, written))[0]
        except ValueError:
            return base

    def _index(self) -> None:
        if self._indexed:
            return
        self._indexed = True
        stack: list[tuple[Any, Resource]] = [(self.root.node, self.root)]
        while stack:
            node, home = stack.pop()
            if not isinstance(node, Mapping):
                continue
            home = self.enter(node, home)
            if home.node is node:
                self._resources.setdefault(home.uri, home)
            # Up to draft 7 an anchor was written as an `$id` that is only a fragment.
            for anchor in (node.get("$anchor"), node.get("$dynamicAnchor"), _fragment(node.get(self._id))):
                if isinstance(anchor, str) and anchor:
                    self._anchors.setdefault((id(home.node), anchor), (node, home))
            stack.extend((child, home) for child in children(node))


def _fragment(identifier: object) -> str | None:
    try:
        return urldefrag(identifier)[1] if isinstance(identifier, str) else None
    except ValueError:
        return None
