"""Masks by xgrammar, which brings PyTorch. What it would silently drop is taken out when lowering, and listed."""

from __future__ import annotations

import json
from collections.abc import Mapping
from importlib import import_module
from typing import Any, Final

from toolcrib.guided.local.engine import GuideError
from toolcrib.guided.local.vocabulary import Vocabulary

__all__ = ["XgrammarEngine"]

LIMIT: Final = 300  # characters of an engine's words that a person is shown
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

    def mask_of(self, matcher: Any) -> bytes:
        bitmask = self._xgr.allocate_token_bitmask(1, self.vocabulary_size)
        matcher.fill_next_token_bitmask(bitmask)
        held: bytes = bitmask.numpy().tobytes()
        return held

    def split(self, text: str) -> list[int]:
        return self._vocabulary.split(text.encode())


class _Compiled:
    def __init__(self, compiled: Any, engine: XgrammarEngine) -> None:
        self._compiled = compiled
        self._engine = engine

    def start(self) -> _Matcher:
        return _Matcher(self._engine.matcher(self._compiled), self._engine)


class _Matcher:
    def __init__(self, matcher: Any, engine: XgrammarEngine) -> None:
        self._matcher = matcher
        self._engine = engine

    def mask(self) -> bytes:
        return self._engine.mask_of(self._matcher)

    def accept(self, token: int) -> bool:
        return bool(self._matcher.accept_token(token))

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

    def fork(self) -> _Matcher:
        return _Matcher(self._matcher.fork(), self._engine)
