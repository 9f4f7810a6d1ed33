"""Constraints of each kind, for the tests of local guides: each has a bound, so that random answers end."""

from __future__ import annotations

from typing import Any

from toolcrib.guided import Choice, Grammar, JsonSchema, Regex, Tag, Tags, ToolCalls
from toolcrib.messages import ToolChoice
from toolcrib.spec import ToolSpec

SEARCH: dict[str, Any] = {
    "type": "object",
    "properties": {
        "query": {"type": "string", "maxLength": 12},
        "most": {"type": "integer", "minimum": 1, "maximum": 50},
    },
    "required": ["query"],
    "additionalProperties": False,
}
NODE = {
    "type": "object",
    "properties": {"name": {"type": "string"}, "next": {"$ref": "#/$defs/Node"}},
    "required": ["name"],
    "additionalProperties": False,
}
WALK: dict[str, Any] = {**NODE, "$defs": {"Node": NODE}}
TOOLS = (ToolSpec("search", "Search.", SEARCH), ToolSpec("walk", "Walk.", WALK))
RECORD: dict[str, Any] = {
    "type": "object",
    "properties": {
        "label": {"type": "string", "maxLength": 12},
        "count": {"type": "integer", "minimum": -5, "maximum": 500},
        "marks": {"type": "array", "items": {"enum": ["x", "y", None]}, "maxItems": 4},
        "kind": {"anyOf": [{"type": "boolean"}, {"const": "other"}]},
    },
    "required": ["label", "count", "marks"],
    "additionalProperties": False,
}
SQL = """
root ::= select_statement
select_statement ::= "SELECT " column " from " table " where " condition
column ::= "col_1 " | "col_2 "
table ::= "table_1 " | "table_2 "
condition ::= column "= " number
number ::= "1 " | "2 "
"""
SUM = 'start: term ("+" term)~0..4\nterm: /[0-9]{1,3}/ | "(" term ")"'
BEGIN = '<call>{"name": "search", "arguments": '
CONSTRAINTS: dict[str, Any] = {
    "choice": Choice("yes", "no", "yes, please"),
    "regex": Regex(r"\w{1,12}@\w{1,8}\.com\n"),
    "json": JsonSchema(RECORD),
    "sql": Grammar(SQL),
    "sum": Grammar(SUM, "lark"),
    "greedy": Grammar('root ::= [a-z]{0,9} "b" ("ab" | "a") "b"'),
    "merged tools": ToolCalls(TOOLS, ToolChoice("required"), most_items=3, most_characters=8),
    "tags": Tags((Tag(BEGIN, SEARCH, "}</call>"),), ("<call>",), at_least_one=True, several=False),
}
