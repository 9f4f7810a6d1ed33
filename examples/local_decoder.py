"""A local decoder that cannot go wrong: a model of twenty lines, held to a schema, a choice and a grammar.

The model knows nothing but which letters follow each other in English; a real one only has better logits. What it
writes is of the form all the same. Needs `pip install "toolcrib[guided]"`; no PyTorch, no network.
"""

import importlib.util
import math
import random
import sys
from collections import Counter
from typing import Any, Literal

from pydantic import BaseModel, Field

from toolcrib.guided import Choice, Grammar
from toolcrib.guided.local import LocalGuide, Vocabulary

TEXT = (
    "the invoice was sent on monday and paid in full; the second one is late, and the customer wrote that "
    "it never came. please look it up, send it again and tell them that no fee is due. " * 3
)
MOST = 400  # tokens of an answer


class Ticket(BaseModel):
    """What a person wants."""

    subject: str = Field(max_length=40)
    urgency: Literal["low", "normal", "high"]
    days: int = Field(ge=0, le=30)


class LetterModel:
    """Logits for the next byte, from the pairs of letters that it has seen."""

    def __init__(self, text: str) -> None:
        self.pairs = Counter(zip(text.encode(), text.encode()[1:], strict=False))

    def logits(self, written: bytes) -> list[float]:
        last = written[-1] if written else ord(" ")
        return [math.log(self.pairs.get((last, byte), 0) + 0.0001) for byte in range(256)] + [0.0]


def decode(guide: LocalGuide, vocabulary: Vocabulary, model: LetterModel, chance: random.Random) -> str:
    """One answer: forced tokens without asking the model, all others sampled among those that may come."""
    session, written = guide.session(), bytearray()
    for _ in range(MOST):
        forced = session.forced()
        if forced:
            token = forced[0]
        else:
            logits = model.logits(bytes(written))
            allowed = session.allowed_tokens()
            token = chance.choices(allowed, [math.exp(logits[number]) for number in allowed])[0]
        session.accept(token)
        if session.finished:
            return (written + vocabulary.tokens[token]).decode()
        written += vocabulary.tokens[token]
    raise RuntimeError("the answer did not end")


def main() -> None:
    if importlib.util.find_spec("llguidance") is None:
        print('skipped: this example needs llguidance (pip install "toolcrib[guided]")')
        sys.exit(0)
    vocabulary = Vocabulary([*(bytes([byte]) for byte in range(256)), b""], end=256)
    model, chance = LetterModel(TEXT), random.Random(11)
    constraints: dict[str, Any] = {
        "a schema": Ticket,
        "a choice": Choice("refund", "resend", "reject"),
        "a grammar": Grammar(
            'root ::= "SELECT " column ("," column){0,2} " FROM orders"\ncolumn ::= [a-z]{2,8}'
        ),
    }
    for name, constraint in constraints.items():
        guide = LocalGuide(constraint, vocabulary, compact=True)
        text = decode(guide, vocabulary, model, chance)
        value = guide.lowered.parse(text).value
        wrong = guide.lowered.validate(value)
        print(f"{name} ({guide.lowered.guarantee}): {text}{' WRONG' if wrong else ''}")


if __name__ == "__main__":
    main()
