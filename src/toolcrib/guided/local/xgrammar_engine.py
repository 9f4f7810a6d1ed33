"""Masks by xgrammar, which brings PyTorch. What it would silently drop is taken out when lowering, and listed."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from importlib import import_module
from typing import Any, Final

from toolcrib.guided.local.engine import GuideError
from toolcrib.guided.local.vocabulary import Vocabulary

__all__ = ["XgrammarEngine"]

LIMIT: Final = 300  # characters of an engine's words that a person is shown
SURROGATE: Final = re.compile(b"\xed[\xa0-\xbf]")
HALF: Final = re.compile(b"[\xa0-\xbf]")
MOST_SPACE: Final = 8  # characters between two parts of JSON
MISSING: Final = "this backend needs xgrammar, which brings PyTorch: pip install xgrammar"


class XgrammarEngine:
    """xgrammar over one vocabulary."""

    target = "local-xgrammar"

    def __init__(self, tokenizer: Any, *, compact: bool = False) -> None:
        try:
            self._xgr: Any = import_module("xgrammar")
        except ImportError:
            raise GuideError(MISSING) from None
        vocabulary = tokenizer if isinstance(tokenizer, Vocabulary) else Vocabulary.of(tokenizer)
        special = {*vocabulary.special, *vocabulary.ends}
        tokens = [b"" if number in special else token for number, token in enumerate(vocabulary.tokens)]
        info = self._xgr.TokenizerInfo(
            tokens, vocab_type=self._xgr.VocabType.RAW, stop_token_ids=[*vocabulary.ends]
        )
        self.vocabulary_size = vocabulary.size
        self.ends = vocabulary.ends
        self._vocabulary = vocabulary
        # xgrammar lets halves of surrogate pairs into strings, which are no UTF-8: 0xED, then a byte from 0xA0.
        self._clean = _bits(not SURROGATE.search(token) for token in tokens)
        self._after_ed = _bits(not HALF.match(token) for token in tokens)
        self._end_in_ed = frozenset(number for number, token in enumerate(tokens) if token.endswith(b"\xed"))
        self._compiler: Any = self._xgr.GrammarCompiler(info)
        self._options: dict[str, Any] = (
            {"any_whitespace": False, "separators": (",", ":")}
            if compact
            else {"any_whitespace": True, "max_whitespace_cnt": MOST_SPACE}
        )

    def compile(self, fields: Mapping[str, Any]) -> _Compiled:
        try:
            return _Compiled(self._made(fields), self)
        except Exception as problem:
            words = " ".join(str(problem).split())[:LIMIT]
            raise GuideError(f"xgrammar cannot compile this: {words}") from None

    def _made(self, fields: Mapping[str, Any]) -> Any:
        if "json_schema" in fields:
            written = json.dumps(fields["json_schema"])
            return self._compiler.compile_json_schema(written, strict_mode=False, **self._options)
        if "regex" in fields:
            return self._compiler.compile_regex(fields["regex"])
        if "grammar" in fields:
            return self._compiler.compile_grammar(fields["grammar"])
        return self._compiler.compile_structural_tag(fields["response_format"])

    def matcher(self, compiled: Any) -> Any:
        """A matcher of xgrammar that leaves the end of an answer to the session."""
        return self._xgr.GrammarMatcher(compiled)

    def mask_of(self, matcher: Any, last: int) -> bytes:
        """The mask of a matcher whose last token is `last`, -1 before the first."""
        bitmask = self._xgr.allocate_token_bitmask(1, self.vocabulary_size)
        matcher.fill_next_token_bitmask(bitmask)
        held: bytes = bitmask.numpy().tobytes()
        allowed = int.from_bytes(held, "little") & self._clean
        if last in self._end_in_ed:
            allowed &= self._after_ed
        if not allowed:
            raise GuideError("xgrammar gave up: no token of the vocabulary goes on here")
        return allowed.to_bytes(len(held), "little")

    def may_follow(self, token: int, last: int) -> bool:
        """Whether a token makes no half of a surrogate pair after another."""
        return bool(self._clean >> token & 1) and (
            last not in self._end_in_ed or bool(self._after_ed >> token & 1)
        )

    def split(self, text: str) -> list[int]:
        return self._vocabulary.split(text.encode())


class _Compiled:
    def __init__(self, compiled: Any, engine: XgrammarEngine) -> None:
        self._compiled = compiled
        self._engine = engine

    def start(self) -> _Matcher:
        return _Matcher(self._engine.matcher(self._compiled), self._engine)


class _Matcher:
    def __init__(self, matcher: Any, engine: XgrammarEngine, written: list[int] | None = None) -> None:
        self._matcher = matcher
        self._engine = engine
        self._written = written or []

    @property
    def _last(self) -> int:
        return self._written[-1] if self._written else -1

    def mask(self) -> bytes:
        return self._engine.mask_of(self._matcher, self._last)

    def accept(self, token: int) -> bool:
        taken = self._engine.may_follow(token, self._last) and bool(self._matcher.accept_token(token))
        if taken:
            self._written.append(token)
        return taken

    def forced(self) -> list[int]:
        return self._engine.split(self._matcher.find_jump_forward_string())

    def complete(self) -> bool:
        return bool(self._matcher.is_completed())

    def stopped(self) -> bool:
        """xgrammar says only whether the answer may end: whether more may follow stands in the mask."""
        if not self.complete():
            return False
        mask = bytearray(self.mask())
        for end in self._engine.ends:
            mask[end >> 3] &= ~(1 << (end & 7)) & 0xFF
        return not any(mask)

    def rollback(self, count: int) -> None:
        try:
            self._matcher.rollback(count)
        except Exception:
            raise GuideError(f"xgrammar cannot take back {count} tokens") from None
        del self._written[len(self._written) - count :]

    def fork(self) -> _Matcher:
        return _Matcher(self._matcher.fork(), self._engine, [*self._written])


def _bits(flags: Iterable[bool]) -> int:
    """A bit for each flag, the first one the lowest."""
    return int("".join("01"[flag] for flag in flags)[::-1], 2)
