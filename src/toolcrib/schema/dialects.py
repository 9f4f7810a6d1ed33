"""The subset of JSON Schema that each provider takes, a row each.

A row that names no keywords takes them all. Facts carry the source that they were last checked against; a
provider that moves is a change to its row and to nothing else.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from toolcrib.dataclass import dataclass, field
from toolcrib.schema.keywords import words


@dataclass(frozen=True, slots=True)
class Dialect:
    """What one provider takes of JSON Schema in the input schema of a tool."""

    name: str
    keywords: frozenset[str] | None = None  # None: all
    root_keywords: frozenset[str] | None = None  # None: what any node may have, but for `ROOT_REFUSED`
    formats: frozenset[str] | None = None  # None: all
    references: bool = False  # recursion may stay a `$ref`; otherwise it is cut to a finite depth
    ref_siblings: bool = True
    one_of: bool = True
    all_of: bool = True
    union_siblings: bool = True  # constraints may stand beside a union
    type_lists: bool = True  # `type` may be a list; otherwise null is `nullable: true`
    typed: tuple[str, ...] = ()  # every node needs a type: what "anything" is then said to be
    items: bool = False  # every array needs `items`
    string_enums: bool = False  # `enum` lists strings only
    look_around: bool = True
    closed: bool = False  # every object says `additionalProperties: false`
    all_required: bool = False  # every property is required; an optional one is nullable instead
    largest: Mapping[str, int] = field(
        default_factory=lambda: MappingProxyType[str, int]({})
    )  # keyword: value
    max_enum: int | None = None
    parameter_names: re.Pattern[str] | None = None  # others are replaced by codecs, see `NAMING_ROOT`


# No provider takes these at the root of a tool's input: 400 "schema must have type 'object' and not have
# 'oneOf'/'anyOf'/'allOf'/'enum'/'not' at the top level" (OpenAI; langchainjs#9804), 400 "input_schema does
# not support oneOf, allOf, or anyOf at the top level" (Anthropic; claude-code#5973, still so in 2026-08).
ROOT_REFUSED: Final = words("anyOf oneOf allOf not enum const")

# 400 "input_schema.properties: Property keys should match pattern", of the root's properties alone (Anthropic, also on
# Bedrock; 2026-08).
ANTHROPIC_NAMES: Final = re.compile(r"[A-Za-z0-9_.-]{1,64}")

# What the root holds where its properties get other names: nothing else in it may speak of them. What it says besides
# goes into its description, and what refers to it, to a definition.
NAMING_ROOT: Final = words("type description properties required additionalProperties")

_CORE: Final = words("type description enum properties required items anyOf")
_BOUNDS: Final = words("minimum maximum minItems maxItems")
_STRICT_BOUNDS: Final = _BOUNDS | words("exclusiveMinimum exclusiveMaximum multipleOf")
_FORMATS: Final = words("date-time time date duration email hostname ipv4 ipv6 uuid")
_CONSERVATIVE: Final = (
    _CORE | _STRICT_BOUNDS | words("default minLength maxLength pattern format uniqueItems oneOf allOf")
)

_ROWS: Final[tuple[Dialect, ...]] = (
    # Function calling without strict takes any keyword below the root, but every array needs `items`
    # (docker/mcp-gateway#265); `allOf` was refused below the root by smaller models (notion-mcp-server#102).
    # At most 1,000 values in an enumeration: developers.openai.com/api/docs/guides/structured-outputs.
    Dialect("openai", references=True, items=True, max_enum=1_000),
    # developers.openai.com/api/docs/guides/structured-outputs, "Supported schemas" (2026): no allOf, not,
    # dependent*, if; recursion and `$defs` are fine, keywords beside a `$ref` are not; `default` and string
    # lengths are refused. openai-python's own converter leaves `default` and maps in, and gets a 400.
    Dialect(
        "openai-strict",
        keywords=_CORE | _STRICT_BOUNDS | words("pattern format additionalProperties $ref $defs"),
        formats=_FORMATS,
        references=True,
        ref_siblings=False,
        one_of=False,
        all_of=False,
        union_siblings=False,
        typed=("string", "number", "boolean", "null"),
        items=True,
        look_around=False,
        closed=True,
        all_required=True,
        max_enum=1_000,
    ),
    # platform.claude.com: `input_schema` is JSON Schema 2020-12; string lengths and patterns are read
    # (earlier accounts have them stripped), only the root is special.
    Dialect("anthropic", references=True, parameter_names=ANTHROPIC_NAMES),
    # platform.claude.com, "Structured outputs", JSON Schema limitations (2026-09), and `transform_schema` of
    # the anthropic package: no recursion, no numeric or length bounds, `minItems` 0 or 1, no uniqueItems.
    # Optional parameters are allowed (24 over all strict tools), so they stay optional.
    Dialect(
        "anthropic-strict",
        keywords=_CORE | words("default pattern format minItems additionalProperties"),
        formats=_FORMATS | {"uri"},
        one_of=False,
        all_of=False,
        union_siblings=False,
        typed=("string", "number", "boolean", "null"),
        look_around=False,
        closed=True,
        largest=MappingProxyType({"minItems": 1}),
        parameter_names=ANTHROPIC_NAMES,
    ),
    # ai.google.dev/api/caching#Schema (2026): the OpenAPI subset that `parameters` takes, also valid as
    # `parametersJsonSchema`. Types are single, null is `nullable`, enumerations are strings, `anyOf` has no
    # constraints beside it (400 "When using any_of, it must be the only field set"). Of what it lists, string
    # lengths and patterns are not passed on by `parametersJsonSchema`, so they are told instead; unions are
    # taken since 2025, where they had to be flattened before.
    Dialect(
        "gemini",
        keywords=_CORE | _BOUNDS | words("default nullable"),
        formats=frozenset(),
        one_of=False,
        all_of=False,
        union_siblings=False,
        type_lists=False,
        typed=("string", "number", "boolean", "object", "array"),
        items=True,
        string_enums=True,
    ),
    # docs.aws.amazon.com/nova/latest/userguide/tool-use-definition.html: the root holds type, properties and
    # required only; below, what Claude and Nova both take. References are not resolved by every model there.
    Dialect(
        "bedrock",
        keywords=_CONSERVATIVE | words("additionalProperties"),
        root_keywords=words("type properties required"),
        items=True,
    ),
    # docs.mistral.ai/capabilities/function_calling: OpenAI's shape, checked against the 2020-12 metaschema
    # (pdf-reader-mcp#63: draft 4's boolean bounds are refused); `$id` and `$schema` are too (litellm#13389).
    Dialect("mistral", references=True, items=True),
    # github.com/ollama/ollama api/types.go, ToolProperty: anyOf, type (also a list), items, description,
    # enum, properties; whatever else is sent is dropped before the template sees it.
    Dialect(
        "ollama",
        keywords=_CORE,
        one_of=False,
        all_of=False,
        union_siblings=False,
        typed=("string", "number", "boolean", "object", "array", "null"),
        items=True,
    ),
    # Not one provider's rules: what the rows above have in common, and a little that does no harm if it is ignored.
    Dialect("conservative", keywords=_CONSERVATIVE, items=True),
)

DIALECTS: Final[Mapping[str, Dialect]] = MappingProxyType({row.name: row for row in _ROWS})
"""All dialects, by their names."""


def dialect_named(name: str) -> Dialect:
    """The row of that name; a `ValueError` that lists the known ones where there is none."""
    row = DIALECTS.get(name)
    if row is None:
        raise ValueError(f"no schema dialect is called {name!r}; there are {', '.join(DIALECTS)}")
    return row
