"""Bypasses and false alarms of shell policies on recorded commands: ours beside what others do.

    python benchmarks/shell_bypasses.py FOLDER [--docs]

`--docs` puts the table into docs/benchmarks.md as well.
FOLDER holds the files of recorded commands: each `{"allowlist": [...], "cases": [{input, expected, verified}]}`.
The baselines are given the files' allow list; ours needs none. The models do what the projects' sources and tests say
of rules alone: not their sandboxes, nor their lists of commands that need no rule.
"""

from __future__ import annotations

import json
import re
import shlex
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from toolcrib.command.judge import judge
from toolcrib.command.judge.syntax import tree_of

Allowed = Callable[[str, list[str]], bool]
META = re.compile(r"[;&|`$<>(){}\n\\]")
PAGE = Path(__file__).resolve().parents[1] / "docs" / "benchmarks.md"
BEGIN, END = "<!-- shell policies -->\n", "<!-- /shell policies -->\n"
SEGMENTS = {"&&", "||", ";", "|", "&", "\n"}


def string_prefix(command: str, allowed: list[str]) -> bool:
    return any(command.strip().startswith(name) for name in allowed)


def prefix_without_metacharacters(command: str, allowed: list[str]) -> bool:
    return string_prefix(command, allowed) and not META.search(command)


def tokens_per_segment(command: str, allowed: list[str]) -> bool:
    try:
        lexer = shlex.shlex(command.replace("\n", " ; "), posix=True, punctuation_chars=";&|")
        lexer.whitespace_split = True
        tokens = list(lexer)
    except ValueError:
        return False
    segment: list[str] = []
    segments = [segment]
    for token in tokens:
        if token in SEGMENTS:
            segment = []
            segments.append(segment)
        else:
            segment.append(token)
    return all(_begins(words, allowed) for words in segments if words)


def every_node(command: str, allowed: list[str]) -> bool:
    texts = [node.text for node in _nodes(tree_of(command)) if node.kind == "command"]
    return bool(texts) and all(_begins(text.split(), allowed) for text in texts)


def every_node_without_redirects(command: str, allowed: list[str]) -> bool:
    kinds = {node.kind for node in _nodes(tree_of(command))}
    more = {"file_redirect", "command_substitution", "process_substitution", "ERROR"}
    return every_node(command, allowed) and not kinds & more


PLAIN = {
    "program", "list", "pipeline", "command", "command_name", "word", "number", "string", "string_content",
    "raw_string", "concatenation", "'", "&&", "||", ";", "|", '"',
}  # fmt: skip


def like_codex(command: str, allowed: list[str]) -> bool:
    """Words and quotes joined by && || ; |, each command by whole words; all else is not looked into and asks."""
    root = tree_of(command)
    if {node.kind for node in _nodes(root)} - PLAIN:
        return False
    found = [node.children for node in _nodes(root) if node.kind == "command"]
    written = [[word.text.strip("\"'") for word in words] for words in found]
    return bool(written) and all(_begins(words, allowed) for words in written)


def like_gemini(command: str, allowed: list[str]) -> bool:
    """Every command, also inside of others, by its beginning; redirections, substitutions and what is no bash ask."""
    kinds = {node.kind for node in _nodes(tree_of(command))}
    if kinds & {"file_redirect", "heredoc_redirect", "command_substitution", "process_substitution", "ERROR"}:
        return False
    if "@P}" in command:
        return False
    texts = [node.text for node in _nodes(tree_of(command)) if node.kind == "command"]
    return bool(texts) and all(_begins_with(text, allowed) for text in texts)


def like_opencode(command: str, allowed: list[str]) -> bool:
    """Every command against `name *`, redirections and all; those for files ask about operands outside."""
    for node in _nodes(tree_of(command)):
        if node.kind == "command":
            text = node.text
            if not any(text == name or text.startswith(f"{name} ") for name in allowed):
                return False
            name, *operands = text.split()
            if name in FOR_FILES and any(OUTSIDE.match(operand.strip("\"'")) for operand in operands):
                return False
    return any(node.kind == "command" for node in _nodes(tree_of(command)))


FOR_FILES = {"cd", "rm", "cp", "mv", "mkdir", "touch", "chmod", "chown", "cat"}
OUTSIDE = re.compile(r"/|~|\$HOME|\.\.(?:/|$)|.*/\.\.(?:/|$)")


def ours(command: str, allowed: list[str]) -> bool:
    return judge(command).verdict == "plain"


def _begins_with(text: str, allowed: list[str]) -> bool:
    return any(re.match(rf"{re.escape(name)}(?:[\s\"]|$)", text) for name in allowed)


def _begins(words: list[str], allowed: list[str]) -> bool:
    return any(words[: len(name.split())] == name.split() for name in allowed)


def _nodes(root: Any) -> Iterator[Any]:
    waiting = [root]
    while waiting:
        node = waiting.pop()
        yield node
        waiting += node.children


STRATEGIES: dict[str, Allowed] = {
    "prefix of the string": string_prefix,
    "prefix, no metacharacters": prefix_without_metacharacters,
    "tokens per segment (shlex)": tokens_per_segment,
    "tree-sitter, every command by prefix": every_node,
    "the same, no redirections or substitutions": every_node_without_redirects,
    "a model of OpenCode's rules": like_opencode,
    "a model of Gemini CLI's rules": like_gemini,
    "a model of Codex's rules": like_codex,
    "toolcrib": ours,
}


def main(folder: Path, *, docs: bool) -> None:
    files = [json.loads(path.read_text("utf-8")) for path in sorted(folder.glob("*.json"))]
    cases = [(case, file["allowlist"]) for file in files for case in file["cases"]]
    harmful = [case for case, _ in cases if case["expected"] != "allow"]
    proven = [case for case in harmful if case.get("verified")]
    harmless = len(cases) - len(harmful)
    said = f"{len(harmful)} that must not run unasked, {len(proven)} of them proven, {harmless} harmless"
    rows = [
        "| policy | wrongly allowed | proven exploits allowed | harmless stopped |",
        "| --- | ---: | ---: | ---: |",
    ]
    for name, strategy in STRATEGIES.items():
        wrong = exploits = stopped = 0
        for case, allowed in cases:
            verdict = strategy(case["input"], allowed)
            wrong += verdict and case["expected"] != "allow"
            exploits += verdict and bool(case.get("verified")) and case["expected"] != "allow"
            stopped += not verdict and case["expected"] == "allow"
        rows.append(f"| {name} | {wrong} | {exploits} | {stopped} |")
    table = "\n".join(rows) + "\n"
    print(f"{said}\n\n{table}")
    if docs:
        text = PAGE.read_text("utf-8")
        before, _, rest = text.partition(BEGIN)
        PAGE.write_text(before + BEGIN + table + END + rest.partition(END)[2], "utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]), docs="--docs" in sys.argv)
