"""Rules as people write them, in TOML, each with examples of what it must and must not match.

```toml
autonomy = "supervised"             # read_only, supervised or full; may be left out
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

Examples are checked when the file is loaded: a rule that does not do what its author says is an error. Those of tools
that are not there are not tried.
"""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from toolcrib.access import Reach
from toolcrib.call import ToolCall
from toolcrib.effect import Effect
from toolcrib.errors import ToolcribError
from toolcrib.rules.breadth import check_breadth
from toolcrib.rules.limits import Limit, limit_from
from toolcrib.rules.patterns import CommandPattern, PathPattern
from toolcrib.rules.policy import NO, Rule, RulePolicy
from toolcrib.toolbox.policy import Autonomy, AutonomyPolicy, PolicyRequest, Verb

HEADER = re.compile(r"^\s*\[\[\s*(rule|limit)\s*\]\]")
TOP = ("autonomy", "otherwise")
KEYS = {
    "name", "reason", "allow", "ask", "deny", "tool", "effect", "server", "path", "reach", "command", "host",
    "argument", "tainted", "unsaid", "except", "match", "not_match",
}  # fmt: skip
NOT_IN_EXCEPTIONS = {"name", "reason", "allow", "ask", "deny", "except", "match", "not_match"}
MAX_FILE = 1_000_000

MakeCase = Callable[[ToolCall], PolicyRequest]
"""The case of an example's call; raises NotThere for a tool that is not there, ToolcribError for what is wrong."""


class NotThere(ToolcribError):
    """An example calls a tool that is not there now: it is not tried."""


class RuleError(ToolcribError, ValueError):
    """A file of rules that cannot be used; the message names file, line and rule."""


@dataclass(frozen=True, slots=True)
class RuleFile:
    """What a file says: its rules, limits and, if it names them, an autonomy and what becomes of all else.

    `examples` are to be checked with tools; `limits` are for `Toolbox(limits=...)`.
    """

    path: str
    rules: tuple[Rule, ...]
    autonomy: Autonomy | None
    examples: tuple[tuple[Rule, int, str, bool], ...]
    otherwise: Verb | None = None
    limits: tuple[Limit, ...] = ()

    def check(self, make_case: MakeCase) -> tuple[tuple[int, str], ...]:
        """Try each rule on its own examples; those of tools that are not there are given back, with their lines.

        Raises RuleError for the first that is not as it says.
        """
        untried: list[tuple[int, str]] = []
        for rule, line, text, wanted in self.examples:
            try:
                case = make_case(call_from(text))
            except NotThere:
                untried.append((line, text))
                continue
            except ToolcribError as problem:
                raise RuleError(f"{self.path}, line {line}: example {text!r}: {problem}") from None
            if _matches(rule, case) is not wanted:
                said = (
                    "is listed under match, but the rule does not"
                    if wanted
                    else "is listed under not_match, but"
                )
                raise RuleError(f"{self.path}, line {line}: rule {rule.name!r}: {text!r} {said} match it")
        return tuple(untried)

    def policy(self, autonomy: Autonomy | str | None = None) -> RulePolicy:
        """The policy of these rules under the lower of the file's autonomy and the given one.

        Where neither is said, it is "supervised". ValueError for an autonomy that is none.
        """
        said = [word for word in (autonomy, self.autonomy) if word is not None]
        policies = [AutonomyPolicy(word).autonomy for word in said] or [Autonomy.SUPERVISED]
        return RulePolicy(lowest(*policies), self.rules, otherwise=self.otherwise)


def lowest(*autonomies: Autonomy) -> Autonomy:
    """The one under which least runs unasked."""
    return min(autonomies, key=list(Autonomy).index)


def load_rules(path: str | Path) -> RuleFile:
    """Read a file of rules. Raises RuleError, naming the line, for what it says, OSError for the file."""
    place = Path(path)
    data = place.read_bytes()
    if len(data) > MAX_FILE:
        raise RuleError(f"{place}: a file of rules has at most {MAX_FILE:,} bytes, this has {len(data):,}")
    return read_rules(data.decode("utf-8", "replace"), str(place))


def read_rules(text: str, path: str = "rules") -> RuleFile:
    """Rules from TOML. Raises RuleError naming the line.

    >>> read_rules('[[rule]]\\ndeny = true\\ntool = "shell"').rules[0].verb.value
    'deny'
    """
    text = text.removeprefix("\ufeff")  # which some editors put before all they save
    try:
        data = tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError) as problem:
        raise RuleError(f"{path}: not TOML: {problem}") from None
    lines_of = text.split("\n")
    if unknown := sorted(set(data) - {*TOP, "rule", "limit"}):
        known = "'autonomy', 'otherwise', [[rule]] and [[limit]]"
        line = _line_of_key(lines_of, unknown[0])
        raise RuleError(f"{path}, line {line}: unknown key {unknown[0]!r}; known are {known}")
    rules: list[Rule] = []
    examples: list[tuple[Rule, int, str, bool]] = []
    named: dict[str, int] = {}
    for number, (line, table) in enumerate(_headed(data, "rule", lines_of, path), 1):
        try:
            rule = _rule(table, number, f"{Path(path).name}:{line}")
            if "name" in table and (first := named.setdefault(rule.name, line)) != line:
                raise ValueError(f"two rules are named {rule.name!r}: the other is in line {first}")
        except ValueError as problem:
            raise RuleError(f"{path}, line {line}: {problem}") from None
        rules.append(rule)
        for key, wanted in (("match", True), ("not_match", False)):
            listed = _texts(table, key)
            examples += [
                (rule, _line_of(lines_of, key, example, line), example, wanted) for example in listed
            ]
    limits: list[Limit] = []
    for line, table in _headed(data, "limit", lines_of, path):
        try:
            limits.append(limit_from(table, _texts(table, "tool")))
        except ValueError as problem:
            raise RuleError(f"{path}, line {line}: {problem}") from None
    autonomy = _word(data, "autonomy", {word.value: word for word in Autonomy}, path, lines_of)
    otherwise = _word(data, "otherwise", {word.value: word for word in (Verb.ASK, Verb.DENY)}, path, lines_of)
    return RuleFile(path, tuple(rules), autonomy, tuple(examples), otherwise, tuple(limits))


def _headed(
    data: Mapping[str, Any], kind: str, lines: Sequence[str], path: str
) -> Iterator[tuple[int, dict[str, Any]]]:
    """The tables of a kind, each with the line of its header."""
    matches = ((number, HEADER.match(line)) for number, line in enumerate(lines, 1))
    numbers = [number for number, match in matches if match is not None and match[1] == kind]
    tables = data.get(kind, [])
    if not isinstance(tables, list) or len(numbers) != len(tables):
        line = _line_of_key(lines, kind)
        raise RuleError(f"{path}, line {line}: write every {kind} under a header [[{kind}]] of its own")
    return zip(numbers, tables, strict=True)


def _word(
    data: Mapping[str, Any], key: str, known: Mapping[str, Any], path: str, lines: Sequence[str]
) -> Any:
    if key not in data:
        return None
    value = data[key]
    if not isinstance(value, str) or value not in known:
        line = _line_of_key(lines, key)
        raise RuleError(f"{path}, line {line}: {key} must be one of {', '.join(known)}; got {value!r}")
    return known[value]


def call_from(text: str) -> ToolCall:
    """A call written as `NAME {"argument": "value"}`; ToolcribError for anything else."""
    name, _, arguments = text.strip().partition(" ")
    try:
        given = json.loads(arguments or "{}")
    except ValueError:
        given = None
    if not name or not isinstance(given, dict):
        raise RuleError('a call is written as a name and a JSON object: shell {"command": "ls"}')
    return ToolCall(name, given)


def _rule(table: Any, number: int, source: str) -> Rule:
    if not isinstance(table, dict):
        raise ValueError("a rule is a table of keys and values")
    if misplaced := [key for key in TOP if key in table]:
        raise ValueError(f"{misplaced[0]} is said of the whole file: write it above the first [[rule]]")
    if unknown := sorted(set(table) - KEYS):
        raise ValueError(f"unknown key {unknown[0]!r}; known are {', '.join(sorted(KEYS))}")
    verbs = [verb for verb in Verb if table.get(verb.value) is True]
    if len(verbs) != 1 or any(table.get(verb.value) not in (None, True) for verb in Verb):
        raise ValueError("a rule says one of: allow = true, ask = true, deny = true")
    rule = replace(
        _what(table, verbs[0]),
        name=_text(table, "name") or f"rule {number}",
        reason=_text(table, "reason"),
        unless=tuple(_exception(one, verbs[0]) for one in _tables(table, "except")),
        source=source,
    )
    check_breadth(rule)
    return rule


def _exception(table: Mapping[str, Any], verb: Verb) -> Rule:
    """What a rule is not about. To be left out of a deny it must be meant for certain, out of an allow perhaps."""
    known = sorted(KEYS - NOT_IN_EXCEPTIONS)
    if unknown := sorted(set(table) - set(known)):
        raise ValueError(f"unknown key {unknown[0]!r} in except; known are {', '.join(known)}")
    if not table:
        raise ValueError("an exception names what it is about")
    return _what(table, Verb.DENY if verb is Verb.ALLOW else Verb.ALLOW)


def _what(table: Mapping[str, Any], verb: Verb) -> Rule:
    return Rule(
        verb=verb,
        tools=_texts(table, "tool"),
        effects=frozenset(_chosen(table, "effect", {effect.label: effect for effect in Effect})),
        servers=_texts(table, "server"),
        paths=tuple(PathPattern(text) for text in _texts(table, "path")),
        reach=frozenset(_chosen(table, "reach", {reach.value: reach for reach in Reach})),
        commands=tuple(CommandPattern(text) for text in _texts(table, "command")),
        hosts=_texts(table, "host"),
        arguments=_arguments(table),
        tainted=_flag(table, "tainted"),
        unsaid=_texts(table, "unsaid"),
    )


def _matches(rule: Rule, case: PolicyRequest) -> bool:
    """Whether a rule has anything to say of an example."""
    accesses = case.accesses
    if rule.verb is not Verb.ALLOW:
        return rule.found(case, accesses) is not NO
    if not rule.counts(case) or rule.excepts(case, accesses):
        return False
    if not rule.about_accesses or accesses is None:
        return True
    return any(rule.means(access, case) is not NO for access in accesses)


def _text(table: Mapping[str, Any], key: str) -> str:
    value = table.get(key, "")
    if not isinstance(value, str):
        raise ValueError(f"{key} must be text, got {value!r}")
    return value


def _texts(table: Mapping[str, Any], key: str) -> tuple[str, ...]:
    value = table.get(key, [])
    listed = [value] if isinstance(value, str) else value
    if not isinstance(listed, list) or any(not isinstance(item, str) or not item.strip() for item in listed):
        raise ValueError(f"{key} must be a text or a list of texts, got {value!r}")
    if key in table and not listed and key not in ("match", "not_match"):
        raise ValueError(f"{key} is an empty list, and would mean everything: leave it out if that is meant")
    return tuple(listed)


def _tables(table: Mapping[str, Any], key: str) -> list[dict[str, Any]]:
    value = table.get(key, [])
    listed = [value] if isinstance(value, dict) else value
    if not isinstance(listed, list) or any(not isinstance(item, dict) for item in listed):
        raise ValueError(f'{key} must be a table such as {{ path = "docs/**" }}, or several, got {value!r}')
    return listed


def _chosen(table: Mapping[str, Any], key: str, known: Mapping[str, Any]) -> list[Any]:
    named = _texts(table, key)
    for name in named:
        if name not in known:
            raise ValueError(f"{key} must be one of {', '.join(known)}; got {name!r}")
    return [known[name] for name in named]


def _flag(table: Mapping[str, Any], key: str) -> bool | None:
    value = table.get(key)
    if value is not None and not isinstance(value, bool):
        raise ValueError(f"{key} must be true or false, got {value!r}")
    return value


def _arguments(table: Mapping[str, Any]) -> dict[str, Any]:
    value = table.get("argument", {})
    if not isinstance(value, dict):
        raise ValueError(f'argument must be a table such as {{ branch = "main" }}, got {value!r}')
    return value


def _line_of_key(lines: Sequence[str], key: str) -> int:
    """The line where a key or a table of the file itself begins; the first where it is written in another way."""
    begins = re.compile(rf"""\s*\[{{0,2}}\s*["']?{re.escape(key)}["']?\s*[=.\]]""")
    return next((number for number, line in enumerate(lines, 1) if begins.match(line)), 1)


def _line_of(lines: Sequence[str], key: str, example: str, start: int) -> int:
    """The line of an example below its key, or of its rule where it is written in another way than it reads."""
    begins = re.compile(rf"\s*{key}\s*=")
    first = next((n for n in range(start, len(lines) + 1) if begins.match(lines[n - 1])), start)
    return next((n for n in range(first, len(lines) + 1) if example in lines[n - 1]), start)
