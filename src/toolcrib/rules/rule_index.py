"""Which of many rules a call can concern at all: one look at its paths and first words, not one per rule."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

from toolcrib.access import PATHS, UNKNOWN_WORD, Access, Reach
from toolcrib.rules.patterns import SPECIAL, compared

if TYPE_CHECKING:
    from toolcrib.rules.rule import Rule

RUN, CONNECT = Reach.RUN, Reach.CONNECT  # looked up once: an enum's members are slow to reach on 3.11
BY_PATH, BY_WORD, BY_HOST, ALWAYS = "path", "word", "host", "always"


class RuleIndex:
    """Rules in their order, those about the same tool."""

    __slots__ = ("_always", "_kinds", "_match", "_words", "looks", "rules")

    def __init__(self, rules: Sequence[Rule]) -> None:
        self.rules = tuple(rules)
        self._kinds = [_kind(rule) for rule in self.rules]
        of_paths = [rule for rule, kind in zip(self.rules, self._kinds, strict=True) if kind == BY_PATH]
        expressions = dict.fromkeys(pattern.expression for rule in of_paths for pattern in rule.paths)
        self._match = re.compile("|".join(f"(?:{one})" for one in expressions)).match if of_paths else None
        self._words = {
            pattern.words[0]
            for rule, kind in zip(self.rules, self._kinds, strict=True)
            if kind == BY_WORD
            for pattern in rule.commands
        }
        self._always = tuple(
            rule for rule, kind in zip(self.rules, self._kinds, strict=True) if kind == ALWAYS
        )
        self.looks = any(rule.looks for rule in self.rules)

    def concerned(self, accesses: Sequence[Access] | None, *, filters: bool = False) -> Sequence[Rule]:
        """The rules that can mean one of the accesses. `filters`: a part of a filtered subtree does not count."""
        if accesses is None or len(self._always) == len(self.rules):
            return self.rules
        paths = self._match is not None and any(self._may_be_path(one, filters) for one in accesses)
        words = bool(self._words) and any(self._may_be_word(one) for one in accesses)
        hosts = any(one.reach is CONNECT for one in accesses)
        if not paths and not words and not hosts:
            return self._always
        hit = {ALWAYS: True, BY_PATH: paths, BY_WORD: words, BY_HOST: hosts}
        return [rule for rule, kind in zip(self.rules, self._kinds, strict=True) if hit[kind]]

    def _may_be_path(self, access: Access, filters: bool) -> bool:
        if access.reach not in PATHS or self._match is None:
            return False
        if access.subtree and not (filters and access.filtered):
            return True
        return self._match(compared(access.target)) is not None

    def _may_be_word(self, access: Access) -> bool:
        if access.reach is not RUN:
            return False
        return not access.argv or access.argv[0] == UNKNOWN_WORD or access.argv[0] in self._words


def _kind(rule: Rule) -> str:
    """By what a rule can be passed over."""
    if rule.paths and not (rule.commands or rule.hosts):
        return BY_PATH
    plain = all(pattern.words and not SPECIAL.search(pattern.words[0]) for pattern in rule.commands)
    if rule.hosts and not (rule.paths or rule.commands):
        return BY_HOST
    return BY_WORD if rule.commands and plain and not (rule.paths or rule.hosts) else ALWAYS
