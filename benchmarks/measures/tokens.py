"""How long the definitions of ten tools are that a model is sent with every request."""

import json
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import ten_tools
from adapters import floor

CONSTRAINTS = ("minLength", "maxLength", "minimum", "maximum", "minItems", "maxItems", "pattern")


def _facts(schema: Any) -> Iterator[tuple[str, Any]]:
    """Every constraint and description in a schema."""
    if isinstance(schema, dict):
        for key, value in schema.items():
            limits = key in CONSTRAINTS and not isinstance(value, dict | list)
            if limits or (key == "description" and isinstance(value, str)):
                yield key, value
            yield from _facts(value)
    elif isinstance(schema, list):
        for item in schema:
            yield from _facts(item)


def _wanted(function: Any) -> list[tuple[str, Any]]:
    """The constraints and descriptions that a tool's author wrote."""
    text = function.__doc__ or ""
    written = [line.split(": ", 1)[1].strip() for line in text.split("Args:")[1].splitlines() if ": " in line]
    return [*_facts(floor.definition(function)["parameters"]), *(("description", line) for line in written)]


def kept(definitions: list[dict[str, Any]]) -> tuple[int, int]:
    """How many facts of the source are in the definitions, as a keyword or in words; and how many there are."""
    found = total = 0
    for function, definition in zip(ten_tools.TOOLS, definitions, strict=True):
        text = json.dumps(definition, ensure_ascii=False).replace('\\"', '"')
        present = set(_facts(definition))
        for key, value in _wanted(function):
            total += 1
            found += (key, value) in present or (key == "description" and value.rstrip(".") in text)
    return found, total


def _tokens(text: str, folder: str) -> float | None:
    node = shutil.which("node")
    if not folder or node is None:
        return None
    command = [node, str(Path(__file__).with_name("count_tokens.cjs")), folder]
    done = subprocess.run(command, input=json.dumps([text]), capture_output=True, text=True, check=True)
    return float(json.loads(done.stdout)[0])


def _sample(definitions: list[dict[str, Any]], folder: str, **who: str) -> dict[str, Any]:
    text = json.dumps(definitions, separators=(",", ":"), ensure_ascii=False)
    found, total = kept(definitions)
    figures: dict[str, float] = {"bytes": len(text.encode()), "kept %": found / total * 100}
    tokens = _tokens(text, folder)
    if tokens is not None:
        figures["tokens"] = tokens
    note = "" if tokens is not None else "tokens not counted: needs node and gpt-tokenizer"
    return {"row": "10 tools", "path": "", "figures": figures, "note": note, **who}


def measure(adapter: Any, options: dict[str, Any]) -> list[dict[str, Any]]:
    folder = options["tokenizer"]
    samples = []
    if hasattr(adapter, "definitions"):
        samples.append(_sample(adapter.definitions(ten_tools.TOOLS), folder))
    if adapter.NAME == "toolcrib":
        bare = [floor.definition(function) for function in ten_tools.TOOLS]
        samples.append(_sample(bare, folder, peer="floor", name="floor"))
    return samples
