"""Writes the tables that follow from the code into the pages: `python docs/tables.py`.

A table stands between `<!-- NAME -->` and `<!-- /NAME -->`; tests/test_docs_tables.py says when one is old.
"""

from __future__ import annotations

import ast
import importlib
import inspect
import pkgutil
import re
import sys
from collections import defaultdict
from collections.abc import Callable, Iterable
from dataclasses import fields
from functools import cache, partial
from importlib import import_module
from pathlib import Path
from typing import Any

from pydantic import BaseModel

from toolcrib import events
from toolcrib.agent import Agent, RunOptions
from toolcrib.agent.delegation import delegation_tools
from toolcrib.call import ToolCall
from toolcrib.codecs.catalog import CODECS, codec_named
from toolcrib.codecs.codec import Features
from toolcrib.codecs.openai_chat_servers import OTHERS, SERVERS
from toolcrib.codecs.pairing import IdRule
from toolcrib.codecs.text.formats import FALLBACK, formats
from toolcrib.command.sandbox.files.executed_files import EXECUTED
from toolcrib.compiling.docstring import parse_docstring
from toolcrib.events import Event
from toolcrib.facts import FactOptions, Facts, ListedFacts
from toolcrib.hooks import HOOKS
from toolcrib.models.providers import ALIASES, CLASSES, PROVIDERS, Provider
from toolcrib.question import Question
from toolcrib.rules.keys import KEYS
from toolcrib.schema import to_markdown
from toolcrib.settings.model import NamedAgentSettings
from toolcrib.tool import Tool
from toolcrib.toolbox import Toolbox
from toolcrib.toolset import AnyTool

PAGES = Path(__file__).parent
SOURCE = PAGES.parent / "src" / "toolcrib"
sys.path.insert(0, str(PAGES))  # the tests load this file by its path

from promises import promise_table, promises  # noqa: E402

LABELS = {
    "tool_choice": "choice of tools",
    "parallel_switch": "parallel calls, on or off",
    "images": "pictures in a message",
    "files": "documents in a message",
    "audio": "sound in a message",
    "media_in_results": "pictures in a tool's result",
    "reasoning": "thinking, kept and sent back",
    "items": "a provider's own items",
    "partial_arguments": "arguments in pieces",
    "call_ids": "ids of calls",
    "stop": "stop sequences",
    "logit_bias": "`logit_bias`",
    "logprobs": "`logprobs`",
}
# What happens where a format has no place for a feature.
INSTEAD = {
    "audio": "its label is sent",
    "files": "their labels are sent",
    "media_in_results": "they follow as the user's",
    "call_ids": "results find their calls by name and order",
    "partial_arguments": "they come whole",
}
CHOICES = ("auto", "none", "required", "one", "set")
FORMATS = {  # of each class of model: the name of its format, and its page
    "OpenAIResponses": ("Responses", "openai-responses.md"),
    "OpenAIChat": ("Chat Completions", "openai-chat.md"),
    "AnthropicMessages": ("Messages", "anthropic.md"),
    "Gemini": ("generateContent", "gemini.md"),
    "GeminiInteractions": ("Interactions", "gemini.md"),
    "BedrockConverse": ("Converse", "bedrock.md"),
    "BedrockMessages": ("Messages, on Bedrock", "bedrock.md"),
    "Cohere": ("Cohere v2", "cohere.md"),
    "Ollama": ("Ollama", "ollama.md"),
}
HEADS = {
    "openai_chat": "Chat Completions",
    "openai_responses": "Responses",
    "anthropic_messages": "Anthropic",
    "gemini": "Gemini",
    "gemini_interactions": "Gemini Interactions",
    "bedrock_converse": "Bedrock",
    "cohere": "Cohere",
    "ollama": "Ollama",
}
SAMPLE_CALLS = [ToolCall("count", '{"item": "saw", "boxes": 2}', "call_1")]


def table(head: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    lines = [list(head), *map(list, rows)]
    lines.insert(1, ["---"] * len(lines[0]))
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def code(text: str) -> str:
    """A text as code in a cell: on one line, bars escaped, behind as many backquotes as it takes."""
    shown = text.strip().replace("\n", "⏎").replace("|", "\\|")
    ticks = "`" * (max((len(run) for run in re.findall("`+", shown)), default=0) + 1)
    pad = " " if "`" in (shown[:1], shown[-1:]) else ""
    return f"{ticks}{pad}{shown}{pad}{ticks}"


def claim(features: Features, name: str, *, instead: bool = False) -> str:
    value = getattr(features, name)
    if isinstance(value, frozenset):
        return ", ".join([kind for kind in CHOICES if kind in value] + sorted(value - set(CHOICES)))
    if value or not instead or name not in INSTEAD:
        return "yes" if value else "no"
    if name == "media_in_results" and not features.images:
        return "no"
    return f"no: {INSTEAD[name]}"


def rule_key_table() -> str:
    """The keys of a rule that say what it is about."""
    exceptions = [code("except"), "what the rule is not about, as a table of these keys, or several"]
    return table(("key", "what it is about"), [*([code(key.name), key.doc] for key in KEYS), exceptions])


def fact_table() -> str:
    """The facts that a declaration may leave out, as the docstrings of `Facts` have them."""
    meanings: dict[str, str] = {}
    for kind in (ListedFacts, Facts):
        meanings |= parse_docstring(inspect.cleandoc(kind.__doc__ or ""))[1]
    defaults = {fact.name: fact.default for fact in fields(Facts)}
    rows = (
        [f"`{name}`", f"`{defaults[name]}`" if isinstance(defaults[name], bool) else "none", meanings[name]]
        for name in meanings
        if name in FactOptions.__annotations__
    )
    return table(["fact", "default", "meaning"], rows)


def _described(kind: Any) -> dict[str, str]:
    """The meanings in a class's docstring, by names."""
    return parse_docstring(inspect.cleandoc(kind.__doc__ or ""))[1]


def option_table(kind: Any) -> str:
    """The options of a class, as its signature and its docstring have them."""
    meanings, rows = _described(kind), []
    for name, option in inspect.signature(kind).parameters.items():
        if option.kind is not option.VAR_KEYWORD:
            rows.append([f"`{name}`", code(option.annotation), _default(option.default), meanings[name]])
    return table(["option", "type", "default", "meaning"], rows)


def _default(value: Any) -> str:
    if value is inspect.Parameter.empty:
        return "must be given"
    return (
        f"`{value!r}`"
        if isinstance(value, bool | int | float) or (value and isinstance(value, str))
        else "none"
    )


def setting_table(kind: Any) -> str:
    """The settings of a table of `toolcrib.toml`, as its model has them."""
    rows = []
    for name, given in kind.model_json_schema()["properties"].items():
        default = given.get("default")
        shown = "must be given" if "default" not in given else code(str(default)) if default else "none"
        rows.append([f"`{name}`", shown, given["description"]])
    return table(["key", "default", "meaning"], rows)


def field_table(kind: Any) -> str:
    """The fields of a class, as its annotations and its docstring have them."""
    meanings = _described(kind)
    rows = ([f"`{name}`", code(kind.__annotations__[name]), meanings[name]] for name in kind.__annotations__)
    return table(["name", "type", "meaning"], rows)


def run_option_table() -> str:
    """The options of a run."""
    meanings, known = _described(RunOptions), inspect.signature(Agent._run_of).parameters
    assert list(RunOptions.__annotations__) == [
        name for name in known if name not in ("self", "task", "output", "unknown")
    ]
    rows = (
        [f"`{name}`", code(known[name].annotation), meanings[name]] for name in RunOptions.__annotations__
    )
    return table(["argument", "type", "meaning"], rows)


def event_table() -> str:
    """Every event, with its own fields."""
    shared = {item.name for item in fields(Event)}
    kinds = (getattr(events, name) for name in events.__all__)
    known = [kind for kind in kinds if inspect.isclass(kind) and issubclass(kind, Event) and kind.kind]
    rows = (
        [
            f"`{kind.__name__}`",
            ", ".join(code(f"{item.name}: {item.type}") for item in fields(kind) if item.name not in shared),
            " ".join((kind.__doc__ or "").split()),
        ]
        for kind in sorted(known, key=lambda kind: inspect.getsourcelines(kind)[1])
    )
    return table(["event", "fields", "when"], rows)


def hook_table() -> str:
    """The hooks of a tool, as the methods of `Tool` declare and describe them."""
    rows = []
    for name in HOOKS:
        method = getattr(Tool, name)
        arguments = ", ".join(list(inspect.signature(method).parameters)[1:])
        summary = inspect.cleandoc(method.__doc__).split("\n\n")[0].replace("\n", " ")
        rows.append([f"`{name}({arguments})`", summary])
    return table(["hook", "what for"], rows)


def feature_table() -> str:
    """What every wire format can say."""
    known = {name: codec_named(name).features for name in CODECS}
    rows = (
        [LABELS[item.name], *(claim(known[name], item.name) for name in CODECS)] for item in fields(Features)
    )
    return table(["", *(HEADS[name] for name in CODECS)], rows)


def supported(*codecs: str, provider: str = "", heads: Iterable[str] = ("",)) -> str:
    """What the formats of one provider can say."""
    known = [codec_named(codec, provider).features for codec in codecs]
    rows = (
        [LABELS[item.name], *(claim(features, item.name, instead=True) for features in known)]
        for item in fields(Features)
    )
    return table(["", *heads], rows)


def provider_table() -> str:
    """Who can be named, what is needed for it, and what it speaks."""
    return table(["name", "format", "extra", "needs"], (_provider(*item) for item in PROVIDERS.items()))


def _provider(name: str, row: Provider) -> list[str]:
    also = [f"`{alias}:`" for alias, meant in ALIASES.items() if meant == name]
    label, page = FORMATS[row.cls]
    model: Any = getattr(import_module(f"toolcrib.models.{CLASSES[row.cls]}"), row.cls)
    needs = " or ".join(f"`{key}`" for key in row.keys)
    if not row.official:
        needs = row.asks or ", ".join(filter(None, (needs, _address(row))))
    return [", ".join([f"`{name}:`", *also]), f"[{label}](providers/{page})", f"`{model.extra}`", needs]


def _address(row: Provider) -> str:
    return f"a server at {row.base_url}" if row.base_url else f"`{row.address}`"


def length(rule: IdRule) -> str:
    """How long an id may be, from the end of its pattern."""
    found = re.search(r"\{(\d+,)?(\d+)\}\Z", rule.legal.pattern)
    assert found is not None, f"no length in {rule.legal.pattern}"
    return f"{'up to' if found[1] else 'exactly'} {found[2]} characters"


def server_table() -> str:
    """How the servers of Chat Completions differ."""
    known = {f"`{name}`": row for name, row in SERVERS.items()} | {"all others": OTHERS}
    head = ["server", "schemas", "choice of tools", "limit of tokens", "ids", "`logit_bias`", "`logprobs`"]
    rows = (
        [
            name,
            f"`{row.dialect}`",
            ", ".join(kind for kind in CHOICES if kind in row.choices),
            f"`{row.max_tokens}`",
            length(row.ids),
            "yes" if row.logit_bias else "no",
            "yes" if row.logprobs else "no",
        ]
        for name, row in known.items()
    )
    return table(head, rows)


def executed_file_table() -> str:
    """Files of a workspace that other programs execute, and what the sandbox does about them."""
    rows = (
        [row.ecosystem, ", ".join(map(code, row.paths)), row.runs, f"**{row.holds}**"] for row in EXECUTED
    )
    return table(["of", "files", "executed or obeyed by", "what holds"], rows)


def text_format_table() -> str:
    """The text formats, in the order in which a model's name is held against them."""
    known = formats()
    head = ["format", "models whose name holds", "a call", "constraints"]
    rows = (
        [
            f"`{name}`",
            ", ".join(map(code, format.models)) or ("all others" if name == FALLBACK else "by hand"),
            code(format.write_calls(SAMPLE_CALLS)),
            ", ".join(f"`{kind}`" for kind in format.constraints) or "none",
        ]
        for name, format in known.items()
    )
    return table(head, rows)


def _summary(value: Any) -> str:
    """The first sentence of an object's docstring, on one line; "" for an object without one of its own."""
    own = getattr(value, "__doc__", None) if callable(value) or inspect.ismodule(value) else None
    if inspect.isclass(value) and "__doc__" not in value.__dict__:
        own = None
    first = " ".join((own or "").split("\n\n")[0].split())
    if inspect.isclass(value) and first.startswith(f"{value.__name__}("):  # what dataclasses write themselves
        return ""
    return first.replace("|", "\\|")


def _meaning(name: str, value: Any) -> str:
    """What a public name is: its docstring, the text or comment after its assignment, or whose parameters it has."""
    if inspect.isclass(value) and issubclass(value, BaseModel) and not _summary(value):
        near = vars(import_module(value.__module__.removesuffix("_params"))).values()
        tools = {f"`{kind.facts.name}`" for kind in near if inspect.isclass(kind) and hasattr(kind, "facts")}
        what = "The parameters" if name.endswith("Params") else "An item of the parameters"
        return f"{what} of {' and '.join(sorted(tools))}."
    if inspect.isclass(value) or inspect.isroutine(value):
        return _summary(value)
    found = [text for module, text in _assignments()[name] if getattr(import_module(module), name) is value]
    return next(filter(None, found), "").replace("|", "\\|")


@cache
def _assignments() -> dict[str, list[tuple[str, str]]]:
    """Of each name that some module assigns: that module, and the text or the comment that stands after it."""
    found: dict[str, list[tuple[str, str]]] = defaultdict(list)
    for path in sorted(SOURCE.rglob("*.py")):
        text = path.read_text(encoding="utf-8")
        lines, body = text.split("\n"), ast.parse(text).body
        module = ".".join(path.relative_to(SOURCE.parent).with_suffix("").parts).removesuffix(".__init__")
        for node, after in zip(body, [*body[1:], None], strict=True):
            targets = node.targets if isinstance(node, ast.Assign) else []
            if isinstance(node, ast.AnnAssign) and node.value is not None:
                targets = [node.target]
            said = lines[node.lineno - 1].partition("  # ")[2].removesuffix("fmt: skip")
            said = said and f"{said[0].upper()}{said[1:]}."
            if isinstance(after, ast.Expr) and isinstance(after.value, ast.Constant):
                said = " ".join(str(after.value.value).split("\n\n")[0].split())
            for target in targets:
                if isinstance(target, ast.Name):
                    found[target.id].append((module, said))
    return found


def api_table() -> str:
    """Every public module with the names of its `__all__`."""
    sections = []
    for name in PUBLIC_MODULES:
        module = import_module(name)
        names = sorted(module.__all__, key=str.lower)
        rows = ([f"`{item}`", _meaning(item, getattr(module, item))] for item in names)
        sections.append(f"## {name}\n\n{_summary(module)}\n\n{table(['name', 'what it is'], rows)}\n")
    return "\n".join(sections)


def _gemini() -> str:
    return supported("gemini", "gemini_interactions", heads=("generateContent", "Interactions"))


# The modules that users import from; everything else may change without notice.
PUBLIC_MODULES = (
    "toolcrib.decisions",
    "toolcrib",
    "toolcrib.access",
    "toolcrib.agent",
    "toolcrib.agent.delegation",
    "toolcrib.assembly",
    "toolcrib.audit",
    "toolcrib.call",
    "toolcrib.checkpoints",
    "toolcrib.codecs",
    "toolcrib.codecs.text",
    "toolcrib.command.judge",
    "toolcrib.command.sandbox",
    "toolcrib.content",
    "toolcrib.context",
    "toolcrib.errors",
    "toolcrib.events",
    "toolcrib.extraction",
    "toolcrib.facts",
    "toolcrib.guided",
    "toolcrib.guided.local",
    "toolcrib.jsonstream",
    "toolcrib.mcp",
    "toolcrib.mcp.client.oauth",
    "toolcrib.mcp.server",
    "toolcrib.middleware",
    "toolcrib.mending",
    "toolcrib.messages",
    "toolcrib.models",
    "toolcrib.net",
    "toolcrib.prepared",
    "toolcrib.question",
    "toolcrib.repair",
    "toolcrib.result",
    "toolcrib.rules",
    "toolcrib.saved_calls",
    "toolcrib.schema",
    "toolcrib.secrets",
    "toolcrib.sink",
    "toolcrib.spec",
    "toolcrib.testing",
    "toolcrib.toolbox",
    "toolcrib.tools",
    "toolcrib.tools.backends",
    "toolcrib.tools.memory",
    "toolcrib.tools.skills",
    "toolcrib.toolset",
)


def built_in_tools() -> dict[str, AnyTool | type[Tool[Any, Any]]]:
    """All tool classes of `toolcrib.tools` and of the agent's package, and the tools made for agents, by name."""
    for package in ("tools", "agent"):
        root = importlib.import_module(f"toolcrib.{package}")
        for module in pkgutil.walk_packages(root.__path__, f"{root.__name__}."):
            importlib.import_module(module.name)
    kinds = {
        kind.facts.name: kind
        for kind in Tool.__subclasses__()
        if kind.__module__.startswith(("toolcrib.tools.", "toolcrib.agent."))
    }
    return {**{made.facts.name: made for made in delegation_tools({}, rows=True)}, **kinds}


def tool_section(name: str) -> str:
    """What one built-in tool declares: its description, its effect and its parameters."""
    tool = built_in_tools()[name]
    spec = tool.definition().spec
    effect = f"Effect {tool.facts.effect.name}"
    secrets = (
        f"; secrets may stand in {', '.join(map(code, sorted(tool.facts.secrets)))}"
        if tool.facts.secrets
        else ""
    )
    parameters = to_markdown([spec]).partition("\nParameters:\n")[2].strip("\n").replace("<", "&lt;")
    return f"{effect}{secrets}. The model is told:\n\n> {quoted(spec.description)}\n\nParameters:\n\n{parameters}\n"


def quoted(text: str) -> str:
    return text.strip().replace("\n", "\n> ").replace("\n> \n", "\n>\n").replace("<", "&lt;")


def tool_pages() -> dict[str, dict[str, Callable[[], str]]]:
    """The pages of the built-in tools: what each declares stands between `<!-- tool NAME -->` and its end."""
    pages = {}
    for page in sorted((PAGES / "tools").glob("*.md")):
        names = re.findall(r"^<!-- tool (\w+) -->$", page.read_text(encoding="utf-8"), re.MULTILINE)
        pages[f"tools/{page.name}"] = {f"tool {name}": partial(tool_section, name) for name in names}
    return pages


def guarantee_table() -> str:
    """What each server guarantees for each kind of constraint, and what it does not hold to in a JSON Schema."""
    from toolcrib.guided import Choice, Grammar, Lowered, Regex, lower
    from toolcrib.guided.answer_dialects import ANSWER_DIALECTS
    from toolcrib.guided.targets import TARGETS

    plain = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}
    plain["additionalProperties"] = False
    head = ["target", "server", "JSON Schema", "choice", "regular expression", "grammar", "tags"]
    rows: list[list[str]] = []

    def said(low: Lowered) -> str:
        ways = {"native": "", "text": "", "JSON mode": ""}
        as_json = ", as JSON" if low.schema is not None and low.wrapped else ""
        return f"{low.guarantee}{ways.get(low.rung, f' ({low.rung})')}{as_json}"

    for name, row in TARGETS.items():
        cells = [lower(kind, name) for kind in (Choice("a", "b"), Regex("[a-z]+"), Grammar('root ::= "a"'))]
        tags = "no" if row.tags is None else "yes" if row.promises else "sent"
        rows.append([f"`{name}`", row.title, said(lower(plain, name)), *map(said, cells), tags])
    first = table(head, rows)
    head = ["target", "keywords that it is sent", "sent, but not promised", "below it"]
    rows = []
    for name, row in TARGETS.items():
        best = next((rung for rung in row.rungs if rung.dialect), None)
        keywords = None if best is None else ANSWER_DIALECTS[best.dialect].keywords
        if best is None or keywords is None:
            continue
        listed = sorted(word for word in keywords if not word.startswith("$") and word != "description")
        reasons = dict.fromkeys(weak.why for weak in best.weak)
        weak = [
            f"{' '.join(code(row.keyword) for row in best.weak if row.why == why)}: {why}" for why in reasons
        ]
        below = list(dict.fromkeys(rung.name for rung in row.rungs[1:]))
        rows.append(
            [f"`{name}`", " ".join(map(code, listed)), "; ".join(weak) or "none", ", ".join([*below, "text"])]
        )
    return f"{first}\n\n{table(head, rows)}"


TABLES: dict[str, dict[str, Callable[[], str]]] = {
    **tool_pages(),
    "agent.md": {"agent options": lambda: option_table(Agent), "run options": run_option_table},
    "api.md": {"api": api_table},
    "configuration.md": {"settings of an agent": lambda: setting_table(NamedAgentSettings)},
    "define-tools.md": {"hooks": hook_table, "facts": fact_table},
    "guided.md": {"guarantees": guarantee_table},
    "models.md": {"features": feature_table, "providers": provider_table},
    "policy.md": {"rule keys": rule_key_table, "question": lambda: field_table(Question)},
    "run-calls.md": {"toolbox options": lambda: option_table(Toolbox)},
    "sandbox.md": {"executed files": executed_file_table},
    "streaming.md": {"events": event_table},
    "text-models.md": {"formats": text_format_table},
    "providers/openai-responses.md": {"supported": lambda: supported("openai_responses")},
    "providers/openai-chat.md": {"supported": lambda: supported("openai_chat"), "servers": server_table},
    "providers/anthropic.md": {"supported": lambda: supported("anthropic_messages")},
    "providers/gemini.md": {"supported": _gemini},
    "providers/bedrock.md": {"supported": lambda: supported("bedrock_converse")},
    "providers/cohere.md": {"supported": lambda: supported("cohere")},
    "providers/mistral.md": {"supported": lambda: supported("openai_chat", provider="mistral")},
    "providers/ollama.md": {"supported": lambda: supported("ollama")},
    "providers/others.md": {"supported": lambda: supported("openai_chat", provider="deepseek")},
}
"""Of each page, what stands between which marks."""
for page in sorted({promise.page for promise in promises()}):
    TABLES.setdefault(page, {})["promises"] = partial(promise_table, page)


def filled(page: str) -> str:
    """A page with its tables as the code has them. ValueError where a mark is missing."""
    text = (PAGES / page).read_text(encoding="utf-8")
    for name, make in TABLES[page].items():
        before, opened, rest = text.partition(f"<!-- {name} -->\n")
        _, closed, after = rest.partition(f"<!-- /{name} -->")
        if not (opened and closed):
            raise ValueError(f"{page} has no place for the table {name!r}")
        text = f"{before}{opened}{make()}\n{closed}{after}"
    return text


if __name__ == "__main__":
    for page in TABLES:
        (PAGES / page).write_text(filled(page), encoding="utf-8")
