"""Rules as people write them, in TOML, each with examples of what it must and must not match.

```toml
autonomy = "supervised"             # read_only, supervised, sandboxed or full
otherwise = "deny"                  # or "ask": what no rule allows; left out, the autonomy says

[[rule]]
name = "tests may run"
allow = true                        # or: ask = true, deny = true
tool = "shell"
command = ["pytest *", "git status"]
match = ['shell {"command": "pytest -q"}']
not_match = ['shell {"command": "rm -r build"}']

[[rule]]
deny = true
path = ["**/.env*", "secrets/**"]
except = { path = "**/.env.example" }
reason = "secrets stay where they are"

[[limit]]
tool = "shell"                      # left out: all tools together
calls = 100
per = "hour"                        # or "run" (the default), "minute", "day", or a number of seconds
```

Examples are tried when the file is loaded: a rule that does not do what its author says is an error. Examples of tools
that do not exist are not tried.
"""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Iterable, Iterator, Mapping
from enum import StrEnum
from pathlib import Path
from typing import Any, TypeVar

from toolcrib.call import ToolCall
from toolcrib.dataclass import dataclass
from toolcrib.errors import ToolcribError
from toolcrib.rules import toml_values
from toolcrib.rules.examples import Example, MissingTool, RuleError, call_from
from toolcrib.rules.limits import Limit, limit_from
from toolcrib.rules.policy import RulePolicy, lowest_autonomy
from toolcrib.rules.rule import Rule
from toolcrib.rules.rule_table import TOP_LEVEL, problems_of, rule_from
from toolcrib.rules.toml_lines import TomlLines
from toolcrib.text_file import text_of
from toolcrib.toolbox.policy import Autonomy, AutonomyPolicy, PolicyRequest, Verb

__all__ = ["MakeRequest", "RuleFile", "load_rules", "read_rules"]

MAX_FILE = 1_000_000  # bytes
MAX_PROBLEMS = 20  # that are told of a file

MakeRequest = Callable[[ToolCall], PolicyRequest]
"""Makes a policy's request of an example's call. Raises MissingTool, or ToolcribError for a call that is wrong."""

Word = TypeVar("Word", bound=StrEnum)


@dataclass(frozen=True, slots=True)
class RuleFile:
    """The contents of a file: rules, limits, and an autonomy and `otherwise` if it names them.

    `examples` are tried with `check`; `limits` are for `Toolbox(limits=...)`.
    """

    path: str
    rules: tuple[Rule, ...]
    autonomy: Autonomy | None
    examples: tuple[Example, ...]
    otherwise: Verb | None = None
    limits: tuple[Limit, ...] = ()

    def check(self, make_request: MakeRequest) -> tuple[tuple[int, str], ...]:
        """Try each rule on its own examples. Returns line and text of the examples of tools that do not exist.

        Raises RuleError, which names the examples that their rules do not do as they say.
        """
        untried: list[tuple[int, str]] = []
        problems = Problems(self.path)
        for example in self.examples:
            try:
                request = make_request(call_from(example.text))
            except MissingTool:
                untried.append((example.line, example.text))
            except ToolcribError as problem:
                problems.add(example.line, f"example {example.text!r}: {problem}")
            else:
                if found := example.problem(request):
                    problems.add(example.line, f"rule {example.rule.name!r}: {example.text!r} {found}")
        problems.raise_any()
        return tuple(untried)

    def policy(self, autonomy: Autonomy | str | None = None) -> RulePolicy:
        """The policy of these rules under the lower of the file's autonomy and the given one, else "supervised".

        Raises ValueError for an unknown autonomy.
        """
        given = [word for word in (autonomy, self.autonomy) if word is not None]
        autonomies = [AutonomyPolicy(word).autonomy for word in given] or [Autonomy.SUPERVISED]
        return RulePolicy(lowest_autonomy(*autonomies), self.rules, otherwise=self.otherwise)


def load_rules(path: str | Path) -> RuleFile:
    """Read a file of rules. Raises RuleError for its contents, OSError for the file."""
    place = Path(path)
    data = place.read_bytes()
    if len(data) > MAX_FILE:
        raise RuleError(f"{place}: a file of rules has at most {MAX_FILE:,} bytes, this has {len(data):,}")
    try:
        text = text_of(data)
    except ValueError as problem:
        raise RuleError(f"{place}: {problem}") from None
    return read_rules(text, str(place))


def read_rules(text: str, path: str = "rules") -> RuleFile:
    """Rules from TOML. Raises RuleError, which names all that is wrong, with the lines.

    >>> read_rules('[[rule]]\\ndeny = true\\ntool = "shell"').rules[0].verb.value
    'deny'
    """
    text = text.removeprefix("\ufeff")  # which some editors put before all they save
    try:
        data = tomllib.loads(text)
    except (ValueError, RecursionError) as problem:
        raise RuleError(f"{path}: not TOML: {problem}") from None
    return _Reader(data, TomlLines(text), path).read()


class Problems:
    """What is wrong in a file, with the lines."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._found: list[tuple[int, str]] = []

    def add(self, line: int, message: str) -> None:
        """Note a problem. Raises RuleError where there are so many that no more are looked for."""
        self._found.append((line, message))
        if len(self._found) == MAX_PROBLEMS:
            self.raise_any()

    def raise_any(self) -> None:
        """Raises RuleError if there is a problem."""
        if self._found:
            raise RuleError(
                "\n".join(f"{self._path}, line {line}: {message}" for line, message in sorted(self._found))
            )


class _Reader:
    """Reads one file; what is wrong in it is told together at the end."""

    def __init__(self, data: Mapping[str, Any], lines: TomlLines, path: str) -> None:
        self.data, self.lines, self.path = data, lines, path
        self.problems = Problems(path)

    def read(self) -> RuleFile:
        for key in self.data.keys() - {*TOP_LEVEL, "rule", "limit"}:
            known = "'autonomy', 'otherwise', [[rule]] and [[limit]]"
            self.wrong_at(key, f"unknown key {key!r}; known are {known}")
        rules, examples = self.rules()
        limits = tuple(self.limits())
        autonomy = self.word("autonomy", tuple(Autonomy))
        otherwise = self.word("otherwise", (Verb.ASK, Verb.DENY))
        self.problems.raise_any()
        return RuleFile(self.path, tuple(rules), autonomy, tuple(examples), otherwise, limits)

    def rules(self) -> tuple[list[Rule], list[Example]]:
        rules: list[Rule] = []
        examples: list[Example] = []
        named: dict[str, int] = {}
        for number, (line, table) in enumerate(self.tables("rule"), 1):
            try:
                rule = rule_from(table, number, f"{Path(self.path).name}:{line}")
                if "name" in table and (other := named.setdefault(rule.name, line)) != line:
                    raise ValueError(f"two rules are named {rule.name!r}: the other is in line {other}")
                for key, must_match in (("match", True), ("not_match", False)):
                    examples += (
                        Example(rule, self.lines.of_text(text, key, line), text, must_match)
                        for text in toml_values.examples(table, key)
                    )
            except ValueError as problem:
                first = str(problem)
                self.problems.add(line, first)
                for further in problems_of(table):
                    if further != first:
                        self.problems.add(line, further)
            else:
                rules.append(rule)
        return rules, examples

    def limits(self) -> Iterator[Limit]:
        for line, table in self.tables("limit"):
            try:
                yield limit_from(table, toml_values.texts(table, "tool"))
            except ValueError as problem:
                self.problems.add(line, str(problem))

    def tables(self, name: str) -> Iterable[tuple[int, dict[str, Any]]]:
        """The tables of a name, each with the line of its header."""
        lines = self.lines.of_headers(name)
        tables = self.data.get(name, [])
        if not isinstance(tables, list) or len(lines) != len(tables):
            self.wrong_at(name, f"write every {name} under a header [[{name}]] of its own")
            return ()
        return zip(lines, tables, strict=True)

    def word(self, key: str, known: tuple[Word, ...]) -> Word | None:
        if key not in self.data:
            return None
        value = self.data[key]
        for word in known:
            if value == word.value:
                return word
        self.wrong_at(key, f"{key} must be one of {', '.join(known)}; got {value!r}")
        return None

    def wrong_at(self, key: str, message: str) -> None:
        self.problems.add(self.lines.of_key(key), message)
