"""The bytes of each token of a tokenizer that writes its tokens as text."""

from __future__ import annotations

import re
from functools import cache
from typing import Any, Final

__all__ = ["read_tokenizer"]

SPACE: Final = "\u2581"  # SentencePiece's mark for a space
BYTE: Final = re.compile(r"<0x([0-9A-Fa-f]{2})>")


def read_tokenizer(tokenizer: Any) -> dict[str, Any]:
    """The fields of a `Vocabulary`: tokens, end, special, encode."""
    if hasattr(tokenizer, "get_vocab") and hasattr(tokenizer, "all_special_ids"):  # transformers
        if tokenizer.eos_token_id is None:
            raise ValueError("the tokenizer names no token that ends an answer (eos_token_id)")
        added = {
            number: str(token)
            for number, token in tokenizer.added_tokens_decoder.items()
            if number not in tokenizer.all_special_ids
        }
        backend = getattr(tokenizer, "backend_tokenizer", None)
        tokens = _tokens(tokenizer.get_vocab(), added)
        special = tuple(number for number in tokenizer.all_special_ids if number != tokenizer.eos_token_id)

        def encode(text: bytes) -> list[int]:
            words = text.decode("utf-8", errors="replace")
            found = (
                backend.encode(words, add_special_tokens=False).ids
                if backend is not None
                else tokenizer.encode(words, add_special_tokens=False)
            )
            return [*found]

        return {"tokens": tokens, "end": tokenizer.eos_token_id, "special": special, "encode": encode}
    raise TypeError(
        "expected a Vocabulary, an LLTokenizer, or a tokenizer of transformers, "
        f"got {type(tokenizer).__name__}"
    )


def _tokens(ids: dict[str, int], added: dict[int, str]) -> list[bytes]:
    by_id = {number: text for text, number in ids.items()}
    texts = [text for number, text in by_id.items() if number not in added]
    byte_level = _is_byte_level(texts)
    found: list[bytes] = []
    for number in range(max(by_id) + 1):
        if number in added:
            found.append(added[number].encode())
        else:
            found.append(_bytes_of(by_id.get(number, ""), byte_level))
    return found


def _is_byte_level(texts: list[str]) -> bool:
    """Whether the tokens are in the alphabet of GPT-2: its letters for space and newline stand in some of them."""
    return any("\u0120" in text for text in texts) or any("\u010a" in text for text in texts)


def _bytes_of(text: str, byte_level: bool) -> bytes:
    if byte_level:
        alphabet = _alphabet()
        if all(char in alphabet for char in text):
            return bytes(alphabet[char] for char in text)
        return text.encode()
    known = BYTE.fullmatch(text)
    return bytes([int(known[1], 16)]) if known else text.replace(SPACE, " ").encode()


@cache
def _alphabet() -> dict[str, int]:
    """The letter of each byte in GPT-2's BPE: printable bytes are themselves, others follow after 255 in order."""
    printable = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    others = [byte for byte in range(256) if byte not in printable]
    letters = {chr(byte): byte for byte in printable}
    return letters | {chr(256 + number): byte for number, byte in enumerate(others)}
