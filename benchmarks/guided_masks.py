"""What a local guide costs beside the engine that it stands on: compiling, one mask, one token, a fresh session.

    python benchmarks/guided_masks.py

llguidance is driven twice over the same vocabulary, by a `LocalGuide` and bare; xgrammar too, where it is installed.
CPU time: the median over the tokens of random answers for masks and tokens, the best of several compilations. What is
beyond the engine in "compile" is reading the constraint, lowering it, and the schema's own validator.
"""

from __future__ import annotations

import random
import statistics
import sys
import time
from collections.abc import Callable
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "src")]

from tests.guided_constraints import CONSTRAINTS  # noqa: E402
from tests.vocabularies import byte_vocabulary, trained_vocabulary  # noqa: E402

from toolcrib.guided.local import LocalGuide, Vocabulary  # noqa: E402
from toolcrib.guided.lower import lower  # noqa: E402

KINDS = ("choice", "regex", "json", "sql", "merged tools")
ROUNDS = 7
TOKENS = 400


def best(work: Callable[[], Any]) -> float:
    """CPU milliseconds of the fastest round."""
    found: list[float] = []
    for _ in range(ROUNDS):
        begun = time.process_time_ns()
        work()
        found.append((time.process_time_ns() - begun) / 1e6)
    return min(found)


def stepped(start: Callable[[], Any], mask: Any, accept: Any, vocabulary: Vocabulary) -> tuple[float, float]:
    """CPU microseconds of a mask and of a token, along random answers; the median."""
    chance, masks, tokens = random.Random(3), list[float](), list[float]()
    state = start()
    while len(masks) < TOKENS:
        begun = time.process_time_ns()
        bits = mask(state)
        masks.append((time.process_time_ns() - begun) / 1e3)
        allowed = [number for number in range(vocabulary.size) if bits[number >> 3] >> (number & 7) & 1]
        token = chance.choice(allowed)
        if token in vocabulary.ends:
            state = start()
            continue
        begun = time.process_time_ns()
        accept(state, token)
        tokens.append((time.process_time_ns() - begun) / 1e3)
    return statistics.median(masks), statistics.median(tokens)


def main() -> None:
    import llguidance

    from toolcrib.guided.local.llguidance_engine import LlguidanceEngine, tokenizer_of

    for name, vocabulary in (("257 bytes", byte_vocabulary()), ("BPE of 4,096", trained_vocabulary())):
        tokenizer = tokenizer_of(vocabulary, llguidance)
        print(
            f"\n{name}\n{'constraint':14}{'':14}{'compile ms':>12}{'mask us':>10}{'token us':>10}{'session us':>12}"
        )
        for kind in KINDS:
            constraint = CONSTRAINTS[kind]
            guide = LocalGuide(constraint, tokenizer)
            grammar = LlguidanceEngine(tokenizer)._grammar(lower(constraint, "local").fields)

            def bare_made(grammar: str = grammar, tokenizer: Any = tokenizer) -> Any:
                return llguidance.LLMatcher(tokenizer, grammar, log_level=0)

            def ours_made(constraint: Any = constraint, tokenizer: Any = tokenizer) -> Any:
                return LocalGuide(constraint, tokenizer)

            kept = bare_made()
            bare = stepped(
                lambda kept=kept: kept.deep_copy(),
                lambda matcher: matcher.compute_bitmask(),
                lambda matcher, token: matcher.try_consume_tokens([token]),
                vocabulary,
            )
            ours = stepped(
                guide.session,
                lambda session: session.mask(),
                lambda session, token: session.accept(token),
                vocabulary,
            )
            sessions = [
                best(lambda make=make: [make() for _ in range(100)]) * 10
                for make in (guide.session, kept.deep_copy)
            ]
            for who, made, steps, fresh in (
                ("LocalGuide", ours_made, ours, sessions[0]),
                ("llguidance", bare_made, bare, sessions[1]),
            ):
                print(f"{kind:14}{who:14}{best(made):12.2f}{steps[0]:10.1f}{steps[1]:10.1f}{fresh:12.1f}")
            if find_spec("xgrammar"):
                other = LocalGuide(constraint, vocabulary, backend="xgrammar")
                steps = stepped(
                    other.session, lambda session: session.mask(), lambda s, t: s.accept(t), vocabulary
                )
                made = best(partial(LocalGuide, constraint, vocabulary, backend="xgrammar"))
                print(f"{kind:14}{'(xgrammar)':14}{made:12.2f}{steps[0]:10.1f}{steps[1]:10.1f}")


if __name__ == "__main__":
    main()
