"""Finds the few of many rules that a call can concern, by one look at its paths and first words."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence

from toolcrib.access import PATHS, UNKNOWN_WORD, Access, Reach
from toolcrib.rules.comparable_paths import MAX_CACHED, comparable_forms
from toolcrib.rules.name_patterns import WILDCARD
from toolcrib.rules.rule import Rule

__all__ = ["RuleIndex"]

RUN, CONNECT = Reach.RUN, Reach.CONNECT  # looked up once: an enum's members are slow to reach on 3.11
MAX_FOLDERS = 1_000  # folders for which the rules about something below them are cached


# For which calls a rule can be skipped: those that reach none of its paths, run no command that begins with one of its
# first words, or connect to no host.
WITHOUT_PATH, WITHOUT_WORD, WITHOUT_HOST, NEVER = "without path", "without word", "without host", "never"


class RuleIndex:
    """Rules about the same tool, in their order. `needs_accesses`: one of them looks at what a call reaches."""

    __slots__ = (
        "_about_hosts", "_about_no_access", "_about_paths", "_about_words", "_any_path", "_below", "_by_first_word",
        "_rules_never_skipped", "needs_accesses", "rules",
    )  # fmt: skip

    def __init__(self, rules: Sequence[Rule]) -> None:
        self.rules = tuple(rules)
        self.needs_accesses = any(rule.needs_accesses for rule in self.rules)
        skips = [_skip(rule) for rule in self.rules]
        self._about_paths, self._about_words, self._about_hosts, never = (
            [place for place, skip in enumerate(skips) if skip == wanted]
            for wanted in (WITHOUT_PATH, WITHOUT_WORD, WITHOUT_HOST, NEVER)
        )
        self._about_no_access = tuple(rule for rule in self.rules if not rule.names_accesses)
        self._rules_never_skipped = never, tuple(self.rules[place] for place in never)
        patterns = [pattern for place in self._about_paths for pattern in self.rules[place].paths]
        any_path = "|".join(
            f"(?:{expression})" for expression in dict.fromkeys(p.expression for p in patterns)
        )
        self._any_path = re.compile(any_path).match if patterns else None
        self._below: dict[tuple[str, str], list[int]] = {}
        self._by_first_word: dict[str, list[int]] = {}
        for place in self._about_words:
            for word in {pattern.words[0] for pattern in self.rules[place].commands}:
                self._by_first_word.setdefault(word, []).append(place)

    def candidates(self, accesses: Sequence[Access] | None, *, skip_filtered: bool = False) -> Sequence[Rule]:
        """The rules that can match an access. `skip_filtered`: a part of a filtered subtree does not count."""
        return self._found(accesses, lambda one: one.subtree and not (skip_filtered and one.filtered))

    def sure_candidates(self, accesses: Sequence[Access] | None) -> Sequence[Rule]:
        """The rules that can match all of an access, and not only a part of a subtree.

        No rule with conditions on accesses can surely match a call whose accesses are unknown.
        """
        if accesses is None:
            return self._about_no_access
        return self._found(accesses, lambda one: False)

    def _found(self, accesses: Sequence[Access] | None, by_parts: Callable[[Access], bool]) -> Sequence[Rule]:
        """The rules about the accesses; those that are `by_parts` count with everything below them."""
        always, rules = self._rules_never_skipped
        if accesses is None or len(always) == len(self.rules):
            return self.rules
        places: set[int] = set()
        for one in accesses:
            if one.reach in PATHS:
                if self._any_path is None:
                    continue
                if by_parts(one):
                    places.update(self._about_below(one.target, one.pattern))
                elif any(map(self._any_path, comparable_forms(one.target))):
                    places.update(self._about_paths)
            elif one.reach is RUN:
                known = bool(one.argv) and one.argv[0] != UNKNOWN_WORD
                places.update(self._by_first_word.get(one.argv[0], ()) if known else self._about_words)
            elif one.reach is CONNECT:
                places.update(self._about_hosts)
        if not places:
            return rules
        return [self.rules[place] for place in sorted(places.union(always))]

    def _about_below(self, folder: str, pattern: str) -> Iterable[int]:
        """The rules about paths that may lie below a folder and match another pattern there."""
        if len(folder) + len(pattern) > MAX_CACHED:
            return self._about_paths
        found = self._below.get((folder, pattern))
        if found is None:
            if len(self._below) >= MAX_FOLDERS:
                self._below.clear()
            found = self._below[folder, pattern] = [
                place
                for place in self._about_paths
                if any(path.may_match_below(folder, pattern) for path in self.rules[place].paths)
            ]
        return found


def _skip(rule: Rule) -> str:
    if len(rule.access_patterns) != 1:
        return NEVER
    if rule.paths:
        return WITHOUT_PATH
    if rule.hosts:
        return WITHOUT_HOST
    plain = all(pattern.words and not WILDCARD.search(pattern.words[0]) for pattern in rule.commands)
    return WITHOUT_WORD if rule.commands and plain else NEVER
