"""Our `dataclass` does what the standard library's does; only the making of a class is quicker."""

from __future__ import annotations

import dataclasses
import sys
from itertools import product
from typing import Any

from tests.cases import each
from toolcrib.dataclass import dataclass

ONLY = float("nan") if sys.version_info < (3, 13) else "a"
"""Up to Python 3.12 the standard library takes a value that is the same object for equal, as ours does everywhere."""
OPTIONS = [
    dict(zip(("frozen", "slots", "eq", "repr", "kw_only"), given, strict=True))
    for given in product((False, True), repeat=5)
]


class Plain:
    """Fields of all kinds."""

    one: int
    two: str = "b"
    shown: list[int] = dataclasses.field(default_factory=list, repr=False)
    compared: float = dataclasses.field(default=0.0, compare=False)
    hashed: str = dataclasses.field(default="", hash=False)


class NoField:
    pass


class OneField:
    only: Any = None


class OwnEquality:
    one: int = 1

    def __eq__(self, other: object) -> bool:
        return True


class OwnAll:
    one: int = 1

    def __eq__(self, other: object) -> bool:
        return False

    def __hash__(self) -> int:
        return 7

    def __repr__(self) -> str:
        return "own"


def seen(make: Any) -> list[Any]:
    """What comes of two objects of a class that are made alike, and of others that differ in one field."""
    fields = [field.name for field in dataclasses.fields(make)]
    given = {name: value for name, value in (("one", 3), ("only", ONLY)) if name in fields}
    one, same = make(**given), make(**given)
    found: list[Any] = [one == same, one != same, one == 5, make.__match_args__, fields]
    for name, changed in (("one", 4), ("shown", [1]), ("compared", 5.0), ("hashed", "y"), ("only", 1)):
        if name in fields:
            found.append((name, one == make(**{**given, name: changed})))
    found.append(repr(one).partition(" object at")[0])
    try:
        found.append(hash(one) == hash(same))
    except TypeError as problem:
        found.append(str(problem))
    return found


@each("source, options", product([Plain, NoField, OneField, OwnEquality, OwnAll], OPTIONS))
def test_it_does_what_the_standard_library_does(source: type, options: dict[str, bool]) -> None:
    named = {name: value for name, value in vars(source).items() if name not in ("__dict__", "__weakref__")}
    theirs, ours = (
        make(**options)(type(source.__name__, (), dict(named))) for make in (dataclasses.dataclass, dataclass)
    )
    assert seen(theirs) == seen(ours)


def test_an_object_within_itself_is_shown() -> None:
    @dataclass
    class Node:
        inner: Any = None

    node = Node()
    node.inner = node
    assert repr(node).endswith("Node(inner=...)")
