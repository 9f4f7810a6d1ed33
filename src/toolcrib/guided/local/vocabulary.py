"""The tokens of a local model, whatever library its tokenizer comes from."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from toolcrib.dataclass import dataclass, field

__all__ = ["Vocabulary"]


@dataclass(frozen=True, slots=True, eq=False)
class Vocabulary:
    """The tokens of a model by their ids, as bytes; `end` is the token that ends an answer, or several.

    `special` are tokens that are no text: a guide never lets them be written. `encode` splits bytes into tokens as
    the model's tokenizer does; without it, the longest token is taken at each place.

    >>> from toolcrib.guided.local import Vocabulary
    >>> Vocabulary([bytes([n]) for n in range(256)] + [b""], end=256).size
    257
    """

    tokens: Sequence[bytes]
    end: int | tuple[int, ...]
    special: tuple[int, ...] = ()
    encode: Callable[[bytes], list[int]] | None = None
    _longest: dict[bytes, int] = field(init=False, repr=False, default_factory=lambda: dict[bytes, int]())
    _most: int = field(init=False, repr=False, default=1)

    def __post_init__(self) -> None:
        for end in self.ends:
            if not 0 <= end < len(self.tokens):
                raise ValueError(f"Vocabulary: the end {end} is no id of its {len(self.tokens)} tokens")
        skipped = {*self.special, *self.ends}
        self._longest.update(
            (token, number)
            for number, token in reversed([*enumerate(self.tokens)])
            if token and number not in skipped
        )
        object.__setattr__(self, "_most", max(map(len, self._longest), default=1))

    @property
    def size(self) -> int:
        return len(self.tokens)

    @property
    def ends(self) -> tuple[int, ...]:
        return (self.end,) if isinstance(self.end, int) else self.end

    def split(self, text: bytes) -> list[int]:
        """The tokens of bytes; what no token has is left out."""
        if self.encode is not None:
            return self.encode(text)
        found, at = list[int](), 0
        while at < len(text):
            for length in range(min(self._most, len(text) - at), 0, -1):
                token = self._longest.get(text[at : at + length])
                if token is not None:
                    found.append(token)
                    at += length
                    break
            else:
                at += 1
        return found

    @classmethod
    def of(cls, tokenizer: Any) -> Vocabulary:
        """The vocabulary of a tokenizer of Hugging Face `transformers` (fast or slow) or `tokenizers`.

        Tokens are read in the byte alphabet of GPT-2's BPE, or with SentencePiece's mark for a space and its byte
        tokens, as the tokenizer has them. TypeError for anything else.
        """
        from toolcrib.guided.local.token_bytes import read_tokenizer

        return cls(**read_tokenizer(tokenizer))
