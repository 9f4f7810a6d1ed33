"""Whether an edit breaks the syntax of a file that was right before: checked on the text, before it is written.

Python, JSON and TOML are checked by Python itself, shell scripts by the parser that judges commands, other languages
by their tree-sitter grammar where it is installed (`pip install tree-sitter-go`, say). A grammar never gets a character
above U+00FF: some scanners end the process at one.
"""

from __future__ import annotations

import posixpath
import warnings
from collections.abc import Callable
from functools import cache
from importlib import import_module
from importlib.util import find_spec

MAX_DOTS = (
    10_000  # of Python: `import a.a.a...` is parsed in quadratic time, and no other thread runs meanwhile
)
MAX_CHARS = 300_000  # of a text that is checked: a larger one would hold up the edit
GRAMMARS = {
    ".js": ("tree_sitter_javascript", "language"),
    ".jsx": ("tree_sitter_javascript", "language"),
    ".mjs": ("tree_sitter_javascript", "language"),
    ".ts": ("tree_sitter_typescript", "language_typescript"),
    ".tsx": ("tree_sitter_typescript", "language_tsx"),
    ".go": ("tree_sitter_go", "language"),
    ".rs": ("tree_sitter_rust", "language"),
    ".c": ("tree_sitter_c", "language"),
    ".h": ("tree_sitter_c", "language"),
    ".java": ("tree_sitter_java", "language"),
    ".rb": ("tree_sitter_ruby", "language"),
    ".css": ("tree_sitter_css", "language"),
    ".yaml": ("tree_sitter_yaml", "language"),
    ".yml": ("tree_sitter_yaml", "language"),
}


def newly_broken(path: str, before: str, after: str) -> str:
    """The syntax error in the new text, if the old one was empty or had none; "" if none is known."""
    check = _check_for(posixpath.splitext(path)[1].lower())
    if check is None or len(after) > MAX_CHARS:
        return ""
    problem = check(after)
    if not problem or (before.strip() and len(before) <= MAX_CHARS and check(before)):
        return ""
    return problem


def _check_for(suffix: str) -> Callable[[str], str] | None:
    if suffix in (".py", ".pyi"):
        return _python
    if suffix == ".json":
        return _json
    if suffix == ".toml":
        return _toml
    if suffix in (".sh", ".bash"):
        return _shell
    return _grammar(*GRAMMARS[suffix]) if suffix in GRAMMARS else None


def _python(text: str) -> str:
    import ast

    if text.count(".") > MAX_DOTS:
        return ""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            compile(text, "file", "exec", ast.PyCF_ONLY_AST, dont_inherit=True)
    except SyntaxError as wrong:
        return f"line {wrong.lineno or 1}: {wrong.msg}"
    except (ValueError, RecursionError, MemoryError):  # a NUL character, or nested too deep to tell
        return ""
    return ""


def _json(text: str) -> str:
    import json

    try:
        json.loads(text)
    except json.JSONDecodeError as wrong:
        return f"line {wrong.lineno}: {wrong.msg}"
    except (ValueError, RecursionError):
        return ""
    return ""


def _toml(text: str) -> str:
    import tomllib

    try:
        tomllib.loads(text)
    except tomllib.TOMLDecodeError as wrong:
        return str(wrong)
    except (ValueError, RecursionError):  # a number of thousands of digits
        return ""
    return ""


def _shell(text: str) -> str:
    from toolcrib.command.judge.syntax import tree_of
    from toolcrib.command.not_proved import NotProved

    try:
        todo = [tree_of(text)]
    except NotProved:  # too long or too intricate, or no parser
        return ""
    while todo:
        node = todo.pop()
        if node.kind == "ERROR" or node.is_missing:
            return f"line {node.raw.count(10, 0, node.start) + 1}: the syntax is wrong from here"
        todo += reversed(node.children)
    return ""


@cache
def _grammar(module: str, language: str) -> Callable[[str], str] | None:
    """A check by a tree-sitter grammar; None if it is not installed."""
    if find_spec("tree_sitter") is None or find_spec(module) is None:
        return None
    from tree_sitter import Language, Parser

    from toolcrib.command.judge.syntax import stand_in
    from toolcrib.command.not_proved import NotProved

    grammar = import_module(module)
    known = Language(getattr(grammar, language)())  # pyright: ignore[reportDeprecated] - a capsule, which Any hides

    def check(text: str) -> str:
        try:
            given = stand_in(text.encode("utf-8", "replace").decode())
        except NotProved:  # too many different characters behind "<<", which may begin a here-document
            return ""
        todo = [Parser(known).parse(given.encode()).root_node]
        while todo:
            node = todo.pop()
            if node.is_error or node.is_missing:
                return f"line {node.start_point[0] + 1}: the syntax is wrong from here"
            todo += [child for child in reversed(node.children) if child.has_error]
        return ""

    return check
