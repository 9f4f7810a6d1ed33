"""`toolcrib tools list | show | check | lint | schema`: what tools there are, and what is to be said of them."""

from __future__ import annotations

import asyncio
import json
import shutil
import sys
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from toolcrib.assembly import Assembly, assemble
from toolcrib.cli.console import Problem, out, quiet_logging, say, stdout_reserved
from toolcrib.cli.shown import on_one_line, shown
from toolcrib.plugins import PluginError, missing_arguments

if TYPE_CHECKING:
    from toolcrib.command.sandbox import Sandbox
    from toolcrib.facts import Facts
    from toolcrib.spec import ToolSpec
    from toolcrib.tools import Workspace


@dataclass(slots=True)
class Item:
    """One tool as a person looks at it: where it comes from, what it says of itself, or why it is broken."""

    name: str
    source: str
    facts: Facts | None = None
    spec: ToolSpec | None = None
    problem: str = ""

    @property
    def effect(self) -> str:
        return self.facts.effect.label if self.facts is not None else "?"


def assembled(named: Sequence[str], workspace: Path | Workspace, sandbox: Sandbox | None = None) -> Assembly:
    """The tools of a command; notes go to stderr. Raises Problem for what cannot be loaded."""
    quiet_logging()
    if isinstance(workspace, Path) and not workspace.is_dir():
        raise Problem(f"workspace: expected a folder that exists, got {workspace}")
    try:
        with stdout_reserved():
            assembly = assemble(workspace, named=named, sandbox=sandbox)
    except PluginError as problem:
        raise Problem(str(problem)) from problem
    for note in assembly.notes:
        say(f"note: {shown(note)}")
    return assembly


def items_of(assembly: Assembly) -> list[Item]:
    """All tools, sorted by name, each compiled."""
    with stdout_reserved():
        return asyncio.run(_items(assembly))


async def _items(assembly: Assembly) -> list[Item]:
    from toolcrib.toolset import ToolFactory

    box = assembly.toolbox(autonomy="full")
    items: list[Item] = []
    async with box:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # what is set aside is listed, with its reason
            tool_list = await box.tool_list()
        specs = {spec.name: spec for spec in tool_list.specs}
        for name in await box.names():
            item = Item(name, assembly.sources.get(name, "toolset"), problem=tool_list.broken.get(name, ""))
            items.append(item)
            entry = await box.registry.entry(name)
            supplied: Any = entry.supplied if entry is not None else None
            item.facts = getattr(supplied, "facts", None)
            needed = missing_arguments(supplied)
            if not item.problem and needed:
                item.problem = (
                    f"class {supplied.__name__} cannot be made without {needed}: "
                    "supply an instance of it, or a ToolFactory"
                )
            item.spec = specs.get(name)
            if item.spec is None and not item.problem and not isinstance(supplied, ToolFactory):
                item.spec = supplied.definition().spec  # deferred: not offered, but there
    return items


def find(items: Sequence[Item], name: str) -> Item:
    """The tool of that name, compiled. Raises Problem."""
    from difflib import get_close_matches

    for item in items:
        if item.name == name:
            if item.spec is None or item.problem:
                raise Problem(f"{name} ({item.source}) is broken: {item.problem}", code=1)
            return item
    near = get_close_matches(name, [item.name for item in items], n=3, cutoff=0.5)
    hint = f"did you mean {' or '.join(near)}?" if near else "`toolcrib tools list` shows all;"
    raise Problem(
        f"no tool is named {name!r}; {hint} tools of your own are loaded with --from module:attribute"
    )


def list_tools(named: Sequence[str], workspace: Path, *, as_json: bool) -> int:
    items = items_of(assembled(named, workspace))
    if as_json:
        out(json.dumps([_as_data(item) for item in items], ensure_ascii=False, indent=2))
        return 0
    wide = shutil.get_terminal_size().columns if sys.stdout.isatty() else 10_000
    name_width = max((len(item.name) for item in items), default=0)
    source_width = max((len(item.source) for item in items), default=0)
    lead = name_width + 2 + 11 + 2 + source_width + 2
    for item in items:
        said = _first_sentence(item)
        if lead + 30 <= wide:
            line = f"{item.name:<{name_width}}  {item.effect:<11}  {item.source:<{source_width}}  {said}"
            out(on_one_line(line, wide))
        else:
            out(on_one_line(f"{item.name}  ({item.effect}, {item.source})", wide))
            out("  " + on_one_line(said, wide - 2))
    return 0


def show_tool(name: str, named: Sequence[str], workspace: Path) -> int:
    item = find(items_of(assembled(named, workspace)), name)
    for line in _facts_lines(item):
        out(shown(line))
    return 0


def check_tools(named: Sequence[str], workspace: Path) -> int:
    assembly = assembled(named, workspace)
    items = items_of(assembly)
    broken = [item for item in items if item.problem]
    for item in broken:
        out(f"broken: {item.name} ({item.source}): {shown(item.problem)}")
    unloaded = [plugin for plugin in assembly.plugins if plugin.problem]
    for plugin in unloaded:
        out(f"broken: plugin {plugin.source}: {shown(plugin.problem)}")
    count = len(items) - len(broken)
    out(f"{count} {'tool' if count == 1 else 'tools'} fine, {len(broken) + len(unloaded)} broken")
    return 1 if broken or unloaded else 0


def lint_tools(named: Sequence[str], workspace: Path, *, as_json: bool) -> int:
    from toolcrib.schema import lint

    items = items_of(assembled(named, workspace))
    findings = [finding for item in items if item.spec is not None for finding in lint(item.spec)]
    if as_json:
        rows = [{"tool": f.tool, "path": f.path, "code": f.code, "message": f.message} for f in findings]
        out(json.dumps(rows, ensure_ascii=False, indent=2))
    else:
        for finding in findings:
            out(shown(f"{finding.tool}{finding.path}: {finding.code}: {finding.message}"))
        say(f"{len(items)} tools, {len(findings)} {'finding' if len(findings) == 1 else 'findings'}")
    return 1 if findings else 0


def show_schema(name: str, dialect: str | None, named: Sequence[str], workspace: Path) -> int:
    from toolcrib.schema import DIALECTS, to_dialect

    if dialect is not None and dialect not in DIALECTS:
        raise Problem(f"no schema dialect is called {dialect!r}; there are {', '.join(DIALECTS)}")
    item = find(items_of(assembled(named, workspace)), name)
    assert item.spec is not None
    schema: Any = item.spec.input_schema
    if dialect is not None:
        schema, losses = to_dialect(schema, dialect)
        for loss in losses:
            say(shown(f"{dialect}: {loss.path or '(root)'}: {loss.keyword}: {loss.detail}"))
    out(json.dumps(schema, ensure_ascii=False, indent=2))
    return 0


def _facts_lines(item: Item) -> list[str]:
    from toolcrib.schema import to_markdown

    facts, spec = item.facts, item.spec
    assert spec is not None
    lines = [spec.name + (f" ({spec.title})" if spec.title else ""), "", spec.description, ""]
    rows: list[tuple[str, Any]] = [("from", item.source)]
    if facts is not None:
        rows += [
            ("effect", facts.effect.label),
            ("secrets", ", ".join(sorted(facts.secrets)) or "none"),
            ("open world", "yes" if facts.open_world else "no"),
            ("idempotent", "yes" if facts.idempotent else "no"),
            ("version", facts.version),
            ("category", facts.category),
            ("tags", ", ".join(facts.tags)),
            ("timeout", f"{facts.timeout:g} s" if facts.timeout is not None else ""),
            ("retry", f"up to {facts.retry.attempts} attempts" if facts.retry is not None else ""),
            ("deferred", "yes" if facts.deferred else ""),
        ]
    lines += [f"  {label:<11} {value}" for label, value in rows if value]
    markdown = to_markdown([spec])
    lines += ["", "Parameters:" + markdown.partition("\nParameters:")[2].rstrip()]
    if spec.output_schema is not None:
        lines += ["", "Result:", "  " + json.dumps(spec.output_schema, ensure_ascii=False)]
    return "\n".join(lines).split("\n")


def _first_sentence(item: Item) -> str:
    if item.problem:
        return f"BROKEN: {item.problem}"
    text = " ".join((item.spec.description if item.spec is not None else "").split())
    sentence, stop, _ = text.partition(". ")
    return sentence + stop.strip()


def _as_data(item: Item) -> dict[str, Any]:
    spec = item.spec
    return {
        "name": item.name,
        "from": item.source,
        "effect": item.effect,
        "problem": item.problem,
        "title": spec.title if spec is not None else "",
        "description": spec.description if spec is not None else "",
        "input_schema": spec.input_schema if spec is not None else None,
        "output_schema": spec.output_schema if spec is not None else None,
        "annotations": spec.annotations if spec is not None else {},
    }
