"""Repairs the arguments that a model wrote for a call, as pure functions over the JSON Schema.

A repair changes how a value is written, never what it says: each place that already fits its schema stays as it
is, and a place is changed only if there is exactly one way to make it fit. The schema may be foreign, recursive
or broken; a part that is not understood counts as allowing everything, which means fewer repairs. Nothing here
validates: the caller does, before and after.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from decimal import Decimal
from typing import Any, Final

from toolcrib.dataclass import dataclass
from toolcrib.json_text.lenient_grammar import (
    EXCERPT,
    FIXES,
    TOO_DEEP,
    Fix,
    Unreadable,
    WrittenNumber,
    check_json,
    exact_number,
)
from toolcrib.json_text.lenient_reader import Reading, read_json
from toolcrib.json_text.schema_shape import KINDS, Shape, Shapes
from toolcrib.json_text.values import kind_of, same_json
from toolcrib.parameter_names import WRAPPERS

__all__ = ["EDITS", "NAMES", "Edit", "Repaired", "Unrepairable", "repair"]

EDITS = {
    "boolean_text": "read text as true or false",
    "number_text": "read text as a number",
    "null_text": "read text as null",
    "exact_integer": "wrote a whole number without a fraction",
    "json_text": "decoded JSON that was sent as a string",
    "enum_case": "wrote an allowed value in its own case",
    "wrapped_in_list": "put a single value into a list",
    "unwrapped": "took the arguments out of a wrapper",
    "omitted": "left out an optional parameter that said nothing",
}
"""Everything that a repair may change about a value, with words for a person."""

NAMES: Final = ("name", "tool", "tool_name", "function", "action")
"""The keys beside a wrapper that name the tool."""


@dataclass(frozen=True, slots=True)
class Edit:
    """One change: its place (`a.b[0]`; empty for the whole), its kind (a key of `EDITS` or of
    `toolcrib.json_text.lenient_grammar.FIXES`), the value before and the value after (None where it was removed).
    """

    path: str
    kind: str
    before: Any
    after: Any

    @property
    def is_syntax(self) -> bool:
        """Whether the JSON text itself was repaired, rather than a value in it."""
        return self.kind in FIXES

    def to_dict(self) -> dict[str, Any]:
        return {"path": self.path, "kind": self.kind, "before": self.before, "after": self.after}

    def __str__(self) -> str:
        words = FIXES.get(self.kind) or EDITS.get(self.kind, self.kind)
        return f"{self.path}: {words}" if self.path else words


@dataclass(frozen=True, slots=True)
class Repaired:
    """Repaired arguments, to be validated again, with every change that was made."""

    value: Any
    edits: tuple[Edit, ...] = ()


@dataclass(frozen=True, slots=True)
class Unrepairable:
    """Arguments that have no single reading; the reason is a sentence for the model."""

    reason: str


def repair(
    raw: Any, schema: Mapping[str, Any], *, tool: str = "", accepts: Callable[[Any], bool] | None = None
) -> Repaired | Unrepairable:
    """Repairs the arguments of a call against the JSON Schema of its parameters; raises nothing of its own.

    `raw` is the text (str or bytes) as the model wrote it, or a value that its provider already parsed;
    empty text and None are no arguments, `{}`. The result is not validated: unknown and missing fields,
    and whatever has no single repair, are still there for the validator to name. With the name of the `tool`,
    a wrapper of that name is taken off. Arguments that `accepts` takes, once they are out of their wrapper
    and without empty texts where none is allowed, are repaired no further.

    >>> repair('{"days": "3", "tags": "new",}', {"type": "object", "properties": {
    ...     "days": {"type": "integer"}, "tags": {"type": "array", "items": {"type": "string"}}}}).value
    {'days': 3, 'tags': ['new']}
    """
    try:
        mender = _Mender(schema, tool)
        reading = _read(raw, mender)
        edits = list(_syntax_edits("", reading.fixes))
        value = mender.normalised(reading.value, edits)
        if accepts is None or not accepts(value):
            mended = mender.arguments(value)
            value = mended.value
            edits += mended.edits("")
        mender.refuse_wrapper(value)
        return Repaired(value, tuple(edits))
    except Unreadable as refusal:
        return Unrepairable(str(refusal))
    except RecursionError:
        return Unrepairable(TOO_DEEP)


def _read(raw: Any, mender: _Mender) -> Reading:
    if raw is None:
        return Reading({})
    if isinstance(raw, (bytes, bytearray)):
        try:
            raw = bytes(raw).decode()
        except UnicodeDecodeError:
            raise Unreadable("The arguments are not UTF-8 text. Send one JSON object.") from None
    if not isinstance(raw, str):
        check_json(raw)
        return Reading(mender.place_numbers(raw))
    if not raw:
        return Reading({})
    if not raw.strip():
        raise Unreadable("The arguments are white space alone. Send one JSON object; {} is no arguments.")
    reading = read_json(raw, mender.place_numbers)
    if isinstance(reading.value, str) and not mender.takes_text_only_here:
        inner = read_json(reading.value, mender.place_numbers)
        fix = Fix("double_encoded", raw[:EXCERPT], reading.value[:EXCERPT])
        reading = Reading(inner.value, (*reading.fixes, fix, *inner.fixes), inner.around)
    named = mender.named_in(reading.around)
    if named:
        raise Unreadable(f"The parameter {named} stands outside of the JSON object. Send one JSON object.")
    return reading


def _syntax_edits(path: str, fixes: Iterable[Fix]) -> Iterator[Edit]:
    return (Edit(path, fix.kind, fix.before, fix.after) for fix in fixes)


@dataclass(frozen=True, slots=True)
class _Mended:
    """A value with the changes at its own place and at places inside it (None: its own place)."""

    value: Any
    change: tuple[str, Any, Any] | None = None
    fixes: tuple[Fix, ...] = ()
    inside: tuple[tuple[str | int | None, _Mended], ...] = ()

    @property
    def changed(self) -> bool:
        return bool(self.change or self.inside)

    def edits(self, path: str) -> Iterator[Edit]:
        if self.change:
            yield Edit(path, *self.change)
        yield from _syntax_edits(path, self.fixes)
        for key, mended in self.inside:
            yield from mended.edits(path if key is None else _join(path, key))


def _join(path: str, key: str | int) -> str:
    if isinstance(key, int):
        return f"{path}[{key}]"
    return f"{path}.{key}" if path else key


# --- how a value is read as another ------------------------------------------------------------------

_INTEGER_TEXT = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.0+)?")
_NUMBER_TEXT = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?")
_EXACT = 2**53  # beyond it a float no longer says which integer was meant
_SEVERAL = re.compile(r"[,;\n]")
_NOT_IN_A_STRING = frozenset({"prose", "repeated_value", "reasoning_block", "special_token"})


def _is_null_text(text: str) -> bool:
    return text.strip().lower() == "null" or text.strip() == "None"


def _integer_from(text: str) -> Iterator[tuple[str, Any]]:
    if _INTEGER_TEXT.fullmatch(text):
        try:
            yield "number_text", int(text.partition(".")[0])
        except ValueError:  # more digits than Python converts
            return


def _number_from(text: str) -> Iterator[tuple[str, Any]]:
    if not _NUMBER_TEXT.fullmatch(text):
        return
    if text.lstrip("-").isdigit():
        yield from _integer_from(text)
        return
    number = float(text)
    try:
        if Decimal(text) == Decimal(repr(number)):
            yield "number_text", number
    except ArithmeticError:  # an exponent that not even Decimal holds
        return


def _boolean_from(text: str) -> Iterator[tuple[str, Any]]:
    if text.lower() in ("true", "false"):
        yield "boolean_text", text.lower() == "true"


def _null_from(text: str) -> Iterator[tuple[str, Any]]:
    if _is_null_text(text):
        yield "null_text", None


_FROM_TEXT: Final = {
    "boolean": _boolean_from,
    "integer": _integer_from,
    "number": _number_from,
    "null": _null_from,
}


def _stands_alone(value: Any) -> bool:
    """Whether a value is a single item given instead of a list: not several items, no item, or a broken list."""
    if isinstance(value, str):
        text = value.strip()
        quoted = len(text) > 1 and text[0] == text[-1] and text[0] in "\"'`"  # are the quotes part of it?
        told = bool(text) and text[0] not in "[{" and not quoted
        return told and not _SEVERAL.search(text) and not _is_null_text(text)
    return value is not None and not isinstance(value, list)


class _Mender(Shapes):
    """Repairs values against one schema."""

    def __init__(self, schema: Any, tool: str) -> None:
        super().__init__(schema)
        self._wrappers = {*WRAPPERS, tool} if tool else WRAPPERS
        self._wrappers -= self.names(self.root)[0]
        self._mends: dict[tuple[int, int, bool], tuple[Any, _Mended]] = {}

    @property
    def takes_text_only_here(self) -> bool:
        kinds = self.kinds(self.root)
        return "string" in kinds and kinds != KINDS and not self.root.properties

    def named_in(self, around: str) -> str | None:
        """A parameter to which the words around the JSON assign a value."""
        found = {name for pair in _ASSIGNED.findall(around) for name in pair if name}
        return min(found & self.names(self.root)[0], default=None) if found else None

    def place_numbers(self, value: Any, shapes: Iterable[Shape] = ()) -> Any:
        """The value with its numbers as the schema wants them: as text where the schema takes a decimal as text."""
        if isinstance(value, WrittenNumber):
            known = self.with_variants(shapes)
            texts = [shape for shape in known if "string" in shape.kinds and not shape.unions]
            decimal = texts and all(shape.decimal_text for shape in texts)
            return value.text if decimal else exact_number(value.text)
        if isinstance(value, dict):
            known = self.with_variants(shapes or [self.root])
            return {
                name: self.place_numbers(
                    item,
                    () if not shapes and name in self._wrappers else [self.member(s, name) for s in known],
                )
                for name, item in value.items()
            }
        if isinstance(value, list):
            known = self.with_variants(shapes)
            return [
                self.place_numbers(item, [self.item(s, index) for s in known])
                for index, item in enumerate(value)
            ]
        return value

    # what becomes of a value

    def normalised(self, value: Any, edits: list[Edit]) -> Any:
        """The arguments out of their wrapper, without optional parameters that came as an empty text and take none."""
        inner = self._unwrap(value)
        if inner is not None:
            edits.append(Edit("", "unwrapped", value, inner))
            value = inner
        if not isinstance(value, dict) or "" not in value.values():
            return value
        names, required = self.names(self.root)
        known = self.with_variants([self.root])
        empty = [
            name
            for name, item in value.items()
            if item == "" and name in names and name not in required
            and not any(self.fits("", self.member(s, name)) for s in known if name in s.properties)
        ]  # fmt: skip
        edits += [Edit(name, "omitted", "", None) for name in empty]
        return {name: item for name, item in value.items() if name not in empty} if empty else value

    def refuse_wrapper(self, value: Any) -> None:
        """Raises `Unreadable` where an unknown field that would be ignored seems to hold the arguments."""
        names, _ = self.names(self.root)
        if not isinstance(value, dict) or not names or self.root.extra is False:
            return
        alone = len(value) == 1 and self.root.extra is None and not self.root.patterns
        for name in value.keys() & self._wrappers:
            inner = value[name]
            if isinstance(inner, str) and inner.lstrip()[:1] in ("{", "["):
                opened = self._open(inner, self.root)
                inner = {} if opened is None else opened.value
            if isinstance(inner, dict) and (alone or inner.keys() & names):
                raise Unreadable(
                    f"They are wrapped in {json.dumps(name)}, which is no parameter. "
                    "Send the parameters themselves, without the wrapper."
                )

    def arguments(self, value: Any) -> _Mended:
        """Repairs the whole arguments of a call."""
        mended = self.mend(value, self.root, may_open=False)  # `_read` did
        wants_object = self.kinds(self.root) == {"object"} or bool(self.root.properties)
        if wants_object and not isinstance(mended.value, dict):
            raise Unreadable(
                f"The arguments must be one JSON object, not {_WITH_ARTICLE[kind_of(mended.value)]}."
            )
        return mended

    def _unwrap(self, value: Any) -> dict[str, Any] | None:
        """The inside of `{"arguments": {...}}` or `{"name": ..., "arguments": {...}}`, if the schema knows
        nothing of the outside and everything of the inside."""
        if not isinstance(value, dict) or not value.keys() & self._wrappers:
            return None
        if "object" not in self.kinds(self.root):
            return None
        names, _ = self.names(self.root)
        wrapper = next(iter(value.keys() & self._wrappers))
        others = value.keys() - {wrapper}
        if others - set(NAMES) or value.keys() & names or not all(isinstance(value[n], str) for n in others):
            return None
        takes_more = self.root.extra not in (None, False) or self.root.patterns
        if self.fits(value, self.root) and (takes_more or not names):
            return None
        inner = value[wrapper]
        if isinstance(inner, str):
            opened = self._open(inner, self.root)
            inner = opened.value if opened and not opened.fixes else None
        return inner if isinstance(inner, dict) and inner.keys() <= names else None

    def mend(self, value: Any, shape: Shape, may_open: bool = True) -> _Mended:
        """The value repaired to fit the shape, as far as its parts have exactly one repair each."""
        key = (id(value), id(shape), may_open)
        known = self._mends.get(key)
        if known is None:
            self._mends[key] = (value, _Mended(value))
            mended = _Mended(value) if self.fits(value, shape) else self._mend(value, shape, may_open)
            known = self._mends[key] = (value, mended)
        return known[1]

    def _mend(self, value: Any, shape: Shape, may_open: bool) -> _Mended:
        kinds = self.kinds(shape)
        wants_container = "string" not in kinds and bool(kinds & {"object", "array"})
        opened = self._open(value, shape) if may_open and wants_container else None
        if opened:
            inner = self.mend(opened.value, shape, may_open=False)
            if kind_of(inner.value) in kinds:
                change = ("json_text", value, opened.value)
                return _Mended(inner.value, change, opened.fixes, ((None, inner),))
        variants = self.variants(shape)
        if variants:
            return self._mend_union(value, shape, variants, may_open)
        if isinstance(value, dict) and "object" in kinds:
            return self._mend_object(value, shape)
        if isinstance(value, list) and "array" in kinds:
            return self._mend_list(value, shape)
        readings = (
            _Mended(result, (kind, value, result)) for kind, result in self._scalars(value, shape, kinds)
        )
        return self._only(value, shape, [*readings, *self._wrapped(value, shape, kinds, may_open)])

    def _only(self, value: Any, shape: Shape, results: Iterable[_Mended]) -> _Mended:
        """The only result that fits; the unchanged value where there is none or more than one."""
        fitting = [result for result in results if self.fits(result.value, shape)]
        if fitting and all(same_json(fitting[0].value, other.value) for other in fitting[1:]):
            return fitting[0]
        return _Mended(value)

    def _mend_union(self, value: Any, shape: Shape, variants: list[Shape], may_open: bool) -> _Mended:
        results = [self.mend(value, variant, may_open) for variant in variants]
        mended = self._only(value, shape, results)
        if not mended.changed:
            # A single variant beside null is repaired as far as possible, and the validator names the rest.
            real = [
                each for each, variant in zip(results, variants, strict=True) if variant.kinds != {"null"}
            ]
            if len(real) == 1 and isinstance(real[0].value, (dict, list)):
                return real[0]
        return mended

    def _mend_object(self, value: dict[str, Any], shape: Shape) -> _Mended:
        result: dict[str, Any] = {}
        inside: list[tuple[str, _Mended]] = []
        for name, item in value.items():
            member = self.member(shape, name)
            mended = self.mend(item, member)
            optional = name in shape.properties and name not in shape.required
            nothing = item is None or (isinstance(item, str) and (item == "" or _is_null_text(item)))
            if optional and nothing and not self.fits(mended.value, member):
                inside.append((name, _Mended(None, ("omitted", item, None))))
                continue
            if mended.changed:
                inside.append((name, mended))
            result[name] = mended.value
        return _Mended(result, inside=tuple(inside)) if inside else _Mended(value)

    def _mend_list(self, value: list[Any], shape: Shape) -> _Mended:
        items = [self.mend(item, self.item(shape, index)) for index, item in enumerate(value)]
        inside = tuple((index, item) for index, item in enumerate(items) if item.changed)
        if len(items) > 1 and all(item.change and item.change[0] == "wrapped_in_list" for item in items):
            # [1, 2] for a list of lists: two lists of one, or one of two?
            return _Mended(value)
        return _Mended([item.value for item in items], inside=inside) if inside else _Mended(value)

    def _scalars(self, value: Any, shape: Shape, kinds: frozenset[str]) -> Iterator[tuple[str, Any]]:
        """Every (kind of edit, value) that means the same as this value in a JSON type that the shape accepts."""
        if isinstance(value, float) and value.is_integer() and abs(value) < _EXACT:
            yield "exact_integer", int(value)
        if not isinstance(value, str) or "string" in kinds:
            return
        text = value.strip()
        for item in shape.allowed or []:
            if isinstance(item, str) and item.casefold() == text.casefold():
                yield "enum_case", item
        for kind in kinds & _FROM_TEXT.keys() - ({"integer"} if "number" in kinds else set()):
            yield from _FROM_TEXT[kind](text)

    def _wrapped(self, value: Any, shape: Shape, kinds: frozenset[str], may_open: bool) -> Iterator[_Mended]:
        if "array" not in kinds or shape.prefix or not _stands_alone(value):
            return
        if isinstance(shape.min_items, int) and shape.min_items > 1:
            return
        item = self.mend(value, self.shape(shape.items), may_open)
        inside = ((0, item),) if item.changed else ()
        yield _Mended([item.value], ("wrapped_in_list", value, [item.value]), inside=inside)

    def _open(self, value: Any, shape: Shape) -> Reading | None:
        """The object or array of a string that consists of exactly one JSON object or array."""
        if not isinstance(value, str) or value.lstrip()[:1] not in ("{", "[", "`"):
            return None
        try:
            reading = read_json(value, lambda read: self.place_numbers(read, [shape]))
        except Unreadable:
            return None
        return None if any(fix.kind in _NOT_IN_A_STRING for fix in reading.fixes) else reading


# A word is tried from its beginning only, or a long one would cost the square of its length.
_ASSIGNED = re.compile(r"""<([\w.-]++)>|(?<![\w-])([\w-]++)["'`*]*+\s*+[:=：]""")
_WITH_ARTICLE = {
    "null": "null",
    "boolean": "a boolean",
    "integer": "a number",
    "number": "a number",
    "string": "a string",
    "array": "an array",
    "object": "an object",
    "value": "something else",
}
