"""One rule: what it is about, and whether it means what a call reaches: not at all, in part, or for certain."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from toolcrib.access import PATHS, Access, Reach
from toolcrib.effect import Effect
from toolcrib.errors import as_tuple
from toolcrib.facts import Facts
from toolcrib.json_text.values import same_json
from toolcrib.rules.patterns import (
    CommandPattern,
    PathPattern,
    any_matches,
    check_host,
    host_matches,
    reaches,
)
from toolcrib.rules.user_mentions import not_mentioned
from toolcrib.toolbox.policy import PolicyRequest, Verb

NO, PARTLY, YES = 0, 1, 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """One rule; all that is given must hold for it to count.

    `tools` and `servers` are patterns of names. `paths` count for `reach` (all ways to reach a path if it is
    empty), `commands` for commands that were proved plain, `hosts` for connections. `arguments` maps names
    to a pattern of their text, to the very value, or to the same of an object's members; an argument that is
    left out is its default. `tainted` counts only (True) or never (False) in a run that took in something from
    outside. `unless` are exceptions, written as rules whose verb says nothing. A rule that `narrows` asks about
    nothing that would be denied without it. `source` says where the rule is written.
    """

    verb: Verb
    name: str = ""
    reason: str = ""
    tools: tuple[str, ...] = ()
    effects: frozenset[Effect] = frozenset()
    servers: tuple[str, ...] = ()
    paths: tuple[PathPattern, ...] = ()
    reach: frozenset[Reach] = frozenset()
    commands: tuple[CommandPattern, ...] = ()
    hosts: tuple[str, ...] = ()
    arguments: Mapping[str, Any] = field(default_factory=dict)
    tainted: bool | None = None
    unsaid: tuple[str, ...] = ()
    unless: tuple[Rule, ...] = ()
    narrows: bool = False
    source: str = ""

    def __post_init__(self) -> None:
        for name in ("tools", "servers", "paths", "commands", "hosts", "unsaid", "unless"):
            object.__setattr__(self, name, as_tuple(name, getattr(self, name)))
        for pattern in self.hosts:
            check_host(pattern)
        if self.verb is not Verb.ALLOW:  # who forbids "rm" does not mean to let "rm -r" run
            object.__setattr__(self, "commands", tuple(pattern.opened() for pattern in self.commands))

    @property
    def about_accesses(self) -> bool:
        return bool(self.paths or self.commands or self.hosts or self.reach)

    @property
    def always(self) -> bool:
        """Whether nothing but the tool itself and its effect decides whether the rule counts."""
        return not (self.about_accesses or self.arguments or self.unsaid or self.tainted is not None)

    @property
    def marked(self) -> bool:
        """Whether the rule or an exception looks at what came from outside, or at what the user said."""
        return self.tainted is not None or bool(self.unsaid) or any(other.marked for other in self.unless)

    def hides(self, facts: Facts) -> bool:
        """Whether the rule, if it denies, leaves no call of a tool."""
        effects = not self.effects or self.effects >= set(Effect)
        return self.always and effects and self.knows(facts) and not any(o.knows(facts) for o in self.unless)

    @property
    def looks(self) -> bool:
        """Whether what a call reaches matters to the rule or to its exceptions."""
        return self.about_accesses or any(other.looks for other in self.unless)

    @property
    def takes_paths(self) -> bool:
        """Whether the rule, if it denies, may take files from a call that runs."""
        about = (self,) if self.about_accesses else self.unless
        return any(one.paths or one.reach.intersection(PATHS) for one in about)

    def weighs_on(self, access: Access) -> bool:
        """Whether the rule, if it denies or asks, says anything of such a way to reach something."""
        return self.about_accesses or any(other.is_about(access) for other in self.unless)

    def knows(self, facts: Facts) -> bool:
        """Whether the rule is about a tool."""
        return (not self.tools or any_matches(self.tools, facts.name)) and (
            not self.servers or (facts.server != "" and any_matches(self.servers, facts.server))
        )

    def counts(self, case: PolicyRequest) -> bool:
        """Whether the rule is about a call, whatever that reaches."""
        return self.knows(case.facts) and self.fits(case)

    def fits(self, case: PolicyRequest) -> bool:
        """The same, for a tool that the rule is known to be about."""
        if self.effects and case.effect not in self.effects:
            return False
        if self.tainted is not None and self.tainted is not bool(case.taint):
            return False
        if self.arguments and not self._fits_arguments(case):
            return False
        if self.unsaid and not not_mentioned(self.unsaid, case.arguments, case.user_texts):
            return False
        return not any(not other.about_accesses and other.counts(case) for other in self.unless)

    def found(self, case: PolicyRequest, accesses: Sequence[Access] | None) -> int:
        """Whether a rule about the call's tool, if it denies or asks, is about what the call reaches."""
        if not self.fits(case):
            return NO
        looked_at = accesses
        if not self.about_accesses:  # exceptions alone look at what is reached, each at its own kind
            reaches = [a for a in accesses or () if any(o.is_about(a) for o in self.unless)]
            if not reaches:
                return YES
            looked_at = reaches
        elif accesses is None:  # a tool that does not say what it reaches may reach anything
            return NO if case.facts.effect is Effect.READ and not self.tools else PARTLY
        return max((self._weighs(access, case) for access in looked_at or ()), default=NO)

    def _weighs(self, access: Access, case: PolicyRequest) -> int:
        found = self.means(access, case)
        left_out = found is PARTLY and access.filtered and self.verb is Verb.DENY
        return NO if left_out else found

    def excepts(self, case: PolicyRequest, accesses: Sequence[Access] | None) -> bool:
        """Whether an exception may be about a call; then an allow rule does not allow it."""
        about = [other for other in self.unless if other.about_accesses and other.counts(case)]
        return any(accesses is None or any(o.means(a, case) for a in accesses) for o in about)

    def is_about(self, access: Access) -> bool:
        """Whether the rule says anything of such a way to reach something."""
        patterns = (
            self.paths
            if access.reach in PATHS
            else self.commands
            if access.reach is Reach.RUN
            else self.hosts
        )
        return bool(patterns) or access.reach in self.reach

    def means(self, access: Access, case: PolicyRequest) -> int:
        """Whether the rule is about something that is reached: NO, PARTLY or YES."""
        found = self._named(access)
        if found is not NO and self.verb is not Verb.ALLOW:
            for other in self.unless:
                if other.about_accesses and other.counts(case):
                    found = min(found, YES - other.means(access, case))
        return found

    def _named(self, access: Access) -> int:
        if self.reach and access.reach not in self.reach:
            return NO
        if self.paths and access.reach in PATHS:
            whole, part = reaches(self.paths, access)
            return YES if whole else PARTLY if part else NO
        if self.commands and access.reach is Reach.RUN:
            if not access.argv:
                return PARTLY  # nobody knows what an opaque command runs
            if any(pattern.surely_matches(access.argv) for pattern in self.commands):
                return YES
            return PARTLY if any(pattern.may_match(access.argv) for pattern in self.commands) else NO
        if self.hosts and access.reach is Reach.CONNECT:
            if any(host_matches(pattern, access.target) for pattern in self.hosts):
                return YES
            near = any(host_matches(pattern, access.target, any_port=True) for pattern in self.hosts)
            return PARTLY if near else NO
        # Another form of a listed command is not one more: a rule about all commands has met that already.
        return NO if self.paths or self.commands or self.hosts or access.hint else YES

    def _fits_arguments(self, case: PolicyRequest) -> bool:
        given = case.arguments
        if not isinstance(given, dict):
            return False
        some = self.verb is not Verb.ALLOW
        return all(
            _fits(wanted, given[name] if name in given else _default(case, name), some)
            or (some and _fits(wanted, _as_read(case, name), some))
            for name, wanted in self.arguments.items()
        )

    def __str__(self) -> str:
        return f"{self.name or self.verb.value}{f' ({self.source})' if self.source else ''}"


def _fits(wanted: Any, value: Any, some: bool) -> bool:
    """Whether a value is as a rule says; of a list, `some` members or all."""
    if isinstance(wanted, str) and isinstance(value, str):
        return any_matches((wanted,), value)
    if isinstance(wanted, Mapping) and wanted and isinstance(value, Mapping):
        return all(name in value and _fits(inner, value[name], some) for name, inner in wanted.items())
    if isinstance(value, list) and not isinstance(wanted, list):
        return bool(value) and (any if some else all)(_fits(wanted, item, some) for item in value)
    return same_json(value, wanted)


_ABSENT = object()


def _default(case: PolicyRequest, name: str) -> Any:
    """What an argument is that was left out, as the tool's schema says."""
    bound = case.prepared.bound if case.prepared is not None else None
    if bound is None:
        return _ABSENT
    return bound.definition.params.schema.get("properties", {}).get(name, {}).get("default", _ABSENT)


def _as_read(case: PolicyRequest, name: str) -> Any:
    """What the tool is handed, as JSON: a UUID without its dashes is the same one."""
    from pydantic_core import PydanticSerializationError, to_jsonable_python

    params = case.prepared.params if case.prepared is not None else None
    value = params.get(name, _ABSENT) if isinstance(params, Mapping) else getattr(params, name, _ABSENT)
    if value is _ABSENT or isinstance(value, str | int | float | None):
        return value
    try:
        return to_jsonable_python(value, by_alias=True)
    except PydanticSerializationError:
        return _ABSENT


def within(rule: Rule, roots: Sequence[str]) -> Rule:
    """A rule whose absolute paths mean the files below some roots by their relative names, too."""
    further = [inner for pattern in rule.paths for root in roots for inner in pattern.within(root)]
    unless = tuple(within(other, roots) for other in rule.unless)
    return replace(rule, paths=(*rule.paths, *further), unless=unless) if further or unless else rule
