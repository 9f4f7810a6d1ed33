"""A choice made likelier by `logit_bias`, for servers that take nothing better. It is never a guarantee."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from toolcrib.guided.constraints import Choice
from toolcrib.guided.lowered import Lowered
from toolcrib.guided.prompts import prompt_for
from toolcrib.guided.targets import target_named

__all__ = ["bias_choice"]

MOST: Final = 100  # the largest bias that servers take


def bias_choice(choice: Choice, target: str, encode: Callable[[str], Sequence[int]]) -> Lowered:
    """The fields that make the first token of each option likelier, and let the model write one token.

    `encode` gives the tokens of a text, as the model's tokenizer splits it. ValueError where two options begin with the
    same token, and for a server that takes no `logit_bias`; models that reason refuse it, whatever the server.

    >>> bias_choice(Choice("yes", "no"), "openai.chat", lambda text: [ord(text[0])]).fields
    {'logit_bias': {'121': 100, '110': 100}, 'max_completion_tokens': 1}
    """
    row = target_named(target)
    if not row.bias:
        raise ValueError(f"{target} takes no logit_bias")
    firsts: dict[int, str] = {}
    for option in choice.options:
        tokens = encode(option)
        if not tokens:
            raise ValueError(f"the tokenizer gives no token for the option {option!r}")
        if tokens[0] in firsts:
            raise ValueError(
                f"the options {firsts[tokens[0]]!r} and {option!r} begin with the same token, which no bias tells apart"
            )
        firsts[tokens[0]] = option
    fields = {"logit_bias": {str(token): MOST for token in firsts}, row.bias: 1}
    return Lowered(target, choice, "bias", fields, "biased", prompt=prompt_for(choice))
