"""The keys of a rule's TOML that say what the rule is about, a row each.

To add a key, add a field to `Rule` (in `rule.py`) and a row to `KEYS`. From the row follow how the key is read, how it
matches (in rules and in their exceptions), what is too broad to be allowed, the lines of `toolcrib trust`, and the
table in docs/policy.md (written by `python docs/tables.py`).

A key looks at one of three things, and gives the function for that:

- `of_tool`: the facts of the tool, before there is a call;
- `of_call`: the arguments of a call, its effect, and where its values come from;
- `of_access`: one thing that a call reaches (a file, a command, a host), which may match in part.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from operator import not_
from typing import Any

from toolcrib.access import PATHS, Access, Reach
from toolcrib.dataclass import dataclass
from toolcrib.effect import Effect
from toolcrib.facts import Facts
from toolcrib.rules import toml_values
from toolcrib.rules.argument_patterns import arguments_match
from toolcrib.rules.command_patterns import CommandPattern, match_commands
from toolcrib.rules.host_patterns import match_hosts, why_hosts_too_broad
from toolcrib.rules.match import MatchLevel
from toolcrib.rules.name_patterns import any_name_matches
from toolcrib.rules.path_patterns import PathPattern, match_paths
from toolcrib.rules.user_mentions import not_mentioned
from toolcrib.toolbox.policy import PolicyRequest

__all__ = ["KEYS", "RuleKey"]


@dataclass(frozen=True, slots=True, kw_only=True)
class RuleKey:
    """One key. `name` is its name in TOML, `field` the field of `Rule`, `doc` its line in the documentation.

    `read` takes a TOML table and the key's name, and gives the field's value or raises ValueError; `write` makes JSON
    data of the field's value. `says_nothing` tells values that hold for every call. `of_call` is also handed whether
    one matching item of a list is enough. `reaches` are the ways to reach something for which `of_access` is asked.
    `too_broad` gives the reason why an allow rule must not have such a value, "" if it may. `provenance`: the key
    looks at where values come from.
    """

    name: str
    field: str
    doc: str
    read: Callable[[Mapping[str, Any], str], Any]
    write: Callable[[Any], Any] = list
    says_nothing: Callable[[Any], bool] = not_
    of_tool: Callable[[Any, Facts], bool] | None = None
    of_call: Callable[[Any, PolicyRequest, bool], bool] | None = None
    of_access: Callable[[Any, Access], MatchLevel] | None = None
    reaches: tuple[Reach, ...] = ()
    too_broad: Callable[[Any], str] = lambda value: ""
    provenance: bool = False


def _path_patterns(table: Mapping[str, Any], key: str) -> tuple[PathPattern, ...]:
    return tuple(map(PathPattern, toml_values.texts(table, key)))


def _command_patterns(table: Mapping[str, Any], key: str) -> tuple[CommandPattern, ...]:
    return tuple(map(CommandPattern, toml_values.texts(table, key)))


def _texts_of(patterns: Iterable[PathPattern | CommandPattern]) -> list[str]:
    return [pattern.text for pattern in patterns]


def _why_commands_too_broad(patterns: Sequence[CommandPattern]) -> str:
    from toolcrib.rules.broad_commands import why_commands_too_broad  # loads the tables of programs

    return why_commands_too_broad(patterns)


KEYS: tuple[RuleKey, ...] = (
    RuleKey(
        name="tool",
        field="tools",
        doc="names of tools, `*` and `?` allowed",
        read=toml_values.texts,
        of_tool=lambda names, facts: any_name_matches(names, facts.name),
    ),
    RuleKey(
        name="effect",
        field="effects",
        doc="`read`, `write`, `destructive`: of this call; in deny and ask rules, of the calls that `batch`, "
        "`new_task` and agents make, not of these themselves",
        read=toml_values.choices({effect.label: effect for effect in Effect}),
        write=lambda effects: [effect.label for effect in sorted(effects)],
        says_nothing=lambda effects: not effects or effects >= set(Effect),
        of_call=lambda effects, request, any_item: request.effect in effects,
    ),
    RuleKey(
        name="server",
        field="servers",
        doc="the server that a foreign tool comes from",
        read=toml_values.texts,
        of_tool=lambda names, facts: facts.server != "" and any_name_matches(names, facts.server),
    ),
    RuleKey(
        name="path",
        field="paths",
        doc="files that the call reaches: `src/**`, `.env`, `/etc/*`; a folder means all below it",
        read=_path_patterns,
        write=_texts_of,
        of_access=match_paths,
        reaches=PATHS,
    ),
    RuleKey(
        name="reach",
        field="reach",
        doc="`read`, `write`, `delete`, `run`, `connect`: how it reaches them",
        read=toml_values.choices({reach.value: reach for reach in Reach}),
        write=sorted,
    ),
    RuleKey(
        name="command",
        field="commands",
        doc="the words of a command: `git status`, `pytest *`; in deny and ask rules, further words may follow; `**` "
        "stands for any words in between, as in `sed ** -i*`",
        read=_command_patterns,
        write=_texts_of,
        of_access=match_commands,
        reaches=(Reach.RUN,),
        too_broad=_why_commands_too_broad,
    ),
    RuleKey(
        name="host",
        field="hosts",
        doc="`example.org`, or `*.example.org` for every name below it",
        read=toml_values.texts,
        of_access=match_hosts,
        reaches=(Reach.CONNECT,),
        too_broad=why_hosts_too_broad,
    ),
    RuleKey(
        name="argument",
        field="arguments",
        doc="a table of names and what they must be: a pattern of text, a value, a table of the same; of a list, one "
        "entry for deny and ask, all for allow; what is left out is its default",
        read=toml_values.table,
        write=dict,
        of_call=arguments_match,
    ),
    RuleKey(
        name="tainted",
        field="tainted",
        doc="`true`: only after the run took in [something from outside](#what-came-from-outside); "
        "`false`: only before",
        read=toml_values.flag,
        write=bool,
        says_nothing=lambda wanted: wanted is None,
        of_call=lambda wanted, request, any_item: wanted is bool(request.taint),
        provenance=True,
    ),
    RuleKey(
        name="unsaid",
        field="unsaid",
        doc="names of arguments, `*` allowed: only if one of them holds what the user did not say",
        read=toml_values.texts,
        of_call=lambda names, request, any_item: not_mentioned(
            names, request.arguments, request.user_texts, request.params_schema
        ),
        provenance=True,
    ),
)
