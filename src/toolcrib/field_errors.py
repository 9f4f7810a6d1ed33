"""Turns a validator's failures into field errors that a model can act on: path, expected, got, allowed.

Works from the JSON Schema, so that typed and foreign tools are explained alike. What no schema can say (a date in
the past, the words of a custom validator) comes with the failure.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from pydantic_core import from_json

from toolcrib.dataclass import dataclass, replace
from toolcrib.errors import FieldError
from toolcrib.json_text.values import kind_of
from toolcrib.schema.expectation import (
    MAX_ALLOWED,
    MAX_FIELDS,
    allowed_values,
    expectation,
    fields_of,
    literal,
)
from toolcrib.schema.steps import property_names, resolve, step
from toolcrib.word_cuts import begun_word

__all__ = ["Failure", "Member", "field_errors", "path_label", "show"]

MAX_SHOWN = 80  # characters of an offending value that are echoed
MIN_SHOWN = 8  # characters that are shown even if they cut a word


@dataclass(frozen=True, slots=True)
class Member:
    """A step of a failure's path that is no key: the variant of a union that the failure is about."""

    name: Any


@dataclass(frozen=True, slots=True)
class Failure:
    """One thing that a validator refused.

    The path may contain steps that are no keys of the value: a `Member`, or the name that a validator gives to a
    variant. Kinds: "missing", "extra" (an unknown field), "key" (a key of a map), "type" (not a value of this type),
    "limit" (a value of the type that breaks a constraint), "rule" (refused by a custom validator), "tag" (a union
    whose variant cannot be told). `words` say what the schema may lack: a limit, a rule, the names of the tag.
    """

    path: tuple[Any, ...]
    kind: str
    words: str = ""


def field_errors(
    schema: Mapping[str, Any], value: Any, failures: Iterable[Failure]
) -> tuple[FieldError, ...]:
    """One FieldError for each failing path. Of a union, only the variant nearest to the value is reported."""
    found: dict[str, FieldError] = {}
    for failed in _nearest([_located(schema, value, failure) for failure in failures], value):
        error = _field_error(failed, schema)
        found.setdefault(error.path, error)
    return tuple(found.values())


# -- where a failure is -----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Failed:
    """A failure with its place in value and schema, and the variants of unions that lead there."""

    failure: Failure
    path: tuple[Any, ...]
    node: Any
    got: Any
    owner: Any  # the schema above
    members: tuple[tuple[tuple[Any, ...], Any, Any], ...] = ()  # place, schema there, variant

    @property
    def is_tag(self) -> bool:
        """Whether a constant is refused, which tells one variant of a union from another."""
        return self.failure.kind == "type" and isinstance(self.node, Mapping) and "const" in self.node


def _located(schema: Mapping[str, Any], value: Any, failure: Failure) -> _Failed:
    path: list[Any] = []
    node: Any = schema
    owner: Any = schema
    members: list[tuple[tuple[Any, ...], Any, Any]] = []
    for position, item in enumerate(failure.path):
        if failure.kind in ("extra", "missing"):  # other failures name the text, these a field in it
            node, value = _inside_text(node, value, schema)
        absent_key = failure.kind == "missing" and position == len(failure.path) - 1
        inside = (isinstance(value, dict) and not isinstance(item, Member) and item in value) or (
            isinstance(value, list) and isinstance(item, int) and item < len(value)
        )
        entered = bool(members) and members[-1][0] == tuple(path)
        union = not entered and isinstance(item, str) and len(_forms(node, schema)) > 1
        if isinstance(item, Member) or (union and not absent_key) or (not inside and not absent_key):
            members.append((tuple(path), node, item))
            continue
        owner = _nearest_form(node, value, schema)
        node = step(owner, item, schema)
        held: Any = value
        value = held[item] if inside else None
        path.append(item)
    return _Failed(failure, tuple(path), resolve(node, schema), value, owner, tuple(members))


def _inside_text(node: Any, value: Any, root: Mapping[str, Any]) -> tuple[Any, Any]:
    """The schema and the value of the JSON in a text, where the schema says that it has some; else the given two."""
    inner = resolve(node, root) if isinstance(value, str) else None
    if isinstance(inner, Mapping) and "contentSchema" in inner:
        try:
            return inner["contentSchema"], from_json(value)
        except ValueError:
            pass
    return node, value


def _forms(node: Any, root: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """The variants of a schema's union that are not null; empty where it is no union."""
    node = resolve(node, root)
    if not isinstance(node, Mapping):
        return []
    for union in ("anyOf", "oneOf"):
        if isinstance(node.get(union), list):
            found = (resolve(member, root) for member in node[union])
            return [form for form in found if isinstance(form, Mapping) and form.get("type") != "null"]
    return []


def _nearest_form(node: Any, value: Any, root: Mapping[str, Any]) -> Any:
    """The variant of a union that a value is most like: of its type, with its tag, with most of its fields."""
    forms = _forms(node, root)
    if not forms or not isinstance(value, dict | list):
        return node
    kind = "array" if isinstance(value, list) else "object"
    forms = [form for form in forms if kind in (form.get("type", kind) or ())] or forms
    return max(forms, key=lambda form: _likeness(form, value)) if isinstance(value, dict) else forms[0]


def _likeness(form: Mapping[str, Any], value: Mapping[str, Any]) -> tuple[int, int]:
    fields = form.get("properties", {})
    tags = {name: node["const"] for name, node in fields.items() if "const" in node}
    right = sum(value.get(name) == const for name, const in tags.items() if name in value)
    wrong = sum(name in value for name in tags) - right
    return right - wrong, sum(1 if name in fields else -1 for name in value)


# -- which variant of a union is meant ------------------------------------------------------------------------


def _nearest(failed: Sequence[_Failed], value: Any) -> list[_Failed]:
    """The failures without those of variants that are further from the value than another."""
    kept = [each for each in failed if not each.members]
    unions: dict[tuple[Any, ...], dict[Any, list[_Failed]]] = {}
    nodes: dict[tuple[Any, ...], Any] = {}
    for each in failed:
        if each.members:
            (place, node, name), *inner = each.members
            nodes[place] = node
            unions.setdefault(place, {}).setdefault(name, []).append(replace(each, members=tuple(inner)))
    for place, by_name in unions.items():
        groups = [_nearest(group, value) for group in by_name.values()]
        distances = [_distance(place, group) for group in groups]
        best = [group for group, far in zip(groups, distances, strict=True) if far == min(distances)]
        if len(best) == 1:
            kept += best[0]
        else:
            kept.append(_joined(place, nodes[place], best, value))
    return kept


def _distance(place: tuple[Any, ...], group: list[_Failed]) -> tuple[int, ...]:
    """How far a variant is from the value: of another type, with another tag, by its fields."""
    here = {each.failure.kind for each in group if each.path == place}
    if "type" in here:
        return (3,)
    if any(each.is_tag and each.path[:-1] == place for each in group):
        return (2,)
    if here:
        return (1,)
    unknown = sum(each.failure.kind in ("extra", "missing") for each in group)
    return (0, unknown, len(group))


def _joined(place: tuple[Any, ...], union: Any, groups: list[list[_Failed]], value: Any) -> _Failed:
    """One failure for several variants that are equally near."""
    for item in place:
        value = value[item]
    tags = [{each.path[-1] for each in group if each.is_tag and each.path[:-1] == place} for group in groups]
    shared = sorted(set[Any].intersection(*tags))
    if shared:
        return _Failed(Failure(place, "tag", f"'{shared[0]}'"), place, union, value, union)
    words = (each.failure.words for group in groups for each in group if each.path == place)
    said = " or ".join(dict.fromkeys(word for word in words if word))
    return _Failed(Failure(place, "limit", said), place, union, value, union)


# -- what is said of a failure -----------------------------------------------------------------------------


def _field_error(failed: _Failed, root: Mapping[str, Any]) -> FieldError:
    label, node = path_label(failed.path), failed.node
    kind, words = failed.failure.kind, failed.failure.words
    if kind == "extra":
        return FieldError(
            label, "no parameter of this name", show(failed.got), tuple(property_names(failed.owner, root))
        )
    if kind == "tag":
        return _tag_error(failed, root)
    got = "nothing" if kind == "missing" else show(failed.got)
    if isinstance(node, Mapping) and (node.get("writeOnly") or node.get("format") == "password"):
        got = got if kind == "missing" else f"another {kind_of(failed.got)}"
    if kind == "key":
        names = failed.owner.get("propertyNames") if isinstance(failed.owner, Mapping) else None
        expected = expectation(names, root) if names else words
        return FieldError(label, f"a key that is {expected}", show(failed.path[-1]))
    expected = expectation(node, root)
    if kind == "rule":
        expected = words if words.startswith(("a ", "an ")) else f"{expected} ({words})"
    elif words and words not in expected:
        joint = " " if words[0] == "(" else ", "
        expected = words if expected in ("any value", "value") else f"{expected}{joint}{words}"
    return FieldError(label, expected, got, allowed_values(node, root))


def _tag_error(failed: _Failed, root: Mapping[str, Any]) -> FieldError:
    """The error for a wrong tag: the values that it may have, and the fields that go with each."""
    forms = _forms(failed.node, root)
    named = failed.failure.words.split("'")[1::2]
    for name in named:
        tags = [_constants(form, name) for form in forms]
        if forms and all(tags):
            break
    else:
        expected = f"{expectation(failed.node, root)} (which of them cannot be told)"
        return FieldError(path_label(failed.path), expected, show(failed.got))
    takes = (
        f"{' or '.join(map(literal, tag))} takes {fields_of(form, without=name)}"
        for tag, form in zip(tags[:MAX_FIELDS], forms, strict=False)
    )
    values = [value for tag in tags for value in tag]
    expected = f"one of {', '.join(map(literal, values[:MAX_ALLOWED]))} ({'; '.join(takes)})"
    given = isinstance(failed.got, dict) and name in failed.got
    got = show(failed.got[name]) if given else "nothing"
    return FieldError(path_label((*failed.path, name)), expected, got, tuple(values[:MAX_ALLOWED]))


def _constants(form: Mapping[str, Any], name: str) -> list[Any]:
    node = form.get("properties", {}).get(name)
    if not isinstance(node, Mapping):
        return []
    values = node.get("enum", [node["const"]] if "const" in node else [])
    return values if isinstance(values, list) else []


def show(value: Any) -> str:
    """An offending value, with its JSON type, cut to a line."""
    if value is None:
        return "null"
    text = literal(value)
    if len(text) > MAX_SHOWN:
        begun = text[:MAX_SHOWN]  # masking would not recognise the beginning of a secret that is cut
        text = begun[: max(MAX_SHOWN - begun_word(begun), MIN_SHOWN)] + "…"
    return f"{kind_of(value)} {text}"


def path_label(path: tuple[Any, ...]) -> str:
    """A path as a person writes it: `edits[0].name`."""
    label = ""
    for item in path:
        label += f"[{item}]" if isinstance(item, int) else f".{item}" if label else str(item)
    return label
