"""Lints a tool's spec for what makes models use it wrongly."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

from toolcrib.dataclass import dataclass
from toolcrib.json_text.values import escape
from toolcrib.schema.canonical import clean
from toolcrib.schema.given import check_spec
from toolcrib.schema.keywords import accepts_null, types_of
from toolcrib.schema.markdown import Described

_SHORTEST: Final = 5  # words below which a tool's description is a phrase
_MANY_VALUES: Final = 1_000
_ACCEPTED_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_-]{0,63}")
_SWITCHES: Final = frozenset(("action", "mode", "op", "operation", "command", "method", "subcommand"))
_EMPTY_WORDS: Final = frozenset(
    ("a", "an", "the", "of", "to", "for", "this", "that", "is", "value", "parameter")
)
# "only used when action is 'move'", "required if mode=write", "ignored unless kind is set to x"
_CONDITION: Final = re.compile(
    r"\b(?:only|required|used|valid|applies|applicable|ignored|needed|relevant|must be set)\b"
    r"[^.;]{0,30}?\b(?:when|if|for|with|unless)\b(?P<rest>[^.;]*)",
    re.IGNORECASE,
)
_COMPARISON: Final = re.compile(r"\s*(?:=|==|\bis\b|\bequals\b|\bset to\b|['\"`])", re.IGNORECASE)
# "only with X", "ignored without `x`", "used together with X", "only applies if x is given", "requires `x`"
_NOT: Final = re.compile(r"\b(?:not|never|cannot)(?: be)? ?$", re.IGNORECASE)
_BESIDE: Final = re.compile(
    r"""
    \b(?:only|solely|ignored|used|valid|applie[sd]|applicable|allowed|needed|required|relevant|meaningful|effect|
       meant|together|combined|combination|conjunction)\b
    [^.;]{0,40}?
    (?:\b(?:with(?:out)?|alongside|beside)\s+(?:the\s+|an?\s+)?[`'"]?(?P<with>[\w-]+)
     |\b(?:when|if|unless)\s+(?:the\s+)?[`'"]?(?P<when>[\w-]+)[`'"]?\s+(?:is|are|was)?\s*
      (?:also\s+|not\s+)?(?:given|set|present|provided|passed|specified|used|true|false|enabled|disabled)\b)
    |\b(?:requires?|needs|depends\s+on)\s+(?:the\s+)?
     (?:[`'"](?P<quoted>[\w-]+)[`'"]|(?P<needs>[\w-]+)(?=\s+(?:parameter|argument|field|option|to\s+be)\b|\s*(?:[.,;)]|$)))
    """,
    re.IGNORECASE | re.VERBOSE,
)


@dataclass(frozen=True, slots=True)
class LintFinding:
    """A piece of advice: tool, field (JSON pointer; "" is the tool itself), stable code and message."""

    tool: str
    path: str
    code: str
    message: str


def lint(spec: Described) -> list[LintFinding]:
    """The findings about one tool; empty where there are none.

    Codes: `name-refused`, `no-description`, `short-description`, `undocumented-parameter`,
    `conditional-parameter`, `action-switch`, `free-form-object`, `any-value`, `large-enum`.
    """
    check_spec(spec)
    schema = clean(spec.input_schema)
    found = [
        LintFinding(spec.name, path, code, text) for rule in _RULES for path, code, text in rule(spec, schema)
    ]
    return sorted(found, key=lambda finding: finding.path)


_Advice = Iterator[tuple[str, str, str]]


def _name(spec: Described, schema: Mapping[str, Any]) -> _Advice:
    if not _ACCEPTED_NAME.fullmatch(spec.name):
        yield (
            "",
            "name-refused",
            ("some providers refuse this name: use 1 to 64 letters, digits, _ or -, starting with a letter"),
        )


def _description(spec: Described, schema: Mapping[str, Any]) -> _Advice:
    text = spec.description.strip()
    # Chinese and Japanese do not put spaces between words; three letters weigh about as much as a word.
    words = max(len(text.split()), sum(ord(char) > 0x2E7F for char in text) // 3)
    if not text:
        yield "", "no-description", "say what the tool does, when to use it, and what it returns"
    elif words < _SHORTEST:
        yield (
            "",
            "short-description",
            f"{text!r} is a phrase: say also when to use the tool and what it returns",
        )


def _documented(spec: Described, schema: Mapping[str, Any]) -> _Advice:
    for path, name, field in _fields(schema):
        said = str(field.get("description", ""))
        if not said.strip():
            if not _speaks_for_itself(field):
                yield path, "undocumented-parameter", f"{name!r} has no description"
        elif _tokens(said) <= _tokens(name) | _EMPTY_WORDS:
            yield path, "undocumented-parameter", f"the description of {name!r} says no more than its name"


def _conditional(spec: Described, schema: Mapping[str, Any]) -> _Advice:
    fields: Mapping[str, Any] = schema.get("properties", {})
    for name, field in fields.items():
        said = str(field.get("description", ""))
        path = f"/properties/{escape(name)}"
        if other := _depends_on(name, said, fields):
            yield (
                path,
                "conditional-parameter",
                (
                    f"{name!r} means something only for some values of {other!r}: "
                    "models send it anyway; make two tools, or a union of objects"
                ),
            )
        elif other := _beside(name, said, schema):
            yield (
                path,
                "conditional-parameter",
                (
                    f"{name!r} means something only beside {other!r}: models send it alone; "
                    "put both into one object, or make two tools"
                ),
            )


def _beside(name: str, said: str, schema: Mapping[str, Any]) -> str | None:
    """Another parameter without which this one means nothing, as the schema or the description says."""
    needed = schema.get("dependentRequired", {}).get(name, ())
    named = (
        word
        for match in _BESIDE.finditer(said)
        if not _NOT.search(said[: match.start()])  # "cannot be combined with x"
        for word in match.groups()
        if word
    )
    return next(
        (other for other in (*needed, *named) if other != name and other in schema["properties"]), None
    )


def _depends_on(name: str, said: str, fields: Mapping[str, Any]) -> str | None:
    for condition in _CONDITION.finditer(said):
        rest = condition["rest"]
        for other, field in fields.items():
            if other == name:
                continue
            mention = re.search(rf"(?<![\w-]){re.escape(other)}(?![\w-])", rest)
            if mention is None:
                continue
            values = [str(v) for v in field.get("enum", ()) if v is not None]
            if _COMPARISON.match(rest, mention.end()) or any(value in rest for value in values):
                return other
    return None


def _action(spec: Described, schema: Mapping[str, Any]) -> _Advice:
    fields: Mapping[str, Any] = schema.get("properties", {})
    required = schema.get("required", ())
    optional = [name for name in fields if name not in required]
    for name, field in fields.items():
        values = field.get("enum", ())
        if name.lower() in _SWITCHES and len(values) >= 3 and len(optional) - (name in optional) >= 4:
            yield (
                f"/properties/{escape(name)}",
                "action-switch",
                (
                    f"{name!r} chooses among {len(values)} actions with {len(optional)} optional fields: "
                    "a tool for each action is used with fewer mistakes"
                ),
            )


def _vague(spec: Described, schema: Mapping[str, Any]) -> _Advice:
    for path, name, field in _fields(schema):
        if (
            "object" in types_of(field)
            and not field.get("properties")
            and "additionalProperties" not in field
        ):
            if not {"patternProperties", "anyOf", "oneOf", "allOf", "propertyNames"} & field.keys():
                yield (
                    path,
                    "free-form-object",
                    f"{name!r} is an object without fields: the model must guess its keys",
                )
        elif not set(field) - {"description", "default", "examples", "deprecated"}:
            yield path, "any-value", f"{name!r} takes any value: say at least its type"


def _enumerations(spec: Described, schema: Mapping[str, Any]) -> _Advice:
    for path, name, field in _fields(schema):
        count = len(field.get("enum", ()))
        if count > _MANY_VALUES:
            yield (
                path,
                "large-enum",
                f"{name!r} lists {count} values: OpenAI takes {_MANY_VALUES}; search instead",
            )


def _fields(
    node: Mapping[str, Any], path: str = "", depth: int = 0
) -> Iterator[tuple[str, str, Mapping[str, Any]]]:
    """Every field of the schema, those of nested objects, of items and of variants included."""
    if depth > 8:
        return
    for name, field in node.get("properties", {}).items():
        at = f"{path}/properties/{escape(name)}"
        yield at, name, field
        yield from _fields(field, at, depth + 1)
    if isinstance(node.get("items"), Mapping):
        yield from _fields(node["items"], f"{path}/items", depth + 1)
    for keyword in ("anyOf", "oneOf", "allOf"):
        for index, variant in enumerate(node.get(keyword, ())):
            yield from _fields(variant, f"{path}/{keyword}/{index}", depth + 1)


def _speaks_for_itself(field: Mapping[str, Any]) -> bool:
    """Whether a field needs no description: a tag with one value, or an object whose own fields are documented."""
    return (
        "const" in field
        or len(field.get("enum", "  ")) == 1
        or (bool(field.get("properties")) and not accepts_null(field))
    )


def _tokens(text: str) -> set[str]:
    spaced = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", " ", text)
    return {word.lower().rstrip("s") or word for word in re.findall(r"\w+", spaced.replace("_", " "))}


_RULES: Final[tuple[Callable[[Described, Mapping[str, Any]], _Advice], ...]] = (
    _name,
    _description,
    _documented,
    _conditional,
    _action,
    _vague,
    _enumerations,
)
