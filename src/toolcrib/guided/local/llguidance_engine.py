"""Masks by llguidance: regular expressions, Lark grammars, JSON Schema, and free text with tags."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final

from toolcrib.guided.local.engine import GuideError
from toolcrib.guided.local.vocabulary import Vocabulary

__all__ = ["LlguidanceEngine", "tokenizer_of"]

WHITESPACE: Final = r"[\x20\x0A\x09]{1,8}"  # unbounded, models write space until their tokens are used up
LIMIT: Final = 300  # characters of an engine's words that a person is shown
MISSING: Final = 'local guides need llguidance: pip install "toolcrib[guided]"'


class LlguidanceEngine:
    """llguidance over one vocabulary, or over an `LLTokenizer` that was made before."""

    target = "local"

    def __init__(self, tokenizer: Any, *, compact: bool = False) -> None:
        try:
            import llguidance
        except ImportError:
            raise GuideError(MISSING) from None
        self._llg: Any = llguidance
        made = isinstance(tokenizer, llguidance.LLTokenizer)
        self._tokenizer: Any = tokenizer if made else tokenizer_of(_vocabulary(tokenizer), llguidance)
        self.vocabulary_size: int = self._tokenizer.vocab_size
        self.ends: tuple[int, ...] = tuple(self._tokenizer.eos_tokens)
        self._options: dict[str, Any] = (
            {"whitespace_flexible": False} if compact else {"whitespace_pattern": WHITESPACE}
        )

    def compile(self, fields: Mapping[str, Any]) -> _Compiled:
        matcher = self._llg.LLMatcher(self._tokenizer, self._grammar(fields), log_level=0)
        if matcher.is_error():
            raise GuideError(f"llguidance cannot compile this: {_one_line(matcher.get_error())}")
        return _Compiled(matcher)

    def _grammar(self, fields: Mapping[str, Any]) -> str:
        make = self._llg.LLMatcher
        if "json_schema" in fields:
            # Places that a `oneOf` cannot tell apart were made `anyOf` when lowering.
            grammar: str = make.grammar_from_json_schema(fields["json_schema"], overrides=self._options)
        elif "regex" in fields:
            grammar = make.grammar_from_regex(fields["regex"])
        elif "lark" in fields:
            grammar = make.grammar_from_lark(fields["lark"])
        else:
            grammar = make.grammar_from_lark(self._tags(fields["tags"]))
        return grammar

    def _tags(self, tags: Mapping[str, Any]) -> str:
        """Free text up to a trigger, the rest of a tag that begins with it, and so on."""
        rules: list[str] = []
        for number, (begin, schema, end) in enumerate(tags["tags"]):
            trigger = next(trigger for trigger in tags["triggers"] if begin.startswith(trigger))
            held = json.dumps({**schema, "x-guidance": self._options})
            rest = [_text(begin.removeprefix(trigger)), f"%json {held}", _text(end)]
            rules.append(f"begin_{number}[lazy]: TEXT {_text(trigger)}")
            rules.append(f"tag_{number}: begin_{number} {' '.join(part for part in rest if part)}")
        options = " | ".join(f"tag_{number}" for number in range(len(tags["tags"])))
        times = {(True, True): "+", (False, True): "*", (True, False): "", (False, False): "?"}
        several = tags["several"]
        # After the only tag nothing may follow: another trigger could stand in it.
        whole = f"({options}){times[tags['at_least_one'], several]}"
        start = f"start: {whole} TEXT" if several else f"start: {whole} | TEXT"
        start = start if several or not tags["at_least_one"] else f"start: {whole}"
        return "\n".join(["%llguidance {}", start, "TEXT: /(.|\\n)*/", *rules])


def _text(text: str) -> str:
    return json.dumps(text, ensure_ascii=False) if text else ""


def _one_line(words: str) -> str:
    return " ".join(words.split())[:LIMIT]


def _vocabulary(tokenizer: Any) -> Vocabulary:
    return tokenizer if isinstance(tokenizer, Vocabulary) else Vocabulary.of(tokenizer)


class _Wrapped:
    """What llguidance asks of a tokenizer."""

    bos_token_id = None

    def __init__(self, vocabulary: Vocabulary) -> None:
        self._vocabulary = vocabulary
        special = {*vocabulary.special, *vocabulary.ends}
        self.eos_token_id = vocabulary.ends[0]
        self.special_token_ids = sorted(special)
        # Special tokens have no text that an answer could hold; llguidance knows them by their first byte.
        self.tokens = [
            b"\xff<%d>" % number if number in special else token
            for number, token in enumerate(vocabulary.tokens)
        ]

    def __call__(self, text: bytes | str) -> list[int]:
        return self._vocabulary.split(text.encode() if isinstance(text, str) else text)


def tokenizer_of(vocabulary: Vocabulary, llg: Any) -> Any:
    return llg.LLTokenizer(llg.TokenizerWrapper(_Wrapped(vocabulary)), eos_token=[*vocabulary.ends])


class _Compiled:
    def __init__(self, matcher: Any) -> None:
        self._matcher = matcher

    def start(self) -> _Matcher:
        return _Matcher(self._matcher.deep_copy())


class _Matcher:
    def __init__(self, matcher: Any) -> None:
        self._matcher = matcher

    def mask(self) -> bytes:
        found: bytes = self._matcher.compute_bitmask()
        self._check()
        return found

    def accept(self, token: int) -> bool:
        taken: bool = self._matcher.try_consume_tokens([token]) == 1
        self._check()
        return taken

    def forced(self) -> list[int]:
        return [*self._matcher.compute_ff_tokens()]

    def complete(self) -> bool:
        return bool(self._matcher.is_accepting())

    def stopped(self) -> bool:
        return bool(self._matcher.is_stopped())

    def rollback(self, count: int) -> None:
        if not self._matcher.rollback(count):
            raise GuideError(f"llguidance cannot take back {count} tokens")

    def fork(self) -> _Matcher:
        return _Matcher(self._matcher.deep_copy())

    def _check(self) -> None:
        if self._matcher.is_error():
            raise GuideError(f"llguidance gave up: {_one_line(self._matcher.get_error())}")
