"""How likely each label was, by the log-probabilities of the tokens that were and could have been written."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from toolcrib.messages import TokenLogprob

__all__ = ["label_probabilities"]


def label_probabilities(
    tokens: Sequence[TokenLogprob], labels: Sequence[str], written: str
) -> tuple[dict[str, float], float]:
    """The probability of each label, and the share that belongs to none; nothing where the tokens do not show it.

    The tokens are those of the whole answer, in which the label `written` stands, bare or in JSON. At each written
    token, each alternative token counts for the label that continues with it, if exactly one does; otherwise it
    counts as missing. So a label's probability is never overstated.

    >>> from toolcrib.messages import TokenLogprob
    >>> import math
    >>> seen = [TokenLogprob("ham", math.log(0.7), (("ham", math.log(0.7)), ("spam", math.log(0.2))))]
    >>> found, missing = label_probabilities(seen, ["spam", "ham"], "ham")
    >>> {label: round(share, 3) for label, share in found.items()}, round(missing, 3)
    ({'spam': 0.2, 'ham': 0.7}, 0.1)
    """
    start = _start(tokens, written)
    if start is None:
        return {}, 0.0
    found = dict.fromkeys(labels, 0.0)
    reached, text, at = 1.0, "", 0
    inner = {label: json.dumps(label, ensure_ascii=False)[1:-1] for label in labels}
    for token in tokens:
        begins, at = at, at + len(token.token)
        if at <= start:
            continue
        before = token.token[: max(0, start - begins)]  # what stands before the label in its first token
        for other, logprob in token.top:
            if other == token.token or not other.startswith(before):
                continue
            label = _only(text + other[len(before) :], labels, inner)
            if label is not None:
                found[label] += reached * math.exp(logprob)
        reached *= math.exp(token.logprob)
        text += token.token[len(before) :]
        if _only(text, labels, inner) == written:
            found[written] += reached
            break
    else:
        if text.strip() != inner[written]:
            return {}, 0.0
        found[written] += reached
    return found, max(0.0, 1.0 - sum(found.values()))


def _start(tokens: Sequence[TokenLogprob], written: str) -> int | None:
    """Where the label begins in the answer: after the last quotation mark of JSON, or where it stands alone."""
    whole = "".join(token.token for token in tokens)
    quoted = json.dumps(written, ensure_ascii=False)
    at = whole.rfind(quoted)
    if at >= 0:
        return at + 1
    bare = whole.strip()
    return whole.index(bare) if bare and bare == written else None


def _only(text: str, labels: Sequence[str], inner: dict[str, str]) -> str | None:
    """The one label that a text begins, or that the text begins with; None if there is none, or more than one."""
    begun = [label for label in labels if inner[label].startswith(text)]
    whole = [label for label in labels if text.startswith(inner[label])]
    if whole:  # "a" and "ab": the longest that is written in full counts, if no longer one may still come
        longest = max(whole, key=len)
        longer = [label for label in begun if label != longest]
        return None if longer else longest
    return begun[0] if len(begun) == 1 and text else None
