"""A rule: what it is about, and how far it matches what a call reaches."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields
from typing import Any

from toolcrib.access import PATHS, Access, Reach
from toolcrib.dataclass import dataclass, field, replace
from toolcrib.effect import Effect
from toolcrib.errors import as_tuple
from toolcrib.facts import Facts
from toolcrib.rules.command_patterns import CommandPattern
from toolcrib.rules.host_patterns import check_host
from toolcrib.rules.keys import KEYS
from toolcrib.rules.match import NO, PARTLY, YES, MatchLevel
from toolcrib.rules.path_patterns import PathPattern
from toolcrib.toolbox.policy import PolicyRequest, Verb

__all__ = ["Rule", "with_relative_paths"]


def _derived() -> Any:
    return field(init=False, repr=False, compare=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """A rule of a policy. It counts for a call if everything that it names holds; what it leaves out is not looked at.

    `tools` and `servers` are patterns of names. `paths` are matched for the ways in `reach` (for all ways to reach a
    path if that is empty), `commands` for commands whose words are known, `hosts` for connections. `arguments` maps
    the names of arguments to a pattern of a text, to a value, or to the same for the members of an object; an argument
    that a call leaves out is its default. With `tainted` true the rule counts only in a run that took in something
    from outside, with false only in other runs. `unsaid` names arguments, one of which must hold what the user did not
    write. `unless` are exceptions, written as rules whose verb is not looked at. A rule that `narrows` asks about
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
    # What follows from the fields above, by `KEYS`: functions, and the values that they are called with.
    tool_conditions: tuple[tuple[Callable[[Any, Facts], bool], Any], ...] = _derived()
    call_conditions: tuple[tuple[Callable[[Any, PolicyRequest, bool], bool], Any], ...] = _derived()
    access_patterns: tuple[tuple[tuple[Reach, ...], Callable[[Any, Access], MatchLevel], Any], ...] = (
        _derived()
    )

    def __post_init__(self) -> None:
        for name in LISTS:
            object.__setattr__(self, name, as_tuple(name, getattr(self, name)))
        for pattern in self.hosts:
            check_host(pattern)
        if self.verb is not Verb.ALLOW:  # a rule that forbids "rm" forbids "rm -r" too
            object.__setattr__(
                self, "commands", tuple(pattern.with_any_more_words() for pattern in self.commands)
            )
            object.__setattr__(self, "paths", tuple(pattern.in_either_form() for pattern in self.paths))
        named = [(key, value) for key in KEYS if not key.says_nothing(value := getattr(self, key.field))]
        derived: dict[str, tuple[Any, ...]] = {
            "tool_conditions": tuple((key.of_tool, value) for key, value in named if key.of_tool),
            "call_conditions": tuple((key.of_call, value) for key, value in named if key.of_call),
            "access_patterns": tuple(
                (key.reaches, key.of_access, value) for key, value in named if key.of_access
            ),
        }
        for name, found in derived.items():
            object.__setattr__(self, name, found)

    # What the rule looks at

    @property
    def names_accesses(self) -> bool:
        """Whether the rule itself has conditions on what a call reaches."""
        return bool(self.access_patterns or self.reach)

    @property
    def needs_accesses(self) -> bool:
        """Whether the rule or one of its exceptions has conditions on what a call reaches."""
        return self.names_accesses or any(other.needs_accesses for other in self.unless)

    @property
    def needs_provenance(self) -> bool:
        """Whether the rule or one of its exceptions looks at where the values of a call come from."""
        named = any(key.provenance and not key.says_nothing(getattr(self, key.field)) for key in KEYS)
        return named or any(other.needs_provenance for other in self.unless)

    @property
    def may_deny_paths(self) -> bool:
        """Whether the rule, if it denies, may take files away from a call that runs."""
        named = (self,) if self.names_accesses else self.unless
        return any(rule.paths or rule.reach.intersection(PATHS) for rule in named)

    def names(self, reach: Reach) -> bool:
        """Whether the rule has conditions on what is reached in this way: on paths, on commands, or on hosts.

        A rule about reading does have a condition on a written file, which does not match.
        """
        alike = PATHS if reach in PATHS else (reach,)
        return not self.reach.isdisjoint(alike) or any(reach in ways for ways, _, _ in self.access_patterns)

    def may_forbid(self, access: Access) -> bool:
        """Whether the rule, if it denies or asks, may concern an access, itself or through an exception."""
        return self.names_accesses or any(other.names(access.reach) for other in self.unless)

    # Whether it counts for a call, whatever that reaches

    def is_about_tool(self, facts: Facts) -> bool:
        """Whether the rule counts for calls of a tool."""
        return all(holds(value, facts) for holds, value in self.tool_conditions)

    @property
    def _is_about_calls_within(self) -> bool:
        """Whether the rule, by the effect that it names, is about the calls that a call makes and not about itself."""
        return bool(self.effects) and not (self.tools or self.arguments or self.unsaid)

    def denies_every_call(self, facts: Facts) -> bool:
        """Whether the rule, if it denies, denies every call of a tool."""
        return (
            not (self.call_conditions or self.names_accesses)
            and self.is_about_tool(facts)
            and not any(other.is_about_tool(facts) for other in self.unless)
        )

    def counts_for(self, request: PolicyRequest) -> bool:
        """Whether the rule counts for a call."""
        return self.is_about_tool(request.facts) and self.conditions_hold(request)

    def conditions_hold(self, request: PolicyRequest) -> bool:
        """The same for a call of a tool that the rule is known to be about."""
        any_item = self.verb is not Verb.ALLOW
        for holds, value in self.call_conditions:
            if not holds(value, request, any_item):
                return False
        return not any(not other.names_accesses and other.counts_for(request) for other in self.unless)

    # How far it matches what the call reaches

    def match(self, access: Access, request: PolicyRequest) -> MatchLevel:
        """How far the rule matches an access, exceptions left out."""
        found = self._match_without_exceptions(access)
        if found is not NO and self.verb is not Verb.ALLOW:
            for other in self.unless:
                if other.names_accesses and other.counts_for(request):
                    found = min(found, _REST[other.match(access, request)])
        return found

    def _match_without_exceptions(self, access: Access) -> MatchLevel:
        if self.reach and access.reach not in self.reach:
            return NO
        found: MatchLevel | None = None
        for reaches, match, patterns in self.access_patterns:
            if access.reach in reaches:
                matched = match(patterns, access)
                found = matched if found is None else min(found, matched)
        if found is not None:
            return found
        # A hint is another form of a listed command, which a rule about all commands matches already.
        if self.access_patterns or access.hint:
            return NO
        return PARTLY if access.reach is Reach.CONNECT and access.subtree else YES

    def match_call(self, request: PolicyRequest, accesses: Sequence[Access] | None) -> MatchLevel:
        """How far the rule, if it denies or asks, matches a call of a tool that it is about."""
        if not self.conditions_hold(request) or (request.delegated and self._is_about_calls_within):
            return NO
        if not self.names_accesses:
            accesses = self._named_by_exceptions(accesses or ())
            if not accesses:
                return YES
        elif accesses is None:  # a tool that does not say what it reaches may reach anything
            changes = request.facts.effect is not Effect.READ and not request.delegated
            return PARTLY if changes or self.tools else NO
        return max((self._match_unfiltered(access, request) for access in accesses), default=NO)

    def decides_on(self, accesses: Sequence[Access]) -> Sequence[Access]:
        """The accesses of a call on which it depends whether the rule matches.

        If the rule itself has no condition on accesses, these are the ones that its exceptions are about; if the call
        has none of these, all of its accesses.
        """
        return accesses if self.names_accesses else self._named_by_exceptions(accesses) or accesses

    def _named_by_exceptions(self, accesses: Sequence[Access]) -> Sequence[Access]:
        return [
            one for one in accesses if not one.hint and any(other.names(one.reach) for other in self.unless)
        ]

    def _match_unfiltered(self, access: Access, request: PolicyRequest) -> MatchLevel:
        """The same as `match`; but what a tool leaves out of its search by itself does not count, nor do commands that
        are listed in hints."""
        if access.hinted and self.commands:
            return NO
        found = self.match(access, request)
        return NO if found is PARTLY and access.filtered and self.verb is Verb.DENY else found

    def may_be_excepted(self, request: PolicyRequest, accesses: Sequence[Access] | None) -> bool:
        """Whether an exception may match a call; an allow rule does not allow such a call."""
        counting = [other for other in self.unless if other.names_accesses and other.counts_for(request)]
        return any(accesses is None or any(o.match(one, request) for one in accesses) for o in counting)

    def written(self) -> dict[str, Any]:
        """What the rule is about, as JSON data under the names of the TOML keys."""
        values = {key.name: (key, getattr(self, key.field)) for key in KEYS}
        data = {name: key.write(value) for name, (key, value) in values.items() if value or value is False}
        if self.unless:
            data["except"] = [other.written() for other in self.unless]
        return data

    @property
    def words(self) -> str:
        """The word "rule" and the rule's name, or its name alone if that begins with "rule"."""
        return str(self) if str(self).startswith("rule ") else f"rule {self}"

    def __str__(self) -> str:
        return f"{self.name or self.verb.value}{f' ({self.source})' if self.source else ''}"


_REST: dict[MatchLevel, MatchLevel] = {NO: YES, PARTLY: PARTLY, YES: NO}
LISTS = tuple(item.name for item in fields(Rule) if item.default == ())


def with_relative_paths(rule: Rule, roots: Sequence[str]) -> Rule:
    """A rule whose absolute paths also match the files below some folders by their relative names."""
    added = [inner for pattern in rule.paths for root in roots for inner in pattern.relative_to(root)]
    unless = tuple(with_relative_paths(other, roots) for other in rule.unless)
    return replace(rule, paths=(*rule.paths, *added), unless=unless) if added or unless else rule
