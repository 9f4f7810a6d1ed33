"""`toolcrib schema lower`: a constraint in the words of a server, with what is guaranteed and what is lost."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from toolcrib.cli.console import DONE, Problem, out
from toolcrib.cli.options import AsJson
from toolcrib.guided import TARGETS, Choice, Grammar, JsonSchema, Lowered, Regex, lower
from toolcrib.text_file import read_text_file
from toolcrib.visible import escape_invisible

OPTION_FOR_ARGUMENT = "--target"
GRAMMARS = {".gbnf": "gbnf", ".ebnf": "ebnf", ".lark": "lark"}

File = Annotated[
    str | None,
    typer.Argument(
        metavar="FILE",
        help="A JSON Schema, or a grammar whose name ends in .gbnf, .ebnf or .lark; - reads a schema from stdin.",
    ),
]
To = Annotated[
    str | None,
    typer.Option(
        "--target", "-t", metavar="TARGET", help="vllm, openai.chat, anthropic, …; all if left out."
    ),
]
OneOf = Annotated[
    list[str] | None,
    typer.Option("--choice", metavar="TEXT", help="In place of a file: one of these texts; may be repeated."),
]
Matching = Annotated[
    str | None, typer.Option("--regex", metavar="REGEX", help="In place of a file: a regular expression.")
]


def command(
    file: File = None,
    target: To = None,
    choice: OneOf = None,
    regex: Matching = None,
    as_json: AsJson = False,
) -> int:
    """Without --target, one line for each server says which way it takes and what that guarantees."""
    if target is not None and target not in TARGETS:
        raise Problem(f"there is no target {target!r}; there are {', '.join(TARGETS)}")
    constraint = _constraint(file, choice, regex)
    found = {name: lower(constraint, name) for name in ([target] if target else TARGETS)}
    if as_json:
        shown = [_as_data(low) for low in found.values()]
        out(json.dumps(shown[0] if target else shown, ensure_ascii=False, indent=2))
    elif target:
        _show(found[target])
    else:
        widths = [max(map(len, found)), max(len(low.rung) for low in found.values())]
        for name, low in found.items():
            out(f"{name:<{widths[0]}}  {low.rung:<{widths[1]}}  {low.guarantee}{_count(low)}")
    return DONE


def _constraint(file: str | None, choice: list[str] | None, regex: str | None) -> Any:
    given = [name for name, value in (("FILE", file), ("--choice", choice), ("--regex", regex)) if value]
    if len(given) != 1:
        raise Problem(f"give one of FILE, --choice and --regex, not {' and '.join(given) or 'none'}")
    try:
        if choice:
            return Choice(*choice)
        if regex:
            return Regex(regex)
        path = Path(str(file))
        text = sys.stdin.read() if file == "-" else read_text_file(path)
        if path.suffix in GRAMMARS:
            return Grammar(text, GRAMMARS[path.suffix])  # type: ignore[arg-type]
        return JsonSchema(_object(text, path))
    except OSError as problem:
        raise Problem(f"{file}: {problem.strerror}") from None
    except ValueError as problem:
        raise Problem(f"{file}: {problem}" if file else str(problem)) from None


def _object(text: str, path: Path) -> dict[str, Any]:
    try:
        schema = json.loads(text)
    except ValueError as problem:
        raise Problem(f"{path}: no JSON: {problem}") from None
    if not isinstance(schema, dict):
        raise Problem(f"{path}: a JSON Schema is an object, got {type(schema).__name__}")
    return schema


def _show(low: Lowered) -> None:
    out(f"target     {low.target} ({TARGETS[low.target].title})")
    out(f"rung       {low.rung}")
    out(f"guarantee  {low.guarantee}")
    if low.tool:
        out(f"answer in  a call of the tool {low.tool}")
    if low.wrapped:
        out("answer in  the field `value` of an object")
    if low.not_with:
        out(f"not with   {', '.join(low.not_with)}")
    for title, lines in (("losses", _losses(low)), ("not taken", low.blockers)):
        if lines:
            out(f"{title}")
            for line in lines:
                out(f"  {escape_invisible(line)}")
    if low.prompt:
        out("prompt")
        out("\n".join(f"  {escape_invisible(line)}" for line in low.prompt.splitlines()))
    out("fields")
    out(json.dumps(dict(low.fields), ensure_ascii=False, indent=2))


def _losses(low: Lowered) -> list[str]:
    return [f"{loss.path or '(root)'}: {loss.keyword}: {loss.detail}" for loss in low.losses]


def _count(low: Lowered) -> str:
    number = len(low.losses)
    return "" if not number else f" ({number} {'loss' if number == 1 else 'losses'})"


def _as_data(low: Lowered) -> dict[str, Any]:
    return {
        "target": low.target,
        "rung": low.rung,
        "guarantee": low.guarantee,
        "fields": dict(low.fields),
        "losses": [
            {"path": loss.path, "keyword": loss.keyword, "detail": loss.detail} for loss in low.losses
        ],
        "blockers": [*low.blockers],
        "prompt": low.prompt,
        "tool": low.tool,
        "wrapped": low.wrapped,
        "not_with": [*low.not_with],
    }
