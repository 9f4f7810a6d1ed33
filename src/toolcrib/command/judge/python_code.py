"""Finds commands in Python code, for rules about commands: those that it runs, and texts that look like one."""

from __future__ import annotations

import ast
import re
import shlex
import threading
import warnings
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import NamedTuple

MAX_FOUND = 200
MAX_DEPTH = 8  # of texts that are put together from others
MAX_DOTS = 10_000  # Python needs gigabytes for an `import a.a.a...` with more
MAX_READ = 100_000  # characters of the texts that are commands or code, with all that is put together
FILE_NAME = "<code that toolcrib reads>"
OUR_CODE = re.compile(re.escape(FILE_NAME))
UNKNOWN = "${_}"  # stands in a command for what is only known when the code runs
# Functions that run a command, whatever object they belong to. Those of SHORT do so only as parts of subprocess.
RUNS = re.compile(
    r"system|popen|Popen|check_call|check_output|getoutput|getstatusoutput|exec[lv]p?e?|spawn[lv]?p?e?|posix_spawnp?"
    r"|create_subprocess_(?:exec|shell)|subprocess_(?:exec|shell)"
)
TAKES_WORDS = re.compile(r"(?:exec|spawn)l.*|.*subprocess_exec")  # each argument is a word of the command
# The first argument names the program, and the words that follow begin with its name again.
NAMES_PROGRAM_APART = re.compile(r"(?:exec|spawn)[lv].*|posix_spawnp?")
SHORT: tuple[str, ...] = ("run", "call")
MODULES = ("asyncio", "os", "posix", "pty", "subprocess")  # that have such functions
EVALUATES = ("exec", "eval")
GROWS = ("append", "extend")  # a list, at its end
CHANGES = ("clear", "insert", "pop", "remove", "reverse", "sort", "__setitem__")
FIELD = re.compile(r"\{[^{}]*\}|%(?:\([^()]*\))?[-#0-9. +]*[a-zA-Z]")


class CommandsInCode(NamedTuple):
    """Commands, one on each line: `run` are those that the code runs, `perhaps` are texts that may be only data."""

    run: str
    perhaps: str


NO_COMMANDS = CommandsInCode("", "")


_filtering = threading.Lock()


class _Budget:
    """How many characters of the texts in code may still be read, with those of code within its texts."""

    def __init__(self) -> None:
        self.characters = MAX_READ


def commands_in_code(code: str, left: _Budget | None = None) -> CommandsInCode | None:
    """The commands that code runs, and its texts of several words. None for code that cannot be read.

    >>> commands_in_code("import os; os.system(f'rm {x}'); title = 'git push it'")
    CommandsInCode(run='rm ${_}', perhaps='git push it')
    """
    if code.count(".") > MAX_DOTS:
        return None
    try:
        _ignore_warnings()
        texts = _Texts(list(ast.walk(ast.parse(code, FILE_NAME))), left or _Budget())
        return CommandsInCode(_lines(texts.run()), _lines(text.replace("\n", " ") for text in texts.others()))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def _ignore_warnings() -> None:
    """Keeps Python from printing warnings about the code that is read, and about no other code.

    `warnings.catch_warnings` would not do: what it puts back in one thread is what another has just set.
    """
    with _filtering:
        if not warnings.filters or warnings.filters[0][3] != OUR_CODE:
            warnings.filterwarnings("ignore", module=OUR_CODE.pattern)


def _lines(found: Iterator[str]) -> str:
    lines: dict[str, None] = {}
    for words in found:
        lines[words] = None
        if len(lines) >= MAX_FOUND:
            lines[UNKNOWN] = None
            break
    return "\n".join(lines)


class _Texts:
    """The texts in code. A name that is bound once, and whose value is not changed, is what was assigned to it."""

    def __init__(self, nodes: Sequence[ast.AST], left: _Budget) -> None:
        self.nodes = nodes
        self.left = left
        self.assigned: dict[str, ast.expr] = {}
        self.bound: Counter[str] = Counter()
        self.grown: set[str] = set()  # names of what gets something added at its end
        self.runners: dict[str, bool] = dict.fromkeys(
            SHORT, True
        )  # functions by themselves, and whether they run commands
        self.modules = {"subprocess"}
        self.imported: set[str] = set()  # names of MODULES and of functions that run commands
        self.called = {id(node.func) for node in nodes if isinstance(node, ast.Call)}
        self.original: dict[str, str] = {}
        for node in nodes:
            self._names(node)

    def _names(self, node: ast.AST) -> None:
        self._binds(node)
        if isinstance(node, ast.FunctionDef):
            self.runners[node.name] = False
        elif isinstance(node, ast.Import):
            self.modules |= {one.asname for one in node.names if one.asname and one.name == "subprocess"}
            self.imported |= {one.asname or one.name for one in node.names if one.name in MODULES}
        elif isinstance(node, ast.ImportFrom):
            for one in node.names:
                self.original[one.asname or one.name] = one.name
                self.runners[one.asname or one.name] = bool(RUNS.fullmatch(one.name)) or (
                    node.module == "subprocess" and one.name in SHORT
                )
                if node.module in MODULES and self.runners[one.asname or one.name]:
                    self.imported.add(one.asname or one.name)

    def _binds(self, node: ast.AST) -> None:
        """Notes what a name is bound to, and what changes its value."""
        if isinstance(node, ast.Assign):
            self.assigned |= {one.id: node.value for one in node.targets if isinstance(one, ast.Name)}
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name) and node.value is not None:
            self.assigned[node.target.id] = node.value
        elif isinstance(node, ast.AugAssign) and isinstance(node.target, ast.Name):
            self.grown.add(node.target.id)
            self.bound[node.target.id] -= 1  # it is no other value, but a longer one
        elif isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load):
            self.bound[node.id] += 1
        elif isinstance(node, ast.arg):
            self.bound[node.arg] += 1
        elif isinstance(node, ast.ExceptHandler | ast.alias) and (
            name := getattr(node, "asname", None) or node.name
        ):
            self.bound[name] += 1
        elif isinstance(node, ast.Attribute | ast.Subscript) and isinstance(node.value, ast.Name):
            name, method = node.value.id, getattr(node, "attr", "")
            changed = method in CHANGES or (not method and not isinstance(node.ctx, ast.Load))
            self.bound[name] += 2 * changed
            self.grown |= {name} if method in GROWS else set()

    def _value(self, name: str) -> ast.expr | None:
        """What a name stands for at its beginning, None where that is not known."""
        return self.assigned.get(name) if self.bound[name] == 1 else None

    def run(self) -> Iterator[str]:
        """The commands of calls of functions that run commands. Those behind what is read are not known."""
        for node in self.nodes:
            if self.left.characters <= 0:
                yield UNKNOWN
                return
            if self._hands_on(node):
                yield UNKNOWN
            elif isinstance(node, ast.Call) and (name := self._runner(node.func)):
                named = [one.value for one in node.keywords if one.arg in (None, "args", "cmd", "command")]
                arguments = [*node.args, *named]
                if name in EVALUATES:
                    yield self._evaluated(arguments)
                    continue
                if NAMES_PROGRAM_APART.fullmatch(name):
                    at = name.startswith("spawn") and len(arguments) > 1  # behind its mode
                    yield self._words(arguments[at : at + 1])
                    arguments = arguments[at + 1 :]
                if TAKES_WORDS.fullmatch(name):
                    yield self._words(arguments)
                elif arguments:
                    yield self._command(arguments[0])

    def _hands_on(self, node: ast.AST) -> bool:
        """Whether a function that runs commands is handed on, to be called with arguments that nobody knows."""
        if isinstance(node, ast.Call):
            names = [one.id for one in node.args[:1] if isinstance(one, ast.Name)]
            by_name = isinstance(node.func, ast.Name) and node.func.id in ("getattr", "vars")
            return by_name and not self.imported.isdisjoint(names)
        if id(node) in self.called:
            return False
        if isinstance(node, ast.Name):
            return node.id in self.imported and self.runners.get(node.id, False)
        if not (isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name)):
            return False
        return node.value.id in self.imported and bool(self._runner(node))

    def _evaluated(self, arguments: Sequence[ast.expr]) -> str:
        """The commands that code in a text runs."""
        return (commands_in_code(self._text(arguments[0]), self.left) or NO_COMMANDS).run if arguments else ""

    def _runner(self, function: ast.expr) -> str:
        """The name of a function that runs commands, "" for another."""
        if isinstance(function, ast.Name) and function.id in EVALUATES:
            return function.id
        if isinstance(function, ast.Name):
            known = self.runners.get(function.id, bool(RUNS.fullmatch(function.id)))
            return self.original.get(function.id, function.id) if known else ""
        if not isinstance(function, ast.Attribute):
            return ""
        of_module = isinstance(function.value, ast.Name) and function.value.id in self.modules
        known = bool(RUNS.fullmatch(function.attr)) or (of_module and function.attr in SHORT)
        return function.attr if known else ""

    def others(self) -> Iterator[str]:
        """Texts of several words, and lists of words."""
        for node in self.nodes:
            if isinstance(node, ast.Constant) and isinstance(node.value, str) and " " in node.value.strip():
                yield node.value
            elif isinstance(node, ast.List | ast.Tuple | ast.Call):
                items = node.args if isinstance(node, ast.Call) else node.elts
                words = [
                    one.value for one in items if isinstance(one, ast.Constant) and isinstance(one.value, str)
                ]
                if len(words) > 1:
                    yield shlex.join(words)

    def _command(self, node: ast.expr, depth: int = 0) -> str:
        """The command line of an expression that is a text or a list of words."""
        if depth < MAX_DEPTH and isinstance(node, ast.Name):
            assigned = self._value(node.id)
            command = self._command(assigned, depth + 1) if assigned is not None else UNKNOWN
            return (
                f"{command} {UNKNOWN}"
                if node.id in self.grown and isinstance(assigned, ast.List)
                else command
            )
        if isinstance(node, ast.List | ast.Tuple):
            return self._words(node.elts)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "split":
            node = node.func.value
        return self._text(node, depth)

    def _words(self, nodes: Sequence[ast.expr]) -> str:
        texts = [self._text(node) for node in nodes]
        return " ".join(text if UNKNOWN in text else shlex.quote(text) for text in texts)

    def _text(self, node: ast.expr | None, depth: int = 0) -> str:
        """A text that code puts together, with `UNKNOWN` for the parts that nobody knows."""
        self.left.characters -= 1
        if depth >= MAX_DEPTH or node is None or self.left.characters <= 0:
            return UNKNOWN
        if isinstance(node, ast.Constant):
            text = node.value if isinstance(node.value, str) else UNKNOWN
            self.left.characters -= len(text)
            return text
        if isinstance(node, ast.Name):
            return self._text(self._value(node.id), depth + 1) + UNKNOWN * (node.id in self.grown)
        if isinstance(node, ast.JoinedStr):
            return "".join(self._text(one, depth + 1) for one in node.values)
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
            return self._text(node.left, depth + 1) + self._text(node.right, depth + 1)
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mod):
            return FIELD.sub(UNKNOWN, self._text(node.left, depth + 1))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "format":
            return FIELD.sub(UNKNOWN, self._text(node.func.value, depth + 1))
        return UNKNOWN
