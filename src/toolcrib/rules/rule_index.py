"""Finds the few of many rules that a call can concern, by one look at its paths and first words."""

from __future__ import annotations

import re
from collections.abc import Sequence

from toolcrib.access import PATHS, UNKNOWN_WORD, Access, Reach
from toolcrib.rules.comparable_paths import comparable_path
from toolcrib.rules.name_patterns import WILDCARD
from toolcrib.rules.rule import Rule

__all__ = ["RuleIndex"]

RUN, CONNECT = Reach.RUN, Reach.CONNECT  # looked up once: an enum's members are slow to reach on 3.11


# For which calls a rule can be skipped: those that reach none of its paths, run no command that begins with one of its
# first words, or connect to no host.
WITHOUT_PATH, WITHOUT_WORD, WITHOUT_HOST, NEVER = "without path", "without word", "without host", "never"


class RuleIndex:
    """Rules about the same tool, in their order. `needs_accesses`: one of them looks at what a call reaches."""

    __slots__ = ("_any_path", "_first_words", "_rules_never_skipped", "_skips", "needs_accesses", "rules")

    def __init__(self, rules: Sequence[Rule]) -> None:
        self.rules = tuple(rules)
        self.needs_accesses = any(rule.needs_accesses for rule in self.rules)
        self._skips = [_skip(rule) for rule in self.rules]
        about_paths = self._skipped_if(WITHOUT_PATH)
        expressions = dict.fromkeys(pattern.expression for rule in about_paths for pattern in rule.paths)
        any_path = "|".join(f"(?:{expression})" for expression in expressions)
        self._any_path = re.compile(any_path).match if about_paths else None
        about_words = self._skipped_if(WITHOUT_WORD)
        self._first_words = {pattern.words[0] for rule in about_words for pattern in rule.commands}
        self._rules_never_skipped = self._skipped_if(NEVER)

    def candidates(self, accesses: Sequence[Access] | None, *, skip_filtered: bool = False) -> Sequence[Rule]:
        """The rules that can match an access. `skip_filtered`: a part of a filtered subtree does not count."""
        if accesses is None or len(self._rules_never_skipped) == len(self.rules):
            return self.rules
        paths = self._any_path is not None and any(self._may_be_path(one, skip_filtered) for one in accesses)
        words = bool(self._first_words) and any(self._may_be_word(one) for one in accesses)
        hosts = any(one.reach is CONNECT for one in accesses)
        if not paths and not words and not hosts:
            return self._rules_never_skipped
        wanted = {NEVER: True, WITHOUT_PATH: paths, WITHOUT_WORD: words, WITHOUT_HOST: hosts}
        return [rule for rule, skip in zip(self.rules, self._skips, strict=True) if wanted[skip]]

    def _skipped_if(self, wanted: str) -> tuple[Rule, ...]:
        return tuple(rule for rule, skip in zip(self.rules, self._skips, strict=True) if skip == wanted)

    def _may_be_path(self, access: Access, skip_filtered: bool) -> bool:
        if access.reach not in PATHS or self._any_path is None:
            return False
        if access.subtree and not (skip_filtered and access.filtered):
            return True
        return self._any_path(comparable_path(access.target)) is not None

    def _may_be_word(self, access: Access) -> bool:
        if access.reach is not RUN:
            return False
        return not access.argv or access.argv[0] == UNKNOWN_WORD or access.argv[0] in self._first_words


def _skip(rule: Rule) -> str:
    if len(rule.access_patterns) != 1:
        return NEVER
    if rule.paths:
        return WITHOUT_PATH
    if rule.hosts:
        return WITHOUT_HOST
    plain = all(pattern.words and not WILDCARD.search(pattern.words[0]) for pattern in rule.commands)
    return WITHOUT_WORD if rule.commands and plain else NEVER
