"""Texts in Python code that may be commands, for rules that deny some."""

from __future__ import annotations

import ast
import shlex
from collections.abc import Iterator

MAX_FOUND = 200


def possible_commands(code: str) -> str:
    """The texts of several words in code, and the lists of words, a line each. Code that cannot be read gives none.

    >>> print(possible_commands("run(['git', 'push', flag]); system('rm x'); y = 'name'"))
    git push
    rm x
    """
    try:
        tree = ast.parse(code)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return ""
    found: dict[str, None] = {}
    for words in _found(tree):
        found[words.replace("\n", " ")] = None
        if len(found) >= MAX_FOUND:
            break
    return "\n".join(found)


def _found(tree: ast.AST) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and " " in node.value.strip():
            yield node.value
        elif isinstance(node, ast.List | ast.Tuple | ast.Call):
            items = node.args if isinstance(node, ast.Call) else node.elts
            words = [
                item.value for item in items if isinstance(item, ast.Constant) and isinstance(item.value, str)
            ]
            if len(words) > 1:
                yield shlex.join(words)
