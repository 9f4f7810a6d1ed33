"""The subset of JSON Schema that each server holds an *answer* to, a row each.

They differ from the dialects of tools: servers take more in an answer's schema, or other keywords. What is not listed
is not sent, but said in a description, and checked afterwards.
"""

from __future__ import annotations

from types import MappingProxyType
from typing import Final

from toolcrib.schema.dialects import DIALECTS, Dialect
from toolcrib.schema.keywords import words

__all__ = ["ANSWER_DIALECTS"]

_CORE: Final = words("type description enum properties required additionalProperties items anyOf $ref $defs")
_NUMBERS: Final = words("minimum maximum exclusiveMinimum exclusiveMaximum")
_LENGTHS: Final = words("minLength maxLength")
_COUNTS: Final = words("minItems maxItems")

_ROWS: Final = (
    # google-genai 3.4, `response_json_schema`: these keywords are read, all others are silently ignored; a cycle may
    # stand in a property that is not required only, so recursion is cut.
    Dialect(
        "gemini",
        keywords=words(
            "type description enum properties required additionalProperties items prefixItems anyOf format"
            " minItems maxItems minimum maximum"
        ),
        formats=words("date-time date time"),
        one_of=False,
        all_of=False,
        union_siblings=False,
        typed=("string", "number", "boolean", "null"),
        items=True,
    ),
    # docs.cohere.com/docs/structured-outputs, "Schema constraints": no numeric ranges, no lengths of strings, no
    # counts of items beyond one, no allOf, oneOf, not; formats of dates and uuid.
    Dialect(
        "cohere",
        keywords=words("type description enum properties required items anyOf $ref $defs pattern format"),
        formats=words("date-time date time uuid"),
        references=True,
        ref_siblings=False,
        one_of=False,
        all_of=False,
        union_siblings=False,
        typed=("string", "number", "boolean", "null"),
        items=True,
        look_around=False,
    ),
    # xgrammar 0.2, which vLLM, SGLang and TensorRT-LLM compile with: it silently drops uniqueItems, not, if, contains,
    # dependent*, several allOf, keywords beside a union or a reference. Bounds of a string's length are left out: with
    # them it lets raw control characters into strings, which are no JSON (mlc-ai/xgrammar#800). A pattern it anchors.
    Dialect(
        "xgrammar",
        keywords=_CORE | _NUMBERS | _COUNTS | words("prefixItems pattern format"),
        formats=words("date-time date time duration email hostname ipv4 ipv6 uuid uri"),
        references=True,
        ref_siblings=False,
        one_of=False,
        all_of=False,
        union_siblings=False,
        look_around=False,
    ),
    # llama.cpp common/json-schema-to-grammar.cpp: bounds of integers, lengths of strings, counts of items; a pattern
    # must be anchored at both ends; other formats than these are dropped.
    Dialect(
        "llamacpp",
        keywords=_CORE | _LENGTHS | _COUNTS | words("prefixItems minimum maximum pattern format"),
        formats=words("date-time date time uuid"),
        references=True,
        ref_siblings=False,
        one_of=False,
        all_of=False,
        union_siblings=False,
        look_around=False,
    ),
    # outlines-core, with which TGI compiles.
    Dialect(
        "outlines",
        keywords=words("type description enum properties required items anyOf $ref $defs prefixItems")
        | _LENGTHS
        | _COUNTS
        | words("pattern format"),
        formats=words("date-time date time uuid email uri"),
        references=True,
        ref_siblings=False,
        one_of=False,
        all_of=False,
        union_siblings=False,
        look_around=False,
    ),
    # llguidance 1.9, docs/json_schema.md: refuses not, if, dependent*, uniqueItems, contains, propertyNames, formats
    # that it does not know, and a oneOf whose variants may overlap.
    Dialect(
        "llguidance",
        keywords=_CORE
        | _NUMBERS
        | _LENGTHS
        | _COUNTS
        | words("multipleOf prefixItems pattern format patternProperties allOf"),
        formats=words("date-time date time duration email hostname ipv4 ipv6 uuid uri"),
        references=True,
        one_of=False,
        look_around=False,
    ),
)

ANSWER_DIALECTS: Final = MappingProxyType(
    {
        "openai-strict": DIALECTS["openai-strict"],
        "anthropic-strict": DIALECTS["anthropic-strict"],
        "openai": DIALECTS["openai"],
        "anthropic": DIALECTS["anthropic"],
        "bedrock": DIALECTS["bedrock"],
        **{row.name: row for row in _ROWS},
    }
)
