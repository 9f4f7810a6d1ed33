"""Counts the keys that the objects of validated params had in the text, without looking at each value.

A key that stands twice in a text is read once. So if a text has as many keys as its value, no key stood twice.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any, Final

from toolcrib.compiling.core_schema import parts_of

__all__ = ["key_counter", "may_have_more_keys"]

FINITE: Final = frozenset({
    *("typed-dict", "typed-dict-field", "model", "model-fields", "model-field", "dataclass", "dataclass-args"),
    *("dataclass-field", "list", "tuple", "set", "frozenset", "dict", "union", "tagged-union", "nullable", "default"),
    *("definitions", "definition-ref", "str", "int", "float", "bool", "none", "literal", "enum", "uuid", "url"),
})  # fmt: skip
MOST: Final = 10_000  # characters of an expression; a type that is used in many places makes it long
END_APART: Final = re.compile(r'"[ \n\r\t]+:')


def may_have_more_keys(text: str, keys: int) -> bool:
    """Whether a JSON text, whose strings may hold anything, may have more keys than those that are known.

    Each key ends with a quote and a colon, seldom with white space between them. Both also stand in strings.
    """
    ends = text.count('":')
    if any(f"{space}:" in text for space in " \n\r\t" if space in text):
        ends += len(END_APART.findall(text))
    # Where no key ends with a backslash, a quote behind one ends no key.
    if ends > keys and '\\\\":' not in text:
        ends -= text.count('\\":')
    return ends > keys


def key_counter(core: Any) -> Callable[[Any], int] | None:
    """A function of validated params that gives the number of keys which they came from, or a smaller one.

    What it does not know (unions, dataclasses) counts as no key. None where a part of the schema may take a number
    that is not finite. An expression is compiled, because a loop over the types would take longer than to validate.
    """
    if not _is_finite(core):
        return None
    terms = _Terms()
    written = terms.of(core, "params") or "0"
    if written == "len(params)":
        return len
    if len(written) > MOST:
        return lambda params: 0
    count: Callable[[Any], int] = eval(f"lambda params: {written}")  # made of names in quotes alone
    return count


def _is_finite(core: Any) -> bool:
    """Whether all parts of a core schema are of types that are known to take no NaN and no infinity."""
    if isinstance(core, dict):
        kind = core.get("type")
        if (isinstance(kind, str) and kind not in FINITE) or core.get("allow_inf_nan") is True:
            return False
        if core.get("extra_behavior") == "allow" and "extras_schema" not in core:  # of any type
            return False
    return all(map(_is_finite, parts_of(core)))


class _Terms:
    """Writes the expressions; each is empty where there is nothing to count."""

    def __init__(self) -> None:
        self._definitions: dict[str, Any] = {}
        self._inside: list[str] = []  # the references that are being followed
        self._length = 0
        self._depth = 0

    def of(self, core: Any, value: str) -> str:
        write = WRITERS.get(core.get("type"))
        written = write(self, core, value) if write is not None and self._length <= MOST else ""
        self._length += len(written)
        return written

    def definitions(self, core: Any, value: str) -> str:
        self._definitions |= {definition["ref"]: definition for definition in core["definitions"]}
        return self.of(core["schema"], value)

    def reference(self, core: Any, value: str) -> str:
        name = core["schema_ref"]
        if name in self._inside or name not in self._definitions:
            return ""
        self._inside.append(name)
        written = self.of(self._definitions[name], value)
        self._inside.pop()
        return written

    def nullable(self, core: Any, value: str) -> str:
        inner = self.of(core["schema"], value)
        return inner and f"(0 if {value} is None else {inner})"

    def default(self, core: Any, value: str) -> str:
        """Keys in a value with a default are counted only if that is None: another value is then from the text."""
        return self.nullable(core, value) if core.get("default", self) is None else ""

    def items(self, core: Any, value: str) -> str:
        self._depth += 1
        item = f"item{self._depth}"
        inner = self.of(core.get("items_schema", {}), item)
        if inner.isdecimal():
            return f"{inner}*len({value})"
        return inner and f"sum([{inner} for {item} in {value}])"

    def mapping(self, core: Any, value: str) -> str:
        self._depth += 1
        item = f"item{self._depth}"
        inner = self.of(core.get("values_schema", {}), item)
        return _sum([f"len({value})", f"+sum([{inner} for {item} in {value}.values()])" if inner else "+0"])

    def typed_dict(self, core: Any, value: str) -> str:
        if not _have_own_keys(core["fields"]):
            return ""
        alike = all(field.get("required") and self._must_be_given(field) for field in core["fields"].values())
        terms = [_number_of_keys(core, f"len({value})", alike=alike)]
        for name, field in core["fields"].items():
            inner = self._target(field["schema"])
            if inner.get("type") == "default":
                if inner.get("default", self) is not None:
                    return ""
                terms.append(f"-({value}[{name!r}] is None)")  # None may be the default, not from the text
            read = f"{value}[{name!r}]" if field.get("required") or inner.get("type") == "default" else ""
            if read and (term := self.of(field["schema"], read)):
                terms.append(f"+{term}")
        return _sum(terms)

    def model(self, core: Any, value: str) -> str:
        inner = core["schema"]
        if inner.get("type") != "model-fields" or any(core.get(key) for key in OWN_CODE):
            return ""
        if not _have_own_keys(inner["fields"]):
            return ""
        alike = all(map(self._must_be_given, inner["fields"].values()))
        terms = [_number_of_keys(inner, f"len({value}.__pydantic_fields_set__)", alike=alike)]
        for name, field in inner["fields"].items():
            if term := self.of(field["schema"], f"{value}.__dict__[{name!r}]"):
                terms.append(f"+{term}")
        return _sum(terms)

    def _must_be_given(self, field: Any) -> bool:
        """Whether a field has no default, so that every valid object has its key."""
        return str(self._target(field["schema"]).get("type")) != "default"

    def _target(self, core: Any) -> Any:
        """What a reference leads to; a schema that is no reference itself."""
        while core.get("type") == "definition-ref":
            core = self._definitions.get(core["schema_ref"], DEFAULT)
        return core


def _have_own_keys(fields: Mapping[str, Any]) -> bool:
    """Whether each field is read from keys of its own, and not from a part of what another is read from."""
    read = [(name, field.get("validation_alias", name)) for name, field in fields.items()]
    if not all(isinstance(alias, str) for _, alias in read):
        return False
    return sum(len({*keys}) for keys in read) == len({key for keys in read for key in keys})


def _number_of_keys(core: Any, counted: str, *, alike: bool) -> str:
    """How many keys an object has: a number where all objects of its type have as many."""
    return str(len(core["fields"])) if alike and core.get("extra_behavior") == "forbid" else counted


def _sum(terms: list[str]) -> str:
    """The sum of a first term and of signed ones; of numbers, their sum."""
    number = sum(int(term) for term in terms if term.lstrip("+").isdecimal())
    others = [term for term in terms if not term.lstrip("+").isdecimal()]
    written = [*([str(number)] if number else []), *others]
    if len(written) < 2:
        return "".join(written).lstrip("+")
    return f"({written[0].lstrip('+')}{''.join(term if term[0] in '+-' else f'+{term}' for term in written[1:])})"


DEFAULT: Final = {"type": "default"}


OWN_CODE: Final = ("custom_init", "post_init", "root_model")  # with which a model may set its fields itself
WRITERS: Final[Mapping[str, Callable[[_Terms, Any, str], str]]] = {
    "definitions": _Terms.definitions,
    "definition-ref": _Terms.reference,
    "nullable": _Terms.nullable,
    "default": _Terms.default,
    "list": _Terms.items,
    "dict": _Terms.mapping,
    "typed-dict": _Terms.typed_dict,
    "model": _Terms.model,
}
