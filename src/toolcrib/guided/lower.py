"""Lowers a constraint for one server: the fields of its request, and what they guarantee.

A kind of constraint that the server lacks is sent as a more general kind: a choice as a regular expression or grammar,
or to a cloud provider as a schema of one field. A schema is tried on the rungs of the server's row, the best first.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, Final

from toolcrib.dataclass import replace
from toolcrib.guided.answer_dialects import ANSWER_DIALECTS
from toolcrib.guided.constraints import Choice, Grammar, Regex, Tags, ToolCalls
from toolcrib.guided.grammar_tree import Either, Exact, Node, left_recursive
from toolcrib.guided.json_schema import JsonSchema
from toolcrib.guided.lowered import Guarantee, Lowered, RungName
from toolcrib.guided.patterns import portable_patterns
from toolcrib.guided.prompts import prompt_for
from toolcrib.guided.roots import FIELD, needs_wrapper, unwrapped_path, wrapped
from toolcrib.guided.targets import Rung, ServerTarget, target_named
from toolcrib.guided.weak import FORMATS, PATTERNS, UNDOCUMENTED, weak_places
from toolcrib.guided.wire import SentSchema
from toolcrib.schema.canonical import Loss
from toolcrib.schema.lower import lower_schema

__all__ = ["lower", "rungs_of"]

ORDER: Final[tuple[RungName, ...]] = ("native", "strict tool", "forced tool", "JSON mode", "bias", "text")
CUSTOM_TOOL: Final = "answer"
NOT_IN_NAMES: Final = re.compile(r"[^A-Za-z0-9_-]")  # of schemas and tools, at every provider
LONGEST_NAME: Final = 64


def lower(constraint: Any, target: str, *, rung: RungName | None = None) -> Lowered:
    """A constraint in the words of a server: the best rung that it takes, or the rung that is named.

    `constraint` is a `Choice`, `Regex`, `JsonSchema`, `Grammar`, `ToolCalls` or `Tags`; a type or a mapping counts as
    a `JsonSchema`. `target` is a name of `TARGETS`. ValueError for an unknown target, and for a rung that it does not
    have for this constraint.

    >>> from toolcrib.guided import Choice
    >>> lower(Choice("yes", "no"), "vllm").fields
    {'structured_outputs': {'choice': ['yes', 'no']}}
    >>> lower({"type": "array"}, "text").guarantee
    'prompted'
    """
    made = _as_constraint(constraint)
    if rung is None:
        return _first(_candidates(made, target_named(target)), made, target, ())
    for candidate in _candidates(made, target_named(target)):
        if not isinstance(candidate, str) and candidate.rung == rung:
            return _first([candidate], made, target, ())
    raise ValueError(f"{target} has no rung {rung!r} for this {type(made).__name__}")


def rungs_of(constraint: Any, target: str, *, other_names: bool = False) -> list[Lowered]:
    """All ways in which a server can be asked to keep to a constraint, the best first; plain text is the last.

    `other_names`: names of parameters that a server refuses exclude no rung, because the codec replaces them.
    """
    made, server = _as_constraint(constraint), target_named(target)
    if other_names:
        server = replace(server, rungs=tuple(replace(rung, names=None) for rung in server.rungs))
    found = _candidates(made, server)
    return [_first([rung], made, target, ()) for rung in found if isinstance(rung, Lowered)]


def _as_constraint(given: Any) -> Any:
    if isinstance(given, type) and issubclass(
        given, Choice | Regex | JsonSchema | Grammar | ToolCalls | Tags
    ):
        raise TypeError(
            f"lower: expected a constraint, such as Choice('yes', 'no'), got the class {given.__name__}"
        )
    known = isinstance(given, Choice | Regex | JsonSchema | Grammar | ToolCalls | Tags)
    return given if known else JsonSchema(given)


def _first(
    candidates: Sequence[Lowered | str], constraint: Any, target: str, blockers: tuple[str, ...]
) -> Lowered:
    """The first candidate that is a rung, with what blocks those before it, and what is below it."""

    def below(after: RungName, refused: tuple[str, ...]) -> Lowered | None:
        return _below(constraint, target, after, refused)

    said = [*blockers]
    for candidate in candidates:
        if isinstance(candidate, Lowered):
            return replace(candidate, blockers=tuple(dict.fromkeys(said)), below=below)
        said.append(candidate)
    raise AssertionError("text is always possible")


def _below(constraint: Any, target: str, after: RungName, blockers: tuple[str, ...]) -> Lowered | None:
    """The best rung below another; None where there is none."""
    candidates = _candidates(constraint, target_named(target))
    lower_ones = [
        candidate
        for candidate in candidates
        if isinstance(candidate, str) or ORDER.index(candidate.rung) > ORDER.index(after)
    ]
    if not any(isinstance(candidate, Lowered) for candidate in lower_ones):
        return None
    return _first(lower_ones, constraint, target, blockers)


def _candidates(constraint: Any, target: ServerTarget) -> list[Lowered | str]:
    """Every rung from the best down, with a sentence in the place of each that the constraint blocks."""
    if isinstance(constraint, JsonSchema):
        found = _schema_rungs(constraint, constraint, target)
    elif isinstance(constraint, ToolCalls):
        found = _call_rungs(constraint, target)
    elif isinstance(constraint, Tags):
        found = _tag_rungs(constraint, target)
    else:
        found = _text_rungs(constraint, target)
    text = Lowered(target.name, constraint, "text", {}, "prompted", prompt=prompt_for(constraint))
    return [*found, text]


# -- schemas ----------------------------------------------------------------------------------------------


def _schema_rungs(constraint: Any, schema: JsonSchema, target: ServerTarget) -> list[Lowered | str]:
    """The rungs of a schema; `constraint` is what it was made from, which is checked afterwards."""
    return [_on_rung(constraint, schema, target, rung) for rung in target.rungs]


def _on_rung(constraint: Any, schema: JsonSchema, target: ServerTarget, rung: Rung) -> Lowered | str:
    name = NOT_IN_NAMES.sub("_", schema.name)[:LONGEST_NAME] or CUSTOM_TOOL
    if not rung.dialect:
        fields = rung.write(SentSchema({}, name, schema.description))
        return Lowered(
            target.name,
            constraint,
            rung.name,
            fields,
            rung.guarantee,
            prompt=prompt_for(constraint, schema),
            not_with=rung.not_with,
            wrapped=needs_wrapper(schema.schema),
        )
    wrap = not rung.any_root and needs_wrapper(schema.schema)
    canonical = wrapped(schema.schema) if wrap else schema.schema
    sent, losses = lower_schema(canonical, ANSWER_DIALECTS[rung.dialect], object_root=not rung.any_root)
    narrowing = [loss for loss in losses if loss.narrows]
    if narrowing and rung.must_not_narrow:
        return f"{rung.name}: {_place(narrowing[0].path, wrap)}: {narrowing[0].detail}"
    for refuses in (rung.limits, rung.names):
        if refuses is not None and (refused := refuses(sent)):
            return f"{rung.name}: {refused}"
    if rung.portable:
        sent, left_out = portable_patterns(sent, drop=rung.drop_patterns)
        losses += left_out
    weak = rung.weak if rung.weak is UNDOCUMENTED else (*rung.weak, *FORMATS)
    losses += [Loss(path, keyword, why) for path, keyword, why in weak_places(sent, weak)]
    if wrap:  # further fields of the object around the value do not matter
        losses = [replace(loss, path=unwrapped_path(loss.path)) for loss in losses if loss.path]
    held = [loss for loss in losses if loss.keyword not in NO_CONSTRAINTS]
    guarantee: Guarantee = rung.guarantee
    if guarantee == "enforced" and held:
        guarantee = "enforced in part"
    called = rung.name in ("strict tool", "forced tool")
    return Lowered(
        target.name,
        constraint,
        rung.name,
        rung.write(SentSchema(sent, name, schema.description)),
        guarantee,
        tuple(dict.fromkeys(losses)),
        prompt=prompt_for(constraint, schema) if guarantee == "prompted" and not called else "",
        tool=name if called else "",
        not_with=rung.not_with,
        schema=sent,
        wrapped=wrap,
    )


NO_CONSTRAINTS: Final = frozenset(
    ("description", "default", "examples", "deprecated", "readOnly", "writeOnly", "title", "contentEncoding")
)


def _place(path: str, wrap: bool) -> str:
    return (unwrapped_path(path) if wrap else path) or "the root"


# -- texts ------------------------------------------------------------------------------------------------


def _text_rungs(constraint: Choice | Regex | Grammar, target: ServerTarget) -> list[Lowered | str]:
    native = _native_text(constraint, target)
    found: list[Lowered | str] = [] if native is None else [native]
    if isinstance(constraint, Grammar) or (native is not None and not isinstance(native, str)):
        return found
    if isinstance(constraint, Choice):
        schema: dict[str, Any] = {"type": "string", "enum": [*constraint.options]}
    else:
        schema = {"type": "string", "pattern": f"^({_portable(constraint)})$"}
    try:
        held = JsonSchema(schema)
    except ValueError:  # bounds of thousands, which engines of JSON Schema do not read as a pattern
        return [*found, "the pattern is too large for a JSON Schema"]
    rungs = _schema_rungs(constraint, held, target)
    return [*found, *(low if isinstance(low, str) else _as_text(low, schema) for low in rungs)]


def _as_text(low: Lowered, schema: dict[str, Any]) -> Lowered:
    """A text that was lowered as a schema. If the dialect lacks its `enum` or `pattern`, only JSON is promised."""
    sent: Any = low.schema
    if sent is not None and low.wrapped:
        sent = sent["properties"][FIELD]
    if sent is None or any(word in sent for word in ("enum", "pattern")):
        return low
    guarantee: Guarantee = "JSON only" if low.guarantee.startswith("enforced") else low.guarantee
    return replace(low, guarantee=guarantee, prompt=prompt_for(low.constraint, JsonSchema(schema)))


def _native_text(constraint: Choice | Regex | Grammar, target: ServerTarget) -> Lowered | str | None:
    """The fields of a text in the narrowest kind that the server takes; None where it takes no kind that fits."""
    fields: Mapping[str, Any] | None = None
    tool = ""
    if isinstance(constraint, Choice) and target.choice is not None:
        fields = target.choice(constraint.options)
    elif not isinstance(constraint, Grammar) and target.regex is not None:
        fields = target.regex(_portable(constraint))
    elif target.grammar is not None:
        written = _as_grammar(constraint, target)
        if written is None:
            return "native: the server's engine cannot read a rule that begins with itself"
        fields = target.grammar(written)
    elif target.custom_tool is not None and not isinstance(constraint, Choice):
        tool = CUSTOM_TOOL
        if isinstance(constraint, Regex):
            fields = target.custom_tool(tool, "regex", _portable(constraint))
        else:
            fields = target.custom_tool(tool, "lark", _as_lark(constraint))
    if fields is None:
        return None
    return Lowered(
        target.name, constraint, "native", fields, "enforced", tool=tool, not_with=target.texts_not_with
    )


def _portable(constraint: Choice | Regex) -> str:
    from toolcrib.guided.regex_tree import regex_text

    return regex_text(_tree(constraint))


def _tree(constraint: Choice | Regex) -> Node:
    if isinstance(constraint, Choice):
        return Either(tuple(map(Exact, constraint.options)))
    from toolcrib.guided.regex_tree import regex_tree

    return regex_tree(constraint.pattern)


def _as_grammar(constraint: Choice | Regex | Grammar, target: ServerTarget) -> str | None:
    """The text of a grammar in the server's syntax; None where its engine cannot read it."""
    from toolcrib.guided.grammar_text import read_grammar, write_gbnf

    if target.grammar_syntax == "lark":
        return _as_lark(constraint)
    if isinstance(constraint, Grammar):
        rules = read_grammar(constraint.text, constraint.syntax, constraint.start)
        if not target.left_recursion and left_recursive(rules):
            return None
        return write_gbnf(rules, constraint.start)
    return write_gbnf({"root": _tree(constraint)}, "root")


def _as_lark(constraint: Choice | Regex | Grammar) -> str:
    from toolcrib.guided.grammar_text import read_grammar, write_lark

    if not isinstance(constraint, Grammar):
        return write_lark({"start": _tree(constraint)}, "start")
    return write_lark(read_grammar(constraint.text, constraint.syntax, constraint.start), constraint.start)


# -- calls and tags ---------------------------------------------------------------------------------------


def _call_rungs(constraint: ToolCalls, target: ServerTarget) -> list[Lowered | str]:
    from toolcrib.guided.merged import merged_schema, without_broken

    usable, broken = without_broken(constraint)
    # In a strict dialect, a model would have to write each optional argument as null.
    kept = [
        rung
        for rung in target.rungs
        if rung.name in ("native", "JSON mode") and (target.promises or rung.dialect != "openai-strict")
    ]
    found = _schema_rungs(constraint, JsonSchema(merged_schema(usable)), replace(target, rungs=tuple(kept)))
    if not broken:
        return found
    return [low if isinstance(low, str) else _with_losses(low, broken) for low in found]


def _with_losses(low: Lowered, losses: list[Loss]) -> Lowered:
    guarantee: Guarantee = "enforced in part" if low.guarantee == "enforced" else low.guarantee
    return replace(low, losses=(*low.losses, *losses), guarantee=guarantee)


def _tag_rungs(constraint: Tags, target: ServerTarget) -> list[Lowered | str]:
    if target.tags is None:
        return []
    tags: list[tuple[str, dict[str, Any], str]] = []
    losses: list[Loss] = []
    weak = (*PATTERNS, *FORMATS) if target.tag_dialect == "xgrammar" else FORMATS
    for number, tag in enumerate(constraint.tags):
        sent, lost = lower_schema(tag.schema, ANSWER_DIALECTS[target.tag_dialect], object_root=False)
        lost += [Loss(path, keyword, why) for path, keyword, why in weak_places(sent, weak)]
        losses += [replace(loss, path=f"/tags/{number}{loss.path}") for loss in lost]
        tags.append((tag.begin, sent, tag.end))
    fields = target.tags(tags, constraint.triggers, constraint.at_least_one, constraint.several)
    held = [loss for loss in losses if loss.keyword not in NO_CONSTRAINTS]
    guarantee: Guarantee = "enforced in part" if held else "enforced"
    if not target.promises:
        guarantee = "prompted"
    prompt = prompt_for(constraint) if guarantee == "prompted" else ""
    return [Lowered(target.name, constraint, "native", fields, guarantee, tuple(losses), prompt=prompt)]
